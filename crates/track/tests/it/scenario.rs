//! A small network, its plan, and random histories of its messages.

use proptest::prelude::*;
use wg_frame::time::{RunTime, Span};
use wg_plan::{
    Attachment, Flow, FlowId, Hop, HostModel, LineRate, Link, MacAddress, Network, NetworkId, Node,
    NodeIndex, NodeKind, Protocol, Relay, Route, Run, Send, SwitchModel, Turn,
};
use wg_record::{Clock, Crc, DropReason, FLOW_FOREIGN, Point, Record, RecordFlags};

/// One way, with a deadline of 20 ps.
pub(crate) const ONE_WAY: FlowId = 7;
/// Relayed over two switches, with a deadline of 40 ps.
pub(crate) const RELAYED: FlowId = 3;
/// One way, without a deadline; nobody sends it.
pub(crate) const UNFED: FlowId = 12;

/// One way over both networks.
pub(crate) const BOTH: FlowId = 5;
/// To two receivers over both networks.
pub(crate) const MULTICAST: FlowId = 9;

/// Four end systems (0 to 3) and two switches (4, 5). End system `e` has port 1 at port `e + 1` of switch 4, network
/// A, and port 2 at that of switch 5, network B.
pub(crate) fn network() -> Network {
    let node = |i: u8| Node {
        name: format!("n{i}"),
        kind: if i < 4 {
            NodeKind::EndSystem { host: HostModel::default() }
        } else {
            NodeKind::Switch(SwitchModel::cots(1 << 16))
        },
        mac: MacAddress([2, 0, 0, 0, 0, i]),
        ipv4: [198, 18, 0, i],
        clock: wg_plan::Clock::default(),
        tsn: None,
        line_drift_ppb: 0,
        interframe_gap: 12,
        timestamps: None,
        events: Vec::new(),
    };
    let link = |end_system: u16, (switch, port, network)| Link {
        ends: [Attachment { node: end_system, port }, Attachment { node: switch, port: end_system + 1 }],
        rate: LineRate::GIGABIT,
        delay: Span::ZERO,
        network,
    };
    let networks = [(4, 1, NetworkId::A), (5, 2, NetworkId::B)];
    let links = networks.into_iter().flat_map(|on| (0..4).map(move |end_system| link(end_system, on)));
    Network { nodes: (0..6).map(node).collect(), links: links.collect() }
}

/// Along these nodes; switches are joined to end system `e` by port `e + 1`.
fn route(network: NetworkId, nodes: &[NodeIndex]) -> Route {
    let own = if network == NetworkId::A { 1 } else { 2 };
    let end =
        |node: NodeIndex, other: NodeIndex| Attachment { node, port: if node < 4 { own } else { other + 1 } };
    let hop = |pair: &[NodeIndex]| Hop { link: 0, from: end(pair[0], pair[1]), to: end(pair[1], pair[0]) };
    Route { network, hops: nodes.windows(2).map(hop).collect() }
}

/// Both fed flows send `count` messages after `warm_up_count`.
pub(crate) fn run(count: u32, warm_up_count: u32) -> Run {
    let flow = |id, path: &[NodeIndex], deadline: Option<i64>| Flow {
        deadline: deadline.map(Span::from_picos),
        ..Flow::plain(id, Protocol::Udp, route(NetworkId::A, path))
    };
    let both = Flow {
        network: None,
        routes: vec![route(NetworkId::A, &[0, 4, 1]), route(NetworkId::B, &[0, 5, 1])],
        ..flow(BOTH, &[0, 4, 1], Some(30))
    };
    let multicast = Flow {
        also_to: vec![2],
        network: None,
        routes: vec![
            route(NetworkId::A, &[3, 4, 1]),
            route(NetworkId::A, &[3, 4, 2]),
            route(NetworkId::B, &[3, 5, 1]),
            route(NetworkId::B, &[3, 5, 2]),
        ],
        ..flow(MULTICAST, &[3, 4, 1], Some(25))
    };
    let send = |flow| Send { warm_up_count, ..Send::periodic(flow, Span::from_millis(1), 64, count) };
    Run {
        index: 4,
        duration: Span::from_millis(1),
        flows: vec![
            flow(ONE_WAY, &[0, 4, 1], Some(20)),
            flow(RELAYED, &[1, 4, 5, 0], Some(40)),
            flow(UNFED, &[2, 4, 1], None),
            both,
            multicast,
        ],
        sends: vec![send(ONE_WAY), send(RELAYED), send(BOTH), send(MULTICAST)],
        relays: vec![Relay {
            flow: RELAYED,
            on: 0,
            vl: None,
            back: None,
            through: Turn::Servicing,
            faults: Vec::new(),
            detours: Vec::new(),
        }],
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
        prop::sample::select(vec![ONE_WAY, RELAYED, RELAYED, UNFED, BOTH, BOTH, MULTICAST, MULTICAST]),
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
            let mut push_at = |node, port, point, time, crc: Option<Crc>, reason| {
                let mut r = record(self.flow, self.sequence, node, point, time);
                r.crc = crc.unwrap_or(r.crc);
                r.length += node;
                records.push(Record { flags, reason, port, ..r });
            };
            if flow.network.is_none() {
                self.over_both(flow, &mut push_at);
                continue;
            }
            let mut push = |node, point, time, crc, reason| push_at(node, 1, point, time, crc, reason);
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

    /// The records of a message on both networks: each copy has its fate on each way, and a receiver removes the
    /// copy that is not the first.
    fn over_both(
        &self,
        flow: &Flow,
        push: &mut impl FnMut(NodeIndex, u16, Point, i64, Option<Crc>, DropReason),
    ) {
        let fates = self.legs.iter().flatten().cycle();
        if self.send_recorded {
            push(flow.from, 1, Point::ApplicationSend, self.start, None, DropReason::None);
        }
        for (port, switch) in [(1, 4), (2, 5)] {
            push(flow.from, port, Point::WireSend, self.start + 1, None, DropReason::None);
            push(switch, flow.from + 1, Point::SwitchIn, self.start + 2, None, DropReason::None);
        }
        let mut delivered = Vec::new();
        for (route, (fate, delay)) in flow.routes.iter().zip(fates) {
            let (port, switch) = if route.network == NetworkId::A { (1, 4) } else { (2, 5) };
            let Some(to) = route.receiver() else { continue };
            let arrival = self.start + delay;
            let (crc, node) = match fate {
                Fate::Arrives => (Crc::Ok, to),
                Fate::ArrivesDamaged => (Crc::Bad, to),
                Fate::GoesTo(node) => (Crc::Ok, *node),
                Fate::IsDropped(_, reason) => {
                    push(switch, to + 1, Point::Drop, arrival, None, *reason);
                    continue;
                }
                Fate::Vanishes => continue,
            };
            push(switch, to + 1, Point::SwitchOut, arrival - 2, None, DropReason::None);
            push(node, port, Point::WireReceive, arrival - 1, None, DropReason::None);
            if delivered.contains(&node) {
                push(node, port, Point::Drop, arrival, None, DropReason::SecondCopy);
            } else {
                push(node, port, Point::ApplicationReceive, arrival, Some(crc), DropReason::None);
                delivered.push(node);
            }
        }
    }
}

/// Any record at all, in ranges small enough that records meet.
fn noise() -> impl Strategy<Value = Record> {
    (
        prop::sample::select(vec![ONE_WAY, RELAYED, UNFED, BOTH, MULTICAST, 99, FLOW_FOREIGN]),
        (0u32..9, 0u16..8, 0u16..6, 0i64..60),
        prop::sample::select(Point::ALL),
        prop::sample::select(Crc::ALL),
        (reason(), 0u8..4, 60u16..70),
    )
        .prop_map(|(flow, (sequence, node, port, time), point, crc, (reason, flags, length))| Record {
            crc,
            port,
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
