"""By what a run was stamped, and what error a stamp has for it.

A stamp is as good as the clock it is read from and as near to what it stands for as whoever takes it. The end of a
measure says which: what is measured from application to application, or from driver to driver, is stamped where it
happens, and only the reading of the clock is uncertain. What a tap saw stands for the wire.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from wiregauge.measures.evidence import Evidence, check, parts, percent
from wiregauge.measures.results import Check, Grade

__all__ = ["RESOLUTION_NS", "STAMPS_DEGRADED", "stamp_error_ns", "stamps"]

RESOLUTION_NS = 1.0
"""Smallest step of any stamp."""
AT_WIRE_NS = 5_000.0
"""How far a software stamp of the kernel is from the wire: 1 to 5 µs as published for tuned machines, with tails of
10 to 130 µs that no bound holds. Hardware stamps within their step."""
STAMPS_DEGRADED = 0.001
RESOLVED = 1 / 3
"""The greatest share of a latency that the error of its stamps may be (RFC 7679, 3.7.3)."""


def stamp_error_ns(entry: Mapping[str, object], agents: Mapping[str, Mapping[str, object]]) -> float:
    """Error of a difference of two stamps of a run, ns: twice that of the worst of them.

    Of taps: their step, and for software stamps their distance from the wire. Of agents: the reported cost of
    reading the clock, at least the resolution.
    """
    taps = _taps(entry)
    if taps:
        return 2 * max(map(_at_tap, taps.values()))
    cost = RESOLUTION_NS
    for agent in agents.values():
        for grant in parts(agent, "grants"):
            if "clock-read" in str(grant.get("name", "")):
                match = re.search(r"(\d+(?:\.\d+)?)\s*ns", str(grant.get("detail", "")))
                cost = max(cost, float(match[1])) if match else cost
    return 2 * cost


def _taps(entry: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """By node what is known of the stamps of a tap there; empty for a run that no tap saw."""
    found = entry.get("stamps")
    named = found.items() if isinstance(found, dict) else ()
    return {str(node): stamp for node, stamp in named if isinstance(stamp, dict)}


def _at_tap(stamp: Mapping[str, object]) -> float:
    step = stamp.get("step_ns")
    error = max(float(step), RESOLUTION_NS) if isinstance(step, int | float) else RESOLUTION_NS
    return error + (AT_WIRE_NS if stamp.get("kind") == "software" else 0.0)


def stamps(run: Evidence) -> Iterator[Check]:
    """Did every message get its stamps, and of which kind are they?"""
    streams = {
        stream.get("number")
        for agent in run.agents.values()
        for stream in parts(agent, "streams")
        if stream.get("kind") == "send"
    }
    for name, title, measure in (
        ("kernel-stamps", "Kernel stamps", "driver_latency"),
        ("application-stamps", "Application stamps", "latency"),
    ):
        # The kernel stamps no send of a stream: at its rate, reading the stamps would cost more than sending.
        without = streams if measure == "driver_latency" else set()
        stamped = [flow for flow in run.flows if flow.plan.id not in without]
        summaries = [flow.summaries[measure] for flow in stamped if measure in flow.summaries]
        missing = sum(summary.excluded.get("no stamp", 0) for summary in summaries)
        arrived = missing + sum(summary.n for summary in summaries)
        share = missing / arrived if arrived else 0.0
        grade = Grade.DEGRADED if share > STAMPS_DEGRADED else Grade.NOTE if missing else Grade.OK
        if run.tapped:
            # No tap sees a driver, and one tap alone sees no latency.
            grade = Grade.OK
        yield check(
            name,
            title,
            f"at most {percent(STAMPS_DEGRADED)} of the arrived messages without",
            "does not apply: taps see the wire"
            if run.tapped
            else f"{missing} of {arrived} without"
            + (f"; {len(without)} streams have none" if without else ""),
            grade,
            f"{missing} of {arrived} arrived messages lack a {title.lower().removesuffix('s')}",
        )
    yield from _kinds(run)


def _kinds(run: Evidence) -> Iterator[Check]:
    taps = _taps(run.entry)
    soft = sorted(node for node, stamp in taps.items() if stamp.get("kind") == "software")
    kinds = ", ".join(f"{node}: {stamp.get('kind')}" for node, stamp in sorted(taps.items()))
    medians = [m for flow in run.flows if (m := flow.summaries["latency"].value("p50")) is not None and m > 0]
    error = stamp_error_ns(run.entry, run.agents)
    typical = min(medians, default=None)
    blunt = bool(taps) and typical is not None and error > typical * RESOLVED
    reason = (
        f"software stamps at {', '.join(soft)}: driver and interrupts lie between the wire and the stamp, which the "
        f"uncertainty counts as {AT_WIRE_NS / 1000:g} µs each"
    )
    if blunt:
        reason = f"latencies between taps are below the resolution of their stamps (± {error:.0f} ns)" + (
            f"; {reason}" if soft else ""
        )
    yield check(
        "stamp-kind",
        "Kind of stamps",
        "noted: software stamps that stand for the wire; degraded: an error above a third of the median latency "
        "between taps",
        kinds or ("virtual time" if run.virtual_time else _granted(run)),
        Grade.DEGRADED if blunt else Grade.NOTE if soft else Grade.OK,
        reason,
    )


def _granted(run: Evidence) -> str:
    """What the agents say of the stamps of their access points."""
    told = {
        str(grant.get("detail", ""))
        for agent in run.agents.values()
        for grant in parts(agent, "grants")
        if "-timestamps-" in str(grant.get("name", "")) and grant.get("granted") is True
    }
    return "; ".join(sorted(told)) or "not reported"
