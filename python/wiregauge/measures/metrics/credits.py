"""Traffic class of a port in which the frames of a flow wait."""

from __future__ import annotations

from collections.abc import Sequence

from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.plan import Switch
from wiregauge.plan.tsn import PortClass, TrafficClass

__all__ = ["changes_priority", "class_of"]


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
