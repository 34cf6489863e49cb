//! Where a flow leads: a route to each receiver on each network, named by the flow or found.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::campaign::{Hop, Route};
use crate::diagnostic::Place;
use crate::diagnostic::on_line;
use crate::model::{Reach, Resolver};
use crate::network::{NetworkId, NodeIndex};
use crate::statements::PathStatement;

impl Resolver<'_> {
    /// A path on a network that the flow, declared last, does not take would have no effect.
    pub(crate) fn check_networks(&mut self, paths: &[PathStatement]) {
        let Some(flow) = self.model.flows.last() else { return };
        for path in paths {
            let Some(network) = path.network.as_ref().and_then(Option::as_ref) else { continue };
            if flow.protocol.is_none() || flow.used().any(|(used, _)| used == network.value) {
                continue;
            }
            let message = format!("flow {} does not travel on network {:?}", flow.id, network.value);
            let cure = "remove the path, or write networks=\"both\" or the network it is on";
            self.found.error(&path.place, message, "", cure);
        }
    }

    /// Its routes on each network. A missing one is reported only where the flow takes that network.
    pub(crate) fn reach(
        &mut self,
        place: &Place,
        (from, to): &(NodeIndex, Rc<[NodeIndex]>),
        paths: &[PathStatement],
    ) -> [Reach; 2] {
        if to.contains(from) {
            let message = format!("the way leads from \"{0}\" to \"{0}\"", self.topology.name(*from));
            let cure = match to.len() {
                1 => "name two different end systems",
                _ => "name others; only a flow to nobody else may lead back to its sender",
            };
            self.found.error(place, message, "", cure);
            return Default::default();
        }
        let mut named = self.named_paths(*from, to, paths);
        // Which way a path is for, if that could not be read, is not known.
        let known =
            paths.iter().all(|path| !matches!(path.network, Some(None)) && !matches!(path.to, Some(None)));
        [NetworkId::A, NetworkId::B].map(|network| {
            let on = |node: &NodeIndex| self.topology.is_on(*node, network);
            let mut reach = Reach { linked: on(from) && to.iter().all(on), ..Reach::default() };
            for receiver in to.iter().filter(|_| known) {
                let named = named.remove(&(network, *receiver));
                let hops = match named {
                    Some(path) => self.topology.follow(path, (*from, *receiver), network, self.found),
                    None => self.topology.reached(*from, network).route(*receiver),
                };
                match hops {
                    Some(hops) => {
                        self.ambiguous |= named.is_none() && self.topology.is_ambiguous(&hops);
                        reach.tree.extend(hops.iter().copied());
                        reach.routes.push(Route { network, hops });
                    }
                    None if named.is_none() => reach.missing.push(*receiver),
                    None => {}
                }
            }
            reach.tree.sort_unstable();
            reach.tree.dedup();
            self.check_tree(place, &reach.tree);
            reach
        })
    }

    /// A flow that its own sender receives takes no link, and is on whatever network its end system is.
    pub(crate) fn loopback(&mut self, paths: &[PathStatement]) -> [Reach; 2] {
        for path in paths {
            let message = "the flow leads from an end system to itself and passes no other node";
            self.found.error(&path.place, message, "", "remove the path");
        }
        [Reach { linked: true, ..Reach::default() }, Reach::default()]
    }

    /// The ways a flow names, by network and receiver.
    fn named_paths<'p>(
        &mut self,
        from: NodeIndex,
        to: &[NodeIndex],
        paths: &'p [PathStatement],
    ) -> BTreeMap<(NetworkId, NodeIndex), &'p PathStatement> {
        let mut named: BTreeMap<(NetworkId, NodeIndex), &PathStatement> = BTreeMap::new();
        for path in paths {
            let network = match &path.network {
                Some(network) => network.as_ref().map(|network| network.value),
                None if self.topology.is_on(from, NetworkId::A) => Some(NetworkId::A),
                None => Some(NetworkId::B),
            };
            let Some(key) = network.zip(self.receiver_of(path, to)) else { continue };
            if let Some(first) = named.insert(key, path) {
                let message = format!(
                    "the flow already has a path to \"{}\" on network {:?}{}",
                    self.topology.name(key.1),
                    key.0,
                    on_line(first.place.line)
                );
                let cure = "keep one, or write network=\"B\" on the other";
                self.found.error(&path.place, message, "1 path per receiver and network", cure);
            }
        }
        named
    }

    fn receiver_of(&mut self, path: &PathStatement, to: &[NodeIndex]) -> Option<NodeIndex> {
        let Some(name) = &path.to else {
            if let [only] = to {
                return Some(*only);
            }
            let message = "the flow has several receivers, and the path does not say to which it leads";
            self.found.error(&path.place, message, "1 path per receiver", "add to=\"…\"");
            return None;
        };
        let node = self.topology.end_system(name.as_ref()?, self.found)?;
        if !to.contains(&node) {
            let message = format!("the flow does not lead to \"{}\"", self.topology.name(node));
            self.found.error(&path.place, message, "", "name one of the flow's receivers");
            return None;
        }
        Some(node)
    }

    /// A frame that came to a switch by two ports would leave it twice.
    fn check_tree(&mut self, place: &Place, tree: &[Hop]) {
        let mut entered: BTreeMap<NodeIndex, &Hop> = BTreeMap::new();
        for hop in tree {
            if let Some(first) = entered.insert(hop.to.node, hop) {
                let [one, other] = [first, hop].map(|hop| self.topology.name(hop.from.node));
                let message = format!(
                    "paths of the flow meet again: they enter \"{}\" from \"{one}\" and from \"{other}\"",
                    self.topology.name(hop.to.node)
                );
                let cure = "let the paths to its receivers part once and not meet again";
                self.found.error(place, message, "1 way to each node", cure);
            }
        }
    }
}
