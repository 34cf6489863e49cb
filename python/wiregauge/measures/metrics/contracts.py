"""Conformity of a virtual link's frames on the wire with its contract, as a policer would find it.

Messages are not enough for that: a babbling end system sends frames that are none, and a switch polices them as well.
So the frames are taken from the records, each network by itself, in the order their last bits leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiregauge.measures.metrics import patterns
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.hops import read_columns
from wiregauge.measures.metrics.service import Conformity, share_of
from wiregauge.plan.ethernet import PREAMBLE

__all__ = ["bag_violations"]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_COLUMNS = ("flow", "port", "time", "length", "warm_up")


def bag_violations(
    records: Path | None, flows: Iterable[FlowPlan], nodes: Sequence[str]
) -> dict[int, Conformity]:
    """Conformity of each flow's frames on the wire with the contract of its virtual link.

    Each network is judged by itself; the one with more frames outside is given, the first of equals. Flows whose frames
    were not seen on the wire are absent. Raises RunDirectoryError for records that cannot be read.
    """
    links = {flow.id: flow for flow in flows if flow.bag_ns and flow.bag_jitter_ns is not None and flow.lmax}
    if not links or records is None:
        return {}
    index = {name: number for number, name in enumerate(nodes)}
    senders = {flow.id: index[flow.source] for flow in links.values()}
    sender = pl.col("flow").cast(pl.Int64).replace_strict(senders, default=-1, return_dtype=pl.Int64)
    of = pl.col("node").cast(pl.Int64) == sender
    # The selective condition first; the sender is compared only for its results.
    on_wire = (pl.col("point").cast(pl.String) == "wire-send") & ~pl.col("returning")
    rows = read_columns(records, (*_COLUMNS, "node"), on_wire).filter(of).drop("node")
    found: dict[int, Conformity] = {}
    for number, one in _conformities(rows, links):
        best = found.get(number)
        if best is None or one.outside.count > best.outside.count:
            found[number] = one
    return found


def _conformities(rows: pl.DataFrame, links: Mapping[int, FlowPlan]) -> Iterator[tuple[int, Conformity]]:
    """Flow number and conformity for each flow and port, in their order."""
    flows, ports, times, lengths = (rows[name].cast(pl.Int64).to_numpy() for name in _COLUMNS[:4])
    numbers, own = np.unique(flows, return_inverse=True)
    plans = [links[number] for number in numbers.tolist()]
    rates = np.array([plan.link_bps or 0 for plan in plans], dtype=np.int64)[own]
    on_wire = np.where(rates > 0, (lengths + PREAMBLE) * 8 * 10**12 // np.maximum(rates, 1), 0)
    through = times + on_wire
    order = np.lexsort((through, ports, flows))
    flows, ports, through, lengths = flows[order], ports[order], through[order], lengths[order]
    measured = ~rows["warm_up"].to_numpy()[order]
    seams = np.flatnonzero((flows[1:] != flows[:-1]) | (ports[1:] != ports[:-1])) + 1
    for begin, end in pairwise([0, *seams.tolist(), len(flows)] if len(flows) else []):
        number = int(flows[begin])
        yield (
            number,
            _conformity(through[begin:end], lengths[begin:end], measured[begin:end], links[number]),
        )


def _conformity(through: Integers, lengths: Integers, measured: Flags, flow: FlowPlan) -> Conformity:
    """Conformity of the frames of one flow on one network, in the order in which their last bits leave."""
    lmax, bag, jitter = (
        flow.lmax or 0,
        round((flow.bag_ns or 0) * 1000),
        round((flow.bag_jitter_ns or 0) * 1000),
    )
    charged = np.full_like(lengths, lmax) if flow.polices_frames else lengths
    refused, early = patterns.policed(through, charged, lmax, bag, jitter)
    if not measured.all():
        refused, early = refused[measured], early[measured]
    worst = float(early.max()) / 1000 if len(early) else None
    return Conformity("bag", share_of(refused), (0.0, jitter / 1000), worst)
