//! Virtual links: their contracts, and whether end systems and links can keep them all at once.

use std::collections::{BTreeMap, BTreeSet};

use wg_core::arinc664::regulator::{MAX_OUTPUT_JITTER, output_jitter};
use wg_core::arinc664::{Bag, Contract};
use wg_frame::ethernet::wire_len;

use super::Senders;
use super::check::{PICOS_PER_SECOND, PointCheck, Said, show_load};
use super::whole_send::WholeSend;
use crate::campaign::{FlowId, Hop, Protocol, VirtualLink};
use crate::diagnostic::{Findings, on_line};
use crate::language::flows::flow as own;
use crate::model::FlowModel;
use crate::quantity::{show_ppm, show_rate};

/// Virtual links one end system sends, at most (ARINC 664 part 7, as published tools have it).
const MOST_PER_END_SYSTEM: usize = 128;
/// Sequence numbers repeat after 255; a skew this many BAGs long could not tell a copy from a later frame.
const SKEW_BAGS: i64 = 254;

/// A virtual link's load in micro-bit/s: one longest frame per BAG.
fn load(link: &VirtualLink) -> u128 {
    let bits = wire_len(link.contract.lmax().into()) as u128 * 8;
    bits * PICOS_PER_SECOND * 1_000_000 / link.contract.bag().span().as_picos().unsigned_abs() as u128
}

impl PointCheck<'_> {
    pub(super) fn virtual_links(
        &self,
        senders: &Senders<'_>,
        said: &mut Said,
        found: &mut Findings,
    ) -> BTreeMap<FlowId, VirtualLink> {
        self.check_numbers(found);
        let mut links = BTreeMap::new();
        for (at, flow) in self.model.flows.iter().enumerate().filter(|(_, flow)| flow.is(Protocol::Rc)) {
            if let Some(link) = self.contract(flow, senders.of(at), found) {
                links.insert(flow.id, link);
            }
        }
        self.check_end_systems(&links, found);
        self.check_links(&links, said, found);
        links
    }

    /// Virtual links and time-triggered flows share one space of identifiers: the end of their addresses.
    fn check_numbers(&self, found: &mut Findings) {
        let mut seen: BTreeMap<u16, &FlowModel> = BTreeMap::new();
        let critical = |flow: &FlowModel| flow.is(Protocol::Rc) || flow.is(Protocol::Tt);
        let flows = self.model.flows.iter().filter(|flow| critical(flow));
        let back = self.model.relays.iter().filter_map(|relay| {
            let vl = relay.vl.as_ref()?.as_ref()?.value;
            Some((vl, &self.model.flows[relay.flow], &relay.place))
        });
        let back = back.filter(|(_, flow, _)| flow.is(Protocol::Rc));
        for (number, flow, place) in flows.map(|flow| (number(flow), flow, &flow.place)).chain(back) {
            if let Some(first) = seen.get(&number) {
                let message = format!(
                    "virtual link {number} of flow {} is already that of flow {}{}",
                    flow.id,
                    first.id,
                    on_line(first.place.line)
                );
                found.error(
                    place,
                    message,
                    "1 flow per number",
                    "write another vl; default is the flow's number",
                );
            } else {
                seen.insert(number, flow);
            }
        }
    }

    fn contract(
        &self,
        flow: &FlowModel,
        sender: Option<&WholeSend<'_>>,
        found: &mut Findings,
    ) -> Option<VirtualLink> {
        let carriage = &flow.carriage;
        let Some(bag) = &flow.bag else {
            // A bag that could not be read was reported where it stands.
            if !carriage.special.contains(&"bag")
                && let Some(protocol) = &flow.protocol
            {
                let message = format!("flow {} has {}, but no bag", flow.id, protocol.named());
                found.error(&protocol.place, message, "", "add bag=\"4ms\" to the flow");
            }
            return None;
        };
        let sender = sender?;
        let lmax = self.longest_frame(flow, sender, found)?;
        if sender.period.as_picos() < bag.value.as_picos() * i64::from(sender.burst) {
            let per = if sender.burst > 1 {
                format!("{} messages per period", sender.burst)
            } else {
                "a message per period".to_owned()
            };
            let message = format!(
                "{} of flow {} sends {per}, faster than {} on average",
                sender.pace.text,
                flow.id,
                bag.named()
            );
            let least = bag.value.checked_mul(i64::from(sender.burst)).unwrap_or(bag.value);
            let cure = "write a longer period or a shorter bag; else messages wait ever longer";
            found.error(&sender.pace.place, message, format!("at least {least}"), cure);
        }
        let skew_max = carriage.skew_max.as_ref()?;
        let most = bag.value.checked_mul(SKEW_BAGS)?;
        if skew_max.value >= most {
            let message = format!("{} lasts until sequence numbers repeat", skew_max.named());
            let cure = "write a shorter skew-max; copies then cannot be told from later frames";
            found.error(&skew_max.place, message, format!("less than 254 BAG, {most}"), cure);
        }
        Some(VirtualLink {
            id: number(flow),
            contract: Contract::new(Bag::new(bag.value).ok()?, lmax).ok()?,
            sub_links: carriage.sub_links.as_ref()?.value,
            queue: carriage.queue.as_ref().map_or_else(|| own::QUEUE.usual(), |queue| queue.value),
            skew_max: skew_max.value,
            redundancy_management: carriage.redundancy.as_ref()?.value,
            jitter: carriage.jitter.as_ref()?.value,
            priority: carriage
                .priority
                .as_ref()
                .map_or(VirtualLink::usual_priority(), |priority| priority.value),
            number_within: carriage.number_within,
        })
    }

    /// Lmax as written or the frame of the sender, which must not be longer.
    pub(super) fn longest_frame(
        &self,
        flow: &FlowModel,
        sender: &WholeSend<'_>,
        found: &mut Findings,
    ) -> Option<u16> {
        let Some(lmax) = &flow.carriage.lmax else {
            let unread = flow.carriage.special.contains(&"lmax");
            return u16::try_from(sender.frame).ok().filter(|_| !unread);
        };
        if sender.frame > u32::from(lmax.value) {
            let message = format!(
                "{} of flow {} makes a frame of {}B, longer than {}",
                sender.payload.named(),
                flow.id,
                sender.frame,
                lmax.named()
            );
            let cure = "write a smaller payload or a larger lmax, 1518B at most";
            found.error(&sender.payload.place, message, format!("{}B", lmax.value), cure);
        }
        Some(lmax.value)
    }

    fn check_end_systems(&self, links: &BTreeMap<FlowId, VirtualLink>, found: &mut Findings) {
        let mut by_sender: BTreeMap<u16, Vec<&FlowModel>> = BTreeMap::new();
        let mut first_hops: BTreeMap<u16, BTreeSet<u32>> = BTreeMap::new();
        for (at, flow) in self.model.flows.iter().enumerate().filter(|(_, flow)| links.contains_key(&flow.id))
        {
            let relays = self.model.relays_of(at).map(|relay| relay.on);
            for sender in flow.ends.iter().map(|(from, _)| *from).chain(relays) {
                by_sender.entry(sender).or_default().push(flow);
                let leaves = |hop: &Hop| hop.from.node == sender;
                let first = self.hops(at).filter(leaves).map(|hop| hop.link);
                first_hops.entry(sender).or_default().extend(first);
            }
        }
        for (node, flows) in by_sender {
            let name = self.topology.name(node);
            if flows.len() > MOST_PER_END_SYSTEM {
                let beyond = flows[MOST_PER_END_SYSTEM];
                let message = format!("\"{name}\" sends {} virtual links", flows.len());
                let cure = "spread them over several end systems";
                found.error(&beyond.place, message, MOST_PER_END_SYSTEM.to_string(), cure);
                continue;
            }
            let first_links = first_hops.remove(&node).unwrap_or_default();
            let Some(rate) = first_links.into_iter().map(|link| self.rate(link)).min() else { continue };
            let jitter = output_jitter(flows.iter().map(|flow| links[&flow.id].contract), rate);
            if jitter.is_none_or(|jitter| jitter > MAX_OUTPUT_JITTER) {
                let mut largest = flows.clone();
                largest.sort_by_key(|flow| {
                    std::cmp::Reverse((links[&flow.id].contract.lmax(), std::cmp::Reverse(flow.id)))
                });
                let shown = jitter.map_or("106 days".to_owned(), |jitter| jitter.to_string());
                let message = format!(
                    "the virtual links of \"{name}\" can delay one another by {shown} at its {} link: {}",
                    show_rate(rate),
                    listed(&largest, |flow| format!(
                        "{} (lmax {}B)",
                        links[&flow.id].id,
                        links[&flow.id].contract.lmax()
                    ))
                );
                let cure = "write a smaller lmax, or send some of them from another end system";
                found.error(
                    &flows[0].place,
                    message,
                    "500us of output jitter, 40us + sum of (20B + lmax) / rate",
                    cure,
                );
            }
        }
    }

    /// Every link must carry the contracts of all virtual links over it, whatever is really sent.
    fn check_links(&self, links: &BTreeMap<FlowId, VirtualLink>, said: &mut Said, found: &mut Findings) {
        let mut on: BTreeMap<Hop, Vec<&FlowModel>> = BTreeMap::new();
        for (at, flow) in self.model.flows.iter().enumerate().filter(|(_, flow)| links.contains_key(&flow.id))
        {
            for hop in self.hops(at) {
                on.entry(hop).or_default().push(flow);
            }
        }
        for (hop, mut flows) in on {
            let rate = self.rate(hop.link);
            let sum: u128 = flows.iter().map(|flow| load(&links[&flow.id])).sum();
            if sum <= u128::from(rate) * 1_000_000 || !said.contracted.insert(hop) {
                continue;
            }
            flows.sort_by_key(|flow| (std::cmp::Reverse(load(&links[&flow.id])), flow.id));
            let share = (sum / u128::from(rate.max(1))).div_ceil(1_000) * 1_000;
            let message = format!(
                "the contracts of {} virtual links take {}, {} of the link {}: {}",
                flows.len(),
                show_load(sum),
                show_ppm(u32::try_from(share).unwrap_or(u32::MAX)),
                self.between(hop),
                listed(&flows, |flow| format!(
                    "{} ({})",
                    links[&flow.id].id,
                    show_load(load(&links[&flow.id]))
                ))
            );
            let place = self
                .model
                .rate
                .as_ref()
                .map_or(&self.topology.link_places[hop.link as usize], |rate| &rate.place);
            let cure = "write longer bags or smaller lmax, or send fewer virtual links over this link";
            found.error(place, message, show_rate(rate), cure);
        }
    }
}

/// The number of a virtual link or of a time-triggered flow.
pub(super) fn number(flow: &FlowModel) -> u16 {
    flow.carriage.vl.as_ref().map_or(flow.id, |vl| vl.value)
}

/// The first eight of a list.
fn listed(flows: &[&FlowModel], show: impl Fn(&FlowModel) -> String) -> String {
    let names: Vec<String> = flows.iter().take(8).map(|flow| show(flow)).collect();
    let more = if flows.len() > 8 { ", …" } else { "" };
    format!("{}{more}", names.join(", "))
}
