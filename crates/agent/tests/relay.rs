//! A live agent as a driver of the relay core, without its sockets; `planted.rs` has the same on real frames.

use wg_agent::end_system::assignment::Assignment;
use wg_agent::end_system::buffer::Buffer;
use wg_agent::end_system::relay::{RelayState, ReturningMessage, Way};
use wg_core::Deadline;
use wg_frame::probe::{self, Probe, ProbeFlags};
use wg_frame::time::{RunTime, Span};
use wg_plan::{HostModel, Network, Node, NodeIndex, NodeKind, Run};

#[path = "../../plan/tests/contracts/relay.rs"]
mod body;

use body::{Done, FLOW, MESSAGES, RELAY, SENDER};

/// Notes what it is to send.
#[derive(Default)]
struct Noted(Vec<(u32, Done)>);

impl Way for Noted {
    fn send(&mut self, message: ReturningMessage, to: NodeIndex, twice: bool) {
        assert!(message.probe.flags.has(ProbeFlags::RETURN), "what a relay sends is on its way back");
        let (read, whole) = probe::read(message.buffer.payload(64)).expect("a message has a header");
        assert_eq!(read, message.probe, "the message and its account agree");
        let done = match (to, whole) {
            (SENDER, true) => Done::Home,
            (SENDER, false) => Done::Damaged,
            (other, _) => Done::To(other),
        };
        self.0.extend(std::iter::repeat_n((message.probe.sequence, done), 1 + usize::from(twice)));
    }

    fn discard(&mut self, message: ReturningMessage) {
        self.0.push((message.probe.sequence, Done::Ended));
    }
}

fn driven(run: &Run) -> Vec<(u32, Done)> {
    let node = |i: u16| Node::new(i, format!("n{i}"), NodeKind::EndSystem { host: HostModel::default() });
    let network = Network { nodes: (0..4).map(node).collect(), links: Vec::new() };
    let assignment = Assignment::new(&network, run, RELAY, false).expect("a sound plan");
    let task = &assignment.relays[0];
    let mut relay = RelayState::new(task, &assignment.flows[usize::from(task.flow)], &assignment);
    let mut noted = Noted::default();
    let at = |message: u32| RunTime::ZERO + Span::from_millis(i64::from(message));
    for sequence in 0..MESSAGES {
        relay.flush(at(sequence), &mut noted);
        let probe = Probe { flow: FLOW, sequence, flags: ProbeFlags::default() };
        let mut buffer = Buffer::new();
        probe::seal(buffer.payload_mut(64), probe).expect("the payload holds a header");
        relay.turn(at(sequence), buffer, probe, &mut noted);
    }
    assert_eq!(relay.deadline(), Deadline::at(at(MESSAGES - 1) + Span::from_millis(20)), "half of 40ms");
    relay.end(&mut noted);
    assert_eq!((relay.handled, relay.deadline()), (u64::from(MESSAGES), Deadline::NEVER));
    noted.0
}

#[test]
fn a_relay_does_what_the_test_plants() {
    body::body(driven);
}
