"""The error of a network that is played: how late was it beside what the test judges, and what did it lose itself?"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Final

from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.measures.metrics.live_network import RARE, NetworkResult, no_network
from wiregauge.measures.metrics.results import Check, Grade
from wiregauge.measures.validity.evidence import (
    LOST_INSIDE,
    Evidence,
    check,
    lost_inside,
    own_fault,
    percent,
    share_of,
    typical_latency_ns,
)

__all__ = ["OF_LATENCY", "OF_LIMIT", "network_error", "network_error_text"]

OF_LIMIT: Final = 0.10
"""Of the smallest limit on a latency: what lateness of the network may take of it before it may be what decides."""
OF_LATENCY: Final = 1 / 3
"""Of the median latency, where no limit is: the greatest share of a time that may be error (RFC 7679, 3.7.3)."""
_TIMES: Final = ("latency", "rtt", "return_latency")


def network_error(run: Evidence) -> Iterator[Check]:
    """How late frames were, and whether any were lost, where an agent is the network; else what stands in its place."""
    if not run.switches:
        return
    nothing = no_network(run.switches, run.network)
    network = run.network or NetworkResult()
    against, what, share = _held_against(run)
    error = network.error_ns
    told = network_error_text(network)
    part = share_of(error, against)
    size = f"{part:.0f} times" if 2 <= part < inf else f"{percent(part)} of"
    beside = f", {size} {what}" if against is not None else ""
    yield check(
        "network-error",
        "Frames left the network when the model wanted",
        f"p99.9 at most {percent(OF_LIMIT)} of the smallest limit on a latency; without one, a third of the median "
        "latency",
        told + beside,
        Grade.DEGRADED if part > share else Grade.OK,
        f"the network was late by {duration(error)} for one frame in a thousand{beside}: times may be its own, "
        "not the modelled network's",
        nothing=nothing,
    )
    yield _windows(run, nothing)
    lost = network.unseen
    yield check(
        "network-lost",
        "Frames lost by the network itself",
        LOST_INSIDE,
        f"{network.lost} without room, {lost - network.lost} refused by the kernel",
        lost_inside(run, lost),
        f"the network itself lost {count_of(lost, 'frame')}, which no device of the test did{own_fault(run)}",
        nothing=nothing,
    )


def _windows(run: Evidence, nothing: str) -> Check:
    """Whether hosts were handed their frames before the gates that let them go had closed behind them."""
    gated = [flow for flow in run.flows if "released_late" in flow.gates]
    late = sum(flow.gates["released_late"] for flow in gated)
    came = sum(flow.counts["delivered"] for flow in gated)
    if not nothing and not gated:
        nothing = "no gates let frames go"
    told = (
        f"{late} of {count_of(came, 'message')} that gates let go came to their hosts when these had closed"
    )
    return check(
        "network-windows",
        "Frames came to hosts within the windows of their gates",
        f"at most one message in {1 / RARE:.0f} when the gate had closed behind it",
        told,
        Grade.OK if not late else Grade.DEGRADED if late > RARE * came else Grade.NOTE,
        f"{told}: the windows are shorter than the instants that this host keeps; wider ones, a core for the "
        "network alone, or a simulation keep them",
        nothing=nothing,
    )


def network_error_text(network: NetworkResult) -> str:
    """What the network says of itself, in a clause."""
    worst = network.worst
    came = f"{network.moved} of {count_of(network.frames, 'frame')} came late into the model"
    if network.moved:
        came += f", by {duration(network.most_moved_ns)} at most"
    if worst is None:
        return f"no frame left; {came}"
    late = ", ".join(
        f"{duration(one.value)} at {name}" for name, one in worst.shown.items() if one.value is not None
    )
    late = ", ".join(part for part in (late, f"{duration(worst.max_ns or 0.0)} at most") if part)
    return f"late by {late} (to {worst.end_system}, n = {worst.frames}); {came}"


def _held_against(run: Evidence) -> tuple[float | None, str, float]:
    """What the network's error is held against, ns: None where nothing is known; in words; the share it may have."""
    flows = {flow.plan.id for flow in run.flows}
    limits = [
        limit
        for limit in run.limits
        if limit.bound == "at-most"
        and limit.measure.partition(".")[0] in _TIMES
        and (limit.flow is None or limit.flow in flows)
    ]
    if limits:
        least = min(limits, key=lambda limit: limit.value)
        return least.value, f"the limit {least.measure} at most {least.written}", OF_LIMIT
    return typical_latency_ns(run.flows), "the median latency", OF_LATENCY
