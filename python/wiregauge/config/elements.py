"""What a test is made of, for the builder: a method for each element, with its attributes as arguments.

Made by tools/language.py from `crates/plan/src/language`; run `make language` after a change there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from wiregauge.config.building import Building, given, values_of
from wiregauge.config.parts import (
    Clock,
    Cluster,
    Event,
    Exchange,
    Fault,
    FlowPath,
    Frer,
    Host,
    HostTsn,
    OwnFrames,
    Ptp,
    PtpDomain,
    StreamReservation,
    SwitchTsn,
    Timestamps,
    Window,
)

__all__ = ["Elements"]


class Elements(Building):
    """Every method adds an element and returns the test itself."""

    PAIRS = (("vlans", "vlan", "id", "ports"),)

    def __init__(
        self,
        name: str,
        seed: int | None = None,
        *,
        bench: str | None = None,
        host: str | None = None,
        routing: str | None = None,
    ) -> None:
        """A test: one network, the flows in it, the tasks that send and receive them, and optionally faults,
        a sweep and limits.

        Args:
            name: Its name, shown in reports.
            seed: All random choices derive from it: the same file and seed give the same test. Run i uses
                output i + 1 of SplitMix64 seeded with it. Default: 1.
            bench: The bench it runs on, unless the command line names one. Default: sim.
            host: Host model of end systems that name none. A bench of real machines ignores it. Default:
                tuned.
            routing: Which way a flow takes that names none. Default: unique.
        """
        super().__init__(name)
        self._fill(self._root, {"name": name, "seed": seed, "bench": bench})
        for section in ("network", "flows", "tasks"):
            self._section(section)
        self._say("network", {"host": host, "routing": routing})

    def end_system(
        self,
        name: str,
        host: str | Host | None = None,
        *,
        line_drift: str | None = None,
        interframe_gap: str | None = None,
        clock: Clock | None = None,
        timestamps: Timestamps | None = None,
        events: Sequence[Event] = (),
        tsn: HostTsn | None = None,
    ) -> Self:
        """A host that sends, receives or relays messages. It has one link on network A, on B, or on each.
        Clock and host model apply to simulation; a real machine has its own. `host` names its model, or
        replaces values.

        Args:
            name: Its name, unique in the network.
            host: Its host model. Default: that of the network. Or: Values that replace those of the host
                model of an end system.
            line_drift: How much too fast the oscillator of its interfaces runs, at most 1000ppm either
                way: they send so much faster than the rate of their links, to the next bit/s. Not at a hub,
                nor where windows of tt flows are. Simulator only. Default: 0ppb.
            interframe_gap: The least gap that its interfaces leave behind a frame, 5B to 12B; less than
                the 12B of IEEE 802.3 is forward pressure. Not at a hub, nor with windows, traffic classes or
                shapers. Simulator only. Default: 12B.
            clock: A node's oscillator; without it the clock is perfect. It shows offset + (1 + drift) *
                time, rounded down to the granularity; schedules and timestamps of the node follow it.
            timestamps: Errors of the timestamps of a simulated node, drawn for each of them and seeded,
                before the clock rounds down to its granularity; without it they are exact. A real machine has
                its own.
            events: Something a simulated host does now and then by itself, in true time: it holds up each
                thread that has to be woken meanwhile; one that is at work already goes on. Its beginnings,
                ends and deeds are in truth.parquet.
            tsn: TSN settings of the Linux interface of an end system on a lab host: its agent makes them
                with tc and ethtool before a run and takes them off after it. Its own configuration has to
                allow that (tsn = true). The simulator has traffic classes, preemption, cbs and gate schedules
                of it, by the clock of the end system (its windows of tt flows and its virtual links go before
                all classes), and refuses the rest, as it does where it plays the network between namespaces
                (--switches model); with bridges namespaces refuse all of it.
        """
        return self._add("network", "end-system", given(locals()))

    def host_model(
        self,
        name: str,
        host: Host | None = None,
        *,
        like: str | None = None,
        file: Path | str | None = None,
    ) -> Self:
        """A host model with a name, which end systems and the network refer to by host. A file may hold it:
        then this element names the file, and what is written here replaces what the file says. A `file` that
        is not absolute begins at the working directory.

        Args:
            name: Its name, unique among the host models of the network, and neither tuned nor ideal.
            host: The values that it has.
            like: The model whose values it has where none are written. Default: tuned.
            file: A file with a host-model element whose attributes and elements it takes over; its name
                does not count.
        """
        own = {} if host is None else values_of(host)
        return self._add("network", "host-model", {**given(locals(), "host", "own"), **own})

    def switch(
        self,
        name: str,
        *,
        file: Path | str | None = None,
        kind: str | None = None,
        forwarding_mode: str | None = None,
        delay: str | None = None,
        mixed_rate_delay: str | None = None,
        line_drift: str | None = None,
        interframe_gap: str | None = None,
        shortest_frame: str | None = None,
        longest_frame: str | None = None,
        forwarding: str | None = None,
        address_table: int | None = None,
        learning_time: str | None = None,
        ageing_time: str | None = None,
        priorities: str | None = None,
        buffer: str | None = None,
        buffer_frames: int | None = None,
        queue_buffer: str | None = None,
        queue_frames: int | None = None,
        shared_buffer: str | None = None,
        shared_frames: int | None = None,
        policing: str | None = None,
        integration: str | None = None,
        raster: str | None = None,
        raster_others: int | None = None,
        clock: Clock | None = None,
        timestamps: Timestamps | None = None,
        own_frames: Sequence[OwnFrames] = (),
        vlans: Mapping[int, str | Iterable[int]] | None = None,
        tsn: Sequence[SwitchTsn] = (),
    ) -> Self:
        """A switch. It is on network A or on network B. `vlans` has the ports that carry each VLAN. A `file`
        that is not absolute begins at the working directory.

        Args:
            name: Its name, unique in the network.
            file: A file with a switch element whose attributes it takes over, such as one that identify
                wrote; what is written here replaces what the file says.
            kind: What it is. Default: cots.
            forwarding_mode: When it forwards. Default: store-and-forward.
            delay: Processing delay, 0s to 1s: from the last bit in (cut-through: the last bit of the
                header) to the earliest first bit out. A distribution is drawn from for each frame, and the
                frames of an input port keep their order; not for mixed-criticality. Default: 2us.
            mixed_rate_delay: How much longer a frame takes from a port to one whose link has another
                rate, 0s to 1s; not for mixed-criticality. Simulator only. Default: 0s.
            line_drift: How much too fast the oscillator of its interfaces runs, at most 1000ppm either
                way: they send so much faster than the rate of their links, to the next bit/s. Not at a hub,
                nor where windows of tt flows are. Simulator only. Default: 0ppb.
            interframe_gap: The least gap that its interfaces leave behind a frame, 5B to 12B; less than
                the 12B of IEEE 802.3 is forward pressure. Not at a hub, nor with windows, traffic classes or
                shapers. Simulator only. Default: 12B.
            shortest_frame: Length of the shortest frame that it takes, 18B to 64B: a shorter one is a
                runt, which a store-and-forward switch drops. A runt that is forwarded leaves padded.
                Simulator only. Default: 64B.
            longest_frame: Length of the longest frame that it takes, tags not counted, 1518B to 16000B: a
                longer one is a giant, which a store-and-forward switch drops. Simulator only. Default: 1518B.
            forwarding: How it learns addresses. Default: static.
            address_table: Addresses it holds, any in any entry; an address that finds none free is not
                learnt, and frames to it are flooded. With forwarding="learning". Simulator only. Default: a
                hash table of 8192 places without learning-time and ageing-time, otherwise 1048576.
            learning_time: How long it takes to enter an address, 0s to 1s; until then the address is
                unknown, and no other is learnt. With forwarding="learning". Simulator only. Default: 0s.
            ageing_time: How long it keeps an address that it does not see (IEEE 802.1Q-2022, 8.8.3), 1us
                to 1000000s. With forwarding="learning". Simulator only. Default: 300s.
            priorities: Which frame an output port sends first. Default: fifo for cots, strict for the
                other kinds. Untagged frames have priority 0; virtual links go before all other frames.
            buffer: Buffer of each output port, 2KiB to 1024MiB. What does not fit is dropped. A port of
                an arinc664 or mixed-criticality switch has a buffer of this size for virtual links and
                another for all other frames, unless its priorities are fifo. Default: 512KiB.
            buffer_frames: Buffer of each output port in frames. Default: as many as its bytes allow.
            queue_buffer: Size of each queue of a port, 2KiB to 1024MiB. Default: as much as its buffer.
            queue_frames: Size of each queue of a port in frames. Default: as many as its bytes allow.
            shared_buffer: Buffer of all ports together, 2KiB to 1024MiB. Default: no limit.
            shared_frames: Buffer of all ports together in frames. Default: no limit.
            policing: How virtual links are policed; arinc664 and mixed-criticality only. Default: bytes.
            integration: How time-triggered frames are protected; mixed-criticality only. Default:
                timely-block.
            raster: Length of alternating slots for time-triggered and other frames, at most 1s and at
                least as long as the longest frame takes on its slowest link; mixed-criticality only. Default:
                no slots.
            raster_others: Slots for other frames after each one for time-triggered frames (the delta
                raster parameter); with raster only. Default: 1.
            clock: A node's oscillator; without it the clock is perfect. It shows offset + (1 + drift) *
                time, rounded down to the granularity; schedules and timestamps of the node follow it.
            timestamps: Errors of the timestamps of a simulated node, drawn for each of them and seeded,
                before the clock rounds down to its granularity; without it they are exact. A real machine has
                its own.
            own_frames: Frames that a simulated switch sends by itself, as those of a spanning tree or of
                a discovery protocol, in true time. They go to the neighbour and no further; they leave no
                records.
            vlans: A VLAN of a switch and the ports that carry it. A switch without any ignores tags.
            tsn: Traffic classes of output ports of a switch, with shapers and gates (IEEE 802.1Q-2022,
                8.6.8), and filters of streams that enter by them (8.6.5.2). Classes take the place of its
                priorities at these ports. Windows of tt flows go before all classes, and so do virtual links
                that no class takes. Simulator only.
        """
        return self._add("network", "switch", given(locals()))

    def hub(self, name: str, *, delay: str | None = None) -> Self:
        """A repeater: all its links share one half-duplex medium (IEEE 802.3, CSMA/CD). It joins end systems
        only; all its links have one rate, 10Mbit/s or 100Mbit/s.

        Args:
            name: Its name, unique in the network.
            delay: Delay from bit in to bit out, 0s to 1s; a class II repeater has at most 46 bit times.
                Default: 460ns.
        """
        return self._add("network", "hub", given(locals()))

    def link(
        self,
        a: str,
        b: str,
        *,
        rate: str,
        delay: str | None = None,
        network: str | None = None,
    ) -> Self:
        """A cable between two nodes: full duplex, half duplex at a hub. An end may name a port of a switch:
        `"sw1:3"`.

        Args:
            a: The two nodes. A switch port may be given (sw1:3, 1 to 1024); others are numbered in the
                order of the file, the lowest free port first. An end system has port 1 on network A and port
                2 on network B.
            b: The other end.
            rate: Bit rate of each direction, 1Mbit/s to 400Gbit/s; at a hub 10Mbit/s or 100Mbit/s.
            delay: Propagation delay one way, at most 10s; about 5ns per metre of cable. Default: 0ns.
            network: The redundant network it belongs to. A switch or hub is on one of them only. Default:
                A.
        """
        return self._add("network", "link", {"between": f"{a} {b}", **given(locals(), "a", "b")})

    def flow(
        self,
        id: int | str,
        *,
        protocol: str,
        from_: str,
        to: str | Iterable[str],
        deadline: str | None = None,
        vlan: int | None = None,
        priority: int | None = None,
        dscp: int | None = None,
        networks: str | None = None,
        vl: int | str | None = None,
        lmax: str | None = None,
        bag: str | None = None,
        sub_links: int | None = None,
        queue: int | None = None,
        skew_max: str | None = None,
        redundancy: str | None = None,
        sequence_number: str | None = None,
        jitter: str | None = None,
        period: str | None = None,
        offset: str | None = None,
        offset_step: str | None = None,
        window: str | None = None,
        early: str | None = None,
        late: str | None = None,
        source_mac: str | None = None,
        destination_mac: str | None = None,
        source_macs: int | None = None,
        destination_macs: int | None = None,
        source_ip: str | None = None,
        destination_ip: str | None = None,
        source_port: int | None = None,
        destination_port: int | None = None,
        windows: Sequence[Window] = (),
        paths: Sequence[FlowPath] = (),
        frer: Frer | None = None,
        reservation: StreamReservation | None = None,
    ) -> Self:
        """A stream of numbered messages from one end system to one or several others, and back if relays
        return them (not tt). A range, `"101-140"`, makes a group.

        Args:
            id: Its number, unique in the test; it travels in every message.
            protocol: How it is carried.
            from_: Sending end system.
            to: Receiving end systems, each once; several make it multicast. The sender alone makes it a
                loopback: down the stack of the host and up again, past every interface (udp, raw and be
                flows).
            deadline: A message that is older than this on arrival is late; more than 0s. Without it no
                message is late.
            vlan: 802.1Q VLAN of its frames; raw and be flows only. With priority alone frames are
                priority-tagged (VLAN 0).
            priority: 802.1Q priority (PCP) of its frames; udp, raw and be flows; 0 if only vlan is given.
                On hosts of a lab, frames of udp flows get the tag from filters of <host-tsn> where all who
                send or return them have it; else agents write it. rc flows: switches with strict priorities
                and end systems have two queues above those of all other frames, the lower one for 0 to 3, the
                upper one for 4 to 7; the frames carry no tag. Default for rc: 4.
            dscp: udp and be: differentiated services code point of its packets (RFC 2474). Switches
                ignore it; captures show it. Default: 0.
            networks: The networks it travels on. Default: for rc both if all its ends are on both;
                otherwise A if all its ends are on A, else B. For a tt flow on both, the first accepted copy
                counts.
            vl: rc and tt: number of the virtual link or critical-traffic identifier, unique among both.
                Default: the flow's id.
            lmax: rc and tt: longest frame, destination address to FCS, 64B to 1518B. Default: the frame
                of its sender.
            bag: rc, required there: bandwidth allocation gap, 1, 2, 4, 8, 16, 32, 64 or 128ms. On every
                link the contracts of all virtual links, lmax + 20B per bag, must fit; an end system has at
                most 128 virtual links, and its output jitter, 40us + sum of (20B + lmax) / rate, must not
                exceed 500us.
            sub_links: rc: sub-virtual-links, served in turn. Default: 1.
            queue: rc: frames each sub-virtual-link holds, 64 by default. tt: messages that wait for their
                dispatch; without it only the last one is kept.
            skew_max: rc: maximum time between two copies of a frame for the second to be removed; more
                than 0s, less than 254 BAG. Default: 5ms.
            redundancy: rc: whether second copies are removed. Default: on.
            sequence_number: rc: where the sequence number of the virtual link lies. Default: behind.
            jitter: rc: jitter that a switch allows the virtual link at an input port, 0s to 128ms.
                Default: 500us.
            period: tt, required there: time between two dispatches, more than 0s, at most 100s. All
                windows of a port must begin together again within 65536 openings.
            offset: tt: first dispatch by the sender's clock, less than the period. Default: 0s.
            offset_step: tt: In a group: added to offset from one member to the next, so that they do not
                all send at once. Default: 0s.
            window: tt: length of each window on its path: at least the longest frame with preamble and
                gap, at most the period. Default: that time, plus 2us, plus blocking by other frames: under
                shuffling the longest other frame of each switch, under preemption a preamble and a gap, in a
                raster the slots of others and one frame.
            early: tt: how long before the planned instant of reception a frame is accepted, less than the
                period. Default: 1us, plus the time by which frames shorter than lmax arrive earlier.
            late: tt: how long after the planned instant it is accepted, less than the period. Default:
                the length of the last window.
            source_mac: udp, raw, be: source MAC address of its frames; not that of another end system.
                Default, as for the next five: that of the end system.
            destination_mac: udp, raw, be: destination MAC address of its frames. Switches know its port;
                a learning switch floods it. A raw flow to several end systems can have ff:ff:ff:ff:ff:ff,
                which switches send out of every port.
            source_macs: udp, raw, be: how many source MAC addresses its messages have in turn, from
                source-mac on: message k has the one k mod source-macs behind it. Default: 1.
            destination_macs: The same of destination MAC addresses, from destination-mac on. Default: 1.
            source_ip: udp, be: source IPv4 address of its frames.
            destination_ip: udp, be: destination IPv4 address of its frames.
            source_port: udp, be: source UDP port of its frames. Default: 61189 for streams, otherwise
                61188.
            destination_port: udp, be: destination UDP port of its frames. Default: 61188.
            windows: The window of one output port on the path of a tt flow, set by hand. The windows of
                other ports are derived: a window opens when the whole frame has arrived and been processed,
                or with the next period if it would cross the end of this one.
            paths: The path of a flow to one of its receivers over one network: the switches and hubs it
                passes. Needed where links close a loop and routing says nothing; elsewhere it may be written,
                and is checked.
            frer: Frame replication and elimination for reliability (IEEE Std 802.1CB) of a udp, raw or be
                flow to one receiver: a copy of each frame, numbered in a redundancy tag of 6B, goes every
                path of the flow, 2 to 8 of them; where they meet, the first copy passes and the others are
                discarded. Between where they part and where they meet the paths share no node and no link.
                Each member stream has a group address of its own, 03:46:52:NN:FF:FF of path NN and flow FFFF,
                by which the switches on its path, all of them static, forward it.
            reservation: Bandwidth reserved for a raw or be flow at every port on its path, by the formula
                of the stream reservation protocol (IEEE 802.1Q-2022, clauses 34 and 35): each port gets
                traffic classes, with a credit-based shaper for the class of the stream whose idle slope is
                the sum over its streams of (frame + 20B) * interval-frames per class measurement interval.
                Its frames have the priority of the class, and VLAN 2 unless the flow names another. The
                switches on the path are cots switches; ports with traffic classes of their own are refused.
                Simulator only.
        """
        return self._add("flows", "flow", given(locals()))

    def reservable(self, reservable: str | None = None) -> Self:
        """The flows through the network. Sets the share that reserved streams may have.

        Args:
            reservable: Share of the rate of each port that reserved streams may have together:
                deltaBandwidth of class A, that of class B being 0 (IEEE 802.1Q-2022, 34.3.1). With
                stream-reservation. Default: 75%.
        """
        return self._say("flows", given(locals()))

    def synchronise(
        self,
        *,
        reference: str | None = None,
        asymmetry: str | None = None,
        max_offset: str | None = None,
        on_failure: str | None = None,
        wait: str | None = None,
        exchange: Exchange | None = None,
        ptp: Ptp | None = None,
        chrony: bool = False,
        clusters: Sequence[Cluster] = (),
        ptp_domains: Sequence[PtpDomain] = (),
    ) -> Self:
        """How the clocks of the end systems are synchronised and compared. Without it, clocks are as the
        bench knows them.

        Args:
            reference: The end system with whose clock the others are compared; with ptp, the server.
                Default: the sender of the first flow.
            asymmetry: Maximum difference between the fixed delays of the two directions between two end
                systems; more than 0s, at most 1s. Half of it is part of the uncertainty of every offset.
                Default: the whole round trip, which always holds.
            max_offset: Limit for every clock: its offset (ptp, chrony) and the uncertainty of its offset
                (exchange); more than 0s, at most 1s. Default: no limit.
            on_failure: What happens if a clock exceeds its limit. Default: grade.
            wait: Time before a run in which clocks must come within their limit, 0s to 1h; ptp and
                chrony. Default: 30s.
            exchange: Two-way exchanges between the reference and every other end system of the flows,
                over the network under test, before, during and after the measured part. They give each
                clock's offset over time with its uncertainty, and every one-way latency is corrected by it.
            ptp: linuxptp on every end system: ptp4l, and phc2sys if the interface has a clock. Started
                before the first run, watched through every run, stopped at the end.
            chrony: chrony already synchronises the clocks; its state is watched during every run.
            clusters: A cluster of devices that synchronise by SAE AS6802 (TTEthernet): windows and
                instants of time-triggered flows then follow the synchronised clocks, and a device that is not
                synchronised sends none. Several clusters differ in domain or priority; a device has one part
                in one. Simulator only.
            ptp_domains: A domain of clocks that synchronise by PTP (IEEE Std 1588-2019) inside the
                simulated network: messages are frames, the crate statime plays the protocol, and the clocks
                of its nodes are steered; windows, gates and schedules follow them. A node has one clock that
                is steered, by one domain or cluster. Simulator only.
        """
        return self._say("synchronise", given(locals()))

    def timing(
        self,
        *,
        warm_up: str | None = None,
        duration: str | None = None,
        drain: str | None = None,
        overload: str | None = None,
    ) -> Self:
        """What the end systems do, and for how long. Sets the times of every run.

        Args:
            warm_up: Time before the measured part. Senders send as many messages as fit at their period;
                none of them counts. Default: 0s.
            duration: Length of the measured part. Without it every sender needs a count (a replay has
                one), and the longest sender decides; with both, the one that ends first counts. A run lasts
                at most 100 days.
            drain: Wait for frames in flight after the last send, at most 10min. Default: 200ms plus the
                time to empty every full buffer on the longest path, at most 5s.
            overload: Whether measured flows may take more than a link behind a switch carries, as in
                tests of what a switch then drops. The links of their senders carry all of them in any case.
                Default: off.
        """
        return self._say("tasks", given(locals()))

    def send(
        self,
        flow: int | str,
        *,
        period: str | None = None,
        load: str | None = None,
        payload: str | None = None,
        frame: str | None = None,
        fill: str | None = None,
        count: int | None = None,
        offset: str | None = None,
        offset_step: str | None = None,
        cycle_offset: str | None = None,
        distribution: str | None = None,
        burst: int | None = None,
        spacing: str | None = None,
        rate_limit: str | None = None,
        sub_link: int | None = None,
        seed: int | None = None,
        ramp_to: str | None = None,
        active: str | None = None,
        pause: str | None = None,
        pacing: str | None = None,
        backend: str | None = None,
        launch: str | None = None,
        transmit_time: str | None = None,
    ) -> Self:
        """Sends the messages of a flow on an absolute, open-loop schedule. One per flow; the flow also needs
        a receive or a relay. Exactly one of period and load.

        Args:
            flow: The flow it sends.
            period: Time between two messages, or between two bursts, at most 1000000s; at least the time
                its frames take on the slowest link of the path. For an rc flow at least its bag per message.
            load: Share of the rate of the sender's link instead, more than 0%, at most 100%, counted in
                bytes on the wire with preamble and gap: period = burst * bits on the wire / (load * rate).
            payload: Payload of each message, the 12 B probe header included: 12B to 1472B for udp and be,
                12B to 1471B for rc (1472B with sequence-number="within"), 12B to 1500B for raw and tt (padded
                below 46B). Exactly one of payload and frame.
            frame: Length of its frames instead, from destination address to FCS, at least 64B; the
                payload is the rest of it.
            fill: Content of the payload after the probe header. Default: sequential.
            count: Messages of the measured part. Without it the sender sends for the duration of the
                tasks.
            offset: Intended send of the first message after the end of the warm-up. Default: 0s.
            offset_step: In a group: added to offset, or to a time in cycle-offset, from one member to the
                next, so that they do not all send at once. Default: 0s.
            cycle_offset: In place of offset, an application on the cycle of the network: its messages are
                released so long after multiples of its period by the clock of its end system, which a cluster
                or a PTP domain corrects; less than the period. With dispatch, of a tt flow: so early that the
                longest that the host takes to hand a message over ends as the flow is dispatched, or 2us
                before, where the clock is not perfect. The period is a multiple of that of the tt flow; of
                others a multiple or a part of the integration cycle of a cluster. Periodic senders and bursts
                only.
            distribution: How its messages are spaced. Default: periodic.
            burst: Messages sent every period. Default: 1; periodic senders only.
            spacing: Time between two messages of a burst; the whole burst fits into the period. 0s: back
                to back. Default: 0s.
            rate_limit: Maximum bits per second on the wire, preamble and gap included; messages wait as
                needed. At least the average rate of the sender, less than the rate of its link. Default: no
                limit.
            sub_link: Sub-virtual-link of an rc flow that its messages use. Default: 1.
            seed: Seed of its exponential intervals, the same in every run. Default: that of the run.
            ramp_to: The period or load at the end of a ramp: the rate changes linearly over the measured
                part, or over count messages. Periodic senders without bursts only.
            active: With pause: how long it sends in each cycle, from the end of the warm-up on (an
                injector from the epoch on), 1us to 1h. Period, load and rate are those within this time.
            pause: With active: how long it then pauses, 1us to 1h.
            pacing: What it keeps when a message is late. Default: rate, on a thread shared with others.
                Not for relayed flows.
            backend: How its frames leave a real host; the simulator ignores it. Default: auto.
            launch: Whether the interface of a real host sends its frames at their exact times, handed
                over ahead of time; packet sockets only. Not for relayed flows. Default: auto.
            transmit_time: Each message carries its transmit time, 8 B, at this offset in its payload, 12B
                or more. Default: none. Not for relayed flows.
        """
        return self._add("tasks", "send", given(locals()))

    def replay(
        self,
        flow: int | str,
        *,
        file: Path | str,
        interface: str | None = None,
        direction: str | None = None,
        speed: str | None = None,
        loops: int | None = None,
        loop_gap: str | None = None,
        count: int | None = None,
        offset: str | None = None,
        offset_step: str | None = None,
        pacing: str | None = None,
        backend: str | None = None,
        launch: str | None = None,
        transmit_time: str | None = None,
    ) -> Self:
        """Sends the messages of a flow with the gaps and sizes of a capture: each frame of the capture
        becomes a numbered message of the same length, at its time after the first. Replaces a send; for udp,
        raw and be flows that are received. Nothing is sent in the warm-up. Frames too short for the probe
        header and the transmit time are lengthened, and the check says how many. A `file` that is not
        absolute begins at the working directory.

        Args:
            flow: The flow it sends.
            file: The capture, pcapng or pcap, of microseconds or finer, in either byte order; at most
                1000000 frames, in the order of their times.
            interface: Only frames of this interface. Default: the only one that has frames.
            direction: Only frames in this direction. Default: any.
            speed: Speed relative to the capture, 100ppm to 100000%: at 200% every gap is half as long.
                Default: 100%.
            loops: How often it is replayed, at most 1000000 times. Default: 1.
            loop_gap: From the last frame of a loop to the first of the next, at most 1h. Default: the
                mean gap of the capture.
            count: Messages, at most those of all loops. Default: all of them.
            offset: Intended send of the first frame after the end of the warm-up. Default: 0s.
            offset_step: In a group: added to offset from one member to the next, so that they do not all
                send at once. Default: 0s.
            pacing: What it keeps when a message is late. Default: rate.
            backend: How its frames leave a real host; the simulator ignores it. Default: auto.
            launch: Whether the interface of a real host sends its frames at their exact times, handed
                over ahead of time; packet sockets only. Not for relayed flows. Default: auto.
            transmit_time: Each message carries its transmit time, 8 B, at this offset in its payload, 12B
                or more. Default: none.
        """
        return self._add("tasks", "replay", given(locals()))

    def receive(self, flow: int | str, *, on: str | None = None) -> Self:
        """Receives the messages of a flow at its end, or at all its ends.

        Args:
            flow: The flow it receives.
            on: Where it runs; if given, it must be a receiver of the flow. Default: all of them.
        """
        return self._add("tasks", "receive", given(locals()))

    def relay(
        self,
        flow: int | str,
        *,
        on: str | None = None,
        vl: int | str | None = None,
        through: str | None = None,
        faults: Sequence[Fault] = (),
    ) -> Self:
        """Sends every message of a flow back to where it came from.

        Args:
            flow: The flow whose messages it returns.
            on: Where it runs; if given, it must be a receiver of the flow. Default: every receiver.
                Several of a udp, raw or be flow can relay it, and each has round trips of its own; of an rc
                flow one can, and is named.
            vl: rc flows, required there: number of the return virtual link, 1 to 65535, different from
                that of any flow. It has the contract of the flow.
            through: Where it returns a message. Default: servicing.
            faults: A planted fault: what the relay does to some messages, to check that the test bed
                finds it.
        """
        return self._add("tasks", "relay", given(locals()))

    def inject(
        self,
        *,
        on: str,
        to: str,
        load: str,
        payload: str | None = None,
        frame: str | None = None,
        distribution: str | None = None,
        active: str | None = None,
        pause: str | None = None,
        pacing: str | None = None,
        backend: str | None = None,
        launch: str | None = None,
        burst: int | None = None,
        threads: int | None = None,
        send_cost: str | None = None,
        sleep_overhead: str | None = None,
    ) -> Self:
        """Background load: bursts of UDP frames through warm-up and measured part. They leave no records;
        each is numbered, and its end system accounts for them.

        Args:
            on: The end system that sends it.
            to: The end system that receives it.
            load: Share of the rate of its own link, 0% to 100%, counted in bytes on the wire with
                preamble and gap. 0% removes the task.
            payload: UDP payload of each frame, 12B to 1472B. Default: 1472B, unless frame is written. An
                axis of payload does not change it.
            frame: Length of each frame instead, from destination address to FCS, 64B to 1518B.
            distribution: How its bursts are spaced. Default: periodic.
            active: With pause: how long it sends in each cycle, from the end of the warm-up on (an
                injector from the epoch on), 1us to 1h. Period, load and rate are those within this time.
            pause: With active: how long it then pauses, 1us to 1h.
            pacing: What it keeps when a burst is late. Default: rate.
            backend: How its frames leave a real host; the simulator ignores it. Default: auto.
            launch: Whether the interface of a real host sends its frames at their exact times, handed
                over ahead of time; packet sockets only. Default: auto.
            burst: Frames sent back to back. Time between bursts = burst * bits on the wire / (load *
                rate). Default: 10.
            threads: Threads that share the bursts: each sends one, sleeps for as many intervals as there
                are threads, and does so again. What sending and sleeping takes is not made up for, so the
                realised load follows, and stands beside the intended one. With a constant interval only.
                Agents have real threads, one interval apart, that sleep as long. Default: the schedule is
                kept.
            send_cost: What the call that sends one frame takes a thread, 0s to 10s; with threads only.
                Default: nothing.
            sleep_overhead: How much longer than asked a thread sleeps, 0s to 10s; with threads only.
                Default: nothing.
        """
        return self._add("tasks", "inject", given(locals()))

    def remote_log(self, *, on: str, to: str, record: str | None = None, records: int | None = None) -> Self:
        """Remote logging: each message that an application of the host sends or receives makes a record, and
        records go to another end system as UDP frames, through the host's stack and over the network under
        test. Background load makes none; records that do not fill a frame at the end stay.

        Args:
            on: The end system that logs.
            to: The end system that its records go to. It treats them as background load.
            record: Size of a record, 8B to 1472B. Default: 32B.
            records: Records in a frame, together at most 1472B. Default: 1.
        """
        return self._add("tasks", "remote-log", given(locals()))

    def capture(self, on: str, *, snap: str | None = None) -> Self:
        """Writes every frame at a node's ports as pcapng.

        Args:
            on: The end system or switch; one capture per node.
            snap: Bytes kept of each frame, 14B to 65535B. Default: 1522B.
        """
        return self._add("tasks", "capture", given(locals()))

    def bit_errors(
        self,
        a: str,
        b: str,
        *,
        rate: str,
        sent_by: str | None = None,
        from_: str | None = None,
        until: str | None = None,
    ) -> Self:
        """Bits of a link's frames are inverted at random; the receiver finds a wrong frame check sequence and
        drops the frame.

        Args:
            a: The link: its two nodes, with ports if several links join them.
            b: The other end.
            rate: Errors per bit; seeded.
            sent_by: The end that frames come from. Default: both.
            from_: Start of the fault after the epoch, the start of the warm-up. Default: 0s.
            until: End of the fault. Default: the end of the run.
        """
        return self._add("faults", "bit-errors", {"link": f"{a} {b}", **given(locals(), "a", "b")})

    def frame_fault(
        self,
        kind: str,
        a: str,
        b: str,
        *,
        share: str | None = None,
        flow: int | None = None,
        sequence: str | Iterable[int] | None = None,
        sent_by: str | None = None,
        from_: str | None = None,
        until: str | None = None,
        by: str | None = None,
    ) -> Self:
        """`loss`: Frames of a link do not arrive. `duplicate`: Frames of a link arrive twice, back to back.
        `delay`: Frames of a link arrive later and may be overtaken. `corrupt`: The payload of a link's frames
        is altered without the frame check sequence noticing.

        Args:
            kind: One of loss, duplicate, delay, corrupt.
            a: The link: its two nodes, with ports if several links join them.
            b: The other end.
            share: Each frame with this probability, more than 0%, at most 100%; seeded. Either this, or
                flow and sequence.
            flow: Messages of this flow, every copy and both legs; the flow must use the link.
            sequence: Which of its messages.
            sent_by: The end that frames come from. Default: both.
            from_: Start of the fault after the epoch, the start of the warm-up. Default: 0s.
            until: End of the fault. Default: the end of the run.
            by: How much later, more than 0s, at most 1min.
        """
        return self._add("faults", kind, {"link": f"{a} {b}", **given(locals(), "a", "b", "kind")})

    def wrong_length(
        self,
        a: str,
        b: str,
        *,
        length: str,
        share: str | None = None,
        flow: int | None = None,
        sequence: str | Iterable[int] | None = None,
        sent_by: str | None = None,
        from_: str | None = None,
        until: str | None = None,
    ) -> Self:
        """A sender cuts frames short, or runs on: they leave as runts or giants, with a right frame check
        sequence and a damaged message. Bit errors beside make them fragments and jabbers. Not at a hub, nor
        where the sender has windows or traffic classes.

        Args:
            a: The link: its two nodes, with ports if several links join them.
            b: The other end.
            length: The length that they then have, destination address to FCS: 18B to 63B, or 1519B to
                16000B.
            share: Each frame with this probability, more than 0%, at most 100%; seeded. Either this, or
                flow and sequence.
            flow: Messages of this flow, every copy and both legs; the flow must use the link.
            sequence: Which of its messages.
            sent_by: The end that frames come from. Default: both.
            from_: Start of the fault after the epoch, the start of the warm-up. Default: 0s.
            until: End of the fault. Default: the end of the run.
        """
        return self._add("faults", "wrong-length", {"link": f"{a} {b}", **given(locals(), "a", "b")})

    def cut(self, a: str, b: str, *, from_: str, until: str | None = None) -> Self:
        """A link is cut; frames on it are lost.

        Args:
            a: The link: its two nodes, with ports if several links join them.
            b: The other end.
            from_: When.
            until: When it is restored, after from. Default: never.
        """
        return self._add("faults", "cut", {"link": f"{a} {b}", **given(locals(), "a", "b")})

    def babble(
        self,
        flow: int,
        *,
        from_: str,
        until: str,
        period: str | None = None,
        load: str | None = None,
        length: str | None = None,
    ) -> Self:
        """An end system sends frames of a flow past every regulator and schedule. Exactly one of period and
        load.

        Args:
            flow: The flow.
            from_: From when on.
            until: When it ends, after from.
            period: Time between its frames; at least what a frame takes on the sender's link.
            load: Share of the rate of the sender's link instead, more than 0%, at most 100%.
            length: Length of its frames, destination address to FCS, 64B to 1518B. Default: lmax of an rc
                or tt flow, else the frame of its sender.
        """
        return self._add("faults", "babble", given(locals()))

    def restart(self, switch: str, *, from_: str, until: str) -> Self:
        """A switch restarts: its buffers and learned addresses are lost, and nothing passes until it is back.

        Args:
            switch: The switch.
            from_: When.
            until: When it is back, after from.
        """
        return self._add("faults", "restart", given(locals()))

    def step_clock(self, on: str, *, at: str, by: str) -> Self:
        """A node's clock is set.

        Args:
            on: The end system or switch.
            at: When, in true time.
            by: Step forward, back if negative; not 0s, at most one day either way.
        """
        return self._add("faults", "step-clock", given(locals()))

    def axis(
        self,
        of: str,
        values: str | Iterable[str | int],
        *,
        flow: int | str | Iterable[int | str] | None = None,
    ) -> Self:
        """A parameter that is varied. The last axis added varies fastest.

        Args:
            of: What is varied; one axis of each kind.
            values: The values it takes.
            flow: The flows it acts on. Axes of load, burst, rate, forwarding-mode, policing and
                integration act on no flows and do not take it. Default: all flows.
        """
        return self._add("sweep", "axis", given(locals()))

    def repeat(self, times: int) -> Self:
        """Measures every point several times. Add it after the axes.

        Args:
            times: How often.
        """
        return self._add("sweep", "repeat", given(locals()))

    def limit(
        self,
        measure: str,
        *,
        flow: int | str | Iterable[int | str] | None = None,
        at_most: str | int | None = None,
        at_least: str | int | None = None,
    ) -> Self:
        """One bound on one measure. Exactly one of at-most and at-least.

        Args:
            measure: What is judged.
            flow: The flows it judges, each separately. A measure that only some flows have, such as rtt
                or lateness, is judged on those; unplanned is counted per run and takes no flow. Default:
                every flow.
            at_most: The largest value allowed, in the unit of the measure.
            at_least: The smallest value allowed, in the unit of the measure.
        """
        return self._add("limits", "limit", given(locals()))
