"""The benches: each builds the network under test and starts one agent per end system."""

from __future__ import annotations

from wiregauge.benches.base import Access, AgentBench, AgentPlace, BenchError, Fact, agent_program
from wiregauge.benches.capabilities import (
    beyond_hosts,
    beyond_namespaces,
    beyond_played,
    beyond_simulator,
    needs_bridges,
)
from wiregauge.benches.doctor import Findings, examine, namespaces_here
from wiregauge.benches.enclosing import enclose, is_enclosed
from wiregauge.benches.interfaces import HostInterface, InterfacesBench, lend
from wiregauge.benches.names import SWITCHES, Switches
from wiregauge.benches.netns import NetnsBench
from wiregauge.benches.programs import programs_here
from wiregauge.benches.simulator import simulator_facts

__all__ = [
    "SWITCHES",
    "Access",
    "AgentBench",
    "AgentPlace",
    "BenchError",
    "Fact",
    "Findings",
    "HostInterface",
    "InterfacesBench",
    "NetnsBench",
    "Switches",
    "agent_program",
    "beyond_hosts",
    "beyond_namespaces",
    "beyond_played",
    "beyond_simulator",
    "enclose",
    "examine",
    "is_enclosed",
    "lend",
    "namespaces_here",
    "needs_bridges",
    "programs_here",
    "simulator_facts",
]
