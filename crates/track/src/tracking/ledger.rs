//! Outcomes of messages, and the counts of a flow.

use std::collections::BTreeMap;

use super::facts::Facts;
use super::message::{FlowSummary, Message, Outcome, OutcomeCounts, UnplannedCounts, WarmUpCounts};
use super::series::FlowSeries;
use super::window::{Closing, Copies, Instant, Seen, Stretch, UNSEEN, Way};
use wg_record::DropReason;

/// Destination of closed messages.
#[derive(Debug)]
pub(super) struct Closed<'a> {
    /// Rows of the messages, if requested.
    pub(super) rows: Option<&'a mut Vec<Message>>,
    /// Counts of frames that belong to no message.
    pub(super) unplanned: &'a mut UnplannedCounts,
}

/// Phase and life of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) is_warm_up: bool,
    pub(super) planned: u32,
    pub(super) life: u64,
}

/// Totals of the closed messages of a flow and receiver.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) summary: FlowSummary,
    pub(super) series: FlowSeries,
    /// Number of messages by drop reason code.
    drop_reasons: Vec<u64>,
    /// Positions in a stretch without a message.
    unsent: Vec<usize>,
}

impl Ledger {
    pub(super) fn new(facts: &Facts, planned: u32, series: FlowSeries) -> Self {
        let summary = FlowSummary {
            flow: facts.id,
            to: facts.to,
            planned: u64::from(planned),
            sent: 0,
            delivered: 0,
            lost: 0,
            unknown: 0,
            duplicated: 0,
            extra_copies: 0,
            reordered: 0,
            late: 0,
            misdirected: 0,
            corrupted: 0,
            outcomes: OutcomeCounts::default(),
            warm_up: WarmUpCounts::default(),
            drop_reasons: BTreeMap::new(),
            missing_send_records: 0,
            redundant_discarded: 0,
            restarts: 0,
            behind_window: 0,
            unpaired_departures: 0,
        };
        Self { summary, series, drop_reasons: vec![0; DropReason::ALL.len()], unsent: Vec::new() }
    }

    /// The sender restarted its numbers.
    pub(super) fn restarted(&mut self, is_warm_up: bool) {
        self.summary.restarts += u64::from(!is_warm_up);
    }

    /// Gives messages their final outcome.
    ///
    /// A message was sent if the sender says so, or if a verified frame proves it and the plan has it. Beyond the plan
    /// only the sender's application proves it: any other frame is no message, be it left over from another run or
    /// babbled.
    pub(super) fn close(
        &mut self,
        facts: &Facts,
        origin: Origin,
        stretch: Stretch<'_>,
        closed: &mut Closed<'_>,
    ) {
        let planned = origin.planned.saturating_sub(stretch.first) as usize;
        let sent = stretch.column(Instant::TxApp).filter(|_| facts.deadline_ps.is_some());
        let arrived = stretch.column(facts.last_instant());
        let deadline = facts.deadline_ps.unwrap_or(i64::MAX);
        self.unsent.clear();
        // Most messages were sent and delivered without anything else to count.
        let of_plan = &stretch.seen[..planned.min(stretch.seen.len())];
        let first = if sent.is_none() && closed.rows.is_none() {
            of_plan.iter().take_while(|seen| seen.is_plain()).count()
        } else {
            0
        };
        let mut plain = first as u64;
        for (place, seen) in stretch.seen.iter().enumerate().skip(first) {
            let proof =
                if place < planned { Seen::SEND_RECORDED | Seen::VERIFIED } else { Seen::HANDED_OVER };
            let number = u64::from(stretch.first) + place as u64;
            let is_unrecorded =
                place < planned && !origin.is_warm_up && number < u64::from(facts.doubts.handed_over);
            if !seen.has(proof) && !is_unrecorded {
                closed.unplanned.never_sent += u64::from(seen.copies(Copies::ARRIVED));
                closed.unplanned.damaged += u64::from(seen.copies(Copies::CORRUPTED));
                self.unsent.push(place);
                continue;
            }
            let late = match (sent, arrived) {
                (Some(sent), Some(arrived)) if sent[place] != UNSEEN && arrived[place] != UNSEEN => {
                    i128::from(arrived[place]) - i128::from(sent[place]) > i128::from(deadline)
                }
                _ => false,
            };
            if seen.is_plain() && !late {
                plain += 1;
            } else {
                let outcome = judged(facts, stretch.at(place), late);
                if origin.is_warm_up {
                    self.summary.warm_up.sent += 1;
                    self.summary.warm_up.delivered += u64::from(outcome.is_delivered());
                } else {
                    self.count(seen, outcome, late);
                }
            }
            if let Some(rows) = closed.rows.as_deref_mut() {
                let message = stretch.at(place);
                let outcome = judged(facts, message, late);
                rows.push(row(facts, origin, message, outcome, late));
            }
        }
        if origin.is_warm_up {
            self.summary.warm_up.sent += plain;
            self.summary.warm_up.delivered += plain;
        } else {
            self.summary.sent += plain;
            self.summary.delivered += plain;
            self.summary.outcomes.delivered += plain;
            self.series.close(origin.life, stretch, &self.unsent);
        }
    }

    #[cold]
    fn count(&mut self, seen: &Seen, outcome: Outcome, late: bool) {
        let summary = &mut self.summary;
        let delivered = outcome.is_delivered();
        let copies = seen.copies(Copies::INTACT);
        summary.sent += 1;
        summary.delivered += u64::from(delivered);
        summary.lost += u64::from(!delivered && outcome != Outcome::Unknown);
        summary.unknown += u64::from(outcome == Outcome::Unknown);
        summary.duplicated += u64::from(copies > 1);
        summary.extra_copies += u64::from(copies.saturating_sub(1));
        summary.reordered += u64::from(seen.extent > 0);
        summary.late += u64::from(late);
        summary.misdirected += u64::from(seen.copies(Copies::MISDIRECTED) > 0);
        summary.corrupted += u64::from(seen.copies(Copies::CORRUPTED) > 0);
        summary.outcomes.count(outcome);
        summary.missing_send_records += u64::from(!seen.has(Seen::SEND_RECORDED) && seen.has(Seen::VERIFIED));
        summary.redundant_discarded += u64::from(seen.redundant_discarded);
        if let Some(count) = self.drop_reasons.get_mut(usize::from(seen.reason)) {
            *count += 1;
        }
    }

    /// The counts and series, once everything is closed.
    pub(super) fn into_parts(mut self) -> (FlowSummary, FlowSeries) {
        self.series.finish();
        let reasons = DropReason::ALL.iter().filter(|reason| **reason != DropReason::None);
        let counted =
            |reason: &DropReason| (reason.name().to_owned(), self.drop_reasons[usize::from(reason.code())]);
        let drop_reasons = reasons.map(counted).collect();
        (FlowSummary { drop_reasons, ..self.summary }, self.series)
    }
}

/// The outcome of a message, as far as it can be known.
fn judged(facts: &Facts, message: Closing<'_>, late: bool) -> Outcome {
    let outcome = outcome(message.seen, late);
    if outcome.is_delivered() {
        return outcome;
    }
    let sent = [Instant::TxApp, Instant::Intended, Instant::TxDrv].into_iter().find_map(|at| message.ps(at));
    let is_open = !message.seen.has(Seen::SEND_RECORDED | Seen::VERIFIED)
        || facts.doubts.leave_open(facts.goes_two_ways, message.seen, sent);
    if is_open { Outcome::Unknown } else { outcome }
}

fn outcome(seen: &Seen, late: bool) -> Outcome {
    match seen.copies(Copies::INTACT) {
        2.. => Outcome::Duplicated,
        1 if seen.extent > 0 => Outcome::Reordered,
        1 if late => Outcome::Late,
        1 => Outcome::Delivered,
        0 if seen.copies(Copies::CORRUPTED) > 0 => Outcome::Corrupted,
        0 if seen.copies(Copies::MISDIRECTED) > 0 => Outcome::Misdirected,
        0 => Outcome::Lost,
    }
}

fn row(facts: &Facts, origin: Origin, message: Closing<'_>, outcome: Outcome, late: bool) -> Message {
    let seen = message.seen;
    let is_delivered = message.ps(facts.last_instant()).is_some();
    let last = Some(seen.last).filter(|last| !is_delivered && *last != Way::NOWHERE);
    Message {
        flow: facts.id,
        to: facts.to,
        sequence: message.sequence,
        life: u16::try_from(origin.life).unwrap_or(u16::MAX),
        warm_up: origin.is_warm_up,
        outcome,
        intended: message.time(Instant::Intended),
        tx_app: message.time(Instant::TxApp),
        tx_drv: message.time(Instant::TxDrv),
        rx_drv: message.time(Instant::RxDrv),
        rx_app: message.time(Instant::RxApp),
        back_tx_app: message.time(Instant::BackTxApp),
        back_tx_drv: message.time(Instant::BackTxDrv),
        back_rx_drv: message.time(Instant::BackRxDrv),
        back_rx_app: message.time(Instant::BackRxApp),
        tx_wire: message.time(Instant::TxWire),
        tx_wire_b: message.time(Instant::TxWireB),
        rx_wire: message.time(Instant::RxWire),
        rx_wire_b: message.time(Instant::RxWireB),
        length: seen.length(),
        copies: seen.copies(Copies::INTACT),
        corrupted_copies: seen.copies(Copies::CORRUPTED),
        misdirected_copies: seen.copies(Copies::MISDIRECTED),
        reordered: seen.extent > 0,
        reorder_extent: seen.extent,
        late,
        last_node: last.map(Way::node),
        last_point: last.and_then(Way::point),
        drop_reason: DropReason::from_code(seen.reason).unwrap_or(DropReason::None),
    }
}
