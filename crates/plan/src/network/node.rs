//! Nodes: end systems, switches and hubs.

use serde::{Deserialize, Serialize};
use wg_frame::ethernet::{GAP_LEN, MacAddress};
use wg_frame::time::Span;

use super::clock::{Clock, clock};
use super::host::{HostModel, HostModels};
use super::imperfections::{HostEvent, Timestamps, events, timestamps};
use super::kinds::SwitchKind;
use super::switch::{SwitchModel, SwitchParts, switch};
use crate::diagnostic::{Findings, Place};
use crate::host_tsn::HostTsn;
use crate::language::network::end_system as own;
use crate::language::switches::hub;
use crate::places::NodeIndex;
use crate::reader::{Maybe, Reader};
use crate::statements::{HostTsnStatement, host_tsn, only};
use crate::tree::Element;

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
    /// Frequency error of the oscillator of its interfaces in parts per billion; positive: its lines send faster.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line_drift_ppb: i64,
    /// Least gap that its interfaces leave behind a frame, in bytes.
    #[serde(default = "least_gap", skip_serializing_if = "is_least_gap")]
    pub interframe_gap: u8,
    /// Errors of its timestamps in simulation; absent: they are exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<Box<Timestamps>>,
    /// Recurring events of its simulated host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<HostEvent>,
}

impl Node {
    /// Node `index` of a network, with the addresses it gets there and a perfect clock.
    pub fn new(index: NodeIndex, name: impl Into<String>, kind: NodeKind) -> Self {
        let (mac, ipv4) = addresses(index);
        Self {
            name: name.into(),
            kind,
            mac,
            ipv4,
            clock: Clock::default(),
            tsn: None,
            line_drift_ppb: 0,
            interframe_gap: least_gap(),
            timestamps: None,
            events: Vec::new(),
        }
    }

    /// The same node with another index, and the addresses that belong to it.
    pub(crate) fn at(&self, index: NodeIndex) -> Self {
        let (mac, ipv4) = addresses(index);
        Self { mac, ipv4, ..self.clone() }
    }

    /// Whether messages are sent and received here.
    pub const fn is_end_system(&self) -> bool {
        matches!(self.kind, NodeKind::EndSystem { .. })
    }
}

/// The MAC and the IPv4 address of node `index`.
const fn addresses(index: NodeIndex) -> (MacAddress, [u8; 4]) {
    let [high, low] = index.wrapping_add(1).to_be_bytes();
    (MacAddress([0x02, 0x57, 0x47, 0x00, high, low]), [198, 18, high, low])
}

/// The gap of IEEE Std 802.3, in bytes.
pub(crate) const fn least_gap() -> u8 {
    #[expect(clippy::cast_possible_truncation, reason = "twelve")]
    const GAP: u8 = GAP_LEN as u8;
    GAP
}

fn is_least_gap(gap: &u8) -> bool {
    *gap == least_gap()
}

fn is_zero(number: &i64) -> bool {
    *number == 0
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

/// A node as it is written: the node of the plan, and where its parts stand.
#[derive(Clone, Debug)]
pub(crate) struct NodeStatement {
    pub(crate) place: Place,
    pub(crate) name: Maybe<String>,
    /// Its index, and so its addresses, are those of the first node. What could not be read has a value that is never used,
    /// as the test is refused.
    pub(crate) node: Node,
    /// TSN settings of an end system.
    pub(crate) tsn: Option<Box<HostTsnStatement>>,
    /// What only a switch has.
    parts: SwitchParts,
}

impl NodeStatement {
    /// Reads a node; `None` for an element that is none.
    pub(crate) fn read(element: &Element, hosts: &HostModels, found: &mut Findings) -> Option<Self> {
        let mut reader = Reader::new(element, found);
        let mut parts = SwitchParts::default();
        let kind = match element.tag.as_str() {
            "end-system" => NodeKind::EndSystem { host: hosts.end_system(&mut reader) },
            "switch" => {
                let model;
                (model, parts) = switch(&mut reader);
                NodeKind::Switch(model)
            }
            "hub" => NodeKind::Hub { delay: reader.value(&hub::DELAY).unwrap_or_default() },
            _ => return None,
        };
        let line_drift_ppb = reader.value(&own::LINE_DRIFT).unwrap_or_default();
        let gap = reader.value(&own::INTERFRAME_GAP).and_then(|bytes| u8::try_from(bytes).ok());
        let (name, place) = (reader.read(&own::NAME), reader.place);
        let clock = only(element, "clock", found).map(|element| clock(element, found)).unwrap_or_default();
        let tsn = only(element, "host-tsn", found).map(|element| host_tsn(element, found));
        let timestamps =
            only(element, "timestamps", found).map(|element| Box::new(timestamps(element, found)));
        let node = Node {
            clock,
            tsn: tsn.as_ref().map(|statement| Box::new(statement.tsn.clone())),
            line_drift_ppb,
            interframe_gap: gap.unwrap_or(least_gap()),
            timestamps,
            events: events(element, found),
            ..Node::new(0, name.as_ref().map(|name| name.value.clone()).unwrap_or_default(), kind)
        };
        Some(Self { place, name, node, tsn, parts })
    }

    /// The switch that it is, and where its parts stand.
    pub(crate) const fn switch(&self) -> Option<(&SwitchModel, &SwitchParts)> {
        match &self.node.kind {
            NodeKind::Switch(model) => Some((model, &self.parts)),
            _ => None,
        }
    }

    /// Whether it is a switch that knows what one of kind `least` does.
    pub(crate) fn is_switch(&self, least: SwitchKind) -> bool {
        self.switch().is_some_and(|(model, _)| model.kind >= least)
    }

    /// Whether everything that it says of VLANs could be read.
    pub(crate) const fn knows_vlans(&self) -> bool {
        !self.parts.vlans_refused
    }
}
