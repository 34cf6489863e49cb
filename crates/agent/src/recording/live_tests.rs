//! Planted arrivals, and what the figures of the second say of them.

use wg_frame::time::Span;
use wg_plan::schedule::Schedule;
use wg_plan::{Run, Send};
use wg_record::{Clock, Crc, DropReason, Point, RecordFlags};

use super::*;

fn record(sequence: u32, at_us: i64, point: Point, flags: RecordFlags) -> Record {
    Record {
        time: RunTime::from_picos(at_us * 1_000_000),
        sequence,
        flow: 7,
        node: 0,
        port: 1,
        length: 64,
        point,
        clock: Clock::Realtime,
        crc: Crc::Ok,
        reason: DropReason::None,
        flags,
    }
}

fn arrival(sequence: u32, at_us: i64) -> Record {
    record(sequence, at_us, Point::ApplicationReceive, RecordFlags::empty())
}

fn following(part: LivePart) -> (LiveFigures, Arc<LiveBoard>) {
    let board = Arc::<LiveBoard>::default();
    let flow = LiveFlow { id: 7, part, planned: 1_000_000, in_half_a_second: 500 };
    (LiveFigures::new(vec![flow], None, Arc::clone(&board)), board)
}

fn shown(live: &mut LiveFigures, board: &LiveBoard, second: i64) -> proto::LiveFlow {
    live.look(Some(RunTime::from_picos(second * SECOND)), || 3);
    let figures = board.newer_than(0).expect("figures of a second");
    assert_eq!((i64::from(figures.number), figures.records_dropped), (second, 3));
    figures.flows[0].clone()
}

#[test]
fn the_first_figures_come_a_tenth_of_a_second_after_the_first_message_and_once() {
    let (mut live, board) = following(LivePart::Receiver(Some(schedule())));
    let look = |live: &mut LiveFigures, ms: i64| {
        live.look(Some(RunTime::from_picos(ms * 1_000_000_000)), || 0);
        board.newer_than(0).map(|figures| (figures.number, figures.flows[0].clone()))
    };
    live.take(&[record(0, 1, Point::ApplicationReceive, RecordFlags::WARM_UP)]);
    assert_eq!(look(&mut live, 300), None, "nothing of the measured part has come");
    live.take(&[arrival(0, 300_100), arrival(3, 303_900)]);
    assert_eq!(look(&mut live, 399), None);
    let (number, first) = look(&mut live, 401).expect("first figures");
    assert_eq!((number, first.received, first.measured, first.missing), (1, 2, 2, 0));
    assert_eq!(look(&mut live, 900).expect("the same").0, 1);
    let (number, second) = look(&mut live, 1_000).expect("a second is over");
    assert_eq!((number, second.received, second.measured, second.missing), (2, 2, 0, 0));
    // What was passed over counts no sooner for it.
    assert_eq!(look(&mut live, 2_000).expect("another").1.missing, 0);
    assert_eq!(look(&mut live, 3_000).expect("another").1.missing, 2);
}

/// Every millisecond from the epoch on.
fn schedule() -> Schedule {
    let send = Send::periodic(7, Span::from_millis(1), 64, 1_000_000);
    Schedule::new(&Run::default(), &send, 128).expect("a schedule")
}

#[test]
fn a_gap_is_missing_once_two_seconds_have_not_filled_it_and_a_swap_never() {
    let (mut live, board) = following(LivePart::Receiver(None));
    live.take(&[arrival(0, 1), arrival(2, 2), arrival(1, 3), arrival(5, 4), arrival(5, 5)]);
    let first = shown(&mut live, &board, 1);
    assert_eq!((first.received, first.missing, first.repeats), (4, 0, 1), "numbers 3 and 4 may be under way");
    live.take(&[arrival(6, 6)]);
    assert_eq!(shown(&mut live, &board, 2).missing, 0);
    live.take(&[arrival(7, 7)]);
    let third = shown(&mut live, &board, 3);
    assert_eq!((third.received, third.missing), (6, 2));
    live.take(&[arrival(3, 8)]);
    assert_eq!(shown(&mut live, &board, 4).missing, 1, "one of them came after all");
}

#[test]
fn latency_begins_when_the_message_was_to_be_sent_and_is_of_the_last_second() {
    let (mut live, board) = following(LivePart::Receiver(Some(schedule())));
    live.take(&[arrival(0, 250), arrival(1, 1_100), arrival(3, 3_900)]);
    let first = shown(&mut live, &board, 1);
    assert_eq!((first.measured, first.min_ns, first.max_ns, first.sum_ns), (3, 100_000, 900_000, 1_250_000));
    assert_eq!(first.counts, [1, 1, 1]);
    live.take(&[arrival(4, 4_050)]);
    let second = shown(&mut live, &board, 2);
    assert_eq!((second.measured, second.max_ns, second.worst_ns), (1, 50_000, 900_000));
}

#[test]
fn a_round_trip_begins_when_it_was_sent_and_a_long_one_is_never_told_shorter_than_it_is_known_to_be() {
    let (mut live, board) = following(LivePart::RoundTrip);
    let sent = |sequence: u32| {
        record(sequence, i64::from(sequence) * 1_000, Point::ApplicationSend, RecordFlags::empty())
    };
    let back = |sequence, at| record(sequence, at, Point::ApplicationReceive, RecordFlags::RETURN);
    // The way out passes nobody here but the sender.
    live.take(&[sent(0), arrival(0, 100), back(0, 700)]);
    let first = shown(&mut live, &board, 1);
    assert_eq!((first.sent, first.received, first.max_ns), (1, 1, 700_000));
    let many: Vec<Record> = (1..=5_000).map(sent).collect();
    live.take(&many);
    live.take(&[back(1, 5_000_000)]);
    assert!(shown(&mut live, &board, 2).max_ns > 1_900_000_000);
}

#[test]
fn what_was_sent_late_and_what_the_kernel_refused_is_told() {
    let (mut live, board) = following(LivePart::Sender);
    let none = RecordFlags::empty();
    let refused = Record { reason: DropReason::SendRefused, ..record(1, 2_003, Point::Drop, none) };
    live.take(&[
        record(0, 1_000, Point::IntendedSend, none),
        record(0, 1_007, Point::ApplicationSend, none),
        record(1, 2_000, Point::IntendedSend, none),
        record(1, 2_003, Point::ApplicationSend, none),
        refused,
        record(0, 1, Point::ApplicationSend, RecordFlags::WARM_UP),
    ]);
    let figures = shown(&mut live, &board, 1);
    assert_eq!((figures.sent, figures.refused, figures.late_ns), (1, 1, 7_000));
    assert!(!figures.arrives);
}

#[test]
fn a_number_far_ahead_costs_no_time_and_no_memory() {
    let (mut live, board) = following(LivePart::Receiver(Some(schedule())));
    live.take(&[arrival(999_999, 10), arrival(4_000_000_000, 11)]);
    let figures = shown(&mut live, &board, 1);
    assert_eq!(
        (figures.received, figures.measured),
        (1, 0),
        "one is beyond the plan, the other is not due yet"
    );
}
