//! What a relay with planted faults sends on, whichever bench drives it: one body for simulated and live drivers.

use wg_frame::time::Span;
use wg_plan::{
    Attachment, Fault, FaultKind, Flow, Hop, NetworkId, NodeIndex, Protocol, Receive, Relay, Route, Run,
    Send, Turn,
};

/// Number of the flow.
pub(crate) const FLOW: u16 = 1;
/// Who sends, who relays, and who has no part in it but by a planted fault.
pub(crate) const SENDER: NodeIndex = 0;
pub(crate) const RELAY: NodeIndex = 1;
pub(crate) const STRANGER: NodeIndex = 2;
/// Messages sent, one a millisecond, in order and without loss on the way to the relay.
pub(crate) const MESSAGES: u32 = 40;

/// What a relay did with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Done {
    /// It went back whole.
    Home,
    /// It went back with a bit of its payload inverted.
    Damaged,
    /// It went to this end system.
    To(NodeIndex),
    /// It ended in the relay.
    Ended,
}

/// Over the switch, node 3, to whose port `n` + 1 link `n` joins end system `n`.
fn way(from: NodeIndex, to: NodeIndex) -> Route {
    let end = |node, port| Attachment { node, port };
    let up = Hop { link: from.into(), from: end(from, 1), to: end(3, from + 1) };
    let down = Hop { link: to.into(), from: end(3, to + 1), to: end(to, 1) };
    Route { network: NetworkId::A, hops: vec![up, down] }
}

fn plan(kind: FaultKind, sequences: &[(u32, u32)]) -> Fault {
    Fault { kind, sequences: sequences.to_vec() }
}

/// Runs the relay by `driver` and compares what it did, in its order, with what the test language promises.
pub(crate) fn body(driver: impl Fn(&Run) -> Vec<(u32, Done)>) {
    for through in [Turn::Servicing, Turn::Task] {
        let faults = vec![
            plan(FaultKind::Loss, &[(3, 3), (21, 22)]),
            plan(FaultKind::Duplicate, &[(5, 5)]),
            // Two in a row; one whose direct successors are dropped; one whose successor is damaged; the last.
            plan(FaultKind::Reorder, &[(8, 8), (10, 11), (20, 20), (30, 30), (39, 39)]),
            plan(FaultKind::Corrupt, &[(14, 14), (31, 31)]),
            plan(FaultKind::Misdirect { to: STRANGER }, &[(17, 17)]),
        ];
        let period = Span::from_millis(1);
        let run = Run {
            seed: 7,
            duration: Span::from_millis(i64::from(MESSAGES)),
            drain: Span::from_millis(40),
            flows: vec![Flow::plain(FLOW, Protocol::Udp, way(SENDER, RELAY))],
            sends: vec![Send::periodic(FLOW, period, 64, MESSAGES)],
            receives: Vec::<Receive>::new(),
            relays: vec![Relay {
                flow: FLOW,
                on: RELAY,
                vl: None,
                back: None,
                through,
                faults,
                detours: vec![way(RELAY, STRANGER)],
            }],
            ..Run::default()
        };
        let home = |range: std::ops::RangeInclusive<u32>| range.map(|n| (n, Done::Home));
        let expected: Vec<(u32, Done)> = []
            .into_iter()
            .chain(home(0..=2))
            .chain([(3, Done::Ended)])
            .chain(home(4..=5))
            .chain([(5, Done::Home)])
            .chain(home(6..=7))
            .chain([(9, Done::Home), (8, Done::Home)])
            .chain([(12, Done::Home), (11, Done::Home), (10, Done::Home)])
            .chain(home(13..=13))
            .chain([(14, Done::Damaged)])
            .chain(home(15..=16))
            .chain([(17, Done::To(STRANGER))])
            .chain(home(18..=19))
            .chain([(21, Done::Ended), (22, Done::Ended)])
            .chain([(23, Done::Home), (20, Done::Home)])
            .chain(home(24..=29))
            .chain([(31, Done::Damaged)])
            .chain([(32, Done::Home), (30, Done::Home)])
            .chain(home(33..=39))
            .collect();
        assert_eq!(driver(&run), expected, "turned round by the {through:?}");
    }
}
