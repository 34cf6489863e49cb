"""The first screen of the report: every limit with its margin, and one row per flow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from wiregauge.measures.definitions import ascending, quantile_named
from wiregauge.measures.definitions.units import count_of, share, untapped
from wiregauge.measures.metrics.judgement import FlowResult, Judgement, PointResult
from wiregauge.measures.metrics.percentiles import needed_for
from wiregauge.measures.metrics.summary import Summary
from wiregauge.report.checked import limit_table
from wiregauge.report.tables import NONE, Cell, Head, Section, Table, loss_text, micro

MOST_ROWS = 8
"""The most rows of a table that are visible at once; the rest is folded."""
_TIMES = ("p50", "p99", "p99.9")
_TITLES = {"p50": "median", "max": "max"}

Found = tuple[PointResult, FlowResult]


class Glance(Struct, frozen=True):
    """Two tables, each with its visible rows, and complete where it has more."""

    limits: Table | None
    all_limits: Table | None
    flows: Table | None
    all_flows: Table | None


def glance(judgement: Judgement) -> Glance:
    """The tables of the first screen."""
    limits = limit_table(judgement)
    flows = _flow_table(judgement)
    return Glance(
        *_in_view(limits, "Failed, or smallest margin"), *_in_view(flows, "With the longest latency")
    )


def _in_view(table: Table | None, why: str) -> tuple[Table | None, Table | None]:
    """The visible rows of a table and, if that is not all, the complete table. Rows are sorted by severity."""
    if table is None or not table.size:
        return None, None
    if table.size <= MOST_ROWS:
        return table, None
    rows = [row for section in table.sections for row in section.rows]
    note = f"{why}: {MOST_ROWS} of {len(rows)}; all are below."
    return Table(
        table.title, table.heads, [Section("", rows[:MOST_ROWS])], lead=table.lead, notes=[note, *table.notes]
    ), table


def _flow_table(judgement: Judgement) -> Table | None:
    members: dict[tuple[int, int], list[Found]] = {}
    for point in judgement.points:
        for flow in point.flows:
            if flow.counts["sent"] or flow.unseen:
                members.setdefault((flow.plan.id, flow.plan.receiver), []).append((point, flow))
    if not members:
        return None
    order = list(members)
    if len(order) > MOST_ROWS:
        order.sort(
            key=lambda key: (
                -max((f.summaries["latency"].maximum or 0.0 for _, f in members[key]), default=0.0)
            )
        )
    points = len(judgement.points)
    named = judgement.plan.named("latency")
    known = {
        name
        for found in members.values()
        for _, flow in found
        for name in (*_TIMES, *named, "max")
        if flow.summaries["latency"].value(name) is not None
    }
    times = [name for name in (*ascending({*_TIMES, *named}), "max") if name in known]
    rows = {key: _row(found, times) for key, found in members.items()}
    heads = [
        Head("flow", kind="text"),
        *(Head(_TITLES.get(name, name), "latency", unit="µs") for name in times),
        Head("lost", "lost"),
        Head("loss, 95 %", "loss"),
    ]
    what = "One-way latency and loss of each flow"
    notes = (
        [f"{NONE}: the flow has too few messages for this percentile."]
        if _without(members.values(), times)
        else []
    )
    wanted = {name: needed_for(quantile_named(name) or 0.0) for name in ascending({"p99", "p99.9", *named})}
    few = [f"{name} (n ≥ {needed})" for name, needed in wanted.items() if name not in known]
    if few:
        notes.append(f"No flow has enough messages for {', '.join(few)}.")
    if points > 1:
        what += f": the worst of {points} points"
        notes.insert(0, "Each figure is that of its worst point; hover over it to see which.")
    return Table(what, heads, [Section("", [rows[key] for key in order])], notes=notes)


def _without(members: Iterable[Sequence[Found]], times: Sequence[str]) -> bool:
    return any(
        (summary := flow.summaries["latency"]).n and summary.value(name) is None
        for found in members
        for _, flow in found
        for name in times
    )


def _row(found: Sequence[Found], times: Sequence[str]) -> list[Cell]:
    plan = found[0][1].plan
    protocols = list(dict.fromkeys(flow.plan.protocol for _, flow in found))
    name = f"{plan.id} {'/'.join(protocols)}: {plan.source} → {plan.destination}"
    if plan.relayed:
        name += " and back"
    return [Cell(name, kind="text short"), *(_worst(found, statistic) for statistic in times), *_lost(found)]


def _worst(found: Sequence[Found], statistic: str) -> Cell:
    def value(pair: Found) -> float:
        known = pair[1].summaries["latency"].value(statistic)
        return known if known is not None else float("-inf")

    point, flow = max(found, key=value)
    summary = flow.summaries["latency"]
    known = summary.value(statistic)
    if known is None:
        return Cell(NONE, _needed(summary, statistic), "faint")
    return Cell(
        micro(known), "; ".join(part for part in (_at(point, found), _interval(summary, statistic)) if part)
    )


def _needed(summary: Summary, statistic: str) -> str:
    percentile = summary.percentiles.get(statistic)
    if percentile is None or not summary.n:
        return "no message of the flow arrived" if not summary.n else ""
    return f"needs {percentile.needed} values, n is {summary.n}"


def _interval(summary: Summary, statistic: str) -> str:
    if statistic == "max":
        return f"largest of {summary.n}"
    percentile = summary.percentiles[statistic]
    low, high = percentile.low, percentile.high
    if low is None and high is None:
        return "no interval"
    ends = f"{micro(low) if low is not None else 'unbounded'} to {micro(high) if high is not None else 'unbounded'}"
    return f"95 % interval {ends} µs, n = {summary.n}"


def _at(point: PointResult, found: Sequence[Found]) -> str:
    return f"at {', '.join(point.point.values())}" if len(found) > 1 else ""


def _lost(found: Sequence[Found]) -> list[Cell]:
    unseen = sorted({name for _, flow in found for name in flow.unseen})
    if unseen:
        why = f"not known: {untapped(unseen)}"
        return [Cell("not known", why), Cell("not known", why)]
    lost, sent = (sum(flow.counts[name] for _, flow in found) for name in ("lost", "sent"))
    point, worst = max(found, key=lambda pair: pair[1].loss.high)
    unknown = sum(flow.counts["unknown"] for _, flow in found)
    below = f"{unknown} unknown" if unknown else ""
    count = Cell(f"{lost} of {sent}", count_of(lost, "message") + " lost", "bad" if lost else "", below=below)
    hint = "; ".join(part for part in (_at(point, found), loss_text(worst)) if part)
    return [count, Cell(f"≤ {share(worst.loss.high, 2)}", hint)]
