//! Switches, hubs and links.

use wg_frame::time::Span;

use super::attribute::{Attribute, Declared, Text, optional, required, usual};
use super::element::{Element, any, list, many, nothing};
use super::network::end_system;
use super::types;
use crate::network::{Distribution, ForwardingMode, Integration, NetworkId, Policing, SwitchKind};

elements! {
    /// A switch. It is on network A or on network B.
    switch "switch" named NAME holds any(&["clock", "timestamps", "own-frames", "vlan", "switch-tsn"]) {
        NAME: String = end_system::NAME;
        /// A file with a switch element whose attributes it takes over, such as one that identify wrote; what
        /// is written here replaces what the file says.
        FILE: Text = optional("file", &types::PATH);
        /// What it is.
        KIND: SwitchKind = usual("kind", &types::SWITCH_KIND, "cots");
        /// When it forwards.
        FORWARDING_MODE: ForwardingMode =
            usual("forwarding-mode", &types::FORWARDING_MODE, "store-and-forward");
        /// Processing delay, {limit}: from the last bit in (cut-through: the last bit of the header) to the
        /// earliest first bit out. A distribution is drawn from for each frame, and the frames of an input
        /// port keep their order; not for mixed-criticality.
        DELAY: Distribution = usual("delay", &types::DISTRIBUTION, "2us").within("0s to 1s");
        /// How much longer a frame takes from a port to one whose link has another rate, {limit}; not for
        /// mixed-criticality. Simulator only.
        MIXED_RATE_DELAY: Span = usual("mixed-rate-delay", &types::TIME, "0s").within("0s to 1s");
        LINE_DRIFT: i64 = end_system::LINE_DRIFT;
        INTERFRAME_GAP: u64 = end_system::INTERFRAME_GAP;
        /// Length of the shortest frame that it takes, {limit}: a shorter one is a runt, which a
        /// store-and-forward switch drops. A runt that is forwarded leaves padded. Simulator only.
        SHORTEST_FRAME: u64 = usual("shortest-frame", &types::SIZE, "64B").within("18B to 64B");
        /// Length of the longest frame that it takes, tags not counted, {limit}: a longer one is a giant,
        /// which a store-and-forward switch drops. Simulator only.
        LONGEST_FRAME: u64 = usual("longest-frame", &types::SIZE, "1518B").within("1518B to 16000B");
        /// How it learns addresses.
        FORWARDING: bool = usual("forwarding", &types::FORWARDING, "static");
        /// Addresses it holds, any in any entry; an address that finds none free is not learnt, and frames to
        /// it are flooded. With forwarding="learning". Simulator only. Default: a hash table of 8192 places
        /// without learning-time and ageing-time, otherwise 1048576.
        ADDRESS_TABLE: u32 = optional("address-table", &types::ADDRESSES);
        /// How long it takes to enter an address, {limit}; until then the address is unknown, and no other is
        /// learnt. With forwarding="learning". Simulator only. Default: {default}.
        LEARNING_TIME: Span = optional("learning-time", &types::TIME).otherwise("0s").within("0s to 1s");
        /// How long it keeps an address that it does not see (IEEE 802.1Q-2022, 8.8.3), {limit}. With
        /// forwarding="learning". Simulator only. Default: {default}.
        AGEING_TIME: Span =
            optional("ageing-time", &types::TIME).otherwise("300s").within("1us to 1000000s");
        /// Which frame an output port sends first. Default: fifo for cots, strict for the other kinds.
        /// Untagged frames have priority 0; virtual links go before all other frames.
        PRIORITIES: bool = optional("priorities", &types::PRIORITIES);
        /// Buffer of each output port, {limit}. What does not fit is dropped. A port of an arinc664 or
        /// mixed-criticality switch has a buffer of this size for virtual links and another for all other
        /// frames, unless its priorities are fifo.
        BUFFER: u64 = usual("buffer", &types::SIZE, "512KiB").within("2KiB to 1024MiB");
        /// Buffer of each output port in frames. Default: as many as its bytes allow.
        BUFFER_FRAMES: u32 = optional("buffer-frames", &types::FRAMES);
        /// Size of each queue of a port, {limit}. Default: as much as its buffer.
        QUEUE_BUFFER: u64 = optional("queue-buffer", &types::SIZE).within("2KiB to 1024MiB");
        /// Size of each queue of a port in frames. Default: as many as its bytes allow.
        QUEUE_FRAMES: u32 = optional("queue-frames", &types::FRAMES);
        /// Buffer of all ports together, {limit}. Default: no limit.
        SHARED_BUFFER: u64 = optional("shared-buffer", &types::SIZE).within("2KiB to 1024MiB");
        /// Buffer of all ports together in frames. Default: no limit.
        SHARED_FRAMES: u32 = optional("shared-frames", &types::FRAMES);
        /// How virtual links are policed; arinc664 and mixed-criticality only. Default: {default}.
        POLICING: Policing = optional("policing", &types::POLICING).otherwise("bytes");
        /// How time-triggered frames are protected; mixed-criticality only. Default: {default}.
        INTEGRATION: Integration =
            optional("integration", &types::INTEGRATION).otherwise("timely-block");
        /// Length of alternating slots for time-triggered and other frames, at most 1s and at least as long
        /// as the longest frame takes on its slowest link; mixed-criticality only. Default: no slots.
        RASTER: Span = optional("raster", &types::TIME).within("more than 0s, at most 1s");
        /// Slots for other frames after each one for time-triggered frames (the delta raster parameter); with
        /// raster only. Default: {default}.
        RASTER_OTHERS: u16 = optional("raster-others", &types::SLOTS).otherwise("1");
    }
    /// Frames that a simulated switch sends by itself, as those of a spanning tree or of a discovery
    /// protocol, in true time. They go to the neighbour and no further; they leave no records.
    own_frames "own-frames" holds nothing() {
        /// Time between two of a port, {limit}.
        PERIOD: Span = required("period", &types::TIME).within("1us to 168h");
        /// When the first is sent, after the epoch.
        OFFSET: Span = usual("offset", &types::TIME, "0s");
        /// Length of each, from destination address to FCS, {limit}.
        FRAME: u64 = usual("frame", &types::SIZE, "64B").within("64B to 1518B");
        /// Priority at the output port.
        PRIORITY: u8 = usual("priority", &types::PRIORITY, "7");
        /// The ports that send them; each must have a link. Default: all that have one.
        PORTS: Vec<u16> = optional("ports", &types::PORTS);
    }
    /// Traffic classes of output ports of a switch, with shapers and gates (IEEE 802.1Q-2022, 8.6.8), and
    /// filters of streams that enter by them (8.6.5.2). Classes take the place of its priorities at these
    /// ports. Windows of tt flows go before all classes, and so do virtual links that no class takes.
    /// Simulator only.
    switch_tsn "switch-tsn" holds any(&["traffic-class", "gate-schedule", "cyclic-queuing", "ingress"]) {
        /// The ports it is for; each must have a link. Default: all that no other switch-tsn names.
        PORTS: Vec<u16> = optional("ports", &types::PORTS);
        /// Shortest fragment that is not the last, its check sequence included (addFragSize); with a
        /// preemptable class only.
        SHORTEST_FRAGMENT: u16 = usual("shortest-fragment", &types::FRAGMENT, "64B");
        /// How long before an entry with mac="hold" the MAC is told (holdAdvance), {limit}, whole
        /// nanoseconds; less than it was released for before. Default: as long as a fragment may still take
        /// on the link, 143 byte times with fragments of 64B.
        HOLD_ADVANCE: Span = optional("hold-advance", &types::TIME).within("0s to 1s");
        /// How long before an entry with mac="release" the MAC is told (releaseAdvance), {limit}, whole
        /// nanoseconds; less than it was held for before. From then on preemptable frames may begin. Default:
        /// not before.
        RELEASE_ADVANCE: Span = optional("release-advance", &types::TIME).within("0s to 1s");
        /// No frame begins for so long before its gate closes, {limit}, whole nanoseconds; a frame that takes
        /// longer reaches beyond the closing. Default: a frame begins if its last bit leaves before its gate
        /// closes.
        GUARD_BAND: Span = optional("guard-band", &types::TIME).within("1ns to 1s");
    }
    /// Asynchronous shaping of the flows of a class (IEEE 802.1Q-2022, 8.6.11; once 802.1Qcr): each frame
    /// waits until the token bucket of its flow holds its length, and frames that come by one port keep their
    /// order. At a switch only. Frames of flows without a scheduler wait for nothing.
    ats "ats" holds list(&[many("scheduler")]) {
        /// How long a frame may have to wait for its tokens, at most 10s; one that would wait longer is
        /// dropped (MaximumResidenceTime).
        LONGEST_RESIDENCE: Span = usual("longest-residence", &types::TIME, "1s").within("0s to 10s");
    }
    /// The token bucket of a flow. A switch tells flows by destination address and VLAN: of two in one class
    /// these differ.
    scheduler "scheduler" holds nothing() {
        /// A flow that passes these ports in this class.
        FLOW: u16 = required("flow", &types::FLOW_ID);
        /// Committed information rate, of frames with preamble and gap, {limit}.
        RATE: u64 = required("rate", &types::RATE)
            .within("1kbit/s to 400Gbit/s")
            .cure("write what the flow may send, for example 10Mbit/s");
        /// Committed burst size, likewise, {limit}.
        BURST: u64 = required("burst", &types::SIZE).within("84B to 16MiB");
    }
    /// Two classes take turns (IEEE 802.1Q-2022, Annex T; once 802.1Qch): frames of either go into the one in
    /// odd cycles and into the other in even ones, and leave in the cycle after. By the clock of the switch;
    /// a frame counts for the cycle in which it is at the port, the delay of the switch behind it. In the
    /// place of gate schedules.
    cyclic_queuing "cyclic-queuing" holds nothing() {
        /// The two classes.
        CLASSES: Text = required("classes", &types::CLASS_NUMBERS);
        /// Length of a cycle, {limit}; whole nanoseconds.
        CYCLE: Span = required("cycle", &types::TIME).within("1us to 1s");
        /// When a cycle begins, after the epoch, at most 168h.
        BASE_TIME: Span = usual("base-time", &types::TIME, "0s").within("0s to 168h");
    }
    /// A VLAN of a switch and the ports that carry it. A switch without any ignores tags.
    vlan "vlan" named ID holds nothing() {
        /// Its identifier.
        ID: u16 = required("id", &types::VLAN_OF_PORTS);
        /// The ports that carry it; each must have a link.
        PORTS: Vec<u16> = required("ports", &types::PORTS);
    }
    /// A repeater: all its links share one half-duplex medium (IEEE 802.3, CSMA/CD). It joins end systems
    /// only; all its links have one rate, 10Mbit/s or 100Mbit/s.
    hub "hub" named NAME holds nothing() {
        /// Its name, unique in the network.
        NAME: String = required("name", &types::NAME);
        /// Delay from bit in to bit out, {limit}; a class II repeater has at most 46 bit times.
        DELAY: Span = usual("delay", &types::TIME, "460ns").within("0s to 1s");
    }
    /// A cable between two nodes: full duplex, half duplex at a hub.
    link "link" named BETWEEN holds nothing() {
        /// The two nodes. A switch port may be given (sw1:3, 1 to 1024); others are numbered in the order of
        /// the file, the lowest free port first. An end system has port 1 on network A and port 2 on network
        /// B.
        BETWEEN: Text = required("between", &types::LINK_ENDS_OR_GROUP);
        /// Bit rate of each direction, {limit}; at a hub 10Mbit/s or 100Mbit/s.
        RATE: u64 = required("rate", &types::RATE)
            .within("1Mbit/s to 400Gbit/s")
            .problem("is no rate of an Ethernet link")
            .cure("write the rate of the link, for example 1Gbit/s");
        /// Propagation delay one way, at most {limit}; about 5ns per metre of cable.
        DELAY: Span = usual("delay", &types::TIME, "0ns")
            .within("10s")
            .cure("write the propagation delay, about 5ns per metre of cable");
        /// The redundant network it belongs to. A switch or hub is on one of them only.
        NETWORK: NetworkId = usual("network", &types::NETWORK_ID, "A");
    }
}
