"""A short trial of every stream, on its real path, before a run begins.

A backend that accepts frames need not deliver them: a driver may count frames that no bridge ever sees. So a few frames
are sent by the backend an agent has chosen, and the interface of the receiving end system is asked for arrivals; or
that of the network, which carries nothing before the run begins.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wiregauge.plan import Run
from wiregauge.runner.agents.client import Agent, StreamChoice

__all__ = ["Trial", "tell_trials", "try_streams"]

_FRAMES: Final = 8
_LEAST: Final = _FRAMES // 2
"""Number of frames that must arrive: more than others, such as a clock protocol, may send meanwhile."""
_PATIENCE_S: Final = 0.5
_LOOK_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a trial: how many of its frames arrived."""

    end_system: str
    kind: str
    number: int
    backend: str
    sent: int
    arrived: int
    to: str

    @property
    def succeeded(self) -> bool:
        """Whether the frames came."""
        return self.arrived >= min(_LEAST, self.sent)

    @property
    def text(self) -> str:
        """The result as a clause."""
        return f"{self.arrived} of {self.sent} trial frames arrived at {self.to}"


def try_streams(
    agents: Mapping[str, Agent],
    chosen: Mapping[str, list[StreamChoice]],
    run: Run,
    nodes: Sequence[str],
    network: Agent | None = None,
) -> list[Trial]:
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


def _try(sender: Agent, choice: StreamChoice, receiver: Agent, interface: str) -> Trial:
    before = receiver.received_frames(interface)
    sent = sender.try_stream(choice.kind, choice.number, _FRAMES)
    end = time.monotonic() + _PATIENCE_S
    while (arrived := receiver.received_frames(interface) - before) < sent and time.monotonic() < end:
        time.sleep(_LOOK_S)
    return Trial(
        sender.place.end_system,
        choice.kind,
        choice.number,
        choice.backend,
        sent,
        min(arrived, sent),
        receiver.place.end_system,
    )


def tell_trials(trials: Sequence[Mapping[str, Any]], name: str, report: Mapping[str, Any]) -> None:
    """Adds the observation of its trial to the reason of each stream's backend."""
    seen = {
        (
            trial["kind"],
            trial["number"],
        ): f"{trial['arrived']} of {trial['sent']} trial frames arrived at {trial['to']}"
        for trial in trials
        if trial["end_system"] == name
    }
    for stream in report["streams"]:
        text = seen.get((stream["kind"], stream["number"]))
        if text:
            stream["why"] = f"{stream['why']}; {text}" if stream["why"] else text
