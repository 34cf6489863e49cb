"""How late the frames of a network that an agent plays were released: by its report, and frame by frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiregauge.measures.definitions import QUANTILES, quantile_named
from wiregauge.measures.metrics.flow_plan import LimitPlan
from wiregauge.measures.metrics.foreign import foreign_of, overlong_of
from wiregauge.measures.metrics.hops import read_columns
from wiregauge.measures.metrics.live_network import Cost, NetworkResult, ReleaseResult
from wiregauge.measures.metrics.percentiles import Percentile, needed_for, percentiles, unsupported
from wiregauge.measures.metrics.reported import number, parts

__all__ = ["MEASURE", "Errors", "errors_of", "network_of"]

MEASURE: Final = "release_error"


@dataclass(frozen=True, slots=True)
class Errors:
    """Release errors of single frames, ps, in the order in which frames were due; of none if they are not stored."""

    rows: pl.DataFrame | None = None

    def whole(self, network: NetworkResult | None) -> Errors:
        """The same where the network reports as many frames; else nothing is known of those that are missing."""
        if self.rows is None or network is None:
            return Errors()
        return self if sum(one.frames for one in network.releases) == self.rows.height else Errors()

    def of_host(self, node: int) -> NDArray[np.float64]:
        """Of the frames towards an end system, ns."""
        if self.rows is None:
            return np.empty(0)
        return self.rows.filter(pl.col("node") == node)["late"].to_numpy() / 1e3

    def of_messages(self, flow: int, node: int, sequence: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of the measured messages of a flow towards an end system, ps; 0 of one whose frame was not handed over."""
        if self.rows is None:
            return np.zeros(len(sequence), dtype=np.int64)
        own = (
            self.rows.filter((pl.col("flow") == flow) & (pl.col("node") == node) & ~pl.col("warm_up"))
            .select(pl.col("sequence").cast(pl.Int64), "late")
            .unique("sequence", keep="first")
        )
        asked = pl.DataFrame({"sequence": sequence})
        return (
            asked.join(own, on="sequence", how="left", maintain_order="left")["late"].fill_null(0).to_numpy()
        )


def errors_of(crossings: Path) -> Errors:
    """As the table of what crossed has them. Raises RunDirectoryError for a damaged table."""
    columns = ("node", "flow", "sequence", "warm_up", "late")
    return Errors(read_columns(crossings, columns, pl.col("kind").cast(pl.String) == "left"))


def network_of(
    entry: Mapping[str, object], errors: Errors, names: Sequence[str], limits: Sequence[LimitPlan] = ()
) -> NetworkResult | None:
    """What the network of a run reports; None where no agent was it, or it left no report. `names` of nodes, by index.

    Percentiles are of single frames, those that `limits` ask for among them; where they were not stored they are those
    of the agent's own summary, which have no interval.
    """
    report = entry.get("network")
    if not isinstance(report, dict):
        return None
    intake = report.get("intake")
    taken = intake if isinstance(intake, dict) else {}
    asked = {one.percentile for one in limits if one.distribution == MEASURE}
    quantiles = QUANTILES | {name: q for name in asked if (q := quantile_named(name)) is not None}
    return NetworkResult(
        releases=tuple(_release(one, errors, names, quantiles) for one in parts(report, "releases")),
        frames=number(taken, "frames"),
        moved=number(taken, "moved"),
        most_moved_ns=number(taken, "most_moved_ns"),
        lost=number(taken, "lost"),
        foreign=foreign_of(report),
        overlong=overlong_of(report),
        cost=_cost(report, number(taken, "frames")),
    )


def _cost(report: Mapping[str, object], frames: int) -> Cost | None:
    told = report.get("cost")
    if not isinstance(told, dict) or not frames:
        return None
    return Cost(*(number(told, f"{part}_ns") / frames for part in ("taking", "model", "handing")))


def _release(
    report: Mapping[str, object], errors: Errors, names: Sequence[str], quantiles: Mapping[str, float]
) -> ReleaseResult:
    name, frames = str(report.get("end_system", "")), number(report, "frames")
    undelivered, access = number(report, "undelivered"), str(report.get("access", ""))
    values = errors.of_host(names.index(name)) if name in names else np.empty(0)
    # A table that ends before the run does is not all of it.
    if frames and len(values) == frames:
        ascending = np.sort(values)
        found = percentiles([values], ascending, quantiles)
        return ReleaseResult(name, frames, found, float(ascending[-1]), undelivered, access)
    told = {"p50": "p50_ns", "p99": "p99_ns", "p99.9": "p999_ns"}
    own = {
        of: Percentile(q, float(number(report, told[of])), None, None, needed_for(q))
        for of, q in quantiles.items()
        if of in told and frames >= needed_for(q)
    }
    most = float(number(report, "max_ns")) if frames else None
    return ReleaseResult(name, frames, unsupported(quantiles) | own, most, undelivered, access)
