"""From records to models: what a host, as it was measured, is made of.

A model is identified from timestamps alone, by the structure of the simulator (`docs/explanation/simulator.md`). Every
parameter has an interval; what the records cannot tell apart is named, and taken the pessimistic way.
"""

from __future__ import annotations

from wiregauge.identify.errors import IdentifyError
from wiregauge.identify.hosts import HostFit, Parameter, fit_host, hosts_of
from wiregauge.identify.moderation import Moderation

__all__ = ["HostFit", "IdentifyError", "Moderation", "Parameter", "fit_host", "hosts_of"]
