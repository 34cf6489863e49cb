//! Forwarding tables: whether the routes of all flows go together at every switch.
//!
//! A switch forwards by VLAN and destination address (IEEE Std 802.1Q-2022, 8.8.1), so all frames to one station in one VLAN
//! leave it by one port. Virtual links, time-triggered flows and groups have addresses of their own. In a tree routes
//! always go together.

use std::collections::BTreeMap;

use super::check::PointCheck;
use crate::campaign::{Protocol, Route};
use crate::diagnostic::on_line;
use crate::diagnostic::{Findings, Place};
use crate::model::FlowModel;
use crate::network::{NodeIndex, NodeKind};

/// What takes an entry of a table.
struct Taker<'m> {
    what: String,
    place: &'m Place,
    vlan: u16,
    route: Route,
}

impl PointCheck<'_> {
    pub(super) fn tables(&self, found: &mut Findings) {
        if !self.topology.has_loops() || !self.topology.vlans_whole || !self.topology.links_whole {
            return;
        }
        let mut entries: BTreeMap<(NodeIndex, u16, NodeIndex), (u16, Taker<'_>)> = BTreeMap::new();
        for taker in self.takers() {
            let Some(to) = taker.route.receiver() else { continue };
            for hop in &taker.route.hops {
                let NodeKind::Switch(switch) = &self.topology.network.nodes[usize::from(hop.from.node)].kind
                else {
                    continue;
                };
                let vlan = if switch.vlans.is_empty() { 0 } else { taker.vlan };
                let Some((port, first)) = entries.get(&(hop.from.node, vlan, to)) else {
                    let taker = Taker { what: taker.what.clone(), route: Route::default(), ..taker };
                    entries.insert((hop.from.node, vlan, to), (hop.from.port, taker));
                    continue;
                };
                if *port == hop.from.port {
                    continue;
                }
                let message = format!(
                    "{} and {}{} both lead to \"{}\", but leave switch \"{}\" by ports {} and {port}",
                    taker.what,
                    first.what,
                    on_line(first.place.line),
                    self.topology.name(to),
                    self.topology.name(hop.from.node),
                    hop.from.port,
                );
                let cure = "let them leave by one port, or give one a VLAN that the switches know; \
                            a switch forwards by VLAN and destination address";
                found.error(taker.place, message, "1 port per destination and VLAN", cure);
                break;
            }
        }
    }

    /// All routes of frames that go by the address of a station.
    fn takers(&self) -> Vec<Taker<'_>> {
        let mut takers = Vec::new();
        for flow in self.model.flows.iter().filter(|flow| goes_by_station(flow)) {
            let routes = flow.used().flat_map(|(_, reach)| &reach.routes);
            takers.extend(routes.map(|route| self.taker(flow, format!("flow {}", flow.id), route.clone())));
        }
        for relay in &self.model.relays {
            let flow = &self.model.flows[relay.flow];
            if flow.is(Protocol::Rc) || flow.is(Protocol::Tt) || flow.is_copied || !flow.carriage.vlan_known {
                continue;
            }
            let back = flow.used().flat_map(|(_, reach)| &reach.routes);
            let back = back.filter(|route| route.receiver() == Some(relay.on)).map(Route::reversed);
            let what = format!("what returns of flow {}", flow.id);
            takers.extend(back.map(|route| self.taker(flow, what.clone(), route)));
            let what = format!("what is misdirected of flow {}", flow.id);
            takers.extend(self.detours(relay).into_iter().map(|route| self.taker(flow, what.clone(), route)));
        }
        takers.extend(self.model.injects.iter().filter_map(|inject| {
            let route = Route::clone(inject.route.as_ref()?);
            Some(Taker { what: "the injected load".to_owned(), place: &inject.place, vlan: 0, route })
        }));
        takers
    }

    fn taker<'m>(&self, flow: &'m FlowModel, what: String, route: Route) -> Taker<'m> {
        Taker { what, place: &flow.place, vlan: flow.tag().map_or(0, |tag| tag.id), route }
    }
}

/// Whether its frames carry the address of their receiver.
fn goes_by_station(flow: &FlowModel) -> bool {
    let to_one = flow.ends.as_ref().is_some_and(|(_, to)| to.len() == 1);
    to_one
        && flow.carriage.vlan_known
        && !flow.is_copied
        && !flow.is(Protocol::Rc)
        && !flow.is(Protocol::Tt)
        && flow.addresses().mac.destination.is_none()
}
