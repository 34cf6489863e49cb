//! When applications release messages that go by the network's cycle: as an offset after the warm-up, which is what senders
//! know.
//!
//! A cycle begins whenever the clock of the end system shows a multiple of it, as windows and clusters count it. A sender whose
//! period is a multiple of the cycle, or a part of it, is at the same place of it for ever, by that clock: where a cluster or a
//! PTP domain corrects the clock, its instants follow.

use wg_frame::time::Span;

use super::check::PointCheck;
use super::windows::SLACK;
use crate::campaign::Protocol;
use crate::diagnostic::Findings;
use crate::language::values::CycleOffset;
use crate::model::{FlowModel, SendModel};
use crate::network::{Distribution, HostModel, NodeIndex, NodeKind};
use crate::reader::Sourced;

impl PointCheck<'_> {
    /// The offset of a sender, and where that follows from the dispatch of its flow, how long before it messages are released.
    pub(super) fn release(
        &self,
        send: &SendModel,
        period: Span,
        frame: u32,
        found: &mut Findings,
    ) -> Option<(Span, Option<Span>)> {
        let Some(cycle_offset) = &send.cycle_offset else { return Some((send.offset.as_ref()?.value, None)) };
        let cycle_offset = cycle_offset.as_ref()?;
        let flow = &self.model.flows[send.flow];
        self.check_cycle(flow, cycle_offset, period, found)?;
        let (at, before) = match cycle_offset.value {
            CycleOffset::At(at) if at < period => (at, None),
            CycleOffset::At(_) => {
                let message = format!("{} is not within a period of flow {}", cycle_offset.named(), flow.id);
                let cure = "write a shorter time";
                found.error(&cycle_offset.place, message, format!("less than {period}"), cure);
                return None;
            }
            CycleOffset::Dispatch => {
                let dispatch = flow.carriage.offset.as_ref().map_or(Span::ZERO, |offset| offset.value);
                let before = self.ready_after(flow.ends.as_ref()?.0, frame);
                (dispatch - before, Some(before))
            }
        };
        let warm_up = self.test.warm_up.as_ref()?.value;
        let offset = (at - warm_up).as_picos().rem_euclid(period.as_picos());
        Some((Span::from_picos(offset), before))
    }

    /// A sender keeps its place in the cycle of its flow's schedule, or of the cluster.
    fn check_cycle(
        &self,
        flow: &FlowModel,
        cycle_offset: &Sourced<CycleOffset>,
        period: Span,
        found: &mut Findings,
    ) -> Option<()> {
        let is_scheduled = flow.is(Protocol::Tt);
        if cycle_offset.value == CycleOffset::Dispatch && !is_scheduled {
            let message = format!("flow {} has no dispatch", flow.id);
            let cure = "write a time after the beginning of the cycle, or protocol=\"tt\"";
            found.error(&cycle_offset.place, message, "tt flows", cure);
            return None;
        }
        let of_clusters = self.test.clusters.iter().filter_map(|cluster| cluster.cycle.as_ref());
        let mut cycles: Vec<(&str, Span)> = of_clusters
            .filter(|_| !is_scheduled)
            .map(|cycle| ("the integration cycle", cycle.value))
            .collect();
        if is_scheduled {
            cycles.extend(flow.carriage.period.as_ref().map(|period| ("its schedule", period.value)));
        }
        let divides = |long: Span, short: Span| long.as_picos() % short.as_picos().max(1) == 0;
        let keeps = |cycle: Span| divides(period, cycle) || !is_scheduled && divides(cycle, period);
        if let Some((whose, cycle)) = cycles.into_iter().find(|(_, cycle)| !keeps(*cycle)) {
            let message = format!(
                "the period of {period} of flow {} is no multiple of the {cycle} of {whose}: its messages would come \
                 elsewhere in each cycle",
                flow.id
            );
            let cure = "write a period that is a multiple of it, or offset in place of cycle-offset";
            found.error(&cycle_offset.place, message, format!("a multiple of {cycle}"), cure);
            return None;
        }
        Some(())
    }

    /// The longest from an intended send to a message that is ready for its dispatch. A clock that is not perfect, or is
    /// corrected meanwhile, gets the room that windows have.
    fn ready_after(&self, node: NodeIndex, frame: u32) -> Span {
        let node = &self.topology.network.nodes[usize::from(node)];
        let NodeKind::EndSystem { host } = &node.kind else { return Span::ZERO };
        let read = node.timestamps.as_ref().map_or(Span::ZERO, |timestamps| most(&timestamps.read_cost));
        let steered = !self.test.clusters.is_empty() || !self.test.ptp_domains.is_empty();
        let room = if node.clock.is_perfect() && !steered { Span::ZERO } else { SLACK };
        handing_over(host, frame) + read + room
    }
}

/// The longest that a host takes to hand over a time-triggered message.
fn handing_over(host: &HostModel, frame: u32) -> Span {
    let own = host.stacks.iter().find(|stack| stack.protocol == Protocol::Tt);
    let cost = own.map_or(host.transmit, |stack| stack.costs.transmit);
    most(&host.send_wake_up) + cost.of(u16::try_from(frame).unwrap_or(u16::MAX))
}

/// The most that is drawn.
fn most(drawn: &Distribution) -> Span {
    drawn.quantiles.last().map_or(Span::ZERO, |(_, time)| *time)
}
