"""The programs that keep clocks together: linuxptp started, watched and stopped; chrony asked.

Never a PTP of our own: what is here writes configurations, reads what the programs say, and decides whether the clocks
are fit for a run.
"""

from __future__ import annotations

from wiregauge.clocks.keeper import ClockError, ClockKeeper
from wiregauge.clocks.state import ClockState

__all__ = ["ClockError", "ClockKeeper", "ClockState"]
