"""Checks, by frames that contradict it, that captures are of before and behind a device, with clocks as stated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from wiregauge.measures.metrics.judgement import Check, Grade
from wiregauge.measures.validity.clock_relation import option, related
from wiregauge.measures.validity.evidence import Evidence, check

_PS_PER_S = 10**12
_BY_ITSELF = "import what lies between two such instants by itself (editcap -A FROM -B TO IN OUT)"


def matched(run: Evidence) -> Iterator[Check]:
    """Checks of a run whose frames were matched by their content; none for other runs."""
    compared = run.entry.passive
    if compared is None:
        return
    found = outside(compared)
    yield check(
        "matching-window",
        "Frames of both captures matched",
        f"none on both sides outside what was looked for: {window(compared)}",
        found.seen if found is not None else "none outside",
        Grade.INVALID if found is not None else Grade.OK,
        f"{found.seen}: {found.cause}" if found is not None else "",
    )
    strangers = unfounded(compared)
    yield check(
        "matching-origins",
        "Frames behind the device were before it",
        "all that could have been seen there",
        strangers or "all were",
        Grade.DEGRADED if strangers else Grade.OK,
        strangers,
    )
    grade, relation = related(compared)
    yield check(
        "clock-relation",
        "The clocks are related as stated, and none was set",
        "noted: steps below 10 ms that a device may make; degraded: another relation, found from the frames",
        "; ".join(relation) or "as stated, or by a constant",
        grade,
        "; ".join(relation),
    )
    against = contradictions(compared)
    yield check(
        "matching-order",
        "The captures are of before and behind a device",
        "no frame speaks against it",
        "; ".join(against) or "none does",
        Grade.INVALID if against else Grade.OK,
        "; ".join(against),
    )


def unfounded(compared: Mapping[str, Any]) -> str:
    """A reason from frames behind the device that were not before it, away from the edges; empty without any."""
    appeared, changed = (
        sum(flow[key] for flow in compared["flows"]) for key in ("appeared", "perhaps_changed")
    )
    if not appeared:
        return ""
    return (
        f"{appeared} frames behind the device have no origin before it"
        + (
            f"; {changed} of them could be lost frames whose content was changed (--ignore says how)"
            if changed
            else ""
        )
        + ": the first capture lacks frames, or the device changes or makes some, so that what was sent and lost is of "
        "the frames that it has"
    )


class Outside(Struct, frozen=True):
    """Frames that are in both captures, but not where they were looked for: how many, and why that may be."""

    seen: str
    cause: str


def window(compared: Mapping[str, Any]) -> str:
    """The time within which frames were searched, and its origin, as a clause."""
    greatest = option(compared["greatest_ps"], exact=True)
    if compared["greatest_is_said"]:
        return f"within {greatest} (--max-residence)"
    if compared.get("relation", {}).get("ground") == "slow":
        return f"within {greatest} (the longest of frames with a content of their own; --max-residence says another)"
    if compared.get("greatest_is_most"):
        return f"within {greatest} (the longest without --max-residence)"
    return (
        f"within {greatest} (twice the longest of {compared['unique']} frames of a content of their own; "
        "--max-residence says another)"
    )


def outside(compared: Mapping[str, Any]) -> Outside | None:
    """Frames seen on both sides and outside that window; None where there are none."""
    found = compared.get("outside") or {}
    unique, recurring = found.get("unique", 0), found.get("recurring", 0)
    if not unique and not recurring:
        return None
    seen = f"{unique + recurring} frames are in both captures, but not {window(compared)}; they are unknown, not lost"
    least, greatest = found["apart_ps"] or (0, 0)
    first, last = (f"{ps / _PS_PER_S:.3f} s" for ps in found["came_ps"] or (0, 0))
    when = f"(they came {first} to {last} after the first frame)"
    early = found["before"]
    causes = []
    if unique > early or not unique:
        late = f"up to {option(greatest)} later " if unique else ""
        cure = f"--max-residence {option(greatest)}" if unique else "a longer --max-residence"
        causes.append(
            f"{unique - early or recurring} came {late}{when}: either the device keeps frames so long, then give "
            f"{cure}, or a clock was set or drifts, then "
            f"{_BY_ITSELF}"
        )
    if early:
        causes.append(
            f"{early} seem to leave up to {option(-least)} before they came {when}: "
            + _clocks_or_networks(compared, -least)
        )
    return Outside(seen, "; ".join(causes))


def _clocks_or_networks(compared: Mapping[str, Any], least: int) -> str:
    networks = (
        "the captures are of two networks that carry the same frames (A and B of a redundant pair), which are no "
        "before and behind: import two captures of one network, before and behind a device"
    )
    if compared.get("one_file"):
        return (
            "the two interfaces of the file have clocks of their own that differ, or one was set: name each in a file "
            f"of its own with --max-clock-offset {option(least)}; or {networks}"
        )
    if compared["offset_uncertainty_ps"] is None:
        return f"a clock was set or drifts: {_BY_ITSELF}; or {networks}"
    return (
        "the clocks are farther apart than --max-clock-offset and --clock-offset say, or one was set: correct these "
        f"(--max-clock-offset {option(least)} covers it), or leave them out to have the offset estimated; "
        f"or {networks}"
    )


def contradictions(compared: Mapping[str, Any]) -> list[str]:
    """Further contradictions to the captures being of before and behind a device, each with the cure."""
    against = compared.get("against") or {}
    found = []
    if against.get("all_backwards"):
        found.append(
            "every frame was seen first in the capture that was named second: name them in the other order, or correct "
            "--clock-offset (--max-clock-offset)"
        )
    if count := against.get("one_way_conversations", 0):
        found.append(
            f"{count} flows and the answers to them seem to pass the device in the same direction, which one of the "
            "two cannot: the clocks are farther apart than was said; leave --clock-offset and --max-clock-offset out "
            "to have the offset estimated, or correct them"
        )
    if doubled := against.get("doubled", 0):
        found.append(
            f"{doubled} of {against['contents']} contents are before the device exactly twice as often as behind it, "
            "as where a mirror port copies frames as they come and as they go: what was lost cannot be told; remove "
            "the copies (editcap -D 100 IN OUT)"
        )
    return found
