//! From what was seen of each message to its outcome.

use std::collections::BTreeMap;

use super::flow::FlowState;
use super::message::{FlowSummary, Message, Outcome, OutcomeCounts, UnplannedCounts, WarmUpCounts};
use super::store::{Instant, Messages, Seen, Way};
use crate::schema::DropReason;

/// Judges the messages of one flow: appends their rows and returns their counts.
pub(super) fn flow(flow: FlowState, rows: &mut Vec<Message>, unplanned: &mut UnplannedCounts) -> FlowSummary {
    let mut summary = FlowSummary {
        flow: flow.id,
        to: flow.to,
        planned: u64::from(flow.measured.planned()),
        sent: 0,
        delivered: 0,
        lost: 0,
        duplicated: 0,
        extra_copies: 0,
        reordered: 0,
        late: 0,
        misdirected: 0,
        corrupted: 0,
        outcomes: OutcomeCounts::default(),
        warm_up: WarmUpCounts::default(),
        drop_reasons: DropReason::ALL
            .iter()
            .filter(|reason| **reason != DropReason::None)
            .map(|reason| (reason.name().to_owned(), 0))
            .collect::<BTreeMap<_, _>>(),
        missing_send_records: 0,
        second_copies: 0,
    };
    for warm_up in [true, false] {
        let messages = if warm_up { &flow.warm_up } else { &flow.measured };
        let from = rows.len();
        let arrivals = rows_of(&flow, messages, warm_up, rows, unplanned);
        let rows = &mut rows[from..];
        mark_reordered(rows, &arrivals);
        for row in rows {
            row.outcome = outcome(row);
            if warm_up {
                summary.warm_up.sent += 1;
                summary.warm_up.delivered += u64::from(row.outcome.is_delivered());
            } else {
                count(&mut summary, row);
            }
        }
        if !warm_up {
            summary.missing_send_records =
                sent(messages).filter(|(_, seen)| !seen.send_recorded).count() as u64;
            summary.second_copies = sent(messages).map(|(_, seen)| u64::from(seen.second_copies)).sum();
        }
    }
    summary
}

/// Messages that were sent: the sender says so, or a verified frame proves it and the plan has it. Beyond the plan
/// only the sender's application proves it: a frame that it does not know of is no message, be it left over from
/// another run or babbled.
fn sent(messages: &Messages) -> impl Iterator<Item = (u32, &Seen)> {
    messages.iter().filter(|(sequence, seen)| was_sent(messages, *sequence, seen))
}

fn was_sent(messages: &Messages, sequence: u32, seen: &Seen) -> bool {
    if sequence < messages.planned() { seen.send_recorded || seen.verified } else { seen.handed_over }
}

/// One arrival at the final destination, in the order in which reordering is judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    time_ps: i64,
    input_order: u64,
    /// Place among the rows of its flow and phase, which ascend in sequence.
    row: usize,
}

/// Appends the rows of the messages that were sent, with all but reordering and outcome, and returns the
/// arrivals of their first intact copies in order of arrival.
fn rows_of(
    flow: &FlowState,
    messages: &Messages,
    warm_up: bool,
    rows: &mut Vec<Message>,
    unplanned: &mut UnplannedCounts,
) -> Vec<Arrival> {
    let from = rows.len();
    let mut arrivals = Vec::new();
    let last_instant = if flow.relayed { Instant::BackRxApp } else { Instant::RxApp };
    for (sequence, seen) in messages.iter() {
        if !was_sent(messages, sequence, seen) {
            unplanned.never_sent += u64::from(seen.arrivals);
            unplanned.damaged += u64::from(seen.corrupted);
            continue;
        }
        let arrived = seen.time(last_instant);
        if let Some(time) = arrived {
            arrivals.push(Arrival {
                time_ps: time.as_picos(),
                input_order: seen.first_copy_order,
                row: rows.len() - from,
            });
        }
        let late = match (flow.deadline_ps, seen.time(Instant::TxApp), arrived) {
            (Some(deadline), Some(sent), Some(arrived)) => {
                i128::from(arrived.as_picos()) - i128::from(sent.as_picos()) > i128::from(deadline)
            }
            _ => false,
        };
        let last = Some(seen.last).filter(|last| arrived.is_none() && *last != Way::NOWHERE);
        rows.push(Message {
            flow: flow.id,
            to: flow.to,
            sequence,
            warm_up,
            outcome: Outcome::Lost,
            intended: seen.time(Instant::Intended),
            tx_app: seen.time(Instant::TxApp),
            tx_drv: seen.time(Instant::TxDrv),
            rx_drv: seen.time(Instant::RxDrv),
            rx_app: seen.time(Instant::RxApp),
            back_tx_app: seen.time(Instant::BackTxApp),
            back_tx_drv: seen.time(Instant::BackTxDrv),
            back_rx_drv: seen.time(Instant::BackRxDrv),
            back_rx_app: seen.time(Instant::BackRxApp),
            tx_wire: seen.time(Instant::TxWire),
            tx_wire_b: seen.time(Instant::TxWireB),
            rx_wire: seen.time(Instant::RxWire),
            rx_wire_b: seen.time(Instant::RxWireB),
            length: seen.first.1,
            copies: saturated(seen.copies),
            corrupted_copies: saturated(seen.corrupted),
            misdirected_copies: saturated(seen.misdirected),
            reordered: false,
            reorder_extent: 0,
            late,
            last_node: last.map(Way::node),
            last_point: last.and_then(Way::point),
            drop_reason: DropReason::from_code(seen.drop.1).unwrap_or(DropReason::None),
        });
    }
    arrivals.sort_unstable();
    arrivals
}

/// RFC 4737, 3.3: a message is reordered when its number is below NextExp, one more than the highest number
/// that came before it. Its extent (4.2.1) is its distance in arrivals from the earliest arrival with a
/// higher number; the highest number so far only rises, so that arrival is found by bisection.
fn mark_reordered(rows: &mut [Message], arrivals: &[Arrival]) {
    // Arrivals that raised the highest number: (place in the order of arrival, row).
    let mut records: Vec<(usize, usize)> = Vec::new();
    for (place, arrival) in arrivals.iter().enumerate() {
        match records.last() {
            Some(&(_, highest)) if arrival.row < highest => {
                let earliest = records.partition_point(|&(_, row)| row < arrival.row);
                let extent = place - records[earliest].0;
                rows[arrival.row].reordered = true;
                rows[arrival.row].reorder_extent = u32::try_from(extent).unwrap_or(u32::MAX);
            }
            _ => records.push((place, arrival.row)),
        }
    }
}

fn outcome(row: &Message) -> Outcome {
    if row.copies > 1 {
        Outcome::Duplicated
    } else if row.copies == 1 && row.reordered {
        Outcome::Reordered
    } else if row.copies == 1 && row.late {
        Outcome::Late
    } else if row.copies == 1 {
        Outcome::Delivered
    } else if row.corrupted_copies > 0 {
        Outcome::Corrupted
    } else if row.misdirected_copies > 0 {
        Outcome::Misdirected
    } else {
        Outcome::Lost
    }
}

fn count(summary: &mut FlowSummary, row: &Message) {
    let delivered = row.outcome.is_delivered();
    summary.sent += 1;
    summary.delivered += u64::from(delivered);
    summary.lost += u64::from(!delivered);
    summary.duplicated += u64::from(row.copies > 1);
    summary.extra_copies += u64::from(row.copies.saturating_sub(1));
    summary.reordered += u64::from(row.reordered);
    summary.late += u64::from(row.late);
    summary.misdirected += u64::from(row.misdirected_copies > 0);
    summary.corrupted += u64::from(row.corrupted_copies > 0);
    summary.outcomes.count(row.outcome);
    if row.drop_reason != DropReason::None {
        *summary.drop_reasons.entry(row.drop_reason.name().to_owned()).or_insert(0) += 1;
    }
}

fn saturated(count: u32) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
