//! How the clocks of the end systems are kept together, and the exchanges that tell how far they are apart.
//!
//! A two-way exchange is an ordinary flow that the far end returns: it leaves the four timestamps an offset needs as
//! records like any other message, on every bench. So it is made here as the statements a person would write, and
//! every check of flows, senders and relays holds for it. It is marked, because it is no flow under test.

use std::collections::BTreeSet;

use wg_frame::time::Span;

use super::flows::{self, FlowStatement};
use super::parts::single;
use super::sending::SendStatement;
use super::tasks::{self, RelayStatement};
use crate::campaign::{FlowId, LAST_FLOW, Protocol, Ptp, Synchronise};
use crate::diagnostic::Findings;
use crate::language::attribute::Declared;
use crate::language::synchronise::{exchange as apart, ptp as linuxptp, synchronise as own};
use crate::network::NodeStatement;
use crate::reader::{Maybe, Reader, Sourced};
use crate::tree::Element;

#[derive(Clone, Debug)]
pub(crate) struct SynchroniseStatement {
    pub(crate) reference: Maybe<String>,
    exchange: Option<ExchangeStatement>,
    /// What the plan has of it, with node 0 as reference; `None` where a part could not be read.
    pub(crate) plan: Option<Synchronise>,
}

#[derive(Clone, Debug)]
pub(crate) struct ExchangeStatement {
    element: Element,
    period: Maybe<Span>,
    protocol: Maybe<Protocol>,
    /// Outer `None`: every end system of the flows.
    to: Option<Option<Vec<Sourced<String>>>>,
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

pub(super) fn synchronise(
    section: &Element,
    flows: &[FlowStatement],
    found: &mut Findings,
) -> Option<SynchroniseStatement> {
    if section.tag != "synchronise" {
        return None;
    }
    let once = |tag, found: &mut Findings| single(section, tag, "merge the two", found);
    let exchange = once("exchange", found).map(|element| exchange(element, found));
    let ptp = once("ptp", found).map(|element| ptp(element, found));
    let chrony = once("chrony", found).is_some();
    let simulated = ["as6802", "ptp-domain"].into_iter().find(|tag| section.all(tag).next().is_some());
    let mut reader = Reader::new(section, found);
    if exchange.is_none() && ptp.is_none() && !chrony {
        if let Some(tag) = simulated {
            // They go by frames of their own: no clock is compared with a reference.
            let compared: [&dyn Declared; 5] =
                [&own::REFERENCE, &own::ASYMMETRY, &own::MAX_OFFSET, &own::ON_FAILURE, &own::WAIT];
            let mut names = compared.into_iter().map(Declared::name);
            if let Some(attribute) = names.find(|name| section.get(name).is_some()) {
                let message = format!("{attribute} has no effect on <{tag}>");
                let cure = "remove it, or add <exchange/>, <ptp/> or <chrony/>";
                reader.found.error(&reader.place, message, "", cure);
            }
            return None;
        }
        let cure = "add <exchange/>, <ptp/>, <chrony/>, <as6802 …/> or <ptp-domain …/>";
        reader.found.error(&reader.place, "nothing says how the clocks are kept together", "", cure);
    }
    let reference = match reader.optional(&own::REFERENCE) {
        Some(reference) => reference,
        None => flows.first().and_then(|flow| flow.from.clone()),
    };
    if !reader.has(&own::MAX_OFFSET) && reader.has(&own::ON_FAILURE) {
        let cure = "add max-offset=\"10us\" or remove on-failure";
        reader.found.error(&reader.place, "on-failure has no effect without max-offset", "", cure);
    }
    let (asymmetry, max_offset) = (reader.value(&own::ASYMMETRY), reader.value(&own::MAX_OFFSET));
    let (on_failure, wait) = (reader.value(&own::ON_FAILURE), reader.value(&own::WAIT));
    let period = exchange.as_ref().and_then(|exchange| Some(exchange.period.as_ref()?.value));
    let plan = on_failure.zip(wait).map(|(on_failure, wait)| Synchronise {
        reference: 0,
        asymmetry,
        max_offset,
        on_failure,
        wait,
        exchange: period,
        ptp: ptp.flatten(),
        chrony,
    });
    Some(SynchroniseStatement { reference, exchange, plan })
}

fn exchange(element: &Element, found: &mut Findings) -> ExchangeStatement {
    let mut reader = Reader::new(element, found);
    ExchangeStatement {
        period: reader.read(&apart::PERIOD),
        protocol: reader.read(&apart::PROTOCOL),
        to: reader.has(&apart::TO).then(|| reader.names(&apart::TO)),
        element: element.clone(),
    }
}

fn ptp(element: &Element, found: &mut Findings) -> Option<Ptp> {
    let mut reader = Reader::new(element, found);
    let (timestamps, steer) = (reader.value(&linuxptp::TIMESTAMPS), reader.value(&linuxptp::STEER));
    let interval = reader.value(&linuxptp::INTERVAL);
    let (kp, ki) = (reader.value(&linuxptp::KP), reader.value(&linuxptp::KI));
    let domain = reader.value(&linuxptp::DOMAIN);
    let (transport, delay) = (reader.value(&linuxptp::TRANSPORT), reader.value(&linuxptp::DELAY));
    Some(Ptp {
        timestamps: timestamps?,
        steer: steer?,
        interval: interval?.interval,
        kp_thousandths: kp?,
        ki_thousandths: ki?,
        domain: domain?,
        transport: transport?,
        delay: delay?,
    })
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
