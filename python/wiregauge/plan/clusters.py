"""Clusters of devices that synchronise by SAE AS6802, as `wg_plan::Cluster` writes them."""

from __future__ import annotations

from typing import Literal

from wiregauge.plan.base import NodeIndex, Picoseconds, Plan, written
from wiregauge.plan.routes import Hop

__all__ = ["Cluster", "ClusterChannel", "ClusterMaster", "ClusterParameters", "ClusterThresholds"]


class ClusterThresholds(Plan, frozen=True, kw_only=True):
    """The numbers of masters that thresholds require."""

    sync: int
    tentative: int
    asynchronous: int


class ClusterParameters(Plan, frozen=True, kw_only=True):
    """Parameters that all devices of a cluster share."""

    integrity: Literal["standard", "high"]
    domain: int
    priority: int
    integration_cycle: Picoseconds
    cycles: int
    precision: Picoseconds
    max_transmission_delay: Picoseconds
    calculation_overhead: Picoseconds
    frame_time: Picoseconds
    masters: int
    faulty_masters: int
    channels: int
    thresholds: ClusterThresholds
    stable_cycles: int
    unstable_cycles: int


class ClusterMaster(Plan, frozen=True, kw_only=True):
    """A synchronisation master."""

    node: NodeIndex
    behaviour: str | dict[str, Picoseconds] = written("correct")
    """`correct`, `silent`, or a name (`early`, `late`, `inconsistent`) with a time."""


class ClusterChannel(Plan, frozen=True, kw_only=True):
    """A redundant channel: its compression master, and the links from it to all other devices."""

    compression_master: NodeIndex
    ways: tuple[Hop, ...]


class Cluster(Plan, frozen=True, kw_only=True):
    """A cluster: its devices, and the ways between them."""

    parameters: ClusterParameters
    precision_bound: Picoseconds
    startup_bound: Picoseconds
    powered_within: Picoseconds
    masters: tuple[ClusterMaster, ...]
    channels: tuple[ClusterChannel, ...]
    clients: tuple[NodeIndex, ...]

    @property
    def devices(self) -> tuple[NodeIndex, ...]:
        """Numbers of all devices of the cluster."""
        compression = (channel.compression_master for channel in self.channels)
        return (*(master.node for master in self.masters), *compression, *self.clients)
