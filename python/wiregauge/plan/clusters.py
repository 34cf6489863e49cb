"""Clusters of devices that synchronise by SAE AS6802, as `wg_plan::Cluster` writes them."""

from __future__ import annotations

from typing import Literal

from wiregauge.plan.base import NodeIndex, Picoseconds, Plan, written
from wiregauge.plan.routes import Hop

__all__ = ["Cluster", "ClusterChannel", "ClusterMaster", "ClusterParameters", "ClusterThresholds"]


class ClusterThresholds(Plan, frozen=True, kw_only=True):
    """The numbers of masters that thresholds require."""

    sync: int
    """Masters in schedule, or heard of, from which a device is synchronised."""
    tentative: int
    """Masters heard of from which a device begins tentatively; more than may be faulty."""
    asynchronous: int
    """Masters out of schedule from which a device detects an asynchronous clique; more than may be faulty."""


class ClusterParameters(Plan, frozen=True, kw_only=True):
    """Parameters that all devices of a cluster share."""

    integrity: Literal["standard", "high"]
    """Standard or high integrity."""
    domain: int
    """Synchronisation domain in the cluster's protocol control frames."""
    priority: int
    """Synchronisation priority in the cluster's protocol control frames."""
    integration_cycle: Picoseconds
    """Time between two integration frames of a master."""
    cycles: int
    """Integration cycles in a cluster cycle; then they count from 0 again."""
    precision: Picoseconds
    """Upper bound of the difference between the clocks of synchronised devices."""
    max_transmission_delay: Picoseconds
    """Greatest transmission delay of a frame between a master and a compression master."""
    calculation_overhead: Picoseconds
    """Processing time of a compression master, its windows not included."""
    frame_time: Picoseconds
    """Transmission time of a protocol control frame on the slowest line, gap included."""
    masters: int
    """Number of synchronisation masters."""
    faulty_masters: int
    """Number of these masters that may fail."""
    channels: int
    """Number of redundant channels."""
    thresholds: ClusterThresholds
    """Numbers of masters at which a device changes state."""
    stable_cycles: int
    """Good cycles after which a synchronised device is stable."""
    unstable_cycles: int
    """Bad cycles that a stable device tolerates."""


class ClusterMaster(Plan, frozen=True, kw_only=True):
    """A synchronisation master."""

    node: NodeIndex
    """The end system."""
    behaviour: str | dict[str, Picoseconds] = written("correct")
    """How it behaves: `correct`, `silent`, or `early`, `late` or `inconsistent` with a time."""


class ClusterChannel(Plan, frozen=True, kw_only=True):
    """A redundant channel: its compression master, and the links from it to all other devices."""

    compression_master: NodeIndex
    """Its compression master, a switch."""
    ways: tuple[Hop, ...]
    """Links from the compression master to all other devices, each once; masters send the other way."""


class Cluster(Plan, frozen=True, kw_only=True):
    """A cluster: its devices, and the ways between them."""

    parameters: ClusterParameters
    """Parameters that all its devices share."""
    precision_bound: Picoseconds
    """Bound of the difference between synchronised clocks."""
    startup_bound: Picoseconds
    """Bound of the time from the last device being powered to all devices being synchronised."""
    powered_within: Picoseconds
    """Devices are powered at times drawn from the beginning of the run up to this; zero: all at its
    beginning.
    """
    masters: tuple[ClusterMaster, ...]
    """Synchronisation masters, in the order of their bits of the membership."""
    channels: tuple[ClusterChannel, ...]
    """Redundant channels, each with its compression master."""
    clients: tuple[NodeIndex, ...]
    """Synchronisation clients."""

    @property
    def devices(self) -> tuple[NodeIndex, ...]:
        """Numbers of all devices of the cluster."""
        compression = (channel.compression_master for channel in self.channels)
        return (*(master.node for master in self.masters), *compression, *self.clients)
