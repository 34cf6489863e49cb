//! The model as a graph for an analysis: a node is one class of one server, a hop is one flow at one node.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::Model;
use crate::rational::Rational;
use crate::regulators;

/// One class of one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// Index of the server.
    pub server: usize,
    /// Number of the class.
    pub class: u8,
    /// Hops by the link over which they come; those that begin here are separate.
    pub groups: Vec<Group>,
    /// Nodes of the same server that are served first.
    pub higher: Vec<usize>,
    /// Longest frame of the classes below, which may be on the wire already, or its uncuttable part.
    pub blocking: Rational,
    /// Whether its frames are sent in fragments when express ones wait.
    pub preemptable: bool,
}

/// Hops that come to a node over one link.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Server before that link; `None` for flows that begin here, or behind a regulator that does not keep them apart as
    /// the link did.
    pub from: Option<usize>,
    /// Indices of the hops.
    pub hops: Vec<usize>,
    /// Their longest frame.
    pub longest_frame: Rational,
    /// Whether it is one flow behind a regulator.
    pub is_regulated: bool,
}

/// One flow at one node.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    /// Index of the flow.
    pub flow: usize,
    /// Index of the node.
    pub node: usize,
    /// Index of the previous hop.
    pub before: Option<usize>,
    /// Indices of the next hops.
    pub after: Vec<usize>,
}

/// The graph of a model.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// All nodes, by server and class.
    pub nodes: Vec<Node>,
    /// All hops: those of a flow together, in the order of its steps.
    pub hops: Vec<Hop>,
    /// The first hop of each flow.
    pub first: Vec<usize>,
    /// Nodes in an order in which each comes after those on which it depends; mutually dependent nodes together.
    pub order: Vec<Vec<usize>>,
}

impl Layout {
    pub(crate) fn of(model: &Model) -> Self {
        let mut places: BTreeMap<(usize, u8), usize> = BTreeMap::new();
        for flow in &model.flows {
            for step in &flow.steps {
                places.insert((step.server, step.class), 0);
            }
        }
        let mut nodes = Vec::new();
        for ((server, class), place) in &mut places {
            *place = nodes.len();
            let higher = nodes.iter().enumerate().filter(|(_, node): &(usize, &Node)| node.server == *server);
            let higher = higher.map(|(index, _)| index).collect();
            let fragments = model.servers[*server].fragments.as_ref();
            let preemptable = fragments.is_some_and(|fragments| fragments.classes.contains(class));
            nodes.push(Node { server: *server, class: *class, higher, preemptable, ..Node::default() });
        }
        let (mut hops, mut first): (Vec<Hop>, Vec<usize>) = (Vec::new(), Vec::new());
        for (flow, described) in model.flows.iter().enumerate() {
            let start = hops.len();
            first.push(start);
            for step in &described.steps {
                let (index, node) = (hops.len(), places[&(step.server, step.class)]);
                let before = step.before.map(|before| before + start);
                if let Some(before) = before {
                    hops[before].after.push(index);
                }
                hops.push(Hop { flow, node, before, after: Vec::new() });
            }
        }
        group(model, &hops, &mut nodes);
        let longest = |node: &Node| node.groups.iter().map(|group| group.longest_frame.clone()).max();
        let frames: Vec<Rational> =
            nodes.iter().map(|node| longest(node).unwrap_or(Rational::ZERO)).collect();
        let lower: Vec<(usize, usize)> = nodes
            .iter()
            .enumerate()
            .flat_map(|(index, node)| node.higher.iter().map(move |higher| (*higher, index)))
            .collect();
        for (higher, index) in lower {
            let fragments = model.servers[nodes[index].server].fragments.as_ref();
            let cut = fragments.filter(|_| nodes[index].preemptable && !nodes[higher].preemptable);
            let blocks =
                cut.map_or(&frames[index], |fragments| (&fragments.uncut).min(&frames[index])).clone();
            nodes[higher].blocking = (&nodes[higher].blocking).max(&blocks).clone();
        }
        let order = components(&nodes, &hops);
        Self { nodes, hops, first, order }
    }

    /// Whether no node depends on itself.
    pub(crate) fn is_feed_forward(&self) -> bool {
        self.order.iter().all(|together| together.len() == 1)
    }
}

/// Groups the hops of each node by the link over which they come.
fn group(model: &Model, hops: &[Hop], nodes: &mut [Node]) {
    let spaced = regulators::spaced(model);
    for (index, hop) in hops.iter().enumerate() {
        let behind = hop.before.is_none().then(|| spaced.get(&hop.flow)).flatten().copied();
        let from = hop.before.map(|before| nodes[hops[before].node].server);
        let frame = &model.flows[hop.flow].longest_frame;
        let groups = &mut nodes[hop.node].groups;
        let known = groups
            .iter_mut()
            .find(|group: &&mut Group| from.is_some() && group.from == from && !group.is_regulated);
        if let Some(group) = known {
            group.hops.push(index);
            group.longest_frame = (&group.longest_frame).max(frame).clone();
        } else {
            let (hops, longest_frame) = (vec![index], frame.clone());
            groups.push(Group { from: from.or(behind), hops, longest_frame, is_regulated: behind.is_some() });
        }
    }
}

/// Strongly connected nodes (Tarjan), each set after those it depends on.
fn components(nodes: &[Node], hops: &[Hop]) -> Vec<Vec<usize>> {
    let mut needs: Vec<BTreeSet<usize>> =
        nodes.iter().map(|node| node.higher.iter().copied().collect()).collect();
    for hop in hops {
        if let Some(before) = hop.before {
            needs[hop.node].insert(hops[before].node);
        }
    }
    let needs: Vec<Vec<usize>> = needs.into_iter().map(|set| set.into_iter().collect()).collect();
    let unseen = usize::MAX;
    let (mut number, mut low) = (vec![unseen; nodes.len()], vec![0; nodes.len()]);
    let (mut stack, mut on_stack) = (Vec::new(), vec![false; nodes.len()]);
    let (mut next, mut found) = (0, Vec::new());
    for root in 0..nodes.len() {
        if number[root] != unseen {
            continue;
        }
        // The recursion as a list, so that a long path needs no deep stack: (node, number of dependencies visited).
        let mut open = vec![(root, 0)];
        while let Some((node, seen)) = open.pop() {
            if seen == 0 {
                (number[node], low[node], next) = (next, next, next + 1);
                stack.push(node);
                on_stack[node] = true;
            } else if on_stack[needs[node][seen - 1]] {
                low[node] = low[node].min(low[needs[node][seen - 1]]);
            }
            if let Some(&need) = needs[node].get(seen) {
                open.push((node, seen + 1));
                if number[need] == unseen {
                    open.push((need, 0));
                }
                continue;
            }
            if low[node] == number[node] {
                let mut together = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    together.push(member);
                    if member == node {
                        break;
                    }
                }
                together.sort_unstable();
                found.push(together);
            }
        }
    }
    found
}
