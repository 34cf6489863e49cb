//! The faults of the network with every reference resolved: which link, which flow, which node.

use std::collections::BTreeMap;

use wg_frame::time::Span;

use crate::diagnostic::on_line;
use crate::diagnostic::{Findings, Place};
use crate::model::Model;
use crate::network::{NodeIndex, NodeKind};
use crate::reader::Sourced;
use crate::statements::{
    Babble, FrameFault, FrameFaultKind, NetworkFault, NetworkFaultKind, Pace, Statements, Whom,
};
use crate::topology::Topology;

/// What a link does to frames.
#[derive(Clone, Debug)]
pub(crate) struct FrameFaultModel {
    pub(crate) place: Place,
    pub(crate) link: usize,
    pub(crate) sent_by: Option<NodeIndex>,
    pub(crate) what: FrameFaultKind,
    pub(crate) whom: WhomModel,
    pub(crate) from: Sourced<Span>,
    pub(crate) until: Option<Sourced<Span>>,
}

#[derive(Clone, Debug)]
pub(crate) enum WhomModel {
    Share(u32),
    Bits(u64),
    /// Of the flow with this index.
    Messages(usize, Sourced<Vec<(u32, u32)>>),
}

/// An event in the network at an instant.
#[derive(Clone, Debug)]
pub(crate) struct IncidentModel {
    pub(crate) place: Place,
    pub(crate) at: Sourced<Span>,
    pub(crate) what: IncidentWhat,
}

#[derive(Clone, Debug)]
pub(crate) enum IncidentWhat {
    Cut { link: usize, until: Option<Sourced<Span>> },
    Babble { flow: usize, until: Sourced<Span>, pace: Pace, length: Option<Sourced<u16>> },
    Restart { switch: NodeIndex, until: Sourced<Span> },
    StepClock { node: NodeIndex, by: Span },
}

/// All faults of a test, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disturbances {
    pub(crate) frames: Vec<FrameFaultModel>,
    pub(crate) incidents: Vec<IncidentModel>,
}

struct Resolver<'a> {
    topology: &'a Topology,
    model: &'a Model,
    found: &'a mut Findings,
}

impl Disturbances {
    pub(crate) fn resolve(
        test: &Statements,
        topology: &Topology,
        model: &Model,
        found: &mut Findings,
    ) -> Self {
        let mut resolver = Resolver { topology, model, found };
        let mut disturbances = Self::default();
        for fault in &test.faults {
            match &fault.kind {
                NetworkFaultKind::Frames(frames) => {
                    disturbances.frames.extend(resolver.frames(&fault.place, frames));
                }
                _ => disturbances.incidents.extend(resolver.incident(fault)),
            }
        }
        disturbances.check_overlaps(topology, found);
        disturbances
    }

    /// What is cut or restarted while it is already down would come back at a time nobody wrote.
    fn check_overlaps(&self, topology: &Topology, found: &mut Findings) {
        let down = |incident: &IncidentModel| match &incident.what {
            IncidentWhat::Cut { link, until } => {
                Some(((true, *link), until.as_ref().map(|until| until.value)))
            }
            IncidentWhat::Restart { switch, until } => {
                Some(((false, usize::from(*switch)), Some(until.value)))
            }
            _ => None,
        };
        let mut known: BTreeMap<_, Vec<(&IncidentModel, Option<Span>)>> = BTreeMap::new();
        for later in &self.incidents {
            let Some((what, until)) = down(later) else { continue };
            let before = known.entry(what).or_default();
            for (earlier, end) in &*before {
                let apart = end.is_some_and(|end| end <= later.at.value)
                    || until.is_some_and(|until| until <= earlier.at.value);
                if apart {
                    continue;
                }
                let name = match what {
                    (true, link) => {
                        let ends =
                            topology.network.links[link].ends.map(|end| topology.name(end.node).to_owned());
                        format!("the link \"{}\"", ends.join(" "))
                    }
                    (false, switch) => format!("switch \"{}\"", topology.network.nodes[switch].name),
                };
                let message = format!("{name} is down already{}", on_line(earlier.place.line));
                let cure = "let one of the two end before the other begins";
                found.error(&later.place, message, "", cure);
            }
            before.push((later, until));
        }
    }
}

impl Resolver<'_> {
    fn frames(&mut self, place: &Place, fault: &FrameFault) -> Option<FrameFaultModel> {
        let link = fault.link.as_ref().and_then(|link| self.topology.link(link, self.found));
        let sent_by = match &fault.sent_by {
            None => None,
            Some(name) => {
                let node = self.topology.node(name.as_ref()?, self.found)?;
                let ends = self.topology.network.links[link?].ends.map(|end| end.node);
                if !ends.contains(&node) {
                    let names = ends.map(|end| format!("\"{}\"", self.topology.name(end)));
                    let message = format!(
                        "sent-by \"{}\" is no end of the link",
                        name.as_ref().map_or("", |n| &n.value)
                    );
                    let cure = format!("write one of {} or leave sent-by out", names.join(" and "));
                    self.found.error(place, message, "", cure);
                }
                Some(node)
            }
        };
        let whom = match fault.whom.as_ref()? {
            Whom::Share(ppm) => WhomModel::Share(*ppm),
            Whom::Bits(bits) => WhomModel::Bits(*bits),
            Whom::Messages(flow, sequences) => WhomModel::Messages(self.flow(flow)?, sequences.clone()),
        };
        let from = fault.from.clone()?;
        let until = match &fault.until {
            None => None,
            Some(until) => Some(self.after(place, &from, until.clone()?)),
        };
        Some(FrameFaultModel {
            place: place.clone(),
            link: link?,
            sent_by,
            what: fault.what,
            whom,
            from,
            until,
        })
    }

    fn flow(&mut self, flow: &Sourced<u16>) -> Option<usize> {
        let known = self.model.flow_index(flow.value);
        if known.is_none() && self.model.flows_whole {
            let message = format!("there is no flow {}", flow.value);
            self.found.error(&flow.place, message, "", "name a flow that <flows> declares");
        }
        known
    }

    /// The later of two instants, which must come after the earlier.
    fn after(&mut self, place: &Place, earlier: &Sourced<Span>, later: Sourced<Span>) -> Sourced<Span> {
        if later.value <= earlier.value {
            let message = format!("{} does not come after {}", later.named(), earlier.named());
            self.found.error(place, message, format!("later than {}", earlier.written), "exchange the two");
        }
        later
    }

    fn incident(&mut self, fault: &NetworkFault) -> Option<IncidentModel> {
        let place = &fault.place;
        let (at, what) = match &fault.kind {
            NetworkFaultKind::Frames(_) => return None,
            NetworkFaultKind::Cut { link, from, until } => {
                let link = link.as_ref().and_then(|link| self.topology.link(link, self.found));
                let from = from.clone()?;
                let until = match until {
                    None => None,
                    Some(until) => Some(self.after(place, &from, until.clone()?)),
                };
                (from, IncidentWhat::Cut { link: link?, until })
            }
            NetworkFaultKind::Babble(babble) => self.babble(place, babble)?,
            NetworkFaultKind::Restart { switch, from, until } => {
                let name = switch.as_ref()?;
                let node = self.topology.node(name, self.found);
                let from = from.clone()?;
                let until = self.after(place, &from, until.clone()?);
                let switch = node?;
                if !matches!(self.topology.network.nodes[usize::from(switch)].kind, NodeKind::Switch(_)) {
                    let message = format!("{} is no switch", name.named());
                    self.found.error(place, message, "", "name a <switch>; nothing else restarts");
                }
                (from, IncidentWhat::Restart { switch, until })
            }
            NetworkFaultKind::StepClock { on, at, by } => {
                let name = on.as_ref()?;
                let node = self.topology.node(name, self.found)?;
                if self.topology.is_hub(node) {
                    let message = format!("{} is a hub and has no clock", name.named());
                    self.found.error(place, message, "", "name an end system or a switch");
                }
                (at.clone()?, IncidentWhat::StepClock { node, by: by.as_ref()?.value })
            }
        };
        Some(IncidentModel { place: place.clone(), at, what })
    }

    fn babble(&mut self, place: &Place, babble: &Babble) -> Option<(Sourced<Span>, IncidentWhat)> {
        let flow = babble.flow.as_ref().and_then(|flow| self.flow(flow));
        let from = babble.from.clone()?;
        let until = self.after(place, &from, babble.until.clone()?);
        let length = match &babble.length {
            None => None,
            Some(length) => Some(length.clone()?),
        };
        Some((from, IncidentWhat::Babble { flow: flow?, until, pace: babble.pace.clone()?, length }))
    }
}
