"""What the builder of the network and the bench agree on: the names of namespaces, and what the builder is told."""

from __future__ import annotations

from typing import Literal

from wiregauge.plan import Network, Node, Plan

__all__ = ["Order", "Task", "space_name"]

Task = Literal["build", "shape", "return"]


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


def space_name(node: Node) -> str:
    """Name of the node's network namespace."""
    return f"{'es' if node.is_end_system else 'sw'}-{node.name}"
