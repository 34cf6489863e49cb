"""Removes values between uncompared clocks from a flow: they are not determined, whatever they seem."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from msgspec.structs import replace

from wiregauge.measures.flow_measures import FLOW_MEASURES, PAIRS
from wiregauge.measures.flow_measures.base import stored
from wiregauge.measures.metrics.judgement import FlowResult, Series
from wiregauge.measures.metrics.pairs import crosses, distribution_of
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.metrics.uncompared import UNCOMPARED, Between, is_between_clocks, reason_of

__all__ = ["without_clocks"]


def _estimate(flow: FlowResult, moved_ns: float) -> Between:
    """The range of receiver clock minus sender clock, ns, if no message arrived before it was sent.

    `moved_ns` was taken out of that before the times were recorded.
    """
    out, back = flow.summaries.get("latency"), flow.summaries.get("return_latency")
    most = out.minimum + moved_ns if out is not None and out.minimum is not None else None
    least = moved_ns - back.minimum if back is not None and back.minimum is not None else None
    return least, most


def without_clocks(
    flow: FlowResult, moved_ns: float, apart: Collection[str] = (), *, compared: bool = False
) -> FlowResult:
    """The flow without any figure that has an unknown offset of clocks in it: that between its two ends, unless those
    were `compared`, and that between the ports of switches that are `apart`.

    `moved_ns` was taken out of the offset of the receiver's clock before the times were recorded.
    """
    each = ((one, one.without_clocks(flow, apart, compared=compared)) for one in FLOW_MEASURES.values())
    rest = replace(flow, figures=stored(each))
    if compared:
        return _without(rest, {"residence"})
    plan = flow.plan
    gone = {name for name in flow.summaries if is_between_clocks(plan, name)}
    if apart:
        gone.add("residence")
    if "skew" in flow.summaries:
        # Two ports of the receiver, whose clocks are no nearer to one another than to the sender's.
        gone.add("skew")
    offset = _estimate(flow, moved_ns)
    rest = replace(_without(rest, gone), uncompared=reason_of(plan, offset), clock_offset=offset)
    between = {distribution_of(pair.start, pair.end) for pair in flow[PAIRS] if crosses(pair.start, pair.end)}
    return replace(
        rest,
        sketches={name: one for name, one in rest.sketches.items() if name not in between},
        marks={key: one for key, one in rest.marks.items() if key[0] not in between},
        settling=flow.settling if plan.relayed else 0,
    )


def _without(flow: FlowResult, gone: Collection[str]) -> FlowResult:
    """The flow with empty distributions that give the reason."""
    empty = Series(np.empty(0), np.empty(0))
    return replace(
        flow,
        summaries={
            name: Summary(name, 0, {**one.excluded, UNCOMPARED: one.n}, 0) if name in gone and one.n else one
            for name, one in flow.summaries.items()
        },
        series={name: empty if name in gone else one for name, one in flow.series.items()},
        sketches={name: one for name, one in flow.sketches.items() if name not in gone},
        marks={key: one for key, one in flow.marks.items() if key[0] not in gone},
    )
