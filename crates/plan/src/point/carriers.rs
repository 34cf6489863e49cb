//! Whether the nodes on a flow's way can carry it: kinds of switch, VLANs, hubs, rasters.

use std::collections::BTreeSet;

use wg_core::hub::{Hub, HubError, MAX_STATIONS, Rate, StationPlan};
use wg_core::line::LONGEST_TAGGED_FRAME;
use wg_frame::time::Span;

use super::check::PointCheck;
use crate::campaign::{Hop, Protocol};
use crate::diagnostic::{Findings, Place};
use crate::model::FlowModel;
use crate::network::{Link, NodeIndex, NodeKind, SwitchKind};
use crate::quantity::show_rate;

/// Time in which two stations on one medium must have noticed each other, in bits (IEEE Std 802.3-2022, 4.4.2).
const SLOT_BITS: u64 = 512;

impl PointCheck<'_> {
    pub(super) fn carriers(&self, found: &mut Findings) {
        if self.topology.links_whole {
            self.on_the_way(found);
        }
        self.hubs(found);
        self.rasters(found);
    }

    fn on_the_way(&self, found: &mut Findings) {
        for flow in &self.model.flows {
            for hop in flow.hops() {
                self.carrier(flow, hop.to.node, found);
            }
            self.vlans(flow, found);
        }
        for inject in &self.model.injects {
            let hops = inject.route.iter().flat_map(|route| route.hops.iter().copied());
            self.vlan_on(&inject.place, "the injected load", 0, hops, found);
        }
        for log in &self.model.remote_logs {
            self.vlan_on(&log.place, "the log", 0, log.route.hops.iter().copied(), found);
        }
    }

    fn carrier(&self, flow: &FlowModel, node: NodeIndex, found: &mut Findings) {
        let Some(protocol) = &flow.protocol else { return };
        let name = self.topology.name(node);
        let (fits, what, limit) = match (&self.topology.network.nodes[usize::from(node)].kind, protocol.value)
        {
            (NodeKind::Hub { .. }, Protocol::Rc | Protocol::Tt) => {
                (false, format!("hub \"{name}\""), "udp, raw and be flows over a hub")
            }
            (NodeKind::Switch(switch), Protocol::Rc) => (
                switch.kind != SwitchKind::Cots,
                format!("switch \"{name}\" of kind \"cots\""),
                "rc flows over arinc664 and mixed-criticality switches only",
            ),
            (NodeKind::Switch(switch), Protocol::Tt) => (
                switch.kind == SwitchKind::MixedCriticality,
                format!("switch \"{name}\", which knows no windows"),
                "tt flows over mixed-criticality switches only",
            ),
            _ => return,
        };
        if !fits {
            let message = format!("flow {} has {}, but leads over {what}", flow.id, protocol.named());
            let cure = match self.topology.is_hub(node) {
                true => format!("put a switch in the place of \"{name}\", or write another protocol"),
                false => format!("write another kind for \"{name}\", or another protocol"),
            };
            found.error(&protocol.place, message, limit, cure);
        }
    }

    fn vlans(&self, flow: &FlowModel, found: &mut Findings) {
        // Virtual links and time-triggered flows have ways of their own.
        if flow.is(Protocol::Rc) || flow.is(Protocol::Tt) || !flow.carriage.vlan_known {
            return;
        }
        let id = flow.tag().map_or(0, |tag| tag.id);
        self.vlan_on(&flow.place, &format!("flow {}", flow.id), id, flow.hops(), found);
    }

    /// A switch that knows VLANs must carry this one at both ports of the way.
    fn vlan_on(
        &self,
        place: &Place,
        what: &str,
        id: u16,
        hops: impl Iterator<Item = Hop>,
        found: &mut Findings,
    ) {
        for end in hops.flat_map(|hop| [hop.from, hop.to]).filter(|_| self.topology.vlans_whole) {
            let NodeKind::Switch(switch) = &self.topology.network.nodes[usize::from(end.node)].kind else {
                continue;
            };
            let carried = switch.vlans.iter().any(|vlan| vlan.id == id && vlan.ports.contains(&end.port));
            if switch.vlans.is_empty() || carried {
                continue;
            }
            let (name, port) = (self.topology.name(end.node), end.port);
            let vlan = match id {
                0 => "untagged frames".to_owned(),
                _ => format!("VLAN {id}"),
            };
            let message =
                format!("{what} takes port {port} of switch \"{name}\", which does not carry {vlan}");
            let cure = format!("add the port to <vlan id=\"{id}\" ports=\"…\"/> of \"{name}\"");
            found.error(place, message, "", cure);
        }
    }

    fn hubs(&self, found: &mut Findings) {
        if !self.topology.rates_whole {
            return;
        }
        let network = &self.topology.network;
        for (node, hub) in network.nodes.iter().enumerate() {
            let NodeKind::Hub { delay } = hub.kind else { continue };
            let links = self.topology.leaving[node].iter().map(|hop| hop.link);
            let links: Vec<(u32, &Link)> =
                links.map(|number| (number, &network.links[number as usize])).collect();
            let Some(first) = links.first().map(|(number, _)| self.rate(*number)) else { continue };
            for (number, _) in &links {
                let rate = self.rate(*number);
                let own = || &self.topology.link_places[*number as usize];
                let place = self.model.rate.as_ref().map_or_else(own, |rate| &rate.place);
                if Rate::new(rate).is_none() {
                    let message = format!("hub \"{}\" has a link of {}", hub.name, show_rate(rate));
                    let cure = "write one of the two rates of half-duplex Ethernet";
                    found.error(place, message, "10Mbit/s or 100Mbit/s", cure);
                    break;
                }
                if rate != first {
                    let message = format!(
                        "hub \"{}\" has links of {} and {}",
                        hub.name,
                        show_rate(first),
                        show_rate(rate)
                    );
                    found.error(place, message, "1 rate", "give all links of the hub one rate");
                    break;
                }
            }
            self.collision_domain(node, delay, first, &links, found);
            let mut delays: Vec<Span> = links.iter().map(|(_, link)| link.delay).collect();
            delays.sort_unstable();
            let farthest = delays.iter().rev().take(2).fold(delay, |sum, delay| sum + *delay);
            let slot = Span::of_bits(SLOT_BITS, first).unwrap_or(Span::ZERO);
            if farthest + farthest >= slot {
                found.warn(format!(
                    "hub \"{}\": to the farthest end and back takes {}, longer than the slot time of {slot}; collisions \
                     come late and are not repaired",
                    hub.name,
                    farthest + farthest
                ));
            }
        }
    }

    /// As the core of a hub has it.
    fn collision_domain(
        &self,
        node: usize,
        delay: Span,
        rate: u64,
        links: &[(u32, &Link)],
        found: &mut Findings,
    ) {
        let stations: Vec<_> =
            links.iter().map(|(_, link)| StationPlan { delay: link.delay, queue: 1 }).collect();
        let name = &self.topology.network.nodes[node].name;
        let (message, limit, cure) = match Rate::new(rate).map(|rate| Hub::<()>::new(rate, delay, &stations))
        {
            Some(Err(HubError::Stations(count))) => (
                format!("hub \"{name}\" has {count} links"),
                format!("1 to {MAX_STATIONS}"),
                "put some of the end systems at another hub",
            ),
            Some(Err(HubError::Delay(delay, limit))) => (
                format!("a delay of {delay} at hub \"{name}\" is longer than 1024 bit times"),
                limit.to_string(),
                "write a shorter delay of the hub and its links",
            ),
            Some(Ok(_)) | None => return,
        };
        let longest = links.iter().max_by_key(|(_, link)| link.delay);
        let Some(place) = longest.map(|(number, _)| &self.topology.link_places[*number as usize]) else {
            return;
        };
        found.error(place, message, limit, cure);
    }

    /// A frame that fits into no slot would wait for ever.
    fn rasters(&self, found: &mut Findings) {
        let mut told = BTreeSet::new();
        let links = (0..).zip(&self.topology.network.links);
        for (link, at) in links.flat_map(|(number, link)| link.ends.map(|end| (number, end))) {
            let Some(raster) = self.topology.rasters.get(&at.node) else { continue };
            let rate = self.rate(link);
            let needed = self.line(link).occupation(LONGEST_TAGGED_FRAME);
            if raster.value < needed && told.insert(at.node) {
                let message = format!(
                    "{} of switch \"{}\" is shorter than a frame at {}, a link of {}",
                    raster.named(),
                    self.topology.name(at.node),
                    self.topology.port_name(at),
                    show_rate(rate)
                );
                let cure = "write a longer raster, or frames would wait for ever";
                found.error(&raster.place, message, format!("at least {needed}"), cure);
            }
        }
    }
}
