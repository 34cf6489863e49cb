//! Which port of its nodes each link uses.

use std::collections::{BTreeMap, BTreeSet};

use super::Topology;
use crate::diagnostic::{Findings, on_line};
use crate::network::{Attachment, LinkStatement, NetworkId, NodeIndex};
use crate::places::MOST_PORTS;

/// The port by which an end system is on a network.
const fn home_port(network: NetworkId) -> u16 {
    match network {
        NetworkId::A => 1,
        NetworkId::B => 2,
    }
}

impl Topology {
    /// Explicit ports first, then the others in the order of the file, each the lowest that is free.
    pub(super) fn number_ports(
        &mut self,
        links: &[LinkStatement],
        ends: Vec<Option<[NodeIndex; 2]>>,
        found: &mut Findings,
    ) -> Vec<Option<[Attachment; 2]>> {
        let mut taken: BTreeMap<Attachment, u32> = BTreeMap::new();
        let mut ports = vec![[None::<u16>; 2]; links.len()];
        let mut refused = BTreeSet::new();
        // Ports are taken and never given back, so none below the last one found is free.
        let mut lowest = vec![1_u16; self.network.nodes.len()];
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
                        None if self.is_end_system(node) => home_port(link.network),
                        None => {
                            let free = |port: &u16| !taken.contains_key(&Attachment { node, port: *port });
                            let lowest = &mut lowest[usize::from(node)];
                            let Some(port) = (*lowest..=MOST_PORTS).find(free) else {
                                let message =
                                    format!("{} \"{}\" has no free port", self.noun(node), self.name(node));
                                let cure = "spread the links over several switches";
                                found.error(&link.place, message, format!("{MOST_PORTS} ports"), cure);
                                refused.insert(number);
                                continue;
                            };
                            *lowest = port;
                            port
                        }
                    };
                    let attachment = Attachment { node, port };
                    if let Some(first) = taken.get(&attachment) {
                        self.port_taken(link, attachment, *first, found);
                        refused.insert(number);
                    } else if self.is_end_system(node) && port != home_port(link.network) {
                        let message = format!(
                            "port {port} of end system \"{}\" is not on network {:?}",
                            self.name(node),
                            link.network
                        );
                        let limit = "port 1 on network A, port 2 on network B";
                        found.error(&link.place, message, limit, "leave the port out");
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
            let message = format!(
                "end system \"{name}\" already has a link{}{}",
                self.on_network(link.network),
                on_line(first)
            );
            let cure = "join further nodes through a switch, or put this link on network B";
            found.error(&link.place, message, "1 link per end system and network", cure);
        } else {
            let message = format!(
                "port {} of {} \"{name}\" is taken by the link{}",
                at.port,
                self.noun(at.node),
                on_line(first)
            );
            let cure = "use another port or leave the port out";
            found.error(&link.place, message, "1 link per port", cure);
        }
    }
}
