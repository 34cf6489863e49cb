"""An observation of a synchronised clock."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["ClockState"]


class ClockState(Struct, frozen=True):
    """The state of a clock as a program printed it. Times and offsets in ns; None where not printed."""

    realtime_ns: int
    node: str
    source: str
    """`ptp4l`, `phc2sys` or `chrony`."""
    state: str
    """Port state of ptp4l (`SLAVE`, …), servo state (`s0` unlocked, `s1` stepping, `s2` locked), or leap status."""
    offset_ns: float | None = None
    """The clock minus its server, ns."""
    delay_ns: float | None = None
    """ptp4l: mean one-way path delay; phc2sys: time to read the clock; chrony: round-trip root delay; ns."""
    frequency_ppb: float | None = None

    @property
    def is_synchronised(self) -> bool:
        """Whether the clock follows its server, or is one; chrony is heard only while it does."""
        return self.source == "chrony" or self.state in ("s2", "SLAVE", "MASTER", "GRAND_MASTER")
