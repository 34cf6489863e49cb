//! Replication and elimination (IEEE Std 802.1CB) at one point: whether copies can be told at the pace of the flow.

use std::collections::BTreeSet;

use wg_core::frer::Algorithm;
use wg_core::line::{LONGEST_TAGGED_FRAME, LineRate, bytes};
use wg_frame::time::Span;

use super::check::PointCheck;
use super::whole_send::WholeSend;
use crate::campaign::{Protocol, Route};
use crate::diagnostic::Findings;
use crate::model::FlowModel;
use crate::network::{ForwardingMode, NodeKind};

/// What a redundancy tag adds to a frame, in bytes.
pub(super) const TAG: u32 = bytes(wg_frame::rtag::TAG_LEN);

impl PointCheck<'_> {
    /// What a flow with `<frer>` can be.
    pub(super) fn frer(&self, flow: &FlowModel, found: &mut Findings) {
        let (Some(frer), Some(protocol)) = (&flow.frer, &flow.protocol) else { return };
        if matches!(protocol.value, Protocol::Rc | Protocol::Tt) {
            let message = format!("flow {} has <frer>, but {}", flow.id, protocol.named());
            let cure = "remove <frer>: the two networks of the protocol are its redundancy; or write protocol=\"udp\" or \"raw\"";
            found.error(&protocol.place, message, "udp, raw and be flows", cure);
        }
        if flow.relayed {
            let message =
                format!("flow {} has <frer> and is relayed: nothing copies what comes back", flow.id);
            let cure = "receive it, and declare a second flow with paths of its own for the way back";
            found.error(&flow.place, message, "", cure);
        }
        if !flow.addresses().is_none() {
            let message = format!("flow {} has <frer>, whose streams have addresses of their own", flow.id);
            found.error(&flow.place, message, "", "remove the addresses of the flow");
        }
        let junctions = flow.used().flat_map(|(_, reach)| frer.junctions(&reach.routes).into_keys());
        for node in BTreeSet::from_iter(junctions.chain([frer.replicate_at, frer.eliminate_at])) {
            let NodeKind::Switch(switch) = &self.topology.network.nodes[usize::from(node)].kind else {
                continue;
            };
            let mode = self.model.switches.forwarding_mode.unwrap_or(switch.forwarding_mode);
            if mode == ForwardingMode::CutThrough {
                let name = self.topology.name(node);
                let message = format!(
                    "flow {} has its copies made or removed at switch \"{name}\", which cuts through",
                    flow.id
                );
                let cure = "write forwarding-mode=\"store-and-forward\" there: of a damaged copy only the whole frame tells";
                found.error(&flow.place, message, "store-and-forward", cure);
            }
        }
    }

    /// Whether copies of the flow that `send` sends are told from new frames, at the least distance the paths are apart.
    pub(super) fn recovery(&self, send: &WholeSend<'_>, found: &mut Findings) {
        let flow = &self.model.flows[send.send.flow];
        let Some(frer) = &flow.frer else { return };
        if send.frame + TAG > u32::from(LONGEST_TAGGED_FRAME) {
            let message = format!(
                "{} of flow {} leaves no room for the redundancy tag of {TAG}B",
                send.payload.named(),
                flow.id
            );
            let limit = format!("frames of {}B", u32::from(LONGEST_TAGGED_FRAME) - TAG);
            found.error(&send.payload.place, message, limit, "write a smaller payload");
        }
        let delays = flow.used().flat_map(|(_, reach)| &reach.routes);
        let delays: Vec<Span> =
            delays.filter_map(|route| self.least_delay(route, send.frame + TAG)).collect();
        let (Some(least), Some(most)) = (delays.iter().min(), delays.iter().max()) else { return };
        let apart = *most - *least;
        if frer.reset <= apart {
            let message = format!(
                "reset after {} of flow {} comes before the second copy: its paths are {apart} apart",
                frer.reset, flow.id
            );
            found.error(&flow.place, message, format!("more than {apart}"), "write a longer reset");
        }
        let period = send.shortest().as_picos().max(1);
        let burst = u64::from(send.burst);
        let passed = (apart.as_picos() / period).unsigned_abs();
        let between = if burst > 1 { passed * burst + burst - 1 } else { passed };
        let (needs, cure, has) = match frer.recovery().algorithm {
            Algorithm::Vector { history_length } if between >= u64::from(history_length) => (
                format!("history-length at least {}", between + 1),
                "write a longer history-length, more yet where frames wait in queues",
                format!("a history of {history_length} sequence numbers"),
            ),
            Algorithm::Match if between > 0 => (
                format!("paths less than {} apart", Span::from_picos(period)),
                "write recovery=\"vector\"",
                "match recovery, which knows the last sequence number only".to_owned(),
            ),
            _ => return,
        };
        let message = format!(
            "flow {} has {has}, but its paths are {apart} apart: {between} messages come between the copies of one",
            flow.id
        );
        found.error(&flow.place, message, needs, cure);
    }

    /// From the first bit at the sender to the last bit at the receiver, where nothing waits.
    fn least_delay(&self, route: &Route, length: u32) -> Option<Span> {
        let length = u16::try_from(length).ok()?;
        let mut sum = Span::ZERO;
        for hop in &route.hops {
            let line: LineRate = self.line(hop.link);
            let switch = match &self.topology.network.nodes[usize::from(hop.to.node)].kind {
                NodeKind::Switch(switch) => Some(switch),
                _ => None,
            };
            let mode =
                switch.map(|switch| self.model.switches.forwarding_mode.unwrap_or(switch.forwarding_mode));
            let through = match mode {
                Some(ForwardingMode::CutThrough) => line.header(true),
                _ => line.transmission(length),
            };
            let processing = switch.map_or(Span::ZERO, |switch| switch.processing_delay);
            let link = self.topology.network.links[hop.link as usize].delay;
            sum = sum.checked_add(through)?.checked_add(processing)?.checked_add(link)?;
        }
        Some(sum)
    }
}
