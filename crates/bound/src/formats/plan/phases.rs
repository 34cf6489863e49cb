//! Known instants: when periodic senders send, and when the gates of ports are open.

use std::collections::BTreeMap;

use wg_frame::time::Span;
use wg_plan::{Attachment, Flow as PlannedFlow, NodeIndex, Send};

use super::classes::{is_open, rank};
use super::{Reading, seconds};
use crate::instants::{GateTimes, Instants, picos_down, picos_up};
use crate::rational::Rational;

impl Reading<'_> {
    /// Greatest deviation of a clock in a run from true time and its constant offset, its ticks included, ps.
    pub(super) fn deviation(&self, node: NodeIndex) -> i128 {
        let run = seconds(self.run.warm_up + self.run.duration + self.run.drain);
        let drifted = &(&self.fast(node) - &Rational::ONE) * &run;
        picos_up(&(&drifted + &self.coarse(node)))
    }

    /// Reading of a node's clock at the epoch, ps.
    pub(super) fn clock_offset(&self, node: NodeIndex) -> i128 {
        i128::from(self.network.nodes[usize::from(node)].clock.offset.as_picos())
    }

    /// When the messages of one periodic sender are sent, if no other message of the flow delays them.
    pub(super) fn instants(&self, flow: &PlannedFlow, sends: &[&Send]) -> Option<Instants> {
        let [send] = sends else { return None };
        let is_periodic = send.pattern.is_periodic()
            && send.replay.is_none()
            && send.rate_limit_bps.is_none()
            && send.activity.is_none()
            && send.pacing.is_none();
        let is_on_time = self.behind(flow.from, send).is_zero();
        let is_relayed = self.run.relays.iter().any(|relay| relay.flow == flow.id);
        if !is_periodic
            || !is_on_time
            || is_relayed
            || flow.virtual_link.is_some()
            || send.period <= Span::ZERO
        {
            return None;
        }
        let calls = self.handed_over(flow, send);
        let due = i128::from((self.run.warm_up + send.offset).as_picos()) - self.clock_offset(flow.from);
        let deviation = self.deviation(flow.from);
        Some(Instants {
            first: due + picos_down(&calls.soonest) - deviation,
            varies: picos_up(&calls.varies) + 2 * deviation,
            period: i128::from(send.period.as_picos()),
        })
    }

    /// Instants at which the gates of a port are open, by class.
    pub(super) fn gate_times(&self, at: Attachment) -> BTreeMap<u8, GateTimes> {
        let Some((tsn, schedule)) = self.tsn(at).and_then(|tsn| {
            let schedule = tsn.schedules.first().cloned();
            schedule.map(|schedule| (tsn, schedule))
        }) else {
            return BTreeMap::new();
        };
        let deviation = self.deviation(at.node);
        // What the interface of a host takes comes after its gates, and before the line.
        let after = i128::from(self.host(at.node).interface_delay.as_picos());
        let base = i128::from(schedule.base_time.as_picos()) - self.clock_offset(at.node) + after;
        let slow = &Rational::integer(2) - &self.fast(at.node);
        let drifts = self.network.nodes[usize::from(at.node)].line_drift_ppb != 0;
        let of = |class: usize| {
            let entries: Vec<(bool, Vec<u8>, i128)> = schedule
                .entries
                .iter()
                .map(|entry| {
                    let others = entry.open.iter().copied().filter(|other| usize::from(*other) != class);
                    (is_open(entry, class), others.collect(), i128::from(entry.length.as_picos()))
                })
                .collect();
            let (cycle, open) = GateTimes::openings(base, &entries);
            let guard = tsn.guard_band.map(|guard| picos_up(&(&seconds(guard) / &slow)));
            GateTimes { cycle, open, deviation, guard, overrun: guard.is_some() || deviation > 0 || drifts }
        };
        (0..tsn.classes.len()).map(|class| (rank(&tsn, class), of(class))).collect()
    }
}
