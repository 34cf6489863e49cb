"""The time scale of a PTP domain, and its faults.

PTP counts TAI where its flag `ptpTimescale` says so (IEEE 1588-2019, 7.2.1); system clocks show UTC. They differ by
the leap seconds so far, which the domain announces as `currentUtcOffset`, and which the kernel may have been told.
A coming leap second is announced for the end of the day, UTC; a run across it has a second too many or too few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from wiregauge.runner.clocks.host import Answers
from wiregauge.runner.clocks.linuxptp import read_pmc

__all__ = ["Timescale", "findings"]

_DAY_S: Final = 86_400
_MARGIN_S: Final = 2.0
"""Seconds around a leap second in which clocks may still apply it."""


class Timescale(Struct, frozen=True):
    """The time scale known to an end system. None: unknown, or not reported by its programs."""

    grandmaster: str | None = None
    utc_offset_s: int | None = None
    """TAI minus UTC as announced, s; None unless the domain carries TAI and declares the offset valid."""
    leap: int = 0
    """A leap second inserted (1) or deleted (-1) at the end of the day."""
    kernel_tai_s: int = 0

    @classmethod
    def of(cls, answers: Answers, chrony_leap: str = "") -> Timescale:
        """The time scale from pmc, the kernel and chrony: a leap second that one of them knows of counts."""
        sets = read_pmc(answers.pmc)
        told = sets.get("TIME_PROPERTIES_DATA_SET", {})
        offset = told.get("currentUtcOffset", "")
        vouched = told.get("ptpTimescale") == "1" and told.get("currentUtcOffsetValid") == "1"
        leap = (
            1
            if told.get("leap61") == "1" or chrony_leap == "Insert second"
            else -1
            if told.get("leap59") == "1" or chrony_leap == "Delete second"
            else answers.leap
        )
        return cls(
            sets.get("PARENT_DATA_SET", {}).get("grandmasterIdentity"),
            int(offset) if vouched and offset.lstrip("-").isdecimal() else None,
            leap,
            answers.tai_s,
        )


def findings(
    told: Mapping[str, Timescale], reference: str, *, now_s: float, end_s: float, set_by_tai: bool
) -> Iterator[str]:
    """Reasons why the time scale is unfit for a run from now to its end (seconds since 1970, UTC), a sentence each.

    `set_by_tai`: system clocks are set from interface clocks, so that a kernel without the offset is wrong.
    """
    server = told.get(reference)
    for name, one in told.items():
        followed = (one.grandmaster, server.grandmaster if server is not None else None)
        if None not in followed and followed[0] != followed[1]:
            yield (
                f"{name} follows the grandmaster {followed[0]} and not {reference} ({followed[1]}): "
                "another server is in its domain; give the test a domain of its own"
            )
    yield from _offsets(told, set_by_tai=set_by_tai)
    leaping = [name for name, one in told.items() if one.leap]
    midnight = (now_s // _DAY_S + 1) * _DAY_S
    if leaping and midnight - _MARGIN_S < end_s + _MARGIN_S:
        name = leaping[0]
        which = "inserted" if told[name].leap > 0 else "left out"
        at = datetime.fromtimestamp(midnight, UTC).strftime("%Y-%m-%d %H:%M UTC")
        yield f"{name} was told of a leap second, {which} at {at}, and the run goes on beyond; begin it after that"


def _offsets(told: Mapping[str, Timescale], *, set_by_tai: bool) -> Iterator[str]:
    announced = {name: one.utc_offset_s for name, one in told.items() if one.utc_offset_s is not None}
    yield from _differing(announced, "PTP announces TAI less UTC")
    kernels = {name: one.kernel_tai_s for name, one in told.items() if one.kernel_tai_s}
    yield from _differing(kernels, "kernels were told TAI less UTC")
    for name, offset in announced.items():
        kernel = told[name].kernel_tai_s
        if kernel and kernel != offset:
            yield (
                f"the kernel of {name} was told that TAI is {kernel} s ahead of UTC, and PTP announces "
                f"{offset} s: correct the leap seconds there"
            )
        elif not kernel and set_by_tai:
            yield (
                f"the domain of {name} carries TAI, {offset} s ahead of UTC, and nobody told its kernel so: "
                "its clock would be set to TAI"
            )


def _differing(values: Mapping[str, int], what: str) -> Iterator[str]:
    first = next(iter(values), "")
    other = next((name for name, value in values.items() if value != values[first]), None)
    if other is not None:
        yield f"{what} differently: {values[first]} s at {first}, {values[other]} s at {other}"
