//! Long runs: windows, lives, partitions, damage. Small windows stand for long runs.

use std::path::PathBuf;

use proptest::prelude::*;
use wg_frame::time::RunTime;
use wg_plan::{Flow, Protocol, Route, Run, Send};
use wg_record::segment::{SegmentInfo, SegmentWriter, segment_files};
use wg_record::{Clock, Point, Record, RecordFlags};
use wg_track::parquet::read_records;
use wg_track::tracking::{Measure, Message, Outcome, Tracked, Tracker, window_for};
use wg_track::{process_run, retrack, summarise, track_part};

use crate::oracle::{Judged, Mutant, judge};
use crate::scenario::{BOTH, MULTICAST, ONE_WAY, RELAYED, network, record, records, run};
use crate::support::{Scratch, tables, write_records};

/// A window that long sequences leave behind.
const SMALL: usize = 64;

fn tracked_in(run: &Run, records: &[Record], window: usize) -> Tracked {
    let mut tracker = Tracker::with_window(&network(), run, 0, 1, true, window);
    tracker.observe_all(records);
    tracker.finish()
}

/// What happens to message `k` of a long sequence.
#[derive(Clone, Copy, Debug)]
struct Step {
    copies: u8,
    /// Held back behind so many successors.
    behind: u8,
    is_recorded: bool,
}

fn step() -> impl Strategy<Value = Step> {
    (prop_oneof![1 => Just(0u8), 8 => Just(1), 1 => Just(2)], 0u8..12, prop::bool::weighted(0.95))
        .prop_map(|(copies, behind, is_recorded)| Step { copies, behind, is_recorded })
}

/// Records of messages 1 us apart, sent under the numbers `from..`, beginning anew after `restart` messages.
fn long_records(steps: &[Step], from: u32, restart: Option<usize>) -> Vec<Record> {
    let mut records = Vec::new();
    for (k, step) in steps.iter().enumerate() {
        let number = match restart {
            Some(after) if k >= after => (k - after) as u32,
            _ => from.wrapping_add(k as u32),
        };
        let sent = k as i64 * 1_000_000;
        if step.is_recorded {
            records.push(record(ONE_WAY, number, 0, Point::ApplicationSend, sent));
        }
        for copy in 0..step.copies {
            let arrived =
                sent + (i64::from(step.behind) + i64::from(copy)) * 1_000_000 + 300_000 + k as i64 % 7;
            records.push(record(ONE_WAY, number, 1, Point::ApplicationReceive, arrived));
        }
    }
    records.sort_by_key(|r| r.time);
    records
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// What leaves a window was whole: the answer is that of a window for everything, and of the judge without any.
    #[test]
    fn a_small_window_gives_the_same_answer(steps in prop::collection::vec(step(), 1..400)) {
        let run = run(400, 0);
        let records = long_records(&steps, 0, None);
        let small = tracked_in(&run, &records, SMALL);
        let large = tracked_in(&run, &records, 1 << 12);
        prop_assert_eq!(&small.messages, &large.messages);
        prop_assert_eq!(&small.summary.flows, &large.summary.flows);
        let judged = judge(&run, &records, Mutant::None);
        prop_assert_eq!(small.messages, judged.messages);
        prop_assert_eq!(small.summary.flows, judged.summary.flows);
    }

    /// A restart, and numbers that run over, begin a new life; a small window changes nothing.
    #[test]
    fn numbers_that_begin_anew_are_told_apart(
        steps in prop::collection::vec(step(), 30..300), at in any::<prop::sample::Index>()
    ) {
        let run = run(u32::MAX, 0);
        let steps: Vec<Step> = steps.into_iter().map(|step| Step { is_recorded: true, ..step }).collect();
        // The new life repeats a number once it has any in common with the old one: at once.
        let records = long_records(&steps, 0, Some(1 + at.index(steps.len() - 1)));
        let small = tracked_in(&run, &records, SMALL);
        let judged = judge(&run, &records, Mutant::None);
        prop_assert_eq!(&small.messages, &judged.messages);
        prop_assert_eq!(&small.summary.flows, &judged.summary.flows);
        let flow = small.summary.flows.iter().find(|flow| flow.flow == ONE_WAY).unwrap();
        prop_assert_eq!((flow.restarts, flow.sent), (1, steps.len() as u64));
    }

    /// Any division of the records into files, in any order, gives the answer of the whole.
    #[test]
    fn the_division_into_files_does_not_matter(
        (all, owners) in records(run(6, 3)).prop_flat_map(|records| {
            let n = records.len();
            (Just(records), prop::collection::vec(0usize..4, n))
        }),
        shift in 0usize..4,
    ) {
        let scratch = Scratch::new();
        let (network, run) = (network(), run(6, 3));
        // Without ties, whose order is that of the files.
        let mut all = all;
        for (i, r) in all.iter_mut().enumerate() {
            r.time = RunTime::from_picos(r.time.as_picos() * 1_000 + i as i64);
        }
        let mut parts: Vec<Vec<Record>> = vec![Vec::new(); 4];
        all.iter().zip(&owners).for_each(|(r, owner)| parts[*owner].push(*r));
        let mut files: Vec<PathBuf> = Vec::new();
        for (i, part) in parts.iter_mut().enumerate() {
            let path = scratch.path().join(format!("part-{}.parquet", (i + shift) % 4));
            write_records(&path, run.index, part).unwrap();
            files.push(path);
        }
        files.sort();
        let out = tables(scratch.path(), "parts");
        let summary = retrack(&network, &run, &files, &[], &out).unwrap();
        let Judged { summary: expected, .. } = judge(&run, &all, Mutant::None);
        prop_assert_eq!(&summary, &expected);

        // Part by part of the flows, the counts add up to the same.
        let mut flows = Vec::new();
        let mut unplanned = [0; 4];
        for part in 0..3 {
            let out = tables(scratch.path(), &format!("flows-{part}"));
            let share = track_part(&network, &run, &files, &[], [part, 3], &out).unwrap();
            flows.extend(share.flows);
            let u = share.unplanned;
            unplanned = [u.foreign, u.unknown_flow, u.never_sent, u.damaged].iter().zip(unplanned).map(|(a, b)| a + b)
                .collect::<Vec<_>>().try_into().unwrap();
        }
        flows.sort_by_key(|flow| flow.flow);
        prop_assert_eq!(&flows, &expected.flows);
        let u = expected.unplanned;
        prop_assert_eq!(unplanned, [u.foreign, u.unknown_flow, u.never_sent, u.damaged]);

        // And so do any number of threads.
        for threads in [1, 2, 5] {
            prop_assert_eq!(&summarise(&network, &run, &files, &[Measure::Latency], threads).unwrap().0, &expected);
        }
    }

    /// The sketches are those of the rows' differences.
    #[test]
    fn sketches_hold_what_the_rows_say(steps in prop::collection::vec(step(), 1..300)) {
        let run = run(400, 0);
        let records = long_records(&steps, 0, None);
        let tracked = tracked_in(&run, &records, SMALL);
        let (_, _, series) =
            tracked.distributions.flows.iter().find(|(flow, _, _)| *flow == ONE_WAY).unwrap();
        let ps = |time: Option<RunTime>| time.map(RunTime::as_picos);
        let rows: Vec<&Message> = tracked.messages.iter().filter(|m| m.flow == ONE_WAY).collect();
        let latency = |m: &Message| Some(ps(m.rx_app)? - ps(m.tx_app)?);
        let following = |value: &dyn Fn(&Message) -> Option<i64>| -> Vec<i64> {
            let pairs = rows.windows(2).filter(|pair| pair[0].sequence + 1 == pair[1].sequence);
            pairs.filter_map(|pair| Some(value(pair[1])? - value(pair[0])?)).collect()
        };
        let mut arrivals: Vec<i64> = rows.iter().filter_map(|m| ps(m.rx_app)).collect();
        arrivals.sort_unstable();
        let expected: [(Measure, Vec<i64>); 4] = [
            (Measure::Latency, rows.iter().filter_map(|m| latency(m)).collect()),
            (Measure::Period, following(&|m| ps(m.tx_app))),
            (Measure::Ipdv, following(&latency)),
            (Measure::ReceivePeriod, arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect()),
        ];
        for (measure, mut values) in expected {
            values.sort_unstable();
            let sketch = series.sketch(measure).unwrap();
            prop_assert_eq!(sketch.n(), values.len() as u64, "{:?}", measure);
            prop_assert_eq!((sketch.min(), sketch.max()), (values.first().copied(), values.last().copied()));
            for (rank, value) in (1..).zip(values) {
                let bucket = sketch.rank(rank).unwrap();
                prop_assert!(bucket.low <= value && value <= bucket.high, "{:?}", measure);
            }
        }
    }
}

#[test]
fn numbers_run_over_at_32_bits() {
    let run = run(u32::MAX, 0);
    let steady = vec![Step { copies: 1, behind: 0, is_recorded: true }; 300];
    // The numbers from 2^32 - 100 on, then 0 again; the first number that is handed over again is beyond the window.
    let first = long_records(&[steady[0]; 1], 0, None);
    let records: Vec<Record> = first
        .iter()
        .copied()
        .chain(
            long_records(&steady, u32::MAX - 99, None)
                .into_iter()
                .map(|r| Record { time: RunTime::from_picos(r.time.as_picos() + 10_000_000), ..r }),
        )
        .collect();
    let tracked = tracked_in(&run, &records, SMALL);
    let flow = tracked.summary.flows.iter().find(|flow| flow.flow == ONE_WAY).unwrap();
    assert_eq!((flow.sent, flow.delivered, flow.reordered, flow.restarts), (301, 301, 0, 1));
    assert_eq!((flow.behind_window, flow.duplicated), (0, 0));
    let lives: Vec<(u16, u32)> = tracked.messages.iter().map(|m| (m.life, m.sequence)).collect();
    assert!(lives.is_sorted());
}

#[test]
fn what_comes_behind_the_window_is_counted_and_changes_nothing() {
    let run = run(400, 0);
    let steady = vec![Step { copies: 1, behind: 0, is_recorded: true }; 400];
    let mut records = long_records(&steady, 0, None);
    let before = tracked_in(&run, &records, SMALL);
    records.push(record(ONE_WAY, 3, 1, Point::ApplicationReceive, 500_000_000));
    let after = tracked_in(&run, &records, SMALL);
    assert_eq!(before.messages, after.messages);
    let behind = |tracked: &Tracked| tracked.summary.flows.iter().map(|flow| flow.behind_window).sum::<u64>();
    assert_eq!((behind(&before), behind(&after)), (0, 1));
    // In a window for everything it is the duplicate it is.
    let whole = tracked_in(&run, &records, 1 << 12);
    assert_eq!(whole.messages[3].outcome, Outcome::Duplicated);
}

/// Records of a sender that takes three times as long as planned: message by message as it makes them, with what
/// arrives.
fn late_records(count: u32) -> Vec<Record> {
    let of = |k: u32| {
        let (due, sent) = (i64::from(k) * 1_000_000, i64::from(k) * 3_000_000 + 500);
        let intended = Record { clock: Clock::Schedule, ..record(ONE_WAY, k, 0, Point::IntendedSend, due) };
        let handed_over = record(ONE_WAY, k, 0, Point::ApplicationSend, sent);
        [intended, handed_over, record(ONE_WAY, k, 1, Point::ApplicationReceive, sent + 700_000)]
    };
    (0..count).flat_map(of).collect()
}

/// What was due by then is no sign of what was sent: a sender far behind its schedule has not begun anew.
#[test]
fn a_late_sender_is_late_and_not_restarted() {
    const COUNT: u32 = 3_000;
    let as_made = late_records(COUNT);
    let mut by_time = as_made.clone();
    by_time.sort_by_key(|record| record.time);
    let run = run(COUNT, 0);
    let judged = judge(&run, &as_made, Mutant::None);
    for (records, window) in [(&as_made, SMALL), (&by_time, SMALL), (&by_time, 1 << 14)] {
        let tracked = tracked_in(&run, records, window);
        let flow = tracked.summary.flows.iter().find(|flow| flow.flow == ONE_WAY).unwrap();
        assert_eq!((flow.restarts, flow.behind_window, flow.delivered), (0, 0, u64::from(COUNT)));
        let due = |m: &Message| m.intended.map(RunTime::as_picos) == Some(i64::from(m.sequence) * 1_000_000);
        assert!(tracked.messages.iter().all(due));
        assert_eq!(tracked.messages, judged.messages);
    }
}

/// A sender later than the sorter's reach: its intended times have no place in the order of what happened.
#[test]
fn lateness_beyond_what_is_sorted_is_no_disorder() {
    const COUNT: u32 = 150_000;
    let scratch = Scratch::new();
    let run = run(COUNT, 0);
    let info = SegmentInfo { end_system: "n0".into(), node: 0, run_index: run.index, epoch_realtime_ns: 9 };
    let spool = scratch.path().join("spool");
    let mut writer = SegmentWriter::create(&spool, info).unwrap();
    late_records(COUNT).chunks(4_096).for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    let stored = scratch.path().join("records.parquet");
    let out = tables(scratch.path(), "late");
    let summary = process_run(&network(), &run, &segment_files(&spool).unwrap(), &stored, &out).unwrap();
    let flow = summary.flows.iter().find(|flow| flow.flow == ONE_WAY).unwrap();
    assert_eq!((flow.sent, flow.delivered, flow.restarts), (u64::from(COUNT), u64::from(COUNT), 0));
    assert_eq!((summary.out_of_order, flow.behind_window), (0, 0));
    let again = retrack(&network(), &run, &[stored], &[], &tables(scratch.path(), "again")).unwrap();
    assert_eq!(again, summary);
}

/// A damaged header must not push the window away from under the messages that are on their way.
#[test]
fn a_wild_number_closes_nothing() {
    let run = run(u32::MAX, 0);
    let steady = vec![Step { copies: 1, behind: 3, is_recorded: true }; 400];
    let mut records = long_records(&steady, 0, None);
    for (i, number) in [90_000u32, 4_000_000_000, 7_000].into_iter().enumerate() {
        let mut wild = record(ONE_WAY, number, 1, Point::DriverReceive, 50_000_000 + i as i64);
        wild.crc = wg_record::Crc::Unchecked;
        records.push(wild);
    }
    records.sort_by_key(|r| r.time);
    let tracked = tracked_in(&run, &records, SMALL);
    let flow = tracked.summary.flows.iter().find(|flow| flow.flow == ONE_WAY).unwrap();
    assert_eq!((flow.sent, flow.delivered, flow.behind_window), (400, 400, 0));
}

/// Without a single record of the sender, what arrived is followed all the same.
#[test]
fn a_sender_without_records_is_followed_by_its_arrivals() {
    let run = run(1_000, 0);
    let steps: Vec<Step> =
        (0..1_000).map(|k| Step { copies: u8::from(k % 50 != 7), behind: 0, is_recorded: false }).collect();
    let tracked = tracked_in(&run, &long_records(&steps, 0, None), SMALL);
    let flow = tracked.summary.flows.iter().find(|flow| flow.flow == ONE_WAY).unwrap();
    assert_eq!((flow.sent, flow.missing_send_records, flow.behind_window), (980, 980, 0));
}

fn passing(number: u32, node: u16, port: u16, point: Point, time: i64) -> Record {
    Record { port, ..record(ONE_WAY, number, node, point, time) }
}

#[test]
fn passages_pair_what_came_with_what_left() {
    let run = run(10, 0);
    let (i, o) = (Point::SwitchIn, Point::SwitchOut);
    let records = [
        passing(0, 4, 1, i, 10),
        passing(0, 4, 2, o, 15),
        // Multicast: one more port, and once more by a port it has left by, which nothing came for.
        passing(0, 4, 3, o, 16),
        passing(0, 4, 3, o, 17),
        // Twice in and twice out: first with first.
        passing(1, 4, 1, i, 20),
        passing(1, 4, 1, i, 22),
        passing(1, 4, 2, o, 25),
        passing(1, 4, 2, o, 29),
        // Out without in; in without out.
        passing(2, 4, 2, o, 30),
        passing(3, 4, 1, i, 31),
        // Another switch has frames of its own.
        passing(3, 5, 1, i, 40),
        passing(3, 5, 2, o, 47),
        Record { flags: RecordFlags::WARM_UP, ..passing(4, 4, 1, i, 50) },
        Record { flags: RecordFlags::WARM_UP, ..passing(4, 4, 2, o, 51) },
    ];
    let tracked = tracked_in(&run, &records, SMALL);
    let found: Vec<(u32, u16, u16, i64)> = tracked
        .passages
        .iter()
        .map(|p| (p.sequence, p.node, p.port, p.left.as_picos() - p.came.as_picos()))
        .collect();
    assert_eq!(found, [(0, 4, 2, 5), (0, 4, 3, 6), (1, 4, 2, 5), (1, 4, 2, 7), (3, 5, 2, 7)]);
    let hops: Vec<(u16, u16, u64)> =
        tracked.distributions.hops.iter().map(|(_, node, port, sketch)| (*node, *port, sketch.n())).collect();
    assert_eq!(hops, [(4, 2, 3), (4, 3, 1), (5, 2, 1)]);
}

/// A switch may have 1024 ports, and a group all of them: each has its own passage, once.
#[test]
fn a_frame_leaves_by_any_number_of_ports() {
    let run = run(10, 0);
    let (i, o) = (Point::SwitchIn, Point::SwitchOut);
    let mut records = Vec::new();
    for number in 0..3 {
        let begin = 10_000 * i64::from(number);
        records.push(passing(number, 4, 1, i, begin));
        for port in 2..=1_024 {
            records.push(passing(number, 4, port, o, begin + i64::from(port)));
            records.push(passing(number, 4, port, o, begin + i64::from(port)));
        }
    }
    // The second one comes twice: what left before stays paired.
    records.push(passing(2, 4, 1, i, 29_000));
    records.push(passing(2, 4, 1_000, o, 29_500));
    let tracked = tracked_in(&run, &records, SMALL);
    let found = tracked.passages.iter().map(|p| (p.sequence, p.port, p.left.as_picos() - p.came.as_picos()));
    let mut expected: Vec<(u32, u16, i64)> =
        (0..3).flat_map(|number| (2..=1_024).map(move |port| (number, port, i64::from(port)))).collect();
    expected.push((2, 1_000, 500));
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

/// Two agents whose segments overlap in time are stored in the order of time, whatever their sizes.
#[test]
fn agents_are_put_together_in_the_order_of_time() {
    let scratch = Scratch::new();
    let (network, run) = (network(), run(200_000, 0));
    let steady = vec![Step { copies: 1, behind: 2, is_recorded: true }; 200_000];
    let all = long_records(&steady, 0, None);
    let mut files = Vec::new();
    for node in [0, 1] {
        let info =
            SegmentInfo { end_system: format!("n{node}"), node, run_index: run.index, epoch_realtime_ns: 9 };
        let dir = scratch.path().join(format!("n{node}"));
        let mut writer = SegmentWriter::create(&dir, info).unwrap();
        let mine: Vec<Record> = all.iter().copied().filter(|r| r.node == node).collect();
        writer.write(&mine).unwrap();
        writer.finish().unwrap();
        files.extend(segment_files(&dir).unwrap());
    }
    let stored = scratch.path().join("records.parquet");
    let summary = process_run(&network, &run, &files, &stored, &tables(scratch.path(), "t")).unwrap();
    assert!(read_records(&stored).unwrap().1 == all);
    assert_eq!((summary.out_of_order, summary.clock_jumps.len()), (0, 0));
    assert_eq!(retrack(&network, &run, &[stored], &[], &tables(scratch.path(), "again")).unwrap(), summary);
}

/// A flow that ends long before another must not keep the rows of the other waiting, and with them everybody.
#[test]
fn a_flow_that_falls_silent_stops_nobody() {
    let scratch = Scratch::new();
    let (network, run) = (network(), run(6_000, 0));
    let steady = vec![Step { copies: 1, behind: 0, is_recorded: true }; 6_000];
    let mut all = long_records(&steady, 0, None);
    // One message of every other flow at the beginning, so that each tracker has something to hold back.
    for flow in [RELAYED, BOTH, MULTICAST] {
        let from = match flow {
            BOTH => 0,
            RELAYED => 1,
            _ => 3,
        };
        all.push(record(flow, 0, from, Point::ApplicationSend, 5));
    }
    all.sort_by_key(|r| r.time);
    // More records than are held back in any case, in far more row groups than anybody may be ahead of another.
    let files: Vec<PathBuf> = all
        .chunks(40)
        .enumerate()
        .map(|(k, part)| {
            let path = scratch.path().join(format!("{k:04}.parquet"));
            write_records(&path, run.index, &mut part.to_vec()).unwrap();
            path
        })
        .collect();
    let (tell, told) = std::sync::mpsc::channel();
    let out = tables(scratch.path(), "t");
    // A thread that waits for ever cannot be joined: it is left behind, and the test fails.
    std::thread::spawn(move || drop(tell.send(retrack(&network, &run, &files, &[], &out).unwrap())));
    let summary = told.recv_timeout(std::time::Duration::from_secs(120)).expect("tracking ends");
    let flow = summary.flows.iter().find(|flow| flow.flow == ONE_WAY).unwrap();
    assert_eq!((summary.records, flow.sent, flow.delivered), (all.len() as u64, 6_000, 6_000));
}

#[test]
fn a_clock_that_jumps_back_is_named() {
    let scratch = Scratch::new();
    let (network, run) = (network(), run(1_000, 0));
    let info = SegmentInfo { end_system: "n0".into(), node: 0, run_index: run.index, epoch_realtime_ns: 9 };
    let mut writer = SegmentWriter::create(scratch.path(), info).unwrap();
    let second = 1_000_000_000_000;
    for k in 0..100u32 {
        let at = i64::from(k) * second / 10 - if k >= 50 { 2 * second } else { 0 };
        writer.write(&[record(ONE_WAY, k, 0, Point::ApplicationSend, at)]).unwrap();
        // The schedule is no clock and may lie anywhere.
        let planned = Record { clock: Clock::Schedule, ..record(ONE_WAY, k, 0, Point::IntendedSend, 0) };
        writer.write(&[planned]).unwrap();
    }
    writer.finish().unwrap();
    let files = segment_files(scratch.path()).unwrap();
    let stored = scratch.path().join("records.parquet");
    let summary = process_run(&network, &run, &files, &stored, &tables(scratch.path(), "t")).unwrap();
    let jumps: Vec<_> = summary.clock_jumps.iter().map(|j| (j.node, j.times, j.farthest_ps)).collect();
    assert_eq!(jumps, [(0, 1, 2 * second - second / 10)]);
}

/// A thread that got no core for a second writes late what it saw in time.
#[test]
fn threads_that_write_at_different_times_are_no_jump_of_the_clock() {
    let scratch = Scratch::new();
    let (network, run) = (network(), run(1_000, 0));
    let info = SegmentInfo { end_system: "n0".into(), node: 0, run_index: run.index, epoch_realtime_ns: 9 };
    let mut writer = SegmentWriter::create(scratch.path(), info).unwrap();
    let second = 1_000_000_000_000;
    for point in [Point::ApplicationSend, Point::DriverSend] {
        for k in 0..10u32 {
            writer.write(&[record(ONE_WAY, k, 0, point, i64::from(k) * second / 10)]).unwrap();
        }
    }
    writer.finish().unwrap();
    let files = segment_files(scratch.path()).unwrap();
    let stored = scratch.path().join("records.parquet");
    let summary = process_run(&network, &run, &files, &stored, &tables(scratch.path(), "t")).unwrap();
    assert_eq!(summary.clock_jumps.len(), 0);
}

/// An unusable file of several is named, and the others count.
#[test]
fn an_unusable_part_is_named_and_left_out() {
    let scratch = Scratch::new();
    let (network, run) = (network(), run(100, 0));
    let steady = vec![Step { copies: 1, behind: 0, is_recorded: true }; 100];
    let mut all = long_records(&steady, 0, None);
    let path = |name: &str| scratch.path().join(name);
    write_records(&path("0.parquet"), run.index, &mut all).unwrap();
    write_records(&path("1.parquet"), run.index + 1, &mut all.clone()).unwrap();
    std::fs::write(path("2.parquet"), b"PAR1").unwrap();
    // A file of another version says so in its footer: key, one byte of type, one of length, value.
    let mut newer = std::fs::read(path("0.parquet")).unwrap();
    let key = b"wiregauge.schema";
    let at = newer.windows(key.len()).rposition(|bytes| bytes == key).unwrap() + key.len();
    assert_eq!(newer[at + 2], b'1');
    newer[at + 2] = b'9';
    std::fs::write(path("3.parquet"), newer).unwrap();
    let files = ["0.parquet", "1.parquet", "2.parquet", "3.parquet"].map(path);
    let summary = retrack(&network, &run, &files, &[], &tables(scratch.path(), "t")).unwrap();
    assert_eq!(summary.records, 200);
    let named: Vec<bool> =
        summary.damaged_segments.iter().map(|d| d.problem.starts_with("left out")).collect();
    assert_eq!(named, [true, true, true]);
    assert!(summary.damaged_segments[2].problem.contains("record schema `9`"));
    assert!(summary.damaged_segments[0].file.ends_with("1.parquet"));
    assert!(retrack(&network, &run, &files[1..], &[], &tables(scratch.path(), "u")).is_err());
}

#[test]
fn the_window_is_the_wider_the_fewer_flows_there_are() {
    let with = |flows: u16| Run {
        flows: (1..=flows).map(|id| Flow::plain(id, Protocol::Udp, Route::default())).collect(),
        sends: vec![Send::periodic(1, wg_frame::time::Span::from_millis(1), 64, 1)],
        ..Run::default()
    };
    assert_eq!([1, 2, 16, 265].map(|flows| window_for(&with(flows))), [1 << 17, 1 << 16, 1 << 13, 1 << 12]);
}
