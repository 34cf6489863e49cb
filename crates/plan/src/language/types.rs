//! The forms of values that attributes have, each with what an editor says of it.

mod clocks;

use wg_core::selection::MacOperation;
use wg_frame::ethernet::MacAddress;
use wg_frame::time::Span;

pub(crate) use self::clocks::*;
use super::attribute::{Choice, Form, Shape, Text, Written, optional};
use super::values::{self, CycleOffset, PowerOfTwo, Reached};
use crate::campaign::{Backend, Bench, Fill, IndividualRecovery, Pacing, Protocol, Turn};
use crate::host_tsn::TsnOffload;
use crate::network::{
    Distribution, ForwardingMode, HeldUp, Integration, KeptModel, NetworkId, Policing, SwitchKind,
};
use crate::quantity::{self, Kind};
use crate::stream_class::StreamClass;
use crate::stream_filter::{HeaderField, Identify};
use crate::switch_tsn::LinkPriority;

const A_NAME: &str = r"[A-Za-z][A-Za-z0-9_\-]{0,14}";
/// A range within a name, and what follows it.
const RANGED: &str = r"(\[[0-9]{1,5}-[0-9]{1,5}\][A-Za-z0-9_\-]{0,14})?";
const OF_PORT: &str = "(:[0-9]{1,5})?";
const RANGED_PORT: &str = r"(:([0-9]{1,5}|\[[0-9]{1,5}-[0-9]{1,5}\]))?";
const A_TIME: &str = r"[0-9]+(\.[0-9]+)?(ns|us|µs|μs|ms|s|min|h)";
const A_SHARE: &str = r"[0-9]+(\.[0-9]+)?(%|ppm)";

forms! {
    /// A time: a decimal number directly followed by ns, us (or µs), ms, s, min or h; for example 2ms. A
    /// whole number of picoseconds.
    TIME "time": Span = quantity(Kind::Time, quantity::time);
    /// A size: a number directly followed by B, kB (1000 B), KiB (1024 B) or MiB; for example 64B. A whole
    /// number of bytes.
    SIZE "size": u64 = quantity(Kind::Size, quantity::size);
    /// A bit rate: a number directly followed by bit/s, kbit/s, Mbit/s or Gbit/s; for example 1Gbit/s.
    /// Factors of 1000.
    RATE "rate": u64 = quantity(Kind::Rate, quantity::rate);
    /// A share: a number directly followed by % or ppm; for example 50%. A whole number of ppm.
    SHARE "share": u32 = quantity(Kind::Ratio, quantity::ppm);
    /// A name: 1 to 15 letters, digits, _ or -, the first a letter. It becomes a host name.
    NAME "name": String = by(Shape::Pattern(&[A_NAME]), values::name);
    /// Name of a test: 1 to 64 letters, digits, spaces, dots, _ or -, the first a letter or digit.
    TEST_NAME "test-name": String =
        by(Shape::Pattern(&[r"[A-Za-z0-9][A-Za-z0-9 ._\-]{0,63}"]), values::test_name);
    /// Two node names separated by a space; a switch's port may follow its name after a colon: mac sw1:3.
    LINK_ENDS "link-ends": Text = text(Shape::Pattern(&[A_NAME, OF_PORT, " ", A_NAME, OF_PORT]));
    /// Number of a flow, {limit}.
    FLOW_ID "flow-id": u16 = whole(1, 65_534);
    /// Numbers of flows and ranges of them, separated by spaces: 10 101-140.
    FLOW_IDS "flow-ids": Vec<u16> =
        by(Shape::List { of: "flow-id-or-group", empty: false }, values::flow_ids);
    /// A number of messages, {limit}.
    COUNT "count": u32 = whole(1, 4_294_967_295);
    /// A whole number, 0 to 18446744073709551615.
    SEED "seed": u64 = whole(0, u64::MAX);
    /// VLAN identifier, {limit} (IEEE 802.1Q-2022, 9.6).
    VLAN_ID "vlan-id": u16 = whole(1, 4_094);
    /// Priority code point, {limit}.
    PRIORITY "priority": u8 = whole(0, 7);
    /// A number of frames, {limit}.
    BURST "burst": u32 = whole(1, 10_000);
    /// A number of repeats, {limit}.
    TIMES "times": u32 = whole(1, 10_000);
    /// Sequence numbers and ranges, separated by spaces: 5 17 100-110. They count from 0; warm-up messages
    /// are not included.
    SEQUENCES "sequences": Vec<(u32, u32)> =
        by(Shape::Pattern(&["[0-9]{1,10}(-[0-9]{1,10})?( [0-9]{1,10}(-[0-9]{1,10})?)*"]), values::sequences);
    /// Values, separated by spaces, each written like the attribute it replaces: 64B 1472B.
    VALUES "values": Text = text(Shape::List { of: "token", empty: false });
    /// A value in the unit of the measure: a time such as 500us, a share such as 0.1%, a rate such as
    /// 10Mbit/s, frames per second such as 500/s, bits such as 3076bit, or a bare number for a count. Signed
    /// times such as send_error and lateness, and credits, may be negative.
    BOUND "bound": Text =
        text(Shape::Pattern(&[
            r"-?[0-9]+(\.[0-9]+)?(ns|us|µs|μs|ms|s|min|h|%|ppm|ppb|bit/s|kbit/s|Mbit/s|Gbit/s|bit|kbit|Mbit|/s|k/s|M/s)?",
        ]));
    /// A time that may be negative: an optional minus sign and a time; for example -5us.
    SIGNED_TIME "signed-time": Span = signed(Kind::Time, quantity::signed_time);
    /// Drift of a clock, positive if it is fast: an optional minus sign and a number directly followed by ppb
    /// or ppm; for example -20ppm. A whole number of ppb.
    DRIFT "drift": i64 = signed(Kind::Drift, quantity::drift);
    /// A deviation of drift: a number directly followed by ppb or ppm; for example 10ppb. A whole number of
    /// ppb.
    WANDER "wander": u32 = quantity(Kind::Drift, quantity::wander);
    /// Errors per bit, 1e-18 to 1, as a bare number: 1e-9 or 0.000001.
    BIT_ERROR_RATE "bit-error-rate": u64 =
        by(Shape::Pattern(&[r"[0-9]+(\.[0-9]+)?([eE]-[0-9]{1,2})?"]), values::mean_bits);
    /// Distribution of a time: a single constant time, or 2 to 64 quantiles separated by spaces. Each
    /// quantile is SHARE:TIME, both ascending, from 0% to 100%: 0%:0.8us 50%:1.5us 100%:40us. Times between
    /// two quantiles are uniformly distributed.
    DISTRIBUTION "distribution": Distribution =
        by(Shape::Pattern(&[
            A_TIME, "|", A_SHARE, ":", A_TIME, "( ", A_SHARE, ":", A_TIME, ")+",
        ]), values::distribution);
    /// Error of a timestamp: a bound, within which it is uniformly distributed either way, 0s to 100ms; or 2
    /// to 64 quantiles as in a distribution, whose times may be negative: 0%:-20ns 50%:0ns 100%:60ns.
    TIMESTAMP_ERROR "timestamp-error": Distribution =
        by(Shape::Pattern(&[
            A_TIME, "|", A_SHARE, ":-?", A_TIME, "( ", A_SHARE, ":-?", A_TIME, ")+",
        ]), values::timestamp_error);
    /// What is subtracted from the timestamps of applications.
    SUBTRACT_READ_COST "subtract-read-cost": bool = choice() {
        /// Nothing.
        "no" => false,
        /// The least that reading the clock costs.
        "least" => true,
    };
    /// The threads of a host that an event holds up.
    HELD_UP "held-up": HeldUp = choice() {
        /// Those that send and those that receive.
        "both" => HeldUp::Both,
        /// Those that send.
        "send" => HeldUp::Send,
        /// Those that receive.
        "receive" => HeldUp::Receive,
    };
    /// A number of threads, {limit}.
    SENDING_THREADS "sending-threads": u16 = whole(1, 64);
    /// A number of log records, {limit}.
    LOG_RECORDS "log-records": u32 = whole(1, 184);
    /// Names, separated by spaces; device[1-40] stands for device1 to device40.
    NAMES "names": Text = text(Shape::Pattern(&[A_NAME, RANGED, "( ", A_NAME, RANGED, ")*"]));
    /// A port of a node: name, colon, number, as in sw1:2. The name of an end system alone means its first
    /// port.
    PORT "port": Text = text(Shape::Pattern(&[A_NAME, OF_PORT]));
    /// Names of nodes with spaces between, each with the port it is left by after a colon where one is
    /// needed: sw1 sw2:3; sw[1-4] stands for sw1 to sw4.
    VIA "via": Text =
        text(Shape::Pattern(&[A_NAME, RANGED, RANGED_PORT, "( ", A_NAME, RANGED, RANGED_PORT, ")*"]));
    /// Which path a flow takes that names none.
    ROUTING "routing": bool = choice() {
        /// The only one there is; a flow with several is refused.
        "unique" => false,
        /// The one over the fewest links. Of several such paths, the one that leaves each node, from the
        /// sender on, by the link that stands first in the file.
        "shortest" => true,
    };
    /// Port numbers, 1 to 1024, separated by spaces.
    PORTS "ports": Vec<u16> = by(Shape::Pattern(&["[0-9]{1,4}( [0-9]{1,4})*"]), values::ports);
    /// A number of frames, {limit}.
    FRAMES "frames": u32 = whole(1, 1_048_576);
    /// A number of MAC addresses, {limit}.
    ADDRESSES "addresses": u32 = whole(1, 1_048_576);
    /// A number of frames, {limit}.
    QUEUED "queued": u32 = whole(1, 65_535);
    /// Number of a virtual link or of a time-triggered flow, {limit}: the last two bytes of the destination
    /// address.
    VL_ID "vl-id": u16 = whole(1, 65_535);
    /// A number of sub-virtual-links, or one of them, {limit}.
    SUB_LINK "sub-link": u8 = whole(1, 4);
    /// Algorithm of sequence recovery (IEEE Std 802.1CB).
    RECOVERY "recovery": bool = choice() {
        /// By a history of the last sequence numbers (7.4.3.4): the first of each passes, in any order.
        "vector" => false,
        /// By the last sequence number alone (7.4.3.5): for streams whose copies come before the next
        /// message.
        "match" => true,
    };
    /// Algorithm of individual recovery (IEEE Std 802.1CB).
    INDIVIDUAL_RECOVERY "individual-recovery": Option<IndividualRecovery> = choice() {
        /// There is none.
        "off" => None,
        /// By the last sequence number alone.
        "match" => Some(IndividualRecovery::Match),
        /// By a history as long as that of sequence recovery. What it discards starts its reset timer again
        /// (7.4.3.4), so a member stream that was away for more messages than the history holds stays
        /// discarded as rogue.
        "vector" => Some(IndividualRecovery::Vector),
    };
    /// A number of sequence numbers, {limit}.
    HISTORY_LENGTH "history-length": u32 = whole(2, 32_768);
    /// A number of frames, {limit}.
    LATENT_DIFFERENCE "latent-difference": u64 = whole(0, 4_294_967_295);
    /// Two whole numbers with a - between, the first not above the second: 101-140 is 101, 102 and so on up
    /// to 140.
    RANGE "range": Text = text(Shape::Pattern(&["[0-9]{1,5}-[0-9]{1,5}"]));
    /// A name, or the names of a group with a range in brackets: device[1-40] is device1 to device40,
    /// device[01-40] is device01 to device40.
    NAME_OR_GROUP "name-or-group": String = by(Shape::Pattern(&[A_NAME, RANGED]), values::name);
    /// Number of a flow, 1 to 65534, or a range of them for a group: 101-140.
    FLOW_ID_OR_GROUP "flow-id-or-group": u16 =
        by(Shape::Either(&["flow-id", "range"]), |_, text| optional("", &FLOW_ID).parse(text));
    /// As vl-id, or a range of them for a group: 101-140.
    VL_ID_OR_GROUP "vl-id-or-group": u16 =
        by(Shape::Either(&["vl-id", "range"]), |_, text| optional("", &VL_ID).parse(text));
    /// As link-ends, or the ends of a group: device[1-40] sw1, or device[1-40] sw1:[1-40].
    LINK_ENDS_OR_GROUP "link-ends-or-group": Text =
        text(Shape::Pattern(&[A_NAME, RANGED, RANGED_PORT, " ", A_NAME, RANGED, RANGED_PORT]));
    /// A number of slots, {limit}.
    SLOTS "slots": u16 = whole(1, 65_535);
    /// A differentiated services code point, {limit} (RFC 2474, 3): 46 is expedited forwarding, 10 to 38
    /// assured forwarding.
    DSCP "dscp": u8 = whole(0, 63);
    /// Who keeps traffic classes and gate schedule.
    TSN_OFFLOAD "tsn-offload": TsnOffload = choice() {
        /// The kernel.
        "off" => TsnOffload::Off,
        /// The card, by its own clock: taprio with flags 0x2, mqprio with hw 1.
        "full" => TsnOffload::Full,
        /// The kernel sets the launch time of each frame by the schedule, and etf, in software or on the
        /// card, keeps it: taprio with flags 0x1. Needs txtime-delay and an etf in every class.
        "txtime-assist" => TsnOffload::TxtimeAssist,
    };
    /// A number of transmit queues, {limit}.
    TSN_QUEUES "tsn-queues": u16 = whole(1, 256);
    /// Number of a traffic class, {limit}.
    CLASS_NUMBER "class-number": u8 = whole(0, 15);
    /// Numbers of traffic classes, separated by spaces; none: every gate is closed.
    CLASS_NUMBERS "class-numbers": Text = text(Shape::List { of: "class-number", empty: true });
    /// Priorities of virtual links at switches, with a space between: low (0 to 3), high (4 to 7).
    LINK_PRIORITIES "link-priorities": Vec<LinkPriority> =
        by(Shape::Text { empty: true }, values::link_priorities);
    /// Priority code points, 0 to 7, separated by spaces.
    PRIORITY_LIST "priority-list": Text = text(Shape::List { of: "priority", empty: false });
    /// Whether frames pass a stream gate.
    GATE_STATE "gate-state": bool = choice() {
        /// They pass.
        "open" => true,
        /// They are dropped.
        "closed" => false,
    };
    /// VLAN identifier, 1 to 4094 (IEEE 802.1Q-2022, 9.6), or 0 for untagged and priority-tagged frames.
    VLAN_OF_PORTS "vlan-of-ports": u16 = whole(0, 4_094);
    /// Where a test runs.
    BENCH "bench": Bench = choice() {
        /// In virtual time, in the simulator.
        "sim" => Bench::Sim,
        /// Real frames between network namespaces of this machine.
        "netns" => Bench::Netns,
        /// Real frames between the hosts of a lab.
        "lab" => Bench::Lab,
    };
    /// What lies between an application and the wire: tuned, ideal, or the name of a host-model of the
    /// network.
    HOST_MODEL "host-model": Text = text(Shape::Either(&["kept-host-model", "name"]));
    /// A host model that every test has.
    KEPT_HOST_MODEL "kept-host-model": KeptModel = choice() {
        /// A plausible tuned machine, not a measured one: 2.5us to send and 2us to receive a frame, plus
        /// 150ps per byte; 600ns in the interface; 1us to the interrupt; wake-ups of some microseconds with a
        /// tail up to 40us.
        "tuned" => KeptModel::Tuned,
        /// Takes no time: only the network remains.
        "ideal" => KeptModel::Ideal,
    };
    /// When an interface interrupts its host for received frames.
    INTERRUPTS "interrupts": &'static str = choice() {
        /// For every frame at once.
        "each" => "each",
        /// After interrupt-frames frames, or when the first has waited for interrupt-wait.
        "coalesced" => "coalesced",
        /// At the multiples of interrupt-wait.
        "polled" => "polled",
        /// At once, but no sooner than interrupt-wait after the last interrupt. The driver then reads until
        /// nothing is left.
        "spaced" => "spaced",
        /// At once if the driver is idle. The driver then reads until nothing is left.
        "burst" => "burst",
        /// As spaced, with an interval of 14.286us, 50us or 250us that the driver chooses by the frames and
        /// bytes it read after the last interrupt, as the drivers of Intel's e1000 family do.
        "adaptive" => "adaptive",
    };
    /// What background load costs the host that it is sent to.
    BACKGROUND "background": bool = choice() {
        /// Nothing: the interface discards it.
        "discarded" => false,
        /// What any frame costs it: the load takes room in the ring, raises interrupts and is read; then it
        /// is discarded.
        "received" => true,
    };
    /// Where the sequence number of a virtual link lies.
    SEQUENCE_NUMBER "sequence-number": bool = choice() {
        /// Behind the payload, as in ARINC 664 part 7: payloads of up to 1471B.
        "behind" => false,
        /// In the last byte of the payload, as some cards have it: payloads of up to 1472B in frames as long
        /// as those of udp.
        "within" => true,
    };
    /// A kind of received frames.
    TRAFFIC_KIND "traffic-kind": usize = choice() {
        /// Time-triggered frames.
        "tt" => 0,
        /// Frames of virtual links.
        "rc" => 1,
        /// All others, background load among them.
        "be" => 2,
    };
    /// When a switch forwards a frame.
    FORWARDING_MODE "forwarding-mode": ForwardingMode = choice() {
        /// When the whole frame has arrived.
        "store-and-forward" => ForwardingMode::StoreAndForward,
        /// When its header has arrived, if the output port is idle and as fast as the input port; otherwise
        /// as store-and-forward.
        "cut-through" => ForwardingMode::CutThrough,
    };
    /// How a switch learns to which port an address belongs.
    FORWARDING "forwarding": bool = choice() {
        /// The paths of all flows are entered before the run.
        "static" => false,
        /// The switch learns from source addresses and floods frames to unknown addresses. Virtual links and
        /// time-triggered flows are still configured.
        "learning" => true,
    };
    /// Which frame an output port sends first.
    PRIORITIES "priorities": bool = choice() {
        /// The frame that has waited longest: one queue for all.
        "fifo" => false,
        /// The frame of the highest priority: eight queues, one for each priority.
        "strict" => true,
    };
    /// How an input port polices virtual links (ARINC 664 part 7).
    POLICING "policing": Policing = choice() {
        /// No policing.
        "off" => Policing::Off,
        /// Each frame takes its length from an account that is credited with lmax per bag.
        "bytes" => Policing::Bytes,
        /// Each frame takes lmax from it.
        "frames" => Policing::Frames,
    };
    /// How a time-triggered frame is protected from other frames.
    INTEGRATION "integration": Integration = choice() {
        /// A frame in transmission is aborted and sent again.
        "preemption" => Integration::Preemption,
        /// No transmission begins that would overlap the window.
        "timely-block" => Integration::TimelyBlock,
        /// A transmission in progress finishes first.
        "shuffling" => Integration::Shuffling,
    };
    /// One of two redundant networks.
    NETWORK_ID "network-id": NetworkId = choice() {
        /// Network A, or the only one.
        "A" => NetworkId::A,
        /// Network B.
        "B" => NetworkId::B,
    };
    /// The networks a flow travels on.
    NETWORKS "networks": Option<NetworkId> = choice() {
        /// Network A.
        "A" => Some(NetworkId::A),
        /// Network B.
        "B" => Some(NetworkId::B),
        /// Each frame is sent on A and on B; rc and tt flows only.
        "both" => None,
    };
    /// On or off.
    SWITCHED "switched": bool = choice() {
        /// On.
        "on" => true,
        /// Off.
        "off" => false,
    };
    /// What frames of a stream are known by (IEEE 802.1CB-2017, 6.4, 6.5 and 6.7).
    STREAM_IDENTIFICATION "stream-identification": Identify = choice() {
        /// Destination address and VLAN: null stream identification.
        "destination" => Identify::Destination,
        /// Source address and VLAN.
        "source" => Identify::Source,
        /// Headers of a datagram: IP stream identification. udp and be flows only.
        "ip" => Identify::Ip,
    };
    /// Fields of IP stream identification (IEEE 802.1CB-2017, 6.7), with spaces between: destination-mac,
    /// vlan, source-ip, destination-ip, dscp, source-port, destination-port.
    HEADER_FIELDS "header-fields": Vec<HeaderField> = by(Shape::Text { empty: true }, values::header_fields);
    /// A stream reservation class with its defaults (IEEE 802.1Q-2022, 34.5).
    STREAM_CLASS "stream-class": StreamClass = choice() {
        /// Measured over 125us; priority 3.
        "A" => StreamClass::A,
        /// Measured over 250us; priority 2.
        "B" => StreamClass::B,
    };
    /// A number of frames, {limit}.
    INTERVAL_FRAMES "interval-frames": u32 = whole(1, 65_535);
    /// Whether a flow meter looks at the drop eligible indicator.
    COLOUR_MODE "colour-mode": bool = choice() {
        /// It does not.
        "blind" => false,
        /// A drop eligible frame is yellow or red.
        "aware" => true,
    };
    /// What an entry of a gate control list does to a MAC with preemption.
    MAC_OPERATION "mac-operation": MacOperation = choice() {
        /// Nothing: it stays held, or released, as the entry before has it (SetGateStates).
        "unchanged" => MacOperation::Unchanged,
        /// It is held: no preemptable frame begins or goes on, and the one on the wire is cut in time
        /// (Set-And-Hold-MAC).
        "hold" => MacOperation::Hold,
        /// It is released (Set-And-Release-MAC).
        "release" => MacOperation::Release,
    };
    /// Length of a fragment: 64 B times one to four.
    FRAGMENT "fragment": u16 = choice() {
        /// 60 bytes of the frame.
        "64B" => 64,
        /// 124 bytes of the frame.
        "128B" => 128,
        /// 188 bytes of the frame.
        "192B" => 192,
        /// 252 bytes of the frame.
        "256B" => 256,
    };
    /// Path of a file; a relative path starts at the folder of the test.
    PATH "path": Text = text(Shape::Text { empty: false });
    /// Name of an interface in a capture, or its number, counted from 0.
    CAPTURED_INTERFACE "captured-interface": Text = text(Shape::Text { empty: false });
    /// The direction of captured frames at their interface.
    DIRECTION "direction": Option<bool> = choice() {
        /// Both directions, also if the capture does not say.
        "any" => None,
        /// Frames that the interface received.
        "received" => Some(false),
        /// Frames that the interface sent.
        "sent" => Some(true),
    };
    /// A unicast MAC address: six bytes in hex, separated by colons or hyphens, the first one even; for
    /// example 02:00:00:00:00:07.
    MAC "mac": MacAddress = by(Shape::Text { empty: true }, values::mac);
    /// A unicast IPv4 address; for example 10.1.2.3.
    IPV4 "ipv4": [u8; 4] = by(Shape::Text { empty: true }, values::ipv4);
    /// A UDP port, 1 to 65535.
    UDP_PORT "udp-port": u16 = whole(1, 65_535);
    /// Whether the interface itself sends each frame at its exact time (SO_TXTIME).
    LAUNCH "launch": Option<bool> = choice() {
        /// If a card supports it (queueing discipline etf with offload at the root of the interface) and
        /// frames are at least 3us apart.
        "auto" => None,
        /// By a card or by etf alone. Without either, the run ends with the reason.
        "on" => Some(true),
        /// The sending thread keeps the schedule.
        "off" => Some(false),
    };
    /// How the messages of a sender are spaced.
    INTERVALS "intervals": bool = choice() {
        /// At the period, or in bursts at the period.
        "periodic" => false,
        /// At random exponential intervals with the period as their mean; the seed decides them. The time of
        /// the last message is random, and the run lasts until then.
        "exponential" => true,
    };
    /// What a sender keeps when a message is late.
    PACING "pacing": Pacing = choice() {
        /// The schedule: late messages leave at once. The mean rate is exact; a burst follows a delay.
        "rate" => Pacing::Rate,
        /// The gap: a late message shifts all messages after it. No gap is shorter than planned; the mean
        /// rate falls.
        "gap" => Pacing::Gap,
    };
    /// How frames leave a real host. Manifest and report name the backend and the reason.
    BACKEND "backend": Option<Backend> = choice() {
        /// The simplest backend that is fast enough and that the host grants.
        "auto" => None,
        /// UDP sockets, many messages per system call; needs no privileges.
        "udp" => Some(Backend::Udp),
        /// Packet sockets, many frames per system call; bypasses the queueing discipline if nothing else of
        /// the end system uses the link.
        "packet" => Some(Backend::Packet),
        /// AF_XDP sockets; always bypasses the queueing discipline.
        "xdp" => Some(Backend::Xdp),
        /// A BPF program that builds and paces frames within the kernel and bypasses the queueing discipline;
        /// for injectors with single frames at a constant interval of at most 50us.
        "xdp-live" => Some(Backend::XdpLive),
    };
    /// A time after the beginning of a cycle, such as 150us, or dispatch.
    CYCLE_OFFSET "cycle-offset": CycleOffset = by(Shape::Text { empty: true }, values::cycle_offset);
    /// A time, such as 10us, or a share, such as 100%.
    RAMP_END "ramp-end": Reached = by(Shape::Text { empty: true }, values::ramp_end);
    /// What a switch is.
    SWITCH_KIND "switch-kind": SwitchKind = choice() {
        /// Commercial switch: forwards by address (IEEE 802.1Q), with one FIFO per output port by default.
        "cots" => SwitchKind::Cots,
        /// Also by virtual link, with filtering and policing (ARINC 664 part 7); strict priorities.
        "arinc664" => SwitchKind::Arinc664,
        /// Also time-triggered frames in windows (SAE AS6802); strict priorities.
        "mixed-criticality" => SwitchKind::MixedCriticality,
    };
    /// How a flow is carried.
    PROTOCOL "protocol": Protocol = choice() {
        /// UDP over IPv4 through the kernel's socket.
        "udp" => Protocol::Udp,
        /// Ethernet II frames through a packet socket, EtherType 0x88B5.
        "raw" => Protocol::Raw,
        /// Best effort: UDP over IPv4 beside rate-constrained and time-triggered frames, forwarded by
        /// address.
        "be" => Protocol::Be,
        /// Rate-constrained: a virtual link (ARINC 664 part 7), over arinc664 and mixed-criticality switches.
        /// Needs a bag.
        "rc" => Protocol::Rc,
        /// Time-triggered: sent and forwarded at planned instants (SAE AS6802), over mixed-criticality
        /// switches. Needs a period.
        "tt" => Protocol::Tt,
    };
    /// Content of a payload after the probe header.
    FILL "fill": Fill = choice() {
        /// Bytes counting up.
        "sequential" => Fill::Sequential,
        /// Bytes from a generator seeded by run, flow and sequence number.
        "random" => Fill::Random,
    };
    /// Where a relay returns a message.
    TURN "turn": Turn = choice() {
        /// On the servicing thread: shortest turnaround.
        "servicing" => Turn::Servicing,
        /// In a task thread behind queues, as an application would.
        "task" => Turn::Task,
    };
    /// What a planted fault does to its messages.
    FAULT_KIND "fault-kind": &'static str = choice() {
        /// It is dropped.
        "loss" => "loss",
        /// It is returned twice.
        "duplicate" => "duplicate",
        /// It is returned after its successor.
        "reorder" => "reorder",
        /// One bit of its last payload byte is inverted after the CRC was written.
        "corrupt" => "corrupt",
        /// It is sent to the end system named by to.
        "misdirect" => "misdirect",
    };
    /// What an axis varies.
    AXIS_NAME "axis-name": &'static str = choice() {
        /// Payload of the senders; injectors keep theirs.
        "payload" => "payload",
        /// Load of every injector; senders keep theirs.
        "load" => "load",
        /// Protocol of the flows. A flow may then have attributes of each protocol it takes.
        "protocol" => "protocol",
        /// Period of the senders, in place of a load; the schedules of tt flows keep theirs.
        "period" => "period",
        /// Bandwidth allocation gap of the rc flows.
        "bag" => "bag",
        /// Burst of every injector.
        "burst" => "burst",
        /// Fill of the senders.
        "fill" => "fill",
        /// Rate of every link.
        "rate" => "rate",
        /// Where relays return messages.
        "through" => "through",
        /// Forwarding mode of every switch: store-and-forward or cut-through.
        "forwarding-mode" => "forwarding-mode",
        /// Policing of every arinc664 and mixed-criticality switch: off, bytes or frames.
        "policing" => "policing",
        /// Integration of every mixed-criticality switch: preemption, timely-block or shuffling.
        "integration" => "integration",
    };
    /// A measure: every figure of show --json. If a measure has several figures, a statistic follows after a
    /// dot: a listed one, or any percentile, as in latency.p95 or latency.p99.999.
    MEASURE "measure": Text = text(Shape::Either(&["measure-name", "measure-percentile"]));
    /// Any percentile of a measure with one value per message, or of the latency between two points: p and a
    /// number more than 0 and less than 100, with at most 7 decimals and no trailing zeros, as in
    /// latency.p95, rtt.p99.9999 or pair_latency.tx_drv-rx_drv.p99.9.
    MEASURE_PERCENTILE "measure-percentile": Text = text(Shape::Percentiles);
    /// The listed measures.
    MEASURE_NAME "measure-name": Text = text(Shape::Measures);
}

/// A size that a message or a frame has.
pub(crate) static PAYLOAD: Form<u32> = SIZE.sized(values::payload);
pub(crate) static FRAME_LENGTH: Form<u16> = SIZE.sized(values::frame_length);
pub(crate) static WRONG_LENGTH: Form<u16> = SIZE.read_by(values::wrong_length);
pub(crate) static BAG: Form<Span> = TIME.read_by(values::bag);
pub(crate) static INTERVAL: Form<PowerOfTwo> = TIME.read_by(values::power_of_two);
pub(crate) static CLOCK_STEP: Form<Span> = SIGNED_TIME.read_by(values::clock_step);

/// Every form of the language, in the order in which they are shown.
pub(super) fn forms() -> impl Iterator<Item = &'static dyn Written> {
    FORMS.iter().chain(clocks::FORMS).copied()
}
