"""What the builder of the network and the bench agree on: the names of namespaces, and what the builder is told."""

from __future__ import annotations

from typing import Final, Literal

from wiregauge.plan import Network, Node, Plan

__all__ = [
    "NETWORK_PRIORITY",
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
"""Who plays the switches: bridges of the kernel, or the simulator's engine, driven in real time by frames."""

SWITCHES: Final[Switches] = "model"
"""Unless somebody chooses."""

NETWORK_PRIORITY: Final = 60
"""SCHED_FIFO priority of the network where the model plays it: above that of agents, whose frames it has to carry."""

NETWORK_SPACE: Final = "network"
"""Namespace of the one agent that is the network between the end systems, where the model plays it."""


class Order(Plan, frozen=True):
    """What the builder is told, as JSON on its standard input."""

    network: Network
    task: Task
    link_rate_bps: int | None
    chosen: tuple[tuple[tuple[int, ...], int], ...]
    """MAC addresses that flows chose as destination, each with the number of the end system it leads to."""
    pairs: tuple[tuple[int, int], ...]
    """End systems and those they send to."""
    interfaces: dict[str, str] | None = None
    """By end system the interface of the host that takes the place of a veth pair."""
    were_up: tuple[str, ...] = ()
    """Those of them that were up."""
    home: int = -1
    """Number of the open file of the host's namespace."""
    switches: Switches = "kernel"


def space_name(node: Node) -> str:
    """Name of the node's network namespace."""
    return f"{'es' if node.is_end_system else 'sw'}-{node.name}"


def network_port(end_system: int) -> str:
    """In the namespace of the network, the interface at the other end of an end system's link."""
    return f"h{end_system}"
