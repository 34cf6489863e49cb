//! The network: nodes with what they are made of, and links.

use wg_frame::time::Span;

use super::host_tsn::{HostTsnStatement, host_tsn};
use super::hosts::{HostModels, overrides};
use super::imperfections::{events, own_frames, timestamps};
use super::parts::{End, link_ends, only};
use super::switch_tsn::{SwitchTsnStatement, switch_tsn};
use crate::diagnostic::on_line;
use crate::diagnostic::{Findings, Place};
use crate::imperfections::{HostEvent, OwnFrames, Timestamps};
use crate::language::attribute::Declared;
use crate::language::network::end_system as ends;
use crate::language::nodes::{clock as time, temperature};
use crate::language::switches::{hub, link as cable, switch as own, vlan as virtual_lan};
use crate::language::types::SWITCH_KIND;
use crate::network::{
    AddressTable, Clock, DeltaRaster, Distribution, ForwardingMode, FrameLengths, HostModel, Integration,
    NetworkId, Policing, SwitchKind, TemperatureStep, VlanPorts, least_gap,
};
use crate::places::MOST_PORTS;
use crate::reader::{Maybe, Reader, Sourced};
use crate::tree::Element;

#[derive(Clone, Debug)]
pub(crate) struct NodeStatement {
    pub(crate) place: Place,
    pub(crate) name: Maybe<String>,
    pub(crate) what: What,
    pub(crate) clock: Clock,
    pub(crate) tsn: Option<Box<HostTsnStatement>>,
    pub(crate) line_drift_ppb: i64,
    pub(crate) interframe_gap: u8,
    pub(crate) timestamps: Option<Box<Timestamps>>,
    pub(crate) events: Vec<HostEvent>,
}

impl NodeStatement {
    /// Whether it is a switch that knows what one of kind `least` does.
    pub(crate) fn is_switch(&self, least: SwitchKind) -> bool {
        matches!(&self.what, What::Switch(switch) if switch.kind >= least)
    }

    /// Whether all that it says of VLANs could be read.
    pub(crate) fn knows_vlans(&self) -> bool {
        !matches!(&self.what, What::Switch(switch) if !switch.vlans_whole)
    }
}

/// What a node is.
#[derive(Clone, Debug)]
pub(crate) enum What {
    EndSystem(HostModel),
    Switch(Box<SwitchStatement>),
    Hub(Maybe<Span>),
}

#[derive(Clone, Debug)]
pub(crate) struct SwitchStatement {
    pub(crate) kind: SwitchKind,
    pub(crate) forwarding_mode: ForwardingMode,
    pub(crate) delay: Option<Distribution>,
    pub(crate) mixed_rate_delay: Span,
    pub(crate) frame_lengths: FrameLengths,
    pub(crate) own_frames: Vec<(OwnFrames, Place)>,
    pub(crate) learning: bool,
    pub(crate) address_table: Option<AddressTable>,
    pub(crate) strict: bool,
    pub(crate) buffer: Maybe<u64>,
    pub(crate) frames: Option<u32>,
    pub(crate) queue: Limits,
    pub(crate) shared: Limits,
    pub(crate) policing: Policing,
    pub(crate) integration: Integration,
    pub(crate) raster: Option<(DeltaRaster, Sourced<Span>)>,
    pub(crate) vlans: Vec<(VlanPorts, Place)>,
    /// All of them could be read.
    pub(crate) vlans_whole: bool,
    pub(crate) tsn: Vec<SwitchTsnStatement>,
}

/// Bytes and frames, each where it is written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) bytes: Option<u64>,
    pub(crate) frames: Option<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct LinkStatement {
    pub(crate) place: Place,
    pub(crate) ends: Option<[End; 2]>,
    pub(crate) rate: Maybe<u64>,
    pub(crate) delay: Maybe<Span>,
    pub(crate) network: NetworkId,
}

/// Most drift either way, in ppb: 10 %.
const MOST_DRIFT: i64 = 100_000_000;

/// A node of the network; `None` for what is none.
pub(super) fn node(element: &Element, hosts: &HostModels, found: &mut Findings) -> Option<NodeStatement> {
    let mut reader = Reader::new(element, found);
    let what = match element.tag.as_str() {
        "end-system" => What::EndSystem(end_system(&mut reader, hosts)),
        "switch" => What::Switch(Box::new(switch(&mut reader))),
        "hub" => What::Hub(reader.read(&hub::DELAY)),
        _ => return None,
    };
    let line_drift_ppb = reader.value(&ends::LINE_DRIFT).unwrap_or_default();
    let gap = reader.value(&ends::INTERFRAME_GAP).and_then(|bytes| u8::try_from(bytes).ok());
    let interframe_gap = gap.unwrap_or(least_gap());
    let (name, place) = (reader.read(&ends::NAME), reader.place);
    let clock = only(element, "clock", found).map(|clock| self::clock(clock, found)).unwrap_or_default();
    let tsn = only(element, "host-tsn", found).map(|tsn| host_tsn(tsn, found));
    let timestamps = only(element, "timestamps", found).map(|e| Box::new(timestamps(e, found)));
    let events = events(element, found);
    Some(NodeStatement { place, name, what, clock, tsn, line_drift_ppb, interframe_gap, timestamps, events })
}

fn end_system(reader: &mut Reader<'_>, hosts: &HostModels) -> HostModel {
    let mut model = hosts.of(reader);
    let element = reader.element;
    if let Some(host) = only(element, "host", reader.found) {
        overrides(&mut Reader::new(host, reader.found), &mut model);
    }
    model
}

fn clock(element: &Element, found: &mut Findings) -> Clock {
    let mut reader = Reader::new(element, found);
    let offset = reader.value(&time::OFFSET).unwrap_or_default();
    let drift_ppb = reader.value(&time::DRIFT).unwrap_or_default();
    let wander_ppb = reader.value(&time::WANDER).unwrap_or_default();
    let granularity = reader.value(&time::GRANULARITY).unwrap_or(Clock::default().granularity);
    let place = reader.place;
    let temperature = temperatures(element, drift_ppb, &place, found);
    Clock { offset, drift_ppb, wander_ppb, granularity, temperature }
}

fn temperatures(element: &Element, drift: i64, place: &Place, found: &mut Findings) -> Vec<TemperatureStep> {
    let mut steps: Vec<TemperatureStep> = Vec::new();
    for child in element.all("temperature").take(1_024) {
        let mut reader = Reader::new(child, found);
        let (at, change) = (reader.read(&temperature::AT), reader.read(&temperature::DRIFT));
        let (Some(at), Some(change)) = (at, change) else { continue };
        if steps.iter().any(|step| step.at == at.value) {
            let message = format!("the clock already changes at {}", at.written);
            reader.found.error(&reader.place, message, "1 change at a time", "add the two up");
        }
        steps.push(TemperatureStep { at: at.value, drift_ppb: change.value });
    }
    steps.sort_by_key(|step| step.at);
    let mut sum = drift;
    for step in &steps {
        sum = sum.saturating_add(step.drift_ppb);
        if sum.abs() > MOST_DRIFT && drift.abs() <= MOST_DRIFT {
            let message = format!("drift and temperature add up to {sum}ppb after {}", step.at);
            let cure = "write smaller changes of drift; they add up";
            found.error(place, message, "100000ppm either way", cure);
            break;
        }
    }
    steps
}

fn switch(reader: &mut Reader<'_>) -> SwitchStatement {
    let element = reader.element;
    // Of a kind that could not be read everything fits.
    let kind = reader.value(&own::KIND).unwrap_or(SwitchKind::MixedCriticality);
    belongings(reader, kind);
    let learning = reader.value(&own::FORWARDING).unwrap_or_default();
    let vlans: Vec<_> = element.all("vlan").take(4_096).map(|e| vlan(e, reader.found)).collect();
    SwitchStatement {
        kind,
        strict: reader.value(&own::PRIORITIES).unwrap_or(kind != SwitchKind::Cots),
        forwarding_mode: reader.value(&own::FORWARDING_MODE).unwrap_or_default(),
        delay: reader.value(&own::DELAY),
        mixed_rate_delay: reader.value(&own::MIXED_RATE_DELAY).unwrap_or_default(),
        frame_lengths: frame_lengths(reader),
        own_frames: own_frames(element, reader.found),
        learning,
        address_table: address_table(reader, learning),
        buffer: reader.read(&own::BUFFER),
        frames: reader.value(&own::BUFFER_FRAMES),
        queue: Limits { bytes: reader.value(&own::QUEUE_BUFFER), frames: reader.value(&own::QUEUE_FRAMES) },
        shared: Limits {
            bytes: reader.value(&own::SHARED_BUFFER),
            frames: reader.value(&own::SHARED_FRAMES),
        },
        policing: reader.value(&own::POLICING).unwrap_or_default(),
        integration: reader.value(&own::INTEGRATION).unwrap_or_default(),
        raster: raster(reader),
        vlans_whole: vlans.iter().all(Option::is_some),
        vlans: vlans.into_iter().flatten().collect(),
        tsn: tsn(element, kind, reader.found),
    }
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

pub(super) fn link(element: &Element, found: &mut Findings) -> LinkStatement {
    let mut reader = Reader::new(element, found);
    let between = reader.written(&cable::BETWEEN);
    let ends = between.and_then(|written| link_ends(&mut reader, cable::BETWEEN.name, written));
    let (rate, delay) = (reader.read(&cable::RATE), reader.read(&cable::DELAY));
    let network = reader.value(&cable::NETWORK);
    // On which network it is decides what it joins.
    let ends = ends.filter(|_| network.is_some());
    LinkStatement { place: reader.place, ends, rate, delay, network: network.unwrap_or(NetworkId::A) }
}
