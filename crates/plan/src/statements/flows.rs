//! Flows: who sends what to whom, and the contract or schedule it is carried under.

use wg_frame::time::Span;

use super::addresses::{WrittenAddresses, addresses};
use super::frer::{FrerStatement, frer};
use super::parts::{End, end};
use super::reservations::{self, ReservationStatement, reservation};
use crate::campaign::Protocol;
use crate::diagnostic::{Findings, Place};
use crate::language::flows::{flow as own, path, window};
use crate::network::NetworkId;
use crate::reader::{Maybe, Reader, Sourced};
use crate::tree::Element;

#[derive(Clone, Debug)]
pub(crate) struct FlowStatement {
    pub(crate) place: Place,
    pub(crate) id: Maybe<u16>,
    pub(crate) protocol: Maybe<Protocol>,
    pub(crate) from: Maybe<String>,
    /// At least one.
    pub(crate) to: Option<Vec<Sourced<String>>>,
    pub(crate) deadline: Maybe<Span>,
    pub(crate) carriage: Carriage,
    /// Ways it names.
    pub(crate) paths: Vec<PathStatement>,
    /// Its paths are those of member streams.
    pub(crate) frer: Option<FrerStatement>,
    /// What it asks of the ports on its way.
    pub(crate) reservation: Option<ReservationStatement>,
    /// Made to compare clocks; no flow under test.
    pub(crate) exchange: bool,
}

/// A way that a flow names: the nodes between its sender and one of its receivers.
#[derive(Clone, Debug)]
pub(crate) struct PathStatement {
    pub(crate) place: Place,
    /// Outer `None`: not written.
    pub(crate) to: Option<Maybe<String>>,
    /// The network of the path; outer `None`: not written.
    pub(crate) network: Option<Maybe<NetworkId>>,
    /// Each with the port it is left by, where one is written.
    pub(crate) via: Maybe<Vec<End>>,
}

/// How the flow is carried, as far as written; which of it counts depends on the protocol.
#[derive(Clone, Debug)]
pub(crate) struct Carriage {
    pub(crate) vlan: Maybe<u16>,
    /// Not so where one is written that could not be read.
    pub(crate) vlan_known: bool,
    pub(crate) priority: Maybe<u8>,
    pub(crate) dscp: Maybe<u8>,
    /// Outer `None`: not written; inner `None`: both.
    pub(crate) networks: Option<Option<NetworkId>>,
    pub(crate) vl: Maybe<u16>,
    pub(crate) lmax: Maybe<u16>,
    pub(crate) queue: Maybe<u32>,
    pub(crate) bag: Maybe<Span>,
    pub(crate) sub_links: Maybe<u8>,
    pub(crate) skew_max: Maybe<Span>,
    pub(crate) redundancy: Maybe<bool>,
    pub(crate) number_within: bool,
    pub(crate) jitter: Maybe<Span>,
    pub(crate) period: Maybe<Span>,
    pub(crate) offset: Maybe<Span>,
    pub(crate) window: Maybe<Span>,
    pub(crate) early: Maybe<Span>,
    pub(crate) late: Maybe<Span>,
    pub(crate) windows: Vec<WindowStatement>,
    pub(crate) addresses: WrittenAddresses,
    /// Attributes written that not every protocol has, also those that could not be read.
    pub(crate) special: Vec<&'static str>,
}

/// A port's window, set by hand.
#[derive(Clone, Debug)]
pub(crate) struct WindowStatement {
    pub(crate) place: Place,
    pub(crate) at: Option<(End, Sourced<()>)>,
    pub(crate) offset: Maybe<Span>,
    pub(crate) length: Maybe<Span>,
}

/// Attributes that belong to some protocols only. A tag is refused where the protocol carries none, at each point of a
/// sweep, and therefore not listed here.
const SPECIAL: [(&str, &[Protocol]); 21] = [
    (own::DSCP.name, &[Protocol::Udp, Protocol::Be]),
    (own::SOURCE_MAC.name, &[Protocol::Udp, Protocol::Raw, Protocol::Be]),
    (own::DESTINATION_MAC.name, &[Protocol::Udp, Protocol::Raw, Protocol::Be]),
    (own::SOURCE_IP.name, &[Protocol::Udp, Protocol::Be]),
    (own::DESTINATION_IP.name, &[Protocol::Udp, Protocol::Be]),
    (own::SOURCE_PORT.name, &[Protocol::Udp, Protocol::Be]),
    (own::DESTINATION_PORT.name, &[Protocol::Udp, Protocol::Be]),
    (own::VL.name, &[Protocol::Rc, Protocol::Tt]),
    (own::LMAX.name, &[Protocol::Rc, Protocol::Tt]),
    (own::QUEUE.name, &[Protocol::Rc, Protocol::Tt]),
    (own::BAG.name, &[Protocol::Rc]),
    (own::SUB_LINKS.name, &[Protocol::Rc]),
    (own::SKEW_MAX.name, &[Protocol::Rc]),
    (own::REDUNDANCY.name, &[Protocol::Rc]),
    (own::SEQUENCE_NUMBER.name, &[Protocol::Rc]),
    (own::JITTER.name, &[Protocol::Rc]),
    (own::PERIOD.name, &[Protocol::Tt]),
    (own::OFFSET.name, &[Protocol::Tt]),
    (own::WINDOW.name, &[Protocol::Tt]),
    (own::EARLY.name, &[Protocol::Tt]),
    (own::LATE.name, &[Protocol::Tt]),
];

/// The protocols an attribute belongs to.
pub(crate) fn homes(attribute: &str) -> &'static [Protocol] {
    SPECIAL.iter().find(|(name, _)| *name == attribute).map_or(&[], |(_, homes)| homes)
}

pub(super) fn flow(element: &Element, found: &mut Findings) -> FlowStatement {
    let reservation = reservation(element, found);
    let mut reader = Reader::new(element, found);
    FlowStatement {
        id: reader.read(&own::ID),
        protocol: reader.read(&own::PROTOCOL),
        from: reader.read(&own::FROM),
        to: reader.names(&own::TO),
        deadline: reader.read(&own::DEADLINE),
        carriage: carriage(&mut reader, reservation.as_ref()),
        paths: element.all("path").take(MOST_PATHS).map(|e| self::path(e, reader.found)).collect(),
        frer: functions(element, reader.found),
        reservation,
        exchange: false,
        place: reader.place,
    }
}

fn functions(element: &Element, found: &mut Findings) -> Option<FrerStatement> {
    let mut all = element.all("frer");
    let functions = all.next().map(|first| frer(first, found));
    if let Some(second) = all.next() {
        let cure = "keep one of them";
        found.error(&second.place(), "the flow already has a <frer>", "1 per flow", cure);
    }
    functions
}

fn carriage(reader: &mut Reader<'_>, reservation: Option<&ReservationStatement>) -> Carriage {
    let element = reader.element;
    let tag = (reader.read(&own::VLAN), reader.read(&own::PRIORITY));
    let vlan_known = !reader.has(&own::VLAN) || tag.0.is_some();
    let (vlan, priority) = reservations::tag(reader, reservation, tag);
    let mut special: Vec<&'static str> =
        SPECIAL.iter().map(|(name, _)| *name).filter(|name| element.get(name).is_some()).collect();
    if element.all("window").next().is_some() && !special.contains(&"window") {
        special.push("window");
    }
    Carriage {
        vlan,
        vlan_known,
        priority,
        period: reader.read(&own::PERIOD),
        window: reader.read(&own::WINDOW),
        offset: reader.optional(&own::OFFSET).flatten(),
        early: reader.optional(&own::EARLY).flatten(),
        late: reader.read(&own::LATE),
        jitter: reader.read(&own::JITTER),
        skew_max: reader.read(&own::SKEW_MAX),
        dscp: reader.read(&own::DSCP),
        networks: reader.value(&own::NETWORKS),
        vl: reader.read(&own::VL),
        lmax: reader.read(&own::LMAX),
        queue: reader.optional(&own::QUEUE).flatten(),
        bag: reader.read(&own::BAG),
        sub_links: reader.read(&own::SUB_LINKS),
        redundancy: reader.read(&own::REDUNDANCY),
        number_within: reader.value(&own::SEQUENCE_NUMBER).unwrap_or_default(),
        addresses: addresses(reader),
        windows: element.all("window").take(1_024).map(|e| hand_set(e, reader.found)).collect(),
        special,
    }
}

/// Receivers of a flow on two networks, at most.
const MOST_PATHS: usize = 8_192;

fn path(element: &Element, found: &mut Findings) -> PathStatement {
    let mut reader = Reader::new(element, found);
    let (to, network) = (reader.optional(&path::TO), reader.optional(&path::NETWORK));
    let via = reader.written(&path::VIA).and_then(|written| {
        let name = path::VIA.name;
        let ends: Vec<_> = written.split_whitespace().map(|word| end(&mut reader, name, word)).collect();
        ends.into_iter().collect::<Option<Vec<_>>>().map(|ends| reader.sourced(name, written, ends))
    });
    PathStatement { place: reader.place, to, network, via }
}

fn hand_set(element: &Element, found: &mut Findings) -> WindowStatement {
    let mut reader = Reader::new(element, found);
    let name = window::PORT.name;
    let at = reader
        .written(&window::PORT)
        .and_then(|written| Some((end(&mut reader, name, written)?, reader.sourced(name, written, ()))));
    let offset = reader.read(&window::OFFSET);
    let length = reader.read(&window::LENGTH);
    WindowStatement { place: reader.place, at, offset, length }
}
