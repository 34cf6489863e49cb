"""Parts of a test for the builder: elements that belong to others, with their attributes as fields.

Made by tools/language.py from `crates/plan/src/language`; run `make language` after a change there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import field

from wiregauge.config.building import Part

__all__ = [
    "Ats",
    "Cbs",
    "Classify",
    "Clock",
    "Cluster",
    "CyclicQueuing",
    "Etf",
    "Event",
    "Exchange",
    "Fault",
    "FaultyMaster",
    "FlowPath",
    "Frer",
    "GateEntry",
    "GateSchedule",
    "Host",
    "HostTsn",
    "Ingress",
    "OwnFrames",
    "Police",
    "Ptp",
    "PtpClock",
    "PtpDomain",
    "ReceiveBuffer",
    "Scheduler",
    "Stack",
    "StreamGate",
    "StreamGateEntry",
    "StreamReservation",
    "SwitchTsn",
    "Timestamps",
    "TrafficClass",
    "Window",
]


class HostTsn(Part, frozen=True):
    """TSN settings of the Linux interface of an end system on a lab host: its agent makes them with tc and
    ethtool before a run and takes them off after it. Its own configuration has to allow that (tsn = true).
    The simulator has traffic classes, preemption, cbs and gate schedules of it, by the clock of the end
    system (its windows of tt flows and its virtual links go before all classes), and refuses the rest, as it
    does where it plays the network between namespaces (--switches model); with bridges namespaces refuse all
    of it.
    """

    TAG = "host-tsn"

    classes: Sequence[TrafficClass] = ()
    """A traffic class of an output port. Every priority is in one class; of those that may send, the one with
    the highest number does. On a host it is of mqprio, or of taprio with a gate schedule; frames of the
    kernel's priorities above 7 go with priority 0.
    """
    schedule: GateSchedule | None = None
    """Gate control list (IEEE 802.1Q-2022, 8.6.9), which repeats. On a host: taprio, by TAI, or with
    offload="full" by the clock of the card; one list. At a switch and in the simulator: by the clock of the
    node; the first list of a switch holds from the beginning, each further one takes over at its base-time.
    """
    classify: Sequence[Classify] = ()
    """Gives the frames of a flow a priority within the host, whatever their tag."""
    ingress: Sequence[Ingress] = ()
    """What the frames of a flow have to keep to where they arrive; others are dropped (IEEE 802.1Q-2022,
    8.6.5.2). The gate comes before the meter. At a host: in the kernel, for udp flows, and for raw flows
    where no raw flow has a tag. At a switch: the stream filter of the flow at the port where it enters, for
    udp, raw and be flows; what was dropped is told by reason, and counted by the measure policing.
    """
    channels: int | None = None
    """Number of combined queues the interface is set to during a run (ethtool -L). Default: as many as it
    has.
    """
    offload: str | None = None
    """Who keeps traffic classes and gate schedule. Default: off."""
    txtime_delay: str | None = None
    """With offload="txtime-assist": longest way of a frame from the queue discipline to the card, up to 1s,
    more than the delta of every etf.
    """
    shortest_fragment: str | None = None
    """As of a switch-tsn. Default: 64B."""
    hold_advance: str | None = None
    """How long before an entry with mac="hold" the MAC is told (holdAdvance), 0s to 1s, whole nanoseconds;
    less than it was released for before. Default: as long as a fragment may still take on the link, 143 byte
    times with fragments of 64B. A card has its own: this is what it is simulated with, and a lab refuses it.
    """
    release_advance: str | None = None
    """How long before an entry with mac="release" the MAC is told (releaseAdvance), 0s to 1s, whole
    nanoseconds; less than it was held for before. From then on preemptable frames may begin. Default: not
    before. Likewise.
    """


class TrafficClass(Part, frozen=True):
    """A traffic class of an output port. Every priority is in one class; of those that may send, the one with
    the highest number does. On a host it is of mqprio, or of taprio with a gate schedule; frames of the
    kernel's priorities above 7 go with priority 0.
    """

    TAG = "traffic-class"

    number: int
    """Its number. Classes are numbered from 0 in the order of the file."""
    priorities: str | Iterable[int]
    """Priorities of its frames. A flow has that of its tag, or of classify, or 0."""
    shaper: Cbs | Etf | Ats | None = None
    """Credit-based shaper (IEEE 802.1Q-2022, 8.6.8.2) of a class: of a host one with one queue, and two
    classes at most, where credits follow from Annex L and the rate of the link. While its gate is closed the
    credit does not rise; while it is open it rises as much faster as the idle slope then is over the whole
    cycle.
    """
    queues: int | None = None
    """Transmit queues of the class, behind those of the classes before it; on a host only. Default: 1."""
    preemptable: str | None = None
    """Whether its frames are sent in fragments where a frame of a class that is not preemptable waits and may
    be sent (IEEE 802.3-2022, clause 99; once 802.1Qbu and 802.3br). At a host it is the card that does; a lab
    wants offload="full" for it. Default: off.
    """
    longest_frame: str | None = None
    """Longest frame that may enter the class, from destination address to FCS, 64B to 1522B; longer ones are
    dropped (queueMaxSDU of IEEE 802.1Q-2022, 8.6.8.4). At a switch only. Default: any.
    """
    virtual_links: str | None = None
    """Virtual links whose frames wait in this class as well, by their priority; those of low priority in none
    above those of high priority. At arinc664 and mixed-criticality switches; no class of a host takes any.
    Default: none; they have two queues and a buffer of their own, go before all classes, and no gate or
    shaper holds them.
    """


class Cbs(Part, frozen=True):
    """Credit-based shaper (IEEE 802.1Q-2022, 8.6.8.2) of a class: of a host one with one queue, and two
    classes at most, where credits follow from Annex L and the rate of the link. While its gate is closed the
    credit does not rise; while it is open it rises as much faster as the idle slope then is over the whole
    cycle.
    """

    TAG = "cbs"

    idle_slope: str
    """Bandwidth of the class on the wire, preamble and gap included. On a host a whole number of kbit/s, and
    all together less than the rate of the link; at a switch at most that.
    """
    max_frame: str | None = None
    """Longest frame of the class on the wire, preamble and gap included, 84B to 9238B; on a host only.
    Default: 1542B.
    """
    max_interference: str | None = None
    """Longest frame of classes without a shaper, likewise; on a host only. Default: 1542B."""
    offload: str | None = None
    """Whether the card shapes; on a host only. Default: off."""


class Etf(Part, frozen=True):
    """Earliest launch time first: frames leave at the time that each of them names (SO_TXTIME). For flows
    with launch="on", in a class with one queue, not that of priority 0.
    """

    TAG = "etf"

    delta: str | None = None
    """How long before its launch time a frame is given to the driver, 0s to 1s; whole nanoseconds. Default:
    300us.
    """
    offload: str | None = None
    """Whether the card launches; otherwise a timer of the kernel. Default: off."""
    deadline: str | None = None
    """Whether the time is the latest one; otherwise the exact one. Default: off."""


class GateSchedule(Part, frozen=True):
    """Gate control list (IEEE 802.1Q-2022, 8.6.9), which repeats. On a host: taprio, by TAI, or with
    offload="full" by the clock of the card; one list. At a switch and in the simulator: by the clock of the
    node; the first list of a switch holds from the beginning, each further one takes over at its base-time.
    """

    TAG = "gate-schedule"

    entries: Sequence[GateEntry] = ()
    """A line of a gate control list; on a host 28 at most, at a switch 1024."""
    base_time: str | None = None
    """An instant at which a cycle begins; whole nanoseconds. On a host after midnight of 1970-01-01 TAI, at
    most 24h; at a switch after the epoch, at most 168h. Default: 0s.
    """
    cycle_time: str | None = None
    """Sum of its entries, at most 2147483647ns. States what is meant; another sum is refused."""
    cycle_extension: str | None = None
    """At a switch: how much longer the last cycle before the next list may last (cycle-time extension), at
    most 1s. A cycle that would begin less than that before the next list does not; the gates stay as its last
    entry has them. Default: 0s.
    """


class GateEntry(Part, frozen=True):
    """A line of a gate control list; on a host 28 at most, at a switch 1024."""

    TAG = "gate-entry"

    for_: str
    """For how long; whole nanoseconds, more than a frame of 60 bytes takes."""
    open: str | Iterable[int] | None = None
    """Classes whose gates are open. Default: none."""
    mac: str | None = None
    """What it does to the MAC of a port with preemption (IEEE 802.1Q-2022, table 8-7); on a host with
    offload="full" only. Default: unchanged.
    """


class Classify(Part, frozen=True):
    """Gives the frames of a flow a priority within the host, whatever their tag."""

    TAG = "classify"

    flow: int
    """A flow that the host sends or returns; udp or raw."""
    priority: int
    """The priority."""


class Ingress(Part, frozen=True):
    """What the frames of a flow have to keep to where they arrive; others are dropped (IEEE 802.1Q-2022,
    8.6.5.2). The gate comes before the meter. At a host: in the kernel, for udp flows, and for raw flows
    where no raw flow has a tag. At a switch: the stream filter of the flow at the port where it enters, for
    udp, raw and be flows; what was dropped is told by reason, and counted by the measure policing.
    """

    TAG = "ingress"

    flow: int
    """A flow that arrives at the host, or enters the switch."""
    gate: StreamGate | None = None
    """When frames may come; it repeats (at a host: tc-gate)."""
    police: Police | None = None
    """Most frames that may come; frames above it are dropped. At a host: tc-police, which counts frames
    without their FCS. At a switch: a flow meter with two token buckets (MEF 10.3; IEEE 802.1Q-2022, 8.6.5.5),
    which counts frames from destination address to FCS.
    """
    identify: str | None = None
    """What a switch knows the frames by; no other flow that enters by the same port may have the same. Switch
    only. Default: destination.
    """
    fields: str | None = None
    """With identify="ip": the fields that are compared, with spaces between; any value will do of the others
    (wildcards). The next protocol, UDP, always is. Default: all. Switch only.
    """
    max_sdu: str | None = None
    """Longest service data unit, 1B to 9216B: the frame without addresses, tag, type and check sequence.
    Default: any. Switch only.
    """
    block_oversize: str | None = None
    """Whether a longer one blocks the stream for the rest of the run, or until the switch restarts
    (StreamBlockedDueToOversizeFrameEnable). Switch only. Default: off.
    """
    gate_of: int | None = None
    """Instead of a stream-gate: a flow with an ingress in the same switch-tsn, whose gate its frames pass
    too. Octets and closing are of the frames of both. Switch only.
    """
    meter_of: int | None = None
    """Instead of police: a flow with an ingress in the same switch-tsn, whose meter its frames share. Switch
    only.
    """
    offload: str | None = None
    """Whether the card does it (skip_sw); otherwise the kernel. Default: off."""


class StreamGate(Part, frozen=True):
    """When frames may come; it repeats (at a host: tc-gate)."""

    TAG = "stream-gate"

    entries: Sequence[StreamGateEntry] = ()
    """A line of a stream gate; at most 24 at a host and 1024 at a switch, where none is longer than 1s."""
    base_time: str | None = None
    """As of a gate-schedule. Default: 0s."""
    cycle_time: str | None = None
    """As of a gate-schedule."""
    close_on_invalid: str | None = None
    """Whether a frame that comes while it is closed closes it for the rest of the run, or until the switch
    restarts (GateClosedDueToInvalidRxEnable). Switch only. Default: off.
    """
    close_on_octets: str | None = None
    """Whether a frame beyond max-octets does (GateClosedDueToOctetsExceededEnable). Switch only. Default:
    off.
    """


class StreamGateEntry(Part, frozen=True):
    """A line of a stream gate; at most 24 at a host and 1024 at a switch, where none is longer than 1s."""

    TAG = "stream-gate-entry"

    state: str
    """Whether frames pass."""
    for_: str
    """For how long; whole nanoseconds."""
    max_octets: str | None = None
    """Most bytes of frames that pass in it, 64B to 16MiB; open gates only. A switch counts service data units
    (IntervalOctetMax). Default: any number.
    """
    priority: int | None = None
    """Priority by which the switch queues the frames (internal priority value); they leave with their own.
    Open gates only. Default: their own. Switch only.
    """


class Police(Part, frozen=True):
    """Most frames that may come; frames above it are dropped. At a host: tc-police, which counts frames
    without their FCS. At a switch: a flow meter with two token buckets (MEF 10.3; IEEE 802.1Q-2022, 8.6.5.5),
    which counts frames from destination address to FCS.
    """

    TAG = "police"

    rate: str
    """Their rate (committed information rate), 8kbit/s to 400Gbit/s; at a switch from 1kbit/s on, and no more
    than that of the link.
    """
    burst: str
    """What may come at once (committed burst size), 64B to 16MiB; at a host at least a frame of the flow."""
    excess_rate: str | None = None
    """Excess information rate, 1kbit/s to the rate of the link. Default: none. Switch only."""
    excess_burst: str | None = None
    """Excess burst size, 64B to 16MiB: frames beyond the first bucket that it holds are yellow, they pass as
    drop eligible. Default: none. Switch only.
    """
    coupling: str | None = None
    """Whether what the first bucket has no room for goes to the second (coupling flag). Switch only. Default:
    off.
    """
    colour_mode: str | None = None
    """Whether a frame that came as drop eligible, from a meter before, may be green. Switch only. Default:
    blind.
    """
    drop_on_yellow: str | None = None
    """Whether yellow frames are dropped (DropOnYellow). Switch only. Default: off."""
    mark_all_red: str | None = None
    """Whether after the first red frame every frame is red for the rest of the run, or until the switch
    restarts (MarkAllFramesRedEnable). Switch only. Default: off.
    """


class Clock(Part, frozen=True):
    """A node's oscillator; without it the clock is perfect. It shows offset + (1 + drift) * time, rounded
    down to the granularity; schedules and timestamps of the node follow it.
    """

    TAG = "clock"
    PAIRS = (("temperature", "temperature", "at", "drift"),)

    temperature: Sequence[tuple[str, str]] = ()
    """A change of temperature, and what it does to the oscillator."""
    offset: str | None = None
    """Its offset at the epoch, the start of the warm-up; at most one day either way. Default: 0s."""
    drift: str | None = None
    """Its drift, positive if it is fast; at most 100000ppm (10 %) either way. Default: 0ppb."""
    wander: str | None = None
    """Standard deviation of the change of drift from one second to the next, at most 1000ppm; seeded.
    Default: 0ppb.
    """
    granularity: str | None = None
    """Resolution of its readings, more than 0s, at most 1s. Default: a picosecond."""


class Timestamps(Part, frozen=True):
    """Errors of the timestamps of a simulated node, drawn for each of them and seeded, before the clock
    rounds down to its granularity; without it they are exact. A real machine has its own.
    """

    TAG = "timestamps"

    application_error: str | None = None
    """Error of what an application reads. Default: none."""
    driver_error: str | None = None
    """Error of what the driver reads. Default: none."""
    wire_error: str | None = None
    """Error of what the interface, or the port of a switch, timestamps. Default: none."""
    read_cost: str | None = None
    """What it takes an application to read its clock, 0s to 10s: a message leaves, and its arrival is known,
    as much later. Default: nothing.
    """
    subtract_read_cost: str | None = None
    """What the test bed subtracts from the timestamps of applications; with read-cost only. Default: no."""


class Event(Part, frozen=True):
    """Something a simulated host does now and then by itself, in true time: it holds up each thread that has
    to be woken meanwhile; one that is at work already goes on. Its beginnings, ends and deeds are in
    truth.parquet.
    """

    TAG = "event"

    period: str
    """From the beginning of one to that of the next, 1us to 168h."""
    duration: str
    """How long each lasts, more than 0s, at most its period."""
    latency: str
    """By how much a thread is held up, 0s to 10s; with ramp-to one time, at the beginning."""
    offset: str | None = None
    """When the first begins, after the epoch. Default: 0s."""
    ramp_to: str | None = None
    """By how much at its end, 0s to 10s: it rises or falls evenly. Default: no ramp."""
    threads: str | None = None
    """The threads it holds up. Default: both."""


class Host(Part, frozen=True):
    """Values that replace those of the host model of an end system."""

    TAG = "host"

    receive_buffers: Mapping[str, ReceiveBuffer] = field(default_factory=dict)
    """What holds received frames of a kind until they are read. A host with one has one for each kind, and
    reads tt before rc before be frames; it never interrupts a read.
    """
    stacks: Mapping[str, Stack] = field(default_factory=dict)
    """What a protocol's way through the operating system costs, where that is not what the host's transmit
    and receive say: raw frames pass fewer layers than UDP. Background load is UDP.
    """
    transmit: str | None = None
    """From the application's call to the egress queue, for any frame, 0s to 10s. Default: that of the host
    model.
    """
    transmit_per_byte: str | None = None
    """The same for each byte of the frame, 0s to 10s. Default: that of the host model."""
    receive: str | None = None
    """From the woken thread to the application, for any frame, 0s to 10s. Default: that of the host model."""
    receive_per_byte: str | None = None
    """The same for each byte of the frame, 0s to 10s. Default: that of the host model."""
    interface_delay: str | None = None
    """From the driver to the first bit on the wire, 0s to 10s. Default: that of the host model."""
    interface_receive_delay: str | None = None
    """From the last bit on the wire to the frame in the receive ring, 0s to 10s. Default: that of the host
    model.
    """
    interrupt_latency: str | None = None
    """From the interrupt, or the poll, until the driver reads the ring, 0s to 10s. Default: that of the host
    model.
    """
    interrupts: str | None = None
    """When the interface tells the host of received frames. Default: that of the host model."""
    interrupt_frames: int | None = None
    """Frames after which a coalescing interface interrupts. Default: 32; coalesced interrupts only."""
    interrupt_wait: str | None = None
    """Longest wait of the first frame with coalescing, the polling period, or the least spacing of spaced
    interrupts; more than 0s, at most 10s. Required for these three, not allowed otherwise.
    """
    send_wake_up: str | None = None
    """Wake-up latency of a sender, a distribution. Default: that of the host model."""
    receive_wake_up: str | None = None
    """Wake-up latency of the receiving thread, a distribution. Default: that of the host model."""
    relay_wake_up: str | None = None
    """Wake-up latency of a relay task behind its queue, a distribution. Default: that of the host model."""
    backlog: int | None = None
    """Messages between applications and the egress queue, at most. Default: 4096."""
    ring: int | None = None
    """Size of the receive ring in frames; what does not fit is dropped. Default: 4096."""
    egress: str | None = None
    """Size of the egress queue, 2KiB to 1024MiB. Default: 4MiB."""
    background: str | None = None
    """What background load costs the host that it is sent to. Default: received if the host has card-read, a
    receive-buffer, or interrupts that are spaced, burst or adaptive; otherwise discarded.
    """
    card_read: str | None = None
    """Programmed input: time for which the processor reads any frame from the card, one after another, before
    its receiving thread gets it, 0s to 10s. Default: none; the card writes frames to memory.
    """
    card_read_per_byte: str | None = None
    """The same for each byte of the frame, 0s to 10s. Default: none. (Programmed output is
    transmit-per-byte.)
    """


class ReceiveBuffer(Part, frozen=True):
    """What holds received frames of a kind until they are read. A host with one has one for each kind, and
    reads tt before rc before be frames; it never interrupts a read.
    """

    TAG = "receive-buffer"
    KEY = "class"

    slots: int | None = None
    """Frames it holds, the one being read among them. Default: the ring of the host."""
    fifo: str | None = None
    """Size of a FIFO in front of the slots, 1522B to 1024MiB. It takes a frame only if all of it fits, and
    hands frames on as slots become free; what does not fit is lost. Default: none; a frame without a free
    slot is lost.
    """


class Stack(Part, frozen=True):
    """What a protocol's way through the operating system costs, where that is not what the host's transmit
    and receive say: raw frames pass fewer layers than UDP. Background load is UDP.
    """

    TAG = "stack"
    KEY = "protocol"

    transmit: str | None = None
    """From the application's call to the egress queue, for any frame, 0s to 10s. Default: that of the host.
    """
    transmit_per_byte: str | None = None
    """The same for each byte of the frame, 0s to 10s. Default: that of the host."""
    receive: str | None = None
    """From the woken thread to the application, for any frame, 0s to 10s. Default: that of the host."""
    receive_per_byte: str | None = None
    """The same for each byte of the frame, 0s to 10s. Default: that of the host."""


class OwnFrames(Part, frozen=True):
    """Frames that a simulated switch sends by itself, as those of a spanning tree or of a discovery protocol,
    in true time. They go to the neighbour and no further; they leave no records.
    """

    TAG = "own-frames"

    period: str
    """Time between two of a port, 1us to 168h."""
    offset: str | None = None
    """When the first is sent, after the epoch. Default: 0s."""
    frame: str | None = None
    """Length of each, from destination address to FCS, 64B to 1518B. Default: 64B."""
    priority: int | None = None
    """Priority at the output port. Default: 7."""
    ports: str | Iterable[int] | None = None
    """The ports that send them; each must have a link. Default: all that have one."""


class SwitchTsn(Part, frozen=True):
    """Traffic classes of output ports of a switch, with shapers and gates (IEEE 802.1Q-2022, 8.6.8), and
    filters of streams that enter by them (8.6.5.2). Classes take the place of its priorities at these ports.
    Windows of tt flows go before all classes, and so do virtual links that no class takes. Simulator only.
    """

    TAG = "switch-tsn"

    classes: Sequence[TrafficClass] = ()
    """A traffic class of an output port. Every priority is in one class; of those that may send, the one with
    the highest number does. On a host it is of mqprio, or of taprio with a gate schedule; frames of the
    kernel's priorities above 7 go with priority 0.
    """
    schedules: Sequence[GateSchedule] = ()
    """Gate control list (IEEE 802.1Q-2022, 8.6.9), which repeats. On a host: taprio, by TAI, or with
    offload="full" by the clock of the card; one list. At a switch and in the simulator: by the clock of the
    node; the first list of a switch holds from the beginning, each further one takes over at its base-time.
    """
    cyclic: CyclicQueuing | None = None
    """Two classes take turns (IEEE 802.1Q-2022, Annex T; once 802.1Qch): frames of either go into the one in
    odd cycles and into the other in even ones, and leave in the cycle after. By the clock of the switch; a
    frame counts for the cycle in which it is at the port, the delay of the switch behind it. In the place of
    gate schedules.
    """
    ingress: Sequence[Ingress] = ()
    """What the frames of a flow have to keep to where they arrive; others are dropped (IEEE 802.1Q-2022,
    8.6.5.2). The gate comes before the meter. At a host: in the kernel, for udp flows, and for raw flows
    where no raw flow has a tag. At a switch: the stream filter of the flow at the port where it enters, for
    udp, raw and be flows; what was dropped is told by reason, and counted by the measure policing.
    """
    ports: str | Iterable[int] | None = None
    """The ports it is for; each must have a link. Default: all that no other switch-tsn names."""
    shortest_fragment: str | None = None
    """Shortest fragment that is not the last, its check sequence included (addFragSize); with a preemptable
    class only. Default: 64B.
    """
    hold_advance: str | None = None
    """How long before an entry with mac="hold" the MAC is told (holdAdvance), 0s to 1s, whole nanoseconds;
    less than it was released for before. Default: as long as a fragment may still take on the link, 143 byte
    times with fragments of 64B.
    """
    release_advance: str | None = None
    """How long before an entry with mac="release" the MAC is told (releaseAdvance), 0s to 1s, whole
    nanoseconds; less than it was held for before. From then on preemptable frames may begin. Default: not
    before.
    """
    guard_band: str | None = None
    """No frame begins for so long before its gate closes, 1ns to 1s, whole nanoseconds; a frame that takes
    longer reaches beyond the closing. Default: a frame begins if its last bit leaves before its gate closes.
    """


class Ats(Part, frozen=True):
    """Asynchronous shaping of the flows of a class (IEEE 802.1Q-2022, 8.6.11; once 802.1Qcr): each frame
    waits until the token bucket of its flow holds its length, and frames that come by one port keep their
    order. At a switch only. Frames of flows without a scheduler wait for nothing.
    """

    TAG = "ats"

    schedulers: Sequence[Scheduler] = ()
    """The token bucket of a flow. A switch tells flows by destination address and VLAN: of two in one class
    these differ.
    """
    longest_residence: str | None = None
    """How long a frame may have to wait for its tokens, at most 10s; one that would wait longer is dropped
    (MaximumResidenceTime). Default: 1s.
    """


class Scheduler(Part, frozen=True):
    """The token bucket of a flow. A switch tells flows by destination address and VLAN: of two in one class
    these differ.
    """

    TAG = "scheduler"

    flow: int
    """A flow that passes these ports in this class."""
    rate: str
    """Committed information rate, of frames with preamble and gap, 1kbit/s to 400Gbit/s."""
    burst: str
    """Committed burst size, likewise, 84B to 16MiB."""


class CyclicQueuing(Part, frozen=True):
    """Two classes take turns (IEEE 802.1Q-2022, Annex T; once 802.1Qch): frames of either go into the one in
    odd cycles and into the other in even ones, and leave in the cycle after. By the clock of the switch; a
    frame counts for the cycle in which it is at the port, the delay of the switch behind it. In the place of
    gate schedules.
    """

    TAG = "cyclic-queuing"

    classes: str | Iterable[int]
    """The two classes."""
    cycle: str
    """Length of a cycle, 1us to 1s; whole nanoseconds."""
    base_time: str | None = None
    """When a cycle begins, after the epoch, at most 168h. Default: 0s."""


class Exchange(Part, frozen=True):
    """Two-way exchanges between the reference and every other end system of the flows, over the network under
    test, before, during and after the measured part. They give each clock's offset over time with its
    uncertainty, and every one-way latency is corrected by it.
    """

    TAG = "exchange"

    period: str | None = None
    """Time between two exchanges with one end system, 100us to 10s. Default: 10ms."""
    to: str | Iterable[str] | None = None
    """The end systems whose clocks are compared with the reference. Default: all ends of flows."""
    protocol: str | None = None
    """Frames that carry the exchanges. Default: udp."""


class Ptp(Part, frozen=True):
    """linuxptp on every end system: ptp4l, and phc2sys if the interface has a clock. Started before the first
    run, watched through every run, stopped at the end.
    """

    TAG = "ptp"

    timestamps: str | None = None
    """Where timestamps of PTP frames are taken. Default: hardware."""
    steer: str | None = None
    """Whether clocks are set and disciplined. If off, they run free and are only compared; end systems that
    share one clock must run free. Default: on.
    """
    interval: str | None = None
    """Time between two Sync messages, a power of two of a second, 7.8125ms to 16s. Default: 1s."""
    kp: str | None = None
    """Proportional constant of the servo that sets the system's clock: phc2sys, or ptp4l with software
    timestamps. Default: 0.35.
    """
    ki: str | None = None
    """Its integral constant. Default: 0.15."""
    domain: int | None = None
    """Number of the PTP domain, 0 to 127. Default: 0."""
    transport: str | None = None
    """What carries PTP frames. Default: l2."""
    delay: str | None = None
    """How delays are measured. Default: e2e."""


class Cluster(Part, frozen=True):
    """A cluster of devices that synchronise by SAE AS6802 (TTEthernet): windows and instants of
    time-triggered flows then follow the synchronised clocks, and a device that is not synchronised sends
    none. Several clusters differ in domain or priority; a device has one part in one. Simulator only.
    """

    TAG = "as6802"

    masters: str | Iterable[str]
    """End systems that are synchronisation masters, 1 to 32, in the order of their bits of the membership."""
    compression_masters: str | Iterable[str]
    """Switches that are compression masters, 1 to 3: one for each redundant channel. Control frames of a
    channel take the shortest way to and from it over switches; of several the one through the link written
    first.
    """
    faulty: Sequence[FaultyMaster] = ()
    """A synchronisation master that fails on purpose, throughout the run."""
    clients: str | Iterable[str] | None = None
    """End systems and switches that are synchronisation clients. Default: all that have no part in a cluster
    yet.
    """
    integrity: str | None = None
    """How the cluster starts. Default: standard."""
    cycle: str | None = None
    """Integration cycle, 10us to 1s: time between two integration frames of a master. Default: 1ms."""
    cycles: int | None = None
    """Integration cycles in a cluster cycle, which every period of a time-triggered flow divides. Default:
    16.
    """
    precision: str | None = None
    """By how much synchronised clocks may differ: the half width of windows of acceptance, and the window of
    observation. Default: the bound that follows from the drift of the clocks, the cycle and the ways.
    """
    max_drift: str | None = None
    """The most that an oscillator of the cluster is off by. Default: that of its clocks, with six standard
    deviations of their wander over the run.
    """
    max_delay: str | None = None
    """Longest that a control frame is under way between an end system and a compression master
    (max_transmission_delay), at most 100ms. Frames that take longer are not used. Default: at every hop
    behind a longest frame, the control frames of all masters and the windows of its port.
    """
    faulty_masters: int | None = None
    """Faulty masters that are tolerated. It takes twice as many masters and one more. Default: 0."""
    domain: int | None = None
    """Synchronisation domain of its frames. Default: 0."""
    priority: int | None = None
    """Synchronisation priority of its frames. Default: 0."""
    sync_threshold: int | None = None
    """Masters that must be in schedule for a device to be synchronised: more than are faulty, no more than
    are correct. Default: a majority.
    """
    stable_cycles: int | None = None
    """Good cycles from SYNC to STABLE. Default: 3."""
    unstable_cycles: int | None = None
    """Bad cycles in a row that a device in STABLE tolerates. Default: 1."""
    powered_within: str | None = None
    """Devices begin to synchronise at times drawn from the beginning of the run up to this, 1min at most.
    Default: 0s.
    """


class FaultyMaster(Part, frozen=True):
    """A synchronisation master that fails on purpose, throughout the run."""

    TAG = "faulty-master"

    name: str
    """Which."""
    behaviour: str
    """What it does."""
    by: str | None = None
    """By how much it is early or late, up to 10ms and a quarter of the cycle; not for a silent one."""


class PtpDomain(Part, frozen=True):
    """A domain of clocks that synchronise by PTP (IEEE Std 1588-2019) inside the simulated network: messages
    are frames, the crate statime plays the protocol, and the clocks of its nodes are steered; windows, gates
    and schedules follow them. A node has one clock that is steered, by one domain or cluster. Simulator only.
    """

    TAG = "ptp-domain"

    ordinary_clocks: str | Iterable[str]
    """End systems with a PTP clock. One with two links has a port at each."""
    clocks: Sequence[PtpClock] = ()
    """What an ordinary or boundary clock has that others have not."""
    boundary_clocks: str | Iterable[str] | None = None
    """Switches with a PTP clock: they follow a master at one port and are one at the others."""
    transparent_clocks: str | Iterable[str] | None = None
    """Switches that add to messages what these waited in them; with delay="p2p" also what the link took.
    Other switches pass messages on as they are with e2e, and not at all with p2p. Not with gptp.
    """
    domain: int | None = None
    """domainNumber of its messages, 0 to 127. Default: 0."""
    profile: str | None = None
    """Addresses and usual values. Default: default."""
    delay: str | None = None
    """How delays are measured: end to end, or between peers of a link. Default: e2e; with gptp p2p, the only
    one there.
    """
    announce_interval: str | None = None
    """Time between two Announce messages, a power of two of a second, 7.8125ms to 16s. Default: 2s; with gptp
    1s.
    """
    sync_interval: str | None = None
    """Time between two Sync messages, a power of two of a second, 7.8125ms to 16s. Default: 1s; with gptp
    125ms.
    """
    delay_interval: str | None = None
    """Mean time between two measurements of a delay, a power of two of a second, 7.8125ms to 16s. Default:
    1s.
    """
    announce_timeout: int | None = None
    """Announce intervals without a message after which a master is lost, 2 to 10; up to as many more are
    drawn. Default: 3.
    """
    servo: str | None = None
    """What steers a clock. Default: pi."""
    kp: str | None = None
    """Proportional constant of servo="pi", parts in 10^9 of frequency for each ns of offset. Without it that
    of linuxptp for hardware timestamps, which follows from the sync interval; for software timestamps it has
    0.1.
    """
    ki: str | None = None
    """Its integral constant, likewise; for software timestamps linuxptp has 0.001."""
    first_step_threshold: str | None = None
    """servo="pi" steps a clock whose first offset is greater, and steers away every other one; 0s: it never
    steps at the first. Default: 20us.
    """
    step_threshold: str | None = None
    """servo="pi" steps a clock with a greater offset whenever there is one. Without it, only at the first."""
    delay_filter: str | None = None
    """What servo="pi" takes for the delay of the last ones measured. Default: median."""
    delay_filter_length: int | None = None
    """How many those are. Default: 10."""
    priority: int | None = None
    """Priority that its frames have in queues. Default: 7."""
    max_offset: str | None = None
    """The greatest offset from the grandmaster of a clock that counts as synchronised, 1ns to 1s. Default:
    1us.
    """


class PtpClock(Part, frozen=True):
    """What an ordinary or boundary clock has that others have not."""

    TAG = "ptp-clock"

    name: str
    """Which."""
    priority1: int | None = None
    """Compared first where a grandmaster is chosen; the least wins. 0 to 254, not for slave-only. Default:
    128; with gptp 246 (IEEE Std 1588-2019, I.3.2; IEEE Std 802.1AS-2020, 8.6.2.1).
    """
    priority2: int | None = None
    """Compared among clocks that are as good; the least wins. Not for slave-only. Default: 128; with gptp
    248.
    """
    role: str | None = None
    """What it may become. Default: any."""


class StreamReservation(Part, frozen=True):
    """Bandwidth reserved for a raw or be flow at every port on its path, by the formula of the stream
    reservation protocol (IEEE 802.1Q-2022, clauses 34 and 35): each port gets traffic classes, with a
    credit-based shaper for the class of the stream whose idle slope is the sum over its streams of (frame +
    20B) * interval-frames per class measurement interval. Its frames have the priority of the class, and VLAN
    2 unless the flow names another. The switches on the path are cots switches; ports with traffic classes of
    their own are refused. Simulator only.
    """

    TAG = "stream-reservation"

    class_: str
    """Its stream reservation class."""
    max_frame_size: str | None = None
    """Longest frame without addresses, tag, type and check sequence (MaxFrameSize of the TSpec), 1B to 1500B;
    with them at least a frame of 64B counts. Default: that of the longest message of its sender in any run.
    """
    interval_frames: int | None = None
    """Frames in a class measurement interval, at most (MaxIntervalFrames). The sender may send no more on
    average. Default: 1.
    """


class Frer(Part, frozen=True):
    """Frame replication and elimination for reliability (IEEE Std 802.1CB) of a udp, raw or be flow to one
    receiver: a copy of each frame, numbered in a redundancy tag of 6B, goes every path of the flow, 2 to 8 of
    them; where they meet, the first copy passes and the others are discarded. Between where they part and
    where they meet the paths share no node and no link. Each member stream has a group address of its own,
    03:46:52:NN:FF:FF of path NN and flow FFFF, by which the switches on its path, all of them static, forward
    it.
    """

    TAG = "frer"

    recovery: str | None = None
    """How copies are told (7.4.3). Default: vector."""
    history_length: int | None = None
    """Vector recovery: sequence numbers it remembers, 2 to 32768. A copy that comes so many messages behind
    the first one is rogue and discarded; so it must exceed the messages that are sent while a copy is on its
    way longer than another. Default: 2.
    """
    reset: str | None = None
    """Any sequence number is accepted after so long without one that passed; at most 24h, longer than the
    paths are apart. Default: 2s.
    """
    individual: str | None = None
    """Individual recovery (7.5): repetitions within a member stream, of a talker that is stuck for example,
    are discarded before the streams meet. Default: off.
    """
    replicate_at: str | None = None
    """Where frames are numbered and copied: the sender, or a store-and-forward switch that all paths pass
    before they part. Default: the sender.
    """
    eliminate_at: str | None = None
    """Where copies are discarded: the receiver, or a store-and-forward switch that all paths pass after they
    met. Default: the receiver.
    """
    intermediate_recovery: str | None = None
    """Whether the store-and-forward switches on the way take part (802.1CB, annex C): where paths meet,
    copies are discarded, where they part, each gets one. Paths may then share links and switches, and a link
    carries one copy for all of them. Default: off.
    """
    latent_difference: int | None = None
    """Latent error detection (7.4.4): copies that may be missing, or too many, before it is an error.
    Default: there is no such function.
    """
    latent_period: str | None = None
    """Time between two tests, at most 24h. Default: 2s."""
    latent_reset: str | None = None
    """Missing copies are forgotten each time; at least latent-period, at most 24h. Default: 30s."""


class FlowPath(Part, frozen=True):
    """The path of a flow to one of its receivers over one network: the switches and hubs it passes. Needed
    where links close a loop and routing says nothing; elsewhere it may be written, and is checked.
    """

    TAG = "path"

    via: str
    """The switches and hubs from the sender to the receiver, both left out. Where several links lead to the
    next, the port it leaves by follows a name: sw1:3.
    """
    to: str | None = None
    """The receiver it leads to. Default: the only one."""
    network: str | None = None
    """The network it is on. Default: A, or B where the sender is on B only."""


class Window(Part, frozen=True):
    """The window of one output port on the path of a tt flow, set by hand. The windows of other ports are
    derived: a window opens when the whole frame has arrived and been processed, or with the next period if it
    would cross the end of this one.
    """

    TAG = "window"

    port: str
    """The output port, towards the receiver."""
    offset: str
    """When it opens, by the node's clock; less than the period of the flow, and not before the frame can have
    arrived.
    """
    length: str | None = None
    """How long it is open. Default: as for the other windows of the flow."""


class Fault(Part, frozen=True):
    """A planted fault: what the relay does to some messages, to check that the test bed finds it."""

    TAG = "fault"

    kind: str
    """What it does."""
    sequence: str | Iterable[int]
    """The messages, by sequence number from 0; one fault per message. Warm-up messages have no faults."""
    to: str | None = None
    """Where misdirected messages go: a third end system. Required for misdirect, not allowed otherwise."""
