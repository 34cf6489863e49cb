"""Results over all messages of a flow too big to be held: counts, outcomes, and the sketches of tracking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from msgspec import Struct

from wiregauge.measures.metrics.arrays import Part
from wiregauge.measures.metrics.clocks import RunClocks, corrected
from wiregauge.measures.metrics.flow_plan import FlowPlan, LimitPlan, RunPlan
from wiregauge.measures.metrics.hops import read_columns
from wiregauge.measures.metrics.pairs import distribution_of
from wiregauge.measures.metrics.recorded import TIMES, WIRE_TIMES, Recorded
from wiregauge.measures.metrics.series import differences
from wiregauge.measures.metrics.service import Conformity, conformity_of
from wiregauge.measures.metrics.tally import Tally, tally
from wiregauge.measures.sketched.census import BATCH, PS, Census, Mark, census
from wiregauge.measures.sketched.outcomes import Fates, fates, of_receiver
from wiregauge.measures.sketched.recount import Recount
from wiregauge.stats.sketch import Sketch

__all__ = ["PS", "Whole", "read_wholes"]

_COUNTED = ("flow", "to", "life", "sequence", "warm_up", "outcome", *TIMES, *WIRE_TIMES)
"""Columns from which the figures of single messages follow."""
_OF_CONTRACTS = ("tx_wire", "tx_wire_b", "rx_wire", "rx_wire_b")


class Whole(Struct, frozen=True):
    """Results over all messages of a flow of which only a sample is held."""

    one_in: int
    tally: Tally
    fates: Fates
    census: Census
    conformity: tuple[Conformity, ...]
    sketches: Mapping[str, Sketch]
    """Sketches by measure; an offset corrected once per run is still in them."""
    hops: Sequence[tuple[int, int, Sketch]]
    """Residence by node and output port."""


def read_wholes(
    directory: Recorded, plan: RunPlan, one_in: Mapping[int, int], clocks: RunClocks
) -> dict[tuple[int, int], Whole]:
    """Full results of the sampled flows of a run by number and receiver; `one_in` holds their sampling factors.

    Timestamps are in the time of the reference where `clocks` correct them. Raises RunDirectoryError for files that
    cannot be read.
    """
    flows = [flow for flow in plan.flows if flow.id in one_in]
    moved = any(clocks.moved(flow) for flow in flows)
    rows, path = directory.scan(plan.index, as_stored=not moved), directory.sketches(plan.index)
    if not flows or rows is None or path is None:
        return {}
    names = directory.plan.network.names
    if moved:
        by_clock = partial(corrected, flows=plan.flows, names=names, clocks=clocks)
        rows = rows.map_batches(by_clock, streamable=True)
    counted = directory.reading(plan.index, lambda: tally(rows, flows))
    passed = directory.reading(plan.index, partial(_census, rows, flows, directory.plan.limits, clocks))
    kept = _read_sketches(path, sorted(one_in))
    nodes = {name: place for place, name in enumerate(names)}
    found = {}
    for flow in flows:
        at = nodes.get(flow.destination)
        own = {key: one for key, one in kept.items() if key[0] == flow.id}
        found[flow.id, flow.receiver] = Whole(
            one_in[flow.id],
            counted[flow.id, flow.receiver],
            directory.reading(plan.index, partial(fates, rows, flow)),
            passed[flow.id, flow.receiver],
            directory.reading(plan.index, partial(_conformity, rows, flow)),
            recount.sketches(rows)
            if (recount := passed[flow.id, flow.receiver].recount) is not None
            else {key[3]: one for key, one in own.items() if key[3] != "residence" and key[1] == at},
            [(key[1], key[2], one) for key, one in sorted(own.items()) if key[3] == "residence"],
        )
    return found


def _census(
    rows: pl.LazyFrame, flows: Sequence[FlowPlan], limits: Sequence[LimitPlan], clocks: RunClocks
) -> dict[tuple[int, int], Census]:
    found = {}
    for flow in flows:
        shift = clocks.between(flow).outward_ns
        recount = Recount(flow) if clocks.moved(flow) else None
        found[flow.id, flow.receiver] = Census(flow, shift, _marks(flow, limits), recount=recount)

    def read(wanted: pl.Expr, place: int) -> pl.DataFrame:
        return rows.select(_COUNTED).slice(place, BATCH).filter(wanted).collect()

    census(found, rows.select(pl.len()).collect(engine="streaming").item(), read)
    return found


def _marks(flow: FlowPlan, limits: Sequence[LimitPlan]) -> set[Mark]:
    """Zero, for values that should not be negative, and the bounds of limits on percentiles."""
    marks = {(name, 0.0) for name in differences(flow, 0.0)} | {("lateness", 0.0)}
    for limit in limits:
        name = limit.distribution
        if not name or limit.flow not in (None, flow.id):
            continue
        if name == "latency_with_loss":
            name = flow.main
        elif name.startswith("pair_latency."):
            start, _, end = name.removeprefix("pair_latency.").partition("-")
            name = distribution_of(start, end)
        marks.add((name, limit.value))
    return marks


def _conformity(rows: pl.LazyFrame, flow: FlowPlan) -> tuple[Conformity, ...]:
    """The contracts of a flow at its receiver, from the timestamps of the wire of all its messages."""
    if flow.bag_ns is None and flow.schedule is None and not flow.both_networks:
        return ()
    table = of_receiver(rows, flow).select(_OF_CONTRACTS).collect(engine="streaming")
    return conformity_of(Part.whole(table), flow)


def _read_sketches(path: Path, flows: Sequence[int]) -> dict[tuple[int, int, int, str], Sketch]:
    """Sketches of `flows` by flow, node, port and series, ns.

    Raises RunDirectoryError for a file that cannot be read.
    """
    columns = ("flow", "node", "port", "series", "n", "min", "max", "mean", "squared_deviations")
    rows = read_columns(path, (*columns, "low", "high", "count"), pl.col("flow").is_in(list(flows)))
    found = {}
    for row in rows.iter_rows(named=True):
        found[int(row["flow"]), int(row["node"]), int(row["port"]), str(row["series"])] = Sketch(
            np.array(row["low"], dtype=np.float64) / PS,
            np.array(row["high"], dtype=np.float64) / PS,
            np.array(row["count"], dtype=np.int64),
            int(row["n"]),
            row["min"] / PS,
            row["max"] / PS,
            row["mean"] / PS,
            row["squared_deviations"] / PS**2,
        )
    return found
