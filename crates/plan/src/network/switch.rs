//! Switches.

use serde::{Deserialize, Serialize};
use wg_core::frame::FrameLengths;
use wg_core::queue::Capacity;
use wg_core::switch::ForwardingMode;
use wg_core::tte::access::{DeltaRaster, Integration};
use wg_frame::time::Span;

use super::imperfections::{OwnFrames, own_frames};
use super::kinds::{Policing, SwitchKind};
use crate::diagnostic::{Findings, Place, on_line};
use crate::distribution::Distribution;
use crate::language::attribute::{Attribute, Declared};
use crate::language::switches::{switch as own, vlan as virtual_lan};
use crate::language::types::SWITCH_KIND;
use crate::places::MOST_PORTS;
use crate::reader::{Reader, Sourced};
use crate::statements::{SwitchTsnStatement, switch_tsn};
use crate::stream_filter::StreamFilter;
use crate::switch_tsn::PortTsn;
use crate::tree::Element;

fn is_standard(lengths: &FrameLengths) -> bool {
    *lengths == FrameLengths::STANDARD
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchModel {
    /// Kind of switch, which says what it forwards by.
    pub kind: SwitchKind,
    /// When it forwards.
    #[serde(default)]
    pub forwarding_mode: ForwardingMode,
    /// Processing delay: from the last bit in (cut-through: the last bit of the header) to the earliest first bit out.
    #[serde(default)]
    pub processing_delay: Span,
    /// Distribution that the processing delay of each frame is drawn from; absent: it is `processing_delay`.
    #[serde(default, skip_serializing_if = "Distribution::is_none")]
    pub drawn_delay: Distribution,
    /// Additional delay of a frame between ports of different rates.
    #[serde(default, skip_serializing_if = "Span::is_zero")]
    pub mixed_rate_delay: Span,
    /// Lengths of frames that it accepts, others are dropped at the input port; absent: those of the standard.
    #[serde(default, skip_serializing_if = "is_standard")]
    pub frame_lengths: FrameLengths,
    /// Frames that it sends by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_frames: Vec<OwnFrames>,
    /// Whether addresses are learnt; otherwise the routes of all flows are entered before the run.
    #[serde(default)]
    pub learning: bool,
    /// The table of learnt addresses; absent: without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_table: Option<AddressTable>,
    /// Whether an output port has a queue for each of the eight priorities; otherwise it has one for all.
    #[serde(default)]
    pub strict_priority: bool,
    /// Capacity of each output port.
    pub port_buffer: Capacity,
    /// Capacity of each queue of a port; absent: that of the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_buffer: Option<Capacity>,
    /// Capacity of all ports together; absent: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_buffer: Option<Capacity>,
    /// VLANs and the ports that carry them; empty: tags are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vlans: Vec<VlanPorts>,
    /// How virtual links are policed.
    #[serde(default)]
    pub policing: Policing,
    /// How time-triggered frames are protected from other frames.
    #[serde(default)]
    pub integration: Integration,
    /// Alternating slots for time-triggered and other frames; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raster: Option<DeltaRaster>,
    /// Traffic classes, shapers and gates of its ports, each port in one of them at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tsn: Vec<PortTsn>,
}

impl SwitchModel {
    /// The settings of a port's output; `None`: it has no traffic classes.
    pub fn tsn_of(&self, port: u16) -> Option<&PortTsn> {
        self.settings_of(port).filter(|tsn| !tsn.classes.is_empty())
    }

    /// Filters of the streams that enter by a port.
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
    /// Number of addresses that it holds.
    pub entries: u32,
    /// Time to enter an address; meanwhile no other is learnt.
    #[serde(default, skip_serializing_if = "Span::is_zero")]
    pub entry_time: Span,
    /// Time after which an address that is not seen is forgotten.
    pub ageing: Span,
}

/// The ports that carry a VLAN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlanPorts {
    /// VLAN identifier, 1 to 4094; 0 for untagged and priority-tagged frames.
    pub id: u16,
    /// Port numbers, ascending.
    pub ports: Vec<u16>,
}

/// Where the parts of a switch are written.
#[derive(Clone, Debug, Default)]
pub(crate) struct SwitchParts {
    /// Its raster, where it has one.
    pub(crate) raster: Option<Sourced<Span>>,
    /// Each of its own frames.
    pub(crate) own_frames: Vec<Place>,
    /// Each of its VLANs.
    pub(crate) vlans: Vec<Place>,
    /// A VLAN could not be read.
    pub(crate) vlans_refused: bool,
    /// The settings of its ports.
    pub(crate) tsn: Vec<SwitchTsnStatement>,
}

/// Reads `<switch>`. What could not be read has a value that is never used, as the test is refused.
pub(super) fn switch(reader: &mut Reader<'_>) -> (SwitchModel, SwitchParts) {
    let element = reader.element;
    // Of a kind that could not be read everything fits.
    let kind = reader.value(&own::KIND).unwrap_or(SwitchKind::MixedCriticality);
    belongings(reader, kind);
    let learning = reader.value(&own::FORWARDING).unwrap_or_default();
    let vlans: Vec<_> = element.all("vlan").take(4_096).map(|e| vlan(e, reader.found)).collect();
    let vlans_refused = vlans.iter().any(Option::is_none);
    let (vlans, vlan_places) = vlans.into_iter().flatten().unzip();
    let strict_priority = reader.value(&own::PRIORITIES).unwrap_or(kind != SwitchKind::Cots);
    let forwarding_mode = reader.value(&own::FORWARDING_MODE).unwrap_or_default();
    let (processing_delay, drawn_delay) = delay(reader);
    let mixed_rate_delay = reader.value(&own::MIXED_RATE_DELAY).unwrap_or_default();
    let frame_lengths = frame_lengths(reader);
    let (own_frames, own_places) = own_frames(element, reader.found).into_iter().unzip();
    let address_table = address_table(reader, learning);
    let bytes = reader.value(&own::BUFFER).unwrap_or_default();
    let port_buffer = Capacity { bytes, frames: reader.value(&own::BUFFER_FRAMES).unwrap_or(u32::MAX) };
    let queue_buffer = capacity(reader, &own::QUEUE_BUFFER, &own::QUEUE_FRAMES, bytes);
    // What all ports can hold together: bytes alone then never limit.
    let all = bytes * u64::from(MOST_PORTS);
    let shared_buffer = capacity(reader, &own::SHARED_BUFFER, &own::SHARED_FRAMES, all);
    let policing = reader.value(&own::POLICING).unwrap_or_default();
    let integration = reader.value(&own::INTEGRATION).unwrap_or_default();
    let (raster, raster_written) = raster(reader).unzip();
    let tsn = tsn(element, kind, reader.found);
    let model = SwitchModel {
        kind,
        forwarding_mode,
        processing_delay,
        drawn_delay,
        mixed_rate_delay,
        frame_lengths,
        own_frames,
        learning,
        address_table,
        strict_priority,
        port_buffer,
        queue_buffer,
        shared_buffer,
        vlans,
        policing,
        integration,
        raster,
        tsn: tsn.iter().map(|statement| statement.tsn.clone()).collect(),
    };
    let parts = SwitchParts {
        raster: raster_written,
        own_frames: own_places,
        vlans: vlan_places,
        vlans_refused,
        tsn,
    };
    (model, parts)
}

/// The delay, where it is constant, and the distribution that it is drawn from, where it is not.
fn delay(reader: &mut Reader<'_>) -> (Span, Distribution) {
    match reader.value(&own::DELAY).unwrap_or_default() {
        constant if constant.quantiles.len() <= 1 => (constant.least(), Distribution::default()),
        drawn => (Span::ZERO, drawn),
    }
}

/// What a buffer holds, where its bytes or its frames are written; `otherwise`: its bytes where only frames are.
fn capacity(
    reader: &mut Reader<'_>,
    bytes: &Attribute<u64>,
    frames: &Attribute<u32>,
    otherwise: u64,
) -> Option<Capacity> {
    let (bytes, frames) = (reader.value(bytes), reader.value(frames));
    let is_written = bytes.is_some() || frames.is_some();
    is_written.then(|| Capacity { bytes: bytes.unwrap_or(otherwise), frames: frames.unwrap_or(u32::MAX) })
}

/// Lengths of frames that a switch takes.
fn frame_lengths(reader: &mut Reader<'_>) -> FrameLengths {
    let mut length = |attribute| reader.value(attribute).and_then(|bytes| u16::try_from(bytes).ok());
    let FrameLengths { shortest, longest } = FrameLengths::STANDARD;
    FrameLengths {
        shortest: length(&own::SHORTEST_FRAME).unwrap_or(shortest),
        longest: length(&own::LONGEST_FRAME).unwrap_or(longest),
    }
}

/// Addresses that a table holds where only its times are written.
const MOST_ADDRESSES: u32 = 1 << 20;

/// What is written of the table of learnt addresses.
fn address_table(reader: &mut Reader<'_>, learns: bool) -> Option<AddressTable> {
    let attributes: [&dyn Declared; 3] = [&own::ADDRESS_TABLE, &own::LEARNING_TIME, &own::AGEING_TIME];
    let mut names = attributes.into_iter().map(Declared::name);
    let first = names.find(|name| reader.element.get(name).is_some())?;
    if !learns {
        let message = format!("{first} has no effect on a switch that does not learn");
        let cure = format!("write forwarding=\"learning\", or remove {first}");
        reader.found.error(&reader.place, message, "forwarding=\"learning\"", cure);
        return None;
    }
    let entries = reader.value(&own::ADDRESS_TABLE).unwrap_or(MOST_ADDRESSES);
    let (entry_time, ageing) = (reader.value(&own::LEARNING_TIME), reader.value(&own::AGEING_TIME));
    Some(AddressTable { entries, entry_time: entry_time?, ageing: ageing? })
}

/// Settings of ports, each port in one of them.
fn tsn(element: &Element, kind: SwitchKind, found: &mut Findings) -> Vec<SwitchTsnStatement> {
    let all = element.all("switch-tsn").take(usize::from(MOST_PORTS));
    let all: Vec<SwitchTsnStatement> = all.map(|child| switch_tsn(child, found)).collect();
    for (number, one) in all.iter().enumerate() {
        let takes = one.tsn.classes.iter().position(|class| !class.virtual_links.is_empty());
        if let Some(class) = takes.filter(|_| kind == SwitchKind::Cots) {
            let message = "a switch of kind \"cots\" knows no virtual links";
            let limit = "arinc664 and mixed-criticality switches";
            let place = one.classes.get(class).unwrap_or(&one.place);
            found.error(place, message, limit, "remove virtual-links or write another kind");
        }
        for other in &all[..number] {
            let shared = one.tsn.ports.iter().find(|port| other.tsn.ports.contains(port));
            if let Some(port) = shared {
                let message = format!("port {port} has settings{} already", on_line(other.place.line));
                found.error(&one.place, message, "1 <switch-tsn> per port", "remove it from one of them");
            } else if one.tsn.ports.is_empty() && other.tsn.ports.is_empty() {
                let message =
                    format!("the settings{} are for all other ports, too", on_line(other.place.line));
                found.error(&one.place, message, "1 without ports", "name the ports of one of them");
            }
        }
    }
    all
}

/// What only some kinds of switch have.
fn belongings(reader: &mut Reader<'_>, kind: SwitchKind) {
    let (filtering, windows) = (kind != SwitchKind::Cots, kind == SwitchKind::MixedCriticality);
    let of_kinds: [(&dyn Declared, bool, &str); 4] = [
        (&own::POLICING, filtering, "arinc664 and mixed-criticality"),
        (&own::INTEGRATION, windows, "mixed-criticality"),
        (&own::RASTER, windows, "mixed-criticality"),
        (&own::RASTER_OTHERS, windows, "mixed-criticality"),
    ];
    for (attribute, allowed, home) in of_kinds {
        let attribute = attribute.name();
        if reader.element.get(attribute).is_some() && !allowed {
            let mut kinds = SWITCH_KIND.choices().iter();
            let name = kinds.find(|other| other.value == kind).map_or("", |found| found.name);
            let message = format!("{attribute} has no effect on a switch of kind \"{name}\"");
            let cure = format!("remove {attribute} or write another kind");
            reader.found.error(&reader.place, message, home, cure);
        }
    }
}

fn raster(reader: &mut Reader<'_>) -> Option<(DeltaRaster, Sourced<Span>)> {
    let others = reader.value(&own::RASTER_OTHERS);
    if !reader.has(&own::RASTER) && reader.has(&own::RASTER_OTHERS) {
        let message = "raster-others has no effect without a raster";
        reader.found.error(&reader.place, message, "", "add raster=\"50us\" or remove raster-others");
    }
    let slot = reader.read(&own::RASTER)?;
    Some((DeltaRaster::new(slot.value, others?).ok()?, slot))
}

fn vlan(element: &Element, found: &mut Findings) -> Option<(VlanPorts, Place)> {
    let mut reader = Reader::new(element, found);
    let id = reader.value(&virtual_lan::ID);
    let ports = reader.read(&virtual_lan::PORTS)?;
    if ports.value.is_empty() {
        let cure = "list ports with spaces between";
        reader.refuse(ports.attribute, &ports.written, "names no port", "at least 1", cure);
        return None;
    }
    Some((VlanPorts { id: id?, ports: ports.value }, reader.place))
}
