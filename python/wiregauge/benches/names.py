"""Names the builder of the network and the bench agree on."""

from __future__ import annotations

from typing import Any

__all__ = ["is_end_system", "space_name"]


def is_end_system(node: dict[str, Any]) -> bool:
    """Whether this node of the plan runs an agent."""
    return bool(node["kind"]["type"] == "end-system")


def space_name(node: dict[str, Any]) -> str:
    """Name of the node's network namespace."""
    return f"{'es' if is_end_system(node) else 'sw'}-{node['name']}"
