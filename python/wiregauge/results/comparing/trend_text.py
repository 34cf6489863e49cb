"""A trend as text for a terminal, and the sentence that heads its page."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wiregauge.measures.comparing.thresholds import TAIL
from wiregauge.measures.comparing.trend import Trend, TrendSeries
from wiregauge.measures.comparing.trend_judging import TrendPoint
from wiregauge.measures.definitions import SHARES
from wiregauge.measures.definitions.units import count_of, duration, share
from wiregauge.measures.metrics.judgement import Judgement
from wiregauge.results.comparing.printing import grouped_lines, print_line, print_list
from wiregauge.results.comparing.text import (
    COLOURS,
    compare_headline,
    error_rates,
    points_of,
    signed,
)


def started(judgement: Judgement) -> str:
    """The start time of a run, to the second, or a question mark."""
    return (judgement.started or "?")[:19].replace("T", " ")


def version(judgement: Judgement) -> str:
    """Version of the program that ran it."""
    program: object = judgement.manifest.get("program")
    return str(program.get("version", "?")) if isinstance(program, Mapping) else "?"


def value_text(series: TrendSeries, value: float) -> str:
    """A value of a series in its unit."""
    return share(value) if series.measure in SHARES else duration(value)


def shift_of(series: TrendSeries, point: TrendPoint) -> str:
    """The shift of a point against its reference with its interval, as text; empty without one."""
    if point.shift is None:
        return ""
    text = points_of if series.measure in SHARES else signed
    return f"{text(point.shift.value)} [{text(point.shift.low)}, {text(point.shift.high)}]"


def trend_error_rate(trend: Trend) -> str:
    """The error rate at which the verdicts of a run hold."""
    if trend.pair is not None:
        return error_rates(trend.pair)
    return (
        f"intervals of the {count_of(trend.judged, 'figure')} of a run hold together with {100 * trend.level:g} % "
        f"({100 * trend.joint_level:.4g} % each, Bonferroni): the chance of any false alarm is at most "
        f"{100 * (1 - trend.level):.2g} % a run"
    )


def trend_headline(trend: Trend) -> str:
    """One sentence on the newest run against those before it, headed by benches that differ."""
    benches = f"Benches differ ({trend.benches}): " if trend.benches else ""
    return benches + _headline(trend)


def _headline(trend: Trend) -> str:
    name, before = trend.names[trend.newest], count_of(trend.newest, "earlier run")
    if trend.newest in trend.unfit:
        return f"{name}, the newest run, is not fit to compare: {trend.unfit[trend.newest]}."
    if not trend.answered:
        return f"No run before {name} is fit to compare with."
    if trend.pair is not None:
        return f"{name} against {trend.pair.names[0]}: {compare_headline(trend.pair)}"
    told = {}
    for word in ("worse", "better", "undecided"):
        told[word] = [s for s in trend.series if (p := s.at(trend.newest)) is not None and p.verdict == word]
    against = "the first run" if trend.against == "first" else f"the level of {before}"
    parts = [f"{len(found)} {word}" for word, found in told.items() if found]
    gone = f"; {trend.gone[0].text}" if trend.gone else ""
    gone += f", and {len(trend.gone) - 1} more that the run before has" if len(trend.gone) > 1 else ""
    if not parts:
        return (
            f"No difference between {name} and {against} was found in {count_of(len(trend.series), 'figure')}"
            f"{_detectable(trend)}{gone}."
        )
    example = (told["worse"] or told["better"] or told["undecided"])[0]
    point = example.at(trend.newest)
    shift = shift_of(example, point) if point is not None else ""
    return (
        f"Of {len(trend.series)} figures of {name} against {against}, {', '.join(parts)}; "
        f"{example.figure} of {example.title}: {shift}{gone}."
    )


def _detectable(trend: Trend) -> str:
    """The smallest shift that would have been called changed in the least sensitive figure."""
    times = [
        (reach, series)
        for series in trend.series
        if (point := series.at(trend.newest)) is not None
        and (reach := point.detectable) is not None
        and series.measure not in SHARES
        and series.statistic != TAIL
    ]
    if not times:
        return ""
    reach, series = max(times, key=lambda entry: entry[0])
    return f"; a measured shift from {duration(reach, 2)} on would be one ({series.figure} of {series.title})"


def trend_text(trend: Trend, console: Console) -> None:
    """Prints the verdict, the runs, and a row per figure: newest value, reference, shift, steps."""
    colour = COLOURS[trend.verdict]
    console.print(
        f"[bold]{count_of(len(trend.runs), 'run')}[/], newest [bold]{escape(trend.names[-1])}[/]  "
        f"verdict [bold {colour}]{trend.verdict.upper()}[/]",
        soft_wrap=True,
    )
    console.print(escape(trend_headline(trend)), soft_wrap=True)
    print_list(console, "left out", [f"{trend.names[k]}: {why}" for k, why in trend.unfit.items()])
    print_list(console, "not found", trend.missing)
    print_list(console, "not compared", [part.text for part in trend.gone])
    flows = trend.pair.flows if trend.pair is not None else ()
    print_list(
        console, "undecided", grouped_lines((flow.reason, flow.label) for flow in flows if flow.reason)
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for title in ("figure", "flow", "reference", "newest", "shift", "steps at", "verdict"):
        table.add_column(title, no_wrap=title in ("figure", "verdict"))
    for series in trend.series:
        point = series.at(trend.newest)
        if point is None:
            continue
        verdict = point.verdict or "-"
        table.add_row(
            series.figure,
            escape(series.title),
            value_text(series, point.reference) if point.reference is not None else "-",
            value_text(series, point.value.value),
            shift_of(series, point),
            escape(", ".join(trend.names[run] for run in series.steps)),
            f"[{COLOURS.get(verdict, 'dim')}]{verdict}[/]",
        )
    console.print(table)
    print_line(console, f"error rate: {trend_error_rate(trend)}; clock and timestamp errors included")
