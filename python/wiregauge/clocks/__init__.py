"""The programs that keep clocks together: linuxptp started, watched and stopped; chrony asked.

Never a PTP of our own: what is here has agents start the programs of their hosts, reads what these say, and decides
whether the clocks are fit for a run.
"""

from __future__ import annotations

from wiregauge.clocks.host import Answers, ClockError, ClockHost, Line
from wiregauge.clocks.keeper import ClockKeeper
from wiregauge.clocks.relation import PtpRelation
from wiregauge.clocks.state import ClockState

__all__ = ["Answers", "ClockError", "ClockHost", "ClockKeeper", "ClockState", "Line", "PtpRelation"]
