"""The main tables: without a sweep one of all flows, with a sweep one per measure (as MAPS 2015, Table 3)."""

from __future__ import annotations

from collections.abc import Sequence

from wiregauge.measures.definitions import DEFINITIONS, MAIN, ascending
from wiregauge.measures.metrics.flow_plan import Size
from wiregauge.measures.metrics.judgement import FlowResult, Judgement, PointResult
from wiregauge.report.tables import Cell, Head, Section, Table, figures_of

_BEFORE = ("n", "lost", "mean ± u", "sd")
_PERCENTILES = ("p50", "p99", "p99.9")

Found = tuple[PointResult, FlowResult]


def key_tables(judgement: Judgement) -> list[Table]:
    """The main tables; none where nothing was sent."""
    flows = [(point, flow) for point in judgement.points for flow in point.flows]
    if not any(flow.counts["sent"] for _, flow in flows):
        return []
    measures = [name for name in MAIN if any(name in flow.summaries for _, flow in flows)]
    if len(judgement.points) == 1:
        return [_of_flows(judgement, flows, measures)]
    return [_of_sweep(judgement, flows, name) for name in measures]


def _of_flows(judgement: Judgement, flows: Sequence[Found], measures: Sequence[str]) -> Table:
    """A row per flow, and for relayed flows another for the round trip."""
    shown, notes = _statistics(judgement, flows, measures)
    sections = [
        Section(
            DEFINITIONS[name].title if len(measures) > 1 else "",
            [
                [Cell(_flow_name(flow), kind="text short"), *figures_of(flow, name, shown)]
                for _, flow in flows
                if name in flow.summaries
            ],
        )
        for name in measures
    ]
    heads = [Head("flow", kind="text"), *_heads(shown, measures[0])]
    title = DEFINITIONS[measures[0]].title if len(measures) == 1 else "Latency and round trip"
    return Table(f"{title} of every flow", heads, sections, notes=notes)


def _of_sweep(judgement: Judgement, flows: Sequence[Found], measure: str) -> Table:
    """A section per flow, a row per payload (or other point), a column group per load or protocol."""
    members = [(point, flow) for point, flow in flows if measure in flow.summaries]
    shown, notes = _statistics(judgement, members, [measure])
    axes = [name for name, values in judgement.plan.axes.items() if len(values) > 1]
    by = next((name for name in ("load", "protocol") if name in axes), "")
    rows_of = [name for name in axes if name != by and (name == "payload" or "payload" not in axes)]

    def group(point: PointResult, flow: FlowResult) -> str:
        return point.point.get(by, flow.plan.protocol)

    def section(point: PointResult, flow: FlowResult) -> str:
        rest = [value for name, value in point.point.items() if name != by and name not in rows_of]
        if not rows_of:
            return " · ".join(rest)
        return " · ".join([_flow_name(flow, protocol=by != "protocol"), *rest])

    def row(point: PointResult, flow: FlowResult) -> str:
        if not rows_of:
            return _flow_name(flow, protocol=by != "protocol")
        if rows_of == ["payload"]:
            return flow.plan.size.tick
        return ", ".join(point.point.get(name, "") for name in rows_of)

    groups = list(dict.fromkeys(group(*found) for found in members)) if by else [""]
    cells: dict[tuple[str, str, str], FlowResult] = {}
    sizes: dict[str, Size] = {}
    sections: dict[str, dict[str, None]] = {}
    for point, flow in members:
        of, at = section(point, flow), row(point, flow)
        sizes[at] = flow.plan.size
        sections.setdefault(of, {})[at] = None
        cells[of, at, group(point, flow) if by else ""] = flow
    by_size = rows_of == ["payload"]
    made = []
    for of, rows in sections.items():
        body = []
        for at in sorted(rows, key=lambda name: sizes[name]) if by_size else rows:
            line = [Cell(at, kind="" if by_size else "text short")]
            for name in groups:
                found = cells.get((of, at, name))
                line += figures_of(found, measure, shown) if found else [Cell("")] * len(shown)
            body.append(line)
        made.append(Section(of, body))
    first = Head("payload", unit="B") if by_size else Head(", ".join(rows_of) or "flow", kind="text")
    heads = [first, *(head for _ in groups for head in _heads(shown, measure))]
    names = [f"load {name}" if by == "load" else name for name in groups]
    over = [Head(name, span=len(shown)) for name in names] if by else []
    return Table(DEFINITIONS[measure].title, heads, made, over, notes=notes)


def _flow_name(flow: FlowResult, *, protocol: bool = True) -> str:
    plan = flow.plan
    kind = f" {plan.protocol}" if protocol else ""
    return f"{plan.id}{kind}: {plan.source} → {plan.destination}" + (" and back" if plan.relayed else "")


def _heads(shown: Sequence[str], measure: str) -> list[Head]:
    plain = ("n", "lost")
    return [
        Head(name, "lost" if name == "lost" else measure, unit="" if name in plain else "µs")
        for name in shown
    ]


def _statistics(
    judgement: Judgement, flows: Sequence[Found], measures: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The columns of the table, and notes on them."""
    rare = any(
        summary.value("p99.9") is not None
        for _, flow in flows
        for name in measures
        if (summary := flow.summaries.get(name)) is not None
    )
    usual = [name for name in _PERCENTILES if rare or name != "p99.9"]
    named = {name for measure in measures for name in judgement.plan.named(measure)}
    shown = [*_BEFORE, *ascending({*usual, *named}), "max"]
    notes = [] if rare else ["No flow has the 2995 values that p99.9 needs; max is the largest of n."]
    if judgement.plan.repeats > 1:
        notes.append(
            f"Each row pools {judgement.plan.repeats} repeats; ± u includes the spread between them."
        )
    return shown, notes
