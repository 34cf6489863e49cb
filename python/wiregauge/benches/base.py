"""What the testmaster needs to know of a bench with agents, whatever it is made of."""

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
"""How long an agent may give no sign of life. Two cores with 250 busy agents keep this with room to spare."""


class BenchError(Exception):
    """This machine cannot run the bench; the text says what is missing and the cure."""


@dataclass(frozen=True)
class Fact:
    """Something a reader of the results must know of the bench."""

    name: str
    value: str
    note: str = ""


class Access(Protocol):
    """How an agent is reached over a network, and how what it is told is signed."""

    def channel(self, address: str, options: Sequence[tuple[str, object]]) -> Any:
        """A gRPC channel to ADDRESS:PORT."""

    def sign(self, text: bytes) -> bytes:
        """A signature that the agent can check."""


@dataclass(frozen=True)
class AgentPlace:
    """Where an agent is and what the testmaster tells it about its host."""

    end_system: str  # NETWORK where it is the network between them
    node: int  # its number in the plan
    address: str  # where it listens, unix:PATH or ADDRESS:PORT
    interface: str  # the interface in the network under test; none of the network
    servicing_core: int  # -1: no affinity
    fifo_priority: int  # 0: ordinary scheduling
    shares_run_directory: bool  # its spool is in the run directory already: nothing to collect
    access: Access | None = None  # None: over a Unix socket of this user
    own_clock: bool = False  # its host reads another clock than this one
    patience_s: float = SILENCE_S  # how long it may give no sign of life

    fix: bool = False  # its host is set for measuring while the test goes on
    machine: str = ""  # what tells the kernel of its host from others; empty: that of this host

    own_core: bool = False  # no servicing thread of another agent has its core
    card: bool = False  # at the other end of its link the network plays its interface card
    # Of the network: each end system with the interface at the other end of its link.
    network_ports: tuple[tuple[str, str], ...] = ()

    @property
    def is_network(self) -> bool:
        """Whether it is the network between the end systems."""
        return self.end_system == NETWORK

    @property
    def interfaces(self) -> tuple[str, ...]:
        """Those in the network under test; at least one."""
        return tuple(interface for _, interface in self.network_ports) or (self.interface,)

    @property
    def called(self) -> str:
        """What it is called in a sentence."""
        return NETWORK if self.is_network else f"the agent of {self.end_system}"


Reach = Callable[[str, Sequence[str], int], Sequence[Sequence[tuple[int, ...]]]]
"""By which MAC addresses each IPv4 address answers at an end system, asked by requests of so many bytes."""


class AgentBench(Protocol):
    """A network of end systems with agents.

    Built by `open`; `close` ends its agents, never raises and may be called at any time.
    """

    def open(self, spool: Path) -> Sequence[AgentPlace]:
        """Builds the network, unless it stands, and starts the agents, which write below `spool`."""

    def look(self, reach: Reach) -> Sequence[Fact]:
        """What is seen of the network before the first frame. Raises BenchError where a test cannot be run on it."""

    def prepare(self, run: Run, captures: Path) -> None:
        """Sets what differs from run to run, and begins the captures of switches, into files of that folder."""

    hold_s: float | None
    """How long captures hold frames back before they drop those that nobody has kept; None: they write all."""

    def keep_frames(self, from_ns: int, to_ns: int) -> None:
        """Has captures of switches write what they hold back of a stretch of time, by CLOCK_REALTIME."""

    def end_captures(self) -> dict[str, dict[str, Any]]:
        """Ends the captures of switches; by switch the report of its task, as `TaskReport` of `agent.proto`."""

    def first_ports(self) -> dict[str, dict[str, Any]]:
        """By end system the port at the other end of its link, and the frames it has received since it was made.

        Empty where the bench cannot look at the network's ports.
        """

    def facts(self) -> Sequence[Fact]: ...

    def agent_failure(self, end_system: str) -> str | None:
        """Why the agent of this end system is gone, or None while it runs."""

    def give_up(self, end_system: str) -> str | None:
        """Ends an agent that gives no sign of life; what state its process was in, where that explains it."""

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
