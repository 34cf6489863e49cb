//! Finds what statements refer to: end systems, routes, flows.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::campaign::{FaultKind, FlowId, Protocol};
use crate::diagnostic::{Findings, Place, on_line};
use crate::network::{NetworkId, NodeIndex};
use crate::reader::Maybe;
use crate::statements::{
    CaptureStatement, Carriage, FaultStatement, FlowStatement, InjectStatement, RelayStatement,
    RemoteLogStatement, SendStatement, Statements,
};
use crate::topology::Topology;
use crate::wire::payload_range;

use super::{
    CaptureModel, FaultModel, FlowModel, HandSet, InjectModel, Model, ReceiveModel, RelayModel,
    RemoteLogModel, SendModel,
};

/// What a flow's messages meet at their end.
struct Sink {
    what: &'static str,
    line: u32,
}

pub(crate) struct Resolver<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) found: &'a mut Findings,
    pub(super) by_id: BTreeMap<FlowId, usize>,
    /// By flow: where its sender stands.
    pub(super) sent: BTreeMap<usize, Place>,
    /// A frame has several ways, and nothing says which it takes.
    pub(crate) ambiguous: bool,
    pub(crate) model: Model,
}

impl Resolver<'_> {
    pub(super) fn flow(&mut self, statement: &FlowStatement) {
        let from = statement.from.as_ref().and_then(|name| self.topology.end_system(name, self.found));
        let to = statement.to.as_ref().and_then(|names| {
            let nodes: Vec<_> = names.iter().map(|name| self.topology.end_system(name, self.found)).collect();
            nodes.into_iter().collect::<Option<Rc<[NodeIndex]>>>()
        });
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
        let mut frer = None;
        let reach = ends.as_ref().map(|ends| match (&statement.frer, ends.1[..] == [ends.0]) {
            (Some(written), _) => {
                let (reach, functions) =
                    self.members(&statement.place, written, (ends.0, &ends.1), &statement.paths);
                frer = functions;
                reach
            }
            (None, true) => self.loopback(&statement.paths),
            (None, false) => self.reach(&statement.place, ends, &statement.paths),
        });
        let reach = reach.unwrap_or_default();
        let windows = self.hand_set(&statement.carriage);
        self.by_id.insert(id.value, self.model.flows.len());
        self.model.flows.push(FlowModel {
            place: statement.place.clone(),
            id: id.value,
            protocol: statement.protocol.clone(),
            ends,
            deadline: statement.deadline.clone(),
            bag: statement.carriage.bag.clone(),
            windows,
            carriage: Rc::new(statement.carriage.clone()),
            reach: Rc::new(reach),
            frer,
            is_copied: statement.frer.is_some(),
            relayed: false,
            exchange: statement.exchange,
        });
        if statement.frer.is_none() {
            self.check_networks(&statement.paths);
        }
    }

    fn hand_set(&mut self, carriage: &Carriage) -> Rc<[HandSet]> {
        let mut windows: Vec<HandSet> = Vec::new();
        for statement in &carriage.windows {
            let Some((end, written)) = &statement.at else { continue };
            let (Some(at), Some(offset)) = (self.topology.port(end, written, self.found), &statement.offset)
            else {
                continue;
            };
            if let Some(first) = windows.iter().find(|window| window.at == at) {
                let message =
                    format!("{} already has a window{}", written.named(), on_line(first.place.line));
                self.found.error(
                    &statement.place,
                    message,
                    "1 window per port and flow",
                    "keep one of the two",
                );
                continue;
            }
            windows.push(HandSet {
                place: statement.place.clone(),
                at,
                offset: offset.clone(),
                length: statement.length.clone(),
                named: written.named(),
            });
        }
        windows.into()
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

    pub(super) fn send(&mut self, statement: &SendStatement) {
        let Some(flow) = self.flow_of(&statement.flow) else { return };
        if let Some(first) = self.sent.get(&flow) {
            let message = format!("flow {} already has a sender{}", self.id(flow), on_line(first.line));
            self.found.error(&statement.place, message, "1 sender per flow", "declare a second flow");
            return;
        }
        self.sent.insert(flow, statement.place.clone());
        self.model.sends.push(SendModel { flow, written: statement.clone() });
    }

    fn id(&self, flow: usize) -> FlowId {
        self.model.flows[flow].id
    }

    /// Receivers and relays: exactly one of them at every end of a flow. A relay without `on` is at all of them.
    pub(super) fn sinks(&mut self, test: &Statements) {
        let mut sinks: BTreeMap<(usize, NodeIndex), Sink> = BTreeMap::new();
        let mut fed = BTreeSet::new();
        // Where tasks of these are is not known.
        let mut doubtful = BTreeSet::new();
        let mut whole = true;
        for receive in &test.receives {
            let flow = self.flow_of(&receive.flow);
            whole &= flow.is_some();
            let Some(flow) = flow else { continue };
            fed.insert(flow);
            let taken = self.sink(&mut sinks, flow, "receiver", &receive.place, &receive.on);
            doubtful.extend(taken.is_none().then_some(flow));
            for on in taken.unwrap_or_default() {
                self.model.receives.push(ReceiveModel { flow, on });
            }
        }
        for relay in &test.relays {
            let flow = self.flow_of(&relay.flow);
            whole &= flow.is_some();
            let Some(flow) = flow else { continue };
            fed.insert(flow);
            let taken = self.sink(&mut sinks, flow, "relay", &relay.place, &relay.on);
            doubtful.extend(taken.is_none().then_some(flow));
            for on in taken.unwrap_or_default() {
                self.model.flows[flow].relayed = true;
                let (place, faults) = (relay.place.clone(), self.faults(relay, flow, on));
                let (vl, through) = (relay.vl.clone(), relay.through.clone());
                self.model.relays.push(RelayModel { place, flow, on, vl, through, faults });
            }
        }
        let sends = self.model.sends.clone();
        for send in sends.iter().filter(|send| whole && !doubtful.contains(&send.flow)) {
            let id = self.id(send.flow);
            if !fed.contains(&send.flow) {
                let message = format!("flow {id} is sent but neither received nor relayed");
                let cure = format!("add <receive flow=\"{id}\"/> or <relay flow=\"{id}\"/>");
                self.found.error(&send.place, message, "", cure);
                continue;
            }
            let Some((_, to)) = self.model.flows[send.flow].ends.clone() else { continue };
            for node in to.iter().filter(|node| !sinks.contains_key(&(send.flow, **node))) {
                let message = format!("flow {id} is not received on \"{}\"", self.topology.name(*node));
                let cure = format!("write one <receive flow=\"{id}\"/> without on; it receives everywhere");
                self.found.error(&send.place, message, "", cure);
            }
        }
    }

    /// The ends of the flow that a task takes: the one it names, or all; `None` where it names none of them.
    fn sink(
        &mut self,
        sinks: &mut BTreeMap<(usize, NodeIndex), Sink>,
        flow: usize,
        what: &'static str,
        place: &Place,
        on: &Option<Maybe<String>>,
    ) -> Option<Vec<NodeIndex>> {
        let id = self.id(flow);
        let (_, to) = self.model.flows[flow].ends.clone()?;
        let taken = match on {
            None => to.to_vec(),
            Some(None) => return None,
            Some(Some(name)) => {
                let node = self.topology.end_system(name, self.found)?;
                if !to.contains(&node) {
                    let ends: Vec<&str> = to.iter().map(|node| self.topology.name(*node)).collect();
                    let message = format!("{} is not where flow {id} ends", name.named());
                    let cure = format!("write on=\"{}\" or leave it out", ends.join("\" or on=\""));
                    self.found.error(place, message, "", cure);
                    return None;
                }
                vec![node]
            }
        };
        for node in &taken {
            if let Some(first) = sinks.get(&(flow, *node)) {
                let message = format!("flow {id} already has a {}{}", first.what, on_line(first.line));
                self.found.error(place, message, "1 receiver or relay per flow", "keep one of the two");
                return None;
            }
        }
        sinks.extend(taken.iter().map(|node| ((flow, *node), Sink { what, line: place.line })));
        Some(taken)
    }

    fn faults(&mut self, relay: &RelayStatement, flow: usize, on: NodeIndex) -> Vec<FaultModel> {
        let faults: Vec<FaultModel> =
            relay.faults.iter().filter_map(|fault| self.fault(fault, flow, on)).collect();
        // First and last sequence number a fault touches: a swap also touches the successor.
        let mut touched: Vec<(u64, u64, &FaultModel)> = Vec::new();
        for fault in &faults {
            let after = u64::from(fault.kind == FaultKind::Reorder);
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

    fn fault(&mut self, fault: &FaultStatement, flow: usize, on: NodeIndex) -> Option<FaultModel> {
        let kind = fault.kind.as_ref()?;
        let misdirect = kind.value == "misdirect";
        if !misdirect && fault.to.is_some() {
            let cure = "remove to=\"…\" or write kind=\"misdirect\"";
            self.found.error(&fault.place, "only a misdirected message has a to", "", cure);
        }
        let kind = match kind.value.as_str() {
            "loss" => FaultKind::Loss,
            "duplicate" => FaultKind::Duplicate,
            "reorder" => FaultKind::Reorder,
            "corrupt" => FaultKind::Corrupt,
            _ => FaultKind::Misdirect { to: self.misdirect_target(fault, flow, on)? },
        };
        let sequences = fault.sequences.clone()?;
        Some(FaultModel { place: fault.place.clone(), kind, sequences })
    }

    fn misdirect_target(&mut self, fault: &FaultStatement, flow: usize, on: NodeIndex) -> Option<NodeIndex> {
        let Some(to) = &fault.to else {
            let cure = "add to=\"…\" with a third end system";
            self.found.error(&fault.place, "a misdirected message needs a to", "", cure);
            return None;
        };
        let to = to.as_ref()?;
        let node = self.topology.end_system(to, self.found)?;
        let (from, receivers) = self.model.flows[flow].ends.clone()?;
        if node == from || receivers.contains(&node) {
            let message = format!("{} is an end of flow {} itself", to.named(), self.id(flow));
            let cure = "name a third end system, or else nobody can tell it was misdirected";
            self.found.error(&fault.place, message, "", cure);
            return None;
        }
        let ways = [NetworkId::A, NetworkId::B].map(|network| self.topology.reached(on, network).route(node));
        self.ambiguous |= ways.iter().flatten().any(|hops| self.topology.is_ambiguous(hops));
        if ways == [None, None] && self.topology.links_whole {
            let message = format!("{} cannot be reached from the relay", to.named());
            self.found.error(&fault.place, message, "", "name an end system in the same network");
        }
        Some(node)
    }

    pub(super) fn inject(&mut self, statement: &InjectStatement) {
        let on = statement.on.as_ref().and_then(|name| self.topology.end_system(name, self.found));
        let to = statement.to.as_ref().and_then(|name| self.topology.end_system(name, self.found));
        let Some((on, to)) = on.zip(to) else { return };
        let [a, b] = self.reach(&statement.place, &(on, Rc::new([to])), &[]);
        let reach = if a.linked || !b.linked { a } else { b };
        if !reach.missing.is_empty() && self.topology.links_whole {
            self.no_route(&statement.place, on, to);
        }
        let route = reach.routes.into_iter().next().map(Rc::new);
        self.model.injects.push(InjectModel { on, to, route, written: statement.clone() });
    }

    pub(super) fn remote_log(&mut self, statement: &RemoteLogStatement) {
        let on = statement.on.as_ref().and_then(|name| self.topology.end_system(name, self.found));
        let to = statement.to.as_ref().and_then(|name| self.topology.end_system(name, self.found));
        let (Some((on, to)), Some((record, records))) =
            (on.zip(to), statement.record.as_ref().zip(statement.records.as_ref()))
        else {
            return;
        };
        if let Some(first) = self.model.remote_logs.iter().find(|log| log.on == on) {
            let name = self.topology.name(on);
            let message = format!("\"{name}\" already has a <remote-log>{}", on_line(first.place.line));
            self.found.error(&statement.place, message, "1 per end system", "keep one of the two");
            return;
        }
        let (_, longest) = payload_range(Protocol::Udp);
        if u64::from(records.value) * record.value > longest.into() {
            let message = format!("{} of {} do not fit into one frame", records.named(), record.named());
            let cure = "write fewer records in a frame, or shorter ones";
            self.found.error(&statement.place, message, format!("{longest}B"), cure);
            return;
        }
        let [a, b] = self.reach(&statement.place, &(on, Rc::new([to])), &[]);
        let reach = if a.linked || !b.linked { a } else { b };
        if !reach.missing.is_empty() && self.topology.links_whole {
            self.no_route(&statement.place, on, to);
        }
        let Some(route) = reach.routes.into_iter().next().map(Rc::new) else { return };
        let (place, records) = (statement.place.clone(), records.value);
        #[expect(clippy::cast_possible_truncation, reason = "no longer than a frame")]
        let record = record.value as u32;
        self.model.remote_logs.push(RemoteLogModel { place, on, to, record, records, route });
    }

    fn no_route(&mut self, place: &Place, from: NodeIndex, to: NodeIndex) {
        let (from, to) = (self.topology.name(from), self.topology.name(to));
        let message = format!("there is no route from \"{from}\" to \"{to}\"");
        self.found.error(place, message, "", "add the link that joins their parts of the network");
    }

    pub(super) fn capture(&mut self, statement: &CaptureStatement) {
        let (Some(on), Some(snap)) = (&statement.on, &statement.snap) else { return };
        let Some(node) = self.topology.node(on, self.found) else { return };
        if self.topology.is_hub(node) {
            let message = format!("{} is a hub", on.named());
            self.found.error(&statement.place, message, "", "capture at one of the end systems it joins");
        }
        if let Some(first) = self.model.captures.iter().find(|capture| capture.on == node) {
            let message = format!("{} already has a capture{}", on.named(), on_line(first.place.line));
            self.found.error(&statement.place, message, "1 capture per node", "keep one of the two");
            return;
        }
        let snap = u32::try_from(snap.value).unwrap_or(u32::MAX);
        self.model.captures.push(CaptureModel { on: node, snap, place: statement.place.clone() });
    }

    /// A flow nobody sends would be a row of zeros in the report.
    pub(super) fn unsent(&mut self, test: &Statements) {
        let whole = test.sends.iter().all(|send| send.flow.is_some());
        for (index, flow) in self.model.flows.iter().enumerate() {
            if whole && !self.sent.contains_key(&index) {
                let message = format!("flow {} is never sent", flow.id);
                let cure = format!("add <send flow=\"{}\" …/> to <tasks> or remove the flow", flow.id);
                self.found.error(&flow.place, message, "", cure);
            }
        }
    }
}
