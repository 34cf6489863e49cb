//! Senders that keep their schedule or their gaps where something holds their messages up.

use proptest::prelude::*;
use wg_frame::time::{RunTime, Span};
use wg_plan::schedule::Schedule;
use wg_plan::{
    Clock, Cost, Flow, HostModel, Incident, IncidentKind, Network, NodeKind, Pacing, Pattern, Protocol, Run,
    Send,
};
use wg_record::{Point, Record};
use wg_sim::Kept;

use crate::contract::{self, Sent};
use crate::{at, run, simulated, star, switch, way};

const US: i64 = 1_000_000;

fn us(us: i64) -> Span {
    Span::from_micros(us)
}

/// Two end systems at a switch; what host 0 takes to hand a message down, and how many it may have in hand.
fn network(fixed: Span, backlog: u32) -> Network {
    let mut network = star(2, switch(), 100_000_000);
    let transmit = Cost { fixed, ..Cost::default() };
    let host = HostModel { transmit, backlog, ..HostModel::ideal() };
    network.nodes[0].kind = NodeKind::EndSystem { host };
    network
}

/// Flow 1 by `send` and flow 2 by `other`, both from host 0 to host 1.
fn both(send: &Send, other: &Send) -> Run {
    let flow = |id| Flow::plain(id, Protocol::Udp, way([0, 2, 1]));
    run(vec![(flow(1), send.clone()), (flow(2), other.clone())])
}

fn of_flow_1(kept: &Kept, point: Point) -> Vec<Record> {
    at(kept, point).into_iter().filter(|record| record.flow == 1).collect()
}

/// What became of flow 1, whose frames are of `length` bytes.
fn sent(kept: &Kept, run: &Run, length: u16) -> Vec<Sent> {
    let planned = Schedule::new(run, &run.sends[0], length).expect("a schedule");
    let intended = of_flow_1(kept, Point::IntendedSend);
    let left = of_flow_1(kept, Point::ApplicationSend);
    assert_eq!((intended.len() as u64, left.len() as u64), (planned.total(), planned.total()));
    let records = intended.iter().zip(&left);
    planned
        .zip(records)
        .map(|(due, (intended, left))| Sent { planned: due.at, intended: intended.time, at: left.time })
        .collect()
}

fn micros(records: &[Record]) -> Vec<i64> {
    records.iter().map(|record| record.time.as_picos() / US).collect()
}

#[test]
fn a_busy_lane_shifts_what_comes_behind_by_all_that_it_held_up() {
    // Message 1 finds the lane at work on the other flow's for another 300 us.
    let other = Send { offset: us(900), ..Send::periodic(2, us(100_000), 64, 1) };
    for (mode, expected) in [
        (None, [0, 1_300, 2_000, 3_000]),
        (Some(Pacing::Rate), [0, 1_300, 2_000, 3_000]),
        (Some(Pacing::Gap), [0, 1_300, 2_300, 3_300]),
    ] {
        let send = Send { pacing: mode, ..Send::periodic(1, us(1_000), 64, 4) };
        let (kept, report) = simulated(&network(us(400), 10), &both(&send, &other));
        assert_eq!(micros(&of_flow_1(&kept, Point::ApplicationSend)), expected, "{mode:?}");
        let sends = report.agents["h0"].tasks.iter().filter(|task| task.kind == "send" && task.flow == 1);
        let late: u64 = sends.map(|task| task.late).sum();
        assert_eq!(late, 1, "{mode:?}: one was held up, the others are on time");
    }
}

#[test]
fn a_refused_message_was_sent_when_it_was_refused() {
    // The lane has room for one: message 1 is refused at once, and nothing moves.
    let other = Send { offset: us(900), ..Send::periodic(2, us(100_000), 64, 1) };
    let send = Send { pacing: Some(Pacing::Gap), ..Send::periodic(1, us(1_000), 64, 4) };
    let (kept, _) = simulated(&network(us(400), 1), &both(&send, &other));
    assert_eq!(micros(&of_flow_1(&kept, Point::ApplicationSend)), [0, 1_000, 2_000, 3_000]);
    assert_eq!(micros(&of_flow_1(&kept, Point::Drop)), [1_000]);
}

#[test]
fn a_message_in_a_queue_was_sent() {
    // A long frame of the other flow holds the wire for 121.6 us from 950 us on: no sender sees that.
    let other = Send { offset: us(950), ..Send::periodic(2, us(100_000), 1_472, 1) };
    let send = Send { pacing: Some(Pacing::Gap), ..Send::periodic(1, us(1_000), 64, 3) };
    let (kept, _) = simulated(&network(Span::ZERO, 10), &both(&send, &other));
    assert_eq!(micros(&of_flow_1(&kept, Point::ApplicationSend)), [0, 1_000, 2_000]);
    let wire = micros(&of_flow_1(&kept, Point::WireSend));
    assert!(wire[1] > 1_050 && wire[2] == 2_000, "{wire:?}");
}

#[test]
fn a_clock_that_is_set_forward_makes_no_burst_where_gaps_are_kept() {
    for (mode, at_once) in [(Pacing::Rate, 5), (Pacing::Gap, 1)] {
        let mut network = network(Span::ZERO, 10);
        network.nodes[0].clock = Clock::default();
        let send = Send { pacing: Some(mode), ..Send::periodic(1, us(10_000), 64, 50) };
        let mut run = run(vec![(Flow::plain(1, Protocol::Udp, way([0, 2, 1])), send)]);
        let by = us(50_000);
        run.incidents = vec![Incident { at: us(105_000), kind: IncidentKind::ClockStep { node: 0, by } }];
        let (kept, _) = simulated(&network, &run);
        // Those that were due between 105 and 155 ms, by a receiver whose clock is right.
        let came = at(&kept, Point::SwitchIn);
        let jumped = RunTime::ZERO + us(105_000)..RunTime::ZERO + us(106_000);
        assert_eq!(came.iter().filter(|record| jumped.contains(&record.time)).count(), at_once, "{mode:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever is in the way: another flow's bursts, a lane that is full, threads that wake late.
    #[test]
    fn schedule_or_gaps_are_kept(
        gaps: bool,
        bursts in (1_u32..6, 0_i64..300),
        (fixed, backlog) in (0_i64..400, 1_u32..8),
        (others, period, offset) in (1_u32..12, 100_i64..900, 0_i64..900),
        sleepy: bool,
    ) {
        let mut network = network(us(fixed), backlog);
        if let (NodeKind::EndSystem { host }, true) = (&mut network.nodes[0].kind, sleepy) {
            host.send_wake_up.quantiles = vec![(0, us(0)), (900_000, us(20)), (1_000_000, us(700))];
        }
        let (size, spacing) = bursts;
        let pattern = Pattern::Bursts { size, spacing: us(spacing) };
        let mode = if gaps { Pacing::Gap } else { Pacing::Rate };
        let send = Send { pattern, pacing: Some(mode), ..Send::periodic(1, us(2_000), 64, 30) };
        let pattern = Pattern::Bursts { size: others, spacing: Span::ZERO };
        let offset = us(offset);
        let other = Send { pattern, offset, ..Send::periodic(2, us(period * i64::from(others)), 64, 90) };
        let run = both(&send, &other);
        let (kept, _) = simulated(&network, &run);
        let pacing = if gaps { Pacing::Gap } else { Pacing::Rate };
        contract::holds(pacing, Span::from_picos(1), &sent(&kept, &run, 110));
    }
}
