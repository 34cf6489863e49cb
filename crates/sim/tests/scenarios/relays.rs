//! The simulator as a driver of the relay core.

use wg_frame::time::Span;
use wg_plan::Run;
use wg_record::{Crc, DropReason, Point, RecordFlags, TruthKind};

use super::{at, simulated, star, switch, truths};

#[path = "../../../plan/tests/contracts/relay.rs"]
mod body;

use body::{Done, RELAY, SENDER};

fn driven(run: &Run) -> Vec<(u32, Done)> {
    let network = star(3, switch(), 1_000_000_000);
    let (kept, _) = simulated(&network, run);
    // What became of a message is seen where it came to; which number came damaged is one thing or the other.
    let received = at(&kept, Point::ApplicationReceive);
    let effect = |sequence| {
        let came = received.iter().find(|r| r.sequence == sequence && r.flags.has(RecordFlags::RETURN));
        let came = came.expect("what a relay sends arrives");
        match (came.node, came.crc) {
            (SENDER, Crc::Ok) => Done::Home,
            (SENDER, _) => Done::Damaged,
            (other, _) => Done::To(other),
        }
    };
    let planted = truths(&kept, TruthKind::RelayFault);
    assert_eq!(planted.len(), 13, "every planted fault has its truth");
    let done = kept.records.iter().filter(|record| record.node == RELAY);
    done.filter_map(|record| match (record.point, record.reason) {
        (Point::ApplicationSend, _) => Some((record.sequence, effect(record.sequence))),
        (Point::Drop, DropReason::PlantedFault) => Some((record.sequence, Done::Ended)),
        _ => None,
    })
    .collect()
}

#[test]
fn a_relay_does_what_the_test_plants() {
    body::body(driven);
}

/// The last message has no successor: it leaves when four periods or half the drain are over.
#[test]
fn a_message_without_a_successor_leaves_after_its_patience() {
    body::body(|run| {
        let network = star(3, switch(), 1_000_000_000);
        let (kept, _) = simulated(&network, run);
        let of = |point, sequence| {
            let records = at(&kept, point);
            let record = records.iter().find(|r| r.node == RELAY && r.sequence == sequence);
            record.expect("the relay has it").time
        };
        let waited = of(Point::ApplicationSend, 39) - of(Point::ApplicationReceive, 39);
        assert_eq!(waited, Span::from_millis(20), "half of 40ms");
        driven(run)
    });
}
