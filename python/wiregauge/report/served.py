"""Tables of the service to a flow's receiver: losses and order, deadlines, rates, latency between any two points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from wiregauge.measures.definitions import PAIR_QUANTILES
from wiregauge.measures.definitions.units import rate, share, significant
from wiregauge.measures.flow_measures import (
    AVAILABILITY,
    CONFORMITY,
    DEADLINE,
    GOODPUT,
    LOSSES,
    PAIRS,
    RATES,
    REORDERING,
)
from wiregauge.measures.metrics.judgement import FlowResult, Judgement
from wiregauge.measures.metrics.pairs import PairLatency
from wiregauge.measures.metrics.service import Availability, Conformity, Rate, Share
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.quantities import figure_of
from wiregauge.report.tables import (
    NONE,
    ZERO,
    Cell,
    Head,
    Section,
    Table,
    flow_text,
    micro,
    percentile_columns,
    percentile_of,
    place_cell,
    text_heads,
    time_cell,
)


def _served(judgement: Judgement) -> Iterator[tuple[list[Cell], FlowResult]]:
    """Flows whose ends are both seen."""
    for point in judgement.points:
        for flow in point.flows:
            if not flow.unseen:
                where = ", ".join(point.point.values())
                yield [Cell(where, kind="text short"), Cell(flow_text(flow), kind="text short")], flow


_WHERE = text_heads("point", "flow")


def _bounds(of: Share) -> str:
    worth = f"; effective n {of.worth:.0f} of {of.n}" if of.worth < 0.99 * of.n else f" of {of.n}"
    return f"95 % {share(of.low)} to {share(of.high)}{worth}"


def _count(of: Share, *, bad: bool = True) -> Cell:
    return Cell(
        f"{of.count} of {of.n}", _bounds(of), "bad" if bad and of.count else "", f"≤ {share(of.high, 2)}"
    )


def order_table(judgement: Judgement) -> Table:
    """Losses by period, order of arrival, availability: a row per point and flow."""
    heads = [
        *_WHERE,
        Head("loss periods", "loss_period"),
        Head("longest", "loss_period"),
        Head("least distance", "loss_distance"),
        Head("reordered", "reordered"),
        Head("extent max", "reorder_extent"),
        Head("late time max", "reorder_late_time", unit="µs"),
        Head("3-reordered", "n_reordering"),
        Head("available", "availability"),
        Head("outages", "availability"),
        Head("longest outage", "availability"),
    ]
    rows = [
        [
            *where,
            _number(losses.periods, ", ".join(f"{n} of {k}" for k, n in losses.lengths.items())),
            _number(losses.longest),
            Cell(_or_none(losses.least_distance)),
            _count(order.share),
            _number(order.extent_max),
            Cell(micro(order.late_time_max_ns)),
            _number(order.n_reordered[3], f"largest n {order.n_max}"),
            _availability(up),
            _number(up.outages),
            _number(up.longest),
        ]
        for where, flow in _served(judgement)
        if (losses := flow[LOSSES]) and (order := flow[REORDERING]) and (up := flow[AVAILABILITY])
    ]
    note = "≤: upper 95 % bound; ≥: lower 95 % bound. Lengths, distances and extents are in messages."
    return Table(
        "Losses, order, availability", heads, [Section("", rows)], lead=2, notes=[note] if rows else []
    )


def _number(count: int, hint: str = "") -> Cell:
    return Cell(str(count) if count else ZERO, hint if count else "", "" if count else "faint")


def _or_none(value: int | None) -> str:
    return NONE if value is None else str(value)


def _availability(up: Availability) -> Cell:
    if up.ratio is None:
        return Cell(NONE)
    low = share(up.low, 6)
    return Cell(share(up.ratio, 6), f"down at {_bounds(up.down)}", "bad" if up.down.count else "", f"≥ {low}")


def deadline_table(judgement: Judgement) -> Table:
    """Messages against their deadlines; no rows where no flow has one."""
    told, cells_of = percentile_columns(judgement, "deadlines")
    heads = [
        *_WHERE,
        Head("deadline", unit="µs"),
        Head("missed", "deadline_missed"),
        Head("late", "late"),
        Head("tardiness mean", "lateness", unit="µs"),
        Head("tardiness max", "lateness", unit="µs"),
        *told["lateness"],
        Head("lateness max", "lateness", unit="µs"),
    ]
    rows = []
    for where, flow in _served(judgement):
        deadline, lateness = flow[DEADLINE], flow.summaries.get("lateness")
        if deadline is None or lateness is None:
            continue
        rows.append(
            [
                *where,
                Cell(micro(deadline.deadline_ns)),
                _count(deadline.missed),
                _number(deadline.late),
                Cell(
                    micro(deadline.tardiness_mean_ns)
                    + (f" ± {micro(half)}" if (half := deadline.tardiness_half_width_ns) is not None else "")
                ),
                Cell(micro(deadline.tardiness_max_ns)),
                *cells_of(flow.summaries)["lateness"],
                Cell(micro(lateness.maximum)),
            ]
        )
    return Table("Deadlines", heads, [Section("", rows)], lead=2)


def load_table(judgement: Judgement) -> Table:
    """Offered against intended load of flows and of background load, and the resulting rates."""
    heads = [
        *_WHERE,
        Head("intended", "intended_load", unit="1/s"),
        Head("offered", "offered_load", unit="1/s"),
        Head("offered / intended", "offered_load"),
        Head("on the wire", "offered_load"),
        Head("of the link", "offered_load"),
        Head("goodput", "goodput"),
        Head("effective bandwidth", "effective_bandwidth"),
    ]
    rows = []
    for where, flow in _served(judgement):
        rates, goodput = flow[RATES], flow[GOODPUT]
        bits = rates.offered_bps if rates else None
        link = rates.link_bps if rates else None
        rows.append(
            [
                *where,
                Cell(significant(rates.intended_per_s, 5) if rates else NONE),
                _rate(rates.offered_per_s, "") if rates else Cell(NONE),
                Cell(f"{rates.ratio:.5f}" if rates else NONE),
                Cell(rate(bits, 3) if bits is not None else NONE),
                Cell(share(bits / link) if bits is not None and link else NONE),
                _rate(goodput, "bit/s") if goodput else Cell(NONE),
                _effective(flow),
            ]
        )
    rows += [
        [
            place_cell(run.plan.point),
            Cell(f"background {load.on} to {load.to}", kind="text short"),
            Cell(share(load.intended)),
            Cell(share(load.offered)),
            Cell(f"{load.offered / load.intended:.5f}" if load.offered and load.intended else NONE),
            Cell(NONE),
            Cell(share(load.offered)),
            Cell(NONE),
            Cell(NONE),
        ]
        for run in judgement.runs
        for load in run.loads
    ]
    return Table("Load and rates", heads, [Section("", rows)], lead=2)


def _rate(of: Rate, unit: str) -> Cell:
    def text(value: float | None) -> str:
        if value is None:
            return "unbounded"
        return rate(value, 4) if unit else significant(value, 5)

    if of.low is None:
        return Cell(text(of.value))
    return Cell(
        text(of.value),
        f"95 % interval {text(of.low)} to {text(of.high)}",
        below=_between(text(of.low), text(of.high), text(of.value)),
    )


def _between(low: str, high: str, value: str) -> str:
    """An interval for the line below its figure: the unit once, nothing where all three print the same."""
    if low == high == value:
        return ""
    number, _, unit = low.partition(" ")
    return f"{number}…{high}" if unit and high.endswith(" " + unit) else f"{low}…{high}"


def _effective(flow: FlowResult) -> Cell:
    found = figure_of(flow, "effective_bandwidth")
    value = rate(found.value, 3)
    if found.low is None:
        return Cell(value)
    low, high = rate(found.low, 3), rate(found.high, 3) if found.high is not None else "unbounded"
    return Cell(value, f"95 % interval {low} to {high}", below=_between(low, high, value))


def pair_table(judgement: Judgement) -> Table:
    """Latency between every two measuring points of a leg."""
    names = judgement.plan.named("pair_latency", PAIR_QUANTILES)
    heads = [
        Head("from → to", kind="text"),
        Head("n"),
        Head("min", "pair_latency", unit="µs"),
        Head("mean ± u", "pair_latency", unit="µs"),
        *(Head(name, "pair_latency", unit="µs") for name in names),
        Head("max", "pair_latency", unit="µs"),
    ]
    sections = [
        Section(
            " · ".join(cell.text for cell in reversed(where) if cell.text),
            [_pair(pair, names) for pair in flow[PAIRS]],
        )
        for where, flow in _served(judgement)
        if flow[PAIRS]
    ]
    return Table("Latency between points", heads, sections)


def _pair(pair: PairLatency, names: Sequence[str]) -> list[Cell]:
    spread = f" ± {micro(pair.half_width)}" if pair.half_width is not None else ""
    return [
        Cell(f"{pair.start} → {pair.end}", kind="text short"),
        Cell(str(pair.n), f"{pair.missing} messages were not seen at both points" if pair.missing else ""),
        Cell(micro(pair.minimum)),
        Cell(f"{micro(pair.mean)}{spread}", kind="mean"),
        *(_once(percentile_of(pair.percentiles[name], pair.n, name)) for name in names),
        Cell(micro(pair.maximum)),
    ]


def _once(cell: Cell) -> Cell:
    """The cell without its hover hint: this table is the longest, and its intervals are below the figures."""
    return replace(cell, hint="") if "…" in cell.below else cell


def critical_table(judgement: Judgement) -> Table:
    """Virtual links and schedules: spacing against the BAG, the two networks, reception windows."""
    told, cells_of = percentile_columns(judgement, "critical")
    heads = [
        *text_heads("point", "flow"),
        Head("BAG", "bag_spacing", unit="µs"),
        Head("least spacing", "bag_spacing", unit="µs"),
        *told["bag_spacing"],
        *told["bag_jitter"],
        Head("jitter max", "bag_jitter", unit="µs"),
        *told["skew"],
        Head("skew max", "skew", unit="µs"),
        Head("lost on A"),
        Head("lost on B"),
        Head("window error min", "window_error", unit="µs"),
        *told["window_error"],
        Head("window error max", "window_error", unit="µs"),
        *_contract_heads(),
    ]
    rows = []
    for point in judgement.points:
        for flow in point.flows:
            found = {name: flow.summaries[name] for name in told if name in flow.summaries}
            if not found:
                continue
            cells = cells_of(found)
            spacing, jitter, skew, window = (
                found.get(name) or Summary(name, 0, {}, 0)
                for name in ("bag_spacing", "bag_jitter", "skew", "window_error")
            )
            lost = [str(flow.lost_copies[n]) if n in flow.lost_copies else NONE for n in ("A", "B")]
            rows.append(
                [
                    place_cell(point.point),
                    Cell(flow_text(flow), kind="text short"),
                    time_cell(flow.plan.bag_ns),
                    time_cell(spacing.minimum),
                    *cells["bag_spacing"],
                    *cells["bag_jitter"],
                    time_cell(jitter.maximum),
                    *cells["skew"],
                    time_cell(skew.maximum),
                    *(Cell(count) for count in lost),
                    time_cell(window.minimum),
                    *cells["window_error"],
                    time_cell(window.maximum),
                    *_contract_cells(flow),
                ]
            )
    return Table("Virtual links and schedules", heads, [Section("", rows)], lead=2)


_CONTRACTS = ("bag", "skew", "window")


def _contract_heads() -> list[Head]:
    """Heads of `_contract_cells`."""
    return [Head(f"outside {of}", f"{of.lower()}_violations") for of in ("BAG", "skew", "window")]


def _contract_cells(flow: FlowResult) -> list[Cell]:
    """Frames outside each contract of a flow; a dash where it has no such contract."""
    found = {one.of: one for one in flow[CONFORMITY] or ()}
    return [_contract(found.get(of)) for of in _CONTRACTS]


def _contract(one: Conformity | None) -> Cell:
    if one is None or not one.outside.n:
        return Cell(NONE)
    low, high = one.allowed_ns
    cell = _count(one.outside)
    return Cell(
        cell.text,
        f"allowed {micro(low)} to {micro(high)} µs, worst {micro(one.worst_ns)} µs; {cell.hint}; "
        f"{one.missing} without the necessary timestamps",
        cell.kind,
        cell.below,
    )
