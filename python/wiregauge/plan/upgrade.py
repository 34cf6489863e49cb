"""Plans of earlier versions, as this one writes them: a run directory of them stays readable and judgeable."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["upgraded"]

ROUTES = 3
"""Since this schema a flow says the links of its routes; before, it named the nodes."""


def upgraded(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """A raw plan in the newest schema; one that cannot be upgraded, being damaged or of the future, as it is."""
    if plan.get("schema") != ROUTES - 1:
        return plan
    try:
        links = plan["network"]["links"]
        runs = [
            {**run, "flows": [_flow(flow, links) for flow in run["flows"]], "injects": _injects(run)}
            for run in plan["runs"]
        ]
    except (KeyError, TypeError, IndexError, AttributeError):
        return plan
    return {**plan, "schema": ROUTES, "runs": runs}


def _flow(flow: Mapping[str, Any], links: Sequence[Any]) -> dict[str, Any]:
    first = {"network": flow.get("network", "A") or "A", "nodes": flow["path"]}
    routes = [
        _route(path["network"], path["nodes"], links) for path in (first, *flow.get("further_paths", ()))
    ]
    kept = {key: value for key, value in flow.items() if key not in ("path", "further_paths")}
    return {**kept, "routes": routes}


def _injects(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Background load went wherever the simulator found a way, which no plan said."""
    return [{"route": {"hops": []}, **inject} for inject in run["injects"]]


def _route(network: str, nodes: Sequence[int], links: Sequence[Any]) -> dict[str, Any]:
    hops = [_hop(network, one, other, links) for one, other in itertools.pairwise(nodes)]
    return {"hops": hops} if network == "A" else {"network": network, "hops": hops}


def _hop(network: str, one: int, other: int, links: Sequence[Any]) -> list[int]:
    """The link between two neighbours: in a tree there is one."""
    for number, link in enumerate(links):
        ends = {end["node"]: end["port"] for end in link["ends"]}
        if ends.keys() == {one, other} and link.get("network", "A") == network:
            return [number, one, ends[one], other, ends[other]]
    raise KeyError(f"no link between nodes {one} and {other}")
