"""Where a test runs. A bench builds the network under test and starts one agent per end system."""

from __future__ import annotations

from wiregauge.benches.base import AgentPlace, Bench, BenchError, agent_program
from wiregauge.benches.capabilities import beyond_namespaces
from wiregauge.benches.doctor import Findings, benches_here, examine
from wiregauge.benches.enclosing import enclose, is_enclosed
from wiregauge.benches.interfaces import HostInterface, InterfacesBench, lend
from wiregauge.benches.netns import NetnsBench
from wiregauge.benches.programs import programs_here
from wiregauge.benches.simulator import simulator_facts

__all__ = [
    "AgentPlace",
    "Bench",
    "BenchError",
    "Findings",
    "HostInterface",
    "InterfacesBench",
    "NetnsBench",
    "agent_program",
    "benches_here",
    "beyond_namespaces",
    "enclose",
    "examine",
    "is_enclosed",
    "lend",
    "programs_here",
    "simulator_facts",
]
