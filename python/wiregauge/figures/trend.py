"""The figures of a trend: each statistic over the runs with its intervals, limits and steps."""

from __future__ import annotations

import numpy as np

from wiregauge.figures.model import Axis, Figure, Line, Panel, Rule, Scatter, Style, Trace, told
from wiregauge.figures.palette import GREY, VERMILION, verdict_style
from wiregauge.figures.panels import MOST_PANELS
from wiregauge.figures.traces import US
from wiregauge.measures.comparing.trend import Trend, TrendSeries
from wiregauge.measures.comparing.trend_judging import TrendPoint
from wiregauge.measures.definitions import DEFINITIONS, SERIES
from wiregauge.measures.definitions.units import count_of
from wiregauge.results.comparing.trend_text import shift_of, started, value_text, version

MOST_TICKS = 8


def trend_figures(trend: Trend) -> list[Figure]:
    """A figure per measure and statistic, a panel per flow and point; shares only where an event occurred."""
    groups: dict[str, list[TrendSeries]] = {}
    for series in trend.series:
        if series.measure in SERIES or any(point.value.value for point in series.points):
            groups.setdefault(series.figure, []).append(series)
    return [_figure(trend, name, members) for name, members in groups.items()]


def _figure(trend: Trend, name: str, members: list[TrendSeries]) -> Figure:
    shown = members[:MOST_PANELS]
    columns = min(3, len(shown))
    measure = members[0].measure
    left = len(members) - len(shown)
    statistic = "" if measure not in SERIES else f", {members[0].statistic}"
    return Figure(
        "trend-" + name.replace(".", "-"),
        f"{DEFINITIONS[measure].title}{statistic}",
        _caption(shown),
        [_panel(trend, series, k, columns, len(shown)) for k, series in enumerate(shown)],
        columns,
        share_x=False,
        share_y=False,
        notes=[*_far_limits(shown), *([f"{left} further flows are in the tables."] if left else [])],
        measures=[measure],
    )


def _caption(shown: list[TrendSeries]) -> str:
    points = [point for series in shown for point in series.points]
    closed = sum(None not in (point.value.low, point.value.high) for point in points)
    steps = sum(len(series.steps) for series in shown)
    limits = sum(_is_near(series, limit.value) for series in shown for limit in series.limits)
    return told(
        (closed == len(points), "One mark per run, oldest first, with its 95 % interval."),
        (closed < len(points), "One mark per run, oldest first."),
        (
            0 < closed < len(points),
            f"{closed} of {len(points)} have their 95 % interval; n does not close the others.",
        ),
        (closed == 0, "None has an interval: n does not close it."),
        (
            any(point.verdict for point in points),
            "Colour and shape tell the verdict against the runs before it.",
        ),
        (
            any(not point.verdict for point in points),
            "Marks without a verdict say why when they are pointed at.",
        ),
        (bool(steps), f"Dotted lines: {count_of(steps, 'step')} of the level."),
        (bool(limits), "Dashed: limits of the newest test."),
    )


def _is_near(series: TrendSeries, limit: float) -> bool:
    low, high = _span(series)
    return low <= limit <= high


def _panel(trend: Trend, series: TrendSeries, place: int, columns: int, count: int) -> Panel:
    scale, unit = (1 / US, "µs") if series.measure in SERIES else (100.0, "%")
    low, high = _span(series)
    rule = Style(VERMILION, "dash", width=1.2)
    traces: list[Trace] = [
        Rule(limit.value * scale, limit.written, rule, vertical=False)
        for limit in series.limits
        if _is_near(series, limit.value)
    ]
    traces += [Rule(step - 0.5, "", Style(GREY, "dot", width=1.5)) for step in series.steps]
    runs = np.array([float(point.run) for point in series.points])
    values = np.array([point.value.value for point in series.points]) * scale
    traces.append(Line("level", runs, values, Style(GREY, width=1.0), legend=False))
    for point in series.points:
        style = verdict_style(point.verdict)
        ends = [end for end in (point.value.low, point.value.high) if end is not None]
        if len(ends) == 2:
            bar = np.array(ends) * scale
            traces.append(Line("95 %", np.full(2, float(point.run)), bar, style, legend=False))
        traces.append(
            Scatter(
                _word(point),
                np.array([float(point.run)]),
                np.array([point.value.value * scale]),
                style,
                8,
                hints=[_hint(trend, series, point)],
            )
        )
    thin = -(-len(trend.runs) // MOST_TICKS)
    ticks = [(float(k), _short(name)) for k, name in enumerate(trend.names) if k % thin == 0]
    return Panel(
        series.title,
        Axis("run" if place + columns >= count else "", ticks=ticks, span=(-0.5, len(trend.runs) - 0.5)),
        Axis(f"{series.figure} ({unit})" if place % columns == 0 else "", span=(low * scale, high * scale)),
        traces,
    )


def _span(series: TrendSeries) -> tuple[float, float]:
    """The range of a panel: all intervals, and the limits unless they would flatten the rest."""
    ends = [
        end
        for point in series.points
        for end in (point.value.low, point.value.value, point.value.high)
        if end is not None
    ]
    low, high = min(ends), max(ends)
    near = [limit.value for limit in series.limits if low / 2 <= limit.value <= 2 * high]
    low, high = min([low, *near]), max([high, *near])
    pad = 0.08 * (high - low) or 0.05 * abs(high) or 1e-6
    return low - pad, high + pad


def _far_limits(shown: list[TrendSeries]) -> list[str]:
    far = {limit.written for series in shown for limit in series.limits if not _is_near(series, limit.value)}
    return [f"Beyond the axis: {', '.join(sorted(far))}."] if far else []


def _word(point: TrendPoint) -> str:
    return point.verdict or ("nothing before it" if point.fit else "left out")


def _short(name: str) -> str:
    return name if len(name) <= 12 else "…" + name[-11:]


def _hint(trend: Trend, series: TrendSeries, point: TrendPoint) -> str:
    judgement = trend.runs[point.run]
    shift = shift_of(series, point)
    return (
        f"{trend.names[point.run]} ({started(judgement)}, version {version(judgement)}): "
        f"{value_text(series, point.value.value)} of n = {point.n}" + (f"; {shift}" if shift else "")
    )
