"""Plans of earlier versions, as this one writes them: a run directory of them stays readable and judgeable."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["upgraded"]

ROUTES = 3
"""Since this schema a flow says the links of its routes; before, it named the nodes."""
NAMES = 4
"""Since this schema the plan calls things what version 2 of the test language calls them."""

HOST_TSN = 5
"""Since this schema end systems may have TSN settings, which a reader of before would pass over."""

_FAULTS = {"lose": "loss", "drop": "loss", "swap": "reorder"}
_FAULT_OF_A_LINK = {"from": "sent_by", "begin": "from", "end": "until"}
_MEASURES = {
    "throughput": "goodput",
    "bag_conformity": "bag_violations",
    "skew_conformity": "skew_violations",
    "window_conformity": "window_violations",
}


def upgraded(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """A raw plan in the newest schema; one that cannot be upgraded, being damaged or of the future, as it is."""
    try:
        newer = _routed(plan) if plan.get("schema") == ROUTES - 1 else plan
        newer = _renamed(newer) if newer.get("schema") == NAMES - 1 else newer
        return {**newer, "schema": HOST_TSN} if newer.get("schema") == HOST_TSN - 1 else plan
    except (KeyError, TypeError, IndexError, AttributeError, ValueError):
        return plan


def _routed(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    links = plan["network"]["links"]
    runs = [
        {**run, "flows": [_flow(flow, links) for flow in run["flows"]], "injects": _injects(run)}
        for run in plan["runs"]
    ]
    return {**plan, "schema": ROUTES, "runs": runs}


def _renamed(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """With the names of version 2 of the language; a plan has few of them, so they are named one by one."""
    nodes = [
        {**node, "kind": _keys(node["kind"], mode="forwarding_mode")} for node in plan["network"]["nodes"]
    ]
    new = {
        **plan,
        "schema": NAMES,
        "network": {**plan["network"], "nodes": nodes},
        "axes": [_values(axis, "of", {"mode": "forwarding-mode"}) for axis in plan["axes"]],
        "runs": [_run(run) for run in plan["runs"]],
        "limits": [_values(limit, "measure", _MEASURES) for limit in plan["limits"]],
    }
    if (synchronise := plan.get("synchronise")) is not None:
        new["synchronise"] = _keys(synchronise, within="max_offset", otherwise="on_failure")
        if (ptp := synchronise.get("ptp")) is not None:
            new["synchronise"]["ptp"] = _keys(ptp, stamps="timestamps")
    return new


def _run(run: Mapping[str, Any]) -> dict[str, Any]:
    new = {
        **run,
        **{tasks: [_keys(task, mode="pacing") for task in run[tasks]] for tasks in ("sends", "injects")},
    }
    if "switches" in run:
        new["switches"] = _keys(run["switches"], mode="forwarding_mode")
    new["point"] = _keys(run["point"], mode="forwarding-mode")
    new["relays"] = [
        {**relay, "faults": [_kind(fault) for fault in relay["faults"]]} for relay in run["relays"]
    ]
    if "link_faults" in run:
        new["link_faults"] = [_kind(_keys(fault, **_FAULT_OF_A_LINK)) for fault in run["link_faults"]]
    if "incidents" in run:
        ends = {"restored": "until", "back": "until"}
        new["incidents"] = [{**one, "kind": _keys(one["kind"], **ends)} for one in run["incidents"]]
    return new


def _keys(part: Mapping[str, Any], **names: str) -> dict[str, Any]:
    """With other names for keys."""
    return {names.get(key, key): value for key, value in part.items()}


def _values(part: Mapping[str, Any], key: str, names: Mapping[str, str]) -> dict[str, Any]:
    """With another name as the value of `key`."""
    return {**part, key: names.get(part[key], part[key])}


def _kind(fault: Mapping[str, Any]) -> dict[str, Any]:
    return {**fault, "kind": _values(fault["kind"], "type", _FAULTS)}


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
