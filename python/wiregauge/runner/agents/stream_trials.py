"""A short trial of every stream, on its real path, before a run begins.

A backend that accepts frames need not deliver them: a driver may count frames that no bridge ever sees. So a few frames
are sent by the backend an agent has chosen, and the interface of the receiving end system is asked for arrivals; or
that of the network, which carries nothing before the run begins.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from wiregauge.plan import Run
from wiregauge.records.reported import AgentReport, StreamTrial
from wiregauge.runner.agents.client import Agent
from wiregauge.runner.rpc import agent_pb2 as pb

__all__ = ["try_streams", "with_trials"]

_FRAMES: Final = 8
_LEAST: Final = _FRAMES // 2
"""Number of frames that must arrive: more than others, such as a clock protocol, may send meanwhile."""
_PATIENCE_S: Final = 0.5
_LOOK_S: Final = 0.02


def try_streams(
    agents: Mapping[str, Agent],
    chosen: Mapping[str, Sequence[pb.StreamChoice]],
    run: Run,
    nodes: Sequence[str],
    network: Agent | None = None,
) -> list[StreamTrial]:
    """Tries all streams one after the other, each as it was chosen. `agents` and `chosen` are by end system.

    Where an agent is the `network`, its interface at the sender's link is the one that is asked. Raises AgentLostError.
    """
    ports = dict(network.place.network_ports) if network is not None else {}
    flows = {flow.id: flow.to for flow in run.flows}
    trials = []
    for name, choices in chosen.items():
        for choice in choices:
            number = choice.number
            to = flows[number] if choice.kind == "send" else run.injects[number].to
            receiver = network or agents.get(nodes[to])
            if choice.can_be_tried and receiver is not None:
                trials.append(_try(agents[name], choice, receiver, ports.get(name, "")))
    return trials


def _try(sender: Agent, choice: pb.StreamChoice, receiver: Agent, interface: str) -> StreamTrial:
    before = receiver.received_frames(interface)
    sent = sender.try_stream(choice.kind, choice.number, _FRAMES)
    end = time.monotonic() + _PATIENCE_S
    while (arrived := receiver.received_frames(interface) - before) < sent and time.monotonic() < end:
        time.sleep(_LOOK_S)
    arrived = min(arrived, sent)
    return StreamTrial(
        sender.place.end_system,
        choice.kind,
        choice.number,
        choice.backend,
        sent,
        arrived,
        receiver.place.end_system,
        succeeded=arrived >= min(_LEAST, sent),
    )


def with_trials(report: AgentReport, trials: Sequence[StreamTrial], name: str) -> AgentReport:
    """The report of an end system, with what its trial has shown in the reason of each stream's backend."""
    seen = {(trial.kind, trial.number): trial.text for trial in trials if trial.end_system == name}
    streams = (
        replace(stream, why="; ".join(filter(None, (stream.why, seen.get((stream.kind, stream.number))))))
        for stream in report.streams
    )
    return replace(report, streams=tuple(streams))
