//! Facts of the plan about a flow and one of its receivers.

use std::collections::BTreeMap;

use wg_plan::{FlowId, Network, NetworkId, NodeIndex, Route, Run, Send};

use super::doubts::Doubts;
use super::window::{Instant, Way};

/// Port number that stands for no port on network B; ports count from 1.
pub(super) const NO_PORT: u16 = 0;

/// Look-up tables of a plan for all flows of a run.
pub(super) struct Plan<'a> {
    pub(super) sends: BTreeMap<FlowId, Vec<&'a Send>>,
    /// Flow number of the answers, by flow and relaying receiver.
    relays: BTreeMap<(FlowId, NodeIndex), FlowId>,
    /// First port on network B of each node.
    ports_on_b: BTreeMap<NodeIndex, u16>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(network: &Network, run: &'a Run) -> Self {
        let on_b = network.links.iter().filter(|link| link.network == NetworkId::B);
        let ends = on_b.flat_map(|link| link.ends).map(|end| (end.node, end.port));
        let mut ports_on_b = BTreeMap::new();
        ends.for_each(|(node, port)| _ = ports_on_b.entry(node).or_insert(port));
        let relays = run.relays.iter().map(|relay| ((relay.flow, relay.on), relay.answers_as())).collect();
        Self { sends: run.sends_by_flow(), relays, ports_on_b }
    }
}

/// Facts of the plan about a flow and one of its receivers.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) id: FlowId,
    pub(super) from: NodeIndex,
    pub(super) to: NodeIndex,
    pub(super) relayed: bool,
    /// Flow number in records of the answers that this receiver sends back.
    pub(super) answered_as: Option<FlowId>,
    pub(super) deadline_ps: Option<i64>,
    /// Number of nodes on the longest path.
    pub(super) hops: u16,
    /// Nodes on the outward paths, ascending, with their positions.
    pub(super) places: Box<[(NodeIndex, u16)]>,
    /// Switch ports on the paths, in both directions; only for a multicast flow.
    pub(super) ports: Vec<(NodeIndex, u16)>,
    /// Ports of sender and receiver on network B, if the flow uses both networks.
    pub(super) second_ports: [u16; 2],
    /// Whether the flow uses both networks.
    pub(super) goes_two_ways: bool,
    /// Gaps in its records.
    pub(super) doubts: Doubts,
}

impl Facts {
    pub(super) fn new(plan: &Plan<'_>, flow: &wg_plan::Flow, to: NodeIndex) -> Self {
        let is_multicast = !flow.also_to.is_empty();
        let routes: Vec<&Route> =
            flow.routes.iter().filter(|route| !is_multicast || route.receiver() == Some(to)).collect();
        let hops = routes.iter().map(|route| route.hops.len() + 1).max().unwrap_or(1);
        let hops = u16::try_from(hops).unwrap_or(u16::MAX).min(Way::PLACES - 1);
        // A loopback has no route and one node.
        let mut places: BTreeMap<NodeIndex, u16> =
            flow.is_loopback().then_some((to, 0)).into_iter().collect();
        for route in &routes {
            for (place, node) in (0..hops).zip(route.nodes()) {
                // The receiver comes last on every path, however short.
                let place = if node == to && node != flow.from { hops - 1 } else { place };
                // Where paths of different lengths meet again, the longest one gives the position.
                places.entry(node).and_modify(|known| *known = place.max(*known)).or_insert(place);
            }
        }
        let hops_taken = routes.iter().filter(|_| is_multicast).flat_map(|route| &route.hops);
        let ports = hops_taken.flat_map(|hop| [hop.from, hop.to]).map(|end| (end.node, end.port)).collect();
        let second_ports = if flow.network.is_none() {
            [flow.from, to].map(|node| plan.ports_on_b.get(&node).copied().unwrap_or(NO_PORT))
        } else {
            [NO_PORT; 2]
        };
        Self {
            id: flow.id,
            from: flow.from,
            to,
            relayed: plan.relays.contains_key(&(flow.id, to)),
            answered_as: plan.relays.get(&(flow.id, to)).copied(),
            deadline_ps: flow.deadline.map(wg_frame::time::Span::as_picos),
            hops,
            places: places.into_iter().collect(),
            ports,
            second_ports,
            goes_two_ways: flow.network.is_none(),
            doubts: Doubts::default(),
        }
    }

    #[inline]
    pub(super) fn place(&self, node: NodeIndex) -> u16 {
        self.places.binary_search_by_key(&node, |(node, _)| *node).map_or(self.hops, |at| self.places[at].1)
    }

    /// The instant at which a message of the flow is delivered.
    pub(super) fn last_instant(&self) -> Instant {
        if self.relayed { Instant::BackRxApp } else { Instant::RxApp }
    }
}
