//! The network under test: names, ports, addresses, and the routes over it.
//!
//! Switches forward without a spanning tree here. Where the switches of a network form a tree, the route between two end
//! systems is unique and a frame can never circle. Links may close a loop where every flow over it names its way
//! (`<path>`) or the test gives the rule (`routing="shortest"`); what is in the tables of its switches then leads no frame
//! round. The road not taken is IEEE 802.1D: it would block links behind the engineer's back and make the measured path a
//! matter of bridge identifiers.

mod imperfections;
mod loops;
mod ports;
mod routes;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use wg_frame::time::Span;

use crate::campaign::Hop;
use crate::diagnostic::{Findings, Place, on_line};
use crate::network::{
    Attachment, LinkStatement, Network, NetworkId, Node, NodeIndex, NodeKind, NodeStatement, SwitchChange,
};
use crate::reader::Sourced;
use crate::statements::{End, Statements};

/// End systems, switches and hubs of one test. Their addresses would do for 65 535.
const MOST_NODES: usize = 4_096;

/// The network with its names resolved.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    pub(crate) network: Network,
    names: BTreeMap<String, NodeIndex>,
    /// By node: the links it sends by, in the order of the file.
    pub(crate) leaving: Vec<Vec<Hop>>,
    loops: loops::Loops,
    /// Per link: the statement it came from.
    pub(crate) link_places: Vec<Place>,
    /// Rasters where they are written, by switch.
    pub(crate) rasters: BTreeMap<NodeIndex, Sourced<Span>>,
    /// The network each switch and hub is on, and the line of the link that says so.
    sides: BTreeMap<NodeIndex, (NetworkId, u32)>,
    /// Every node could be read, so an unknown name is a mistake and not a consequence of one.
    nodes_whole: bool,
    /// Every link could be read, so a missing route is a mistake and not a consequence of one.
    pub(crate) links_whole: bool,
    /// Every link has a rate, so too much of a load is a mistake and not a consequence of one.
    pub(crate) rates_whole: bool,
    /// All that switches say of VLANs could be read.
    pub(crate) vlans_whole: bool,
}

impl Topology {
    /// The same with its switches changed, as a point of the sweep wants it.
    pub(crate) fn changed(&self, change: SwitchChange) -> Cow<'_, Self> {
        match change.applied(&self.network) {
            Cow::Borrowed(_) => Cow::Borrowed(self),
            Cow::Owned(network) => Cow::Owned(Self { network, ..self.clone() }),
        }
    }

    pub(crate) fn build(test: &Statements, found: &mut Findings) -> Self {
        let mut topology = Self {
            network: Network { nodes: Vec::new(), links: Vec::new() },
            names: BTreeMap::new(),
            leaving: Vec::new(),
            loops: loops::Loops::new(test.shortest),
            link_places: Vec::new(),
            rasters: BTreeMap::new(),
            sides: BTreeMap::new(),
            nodes_whole: true,
            links_whole: true,
            rates_whole: test.links.iter().all(|link| link.rate.is_some()),
            vlans_whole: test.nodes.iter().all(NodeStatement::knows_vlans),
        };
        let mut places = Vec::new();
        for statement in &test.nodes {
            topology.add_node(statement, &mut places, found);
        }
        topology.check_count(&places, found);
        let ends: Vec<_> = test.links.iter().map(|link| topology.resolve_ends(link, found)).collect();
        let ends = topology.number_ports(&test.links, ends, found);
        for (statement, ends) in test.links.iter().zip(ends) {
            topology.add_link(statement, ends, found);
        }
        topology.check_connected(&places, found);
        topology.find_cycles(&places, found);
        topology.check_vlans(test, found);
        topology.check_imperfections(test, found);
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
        let raster = statement.switch().and_then(|(_, parts)| parts.raster.clone());
        self.rasters.extend(raster.map(|written| (index, written)));
        self.network.nodes.push(statement.node.at(index));
        self.leaving.push(Vec::new());
        places.push(statement.place.clone());
        self.names.insert(name.value.clone(), index);
    }

    fn check_count(&self, places: &[Place], found: &mut Findings) {
        if let Some(beyond) = places.get(MOST_NODES) {
            let message = format!("the network has {} end systems, switches and hubs", places.len());
            found.error(beyond, message, MOST_NODES.to_string(), "split the test");
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

    fn add_link(&mut self, link: &LinkStatement, ends: Option<[Attachment; 2]>, found: &mut Findings) {
        let Some(ends) = ends else {
            self.links_whole = false;
            return;
        };
        if !self.one_side(link, &ends, found) || !self.hub_joins_hosts(link, &ends, found) {
            self.links_whole = false;
            return;
        }
        let number = link_number(self.network.links.len());
        self.join(number, &ends, link.network);
        let [from, to] = ends;
        let hop = Hop { link: number, from, to };
        self.leaving[usize::from(from.node)].push(hop);
        self.leaving[usize::from(to.node)].push(hop.reversed());
        // A link whose rate alone is wrong still carries routes.
        self.network.links.push(link.between(ends));
        self.link_places.push(link.place.clone());
    }

    /// A switch or a hub is on one network: frames that crossed would arrive twice or circle.
    fn one_side(&mut self, link: &LinkStatement, ends: &[Attachment; 2], found: &mut Findings) -> bool {
        for node in ends.map(|end| end.node) {
            if self.is_end_system(node) {
                continue;
            }
            let (side, line) = *self.sides.entry(node).or_insert((link.network, link.place.line));
            if side != link.network {
                let message = format!(
                    "{} \"{}\" is on network {side:?} by the link{} and on network {:?} by this one",
                    self.noun(node),
                    self.name(node),
                    on_line(line),
                    link.network
                );
                let cure = format!(
                    "write network=\"{side:?}\" here or give network {:?} a switch of its own",
                    link.network
                );
                found.error(&link.place, message, "1 network per switch", cure);
                return false;
            }
        }
        true
    }

    /// A hub's collision domain ends at end systems, which speak CSMA/CD; switch ports here are full duplex.
    fn hub_joins_hosts(&self, link: &LinkStatement, ends: &[Attachment; 2], found: &mut Findings) -> bool {
        let hub = ends.iter().find(|end| self.is_hub(end.node));
        let other = ends.iter().find(|end| !self.is_end_system(end.node) && Some(*end) != hub);
        let (Some(hub), Some(other)) = (hub, other) else { return true };
        let (hub, noun, other) = (self.name(hub.node), self.noun(other.node), self.name(other.node));
        let message = format!("hub \"{hub}\" is joined to {noun} \"{other}\"");
        found.error(&link.place, message, "end systems only", "join the hub to end systems, or use a switch");
        false
    }

    fn check_connected(&self, places: &[Place], found: &mut Findings) {
        if !self.links_whole {
            return;
        }
        let linked: BTreeSet<NodeIndex> =
            self.network.links.iter().flat_map(|link| link.ends.map(|end| end.node)).collect();
        for (index, place) in (0..).zip(places) {
            if !linked.contains(&index) {
                let cure = format!(
                    "add <link between=\"{} …\" …/> or remove it",
                    self.network.nodes[usize::from(index)].name
                );
                found.error(place, "the node has no link", "", cure);
            }
        }
    }

    pub(crate) fn name(&self, node: NodeIndex) -> &str {
        &self.network.nodes[usize::from(node)].name
    }

    /// ` on network B`, where there are two.
    fn on_network(&self, network: NetworkId) -> String {
        let two =
            network == NetworkId::B || self.network.links.iter().any(|link| link.network == NetworkId::B);
        if two { format!(" on network {network:?}") } else { String::new() }
    }

    pub(crate) fn is_hub(&self, node: NodeIndex) -> bool {
        matches!(self.network.nodes[usize::from(node)].kind, NodeKind::Hub { .. })
    }

    /// Whether the node has a link on this network.
    pub(crate) fn is_on(&self, node: NodeIndex, network: NetworkId) -> bool {
        self.leaving[usize::from(node)].iter().any(|hop| self.network_of(hop.link) == network)
    }

    pub(crate) fn noun(&self, node: NodeIndex) -> &'static str {
        match self.network.nodes[usize::from(node)].kind {
            NodeKind::EndSystem { .. } => "end system",
            NodeKind::Switch(_) => "switch",
            NodeKind::Hub { .. } => "hub",
        }
    }

    /// A port as a message names it.
    pub(crate) fn port_name(&self, at: Attachment) -> String {
        match self.is_end_system(at.node) && at.port == 1 {
            true => format!("the port of \"{}\"", self.name(at.node)),
            false => format!("port {} of \"{}\"", at.port, self.name(at.node)),
        }
    }

    fn check_vlans(&self, test: &Statements, found: &mut Findings) {
        if !self.nodes_whole || !self.links_whole {
            return;
        }
        for statement in &test.nodes {
            let (Some((switch, parts)), Some(name)) = (statement.switch(), &statement.name) else { continue };
            let Some(node) = self.names.get(&name.value) else { continue };
            let ports: BTreeSet<u16> =
                self.leaving[usize::from(*node)].iter().map(|hop| hop.from.port).collect();
            let mut seen: BTreeMap<u16, u32> = BTreeMap::new();
            for (vlan, place) in switch.vlans.iter().zip(&parts.vlans) {
                if let Some(first) = seen.insert(vlan.id, place.line) {
                    let message = format!(
                        "VLAN {} of switch \"{}\" is already listed{}",
                        vlan.id,
                        name.value,
                        on_line(first)
                    );
                    found.error(place, message, "1 list per VLAN", "put all its ports into one list");
                }
                let missing: Vec<String> =
                    vlan.ports.iter().filter(|port| !ports.contains(port)).map(ToString::to_string).collect();
                if !missing.is_empty() {
                    let have: Vec<String> = ports.iter().map(ToString::to_string).collect();
                    let message =
                        format!("switch \"{}\" has no link at port {}", name.value, missing.join(", "));
                    let cure = "list ports that links use; sw1:3 in a link's between sets one";
                    found.error(place, message, format!("ports {}", have.join(", ")), cure);
                }
            }
        }
    }

    pub(crate) fn is_end_system(&self, node: NodeIndex) -> bool {
        self.network.nodes[usize::from(node)].is_end_system()
    }

    /// The end system a value names; anything else is reported, unless a broken node explains it.
    pub(crate) fn end_system(&self, name: &Sourced<String>, found: &mut Findings) -> Option<NodeIndex> {
        match self.names.get(&name.value) {
            Some(index) if self.is_end_system(*index) => Some(*index),
            Some(index) => {
                let noun = self.noun(*index);
                let cure = format!("name an end system; a {noun} only forwards");
                found.error(&name.place, format!("{} is a {noun}", name.named()), "", cure);
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

    /// The node a value names, whatever it is.
    pub(crate) fn node(&self, name: &Sourced<String>, found: &mut Findings) -> Option<NodeIndex> {
        let known = self.names.get(&name.value).copied();
        if known.is_none() && self.nodes_whole {
            let message = format!("{} is no node of this network", name.named());
            found.error(&name.place, message, "", self.cure_for_name(&name.value, false));
        }
        known
    }

    /// The link between two ends, each a node or one port of it.
    pub(crate) fn link(&self, link: &Sourced<[End; 2]>, found: &mut Findings) -> Option<usize> {
        let mut nodes = [0; 2];
        for (node, end) in nodes.iter_mut().zip(&link.value) {
            let name = Sourced {
                value: end.node.clone(),
                attribute: link.attribute,
                written: end.node.as_str().into(),
                place: link.place.clone(),
            };
            *node = self.node(&name, found)?;
        }
        let at = |attachment: &Attachment, side: usize| {
            attachment.node == nodes[side] && link.value[side].port.is_none_or(|port| port == attachment.port)
        };
        let fitting: Vec<usize> = self.leaving[usize::from(nodes[0])]
            .iter()
            .filter(|hop| at(&hop.from, 0) && at(&hop.to, 1))
            .map(|hop| hop.link as usize)
            .collect();
        match fitting[..] {
            [only] => return Some(only),
            [] if !self.links_whole => {}
            [] => {
                let message = format!("{} is no link of this network", link.named());
                let cure = "name the two ends of a <link>, for example \"mac sw1\"";
                found.error(&link.place, message, "", cure);
            }
            _ => {
                let message = format!("{} names {} links", link.named(), fitting.len());
                let cure = "write the ports too, for example \"mac:2 sensor:2\"";
                found.error(&link.place, message, "1 link", cure);
            }
        }
        None
    }

    /// The port an end names; where it names a node only, the one port that node sends by.
    pub(crate) fn port(&self, end: &End, written: &Sourced<()>, found: &mut Findings) -> Option<Attachment> {
        let name = Sourced {
            value: end.node.clone(),
            attribute: written.attribute,
            written: written.written.clone(),
            place: written.place.clone(),
        };
        let node = self.node(&name, found)?;
        let mut ports = self.leaving[usize::from(node)].iter().map(|hop| hop.from);
        let port = match end.port {
            Some(port) => ports.find(|at| at.port == port),
            None if self.is_end_system(node) => ports.min(),
            None => {
                let message = format!("{} names a {} without a port", written.named(), self.noun(node));
                found.error(
                    &written.place,
                    message,
                    "",
                    format!("write the port, for example {}=\"{}:2\"", written.attribute, end.node),
                );
                return None;
            }
        };
        if port.is_none() && self.links_whole {
            let message = format!("{} is no port with a link", written.named());
            found.error(&written.place, message, "", "name a port that a <link> uses");
        }
        port
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
}

/// The number of the link at this place of the list.
#[expect(clippy::cast_possible_truncation, reason = "a test has at most 500 000 elements")]
pub(crate) fn link_number(place: usize) -> u32 {
    place as u32
}
