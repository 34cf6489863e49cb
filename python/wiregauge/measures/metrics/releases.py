"""Release errors of a played network's frames: by its report, and frame by frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.measures.definitions import QUANTILES, quantile_named
from wiregauge.measures.metrics.flow_plan import LimitPlan
from wiregauge.measures.metrics.hops import read_columns
from wiregauge.measures.metrics.live_network import Cost, NetworkResult, ReleaseResult
from wiregauge.measures.metrics.percentiles import Percentile, needed_for, percentiles, unsupported
from wiregauge.records.reported import AgentReport, Intake, NetworkCost, ReleaseReport

__all__ = ["MEASURE", "Errors", "errors_of", "network_of", "release_of"]

MEASURE: Final = "release_error"


class Errors(Struct, frozen=True):
    """Lateness of single frames, ps; empty if it is not stored.

    `rows`: how late they left, in the order in which they were due. `moved`: of frames that came into the model after
    it had passed their instant, by how much.
    """

    rows: pl.DataFrame | None = None
    moved: pl.DataFrame | None = None

    def whole(self, network: NetworkResult | None) -> Errors:
        """The errors, if the network reports as many frames; else none, for those that are missing are unknown."""
        if self.rows is None or network is None:
            return Errors()
        return self if sum(one.frames for one in network.releases) == self.rows.height else Errors()

    def of_host(self, node: int) -> NDArray[np.float64]:
        """Release errors of frames towards an end system, ns."""
        if self.rows is None:
            return np.empty(0)
        return self.rows.filter(pl.col("node") == node)["late"].to_numpy() / 1e3

    def of_messages(self, flow: int, node: int, sequence: NDArray[np.int64]) -> NDArray[np.int64]:
        """Lateness of the measured messages of a flow towards an end system, ps; 0 for a frame that was not handed
        over."""
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
    """Release errors from the table of crossings. Raises RunDirectoryError for a damaged table."""
    columns = ("node", "flow", "sequence", "warm_up", "returning", "late", "kind")
    has_left = pl.col("kind").cast(pl.String) == "left"
    came_late = (pl.col("kind").cast(pl.String) == "entered") & (pl.col("late") > 0)
    rows = read_columns(crossings, columns, has_left | came_late)
    return Errors(rows.filter(has_left).drop("kind"), rows.filter(came_late).drop("kind"))


def network_of(
    report: AgentReport | None, errors: Errors, names: Sequence[str], limits: Sequence[LimitPlan] = ()
) -> NetworkResult | None:
    """The report of the network of a run; None without such an agent or report. `names` of nodes, by index.

    Percentiles are of single frames, those that `limits` ask for among them; where they were not stored they are those
    of the agent's own summary, which have no interval.
    """
    if report is None:
        return None
    taken = report.intake or Intake()
    asked = {one.percentile for one in limits if one.distribution == MEASURE}
    quantiles = QUANTILES | {name: q for name in asked if (q := quantile_named(name)) is not None}
    return NetworkResult(
        releases=tuple(_release(one, errors, names, quantiles) for one in report.releases),
        frames=taken.frames,
        moved=taken.moved,
        most_moved_ns=taken.most_moved_ns,
        lost=taken.lost,
        foreign=report.foreign,
        overlong=report.overlong,
        cost=_cost(report.cost, taken.frames),
    )


def _cost(spent: NetworkCost | None, frames: int) -> Cost | None:
    if spent is None or not frames:
        return None
    return Cost(spent.taking_ns / frames, spent.model_ns / frames, spent.handing_ns / frames)


def release_of(
    end_system: str,
    late_ns: NDArray[np.float64],
    undelivered: int,
    access: str = "",
    quantiles: Mapping[str, float] = QUANTILES,
) -> ReleaseResult:
    """Summary of the release errors of frames towards an end system; `late_ns` in the order in which they were due."""
    if not len(late_ns):
        return ReleaseResult(end_system, 0, unsupported(quantiles), None, undelivered, access)
    ascending = np.sort(late_ns)
    found = percentiles([late_ns], ascending, quantiles)
    return ReleaseResult(end_system, len(late_ns), found, float(ascending[-1]), undelivered, access)


def _release(
    report: ReleaseReport, errors: Errors, names: Sequence[str], quantiles: Mapping[str, float]
) -> ReleaseResult:
    name, frames = report.end_system, report.frames
    values = errors.of_host(names.index(name)) if name in names else np.empty(0)
    # A table that ends before the run is incomplete.
    if frames and len(values) == frames:
        return release_of(name, values, report.undelivered, report.access, quantiles)
    told = {"p50": report.p50_ns, "p99": report.p99_ns, "p99.9": report.p999_ns}
    own = {
        of: Percentile(q, float(told[of]), None, None, needed_for(q))
        for of, q in quantiles.items()
        if of in told and frames >= needed_for(q)
    }
    most = float(report.max_ns) if frames else None
    return ReleaseResult(name, frames, unsupported(quantiles) | own, most, report.undelivered, report.access)
