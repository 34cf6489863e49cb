"""The testmaster: makes the runs of a plan, by agents or in virtual time, and stores their results."""

from __future__ import annotations

from wiregauge.master.alarms import AlarmError, AlarmLimit
from wiregauge.master.live import RunNow
from wiregauge.master.lookout import Lookout
from wiregauge.master.observing import Observer
from wiregauge.master.simulation import simulate

__all__ = ["AlarmError", "AlarmLimit", "Lookout", "Observer", "RunNow", "simulate"]
