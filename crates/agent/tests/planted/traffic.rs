//! Every kind of traffic on real frames. There is no card between the bridge's ports: what one would take off, number
//! and pace stays as the end systems write it, which is enough for every message to be sent, received and recorded.

use wg_core::arinc664::{Bag, Contract};
use wg_plan::{Addresses, Ends, Inject, RemoteLog, SendingThreads, TimeTriggered, VirtualLink, VlanTag};

use super::*;

fn plain(protocol: Protocol) -> Run {
    run(protocol, 300, 400, None)
}

/// The run with its flow changed.
fn with(run: Run, change: impl FnMut(Flow) -> Flow) -> Run {
    let flows = run.flows.into_iter().map(change).collect();
    Run { flows, ..run }
}

fn link() -> VirtualLink {
    VirtualLink {
        id: 17,
        contract: Contract::new(Bag::new(Span::from_millis(1)).expect("a gap"), 1_518).expect("a contract"),
        sub_links: 1,
        queue: 8,
        skew_max: Span::from_millis(1),
        redundancy_management: true,
        jitter: Span::ZERO,
        priority: 4,
        number_within: false,
    }
}

fn schedule() -> TimeTriggered {
    TimeTriggered {
        id: 18,
        period: Span::from_micros(400),
        offset: Span::ZERO,
        longest_frame: 1_518,
        queue: None,
        windows: Vec::new(),
        early: Span::ZERO,
        late: Span::ZERO,
        receptions: Vec::new(),
    }
}

/// Every message of the run is seen at all its points at the sender and at each of `receivers`, once and nowhere else.
fn comes_whole(name: &str, run: &Run, access: &str, receivers: &[u16]) {
    let place = spool(name);
    drop(std::fs::remove_dir_all(&place));
    let (reports, records) = perform(run, &place);
    drop(std::fs::remove_dir_all(&place));
    for report in &reports {
        assert!(report.complete, "{name}: {}: {}", report.end_system, report.incomplete_reason);
    }
    assert!(!host_interfered(&reports), "{name}: {reports:?}");
    let named = reports[0].access_points.iter().any(|a| a.protocol == access);
    assert!(named, "{name}: {access} is not among {:?}", reports[0].access_points);
    let count = |point, node| records.iter().filter(|r| (r.point, r.node) == (point, node)).count();
    for point in [Point::IntendedSend, Point::ApplicationSend] {
        assert_eq!(count(point, 0), 320, "{name}: {point:?}");
    }
    for point in [Point::DriverReceive, Point::ApplicationReceive] {
        for node in 0..NODES as u16 {
            let expected = if receivers.contains(&node) { 320 } else { 0 };
            assert_eq!(count(point, node), expected, "{name}: {point:?} at {node}");
        }
    }
    let came = records.iter().filter(|r| r.point == Point::ApplicationReceive);
    let lengths: BTreeSet<u16> = came.clone().map(|r| r.length).collect();
    let sent: BTreeSet<u16> =
        records.iter().filter(|r| r.point == Point::ApplicationSend).map(|r| r.length).collect();
    assert_eq!(lengths, sent, "{name}: frames are as long where they come as where they leave");
    assert!(came.clone().all(|r| r.crc == Crc::Ok), "{name}");
    for report in &reports {
        for task in report.tasks.iter().filter(|task| task.kind == "receive") {
            let wrong = task.crc_errors + task.wrong_destination + task.sequence_gaps + task.sequence_repeats;
            assert_eq!((task.done, wrong), (320, 0), "{name}: {task:?}");
        }
    }
}

pub(super) fn every_kind_of_traffic_comes_whole() {
    build(&network());
    let rc = with(plain(Protocol::Rc), |flow| Flow { virtual_link: Some(link()), ..flow });
    let within = with(rc.clone(), |flow| Flow {
        virtual_link: Some(VirtualLink { number_within: true, ..link() }),
        ..flow
    });
    let tag = Some(VlanTag { id: 12, priority: 5 });
    let tagged = with(plain(Protocol::Udp), |flow| Flow { vlan: tag, dscp: 46, ..flow });
    comes_whole("be", &plain(Protocol::Be), "be", &[1]);
    comes_whole("be-tagged", &with(plain(Protocol::Be), |flow| Flow { vlan: tag, ..flow }), "be", &[1]);
    comes_whole("rc", &rc, "rc", &[1]);
    comes_whole("rc-within", &within, "rc", &[1]);
    comes_whole(
        "tt",
        &with(plain(Protocol::Tt), |flow| Flow { schedule: Some(schedule()), ..flow }),
        "tt",
        &[1],
    );
    comes_whole("tagged", &tagged, "udp-frames", &[1]);
    comes_whole(
        "prioritised",
        &with(tagged.clone(), |flow| Flow { vlan: Some(VlanTag { id: 0, priority: 6 }), ..flow }),
        "udp-frames",
        &[1],
    );
    // A stream of the same.
    let streamed = |run: &Run| Run {
        sends: run
            .sends
            .iter()
            .map(|send| Send { fill: Fill::Sequential, transmit_time: Some(12), ..send.clone() })
            .collect(),
        ..run.clone()
    };
    comes_whole("rc-stream", &streamed(&rc), "rc", &[1]);
    comes_whole("tagged-stream", &streamed(&tagged), "udp-frames", &[1]);
}

pub(super) fn every_receiver_of_a_flow_has_every_message() {
    build(&network());
    for (protocol, access) in [(Protocol::Udp, "udp-frames"), (Protocol::Raw, "raw"), (Protocol::Be, "be")] {
        let mut several = with(plain(protocol), |flow| Flow { also_to: vec![2], ..flow });
        several.receives.push(Receive { flow: 7, on: 2 });
        comes_whole("several", &several, access, &[1, 2]);
    }
    for (protocol, access) in [(Protocol::Udp, "udp-frames"), (Protocol::Raw, "raw")] {
        let first = MacAddress([2, 0, 0, 0, 9, 0xFE]);
        let addresses = Addresses {
            mac: Ends { source: None, destination: Some(first) },
            macs: Ends { source: None, destination: Some(5) },
            ..Addresses::default()
        };
        comes_whole("in-turn", &with(plain(protocol), |flow| Flow { addresses, ..flow }), access, &[1]);
    }
}

pub(super) fn a_flow_from_a_host_to_itself_passes_its_stack() {
    build(&network());
    for (protocol, access) in [(Protocol::Udp, "udp"), (Protocol::Be, "udp"), (Protocol::Raw, "raw-loopback")]
    {
        let mut own = with(plain(protocol), |flow| Flow::loopback(flow.id, flow.protocol, 0));
        own.receives = vec![Receive { flow: 7, on: 0 }];
        comes_whole("loopback", &own, access, &[0]);
    }
}

pub(super) fn faults_of_relays_come_back_exactly_on_virtual_links_and_beside_them() {
    build(&network());
    for (protocol, through) in [(Protocol::Rc, Turn::Servicing), (Protocol::Be, Turn::Task)] {
        let kinds = [FaultKind::Loss, FaultKind::Duplicate, FaultKind::Corrupt];
        let planted =
            (0_u32..).zip(kinds).map(|(i, kind)| Fault { kind, sequences: vec![(20 * i, 20 * i + 4)] });
        let faults: Vec<Fault> = planted.collect();
        let records = undisturbed("relayed", |period| {
            let relayed = run(protocol, 200, 10 * period, Some((through, faults.clone())));
            if protocol == Protocol::Be {
                return relayed;
            }
            let mut relayed = with(relayed, |flow| Flow { virtual_link: Some(link()), ..flow });
            relayed.relays[0].vl = Some(19);
            relayed
        });
        let lost: BTreeSet<u32> = (0..5).collect();
        let damaged: BTreeSet<u32> = (40..45).collect();
        let expected = Observed {
            lost: lost.union(&damaged).copied().collect(),
            twice: (20..25).collect(),
            dropped: lost,
            damaged,
            ..Observed::default()
        };
        assert_eq!(outcome(&records, 0, true, 200), expected, "{protocol:?}");
    }
}

pub(super) fn logs_and_flooding_threads_send_what_they_report() {
    build(&network());
    let mut run = plain(Protocol::Udp);
    let end = |node| Attachment { node, port: 1 };
    let route = |to| Route { network: NetworkId::A, hops: vec![Hop { link: 0, from: end(0), to: end(to) }] };
    run.remote_logs = vec![RemoteLog { on: 0, to: 2, route: route(2), record: 40, records: 4 }];
    let threads =
        SendingThreads { number: 3, send_cost: Default::default(), sleep_overhead: Default::default() };
    let load = Inject::periodic(route(1), 100, 10, Span::from_millis(5), 1);
    run.injects = vec![Inject { threads: Some(threads), ..load }];
    let place = spool("logs");
    drop(std::fs::remove_dir_all(&place));
    let (reports, _) = perform(&run, &place);
    drop(std::fs::remove_dir_all(&place));
    let of = |kind: &str| -> Vec<_> { reports[0].tasks.iter().filter(|task| task.kind == kind).collect() };
    let [log] = of("remote-log")[..] else { panic!("one log: {reports:?}") };
    assert_eq!((log.planned, log.done, log.wire_bytes), (80, 80, 80 * (160 + 46 + 20)));
    let [load] = of("inject")[..] else { panic!("one load: {reports:?}") };
    // They sleep at least what they ask to, and hold no schedule.
    assert!(load.done >= 30 && load.done <= load.planned + 30 && load.done.is_multiple_of(10), "{load:?}");
    let absorbed = reports[1].streams.iter().find(|stream| stream.kind == "absorb").expect("an account");
    let figures: serde_json::Value = serde_json::from_str(&absorbed.figures_json).expect("JSON");
    assert_eq!(figures["account"]["distinct"], load.done, "{figures}");
}
