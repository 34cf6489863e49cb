//! The faults of the network at one point: whether what they name is there, and what the plan says of them.

use std::collections::BTreeMap;

use wg_frame::ethernet::wire_len;
use wg_frame::time::Span;

use super::check::PointCheck;
use super::{Carried, Senders};
use crate::campaign::{FlowId, Incident, IncidentKind, LinkFault, LinkFaultKind, Victims};
use crate::diagnostic::Findings;
use crate::disturbances::{FrameFaultModel, IncidentWhat, WhomModel};
use crate::network::{NodeIndex, NodeKind, SwitchKind};
use crate::reader::Sourced;
use crate::statements::{FrameFaultKind, Pace};

/// A clock cannot show more than 106 days, its offset and a run of some days included.
const MOST_SET: Span = Span::from_millis(50 * 86_400_000);

impl PointCheck<'_> {
    pub(super) fn link_faults(&self, counts: &BTreeMap<FlowId, u32>, found: &mut Findings) -> Vec<LinkFault> {
        let faults = self.disturbances.frames.iter();
        faults.filter_map(|fault| self.link_fault(fault, counts, found)).collect()
    }

    fn link_fault(
        &self,
        fault: &FrameFaultModel,
        counts: &BTreeMap<FlowId, u32>,
        found: &mut Findings,
    ) -> Option<LinkFault> {
        let kind = match fault.what {
            FrameFaultKind::BitErrors => LinkFaultKind::BitError,
            FrameFaultKind::Loss => LinkFaultKind::Loss,
            FrameFaultKind::Duplicate => LinkFaultKind::Duplicate,
            FrameFaultKind::Delay(by) => LinkFaultKind::Delay { by: by? },
            FrameFaultKind::Corrupt => LinkFaultKind::Corrupt,
            FrameFaultKind::WrongLength(length) => {
                self.check_wrong_length(fault, found);
                LinkFaultKind::WrongLength { length: length? }
            }
        };
        let whom = match &fault.whom {
            WhomModel::Share(ppm) => Victims::Share { ppm: *ppm },
            WhomModel::Bits(mean_bits) => Victims::Bits { mean_bits: *mean_bits },
            WhomModel::Messages(flow, sequences) => {
                self.check_messages(fault, *flow, sequences, counts, found);
                Victims::Messages { flow: self.model.flows[*flow].id, sequences: merged(&sequences.value) }
            }
        };
        Some(LinkFault {
            link: crate::topology::link_number(fault.link),
            sent_by: fault.sent_by,
            kind,
            whom,
            from: fault.from.value,
            until: fault.until.as_ref().map(|until| until.value),
        })
    }

    /// Frames of other lengths than their port was told would upset what is computed from lengths.
    fn check_wrong_length(&self, fault: &FrameFaultModel, found: &mut Findings) {
        let network = &self.topology.network;
        let Some(link) = network.links.get(fault.link).filter(|_| self.topology.links_whole) else { return };
        let senders = link.ends.iter().filter(|end| fault.sent_by.is_none_or(|by| by == end.node));
        let why =
            senders.map(|end| &network.nodes[usize::from(end.node)]).find_map(|node| match &node.kind {
                _ if link.ends.iter().any(|end| self.topology.is_hub(end.node)) => {
                    Some("it is joined to a hub, whose stations hear every bit")
                }
                NodeKind::Switch(switch) if switch.kind == SwitchKind::MixedCriticality => {
                    Some("its sender has windows for time-triggered frames of known lengths")
                }
                NodeKind::Switch(switch) if !switch.tsn.is_empty() => Some("its sender has traffic classes"),
                _ if node.tsn.is_some() => Some("its sender has traffic classes"),
                _ => None,
            });
        if let Some(why) = why {
            let names = link.ends.map(|end| self.topology.name(end.node));
            let message =
                format!("frames of the link \"{}\" cannot have a wrong length: {why}", names.join(" "));
            found.error(
                &fault.place,
                message,
                "",
                "name a link of plain senders, or the end that is one as sent-by",
            );
        }
    }

    /// A fault of messages that never come this way would strike nothing.
    fn check_messages(
        &self,
        fault: &FrameFaultModel,
        index: usize,
        sequences: &Sourced<Vec<(u32, u32)>>,
        counts: &BTreeMap<FlowId, u32>,
        found: &mut Findings,
    ) {
        let flow = &self.model.flows[index];
        let passes = self.hops(index).any(|hop| {
            hop.link as usize == fault.link && fault.sent_by.is_none_or(|end| end == hop.from.node)
        });
        if !passes && flow.has_way() && self.topology.links_whole {
            let ends = self.topology.network.links[fault.link].ends;
            let names = ends.map(|end| self.topology.name(end.node));
            let message = match fault.sent_by {
                Some(from) => format!(
                    "flow {} does not come from \"{}\" over the link \"{}\"",
                    flow.id,
                    self.topology.name(from),
                    names.join(" ")
                ),
                None => format!("flow {} does not use the link \"{}\"", flow.id, names.join(" ")),
            };
            found.error(
                &fault.place,
                message,
                "",
                "name a link on the flow's way, and the end it comes from",
            );
        }
        let Some(&count) = counts.get(&flow.id) else { return };
        let last = sequences.value.iter().map(|(_, last)| *last).max().unwrap_or(0);
        if last >= count {
            let message = format!("flow {} has no message {last}", flow.id);
            let cure = "write a smaller number or raise the count; warm-up messages have no faults";
            found.error(&fault.place, message, format!("0 to {}", count - 1), cure);
        }
    }

    pub(super) fn incidents(
        &self,
        senders: &Senders<'_>,
        carried: &Carried,
        found: &mut Findings,
    ) -> Vec<Incident> {
        let mut incidents = Vec::new();
        let mut set: BTreeMap<NodeIndex, Span> = BTreeMap::new();
        for incident in &self.disturbances.incidents {
            let kind = match &incident.what {
                IncidentWhat::Cut { link, until } => IncidentKind::Cut {
                    link: crate::topology::link_number(*link),
                    until: until.as_ref().map(|until| until.value),
                },
                IncidentWhat::Restart { switch, until } => {
                    IncidentKind::Restart { switch: *switch, until: until.value }
                }
                IncidentWhat::StepClock { node, by } => {
                    let set = set.entry(*node).or_default();
                    let sum = set.checked_add(if *by < Span::ZERO { -*by } else { *by });
                    if sum.is_none_or(|sum| sum > MOST_SET) {
                        let name = self.topology.name(*node);
                        let message = format!("the clock of \"{name}\" is set by too much in all");
                        let cure = "write shorter steps, or fewer";
                        found.error(&incident.place, message, MOST_SET.to_string(), cure);
                    }
                    *set = sum.unwrap_or(*set);
                    IncidentKind::ClockStep { node: *node, by: *by }
                }
                IncidentWhat::Babble { flow, until, pace, length } => {
                    let Some(sender) = senders.of(*flow) else { continue };
                    let model = &self.model.flows[*flow];
                    let link = carried.virtual_links.get(&model.id).map(|link| link.contract.lmax());
                    let schedule = carried.schedules.get(&model.id).map(|schedule| schedule.longest_frame);
                    let own = link.or(schedule).or(u16::try_from(sender.frame).ok());
                    let Some(length) = length.as_ref().map(|length| length.value).or(own) else { continue };
                    let bits = wire_len(length.into()) as u64 * 8;
                    let Some(period) = self.babble_period(*flow, pace, bits, found) else { continue };
                    IncidentKind::Babble { flow: model.id, period, length, until: until.value }
                }
            };
            incidents.push(Incident { at: incident.at.value, kind });
        }
        // Stable: what happens at one instant happens in the order of the file.
        incidents.sort_by_key(|incident| incident.at);
        incidents
    }

    fn babble_period(&self, flow: usize, pace: &Pace, bits: u64, found: &mut Findings) -> Option<Span> {
        let flow = &self.model.flows[flow];
        let period = match pace {
            Pace::Period(period) => period.value,
            Pace::Load(load) => return self.period_of_load(flow, load.value, u128::from(bits)),
        };
        let Pace::Period(written) = pace else { return None };
        let first = flow.used().filter_map(|(_, reach)| reach.routes.first()?.hops.first());
        let slowest = first.map(|hop| self.rate(hop.link)).min()?;
        let least = Span::of_bits(bits, slowest)?;
        if period < least {
            let message = format!("{} is shorter than a frame takes on the sender's link", written.named());
            let cure = "write a longer period; nobody babbles faster than its line";
            found.error(&written.place, message, format!("at least {least}"), cure);
            return None;
        }
        Some(period)
    }

    /// What would happen after the end of the run does not happen.
    pub(super) fn warn_of_late_faults(&self, end: Span, found: &mut Findings) {
        let begins = self.disturbances.frames.iter().map(|fault| (&fault.place, &fault.from));
        let instants = self.disturbances.incidents.iter().map(|incident| (&incident.place, &incident.at));
        for (place, time) in begins.chain(instants) {
            if time.value >= end {
                found.warn(format!(
                    "{}{}: {} lies after the end of the run at {end}; it strikes nothing",
                    place.element,
                    crate::diagnostic::on_line(place.line),
                    time.named()
                ));
            }
        }
    }
}

/// Ranges ascending and disjoint; touching ones become one.
fn merged(ranges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut merged: Vec<(u32, u32)> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some((_, end)) if u64::from(*first) <= u64::from(*end) + 1 => *end = (*end).max(*last),
            _ => merged.push((*first, *last)),
        }
    }
    merged
}
