//! Virtual links on two networks, and time-triggered frames in windows.

use std::path::Path;

use wg_core::arinc664::{Bag, Contract};
use wg_core::line::LineRate;
use wg_frame::time::Span;
use wg_plan::{
    Attachment, Bench, Campaign, Flow, HostModel, Inject, Integration, Link, LinkFault, LinkFaultKind,
    Network, NetworkId, Node, NodeKind, Protocol, Run, Send, SwitchKind, SwitchModel, TimeTriggered,
    TtReception, TtWindow, Victims, VirtualLink,
};
use wg_record::{DropReason, Point, TruthKind};
use wg_sim::simulate_campaign;

use crate::{at, dropped, run, sequences, simulated, star, truths, way};

/// Two end systems on networks A (switch 2) and B (switch 3).
fn two_networks() -> Network {
    let host =
        |index| Node::new(index, format!("h{index}"), NodeKind::EndSystem { host: HostModel::ideal() });
    let switch = |index| {
        let model =
            SwitchModel { kind: SwitchKind::Arinc664, strict_priority: true, ..SwitchModel::cots(1 << 20) };
        Node::new(index, format!("s{index}"), NodeKind::Switch(model))
    };
    let link = |host, switch, port, network| Link {
        ends: [Attachment { node: host, port }, Attachment { node: switch, port: host + 1 }],
        rate: LineRate::new(100_000_000).expect("a rate"),
        delay: Span::ZERO,
        network,
    };
    let links = [(2, 1, NetworkId::A), (3, 2, NetworkId::B)];
    let links = links.map(|(switch, port, network)| [0, 1].map(|host| link(host, switch, port, network)));
    Network { nodes: vec![host(0), host(1), switch(2), switch(3)], links: links.concat() }
}

fn virtual_link(id: u16) -> Flow {
    let link = VirtualLink {
        id,
        contract: Contract::new(Bag::ALL[1], 300).expect("a contract"),
        sub_links: 1,
        queue: 16,
        skew_max: Span::from_millis(5),
        redundancy_management: true,
        jitter: Span::from_micros(500),
        priority: VirtualLink::usual_priority(),
        number_within: false,
    };
    let network = two_networks();
    let routes = [(NetworkId::A, [0, 2, 1]), (NetworkId::B, [0, 3, 1])];
    let routes = routes.map(|(side, nodes)| network.route(side, &nodes).expect("neighbours"));
    let first = routes[0].clone();
    Flow {
        network: None,
        virtual_link: Some(link),
        routes: routes.to_vec(),
        ..Flow::plain(id, Protocol::Rc, first)
    }
}

#[test]
fn a_message_lost_on_one_network_comes_by_the_other() {
    let mut send = Send::periodic(9, Span::from_millis(2), 200, 400);
    send.sub_link = 0;
    let mut run = run(vec![(virtual_link(9), send)]);
    let lose = |link, sequences: &[(u32, u32)]| LinkFault {
        link,
        sent_by: None,
        kind: LinkFaultKind::Loss,
        whom: Victims::Messages { flow: 9, sequences: sequences.to_vec() },
        from: Span::ZERO,
        until: None,
    };
    run.link_faults = vec![lose(1, &[(10, 10), (50, 50)]), lose(3, &[(30, 30), (50, 50)])];
    let (kept, _) = simulated(&two_networks(), &run);
    let expected: Vec<u32> = (0..400).filter(|n| *n != 50).collect();
    assert_eq!(sequences(&at(&kept, Point::ApplicationReceive)), expected);
    let second = dropped(&kept, DropReason::SecondCopy);
    assert_eq!(second.len(), 400 - 3);
    assert!(second.iter().all(|record| (record.node, record.port) == (1, 2)), "B is handled after A");
    let ports = |point| {
        let by_port = |port| at(&kept, point).iter().filter(|record| record.port == port).count();
        (by_port(1), by_port(2))
    };
    assert_eq!(ports(Point::WireSend), (400, 400));
    assert_eq!(ports(Point::WireReceive), (398, 398));
    assert_eq!(truths(&kept, TruthKind::LinkLost).len(), 4);
}

#[test]
fn regulators_hold_back_what_comes_too_fast_and_refuse_what_they_cannot_hold() {
    let mut send = Send::periodic(9, Span::from_millis(100), 200, 100);
    send.pattern = wg_plan::Pattern::Bursts { size: 25, spacing: Span::ZERO };
    let (kept, _) = simulated(&two_networks(), &run(vec![(virtual_link(9), send)]));
    // The first of a burst leaves at once, sixteen wait, eight find no room.
    assert_eq!(dropped(&kept, DropReason::RegulatorFull).len(), 4 * 8);
    let wire: Vec<_> = at(&kept, Point::WireSend).into_iter().filter(|record| record.port == 1).collect();
    assert_eq!(wire.len(), 4 * 17);
    assert!(wire.windows(2).all(|pair| pair[1].time - pair[0].time >= Span::from_millis(2)));
    assert_eq!(at(&kept, Point::ApplicationReceive).len(), 4 * 17);
}

/// A time-triggered flow from node 0 to node 1 through a loaded switch; frames of 500 B take 40.64 µs.
fn scheduled(integration: Integration) -> (Network, Run) {
    let model = SwitchModel {
        kind: SwitchKind::MixedCriticality,
        strict_priority: true,
        integration,
        ..SwitchModel::cots(1 << 20)
    };
    let mut network = star(3, NodeKind::Switch(model), 100_000_000);
    network.links.iter_mut().for_each(|link| link.delay = Span::ZERO);
    let us = Span::from_micros;
    let window = |node, port, offset, length| TtWindow {
        at: Attachment { node, port },
        offset: us(offset),
        length: us(length),
    };
    let schedule = TimeTriggered {
        id: 77,
        period: Span::from_millis(1),
        offset: us(100),
        longest_frame: 500,
        queue: None,
        windows: vec![window(0, 1, 100, 50), window(3, 2, 150, 200)],
        early: us(1),
        late: us(200),
        receptions: vec![TtReception { at: Attachment { node: 1, port: 1 }, offset: us(191) }],
    };
    let flow = Flow { schedule: Some(schedule), ..Flow::plain(4, Protocol::Tt, way([0, 3, 1])) };
    let send = Send { offset: us(50), ..Send::periodic(4, Span::from_millis(1), 482, 200) };
    let mut run = run(vec![(flow, send)]);
    run.injects = vec![Inject::periodic(way([2, 3, 1]), 1_472, 1, us(130), 946_461)];
    (network, run)
}

#[test]
fn a_frame_cut_off_for_a_time_triggered_one_arrives_once_and_is_recorded_once() {
    let (network, mut run) = scheduled(Integration::Preemption);
    // Background load leaves no records: a measured flow takes its place.
    run.injects.clear();
    let load = Send::periodic(5, Span::from_micros(130), 1_472, 1_500);
    run.flows.push(Flow::plain(5, Protocol::Be, way([2, 3, 1])));
    run.sends.push(load);
    let (kept, report) = simulated(&network, &run);
    let aborted = truths(&kept, TruthKind::Preempted);
    assert!(
        !aborted.is_empty() && aborted.iter().all(|truth| (truth.flow, truth.node, truth.port) == (5, 3, 2))
    );
    let of_load = |point| {
        sequences(&at(&kept, point).into_iter().filter(|record| record.flow == 5).collect::<Vec<_>>())
    };
    let all: Vec<u32> = (0..1_500).collect();
    for point in [Point::SwitchIn, Point::SwitchOut, Point::WireReceive, Point::ApplicationReceive] {
        assert_eq!(of_load(point), all, "{}", point.name());
    }
    assert_eq!(report.switches["centre"].ports[1].frames, 1_700);
    // The record of the sending says when it began for good: 123.04 µs less the gap before it was all in.
    let out = at(&kept, Point::SwitchOut).into_iter().filter(|record| record.flow == 5);
    let came = at(&kept, Point::WireReceive).into_iter().filter(|record| record.flow == 5);
    assert!(out.zip(came).all(|(out, came)| came.time - out.time == Span::from_nanos(122_080)));
}

#[test]
fn a_time_triggered_frame_waits_for_nothing_a_gap_or_a_frame() {
    let most = |integration| {
        let (network, run) = scheduled(integration);
        let (kept, _) = simulated(&network, &run);
        let came = at(&kept, Point::WireReceive);
        assert_eq!(came.len(), 200);
        let phase = |time: wg_frame::time::RunTime| time.as_picos() % 1_000_000_000 - 190_640_000;
        came.iter().map(|record| phase(record.time)).max().expect("frames")
    };
    assert_eq!(most(Integration::TimelyBlock), 0);
    assert_eq!(most(Integration::Preemption), 960_000);
    let shuffled = most(Integration::Shuffling);
    assert!(shuffled > 960_000 && shuffled <= 123_040_000, "{shuffled}");
}

#[test]
fn a_late_frame_is_dropped_at_its_acceptance_window() {
    let (network, mut run) = scheduled(Integration::Shuffling);
    if let Some(schedule) = &mut run.flows[0].schedule {
        schedule.late = Span::from_micros(10);
    }
    let (kept, _) = simulated(&network, &run);
    let late = dropped(&kept, DropReason::OutOfWindow).len();
    assert!(late > 0 && late + at(&kept, Point::ApplicationReceive).len() == 200);
}

/// The files of a campaign, by name.
fn files(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in
            std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path())
        {
            if entry.is_dir() {
                folders.push(entry);
            } else {
                let name = entry.strip_prefix(root).expect("within").display().to_string();
                found.push((name, std::fs::read(&entry).expect("a file")));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn any_number_of_threads_writes_the_same_bytes() {
    let (network, base) = scheduled(Integration::Preemption);
    let runs = (0..5).map(|index| {
        let mut run = Run { index, seed: u64::from(index / 2), ..base.clone() };
        run.captures = vec![wg_plan::Capture { on: 3, snap: 64 }];
        run.link_faults = vec![LinkFault {
            link: 0,
            sent_by: None,
            kind: LinkFaultKind::Loss,
            whom: Victims::Share { ppm: 100_000 },
            from: Span::ZERO,
            until: None,
        }];
        run
    });
    let campaign = Campaign {
        schema: wg_plan::PLAN_SCHEMA,
        name: "threads".into(),
        seed: 1,
        bench: Bench::Sim,
        synchronise: None,
        network,
        axes: Vec::new(),
        repeats: 1,
        runs: runs.collect(),
        limits: Vec::new(),
        warnings: Vec::new(),
    };
    let root = std::env::temp_dir().join(format!("wiregauge-threads-{}", std::process::id()));
    let written = |threads: usize| {
        let place = root.join(threads.to_string());
        simulate_campaign(&campaign, |run| place.join(run.index.to_string()), threads, |_, _| true)
            .expect("runs");
        files(&place)
    };
    let (one, four) = (written(1), written(4));
    std::fs::remove_dir_all(&root).expect("our own");
    let names: Vec<&str> =
        one.iter().map(|(name, _)| name.as_str()).filter(|name| name.starts_with('0')).collect();
    assert_eq!(names, ["0/captures/centre.pcapng", "0/simulator/000000.arrows", "0/truth.arrows"]);
    assert!(one == four, "files differ between one thread and four");
    let of = |run: &str| {
        one.iter().find(|(name, _)| *name == format!("{run}/captures/centre.pcapng")).map(|(_, b)| b)
    };
    assert!(of("0") == of("1") && of("0") != of("2"), "the seed alone decides");
}
