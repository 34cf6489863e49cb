//! Member streams of a flow (IEEE Std 802.1CB): whether its paths part once and meet once and share nothing in between, or
//! meet and part as they like where switches on the way take part.

use std::collections::{BTreeMap, BTreeSet};

use crate::campaign::{Frer, Hop, Route};
use crate::diagnostic::Place;
use crate::diagnostic::on_line;
use crate::model::{Reach, Resolver};
use crate::network::{NetworkId, NodeIndex, NodeKind};
use crate::reader::Maybe;
use crate::statements::{FrerStatement, PathStatement};

impl Resolver<'_> {
    /// The routes of the member streams, one for each path, all on one network, and where copies are made and removed.
    pub(crate) fn members(
        &mut self,
        place: &Place,
        frer: &FrerStatement,
        (from, to): (NodeIndex, &[NodeIndex]),
        paths: &[PathStatement],
    ) -> ([Reach; 2], Option<Frer>) {
        let [receiver] = to[..] else {
            let message = "a flow with <frer> has several receivers";
            self.found.error(&frer.place, message, "1 receiver", "declare one flow for each receiver");
            return Default::default();
        };
        if receiver == from {
            let message = "a flow with <frer> leads from an end system to itself";
            self.found.error(&frer.place, message, "", "name two different end systems, or remove <frer>");
            return Default::default();
        }
        if paths.len() < 2 || paths.len() > Frer::MOST_MEMBERS {
            let message = format!("the flow has {} <path>, one for each member stream", paths.len());
            let limit = format!("2 to {} paths", Frer::MOST_MEMBERS);
            self.found.error(&frer.place, message, limit, "name the way of each copy with a <path>");
            return Default::default();
        }
        let on_a = self.topology.is_on(from, NetworkId::A);
        let network = if on_a { NetworkId::A } else { NetworkId::B };
        let mut routes = Vec::new();
        for path in paths {
            let other =
                path.network.as_ref().and_then(Option::as_ref).is_some_and(|own| own.value != network);
            if other {
                let message = "the paths of a flow with <frer> are on both networks";
                let cure = "remove the network; a sender on two networks sends one flow on each";
                self.found.error(&path.place, message, format!("network {network:?}"), cure);
                return Default::default();
            }
            let Some(hops) = self.topology.follow(path, (from, receiver), network, self.found) else {
                continue;
            };
            routes.push(Route { network, hops });
        }
        let mut tree: Vec<Hop> = routes.iter().flat_map(|route| route.hops.iter().copied()).collect();
        tree.sort_unstable();
        tree.dedup();
        let linked = self.topology.is_on(from, network) && self.topology.is_on(receiver, network);
        let whole = routes.len() == paths.len();
        let parted = match whole {
            false => None,
            true => match frer.intermediate {
                Some(true) => self.joined(&routes, paths),
                Some(false) => self.disjoint(&routes, paths),
                None => None,
            },
        };
        self.warn_of_shared(place, &routes, parted);
        let functions = parted.and_then(|shared| self.functions(frer, &routes, shared, (from, receiver)));
        let reach = Reach { linked, routes, tree, missing: Vec::new() };
        let reach = if on_a { [reach, Reach::default()] } else { [Reach::default(), reach] };
        if let Some(functions) = &functions {
            self.group_addresses(place, &reach, functions);
        }
        (reach, functions)
    }

    /// How many links the paths share before they part, and after they met. In between they may meet and part at will, but
    /// no frame may go in a circle.
    fn joined(&mut self, routes: &[Route], paths: &[PathStatement]) -> Option<(usize, usize)> {
        for (number, route) in routes.iter().enumerate() {
            if let Some(other) = routes[..number].iter().position(|earlier| earlier.hops == route.hops) {
                let message =
                    format!("the path is that of another member stream{}", on_line(paths[other].place.line));
                self.found.error(&paths[number].place, message, "different paths", "lead it another way");
                return None;
            }
        }
        // Links in the order in which frames come to them: what is never reached without one of its own kind is on a circle.
        let mut before: BTreeMap<Hop, BTreeSet<Hop>> = BTreeMap::new();
        for route in routes {
            route.hops.iter().for_each(|hop| _ = before.entry(*hop).or_default());
            for pair in route.hops.windows(2) {
                before.entry(pair[1]).or_default().insert(pair[0]);
            }
        }
        while let Some(first) = before.iter().find(|(_, others)| others.is_empty()).map(|(hop, _)| *hop) {
            before.remove(&first);
            before.values_mut().for_each(|others| _ = others.remove(&first));
        }
        if let Some(hop) = before.keys().next() {
            let names = [hop.from, hop.to].map(|end| self.topology.name(end.node).to_owned());
            let message = format!(
                "the paths together lead in a circle, over the link from \"{}\" to \"{}\"",
                names[0], names[1]
            );
            let cure = "remove one of the paths that lead over it";
            self.found.error(&paths[0].place, message, "no circle", cure);
            return None;
        }
        Some(shared(routes))
    }

    /// Likewise; in between they may share no link and no node.
    fn disjoint(&mut self, routes: &[Route], paths: &[PathStatement]) -> Option<(usize, usize)> {
        let (head, tail) = shared(routes);
        for (number, route) in routes.iter().enumerate() {
            let (place, own) = (&paths[number].place, &route.hops[head..route.hops.len() - tail]);
            for (other, earlier) in routes[..number].iter().enumerate() {
                let line = on_line(paths[other].place.line);
                let apart = &earlier.hops[head..earlier.hops.len() - tail];
                if own.is_empty() || apart.is_empty() || own == apart {
                    let message = format!("the path is that of another member stream{line}");
                    let cure = "lead it another way; copies over one way are lost together";
                    self.found.error(place, message, "disjoint paths", cure);
                    return None;
                }
                let inner = |hops: &[Hop]| hops[1..].iter().map(|hop| hop.from.node).collect::<Vec<_>>();
                let (mine, theirs) = (inner(own), inner(apart));
                let meeting = mine.iter().find(|node| theirs.contains(node)).copied();
                let shared = own.iter().find(|hop| apart.iter().any(|at| at.link == hop.link));
                let meeting = meeting.or(shared.map(|hop| hop.to.node));
                if let Some(node) = meeting {
                    let message = format!(
                        "the path shares \"{}\" with that of another member stream{line}, and parts from it again",
                        self.topology.name(node)
                    );
                    let cure = "let the paths part once, meet once and share nothing in between, or write intermediate-recovery=\"on\"";
                    self.found.error(place, message, "disjoint paths", cure);
                    return None;
                }
            }
        }
        Some((head, tail))
    }

    /// Links between switches that all copies take: what they lose is lost.
    fn warn_of_shared(&mut self, place: &Place, routes: &[Route], parted: Option<(usize, usize)>) {
        let (Some((head, tail)), Some(first)) = (parted, routes.first()) else { return };
        let hops = &first.hops;
        for hop in hops[..head].iter().skip(1).chain(hops[hops.len() - tail..].iter().rev().skip(1)) {
            let [from, to] = [hop.from, hop.to].map(|end| self.topology.name(end.node));
            self.found.warn(format!(
                "{}: all member streams take the link from \"{from}\" to \"{to}\"; what is lost there is lost",
                place.element
            ));
        }
    }

    /// Where copies are made and removed: before the paths part and after they met.
    fn functions(
        &mut self,
        frer: &FrerStatement,
        routes: &[Route],
        (head, tail): (usize, usize),
        (from, to): (NodeIndex, NodeIndex),
    ) -> Option<Frer> {
        let hops = &routes[0].hops;
        let before: Vec<NodeIndex> = hops[..=head].iter().map(|hop| hop.from.node).collect();
        let after: Vec<NodeIndex> = hops[hops.len() - tail - 1..].iter().map(|hop| hop.to.node).collect();
        let mut at = |written: &Option<Maybe<String>>, default, among: &[NodeIndex], what: &str| {
            let Some(written) = written else { return Some(default) };
            let written = written.as_ref()?;
            let node = self.topology.node(written, self.found)?;
            if among.contains(&node) {
                return Some(node);
            }
            let names: Vec<&str> = among.iter().map(|node| self.topology.name(*node)).collect();
            let message = format!("{} is not on all paths {what}", written.named());
            let limit = names.join(", ");
            self.found.error(
                &written.place,
                message,
                limit,
                "name a node that all member streams pass there",
            );
            None
        };
        let replicate_at = at(&frer.replicate_at, from, &before, "before they part");
        let eliminate_at = at(&frer.eliminate_at, to, &after, "after they meet");
        let mut functions = Frer {
            replicate_at: replicate_at?,
            eliminate_at: eliminate_at?,
            intermediate: frer.intermediate?,
            history_length: frer.history_length,
            reset: frer.reset,
            individual: frer.individual,
            latent_errors: None,
        };
        #[expect(clippy::cast_possible_truncation, reason = "at most 8 paths")]
        let paths = functions.removed(routes).len() as u32;
        if frer.latent.is_some() && paths < 2 {
            let message = format!(
                "1 stream comes to \"{}\": no copy can be missing there",
                self.topology.name(functions.eliminate_at)
            );
            let cure =
                "write eliminate-at=\"…\" with the switch where the paths meet, or remove latent-difference";
            self.found.error(&frer.place, message, "2 streams", cure);
            return None;
        }
        functions.latent_errors =
            frer.latent.map(|latent| wg_core::frer::LatentErrorConfig { paths, ..latent });
        if functions.intermediate && functions.junctions(routes).is_empty() {
            let message = "intermediate-recovery has no effect: no paths meet or part on their way";
            self.found.error(
                &frer.place,
                message,
                "",
                "remove it, or add paths over links between the others",
            );
            return None;
        }
        Some(functions)
    }

    /// Streams have group addresses, which learning switches and hubs would flood.
    fn group_addresses(&mut self, place: &Place, reach: &[Reach; 2], frer: &Frer) {
        for node in reach.iter().flat_map(|reach| &reach.tree).map(|hop| hop.to.node) {
            let name = self.topology.name(node);
            let (what, cure) = match &self.topology.network.nodes[usize::from(node)].kind {
                NodeKind::Switch(switch) if switch.learning => (
                    format!("switch \"{name}\", which learns addresses"),
                    "write forwarding=\"static\" there",
                ),
                NodeKind::Hub { .. } => (format!("hub \"{name}\""), "put a switch in its place"),
                _ => continue,
            };
            let message = format!("the flow has <frer> and leads over {what}: its copies would be flooded");
            self.found.error(place, message, "static switches", cure);
            return;
        }
        debug_assert!(frer.replicate_at != frer.eliminate_at);
    }
}

/// How many links all routes share at their beginning, and at their end.
fn shared(routes: &[Route]) -> (usize, usize) {
    let first = &routes[0].hops;
    let alike = |hops: &mut dyn Iterator<Item = (&Hop, &Hop)>| hops.take_while(|(a, b)| a == b).count();
    let shortest = routes.iter().map(|route| route.hops.len()).min().unwrap_or(0);
    let others = || routes[1..].iter();
    let head = others().map(|route| alike(&mut first.iter().zip(&route.hops))).min().unwrap_or(0);
    let tail = others().map(|route| alike(&mut first.iter().rev().zip(route.hops.iter().rev()))).min();
    (head, tail.unwrap_or(0).min(shortest.saturating_sub(head)))
}
