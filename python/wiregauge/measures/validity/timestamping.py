"""Timestamp sources of a run, and the error of its timestamps.

A timestamp is as good as the clock it is read from and as near to its event as the place where it is taken. The end of
a measure says which: times from application to application, or from driver to driver, are timestamped where they
happen, and only the reading of the clock is uncertain. Times of taps stand for the wire. Where an interface timestamps
by a clock of its own, its times were placed on the host's by readings of both, with the uncertainty of that placement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wiregauge.measures.metrics.judgement import Check, Grade
from wiregauge.measures.metrics.uncompared import UNCOMPARED
from wiregauge.measures.validity.evidence import Evidence, check, percent, share_of, typical_latency_ns
from wiregauge.records.counters import known, sum_known
from wiregauge.records.reported import (
    AgentReport,
    InterfaceClock,
    InterfaceReport,
    Octets,
    RunEntry,
    TimestampKind,
)

__all__ = ["RESOLUTION_NS", "TIMESTAMPS_DEGRADED", "timestamp_error_ns", "timestamps", "wire_errors_ns"]

RESOLUTION_NS = 1.0
"""Smallest step of any timestamp."""
AT_WIRE_NS = 5_000.0
"""Error of a software timestamp of the kernel against the wire, ns: 1 to 5 µs as published for tuned machines, with
tails of 10 to 130 µs that no bound holds. Hardware timestamps have their step only."""
TIMESTAMPS_DEGRADED = 0.001
RESOLVED = 1 / 3
"""The greatest share of a latency that the error of its timestamps may be (RFC 7679, 3.7.3)."""


def timestamp_error_ns(entry: RunEntry, agents: Mapping[str, AgentReport]) -> float:
    """Error of a difference of two timestamps of a run, ns: twice that of the worst of them.

    Of taps: their step, and for software timestamps their distance from the wire. Of agents: the reported cost of
    reading the clock, at least the resolution.
    """
    taps = entry.timestamps
    if taps:
        return 2 * max(map(_at_tap, taps.values()))
    return 2 * max((RESOLUTION_NS, *map(_clock_read_ns, agents.values())))


def _clock_read_ns(agent: AgentReport) -> float:
    """Cost of reading an agent's clock, ns; 0 where it does not report it.

    Run directories of before have it in words only, as the detail of a grant: `37 ns`.
    """
    if agent.clock_read_ns is not None:
        return agent.clock_read_ns
    details = (grant.detail or "" for grant in agent.grants or () if grant.name == "clock-read")
    numbers = (detail.removesuffix(" ns") for detail in details if detail.endswith(" ns"))
    return max((float(number) for number in numbers if number.isdecimal()), default=0.0)


def wire_errors_ns(agents: Mapping[str, AgentReport]) -> dict[str, float]:
    """Error bound of times at the wire, ns, by nodes whose interface timestamped.

    The uncertainty of placing the interface's clock, and the step of its timestamps.
    """
    found: dict[str, float] = {}
    for name, timestamped in _interfaces(agents):
        clock = timestamped.figures.clock
        if clock is not None:
            error = (clock.uncertainty_ns or 0.0) + (clock.step_ns or 0.0)
            found[name] = max(found.get(name, 0.0), error)
    return found


def _interfaces(agents: Mapping[str, AgentReport]) -> Iterator[tuple[str, InterfaceReport]]:
    """Node and timestamp report of each interface."""
    for name, agent in agents.items():
        for timestamped in agent.timestamps:
            yield name, timestamped


def _at_tap(timestamp: TimestampKind) -> float:
    step = timestamp.step_ns
    error = max(step, RESOLUTION_NS) if step is not None else RESOLUTION_NS
    return error + (AT_WIRE_NS if timestamp.kind == "software" else 0.0)


def timestamps(run: Evidence) -> Iterator[Check]:
    """Did every message get its timestamps, and of which kind are they?"""
    streams = {
        stream.number for agent in run.agents.values() for stream in agent.streams if stream.kind == "send"
    }
    for name, title, measure in (
        ("kernel-timestamps", "Kernel timestamps", "driver_latency"),
        ("application-timestamps", "Application timestamps", "latency"),
    ):
        # The kernel timestamps no send of a stream: at its rate, reading the timestamps would cost more than sending.
        without = streams if measure == "driver_latency" else set()
        timestamped = [flow for flow in run.flows if flow.plan.id not in without]
        summaries = [flow.summaries[measure] for flow in timestamped if measure in flow.summaries]
        missing = sum(summary.excluded.get("no timestamp", 0) for summary in summaries)
        arrived = missing + sum(summary.n + summary.excluded.get(UNCOMPARED, 0) for summary in summaries)
        share = share_of(missing, arrived)
        grade = Grade.DEGRADED if share > TIMESTAMPS_DEGRADED else Grade.NOTE if missing else Grade.OK
        if run.tapped:
            # No tap sees a driver, and one tap alone sees no latency.
            grade = Grade.OK
        yield check(
            name,
            title,
            f"at most {percent(TIMESTAMPS_DEGRADED)} of the arrived messages without",
            f"{missing} of {arrived} without" + (f"; {len(without)} streams have none" if without else ""),
            grade,
            f"{missing} of {arrived} arrived messages lack a {title.lower().removesuffix('s')}",
            nothing="taps see the wire" if run.tapped else "" if arrived else "nothing arrived",
        )
    yield _hardware(run)
    yield from _kinds(run)
    if run.tapped:
        yield _transit(run)


_BY_ITSELF = ("hardware", "planted")
"""Kinds of timestamps that are of a clock of the interface's own."""


def _hardware(run: Evidence) -> Check:
    """Checks that requested hardware timestamps came, and that they could be placed on the host's clock."""
    found = [(name, told) for name, told in _interfaces(run.agents) if _own(told)]
    asked = missing = spare = unplaced = strange = steps = 0
    used: set[str] = set()
    for name, told in found:
        sent, came = told.figures.transmit_timestamps, told.figures.receive_timestamps
        clock = told.figures.clock or InterfaceClock()
        asked += sum_known((sent.asked, came.timestamped, came.missing))
        missing += sum_known((sent.missing, came.missing))
        spare += known(sent.not_asked)
        strange += sum_known((sent.duplicates, sent.unknown))
        unplaced += known(clock.unplaced)
        if clock.placed:
            used.add(name)
        steps += known(clock.steps)
    errors = wire_errors_ns(run.agents)
    # A clock that placed no timestamp made no time wrong.
    worst = max((error for name, error in errors.items() if name in used), default=None)
    share = share_of(missing + unplaced, asked)
    planted = sorted(name for name, told in found if "planted" in (told.transmit, told.receive))
    notes = [
        text
        for wrong, text in (
            (missing, f"{missing} of {asked} timestamps never came"),
            (unplaced, f"{unplaced} could not be placed"),
            (strange, f"{strange} came twice or unasked"),
            (steps, f"the clock of an interface, or the host's beside it, was set {steps} times"),
            (spare, f"{spare} sends without, because the interface holds few at a time"),
            (
                bool(planted),
                f"planted at {', '.join(planted)}: a test facility, and no measurement of a wire",
            ),
        )
        if wrong
    ]
    grade = (
        Grade.DEGRADED
        if share > TIMESTAMPS_DEGRADED or steps or planted
        else Grade.NOTE
        if notes
        else Grade.OK
    )
    return check(
        "hardware-timestamps",
        "Timestamps of interfaces",
        f"at most {percent(TIMESTAMPS_DEGRADED)} of the requested ones missing, no clock set; noted: sends without",
        f"{asked - missing - unplaced} of {asked}"
        + (f", each ± {worst:.0f} ns" if worst is not None else "")
        + "".join(f"; {note}" for note in notes),
        grade,
        f"hardware timestamps: {'; '.join(notes)}",
        nothing="" if asked else "no hardware timestamps",
    )


def _own(told: InterfaceReport) -> bool:
    return told.transmit in _BY_ITSELF or told.receive in _BY_ITSELF


def _kinds(run: Evidence) -> Iterator[Check]:
    taps = run.entry.timestamps or {}
    soft = sorted(node for node, timestamp in taps.items() if timestamp.kind == "software")
    kinds = ", ".join(f"{node}: {timestamp.kind}" for node, timestamp in sorted(taps.items()))
    error = timestamp_error_ns(run.entry, run.agents)
    typical = typical_latency_ns(run.flows)
    blunt = bool(taps) and typical is not None and share_of(error, typical) > RESOLVED
    reason = (
        f"software timestamps at {', '.join(soft)}: driver and interrupts lie between the wire and the "
        "timestamp, which the "
        f"uncertainty counts as {AT_WIRE_NS / 1000:g} µs each"
    )
    if blunt:
        reason = f"latencies between taps are below the resolution of their timestamps (± {error:.0f} ns)" + (
            f"; {reason}" if soft else ""
        )
    yield check(
        "timestamp-kind",
        "Kind of timestamps",
        "noted: software timestamps used as wire times; degraded: an error above a third of the median latency "
        "between taps",
        kinds or _granted(run),
        Grade.DEGRADED if blunt else Grade.NOTE if soft else Grade.OK,
        reason,
        nothing="virtual time" if run.virtual_time else "" if kinds or _granted(run) else "nobody reports it",
    )


def _transit(run: Evidence) -> Check:
    """Whether anything took time between taps: nothing is in two places at once."""
    taken = [latency for flow in run.flows if (latency := flow.summaries["latency"]).n]
    compared = run.entry.passive
    apart = [flow for flow in run.flows if flow.clock_offset is not None and not flow.plan.relayed]
    if not taken and apart and compared is None:
        # With uncompared clocks, their offset and the transit time cannot be separated.
        at_once = all(flow.clock_offset is not None and flow.clock_offset[1] == 0 for flow in apart)
        at_once = at_once and not any(flow.summaries["delay_variation"].maximum for flow in apart)
    elif compared is not None and not taken:
        # Residence is not known, but whether all times are equal in both captures is.
        flows = [flow for flow in compared["flows"] if flow.get("varies_ps") is not None]
        at_once = bool(flows) and compared["offset_ps"] == 0 and not any(flow["varies_ps"] for flow in flows)
    else:
        at_once = bool(taken) and all(latency.minimum == latency.maximum == 0 for latency in taken)
    return check(
        "transit-time",
        "Frames took time between the taps",
        "not every time exactly 0",
        "every one is exactly 0 ns" if at_once else "not every one is 0",
        Grade.INVALID if at_once else Grade.OK,
        "every frame has the same time at both taps, and no device takes no time at all: the captures are of one "
        "place, or one was made from the other, or the timestamps are too coarse to tell; capture before and behind "
        "the device",
        nothing="" if taken or at_once else "no time is known",
    )


def _granted(run: Evidence) -> str:
    """The timestamp sources that agents report, and the octets to which wire times refer, as a clause."""
    told = {
        f"{name}: sent {_way(timestamped.transmit, timestamped.figures.sent)}, "
        f"received {_way(timestamped.receive, timestamped.figures.received)}"
        for name, timestamped in _interfaces(run.agents)
    }
    return "; ".join(sorted(told))


def _way(kind: str | None, octet: Octets) -> str:
    taken, recorded = octet.timestamped, octet.recorded
    if kind not in _BY_ITSELF:
        return f"{kind} ({taken} octet)" if taken != "preamble" else f"{kind} (preamble)"
    return f"{kind} ({taken} octet, moved to {recorded})"
