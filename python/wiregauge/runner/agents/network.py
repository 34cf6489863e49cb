"""The network under test: where each of its agents is, and what the testmaster asks of the bench that has it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct

from wiregauge.plan import NETWORK, Campaign, Run
from wiregauge.records.reported import FirstPort, TaskReport
from wiregauge.runner.bench import Fact

__all__ = [
    "HOST_PRIORITY",
    "NETWORK_PRIORITY",
    "SILENCE_S",
    "Access",
    "AgentPlace",
    "NetworkUnderTest",
    "Reach",
]

SILENCE_S: Final = 8.0
"""Seconds without an answer after which an agent counts as gone: ample for 250 busy agents on two cores."""
HOST_PRIORITY: Final = 50
"""SCHED_FIFO priority of the threads of agents that send and receive."""
NETWORK_PRIORITY: Final = 60
"""SCHED_FIFO priority of the network where the model plays it: above that of agents, whose frames it carries."""


class Access(Protocol):
    """Access to an agent over a network, with signatures for what is sent to it."""

    def channel(self, address: str, options: Sequence[tuple[str, object]]) -> Any:
        """A gRPC channel to ADDRESS:PORT."""

    def sign(self, text: bytes) -> bytes:
        """A signature that the agent can verify."""


class AgentPlace(Struct, frozen=True):
    """The place of an agent, and what the testmaster tells it about its host."""

    end_system: str  # NETWORK where it plays the network between end systems
    node: int  # its number in the plan
    address: str  # where it listens, unix:PATH or ADDRESS:PORT
    interface: str = ""  # the interface in the network under test; none of the network
    servicing_core: int = -1  # -1: no affinity
    fifo_priority: int = 0  # 0: ordinary scheduling
    shares_run_directory: bool = False  # its spool is in the run directory already: nothing to collect
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


class NetworkUnderTest(ABC):
    """A network of end systems with agents, as the testmaster uses it.

    A trial calls `open`, `look`, for each run `prepare`, `first_ports` before and after it and `end_captures`, and
    finally `leave`. A bench overrides what it has.
    """

    hold_s: float | None = None
    """Seconds that captures hold frames back before those that are not requested are dropped; None: all are written."""

    @abstractmethod
    def open(self, campaign: Campaign, spool: Path) -> Sequence[AgentPlace]:
        """Builds the network, unless it exists, and starts the agents, which write below `spool`."""

    def look(self, reach: Reach) -> Sequence[Fact]:
        """Checks the network before the first frame; returns facts. Raises BenchError where a test cannot run on it."""
        del reach
        return ()

    def prepare(self, run: Run, captures: Path) -> None:  # noqa: B027 - a bench may have nothing to set
        """Applies the settings of a run, and starts the captures of switches, into files of that folder."""

    def keep_frames(self, from_ns: int, to_ns: int) -> None:  # noqa: B027 - there may be no captures
        """Has captures of switches write their frames from this interval of CLOCK_REALTIME."""

    def end_captures(self) -> dict[str, TaskReport]:
        """Ends the captures of switches; returns the report of each switch's task."""
        return {}

    def first_ports(self) -> dict[str, FirstPort]:
        """The port at the other end of each end system's link, and the frames it has received since its creation.

        Empty where the bench cannot read the network's ports.
        """
        return {}

    def agent_failure(self, end_system: str) -> str | None:
        """The reason why the agent of this end system is gone, or None while it runs or where nothing is known."""
        del end_system
        return None

    def give_up(self, end_system: str) -> str | None:
        """Kills an agent that does not answer, if it runs here; returns its process's state if that explains it."""
        del end_system
        return None

    def leave(self) -> None:  # noqa: B027 - agents of other hosts go on
        """Ends the agents; never raises and may be called at any time."""
