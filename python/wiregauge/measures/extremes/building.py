"""Builds the extremes of the flows of a run: one pass over its messages, one over its passages, a batch at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
import polars as pl
from msgspec import Struct, field
from numpy.typing import NDArray

from wiregauge.measures.extremes.spaced import COLUMNS, Spaced
from wiregauge.measures.metrics.arrays import column_of
from wiregauge.measures.metrics.clocks import RunClocks, corrected
from wiregauge.measures.metrics.columns import present
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.measures.metrics.recorded import TIMES, WIRE_TIMES, Recorded
from wiregauge.measures.metrics.series import differences, on_the_wire
from wiregauge.measures.metrics.silences import DUE
from wiregauge.measures.metrics.tally import LOST_OUTCOMES, UNKNOWN
from wiregauge.stats.pyramid import Blocks, Growing, Values

__all__ = [
    "DRAWN",
    "MESSAGES",
    "RESIDENCE",
    "Key",
    "build",
    "every_message",
    "every_passage",
    "passages_of",
    "raw",
    "raw_residence",
    "raw_spaced",
    "residences",
    "series_of",
    "spaced_of",
]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

Key = tuple[int, int]
"""A flow by its number, and its receiver."""

BATCH = 1 << 19
"""Rows of a table that are held at once."""
DRAWN = frozenset({"latency", "rtt", "period", "send_error", "skew", "window_error", *COLUMNS})
"""Measures whose extremes are stored, besides `RESIDENCE`; those of others are computed on request."""
MESSAGES = "messages"
"""The series of messages in sequence order: most measures have one value per message."""
RESIDENCE = "residence"
"""The series of passages through switches, which is named after its measure."""
_PLACE = "place"
_OUTCOME = "outcome"
_ALWAYS = ("flow", "life", "sequence", "warm_up", "outcome", "tx_app", "intended", "rx_app")

_BESIDES = "tx_drv"
"""Column that is read only where neither the plan nor the application gives the sending time."""


def series_of(flow: FlowPlan) -> tuple[str, ...]:
    """Measures of a flow that its messages have: those of single ones, and those of one and the one before."""
    return tuple(_expressions(flow) | _STEPS)


def spaced_of(flow: FlowPlan) -> tuple[str, ...]:
    """Measures of a flow that are times from one arrival to the next."""
    return tuple(name for name in COLUMNS if name != "bag_spacing" or flow.bag_ns is not None)


def _columns(flows: Iterable[FlowPlan], names: Collection[str], *, corrected_late: bool) -> list[str]:
    """The columns of the message table that are needed."""
    needed = dict.fromkeys((*_ALWAYS, "to") if any(flow.multicast for flow in flows) else _ALWAYS)
    if corrected_late:
        return list(dict.fromkeys((*needed, "to", *TIMES, *WIRE_TIMES, "late")))
    for kind in {
        (flow.relayed, flow.both_networks, flow.schedule is not None): flow for flow in flows
    }.values():
        for name, value in (_expressions(kind) | _STEPS).items():
            if name in names:
                needed |= dict.fromkeys(value.meta.root_names())
    spaced = {name for flow in flows for name in spaced_of(flow) if name in names}
    return list(needed | dict.fromkeys(COLUMNS[name] for name in sorted(spaced)))


def _expressions(flow: FlowPlan) -> dict[str, pl.Expr]:
    """Expressions of each measure's value, ps, for rows in sequence order; no clock offset is taken out."""
    return {name: value for name, (value, _, _) in differences(flow, 0.0).items()} | on_the_wire(flow)


_STEPS = {"period": pl.col("tx_app"), "ipdv": pl.col("rx_app") - pl.col("tx_app")}
"""Measures that are the difference between a value and that of the message before."""


def _steps(rows: pl.DataFrame, value: pl.Expr) -> tuple[Integers, Flags | None]:
    """The difference of a value from each message to the next, where that has the next number."""
    column = column_of(rows.select(value).to_series())
    number = rows["sequence"].to_numpy()
    life = rows["life"].to_numpy()
    good = np.zeros(rows.height, dtype=np.bool_)
    # Numbers of 32 bit, as they are stored: twice as fast as wider ones.
    np.equal(number[1:] - number[:-1], 1, out=good[1:])
    if life.min() != life.max():
        good[1:] &= life[1:] == life[:-1]
    if column.known is not None:
        good[1:] &= column.known[1:] & column.known[:-1]
    step = np.zeros(rows.height, dtype=np.int64)
    np.subtract(column.values[1:], column.values[:-1], out=step[1:])
    return step, good


def _sent_at(rows: pl.DataFrame) -> Integers:
    """Sending time of each message, ps; a message without any time takes that of the message before."""
    at = rows["tx_app"]
    if at.null_count():
        known = rows.select(
            pl.coalesce(name for name in ("tx_app", "intended", _BESIDES, "rx_app") if name in rows.columns)
        ).to_series()
        at = known.forward_fill().backward_fill().fill_null(0)
    return at.to_numpy()


def _fates(rows: pl.DataFrame) -> tuple[Flags, Flags]:
    """Flags of lost messages, and of those whose outcome is unknown."""
    if _OUTCOME not in rows.columns:
        nothing = np.zeros(rows.height, dtype=np.bool_)
        return nothing, nothing
    outcome = rows["outcome"].cast(pl.Categorical)
    each = outcome.unique()
    words = each.cast(pl.String).to_list()
    if not any(word in LOST_OUTCOMES or word == UNKNOWN for word in words):
        nothing = np.zeros(rows.height, dtype=np.bool_)
        return nothing, nothing
    numbers = outcome.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
    codes = each.to_physical().cast(pl.Int64).fill_null(-1).to_list()
    lost = [code for code, word in zip(codes, words, strict=True) if word in LOST_OUTCOMES]
    unknown = [code for code, word in zip(codes, words, strict=True) if word == UNKNOWN]
    return np.isin(numbers, lost), np.isin(numbers, unknown)


def _values(flow: FlowPlan, rows: pl.DataFrame, names: Collection[str]) -> Values:
    """Rows of a flow that follow one another; the first has no neighbour."""
    chosen = {name: value for name, value in _expressions(flow).items() if name in names}
    table = rows.select(**chosen)
    found = {}
    for name in chosen:
        column = column_of(table[name])
        found[name] = column.values, column.known
    found |= {name: _steps(rows, value) for name, value in _STEPS.items() if name in names}
    return Values(rows[_PLACE].to_numpy(), _sent_at(rows), *_fates(rows), found)


class _Flow(Struct):
    plan: FlowPlan
    growing: Growing = field(default_factory=Growing)
    before: pl.DataFrame | None = None
    """The last row so far: a neighbour of the next."""
    spaced: dict[str, Spaced] = field(default_factory=dict)

    def take(self, rows: pl.DataFrame, names: Collection[str]) -> None:
        """The next rows of the flow."""
        if not rows.height:
            return
        values = _values(self.plan, rows, names)
        if self.before is None:
            self.growing.add(values)
        else:
            first = pl.concat([self.before, rows.head(1)], how="diagonal")
            self.growing.add(_values(self.plan, first, names).cut(slice(1, None)))
            self.growing.add(values.cut(slice(1, None)))
        self.before = rows.tail(1)
        for name, one in self.spaced.items():
            column = rows[COLUMNS[name]]
            one.take(present(column).to_numpy())
            if name == "receive_period":
                due = column_of(rows["intended"] if not rows["intended"].null_count() else _due(rows))
                # As in `open_silences`: a message that is not lost arrived, timestamped or not.
                came = None if not column.null_count() else column.is_not_null().to_numpy() | ~values.lost
                one.wait(due.values, due.known, came)

    def finish(self) -> dict[str, Blocks]:
        found = {MESSAGES: self.growing.finish()}
        found |= {name: one.finish() for name, one in self.spaced.items()}
        return {name: blocks for name, blocks in found.items() if blocks is not None}


def _due(rows: pl.DataFrame) -> pl.Series:
    return rows.select(DUE if _BESIDES in rows.columns else pl.coalesce("intended", "tx_app")).to_series()


def build(
    directory: Recorded,
    run: RunPlan,
    flows: Sequence[FlowPlan],
    clocks: RunClocks | None = None,
    names: Collection[str] = DRAWN,
) -> dict[Key, dict[str, Blocks]]:
    """The finest blocks of these flows by series, of the measured part and of `names`, without `RESIDENCE`.

    Times are as they were recorded, or in the time of the reference where `clocks` correct them one by one. Raises
    RunDirectoryError for a message table that cannot be read.
    """
    unseen = directory.unseen(run)
    found = {}
    for flow in flows:
        blind = bool({flow.source, flow.destination} & unseen)
        spaced = {name: Spaced(name, silences=not blind) for name in spaced_of(flow) if name in names}
        found[flow.id, flow.receiver] = _Flow(flow, spaced=spaced)
    columns = _columns(flows, names, corrected_late=clocks is not None)
    for key, rows in _of_flows(directory, run, flows, clocks, columns):
        found[key].take(rows, names)
    # Series too disordered to be sorted in one pass.
    again = {key: one for key, one in found.items() if any(part.disordered for part in one.spaced.values())}
    if again:
        for key, rows in _of_flows(directory, run, [one.plan for one in again.values()], clocks, columns):
            for name, part in again[key].spaced.items():
                part.take_again(present(rows[COLUMNS[name]]).to_numpy())
    return {key: blocks for key, one in found.items() if (blocks := one.finish())}


def _of_flows(
    directory: Recorded,
    run: RunPlan,
    flows: Sequence[FlowPlan],
    clocks: RunClocks | None,
    columns: Sequence[str],
) -> Iterator[tuple[Key, pl.DataFrame]]:
    """The rows of these flows at their receivers, batch by batch in the order of the table."""
    rows = directory.scan(run.index, as_stored=True)
    if rows is None:
        return
    total = directory.rows(run.index)
    if clocks is None and not _any_gone(directory, run, rows):
        columns = [name for name in columns if name != _OUTCOME]
    for place in range(0, total, BATCH):
        frame = _read(directory, run, rows, clocks, columns, (place, min(place + BATCH, total)))
        of_flows = _parted(frame)
        for flow in flows:
            for part in of_flows.get(flow.id, ()):
                yield (
                    (flow.id, flow.receiver),
                    part.filter(pl.col("to") == flow.receiver) if flow.multicast else part,
                )


def _any_gone(directory: Recorded, run: RunPlan, rows: pl.LazyFrame) -> bool:
    """Whether any message is lost or unknown.

    Where none is the statistics of the file answer, and the words of outcomes, which cost as much to read as half of
    all else of a message, are not read.
    """
    tracked = (directory.tracked or {}).get(run.index)
    if tracked is not None and any(flow.lost or flow.unknown for flow in tracked.flows):
        return True
    outcome = pl.col(_OUTCOME)
    gone = pl.any_horizontal(outcome == word for word in (*LOST_OUTCOMES, UNKNOWN))
    return bool(directory.collected(run.index, rows.filter(gone).select(pl.len())).item())


def _parted(frame: pl.DataFrame) -> Mapping[int, list[pl.DataFrame]]:
    """The rows by flow: for each its slices, one or few, since the table is ordered by flow."""
    numbers = frame["flow"].to_numpy()
    if not len(numbers):
        return {}
    starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])).tolist()
    found: dict[int, list[pl.DataFrame]] = {}
    for begin, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
        found.setdefault(int(numbers[begin]), []).append(frame.slice(begin, end - begin))
    return found


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
    query = rows.slice(first, past - first).select(columns)
    frame: pl.DataFrame = directory.collected(run.index, query).with_columns(_places(span))
    if _BESIDES not in columns and frame["tx_app"].null_count() and frame["intended"].null_count():
        frame = frame.hstack(directory.collected(run.index, rows.slice(first, past - first).select(_BESIDES)))
    if frame["warm_up"].any():
        frame = frame.filter(~pl.col("warm_up"))
    if clocks is None or not clocks.tracks:
        return frame
    return corrected(frame, run.flows, directory.plan.network.names, clocks)


def _places(span: tuple[int, int]) -> pl.Series:
    return pl.Series(_PLACE, np.arange(*span))


def every_message(
    directory: Recorded,
    run: RunPlan,
    flows: Sequence[FlowPlan],
    clocks: RunClocks | None,
    names: Collection[str],
) -> dict[Key, Values]:
    """Every message of the measured part by flow, with these measures: for runs small enough to be held."""
    plans = {(flow.id, flow.receiver): flow for flow in flows}
    parts: dict[Key, list[pl.DataFrame]] = {}
    for key, rows in _of_flows(
        directory, run, flows, clocks, _columns(flows, names, corrected_late=clocks is not None)
    ):
        parts.setdefault(key, []).append(rows)
    found = {key: pl.concat(of) for key, of in parts.items()}
    return {key: _values(plans[key], rows, names) for key, rows in found.items() if rows.height}


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
    rows = directory.scan(run.index, as_stored=True)
    assert rows is not None  # whoever has blocks has a table
    columns = _columns([flow], (name,), corrected_late=clocks is not None)
    frame = _read(directory, run, rows, clocks, columns, (before, past)).filter(pl.col("flow") == flow.id)
    if flow.multicast:
        frame = frame.filter(pl.col("to") == flow.receiver)
    values = _values(flow, frame, (name,))
    return values.cut(values.first >= first)


def raw_spaced(
    directory: Recorded,
    run: RunPlan,
    flow: FlowPlan,
    clocks: RunClocks | None,
    blocks: Blocks,
    name: str,
    span: tuple[int, int],
) -> Values:
    """The values of an arrival series in blocks of the finest level, from one number to before another."""
    column = COLUMNS[name]
    spaced = Spaced(name, silences=False)

    def read(begin_ps: int, end_ps: int) -> Integers:
        if clocks is not None:
            columns = _columns([flow], (name,), corrected_late=True)
            parts = [
                present(rows[column]).to_numpy()
                for _, rows in _of_flows(directory, run, [flow], clocks, columns)
            ]
            there = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
            return there[(there >= begin_ps) & (there <= end_ps)]
        rows = directory.scan(run.index, as_stored=True)
        assert rows is not None  # whoever has blocks has a table
        mine = (pl.col("flow") == flow.id) & ~pl.col("warm_up")
        if flow.multicast:
            mine &= pl.col("to") == flow.receiver
        query = rows.filter(mine & pl.col(column).is_between(begin_ps, end_ps)).select(column)
        return directory.collected(run.index, query)[column].to_numpy()

    return spaced.of_blocks(blocks, span, read)


# -- passages -------------------------------------------------------------------------------------------------


def residences(directory: Recorded, run: RunPlan, numbers: Collection[int]) -> dict[int, Blocks]:
    """The finest blocks of the passages through switches by flow, in the order of the passages table."""
    rows = _passages(directory, run)
    if rows is None:
        return {}
    growing = {number: Growing() for number in numbers}
    total = passages_of(directory, run)
    for place in range(0, total, BATCH):
        found = _parted(_read_passages(directory, run, rows, (place, min(place + BATCH, total))))
        for flow in found.keys() & growing.keys():
            for part in found[flow]:
                growing[flow].add(_stays(part))
    return {number: blocks for number, one in growing.items() if (blocks := one.finish()) is not None}


def every_passage(directory: Recorded, run: RunPlan) -> dict[int, Values]:
    """Every passage through a switch by flow: for runs small enough to be held."""
    rows = _passages(directory, run)
    if rows is None:
        return {}
    found = _parted(_read_passages(directory, run, rows, (0, passages_of(directory, run))))
    return {flow: _stays(pl.concat(parts)) for flow, parts in found.items()}


def passages_of(directory: Recorded, run: RunPlan) -> int:
    """How many passages through switches there are."""
    rows = _passages(directory, run)
    if rows is None:
        return 0
    return directory.reading(run.index, lambda: int(rows.select(pl.len()).collect().item()))


def raw_residence(
    directory: Recorded, run: RunPlan, flow: FlowPlan, blocks: Blocks, span: tuple[int, int]
) -> Values:
    """The passages of blocks of the finest level, from one number to before another."""
    rows = _passages(directory, run)
    assert rows is not None  # whoever has blocks has a table
    begin, end = span
    within = int(blocks.first[begin]), int(blocks.past[end - 1])
    return _stays(_read_passages(directory, run, rows, within).filter(pl.col("flow") == flow.id))


def _passages(directory: Recorded, run: RunPlan) -> pl.LazyFrame | None:
    path = directory.passages(run.index)
    return None if path is None else pl.scan_parquet(path, glob=False)


def _read_passages(
    directory: Recorded, run: RunPlan, rows: pl.LazyFrame, span: tuple[int, int]
) -> pl.DataFrame:
    first, past = span
    query = rows.slice(first, past - first).select("flow", "came", "left")
    return directory.collected(run.index, query).with_columns(_places(span))


def _stays(rows: pl.DataFrame) -> Values:
    left = rows["left"].to_numpy()
    nothing = np.zeros(len(left), dtype=np.bool_)
    stayed = left - rows["came"].to_numpy()
    return Values(rows[_PLACE].to_numpy(), left, nothing, nothing, {RESIDENCE: (stayed, None)})
