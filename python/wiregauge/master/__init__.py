"""The testmaster: runs a campaign on a bench and leaves a run directory behind, whatever happens."""

from __future__ import annotations

from wiregauge.master.campaign import new_manifest, run_campaign
from wiregauge.master.progress import ProgressView
from wiregauge.master.simulation import simulate_campaign

__all__ = ["ProgressView", "new_manifest", "run_campaign", "simulate_campaign"]
