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

Pacing = Literal["rate", "gap"]
Backend = Literal["udp", "packet", "xdp", "xdp-live"]


class Periodic(Variant, frozen=True, tag="periodic"):
    """A message every period."""


class Exponential(Variant, frozen=True, tag="exponential"):
    """Random sending at exponential intervals, whose mean is the period."""


class Bursts(Variant, frozen=True, tag="bursts"):
    """`size` messages every period."""

    size: int
    """Messages of a burst."""
    spacing: Picoseconds
    """Time between two of them; zero: as fast as the line takes them."""


class Ramp(Variant, frozen=True, tag="ramp"):
    """The rate changes evenly from one message every period to one every `to`."""

    to: Picoseconds
    """Time between two messages at the end."""
    length: Picoseconds
    """How long the rate changes."""


class Activity(Plan, frozen=True):
    """A cycle of sending and silence."""

    active: Picoseconds
    pause: Picoseconds


class Replay(Plan, frozen=True):
    """The frames of a capture; `trace` holds `gap:length` entries, each repeated `*times`."""

    file: str
    """Path of the capture, as the test names it."""
    trace: str
    """The recorded frames, as text: `gap:length`, each repeated `*times`."""
    speed_ppm: int
    """Speed relative to the capture, in parts per million."""
    loops: int
    """Number of repetitions."""
    loop_gap: Picoseconds
    """Time from the last frame of a loop to the first of the next."""
    least: int
    """Shortest frame sent, in bytes: shorter ones of the capture are extended to hold the probe header and
    the transmit time.
    """

    @property
    def frames(self) -> tuple[int, int]:
        """The shortest and the longest frame as sent, bytes from destination address to FCS."""
        lengths = [int(length) for length in re.findall(r":([0-9]+)", self.trace)]
        return max(self.least, min(lengths, default=0)), max(self.least, max(lengths, default=0))


class Send(Plan, frozen=True):
    """A sender task."""

    flow: FlowId
    """The flow that it sends."""
    period: Picoseconds
    """Time between intended sends."""
    offset: Picoseconds
    """Intended send of message 0, after the end of the warm-up."""
    payload: int
    """Payload in bytes: UDP payload, or payload of the Ethernet frame; the probe header is its first part."""
    fill: Literal["sequential", "random"]
    """Content of the payload after the probe header."""
    count: int
    """Messages of the measured part."""
    warm_up_count: int
    """Messages of the warm-up, numbered separately from 0."""
    pattern: Periodic | Exponential | Bursts | Ramp | None = None
    """How messages are spaced."""
    rate_limit_bps: int | None = None
    """Maximum rate on the wire in bit/s, preamble and gap included; None: no limit."""
    sub_link: int = 0
    """Sub-virtual-link of a rate-constrained flow, from 0."""
    activity: Activity | None = None
    """Cycle of sending and silence; None: it never pauses."""
    seed: int | None = None
    """Seed of its exponential intervals; None: that of the run."""
    pacing: Pacing | None = None
    """What it keeps when a message is late; None: the schedule."""
    backend: Backend | None = None
    """How its frames leave a real host; None: the simplest backend that fits."""
    launch: bool | None = None
    """Whether the interface of a real host sends its frames at their exact times; None: if a card can."""
    transmit_time: int | None = None
    """Offset of the transmit time in the payload, in bytes; None: messages carry none."""
    replay: Replay | None = None
    """The capture whose frames it sends; `period` is then the mean gap, `payload` that of the longest frame.
    None: none.
    """
    before_dispatch: Picoseconds | None = None
    """Time from the release of a message to the dispatch of its time-triggered flow, where `offset` follows
    from that.
    """
    on_cycle: bool = False
    """Whether `offset` puts messages at a fixed place of the network's cycle, by the clock of their end
    system.
    """


class Receive(Plan, frozen=True):
    """A receiver task."""

    flow: FlowId
    """The flow that it receives."""
    on: NodeIndex
    """The end system it runs on."""


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

    to: int
    """Node that it is sent to, by the driver's number."""


class Fault(Plan, frozen=True):
    """A fault that a relay applies to the messages with these sequence numbers."""

    kind: Loss | Duplicate | Reorder | Corrupt | Misdirect
    """What the fault does."""
    sequences: tuple[tuple[int, int], ...]
    """Sequence numbers of the messages, as inclusive ranges, ascending and disjoint."""


class Relay(Plan, frozen=True, kw_only=True):
    """A relay task: sends every message of the flow back to where it came from."""

    flow: FlowId
    """The flow that it returns."""
    on: NodeIndex
    """The end system it runs on, one of the flow's receivers."""
    vl: int | None = None
    """Number of the virtual link on which messages of a rate-constrained flow return; None: the flow has
    another protocol.
    """
    back: FlowId | None = None
    """The flow number that its answers carry where several relays answer one flow, so that the sender can
    tell them apart; None: the flow's own.
    """
    through: Literal["servicing", "task"]
    """Where it returns a message."""
    faults: tuple[Fault, ...]
    """Planted faults."""
    detours: tuple[Route, ...] = ()
    """Routes of the messages that faults misdirect."""


class SendingThreads(Plan, frozen=True):
    """Simulated threads of an injector."""

    number: int
    """Number of threads."""
    send_cost: Distribution | None = None
    """Time that the call that sends one frame takes a thread."""
    sleep_overhead: Distribution | None = None
    """Time by which a thread sleeps longer than asked."""


class Inject(Plan, frozen=True):
    """Background load of one end system."""

    on: NodeIndex
    """The end system that sends it."""
    to: NodeIndex
    """The end system that receives it."""
    route: Route
    """The route from one to the other."""
    payload: int
    """UDP payload of each frame in bytes."""
    burst: int
    """Frames sent back to back."""
    interval: Picoseconds
    """Time between bursts; the load is `burst · wire size / interval`. Zero load has no task."""
    load_ppm: int
    """The load this makes on the sender's link, in parts per million of its rate; with pauses, while it is
    active.
    """
    exponential: bool = False
    """Whether bursts come at exponential intervals, whose mean is `interval`."""
    threads: SendingThreads | None = None
    """Threads that send a burst and sleep, each for as many intervals as there are threads; None: the
    schedule is kept.
    """
    activity: Activity | None = None
    """Cycle of sending and silence; None: it never pauses."""
    pacing: Pacing | None = None
    """What it keeps when a burst is late; None: the schedule."""
    backend: Backend | None = None
    """How its frames leave a real host; None: the simplest backend that fits."""
    launch: bool | None = None
    """Whether the interface of a real host sends its frames at their exact times; None: if a card can."""


class RemoteLog(Plan, frozen=True):
    """A host's records of messages, sent to another host over the network under test."""

    on: NodeIndex
    """The end system that logs."""
    to: NodeIndex
    """The end system that receives its records."""
    route: Route
    """The route from one to the other."""
    record: int
    """Size of a record, in bytes."""
    records: int
    """Number of records in a frame."""


class Capture(Plan, frozen=True):
    """A capture task: every frame at the node's ports."""

    on: NodeIndex
    """The end system or switch."""
    snap: int
    """Bytes stored of each frame."""


class BitError(Variant, frozen=True, tag="bit-error"):
    """A fault that inverts a bit of the frame."""


class Delay(Variant, frozen=True, tag="delay"):
    """A fault that delays a frame."""

    by: Picoseconds
    """Additional delay."""


class WrongLength(Variant, frozen=True, tag="wrong-length"):
    """A fault by which the sender cuts frames short, or extends them, to a length in bytes."""

    length: int
    """Length that the frame then has, destination address to FCS, in bytes."""


class Share(Variant, frozen=True, tag="share"):
    """Selects frames at random, each with this probability."""

    ppm: int
    """Probability in parts per million."""


class Bits(Variant, frozen=True, tag="bits"):
    """Selects bits at random, one in so many on average."""

    mean_bits: int
    """Mean number of bits from one error to the next, at least 1."""


class Messages(Variant, frozen=True, tag="messages"):
    """Selects messages of a flow, in every copy and on both legs."""

    flow: FlowId
    """The flow."""
    sequences: tuple[tuple[int, int], ...]
    """Sequence numbers of the messages, as inclusive ranges, ascending and disjoint."""


class LinkFault(Plan, frozen=True, kw_only=True, rename={"from_": "from"}):
    """A fault of a link; `sent_by` is the end whose frames it affects, None for both."""

    link: int
    """Index into `Network.links`."""
    sent_by: NodeIndex | None = None
    """The end whose frames it affects; None: both."""
    kind: BitError | Loss | Duplicate | Delay | Corrupt | WrongLength
    """What the fault does."""
    whom: Share | Bits | Messages
    """The frames that it affects."""
    from_: Picoseconds = written(0)
    """When it begins, after the epoch."""
    until: Picoseconds | None = None
    """When it ends, after the epoch; None: with the run."""


class Cut(Variant, frozen=True, tag="cut"):
    """A cut of a link; None: it is never restored."""

    link: int
    """Index into `Network.links`."""
    until: Picoseconds | None = None
    """When it is restored, after the epoch; None: never."""


class Babble(Variant, frozen=True, tag="babble"):
    """An end system sends a flow's frames past every regulator and schedule."""

    flow: FlowId
    """The flow."""
    period: Picoseconds
    """Time between its frames."""
    length: int
    """Length of its frames, destination address to FCS, in bytes."""
    until: Picoseconds
    """When it ends, after the epoch."""


class Restart(Variant, frozen=True, tag="restart"):
    """A switch restarts."""

    switch: NodeIndex
    """The switch."""
    until: Picoseconds
    """When it is back, after the epoch."""


class ClockStep(Variant, frozen=True, tag="clock-step"):
    """A node's clock is set."""

    node: NodeIndex
    """The node."""
    by: Picoseconds
    """Time by which the clock is set forward; negative: back."""


class Incident(Plan, frozen=True):
    """An event in the network at an instant."""

    at: Picoseconds
    """When it happens, after the epoch."""
    kind: Cut | Babble | Restart | ClockStep
    """What happens."""
