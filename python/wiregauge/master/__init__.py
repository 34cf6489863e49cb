"""The testmaster: runs a campaign on a bench and leaves a run directory behind, whatever happens."""

from __future__ import annotations

from wiregauge.master.campaign import Interrupted, run_campaign
from wiregauge.master.progress import ProgressView

__all__ = ["Interrupted", "ProgressView", "run_campaign"]
