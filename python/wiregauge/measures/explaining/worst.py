"""The worst messages of every flow of a run: delay per step, frames waited for, and events around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from msgspec import Struct, field

from wiregauge.measures.explaining.around import Surroundings
from wiregauge.measures.explaining.explanation import (
    Holder,
    Neighbour,
    Partner,
    SeriesExplained,
    Step,
    WorstMessage,
)
from wiregauge.measures.explaining.hop_times import (
    MOST_RECORDS,
    ladders,
    read_in_parts,
    read_spans,
    steps_of,
    usual_steps,
    ways_of,
)
from wiregauge.measures.explaining.sentences import cause_of, message_sentence
from wiregauge.measures.metrics.clocks import RunClocks, corrected, on_one_clock
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.recorded import Recorded
from wiregauge.measures.metrics.series import Offsets
from wiregauge.measures.validity.host_noise import ReportedRun
from wiregauge.plan.ethernet import AROUND_FRAME
from wiregauge.stats import Mode

BESIDE = 2
"""Neighbours shown before and after a message."""
MOST_PARTNERS = 40
"""Number of frames listed for a message, the first to hold the port first; sentences are about all of them."""
WAITS = 2
"""Ports of a message's route at which its partners are searched: those that took most beyond the usual."""
LONGEST = 9_100
"""Bytes of the longest frame that can be in progress when a message comes to a port."""

_LEFT = ("flow", "sequence", "returning", "length")
"""Columns reported for a frame that left meanwhile."""

Key = tuple[int, int]


class Subject(Struct, frozen=True):
    """A flow whose messages are explained: messages sent, the median of its main measure (ns), recurring modes."""

    plan: FlowPlan
    sent: int
    median: float
    modes: Sequence[Mode] = ()


def worst_messages(
    directory: Recorded,
    run: ReportedRun,
    flows: Sequence[tuple[FlowResult, SeriesExplained, float]],
    offsets: Mapping[Key, Offsets],
    around: Surroundings,
    clocks: RunClocks,
    most: int,
) -> dict[Key, tuple[WorstMessage, ...]]:
    """The `most` slowest messages of each flow and receiver; `flows` gives each with its main series and median."""
    table = message_table(directory, run, clocks)
    if table is None or not flows:
        return {}
    chosen: dict[Key, pl.DataFrame] = {}
    for flow, main, _ in flows:
        plan = flow.plan
        begin = float(main.series.t.min()) * 1e12 - 1 if len(main.series.t) else float("inf")
        found = (
            took(of_flow(table, plan), plan, offsets)
            .filter(pl.col("tx_app") >= begin)
            .top_k(most, by=["took", -pl.col("sequence")])
            .sort("took", "sequence", descending=[True, False])
        )
        chosen[plan.id, plan.receiver] = directory.collected(run.plan.index, found)
    subjects = [
        Subject(flow.plan, flow.counts["sent"], median, main.recurrence.modes) for flow, main, median in flows
    ]
    return explained_messages(directory, run, table, subjects, chosen, offsets, around, clocks)


def took(mine: pl.LazyFrame, flow: FlowPlan, offsets: Mapping[Key, Offsets]) -> pl.LazyFrame:
    """Messages of a flow that arrived: when they were sent and how long they took, ps, and their main measure, ns."""
    shift = 0.0 if flow.relayed else offsets[flow.id, flow.receiver].outward_ns
    end = "back_rx_app" if flow.relayed else "rx_app"
    return (
        mine.select("sequence", "tx_app", (pl.col(end) - pl.col("tx_app")).alias("took"))
        .drop_nulls("took")
        .with_columns(value=pl.col("took").cast(pl.Float64) / 1000 - shift)
    )


def explained_messages(
    directory: Recorded,
    run: ReportedRun,
    table: pl.LazyFrame,
    subjects: Sequence[Subject],
    chosen: Mapping[Key, pl.DataFrame],
    offsets: Mapping[Key, Offsets],
    around: Surroundings,
    clocks: RunClocks,
) -> dict[Key, tuple[WorstMessage, ...]]:
    """Explains the chosen messages of each flow and receiver, as `took` gives them; `table` has all of them."""
    plans = [one.plan for one in subjects]
    steps = _steps(
        directory,
        run,
        plans,
        chosen,
        {one.plan.id: one.sent for one in subjects},
        around,
        {(one.plan.id, one.plan.receiver): one.median for one in subjects},
    )
    partners = _partners(directory, run, steps, clocks)
    found_by_flow = {}
    for subject in subjects:
        plan = subject.plan
        key = plan.id, plan.receiver
        rows = chosen[key]
        near = _near(of_flow(table, plan), rows["sequence"].to_list(), plan)
        shift = 0.0 if plan.relayed else offsets[key].outward_ns
        beside = _neighbours(directory.collected(run.plan.index, near), rows["sequence"].to_list(), shift)
        made = []
        for sequence, sent, _, value in rows.iter_rows():
            own, detour = steps.get((*key, sequence), ((), 0.0))
            waits = partners.get((*key, sequence), _Waits())
            clock = around.clock(plan, sent / 1e3)
            mode = next((k for k, mode in enumerate(subject.modes) if mode.inside_at(sent / 1e12)), None)
            events = around.near(plan, sequence, sent / 1e3, value)
            excess = value - subject.median
            cause, sentence = cause_of(
                plan, excess, own, waits.holders, detour, clock, events, directory.plan
            )
            made.append(
                WorstMessage(
                    sequence,
                    sent / 1e12,
                    value,
                    excess,
                    cause,
                    message_sentence(sequence, value, excess, sentence, mode),
                    mode,
                    own,
                    tuple(waits.first),
                    waits.count,
                    beside.get(sequence, ()),
                    clock,
                    events,
                )
            )
        found_by_flow[key] = tuple(made)
    return found_by_flow


_COLUMNS = ("flow", "to", "sequence", "tx_app", "rx_app", "back_rx_app", "outcome")


def message_table(
    directory: Recorded, run: ReportedRun, clocks: RunClocks, more: Sequence[str] = ()
) -> pl.LazyFrame | None:
    """All messages of the measured part, in the time of the reference: also of a run of which only a sample is held.

    `more` are further columns. None where there is no table.
    """
    rows = directory.scan(run.plan.index)
    if rows is None:
        return None
    if clocks.tracks:
        names = directory.plan.network.names
        rows = rows.map_batches(lambda part: corrected(part, run.plan.flows, names, clocks), streamable=True)
    return rows.filter(~pl.col("warm_up")).select(list(dict.fromkeys((*_COLUMNS, *more))))


def of_flow(table: pl.LazyFrame, flow: FlowPlan) -> pl.LazyFrame:
    """The messages of a flow at its receiver."""
    mine = pl.col("flow") == flow.id
    return table.filter(mine & (pl.col("to") == flow.receiver) if flow.multicast else mine)


def _steps(
    directory: Recorded,
    run: ReportedRun,
    flows: Sequence[FlowPlan],
    chosen: Mapping[Key, pl.DataFrame],
    counts: Mapping[int, int],
    around: Surroundings,
    medians: Mapping[Key, float],
) -> dict[tuple[int, int, int], tuple[tuple[Step, ...], float]]:
    """For each chosen message (flow, receiver, sequence): its steps, and the usual excess of its route over the
    shortest, ns."""
    path = directory.records(run.plan.index)
    if path is None:
        return {}
    ways = ways_of(directory.plan, flows)
    wanted = [(flow, rows) for flow in flows if (rows := chosen[flow.id, flow.receiver]).height]
    # A node's clock may differ from the sender's, and records are selected by the node's.
    shown = max((abs(v).max() for _, v in around.clocks.values() if len(v)), default=0.0)
    apart = int(1e3 * max(shown, around.estimated.reach_ns)) + 1_000_000
    names = directory.plan.network.names

    def one_clock(records: pl.DataFrame) -> pl.DataFrame:
        return on_one_clock(records, names, around.estimated)

    spans = [
        (sent - apart, sent + abs(took) + apart)
        for _, rows in wanted
        for sent, took in rows.select("tx_app", "took").iter_rows()
    ]
    numbers = {flow.id for flow, _ in wanted}
    sequences = {sequence for _, rows in wanted for sequence in rows["sequence"].to_list()}
    own = pl.col("flow").is_in(sorted(numbers)) & pl.col("sequence").is_in(sorted(sequences))
    climbed = ladders(one_clock(read_spans(path, spans, own)), ways)
    usual = usual_steps(path, ways, counts, one_clock, medians)
    found = {}
    for flow, rows in wanted:
        mine = [way for way in ways if way.flow is flow]
        here = climbed.filter(pl.col("way").is_in([way.number for way in mine]))
        messages = here.partition_by("sequence", as_dict=True)
        for sequence in rows["sequence"].to_list():
            message = messages.get((sequence,), here.clear())
            found[flow.id, flow.receiver, int(sequence)] = steps_of(
                message, mine, directory.plan, usual, around.estimated
            )
    return found


def _partners(
    directory: Recorded,
    run: ReportedRun,
    steps: Mapping[tuple[int, int, int], tuple[tuple[Step, ...], float]],
    clocks: RunClocks,
) -> dict[tuple[int, int, int], _Waits]:
    """The frames that left by the same port while a message waited there, or were leaving when it came."""
    path = directory.records(run.plan.index)
    rates = directory.plan.port_rates(run.plan)
    waits: list[tuple[tuple[int, int, int], Step, int]] = []
    for key, (own, _) in steps.items():
        ports = [s for s in own if s.kind == "port" and s.port is not None and (s.node, s.port) in rates]
        long = sorted((s for s in ports if s.excess > 0), key=lambda s: -s.excess)[:WAITS]
        waits += [(key, step, rates[step.node, step.port or 0]) for step in long]
    if path is None or not waits:
        return {}
    names = directory.plan.network.names
    spans = []
    for _, step, rate in waits:
        apart = int(1e3 * clocks.furthest_ns) + 1_000_000 if names[step.node] in clocks.tracks else 0
        begin, end = int(step.start * 1e3) - _occupied(LONGEST, rate), int((step.start + step.took) * 1e3)
        spans.append((begin - apart, end + apart))
    nodes = sorted({step.node for _, step, _ in waits})
    leaving = pl.col("point").is_in(["switch-out", "wire-send"]) & pl.col("node").is_in(nodes)
    together = read_spans(path, spans, leaving)
    # Where all waits together are too large to be held, each is read separately, so that none loses its
    # frames to another.
    alone = together.height >= MOST_RECORDS
    by_port = (
        {}
        if alone
        else on_one_clock(together, names, clocks).sort("time").partition_by("node", "port", as_dict=True)
    )
    del together
    found: dict[tuple[int, int, int], _Waits] = {}
    for (key, step, rate), span in zip(waits, spans, strict=True):
        port = step.node, step.port or 0
        met = found.setdefault(key, _Waits())
        if alone:
            here_only = leaving & (pl.col("node") == port[0]) & (pl.col("port") == port[1])
            for part in read_in_parts(path, span, here_only):
                met.add(on_one_clock(part, names, clocks).sort("time"), key, step, rate, span)
        elif port in by_port:
            met.add(by_port[port], key, step, rate, span)
    return found


class _Waits(Struct):
    """The frames for which a message waited: the first at each port, their number, and counts by flow."""

    first: list[Partner] = field(default_factory=list)
    count: int = 0
    by_flow: dict[tuple[int, int, int], tuple[int, float]] = field(default_factory=dict)

    @property
    def holders(self) -> list[Holder]:
        return [
            Holder(flow, node, port, frames, blocked)
            for (flow, node, port), (frames, blocked) in self.by_flow.items()
        ]

    def add(
        self, left: pl.DataFrame, key: tuple[int, int, int], step: Step, rate: int, span: tuple[int, int]
    ) -> None:
        """Frames that left by the port of a step, in the order of time, of which those count that held it then."""
        time = left["time"]
        own = left.slice(
            int(time.search_sorted(span[0], "left")),
            max(int(time.search_sorted(span[1], "right")) - int(time.search_sorted(span[0], "left")), 0),
        )
        begin, end = round(step.start * 1e3), round((step.start + step.took) * 1e3)
        times = own["time"].to_numpy()
        occupied = (own["length"].cast(pl.Int64).to_numpy() + AROUND_FRAME) * 8 * 10**12 // rate
        held = np.minimum(times + occupied, end) - np.maximum(times, begin)
        itself = (own["flow"] == key[0]) & (own["sequence"] == key[2])
        table = own.select(*_LEFT, held=pl.Series(held)).filter(pl.Series(held > 0) & ~itself)
        self.count += table.height
        node, port = step.node, step.port or 0
        for flow, sequence, returning, length, blocked in table.head(
            max(MOST_PARTNERS - len(self.first), 0)
        ).iter_rows():
            self.first.append(Partner(flow, sequence, returning, length, node, port, blocked / 1e3))
        of_flows = table.group_by("flow", maintain_order=True).agg(pl.len(), pl.col("held").sum())
        for flow, frames, blocked in of_flows.iter_rows():
            before = self.by_flow.get((flow, node, port), (0, 0.0))
            self.by_flow[flow, node, port] = before[0] + frames, before[1] + blocked / 1e3


def _occupied(length: int, rate: int) -> int:
    """Time that a frame occupies a line, ps."""
    return (length + AROUND_FRAME) * 8 * 10**12 // rate


def _near(table: pl.LazyFrame, sequences: Sequence[int], flow: FlowPlan) -> pl.LazyFrame:
    near = sorted({sequence + by for sequence in sequences for by in range(-BESIDE, BESIDE + 1)})
    end = "back_rx_app" if flow.relayed else "rx_app"
    took = pl.col(end) - pl.col("tx_app")
    inside = pl.col("sequence").is_between(near[0], near[-1]) if near else pl.lit(False)
    return table.filter(inside & pl.col("sequence").is_in(near)).select("sequence", "outcome", took=took)


def _neighbours(
    near: pl.DataFrame, sequences: Sequence[int], shift: float
) -> dict[int, tuple[Neighbour, ...]]:
    known = {
        sequence: Neighbour(sequence, took / 1e3 - shift if took is not None else None, outcome)
        for sequence, outcome, took in near.iter_rows()
    }
    return {
        sequence: tuple(
            known[sequence + by] for by in range(-BESIDE, BESIDE + 1) if by and sequence + by in known
        )
        for sequence in sequences
    }
