"""The simulator as a bench: facts that a reader of simulated figures must know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from wiregauge.benches.base import Fact
from wiregauge.plan import Campaign, EndSystem, Node, Switch

__all__ = ["simulator_facts"]


def simulator_facts(campaign: Campaign) -> Sequence[Fact]:
    """The models and their limits, in the terms of this test."""
    nodes = campaign.network.nodes
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
            f"seed {campaign.seed}",
            "same test, seed and version: same records, byte by byte",
        ),
    ]
    kept = campaign.synchronise
    ignored = [name for name in ("ptp", "chrony") if kept is not None and getattr(kept, name)]
    if ignored:
        facts.append(
            Fact(
                "synchronisation",
                f"{' and '.join(ignored)} not simulated",
                "clocks are as the test describes them; exchanges are simulated",
            )
        )
    switches = [node.kind for node in nodes if isinstance(node.kind, Switch)]
    if switches:
        facts.insert(1, Fact("switches", _switches(switches), "models, not a make of switch"))
    return facts


def _hosts(nodes: Iterable[Node]) -> str:
    hosts = [node.kind.host for node in nodes if isinstance(node.kind, EndSystem)]
    ideal = sum(host is None or host.takes_no_time for host in hosts)
    if ideal == len(hosts):
        return "ideal: they take no time"
    return f"{len(hosts) - ideal} with stacks, interrupts and wake-ups" + (
        f", {ideal} ideal" if ideal else ""
    )


def _clocks(nodes: Iterable[Node]) -> str:
    wrong = [node.name for node in nodes if node.clock]
    return f"perfect but for {', '.join(wrong)}" if wrong else "perfect: no error in one-way latencies"


def _switches(switches: Iterable[Switch]) -> str:
    kinds = Counter(
        f"{one.kind}, {one.forwarding_mode}, "
        + (f"{one.processing_delay / 1e6:g} µs" if one.drawn_delay is None else "a drawn delay")
        for one in switches
    )
    return "; ".join(f"{count} of {text}" for text, count in kinds.items())
