"""What the simulator says of the credits of shaped queues, and in which class the frames of a flow wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.plan import Switch
from wiregauge.plan.tsn import PortClass, TrafficClass
from wiregauge.records.reported import Simulation

__all__ = ["CreditResult", "changes_priority", "class_of", "credits_of"]

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


def credits_of(simulation: Simulation | None) -> tuple[CreditResult, ...]:
    """The shaped queues a run reports, by node, port and class."""
    return tuple(
        CreditResult(
            node=one.node,
            port=one.port,
            traffic_class=one.traffic_class,
            max_bit=one.greatest_pbit / PICO,
            max_at_ns=one.greatest_at_ps / 1000,
            min_bit=one.least_pbit / PICO,
            min_at_ns=one.least_at_ps / 1000,
            whole_ps=(one.whole_from_ps, one.whole_to_ps),
        )
        for one in (simulation.credits if simulation is not None else ())
    )


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
