"""Frames of a flow that met a closed gate or missed a window, from the passages of switches and the plan.

No bench needs to report them. A passage has the instants at which a frame came and left by the switch's own clock, by
which the gates go, and the plan says when they change (IEEE Std 802.1Q-2022, 8.6.9.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from wiregauge.measures.definitions import Definition
from wiregauge.measures.flow_measures.base import Counted, FlowReading, RunReading
from wiregauge.measures.metrics.credits import changes_priority, class_of
from wiregauge.measures.metrics.flow_plan import CampaignPlan, FlowPlan
from wiregauge.measures.metrics.gate_course import GateCourse
from wiregauge.measures.metrics.gate_lists import lists_of
from wiregauge.measures.metrics.hops import Passages
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.quantity import Quantity, single
from wiregauge.measures.metrics.releases import Errors
from wiregauge.measures.metrics.summary import Summary
from wiregauge.plan import Switch
from wiregauge.plan.tsn import settings_of

__all__ = ["GATES"]

Counts = Mapping[str, int]

_DEFINITION = Definition(
    "gates",
    "Gates met",
    "passages of switches by ports whose gate for the flow is not always open",
    "messages",
    "IEEE Std 802.1Q-2022, 8.6.8.4 and 8.6.9.1; this project",
    "passages counts all of them; found_closed those whose gate was closed when the frame could have left; "
    "missed those whose gate closed before the frame left, so that the window was missed; released_late, "
    "with a network emulated by an agent, those whose frame reached its host after the gate had closed (0 in "
    "a simulation). A multicast frame counts at each port.",
    statistics=("passages", "found_closed", "missed", "released_late"),
    needs="gates",
    of="passages of gates",
    links="either",
    after="policing",
)


class _Gates(Counted):
    """Counts of gates met, by statistic; a sampled flow has none."""

    name = "gates"
    definitions = (_DEFINITION,)

    def computed(self, reading: FlowReading) -> Counts:
        if reading.whole is not None or not reading.run.once(_has_gates):
            return self.none
        return gate_waits(reading.run.campaign, reading.flow, reading.through, reading.run.played)

    def pooled(self, flows: Sequence[FlowResult], summaries: Mapping[str, Summary]) -> Counts:
        """Sums of the statistics that every repeat counted; others are unknown."""
        each = [flow[self] for flow in flows]
        return {name: sum(one[name] for one in each) for name in each[0] if all(name in one for one in each)}

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        counts = flow[self]
        for statistic in _DEFINITION.statistics:
            if statistic in counts:
                of = "released" if statistic == "released_late" else "passages"
                yield single(self.name, statistic, counts[statistic], counts[of])


GATES = _Gates()


def _has_gates(run: RunReading) -> bool:
    """Whether any switch has settings of which gates may be part: most networks have none, and thousands of flows."""
    return any(isinstance(node.kind, Switch) and node.kind.tsn for node in run.campaign.network.nodes)


def gate_waits(
    campaign: CampaignPlan, flow: FlowPlan, through: Passages | None, errors: Errors | None = None
) -> dict[str, int]:
    """Counts of the passages by ports whose gate for the flow is not always open: all (`passages`), gate closed when
    they could have left (`found_closed`), gate closed over them before they left (`missed`), and frames whose host got
    them only after closing (`released_late`).

    Empty where there is no such port. `errors` are those of a played network; None where none is, and nothing is handed
    to a host late. Where they are not stored, `released` and `released_late` are absent.
    """
    counted = {"passages": 0, "found_closed": 0, "missed": 0}
    is_known = errors is None or errors.rows is not None
    if is_known:
        counted |= {"released": 0, "released_late": 0}
    if through is None:
        return {}
    hosts = _hosts(campaign)
    for node, port, rows in through.by_port():
        kind = campaign.network.nodes[node].kind
        if not isinstance(kind, Switch) or changes_priority(kind, flow.id):
            continue
        settings = settings_of(kind.tsn, port)
        lists = lists_of(campaign, (node, port))
        if settings is None or not lists:
            continue
        own = class_of(settings.classes, flow)
        if own is None or all(own in entry.open for one in lists for entry in one.entries):
            continue
        left = through.out[rows]
        ready = left - through.residence[rows] + kind.processing_delay
        gate = GateCourse(lists, own)
        counted["passages"] += len(left)
        counted["found_closed"] += int(np.count_nonzero(~gate.is_open(ready)))
        counted["missed"] += int(np.count_nonzero(gate.next_closing(ready) < left))
        if not is_known or (node, port) not in hosts:
            continue
        counted["released"] += len(left)
        if errors is not None:
            late = errors.of_messages(flow.id, hosts[node, port], through.sequence[rows])
            # A closing at the very instant at which the model is done with the frame is behind it.
            counted["released_late"] += int(np.count_nonzero(gate.next_closing(left - 1) < left + late))
    return counted if counted["passages"] else {}


def _hosts(campaign: CampaignPlan) -> dict[tuple[int, int], int]:
    """The end systems that ports of switches lead to, by node and number of the port."""
    nodes = campaign.network.nodes
    ends = (pair for link in campaign.network.links for pair in (link.ends, link.ends[::-1]))
    return {(near.node, near.port): far.node for near, far in ends if nodes[far.node].is_end_system}
