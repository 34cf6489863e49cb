"""The interface between the testmaster and any bench with agents."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from wiregauge.plan import NETWORK, Run

__all__ = [
    "SILENCE_S",
    "Access",
    "AgentBench",
    "AgentPlace",
    "BenchError",
    "Fact",
    "Reach",
    "agent_program",
]


SILENCE_S: Final = 8.0
"""Seconds without an answer after which an agent counts as gone: ample for 250 busy agents on two cores."""


class BenchError(Exception):
    """This machine cannot run the bench; the text says what is missing and the cure."""


@dataclass(frozen=True)
class Fact:
    """A fact about the bench that a reader of the results must know."""

    name: str
    value: str
    note: str = ""


class Access(Protocol):
    """Access to an agent over a network, with signatures for what is sent to it."""

    def channel(self, address: str, options: Sequence[tuple[str, object]]) -> Any:
        """A gRPC channel to ADDRESS:PORT."""

    def sign(self, text: bytes) -> bytes:
        """A signature that the agent can verify."""


@dataclass(frozen=True)
class AgentPlace:
    """The place of an agent, and what the testmaster tells it about its host."""

    end_system: str  # NETWORK where it plays the network between end systems
    node: int  # its number in the plan
    address: str  # where it listens, unix:PATH or ADDRESS:PORT
    interface: str  # the interface in the network under test; none of the network
    servicing_core: int  # -1: no affinity
    fifo_priority: int  # 0: ordinary scheduling
    shares_run_directory: bool  # its spool is in the run directory already: nothing to collect
    access: Access | None = None  # None: over a Unix socket of this user
    own_clock: bool = False  # its host reads another clock than this one
    patience_s: float = SILENCE_S  # how long it may not answer

    fix: bool = False  # its host is tuned for measuring during the test
    machine: str = ""  # identifies the kernel of its host; empty: that of this host

    own_core: bool = False  # no servicing thread of another agent has its core
    card: bool = False  # at the other end of its link the network plays its interface card
    # For the network: each end system with the interface at the other end of its link.
    network_ports: tuple[tuple[str, str], ...] = ()

    @property
    def is_network(self) -> bool:
        """Whether it is the network between the end systems."""
        return self.end_system == NETWORK

    @property
    def interfaces(self) -> tuple[str, ...]:
        """Its interfaces in the network under test; at least one."""
        return tuple(interface for _, interface in self.network_ports) or (self.interface,)

    @property
    def called(self) -> str:
        """Its name in a sentence."""
        return NETWORK if self.is_network else f"the agent of {self.end_system}"


Reach = Callable[[str, Sequence[str], int], Sequence[Sequence[tuple[int, ...]]]]
"""Finds the MAC addresses that answer for each IPv4 address, seen from an end system, by requests of `int` bytes."""


class AgentBench(Protocol):
    """A network of end systems with agents.

    `open` builds it; `close` ends its agents, never raises and may be called at any time.
    """

    def open(self, spool: Path) -> Sequence[AgentPlace]:
        """Builds the network, unless it exists, and starts the agents, which write below `spool`."""

    def look(self, reach: Reach) -> Sequence[Fact]:
        """Checks the network before the first frame; returns facts. Raises BenchError where a test cannot run on it."""

    def prepare(self, run: Run, captures: Path) -> None:
        """Applies the settings of a run, and starts the captures of switches, into files of that folder."""

    hold_s: float | None
    """Seconds that captures hold frames back before those that are not requested are dropped; None: all are written."""

    def keep_frames(self, from_ns: int, to_ns: int) -> None:
        """Has captures of switches write their frames from this interval of CLOCK_REALTIME."""

    def end_captures(self) -> dict[str, dict[str, Any]]:
        """Ends the captures of switches; returns the report of each switch's task, as `TaskReport` of `agent.proto`."""

    def first_ports(self) -> dict[str, dict[str, Any]]:
        """The port at the other end of each end system's link, and the frames it has received since its creation.

        Empty where the bench cannot read the network's ports.
        """

    def facts(self) -> Sequence[Fact]: ...

    def agent_failure(self, end_system: str) -> str | None:
        """The reason why the agent of this end system is gone, or None while it runs."""

    def give_up(self, end_system: str) -> str | None:
        """Kills an agent that does not answer; returns the state of its process, if that explains it."""

    def close(self) -> None: ...


def agent_program() -> Path:
    """The agent program that was installed with this package."""
    for scripts in (Path(sysconfig.get_path("scripts")), Path(sys.executable).parent):
        candidate = scripts / "wiregauge-agent"
        if candidate.is_file():
            return candidate
    found = shutil.which("wiregauge-agent")
    if found is None:
        raise BenchError("the program wiregauge-agent was not found; install wiregauge with `pip install .`")
    return Path(found)
