"""Identifies models of hosts and switches from measured records.

A model is identified from timestamps alone, with the structure of the simulator (`docs/explanation/simulator.md`).
Every parameter has an interval; what the records cannot distinguish is named, and the pessimistic value is used.
"""

from __future__ import annotations

from wiregauge.identify.errors import IdentifyError
from wiregauge.identify.hosts import HostFit, Parameter, fit_host, hosts_of
from wiregauge.identify.moderation import Moderation

__all__ = ["HostFit", "IdentifyError", "Moderation", "Parameter", "fit_host", "hosts_of"]
