"""The flows of a raw plan."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["receivers"]


def receivers(flow: Mapping[str, object]) -> tuple[int, ...]:
    """Numbers of the nodes that receive a flow: one, or several where it is multicast.

    The plan names the first as `to`, and all others, if any, as `also_to`. Raises ValueError for anything else.
    """
    others = flow.get("also_to", [])
    found = (flow.get("to"), *others) if isinstance(others, list) else ()
    numbers = tuple(node for node in found if isinstance(node, int) and not isinstance(node, bool))
    if not numbers or len(numbers) != len(found):
        raise ValueError('"to" and "also_to" should hold numbers of nodes')
    return numbers
