//! Links and switches that do not do what they should.

use proptest::prelude::*;
use wg_frame::time::{RunTime, Span};
use wg_plan::{
    Flow, Incident, IncidentKind, LinkFault, LinkFaultKind, NodeKind, Protocol, Send, SwitchModel, Victims,
};
use wg_record::{Crc, DropReason, FLOW_FOREIGN, Point, TruthKind};

use crate::{at, dropped, run, sequences, simulated, star, switch, truths, way};

fn ms(ms: i64) -> Span {
    Span::from_millis(ms)
}

fn one_flow() -> (Flow, Send) {
    (Flow::plain(1, Protocol::Udp, way([0, 2, 1])), Send::periodic(1, ms(1), 100, 500))
}

fn fault(kind: LinkFaultKind, sequences: &[(u32, u32)]) -> LinkFault {
    let whom = Victims::Messages { flow: 1, sequences: sequences.to_vec() };
    LinkFault { link: 0, sent_by: Some(0), kind, whom, from: Span::ZERO, until: None }
}

#[test]
fn scripted_faults_strike_the_named_messages_and_no_others() {
    let mut run = run(vec![one_flow()]);
    run.link_faults = vec![
        fault(LinkFaultKind::Loss, &[(3, 4)]),
        fault(LinkFaultKind::Duplicate, &[(10, 10)]),
        fault(LinkFaultKind::Delay { by: Span::from_micros(2_500) }, &[(20, 20)]),
        fault(LinkFaultKind::Corrupt, &[(30, 30)]),
        fault(LinkFaultKind::BitError, &[(40, 41)]),
    ];
    let (kept, _) = simulated(&star(2, switch(), 100_000_000), &run);
    let came = at(&kept, Point::ApplicationReceive);
    let mut expected: Vec<u32> = (0..500).filter(|n| ![3, 4, 40, 41].contains(n)).collect();
    expected.insert(expected.iter().position(|n| *n == 10).expect("it comes"), 10);
    let late = expected.iter().position(|n| *n == 20).expect("it comes");
    expected[late..late + 3].rotate_left(1);
    assert_eq!(sequences(&came), expected);
    assert!(came.iter().all(|record| (record.crc == Crc::Bad) == (record.sequence == 30)));
    let drops = dropped(&kept, DropReason::FrameCheck);
    assert_eq!(sequences(&drops), [40, 41]);
    assert!(drops.iter().all(|record| (record.node, record.port) == (2, 1)));
    let told = |kind| truths(&kept, kind).iter().map(|t| (t.sequence, t.node, t.port)).collect::<Vec<_>>();
    assert_eq!(told(TruthKind::LinkLost), [(3, 2, 1), (4, 2, 1)]);
    assert_eq!(told(TruthKind::Duplicated), [(10, 2, 1)]);
    assert_eq!(told(TruthKind::Corrupted), [(30, 2, 1)]);
    assert_eq!(told(TruthKind::BitError), [(40, 2, 1), (41, 2, 1)]);
    assert_eq!(truths(&kept, TruthKind::Delayed)[0].value, 2_500_000_000);
    assert_eq!(kept.truth.len(), 7);
}

#[test]
fn a_cut_loses_what_is_on_the_wire_and_what_is_sent_into_it() {
    let mut run = run(vec![one_flow()]);
    // A frame of 146 B takes 12.32 µs: message 100 is on its way when the link is cut, message 200 still at its beginning
    // when it is restored.
    let cut = Span::from_micros(100_005);
    let kind = IncidentKind::Cut { link: 0, until: Some(Span::from_micros(200_000)) };
    run.incidents = vec![Incident { at: cut, kind }];
    let (kept, _) = simulated(&star(2, switch(), 100_000_000), &run);
    let expected: Vec<u32> = (0..500).filter(|n| !(100..200).contains(n)).collect();
    assert_eq!(sequences(&at(&kept, Point::ApplicationReceive)), expected);
    let lost: Vec<u32> = truths(&kept, TruthKind::LinkLost).iter().map(|truth| truth.sequence).collect();
    assert_eq!(lost, (100..200).collect::<Vec<_>>());
    assert!(at(&kept, Point::Drop).is_empty(), "nobody sees what a link loses");
    let ends = |kind| truths(&kept, kind).iter().map(|t| (t.node, t.port)).collect::<Vec<_>>();
    assert_eq!(ends(TruthKind::Cut), [(2, 1), (0, 1)]);
    assert_eq!(ends(TruthKind::Restored), [(2, 1), (0, 1)]);
}

#[test]
fn a_restarting_switch_drops_with_a_reason_and_comes_back() {
    let mut run = run(vec![one_flow()]);
    let model = SwitchModel { processing_delay: Span::from_micros(50), ..SwitchModel::cots(1 << 20) };
    // Message 100 is being decided on, messages 101 to 149 come while it is down.
    let kind = IncidentKind::Restart { switch: 2, until: ms(150) };
    run.incidents = vec![Incident { at: Span::from_micros(100_020), kind }];
    let (kept, report) = simulated(&star(2, NodeKind::Switch(model), 100_000_000), &run);
    let drops = dropped(&kept, DropReason::DeviceDown);
    assert_eq!(sequences(&drops), (100..150).collect::<Vec<_>>());
    assert_eq!(at(&kept, Point::ApplicationReceive).len(), 450);
    let seen = sequences(&at(&kept, Point::SwitchIn));
    assert!(seen.iter().all(|n| !(101..150).contains(n)), "a switch that is down sees nothing");
    assert_eq!(report.switches["centre"].ports[0].dropped["device-down"], 50);
    let times = |kind| truths(&kept, kind).iter().map(|truth| truth.time).collect::<Vec<_>>();
    assert_eq!(times(TruthKind::Down), [RunTime::ZERO + Span::from_micros(100_020)]);
    assert_eq!(times(TruthKind::Up), [RunTime::ZERO + ms(150)]);
}

#[test]
fn a_babbler_sends_beside_its_messages_under_numbers_of_its_own() {
    let mut run = run(vec![one_flow()]);
    let babble = IncidentKind::Babble { flow: 1, period: Span::from_micros(100), length: 500, until: ms(20) };
    run.incidents = vec![Incident { at: ms(10), kind: babble }];
    let (kept, _) = simulated(&star(2, switch(), 100_000_000), &run);
    let came = at(&kept, Point::ApplicationReceive);
    let (own, babbled): (Vec<wg_record::Record>, Vec<_>) =
        came.into_iter().partition(|record| record.sequence < 500);
    assert_eq!((own.len(), babbled.len()), (500, 100));
    assert!(babbled.iter().all(|record| record.length == 500));
    assert_eq!(truths(&kept, TruthKind::Babbled).len(), 100);
    assert_eq!(at(&kept, Point::ApplicationSend).len(), 500, "no application sent them");
}

fn kinds() -> impl Strategy<Value = LinkFaultKind> {
    prop_oneof![
        Just(LinkFaultKind::Loss),
        Just(LinkFaultKind::Duplicate),
        Just(LinkFaultKind::BitError),
        Just(LinkFaultKind::Corrupt),
        (1_i64..5_000).prop_map(|us| LinkFaultKind::Delay { by: Span::from_micros(us) }),
        prop_oneof![18_u16..64, 1_519_u16..2_000].prop_map(|length| LinkFaultKind::WrongLength { length }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Conservation: what was sent, and what links doubled, was received, or was dropped with a record, or is lost by the truth.
    #[test]
    fn every_frame_is_accounted_for_whatever_happens(
        faults in prop::collection::vec((0_u32..3, kinds(), 0_u32..200_000), 0..5),
        cut in prop::option::of((0_u32..3, 0_i64..400_000, 0_i64..100_000)),
        restart in prop::option::of((0_i64..400_000, 0_i64..100_000)),
        buffer in 200_u64..3_000, seed: u64,
    ) {
        let flows = [(1, 0), (2, 1)].map(|(id, from)| {
            let send = Send::periodic(id, Span::from_micros(500), 400, 800);
            (Flow::plain(id, Protocol::Udp, way([from, 3, 2])), send)
        });
        let mut run = run(flows.to_vec());
        run.seed = seed;
        // Frames that a link made longer than the lines carry in time wait at their senders.
        run.drain = ms(2_000);
        // A frame that a link has lost already when the restart cuts it off would be told twice, by truth and by record.
        let links = if restart.is_some() { 2 } else { 3 };
        run.link_faults = faults.into_iter().map(|(link, kind, ppm)| LinkFault {
            link: link % links, sent_by: None, kind, whom: Victims::Share { ppm }, from: Span::ZERO, until: None,
        }).collect();
        let us = Span::from_micros;
        if let Some((link, at, long)) = cut {
            let kind = IncidentKind::Cut { link: link % links, until: Some(us(at + long)) };
            run.incidents.push(Incident { at: us(at), kind });
        }
        if let Some((at, long)) = restart {
            run.incidents.push(Incident { at: us(at), kind: IncidentKind::Restart { switch: 3, until: us(at + long) } });
        }
        run.incidents.sort_by_key(|incident| incident.at);
        let model = NodeKind::Switch(SwitchModel::cots(buffer));
        let (kept, _) = simulated(&star(3, model, 10_000_000), &run);
        let sent = at(&kept, Point::ApplicationSend).len() + truths(&kept, TruthKind::Duplicated).len();
        let received = at(&kept, Point::ApplicationReceive).len();
        let lost = truths(&kept, TruthKind::LinkLost).len();
        prop_assert_eq!(sent, received + at(&kept, Point::Drop).len() + lost);
        let bad = at(&kept, Point::ApplicationReceive).iter().filter(|record| record.crc == Crc::Bad).count();
        let damaged = truths(&kept, TruthKind::Corrupted).len() + truths(&kept, TruthKind::WrongLength).len();
        prop_assert!(bad <= 2 * damaged);
        prop_assert!(kept.truth.iter().all(|truth| truth.flow == FLOW_FOREIGN || truth.flow <= 2));
        prop_assert!(kept.truth.windows(2).all(|pair| pair[0].time <= pair[1].time));
    }
}
