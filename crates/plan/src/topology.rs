//! The network under test: names, ports, addresses, and the one route between any two end systems.
//!
//! COTS switches forward without a spanning tree here, so the switches must form a tree; then the route is
//! unique and a frame can never circle. The road not taken is IEEE 802.1D: it would block links behind the
//! engineer's back and make the measured path a matter of bridge identifiers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wg_frame::time::Span;

use crate::diagnostic::{Findings, Place};
use crate::network::{
    Attachment, HostModel, Link, Network, NetworkId, Node, NodeIndex, NodeKind, SwitchModel,
};
use crate::reader::Sourced;
use crate::statements::{End, LinkStatement, NodeStatement, Statements};

/// End systems of one test: each is a network namespace with a program of its own.
const MOST_END_SYSTEMS: usize = 250;
/// Switches of one test.
const MOST_SWITCHES: usize = 250;

/// Ports of one switch.
pub(crate) const MOST_PORTS: u16 = 256;

/// The network with its names resolved.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    pub(crate) network: Network,
    names: BTreeMap<String, NodeIndex>,
    neighbours: Vec<Vec<(NodeIndex, Hop)>>,
    /// Per link: the statement it came from.
    pub(crate) link_places: Vec<Place>,
    /// Every node could be read, so an unknown name is a mistake and not a consequence of one.
    nodes_whole: bool,
    /// Every link could be read, so a missing route is a mistake and not a consequence of one.
    pub(crate) links_whole: bool,
}

/// One direction of one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hop {
    /// Index into [`Network::links`].
    pub(crate) link: usize,
    /// True from `ends[0]` to `ends[1]`.
    pub(crate) forward: bool,
}

impl Topology {
    pub(crate) fn build(test: &Statements, found: &mut Findings) -> Self {
        let mut topology = Self {
            network: Network { nodes: Vec::new(), links: Vec::new() },
            names: BTreeMap::new(),
            neighbours: Vec::new(),
            link_places: Vec::new(),
            nodes_whole: true,
            links_whole: true,
        };
        let mut places = Vec::new();
        for statement in &test.nodes {
            topology.add_node(statement, &mut places, found);
        }
        topology.check_counts(&test.place, found);
        let ends: Vec<_> = test.links.iter().map(|link| topology.resolve_ends(link, found)).collect();
        let ends = topology.number_ports(&test.links, ends, found);
        for (statement, ends) in test.links.iter().zip(ends) {
            topology.add_link(statement, ends, found);
        }
        topology.check_connected(&places, found);
        topology
    }

    fn add_node(&mut self, statement: &NodeStatement, places: &mut Vec<Place>, found: &mut Findings) {
        let Some(name) = &statement.name else {
            self.nodes_whole = false;
            return;
        };
        if let Some(first) = self.names.get(&name.value) {
            let first = places.get(usize::from(*first)).map_or(0, |place: &Place| place.line);
            let message = format!("{} is already the name of a node{}", name.named(), on_line(first));
            found.error(&statement.place, message, "", "give every node a name of its own");
            return;
        }
        let Ok(index) = NodeIndex::try_from(self.network.nodes.len()) else { return };
        let kind = match &statement.switch {
            None => NodeKind::EndSystem { host: HostModel::default() },
            Some(buffer) => NodeKind::Switch(SwitchModel {
                processing_delay: Span::from_micros(2),
                ..SwitchModel::cots(buffer.as_ref().map_or(0, |b| b.value))
            }),
        };
        self.network.nodes.push(Node::new(index, name.value.clone(), kind));
        self.neighbours.push(Vec::new());
        places.push(statement.place.clone());
        self.names.insert(name.value.clone(), index);
    }

    fn check_counts(&self, place: &Place, found: &mut Findings) {
        let ends = self.network.nodes.iter().filter(|node| node.is_end_system()).count();
        let switches = self.network.nodes.len() - ends;
        if ends > MOST_END_SYSTEMS {
            let message = format!("the network has {ends} end systems");
            found.error(place, message, MOST_END_SYSTEMS.to_string(), "split the test");
        }
        if switches > MOST_SWITCHES {
            let message = format!("the network has {switches} switches");
            found.error(place, message, MOST_SWITCHES.to_string(), "split the test");
        }
    }

    fn resolve_ends(&self, link: &LinkStatement, found: &mut Findings) -> Option<[NodeIndex; 2]> {
        let [a, b] = link.ends.as_ref()?;
        let mut index = |end: &End| {
            let known = self.names.get(&end.node).copied();
            if known.is_none() && self.nodes_whole {
                let message = format!("there is no node \"{}\"", end.node);
                found.error(&link.place, message, "", self.cure_for_name(&end.node, false));
            }
            known
        };
        let (a, b) = (index(a), index(b));
        let (a, b) = (a?, b?);
        if a == b {
            let message = "the link joins a node to itself";
            found.error(&link.place, message, "", "name two different nodes");
            return None;
        }
        Some([a, b])
    }

    /// Explicit ports first, then the others in the order of the file, each the lowest that is free.
    fn number_ports(
        &mut self,
        links: &[LinkStatement],
        ends: Vec<Option<[NodeIndex; 2]>>,
        found: &mut Findings,
    ) -> Vec<Option<[Attachment; 2]>> {
        let mut taken: BTreeMap<Attachment, u32> = BTreeMap::new();
        let mut ports = vec![[None::<u16>; 2]; links.len()];
        let mut refused = BTreeSet::new();
        for explicit in [true, false] {
            for (number, (link, nodes)) in links.iter().zip(&ends).enumerate() {
                let (Some(nodes), Some(stated)) = (nodes, &link.ends) else { continue };
                for side in 0..2 {
                    if stated[side].port.is_some() != explicit {
                        continue;
                    }
                    let node = nodes[side];
                    let port = match stated[side].port {
                        Some(port) => port,
                        None if self.is_end_system(node) => 1,
                        None => {
                            let free = |port: &u16| !taken.contains_key(&Attachment { node, port: *port });
                            let Some(port) = (1..=MOST_PORTS).find(free) else {
                                let message = format!("switch \"{}\" has no free port", self.name(node));
                                let cure = "spread the links over several switches";
                                found.error(&link.place, message, format!("{MOST_PORTS} ports"), cure);
                                refused.insert(number);
                                continue;
                            };
                            port
                        }
                    };
                    let attachment = Attachment { node, port };
                    if let Some(first) = taken.get(&attachment) {
                        self.port_taken(link, attachment, *first, found);
                        refused.insert(number);
                    } else if self.is_end_system(node) && port != 1 {
                        let message = format!("end system \"{}\" has no port {port}", self.name(node));
                        found.error(&link.place, message, "port 1 only", "leave the port out");
                        refused.insert(number);
                    } else {
                        taken.insert(attachment, link.place.line);
                        ports[number][side] = Some(port);
                    }
                }
            }
        }
        ends.iter()
            .zip(ports)
            .enumerate()
            .map(|(number, (nodes, ports))| {
                let ([a, b], [Some(pa), Some(pb)]) = ((*nodes)?, ports) else { return None };
                let ends = [Attachment { node: a, port: pa }, Attachment { node: b, port: pb }];
                (!refused.contains(&number)).then_some(ends)
            })
            .collect()
    }

    fn port_taken(&self, link: &LinkStatement, at: Attachment, first: u32, found: &mut Findings) {
        let name = self.name(at.node);
        if self.is_end_system(at.node) {
            let message = format!("end system \"{name}\" already has a link{}", on_line(first));
            let cure = "join further nodes through a switch";
            found.error(&link.place, message, "1 link per end system", cure);
        } else {
            let message =
                format!("port {} of switch \"{name}\" is taken by the link{}", at.port, on_line(first));
            let cure = "use another port or leave the port out";
            found.error(&link.place, message, "1 link per port", cure);
        }
    }

    fn add_link(&mut self, link: &LinkStatement, ends: Option<[Attachment; 2]>, found: &mut Findings) {
        let Some(ends) = ends else {
            self.links_whole = false;
            return;
        };
        if let Some((_, hops)) = self.route(ends[0].node, ends[1].node) {
            self.report_loop(link, &ends, &hops, found);
            return;
        }
        let [a, b] = ends.map(|end| end.node);
        let number = self.network.links.len();
        self.neighbours[usize::from(a)].push((b, Hop { link: number, forward: true }));
        self.neighbours[usize::from(b)].push((a, Hop { link: number, forward: false }));
        // A link that is only mis-rated still carries routes; the value is never used, as the test is refused.
        self.network.links.push(Link {
            ends,
            rate_bps: link.rate.as_ref().map_or(1_000_000_000, |rate| rate.value),
            delay: link.delay.as_ref().map_or(Span::ZERO, |delay| delay.value),
            network: NetworkId::A,
        });
        self.link_places.push(link.place.clone());
    }

    fn report_loop(&self, link: &LinkStatement, ends: &[Attachment; 2], hops: &[Hop], found: &mut Findings) {
        let names = [self.name(ends[0].node), self.name(ends[1].node)];
        if hops.len() == 1 {
            let first = self.link_places[hops[0].link].line;
            let message = format!(
                "\"{}\" and \"{}\" are already joined by the link{}",
                names[0],
                names[1],
                on_line(first)
            );
            found.error(&link.place, message, "1 link between two nodes", "remove one of the two links");
            return;
        }
        let mut way = vec![names[0]];
        let mut lines = Vec::new();
        let mut at = ends[0].node;
        for hop in hops {
            let link = &self.network.links[hop.link];
            at = if link.ends[0].node == at { link.ends[1].node } else { link.ends[0].node };
            way.push(self.name(at));
            lines.push(self.link_places[hop.link].line.to_string());
        }
        way.push(names[0]);
        lines.push(link.place.line.to_string());
        let lines = if link.place.line == 0 {
            String::new()
        } else {
            format!(", links on lines {}", lines.join(", "))
        };
        let message = format!("the link closes a forwarding loop {}{lines}", way.join(" - "));
        let cure = "remove one of these links; switches of this kind need a tree";
        found.error(&link.place, message, "", cure);
    }

    fn check_connected(&self, places: &[Place], found: &mut Findings) {
        if !self.links_whole {
            return;
        }
        let linked: BTreeSet<NodeIndex> =
            self.network.links.iter().flat_map(|link| link.ends.map(|end| end.node)).collect();
        for (index, place) in places.iter().enumerate() {
            if !linked.contains(&(index as NodeIndex)) {
                let cure =
                    format!("add <link between=\"{} …\" …/> or remove it", self.network.nodes[index].name);
                found.error(place, "the node has no link", "", cure);
            }
        }
    }

    pub(crate) fn name(&self, node: NodeIndex) -> &str {
        &self.network.nodes[usize::from(node)].name
    }

    fn is_end_system(&self, node: NodeIndex) -> bool {
        self.network.nodes[usize::from(node)].is_end_system()
    }

    /// The end system a value names; anything else is reported, unless a broken node explains it.
    pub(crate) fn end_system(&self, name: &Sourced<String>, found: &mut Findings) -> Option<NodeIndex> {
        match self.names.get(&name.value) {
            Some(index) if self.is_end_system(*index) => Some(*index),
            Some(_) => {
                let message = format!("{} is a switch", name.named());
                found.error(&name.place, message, "", "name an end system; switches only forward");
                None
            }
            None => {
                if self.nodes_whole {
                    let message = format!("{} is no end system of this network", name.named());
                    found.error(&name.place, message, "", self.cure_for_name(&name.value, true));
                }
                None
            }
        }
    }

    fn cure_for_name(&self, name: &str, only_end_systems: bool) -> String {
        let mut nodes: Vec<&Node> =
            self.network.nodes.iter().filter(|node| !only_end_systems || node.is_end_system()).collect();
        let alike = |node: &&Node| node.name.eq_ignore_ascii_case(name);
        if let Some(node) = nodes.iter().find(|node| alike(node)) {
            return format!("write \"{}\", as it is spelt in <network>", node.name);
        }
        let many = nodes.len() > 8;
        nodes.truncate(8);
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        if names.is_empty() {
            return "declare it in <network>".to_owned();
        }
        let more = if many { ", …" } else { "" };
        format!("write one of {}{more} or declare it in <network>", names.join(", "))
    }

    /// The route: nodes, first to last, and the directed links between them. `None` without one.
    pub(crate) fn route(&self, from: NodeIndex, to: NodeIndex) -> Option<(Vec<NodeIndex>, Vec<Hop>)> {
        let mut reached: BTreeMap<NodeIndex, (NodeIndex, Hop)> = BTreeMap::new();
        let mut waiting = VecDeque::from([from]);
        while let Some(at) = waiting.pop_front() {
            if at == to {
                break;
            }
            if at != from && self.is_end_system(at) {
                continue;
            }
            for (next, hop) in &self.neighbours[usize::from(at)] {
                if *next != from && !reached.contains_key(next) {
                    reached.insert(*next, (at, *hop));
                    waiting.push_back(*next);
                }
            }
        }
        let (mut nodes, mut hops, mut at) = (vec![to], Vec::new(), to);
        while at != from {
            let (before, hop) = reached.get(&at)?;
            nodes.push(*before);
            hops.push(*hop);
            at = *before;
        }
        nodes.reverse();
        hops.reverse();
        Some((nodes, hops))
    }
}

/// ` on line 7`, or nothing for a test built in code.
pub(crate) fn on_line(line: u32) -> String {
    if line == 0 { String::new() } else { format!(" on line {line}") }
}
