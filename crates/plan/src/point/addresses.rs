//! Addresses a flow chose: whether its frames still come where they should.

use std::collections::BTreeMap;

use super::check::PointCheck;
use crate::campaign::{Addresses, Backend, Ends, Fill, Protocol};
use crate::diagnostic::Findings;
use crate::model::FlowModel;
use crate::network::{MacAddress, NodeIndex};
use crate::reader::{Maybe, Sourced};

impl FlowModel {
    /// As the plan has them: those that frames of its protocol carry.
    pub(crate) fn addresses(&self) -> Addresses {
        fn value<T: Copy>(written: &Maybe<T>) -> Option<T> {
            written.as_ref().map(|written| written.value)
        }
        let written = &self.carriage.addresses;
        let whole = Addresses {
            mac: Ends { source: value(&written.source_mac), destination: value(&written.destination_mac) },
            macs: Ends { source: value(&written.source_macs), destination: value(&written.destination_macs) },
            ipv4: Ends { source: value(&written.source_ip), destination: value(&written.destination_ip) },
            port: Ends { source: value(&written.source_port), destination: value(&written.destination_port) },
        };
        match self.protocol.as_ref().map(|protocol| protocol.value) {
            Some(Protocol::Udp | Protocol::Be) => whole,
            Some(Protocol::Raw) => Addresses { mac: whole.mac, macs: whole.macs, ..Addresses::default() },
            Some(Protocol::Rc | Protocol::Tt) | None => Addresses::default(),
        }
    }
}

/// A broadcast is for several, and its other addresses are those of its sender.
fn broadcast(flow: &FlowModel, receivers: usize, found: &mut Findings) {
    let written = &flow.carriage.addresses;
    if receivers < 2 {
        let message = format!("flow {} is a broadcast and has one receiver", flow.id);
        found.error(&flow.place, message, "2 receivers", "name all that are to receive it in to=\"…\"");
    }
    if flow.protocol.as_ref().is_some_and(|protocol| protocol.value != Protocol::Raw)
        || written.source_mac.is_some()
        || written.destination_macs.is_some()
    {
        let message = format!("flow {} is a broadcast", flow.id);
        let cure = "write protocol=\"raw\" and no other address";
        found.error(&flow.place, message, "a raw flow with the address of its sender", cure);
    }
}

impl PointCheck<'_> {
    pub(super) fn addresses(&self, found: &mut Findings) {
        let mut leads: BTreeMap<MacAddress, (NodeIndex, u16)> = BTreeMap::new();
        for flow in self.model.flows.iter().filter(|flow| !flow.addresses().is_none()) {
            let written = &flow.carriage.addresses;
            let Some((from, to)) = &flow.ends else { continue };
            let is_broadcast =
                written.destination_mac.as_ref().is_some_and(|mac| mac.value == MacAddress::BROADCAST);
            if is_broadcast {
                broadcast(flow, to.len(), found);
                continue;
            }
            if let [_, _, ..] = to[..] {
                let message =
                    format!("flow {} has several receivers, whose address is that of a group", flow.id);
                let cure = "remove the addresses, or declare one flow for each receiver";
                found.error(&flow.place, message, "1 receiver", cure);
                continue;
            }
            if flow.relayed {
                let message =
                    format!("flow {} is relayed, and a relay answers to the sender's own addresses", flow.id);
                found.error(&flow.place, message, "", "receive the flow instead, or remove its addresses");
            }
            if let Some(mac) = &written.source_mac {
                self.taken(flow, mac, *from, "a switch would look for that one here", found);
            }
            let Some(mac) = &written.destination_mac else { continue };
            self.taken(flow, mac, to[0], "its frames would go there", found);
            match leads.get(&mac.value) {
                Some((other, first)) if *other != to[0] => {
                    let name = self.topology.name(*other);
                    let message =
                        format!("{} of flow {} leads to \"{name}\" in flow {first}", mac.named(), flow.id);
                    found.error(
                        &mac.place,
                        message,
                        "1 end system for each address",
                        "write another address",
                    );
                }
                _ => {
                    leads.insert(mac.value, (to[0], flow.id));
                }
            }
        }
        self.streams_of_addresses(found);
    }

    /// The address of another end system.
    fn taken(
        &self,
        flow: &FlowModel,
        mac: &Sourced<MacAddress>,
        own: NodeIndex,
        why: &str,
        found: &mut Findings,
    ) {
        let nodes = (0_u16..).zip(&self.topology.network.nodes);
        let mut others = nodes.filter(|(index, node)| node.is_end_system() && *index != own);
        if let Some((_, other)) = others.find(|(_, node)| node.mac == mac.value) {
            let message = format!("{} of flow {} is that of \"{}\"; {why}", mac.named(), flow.id, other.name);
            found.error(&mac.place, message, "an address nobody else has", "write another address");
        }
    }

    /// Their frames are made whole by a stream, not by the kernel.
    fn streams_of_addresses(&self, found: &mut Findings) {
        for send in &self.model.sends {
            let flow = &self.model.flows[send.flow];
            if flow.addresses().is_none() {
                continue;
            }
            if let Some(backend) = send.course.shaping.backend.as_ref().filter(|b| b.value == Backend::Udp) {
                let message =
                    format!("{} leaves the headers of flow {} to the kernel", backend.named(), flow.id);
                found.error(&backend.place, message, "auto, packet or xdp", "write backend=\"packet\"");
            }
            if let Some(fill) = send.fill.as_ref().filter(|fill| fill.value == Fill::Random) {
                let message = format!(
                    "flow {} has addresses of its own and so is a stream, whose messages have one content",
                    flow.id
                );
                let cure = "write fill=\"sequential\", or remove the addresses";
                found.error(&fill.place, message, "", cure);
            }
        }
    }
}
