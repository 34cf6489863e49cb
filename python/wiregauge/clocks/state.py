"""One observation of a clock that a program keeps."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ClockState"]


@dataclass(frozen=True, slots=True)
class ClockState:
    """What a program said of a clock. Times and offsets in ns; what it did not say is None."""

    realtime_ns: int
    node: str
    source: str
    """`ptp4l`, `phc2sys` or `chrony`."""
    state: str
    """Of ptp4l's port (`SLAVE`, …) or a servo (`s0` unlocked, `s1` stepping, `s2` locked); chrony's leap status."""
    offset_ns: float | None = None
    """The clock less its server."""
    delay_ns: float | None = None
    """ptp4l: mean one-way path delay; phc2sys: time of reading the clock; chrony: root delay there and back."""
    frequency_ppb: float | None = None
