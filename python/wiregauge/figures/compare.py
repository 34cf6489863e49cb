"""The figures of a comparison: overview of all shifts, mirrored densities, shift functions, distributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec.structs import replace

from wiregauge.figures.model import (
    Axis,
    Band,
    Figure,
    Floats,
    Line,
    Panel,
    Rule,
    Scatter,
    Style,
    Trace,
    told,
)
from wiregauge.figures.palette import GREY, side, verdict_style
from wiregauge.figures.traces import US
from wiregauge.measures.comparing.comparison import Comparison, Shift
from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.definitions.units import count_of
from wiregauge.results.comparing.shapes import Estimate, PairShape

MOST_LANES = 48
MOST_PANELS = 12
SHOWN = ("p50", "p99")
GRAVITY = ("worse", "undecided", "better", "same")
"""Verdicts of flows in the order in which they are drawn where not all fit."""


def compare_figures(comparison: Comparison, shapes: Sequence[PairShape]) -> list[Figure]:
    """The figures of a comparison; none where no flow has values on both sides."""
    if not shapes:
        return []
    names, drawn = comparison.names, _telling(shapes)
    return [
        overview(shapes),
        mirrored(names, drawn),
        shift_functions(drawn),
        distributions(names, drawn),
    ]


def _telling(shapes: Sequence[PairShape]) -> Sequence[PairShape]:
    """All shapes in their order where they fit on the page, else those with changes first."""
    if len(shapes) <= MOST_PANELS:
        return shapes
    return sorted(shapes, key=lambda shape: GRAVITY.index(shape.flow.verdict))


def _measures(shapes: Sequence[PairShape]) -> list[str]:
    return list(dict.fromkeys(shape.measure.measure for shape in shapes))


def _left_out(shapes: Sequence[PairShape]) -> list[str]:
    left = len(shapes) - MOST_PANELS
    if left <= 0:
        return []
    of = {
        verdict: sum(shape.flow.verdict == verdict for shape in shapes[:MOST_PANELS]) for verdict in GRAVITY
    }
    drawn = ", ".join(f"{count} {verdict}" for verdict, count in of.items() if count)
    return [f"Drawn are {MOST_PANELS} of {len(shapes)} flows, by verdict: {drawn}. The tables have all."]


def _axis(shape: PairShape) -> str:
    return f"{DEFINITIONS[shape.measure.measure].title.lower()} (µs)"


def overview(shapes: Sequence[PairShape]) -> Figure:
    """A lane per flow and statistic: the shift and its interval, in the colour of the verdict."""
    panels: list[Panel] = []
    shown = shapes[:MOST_LANES]
    for statistic in SHOWN:
        lanes = [(shape, shape.measure.shift(statistic)) for shape in shown]
        marks = [(k, shape, shift) for k, (shape, shift) in enumerate(reversed(lanes)) if shift is not None]
        if not marks:
            continue
        traces: list[Trace] = [Rule(0.0, "", Style(GREY, "dot", width=1.2))]
        for lane, shape, shift in marks:
            style = verdict_style(shift.verdict)
            name = shift.verdict or "not judged"
            low, high = _ends(shift)
            traces.append(
                Line(name, np.array([low, high]) / US, np.full(2, float(lane)), style, legend=False)
            )
            ends = (
                f"{end / US:.4g}" if end is not None else "open"
                for end in (shift.shown.low, shift.shown.high)
            )
            text = f"{shape.title}: {shift.shift.value / US:+.4g} µs [{', '.join(ends)}]"
            traces.append(
                Scatter(
                    name, np.array([shift.shift.value / US]), np.array([float(lane)]), style, 8, hints=[text]
                )
            )
        # Lanes are named once, in the first panel.
        ticks = [(float(k), "" if panels else shape.title) for k, (shape, _) in enumerate(reversed(lanes))]
        panels.append(
            Panel(
                f"shift of {statistic}",
                Axis("new - base (µs)"),
                Axis("", span=(-0.7, len(shown) - 0.3), ticks=ticks),
                traces,
            )
        )
    left = len(shapes) - len(shown)
    found = (shape.measure.shift(name) for shape in shown for name in SHOWN)
    bars = [shift for shift in found if shift is not None]
    joint = [shift.shown is not shift.shift for shift in bars]
    closed = sum(None not in (shift.shown.low, shift.shown.high) for shift in bars)
    return Figure(
        "compare-overview",
        "All shifts at a glance",
        told(
            (bool(bars), "Each bar is the interval of one shift, clock and timestamp errors included:"),
            (not any(joint), "95 % by itself."),
            (all(joint), "joint with the others, as a threshold is held against each."),
            (
                any(joint) and not all(joint),
                "joint with others where a threshold is held against it, else 95 % by itself.",
            ),
            (
                closed < len(bars),
                f"Of {count_of(len(bars), 'bar')} {len(bars) - closed} have an end that is open and not drawn.",
            ),
            (True, "The colour is the verdict, which heeds how many figures were asked."),
            (
                not all(joint),
                "Of a hundred 95 % bars five keep clear of the dotted line by chance.",
            ),
        ),
        panels,
        columns=max(len(panels), 1),
        share_x=False,
        share_y=True,
        notes=[f"{left} further flows are in the tables."] if left > 0 else [],
        measures=_measures(shapes),
        panel_height=max(120, 24 * len(shown) + 20),
        margin_left=min(320, 20 + 6 * max(len(shape.title) for shape in shown)),
    )


def _ends(shift: Shift) -> tuple[float, float]:
    """The interval to draw on a lane, up to the value where an end is open; its marker then shows that."""
    shown = shift.shown
    low = shown.value if shown.low is None else shown.low
    return low, shown.value if shown.high is None else shown.high


def _bands(places: Floats, joints: Sequence[Estimate]) -> list[tuple[Floats, Floats, Floats]]:
    """Runs of neighbouring intervals that are closed at both ends: (x, low, high) in µs."""
    closed = [joint.low is not None and joint.high is not None for joint in joints]
    found = []
    for start in (k for k, good in enumerate(closed) if good and not (k and closed[k - 1])):
        end = next((k for k in range(start, len(closed)) if not closed[k]), len(closed))
        low = np.array([joint.low for joint in joints[start:end]], dtype=np.float64)
        high = np.array([joint.high for joint in joints[start:end]], dtype=np.float64)
        found.append((places[start:end], low / US, high / US))
    return found


def _multiples(
    id_: str,
    title: str,
    caption: str,
    shapes: Sequence[PairShape],
    panel: Callable[[PairShape], Panel],
    notes: Sequence[str] = (),
) -> Figure:
    panels = [panel(shape) for shape in shapes[:MOST_PANELS]]
    columns = min(3, len(panels))
    return Figure(
        id_,
        title,
        caption,
        [_titled_at_the_edge(made, k, columns, len(panels)) for k, made in enumerate(panels)],
        columns,
        share_x=False,
        share_y=False,
        notes=[*notes, *_left_out(shapes)],
        measures=_measures(shapes),
    )


def _around(values: Floats, intervals: Sequence[Estimate], limit: float | None) -> tuple[float, float] | None:
    """The range of a panel of shifts, µs: 0, shifts, thresholds, and intervals up to twice as far as these reach."""
    if not len(values):
        return None
    marks = [0.0, *values.tolist(), *([limit / US, -limit / US] if limit is not None else [])]
    low, high = min(marks), max(marks)
    ends = [end / US for interval in intervals for end in (interval.low, interval.high) if end is not None]
    reach = 2 * (high - low) or max(map(abs, ends), default=0.0) or 1e-3
    low = max(min([low, *ends]), low - reach)
    high = min(max([high, *ends]), high + reach)
    pad = 0.06 * (high - low) or 1e-3
    return low - pad, high + pad


def _titled_at_the_edge(panel: Panel, place: int, columns: int, count: int) -> Panel:
    """The panel with axis titles only at the edge: with separate ranges one per row and column is enough."""
    x = panel.x if place + columns >= count else replace(panel.x, title="")
    y = panel.y if place % columns == 0 else replace(panel.y, title="")
    return replace(panel, x=x, y=y)


def mirrored(names: tuple[str, str], shapes: Sequence[PairShape]) -> Figure:
    """Densities back to back: base above the line, new below it, with their medians."""

    def panel(shape: PairShape) -> Panel:
        base, new = shape.density
        highest = max([float(d.y.max()) for d in (base, new) if len(d.y)], default=1.0) or 1.0
        traces: list[Trace] = [
            Line(f"{names[0]} (base)", base.x / US, base.y / highest, side(0), filled=True),
            Line(f"{names[1]} (new)", new.x / US, -new.y / highest, side(1), filled=True),
        ]
        median = shape.measure.shift("p50")
        if median is not None:
            for value, sign, at in ((median.base.value, 1, 0), (median.new.value, -1, 1)):
                style = Style(side(at).colour, "dot", width=1.4)
                traces.append(
                    Line("median", np.full(2, value / US), np.array([0.0, 1.0 * sign]), style, legend=False)
                )
        traces.append(Rule(0.0, "", Style(GREY, width=1.0), vertical=False))
        return Panel(
            shape.title,
            Axis(_axis(shape), log=shape.log),
            Axis(
                "density (of the higher peak)",
                span=(-1.08, 1.08),
                ticks=((-1.0, "1"), (0.0, "0"), (1.0, "1")),
            ),
            traces,
        )

    outside = sum(d.outside for shape in shapes[:MOST_PANELS] for d in shape.density)
    return _multiples(
        "compare-density",
        "Densities back to back",
        told(
            (True, "Base above the line, new mirrored below it, in one scale."),
            (
                any(shape.measure.shift("p50") is not None for shape in shapes[:MOST_PANELS]),
                "Dotted: the medians.",
            ),
            (True, "Where both sides are alike a panel is symmetrical."),
        ),
        shapes,
        panel,
        [f"{outside} values beyond the central 99 % of either side are not drawn."] if outside else [],
    )


def shift_functions(shapes: Sequence[PairShape]) -> Figure:
    """The shift of every quantile with its interval and the joint band (Doksum 1974)."""

    def panel(shape: PairShape) -> Panel:
        shifts = shape.measure.quantiles
        places = np.arange(len(shifts), dtype=np.float64)
        values = np.array([shift.shift.value for shift in shifts]) / US
        style = verdict_style(shape.flow.verdict)
        traces: list[Trace] = [Rule(0.0, "", Style(GREY, "dot", width=1.2), vertical=False)]
        limit = next((s.tolerance for s in shifts if s.tolerance is not None), None)
        if limit is not None:
            rule = Style(GREY, "dash", width=1.2)
            traces += [
                Rule(limit / US, "threshold", rule, vertical=False),
                Rule(-limit / US, "", rule, vertical=False),
            ]
        traces += [
            Band("joint band", *band, style) for band in _bands(places, [shift.joint for shift in shifts])
        ]
        for place, shift in zip(places, shifts, strict=True):
            if shift.shift.low is not None and shift.shift.high is not None:
                bar = np.array([shift.shift.low, shift.shift.high]) / US
                traces.append(Line("95 %", np.full(2, place), bar, style, legend=False))
        traces.append(Line(f"shift ({shape.flow.verdict})", places, values, style, markers=True))
        span = _around(values, [s.joint for s in shifts] + [s.shift for s in shifts], limit)
        ticks = [(float(k), shift.statistic) for k, shift in enumerate(shifts) if shift.statistic in _TICKS]
        return Panel(
            shape.title,
            Axis("percentile", ticks=ticks),
            Axis("new - base (µs)", span=span),
            traces,
        )

    return _multiples(
        "compare-shift",
        "Shift function",
        _caption_of_shifts(shapes[:MOST_PANELS]),
        shapes,
        panel,
    )


def _caption_of_shifts(shapes: Sequence[PairShape]) -> str:
    shifts = [shift for shape in shapes for shift in shape.measure.quantiles]

    def closed(interval: Estimate) -> bool:
        return interval.low is not None and interval.high is not None

    bars = sum(closed(shift.shift) for shift in shifts)
    banded = sum(closed(shift.joint) for shift in shifts)
    cut = 0
    for shape in shapes:
        of = shape.measure.quantiles
        limit = next((s.tolerance for s in of if s.tolerance is not None), None)
        intervals = [one for s in of for one in (s.joint, s.shift)]
        span = _around(np.array([s.shift.value for s in of]) / US, intervals, limit)
        ends = [end / US for one in intervals if closed(one) for end in (one.low or 0.0, one.high or 0.0)]
        cut += span is not None and any(not span[0] <= end <= span[1] for end in ends)
    return told(
        (
            True,
            "How far each percentile moved: a flat line is a constant delay, a rise to the right a longer tail.",
        ),
        (bool(bars), "Bars are 95 % intervals of each percentile."),
        (bool(banded), "The pale band has the level at which all judged figures hold together."),
        (
            min(bars, banded) < len(shifts),
            "Where no interval is drawn, n does not close it.",
        ),
        (bool(cut), f"In {cut} of {len(shapes)} panels intervals reach beyond the frame."),
    )


_TICKS = frozenset({"p1", "p10", "p30", "p50", "p70", "p90", "p99", "p99.9", "p99.99"})


def distributions(names: tuple[str, str], shapes: Sequence[PairShape]) -> Figure:
    """The two empirical distributions over each other."""

    def panel(shape: PairShape) -> Panel:
        traces: list[Trace] = [
            Line(f"{name} ({role})", curve.value / US, 100 * curve.share, side(at), steps=True)
            for at, (name, role, curve) in enumerate(zip(names, ("base", "new"), shape.ecdf, strict=True))
        ]
        return Panel(
            shape.title, Axis(_axis(shape), log=shape.far), Axis("at or below (%)", span=(0.0, 101.0)), traces
        )

    return _multiples(
        "compare-ecdf",
        "Distributions",
        "The share of messages that took at most so long. The horizontal gap between the curves is the shift.",
        shapes,
        panel,
    )
