"""Which frames of a flow came to a closed gate, and which missed a window: by the passages of switches and the plan.

Nothing is asked of the bench. A passage has the instants at which a frame came and left by the switch's own clock, by
which the gates go, and the plan says when they change (IEEE Std 802.1Q-2022, 8.6.9.1).
"""

from __future__ import annotations

import numpy as np

from wiregauge.measures.gate_course import GateCourse
from wiregauge.measures.gate_view import lists_of
from wiregauge.measures.metrics.credits import changes_priority, class_of
from wiregauge.measures.metrics.flow_plan import CampaignPlan, FlowPlan
from wiregauge.measures.metrics.hops import Passages
from wiregauge.plan import Switch
from wiregauge.plan.tsn import settings_of

__all__ = ["gate_waits", "has_gates"]


def has_gates(campaign: CampaignPlan) -> bool:
    """Whether any switch has settings of which gates may be part: most networks have none, and thousands of flows."""
    return any(isinstance(node.kind, Switch) and node.kind.tsn for node in campaign.network.nodes)


def gate_waits(campaign: CampaignPlan, flow: FlowPlan, through: Passages | None) -> dict[str, int]:
    """Of the passages by ports whose gate for the flow is not always open: all of them, those that found it closed when
    they could have left, and those over which it closed before they left. Empty where there is none."""
    counted = {"passages": 0, "found_closed": 0, "missed": 0}
    if through is None:
        return {}
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
    return counted if counted["passages"] else {}
