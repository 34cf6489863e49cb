//! The statements with every reference resolved: flows know their route, tasks know their flow.
//!
//! What could not be resolved was reported and is left out, so the checks of a sweep point see only whole
//! things.

mod resolver;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

use wg_frame::time::Span;

use crate::campaign::{FaultKind, FlowId, Frer, Hop, Protocol, Route, Turn, VlanTag};
use crate::diagnostic::{Findings, Place};
use crate::network::{Attachment, NetworkId, NodeIndex, SwitchChange};
use crate::reader::{Maybe, Sourced};
use crate::statements::{Carriage, InjectStatement, SendStatement, Statements};
use crate::topology::Topology;
pub(crate) use resolver::Resolver;

#[derive(Clone, Debug)]
pub(crate) struct FlowModel {
    pub(crate) place: Place,
    pub(crate) id: FlowId,
    pub(crate) protocol: Maybe<Protocol>,
    /// The sender and its receivers, at least one.
    pub(crate) ends: Option<(NodeIndex, Rc<[NodeIndex]>)>,
    pub(crate) deadline: Maybe<Span>,
    pub(crate) bag: Maybe<Span>,
    pub(crate) carriage: Rc<Carriage>,
    /// Ports' windows set by hand.
    pub(crate) windows: Rc<[HandSet]>,
    /// By network.
    reach: Rc<[Reach; 2]>,
    /// Its routes are those of member streams; `None` also where `<frer>` was refused.
    pub(crate) frer: Option<Frer>,
    /// It has a `<frer>`.
    pub(crate) is_copied: bool,
    pub(crate) relayed: bool,
    /// Compares clocks; no flow under test.
    pub(crate) exchange: bool,
}

/// A flow on one of the networks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// All its ends have a link there.
    pub(crate) linked: bool,
    /// To each receiver that can be reached, in their order.
    pub(crate) routes: Vec<Route>,
    /// The directed links of all routes, each once.
    pub(crate) tree: Vec<Hop>,
    /// Receivers without a route.
    pub(crate) missing: Vec<NodeIndex>,
}

#[derive(Clone, Debug)]
pub(crate) struct HandSet {
    pub(crate) place: Place,
    pub(crate) at: Attachment,
    pub(crate) offset: Sourced<Span>,
    pub(crate) length: Maybe<Span>,
    pub(crate) named: String,
}

impl FlowModel {
    /// The protocol that frames of `protocol` of this flow have the length of.
    pub(crate) fn sized_as(&self, protocol: Protocol) -> Protocol {
        crate::wire::sized_as(protocol, self.carriage.number_within)
    }

    /// The networks it travels on. A virtual link takes both where it can, anything else one.
    pub(crate) fn used(&self) -> impl Iterator<Item = (NetworkId, &Reach)> {
        let [a, b] = &*self.reach;
        let rate_constrained = self.protocol.as_ref().is_some_and(|protocol| protocol.value == Protocol::Rc);
        let (on_a, on_b) = match self.carriage.networks {
            Some(None) => (true, true),
            Some(Some(network)) => (network == NetworkId::A, network == NetworkId::B),
            None if rate_constrained && a.linked && b.linked => (true, true),
            None => (a.linked || !b.linked, b.linked && !a.linked),
        };
        [(on_a, NetworkId::A, a), (on_b, NetworkId::B, b)]
            .into_iter()
            .filter_map(|(used, network, reach)| used.then_some((network, reach)))
    }

    /// Whether its only receiver is its sender.
    pub(crate) fn is_loopback(&self) -> bool {
        self.ends.as_ref().is_some_and(|(from, to)| to[..] == [*from])
    }

    /// The directed links it takes, on all its networks.
    pub(crate) fn hops(&self) -> impl Iterator<Item = Hop> + '_ {
        self.used().flat_map(|(_, reach)| reach.tree.iter().copied())
    }

    /// Whether its way is known; a loopback has none.
    pub(crate) fn has_way(&self) -> bool {
        self.is_loopback() || self.hops().next().is_some()
    }

    pub(crate) fn is(&self, protocol: Protocol) -> bool {
        self.protocol.as_ref().is_some_and(|own| own.value == protocol)
    }

    /// 802.1Q tag of its frames. Virtual links and time-triggered frames carry none.
    pub(crate) fn tag(&self) -> Option<VlanTag> {
        let (id, priority) = (&self.carriage.vlan, &self.carriage.priority);
        let untagged = self.is(Protocol::Rc) || self.is(Protocol::Tt);
        if untagged || (id.is_none() && priority.is_none()) {
            return None;
        }
        Some(VlanTag {
            id: id.as_ref().map_or(0, |id| id.value),
            priority: priority.as_ref().map_or(0, |priority| priority.value),
        })
    }

    /// Differentiated services code point of its packets; 0 where it has none.
    pub(crate) fn dscp(&self) -> u8 {
        let has_packets = self.is(Protocol::Udp) || self.is(Protocol::Be);
        self.carriage.dscp.as_ref().filter(|_| has_packets).map_or(0, |dscp| dscp.value)
    }
}

/// A sender whose flow is known.
#[derive(Clone, Debug)]
pub(crate) struct SendModel {
    /// Index into [`Model::flows`].
    pub(crate) flow: usize,
    pub(crate) written: SendStatement,
}

impl Deref for SendModel {
    type Target = SendStatement;
    fn deref(&self) -> &SendStatement {
        &self.written
    }
}

impl Deref for InjectModel {
    type Target = InjectStatement;
    fn deref(&self) -> &InjectStatement {
        &self.written
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveModel {
    pub(crate) flow: usize,
    pub(crate) on: NodeIndex,
}

#[derive(Clone, Debug)]
pub(crate) struct RemoteLogModel {
    pub(crate) place: Place,
    pub(crate) on: NodeIndex,
    pub(crate) to: NodeIndex,
    pub(crate) record: u32,
    pub(crate) records: u32,
    pub(crate) route: Rc<Route>,
}

#[derive(Clone, Debug)]
pub(crate) struct CaptureModel {
    pub(crate) on: NodeIndex,
    pub(crate) snap: u32,
    place: Place,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultModel {
    pub(crate) place: Place,
    pub(crate) kind: FaultKind,
    pub(crate) sequences: Sourced<Vec<(u32, u32)>>,
}

#[derive(Clone, Debug)]
pub(crate) struct RelayModel {
    pub(crate) place: Place,
    pub(crate) flow: usize,
    pub(crate) on: NodeIndex,
    /// As written; the inner `None` could not be read.
    pub(crate) vl: Option<Maybe<u16>>,
    pub(crate) through: Maybe<Turn>,
    pub(crate) faults: Vec<FaultModel>,
}

/// An injector whose ends are known.
#[derive(Clone, Debug)]
pub(crate) struct InjectModel {
    pub(crate) on: NodeIndex,
    pub(crate) to: NodeIndex,
    /// Absent where there is none, which was reported.
    pub(crate) route: Option<Rc<Route>>,
    pub(crate) written: InjectStatement,
}

/// A test at one point of its sweep.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) flows: Vec<FlowModel>,
    pub(crate) sends: Vec<SendModel>,
    pub(crate) receives: Vec<ReceiveModel>,
    pub(crate) remote_logs: Vec<RemoteLogModel>,
    pub(crate) captures: Vec<CaptureModel>,
    pub(crate) relays: Vec<RelayModel>,
    pub(crate) injects: Vec<InjectModel>,
    /// Rate of every link, where an axis sets it.
    pub(crate) rate: Maybe<u64>,
    /// What axes change in the switches.
    pub(crate) switches: SwitchChange,
    /// Flows by number, as indices.
    by_id: Rc<BTreeMap<FlowId, usize>>,
    /// By index of a flow that is relayed: indices into `relays`.
    relays_of: Rc<BTreeMap<usize, Vec<usize>>>,
    /// Every flow could be read, so an unknown flow is a mistake and not a consequence of one.
    pub(crate) flows_whole: bool,
}

impl Model {
    pub(crate) fn resolve(test: &Statements, topology: &Topology, found: &mut Findings) -> Self {
        let model = Self {
            flows: Vec::new(),
            sends: Vec::new(),
            receives: Vec::new(),
            remote_logs: Vec::new(),
            captures: Vec::new(),
            relays: Vec::new(),
            injects: Vec::new(),
            rate: None,
            switches: SwitchChange::default(),
            by_id: Rc::default(),
            relays_of: Rc::default(),
            flows_whole: true,
        };
        let mut resolver = Resolver {
            topology,
            found,
            by_id: BTreeMap::new(),
            sent: BTreeMap::new(),
            ambiguous: false,
            model,
        };
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
        for log in &test.remote_logs {
            resolver.remote_log(log);
        }
        for capture in &test.captures {
            resolver.capture(capture);
        }
        resolver.unsent(test);
        if resolver.ambiguous {
            topology.report_loops(resolver.found);
        }
        let Resolver { by_id, mut model, .. } = resolver;
        model.by_id = Rc::new(by_id);
        let mut relays_of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, relay) in model.relays.iter().enumerate() {
            relays_of.entry(relay.flow).or_default().push(number);
        }
        model.relays_of = Rc::new(relays_of);
        model
    }

    /// Index of the flow under test with this number.
    pub(crate) fn flow_index(&self, id: FlowId) -> Option<usize> {
        self.by_id.get(&id).copied().filter(|flow| !self.flows[*flow].exchange)
    }

    /// The relays of a flow.
    pub(crate) fn relays_of(&self, flow: usize) -> impl Iterator<Item = &RelayModel> {
        self.relays_of.get(&flow).into_iter().flatten().map(|relay| &self.relays[*relay])
    }
}
