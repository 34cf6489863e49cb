//! Clusters that synchronise by AS6802, with real frames over links and switches that are busy.

use wg_core::as6802::{Behaviour, Integrity, Parameters, Thresholds};
use wg_core::line::LineRate;
use wg_frame::time::Span;
use wg_plan::{
    Attachment, Clock, Cluster, ClusterChannel, ClusterMaster, Flow, Hop, HostModel, Incident, IncidentKind,
    Inject, Link, LinkFault, LinkFaultKind, Network, NetworkId, Node, NodeIndex, NodeKind, Protocol, Run,
    Send, SwitchKind, SwitchModel, TimeTriggered, TtWindow, Victims,
};
use wg_record::{DropReason, Point, TruthKind};
use wg_sim::SimReport;

use crate::{at, dropped, run, simulated, truths};

const MASTERS: NodeIndex = 4;
const CLIENT: NodeIndex = 4;
const SWITCHES: [NodeIndex; 2] = [5, 6];
const DRIFT_PPB: i64 = 80_000;

/// Four masters and a client, each on network A (switch 5) and B (switch 6); their clocks differ by `seed`.
fn network(seed: i64) -> Network {
    let host =
        |index| Node::new(index, format!("h{index}"), NodeKind::EndSystem { host: HostModel::ideal() });
    let switch = |index| {
        let model = SwitchModel {
            kind: SwitchKind::MixedCriticality,
            strict_priority: true,
            processing_delay: Span::from_micros(4),
            ..SwitchModel::cots(1 << 20)
        };
        Node::new(index, format!("s{index}"), NodeKind::Switch(model))
    };
    let mut nodes: Vec<Node> = (0..=CLIENT).map(host).chain(SWITCHES.map(switch)).collect();
    for (place, node) in (1..).zip(&mut nodes) {
        let drift_ppb = (place * (7_919 + seed * 104_729)) % (2 * DRIFT_PPB + 1) - DRIFT_PPB;
        node.clock =
            Clock { drift_ppb, offset: Span::from_micros(place * 37 * (seed + 1)), ..Clock::default() };
    }
    let link = |host: NodeIndex, side: usize| Link {
        ends: [
            Attachment { node: host, port: 1 + side as u16 },
            Attachment { node: SWITCHES[side], port: host + 1 },
        ],
        rate: LineRate::new(100_000_000).expect("a rate"),
        delay: Span::from_nanos(300),
        network: [NetworkId::A, NetworkId::B][side],
    };
    Network { nodes, links: (0..2).flat_map(|side| (0..=CLIENT).map(move |host| link(host, side))).collect() }
}

fn cluster(behaviour: Behaviour, integrity: Integrity) -> Cluster {
    let mut parameters = Parameters {
        integrity,
        domain: 3,
        priority: 1,
        integration_cycle: Span::from_millis(2),
        cycles: 8,
        precision: Span::from_micros(1),
        // A longest frame in the way at both hops, all masters' frames, and the switch.
        max_transmission_delay: Span::from_micros(2 * (124 + 5 * 7) + 10),
        calculation_overhead: Span::from_nanos(500),
        frame_time: Span::from_nanos(6_720),
        masters: 4,
        faulty_masters: 1,
        channels: 2,
        thresholds: Thresholds::of(4, 1),
        stable_cycles: 3,
        unstable_cycles: 1,
    };
    let bound = |p: &Parameters| p.precision_bound(DRIFT_PPB, Span::from_nanos(150));
    (0..6).for_each(|_| parameters.precision = bound(&parameters));
    parameters.check().expect("a cluster that can work");
    let ways = |side: usize| {
        (0..=CLIENT).map(move |host| Hop {
            link: (side as u32) * 5 + u32::from(host),
            from: Attachment { node: SWITCHES[side], port: host + 1 },
            to: Attachment { node: host, port: 1 + side as u16 },
        })
    };
    let channel =
        |side: usize| ClusterChannel { compression_master: SWITCHES[side], ways: ways(side).collect() };
    let master =
        |node| ClusterMaster { node, behaviour: if node == 3 { behaviour } else { Behaviour::Correct } };
    Cluster {
        precision_bound: bound(&parameters),
        startup_bound: parameters.startup_bound(),
        parameters,
        powered_within: Span::from_millis(6),
        masters: (0..MASTERS).map(master).collect(),
        channels: vec![channel(0), channel(1)],
        clients: vec![CLIENT],
    }
}

/// A message every 4 ms from master 0 to the client, by window, on network A; floods to the client and a master.
fn loaded(seed: u64, behaviour: Behaviour, integrity: Integrity) -> (Network, Run) {
    let network = network(seed.cast_signed());
    let way = |nodes: [NodeIndex; 3]| network.route(NetworkId::A, &nodes).expect("neighbours");
    let us = Span::from_micros;
    let window = |node, port, offset, length| TtWindow {
        at: Attachment { node, port },
        offset: us(offset),
        length: us(length),
    };
    let schedule = TimeTriggered {
        id: 77,
        period: Span::from_millis(2),
        offset: us(1_000),
        longest_frame: 500,
        queue: None,
        windows: vec![window(0, 1, 1_000, 60), window(SWITCHES[0], CLIENT + 1, 1_060, 60)],
        early: us(1),
        late: us(200),
        receptions: vec![],
    };
    let flow =
        Flow { schedule: Some(schedule), ..Flow::plain(4, Protocol::Tt, way([0, SWITCHES[0], CLIENT])) };
    let mut run =
        run(vec![(flow, Send { offset: us(50), ..Send::periodic(4, Span::from_millis(4), 482, 200) })]);
    run.seed = seed + 1;
    run.duration = Span::from_millis(800);
    let flood = |to| Inject::periodic(way([3, SWITCHES[0], to]), 1_472, 1, us(310), 400_000);
    run.injects = vec![flood(CLIENT), flood(1)];
    run.clusters = vec![cluster(behaviour, integrity)];
    (network, run)
}

/// What is wrong with how a cluster started and stayed together.
fn problem(report: &SimReport) -> Option<String> {
    let cluster = &report.clusters[0];
    let Some(startup) = cluster.startup_ps else { return Some(format!("never synchronised: {cluster:#?}")) };
    if startup > cluster.startup_bound_ps {
        return Some(format!("after {startup} ps"));
    }
    if cluster.precision_ps.is_none_or(|precision| precision > cluster.precision_bound_ps) {
        return Some(format!("{:?} ps apart, bound {}", cluster.precision_ps, cluster.precision_bound_ps));
    }
    let lost = cluster
        .devices
        .iter()
        .find(|(_, device)| !device.faulty && (device.losses > 0 || !device.synchronised));
    lost.map(|(name, device)| format!("{name}: {device:?}"))
}

fn behaviours() -> [Behaviour; 5] {
    let us = Span::from_micros;
    [
        Behaviour::Correct,
        Behaviour::Early(us(3)),
        Behaviour::Late(us(80)),
        Behaviour::Silent,
        Behaviour::Inconsistent(us(20)),
    ]
}

#[test]
fn a_cluster_synchronises_over_busy_links_under_each_single_fault() {
    let mut delivered = 0;
    for (seed, behaviour) in (0..20).zip(behaviours().into_iter().cycle()) {
        let integrity = if seed % 4 < 2 { Integrity::Standard } else { Integrity::High };
        let (network, run) = loaded(seed, behaviour, integrity);
        let (kept, report) = simulated(&network, &run);
        assert_eq!(problem(&report), None, "seed {seed}, {behaviour:?}, {integrity:?}");
        delivered += at(&kept, Point::ApplicationReceive).len();
        let told = truths(&kept, TruthKind::SyncPrecision).iter().map(|t| t.value).max();
        assert!(told >= report.clusters[0].precision_ps, "the truth says no less than the report");
    }
    // Nobody sends by schedule before he is synchronised; then nothing is lost.
    assert!((20 * 180..20 * 200).contains(&delivered), "{delivered}");
}

/// An application on the cycle releases its message as long before its dispatch as it is told to, by a clock that a cluster sets
/// and corrects; one with a period of its own is at any place of the cycle.
#[test]
fn an_application_on_the_cycle_follows_the_clock_of_its_cluster() {
    let waits = |offset, period| {
        let (network, mut run) = loaded(3, Behaviour::Early(Span::from_micros(3)), Integrity::Standard);
        run.sends = vec![Send { offset, ..Send::periodic(4, period, 482, 190) }];
        let (kept, report) = simulated(&network, &run);
        assert_eq!(problem(&report), None);
        let released = at(&kept, Point::ApplicationSend);
        // What was released before the cluster had started was dropped, or met a clock that was set.
        let sent = at(&kept, Point::WireSend).into_iter().filter(|record| record.flow == 4).skip(2);
        let waits: Vec<i64> = sent
            .filter_map(|sent| {
                let released = released.iter().find(|released| released.sequence == sent.sequence)?;
                Some((sent.time - released.time).as_picos())
            })
            .collect();
        assert!(waits.len() > 150, "{}", waits.len());
        (waits.iter().min().copied().unwrap_or(0), waits.iter().max().copied().unwrap_or(0))
    };
    let (least, most) = waits(Span::from_micros(990), Span::from_millis(4));
    // Corrections between release and dispatch are those of a cycle.
    assert!(least > 9_000_000 && most < 11_000_000, "{least} to {most}");
    let (least, most) = waits(Span::from_micros(990), Span::from_micros(4_013));
    assert!(least < 100_000_000 && most > 1_900_000_000, "{least} to {most}");
}

#[test]
fn the_judges_see_a_link_that_delays_frames_behind_the_back_of_the_transparent_clock() {
    let (network, mut run) = loaded(1, Behaviour::Correct, Integrity::Standard);
    // All that master 0 sends and gets by both networks comes later than its clock says, by more than the precision.
    run.link_faults = [0, 5]
        .map(|link| LinkFault {
            link,
            sent_by: None,
            kind: LinkFaultKind::Delay { by: Span::from_micros(40) },
            whom: Victims::Share { ppm: 1_000_000 },
            from: Span::ZERO,
            until: None,
        })
        .to_vec();
    let (_, report) = simulated(&network, &run);
    assert!(problem(&report).is_some(), "{:?}", report.clusters);
}

#[test]
fn without_enough_masters_nobody_sends_by_schedule() {
    let (network, mut run) = loaded(2, Behaviour::Correct, Integrity::Standard);
    let cut = |link| Incident { at: Span::ZERO, kind: IncidentKind::Cut { link, until: None } };
    run.incidents = [1, 2, 3, 6, 7, 8].map(cut).to_vec();
    let (kept, report) = simulated(&network, &run);
    assert_eq!(report.clusters[0].startup_ps, None);
    assert!(at(&kept, Point::ApplicationReceive).is_empty());
    assert_eq!(dropped(&kept, DropReason::OutOfWindow).len(), 200);
}

#[test]
fn a_cluster_survives_a_restart_of_one_switch_and_what_goes_over_it_does_not() {
    let (network, mut run) = loaded(3, Behaviour::Correct, Integrity::High);
    let (at_ms, until) = (Span::from_millis(300), Span::from_millis(340));
    run.incidents = vec![Incident { at: at_ms, kind: IncidentKind::Restart { switch: SWITCHES[0], until } }];
    let (kept, report) = simulated(&network, &run);
    let cluster = &report.clusters[0];
    let losses: Vec<u64> = cluster.devices.values().map(|device| device.losses).collect();
    assert_eq!(losses, [0, 0, 0, 0, 0, 1, 0], "{cluster:#?}");
    assert!(cluster.precision_ps.is_some_and(|precision| precision <= cluster.precision_bound_ps));
    // Ten messages were sent while it was down, and some before it was synchronised again.
    let sent = at(&kept, Point::WireSend).len();
    let lost = sent - at(&kept, Point::ApplicationReceive).len();
    assert!((10..25).contains(&lost), "{lost} of {sent}");
}

#[test]
fn clusters_of_two_priorities_do_not_hear_each_other() {
    let (network, mut run) = loaded(4, Behaviour::Correct, Integrity::Standard);
    // Masters 0 and 1 with switch 5, masters 2 and 3 with switch 6.
    let whole = run.clusters.remove(0);
    let part = |side: usize, priority| {
        let masters: Vec<ClusterMaster> = whole.masters[2 * side..2 * side + 2].to_vec();
        let mut channel = whole.channels[side].clone();
        channel.ways.retain(|hop| masters.iter().any(|master| master.node == hop.to.node));
        let parameters = Parameters {
            priority,
            masters: 2,
            faulty_masters: 0,
            channels: 1,
            thresholds: Thresholds::of(2, 0),
            ..whole.parameters
        };
        Cluster { parameters, masters, channels: vec![channel], clients: vec![], ..whole.clone() }
    };
    run.clusters = vec![part(0, 1), part(1, 2)];
    run.flows.clear();
    run.sends.clear();
    run.receives.clear();
    let (_, report) = simulated(&network, &run);
    for cluster in &report.clusters {
        assert!(cluster.startup_ps.is_some() && cluster.devices.len() == 3, "{cluster:#?}");
        assert!(cluster.devices.values().all(|device| device.membership == 0b11), "{cluster:#?}");
    }
}
