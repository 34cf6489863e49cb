//! All classes on one port of one switch: windows, virtual links that are policed, shaped and gated classes, fragments.

use proptest::prelude::*;
use wg_core::arinc664::{Bag, Contract};
use wg_core::queue::Capacity;
use wg_core::selection::MacOperation;
use wg_frame::time::{RunTime, Span};
use wg_plan::host_tsn::{GateEntry, GateSchedule, HostTsn, Shaper, TrafficClass};
use wg_plan::{
    Attachment, Flow, Incident, IncidentKind, Integration, LinkPriority, Network, NodeKind, PortClass,
    PortSchedule, PortTsn, Protocol, Run, Send, SwitchKind, SwitchModel, TimeTriggered, TtReception,
    TtWindow, VirtualLink, VlanTag,
};
use wg_record::{DropReason, Point, Record};

use crate::{at, dropped, run, simulated, star, way};

const CENTRE: u16 = 4;
const TO: u16 = 0;
/// Flows, by what they are.
const SCHEDULED: u16 = 1;
const LINK: u16 = 2;
const SHAPED: u16 = 3;
const BULK: u16 = 4;

fn us(us: i64) -> Span {
    Span::from_micros(us)
}

fn class(priorities: &[u8]) -> PortClass {
    PortClass {
        priorities: priorities.to_vec(),
        virtual_links: Vec::new(),
        idle_slope_bps: None,
        longest_frame: None,
        preemptable: false,
        asynchronous: None,
    }
}

/// A converged switch in the middle of four end systems; the way to the first carries everything.
fn network(integration: Integration, tsn: PortTsn) -> Network {
    let model = SwitchModel {
        kind: SwitchKind::MixedCriticality,
        strict_priority: true,
        integration,
        tsn: vec![tsn],
        // Classes share the buffer of the port: none may take all of it.
        queue_buffer: Some(Capacity::bytes(1 << 17)),
        ..SwitchModel::cots(1 << 20)
    };
    let mut network = star(CENTRE, NodeKind::Switch(model), 100_000_000);
    network.links.iter_mut().for_each(|link| link.delay = Span::ZERO);
    network
}

/// A window at 200 µs of each millisecond at the switch; a virtual link; a class of 20 Mbit/s with twice that offered; bulk that
/// fills the line.
fn traffic() -> Run {
    let window = |node, port, offset, length| TtWindow {
        at: Attachment { node, port },
        offset: us(offset),
        length: us(length),
    };
    let schedule = TimeTriggered {
        id: 77,
        period: us(1_000),
        offset: us(100),
        longest_frame: 500,
        queue: None,
        windows: vec![window(1, 1, 100, 50), window(CENTRE, TO + 1, 200, 60)],
        early: us(1),
        late: us(100),
        receptions: vec![TtReception { at: Attachment { node: TO, port: 1 }, offset: us(241) }],
    };
    let link = VirtualLink {
        id: 9,
        contract: Contract::new(Bag::ALL[0], 300).expect("a contract"),
        sub_links: 1,
        queue: 16,
        skew_max: us(5_000),
        redundancy_management: true,
        jitter: us(100),
        priority: 4,
        number_within: false,
    };
    let tagged = |id, from, priority| Flow {
        vlan: Some(VlanTag { id: 0, priority }),
        ..Flow::plain(id, Protocol::Raw, way([from, CENTRE, TO]))
    };
    let flows = vec![
        (
            Flow { schedule: Some(schedule), ..Flow::plain(SCHEDULED, Protocol::Tt, way([1, CENTRE, TO])) },
            Send { offset: us(50), ..Send::periodic(SCHEDULED, us(1_000), 482, 500) },
        ),
        (
            Flow { virtual_link: Some(link), ..Flow::plain(LINK, Protocol::Rc, way([1, CENTRE, TO])) },
            Send { offset: us(137), ..Send::periodic(LINK, us(1_009), 200, 490) },
        ),
        // 1000 B on the wire each 200 µs: 40 Mbit/s.
        (tagged(SHAPED, 2, 5), Send::periodic(SHAPED, us(200), 958, 1_000)),
        // 1538 B each 125 µs: 98.4 Mbit/s.
        (tagged(BULK, 3, 0), Send::periodic(BULK, us(125), 1_496, 4_000)),
    ];
    run(flows)
}

fn of(records: Vec<Record>, flow: u16) -> Vec<Record> {
    records.into_iter().filter(|record| record.flow == flow).collect()
}

/// Instants in a millisecond at which frames of a flow leave the switch, in picoseconds.
fn leave(network: &Network, run: &Run, flow: u16) -> Vec<i64> {
    let (kept, _) = simulated(network, run);
    let all = of(at(&kept, Point::SwitchOut), flow);
    all.iter().map(|record| (record.time - RunTime::ZERO).as_picos() % 1_000_000_000).collect()
}

#[test]
fn windows_keep_their_instant_beside_shapers_and_virtual_links_go_before_classes() {
    let shaped = PortClass { idle_slope_bps: Some(20_000_000), ..class(&[5]) };
    let tsn = PortTsn {
        ports: vec![TO + 1],
        classes: vec![class(&[0, 1, 2, 3, 4, 6, 7]), shaped],
        ..PortTsn::default()
    };
    let (network, run) = (network(Integration::TimelyBlock, tsn), traffic());
    let instants = leave(&network, &run, SCHEDULED);
    assert!(instants.len() == 500 && instants.iter().all(|at| *at == 200_000_000), "{instants:?}");
    let (kept, report) = simulated(&network, &run);
    let wait = |flow: u16| {
        let came = of(at(&kept, Point::SwitchIn), flow);
        let left = of(at(&kept, Point::SwitchOut), flow);
        let waits = came.iter().zip(&left).map(|(came, left)| left.time - came.time);
        (left.len(), waits.max().unwrap_or_default())
    };
    // A virtual link waits for one frame, and the block before a window as long as the longest, and the window's frame.
    let (links, longest) = wait(LINK);
    assert!(links == 490 && longest <= us(123 + 123 + 42), "{longest:?}");
    // 20 Mbit/s are one frame of 1000 B each 400 µs, whatever waits: it has it back what windows took.
    let shaped = of(at(&kept, Point::SwitchOut), SHAPED);
    let (first, last) = (shaped[0].time, shaped[499].time);
    let mean = (last - first).as_picos() / 499;
    assert!((mean - 400_000_000).abs() < 500_000, "{mean}");
    assert!(!report.switches["centre"].ports[0].dropped.contains_key("policed"));
}

#[test]
fn a_class_that_takes_virtual_links_holds_them_behind_its_gate_and_policing_comes_before() {
    let entry = |open: &[u8], length| GateEntry {
        open: open.to_vec(),
        length: us(length),
        mac: MacOperation::Unchanged,
    };
    let schedule = PortSchedule {
        base_time: Span::ZERO,
        cycle_extension: Span::ZERO,
        entries: vec![entry(&[0], 600), entry(&[0, 1], 400)],
    };
    let links = PortClass { virtual_links: vec![LinkPriority::Low, LinkPriority::High], ..class(&[7]) };
    let tsn = PortTsn {
        ports: vec![TO + 1],
        classes: vec![class(&[0, 1, 2, 3, 4, 5, 6]), links],
        schedules: vec![schedule],
        ..PortTsn::default()
    };
    let (network, mut run) = (network(Integration::TimelyBlock, tsn), traffic());
    let instants = leave(&network, &run, LINK);
    assert!(instants.len() == 490 && instants.iter().all(|at| *at >= 600_000_000), "{instants:?}");
    assert!(leave(&network, &run, SCHEDULED).iter().all(|at| *at == 200_000_000), "gates hold no window");
    // One that babbles is held to its contract where it comes in.
    let kind = IncidentKind::Babble { flow: LINK, period: us(100), length: 300, until: us(400_000) };
    run.incidents = vec![Incident { at: us(100_000), kind }];
    let (kept, _) = simulated(&network, &run);
    assert!(dropped(&kept, DropReason::Policed).len() > 2_000);
    assert!(leave(&network, &run, SCHEDULED).iter().all(|at| *at == 200_000_000));
}

#[test]
fn a_window_cuts_a_fragment_where_it_would_wait_for_a_frame() {
    let most = |preemptable| {
        let bulk = PortClass { preemptable, ..class(&[0, 1, 2, 3, 4]) };
        let tsn =
            PortTsn { ports: vec![TO + 1], classes: vec![bulk, class(&[5, 6, 7])], ..PortTsn::default() };
        let (network, mut run) = (network(Integration::Shuffling, tsn), traffic());
        if let Some(schedule) = &mut run.flows[0].schedule {
            (schedule.windows[1].length, schedule.late) = (us(200), us(200));
        }
        run.sends.retain(|send| send.flow != SHAPED && send.flow != LINK);
        run.flows.retain(|flow| flow.id != SHAPED && flow.id != LINK);
        run.receives.retain(|receive| receive.flow != SHAPED && receive.flow != LINK);
        let instants = leave(&network, &run, SCHEDULED);
        assert_eq!(instants.len(), 500, "{preemptable}");
        instants.into_iter().max().unwrap_or(0) - 200_000_000
    };
    // 143 B at 100 Mbit/s, and a whole frame.
    assert!(most(true) > 0 && most(true) <= 11_440_000, "{}", most(true));
    assert!(most(false) > 11_440_000 && most(false) <= 123_040_000, "{}", most(false));
}

/// The same traffic from one host, whose port has classes of its own: bulk below, a shaped one, a gate that closes over windows.
fn one_host(tsn: HostTsn) -> (Network, Run) {
    let (mut network, mut run) = (network(Integration::TimelyBlock, PortTsn::default()), traffic());
    if let NodeKind::Switch(switch) = &mut network.nodes[usize::from(CENTRE)].kind {
        switch.tsn.clear();
    }
    network.nodes[1].tsn = Some(Box::new(tsn));
    for flow in &mut run.flows {
        (flow.from, flow.routes) = (1, vec![way([1, CENTRE, TO])]);
    }
    run.sends[3].period = us(200);
    (network, run)
}

/// When frames of a flow are in at the switch: of a millisecond, and how long after one another, in picoseconds.
fn enter(network: &Network, run: &Run, flow: u16) -> (Vec<i64>, i64) {
    let (kept, _) = simulated(network, run);
    let came = of(at(&kept, Point::SwitchIn), flow);
    let mean = (came[came.len() - 1].time - came[0].time).as_picos() / (came.len() as i64 - 1);
    (came.iter().map(|record| (record.time - RunTime::ZERO).as_picos() % 1_000_000_000).collect(), mean)
}

#[test]
fn a_host_with_traffic_classes_dispatches_in_its_windows_and_sends_virtual_links_before_its_classes() {
    let class = |priorities: &[u8], shaper| TrafficClass {
        priorities: priorities.to_vec(),
        queues: 1,
        shaper,
        preemptable: false,
    };
    let cbs =
        Shaper::Cbs { idle_slope_bps: 20_000_000, max_frame: 1_542, max_interference: 1_542, offload: false };
    let shaped = HostTsn {
        classes: vec![class(&[0, 1, 2, 3, 4, 6, 7], None), class(&[5], Some(cbs))],
        ..HostTsn::default()
    };
    let (network, run) = one_host(shaped);
    // 508 B from the opening of the window on, whatever else the host has to send.
    let (instants, _) = enter(&network, &run, SCHEDULED);
    assert!(instants.len() == 500 && instants.iter().all(|at| *at == 140_640_000), "{instants:?}");
    // One frame of 1000 B each 400 µs, at 20 Mbit/s, of two that are made.
    let (_, mean) = enter(&network, &run, SHAPED);
    assert!((mean - 400_000_000).abs() < 1_000_000, "{mean}");
    // Handed over 137 µs into each period of 1.009 ms, and no BAG apart too soon: it waits for a frame, the block and a window.
    let (kept, _) = simulated(&network, &run);
    let waits = of(at(&kept, Point::SwitchIn), LINK).into_iter().map(|record| {
        let due = us(137) + Span::from_picos(i64::from(record.sequence) * us(1_009).as_picos());
        (record.time - RunTime::ZERO) - due
    });
    let longest = waits.max().unwrap_or_default();
    assert!(longest > us(100) && longest <= us(124 + 124 + 42 + 20), "{longest:?}");
}

#[test]
fn gates_of_a_host_hold_its_classes_and_neither_windows_nor_virtual_links() {
    let class = |priorities: &[u8]| TrafficClass {
        priorities: priorities.to_vec(),
        queues: 1,
        shaper: None,
        preemptable: false,
    };
    let entry = |open: &[u8], length| GateEntry {
        open: open.to_vec(),
        length: us(length),
        mac: MacOperation::Unchanged,
    };
    let schedule =
        GateSchedule { base_time: Span::ZERO, entries: vec![entry(&[], 600), entry(&[0, 1], 400)] };
    let classes = vec![class(&[0, 1, 2, 3, 4]), class(&[5, 6, 7])];
    let (network, mut run) = one_host(HostTsn { classes, schedule: Some(schedule), ..HostTsn::default() });
    // What fits into two fifths of the line.
    (run.sends[2].period, run.sends[3].period) = (us(1_000), us(1_000));
    for (flow, closed) in [(SCHEDULED, false), (LINK, false), (SHAPED, true), (BULK, true)] {
        let (instants, _) = enter(&network, &run, flow);
        let early = instants.iter().filter(|at| **at < 600_000_000).count();
        assert_eq!(early == 0, closed, "flow {flow}: {early} of {}", instants.len());
    }
    assert!(enter(&network, &run, SCHEDULED).0.iter().all(|at| *at == 140_640_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A clock that is set back shows times a second time, at which gates and windows have acted already.
    #[test]
    fn a_clock_that_is_set_never_makes_anything_due_in_the_past(
        steps in proptest::collection::vec((0..=CENTRE, 1_i64..200_000, -3_000_000_i64..3_000_000), 1..8),
        (drift, grain) in (-90_000_i64..90_000, prop_oneof![Just(1_i64), Just(8_000), Just(1_000_000)]),
        (shaped, preemptable, hold) in any::<(bool, bool, bool)>(),
        (first, second) in (130_i64..900, 130_i64..900),
        integration in prop_oneof![Just(Integration::TimelyBlock), Just(Integration::Shuffling), Just(Integration::Preemption)],
    ) {
        let mac = |mac| if preemptable && hold { mac } else { MacOperation::Unchanged };
        let entries = vec![
            GateEntry { open: vec![0], length: us(first), mac: mac(MacOperation::Release) },
            GateEntry { open: vec![1], length: us(second), mac: mac(MacOperation::Hold) },
        ];
        let bulk = PortClass { preemptable, ..class(&[0, 1, 2, 3, 4]) };
        let urgent = PortClass { idle_slope_bps: shaped.then_some(20_000_000), ..class(&[5, 6, 7]) };
        let tsn = PortTsn {
            ports: vec![TO + 1],
            classes: vec![bulk, urgent],
            schedules: vec![PortSchedule { base_time: Span::ZERO, cycle_extension: Span::ZERO, entries }],
            ..PortTsn::default()
        };
        let (mut network, mut run) = (network(integration, tsn), traffic());
        for (node, sign) in network.nodes.iter_mut().zip([1, -1].into_iter().cycle()) {
            (node.clock.drift_ppb, node.clock.granularity) = (sign * drift, Span::from_picos(grain));
        }
        run.duration = Span::from_millis(250);
        run.sends.iter_mut().for_each(|send| send.count = (send.count / 4).max(1));
        run.incidents = steps
            .into_iter()
            .map(|(node, at, by)| Incident {
                at: us(at),
                kind: IncidentKind::ClockStep { node, by: Span::from_picos(by * 1_000) },
            })
            .collect();
        run.incidents.sort_by_key(|incident| incident.at);
        let (kept, _) = simulated(&network, &run);
        // Whatever waits is let go, so that every frame of a class that no gate keeps for ever arrives or is dropped.
        let ended = of(at(&kept, Point::WireReceive), BULK).len()
            + kept.records.iter().filter(|record| record.flow == BULK && record.point == Point::Drop).count();
        prop_assert!(ended > 0, "nothing of the bulk came to an end");
    }
}
