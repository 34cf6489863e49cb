"""Clock synchronisation by external programs: starts, watches and stops linuxptp; queries chrony.

There is no PTP of our own: agents start the programs of their hosts; here their output is read, and it is decided
whether the clocks are fit for a run.
"""

from __future__ import annotations

from wiregauge.clocks.host import Answers, ClockError, ClockHost, Line
from wiregauge.clocks.keeper import ClockKeeper
from wiregauge.clocks.relation import PtpRelation
from wiregauge.clocks.state import ClockState

__all__ = ["Answers", "ClockError", "ClockHost", "ClockKeeper", "ClockState", "Line", "PtpRelation"]
