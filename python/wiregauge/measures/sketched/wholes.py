"""What is known of all messages of a flow too big to be held: counts, fates, and the sketches that tracking keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from wiregauge.measures.fates import Fates, fates
from wiregauge.measures.hops import read_columns
from wiregauge.measures.plan import RunPlan
from wiregauge.measures.rundir import RunDirectory
from wiregauge.measures.tally import Tally, tally
from wiregauge.stats.sketch import Sketch

__all__ = ["PS", "Whole", "read_wholes"]

PS = 1000.0
"""Picoseconds in a nanosecond."""


@dataclass(frozen=True, slots=True)
class Whole:
    """What is known of all messages of a flow of which only a sample is held."""

    one_in: int
    tally: Tally
    fates: Fates
    sketches: Mapping[str, Sketch]
    """By measure; clocks not corrected."""
    hops: Sequence[tuple[int, int, Sketch]]
    """Residence by node and output port."""


def read_wholes(
    directory: RunDirectory, plan: RunPlan, one_in: Mapping[int, int]
) -> dict[tuple[int, int], Whole]:
    """What is known of the sampled flows of a run, by number and receiver; `one_in` how many stretches is looked at.

    Raises RunDirectoryError for files that cannot be read.
    """
    flows = [flow for flow in plan.flows if flow.id in one_in]
    rows, path = directory.scan(plan.index), directory.sketches(plan.index)
    if not flows or rows is None or path is None:
        return {}
    counted = directory.reading(plan.index, lambda: tally(rows, flows))
    kept = _read_sketches(path, sorted(one_in))
    nodes = {node.name: place for place, node in enumerate(directory.plan.nodes)}
    found = {}
    for flow in flows:
        at = nodes.get(flow.destination)
        own = {key: one for key, one in kept.items() if key[0] == flow.id}
        found[flow.id, flow.receiver] = Whole(
            one_in[flow.id],
            counted[flow.id, flow.receiver],
            directory.reading(plan.index, partial(fates, rows, flow)),
            {key[3]: one for key, one in own.items() if key[3] != "residence" and key[1] == at},
            [(key[1], key[2], one) for key, one in sorted(own.items()) if key[3] == "residence"],
        )
    return found


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
