//! Whether what nodes do beside their work makes sense where they are.

use std::collections::BTreeSet;

use super::Topology;
use crate::campaign::{Hop, Protocol};
use crate::diagnostic::Findings;
use crate::language::network::end_system;
use crate::network::{NodeKind, NodeStatement, SwitchKind, least_gap};
use crate::statements::Statements;

impl Topology {
    /// Own frames leave by ports that are there; the lines of a hub and of time-triggered frames have one rate.
    pub(super) fn check_imperfections(&self, test: &Statements, found: &mut Findings) {
        if !self.nodes_whole || !self.links_whole {
            return;
        }
        let scheduled = test
            .flows
            .iter()
            .filter(|flow| flow.protocol.as_ref().is_some_and(|protocol| protocol.value == Protocol::Tt));
        let scheduled: BTreeSet<&str> =
            scheduled.filter_map(|flow| Some(flow.from.as_ref()?.value.as_str())).collect();
        for statement in &test.nodes {
            let Some(name) = &statement.name else { continue };
            let Some(node) = self.names.get(&name.value) else { continue };
            let windows =
                scheduled.contains(name.value.as_str()) || statement.is_switch(SwitchKind::MixedCriticality);
            let leaving = &self.leaving[usize::from(*node)];
            if statement.node.line_drift_ppb != 0 {
                let message = if windows {
                    "the lines drift, but windows of time-triggered frames are computed for their nominal rate"
                } else if leaving.iter().any(|hop| self.is_hub(hop.to.node)) {
                    "the line drifts, but it is joined to a hub, whose medium has one rate"
                } else {
                    ""
                };
                if !message.is_empty() {
                    found.error(&statement.place, message, "0ppm", "remove line-drift");
                }
            }
            self.check_gap(statement, windows, leaving, found);
            let Some((switch, parts)) = statement.switch() else { continue };
            let varies =
                !switch.drawn_delay.is_none() || switch.mixed_rate_delay != wg_frame::time::Span::ZERO;
            if varies && switch.kind == SwitchKind::MixedCriticality {
                let message = "the windows of a mixed-criticality switch need a delay that does not vary";
                let cure = "write one time as delay and remove mixed-rate-delay, or another kind";
                found.error(&statement.place, message, "one delay", cure);
            }
            let ports: BTreeSet<u16> = leaving.iter().map(|hop| hop.from.port).collect();
            for (frames, place) in switch.own_frames.iter().zip(&parts.own_frames) {
                let missing: Vec<String> = frames
                    .ports
                    .iter()
                    .filter(|port| !ports.contains(port))
                    .map(ToString::to_string)
                    .collect();
                if !missing.is_empty() {
                    let message = format!("the switch has no link at port {}", missing.join(", "));
                    let have: Vec<String> = ports.iter().map(ToString::to_string).collect();
                    let cure = "list ports that links use, or leave ports out for all of them";
                    found.error(place, message, format!("ports {}", have.join(", ")), cure);
                }
            }
        }
    }

    /// A gap shorter than the standard's upsets what is computed from lengths on the wire.
    fn check_gap(&self, statement: &NodeStatement, windows: bool, leaving: &[Hop], found: &mut Findings) {
        if statement.node.interframe_gap == least_gap() {
            return;
        }
        let classes = match &statement.node.kind {
            NodeKind::Switch(switch) => !switch.tsn.is_empty(),
            _ => statement.tsn.is_some(),
        };
        let message = if matches!(statement.node.kind, NodeKind::Hub { .. }) {
            "a hub has no gap of its own: its stations leave theirs"
        } else if windows || classes {
            "the gap is short, but windows and shapers are computed for the gap of the standard"
        } else if leaving.iter().any(|hop| self.is_hub(hop.to.node)) {
            "the gap is short, but the line is joined to a hub, whose stations wait for the gap of the standard"
        } else {
            return;
        };
        let limit = end_system::INTERFRAME_GAP.default().unwrap_or_default();
        found.error(&statement.place, message, limit, "remove interframe-gap");
    }
}
