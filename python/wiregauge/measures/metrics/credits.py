"""What the simulator says of the credits of shaped queues, and which of them a flow goes by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.reported import number, parts
from wiregauge.plan import Network, Switch
from wiregauge.plan.tsn import PortClass, TrafficClass, settings_of

__all__ = ["CreditMet", "CreditResult", "changes_priority", "class_of", "credit_met", "credits_of"]

PICO = 10**12
"""Of a bit in what is reported: credits are whole numbers of 10^-12 bits."""


@dataclass(frozen=True, slots=True)
class CreditResult:
    """The credit of a shaped queue over a run; bits, ns."""

    node: str
    port: int
    traffic_class: int
    max_bit: float
    max_at_ns: float
    min_bit: float
    min_at_ns: float
    whole_ps: tuple[int, int] = (0, 0)
    """From when to when truth has every corner of it."""


@dataclass(frozen=True, slots=True)
class CreditMet:
    """The extremes of the credits that a flow goes by, bits, and how many they are."""

    most: float
    least: float
    queues: int
    used: int
    """Of them those by which a frame went, the flow's or another: a transmission takes credit."""


def credits_of(entry: Mapping[str, object]) -> tuple[CreditResult, ...]:
    """The shaped queues a run reports, by node, port and class."""
    simulation = entry.get("simulation")
    return tuple(
        CreditResult(
            node=str(one.get("node", "")),
            port=number(one, "port"),
            traffic_class=number(one, "class"),
            max_bit=number(one, "greatest_pbit") / PICO,
            max_at_ns=number(one, "greatest_at_ps") / 1000,
            min_bit=number(one, "least_pbit") / PICO,
            min_at_ns=number(one, "least_at_ps") / 1000,
            whole_ps=(number(one, "whole_from_ps"), number(one, "whole_to_ps")),
        )
        for one in parts(simulation if isinstance(simulation, dict) else {}, "credits")
    )


def credit_met(network: Network, flow: FlowPlan, shaped: Sequence[CreditResult]) -> CreditMet | None:
    """Of the queues a flow waits in on its way, and back where it is relayed, those that are shaped.

    None where there is none, and where a stream gate gives its frames another class, which one is not recorded.
    """
    known = {(one.node, one.port, one.traffic_class): one for one in shaped}
    found = []
    for node, port in flow.leaves:
        place = network.nodes[node]
        if isinstance(place.kind, Switch) and changes_priority(place.kind, flow.id):
            return None
        own = class_of(_classes(network, node, port), flow)
        credit = known.get((place.name, port, own)) if own is not None else None
        found += [credit] if credit is not None else []
    if not found:
        return None
    return CreditMet(
        max(one.max_bit for one in found),
        min(one.min_bit for one in found),
        len(found),
        sum(one.min_bit < 0 for one in found),
    )


def _classes(network: Network, node: int, port: int) -> Sequence[PortClass | TrafficClass]:
    place = network.nodes[node]
    if isinstance(place.kind, Switch):
        settings = settings_of(place.kind.tsn, port)
        return settings.classes if settings is not None else ()
    return place.tsn.classes if place.tsn is not None else ()


def class_of(classes: Sequence[PortClass | TrafficClass], flow: FlowPlan) -> int | None:
    """The class a flow's frames wait in at a port; None where they go before all classes."""

    def takes(one: PortClass | TrafficClass) -> bool:
        if flow.protocol not in ("rc", "tt"):
            return flow.priority in one.priorities
        return isinstance(one, PortClass) and flow.link_priority in one.virtual_links

    return next((at for at, one in enumerate(classes) if takes(one)), None)


def changes_priority(switch: Switch, flow: int) -> bool:
    """A stream gate gives its frames another class, which one is not recorded."""
    return any(
        entry.priority is not None
        for tsn in switch.tsn
        for one in tsn.filters
        if one.flow == flow and one.gate is not None
        for entry in one.gate.entries
    )
