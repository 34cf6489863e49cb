"""Shards of a run's messages: some flows at a time, held in memory while they are judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from wiregauge.measures.metrics.arrays import Part, Rows
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.measures.metrics.hops import Passages, passages
from wiregauge.measures.metrics.recorded import Recorded

__all__ = ["flow_parts", "shards"]

HELD = 500_000
"""Messages of several flows that are held together."""
ROWS = 100_000
"""Messages of several flows that are judged together."""
FLOWS = 2048
"""Flows that are judged together."""


def shards(
    directory: Recorded, plan: RunPlan, one_in: Mapping[int, int]
) -> Iterator[tuple[Sequence[FlowPlan], pl.DataFrame, Mapping[int, Passages]]]:
    """Some flows with their messages and passages, until all flows were there; nothing without a message table.

    Raises RunDirectoryError for a file that cannot be read.
    """
    rows = directory.scan(plan.index)
    if rows is None:
        return
    flows = sorted(plan.flows, key=lambda flow: (flow.id, flow.receiver))
    for some in _shared(flows, directory.counts(plan.index)):
        # A single shard leaves nothing out, so no number needs to be compared.
        within = (some[0].id, some[-1].id) if len(some) < len(flows) else None
        table = directory.messages(plan.index, within)
        if table is not None:
            yield some, table, passages(directory.passages(plan.index), one_in, within)


def _shared(flows: Sequence[FlowPlan], counts: Mapping[int, int]) -> Iterator[Sequence[FlowPlan]]:
    """Flows in groups that have about `HELD` messages; a flow with its receivers stays together."""
    group: list[FlowPlan] = []
    size = 0
    for flow in flows:
        count = counts.get(flow.id, 0) if not group or group[-1].id != flow.id else 0
        if group and count and size + count > HELD:
            yield group
            group, size = [], 0
        group.append(flow)
        size += count
    if group or not flows:
        yield group


def flow_parts(
    flows: Sequence[FlowPlan], table: pl.DataFrame
) -> Iterator[Sequence[tuple[FlowPlan, tuple[Part, Part]]]]:
    """The flows in groups to be judged together, each with its rows of the warm-up and of the measured part.

    The table is ordered by flow, receiver, warm-up first.
    """
    numbers, to = table["flow"].to_numpy(), table["to"].fill_null(-1).to_numpy()
    early = table["warm_up"].to_numpy()
    group: list[tuple[FlowPlan, int, int, int]] = []
    for flow in flows:
        begin, end = (int(np.searchsorted(numbers, flow.id, side)) for side in ("left", "right"))
        if flow.multicast:
            of = to[begin:end]
            begin, end = (begin + int(np.searchsorted(of, flow.receiver, side)) for side in ("left", "right"))
        middle = begin + int(np.count_nonzero(early[begin:end]))
        if group and (end - group[0][1] > ROWS or len(group) == FLOWS):
            yield _parts(group, table)
            group = []
        group.append((flow, begin, middle, end))
    if group:
        yield _parts(group, table)


def _parts(
    group: Sequence[tuple[FlowPlan, int, int, int]], table: pl.DataFrame
) -> Sequence[tuple[FlowPlan, tuple[Part, Part]]]:
    first, last = group[0][1], max(end for _, _, _, end in group)
    rows = Rows(table.slice(first, last - first), keeps=len(group) > 1)
    return [
        (flow, (Part(rows, begin - first, middle - first), Part(rows, middle - first, end - first)))
        for flow, begin, middle, end in group
    ]
