//! Division of a network into stages.
//!
//! The sending end of a channel is one vertex of a graph, its receiving end another. Frames lead from a sending end to
//! the receiving end of the channel, and from there to the sending ends of the ports that forward them. What depends on
//! each other in both directions is one component; the graph of components has no cycle, and its components, in the order
//! of their distance from the senders, are cut into stages of about the same work. So frames only ever go from a stage
//! to a later one.

use std::collections::{BTreeMap, BTreeSet};

use wg_core::queue::Capacity;
use wg_frame::ethernet::MacAddress;
use wg_plan::{Flow, FlowId, Network, NodeIndex, NodeKind, Protocol, Route, Run};

use crate::models::switch_config;
use crate::world::{CoreIndex, World};

/// Work for a message at its sender, for a frame at a port, at the ingress of a switch and at its receiver, in units that
/// only their ratios give a meaning.
const SENDING: u64 = 6;
const LEAVING: u64 = 3;
const ENTERING: u64 = 2;
const RECEIVING: u64 = 5;

/// The most stages of a network. Each further one has its own copy of the network, and less to do; more were not tried.
const MOST_STAGES: usize = 8;

/// The stages of a network.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stages {
    /// Their number, at least 2.
    pub(crate) count: usize,
    /// The stage of the sending end of each channel, with the port and the sending side of a host.
    pub(crate) near: Box<[u8]>,
    /// The stage of the receiving end of each channel, with the ingress of a switch and the receiving side of a host.
    pub(crate) far: Box<[u8]>,
    /// Whether frames may go from a stage to a later one, by the earlier and then the later.
    pub(crate) feeds: Vec<Vec<bool>>,
}

impl Stages {
    /// Divides a network into `most` stages or fewer; `None` if it cannot be divided.
    pub(crate) fn new(world: &World, network: &Network, run: &Run, most: usize) -> Option<Self> {
        if most < 2 || !is_divisible(world, run) {
            return None;
        }
        let mut graph = Graph::new(world.channels.len());
        let ways = Ways::new(network, run);
        graph.join_hosts(world, run);
        graph.join_switches(world, network);
        graph.lead(world, &ways);
        graph.join_faulty(world);
        let stages = graph.cut(&ways.work(world, run), most.min(MOST_STAGES));
        let (near, far): (Vec<u8>, Vec<u8>) = stages.chunks_exact(2).map(|ends| (ends[0], ends[1])).unzip();
        let count = 1 + usize::from(*stages.iter().max()?);
        let mut feeds = vec![vec![false; count]; count];
        for &(from, to) in &graph.edges {
            let (from, to) = (usize::from(stages[from]), usize::from(stages[to]));
            feeds[from][to] |= from < to;
        }
        (count > 1).then(|| Self { count, near: near.into(), far: far.into(), feeds })
    }
}

/// Whether what happens in a network depends on frames alone. Clocks, protocols of switches, incidents and hubs couple
/// nodes otherwise; background load ends when the last message has come; a capture is one file of several ports.
pub(crate) fn is_divisible(world: &World, run: &Run) -> bool {
    world.is_exact
        && world.hubs.is_empty()
        && world.synchronisers.is_empty()
        && run.ptp_domains.is_empty()
        && world.network_events.is_empty()
        && world.own_frames.is_empty()
        && world.injectors.is_empty()
        && world.sending > 0
        && world.senders.iter().all(|sender| sender.paced.is_none())
        && run.captures.is_empty()
        && !run.flows.iter().any(|flow| flow.addresses.mac.destination == Some(MacAddress::BROADCAST))
}

/// Whose frames take the same ways: those to a station, or those of a flow with an address of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    Station(NodeIndex),
    Flow(FlowId),
}

/// Channels by which frames enter a switch, and those by which they leave it.
type Crossing = (BTreeSet<usize>, BTreeSet<usize>);

/// The ways of all frames.
#[derive(Default)]
struct Ways {
    crossings: BTreeMap<(Whose, NodeIndex), Crossing>,
    /// Channels on the ways of each flow, there and back.
    of_flow: Vec<(FlowId, BTreeSet<usize>)>,
}

impl Ways {
    fn new(network: &Network, run: &Run) -> Self {
        let mut ways = Self::default();
        let returns: Vec<Flow> = run.returns().collect();
        for flow in run.flows.iter().chain(&returns) {
            let has_address = matches!(flow.protocol, Protocol::Rc | Protocol::Tt)
                || !flow.also_to.is_empty()
                || flow.addresses.mac.destination.is_some()
                || flow.frer.is_some();
            let mut channels = BTreeSet::new();
            for route in &flow.routes {
                ways.add(network, route, has_address.then_some(flow.id), &mut channels);
            }
            for relay in run.relays.iter().filter(|relay| relay.flow == flow.id && relay.vl.is_none()) {
                for route in flow.routes_to(relay.on) {
                    ways.add(network, &route.reversed(), None, &mut channels);
                }
                relay.detours.iter().for_each(|route| ways.add(network, route, None, &mut channels));
            }
            ways.of_flow.push((flow.id, channels));
        }
        for log in &run.remote_logs {
            ways.add(network, &log.route, None, &mut BTreeSet::new());
        }
        ways
    }

    fn add(
        &mut self,
        network: &Network,
        route: &Route,
        flow: Option<FlowId>,
        channels: &mut BTreeSet<usize>,
    ) {
        let Some(to) = route.receiver() else { return };
        let whose = flow.map_or(Whose::Station(to), Whose::Flow);
        let channel = |hop: &wg_plan::Hop| {
            let link = hop.link as usize;
            2 * link + usize::from(network.links[link].ends[0] != hop.from)
        };
        for hop in &route.hops {
            channels.insert(channel(hop));
            self.crossings.entry((whose, hop.to.node)).or_default().0.insert(channel(hop));
            self.crossings.entry((whose, hop.from.node)).or_default().1.insert(channel(hop));
        }
    }

    /// Work at both ends of each channel.
    fn work(&self, world: &World, run: &Run) -> Vec<u64> {
        let mut work = vec![1; 2 * world.channels.len()];
        let sends = run.sends_by_flow();
        for (flow, channels) in &self.of_flow {
            let messages: u64 = sends.get(flow).into_iter().flatten().map(|send| u64::from(send.count)).sum();
            for &channel in channels {
                let is_first = matches!(world.channels[channel ^ 1].to, CoreIndex::Host(_));
                work[2 * channel] += messages * (LEAVING + if is_first { SENDING } else { 0 });
                let ends = matches!(world.channels[channel].to, CoreIndex::Host(_));
                work[2 * channel + 1] += messages * if ends { RECEIVING } else { ENTERING };
            }
        }
        work
    }
}

/// Both ends of all channels, those in one component joined: 2n sends into channel n, 2n + 1 receives from it.
struct Graph {
    /// A vertex of the same component that stands for more of it; its own number for the one that stands for all.
    joined: Vec<usize>,
    edges: Vec<(usize, usize)>,
}

impl Graph {
    fn new(channels: usize) -> Self {
        let edges = (0..channels).map(|channel| (2 * channel, 2 * channel + 1)).collect();
        Self { joined: (0..2 * channels).collect(), edges }
    }

    fn find(&mut self, vertex: usize) -> usize {
        let mut vertex = vertex;
        while self.joined[vertex] != vertex {
            self.joined[vertex] = self.joined[self.joined[vertex]];
            vertex = self.joined[vertex];
        }
        vertex
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.joined[one.max(other)] = one.min(other);
    }

    fn join_all(&mut self, mut vertices: impl Iterator<Item = usize>) {
        if let Some(first) = vertices.next() {
            vertices.for_each(|vertex| self.join(first, vertex));
        }
    }

    /// The channels out of a host are one, and those into it. Both are one where what a host receives changes what it
    /// sends, or draws on what its sending draws on.
    fn join_hosts(&mut self, world: &World, run: &Run) {
        let relaying: BTreeSet<NodeIndex> = run.relays.iter().map(|relay| relay.on).collect();
        let to_itself: BTreeSet<NodeIndex> = run
            .flows
            .iter()
            .filter(|flow| flow.receivers().any(|to| to == flow.from))
            .map(|f| f.from)
            .collect();
        for host in &world.hosts {
            self.join_all(host.ports.iter().map(|port| 2 * port.channel()));
            self.join_all(host.ports.iter().map(|port| 2 * (port.channel() ^ 1) + 1));
            let couples =
                host.extra.as_ref().is_some_and(|extra| extra.log.is_some() || !extra.events.is_empty());
            if couples || relaying.contains(&host.node) || to_itself.contains(&host.node) {
                for port in host.ports.iter() {
                    self.join(2 * port.channel(), 2 * (port.channel() ^ 1) + 1);
                }
            }
        }
    }

    /// Ports with a common buffer are one, and so are the ingresses of a switch that identifies streams or learns
    /// addresses. A port that takes a frame back holds it until it has arrived.
    fn join_switches(&mut self, world: &World, network: &Network) {
        for switch in &world.switches {
            let out = || switch.ports.iter().map(|port| port.channel());
            let NodeKind::Switch(model) = &network.nodes[usize::from(switch.node)].kind else { continue };
            if switch_config(model).shared != Capacity::bytes(u64::MAX) {
                self.join_all(out().map(|channel| 2 * channel));
            }
            let learns = model.learning || model.address_table.is_some();
            if learns || switch.core.ingress().streams.is_some() || switch.core.has_streams() {
                self.join_all(out().map(|channel| 2 * (channel ^ 1) + 1));
            }
            if learns {
                for (into, from) in out().flat_map(|into| out().map(move |from| (into, from))) {
                    self.edges.push((2 * (into ^ 1) + 1, 2 * from));
                }
            }
        }
        for channel in 0..world.channels.len() {
            let end = network.links[channel / 2].ends[channel % 2];
            if crate::build::gives_way(&network.nodes[usize::from(end.node)], end.port) {
                self.join(2 * channel, 2 * channel + 1);
            }
        }
    }

    fn lead(&mut self, world: &World, ways: &Ways) {
        for ((_, node), (into, out)) in &ways.crossings {
            if matches!(world.nodes[usize::from(*node)].place, CoreIndex::Switch(_)) {
                // No frame leaves by the port it came by.
                let all = into.iter().flat_map(|i| out.iter().map(move |o| (*i, *o)));
                self.edges.extend(all.filter(|(i, o)| *o != i ^ 1).map(|(i, o)| (2 * i + 1, 2 * o)));
            }
        }
    }

    /// A channel with faults keeps frames that come out after others: it is one with the ports that they go to.
    fn join_faulty(&mut self, world: &World) {
        for (from, to) in self.edges.clone() {
            if world.channels[from / 2].extra.is_some() {
                self.join(from, to);
            }
        }
    }

    /// The stage of each vertex.
    fn cut(&mut self, work: &[u64], most: usize) -> Vec<u8> {
        let vertices = self.joined.len();
        let component = self.components();
        let count = component.iter().max().map_or(0, |last| last + 1);
        let mut heavy = vec![0_u64; count];
        (0..vertices).for_each(|vertex| heavy[component[vertex]] += work[vertex]);
        // Components are numbered along the edges: one pass in their order finds the distance of each.
        let mut edges: Vec<(usize, usize)> = self
            .edges
            .iter()
            .map(|(from, to)| (component[*from], component[*to]))
            .filter(|(a, b)| a != b)
            .collect();
        edges.sort_unstable();
        let mut distance = vec![0_usize; count];
        for (from, to) in edges {
            distance[to] = distance[to].max(distance[from] + 1);
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|one| (distance[*one], *one));
        let all = u128::from(heavy.iter().sum::<u64>()).max(1);
        let (mut done, mut stage_of, mut used) = (0_u128, vec![0_usize; count], BTreeSet::new());
        for one in order {
            let middle = done + u128::from(heavy[one]) / 2;
            stage_of[one] = ((middle * most as u128 / all) as usize).min(most - 1);
            used.insert(stage_of[one]);
            done += u128::from(heavy[one]);
        }
        let used: Vec<usize> = used.into_iter().collect();
        let number = |stage| u8::try_from(used.partition_point(|one| *one < stage)).unwrap_or(u8::MAX);
        component.iter().map(|one| number(stage_of[*one])).collect()
    }

    /// The strongly connected component of each vertex, numbered in an order that all edges follow (Kosaraju's two passes).
    fn components(&mut self) -> Vec<usize> {
        let vertices = self.joined.len();
        let (mut ahead, mut behind) = (vec![Vec::new(); vertices], vec![Vec::new(); vertices]);
        let edges: BTreeSet<(usize, usize)> =
            self.edges.clone().into_iter().map(|(from, to)| (self.find(from), self.find(to))).collect();
        for (from, to) in edges {
            ahead[from].push(to);
            behind[to].push(from);
        }
        let mut left = Vec::with_capacity(vertices);
        let mut seen = vec![false; vertices];
        for start in (0..vertices).filter(|vertex| self.joined[*vertex] == *vertex) {
            visit(start, &ahead, &mut seen, &mut left);
        }
        let mut component = vec![usize::MAX; vertices];
        let mut seen = vec![false; vertices];
        let mut count = 0;
        for start in left.into_iter().rev() {
            let mut members = Vec::new();
            visit(start, &behind, &mut seen, &mut members);
            members.iter().for_each(|member| component[*member] = count);
            count += usize::from(!members.is_empty());
        }
        (0..vertices).map(|vertex| component[self.find(vertex)]).collect()
    }
}

/// Visits all vertices reached from `start` that were not seen, depth first; appends them as it leaves them.
fn visit(start: usize, ahead: &[Vec<usize>], seen: &mut [bool], left: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[start], true) {
        return;
    }
    let mut path = vec![(start, 0)];
    while let Some((vertex, next)) = path.last_mut() {
        let Some(&to) = ahead[*vertex].get(*next) else {
            left.push(*vertex);
            path.pop();
            continue;
        };
        *next += 1;
        if !std::mem::replace(&mut seen[to], true) {
            path.push((to, 0));
        }
    }
}
