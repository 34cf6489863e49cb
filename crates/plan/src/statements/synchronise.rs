//! How the clocks of the end systems are kept together, and the exchanges that tell how far they are apart.
//!
//! A two-way exchange is an ordinary flow that the far end returns: it leaves the four timestamps an offset needs as
//! records like any other message, on every bench. So it is made here as the statements a person would write, and
//! every check of flows, senders and relays holds for it. It is marked, because it is no flow under test.

use std::collections::BTreeSet;

use wg_frame::time::Span;

use super::flows::{self, FlowStatement};
use super::network::NodeStatement;
use super::sending::SendStatement;
use super::tasks::{self, RelayStatement};
use crate::campaign::{FlowId, LAST_FLOW, OnFailure, Protocol, PtpDelay, PtpTimestamps, PtpTransport};
use crate::diagnostic::Findings;
use crate::reader::{Maybe, Reader, Sourced};
use crate::tree::Element;

#[derive(Clone, Debug)]
pub(crate) struct SynchroniseStatement {
    pub(crate) reference: Maybe<String>,
    /// Outer `None`: not written.
    pub(crate) asymmetry: Option<Maybe<Span>>,
    pub(crate) max_offset: Option<Maybe<Span>>,
    pub(crate) on_failure: Maybe<OnFailure>,
    pub(crate) wait: Maybe<Span>,
    pub(crate) exchange: Option<ExchangeStatement>,
    pub(crate) ptp: Option<PtpStatement>,
    pub(crate) chrony: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ExchangeStatement {
    element: Element,
    pub(crate) period: Maybe<Span>,
    protocol: Maybe<Protocol>,
    /// Outer `None`: every end system of the flows.
    to: Option<Option<Vec<Sourced<String>>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct PtpStatement {
    pub(crate) timestamps: Maybe<PtpTimestamps>,
    pub(crate) steer: Maybe<bool>,
    pub(crate) interval: Maybe<Span>,
    /// Thousandths.
    pub(crate) kp: Maybe<u32>,
    pub(crate) ki: Maybe<u32>,
    pub(crate) domain: Maybe<u8>,
    pub(crate) transport: Maybe<PtpTransport>,
    pub(crate) delay: Maybe<PtpDelay>,
}

/// The flows of all exchanges with their tasks.
#[derive(Default)]
pub(super) struct Exchanges {
    pub(super) flows: Vec<FlowStatement>,
    pub(super) sends: Vec<SendStatement>,
    pub(super) relays: Vec<RelayStatement>,
}

/// Payload of an exchange: a smallest frame over UDP, and over Ethernet.
const PAYLOADS: [&str; 2] = ["18B", "46B"];
const EXCHANGE_PERIOD: (Span, Span, &str) =
    (Span::from_micros(100), Span::from_millis(10_000), "100us to 10s");
const LONGEST_WAIT: (Span, Span, &str) = (Span::ZERO, Span::from_millis(3_600_000), "0s to 1h");
const POSITIVE: (Span, Span, &str) =
    (Span::from_picos(1), Span::from_millis(1_000), "more than 0s, at most 1s");
const SECOND: i64 = 1_000_000_000_000;
const LAST_DOMAIN: u8 = 127;

pub(super) fn synchronise(
    section: &Element,
    flows: &[FlowStatement],
    found: &mut Findings,
) -> Option<SynchroniseStatement> {
    if section.tag != "synchronise" {
        return None;
    }
    let exchange = once(section, "exchange", found).map(|element| exchange(element, found));
    let ptp = once(section, "ptp", found).map(|element| ptp(element, found));
    let chrony = once(section, "chrony", found).is_some();
    let simulated = ["as6802", "ptp-domain"].into_iter().find(|tag| section.all(tag).next().is_some());
    let mut reader = Reader::new(section, found);
    if exchange.is_none() && ptp.is_none() && !chrony {
        if let Some(tag) = simulated {
            // They go by frames of their own: no clock is compared with a reference.
            let attributes = ["reference", "asymmetry", "max-offset", "on-failure", "wait"];
            if let Some(attribute) = attributes.iter().find(|attribute| section.get(attribute).is_some()) {
                let message = format!("{attribute} has no effect on <{tag}>");
                let cure = "remove it, or add <exchange/>, <ptp/> or <chrony/>";
                reader.found.error(&reader.place, message, "", cure);
            }
            return None;
        }
        let cure = "add <exchange/>, <ptp/>, <chrony/>, <as6802 …/> or <ptp-domain …/>";
        reader.found.error(&reader.place, "nothing says how the clocks are kept together", "", cure);
    }
    let reference = match section.get("reference") {
        Some(_) => reader.name("reference"),
        None => flows.first().and_then(|flow| flow.from.clone()),
    };
    let choices = [("grade", OnFailure::Grade), ("refuse", OnFailure::Refuse)];
    if section.get("max-offset").is_none() && section.get("on-failure").is_some() {
        let cure = "add max-offset=\"10us\" or remove on-failure";
        reader.found.error(&reader.place, "on-failure has no effect without max-offset", "", cure);
    }
    let limited = |attribute: &'static str, reader: &mut Reader<'_>| {
        section.get(attribute).map(|written| reader.time_within(attribute, written, POSITIVE))
    };
    Some(SynchroniseStatement {
        reference,
        asymmetry: limited("asymmetry", &mut reader),
        max_offset: limited("max-offset", &mut reader),
        on_failure: reader.choice("on-failure", section.get("on-failure").unwrap_or("grade"), &choices),
        wait: reader.time_within("wait", section.get("wait").unwrap_or("30s"), LONGEST_WAIT),
        exchange,
        ptp,
        chrony,
    })
}

/// The child with this tag; a second one is refused.
fn once<'a>(section: &'a Element, tag: &'static str, found: &mut Findings) -> Option<&'a Element> {
    let mut all = section.all(tag);
    let first = all.next();
    if let Some(second) = all.next() {
        found.error(&second.place(), format!("<{tag}> stands here a second time"), "1", "merge the two");
    }
    first
}

fn exchange(element: &Element, found: &mut Findings) -> ExchangeStatement {
    let mut reader = Reader::new(element, found);
    let protocols = [("udp", Protocol::Udp), ("raw", Protocol::Raw), ("be", Protocol::Be)];
    ExchangeStatement {
        period: reader.time_within("period", element.get("period").unwrap_or("10ms"), EXCHANGE_PERIOD),
        protocol: reader.choice("protocol", element.get("protocol").unwrap_or("udp"), &protocols),
        to: element.get("to").map(|_| reader.names("to")),
        element: element.clone(),
    }
}

fn ptp(element: &Element, found: &mut Findings) -> PtpStatement {
    let mut reader = Reader::new(element, found);
    let timestamps = [("hardware", PtpTimestamps::Hardware), ("software", PtpTimestamps::Software)];
    let answers = [("on", true), ("off", false)];
    let transports = [("l2", PtpTransport::L2), ("udp", PtpTransport::Udp)];
    let delays = [("e2e", PtpDelay::E2e), ("p2p", PtpDelay::P2p)];
    PtpStatement {
        timestamps: reader.choice("timestamps", element.get("timestamps").unwrap_or("hardware"), &timestamps),
        steer: reader.choice("steer", element.get("steer").unwrap_or("on"), &answers),
        interval: interval(&mut reader, "interval", "1s").map(|(interval, _)| interval),
        kp: gain(&mut reader, "kp", "0.35"),
        ki: gain(&mut reader, "ki", "0.15"),
        domain: domain(&mut reader),
        transport: reader.choice("transport", element.get("transport").unwrap_or("l2"), &transports),
        delay: reader.choice("delay", element.get("delay").unwrap_or("e2e"), &delays),
    }
}

/// Time between two Sync messages, a power of two of a second (IEEE 1588-2019, 7.7.2.1: the exponent is transmitted).
fn interval(
    reader: &mut Reader<'_>,
    attribute: &'static str,
    default: &'static str,
) -> Option<(Sourced<Span>, i8)> {
    let written = reader.element.get(attribute).unwrap_or(default);
    let bounds = (Span::from_picos(SECOND / 128), Span::from_picos(SECOND * 16), "7.8125ms to 16s");
    let interval = reader.time_within(attribute, written, bounds)?;
    let picos = interval.value.as_picos();
    let log = (0..=7_i8).find(|k| picos << k == SECOND).map(|k| -k);
    if let Some(log) = log.or_else(|| (1..=4_i8).find(|k| picos == SECOND << k)) {
        return Some((interval, log));
    }
    let cure = "write 125ms, 250ms, 500ms, 1s, 2s …";
    reader.refuse(attribute, written, "is no power of two of a second", "7.8125ms to 16s", cure);
    None
}

/// The exponent of a time between two messages that is a power of two of a second.
pub(super) fn log_interval(
    reader: &mut Reader<'_>,
    attribute: &'static str,
    default: &'static str,
) -> Maybe<i8> {
    let (interval, log) = interval(reader, attribute, default)?;
    Some(reader.sourced(attribute, &interval.written, log))
}

/// Number of a domain; the others are reserved (IEEE 1588-2019, table 2).
fn domain(reader: &mut Reader<'_>) -> Maybe<u8> {
    let written = reader.element.get("domain").unwrap_or("0");
    match written.parse::<u8>().ok().filter(|number| *number <= LAST_DOMAIN) {
        Some(number) => Some(reader.sourced("domain", written, number)),
        None => {
            reader.refuse("domain", written, "is no PTP domain", "0 to 127", "write domain=\"0\"");
            None
        }
    }
}

/// A constant of a servo, in thousandths.
fn gain(reader: &mut Reader<'_>, attribute: &'static str, default: &str) -> Maybe<u32> {
    let written = reader.element.get(attribute).unwrap_or(default);
    let (whole, part) = written.split_once('.').unwrap_or((written, "0"));
    let digits = |text: &str| (1..=3).contains(&text.len()) && text.chars().all(|c| c.is_ascii_digit());
    let thousandths = (digits(whole) && digits(part)).then(|| {
        #[expect(clippy::cast_possible_truncation, reason = "at most three digits")]
        let scale = 10_u32.pow(3 - part.len() as u32);
        Some(whole.parse::<u32>().ok()? * 1_000 + part.parse::<u32>().ok()? * scale)
    });
    match thousandths.flatten().filter(|gain| *gain <= 10_000) {
        Some(gain) => Some(reader.sourced(attribute, written, gain)),
        None => {
            let cure = "write a number such as 0.35, at most three digits after the point";
            reader.refuse(attribute, written, "is no constant of a servo", "0 to 10", cure);
            None
        }
    }
}

/// A flow from the reference to every other end system that takes part, returned there.
pub(super) fn exchanges(
    statement: &SynchroniseStatement,
    nodes: &[NodeStatement],
    flows: &[FlowStatement],
    found: &mut Findings,
) -> Exchanges {
    let mut made = Exchanges::default();
    let (Some(exchange), Some(reference)) = (&statement.exchange, &statement.reference) else { return made };
    let (Some(period), Some(protocol)) = (&exchange.period, &exchange.protocol) else { return made };
    let known: BTreeSet<&str> =
        nodes.iter().filter_map(|node| Some(node.name.as_ref()?.value.as_str())).collect();
    // An unknown name is reported where it is resolved.
    if !known.contains(reference.value.as_str()) {
        return made;
    }
    let (mut others, mut chosen): (Vec<&str>, BTreeSet<&str>) = Default::default();
    let ends: Vec<&Sourced<String>> = match &exchange.to {
        Some(named) => named.iter().flatten().collect(),
        None => flows
            .iter()
            .flat_map(|flow| flow.from.iter().chain(flow.to.iter().flatten()))
            .filter(|name| known.contains(name.value.as_str()))
            .collect(),
    };
    for name in ends.into_iter().map(|name| name.value.as_str()) {
        if name != reference.value && chosen.insert(name) {
            others.push(name);
        }
    }
    let taken: BTreeSet<FlowId> = flows.iter().filter_map(|flow| Some(flow.id.as_ref()?.value)).collect();
    let free = (1..=LAST_FLOW).rev().filter(|id| !taken.contains(id));
    #[expect(clippy::cast_possible_wrap, reason = "no more than nodes")]
    let count = others.len() as i64;
    for ((position, other), id) in (0_i64..).zip(&others).zip(free) {
        // Spread over the period, off its beginning, where the test's own messages are likely to be.
        let offset = period.value.as_picos() / 1_000 * (2 * position + 1) / (2 * count);
        let payload = PAYLOADS[usize::from(protocol.value == Protocol::Raw)];
        let attributes = [
            ("id", id.to_string()),
            ("flow", id.to_string()),
            ("protocol", protocol.written.to_string()),
            ("from", reference.value.clone()),
            ("to", (*other).to_owned()),
            ("period", period.written.to_string()),
            ("payload", payload.to_owned()),
            ("offset", format!("{offset}ns")),
        ];
        let only = |names: &[&str]| Element {
            attributes: attributes
                .iter()
                .filter(|(name, _)| names.contains(name))
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            children: Vec::new(),
            ..exchange.element.clone()
        };
        let flow = flows::flow(&only(&["id", "protocol", "from", "to"]), found);
        made.flows.push(FlowStatement { exchange: true, ..flow });
        made.sends.push(tasks::send(&only(&["flow", "period", "payload", "offset"]), found));
        made.relays.push(tasks::relay(&only(&["flow"]), found));
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gain_of(text: &str) -> Option<u32> {
        let element = Element { attributes: [("kp".into(), text.into())].into(), ..Element::default() };
        gain(&mut Reader::new(&element, &mut Findings::default()), "kp", "0.35").map(|gain| gain.value)
    }

    #[test]
    fn gains_are_read_exactly_or_refused() {
        assert_eq!([gain_of("0.35"), gain_of("1"), gain_of("10.0")], [Some(350), Some(1_000), Some(10_000)]);
        for wrong in ["", ".5", "1.", "-1", "0.1234", "10.001", "1e3", "0,5"] {
            assert_eq!(gain_of(wrong), None, "{wrong}");
        }
    }
}
