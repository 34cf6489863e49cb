"""Builds the extremes of the flows of a run from its message table: one pass, a batch at a time, in bounded memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from wiregauge.measures.metrics.arrays import column_of
from wiregauge.measures.metrics.clocks import RunClocks, corrected
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.measures.metrics.recorded import TIMES, WIRE_TIMES, Recorded
from wiregauge.measures.metrics.series import DIFFERENCES, differences, on_the_wire
from wiregauge.measures.metrics.tally import LOST_OUTCOMES, UNKNOWN
from wiregauge.stats.pyramid import Blocks, Growing, Values

__all__ = ["DRAWN", "Key", "build", "raw", "series_of"]

Key = tuple[int, int]
"""A flow by its number, and its receiver."""

BATCH = 1 << 19
"""Rows of the message table that are held at once."""
DRAWN = frozenset({"latency", "rtt", "period", "send_error", "skew", "window_error"})
"""Measures that pictures show over time: their extremes are kept, those of others are found when they are asked for."""
_PLACE = "place"
_ALWAYS = ("flow", "to", "life", "sequence", "warm_up", "outcome", "tx_app", "intended", "tx_drv", "rx_app")


def series_of(flow: FlowPlan) -> tuple[str, ...]:
    """Measures of a flow that have extremes: those of single messages, and those of a message and the one before."""
    return tuple(_expressions(flow))


def _columns(flows: Iterable[FlowPlan], names: Collection[str], *, corrected_late: bool) -> list[str]:
    """What of the message table is needed."""
    if corrected_late:
        return list(dict.fromkeys((*_ALWAYS, *TIMES, *WIRE_TIMES, "late")))
    needed = dict.fromkeys(_ALWAYS)
    for kind in {
        (flow.relayed, flow.both_networks, flow.schedule is not None): flow for flow in flows
    }.values():
        for name, value in _expressions(kind).items():
            if name in names:
                needed |= dict.fromkeys(value.meta.root_names())
    return list(needed)


def _expressions(flow: FlowPlan) -> dict[str, pl.Expr]:
    """By measure its value, ps, from rows in the order of their numbers; no clock offset is taken out."""
    found = {name: value for name, (value, _, _) in differences(flow, 0.0).items()} | on_the_wire(flow)
    number = pl.col("life").cast(pl.Int64) * 2**32 + pl.col("sequence").cast(pl.Int64)
    follows = number - number.shift(1) == 1
    latency = DIFFERENCES["latency"].one_way
    for name, value in (("period", pl.col("tx_app")), ("ipdv", latency)):
        if value is not None:
            found[name] = pl.when(follows).then(value - value.shift(1))
    return found


@cache
def _of_rows() -> dict[str, pl.Expr]:
    return {
        "at": pl.coalesce("tx_app", "intended", "tx_drv", "rx_app"),
        "gone": pl.col("outcome").is_in(LOST_OUTCOMES),
        "unknown": pl.col("outcome") == UNKNOWN,
    }


def _values(flow: FlowPlan, rows: pl.DataFrame, names: Collection[str]) -> Values:
    """The rows of a flow, the first of which is a neighbour only, unless it is alone in having none before it."""
    chosen = {name: value for name, value in _expressions(flow).items() if name in names}
    table = rows.select(_PLACE, **{f" {name}": value for name, value in _of_rows().items()}, **chosen)
    # Nobody knows when a message was sent that left no time at all: it stands where the one before it does.
    at = table[" at"].forward_fill().backward_fill().fill_null(0).cast(pl.Int64)
    found = {}
    for name in chosen:
        column = column_of(table[name])
        found[name] = column.values, column.known
    gone, unknown = (table[f" {name}"].fill_null(value=False).to_numpy() for name in ("gone", "unknown"))
    return Values(table[_PLACE].to_numpy(), at.to_numpy(), gone, unknown, found)


@dataclass(slots=True)
class _Flow:
    plan: FlowPlan
    growing: Growing = field(default_factory=Growing)
    before: pl.DataFrame | None = None
    """The last row of what was there so far: a neighbour of the next."""

    def take(self, rows: pl.DataFrame, names: Collection[str]) -> None:
        """The next rows of the flow."""
        if not rows.height:
            return
        joined = rows if self.before is None else pl.concat([self.before, rows])
        values = _values(self.plan, joined, names)
        self.growing.add(values if self.before is None else values.cut(slice(1, None)))
        self.before = rows.tail(1)


def build(
    directory: Recorded,
    run: RunPlan,
    flows: Sequence[FlowPlan],
    clocks: RunClocks | None = None,
    names: Collection[str] = DRAWN,
) -> dict[Key, Blocks]:
    """The finest blocks of these flows, of their measured part and of these measures.

    Times are as they were recorded, or in the time of the reference where `clocks` correct them one by one. Raises
    RunDirectoryError for a message table that cannot be read.
    """
    found = {(flow.id, flow.receiver): _Flow(flow) for flow in flows}
    wanted = {flow.id for flow in flows}
    columns = _columns(flows, names, corrected_late=clocks is not None)
    for frame in _batches(directory, run, clocks, columns):
        flow = frame["flow"]
        own = flow.unique().to_list()
        if wanted.isdisjoint(own):
            continue
        parts = {own[0]: frame} if len(own) == 1 else _parted(frame)
        for (number, receiver), one in found.items():
            part = parts.get(number)
            if part is not None:
                mine = part.filter(pl.col("to") == receiver) if one.plan.multicast else part
                one.take(mine, names)
    return {key: blocks for key, one in found.items() if (blocks := one.growing.finish()) is not None}


def _parted(frame: pl.DataFrame) -> Mapping[int, pl.DataFrame]:
    parts = frame.partition_by("flow", as_dict=True, maintain_order=True)
    return {int(key[0]): part for key, part in parts.items()}


def _batches(
    directory: Recorded, run: RunPlan, clocks: RunClocks | None, columns: Sequence[str]
) -> Iterator[pl.DataFrame]:
    rows = directory.scan(run.index)
    if rows is None:
        return
    total = directory.rows(run.index)
    for place in range(0, total, BATCH):
        yield _read(directory, run, rows, clocks, columns, (place, min(place + BATCH, total)))


def _read(
    directory: Recorded,
    run: RunPlan,
    rows: pl.LazyFrame,
    clocks: RunClocks | None,
    columns: Sequence[str],
    span: tuple[int, int],
) -> pl.DataFrame:
    """The rows of the measured part among those from one place of the table to before another."""
    first, past = span
    query = rows.slice(first, past - first).select(
        *columns, pl.int_range(first, pl.len() + first, dtype=pl.Int64).alias(_PLACE)
    )
    chosen = query.filter(~pl.col("warm_up"))
    frame: pl.DataFrame = directory.collected(run.index, chosen)
    if clocks is None or not clocks.tracks:
        return frame
    return corrected(frame, run.flows, directory.plan.network.names, clocks)


def raw(
    directory: Recorded,
    run: RunPlan,
    flow: FlowPlan,
    clocks: RunClocks | None,
    blocks: Blocks,
    name: str,
    span: tuple[int, int],
) -> Values:
    """The messages of blocks of the finest level, from one number to before another, with one measure."""
    begin, end = span
    first, past = int(blocks.first[begin]), int(blocks.past[end - 1])
    # The neighbour of the first message is in the block before.
    before = int(blocks.first[begin - 1]) if begin else first
    rows = directory.scan(run.index)
    assert rows is not None  # whoever has blocks has a table
    columns = _columns([flow], (name,), corrected_late=clocks is not None)
    frame = _read(directory, run, rows, clocks, columns, (before, past)).filter(pl.col("flow") == flow.id)
    if flow.multicast:
        frame = frame.filter(pl.col("to") == flow.receiver)
    values = _values(flow, frame, (name,))
    return values.cut(values.first >= first)
