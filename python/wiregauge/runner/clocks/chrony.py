"""Reads the system clock's state from `chronyc -n -c tracking` (chronyc(1), "tracking"; comma-separated with -c)."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Tracking", "read_tracking"]

_FIELDS = 14
_NO_SOURCE = "00000000"
_NS = 1e9


class Tracking(Struct, frozen=True):
    """The state of the system clock."""

    reference: str
    stratum: int
    offset_ns: float
    """System clock minus chrony's estimate of true time, still to be slewed away, ns."""
    rms_offset_ns: float
    frequency_ppm: float
    skew_ppm: float
    root_delay_ns: float
    root_dispersion_ns: float
    leap: str
    synchronised: bool


def read_tracking(text: str) -> Tracking | None:
    """The state from a line of `chronyc -c tracking`; None for anything else."""
    fields = text.strip().split(",")
    if len(fields) != _FIELDS:
        return None
    try:
        stratum = int(fields[2])
        _, offset, _, rms, frequency, _, skew, delay, dispersion, _ = map(float, fields[3:13])
    except ValueError:
        return None
    leap = fields[13]
    return Tracking(
        reference=fields[1] or fields[0],
        stratum=stratum,
        # chronyc prints how far the clock is behind; the sign here is that of all other offsets.
        offset_ns=-offset * _NS,
        rms_offset_ns=rms * _NS,
        frequency_ppm=frequency,
        skew_ppm=skew,
        root_delay_ns=delay * _NS,
        root_dispersion_ns=dispersion * _NS,
        leap=leap,
        synchronised=leap != "Not synchronised" and fields[0] != _NO_SOURCE and stratum > 0,
    )
