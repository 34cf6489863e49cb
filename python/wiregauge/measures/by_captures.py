"""Figures of a flow that come from captures and not from its messages."""

from __future__ import annotations

from msgspec.structs import replace

from wiregauge.measures.definitions.units import count_of
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.records.counters import known
from wiregauge.records.reported import RunEntry
from wiregauge.stats import share_bound

__all__ = ["by_captures"]


def by_captures(flow: FlowResult, entry: RunEntry) -> FlowResult:
    """The flow with figures from captures: the least numbers of arrived and lost messages, and holes.

    A frame behind the device that was not before it shows that the capture before it lacks frames, and possibly lost
    ones.
    """
    compared = entry.passive
    taps = [tap for tap in entry.taps if tap.node == flow.plan.source and tap.dropped]
    why = [f"the capture at {tap.node} dropped {count_of(known(tap.dropped), 'frame')}" for tap in taps]
    lost = came = 0
    own = next((one for one in compared["flows"] if one["flow"] == flow.plan.id), None) if compared else None
    if own is not None:
        lost, came = own["lost"][0], (own.get("through") or [0])[0]
        if own["appeared"]:
            why.append(f"{count_of(own['appeared'], 'frame')} behind the device came by no capture before it")
    holes = f"{' and '.join(why)}: more may have been sent, and lost, than was seen" if why else ""
    if lost <= flow.counts["lost"]:
        return replace(flow, came_at_least=came, holes=holes) if came or holes else flow
    sent = flow.counts["sent"]
    least = share_bound(lost, sent)
    loss = replace(
        flow.loss, ratio=lost / sent, low=least.low, high=max(flow.loss.high, least.high), one_sided=False
    )
    return replace(flow, lost_at_least=lost, came_at_least=came, holes=holes, loss=loss)
