//! Settings of traffic classes, gates and shapers, of hosts and of switches.

use wg_core::selection::MacOperation;
use wg_frame::time::Span;

use super::attribute::{Attribute, Declared, Text, optional, required, usual};
use super::element::{Element, all, any, list, many, maybe, nothing};
use super::types;
use crate::host_tsn::TsnOffload;
use crate::stream_filter::{HeaderField, Identify};
use crate::switch_tsn::LinkPriority;

elements! {
    /// TSN settings of the Linux interface of an end system on a lab host: its agent makes them with tc and
    /// ethtool before a run and takes them off after it. Its own configuration has to allow that (tsn =
    /// true). The simulator has traffic classes, preemption, cbs and gate schedules of it, by the clock of
    /// the end system (its windows of tt flows and its virtual links go before all classes), and refuses the
    /// rest, as it does where it plays the network between namespaces (--switches model); with bridges
    /// namespaces refuse all of it.
    host_tsn "host-tsn" holds any(&["traffic-class", "gate-schedule", "classify", "ingress"]) {
        /// Number of combined queues the interface is set to during a run (ethtool -L). Default: as many as
        /// it has.
        CHANNELS: u16 = optional("channels", &types::TSN_QUEUES);
        /// Who keeps traffic classes and gate schedule.
        OFFLOAD: TsnOffload = usual("offload", &types::TSN_OFFLOAD, "off");
        /// With offload="txtime-assist": longest way of a frame from the queue discipline to the card, up to
        /// 1s, more than the delta of every etf.
        TXTIME_DELAY: Span = optional("txtime-delay", &types::TIME).within("0s to 1s");
        /// As of a switch-tsn.
        SHORTEST_FRAGMENT: u16 = usual("shortest-fragment", &types::FRAGMENT, "64B");
        /// How long before an entry with mac="hold" the MAC is told (holdAdvance), {limit}, whole
        /// nanoseconds; less than it was released for before. Default: as long as a fragment may still take
        /// on the link, 143 byte times with fragments of 64B. A card has its own: this is what it is
        /// simulated with, and a lab refuses it.
        HOLD_ADVANCE: Span = optional("hold-advance", &types::TIME).within("0s to 1s");
        /// How long before an entry with mac="release" the MAC is told (releaseAdvance), {limit}, whole
        /// nanoseconds; less than it was held for before. From then on preemptable frames may begin. Default:
        /// not before. Likewise.
        RELEASE_ADVANCE: Span = optional("release-advance", &types::TIME).within("0s to 1s");
    }
    /// A traffic class of an output port. Every priority is in one class; of those that may send, the one
    /// with the highest number does. On a host it is of mqprio, or of taprio with a gate schedule; frames of
    /// the kernel's priorities above 7 go with priority 0.
    traffic_class "traffic-class" named NUMBER holds all(&[maybe("cbs"), maybe("etf"), maybe("ats")]) {
        /// Its number. Classes are numbered from 0 in the order of the file.
        NUMBER: u8 = required("number", &types::CLASS_NUMBER);
        /// Priorities of its frames. A flow has that of its tag, or of classify, or 0.
        PRIORITIES: Text = required("priorities", &types::PRIORITY_LIST);
        /// Transmit queues of the class, behind those of the classes before it; on a host only.
        QUEUES: u16 = usual("queues", &types::TSN_QUEUES, "1");
        /// Whether its frames are sent in fragments where a frame of a class that is not preemptable waits
        /// and may be sent (IEEE 802.3-2022, clause 99; once 802.1Qbu and 802.3br). At a host it is the card
        /// that does; a lab wants offload="full" for it.
        PREEMPTABLE: bool = usual("preemptable", &types::SWITCHED, "off");
        /// Longest frame that may enter the class, from destination address to FCS, {limit}; longer ones are
        /// dropped (queueMaxSDU of IEEE 802.1Q-2022, 8.6.8.4). At a switch only. Default: any.
        LONGEST_FRAME: u64 = optional("longest-frame", &types::SIZE).within("64B to 1522B");
        /// Virtual links whose frames wait in this class as well, by their priority; those of low priority in
        /// none above those of high priority. At arinc664 and mixed-criticality switches; no class of a host
        /// takes any. Default: none; they have two queues and a buffer of their own, go before all classes,
        /// and no gate or shaper holds them.
        VIRTUAL_LINKS: Vec<LinkPriority> = optional("virtual-links", &types::LINK_PRIORITIES);
    }
    /// Credit-based shaper (IEEE 802.1Q-2022, 8.6.8.2) of a class: of a host one with one queue, and two
    /// classes at most, where credits follow from Annex L and the rate of the link. While its gate is closed
    /// the credit does not rise; while it is open it rises as much faster as the idle slope then is over the
    /// whole cycle.
    cbs "cbs" holds nothing() {
        /// Bandwidth of the class on the wire, preamble and gap included. On a host a whole number of kbit/s,
        /// and all together less than the rate of the link; at a switch at most that.
        IDLE_SLOPE: u64 = required("idle-slope", &types::RATE);
        /// Longest frame of the class on the wire, preamble and gap included, {limit}; on a host only.
        MAX_FRAME: u64 = usual("max-frame", &types::SIZE, "1542B").within("84B to 9238B");
        /// Longest frame of classes without a shaper, likewise; on a host only.
        MAX_INTERFERENCE: u64 = usual("max-interference", &types::SIZE, "1542B").within("84B to 9238B");
        /// Whether the card shapes; on a host only.
        OFFLOAD: bool = usual("offload", &types::SWITCHED, "off");
    }
    /// Earliest launch time first: frames leave at the time that each of them names (SO_TXTIME). For flows
    /// with launch="on", in a class with one queue, not that of priority 0.
    etf "etf" holds nothing() {
        /// How long before its launch time a frame is given to the driver, {limit}; whole nanoseconds.
        DELTA: Span = usual("delta", &types::TIME, "300us").within("0s to 1s");
        /// Whether the card launches; otherwise a timer of the kernel.
        OFFLOAD: bool = usual("offload", &types::SWITCHED, "off");
        /// Whether the time is the latest one; otherwise the exact one.
        DEADLINE: bool = usual("deadline", &types::SWITCHED, "off");
    }
    /// Gate control list (IEEE 802.1Q-2022, 8.6.9), which repeats. On a host: taprio, by TAI, or with
    /// offload="full" by the clock of the card; one list. At a switch and in the simulator: by the clock of
    /// the node; the first list of a switch holds from the beginning, each further one takes over at its
    /// base-time.
    gate_schedule "gate-schedule" holds list(&[many("gate-entry")]) {
        /// An instant at which a cycle begins; whole nanoseconds. On a host after midnight of 1970-01-01 TAI,
        /// at most 24h; at a switch after the epoch, at most 168h.
        BASE_TIME: Span = usual("base-time", &types::TIME, "0s").within("0s to 24h");
        /// Sum of its entries, at most 2147483647ns. States what is meant; another sum is refused.
        CYCLE_TIME: Span = optional("cycle-time", &types::TIME).within("1ns to 2147483647ns");
        /// At a switch: how much longer the last cycle before the next list may last (cycle-time extension),
        /// at most 1s. A cycle that would begin less than that before the next list does not; the gates stay
        /// as its last entry has them.
        CYCLE_EXTENSION: Span = usual("cycle-extension", &types::TIME, "0s").within("0s to 1s");
    }
    /// A line of a gate control list; on a host 28 at most, at a switch 1024.
    gate_entry "gate-entry" holds nothing() {
        /// Classes whose gates are open. Default: none.
        OPEN: Text = optional("open", &types::CLASS_NUMBERS);
        /// For how long; whole nanoseconds, more than a frame of 60 bytes takes.
        FOR: Span = required("for", &types::TIME).within("1ns to 2147483647ns");
        /// What it does to the MAC of a port with preemption (IEEE 802.1Q-2022, table 8-7); on a host with
        /// offload="full" only.
        MAC: MacOperation = usual("mac", &types::MAC_OPERATION, "unchanged");
    }
    /// Gives the frames of a flow a priority within the host, whatever their tag.
    classify "classify" named FLOW holds nothing() {
        /// A flow that the host sends or returns; udp or raw.
        FLOW: u16 = required("flow", &types::FLOW_ID);
        /// The priority.
        PRIORITY: u8 = required("priority", &types::PRIORITY);
    }
    /// What the frames of a flow have to keep to where they arrive; others are dropped (IEEE 802.1Q-2022,
    /// 8.6.5.2). The gate comes before the meter. At a host: in the kernel, for udp flows, and for raw flows
    /// where no raw flow has a tag. At a switch: the stream filter of the flow at the port where it enters,
    /// for udp, raw and be flows; what was dropped is told by reason, and counted by the measure policing.
    ingress "ingress" named FLOW holds all(&[maybe("stream-gate"), maybe("police")]) {
        /// A flow that arrives at the host, or enters the switch.
        FLOW: u16 = required("flow", &types::FLOW_ID);
        /// What a switch knows the frames by; no other flow that enters by the same port may have the same.
        /// Switch only.
        IDENTIFY: Identify = usual("identify", &types::STREAM_IDENTIFICATION, "destination");
        /// With identify="ip": the fields that are compared, with spaces between; any value will do of the
        /// others (wildcards). The next protocol, UDP, always is. Default: all. Switch only.
        FIELDS: Vec<HeaderField> = optional("fields", &types::HEADER_FIELDS);
        /// Longest service data unit, {limit}: the frame without addresses, tag, type and check sequence.
        /// Default: any. Switch only.
        MAX_SDU: u64 = optional("max-sdu", &types::SIZE).within("1B to 9216B");
        /// Whether a longer one blocks the stream for the rest of the run, or until the switch restarts
        /// (StreamBlockedDueToOversizeFrameEnable). Switch only.
        BLOCK_OVERSIZE: bool = usual("block-oversize", &types::SWITCHED, "off");
        /// Instead of a stream-gate: a flow with an ingress in the same switch-tsn, whose gate its frames
        /// pass too. Octets and closing are of the frames of both. Switch only.
        GATE_OF: u16 = optional("gate-of", &types::FLOW_ID);
        /// Instead of police: a flow with an ingress in the same switch-tsn, whose meter its frames share.
        /// Switch only.
        METER_OF: u16 = optional("meter-of", &types::FLOW_ID);
        /// Whether the card does it (skip_sw); otherwise the kernel.
        OFFLOAD: bool = usual("offload", &types::SWITCHED, "off");
    }
    /// When frames may come; it repeats (at a host: tc-gate).
    stream_gate "stream-gate" holds list(&[many("stream-gate-entry")]) {
        /// As of a gate-schedule.
        BASE_TIME: Span = usual("base-time", &types::TIME, "0s").within("0s to 24h");
        /// As of a gate-schedule.
        CYCLE_TIME: Span = optional("cycle-time", &types::TIME).within("1ns to 2147483647ns");
        /// Whether a frame that comes while it is closed closes it for the rest of the run, or until the
        /// switch restarts (GateClosedDueToInvalidRxEnable). Switch only.
        CLOSE_ON_INVALID: bool = usual("close-on-invalid", &types::SWITCHED, "off");
        /// Whether a frame beyond max-octets does (GateClosedDueToOctetsExceededEnable). Switch only.
        CLOSE_ON_OCTETS: bool = usual("close-on-octets", &types::SWITCHED, "off");
    }
    /// A line of a stream gate; at most 24 at a host and 1024 at a switch, where none is longer than 1s.
    stream_gate_entry "stream-gate-entry" holds nothing() {
        /// Whether frames pass.
        STATE: bool = required("state", &types::GATE_STATE);
        /// For how long; whole nanoseconds.
        FOR: Span = required("for", &types::TIME).within("1ns to 2147483647ns");
        /// Most bytes of frames that pass in it, {limit}; open gates only. A switch counts service data units
        /// (IntervalOctetMax). Default: any number.
        MAX_OCTETS: u64 = optional("max-octets", &types::SIZE).within("64B to 16MiB");
        /// Priority by which the switch queues the frames (internal priority value); they leave with their
        /// own. Open gates only. Default: their own. Switch only.
        PRIORITY: u8 = optional("priority", &types::PRIORITY);
    }
    /// Most frames that may come; frames above it are dropped. At a host: tc-police, which counts frames
    /// without their FCS. At a switch: a flow meter with two token buckets (MEF 10.3; IEEE 802.1Q-2022,
    /// 8.6.5.5), which counts frames from destination address to FCS.
    police "police" holds nothing() {
        /// Their rate (committed information rate), {limit}; at a switch from 1kbit/s on, and no more than
        /// that of the link.
        RATE: u64 = required("rate", &types::RATE)
            .within("8kbit/s to 400Gbit/s")
            .cure("write the most that may arrive, for example 10Mbit/s");
        /// What may come at once (committed burst size), {limit}; at a host at least a frame of the flow.
        BURST: u64 = required("burst", &types::SIZE).within("64B to 16MiB");
        /// Excess information rate, 1kbit/s to the rate of the link. Default: none. Switch only.
        EXCESS_RATE: u64 = optional("excess-rate", &types::RATE)
            .within("1kbit/s to 400Gbit/s")
            .cure("write the most that may come, for example 10Mbit/s");
        /// Excess burst size, {limit}: frames beyond the first bucket that it holds are yellow, they pass as
        /// drop eligible. Default: none. Switch only.
        EXCESS_BURST: u64 = optional("excess-burst", &types::SIZE).within("64B to 16MiB");
        /// Whether what the first bucket has no room for goes to the second (coupling flag). Switch only.
        COUPLING: bool = usual("coupling", &types::SWITCHED, "off");
        /// Whether a frame that came as drop eligible, from a meter before, may be green. Switch only.
        COLOUR_MODE: bool = usual("colour-mode", &types::COLOUR_MODE, "blind");
        /// Whether yellow frames are dropped (DropOnYellow). Switch only.
        DROP_ON_YELLOW: bool = usual("drop-on-yellow", &types::SWITCHED, "off");
        /// Whether after the first red frame every frame is red for the rest of the run, or until the switch
        /// restarts (MarkAllFramesRedEnable). Switch only.
        MARK_ALL_RED: bool = usual("mark-all-red", &types::SWITCHED, "off");
    }
}
