"""What an agent tells of a run, during and after it, from protocol buffers to the types of the testmaster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict
from msgspec import Struct
from msgspec.structs import replace

from wiregauge.files import printable_content
from wiregauge.plan.base import convert
from wiregauge.records.reported import AgentReport, RunEntry, TaskReport
from wiregauge.runner.live.network import ClockSums, NetworkSums, PortSums
from wiregauge.runner.rpc import agent_pb2 as pb

__all__ = ["FinishedRun", "finished_run", "network_sums"]


class FinishedRun(Struct, frozen=True):
    """What an agent says of a run that it has ended; that of the network also what its devices counted and captured."""

    report: AgentReport
    simulation: dict[str, Any] | None
    captures: Mapping[str, TaskReport]

    def enter_network(self, entry: RunEntry) -> None:
        """Enters the report of a played network: counters of devices where those of a simulation are, captures where
        those of bridges are.
        """
        entry.network = self.report
        entry.all_simulation = self.simulation
        entry.captures |= self.captures


def finished_run(told: pb.AgentReport, clock_read_ns: int | None = None) -> FinishedRun:
    """The report of an agent whose texts are printable. `clock_read_ns`: the cost of one reading of its clock, ns."""
    loose = MessageToDict(told, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    for part in (*loose["streams"], *loose["timestamps"]):
        part["figures"] = _content(part.pop("figures_json"))
    simulation = _content(loose.pop("simulation_json")) or None
    if simulation is not None:
        # The hosts' share is reported by their agents.
        simulation.pop("agents", None)
        loose["loads"] = simulation.pop("loads", [])
    captures = {one["node"]: one["task"] for one in loose.pop("captures")}
    report = replace(convert(loose, AgentReport, strict=False), clock_read_ns=clock_read_ns)
    if not report.releases and report.intake is None:
        # Only a network sees frames that are none of the test's.
        report = replace(report, foreign=None)
    return FinishedRun(report, simulation, convert(captures, dict[str, TaskReport], strict=False))


def network_sums(told: pb.LiveNetwork) -> NetworkSums:
    """What the agent that plays the network says once a second."""

    def clock(one: pb.LiveClock) -> ClockSums:
        return ClockSums(
            one.node,
            one.at_ns,
            one.offset_ns if one.HasField("offset_ns") else None,
            one.sync_state if one.HasField("sync_state") else None,
            dict(one.ptp_states),
            one.grandmaster if one.HasField("grandmaster") else None,
        )

    ports = [PortSums(one.node, one.port, one.frames, one.longest_ns, one.queued) for one in told.ports]
    return NetworkSums(ports, [clock(one) for one in told.clocks])


def _content(text: str) -> dict[str, Any]:
    content: dict[str, Any] = printable_content(json.loads(text)) if text else {}
    return content
