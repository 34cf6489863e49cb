"""Where a test runs. A bench builds the network under test and starts one agent per end system."""

from __future__ import annotations

from wiregauge.benches.base import AgentPlace, Bench, BenchError, agent_program
from wiregauge.benches.netns import NetnsBench

__all__ = ["AgentPlace", "Bench", "BenchError", "NetnsBench", "agent_program"]
