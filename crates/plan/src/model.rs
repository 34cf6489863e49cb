//! The statements with every reference resolved: flows know their route, tasks know their flow.
//!
//! What could not be resolved was reported and is left out, so the checks of a sweep point see only whole
//! things.

use std::collections::BTreeMap;

use wg_frame::time::Span;

use crate::campaign::{FaultKind, Fill, FlowId, Protocol, Turn, VlanTag};
use crate::diagnostic::{Findings, Place};
use crate::network::NodeIndex;
use crate::reader::{Maybe, Sourced};
use crate::statements::{
    FaultStatement, FlowStatement, InjectStatement, RelayStatement, SendStatement, Statements,
};
use crate::topology::{Hop, Topology, on_line};

#[derive(Clone, Debug)]
pub(crate) struct FlowModel {
    pub(crate) place: Place,
    pub(crate) id: FlowId,
    pub(crate) protocol: Maybe<Protocol>,
    pub(crate) ends: Option<(NodeIndex, NodeIndex)>,
    pub(crate) deadline: Maybe<Span>,
    pub(crate) vlan: Option<VlanTag>,
    pub(crate) path: Vec<NodeIndex>,
    pub(crate) hops: Vec<Hop>,
    pub(crate) relayed: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct SendModel {
    pub(crate) place: Place,
    /// Index into [`Model::flows`].
    pub(crate) flow: usize,
    pub(crate) period: Maybe<Span>,
    pub(crate) payload: Maybe<u32>,
    pub(crate) fill: Maybe<Fill>,
    pub(crate) count: Option<Maybe<u32>>,
    pub(crate) offset: Maybe<Span>,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultModel {
    pub(crate) place: Place,
    pub(crate) kind: FaultKind,
    pub(crate) sequences: Sourced<Vec<(u32, u32)>>,
}

#[derive(Clone, Debug)]
pub(crate) struct RelayModel {
    pub(crate) flow: usize,
    pub(crate) through: Maybe<Turn>,
    pub(crate) faults: Vec<FaultModel>,
}

#[derive(Clone, Debug)]
pub(crate) struct InjectModel {
    pub(crate) place: Place,
    pub(crate) on: NodeIndex,
    pub(crate) to: NodeIndex,
    pub(crate) load: Maybe<u32>,
    pub(crate) payload: Maybe<u32>,
    pub(crate) burst: Maybe<u32>,
    /// The sender's own link.
    pub(crate) first_hop: Option<Hop>,
}

/// A test at one point of its sweep.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) flows: Vec<FlowModel>,
    pub(crate) sends: Vec<SendModel>,
    /// Indices into [`Model::flows`].
    pub(crate) receives: Vec<usize>,
    pub(crate) relays: Vec<RelayModel>,
    pub(crate) injects: Vec<InjectModel>,
    /// Rate of every link, where an axis sets it.
    pub(crate) rate: Maybe<u64>,
    /// Every flow could be read, so an unknown flow is a mistake and not a consequence of one.
    pub(crate) flows_whole: bool,
}

/// What a flow's messages meet at their end.
struct Sink {
    what: &'static str,
    line: u32,
}

struct Resolver<'a> {
    topology: &'a Topology,
    found: &'a mut Findings,
    by_id: BTreeMap<FlowId, usize>,
    model: Model,
}

impl Model {
    pub(crate) fn resolve(test: &Statements, topology: &Topology, found: &mut Findings) -> Self {
        let model = Self {
            flows: Vec::new(),
            sends: Vec::new(),
            receives: Vec::new(),
            relays: Vec::new(),
            injects: Vec::new(),
            rate: None,
            flows_whole: true,
        };
        let mut resolver = Resolver { topology, found, by_id: BTreeMap::new(), model };
        for flow in &test.flows {
            resolver.flow(flow);
        }
        for send in &test.sends {
            resolver.send(send);
        }
        resolver.sinks(test);
        for inject in &test.injects {
            resolver.inject(inject);
        }
        resolver.unsent(test);
        resolver.model
    }

    /// Index of the flow with this number.
    pub(crate) fn flow_index(&self, id: FlowId) -> Option<usize> {
        self.flows.iter().position(|flow| flow.id == id)
    }
}

impl Resolver<'_> {
    fn flow(&mut self, statement: &FlowStatement) {
        let from = statement.from.as_ref().and_then(|name| self.topology.end_system(name, self.found));
        let to = statement.to.as_ref().and_then(|name| self.topology.end_system(name, self.found));
        let Some(id) = &statement.id else {
            self.model.flows_whole = false;
            return;
        };
        if let Some(first) = self.by_id.get(&id.value) {
            let first = on_line(self.model.flows[*first].place.line);
            let message = format!("flow {} is already declared{first}", id.value);
            self.found.error(&statement.place, message, "", "give every flow a number of its own");
            return;
        }
        let ends = from.zip(to);
        let (path, hops) = ends.map(|ends| self.route(&statement.place, ends)).unwrap_or_default();
        let vlan = match (&statement.vlan, &statement.priority) {
            (None, None) => None,
            (id, priority) => Some(VlanTag {
                id: id.as_ref().map_or(0, |id| id.value),
                priority: priority.as_ref().map_or(0, |priority| priority.value),
            }),
        };
        self.by_id.insert(id.value, self.model.flows.len());
        self.model.flows.push(FlowModel {
            place: statement.place.clone(),
            id: id.value,
            protocol: statement.protocol.clone(),
            ends,
            deadline: statement.deadline.clone(),
            vlan,
            path,
            hops,
            relayed: false,
        });
    }

    fn route(&mut self, place: &Place, (from, to): (NodeIndex, NodeIndex)) -> (Vec<NodeIndex>, Vec<Hop>) {
        if from == to {
            let message = format!("the way leads from \"{0}\" to \"{0}\"", self.topology.name(from));
            self.found.error(place, message, "", "name two different end systems");
            return Default::default();
        }
        let route = self.topology.route(from, to);
        if route.is_none() && self.topology.links_whole {
            let (from, to) = (self.topology.name(from), self.topology.name(to));
            let message = format!("there is no route from \"{from}\" to \"{to}\"");
            self.found.error(place, message, "", "add the link that joins their parts of the network");
        }
        route.unwrap_or_default()
    }

    /// The flow a task names.
    fn flow_of(&mut self, flow: &Maybe<FlowId>) -> Option<usize> {
        let flow = flow.as_ref()?;
        let known = self.by_id.get(&flow.value).copied();
        if known.is_none() && self.model.flows_whole {
            let ids: Vec<String> = self.by_id.keys().take(8).map(ToString::to_string).collect();
            let message = format!("there is no flow {}", flow.value);
            let cure = match ids.is_empty() {
                true => "declare it in <flows>".to_owned(),
                false => format!("write one of {} or declare it in <flows>", ids.join(", ")),
            };
            self.found.error(&flow.place, message, "", cure);
        }
        known
    }

    fn send(&mut self, statement: &SendStatement) {
        let Some(flow) = self.flow_of(&statement.flow) else { return };
        if let Some(first) = self.model.sends.iter().find(|send| send.flow == flow) {
            let message = format!("flow {} already has a sender{}", self.id(flow), on_line(first.place.line));
            self.found.error(&statement.place, message, "1 sender per flow", "declare a second flow");
            return;
        }
        self.model.sends.push(SendModel {
            place: statement.place.clone(),
            flow,
            period: statement.period.clone(),
            payload: statement.payload.clone(),
            fill: statement.fill.clone(),
            count: statement.count.clone(),
            offset: statement.offset.clone(),
        });
    }

    fn id(&self, flow: usize) -> FlowId {
        self.model.flows[flow].id
    }

    /// Receivers and relays: exactly one of them per flow, at the flow's end.
    fn sinks(&mut self, test: &Statements) {
        let mut sinks: BTreeMap<usize, Sink> = BTreeMap::new();
        let mut whole = true;
        for receive in &test.receives {
            let flow = self.flow_of(&receive.flow);
            whole &= flow.is_some();
            if let Some(flow) = flow
                && self.sink(&mut sinks, flow, "receiver", &receive.place, &receive.on)
            {
                self.model.receives.push(flow);
            }
        }
        for relay in &test.relays {
            let flow = self.flow_of(&relay.flow);
            whole &= flow.is_some();
            if let Some(flow) = flow
                && self.sink(&mut sinks, flow, "relay", &relay.place, &relay.on)
            {
                self.model.flows[flow].relayed = true;
                let faults = self.faults(relay, flow);
                self.model.relays.push(RelayModel { flow, through: relay.through.clone(), faults });
            }
        }
        let sends = self.model.sends.clone();
        for send in sends.iter().filter(|send| whole && !sinks.contains_key(&send.flow)) {
            let id = self.id(send.flow);
            let message = format!("flow {id} is sent but neither received nor relayed");
            let cure = format!("add <receive flow=\"{id}\"/> or <relay flow=\"{id}\"/>");
            self.found.error(&send.place, message, "", cure);
        }
    }

    fn sink(
        &mut self,
        sinks: &mut BTreeMap<usize, Sink>,
        flow: usize,
        what: &'static str,
        place: &Place,
        on: &Option<Maybe<String>>,
    ) -> bool {
        let id = self.id(flow);
        if let Some(first) = sinks.get(&flow) {
            let message = format!("flow {id} already has a {}{}", first.what, on_line(first.line));
            self.found.error(place, message, "1 receiver or relay per flow", "keep one of the two");
            return false;
        }
        sinks.insert(flow, Sink { what, line: place.line });
        if let Some(Some(on)) = on
            && let Some(node) = self.topology.end_system(on, self.found)
            && let Some((_, to)) = self.model.flows[flow].ends
            && node != to
        {
            let to = self.topology.name(to);
            let message = format!("{} is not where flow {id} ends", on.named());
            self.found.error(place, message, "", format!("write on=\"{to}\" or leave it out"));
        }
        true
    }

    fn faults(&mut self, relay: &RelayStatement, flow: usize) -> Vec<FaultModel> {
        let faults: Vec<FaultModel> =
            relay.faults.iter().filter_map(|fault| self.fault(fault, flow)).collect();
        // First and last sequence number a fault touches: a swap also touches the successor.
        let mut touched: Vec<(u64, u64, &FaultModel)> = Vec::new();
        for fault in &faults {
            let after = u64::from(fault.kind == FaultKind::Swap);
            for (first, last) in &fault.sequences.value {
                if after == 1 && last > first {
                    let message = format!("{} swaps neighbours twice", fault.sequences.named());
                    let cure = "list every second number; a swap also takes the successor";
                    self.found.error(&fault.place, message, "", cure);
                }
                touched.push((u64::from(*first), u64::from(*last) + after, fault));
            }
        }
        touched.sort_by_key(|(first, last, _)| (*first, *last));
        let mut reach: Option<(u64, &FaultModel)> = None;
        for (first, last, fault) in &touched {
            if let Some((end, before)) = reach
                && *first <= end
            {
                let message = format!("message {first} already has a fault{}", on_line(before.place.line));
                let cure = "give every message one fault at most; a swap also takes the successor";
                self.found.error(&fault.place, message, "1 fault per message", cure);
            }
            if reach.is_none_or(|(end, _)| *last > end) {
                reach = Some((*last, fault));
            }
        }
        faults
    }

    fn fault(&mut self, fault: &FaultStatement, flow: usize) -> Option<FaultModel> {
        let kind = fault.kind.as_ref()?;
        let misdirect = kind.value == "misdirect";
        if !misdirect && fault.to.is_some() {
            let cure = "remove to=\"…\" or write kind=\"misdirect\"";
            self.found.error(&fault.place, "only a misdirected message has a to", "", cure);
        }
        let kind = match kind.value.as_str() {
            "drop" => FaultKind::Drop,
            "duplicate" => FaultKind::Duplicate,
            "swap" => FaultKind::Swap,
            "corrupt" => FaultKind::Corrupt,
            _ => FaultKind::Misdirect { to: self.misdirect_target(fault, flow)? },
        };
        let sequences = fault.sequences.clone()?;
        Some(FaultModel { place: fault.place.clone(), kind, sequences })
    }

    fn misdirect_target(&mut self, fault: &FaultStatement, flow: usize) -> Option<NodeIndex> {
        let Some(to) = &fault.to else {
            let cure = "add to=\"…\" with a third end system";
            self.found.error(&fault.place, "a misdirected message needs a to", "", cure);
            return None;
        };
        let to = to.as_ref()?;
        let node = self.topology.end_system(to, self.found)?;
        let (from, end) = self.model.flows[flow].ends?;
        if node == from || node == end {
            let message = format!("{} is an end of flow {} itself", to.named(), self.id(flow));
            let cure = "name a third end system, or else nobody can tell it was misdirected";
            self.found.error(&fault.place, message, "", cure);
            return None;
        }
        if self.topology.route(end, node).is_none() && self.topology.links_whole {
            let message = format!("{} cannot be reached from the relay", to.named());
            self.found.error(&fault.place, message, "", "name an end system in the same network");
        }
        Some(node)
    }

    fn inject(&mut self, statement: &InjectStatement) {
        let on = statement.on.as_ref().and_then(|name| self.topology.end_system(name, self.found));
        let to = statement.to.as_ref().and_then(|name| self.topology.end_system(name, self.found));
        let Some((on, to)) = on.zip(to) else { return };
        let (_, hops) = self.route(&statement.place, (on, to));
        self.model.injects.push(InjectModel {
            place: statement.place.clone(),
            on,
            to,
            load: statement.load.clone(),
            payload: statement.payload.clone(),
            burst: statement.burst.clone(),
            first_hop: hops.first().copied(),
        });
    }

    /// A flow nobody sends would be a row of zeros in the report.
    fn unsent(&mut self, test: &Statements) {
        let whole = test.sends.iter().all(|send| send.flow.is_some());
        for (index, flow) in self.model.flows.iter().enumerate() {
            if whole && !self.model.sends.iter().any(|send| send.flow == index) {
                let message = format!("flow {} is never sent", flow.id);
                let cure = format!("add <send flow=\"{}\" …/> to <tasks> or remove the flow", flow.id);
                self.found.error(&flow.place, message, "", cure);
            }
        }
    }
}
