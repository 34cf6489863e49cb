"""Tasks of end systems and events in the network: flows, loads, captures, faults and incidents."""

from __future__ import annotations

import re
from typing import Literal

from wiregauge.plan.base import FlowId, NodeIndex, Picoseconds, Plan, Variant, written
from wiregauge.plan.network import Distribution
from wiregauge.plan.routes import Route

__all__ = [
    "Activity",
    "Babble",
    "Bursts",
    "Capture",
    "ClockStep",
    "Cut",
    "Incident",
    "Inject",
    "LinkFault",
    "Misdirect",
    "Ramp",
    "Receive",
    "Relay",
    "Replay",
    "Restart",
    "Send",
]

Mode = Literal["rate", "gap"]
Backend = Literal["udp", "packet", "xdp", "xdp-live"]
Sequences = tuple[tuple[int, int], ...]
"""Inclusive ranges of sequence numbers."""


class Periodic(Variant, frozen=True, tag="periodic"):
    """A message every period."""


class Exponential(Variant, frozen=True, tag="exponential"):
    """Random sending at exponential intervals, whose mean is the period."""


class Bursts(Variant, frozen=True, tag="bursts"):
    """`size` messages every period."""

    size: int
    spacing: Picoseconds


class Ramp(Variant, frozen=True, tag="ramp"):
    """The rate changes evenly from one message every period to one every `to`."""

    to: Picoseconds
    length: Picoseconds


class Activity(Plan, frozen=True):
    """A cycle of sending and silence."""

    active: Picoseconds
    pause: Picoseconds


class Replay(Plan, frozen=True):
    """The frames of a capture; `trace` holds `gap:length` entries, each repeated `*times`."""

    file: str
    trace: str
    speed_ppm: int
    loops: int
    loop_gap: Picoseconds
    least: int

    @property
    def frames(self) -> tuple[int, int]:
        """The shortest and the longest frame as sent, bytes from destination address to FCS."""
        lengths = [int(length) for length in re.findall(r":([0-9]+)", self.trace)]
        return max(self.least, min(lengths, default=0)), max(self.least, max(lengths, default=0))


class Send(Plan, frozen=True):
    """A sender task."""

    flow: FlowId
    period: Picoseconds
    offset: Picoseconds
    payload: int
    fill: Literal["sequential", "random"]
    count: int
    warm_up_count: int
    pattern: Periodic | Exponential | Bursts | Ramp | None = None
    """The send pattern; None: periodic."""
    rate_limit_bps: int | None = None
    sub_link: int = 0
    activity: Activity | None = None
    seed: int | None = None
    pacing: Mode | None = None
    backend: Backend | None = None
    launch: bool | None = None
    transmit_time: int | None = None
    replay: Replay | None = None
    before_dispatch: Picoseconds | None = None
    """Time from sending to the flow's dispatch, ps, where `offset` follows from that; else None."""
    on_cycle: bool = False
    """Whether `offset` puts messages at a fixed place of the network's cycle, by the clock of their end system."""


class Receive(Plan, frozen=True):
    """A receiver task."""

    flow: FlowId
    on: NodeIndex


class Loss(Variant, frozen=True, tag="loss"):
    """The message, or frame, does not arrive."""


class Duplicate(Variant, frozen=True, tag="duplicate"):
    """The message, or frame, comes twice."""


class Reorder(Variant, frozen=True, tag="reorder"):
    """The message is sent on after its successor."""


class Corrupt(Variant, frozen=True, tag="corrupt"):
    """The payload is altered behind the back of the frame check sequence."""


class Misdirect(Variant, frozen=True, tag="misdirect"):
    """The message is sent to another end system."""

    to: NodeIndex


class Fault(Plan, frozen=True):
    """A fault that a relay applies to the messages with these sequence numbers."""

    kind: Loss | Duplicate | Reorder | Corrupt | Misdirect
    sequences: Sequences


class Relay(Plan, frozen=True, kw_only=True):
    """A relay task: sends every message of the flow back to where it came from."""

    flow: FlowId
    on: NodeIndex
    vl: int | None = None
    back: FlowId | None = None
    """The flow number that its answers carry where several relays answer one flow; None: the flow's own."""
    through: Literal["servicing", "task"]
    faults: tuple[Fault, ...]
    detours: tuple[Route, ...] = ()
    """Routes of misdirected messages."""


class SendingThreads(Plan, frozen=True):
    """Simulated threads of an injector."""

    number: int
    send_cost: Distribution | None = None
    sleep_overhead: Distribution | None = None


class Inject(Plan, frozen=True):
    """Background load of one end system."""

    on: NodeIndex
    to: NodeIndex
    route: Route
    payload: int
    burst: int
    interval: Picoseconds
    load_ppm: int
    exponential: bool = False
    threads: SendingThreads | None = None
    activity: Activity | None = None
    pacing: Mode | None = None
    backend: Backend | None = None
    launch: bool | None = None


class RemoteLog(Plan, frozen=True):
    """A host's records of messages, sent to another host over the network under test."""

    on: NodeIndex
    to: NodeIndex
    route: Route
    record: int
    """Bytes of a record."""
    records: int
    """Number of records in a frame."""


class Capture(Plan, frozen=True):
    """A capture task: every frame at the node's ports."""

    on: NodeIndex
    snap: int


class BitError(Variant, frozen=True, tag="bit-error"):
    """A fault that inverts a bit of the frame."""


class Delay(Variant, frozen=True, tag="delay"):
    """A fault that delays a frame."""

    by: Picoseconds


class WrongLength(Variant, frozen=True, tag="wrong-length"):
    """A fault by which the sender cuts frames short, or extends them, to a length in bytes."""

    length: int


class Share(Variant, frozen=True, tag="share"):
    """Selects frames at random, each with this probability."""

    ppm: int


class Bits(Variant, frozen=True, tag="bits"):
    """Selects bits at random, one in so many on average."""

    mean_bits: int


class Messages(Variant, frozen=True, tag="messages"):
    """Selects messages of a flow, in every copy and on both legs."""

    flow: FlowId
    sequences: Sequences


class LinkFault(Plan, frozen=True, kw_only=True, rename={"from_": "from"}):
    """A fault of a link; `sent_by` is the end whose frames it affects, None for both."""

    link: int
    sent_by: NodeIndex | None = None
    kind: BitError | Loss | Duplicate | Delay | Corrupt | WrongLength
    whom: Share | Bits | Messages
    from_: Picoseconds = written(0)
    until: Picoseconds | None = None


class Cut(Variant, frozen=True, tag="cut"):
    """A cut of a link; None: it is never restored."""

    link: int
    until: Picoseconds | None = None


class Babble(Variant, frozen=True, tag="babble"):
    """An end system sends a flow's frames past every regulator and schedule."""

    flow: FlowId
    period: Picoseconds
    length: int
    until: Picoseconds


class Restart(Variant, frozen=True, tag="restart"):
    """A switch restarts."""

    switch: NodeIndex
    until: Picoseconds


class ClockStep(Variant, frozen=True, tag="clock-step"):
    """A node's clock is set."""

    node: NodeIndex
    by: Picoseconds


class Incident(Plan, frozen=True):
    """An event in the network at an instant."""

    at: Picoseconds
    kind: Cut | Babble | Restart | ClockStep
