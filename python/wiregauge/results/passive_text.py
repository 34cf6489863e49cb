"""Results of matching frames by their content, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wiregauge.measures.definitions.units import count_of
from wiregauge.measures.validity.clock_relation import related
from wiregauge.measures.validity.matched import contradictions, outside, unfounded, window

__all__ = ["count", "sentences", "spread", "told", "us", "varies", "window"]

_PS_PER_US = 1_000_000
_NAMED = 3


def varies(flow: Mapping[str, Any]) -> str:
    """The spread of residence times of a flow, µs; `-` where nothing came through."""
    between = flow.get("varies_ps")
    return us(between) if between is not None else "-"


def sentences(compared: Mapping[str, Any]) -> list[str]:
    """Caveats that a reader must know before believing a figure; `[]` where nothing is open."""
    flows = compared["flows"]
    ambiguous, edge = (sum(flow[key] for flow in flows) for key in ("ambiguous", "at_edge"))
    found = []
    if compared["offset_uncertainty_ps"] is None:
        found.append(
            "the offset of the clocks is not known, so that no residence time is, only how they vary; if the least is "
            "0 and frames came by the first capture before the second, the second clock shows "
            f"{us(compared['offset_ps'])} us more than the first (--max-clock-offset says how far clocks are apart)"
        )
    if ambiguous:
        found.append(
            f"{ambiguous} frames could have been exchanged with frames of the same content: they are unknown, not lost"
        )
    if edge:
        found.append(f"{edge} frames came so near to an end of the other capture that nobody knows their end")
    found += [said for said in (unfounded(compared),) if said]
    if compared["compared_bytes"] is not None:
        found.append(
            f"a capture kept no more than {compared['compared_bytes']} B of some frames: longer ones were compared by "
            "their first so many, and those that differ beyond count as the same"
        )
    borrowed = [flow for flow in flows if flow.get("recurring_ps", 0) > compared["greatest_ps"]]
    if borrowed:
        found.append(
            f"of {count_of(len(borrowed), 'flow')} too few frames have a content of their own to tell how long the "
            f"device keeps them: recurring content was looked for within {us(borrowed[0]['recurring_ps'])} us "
            "(--max-residence says another)"
        )
    found += related(compared)[1]
    found += [f"{each.seen}: {each.cause}" for each in (outside(compared),) if each is not None]
    found += contradictions(compared)
    count, frames = compared["uncrossed_all"]
    if count:
        named = "; ".join(flow["name"] for flow in compared["uncrossed"][:_NAMED])
        found.append(
            f"{count} flows with {frames} frames are in one capture only and are not judged, "
            f"whether filtered, local or lost as a whole: {named}{'; ...' if count > _NAMED else ''}"
        )
    return found


def told(compared: Mapping[str, Any], most: int = 12) -> Iterator[str]:
    """Lines for a terminal: the flows with most frames, then the caveats."""
    flows: Sequence[Mapping[str, Any]] = compared["flows"]
    for flow in flows[:most]:
        times = flow["residence"]
        residence = (
            f"; residence us: median {spread(times['median'])}, greatest {spread(times['greatest'])} (n {times['n']})"
            if times
            else f"; residence not known, varies by {varies(flow)} us (n {flow['matched']})"
            if flow.get("varies_ps") is not None
            else ""
        )
        yield (
            f"flow {flow['flow']}: {flow['name']}, {flow['from']} to {flow['to']}: {flow['frames']} frames, "
            f"{count(flow['lost'])} lost, {count(flow['copies'])} copies, {flow['overtaken']} overtaken, "
            f"{flow['ambiguous']} ambiguous{residence}"
        )
    if len(flows) > most:
        yield f"{len(flows) - most} more flows are in the report"
    yield f"frames were looked for {window(compared)}"
    for sentence in sentences(compared):
        yield f"note: {sentence}"


def us(ps: float) -> str:
    """Picoseconds as microseconds."""
    return f"{ps / _PS_PER_US:.3f}"


def spread(between: Sequence[float]) -> str:
    """A time in us, or the two between which it lies."""
    least, greatest = between
    return us(least) if least == greatest else f"{us(least)} to {us(greatest)}"


def count(between: Sequence[int]) -> str:
    """A number, or the two between which it lies."""
    least, most = between
    return str(least) if least == most else f"{least} to {most}"
