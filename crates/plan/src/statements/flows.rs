//! Flows: who sends what to whom, and the contract or schedule it is carried under.

use wg_core::arinc664::{Bag, Contract};
use wg_frame::time::Span;

use super::addresses::{WrittenAddresses, addresses};
use super::frer::{FrerStatement, frer};
use super::parts::{End, end};
use super::reservations::{self, ReservationStatement, reservation};
use crate::campaign::Protocol;
use crate::diagnostic::{Findings, Place};
use crate::network::NetworkId;
use crate::quantity::{self, Kind, QuantityError};
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
    /// As `to`.
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

/// Names of the protocols.
pub(crate) const PROTOCOLS: [(&str, Protocol); 5] = [
    ("udp", Protocol::Udp),
    ("raw", Protocol::Raw),
    ("be", Protocol::Be),
    ("rc", Protocol::Rc),
    ("tt", Protocol::Tt),
];

/// Attributes that belong to some protocols only. A tag is refused where the protocol carries none, at each point of a
/// sweep, and therefore not listed here.
const SPECIAL: [(&str, &[Protocol]); 21] = [
    ("dscp", &[Protocol::Udp, Protocol::Be]),
    ("source-mac", &[Protocol::Udp, Protocol::Raw, Protocol::Be]),
    ("destination-mac", &[Protocol::Udp, Protocol::Raw, Protocol::Be]),
    ("source-ip", &[Protocol::Udp, Protocol::Be]),
    ("destination-ip", &[Protocol::Udp, Protocol::Be]),
    ("source-port", &[Protocol::Udp, Protocol::Be]),
    ("destination-port", &[Protocol::Udp, Protocol::Be]),
    ("vl", &[Protocol::Rc, Protocol::Tt]),
    ("lmax", &[Protocol::Rc, Protocol::Tt]),
    ("queue", &[Protocol::Rc, Protocol::Tt]),
    ("bag", &[Protocol::Rc]),
    ("sub-links", &[Protocol::Rc]),
    ("skew-max", &[Protocol::Rc]),
    ("redundancy", &[Protocol::Rc]),
    ("sequence-number", &[Protocol::Rc]),
    ("jitter", &[Protocol::Rc]),
    ("period", &[Protocol::Tt]),
    ("offset", &[Protocol::Tt]),
    ("window", &[Protocol::Tt]),
    ("early", &[Protocol::Tt]),
    ("late", &[Protocol::Tt]),
];

/// The protocols an attribute belongs to.
pub(crate) fn homes(attribute: &str) -> &'static [Protocol] {
    SPECIAL.iter().find(|(name, _)| *name == attribute).map_or(&[], |(_, homes)| homes)
}

/// Longest times of a schedule; the instants of a longer one would leave the range of a run.
const SCHEDULE: (Span, Span, &str) = (Span::ZERO, Span::from_millis(100_000), "0s to 100s");
/// As `SCHEDULE`, but not nothing.
const POSITIVE: (Span, Span, &str) =
    (Span::from_picos(1), Span::from_millis(100_000), "more than 0s, at most 100s");
/// Frames that wait at a sender, at most.
const MOST_QUEUED: u64 = 65_535;

pub(super) fn flow(element: &Element, found: &mut Findings) -> FlowStatement {
    let reservation = reservation(element, found);
    let mut reader = Reader::new(element, found);
    FlowStatement {
        id: reader.flow_id("id"),
        protocol: reader.required("protocol").and_then(|w| reader.choice("protocol", w, &PROTOCOLS)),
        from: reader.name("from"),
        to: reader.names("to"),
        deadline: reader.time("deadline").flatten().filter(|deadline| {
            let fits = deadline.value > Span::ZERO;
            if !fits {
                let cure = "write the largest latency a message may have";
                reader.refuse("deadline", &deadline.written, "is zero", "more than 0s", cure);
            }
            fits
        }),
        carriage: carriage(&mut reader, reservation.as_ref()),
        paths: element.all("path").take(MOST_PATHS).map(|e| path(e, reader.found)).collect(),
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
    let tag = (
        reader.optional_whole("vlan", 1, 4_094).flatten(),
        reader.optional_whole("priority", 0, 7).flatten(),
    );
    let vlan_known = element.get("vlan").is_none() || tag.0.is_some();
    let (vlan, priority) = reservations::tag(reader, reservation, tag);
    let mut within = |attribute: &'static str, bounds| {
        element.get(attribute).and_then(|w| reader.time_within(attribute, w, bounds))
    };
    let (period, window) = (within("period", POSITIVE), within("window", POSITIVE));
    let (offset, early) = (within("offset", SCHEDULE), within("early", SCHEDULE));
    let (late, jitter) = (within("late", SCHEDULE), within("jitter", JITTER));
    let skew_max = within("skew-max", POSITIVE);
    let networks = [("A", Some(NetworkId::A)), ("B", Some(NetworkId::B)), ("both", None)];
    let switched = [("on", true), ("off", false)];
    let mut special: Vec<&'static str> =
        SPECIAL.iter().map(|(name, _)| *name).filter(|name| element.get(name).is_some()).collect();
    if element.all("window").next().is_some() && !special.contains(&"window") {
        special.push("window");
    }
    Carriage {
        vlan,
        vlan_known,
        priority,
        dscp: reader.optional_whole("dscp", 0, 63).flatten(),
        networks: reader.optional_choice("networks", &networks).flatten().map(|networks| networks.value),
        vl: reader.optional_whole("vl", 1, 65_535).flatten(),
        lmax: element.get("lmax").and_then(|w| reader.quantity("lmax", w, Kind::Size, lmax)).filter(|lmax| {
            let fits = Contract::new(Bag::ALL[0], lmax.value).is_ok();
            if !fits {
                let cure = "write the longest frame, destination address to FCS";
                reader.refuse("lmax", &lmax.written, "is no length of a frame", "64B to 1518B", cure);
            }
            fits
        }),
        queue: reader.optional_whole("queue", 1, MOST_QUEUED).flatten(),
        bag: element
            .get("bag")
            .and_then(|w| reader.quantity("bag", w, Kind::Time, quantity::time))
            .filter(|bag| check_bag(bag, reader.found)),
        sub_links: reader.optional_whole("sub-links", 1, 4).flatten(),
        skew_max,
        redundancy: reader.optional_choice("redundancy", &switched).flatten(),
        number_within: reader
            .optional_choice("sequence-number", &[("behind", false), ("within", true)])
            .flatten()
            .is_some_and(|within| within.value),
        jitter,
        period,
        offset,
        window,
        early,
        late,
        addresses: addresses(reader),
        windows: element.all("window").take(1_024).map(|e| hand_set(e, reader.found)).collect(),
        special,
    }
}

/// Receivers of a flow on two networks, at most.
const MOST_PATHS: usize = 8_192;

fn path(element: &Element, found: &mut Findings) -> PathStatement {
    let mut reader = Reader::new(element, found);
    let to = element.get("to").map(|written| reader.name_of("to", written));
    let network = reader.optional_choice("network", &[("A", NetworkId::A), ("B", NetworkId::B)]);
    let via = reader.required("via").and_then(|written| {
        let ends: Vec<_> = written.split_whitespace().map(|word| end(&mut reader, "via", word)).collect();
        ends.into_iter().collect::<Option<Vec<_>>>().map(|ends| reader.sourced("via", written, ends))
    });
    PathStatement { place: reader.place, to, network, via }
}

const JITTER: (Span, Span, &str) = (Span::ZERO, Span::from_millis(128), "0s to 128ms");

fn lmax(text: &str) -> Result<u16, QuantityError> {
    u16::try_from(quantity::size(text)?).map_err(|_| QuantityError::TooLarge)
}

/// Refuses what is no BAG (ARINC 664 part 7: 2^k ms, k = 0 … 7); true for one.
pub(crate) fn check_bag(bag: &Sourced<Span>, found: &mut Findings) -> bool {
    let sound = Bag::new(bag.value).is_ok();
    if !sound {
        let number = bag.value.as_picos() / Span::from_millis(1).as_picos();
        let near = number.clamp(1, 128).unsigned_abs().next_power_of_two();
        let message = format!("{} is no bandwidth allocation gap", bag.named());
        let limit = "1, 2, 4, 8, 16, 32, 64 or 128 ms";
        found.error(&bag.place, message, limit, format!("write one of them, for example {near}ms"));
    }
    sound
}

fn hand_set(element: &Element, found: &mut Findings) -> WindowStatement {
    let mut reader = Reader::new(element, found);
    let at = reader
        .required("port")
        .and_then(|written| Some((end(&mut reader, "port", written)?, reader.sourced("port", written, ()))));
    let offset = reader.required("offset").and_then(|w| reader.time_within("offset", w, SCHEDULE));
    let length = element.get("length").and_then(|w| reader.time_within("length", w, POSITIVE));
    WindowStatement { place: reader.place, at, offset, length }
}
