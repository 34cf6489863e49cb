//! Stream filters, gates and meters, as a plan has them (IEEE Std 802.1Q-2022, 8.6.5.2).

use serde::{Deserialize, Serialize};
use wg_frame::time::Span;

use crate::places::FlowId;

/// The filter of a flow's stream, with its gate and meter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamFilter {
    /// The flow.
    pub flow: FlowId,
    /// How its frames are identified.
    #[serde(default)]
    pub identify: Identify,
    /// Fields that IP stream identification compares, ascending; empty: all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<HeaderField>,
    /// Longest service data unit, octets; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sdu: Option<u16>,
    /// Whether a longer one blocks the stream for good.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub block_oversize: bool,
    /// Gate that its frames pass; absent: none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<FilterGate>,
    /// The flow whose filter has the gate; absent: the gate is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_of: Option<FlowId>,
    /// Meter of its frames; absent: none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<FlowMeter>,
    /// The flow whose filter has the meter; absent: the meter is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter_of: Option<FlowId>,
}

impl StreamFilter {
    /// Its gate, its own or that of another of these filters.
    pub fn gate_among<'a>(&'a self, filters: &'a [Self]) -> Option<&'a FilterGate> {
        self.gate.as_ref().or_else(|| of(filters, self.gate_of)?.gate.as_ref())
    }

    /// Its meter, likewise.
    pub fn meter_among<'a>(&'a self, filters: &'a [Self]) -> Option<&'a FlowMeter> {
        self.meter.as_ref().or_else(|| of(filters, self.meter_of)?.meter.as_ref())
    }
}

/// How a switch knows the frames of a stream (IEEE Std 802.1CB-2017, 6.4, 6.5 and 6.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Identify {
    /// By destination address and VLAN: null stream identification.
    #[default]
    Destination,
    /// By source address and VLAN.
    Source,
    /// By headers of its datagrams: IP stream identification.
    Ip,
}

/// The gate of a stream. Times are of the switch's own clock, after the epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterGate {
    /// When a cycle begins.
    pub base_time: Span,
    /// Whether a frame that comes while it is closed closes it for good.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub close_on_invalid: bool,
    /// Whether a frame beyond the octets of an entry closes it for good.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub close_on_octets: bool,
    /// Its entries.
    pub entries: Vec<FilterGateEntry>,
}

/// An entry of a stream gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterGateEntry {
    /// Whether frames pass.
    pub open: bool,
    /// Duration of the entry.
    pub length: Span,
    /// Largest number of octets of service data units that pass in it; absent: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_octets: Option<u32>,
    /// Priority by which the switch queues frames that pass; absent: the frames' own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
}

/// A meter with two rates (MEF 10.3), of frames from destination address to FCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowMeter {
    /// Committed information rate, bit/s.
    pub rate_bps: u64,
    /// Committed burst size, bytes.
    pub burst: u32,
    /// Excess information rate, bit/s.
    #[serde(default)]
    pub excess_rate_bps: u64,
    /// Excess burst size, bytes.
    #[serde(default)]
    pub excess_burst: u32,
    /// Whether tokens that the committed bucket has no room for go to the excess bucket.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub coupling: bool,
    /// Whether a frame that came as drop eligible is never green.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub colour_aware: bool,
    /// Whether yellow frames are dropped.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub drop_on_yellow: bool,
    /// Whether every frame after the first red one is red.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub mark_all_red: bool,
}

/// A field that identification compares; of fields that it does not, any value will do. The next protocol, which is UDP
/// wherever there is one, is always compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderField {
    /// Destination MAC address.
    DestinationMac,
    /// VLAN.
    Vlan,
    /// Source IPv4 address.
    SourceIp,
    /// Destination IPv4 address.
    DestinationIp,
    /// Differentiated services code point.
    Dscp,
    /// Source UDP port.
    SourcePort,
    /// Destination UDP port.
    DestinationPort,
}

impl HeaderField {
    /// All, under their names in the test language.
    pub const ALL: [(&'static str, Self); 7] = [
        ("destination-mac", Self::DestinationMac),
        ("vlan", Self::Vlan),
        ("source-ip", Self::SourceIp),
        ("destination-ip", Self::DestinationIp),
        ("dscp", Self::Dscp),
        ("source-port", Self::SourcePort),
        ("destination-port", Self::DestinationPort),
    ];
}

/// The filter of a flow.
fn of(filters: &[StreamFilter], flow: Option<FlowId>) -> Option<&StreamFilter> {
    filters.iter().find(|filter| Some(filter.flow) == flow)
}
