//! A small network, its plan, and random histories of its messages.

use proptest::prelude::*;
use wg_frame::time::{RunTime, Span};
use wg_plan::{
    Flow, FlowId, HostModel, Network, Node, NodeIndex, NodeKind, Protocol, Relay, Run, Send, SwitchModel,
    Turn,
};
use wg_record::{Clock, Crc, DropReason, FLOW_FOREIGN, Point, Record, RecordFlags};

/// One way, with a deadline of 20 ps.
pub(crate) const ONE_WAY: FlowId = 7;
/// Relayed over two switches, with a deadline of 40 ps.
pub(crate) const RELAYED: FlowId = 3;
/// One way, without a deadline; nobody sends it.
pub(crate) const UNFED: FlowId = 12;

/// Four end systems (0 to 3) and two switches (4, 5).
pub(crate) fn network() -> Network {
    let node = |i: u8| Node {
        name: format!("n{i}"),
        kind: if i < 4 {
            NodeKind::EndSystem { host: HostModel::default() }
        } else {
            NodeKind::Switch(SwitchModel::cots(1 << 16))
        },
        mac: [2, 0, 0, 0, 0, i],
        ipv4: [198, 18, 0, i],
        clock: wg_plan::Clock::default(),
    };
    Network { nodes: (0..6).map(node).collect(), links: Vec::new() }
}

/// Both fed flows send `count` messages after `warm_up_count`.
pub(crate) fn run(count: u32, warm_up_count: u32) -> Run {
    let flow = |id, path: &[NodeIndex], deadline: Option<i64>| Flow {
        deadline: deadline.map(Span::from_picos),
        ..Flow::plain(id, Protocol::Udp, path.to_vec())
    };
    let send = |flow| Send { warm_up_count, ..Send::periodic(flow, Span::from_millis(1), 64, count) };
    Run {
        index: 4,
        duration: Span::from_millis(1),
        flows: vec![
            flow(ONE_WAY, &[0, 4, 1], Some(20)),
            flow(RELAYED, &[1, 4, 5, 0], Some(40)),
            flow(UNFED, &[2, 4, 1], None),
        ],
        sends: vec![send(ONE_WAY), send(RELAYED)],
        relays: vec![Relay { flow: RELAYED, on: 0, through: Turn::Servicing, faults: Vec::new() }],
        ..Run::default()
    }
}

/// A record of a frame of 64 B; the other columns follow from the point.
pub(crate) fn record(flow: FlowId, sequence: u32, node: u16, point: Point, time_ps: i64) -> Record {
    Record {
        time: RunTime::from_picos(time_ps),
        sequence,
        flow,
        node,
        port: 1,
        length: 64,
        point,
        clock: Clock::Realtime,
        crc: if point == Point::ApplicationReceive { Crc::Ok } else { Crc::Unchecked },
        reason: DropReason::None,
        flags: RecordFlags::empty(),
    }
}

/// What becomes of one copy of a message on one leg.
#[derive(Clone, Debug)]
enum Fate {
    Arrives,
    ArrivesDamaged,
    GoesTo(u16),
    IsDropped(u16, DropReason),
    Vanishes,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        8 => Just(Fate::Arrives),
        1 => Just(Fate::ArrivesDamaged),
        1 => (0u16..4).prop_map(Fate::GoesTo),
        1 => (0u16..6, reason()).prop_map(|(node, reason)| Fate::IsDropped(node, reason)),
        1 => Just(Fate::Vanishes),
    ]
}

fn reason() -> impl Strategy<Value = DropReason> {
    prop::sample::select(DropReason::ALL)
}

/// One message: when it starts, and per leg the copies that travel, each with its delay.
#[derive(Clone, Debug)]
struct Journey {
    flow: FlowId,
    sequence: u32,
    warm_up: bool,
    start: i64,
    send_recorded: bool,
    legs: [Vec<(Fate, i64)>; 2],
}

fn journey() -> impl Strategy<Value = Journey> {
    let copies = || prop::collection::vec((fate(), 0i64..40), 1..3);
    (
        prop::sample::select(vec![ONE_WAY, ONE_WAY, RELAYED, RELAYED, UNFED]),
        0u32..9,
        prop::bool::weighted(0.2),
        0i64..40,
        prop::bool::weighted(0.85),
        [copies(), copies()],
    )
        .prop_map(|(flow, sequence, warm_up, start, send_recorded, legs)| Journey {
            flow,
            sequence,
            warm_up,
            start,
            send_recorded,
            legs,
        })
}

impl Journey {
    fn records(&self, run: &Run) -> Vec<Record> {
        let flow = run.flows.iter().find(|flow| flow.id == self.flow).expect("a flow of the plan");
        let legs = if self.flow == RELAYED { 2 } else { 1 };
        let phase = if self.warm_up { RecordFlags::WARM_UP } else { RecordFlags::empty() };
        let mut records = Vec::new();
        for (leg, copies) in self.legs.iter().enumerate().take(legs) {
            let (source, destination) = if leg == 0 { (flow.from, flow.to) } else { (flow.to, flow.from) };
            let flags = if leg == 0 { phase } else { phase.with(RecordFlags::RETURN) };
            let mut push = |node, point, time, crc: Option<Crc>, reason| {
                let mut r = record(self.flow, self.sequence, node, point, time);
                r.crc = crc.unwrap_or(r.crc);
                r.length += node;
                records.push(Record { flags, reason, ..r });
            };
            let sent = self.start + leg as i64 * 20;
            if leg == 0 {
                push(source, Point::IntendedSend, sent - 1, None, DropReason::None);
            }
            if leg == 1 || self.send_recorded {
                push(source, Point::ApplicationSend, sent, None, DropReason::None);
                push(source, Point::DriverSend, sent + 1, None, DropReason::None);
            }
            for (fate, delay) in copies {
                let arrival = sent + delay;
                let mut arrive = |node, crc| {
                    push(node, Point::DriverReceive, arrival - 1, Some(crc), DropReason::None);
                    push(node, Point::ApplicationReceive, arrival, Some(crc), DropReason::None);
                };
                match fate {
                    Fate::Arrives => arrive(destination, Crc::Ok),
                    Fate::ArrivesDamaged => arrive(destination, Crc::Bad),
                    Fate::GoesTo(node) => arrive(*node, Crc::Ok),
                    Fate::IsDropped(node, reason) => push(*node, Point::Drop, arrival, None, *reason),
                    Fate::Vanishes => {}
                }
            }
        }
        records
    }
}

/// Any record at all, in ranges small enough that records meet.
fn noise() -> impl Strategy<Value = Record> {
    (
        prop::sample::select(vec![ONE_WAY, RELAYED, UNFED, 99, FLOW_FOREIGN]),
        (0u32..9, 0u16..8, 0i64..60),
        prop::sample::select(Point::ALL),
        prop::sample::select(Crc::ALL),
        (reason(), 0u8..4, 60u16..70),
    )
        .prop_map(|(flow, (sequence, node, time), point, crc, (reason, flags, length))| Record {
            crc,
            reason,
            length,
            flags: RecordFlags::from_bits(flags),
            ..record(flow, sequence, node, point, time)
        })
}

/// Records of a few messages of `run` and some that belong to nothing, in any order.
pub(crate) fn records(run: Run) -> impl Strategy<Value = Vec<Record>> {
    (prop::collection::vec(journey(), 0..14), prop::collection::vec(noise(), 0..14))
        .prop_map(move |(journeys, noise)| {
            journeys.iter().flat_map(|journey| journey.records(&run)).chain(noise).collect::<Vec<_>>()
        })
        .prop_shuffle()
}
