"""The network under test: `wg_plan::Network`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Final, Literal

from wiregauge.plan.base import NodeIndex, Picoseconds, Plan, Protocol, Variant, written
from wiregauge.plan.ethernet import GAP
from wiregauge.plan.tsn import HostTsn, PortTsn

__all__ = [
    "NETWORK",
    "NETWORK_NODE",
    "Attachment",
    "Clock",
    "Distribution",
    "EndSystem",
    "HostEvent",
    "HostModel",
    "Hub",
    "Link",
    "Network",
    "NetworkId",
    "Node",
    "OwnFrames",
    "Switch",
    "SwitchChange",
    "TemperatureStep",
    "Timestamps",
]

NETWORK: Final = "the network"
"""The name of an agent that plays everything between the end systems; no end system may have it."""
NETWORK_NODE: Final = 0xFFFF
"""The node number of that agent in records: that of all nodes (`ALL_NODES` of `crates/record`)."""
NetworkId = Literal["A", "B"]
ForwardingMode = Literal["store-and-forward", "cut-through"]
Policing = Literal["off", "bytes", "frames"]
Integration = Literal["preemption", "timely-block", "shuffling"]


class HostCost(Plan, frozen=True):
    """Thread time that handing over a frame takes."""

    fixed: Picoseconds
    """Time for any frame."""
    per_byte: Picoseconds
    """Additional time for each byte, destination address to FCS."""


class EachFrame(Variant, frozen=True, tag="each-frame"):
    """Interrupts for every frame, on its arrival."""


class Coalesced(Variant, frozen=True, tag="coalesced"):
    """Interrupts after a number of frames, or when the first has waited for a time."""

    frames: int
    """Frames that raise it at once; at least 1."""
    wait: Picoseconds
    """Longest wait of the first."""


class Polled(Variant, frozen=True, tag="polled"):
    """Reading of frames at the multiples of a period."""

    period: Picoseconds
    """The period; positive."""


class Spaced(Variant, frozen=True, tag="spaced"):
    """Interrupts on arrival, with a least spacing."""

    spacing: Picoseconds
    """Least time between interrupts. 0: whenever the driver is idle."""


class Adaptive(Variant, frozen=True, tag="adaptive"):
    """Interrupt moderation with a least spacing that the driver adapts to the load."""


class ReceiveBuffer(Plan, frozen=True):
    """The buffer that holds received frames of a class until they are read."""

    slots: int
    """Capacity in frames, the one being read among them; at least 1."""
    fifo_bytes: int | None = None
    """Capacity of the byte FIFO in front of the slots, destination address to FCS; at least a longest frame.
    `None`: frames enter the slots directly.
    """


class Stack(Plan, frozen=True):
    """Cost of a protocol's path through the operating system."""

    protocol: Protocol
    """The protocol."""
    transmit: HostCost
    """Time from the application's call to the frame in the egress queue."""
    receive: HostCost
    """Time from the lane's first look at a frame until the application has it."""


class Distribution(Plan, frozen=True):
    """Times drawn at random: share of draws (ppm) that are not above a time."""

    quantiles: tuple[tuple[int, Picoseconds], ...]
    """Share of draws that are not above (parts per million) and the time; both ascending, the first share 0
    and the last 1 000 000. One entry: always that time. None: always zero.
    """


class HostModel(Plan, frozen=True):
    """Model of everything between an application and the wire."""

    transmit: HostCost
    """Time from the application's call to the egress queue."""
    receive: HostCost
    """Time from the woken thread to the application."""
    interface_delay: Picoseconds
    """Time from the driver to the first bit on the wire."""
    interrupt_latency: Picoseconds
    """Time from the interrupt, or the poll, until the driver reads the ring."""
    interrupts: EachFrame | Coalesced | Polled | Spaced | Adaptive
    """When the interface interrupts the host for received frames."""
    send_wake_up: Distribution
    """Latency of waking a sender."""
    receive_wake_up: Distribution
    """Latency of waking the receiving thread."""
    relay_wake_up: Distribution
    """Latency of waking a relay task behind its queue."""
    backlog: int
    """Capacity between applications and the egress queue, in messages."""
    ring: int
    """Capacity of the receive ring, in frames."""
    egress_bytes: int
    """Capacity of the egress queue, in bytes."""
    receives_load: bool = False
    """Whether background load that comes passes ring, interrupts and reader like any frame; otherwise the
    interface discards it.
    """
    card_read: HostCost | None = None
    """Processor time for reading a frame from the card; None: the card writes frames to memory."""
    receive_buffers: tuple[ReceiveBuffer, ReceiveBuffer, ReceiveBuffer] | None = None
    """Receive buffers of time-triggered, rate-constrained and best-effort frames; None: one ring for all."""
    interface_receive_delay: Picoseconds = 0
    """Time from the last bit on the wire to the frame in the ring."""
    stacks: tuple[Stack, ...] = ()
    """Protocols whose path through the operating system has costs of its own, each once; others have
    `transmit` and `receive`.
    """

    @property
    def takes_no_time(self) -> bool:
        """Whether it costs nothing and delays nothing."""
        costs = [self.transmit, self.receive, *([self.card_read] if self.card_read else [])]
        costs += [cost for stack in self.stacks for cost in (stack.transmit, stack.receive)]
        wakes = (self.send_wake_up, self.receive_wake_up, self.relay_wake_up)
        return not (
            not isinstance(self.interrupts, EachFrame)
            or self.interface_delay
            or self.interface_receive_delay
            or self.interrupt_latency
            or any(cost.fixed or cost.per_byte for cost in costs)
            or any(time for wake in wakes for _, time in wake.quantiles)
        )


class EndSystem(Variant, frozen=True, tag="end-system"):
    """Sends, receives and relays messages; one agent runs on it."""

    host: HostModel | None = None
    """What lies between its applications and the wire, where the bench has to imitate it."""


class Capacity(Plan, frozen=True):
    """Capacity of a buffer."""

    bytes: int
    """Greatest occupancy in bytes of frames, destination address to FCS."""
    frames: int | None = None
    """Greatest number of frames; `u32.MAX`: unlimited."""


class VlanPorts(Plan, frozen=True):
    """A VLAN and the ports that carry it."""

    id: int
    """VLAN identifier, 1 to 4094; 0 for untagged and priority-tagged frames."""
    ports: tuple[int, ...]
    """Port numbers, ascending."""


class Raster(Plan, frozen=True):
    """Slots a switch serves its ports in."""

    slot: Picoseconds
    others: int


class Timestamps(Plan, frozen=True, kw_only=True):
    """Errors of the timestamps of a simulated node."""

    application_error: Distribution | None = None
    """Error of a timestamp that an application takes."""
    driver_error: Distribution | None = None
    """Error of a timestamp that the driver takes."""
    wire_error: Distribution | None = None
    """Error of a timestamp that the interface, or the port of a switch, takes."""
    read_cost: Distribution | None = None
    """Time that an application takes to read its clock: a message leaves, and a reception is known, later by
    it.
    """
    subtract_read_cost: bool = False
    """Whether the least read cost is subtracted from every timestamp of an application."""


class HostEvent(Plan, frozen=True, kw_only=True):
    """Something a simulated host does now and then."""

    period: Picoseconds
    """Time from the beginning of one event to that of the next."""
    offset: Picoseconds = written(0)
    """When the first event begins, after the epoch."""
    duration: Picoseconds
    """Duration of each event."""
    latency: Distribution
    """Latency that it adds to a thread that is woken meanwhile; with a ramp, at its beginning."""
    ramp_to: Picoseconds | None = None
    """Latency at its end, to which it rises or falls evenly; None: no ramp."""
    threads: Literal["both", "send", "receive"] = written("both")
    """The threads it holds up."""


class OwnFrames(Plan, frozen=True, kw_only=True):
    """Frames that a simulated switch sends by itself."""

    period: Picoseconds
    """Time between two frames of a port."""
    offset: Picoseconds = written(0)
    """When the first frame is sent, after the epoch."""
    length: int
    """Length of a frame, destination address to FCS, in bytes."""
    priority: int
    """Priority of the frames at the output port, 0 to 7."""
    ports: tuple[int, ...] = ()
    """Ports that send them, ascending; empty: all that have a link."""


class AddressTable(Plan, frozen=True, kw_only=True):
    """The address table of a learning switch."""

    entries: int
    """Number of addresses that it holds."""
    entry_time: Picoseconds = 0
    """Time to enter an address; meanwhile no other is learnt."""
    ageing: Picoseconds
    """Time after which an address that is not seen is forgotten."""


class FrameLengths(Plan, frozen=True):
    """Lengths of frames that a switch takes, in bytes; tags are not counted in the longest."""

    shortest: int
    """Shortest frame accepted, in bytes."""
    longest: int
    """Longest frame accepted, in bytes without tags (IEEE Std 802.3-2022, 4.2.7.1: maxBasicFrameSize,
    qTagPrefixSize).
    """


class Switch(Variant, frozen=True, kw_only=True, tag="switch"):
    """Forwards frames."""

    kind: Literal["cots", "arinc664", "mixed-criticality"]
    """Kind of switch, which says what it forwards by."""
    forwarding_mode: ForwardingMode = written("store-and-forward")
    """When it forwards."""
    processing_delay: Picoseconds = written(0)
    """Processing delay: from the last bit in (cut-through: the last bit of the header) to the earliest first
    bit out.
    """
    drawn_delay: Distribution | None = None
    """Distribution that the processing delay of each frame is drawn from; None: it is `processing_delay`."""
    mixed_rate_delay: Picoseconds = 0
    """Additional delay of a frame between ports of different rates."""
    frame_lengths: FrameLengths | None = None
    """Lengths of frames that it accepts, others are dropped at the input port; None: those of the standard.
    """
    own_frames: tuple[OwnFrames, ...] = ()
    """Frames that it sends by itself."""
    learning: bool = written(False)
    """Whether addresses are learnt; otherwise the routes of all flows are entered before the run."""
    address_table: AddressTable | None = None
    """The table of learnt addresses; None: without a limit."""
    strict_priority: bool = written(False)
    """Whether an output port has a queue for each of the eight priorities; otherwise it has one for all."""
    port_buffer: Capacity
    """Capacity of each output port."""
    queue_buffer: Capacity | None = None
    """Capacity of each queue of a port; None: that of the port."""
    shared_buffer: Capacity | None = None
    """Capacity of all ports together; None: unlimited."""
    vlans: tuple[VlanPorts, ...] = ()
    """VLANs and the ports that carry them; empty: tags are ignored."""
    policing: Policing = written("bytes")
    """How virtual links are policed."""
    integration: Integration = written("timely-block")
    """How time-triggered frames are protected from other frames."""
    raster: Raster | None = None
    """Alternating slots for time-triggered and other frames; None: none."""
    tsn: tuple[PortTsn, ...] = ()
    """Traffic classes, shapers and gates of its ports, each port in one of them at most."""


class Hub(Variant, frozen=True, tag="hub"):
    """Repeats bits on a shared half-duplex medium."""

    delay: Picoseconds
    """From a bit in to the bit out."""


class TemperatureStep(Plan, frozen=True):
    """A change of drift."""

    at: Picoseconds
    """When it happens, after the epoch."""
    drift_ppb: int
    """Change of the drift, in parts per billion."""


class Clock(Plan, frozen=True):
    """A clock that the test makes imperfect."""

    offset: Picoseconds = written(0)
    """Reading at the epoch."""
    drift_ppb: int = written(0)
    """Drift in parts per billion; positive: too fast."""
    wander_ppb: int = written(0)
    """Standard deviation of the change of drift from one second to the next, in parts per billion."""
    granularity: Picoseconds = written(1)
    """Resolution of its readings."""
    temperature: tuple[TemperatureStep, ...] = ()
    """Changes of drift by temperature, ascending in time."""

    def error_bound_ns(self, length_ns: float) -> float:
        """The most it can be off within `length_ns` of its epoch: without wander exactly, with it at three sigma."""
        warmer = (
            sum(abs(step.drift_ppb) * max(length_ns - step.at / 1000, 0.0) for step in self.temperature)
            * 1e-9
        )
        seconds = length_ns / 1e9
        # The drift walks at random once a second; its integral has the variance sigma^2 t^3 / 3.
        walked = 3 * self.wander_ppb * math.sqrt(seconds**3 / 3)
        steady = abs(self.offset / 1000) + abs(self.drift_ppb) * length_ns * 1e-9
        return steady + warmer + walked + self.granularity / 1000


class Node(Plan, frozen=True):
    """An end system, a switch or a hub."""

    name: str
    """Name in the test file."""
    kind: EndSystem | Switch | Hub
    """What it is."""
    mac: tuple[int, ...]
    """MAC address; locally administered, derived from the node's index."""
    ipv4: tuple[int, ...]
    """IPv4 address in 198.18.0.0/15, the range RFC 2544 reserves for benchmarks."""
    clock: Clock | None = None
    """Its clock; a perfect one where the test gives none."""
    tsn: HostTsn | None = None
    """TSN settings of the interface of an end system."""
    line_drift_ppb: int = 0
    """Frequency error of the oscillator of its interfaces in parts per billion; positive: its lines send
    faster.
    """
    interframe_gap: int = GAP
    """Least gap that its interfaces leave behind a frame, in bytes."""
    timestamps: Timestamps | None = None
    """Errors of its timestamps in simulation; None: they are exact."""
    events: tuple[HostEvent, ...] = ()
    """Recurring events of its simulated host."""

    @property
    def is_end_system(self) -> bool:
        """Whether messages are sent and received here; an agent runs on it."""
        return isinstance(self.kind, EndSystem)


class Attachment(Plan, frozen=True, order=True):
    """A port of a node, counted from 1."""

    node: NodeIndex
    """The node."""
    port: int
    """Its port, counted from 1. An end system has port 1, and port 2 where it is on both networks."""


class Link(Plan, frozen=True):
    """A link between two ports."""

    ends: tuple[Attachment, Attachment]
    """Its two ends."""
    rate_bps: int
    """Bit rate on the wire, each direction; half duplex at a hub."""
    delay: Picoseconds
    """Propagation delay, one way."""
    network: NetworkId = written("A")
    """The redundant network it belongs to."""

    @property
    def nodes(self) -> tuple[int, int]:
        """The nodes it joins."""
        return self.ends[0].node, self.ends[1].node


class SwitchChange(Plan, frozen=True):
    """Switch settings that a sweep changes."""

    forwarding_mode: ForwardingMode | None = None
    """Forwarding mode of every switch."""
    policing: Policing | None = None
    """Policing of every switch that knows virtual links."""
    integration: Integration | None = None
    """Integration of every mixed-criticality switch."""

    def items(self) -> Iterator[tuple[str, str]]:
        """Name and new value of each changed setting."""
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return ((name, value) for name, value in values if value is not None)


class Network(Plan, frozen=True, dict=True):
    """Nodes and links. Node `i` of the list has the number `i`."""

    nodes: tuple[Node, ...]
    """End systems, switches and hubs."""
    links: tuple[Link, ...]
    """Links between their ports."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the nodes, by index."""
        return tuple(node.name for node in self.nodes)

    @cached_property
    def has_loops(self) -> bool:
        """Whether links of one of the redundant networks close a loop."""
        part: dict[tuple[str, int], tuple[str, int]] = {}

        def root(node: tuple[str, int]) -> tuple[str, int]:
            while (above := part.get(node, node)) != node:
                part[node] = node = part.get(above, above)
            return node

        for link in self.links:
            a, b = (root((link.network, node)) for node in link.nodes)
            if a == b:
                return True
            part[a] = b
        return False

    @property
    def end_systems(self) -> dict[int, Node]:
        """Nodes that are end systems, by number."""
        return {number: node for number, node in enumerate(self.nodes) if node.is_end_system}

    @property
    def granularities(self) -> dict[str, float]:
        """The smallest steps of clocks that are not perfect, ns, by the names of their nodes."""
        return {node.name: node.clock.granularity / 1000 for node in self.nodes if node.clock is not None}

    def first_rate(self, node: int) -> int | None:
        """Rate of the first link of a node, bit/s."""
        return self._first_rates.get(node)

    @cached_property
    def _first_rates(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for link in self.links:
            for node in link.nodes:
                found.setdefault(node, link.rate_bps)
        return found

    def ends_of(self, link: int) -> str:
        """The nodes a link joins, by name."""
        return " ".join(self.names[node] for node in self.links[link].nodes)
