//! Which way frames go: the one there is, the one a flow names, or the shortest where the test says so.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use super::Topology;
use super::loops::{REMEMBERED, Reached};
use crate::campaign::Hop;
use crate::diagnostic::{Findings, MOST_DIAGNOSTICS, Place, on_line};
use crate::network::{Attachment, NetworkId, NodeIndex, NodeKind};
use crate::reader::Sourced;
use crate::statements::{End, PathStatement};

impl Topology {
    pub(super) fn network_of(&self, link: u32) -> NetworkId {
        self.network.links[link as usize].network
    }

    /// Notes that a link joins two parts of a network, or closes a loop in one.
    pub(super) fn join(&mut self, link: u32, ends: &[Attachment; 2], network: NetworkId) {
        let [a, b] = ends.map(|end| self.loops.part(network, end.node));
        if a == b {
            self.loops.closing.push(link);
        }
        self.loops.parts[network as usize][usize::from(a)] = b;
    }

    /// Finds the links on cycles. A switch that floods what it does not know must not be on one.
    pub(super) fn find_cycles(&mut self, places: &[Place], found: &mut Findings) {
        if self.loops.closing.is_empty() {
            return;
        }
        for network in [NetworkId::A, NetworkId::B] {
            let cyclic = self.cyclic(network);
            self.loops.cyclic.extend(cyclic);
        }
        for (index, node) in self.network.nodes.iter().enumerate() {
            let NodeKind::Switch(switch) = &node.kind else { continue };
            let on_loop = self.leaving[index].iter().any(|hop| self.is_cyclic(hop.link));
            if switch.learning && on_loop {
                let message = format!("switch \"{}\" learns addresses and is on a loop", node.name);
                let cure = "write forwarding=\"static\": what a learning switch floods would circle for ever";
                found.error(&places[index], message, "static switches on loops", cure);
            }
        }
    }

    /// Links of a network that are on a cycle: those whose loss would leave their ends joined (Tarjan 1974).
    fn cyclic(&self, network: NetworkId) -> BTreeSet<u32> {
        let nodes = self.network.nodes.len();
        let (mut order, mut low, mut next) = (vec![0_u32; nodes], vec![0_u32; nodes], 1);
        let mut bridges = BTreeSet::new();
        for root in 0..nodes {
            if order[root] != 0 {
                continue;
            }
            (order[root], low[root]) = (next, next);
            next += 1;
            // Node, the link it was reached by, and how many of its links were looked at.
            let mut stack: Vec<(usize, Option<Hop>, usize)> = vec![(root, None, 0)];
            while let Some((node, by, at)) = stack.last_mut() {
                let (here, reached_by) = (*node, *by);
                let Some(hop) = self.leaving[here].get(*at).copied() else {
                    stack.pop();
                    if let Some(hop) = reached_by {
                        let above = usize::from(hop.from.node);
                        low[above] = low[above].min(low[here]);
                        if low[here] > order[above] {
                            bridges.insert(hop.link);
                        }
                    }
                    continue;
                };
                *at += 1;
                let back = reached_by.is_some_and(|by| by.link == hop.link);
                if back || self.network_of(hop.link) != network {
                    continue;
                }
                let there = usize::from(hop.to.node);
                if order[there] == 0 {
                    (order[there], low[there]) = (next, next);
                    next += 1;
                    stack.push((there, Some(hop), 0));
                } else {
                    low[here] = low[here].min(order[there]);
                }
            }
        }
        let links = (0..).zip(&self.network.links).filter(|(_, link)| link.network == network);
        links.map(|(number, _)| number).filter(|number| !bridges.contains(number)).collect()
    }

    fn is_cyclic(&self, link: u32) -> bool {
        self.loops.cyclic.contains(&link)
    }

    /// Whether any links of the network close a loop.
    pub(crate) fn has_loops(&self) -> bool {
        !self.loops.cyclic.is_empty()
    }

    /// Whether a route that nobody named is one of several, and no rule says which.
    pub(crate) fn is_ambiguous(&self, hops: &[Hop]) -> bool {
        !self.loops.shortest && hops.iter().any(|hop| self.is_cyclic(hop.link))
    }

    /// The shortest ways from one node over one network. Of several as short, the one that leaves each node by the link that
    /// comes first in the file, from the sender on.
    pub(crate) fn reached(&self, from: NodeIndex, network: NetworkId) -> Rc<Reached> {
        let mut remembered = self.loops.remembered.borrow_mut();
        if let Some(known) = remembered.get(&(from, network)) {
            return known.clone();
        }
        if remembered.len() >= REMEMBERED {
            remembered.clear();
        }
        let reached = Rc::new(self.search(from, network));
        remembered.insert((from, network), reached.clone());
        reached
    }

    fn search(&self, from: NodeIndex, network: NetworkId) -> Reached {
        let mut by = vec![None; self.network.nodes.len()];
        let mut waiting = VecDeque::from([from]);
        while let Some(at) = waiting.pop_front() {
            if at != from && self.is_end_system(at) {
                continue;
            }
            for hop in &self.leaving[usize::from(at)] {
                let next = hop.to.node;
                let slot = &mut by[usize::from(next)];
                if self.network_of(hop.link) == network && next != from && slot.is_none() {
                    *slot = Some(*hop);
                    waiting.push_back(next);
                }
            }
        }
        Reached { from, by }
    }

    /// The links of a way that a flow names.
    pub(crate) fn follow(
        &self,
        path: &PathStatement,
        (from, to): (NodeIndex, NodeIndex),
        network: NetworkId,
        found: &mut Findings,
    ) -> Option<Vec<Hop>> {
        let mut hops: Vec<Hop> = Vec::new();
        let mut passed = BTreeSet::from([from]);
        let mut leave_by = None;
        let mut at = from;
        let last = End { node: self.name(to).to_owned(), port: None };
        for end in path.via.as_ref()?.value.iter().chain([&last]) {
            let name = Sourced {
                value: end.node.clone(),
                attribute: "via",
                written: end.node.as_str().into(),
                place: path.place.clone(),
            };
            let next = self.node(&name, found)?;
            let joins = |hop: &&Hop| {
                hop.to.node == next
                    && self.network_of(hop.link) == network
                    && leave_by.is_none_or(|port| port == hop.from.port)
            };
            let links: Vec<&Hop> = self.leaving[usize::from(at)].iter().filter(joins).collect();
            let [hop] = links[..] else {
                self.report_step(path, (at, next), leave_by, links.len(), network, found);
                return None;
            };
            if !passed.insert(next) {
                let message = format!("the path passes \"{}\" twice", end.node);
                found.error(&path.place, message, "1 passage per node", "leave the detour out");
                return None;
            }
            hops.push(*hop);
            (at, leave_by) = (next, end.port);
        }
        Some(hops)
    }

    fn report_step(
        &self,
        path: &PathStatement,
        (at, next): (NodeIndex, NodeIndex),
        port: Option<u16>,
        links: usize,
        network: NetworkId,
        found: &mut Findings,
    ) {
        if !self.links_whole {
            return;
        }
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        let (at, next) = (self.name(at), self.name(next));
        let on_network = self.on_network(network);
        if links > 1 {
            let message = format!("{links} links lead from \"{at}\" to \"{next}\"{on_network}");
            let cure = format!("write the port it leaves by, for example \"{at}:1\"");
            found.error(&path.place, message, "1 link per step of a path", cure);
        } else {
            let message = format!("no link leads from \"{at}{port}\" to \"{next}\"{on_network}");
            let cure = "name every switch on the way in its order, the sender and the receiver left out";
            found.error(&path.place, message, "", cure);
        }
    }

    /// Says which links close loops, because a flow has several ways and none is stated.
    pub(crate) fn report_loops(&self, found: &mut Findings) {
        for &closing in self.loops.closing.iter().take(MOST_DIAGNOSTICS) {
            let link = &self.network.links[closing as usize];
            let place = &self.link_places[closing as usize];
            let names = link.ends.map(|end| self.name(end.node));
            let on_network = self.on_network(link.network);
            let Some(hops) = self.before(closing) else { continue };
            if let [only] = hops[..] {
                let first = on_line(self.link_places[only.link as usize].line);
                let message = format!(
                    "\"{}\" and \"{}\" are already joined{on_network} by the link{first}",
                    names[0], names[1]
                );
                let cure = "remove one of the two links, or say which flow takes which with <path>";
                found.error(place, message, "1 link between two nodes", cure);
                continue;
            }
            let mut way = vec![names[0]];
            way.extend(hops.iter().map(|hop| self.name(hop.to.node)));
            way.push(names[0]);
            let mut lines: Vec<String> =
                hops.iter().map(|hop| self.link_places[hop.link as usize].line.to_string()).collect();
            lines.push(place.line.to_string());
            let lines = if place.line == 0 {
                String::new()
            } else {
                format!(", links on lines {}", lines.join(", "))
            };
            let message = format!("the link closes a forwarding loop{on_network} {}{lines}", way.join(" - "));
            let cure = "remove one of these links, name the way of every flow over them with <path>, \
                        or write routing=\"shortest\" on <network>";
            found.error(place, message, "", cure);
        }
    }

    /// How the ends of a link were joined by the links before it.
    fn before(&self, link: u32) -> Option<Vec<Hop>> {
        let [from, to] = self.network.links[link as usize].ends.map(|end| end.node);
        let mut by: BTreeMap<NodeIndex, Hop> = BTreeMap::new();
        let mut waiting = VecDeque::from([from]);
        while let Some(at) = waiting.pop_front() {
            for hop in self.leaving[usize::from(at)].iter().filter(|hop| hop.link < link) {
                let next = hop.to.node;
                let here = self.network_of(hop.link) == self.network_of(link);
                if here && next != from && !by.contains_key(&next) {
                    by.insert(next, *hop);
                    waiting.push_back(next);
                }
            }
        }
        let (mut hops, mut at) = (Vec::new(), to);
        while at != from {
            let hop = *by.get(&at)?;
            hops.push(hop);
            at = hop.from.node;
        }
        hops.reverse();
        Some(hops)
    }
}
