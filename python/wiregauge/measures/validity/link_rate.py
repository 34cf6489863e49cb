"""Checks whether ports send as fast as their links, from the frames waiting to be sent and the frames that left.

A frame that waits from the departure of the one before it until its own proves that a port on its way was busy all the
time. A port that is busy sends as its link does; and all frames that leave a port of first come, first served between
two frames have come between them. So the time between two departures is no longer than the frames that came meanwhile
take on the line. And no frame is behind a line sooner than the line takes for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.measures.metrics.flow_plan import RunPlan
from wiregauge.measures.metrics.judgement import Check, FlowResult, Grade
from wiregauge.measures.metrics.line_time import ROUNDED_NS
from wiregauge.measures.metrics.port_plan import PortPlan, wire_bits
from wiregauge.measures.validity.evidence import Evidence, check, few, graded, percent, share_of
from wiregauge.records.counters import known
from wiregauge.records.reported import AgentReport

__all__ = ["link_rates"]

Floats = NDArray[np.float64]

SLOW_INVALID: Final = 0.10
"""Share of the measured time in which ports that were busy sent nothing."""
_OF_STRETCH: Final = 0.02
_OF_HOST_NS: Final = 5e6
"""Tolerances for ports of real frames, as a share of the stretch and in ns: their timers and host are not exact."""
_SIGMAS: Final = 6.0


class _Wait(Struct, frozen=True):
    """An interval in which a message waited at a port: by `idle_ns` longer than the arriving frames take on its
    link."""

    flow: str
    ports: str
    begin_s: float
    lasted_ns: float
    idle_ns: float
    allowed_ns: float

    @property
    def text(self) -> str:
        """The wait as text for people."""
        return (
            f"flow {self.flow} waited for {duration(self.lasted_ns)} from {self.begin_s:.4g} s on, in which "
            f"{self.ports} had {duration(self.lasted_ns - self.idle_ns)} to send"
        )


def link_rates(run: Evidence) -> Iterator[Check]:
    """The two checks on link rates; a check that does not apply gives the reason."""
    if run.tapped:
        return
    asked = [flow for flow in run.flows if _can_be_asked(run, flow)]
    waits = [_waits(run, flow) for flow in asked]
    looked = sum(bool(found) for found in waits)
    idle = [one for found in waits for one in found if one.idle_ns > one.allowed_ns]
    worst = max(idle, key=lambda one: one.idle_ns, default=None)
    share = share_of(worst.idle_ns, run.plan.duration_ns) if worst is not None else 0.0
    yield check(
        "link-rate",
        "Busy ports sent as fast as their links",
        f"frames that wait leave as the link's rate demands; above {percent(SLOW_INVALID)} of the run idle is invalid",
        few(one.text for one in idle) or f"{looked} of {count_of(len(run.flows), 'flow')} looked at",
        max(Grade.DEGRADED, graded(share, 0.0, SLOW_INVALID)) if worst is not None else Grade.OK,
        f"a port did not keep the rate of its link ({worst.text if worst is not None else ''}): waits are of the bench "
        "and not of the network; take a lower rate or load, a machine with time to spare, or the simulator",
        nothing=""
        if looked
        else "no message waited behind another at a port"
        if asked
        else "no port that sends whatever waits, in order",
    )
    timed = [(flow, flow.line_time) for flow in run.flows if flow.line_time is not None]
    fast = [
        f"flow {flow.plan.name}: {found.text}"
        for flow, found in timed
        if found.too_fast and not found.shown_by
    ]
    yield check(
        "line-time",
        "No frame was faster than its links",
        "latency and round trip at least what the links on the way take for a frame, there and back",
        few(fast) or f"{len(timed)} of {count_of(len(run.flows), 'flow')} looked at",
        Grade.DEGRADED if fast else Grade.OK,
        f"links did not take the time of their rate ({few(fast)}): latencies miss that part and every wait behind "
        "other frames, and counts what would have been lost there, so no limit is kept that either could break; take "
        "links as fast as this bench carries, or the simulator",
        nothing="" if timed else "no time of a message whose size, links and clocks are known",
    )


def _can_be_asked(run: Evidence, flow: FlowResult) -> bool:
    """Whether only a port can have delayed its messages, and its ports hold nothing back."""
    plan = flow.plan
    if plan.relayed or plan.multicast or len(plan.ways) != 1 or flow.sampled is not None or run.wrong_clocks:
        return False
    if run.plan.disturbances or plan.payload is None or not _ports(run.plan, flow):
        return False
    return all(leave in run.plan.ports for leave in plan.leaves[1:])


def _ports(plan: RunPlan, flow: FlowResult) -> list[PortPlan]:
    """Output ports of switches on the way; waiting in the host is not between the drivers."""
    return [plan.ports[leave] for leave in flow.plan.leaves[1:] if leave in plan.ports]


def _waits(run: Evidence, flow: FlowResult) -> list[_Wait]:
    """The stretches in which messages of the flow waited at a port behind one another."""
    series = flow.series.get("driver_latency") or flow.series.get("latency")
    if series is None or len(series.t) < 2:
        return []
    order = np.argsort(series.t, kind="stable")
    sent, took = series.t[order] * 1e9, series.value[order]
    came = sent + took
    least = float(took.min())
    # The next message is at the port before this one has left it: a stretch without a moment for the port to rest.
    joined = np.concatenate([sent[1:] + least < came[:-1], [False]])
    edges = np.flatnonzero(np.diff(np.concatenate([[False], joined]).astype(np.int8)))
    found = [
        _of_stretch(run, flow, sent[first], came[first], came[last])
        for first, last in zip(edges[::2], edges[1::2], strict=False)
    ]
    return [one for one in found if one is not None]


def _of_stretch(run: Evidence, flow: FlowResult, since: float, begin: float, end: float) -> _Wait | None:
    lasted = float(end - begin)
    ports = _ports(run.plan, flow)
    busy = [1e9 * _offered(run, port, since, end) / port.rate_bps for port in ports]
    idle = lasted - max(busy)
    if not np.isfinite(idle):  # nobody knows what came
        return None
    allowed = ROUNDED_NS
    if run.clock_uncertainty_ns is None:  # waits are told by clocks that nobody compared
        return None
    if not run.virtual_time:
        stolen = max((known(agent.steal_ns) for agent in run.agents.values()), default=0)
        allowed = _OF_HOST_NS + _OF_STRETCH * lasted + stolen + 2 * run.clock_uncertainty_ns
    return _Wait(
        flow.plan.name, " and ".join(port.name for port in ports), begin / 1e9, lasted, idle, allowed
    )


def _offered(run: Evidence, port: PortPlan, since: float, until: float) -> float:
    """The most bits that can have arrived at a port between two instants, ns."""
    bits = 0.0
    late = _latest_ns(run.agents)
    for flow in run.flows:
        if flow.plan.id not in port.flows:
            continue
        if flow.plan.payload is None or (sends := flow.series.get("send_error")) is None:
            return np.inf
        # A message may have waited elsewhere before, for as long as its own latency.
        waited = _longest(flow)
        times = sends.t * 1e9
        bits += wire_bits(flow.plan.payload) * float(np.sum((times > since - waited) & (times <= until)))
    for load in port.loads:
        length = until - since + port.loads_wait_ns + late
        bursts = length / load.interval_ns + 1
        if load.random:
            bursts += _SIGMAS * float(np.sqrt(bursts))
        bits += load.bits * (np.floor(bursts) + 1)
    return bits


def _longest(flow: FlowResult) -> float:
    """The largest variable part of the time from sending to the last port, ns."""
    summary = flow.summaries["latency"]
    return 0.0 if summary.maximum is None or summary.minimum is None else summary.maximum - summary.minimum


def _latest_ns(agents: Mapping[str, AgentReport]) -> float:
    """The largest lateness of background load, ns."""
    loads = (stream for agent in agents.values() for stream in agent.streams if stream.kind == "inject")
    found = (load.figures.send_error_ns.max for load in loads)
    return max((most for most in found if most is not None), default=0.0)
