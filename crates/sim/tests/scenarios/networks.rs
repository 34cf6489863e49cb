//! Groups, learning, VLANs, hubs.

use wg_frame::time::Span;
use wg_plan::{Flow, NodeIndex, NodeKind, Protocol, Send, SwitchModel, VlanPorts, VlanTag};
use wg_record::{DropReason, Point, TruthKind};

use crate::{at, dropped, run, sequences, simulated, star, truths, way};

fn flow(id: u16, from: NodeIndex, to: NodeIndex, centre: NodeIndex) -> Flow {
    Flow::plain(id, Protocol::Udp, way([from, centre, to]))
}

fn send(id: u16) -> Send {
    Send::periodic(id, Span::from_millis(1), 100, 200)
}

#[test]
fn a_group_reaches_its_receivers_and_nobody_else() {
    for learning in [false, true] {
        let model = SwitchModel { learning, ..SwitchModel::cots(1 << 20) };
        let mut flow = flow(1, 0, 1, 4);
        flow.also_to = vec![2];
        flow.routes.push(way([0, 4, 2]));
        let (kept, report) =
            simulated(&star(4, NodeKind::Switch(model), 100_000_000), &run(vec![(flow, send(1))]));
        for node in 1..4 {
            let came = at(&kept, Point::ApplicationReceive).into_iter().filter(|record| record.node == node);
            assert_eq!(came.count(), if node == 3 { 0 } else { 200 });
        }
        // A switch that only learns knows no groups and floods them; the interface of node 3 takes no notice.
        let flooded = report.switches["centre"].ports[3].frames;
        assert_eq!(flooded, if learning { 200 } else { 0 });
    }
}

#[test]
fn a_learning_switch_floods_until_it_has_seen_the_other_side() {
    let model = SwitchModel { learning: true, ..SwitchModel::cots(1 << 20) };
    let mut back = send(2);
    back.offset = Span::from_micros(10_500);
    let flows = vec![(flow(1, 0, 1, 3), send(1)), (flow(2, 1, 0, 3), back)];
    let (kept, report) = simulated(&star(3, NodeKind::Switch(model), 100_000_000), &run(flows));
    assert_eq!(at(&kept, Point::ApplicationReceive).len(), 400);
    // Node 1 is not heard of before its first message, after eleven of node 0's.
    assert_eq!(report.switches["centre"].ports[2].frames, 11);
}

#[test]
fn a_port_outside_a_vlan_lets_nothing_of_it_pass() {
    let vlans = vec![VlanPorts { id: 0, ports: vec![1, 2, 3] }, VlanPorts { id: 7, ports: vec![1, 2] }];
    let model = SwitchModel { vlans, ..SwitchModel::cots(1 << 20) };
    let tagged = |id, to| {
        let vlan = Some(VlanTag { id: 7, priority: 3 });
        Flow { vlan, ..Flow::plain(id, Protocol::Raw, way([0, 3, to])) }
    };
    let flows = vec![(tagged(1, 1), send(1)), (tagged(2, 2), send(2)), (flow(3, 0, 2, 3), send(3))];
    let (kept, _) = simulated(&star(3, NodeKind::Switch(model), 100_000_000), &run(flows));
    let came = |id| at(&kept, Point::ApplicationReceive).iter().filter(|r| r.flow == id).count();
    assert_eq!((came(1), came(2), came(3)), (200, 0, 200));
    let drops = dropped(&kept, DropReason::NotForwarded);
    assert!(drops.len() == 200 && drops.iter().all(|record| record.flow == 2));
}

#[test]
fn stations_of_a_hub_collide_and_still_get_everything_through() {
    let hub = NodeKind::Hub { delay: Span::from_nanos(500) };
    // Four stations begin at the same instants: every first attempt collides.
    let flows = (0..4).map(|n| (flow(n + 1, n, (n + 1) % 4, 4), send(n + 1))).collect();
    let (kept, report) = simulated(&star(4, hub, 10_000_000), &run(flows));
    assert_eq!(at(&kept, Point::ApplicationReceive).len(), 800);
    assert!(truths(&kept, TruthKind::Collision).len() >= 800, "each message at least once");
    // One after the other on the wire: first bits lie a frame and a gap apart, as far as the propagation of 1.5 µs allows.
    let mut wire: Vec<_> = at(&kept, Point::WireSend).iter().map(|record| record.time).collect();
    wire.sort_unstable();
    let apart = wire.windows(2).map(|pair| pair[1] - pair[0]).min().expect("frames");
    assert!(apart >= Span::from_nanos(800 * (8 + 146)), "{apart}");
    assert_eq!(report.frame_hops, 800);
    // Another seed backs off otherwise, and the same one does not.
    let flows = || (0..4).map(|n| (flow(n + 1, n, (n + 1) % 4, 4), send(n + 1))).collect();
    let mut other = run(flows());
    other.seed += 1;
    let network = star(4, NodeKind::Hub { delay: Span::from_nanos(500) }, 10_000_000);
    assert_ne!(simulated(&network, &other).0.records, kept.records);
    assert_eq!(simulated(&network, &run(flows())).0.records, kept.records);
}

#[test]
fn faults_on_a_hubs_links_act_on_the_way_in_and_on_the_way_out() {
    use wg_plan::{LinkFault, LinkFaultKind, Victims};
    let hub = NodeKind::Hub { delay: Span::from_nanos(500) };
    let mut run = run(vec![(flow(1, 0, 1, 3), send(1))]);
    let fault = |link, from, kind, n| {
        let whom = Victims::Messages { flow: 1, sequences: vec![(n, n)] };
        LinkFault { link, sent_by: Some(from), kind, whom, from: Span::ZERO, until: None }
    };
    let later = LinkFaultKind::Delay { by: Span::from_micros(3_500) };
    run.link_faults = vec![
        fault(0, 0, LinkFaultKind::Loss, 5),
        fault(1, 3, LinkFaultKind::Loss, 6),
        fault(0, 0, LinkFaultKind::Duplicate, 10),
        fault(0, 0, later, 20),
        fault(1, 3, LinkFaultKind::BitError, 30),
    ];
    let (kept, _) = simulated(&star(3, hub, 10_000_000), &run);
    let mut expected: Vec<u32> = (0..200).filter(|n| ![5, 6, 20, 30].contains(n)).collect();
    expected.insert(expected.iter().position(|n| *n == 10).expect("it comes"), 10);
    expected.insert(expected.iter().position(|n| *n == 23).expect("it comes") + 1, 20);
    assert_eq!(sequences(&at(&kept, Point::ApplicationReceive)), expected);
    assert_eq!(sequences(&dropped(&kept, DropReason::FrameCheck)), [30]);
    assert_eq!(truths(&kept, TruthKind::LinkLost).len(), 2);
}
