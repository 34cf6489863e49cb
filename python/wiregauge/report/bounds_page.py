"""The page of worst-case bounds: the verdict first, then flows, ports and hops, each picture with its table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from wiregauge.bounds import Answer, Bounded, TargetBound, verdict, worst_run
from wiregauge.bounds.advising import Advice, Change, Exceeded
from wiregauge.bounds.against import Laid, nearest, told_invalid
from wiregauge.bounds.analysing import total_flow
from wiregauge.bounds.every_run import RUN_HEADS, run_rows, runs_verdict
from wiregauge.bounds.printing import (
    BY_WHAT_ARRIVES,
    Ranked,
    judged_text,
    left_out,
    longest_hop,
    method_text,
    ranked,
    show_time,
    slowest_port,
)
from wiregauge.bounds.sensitivity import Sensitivity, heads, rows, summary
from wiregauge.figures import Figure
from wiregauge.figures.bounds import FlowMark, HopMark, hops_figure, marks_figure, ports_figure
from wiregauge.figures.network import loads_figure
from wiregauge.measures import DEFINITIONS
from wiregauge.measures.definitions.units import count_of, share
from wiregauge.report.beside_bounds import Pair, mark_of, pairs_of
from wiregauge.report.tables import NONE, Cell, Head, Section, Table, text_heads
from wiregauge.report.write import render, store

__all__ = ["BoundsShown", "rendered_bounds", "write_bounds"]

_JSON = "--json"
"""What has the rows of a table that is too long for the page."""


class BoundsShown(Struct, frozen=True):
    """What a page of bounds shows: the bounds of every network of a test, and what was asked besides."""

    found: Sequence[Bounded]
    laid: Sequence[Laid] = ()
    """Runs that are compared with the bounds."""
    simulated: dict[tuple[str, str], float] = field(default_factory=dict)
    """The worst latency that a search found, s, by flow and target."""
    advice: Mapping[int, Advice] = field(default_factory=dict)
    """What would keep the limits, by the first run of a network."""
    room: Sensitivity | None = None
    """How far each parameter may change."""


def write_bounds(shown: BoundsShown, path: Path) -> Path:
    """Writes the page of bounds as one file; returns its path. Raises RunDirectoryError when it cannot."""
    store(path, rendered_bounds(shown))
    return path


def rendered_bounds(shown: BoundsShown) -> str:
    """The text of that page."""
    return _Page(shown).text()


class _Page:
    def __init__(self, shown: BoundsShown) -> None:
        self._shown = shown
        # As in the text: the runs whose latencies come nearest to their bounds, else the bounds nearest to a limit.
        first = nearest(shown.laid) if shown.laid else None
        beside = (one for one in shown.found if first is not None and first in one.source.runs)
        self._own = next(beside, worst_run(shown.found))
        self._answer = self._own.answer
        self._rows = ranked(self._answer)
        self._pairs = pairs_of([one for one in shown.laid if first is None or one.network == first])
        self._scale, self._unit = (1e6, "µs") if self._answer.time_unit == "s" else (1.0, "unit of the file")

    def text(self) -> str:
        found, answer = self._shown.found, self._answer
        kept = all(one.answer.kept for one in found)
        limits = any(one.answer.limits for one in found)
        total = total_flow(self._own.source, answer)
        rows = _hop_rows(self._rows, total) if total is not None else []
        drawn = [
            marks_figure([self._mark(row) for row in self._rows if row[1].delay is not None], self._unit),
            self._loads(),
            hops_figure([self._hops(row) for row in rows if row[1].delay is not None], self._unit),
        ]
        return render(
            "bounds.html.j2",
            [figure for figure in drawn if figure is not None],
            name=answer.name or "network",
            verdict=("pass" if kept else "fail") if limits else "none",
            bounded=all(one.answer.bounded for one in found),
            headline=verdict(answer) if len(found) == 1 else runs_verdict(found),
            answers=self._answers(),
            alarms=[
                f"flow {flow.flow} to {flow.target} exceeded its bound in {one.name}: {alarm}"
                for one in self._shown.laid
                for flow in one.flows
                for alarm in flow.alarms
            ],
            invalid=[sentence for one in self._shown.laid for sentence in told_invalid(one)],
            runs=_runs(found),
            shown_run=self._own.name if len(found) > 1 else "",
            flows=self._flows(),
            ports=self._ports(),
            hops=self._hop_table(rows),
            advice=_advice_table(self._shown),
            room=_room_table(self._shown.room),
            room_summary="" if self._shown.room is None else summary(self._shown.room),
            assumptions=answer.assumptions,
            notes=[
                *left_out(answer),
                *dict.fromkeys(answer.notes),
                *(f"{one.name}: {note}" for one in self._shown.laid for note in one.notes),
            ],
            method=f"{answer.as_text}, {answer.arithmetic} arithmetic",
            definitions=[DEFINITIONS["latency"]],
        )

    def _answers(self) -> list[dict[str, str]]:
        answer, limits = self._answer, [limit for one in self._shown.found for limit in one.answer.limits]
        broken = sum(not limit.kept for limit in limits)
        loses = BY_WHAT_ARRIVES if any(one.answer.loses for one in self._shown.found) else ""
        kept = f"{broken} of {len(limits)} not kept" if broken else "yes"
        boxes = [
            {
                "question": "Are the limits kept?",
                "figure": kept if limits else "no limit",
                "detail": f"{count_of(len(limits), 'limit')}{'' if broken else loses}"
                if limits
                else "the file sets none for a latency",
            }
        ]
        if self._rows:
            flow, target, own = self._rows[0]
            parts = [
                f"flow {flow} to {target.target}",
                *([f"limit {own.written}"] if own is not None else []),
            ]
            if (longest := longest_hop(target)) is not None:
                parts.append(f"{show_time(longest[0], answer.time_unit)} of it at {longest[1]}")
            figure = "not bounded" if target.delay is None else show_time(target.delay, answer.time_unit)
            boxes.append({"question": "Worst flow", "figure": figure, "detail": ", ".join(parts)})
        if (port := slowest_port(answer)) is not None:
            figure = "not bounded" if port.delay is None else show_time(port.delay, answer.time_unit)
            detail = f"{port.server}, load {share(port.load)}"
            boxes.append({"question": "Longest delay at a port", "figure": figure, "detail": detail})
            fullest = max(answer.servers, key=lambda one: one.load)
            boxes.append(
                {"question": "Highest load", "figure": share(fullest.load), "detail": fullest.server}
            )
        return boxes

    def _head(self, text: str) -> Head:
        return Head(text, unit=self._unit)

    def _seen(self, row: Ranked) -> tuple[float | None, float | None]:
        """The longest measured and simulated latency of a flow at a target."""
        flow, target, _ = row
        pair: Pair = self._pairs.get((flow, target.target), {})
        measured, simulated = (
            own.measured if (own := pair.get(kind)) is not None else None for kind in (False, True)
        )
        found = self._shown.simulated.get((flow, target.target))
        return measured, _greatest(simulated, found)

    def _mark(self, row: Ranked) -> FlowMark:
        flow, target, limit = row
        measured, simulated = self._seen(row)
        pair = self._pairs.get((flow, target.target))
        delay = target.delay or 0.0
        return FlowMark(
            f"{flow} to {target.target}",
            delay * self._scale,
            _scaled(measured, self._scale),
            _scaled(simulated, self._scale),
            (pair is not None and mark_of(pair).exceeded) or (simulated or 0.0) > delay,
            None if limit is None else limit.at_most * self._scale,
        )

    def _loads(self) -> Figure | None:
        loads = {server.server: server.load for server in self._answer.servers}
        planned = self._own.source.planned
        return ports_figure(loads) if planned is None else loads_figure(planned[0], loads)

    def _hops(self, row: Ranked) -> HopMark:
        flow, target, _ = row
        return HopMark(
            f"{flow} to {target.target}",
            _bounded_part(target),
            [delay * self._scale for delay in target.hops],
            *self._residences(row),
            [wait * self._scale for wait in target.waits[: len(target.hops)]],
        )

    def _residences(self, row: Ranked) -> tuple[list[float | None], list[float | None]]:
        """The longest measured and simulated residence at each server of a path."""
        flow, target, _ = row
        pair = self._pairs.get((flow, target.target), {})

        def side(*, simulated: bool) -> list[float | None]:
            at = {hop.server: hop.measured for hop in pair[simulated].hops} if simulated in pair else {}
            return [_scaled(at.get(server), self._scale) for server in _bounded_part(target)]

        return side(simulated=False), side(simulated=True)

    def _flows(self) -> Table:
        loses = self._answer.loses
        heads = [
            *text_heads("flow", "target"),
            Head("at most", "latency", unit=self._unit),
            Head("by", kind="text"),
            self._head("at least"),
            self._head("jitter at most"),
            Head("limit"),
            Head("", kind="text"),
            self._head("measured"),
            self._head("simulated"),
            Head("tightness"),
        ]
        rows = []
        for row in self._rows:
            flow, target, limit = row
            measured, simulated = self._seen(row)
            longest = _greatest(measured, simulated)
            known = target.delay is not None and target.least is not None
            jitter = (target.delay or 0.0) - (target.least or 0.0) if known else None
            word = "" if limit is None else judged_text(limit, loses=loses)
            rows.append(
                [
                    Cell(flow, kind="text"),
                    Cell(target.target, " → ".join(target.path), "text"),
                    self._cell(target.delay, "none", bad=target.delay is None),
                    Cell(method_text(target, self._answer) or NONE, kind="text short"),
                    self._cell(target.least),
                    self._cell(jitter),
                    Cell(NONE if limit is None else limit.written),
                    Cell(
                        word,
                        kind=f"grade text short {'fail' if limit is not None and not limit.kept else 'ok'}",
                    ),
                    self._cell(measured),
                    self._cell(simulated),
                    Cell(share(longest / target.delay) if longest is not None and target.delay else NONE),
                ]
            )
        return Table(
            "Bounds of the flows",
            heads,
            [Section("", rows)],
            notes=["Tightness: the longest latency seen over the bound."] if self._seen_any() else (),
            complete=_JSON,
        )

    def _seen_any(self) -> bool:
        return bool(self._pairs or self._shown.simulated)

    def _cell(self, value: float | None, missing: str = NONE, *, bad: bool = False) -> Cell:
        return Cell(missing if value is None else f"{value * self._scale:.3f}", kind="bad" if bad else "")

    def _ports(self) -> Table:
        heads = [
            *text_heads("port", "class"),
            self._head("delay at most"),
            Head("backlog at most", unit="bit"),
            Head("load"),
        ]
        rows = []
        for server in sorted(self._answer.servers, key=lambda one: one.load, reverse=True):
            load = Cell(share(server.load), kind="bad" if server.load > 1 else "")
            classes = [(one.name, one.delay, one.backlog_bits) for one in server.classes]
            own = classes if len(classes) > 1 else [("", server.delay, server.backlog_bits)]
            for name, delay, backlog in own:
                bits = Cell("none", kind="bad") if backlog is None else Cell(f"{backlog:.0f}")
                port = Cell(server.server, kind="text")
                rows.append(
                    [port, Cell(name, kind="text"), self._cell(delay, "none", bad=delay is None), bits, load]
                )
        notes = ["A port's backlog is what its buffer must hold. None: not bounded."]
        return Table("Bounds of the ports", heads, [Section("", rows)], notes=notes, complete=_JSON)

    def _hop_table(self, rows: Sequence[Ranked]) -> Table:
        cells = []
        for row in rows:
            flow, target, _ = row
            measured, simulated = self._residences(row)
            name = f"{flow} to {target.target}"
            for k, server in enumerate(_bounded_part(target)):
                cells.append(
                    [
                        Cell(name if not k else "", kind="text"),
                        Cell(server, kind="text"),
                        self._cell(target.waits[k] if target.waits else None),
                        self._cell(target.hops[k]),
                        *(Cell(NONE if at is None else f"{at:.3f}") for at in (measured[k], simulated[k])),
                    ]
                )
            if len(target.hops) < len(target.path):
                cells.append(
                    [
                        Cell(""),
                        Cell(f"not bounded from {target.path[len(target.hops)]} on", kind="text bad"),
                        *[Cell(NONE)] * 4,
                    ]
                )
            elif target.waits:
                behind = self._cell(target.waits[-1])
                cells.append([Cell(""), Cell("behind it", kind="text"), behind, *[Cell(NONE)] * 3])
        heads = [
            *text_heads("flow", "server"),
            *map(self._head, ("before it at most", "at it at most", "measured", "simulated")),
        ]
        own = self._answer.method == "tfa"
        notes = () if own else ("By total flow analysis: other methods have no delay for each server.",)
        return Table("Hop by hop", heads, [Section("", cells)], notes=notes, complete=_JSON)


def _hop_rows(rows: Sequence[Ranked], total: Answer) -> list[Ranked]:
    """The same flows in the same order, with the hops of total flow analysis."""
    own = {(flow.flow, target.target): target for flow in total.flows for target in flow.targets}
    found = [(flow, own[flow, target.target], limit) for flow, target, limit in rows]
    return [row for row in found if row[1].hops]


def _bounded_part(target: TargetBound) -> tuple[str, ...]:
    """The servers of a path up to the first without a bound."""
    return target.path[: len(target.hops)]


def _advice_table(shown: BoundsShown) -> Table | None:
    """Every exceeded limit with the changes that would keep it, or the one that comes nearest."""
    if not shown.advice:
        return None
    sections, tried, known = [], 0, 0
    for one in shown.found:
        own = shown.advice.get(one.source.runs[0] if one.source.runs else 0)
        if own is None:
            continue
        lines = [row for limit in own.exceeded for row in _advice_rows(limit)]
        tried += sum(limit.tried for limit in own.exceeded)
        known += sum(limit.known for limit in own.exceeded)
        sections.append(Section(one.name if len(shown.found) > 1 else "", lines))
    heads = [
        *text_heads("flow", "target"),
        Head("bound", unit="µs"),
        Head("limit"),
        *text_heads("change", "of", "now", "then"),
        Head("bound with it", unit="µs"),
        Head("limits exceeded still"),
    ]
    note = f"{tried} of {known} changes were tried."
    return Table("Single changes that keep a limit", heads, sections, notes=[note], complete=_JSON)


def _advice_rows(limit: Exceeded) -> Iterator[list[Cell]]:
    changes: Sequence[Change | None] = limit.changes or [limit.nearest]
    for change in changes:
        delay = "none" if limit.delay is None else f"{limit.delay * 1e6:.3f}"
        row = [
            Cell(limit.flow, kind="text"),
            Cell(limit.target, kind="text"),
            Cell(delay),
            Cell(limit.written),
        ]
        if change is None:
            yield [*row, Cell("none tried", kind="text"), *[Cell(NONE)] * 5]
            continue
        kept = "" if limit.changes else "does not keep it, comes nearest"
        texts = (change.kind, change.element, change.before, change.after)
        yield [
            *row,
            *(Cell(text, kind="text", below=kept if not k else "") for k, text in enumerate(texts)),
            Cell(f"{change.delay * 1e6:.3f}", kind="" if limit.changes else "bad"),
            Cell(str(change.still_exceeded)),
        ]


def _room_table(room: Sensitivity | None) -> Table | None:
    if room is None:
        return None
    lines = [[Cell(text, kind="text" if k != 4 else "") for k, text in enumerate(row)] for row in rows(room)]
    named = [Head(text, kind="" if k == 4 else "text") for k, text in enumerate(heads(room))]
    return Table("Sensitivity", named, [Section("", lines)], complete=_JSON)


def _runs(found: Sequence[Bounded]) -> Table | None:
    if len(found) == 1:
        return None
    rows = [[Cell(text, kind="text short") for text in row] for row in run_rows(found)]
    return Table("Every network of the runs", text_heads(*RUN_HEADS), [Section("", rows)])


def _greatest(*values: float | None) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale
