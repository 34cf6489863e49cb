"""Which frames of a flow came to a closed gate, and which missed a window: by the passages of switches and the plan.

Nothing is asked of the bench. A passage has the instants at which a frame came and left by the switch's own clock, by
which the gates go, and the plan says when they change (IEEE Std 802.1Q-2022, 8.6.9.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wiregauge.measures.gate_view import gate_states, lists_of
from wiregauge.measures.metrics.credits import changes_priority
from wiregauge.measures.metrics.flow_plan import CampaignPlan, FlowPlan
from wiregauge.measures.metrics.hops import Passages
from wiregauge.plan import Switch
from wiregauge.plan.tsn import PortSchedule, settings_of

__all__ = ["gate_waits"]

Times = NDArray[np.int64]


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
        own = next(at for at, one in enumerate(settings.classes) if flow.priority in one.priorities)
        if all(own in entry.open for one in lists for entry in one.entries):
            continue
        left = through.out[rows]
        ready = left - through.residence[rows] + kind.processing_delay
        closes, opens = _changes(lists, own, int(ready.min(initial=0)), int(left.max(initial=0)))
        counted["passages"] += len(left)
        # The last change up to the instant is a closing; before any, the first one is an opening.
        counted["found_closed"] += int(np.count_nonzero(_last(closes, ready) > _last(opens, ready)))
        closings = np.searchsorted(closes, left, side="left") - np.searchsorted(closes, ready, side="right")
        counted["missed"] += int(np.count_nonzero(closings > 0))
    return counted if counted["passages"] else {}


def _last(changes: Times, at: Times) -> Times:
    """The last of the changes up to each instant; before all of them a time before any."""
    padded = np.concatenate([np.array([np.iinfo(np.int64).min]), changes])
    return padded[np.searchsorted(changes, at, side="right")]


def _changes(lists: Sequence[PortSchedule], own: int, begin: int, end: int) -> tuple[Times, Times]:
    """When the gate of a class closes and opens from the state before `begin` up to `end`, ps."""
    # Two cycles earlier, so that the last change before `begin` is among them.
    start = begin - 2 * max(one.cycle for one in lists)
    closes: list[int] = []
    opens: list[int] = []
    was: bool | None = None
    for since, _, classes in gate_states(lists, start, end + 1):
        is_open = own in classes
        if is_open != was:
            (opens if is_open else closes).append(since)
            was = is_open
    return np.array(closes, dtype=np.int64), np.array(opens, dtype=np.int64)
