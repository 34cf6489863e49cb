//! The tracker against an independent judge, against itself, and against planted truth.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use wg_frame::time::RunTime;
use wg_plan::Run;
use wg_record::{Crc, DropReason, FLOW_FOREIGN, Point, Record, RecordFlags};
use wg_track::tracking::{Message, Outcome, Tracker};

use crate::oracle::{Judged, Mutant, judge};
use crate::scenario::{ONE_WAY, RELAYED, network, record, records, run};

fn track(run: &Run, records: &[Record]) -> Judged {
    let mut records = records.to_vec();
    records.sort_by_key(|r| r.time);
    let mut tracker = Tracker::new(&network(), run);
    tracker.observe_all(&records);
    let tracked = tracker.finish();
    Judged { messages: tracked.messages, summary: tracked.summary }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn agrees_with_the_independent_judge(records in records(run(6, 3))) {
        let run = run(6, 3);
        prop_assert_eq!(track(&run, &records), judge(&run, &records, Mutant::None));
    }

    #[test]
    fn every_message_has_one_outcome(records in records(run(6, 3))) {
        let tracked = track(&run(6, 3), &records);
        for flow in &tracked.summary.flows {
            prop_assert_eq!(flow.sent, flow.delivered + flow.lost);
            prop_assert_eq!(flow.sent, flow.outcomes.total());
            let mine = |m: &&Message| (m.flow, m.to) == (flow.flow, flow.to) && !m.warm_up;
            let rows = tracked.messages.iter().filter(mine);
            prop_assert_eq!(flow.sent, rows.count() as u64);
        }
        for m in &tracked.messages {
            prop_assert_eq!(m.outcome.is_delivered(), m.copies > 0);
            prop_assert!(m.last_node.is_none() || m.copies == 0);
            prop_assert_eq!(m.reordered, m.reorder_extent > 0);
        }
        let key = |m: &Message| (m.flow, m.to, !m.warm_up, m.life, m.sequence);
        prop_assert!(tracked.messages.windows(2).all(|w| key(&w[0]) < key(&w[1])));
    }

    #[test]
    fn the_order_of_the_records_does_not_matter_without_ties(
        (records, shuffled) in records(run(6, 3)).prop_flat_map(|mut records| {
            for (i, r) in records.iter_mut().enumerate() {
                r.time = RunTime::from_picos(r.time.as_picos() * 1_000 + i as i64);
            }
            (Just(records.clone()), Just(records).prop_shuffle())
        })
    ) {
        prop_assert_eq!(track(&run(6, 3), &records), track(&run(6, 3), &shuffled));
    }

}

proptest! {
    #[test]
    fn nonsense_in_every_field_is_judged_without_a_panic(
        wild in prop::collection::vec((any::<i64>(), any::<u32>(), any::<u16>(), 0u8..12), 0..50)
    ) {
        let records: Vec<Record> = wild
            .into_iter()
            .map(|(time, sequence, node, point)| Record {
                crc: Crc::Ok,
                ..record(
                    if node % 2 == 0 { ONE_WAY } else { RELAYED },
                    sequence,
                    node % 9,
                    Point::from_code(point).unwrap_or(Point::ApplicationReceive),
                    time,
                )
            })
            .collect();
        let tracked = track(&run(u32::MAX, u32::MAX), &records);
        prop_assert!(tracked.summary.flows.iter().all(|flow| flow.sent == flow.delivered + flow.lost));
    }
}

/// The scenarios are worth nothing if they would not notice a broken rule.
#[test]
fn every_broken_rule_is_noticed() {
    let run = run(6, 3);
    let mut runner = TestRunner::deterministic();
    let strategy = records(run.clone());
    let mut unnoticed = Mutant::BROKEN.to_vec();
    for _ in 0..1_500 {
        let scenario = strategy.new_tree(&mut runner).expect("a scenario").current();
        let tracked = track(&run, &scenario);
        unnoticed.retain(|&mutant| tracked == judge(&run, &scenario, mutant));
        if unnoticed.is_empty() {
            return;
        }
    }
    panic!("no scenario tells {unnoticed:?} from the rule");
}

/// What a relay is told to do with a message.
fn planted(sequence: u32) -> Outcome {
    match sequence % 1_000 {
        100..=104 => Outcome::Lost,
        200..=203 => Outcome::Duplicated,
        300 | 310 | 320 => Outcome::Reordered,
        400..=401 => Outcome::Corrupted,
        500 => Outcome::Misdirected,
        600..=609 => Outcome::Late,
        _ => Outcome::Delivered,
    }
}

/// Every record two agents make of `count` relayed messages with planted faults, agent by agent.
fn planted_records(count: u32, warm_up: u32) -> Vec<Record> {
    let mut streams: [Vec<Record>; 3] = Default::default();
    let phases = (0..warm_up).map(|k| (true, k)).chain((0..count).map(|k| (false, k)));
    for (is_warm_up, k) in phases {
        let flags = if is_warm_up { RecordFlags::WARM_UP } else { RecordFlags::empty() };
        let back = flags.with(RecordFlags::RETURN);
        let outcome = if is_warm_up { Outcome::Delivered } else { planted(k) };
        let start = (i64::from(k) + if is_warm_up { 0 } else { i64::from(warm_up) }) * 100;
        let mut note = |stream: usize, node, point, time, crc, flags| {
            streams[stream].push(Record { crc, flags, ..record(RELAYED, k, node, point, time) });
        };
        use Point::{ApplicationReceive, ApplicationSend, DriverReceive, DriverSend, Drop, IntendedSend};
        note(0, 1, IntendedSend, start, Crc::Unchecked, flags);
        note(0, 1, ApplicationSend, start + 1, Crc::Unchecked, flags);
        note(0, 1, DriverSend, start + 2, Crc::Unchecked, flags);
        note(1, 0, DriverReceive, start + 8, Crc::Ok, flags);
        note(1, 0, ApplicationReceive, start + 9, Crc::Ok, flags);
        if outcome == Outcome::Lost {
            note(1, 0, Drop, start + 10, Crc::Unchecked, flags);
            streams[1].last_mut().expect("just pushed").reason = DropReason::PlantedFault;
            continue;
        }
        // A swapped message leaves after its successor, a late one holds up longer than the deadline.
        let wait = match outcome {
            Outcome::Reordered => 105,
            Outcome::Late => 50,
            _ => 0,
        };
        let copies = if outcome == Outcome::Duplicated { 2 } else { 1 };
        for copy in 0..copies {
            let sent = start + 10 + wait + copy;
            note(1, 0, ApplicationSend, sent, Crc::Ok, back);
            note(1, 0, DriverSend, sent + 1, Crc::Unchecked, back);
            let (stream, node) = if outcome == Outcome::Misdirected { (2, 3) } else { (0, 1) };
            let crc = if outcome == Outcome::Corrupted { Crc::Bad } else { Crc::Ok };
            note(stream, node, DriverReceive, sent + 7, crc, back);
            note(stream, node, ApplicationReceive, sent + 8, crc, back);
        }
    }
    streams.concat()
}

#[test]
fn planted_truth_comes_back_exactly_for_100_000_messages() {
    const COUNT: u32 = 100_000;
    let run = run(COUNT, 500);
    let mut records = planted_records(COUNT, 500);
    records.push(record(FLOW_FOREIGN, 0, 3, Point::ApplicationReceive, 5));
    records.push(record(99, 0, 3, Point::ApplicationReceive, 5));
    let tracked = track(&run, &records);
    let measured: Vec<&Message> = tracked.messages.iter().filter(|m| !m.warm_up).collect();
    assert_eq!(measured.len(), COUNT as usize);
    for m in measured {
        let expected = planted(m.sequence);
        assert_eq!(m.outcome, expected, "{m:?}");
        assert_eq!(m.reorder_extent, u32::from(expected == Outcome::Reordered), "{m:?}");
        let reason = if expected == Outcome::Lost { DropReason::PlantedFault } else { DropReason::None };
        assert_eq!(m.drop_reason, reason, "{m:?}");
        if expected == Outcome::Lost {
            assert_eq!((m.last_node, m.last_point), (Some(0), Some(Point::Drop)));
        }
    }
    let flow = tracked.summary.flows.iter().find(|flow| flow.flow == RELAYED).unwrap();
    let n = u64::from(COUNT) / 1_000;
    assert_eq!((flow.planned, flow.sent, flow.delivered, flow.lost), (100_000, 100_000, 992 * n, 8 * n));
    assert_eq!((flow.duplicated, flow.extra_copies, flow.reordered), (4 * n, 4 * n, 3 * n));
    assert_eq!((flow.corrupted, flow.misdirected), (2 * n, n));
    // A swapped message waits beyond the deadline too.
    assert_eq!((flow.outcomes.late, flow.late), (10 * n, 13 * n));
    assert_eq!(flow.drop_reasons["planted-fault"], 5 * n);
    assert_eq!((flow.warm_up.sent, flow.warm_up.delivered, flow.missing_send_records), (500, 500, 0));
    let unplanned = tracked.summary.unplanned;
    assert_eq!((unplanned.foreign, unplanned.unknown_flow), (1, 1));
    assert_eq!((unplanned.never_sent, unplanned.damaged), (0, 0));
}

/// One disturbance touches one message, however many follow it.
#[test]
fn one_duplicate_or_swap_leaves_the_rest_alone() {
    let run = run(1_000, 0);
    for disturbed in ["duplicate", "swap", "loss"] {
        let mut records = Vec::new();
        for k in 0..1_000u32 {
            let at = i64::from(k) * 10;
            records.push(record(ONE_WAY, k, 0, Point::ApplicationSend, at));
            let (copies, delay) = match (k, disturbed) {
                (500, "duplicate") => (2, 5),
                (500, "swap") => (1, 16),
                (500, _) => (0, 5),
                _ => (1, 5),
            };
            for _ in 0..copies {
                records.push(record(ONE_WAY, k, 1, Point::ApplicationReceive, at + delay));
            }
        }
        let tracked = track(&run, &records);
        let odd: Vec<u32> =
            tracked.messages.iter().filter(|m| m.outcome != Outcome::Delivered).map(|m| m.sequence).collect();
        assert_eq!(odd, [500], "{disturbed}");
    }
}
