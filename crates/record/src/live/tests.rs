//! Planted arrivals, and what is summed up of them.

use proptest::prelude::*;

use super::ports::MOST_INSIDE;
use super::*;
use crate::{Clock, Truth, TruthKind};
use std::collections::HashMap;

fn record(sequence: u32, at_us: i64, point: Point, node: NodeIndex) -> Record {
    Record {
        time: RunTime::from_picos(at_us * 1_000_000),
        sequence,
        flow: 7,
        node,
        port: 1,
        length: 64,
        point,
        clock: Clock::Realtime,
        crc: Crc::Ok,
        reason: DropReason::None,
        flags: RecordFlags::empty(),
    }
}

#[test]
fn with_both_ends_at_hand_times_begin_with_the_send_and_other_receivers_do_not_count() {
    let flow = LiveFlow { id: 7, part: LivePart::Both(2), planned: 100, in_half_a_second: 100 };
    let mut sums = LiveSums::new(vec![flow]);
    let send = |sequence, at| record(sequence, at, Point::ApplicationSend, 1);
    let arrival = |sequence, at, node| record(sequence, at, Point::ApplicationReceive, node);
    sums.take(&[
        send(0, 10),
        arrival(0, 13, 3),
        arrival(0, 15, 2),
        send(1, 20),
        send(2, 30),
        arrival(2, 39, 2),
    ]);
    let of = &sums.look(true)[0];
    assert_eq!((of.sent, of.received, of.repeats), (3, 2, 0));
    assert_eq!((of.measured, of.min_ns, of.max_ns, of.sum_ns), (2, 5_000, 9_000, 14_000));
    assert!(of.arrives && of.round_trip);
    let of = &sums.look(true)[0];
    assert_eq!((of.sent, of.measured, of.worst_ns), (3, 0, 9_000));
    // What was passed over counts once two looks have not filled it.
    assert_eq!(sums.look(true)[0].missing, 1);
}

#[test]
fn stays_in_switches_are_of_the_port_of_departure_and_of_every_copy() {
    let mut sums = LiveSums::new(Vec::new());
    let at = |sequence, at_us, point, port| Record { port, ..record(sequence, at_us, point, 4) };
    sums.take(&[
        at(0, 10, Point::SwitchIn, 1),
        at(0, 13, Point::SwitchOut, 2),
        at(1, 20, Point::SwitchIn, 1),
        at(2, 21, Point::SwitchIn, 1),
        at(3, 28, Point::SwitchIn, 1),
    ]);
    sums.take(&[
        at(0, 22, Point::SwitchOut, 3),
        at(1, 25, Point::SwitchOut, 2),
        at(2, 29, Point::SwitchOut, 2),
        at(3, 31, Point::SwitchOut, 2),
        at(9, 32, Point::SwitchOut, 2),
    ]);
    let of = |port, frames, longest_ns, queued| PortSums { node: 4, port, frames, longest_ns, queued };
    assert_eq!(sums.look_at_ports(), [of(2, 4, 8_000, 2), of(3, 1, 12_000, 1)]);
    assert_eq!(sums.look_at_ports(), []);
    for sequence in 0..3 * u32::try_from(MOST_INSIDE).expect("small") {
        sums.take(&[at(sequence, 40, Point::SwitchIn, 1)]);
    }
    assert!(sums.stays.came.iter().map(HashMap::len).sum::<usize>() <= 2 * MOST_INSIDE);
    let last = 3 * u32::try_from(MOST_INSIDE).expect("small") - 1;
    sums.take(&[at(0, 50, Point::SwitchOut, 2), at(last - 9, 50, Point::SwitchOut, 2)]);
    assert_eq!(sums.look_at_ports(), [of(2, 1, 10_000, 1)]);
}

#[test]
fn of_a_clock_the_last_of_each_kind_is_known() {
    let truth = |at_us: i64, kind, port, value| Truth {
        time: RunTime::from_picos(at_us * 1_000_000),
        value,
        sequence: 0,
        flow: FLOW_FOREIGN,
        node: 5,
        port,
        kind,
        flags: RecordFlags::empty(),
    };
    let mut states = ClockStates::default();
    for one in [
        truth(3, TruthKind::Credit, 1, 0),
        truth(10, TruthKind::ClockOffset, 0, 7_000),
        truth(20, TruthKind::PtpState, 1, 9),
        truth(20, TruthKind::PtpState, 2, 6),
    ] {
        states.take(&one);
    }
    assert_eq!(states.all()[0].offset_ns, None, "read in another state");
    states.take(&truth(30, TruthKind::ClockOffset, 0, -4_000));
    let [state] = states.all().try_into().expect("one node");
    assert_eq!((state.node, state.at_ns, state.offset_ns), (5, 30_000, Some(-4)));
    assert_eq!((state.sync_state, state.grandmaster), (None, None));
    assert_eq!(state.ptp_states, [(1, 9), (2, 6)].into());
}

proptest! {
    #[test]
    fn bucket_edges_hold_their_values(ns in 0_i64..1 << 43) {
        let bucket = i64::try_from(bucket_of(ns)).expect("small");
        let edge = |b: i64| if b < 16 { b } else { (16 + b % 16) << (b / 16 - 1) };
        prop_assert!(edge(bucket) <= ns && ns < edge(bucket + 1), "{ns} in {bucket}");
    }

    #[test]
    fn counts_agree_with_what_came(mut numbers in proptest::collection::vec(0_u32..900, 1..300)) {
        let mut arrivals = Arrivals::default();
        for &number in &numbers {
            arrivals.take(number);
        }
        let all = numbers.len() as u64;
        let highest = u64::from(*numbers.iter().max().expect("some"));
        numbers.sort_unstable();
        numbers.dedup();
        let distinct = numbers.len() as u64;
        prop_assert_eq!(arrivals.received, distinct);
        prop_assert_eq!(arrivals.repeats, all - distinct);
        prop_assert_eq!(arrivals.missing, highest + 1 - distinct);
    }
}
