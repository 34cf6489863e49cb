//! The network under test: nodes, links, clocks and what each of them is made of.
//!
//! Every default of the test language is applied here, so a bench reads figures and never invents one. A bench that runs
//! on real machines takes from this what it can build and leaves the rest to the machine. What a core is built from is stated
//! in the core's own type, so that a plan holds only what makes one.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use wg_core::arinc664::policing;
pub use wg_core::end_system::{Cost, Interrupts, ReceiveBuffer, StackCosts};
pub use wg_core::frame::{FrameLengths, NetworkId};
pub use wg_core::line::LineRate;
pub use wg_core::queue::Capacity;
pub use wg_core::switch::ForwardingMode;
pub use wg_core::tte::access::{DeltaRaster, Integration};
pub use wg_frame::ethernet::MacAddress;
use wg_frame::time::Span;

use crate::campaign::{Hop, Protocol, Route};
pub use crate::distribution::Distribution;
use crate::host_tsn::HostTsn;
use crate::imperfections::{HostEvent, OwnFrames, Timestamps};
pub use crate::places::{Attachment, NodeIndex};
use crate::stream_filter::StreamFilter;
use crate::switch_tsn::PortTsn;

/// Nodes and links. Node `i` of the list has [`NodeIndex`] `i`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// End systems, switches and hubs.
    pub nodes: Vec<Node>,
    /// Links between their ports.
    pub links: Vec<Link>,
}

impl Network {
    /// The route along these nodes over one of the redundant networks; between two, the first link of the plan. `None`
    /// where two neighbours have none.
    pub fn route(&self, network: NetworkId, nodes: &[NodeIndex]) -> Option<Route> {
        let hop = |pair: &[NodeIndex]| {
            (0..).zip(&self.links).filter(|(_, link)| link.network == network).find_map(|(number, link)| {
                let [a, b] = link.ends;
                let hop = Hop { link: number, from: a, to: b };
                match [a.node, b.node] {
                    ends if ends == pair => Some(hop),
                    [a, b] if [b, a] == pair => Some(hop.reversed()),
                    _ => None,
                }
            })
        };
        let hops: Option<Vec<Hop>> = nodes.windows(2).map(hop).collect();
        hops.map(|hops| Route { network, hops })
    }
}

/// An end system, a switch or a hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Name in the test file.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// MAC address; locally administered, derived from the node's index.
    pub mac: MacAddress,
    /// IPv4 address in 198.18.0.0/15, the range RFC 2544 reserves for benchmarks.
    pub ipv4: [u8; 4],
    /// Its clock; a perfect one where the test gives none.
    #[serde(default, skip_serializing_if = "Clock::is_perfect")]
    pub clock: Clock,
    /// TSN settings of the interface of an end system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tsn: Option<Box<HostTsn>>,
    /// How much too fast the oscillator of its interfaces runs, in parts per billion: its lines send so much faster.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line_drift_ppb: i64,
    /// The least gap that its interfaces leave behind a frame, in bytes.
    #[serde(default = "least_gap", skip_serializing_if = "is_least_gap")]
    pub interframe_gap: u8,
    /// Errors of its timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<Box<Timestamps>>,
    /// What its host does now and then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<HostEvent>,
}

impl Node {
    /// Node `index` of a network, with the addresses it gets there and a perfect clock.
    pub fn new(index: NodeIndex, name: impl Into<String>, kind: NodeKind) -> Self {
        let [high, low] = index.wrapping_add(1).to_be_bytes();
        Self {
            name: name.into(),
            kind,
            mac: MacAddress([0x02, 0x57, 0x47, 0x00, high, low]),
            ipv4: [198, 18, high, low],
            clock: Clock::default(),
            tsn: None,
            line_drift_ppb: 0,
            interframe_gap: least_gap(),
            timestamps: None,
            events: Vec::new(),
        }
    }

    /// Whether messages are sent and received here.
    pub const fn is_end_system(&self) -> bool {
        matches!(self.kind, NodeKind::EndSystem { .. })
    }
}

/// That of IEEE Std 802.3.
pub(crate) const fn least_gap() -> u8 {
    12
}

fn is_least_gap(gap: &u8) -> bool {
    *gap == least_gap()
}

fn is_standard(lengths: &FrameLengths) -> bool {
    *lengths == FrameLengths::STANDARD
}

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum NodeKind {
    /// Sends, receives and relays messages; one agent runs on it.
    EndSystem {
        /// What lies between its applications and the wire, where the bench has to imitate it.
        #[serde(default)]
        host: HostModel,
    },
    /// Forwards frames.
    Switch(SwitchModel),
    /// Repeats bits on a shared half-duplex medium (IEEE Std 802.3, CSMA/CD).
    Hub {
        /// From a bit in to the bit out.
        delay: Span,
    },
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchModel {
    /// What it forwards by.
    pub kind: SwitchKind,
    /// When it forwards.
    #[serde(default)]
    pub forwarding_mode: ForwardingMode,
    /// From the last bit in (cut-through: the last bit of the header) to the earliest first bit out.
    #[serde(default)]
    pub processing_delay: Span,
    /// The same drawn for each frame, where it varies; `processing_delay` is then zero.
    #[serde(default, skip_serializing_if = "Distribution::is_none")]
    pub drawn_delay: Distribution,
    /// How much longer a frame takes from a port to one of another rate.
    #[serde(default, skip_serializing_if = "no_time")]
    pub mixed_rate_delay: Span,
    /// Lengths of frames that it takes; others are dropped where they come in.
    #[serde(default, skip_serializing_if = "is_standard")]
    pub frame_lengths: FrameLengths,
    /// Frames it sends by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_frames: Vec<OwnFrames>,
    /// Whether addresses are learnt; otherwise the ways of all flows are entered before the run.
    #[serde(default)]
    pub learning: bool,
    /// What is known of the table of learnt addresses; of no limit to speak of where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_table: Option<AddressTable>,
    /// A queue for each of the eight priorities; otherwise one for all.
    #[serde(default)]
    pub strict_priority: bool,
    /// What each output port holds.
    pub port_buffer: Capacity,
    /// What each queue of a port holds; as much as the port where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_buffer: Option<Capacity>,
    /// What all ports together hold; unlimited where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_buffer: Option<Capacity>,
    /// VLANs and the ports that carry them; empty: tags are not looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vlans: Vec<VlanPorts>,
    /// How virtual links are held to their contract; without virtual links unused.
    #[serde(default)]
    pub policing: Policing,
    /// How time-triggered frames get their windows; without them unused.
    #[serde(default)]
    pub integration: Integration,
    /// Alternating slots for time-triggered and other frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raster: Option<DeltaRaster>,
    /// Traffic classes, shapers and gates of its ports, each port in one of them at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tsn: Vec<PortTsn>,
}

impl SwitchModel {
    /// What is set for the output of a port.
    pub fn tsn_of(&self, port: u16) -> Option<&PortTsn> {
        self.settings_of(port).filter(|tsn| !tsn.classes.is_empty())
    }

    /// What streams that enter by a port have to keep to.
    pub fn filters_of(&self, port: u16) -> &[StreamFilter] {
        self.settings_of(port).map_or(&[], |tsn| &tsn.filters)
    }

    fn settings_of(&self, port: u16) -> Option<&PortTsn> {
        let named = self.tsn.iter().find(|tsn| tsn.ports.contains(&port));
        named.or_else(|| self.tsn.iter().find(|tsn| tsn.ports.is_empty()))
    }

    /// A commercial store-and-forward switch with one queue of `bytes` bytes at each port, which takes no time to
    /// decide and knows the ways of all flows.
    pub const fn cots(bytes: u64) -> Self {
        Self {
            kind: SwitchKind::Cots,
            forwarding_mode: ForwardingMode::StoreAndForward,
            processing_delay: Span::ZERO,
            drawn_delay: Distribution { quantiles: Vec::new() },
            mixed_rate_delay: Span::ZERO,
            frame_lengths: FrameLengths::STANDARD,
            own_frames: Vec::new(),
            learning: false,
            address_table: None,
            strict_priority: false,
            port_buffer: Capacity::bytes(bytes),
            queue_buffer: None,
            shared_buffer: None,
            vlans: Vec::new(),
            policing: Policing::Bytes,
            integration: Integration::TimelyBlock,
            raster: None,
            tsn: Vec::new(),
        }
    }
}

/// The table of addresses of a switch that learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressTable {
    /// Addresses it holds.
    pub entries: u32,
    /// How long it takes to enter an address; meanwhile no other is learnt.
    #[serde(default, skip_serializing_if = "no_time")]
    pub entry_time: Span,
    /// How long an address is kept that is not seen.
    pub ageing: Span,
}

/// What one run changes in every switch it applies to, where the sweep does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchChange {
    /// Of every switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarding_mode: Option<ForwardingMode>,
    /// Of every switch that knows virtual links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policing: Option<Policing>,
    /// Of every mixed-criticality switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integration: Option<Integration>,
}

impl SwitchChange {
    /// Whether it changes nothing.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The network with its switches changed.
    pub fn applied<'n>(&self, network: &'n Network) -> Cow<'n, Network> {
        if self.is_none() {
            return Cow::Borrowed(network);
        }
        let mut changed = network.clone();
        for node in &mut changed.nodes {
            let NodeKind::Switch(switch) = &mut node.kind else { continue };
            switch.forwarding_mode = self.forwarding_mode.unwrap_or(switch.forwarding_mode);
            if switch.kind >= SwitchKind::Arinc664 {
                switch.policing = self.policing.unwrap_or(switch.policing);
            }
            if switch.kind == SwitchKind::MixedCriticality {
                switch.integration = self.integration.unwrap_or(switch.integration);
            }
        }
        Cow::Owned(changed)
    }
}

/// What a switch forwards by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchKind {
    /// By address (IEEE Std 802.1Q).
    Cots,
    /// By virtual link, with filtering and policing; all else by address (ARINC 664 part 7).
    Arinc664,
    /// Also time-triggered frames in windows (SAE AS6802).
    MixedCriticality,
}

/// The ports that carry a VLAN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlanPorts {
    /// VLAN identifier, 1 to 4094; 0 for untagged and priority-tagged frames.
    pub id: u16,
    /// Port numbers, ascending.
    pub ports: Vec<u16>,
}

/// How virtual links are held to their contract at a switch's input port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policing {
    /// They are not.
    Off,
    /// Each frame costs its length.
    #[default]
    Bytes,
    /// Each frame costs Lmax.
    Frames,
}

impl Policing {
    /// How an account charges; `None`: there is none.
    pub const fn mode(self) -> Option<policing::Mode> {
        match self {
            Self::Off => None,
            Self::Bytes => Some(policing::Mode::ByteBased),
            Self::Frames => Some(policing::Mode::FrameBased),
        }
    }
}

/// A node's oscillator. Readings are `offset + (1 + drift) · time`, rounded down to the granularity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// What it shows at the epoch.
    #[serde(default)]
    pub offset: Span,
    /// How much too fast it runs, in parts per billion.
    #[serde(default)]
    pub drift_ppb: i64,
    /// Standard deviation of the change of drift from one second to the next, in parts per billion.
    #[serde(default)]
    pub wander_ppb: u32,
    /// Step of its readings.
    #[serde(default = "picosecond")]
    pub granularity: Span,
    /// Changes of drift by temperature, ascending in time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub temperature: Vec<TemperatureStep>,
}

impl Clock {
    /// Whether it shows true time.
    pub fn is_perfect(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            offset: Span::ZERO,
            drift_ppb: 0,
            wander_ppb: 0,
            granularity: picosecond(),
            temperature: Vec::new(),
        }
    }
}

fn no_time(span: &Span) -> bool {
    *span == Span::ZERO
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn picosecond() -> Span {
    Span::from_picos(1)
}

/// A change of temperature and what it does to an oscillator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemperatureStep {
    /// When, after the epoch.
    pub at: Span,
    /// By how much the drift changes, in parts per billion.
    pub drift_ppb: i64,
}

/// A link between two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Its two ends.
    pub ends: [Attachment; 2],
    /// Bit rate on the wire, each direction; half duplex at a hub.
    #[serde(rename = "rate_bps")]
    pub rate: LineRate,
    /// Propagation delay, one way.
    pub delay: Span,
    /// The redundant network it belongs to.
    #[serde(default)]
    pub network: NetworkId,
}

/// What lies between an application and the wire. The default is a plausible tuned machine, not a measured one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostModel {
    /// From the application's call to the egress queue.
    pub transmit: Cost,
    /// From the woken thread to the application.
    pub receive: Cost,
    /// From the driver to the first bit on the wire.
    pub interface_delay: Span,
    /// From the interrupt, or the poll, to the driver's look at the ring.
    pub interrupt_latency: Span,
    /// When the interface tells the host of frames.
    pub interrupts: Interrupts,
    /// How late the scheduler wakes a sender.
    pub send_wake_up: Distribution,
    /// How late it wakes the receiving thread.
    pub receive_wake_up: Distribution,
    /// How late it wakes a relay task behind its queue.
    pub relay_wake_up: Distribution,
    /// Messages on their way from applications to the egress queue.
    pub backlog: u32,
    /// Frames in the receive ring.
    pub ring: u32,
    /// Bytes in the egress queue.
    pub egress_bytes: u64,
    /// Whether background load that comes passes ring, interrupts and reader like any frame; otherwise the interface
    /// discards it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub receives_load: bool,
    /// What reading a frame from the card costs the processor; absent: the card writes it to memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_read: Option<Cost>,
    /// Receive buffers of time-triggered, rate-constrained and best-effort frames; absent: one ring for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffers: Option<[ReceiveBuffer; 3]>,
    /// From the last bit on the wire to the frame in the ring.
    #[serde(default, skip_serializing_if = "no_time")]
    pub interface_receive_delay: Span,
    /// Protocols whose way through the operating system has costs of its own, each once; the others have `transmit` and
    /// `receive`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Stack>,
}

/// What a protocol's way through the operating system costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// The protocol.
    pub protocol: Protocol,
    /// What it costs in the place of what frames of the others do.
    #[serde(flatten)]
    pub costs: StackCosts,
}

impl HostModel {
    /// A host that takes no time: what is left is the network itself.
    pub fn ideal() -> Self {
        Self {
            transmit: Cost::default(),
            receive: Cost::default(),
            interface_delay: Span::ZERO,
            interface_receive_delay: Span::ZERO,
            interrupt_latency: Span::ZERO,
            interrupts: Interrupts::EachFrame,
            send_wake_up: Distribution::default(),
            receive_wake_up: Distribution::default(),
            relay_wake_up: Distribution::default(),
            backlog: 4_096,
            ring: 4_096,
            egress_bytes: 4 << 20,
            receives_load: false,
            card_read: None,
            receive_buffers: None,
            stacks: Vec::new(),
        }
    }
}

impl Default for HostModel {
    fn default() -> Self {
        let (us, ns) = (Span::from_micros, Span::from_nanos);
        let sleeper =
            [(0, ns(800)), (500_000, ns(1_500)), (990_000, us(4)), (999_000, us(12)), (1_000_000, us(40))];
        let spinner =
            [(0, ns(50)), (500_000, ns(100)), (990_000, ns(300)), (999_000, us(3)), (1_000_000, us(20))];
        Self {
            transmit: Cost { fixed: ns(2_500), per_byte: Span::from_picos(150) },
            receive: Cost { fixed: ns(2_000), per_byte: Span::from_picos(150) },
            interface_delay: ns(600),
            interrupt_latency: us(1),
            send_wake_up: Distribution { quantiles: spinner.to_vec() },
            receive_wake_up: Distribution { quantiles: sleeper.to_vec() },
            relay_wake_up: Distribution { quantiles: sleeper.to_vec() },
            ..Self::ideal()
        }
    }
}
