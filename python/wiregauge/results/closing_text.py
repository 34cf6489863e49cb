"""The end of a run on a terminal: one screen with verdict, why, the figures that matter, and where the others are."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from rich.console import Console
from rich.markup import escape

from wiregauge.measures.definitions.units import count_of
from wiregauge.measures.metrics.judgement import FlowResult, Judgement, PointResult
from wiregauge.measures.metrics.quantity import Quantity
from wiregauge.measures.quantities import quantity
from wiregauge.results.show_text import limit_line, print_head, show_text
from wiregauge.terminal import print_table

__all__ = ["closing_text"]

_BELOW = 4
"""Lines that a command prints after this text."""
_MOST_REASONS = 3
_MOST_LIMITS = 3


def closing_text(judgement: Judgement, console: Console) -> None:
    """Prints all that `show_text` prints where that fits a screen, and on a terminal too small for it the short form.

    A file gets everything, for programs to search.
    """
    room = console.height - _BELOW
    if not console.is_terminal or (_rows(judgement) < room and _lines(judgement, console) <= room):
        show_text(judgement, console)
    else:
        _short_text(judgement, console)


def _rows(judgement: Judgement) -> int:
    return sum(max(len(run.flows), 1) for run in judgement.runs)


def _lines(judgement: Judgement, console: Console) -> int:
    with console.capture() as captured:
        show_text(judgement, console)
    return captured.get().count("\n")


def _short_text(judgement: Judgement, console: Console) -> None:
    print_head(judgement, console)
    reasons = judgement.reasons
    for reason in reasons[:_MOST_REASONS]:
        console.print(f"  [yellow]-[/] {escape(reason)}", soft_wrap=True)
    if len(reasons) > _MOST_REASONS:
        console.print(f"  … and {count_of(len(reasons) - _MOST_REASONS, 'more reason')}")
    _limits(judgement, console)
    figures = list(_figures(judgement))
    rows = [
        [
            worst.name,
            worst.figure.shown,
            worst.figure.shown_interval or "-",
            str(worst.figure.n),
            _where(judgement, worst.point, worst.flow),
        ]
        for _, worst, _ in figures
        if worst is not None
    ]
    if rows:
        print_table(("worst of", "value", "95 %", "n", "at"), rows, console, leading=1)
    missing = [f"{statistic} of {count_of(count, 'flow')}" for statistic, _, count in figures if count]
    if missing:
        console.print(f"not determined, and so not among them: {', '.join(missing)}", soft_wrap=True)
    place = escape(str(judgement.directory))
    flows = count_of(_rows(judgement), "flow")
    console.print(
        f"all {flows} of {count_of(len(judgement.runs), 'run')}: `wiregauge show {place}`; why it took so long: "
        f"`wiregauge show {place} --explain`",
        soft_wrap=True,
    )


def _limits(judgement: Judgement, console: Console) -> None:
    """Prints the limits that did not hold, those furthest beyond first, and the number of the others."""
    found = [(run, limit) for run in judgement.runs for limit in run.limits]
    for word in ("fail", "undecided"):
        those = sorted(
            (one for one in found if one[1].result == word),
            key=lambda one: one[1].margin if one[1].margin is not None else 0.0,
        )
        for run, limit in those[:_MOST_LIMITS]:
            console.print(limit_line(judgement, run, limit), soft_wrap=True)
        if len(those) > _MOST_LIMITS:
            console.print(f"  … and {count_of(len(those) - _MOST_LIMITS, 'more limit')}: {word}")
    held = sum(limit.result == "pass" for _, limit in found)
    if held:
        console.print(f"  [green]pass[/] {count_of(held, 'limit')}")


class _Worst(Struct, frozen=True):
    """The greatest figure of a kind, and the flow and point it is of."""

    name: str
    figure: Quantity
    point: PointResult
    flow: FlowResult


def _figures(judgement: Judgement) -> Iterator[tuple[str, _Worst | None, int]]:
    """The worst 99th percentile, the greatest value and the greatest loss of all flows and points.

    With each the number of flows of which it is not determined: one of which nothing arrived has no latency.
    """
    flows = [(point, flow) for point in judgement.points for flow in point.flows]
    for statistic in ("p99", "max", "loss"):
        worst, missing = None, 0
        for point, flow in flows:
            name = statistic if statistic == "loss" else f"{flow.plan.main}.{statistic}"
            figure = quantity(flow, name)
            if figure.value is None:
                missing += 1
            elif worst is None or float(figure) > float(worst.figure):
                worst = _Worst(name, figure, point, flow)
        yield statistic, worst, missing


def _where(judgement: Judgement, point: PointResult, flow: FlowResult) -> str:
    """The flow and the point of a figure."""
    at = ", ".join(point.point.values())
    several = len({one.plan.name for one_point in judgement.points for one in one_point.flows}) > 1
    return ", ".join(filter(None, (f"flow {flow.plan.name}" if several or not at else "", at)))
