"""Credits of the credit-based shapers on the way of a flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from wiregauge.measures.definitions import Definition
from wiregauge.measures.flow_measures.base import FlowMeasure, FlowReading
from wiregauge.measures.metrics.credits import changes_priority, class_of
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.quantity import Quantity, single
from wiregauge.measures.metrics.summary import Summary
from wiregauge.plan import Network, Switch
from wiregauge.plan.tsn import PortClass, TrafficClass, settings_of
from wiregauge.records.modelled import CreditReport

__all__ = ["CREDIT", "CreditMet", "credit_met"]

_DEFINITION = Definition(
    "credit",
    "Credit of shaped queues",
    "credit of the credit-based shapers that the flow goes by: the greatest and the least of all of them",
    "bit",
    "IEEE Std 802.1Q-2022, 8.6.8.2 and Annex L (hiCredit and loCredit)",
    "For every queue with a shaper on the path of the flow, and on the return path of a relayed flow; other "
    "flows' frames in the queue count. Exact, up to the end of the run, warm-up included.",
    statistics=("max", "min"),
    needs="credit-based shaper",
    of="shaped queues",
    links="either",
    after="gates",
)


class CreditMet(Struct, frozen=True):
    """Extremes of the credits on the way of a flow, bits, and the number of queues."""

    most: float
    least: float
    queues: int
    used: int
    """Queues that a frame left, of this flow or another: only a transmission takes credit."""


class _Credit(FlowMeasure[CreditMet | None]):
    """The extremes of the credits of all shaped queues on the way of a flow."""

    name = "credit"
    none: CreditMet | None = None
    definitions = (_DEFINITION,)

    def computed(self, reading: FlowReading) -> CreditMet | None:
        shaped = reading.run.entry.model.credits
        return credit_met(reading.run.campaign.network, reading.flow, shaped) if shaped else None

    def pooled(self, flows: Sequence[FlowResult], summaries: Mapping[str, Summary]) -> CreditMet | None:
        known = [one for flow in flows if (one := flow[self]) is not None]
        if len(known) < len(flows):
            return None
        return CreditMet(
            max(one.most for one in known),
            min(one.least for one in known),
            known[0].queues,
            min(one.used for one in known),
        )

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        credit = flow[self]
        if credit is None:
            return
        idle = credit.queues - credit.used
        why = f"no frame went by {idle} of {credit.queues} shaped queues of its way" if idle else ""
        for statistic, bits in (("max", credit.most), ("min", credit.least)):
            yield replace(single(self.name, statistic, bits, credit.queues), silent=why)


CREDIT = _Credit()


def credit_met(network: Network, flow: FlowPlan, shaped: Sequence[CreditReport]) -> CreditMet | None:
    """Credit extremes of the shaped queues on a flow's way, and on its way back where it is relayed.

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
