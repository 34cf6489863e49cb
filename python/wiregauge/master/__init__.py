"""The testmaster: has the runs of a plan made, by agents or in virtual time, and keeps what they leave."""

from __future__ import annotations

from wiregauge.master.observing import Observer
from wiregauge.master.simulation import simulate

__all__ = ["Observer", "simulate"]
