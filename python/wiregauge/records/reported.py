"""Typed entry of a run in the manifest and in `tracking.json`, with the reports of agents.

Whoever makes a run writes its entry as these types, and whoever judges it reads them, decoded once, when a run
directory is opened. A counter that nobody reported is None, never 0, and is not written. Unlisted keys are ignored. The
forms are those of `agent.proto` and of `wg_record`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from wiregauge.files.typed_json import Count
from wiregauge.plan import NETWORK
from wiregauge.plan.base import convert, written
from wiregauge.records.counters import Counter, Reported, known
from wiregauge.records.modelled import Simulation

# -- agents ---------------------------------------------------------------------------------------------------


class Grant(Reported, frozen=True, omit_defaults=True):
    """A resource that an agent requested from its host, and whether it was granted."""

    name: str = "?"
    granted: bool | None = None
    detail: str | None = None


class AccessPoint(Reported, frozen=True, omit_defaults=True):
    """Frames at a socket of an end system."""

    protocol: str | None = None
    frames_sent: Counter = None
    frames_received: Counter = None
    send_errors: Counter = None
    socket_drops: Counter = None
    inbox_drops: Counter = None
    missing_tx_timestamps: Counter = None
    missing_rx_timestamps: Counter = None
    foreign_frames: Counter = None


class TaskReport(Reported, frozen=True, omit_defaults=True):
    """The result of a task, captures included."""

    kind: str | None = None
    flow: Counter = None
    planned: Counter = None
    done: Counter = None
    late: Counter = None
    wire_bytes: Counter = None
    crc_errors: Counter = None
    wrong_destination: Counter = None
    unknown_flow: Counter = None
    sequence_gaps: Counter = None
    sequence_repeats: Counter = None
    ring_drops: Counter = None
    unwritten: Counter = None
    hardware_timestamps: Counter = None
    failure: str | None = None
    passed_over: Counter = None
    crowded_out: Counter = None


class Octets(Reported, frozen=True):
    """The octet of a frame that is timestamped, and the octet that its record stands for."""

    timestamped: str | None = None
    recorded: str | None = None


class InterfaceClock(Reported, frozen=True):
    """Uncertainty of placing times of an interface's clock on the host's clock."""

    uncertainty_ns: float | None = None
    step_ns: float | None = None
    placed: Counter = None
    unplaced: Counter = None
    steps: Counter = None


class Timestamped(Reported, frozen=True):
    """Timestamps of an interface that came, or did not; of sends, or of arrivals."""

    asked: Counter = None
    timestamped: Counter = None
    missing: Counter = None
    not_asked: Counter = None
    duplicates: Counter = None
    unknown: Counter = None


class InterfaceFigures(Reported, frozen=True):
    """The figures of an interface's timestamps."""

    clock: InterfaceClock | None = None
    transmit_timestamps: Timestamped = Timestamped()
    receive_timestamps: Timestamped = Timestamped()
    sent: Octets = Octets()
    received: Octets = Octets()


class InterfaceReport(Reported, frozen=True, omit_defaults=True, dict=True):
    """The timestamp sources of an interface, by direction."""

    interface: str | None = None
    transmit: str | None = None
    receive: str | None = None
    why: str | None = None
    all_figures: dict[str, Any] = msgspec.field(name="figures", default_factory=lambda: {})
    """Its figures as the agent sent them."""

    def __post_init__(self) -> None:
        """Damage of the figures is found with that of the rest."""
        _ = self.figures

    @cached_property
    def figures(self) -> InterfaceFigures:
        """Those of its figures that are judged."""
        return convert(self.all_figures, InterfaceFigures)


class Distribution(Reported, frozen=True):
    """Selected statistics of a distribution, ns."""

    p50: float | None = None
    p99: float | None = None
    max: float | None = None


class Gaps(Reported, frozen=True):
    """Deviations of the frames of a stream from their plan: number of frames, and shares within given microseconds."""

    n: Counter = None
    within_1us: float | None = None
    within_5us: float | None = None
    within_50us: float | None = None


class LoadReceived(Reported, frozen=True):
    """Background load as its receiver counted it."""

    received: Counter = None
    distinct: Counter = None
    duplicates: Counter = None
    reordered: Counter = None
    corrupted: Counter = None
    latency_ns: Distribution = Distribution()


class LoadMissed(Reported, frozen=True):
    """Frames that came and were not taken in."""

    ring: Counter = None
    other: Counter = None


class StreamFigures(Reported, frozen=True):
    """The figures of a stream: of its sender, or of the receiver of background load."""

    offered: Counter = None
    refused: Counter = None
    given_up: Counter = None
    rate: float | None = None
    send_error_ns: Distribution = Distribution()
    gaps: Gaps | None = None
    account: LoadReceived | None = None
    missed: LoadMissed = LoadMissed()
    lost: dict[str, int] | None = None
    """Frames by how they did not arrive, where the bench sees it."""

    @property
    def handed_over(self) -> int:
        """Frames that the kernel accepted, as far as the sender reports."""
        return known(self.offered) - known(self.refused)


class StreamReport(Reported, frozen=True, dict=True):
    """A stream that was sent, or background load that was taken in (`absorb`)."""

    kind: str = ""
    number: int = 0
    backend: str = ""
    why: str = ""
    pacing: str = ""
    past_queue: bool = False
    all_figures: dict[str, Any] = msgspec.field(name="figures", default_factory=lambda: {})
    """Its figures as the agent or the simulator sent them."""

    def __post_init__(self) -> None:
        """Damage of the figures is found with that of the rest."""
        _ = self.figures

    @cached_property
    def figures(self) -> StreamFigures:
        """Those of its figures that are judged."""
        return convert(self.all_figures, StreamFigures)


class LoadFate(Reported, frozen=True):
    """Background load in a played network: frames that entered, frames that left, and losses by cause."""

    entered: int
    left: int
    lost: dict[str, int] = msgspec.field(default_factory=dict)


class ReleaseReport(Reported, frozen=True):
    """Release error of frames from a played network towards an end system, ns."""

    end_system: str = ""
    frames: int = 0
    p50_ns: int = 0
    p99_ns: int = 0
    p999_ns: int = 0
    max_ns: int = 0
    undelivered: int = 0
    access: str = ""


class Intake(Reported, frozen=True):
    """Frames that a played network took from its ports."""

    frames: int = 0
    moved: int = 0
    most_moved_ns: int = 0
    lost: int = 0


class NetworkCost(Reported, frozen=True):
    """Processor time of a played network by activity, ns."""

    taking_ns: int = 0
    model_ns: int = 0
    handing_ns: int = 0


_ETHER_TYPES = {
    0x0800: "IPv4",
    0x0806: "ARP",
    0x86DD: "IPv6",
    0x8808: "MAC control",
    0x8809: "slow protocols",
    0x888E: "EAPOL",
    0x88B5: "local experimental",
    0x88CC: "LLDP",
    0x88F7: "PTP",
    0x891D: "protocol control frames",
}
"""Ether types (IEEE registration authority) that are met on lines."""


class ForeignFrames(Reported, frozen=True):
    """Frames of one kind that came from an end system and are neither messages nor load of the test."""

    end_system: Annotated[str, Meta(description="they came from; empty: of all that are not listed")] = ""
    ether_type: Annotated[Count, Meta(description="0: a frame that has a length there")] = 0
    frames: Count = 0
    bytes: Annotated[Count, Meta(description="destination address to FCS")] = 0
    delivered: Annotated[Count, Meta(description="copies handed to end systems")] = 0
    line_ns: Annotated[
        Count, Meta(description="for which they had lines and media of hubs, all together")
    ] = 0
    dropped: dict[str, Count] = msgspec.field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The kind of these frames, in words."""
        if not self.end_system:
            return "of further kinds"
        if not self.ether_type:
            return "of IEEE 802.3 with a length"
        named = _ETHER_TYPES.get(self.ether_type)
        number = f"0x{self.ether_type:04X}"
        return f"{named} ({number})" if named else f"of type {number}"


class OverlongFrames(Reported, frozen=True):
    """Frames longer than any of Ethernet that came to a port, and the bytes of the longest."""

    end_system: str = ""
    interface: str = ""
    frames: Count = 0
    longest: Annotated[Count, Meta(description="bytes")] = 0


class AgentReport(Reported, frozen=True, omit_defaults=True):
    """The report of an agent on a run: of an end system, or of the network between them."""

    end_system: str | None = None
    complete: bool | None = None
    incomplete_reason: str | None = None
    access_points: tuple[AccessPoint, ...] = written(())
    tasks: tuple[TaskReport, ...] = written(())
    records_written: Counter = None
    records_dropped: Counter = None
    clock_steps: Counter = None
    largest_clock_step_ns: Counter = None
    involuntary_switches: Counter = None
    steal_ns: Counter = None
    started_realtime_ns: Counter = None
    ended_realtime_ns: Counter = None
    grants: tuple[Grant, ...] | None = None
    load_read: Counter = None
    unreceived: dict[str, int] | None = None
    clock_read_ns: float | None = None
    """Cost of one reading of the clock that the agent reported in its greeting, ns."""
    streams: tuple[StreamReport, ...] = written(())
    timestamps: tuple[InterfaceReport, ...] = written(())
    releases: tuple[ReleaseReport, ...] = ()
    intake: Intake | None = None
    cost: NetworkCost | None = None
    foreign: tuple[ForeignFrames, ...] | None = None
    overlong: tuple[OverlongFrames, ...] = ()
    loads: tuple[LoadFate, ...] = ()

    def tasks_of(self, kind: str) -> list[TaskReport]:
        """The task reports of one kind."""
        return [task for task in self.tasks if task.kind == kind]


# -- captures -------------------------------------------------------------------------------------------------


class Tap(Reported, frozen=True):
    """A capture file that a run was made from."""

    node: str
    dropped: Counter = None
    back_ps: Counter = None
    turns: Counter = None
    rate_bps: Counter = None
    step_ns: float | None = None


class TimestampKind(Reported, frozen=True, omit_defaults=True):
    """The timestamp source of a tap, and its resolution, ns."""

    kind: str | None = None
    step_ns: float | None = None
    reference: str | None = None
    """The point of the network that its times belong to."""


# -- the entry ------------------------------------------------------------------------------------------------


class ClockOffset(Reported, frozen=True, omit_defaults=True):
    """The offset of a node's clock, and its origin."""

    offset_ns: float | None = None
    uncertainty_ns: float | None = None
    method: str | None = None


class ClockGate(Reported, frozen=True, omit_defaults=True):
    """Whether clocks were fit before a run."""

    fit: bool | None = None
    reason: str | None = written(None)
    """The reason why they were not fit; None where they were."""


class FirstPort(Reported, frozen=True, omit_defaults=True):
    """The first port behind an end system, and the frames that came to it."""

    port: str | None = None
    received: Counter = None


class StreamTrial(Reported, frozen=True):
    """The result of trying a stream before the run: how many of its frames arrived."""

    end_system: str
    kind: str
    number: int
    backend: str
    sent: int
    arrived: int
    to: str
    """The end system, or the network, whose interface was asked."""
    succeeded: bool

    @property
    def text(self) -> str:
        """The result as a clause."""
        return f"{self.arrived} of {self.sent} trial frames arrived at {self.to}"


class RunEntry(msgspec.Struct, omit_defaults=True, dict=True):
    """The entry of a run in the manifest; who makes the run fills it."""

    index: int = written(0)
    state: str = written("partial")
    reason: str | None = written(None)
    epoch_realtime_ns: int = written(0)
    """CLOCK_REALTIME at which the run began, ns; 0: it did not, or nobody knows."""
    started: str | None = None
    finished: str | None = written(None)
    agents: dict[str, AgentReport | None] = msgspec.field(default_factory=lambda: {})
    captures: dict[str, TaskReport] = msgspec.field(default_factory=lambda: {})
    """Captures at switches, by node."""
    clock_offsets: dict[str, ClockOffset] | None = None
    clock_gate: ClockGate | None = None
    trials: tuple[StreamTrial, ...] | None = None
    first_ports: dict[str, FirstPort | None] | None = None
    network: AgentReport | None = None
    all_simulation: dict[str, Any] | None = msgspec.field(name="simulation", default=None)
    """The model's report on its devices, as the simulator wrote it."""
    ptp: dict[str, dict[str, dict[str, str]]] | None = None
    """What ptp4l answered, by end system and data set."""
    alarms: dict[str, Any] | None = None
    collected: tuple[int, ...] = ()
    """Nodes on other hosts whose records were fetched completely."""
    timestamps: dict[str, TimestampKind] | None = None
    all_taps: tuple[dict[str, Any], ...] = msgspec.field(name="taps", default=())
    """The capture files a run was made from, as they were read."""
    troubles: tuple[dict[str, Any], ...] | None = None
    """What is wrong with the capture files a run was made from."""
    unknown_flows: Any = None
    """Flows in captures that the test does not have."""
    clocks_apart: tuple[str, ...] = ()
    clocks_moved_ns: dict[str, float] | None = None
    passive: dict[str, Any] | None = None
    """The result of matching frames by their content, in the form written by `captures`."""
    gaps: tuple[dict[str, Any], ...] | None = None

    def __post_init__(self) -> None:
        """Damage of the reports of others is found with that of the rest."""
        _ = self.simulation, self.taps

    @cached_property
    def simulation(self) -> Simulation | None:
        """The model's report on its devices; from a simulation, or from an agent that plays the network."""
        told = self.all_simulation
        return convert(told, Simulation, str_keys=True) if told is not None else None

    @cached_property
    def taps(self) -> tuple[Tap, ...]:
        """What is judged of the capture files that a run was made from."""
        return convert(self.all_taps, tuple[Tap, ...])

    @property
    def model(self) -> Simulation:
        """The model's report on its devices; an empty one where there is none."""
        return self.simulation or Simulation()

    def reports(self) -> dict[str, AgentReport]:
        """The reports of agents by their end systems, and of the one that is the network."""
        named = {**self.agents, NETWORK: self.network}
        return {name: report for name, report in named.items() if report is not None}


# -- tracking -------------------------------------------------------------------------------------------------


class TrackedFlow(Reported, frozen=True):
    """Counters of tracking for a flow at a receiver."""

    flow: int
    to: int | None = None
    planned: Counter = None
    sent: Counter = None
    delivered: Counter = None
    lost: Counter = None
    unknown: Counter = None
    duplicated: Counter = None
    reordered: Counter = None
    late: Counter = None
    misdirected: Counter = None
    corrupted: Counter = None
    drop_reasons: dict[str, int] | None = None
    missing_send_records: Counter = None
    redundant_discarded: Counter = None
    restarts: Counter = None
    behind_window: Counter = None
    unpaired_departures: Counter = None


class ClockJump(Reported, frozen=True):
    """A clock that went back while it recorded."""

    node: int
    farthest_ps: int = 0


class TrackedRun(Reported, frozen=True):
    """The entry of a run in `tracking.json`."""

    index: int
    records: Counter = None
    window: Counter = None
    flows: tuple[TrackedFlow, ...] = ()
    unplanned: dict[str, int] = msgspec.field(default_factory=dict)
    out_of_order: Counter = None
    gaps: tuple[dict[str, Any], ...] = ()
    clock_jumps: tuple[ClockJump, ...] | None = None
    damaged_segments: tuple[dict[str, Any], ...] | None = None


def entry_json(entry: RunEntry) -> dict[str, Any]:
    """An entry as the manifest has it."""
    told: dict[str, Any] = msgspec.to_builtins(entry)
    return told


def read_entry(told: object) -> RunEntry:
    """An entry of the manifest. Raises msgspec.ValidationError, which names the place, for other forms."""
    return convert(told, RunEntry, str_keys=True)


def read_entries(entries: object) -> dict[int, RunEntry]:
    """The entries of a manifest by run. Raises msgspec.ValidationError, which names the place, for other forms."""
    return {entry.index: entry for entry in convert(entries, list[RunEntry], str_keys=True)}


def read_tracked(entries: object) -> dict[int, TrackedRun]:
    """The entries of `tracking.json` by run. Raises msgspec.ValidationError as `read_entries`."""
    return {entry.index: entry for entry in convert(entries, list[TrackedRun])}
