//! The network: nodes with what they are made of, and links.

use wg_frame::time::Span;

use super::host_tsn::{HostTsnStatement, host_tsn};
use super::hosts::{BUFFER, HostModels, overrides};
use super::imperfections::{events, line_drift, own_frames, timestamps};
use super::parts::{End, MOST_FRAMES, distribution, link_ends, only};
use super::switch_tsn::{SwitchTsnStatement, switch_tsn};
use crate::diagnostic::on_line;
use crate::diagnostic::{Findings, Place};
use crate::imperfections::{HostEvent, OwnFrames, Timestamps};
use crate::network::{
    AddressTable, Clock, DeltaRaster, Distribution, ForwardingMode, FrameLengths, HostModel, Integration,
    NetworkId, Policing, SwitchKind, TemperatureStep, VlanPorts, least_gap,
};
use crate::places::MOST_PORTS;
use crate::quantity::{self, Kind};
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

/// Switch buffer where none is written: what a small COTS switch shares among its ports.
const DEFAULT_BUFFER: &str = "512KiB";
/// A switch that needs longer for a frame is out of order.
pub(super) const DELAY: (Span, Span, &str) = (Span::ZERO, Span::from_millis(1_000), "0s to 1s");
/// The least gap that a receiver has to cope with, in bytes: at 10 Gbit/s (IEEE Std 802.3-2022, 4.4.2, note 7).
const LEAST_GAP: u64 = 5;
/// Most drift either way, in ppb: 10 %.
const MOST_DRIFT: i64 = 100_000_000;

const KINDS: [(&str, SwitchKind); 3] = [
    ("cots", SwitchKind::Cots),
    ("arinc664", SwitchKind::Arinc664),
    ("mixed-criticality", SwitchKind::MixedCriticality),
];
pub(crate) const MODES: [(&str, ForwardingMode); 2] =
    [("store-and-forward", ForwardingMode::StoreAndForward), ("cut-through", ForwardingMode::CutThrough)];
pub(crate) const POLICINGS: [(&str, Policing); 3] =
    [("off", Policing::Off), ("bytes", Policing::Bytes), ("frames", Policing::Frames)];
pub(crate) const INTEGRATIONS: [(&str, Integration); 3] = [
    ("preemption", Integration::Preemption),
    ("timely-block", Integration::TimelyBlock),
    ("shuffling", Integration::Shuffling),
];
/// The two redundant networks.
pub(crate) const NETWORKS: [(&str, NetworkId); 2] = [("A", NetworkId::A), ("B", NetworkId::B)];

/// A node of the network; `None` for what is none.
pub(super) fn node(element: &Element, hosts: &HostModels, found: &mut Findings) -> Option<NodeStatement> {
    let mut reader = Reader::new(element, found);
    let what = match element.tag.as_str() {
        "end-system" => What::EndSystem(end_system(&mut reader, hosts)),
        "switch" => What::Switch(Box::new(switch(&mut reader))),
        "hub" => {
            What::Hub(reader.time_within("delay", element.get("delay").unwrap_or(DEFAULT_HUB_DELAY), DELAY))
        }
        _ => return None,
    };
    let line_drift_ppb = line_drift(&mut reader);
    let gap = (LEAST_GAP, u64::from(least_gap()), "5B to 12B");
    let interframe_gap = reader
        .size_within("interframe-gap", element.get("interframe-gap").unwrap_or("12B"), gap)
        .and_then(|gap| u8::try_from(gap.value).ok())
        .unwrap_or(least_gap());
    let (name, place) = (reader.name("name"), reader.place);
    let clock = only(element, "clock", found).map(|clock| self::clock(clock, found)).unwrap_or_default();
    let tsn = only(element, "host-tsn", found).map(|tsn| host_tsn(tsn, found));
    let timestamps = only(element, "timestamps", found).map(|e| Box::new(timestamps(e, found)));
    let events = events(element, found);
    Some(NodeStatement { place, name, what, clock, tsn, line_drift_ppb, interframe_gap, timestamps, events })
}

/// A class II repeater delays by 46 bit times at most (IEEE Std 802.3-2022, 27.3.1.1), here at 100 Mbit/s.
const DEFAULT_HUB_DELAY: &str = "460ns";

fn end_system(reader: &mut Reader<'_>, hosts: &HostModels) -> HostModel {
    let mut model = hosts.of(reader);
    let element = reader.element;
    if let Some(host) = only(element, "host", reader.found) {
        overrides(&mut Reader::new(host, reader.found), &mut model);
    }
    model
}

fn clock(element: &Element, found: &mut Findings) -> Clock {
    let day = Span::from_millis(86_400_000);
    let mut reader = Reader::new(element, found);
    let offset = reader.optional("offset", Kind::Time, quantity::signed_time).flatten();
    if let Some(offset) = offset.as_ref().filter(|offset| !(-day..=day).contains(&offset.value)) {
        let cure = "write an offset within the limit";
        reader.refuse("offset", &offset.written, "is out of range", "one day either way", cure);
    }
    let drift = reader.optional("drift", Kind::Drift, quantity::drift).flatten();
    let wander = reader.optional("wander", Kind::Drift, quantity::wander).flatten();
    if let Some(wander) = wander.as_ref().filter(|wander| wander.value > 1_000_000) {
        let cure = "write how much the drift changes from one second to the next, for example 10ppb";
        reader.refuse("wander", &wander.written, "is out of range", "1000ppm", cure);
    }
    let bounds = (Span::from_picos(1), Span::from_millis(1_000), "more than 0s, at most 1s");
    let granularity = element.get("granularity").and_then(|w| reader.time_within("granularity", w, bounds));
    if let Some(drift) = drift.as_ref().filter(|drift| drift.value.abs() > MOST_DRIFT) {
        let cure = "write the drift of an oscillator, for example 20ppm";
        reader.refuse("drift", &drift.written, "is out of range", "100000ppm either way", cure);
    }
    let place = reader.place;
    let drift_ppb = drift.map_or(0, |drift| drift.value);
    Clock {
        offset: offset.map_or(Span::ZERO, |offset| offset.value),
        drift_ppb,
        wander_ppb: wander.map_or(0, |wander| wander.value),
        granularity: granularity.map_or(Clock::default().granularity, |granularity| granularity.value),
        temperature: temperatures(element, drift_ppb, &place, found),
    }
}

fn temperatures(element: &Element, drift: i64, place: &Place, found: &mut Findings) -> Vec<TemperatureStep> {
    let mut steps: Vec<TemperatureStep> = Vec::new();
    for child in element.all("temperature").take(1_024) {
        let mut reader = Reader::new(child, found);
        let at = reader.required("at").and_then(|w| reader.quantity("at", w, Kind::Time, quantity::time));
        let change =
            reader.required("drift").and_then(|w| reader.quantity("drift", w, Kind::Drift, quantity::drift));
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
    let kind = element.get("kind").and_then(|w| reader.choice("kind", w, &KINDS));
    let kind_known = element.get("kind").is_none() || kind.is_some();
    // Of a kind that could not be read everything fits.
    let otherwise = if kind_known { SwitchKind::Cots } else { SwitchKind::MixedCriticality };
    let kind = kind.map_or(otherwise, |kind| kind.value);
    belongings(reader, kind);
    let strict = reader.optional_choice("priorities", &[("fifo", false), ("strict", true)]).flatten();
    let frames = |attribute: &'static str, reader: &mut Reader<'_>| {
        let frames: Option<Maybe<u32>> = reader.optional_whole(attribute, 1, MOST_FRAMES);
        frames.flatten().map(|frames| frames.value)
    };
    let bytes = |attribute: &'static str, reader: &mut Reader<'_>| {
        let written = element.get(attribute)?;
        reader.size_within(attribute, written, BUFFER).map(|bytes| bytes.value)
    };
    let learning = reader.optional_choice("forwarding", &[("static", false), ("learning", true)]).flatten();
    let learns = learning.as_ref().is_some_and(|learning| learning.value);
    let address_table = address_table(reader, learns);
    let policing = reader.optional_choice("policing", &POLICINGS).flatten();
    let integration = reader.optional_choice("integration", &INTEGRATIONS).flatten();
    let vlans: Vec<_> = element.all("vlan").take(4_096).map(|e| vlan(e, reader.found)).collect();
    SwitchStatement {
        kind,
        forwarding_mode: reader
            .optional_choice("forwarding-mode", &MODES)
            .flatten()
            .map_or_else(Default::default, |mode| mode.value),
        delay: distribution(reader, "delay", element.get("delay").unwrap_or("2us"), DELAY),
        mixed_rate_delay: reader
            .time_within("mixed-rate-delay", element.get("mixed-rate-delay").unwrap_or("0s"), DELAY)
            .map_or(Span::ZERO, |delay| delay.value),
        frame_lengths: frame_lengths(reader),
        own_frames: own_frames(element, reader.found),
        learning: learns,
        address_table,
        strict: strict.map_or(kind != SwitchKind::Cots, |strict| strict.value),
        buffer: reader.size_within("buffer", element.get("buffer").unwrap_or(DEFAULT_BUFFER), BUFFER),
        frames: frames("buffer-frames", reader),
        queue: Limits { bytes: bytes("queue-buffer", reader), frames: frames("queue-frames", reader) },
        shared: Limits { bytes: bytes("shared-buffer", reader), frames: frames("shared-frames", reader) },
        policing: policing.map_or_else(Default::default, |policing| policing.value),
        integration: integration.map_or_else(Default::default, |integration| integration.value),
        raster: raster(reader),
        vlans_whole: vlans.iter().all(Option::is_some),
        vlans: vlans.into_iter().flatten().collect(),
        tsn: tsn(element, kind, reader.found),
    }
}

/// Lengths of frames that a switch takes.
fn frame_lengths(reader: &mut Reader<'_>) -> FrameLengths {
    let mut length = |attribute: &'static str, default: u16, bounds: (u64, u64, &'static str)| {
        let written = reader.element.get(attribute)?;
        let size = reader.size_within(attribute, written, bounds)?;
        Some(u16::try_from(size.value).unwrap_or(default))
    };
    let FrameLengths { shortest, longest } = FrameLengths::STANDARD;
    FrameLengths {
        shortest: length("shortest-frame", shortest, (18, 64, "18B to 64B")).unwrap_or(shortest),
        longest: length("longest-frame", longest, (1_518, 16_000, "1518B to 16000B")).unwrap_or(longest),
    }
}

/// Addresses that a table holds where only its times are written.
const MOST_ADDRESSES: u32 = 1 << 20;
/// How long an address is kept by default (IEEE Std 802.1Q-2022, table 8-6).
const AGEING: &str = "300s";

/// What is written of the table of learnt addresses.
fn address_table(reader: &mut Reader<'_>, learns: bool) -> Option<AddressTable> {
    let attributes = ["address-table", "learning-time", "ageing-time"];
    let written: Vec<&str> =
        attributes.into_iter().filter(|attribute| reader.element.get(attribute).is_some()).collect();
    let first = written.first()?;
    if !learns {
        let message = format!("{first} has no effect on a switch that does not learn");
        let cure = format!("write forwarding=\"learning\", or remove {first}");
        reader.found.error(&reader.place, message, "forwarding=\"learning\"", cure);
        return None;
    }
    let entries: Option<Maybe<u32>> = reader.optional_whole("address-table", 1, u64::from(MOST_ADDRESSES));
    let entry_time =
        reader.time_within("learning-time", reader.element.get("learning-time").unwrap_or("0s"), DELAY);
    let bounds = (Span::from_micros(1), Span::from_millis(1_000_000_000), "1us to 1000000s");
    let ageing =
        reader.time_within("ageing-time", reader.element.get("ageing-time").unwrap_or(AGEING), bounds)?;
    Some(AddressTable {
        entries: entries.flatten().map_or(MOST_ADDRESSES, |entries| entries.value),
        entry_time: entry_time?.value,
        ageing: ageing.value,
    })
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
    for (attribute, allowed, home) in [
        ("policing", filtering, "arinc664 and mixed-criticality"),
        ("integration", windows, "mixed-criticality"),
        ("raster", windows, "mixed-criticality"),
        ("raster-others", windows, "mixed-criticality"),
    ] {
        if reader.element.get(attribute).is_some() && !allowed {
            let name = KINDS.iter().find(|(_, other)| *other == kind).map_or("", |(name, _)| name);
            let message = format!("{attribute} has no effect on a switch of kind \"{name}\"");
            let cure = format!("remove {attribute} or write another kind");
            reader.found.error(&reader.place, message, home, cure);
        }
    }
}

fn raster(reader: &mut Reader<'_>) -> Option<(DeltaRaster, Sourced<Span>)> {
    let others: Option<Maybe<u16>> = reader.optional_whole("raster-others", 1, 65_535);
    let Some(written) = reader.element.get("raster") else {
        if others.is_some() {
            let message = "raster-others has no effect without a raster";
            reader.found.error(&reader.place, message, "", "add raster=\"50us\" or remove raster-others");
        }
        return None;
    };
    let bounds = (Span::from_picos(1), Span::from_millis(1_000), "more than 0s, at most 1s");
    let slot = reader.time_within("raster", written, bounds)?;
    let others = match others {
        None => 1,
        Some(others) => others?.value,
    };
    Some((DeltaRaster::new(slot.value, others).ok()?, slot))
}

fn vlan(element: &Element, found: &mut Findings) -> Option<(VlanPorts, Place)> {
    let mut reader = Reader::new(element, found);
    let id = reader.required("id").and_then(|w| reader.whole::<u16>("id", w, 0, 4_094));
    let written = reader.required("ports")?;
    let mut ports = Vec::new();
    for word in written.split_whitespace().take(usize::from(MOST_PORTS) + 1) {
        ports.push(reader.whole::<u16>("ports", word, 1, u64::from(MOST_PORTS))?.value);
    }
    ports.sort_unstable();
    ports.dedup();
    if ports.is_empty() {
        reader.refuse("ports", written, "names no port", "at least 1", "list ports with spaces between");
        return None;
    }
    Some((VlanPorts { id: id?.value, ports }, reader.place))
}

pub(super) fn link(element: &Element, found: &mut Findings) -> LinkStatement {
    let mut reader = Reader::new(element, found);
    let ends = reader.required("between").and_then(|written| link_ends(&mut reader, "between", written));
    let rate = reader.required("rate").and_then(|written| {
        let rate = reader.quantity("rate", written, Kind::Rate, quantity::rate)?;
        check_rate(&rate, reader.found).then_some(rate)
    });
    let delay = reader.time_or("delay", "0ns").filter(|delay| {
        let fits = delay.value <= Span::from_millis(10_000);
        if !fits {
            let cure = "write the propagation delay, about 5ns per metre of cable";
            reader.refuse("delay", &delay.written, "is out of range", "10s", cure);
        }
        fits
    });
    let network = reader.optional_choice("network", &NETWORKS);
    // On which network it is decides what it joins.
    let ends = ends.filter(|_| !matches!(network, Some(None)));
    let network = network.flatten().map_or(NetworkId::A, |network| network.value);
    LinkStatement { place: reader.place, ends, rate, delay, network }
}

/// Refuses rates no Ethernet has; true when the rate is sensible.
pub(crate) fn check_rate(rate: &Sourced<u64>, found: &mut Findings) -> bool {
    let sensible = (1_000_000..=400_000_000_000).contains(&rate.value);
    if !sensible {
        let message = format!("{} is no rate of an Ethernet link", rate.named());
        let cure = "write the rate of the link, for example 1Gbit/s";
        found.error(&rate.place, message, "1Mbit/s to 400Gbit/s", cure);
    }
    sensible
}
