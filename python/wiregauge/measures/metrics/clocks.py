"""Clocks of a run, and its messages in the time of one clock.

Two-way exchanges that are part of the run give every clock's offset from the reference over time; without them the
manifest has one offset per run. Offsets from exchanges are taken out of every timestamp of a message before anything is
measured, so that no measure has to know of clocks; their uncertainty remains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf, isinf

import numpy as np
import polars as pl
from msgspec import Struct, field
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.metrics.flow_plan import CampaignPlan, FlowPlan, RunPlan
from wiregauge.measures.metrics.hops import read_columns
from wiregauge.measures.metrics.measured_clock import ClockResult, WatchedClock
from wiregauge.measures.metrics.recorded import Recorded
from wiregauge.measures.metrics.series import Offsets
from wiregauge.plan import NETWORK
from wiregauge.records.reported import RunEntry
from wiregauge.stats import OffsetTrack

__all__ = [
    "RunClocks",
    "clock_offsets",
    "corrected",
    "late_anew",
    "on_one_clock",
    "run_clocks",
    "watched_clocks",
]

Floats = NDArray[np.float64]

TIMESTAMP_NS = 2.0
"""Error of the offset of an exchange by the resolution of four timestamps of 1 ns, of real hosts."""
_SOURCE = ("intended", "tx_app", "tx_drv", "tx_wire", "tx_wire_b", "back_rx_app", "back_rx_drv")
_DESTINATION = ("rx_app", "rx_drv", "rx_wire", "rx_wire_b", "back_tx_app", "back_tx_drv")
_TIMESTAMPS = {
    "driver": ("tx_drv", "rx_drv", "back_tx_drv", "back_rx_drv"),
    "application": ("tx_app", "rx_app", "back_tx_app", "back_rx_app"),
}
MOST_STATES = 1_000_000
"""Observations of synchronisation programs that are read."""
_ONCE = "two-way-traffic"
"""Method of comparing the clocks of two captures by common traffic: its fastest message each way."""
_UNKNOWN_NS = 1e9
"""Search range for records of uncompared clocks, ns: clocks by which a run can start are no further apart."""
_DRAWN = 400
"""Number of points in a figure of a clock."""


class RunClocks(Struct, frozen=True):
    """Clocks of a run: `offsets` by node, the offset left to take out and its uncertainty, ns."""

    offsets: Mapping[str, tuple[float, float]]
    wrong: Mapping[str, float]
    """The largest error, by node, of clocks that the test makes imperfect and that were not compared, ns."""
    tracks: Mapping[str, OffsetTrack] = field(default_factory=dict)
    measured: tuple[ClockResult, ...] = ()
    uncompared: tuple[str, ...] = ()
    """Nodes that exchanges were planned with but none came back from."""
    apart: frozenset[str] = frozenset()
    """Nodes whose own ports were tapped by several clocks that were not compared."""
    shifted: Mapping[str, float] = field(default_factory=dict)
    """Offsets, by node, that an estimate took out of its times before they were recorded, ns."""
    together: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    """PTP clocks by node: the domain, and the largest offset from its grandmaster, ns."""
    once: frozenset[str] = frozenset()
    """Nodes whose clocks have one estimate of their offset for the whole run, so that their drift is unknown."""
    played: frozenset[str] = frozenset()
    """Switches and hubs that a host plays whose clock is none of the end systems': their times are by it."""
    played_ns: float | None = None
    """Uncertainty of that clock against those of end systems, ns; None: not compared."""

    def apart_ns(self, one: str, other: str) -> float | None:
        """Bound of the offset between the clocks of two nodes after correction, ns; None where unknown."""
        if one == other:
            return 0.0
        own = sum(self.offsets.get(name, (0.0, 0.0))[1] for name in (one, other))
        if (one in self.played) == (other in self.played):
            return own
        end = other if one in self.played else one
        return None if self.played_ns is None or end not in self.offsets else own + self.played_ns

    def moved(self, flow: FlowPlan) -> bool:
        """Whether timestamps of the flow were corrected one by one."""
        return flow.source in self.tracks or flow.destination in self.tracks

    def between(self, flow: FlowPlan) -> Offsets:
        """Clock of the destination against that of the source; the two uncertainties are bounds and add."""
        ends = (flow.source, flow.destination)
        source, destination = (self.offsets.get(name, (0.0, 0.0)) for name in ends)
        one, other = (self.together.get(name) for name in ends)
        # An offset that both share with their grandmaster cancels in their difference.
        if one is not None and other is not None and one[0] == other[0] and not self.moved(flow):
            return Offsets(destination[0] - source[0], *[one[1] + other[1]] * 3)
        return Offsets(
            destination[0] - source[0],
            destination[1] + source[1],
            sum(self._varies(name) for name in ends),
            sum(self._wanders(name) for name in ends) if flow.source != flow.destination else 0.0,
        )

    def _varies(self, node: str) -> float:
        """The most that the error of a clock may change within the run, ns, without the constant path asymmetry."""
        uncertainty = self.offsets.get(node, (0.0, 0.0))[1]
        compared = next((clock for clock in self.measured if clock.node == node), None)
        if compared is not None:
            return max(uncertainty - compared.asymmetry / 2, 0.0)
        return uncertainty if node in self.wrong or isinf(uncertainty) else 0.0

    def _wanders(self, node: str) -> float:
        """The most that the error of a clock may have drifted within the run, ns; infinite where nothing bounds it."""
        if node not in self.offsets or node in self.once:
            return inf
        if any(clock.node == node for clock in self.measured):
            return self._varies(node)
        return self.offsets[node][1]

    def related(self, flow: FlowPlan) -> bool:
        """Whether the clocks of its two ends were compared."""
        ends = {flow.source, flow.destination}
        return len(ends - self.apart) == len(ends) and (len(ends) == 1 or ends <= self.offsets.keys())

    def taken_out(self, flow: FlowPlan) -> float:
        """The estimate that was taken out of receiver clock minus sender clock before recording, ns."""
        return self.shifted.get(flow.destination, 0.0) - self.shifted.get(flow.source, 0.0)

    @property
    def reach_ns(self) -> float:
        """The largest difference between record times of a message and the times of its sender, ns."""
        known = sorted(uncertainty for _, uncertainty in self.offsets.values() if not isinf(uncertainty))
        played = (_UNKNOWN_NS if self.played_ns is None else self.played_ns) if self.played else 0.0
        return max(self.furthest_ns, sum(known[-2:]) + played)

    @property
    def furthest_ns(self) -> float:
        """The largest offset from the reference seen in any compared clock, ns."""
        return max((float(np.abs(track.offset).max()) for track in self.tracks.values()), default=0.0)


def clock_offsets(entry: RunEntry) -> dict[str, tuple[float, float]]:
    """Clock offset and uncertainty by node of a run, ns."""
    return {
        name: (float(one.offset_ns), abs(float(one.uncertainty_ns)))
        for name, one in (entry.clock_offsets or {}).items()
        if one.offset_ns is not None and one.uncertainty_ns is not None
    }


def run_clocks(directory: Recorded, plan: RunPlan) -> RunClocks:
    """The clocks of a run. Raises RunDirectoryError for a message table that cannot be read."""
    campaign = directory.plan
    entry = directory.runs[plan.index]
    offsets = clock_offsets(entry)
    tracks, found = _exchanged(directory, plan)
    compared = set(tracks)
    if compared and campaign.synchronise is not None:
        compared.add(campaign.network.names[campaign.synchronise.reference])
    wrong = {name: bound for name, bound in _wrong(campaign, plan, entry).items() if name not in compared}
    for name, bound in wrong.items():
        offset, uncertainty = offsets.get(name, (0.0, 0.0))
        offsets[name] = (offset, uncertainty + bound)
    grain = campaign.network.granularities
    for name in compared:
        offsets[name] = (0.0, grain.get(name, 0.0))
    for clock in found:
        offsets[clock.node] = (0.0, offsets[clock.node][1] + clock.uncertainty)
    missing = tuple(flow.destination for flow in plan.exchanges if flow.destination not in tracks)
    together = {
        clock.node: (place, clock.apart_ns + grain.get(clock.node, 0.0))
        for place, domain in enumerate(entry.model.ptp_domains)
        for clock in domain.clocks
        if clock.follows
    }
    return RunClocks(
        offsets,
        wrong,
        tracks,
        found,
        missing,
        frozenset(entry.clocks_apart),
        entry.clocks_moved_ns or {},
        together,
        frozenset(name for name in _by_method(entry, _ONCE) if name not in compared),
        *_played(directory, entry, bool(tracks)),
    )


def _played(directory: Recorded, entry: RunEntry, exchanged: bool) -> tuple[frozenset[str], float | None]:
    """Devices whose times are by the clock of the host that plays them, and the uncertainty of that clock."""
    campaign, traits = directory.plan, directory.traits
    if traits.switches != "model" or traits.one_clock or traits.virtual_time:
        return frozenset(), None
    ends = {node.name for node in campaign.network.end_systems.values()}
    devices = frozenset(set(campaign.network.names) - ends)
    known = clock_offsets(entry)
    if NETWORK not in known:
        return devices, None
    bound = known[NETWORK][1]
    if exchanged and campaign.synchronise is not None:
        # End systems are then compared with one of them, and that with the testmaster, like the network's
        # host.
        reference = campaign.network.names[campaign.synchronise.reference]
        if reference not in known:
            return devices, None
        bound += known[reference][1]
    return devices, bound


def _by_method(entry: RunEntry, method: str) -> list[str]:
    return [name for name, one in (entry.clock_offsets or {}).items() if one.method == method]


def _wrong(campaign: CampaignPlan, run: RunPlan, entry: RunEntry) -> dict[str, float]:
    """The largest error of each clock that the test makes imperfect, by node, ns in the run."""
    length = run.warm_up_ns + run.duration_ns
    found = {node.name: node.clock.error_bound_ns(length) for node in campaign.network.nodes if node.clock}
    for name, stepped in run.stepped.items():
        found[name] = found.get(name, 0.0) + stepped
    # The simulator reports the errors of clocks that PTP steers, steps included.
    clocks = (clock for domain in entry.model.ptp_domains for clock in domain.clocks if clock.follows)
    return found | {clock.node: clock.error_ns for clock in clocks}


def _exchanged(directory: Recorded, plan: RunPlan) -> tuple[dict[str, OffsetTrack], tuple[ClockResult, ...]]:
    synchronise = directory.plan.synchronise
    if synchronise is None or not plan.exchanges:
        return {}, ()
    rows = directory.scan(plan.index)
    if rows is None:
        return {}, ()
    grain = directory.plan.network.granularities
    real = not directory.traits.virtual_time
    needed = ["flow", *(name for names in _TIMESTAMPS.values() for name in names)]
    ids = [flow.id for flow in plan.exchanges]
    table = directory.reading(
        plan.index, lambda: rows.filter(pl.col("flow").is_in(ids)).select(needed).collect(engine="streaming")
    )
    end = (plan.warm_up_ns + plan.duration_ns) / 1e9
    tracks: dict[str, OffsetTrack] = {}
    found = []
    for flow in plan.exchanges:
        own = table.filter(pl.col("flow") == flow.id)
        whole = {kind: own.select(names).drop_nulls() for kind, names in _TIMESTAMPS.items()}
        kind = "driver" if 2 * whole["driver"].height >= whole["application"].height else "application"
        t1, t2, t3, t4 = (whole[kind][name].to_numpy() for name in _TIMESTAMPS[kind])
        # Whole picoseconds up to here; a day of offset would leave no resolution in a float.
        theta, away, there = ((t2 - t1) + (t3 - t4)) / 2e3, (t4 - t1) / 1e3, (t3 - t2) / 1e3
        coarse = grain.get(flow.source, 0.0) + grain.get(flow.destination, 0.0)
        track_of = partial(
            stats.offset_track,
            (t2 + t3) / 2e12,
            theta,
            asymmetry_ns=synchronise.asymmetry_ns,
            # Readings are rounded down: an offset is off by up to the two steps, a delay by as much again.
            timestamp_ns=1.5 * coarse + (TIMESTAMP_NS if real else 0.001),
        )
        track = track_of(away - there)
        if track is not None and track.drift:
            # The turnaround is read on the other clock, whose seconds are of another length.
            track = track_of(away - there / (1 + track.drift / 1e6))
        if track is None:
            continue
        tracks[flow.destination] = track
        # Times from the epoch to the end of the measured part, on the clock that is compared.
        grid = np.linspace(0, end, _DRAWN) + track.offset_at(np.linspace(0, end, _DRAWN)) / 1e9
        width = track.uncertainty_at(grid)
        found.append(
            ClockResult(
                node=flow.destination,
                reference=flow.source,
                method="exchange",
                timestamps=kind,
                n=track.n,
                lost=own.height - track.n,
                delay=track.delay,
                asymmetry=track.asymmetry,
                stated=synchronise.asymmetry_ns is not None,
                drift=track.drift,
                drift_uncertainty=track.drift_uncertainty,
                # The maximum over the whole run, not only at the points of a figure: a step is as narrow as
                # two exchanges are apart.
                uncertainty=track.greatest_uncertainty(*grid[[0, -1]]),
                t=grid,
                offset=track.offset_at(grid),
                half_width=width,
                trend=np.polynomial.Polynomial.fit(grid, track.offset_at(grid), 1)(grid),
                moved=tuple(one for one in track.moved if one.end >= grid[0] and one.begin <= grid[-1]),
            )
        )
    return tracks, tuple(found)


def watched_clocks(directory: Recorded, plan: RunPlan) -> tuple[WatchedClock, ...]:
    """States that synchronisation programs reported during a run, by node. Raises RunDirectoryError for a damaged
    file."""
    path = directory.clocks(plan.index)
    if path is None:
        return ()
    columns = ("time", "node", "source", "state", "offset_ns", "delay_ns")
    end = (plan.warm_up_ns + plan.duration_ns) * 1e3
    table = read_columns(path, columns, pl.col("time").is_between(0, end), most=MOST_STATES)
    found = []
    for (node, source), part in sorted(table.partition_by("node", "source", as_dict=True).items()):
        offsets, delays = part["offset_ns"].drop_nulls().to_numpy(), part["delay_ns"].drop_nulls().to_numpy()
        found.append(
            WatchedClock(
                str(node),
                str(source),
                len(offsets),
                float(np.abs(offsets).max()) if len(offsets) else None,
                stats.median(np.asarray(delays, dtype=np.float64)) if len(delays) else None,
                tuple(part.sort("time")["state"].unique(maintain_order=True).to_list()),
            )
        )
    return tuple(found)


def corrected(
    frame: pl.DataFrame, flows: Sequence[FlowPlan], names: Sequence[str], clocks: RunClocks
) -> pl.DataFrame:
    """The message table with every timestamp in the reference's time; whether a message was late is decided anew.

    `names` are the nodes of the plan by index.
    """
    if not clocks.tracks or frame.is_empty():
        return frame
    place = {name: number for number, name in enumerate(names)}
    ends = {flow.id: (place.get(flow.source, -1), place.get(flow.destination, -1)) for flow in flows}
    number = frame["flow"].cast(pl.Int64)
    source = number.replace_strict({n: a for n, (a, _) in ends.items()}, default=-1, return_dtype=pl.Int64)
    single = number.replace_strict({n: b for n, (_, b) in ends.items()}, default=-1, return_dtype=pl.Int64)
    several = [flow.id for flow in flows if flow.multicast]
    destination = pl.select(pl.when(number.is_in(several)).then(frame["to"]).otherwise(single)).to_series()
    fresh = []
    for columns, node in ((_SOURCE, source.to_numpy()), (_DESTINATION, destination.fill_null(-1).to_numpy())):
        for name in columns:
            if name in frame.columns:
                shifted = _shifted(frame[name], node, place, clocks.tracks)
                fresh.append(shifted)
    frame = frame.with_columns(fresh)
    return _late_anew(frame, flows, clocks)


def on_one_clock(records: pl.DataFrame, names: Sequence[str], clocks: RunClocks) -> pl.DataFrame:
    """Records with times on the reference's clock; those of uncompared nodes, such as switches, are unchanged."""
    if not clocks.tracks or records.is_empty():
        return records
    place = {name: number for number, name in enumerate(names)}
    node = records["node"].cast(pl.Int64).to_numpy()
    return records.with_columns(_shifted(records["time"], node, place, clocks.tracks))


def _shifted(
    column: pl.Series, node: NDArray[np.int64], place: Mapping[str, int], tracks: Mapping[str, OffsetTrack]
) -> pl.Series:
    known = column.is_not_null().to_numpy()
    shown = column.cast(pl.Int64).fill_null(0).to_numpy().copy()
    for name, track in tracks.items():
        mine = known & (node == place.get(name, -2))
        if mine.any():
            shown[mine] -= np.rint(track.offset_at(shown[mine] / 1e12) * 1e3).astype(np.int64)
    fresh = pl.Series(column.name, shown, dtype=pl.Int64)
    return pl.select(pl.when(pl.Series(known)).then(fresh).otherwise(None).alias(column.name)).to_series()


def _late_anew(frame: pl.DataFrame, flows: Sequence[FlowPlan], clocks: RunClocks) -> pl.DataFrame:
    """Tracking compared timestamps of two clocks as they were."""
    return late_anew(frame, [flow for flow in flows if not flow.relayed and clocks.moved(flow)])


def late_anew(frame: pl.DataFrame, flows: Sequence[FlowPlan]) -> pl.DataFrame:
    """The message table with lateness recomputed from the corrected times."""
    number = pl.col("flow").cast(pl.Int64)
    limits = {flow.id: round(flow.deadline_ns * 1e3) for flow in flows if flow.deadline_ns is not None}
    if not limits:
        return frame
    limit = number.replace_strict(limits, default=None, return_dtype=pl.Int64)
    came = pl.col("rx_app")
    if returning := [flow.id for flow in flows if flow.relayed]:
        came = pl.when(number.is_in(returning)).then(pl.col("back_rx_app")).otherwise(came)
    late = (came - pl.col("tx_app") > limit).fill_null(value=False)
    plain = pl.col("outcome").is_in(["delivered", "late"]) & limit.is_not_null()
    return frame.with_columns(
        late=pl.when(limit.is_not_null()).then(late).otherwise(pl.col("late")),
        outcome=pl.when(plain)
        .then(pl.when(late).then(pl.lit("late")).otherwise(pl.lit("delivered")))
        .otherwise(pl.col("outcome")),
    )
