"""The relation between the clocks of two captures, as their frames show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any

from wiregauge.measures.metrics.judgement import Grade

__all__ = ["option", "related"]

_PS_PER_S = 10**12
_UNITS = (("s", _PS_PER_S), ("ms", 10**9), ("us", 10**6), ("ns", 1000))
_DIGITS = 2
"""Significant digits of a time proposed as an option, rounded up so that it suffices."""
_PLAIN_PS = 10**10
"""Least step that stands out so far that clocks with it are not as stated."""
_STEPS_NAMED = 3


def related(compared: Mapping[str, Any]) -> tuple[Grade, list[str]]:
    """The grade of the relation, and what the frames show beyond what was stated, each with its uncertainty."""
    relation = compared.get("relation")
    if not relation:
        return Grade.OK, []
    ground, pairs = relation["ground"], relation["pairs"]
    steps, segments = relation["steps"], relation["segments"]
    found = []
    if ground == "overruled":
        found.append(_overruled(compared, relation))
    elif ground == "slow":
        found.append(
            f"{relation['contradicting']} of {pairs} frames with a content of their own stayed for longer than 1 s, "
            "and none speaks against the clocks: the device keeps frames for so long, or a clock is wrong by percents"
        )
    elif relation["leap"]:
        found.append(f"the offset between the clocks has a likely cause: {relation['leap']}")
    found += _steps(steps)
    drifts = [segment for segment in segments if segment["drift_ppb"]]
    if drifts:
        found.append(
            f"the second clock drifts against the first: {', '.join(_drift(one) for one in drifts)}; this was removed"
        )
    if any(step["removed"] for step in steps):
        found.append(
            "the parts before and after a step are aligned by their shortest residences, from "
            f"{', '.join(str(segment['pairs']) for segment in segments)} frames"
        )
    if found and ground in ("frames", "overruled"):
        found.append(f"a step of less than {option(relation['visible_ps'])} would not be seen")
    is_other = ground == "overruled" or drifts or any(step["removed"] for step in steps)
    is_plain = any(step["is_clock"] and abs(step["by_ps"]) >= _PLAIN_PS for step in steps)
    grade = Grade.DEGRADED if is_other or is_plain else Grade.NOTE if found else Grade.OK
    return grade, found


def _overruled(compared: Mapping[str, Any], relation: Mapping[str, Any]) -> str:
    """Another relation than the stated one, and the option that states it."""
    offset, within = compared["offset_ps"], compared["offset_uncertainty_ps"]
    more = f"{_exactly(abs(offset))} {'more' if offset >= 0 else 'less'} than the first"
    known = (
        f"the second clock shows {more} at the beginning, within {option(within)}"
        if within is not None
        else f"if the shortest residence is 0, the second clock shows {more} at the beginning; so residence times are "
        "known only in relation to the shortest"
    )
    leap = f" ({relation['leap']})" if relation["leap"] else ""
    return (
        f"{relation['contradicting']} of {relation['pairs']} frames with a content of their own contradict the stated "
        f"clocks; they were related by these frames instead: {known}{leap}. If you know the offset, state it with "
        "--clock-offset and --max-clock-offset"
    )


def _steps(steps: list[Mapping[str, Any]]) -> Iterator[str]:
    for step in steps[:_STEPS_NAMED]:
        begin, end = (f"{ps / _PS_PER_S:.6f} s" for ps in sorted(step["at_ps"]))
        when = f"between {begin} and {end} after the first frame"
        by = step["set_ps"]
        way = "forwards" if by > 0 else "back"
        size = f"by {_exactly(abs(by))} within {option(step['uncertainty_ps'])}"
        leap = f" ({step['leap']})" if step["leap"] else ""
        sure = (
            "times go back in its file"
            if step["goes_back"]
            else "or the other clock was set, or the device takes so much more or less from then on"
        )
        removed = "this was removed" if step["removed"] else "this was not removed"
        yield f"the clock of {step['clock']} was set {way} {size}{leap} {when}; {sure}; {removed}"
    if len(steps) > _STEPS_NAMED:
        yield f"{len(steps) - _STEPS_NAMED} more steps are in the manifest"


def _drift(segment: Mapping[str, Any]) -> str:
    return f"{segment['drift_ppb'] / 1000:+.3f} ppm within {segment['drift_uncertainty_ppb'] / 1000:.2g} ppm"


def _exactly(ps: float) -> str:
    """A time with all digits that matter: clocks may be many seconds apart."""
    for unit, size in _UNITS:
        if abs(ps) >= size:
            return f"{ps / size:.9f}".rstrip("0").rstrip(".") + f" {unit}"
    return f"{ps / 1000:g} ns"


def option(ps: float, *, exact: bool = False) -> str:
    """A time as an option takes it; rounded up unless `exact`."""
    for unit, size in _UNITS:
        if abs(ps) >= size:
            value = Decimal(int(ps)) / size
            if not exact:
                step = Decimal(1).scaleb(value.adjusted() - _DIGITS + 1)
                value = (value / step).to_integral_value(ROUND_CEILING) * step
            return f"{float(value):.6g}{unit}"
    return f"{ps / 1000:g}ns"
