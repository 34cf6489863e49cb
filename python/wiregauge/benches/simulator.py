"""The simulator as a bench: what a reader of simulated figures must know of where they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wiregauge.benches.base import Fact
from wiregauge.benches.names import is_end_system

__all__ = ["simulator_facts"]


def simulator_facts(campaign: Mapping[str, Any]) -> Sequence[Fact]:
    """What is modelled, and how, in the terms of this test."""
    nodes: list[dict[str, Any]] = campaign["network"]["nodes"]
    facts = [
        Fact(
            "network",
            "discrete-event simulation in virtual time",
            "exact to a picosecond; preamble, start delimiter and gap occupy the wire",
        ),
        Fact("hosts", _hosts(nodes), "figures of a model that the test states, not measured on a machine"),
        Fact("clocks", _clocks(nodes), "what each clock really showed is in truth/"),
        Fact(
            "repeatable",
            f"seed {campaign['seed']}",
            "same test, seed and version: same records, byte by byte",
        ),
    ]
    kept = campaign.get("synchronise") or {}
    ignored = [name for name in ("ptp", "chrony") if kept.get(name)]
    if ignored:
        facts.append(
            Fact(
                "synchronisation",
                f"{' and '.join(ignored)} not simulated",
                "clocks are as the test describes them; exchanges are simulated",
            )
        )
    switches = [node for node in nodes if node["kind"]["type"] == "switch"]
    if switches:
        facts.insert(1, Fact("switches", _switches(switches), "models, not a make of switch"))
    return facts


def _hosts(nodes: Sequence[dict[str, Any]]) -> str:
    hosts = [node["kind"].get("host") or {} for node in nodes if is_end_system(node)]
    ideal = sum(_takes_no_time(host) for host in hosts)
    if ideal == len(hosts):
        return "ideal: they take no time"
    return f"{len(hosts) - ideal} with stacks, interrupts and wake-ups" + (
        f", {ideal} ideal" if ideal else ""
    )


def _takes_no_time(host: Mapping[str, Any]) -> bool:
    costs = [host.get("transmit") or {}, host.get("receive") or {}]
    fixed = [host.get("interface_delay", 0), host.get("interrupt_latency", 0)]
    wakes = [(host.get(f"{who}_wake_up") or {}).get("quantiles", []) for who in ("send", "receive", "relay")]
    waits = (host.get("interrupts") or {}).get("type", "each-frame") != "each-frame"
    return not (
        waits or any(fixed) or any(any(c.values()) for c in costs) or any(t for w in wakes for _, t in w)
    )


def _clocks(nodes: Sequence[dict[str, Any]]) -> str:
    wrong = [node["name"] for node in nodes if node.get("clock")]
    return f"perfect but for {', '.join(wrong)}" if wrong else "perfect: no error in one-way latencies"


def _switches(switches: Sequence[dict[str, Any]]) -> str:
    kinds: dict[str, int] = {}
    for node in switches:
        kind = node["kind"]
        mode = kind.get("mode", "store-and-forward")
        delay = kind.get("processing_delay", 0) / 1e6
        text = f"{kind['kind']}, {mode}, {delay:g} µs"
        kinds[text] = kinds.get(text, 0) + 1
    return "; ".join(f"{count} of {text}" for text, count in kinds.items())
