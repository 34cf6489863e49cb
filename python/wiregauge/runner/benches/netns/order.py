"""Names and messages shared by the builder of the network and the bench."""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from wiregauge.plan import Network, Node, Plan

__all__ = [
    "NETWORK_SPACE",
    "SWITCHES",
    "Order",
    "Switches",
    "Task",
    "network_port",
    "space_name",
]

Task = Literal["build", "shape", "return", "remove"]

Switches = Literal["kernel", "model"]
"""What plays the switches: bridges of the kernel, or the simulator's engine, driven in real time by frames."""

SWITCHES: Final[Switches] = "model"
"""The default for what plays the switches."""

NETWORK_SPACE: Final = "network"
"""Namespace of the one agent that is the network between the end systems, where the model plays it."""


class Order(Plan, frozen=True):
    """The order for the builder, as JSON on its standard input."""

    network: Network
    task: Task
    link_rate_bps: int | None
    chosen: tuple[tuple[tuple[int, ...], int], ...]
    """Destination MAC addresses given by flows, each with the number of the end system it leads to."""
    pairs: tuple[tuple[int, int], ...]
    """Pairs of end systems that exchange frames."""
    interfaces: dict[str, str] | None = None
    """Interfaces of the host that replace veth pairs, by end system."""
    were_up: tuple[str, ...] = ()
    """Names of those interfaces that were up before."""
    home: int = -1
    """File descriptor of the host's network namespace."""
    switches: Switches = "kernel"

    def covers(self, other: Order) -> bool:
        """Whether the network is the other's, with all paths that the other needs."""
        return set(other.pairs) <= set(self.pairs) and replace(other, pairs=self.pairs) == self


def space_name(node: Node) -> str:
    """Name of the node's network namespace."""
    return f"{'es' if node.is_end_system else 'sw'}-{node.name}"


def network_port(end_system: int) -> str:
    """Name, in the network's namespace, of the interface at the other end of an end system's link."""
    return f"h{end_system}"
