"""What the sender of a virtual link put on the wire, frame by frame, against its contract: what a policer says of it.

Messages are not enough for that: a babbling end system sends frames that are none, and a switch polices them as well.
So the frames are taken from the records, each network by itself, in the order their last bits leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from wiregauge.measures.metrics import patterns
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.hops import read_columns
from wiregauge.measures.metrics.results import FlowResult
from wiregauge.measures.metrics.service import Conformity, share_of

__all__ = ["bag_violations", "with_contracts"]

PREAMBLE_BYTES = 8
"""Preamble and start delimiter, which leave before the frame."""
_COLUMNS = ("flow", "port", "time", "length", "warm_up")


def bag_violations(
    records: Path | None, flows: Iterable[FlowPlan], nodes: Sequence[str]
) -> dict[int, Conformity]:
    """By flow: how its frames on the wire keep the contract of its virtual link.

    Each network is judged by itself; given is the one with more frames outside, the first of equals. Nothing for a flow
    whose frames nobody saw on the wire. Raises RunDirectoryError for records that cannot be read.
    """
    links = {flow.id: flow for flow in flows if flow.bag_ns and flow.bag_jitter_ns is not None and flow.lmax}
    if not links or records is None:
        return {}
    index = {name: number for number, name in enumerate(nodes)}
    senders = {flow.id: index[flow.source] for flow in links.values()}
    sender = pl.col("flow").cast(pl.Int64).replace_strict(senders, default=-1, return_dtype=pl.Int64)
    of = pl.col("node").cast(pl.Int64) == sender
    # First what few records are; which of them are the sender's own is asked of those alone.
    on_wire = (pl.col("point").cast(pl.String) == "wire-send") & ~pl.col("returning")
    rows = read_columns(records, (*_COLUMNS, "node"), on_wire).filter(of).drop("node")
    found: dict[int, Conformity] = {}
    for (number, _port), sent in sorted(rows.partition_by("flow", "port", as_dict=True).items()):
        one = _conformity(sent, links[number])
        best = found.get(number)
        if best is None or one.outside.count > best.outside.count:
            found[number] = one
    return found


def with_contracts(flow: FlowResult, found: Mapping[int, Conformity]) -> FlowResult:
    """`flow` with the conformity of its frames in the place of that of its messages, where it is known."""
    of_frames = found.get(flow.plan.id)
    if of_frames is None or flow.service is None:
        return flow
    kept = tuple(of_frames if one.of == of_frames.of else one for one in flow.service.conformity)
    return replace(flow, service=replace(flow.service, conformity=kept))


def _conformity(sent: pl.DataFrame, flow: FlowPlan) -> Conformity:
    lmax, bag, jitter = (
        flow.lmax or 0,
        round((flow.bag_ns or 0) * 1000),
        round((flow.bag_jitter_ns or 0) * 1000),
    )
    lengths = sent["length"].cast(pl.Int64).to_numpy()
    rate = flow.link_bps
    on_wire = (lengths + PREAMBLE_BYTES) * 8 * 10**12 // rate if rate else np.zeros_like(lengths)
    through = sent["time"].to_numpy() + on_wire
    order = np.argsort(through, kind="stable")
    charged = np.full_like(lengths, lmax) if flow.polices_frames else lengths
    refused, early = patterns.policed(through[order], charged[order], lmax, bag, jitter)
    measured = ~sent["warm_up"].to_numpy()[order]
    worst = float(early[measured].max()) / 1000 if measured.any() else None
    return Conformity("bag", share_of(refused[measured]), (0.0, jitter / 1000), worst)
