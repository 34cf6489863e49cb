"""By what a run was timestamped, and what error a timestamp has for it.

A timestamp is as good as the clock it is read from and as near to what it stands for as whoever takes it. The end of a
measure says which: what is measured from application to application, or from driver to driver, is timestamped where it
happens, and only the reading of the clock is uncertain. What a tap saw stands for the wire. Where an interface
timestamps by a clock of its own, its times were placed on the host's by readings of both, and are uncertain by how
well that went.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wiregauge.measures.metrics.judgement import Check, Grade
from wiregauge.measures.metrics.reported import number, parts
from wiregauge.measures.metrics.uncompared import UNCOMPARED
from wiregauge.measures.validity.evidence import Evidence, check, percent, share_of, typical_latency_ns

__all__ = ["RESOLUTION_NS", "TIMESTAMPS_DEGRADED", "timestamp_error_ns", "timestamps", "wire_errors_ns"]

RESOLUTION_NS = 1.0
"""Smallest step of any timestamp."""
AT_WIRE_NS = 5_000.0
"""How far a software timestamp of the kernel is from the wire: 1 to 5 µs as published for tuned machines, with tails of
10 to 130 µs that no bound holds. Hardware timestamps within their step."""
TIMESTAMPS_DEGRADED = 0.001
RESOLVED = 1 / 3
"""The greatest share of a latency that the error of its timestamps may be (RFC 7679, 3.7.3)."""


def timestamp_error_ns(entry: Mapping[str, object], agents: Mapping[str, Mapping[str, object]]) -> float:
    """Error of a difference of two timestamps of a run, ns: twice that of the worst of them.

    Of taps: their step, and for software timestamps their distance from the wire. Of agents: the reported cost of
    reading the clock, at least the resolution.
    """
    taps = _taps(entry)
    if taps:
        return 2 * max(map(_at_tap, taps.values()))
    return 2 * max((RESOLUTION_NS, *map(_clock_read_ns, agents.values())))


def _clock_read_ns(agent: Mapping[str, object]) -> float:
    """What reading the clock costs an agent, ns; 0 where it does not say.

    Run directories of before have it in words only, as the detail of a grant: `37 ns`.
    """
    cost = agent.get("clock_read_ns")
    if isinstance(cost, int | float):
        return float(cost)
    details = (str(one.get("detail")) for one in parts(agent, "grants") if one.get("name") == "clock-read")
    numbers = (detail.removesuffix(" ns") for detail in details if detail.endswith(" ns"))
    return max((float(number) for number in numbers if number.isdecimal()), default=0.0)


def wire_errors_ns(agents: Mapping[str, Mapping[str, object]]) -> dict[str, float]:
    """By node whose interface timestamped: by how much a time at its wire may be wrong, ns.

    The uncertainty of placing the interface's clock, and the step of its timestamps.
    """
    found: dict[str, float] = {}
    for name, timestamped in _interfaces(agents):
        clock = _part(_part(timestamped, "figures"), "clock")
        error = sum(
            float(value)
            for key in ("uncertainty_ns", "step_ns")
            if isinstance(value := clock.get(key), int | float)
        )
        if clock:
            found[name] = max(found.get(name, 0.0), error)
    return found


def _interfaces(
    agents: Mapping[str, Mapping[str, object]],
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Node, and what its agent says of the timestamps of an interface."""
    for name, agent in agents.items():
        for timestamped in parts(agent, "timestamps"):
            yield name, timestamped


def _part(obj: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = obj.get(key)
    return value if isinstance(value, dict) else {}


def _taps(entry: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """By node what is known of the timestamps of a tap there; empty for a run that no tap saw."""
    found = entry.get("timestamps")
    named = found.items() if isinstance(found, dict) else ()
    return {str(node): timestamp for node, timestamp in named if isinstance(timestamp, dict)}


def _at_tap(timestamp: Mapping[str, object]) -> float:
    step = timestamp.get("step_ns")
    error = max(float(step), RESOLUTION_NS) if isinstance(step, int | float) else RESOLUTION_NS
    return error + (AT_WIRE_NS if timestamp.get("kind") == "software" else 0.0)


def timestamps(run: Evidence) -> Iterator[Check]:
    """Did every message get its timestamps, and of which kind are they?"""
    streams = {
        stream.get("number")
        for agent in run.agents.values()
        for stream in parts(agent, "streams")
        if stream.get("kind") == "send"
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
    """Timestamps of interfaces: did those come that were asked for, and could they be placed?"""
    found = [(name, told) for name, told in _interfaces(run.agents) if _own(told)]
    asked = missing = spare = unplaced = strange = steps = 0
    used: set[str] = set()
    for name, told in found:
        figures = _part(told, "figures")
        sent, came, clock = (
            _part(figures, key) for key in ("transmit_timestamps", "receive_timestamps", "clock")
        )
        asked += number(sent, "asked") + number(came, "timestamped") + number(came, "missing")
        missing += number(sent, "missing") + number(came, "missing")
        spare += number(sent, "not_asked")
        strange += number(sent, "duplicates") + number(sent, "unknown")
        unplaced += number(clock, "unplaced")
        if number(clock, "placed"):
            used.add(name)
        steps += number(clock, "steps")
    errors = wire_errors_ns(run.agents)
    # A clock that placed no timestamp made no time wrong.
    worst = max((error for name, error in errors.items() if name in used), default=None)
    share = share_of(missing + unplaced, asked)
    planted = sorted(name for name, told in found if "planted" in (told.get("transmit"), told.get("receive")))
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


def _own(told: Mapping[str, object]) -> bool:
    return any(told.get(way) in _BY_ITSELF for way in ("transmit", "receive"))


def _kinds(run: Evidence) -> Iterator[Check]:
    taps = _taps(run.entry)
    soft = sorted(node for node, timestamp in taps.items() if timestamp.get("kind") == "software")
    kinds = ", ".join(f"{node}: {timestamp.get('kind')}" for node, timestamp in sorted(taps.items()))
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
    compared = run.entry.get("passive")
    apart = [flow for flow in run.flows if flow.clock_offset is not None and not flow.plan.relayed]
    if not taken and apart and not isinstance(compared, dict):
        # As with anyone's traffic: of clocks that nobody compared, their offset and the time taken are one number.
        at_once = all(flow.clock_offset is not None and flow.clock_offset[1] == 0 for flow in apart)
        at_once = at_once and not any(flow.summaries["delay_variation"].maximum for flow in apart)
    elif isinstance(compared, dict) and not taken:
        # Residence is not known, but that all times are the same in both captures is.
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
    """By what the agents say that frames were timestamped, and which octets the times of the wire stand for."""
    told = {
        f"{name}: sent {_way(timestamped, 'transmit', 'sent')}, received {_way(timestamped, 'receive', 'received')}"
        for name, timestamped in _interfaces(run.agents)
    }
    return "; ".join(sorted(told))


def _way(timestamped: Mapping[str, object], way: str, octets: str) -> str:
    kind, octet = str(timestamped.get(way)), _part(_part(timestamped, "figures"), octets)
    taken, recorded = octet.get("timestamped"), octet.get("recorded")
    if kind not in _BY_ITSELF:
        return f"{kind} ({taken} octet)" if taken != "preamble" else f"{kind} (preamble)"
    return f"{kind} ({taken} octet, moved to {recorded})"
