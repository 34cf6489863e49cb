"""The error of a played network: its lateness compared with the judged figures, and its own losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import inf
from typing import Final

from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.measures.flow_measures import GATES
from wiregauge.measures.metrics.judgement import Check, Grade
from wiregauge.measures.metrics.live_network import RARE, NetworkResult, no_network
from wiregauge.measures.validity.evidence import (
    LOST_INSIDE,
    Evidence,
    check,
    few,
    lost_inside,
    own_fault,
    percent,
    share_of,
    typical_latency_ns,
)
from wiregauge.measures.validity.streams import dropped_text

__all__ = ["OF_LATENCY", "OF_LIMIT", "foreign_text", "network_error", "network_error_text"]

OF_LIMIT: Final = 0.10
"""Share of the smallest latency limit that the network's lateness may take before it may decide the limit."""
OF_LATENCY: Final = 1 / 3
"""Share of the median latency that may be error, where there is no limit (RFC 7679, 3.7.3)."""
FOREIGN_DEGRADED: Final = 0.01
"""Share of the run for which foreign frames may occupy lines: as much as background load may be off by."""
_TIMES: Final = ("latency", "rtt", "return_latency")


def network_error(run: Evidence) -> Iterator[Check]:
    """Checks lateness and losses of frames where an agent plays the network; else a check that says why not."""
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
    yield _foreign(run, network, nothing)
    lost = network.unseen
    too_long = sum(one.frames for one in network.overlong)
    yield check(
        "network-lost",
        "Frames lost by the network itself",
        LOST_INSIDE,
        f"{network.lost - too_long} without room, {lost - network.lost} refused by the kernel"
        + (f", {too_long} too long for a line" if too_long else ""),
        lost_inside(run, lost),
        f"the network itself lost {count_of(lost, 'frame')}, which no device of the test did{own_fault(run)}"
        + _overlong(network),
        nothing=nothing,
    )


def _windows(run: Evidence, nothing: str) -> Check:
    """Whether hosts were handed their frames before the gates that let them go had closed behind them."""
    gates = [flow for flow in run.flows if flow[GATES]]
    gated = [flow for flow in gates if "released_late" in flow[GATES]]
    late = sum(flow[GATES]["released_late"] for flow in gated)
    came = sum(flow[GATES]["released"] for flow in gated)
    if not nothing:
        unknown = "when single frames came to their hosts was not stored, or not of all"
        nothing = "no gates let frames go" if not gates else unknown if not gated else ""
        nothing = nothing or ("" if came else "no gate let frames go to a host")
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


def _overlong(network: NetworkResult) -> str:
    """A clause on frames that an offload has merged: their hosts, and how to switch it off."""
    if not network.overlong:
        return ""
    told = few(
        f"{count_of(one.frames, 'frame')} of up to {one.longest} B from {one.end_system}"
        for one in network.overlong
    )
    interface = network.overlong[0].interface
    return (
        f"; of these an offload had put {told} together: `ethtool -K {interface} gro off lro off`, and at the end "
        "system `tso off gso off`"
    )


def _foreign(run: Evidence, network: NetworkResult, nothing: str) -> Check:
    """Checks the time on lines that foreign frames took, which the test did not have."""
    told = foreign_text(network)
    rows = network.foreign or ()
    length = run.plan.warm_up_ns + run.plan.duration_ns
    part = share_of(sum(one.line_ns for one in rows), length)
    took = f" in {percent(part)} of its time" if rows else ""
    return check(
        "network-foreign",
        "The network had frames of the test alone",
        f"none; degraded where they had lines for more than {percent(FOREIGN_DEGRADED)} of the run",
        told + took,
        Grade.DEGRADED if part > FOREIGN_DEGRADED else Grade.NOTE if rows else Grade.OK,
        f"frames that are not of the test went over the network: {told}{took}",
        nothing=nothing or ("" if network.foreign is not None else "nobody counted them"),
    )


def foreign_text(network: NetworkResult) -> str:
    """A clause on foreign frames: how many arrived, and what became of them."""
    rows = network.foreign or ()
    if not rows:
        return "none of others"
    came = few(
        f"{one.frames} {one.kind}" + (f" from {one.end_system}" if one.end_system else "")
        for one in sorted(rows, key=lambda one: -one.frames)
    )
    dropped: Counter[str] = Counter()
    for one in rows:
        dropped.update(one.dropped)
    line = sum(one.line_ns for one in rows)
    delivered = sum(one.delivered for one in rows)
    fate = [
        f"{delivered} {'copy' if delivered == 1 else 'copies'} handed to end systems",
        *([dropped_text(dropped)] if dropped.total() else []),
    ]
    return f"{came}; {', '.join(fate)}; they had lines for {duration(line)}"


def network_error_text(network: NetworkResult) -> str:
    """A clause on the network's reported lateness."""
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
    """The time that the network's error is compared with, ns, None where unknown; its name; the permitted share."""
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
