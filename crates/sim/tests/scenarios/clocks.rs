//! Nodes whose clocks are not perfect.

use wg_frame::time::{RunTime, Span};
use wg_plan::{Clock as Oscillator, Flow, Incident, IncidentKind, Pattern, Protocol, Send, TemperatureStep};
use wg_record::{Clock, Point, TruthKind};

use crate::{at, run, simulated, star, switch, truths, way};

const MS: i64 = 1_000_000_000;

#[test]
fn records_and_senders_go_by_the_nodes_own_clock() {
    let mut network = star(2, switch(), 100_000_000);
    let offset = Span::from_micros(7);
    network.nodes[0].clock = Oscillator { offset, drift_ppb: 100_000, ..Oscillator::default() };
    let send = Send::periodic(1, Span::from_millis(1), 100, 900);
    let (kept, _) = simulated(&network, &run(vec![(Flow::plain(1, Protocol::Udp, way([0, 2, 1])), send)]));
    let schedule = at(&kept, Point::IntendedSend);
    let wire = at(&kept, Point::WireSend);
    let received = at(&kept, Point::WireReceive);
    assert_eq!((schedule.len(), received.len()), (900, 900));
    for (due, (sent, came)) in schedule.iter().zip(wire.iter().zip(&received)).skip(1) {
        // An ideal host sends when its clock says so, rounded up to the picosecond it first does.
        assert_eq!((due.clock, sent.clock, came.clock), (Clock::Schedule, Clock::Local, Clock::Simulated));
        assert!((0..=1).contains(&(sent.time - due.time).as_picos()));
        // True time from 7 µs early, 100 ppm fast; 2 · (8 + 146) B at 100 Mbit/s and 2 · 500 ns on the way.
        let true_ps = (due.time.as_picos() - 7_000_000) as f64 / 1.0001;
        let way = came.time.as_picos() as f64 - true_ps;
        assert!((way - (2.0 * 154.0 * 80_000.0 + 1_000_000.0)).abs() <= 2.0, "{way}");
    }
    let offsets = truths(&kept, TruthKind::ClockOffset);
    assert_eq!(offsets.len(), 10, "the last message is sent at 899 ms, and the run lasts 100 ms longer");
    for (k, truth) in (0..).zip(&offsets) {
        assert_eq!((truth.time.as_picos(), truth.value), (k * 100 * MS, 7_000_000 + k * 10_000_000));
    }
}

#[test]
fn a_step_is_seen_at_its_instant_and_sends_what_it_jumped_over() {
    let mut network = star(2, switch(), 100_000_000);
    let temperature = vec![TemperatureStep { at: Span::from_millis(333), drift_ppb: 50_000 }];
    network.nodes[0].clock = Oscillator { temperature, ..Oscillator::default() };
    let send = Send::periodic(1, Span::from_millis(10), 100, 50);
    let mut run = run(vec![(Flow::plain(1, Protocol::Udp, way([0, 2, 1])), send)]);
    let step = |node, ms| IncidentKind::ClockStep { node, by: Span::from_millis(ms) };
    run.incidents = vec![
        Incident { at: Span::from_millis(105), kind: step(0, 50) },
        Incident { at: Span::from_millis(205), kind: step(1, -20) },
    ];
    let (kept, _) = simulated(&network, &run);
    assert_eq!(
        truths(&kept, TruthKind::ClockStepped).iter().map(|t| t.value / MS).collect::<Vec<_>>(),
        [50, -20]
    );
    // Messages 11 to 15 were due between 105 and 155 ms of a clock that jumped over them: all at once.
    let came = at(&kept, Point::SwitchIn);
    let at_once = |n: usize| came[n].time < RunTime::ZERO + Span::from_millis(106);
    assert!((11..=15).all(at_once) && !at_once(16));
    // The receiver of node 1 was set back: its timestamps are local, the switch's are not.
    assert!(at(&kept, Point::WireReceive).iter().all(|record| record.clock == Clock::Local));
    assert!(came.iter().all(|record| record.clock == Clock::Simulated));
    let last = |node: u16| {
        let of_node = |truth: &&wg_record::Truth| truth.node == node;
        truths(&kept, TruthKind::ClockOffset).iter().rfind(of_node).map(|truth| (truth.time, truth.value))
    };
    // 50 ppm from 333 ms on.
    let (time, value) = last(0).expect("samples");
    assert_eq!(value, 50 * MS + (time.as_picos() - 333 * MS) / 20_000);
    assert_eq!(last(1).expect("samples").1, -20 * MS);
}

#[test]
fn wander_is_a_walk_that_follows_the_seed() {
    let mut network = star(2, switch(), 100_000_000);
    network.nodes[1].clock.wander_ppb = 100;
    let send = Send::periodic(1, Span::from_millis(1_000), 100, 30);
    let mut run = run(vec![(Flow::plain(1, Protocol::Udp, way([0, 2, 1])), send)]);
    let offsets = |run: &_| {
        let (kept, _) = simulated(&network, run);
        truths(&kept, TruthKind::ClockOffset).iter().map(|truth| truth.value).collect::<Vec<_>>()
    };
    let walk = offsets(&run);
    assert_eq!(walk, offsets(&run));
    run.seed += 1;
    assert_ne!(walk, offsets(&run));
    // Within a second the frequency stands still; it changes at each.
    let steps: Vec<i64> = walk.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let frequencies: Vec<i64> = steps.chunks(10).map(|second| second[0]).collect();
    assert!(steps.chunks(10).all(|second| second.iter().all(|step| (step - second[0]).abs() <= 1)));
    assert!(frequencies.windows(2).skip(1).all(|pair| pair[0] != pair[1]));
}

#[test]
fn a_run_ends_when_chance_has_sent_the_last_message() {
    let mut send = Send::periodic(1, Span::from_millis(1), 100, 1_000);
    send.pattern = Pattern::Exponential;
    let mut run = run(vec![(Flow::plain(1, Protocol::Udp, way([0, 2, 1])), send)]);
    run.seed = 3;
    let (kept, report) = simulated(&star(2, switch(), 100_000_000), &run);
    let last = at(&kept, Point::IntendedSend).last().map(|record| record.time).expect("messages");
    assert_eq!(at(&kept, Point::ApplicationReceive).len(), 1_000);
    assert_eq!(report.simulated_ps, (last + run.drain).as_picos());
    assert_eq!(report.agents["h0"].tasks[0].done, 1_000);
}
