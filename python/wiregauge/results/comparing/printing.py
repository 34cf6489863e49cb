"""A comparison on a terminal: verdict, reasons, and the rows that tell most, however many flows there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from rich.console import Console
from rich.markup import escape

from wiregauge.measures.comparing.comparison import Comparison, FlowComparison, MeasureShift, Shift
from wiregauge.measures.comparing.judging import grouped
from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.results.comparing.text import (
    COLOURS,
    compare_headline,
    decided_text,
    error_rates,
    in_full_text,
    sameness_of,
    signed,
    sweep_text,
    unmatched,
    verdict_word,
)
from wiregauge.terminal import print_table

MOST_LINES: Final = 6
"""Lines of one kind."""
MOST_NAMED: Final = 4
"""Flows that are named where a sentence is about more."""
MOST_ROWS: Final = 12
_PERCENTILES: Final = ("p50", "p99", "p99.9")


class _Row(Struct, frozen=True):
    """A main measure of a flow at a point."""

    where: str
    flow: FlowComparison
    measure: MeasureShift | None

    @property
    def who(self) -> str:
        one, other = self.flow.base.plan.protocol, self.flow.new.plan.protocol
        way = " rtt" if self.measure is not None and self.measure.measure == "rtt" else ""
        return f"{self.flow.label} {one if one == other else f'{one} → {other}'}{way}"

    @property
    def weight(self) -> tuple[int, bool, float]:
        """Sort key: by verdict, other losses first, then by the shift of the median against its interval."""
        order = ("worse", "better", "undecided", "same")
        median = self.measure.shift("p50") if self.measure is not None else None
        lost = self.flow.shares.get("lost")
        as_many = lost is None or lost.base_count == lost.new_count
        return order.index(self.flow.verdict), as_many, -_outstanding(median)


def _outstanding(shift: Shift | None) -> float:
    if shift is None:
        return 0.0
    ends = shift.shown
    width = (ends.high - ends.low) if ends.low is not None and ends.high is not None else float("inf")
    return abs(ends.value) / max(width, 1e-9)


def compare_text(comparison: Comparison, console: Console) -> None:
    """Prints verdict, differences besides figures, changes, and the rows that tell most. Omissions are stated."""
    colour = COLOURS[comparison.verdict]
    console.print(
        f"[bold]{escape(comparison.names[0])}[/] (base) against [bold]{escape(comparison.names[1])}[/] (new)  "
        f"verdict [bold {colour}]{comparison.verdict.upper()}[/]",
        soft_wrap=True,
    )
    print_line(console, compare_headline(comparison))
    for reason in comparison.unfit:
        print_line(console, f"  - {reason}")
    print_list(console, "differs besides", comparison.besides)
    for word in ("worse", "better"):
        found = [sweep_text(sweep) for sweep in comparison.sweeps if sweep.verdict == word]
        print_list(console, f"{word} over the sweep", found)
    for word in ("worse", "better"):
        print_list(console, word, _changes(comparison, word))
    print_list(console, "undecided", grouped_lines(_undecided(comparison)))
    print_list(console, "same", _same(comparison))
    missing = [
        f"only in {comparison.names[side]}: {text}"
        for side, texts in enumerate(unmatched(comparison))
        for text in texts
    ]
    print_list(console, "not compared", missing)
    _print_rows(comparison.in_full, console)
    if comparison.in_full is not comparison:
        print_line(console, in_full_text(comparison))
    print_line(
        console, f"error rate: {error_rates(comparison, short=True)}; clock and timestamp errors included"
    )


def print_line(console: Console, line: str) -> None:
    """Prints a sentence, which the terminal breaks where it likes."""
    console.print(escape(line), soft_wrap=True, highlight=False)


def print_list(console: Console, title: str, lines: Sequence[str]) -> None:
    """Prints a line for each with its title, and how many more there are."""
    for line in lines[:MOST_LINES]:
        print_line(console, f"  {title}: {line}")
    if len(lines) > MOST_LINES:
        print_line(console, f"  {title}: … and {len(lines) - MOST_LINES} more; --json has all")


def _at(axes: Iterable[str]) -> str:
    return f" at {', '.join(axes)}" if axes else ""


def _changes(comparison: Comparison, word: str) -> list[str]:
    """A line for each flow that changed so: the figure that changed most, and the names of the others."""
    found = []
    for point in comparison.points:
        for flow in point.flows:
            changed = [(name, shift) for name, shift in flow.judged if shift.verdict == word]
            if not changed:
                continue
            name, shift = max(changed, key=lambda entry: entry[1].weight)
            others = [other for other, _ in changed if other != name]
            also = f"; {word} besides: {grouped(others)}" if others else ""
            text = f"flow {flow.label}{_at(point.axes.values())}: {decided_text(name, shift)}{also}"
            found.append((shift.weight, text))
    return [text for _, text in sorted(found, key=lambda entry: entry[0], reverse=True)]


def _undecided(comparison: Comparison) -> Iterator[tuple[str, str]]:
    for point in comparison.points:
        for flow in point.flows:
            if flow.reason and not comparison.unfit:
                yield flow.reason, f"{flow.label}{_at(point.axes.values())}"


def _same(comparison: Comparison) -> list[str]:
    """A line on those without a difference, where not all are: the headline has it then."""
    if comparison.verdict == "same":
        return []
    found = [
        (flow, f"{flow.label}{_at(point.axes.values())}")
        for point in comparison.points
        for flow in point.flows
        if flow.verdict == "same"
    ]
    said = sameness_of([flow for flow, _ in found])
    return grouped_lines((said, who) for _, who in found)


def grouped_lines(found: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each reason in pairs of reason and flow, with the flows it is of; that of most flows first."""
    groups: dict[str, list[str]] = {}
    for reason, who in found:
        groups.setdefault(reason, []).append(who)
    lines = []
    for reason, flows in sorted(groups.items(), key=lambda entry: -len(entry[1])):
        left = len(flows) - MOST_NAMED
        names = "; ".join(flows[:MOST_NAMED]) + (f"; and {left} more" if left > 0 else "")
        who = f"flow {names}" if len(flows) == 1 else f"{count_of(len(flows), 'flow')} ({names})"
        lines.append(f"{who}: {reason}")
    return lines


def _rows(comparison: Comparison) -> list[_Row]:
    """A row for each point, flow and main measure."""
    return [
        _Row(", ".join(point.axes.values()), flow, flow.measures.get(name))
        for point in comparison.points
        for flow in point.flows
        for name in [name for name in ("latency", "rtt") if name in flow.measures] or ["latency"]
    ]


def _print_rows(comparison: Comparison, console: Console) -> None:
    """The rows that tell most, with as many percentiles as fit."""
    rows = _rows(comparison)
    most = sorted(range(len(rows)), key=lambda k: rows[k].weight)[:MOST_ROWS]
    shown = [rows[k] for k in sorted(most)]
    losses = Counter(_lost(row) for row in shown)
    alike = len(losses) == 1
    swept = any(row.where for row in shown)
    for percentiles in (_PERCENTILES, _PERCENTILES[:2], _PERCENTILES[:1]):
        heads, cells = _cells(shown, percentiles, swept=swept, lost=not alike)
        if _width(heads, cells) <= console.width:
            break
    print_table(heads, cells, console, leading=2 if swept else 1)
    if alike and shown:
        print_line(console, f"lost: {next(iter(losses))} in each of these rows")
    left = len(rows) - len(shown)
    more = f"{left} more rows, which moved less" if left else "all percentiles"
    print_line(console, f"--out FILE.html shows {more}")


def _cells(
    rows: Sequence[_Row], percentiles: Sequence[str], *, swept: bool, lost: bool
) -> tuple[list[str], list[list[str]]]:
    has = [p for p in percentiles if p == "p50" or any(r.measure and r.measure.shift(p) for r in rows)]
    heads = [*(["point"] if swept else []), "flow"]
    for percentile in has:
        heads += [percentile, "shift", "interval"]
    heads += [*(["lost"] if lost else []), "verdict"]
    cells = []
    for row in rows:
        line = [*([row.where] if swept else []), row.who]
        for percentile in has:
            line += _figures(row.measure.shift(percentile) if row.measure is not None else None)
        line += [*([_lost(row)] if lost else []), verdict_word(row.flow)]
        cells.append(line)
    return heads, cells


def _figures(shift: Shift | None) -> list[str]:
    """The value on the base side, the shift, and its interval."""
    if shift is None:
        return ["-", "-", "-"]
    ends = shift.shown
    return [duration(shift.base.value, 3), signed(ends.value), f"[{signed(ends.low)}, {signed(ends.high)}]"]


def _width(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> int:
    """The width of a table of these columns, with a space between them."""
    return sum(max(map(len, column)) + 1 for column in zip(heads, *cells, strict=True)) - 1


def _lost(row: _Row) -> str:
    found = row.flow.shares.get("lost")
    return "-" if found is None else f"{found.base_count} → {found.new_count}"
