//! The executable test. Serialised as JSON it is also the contract between testmaster and agents and the
//! copy of the plan kept in the run directory.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wg_frame::time::Span;

/// Index of a node in [`Network::nodes`].
pub type NodeIndex = u16;
/// Number of a flow as the test gives it (1 to 65 534); it travels in the probe header.
pub type FlowId = u16;

/// Version of the JSON form of [`Campaign`]; raised when a reader of an older form would misread it.
pub const PLAN_SCHEMA: u32 = 1;

/// A whole test: one network and the runs its sweep expands to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// [`PLAN_SCHEMA`] of the writer.
    pub schema: u32,
    /// Name of the test.
    pub name: String,
    /// Seed every random choice of the campaign derives from.
    pub seed: u64,
    /// The network under test.
    pub network: Network,
    /// Swept parameters in the order of the file; empty for a single run.
    pub axes: Vec<Axis>,
    /// How often each point is measured.
    pub repeats: u32,
    /// The runs, points in the order of the axes (the last axis fastest), repeats innermost.
    pub runs: Vec<Run>,
    /// Limits the measures are judged against.
    pub limits: Vec<Limit>,
    /// What is allowed but worth knowing, one sentence each.
    pub warnings: Vec<String>,
}

/// One swept parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// What is swept: `payload`, `load`, `protocol`, `period`, …
    pub of: String,
    /// The values as written, in order.
    pub values: Vec<String>,
}

/// Nodes and links. Node `i` of the list has [`NodeIndex`] `i`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// End systems and switches.
    pub nodes: Vec<Node>,
    /// Point-to-point links between their ports.
    pub links: Vec<Link>,
}

/// An end system or a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Name in the test file.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// MAC address; locally administered, derived from the node's index.
    pub mac: [u8; 6],
    /// IPv4 address in 198.18.0.0/15, the range RFC 2544 reserves for benchmarks.
    pub ipv4: [u8; 4],
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum NodeKind {
    /// Sends, receives and relays messages; one agent runs on it.
    EndSystem,
    /// A commercial switch: learning, store-and-forward, one FIFO per port.
    CotsSwitch {
        /// Bytes each output port can hold.
        buffer_bytes: u64,
    },
}

/// A full-duplex link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Its two ends.
    pub ends: [Attachment; 2],
    /// Bit rate on the wire, each direction.
    pub rate_bps: u64,
    /// Propagation delay, one way.
    pub delay: Span,
}

/// A port of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Attachment {
    /// The node.
    pub node: NodeIndex,
    /// Its port, counted from 1; an end system has port 1 only.
    pub port: u16,
}

/// One run: one point of the sweep, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Position in [`Campaign::runs`].
    pub index: u32,
    /// The axis values of this run, as written; empty without a sweep.
    pub point: BTreeMap<String, String>,
    /// 0-based number of the repeat.
    pub repeat: u32,
    /// Seed of this run, derived from the campaign's.
    pub seed: u64,
    /// Rate of every link in bit/s where the sweep sets it; else each link has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_rate_bps: Option<u64>,
    /// Time before the measured part. Messages sent in it are marked and excluded from every measure.
    pub warm_up: Span,
    /// Length of the measured part.
    pub duration: Span,
    /// Wait for frames still under way after the last planned send.
    pub drain: Span,
    /// Flows with the axis values applied.
    pub flows: Vec<Flow>,
    /// Sender tasks.
    pub sends: Vec<Send>,
    /// Receiver tasks.
    pub receives: Vec<Receive>,
    /// Relay tasks.
    pub relays: Vec<Relay>,
    /// Background load.
    pub injects: Vec<Inject>,
}

/// Frames a flow is carried in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// UDP over IPv4 through the kernel's socket.
    Udp,
    /// Ethernet II frames through a packet socket, EtherType 0x88B5.
    Raw,
}

/// A stream of numbered messages from one end system to another (and back, where a relay returns it).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Its number.
    pub id: FlowId,
    /// How it is carried.
    pub protocol: Protocol,
    /// Sending end system.
    pub from: NodeIndex,
    /// Receiving end system.
    pub to: NodeIndex,
    /// A message older than this at the application is late.
    pub deadline: Option<Span>,
    /// 802.1Q tag of raw frames.
    pub vlan: Option<VlanTag>,
    /// Nodes on the way, `from` first and `to` last.
    pub path: Vec<NodeIndex>,
}

/// 802.1Q tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlanTag {
    /// VLAN identifier, 1 to 4094 (0: priority-tagged).
    pub id: u16,
    /// Priority code point, 0 to 7.
    pub priority: u8,
}

/// How payload after the probe header is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    /// Bytes counting up.
    Sequential,
    /// Bytes from a generator seeded by run seed, flow and sequence number.
    Random,
}

/// A sender task: message `k` is due at `warm_up + offset + k · period` after the epoch; warm-up messages
/// are due at the same spacing before that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Send {
    /// The flow it feeds.
    pub flow: FlowId,
    /// Time between intended sends.
    pub period: Span,
    /// Intended send of message 0, after the end of the warm-up.
    pub offset: Span,
    /// Payload in bytes: UDP payload, or payload of the Ethernet frame; the probe header is its first part.
    pub payload: u32,
    /// Its content after the probe header.
    pub fill: Fill,
    /// Messages of the measured part.
    pub count: u32,
    /// Messages before it, numbered on their own from 0.
    pub warm_up_count: u32,
}

/// A receiver task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receive {
    /// The flow it expects.
    pub flow: FlowId,
    /// The end system it runs on.
    pub on: NodeIndex,
}

/// A relay task: sends every message of the flow back to where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    /// The flow it returns.
    pub flow: FlowId,
    /// The end system it runs on; the flow's `to`.
    pub on: NodeIndex,
    /// Where the message is turned round.
    pub through: Turn,
    /// Planted faults.
    pub faults: Vec<Fault>,
}

/// Where a relay turns a message round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Turn {
    /// On the servicing thread: least delay.
    Servicing,
    /// In a task thread behind queues, as an application would.
    Task,
}

/// A planted fault: what the relay does to the messages with these sequence numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What is done.
    pub kind: FaultKind,
    /// Inclusive ranges of sequence numbers, ascending, disjoint.
    pub sequences: Vec<(u32, u32)>,
}

/// What a planted fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum FaultKind {
    /// The message is not sent on.
    Drop,
    /// It is sent on twice.
    Duplicate,
    /// It is sent on after its successor.
    Swap,
    /// One bit of its last payload byte is inverted after the CRC was written.
    Corrupt,
    /// It is sent to this end system instead.
    Misdirect {
        /// Where it goes.
        to: NodeIndex,
    },
}

/// Background load: bursts of UDP frames that nobody measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inject {
    /// The flooding end system.
    pub on: NodeIndex,
    /// The end system flooded.
    pub to: NodeIndex,
    /// UDP payload of each frame in bytes.
    pub payload: u32,
    /// Frames sent back to back.
    pub burst: u32,
    /// Time between bursts; the load is `burst · wire size / interval`. Zero load has no task.
    pub interval: Span,
    /// The load this makes on the sender's link, in parts per million of its rate.
    pub load_ppm: u32,
}

/// A limit on a measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The flow it judges; all flows when absent.
    pub flow: Option<FlowId>,
    /// Name of the measure, for example `latency.p99` or `lost`.
    pub measure: String,
    /// Which side is allowed.
    pub bound: Bound,
    /// The limit in the measure's base unit: ns, messages, bit/s, or a share of 1 for `loss`.
    pub value: f64,
    /// The limit as written.
    pub written: String,
    /// Line in the test file; 0 when built in code.
    pub line: u32,
}

/// Which side of a limit is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The measure must not exceed the value.
    AtMost,
    /// The measure must reach the value.
    AtLeast,
}
