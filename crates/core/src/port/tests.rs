//! One queue after another, in time with its line. Arbitrary sequences are in `tests/it/protocols.rs`.

use alloc::vec::Vec;

use proptest::prelude::*;
use wg_frame::ethernet::MacAddress;
use wg_frame::time::Span;

use super::*;
use crate::clock::TrueTime;
use crate::frame::{Handle, Marks, NetworkId, TrafficClass};
use crate::selection::StrictPriority;

/// Open in the first half of every cycle, for urgent queues only in the second.
struct Halves {
    half: i64,
}

impl Halves {
    fn admits(&self, now: RunTime, queue: usize) -> Admission {
        let (cycle, into) =
            (now.as_picos().div_euclid(2 * self.half), now.as_picos().rem_euclid(2 * self.half));
        let opens_late = queue >= 4;
        match (into < self.half, opens_late) {
            (true, false) | (false, true) => Admission::Now,
            (true, true) => Admission::NotBefore(RunTime::from_picos(2 * self.half * cycle + self.half)),
            (false, false) => Admission::NotBefore(RunTime::from_picos(2 * self.half * (cycle + 1))),
        }
    }
}

impl TransmissionSelection for Halves {
    fn admission<C: LocalClock>(&self, at: &Moment<'_, C>, queue: usize, _frame: &Frame) -> Admission {
        self.admits(at.now, queue)
    }
}

/// What a port begins, by handing it a frame or coming at a deadline.
fn begun<S: TransmissionSelection>(
    port: &mut Port<S>,
    device: &mut NodeShared<TrueTime>,
    now: RunTime,
    newcomer: Option<Frame>,
) -> Option<(Frame, Transmission)> {
    let mut begun = None;
    let effect = &mut |effect| match effect {
        Effect::Transmit { frame, transmission } => begun = Some((frame, transmission)),
        other => panic!("there is room: {other:?}"),
    };
    match newcomer {
        Some(frame) => port.handle_frame(now, frame, device, effect),
        None => port.handle_deadline(now, device, effect),
    }
    begun
}

fn frame(sequence: u32, priority: u8, length: u16) -> Frame {
    Frame {
        destination: MacAddress::BROADCAST,
        source: MacAddress::default(),
        length,
        vlan: 0,
        virtual_link: 0,
        handle: Handle(u64::from(sequence)),
        priority,
        class: TrafficClass::BestEffort,
        network: NetworkId::A,
        sequence: 0,
        marks: Marks::none(),
    }
}

proptest! {
    /// A driver that comes whenever asked and at odd instants too: the port always begins with the oldest frame of
    /// the most urgent queue that its gate admits, as soon as line and gate allow, and not a moment later.
    #[test]
    fn the_most_urgent_admitted_frame_goes_first_and_at_once(
        operations in proptest::collection::vec((0_i64..30_000_000, 0_u8..8, 64_u16..1_500), 1..80),
        half in prop_oneof![Just(i64::MAX / 8), 5_000_000_i64..200_000_000],
    ) {
        let line = LineRate::new(100_000_000).expect("a rate");
        let gate = Halves { half };
        let mut port = Port::new(PortConfig::strict_priority(line, Capacity::frames(100)), Halves { half });
        let mut device = NodeShared::new(Capacity::frames(100), TrueTime);
        let mut waiting: Vec<Frame> = Vec::new();
        let (mut now, mut free_at) = (RunTime::ZERO, RunTime::ZERO);
        let begin = |waiting: &mut Vec<Frame>, free_at: &mut RunTime, now: RunTime, frame: Frame| {
            let admitted = |f: &Frame| gate.admits(now, usize::from(f.priority)) == Admission::Now;
            let best = waiting.iter().copied().filter(admitted).max_by_key(|f| (f.priority, core::cmp::Reverse(f.handle.0 as u32)));
            assert_eq!(best, Some(frame));
            assert!(*free_at <= now);
            waiting.retain(|f| (f.handle.0 as u32) != (frame.handle.0 as u32));
            *free_at = now + line.occupation(frame.length);
            *free_at
        };
        for (sequence, (step, priority, length)) in (0..).zip(operations) {
            let until = now + Span::from_picos(step);
            while let Some(at) = port.next_deadline(&device).instant() {
                if at > until { break; }
                prop_assert!(at >= now, "a deadline lies in the past");
                now = at;
                if let Some((frame, transmission)) = begun(&mut port, &mut device, now, None) {
                    let end = begin(&mut waiting, &mut free_at, now, frame);
                    port.handle_line_free(transmission, end);
                }
            }
            now = until;
            let frame = frame(sequence, priority, length);
            waiting.push(frame);
            let idle = free_at <= now && waiting.len() == 1;
            let began = begun(&mut port, &mut device, now, Some(frame));
            let admitted = gate.admits(now, usize::from(priority)) == Admission::Now;
            prop_assert_eq!(began.is_some(), idle && admitted);
            if let Some((_, transmission)) = began {
                let end = begin(&mut waiting, &mut free_at, now, frame);
                port.handle_line_free(transmission, end);
            }
        }
        prop_assert_eq!(port.fill().frames as usize, waiting.len());
        prop_assert_eq!(device.buffer.fill(), port.fill());
    }
}

#[test]
fn an_unanswered_transmission_keeps_the_port_silent() {
    let line = LineRate::new(100_000_000).expect("a rate");
    let mut port = Port::new(PortConfig::first_in_first_out(line, Capacity::frames(9)), StrictPriority);
    let mut device = NodeShared::new(Capacity::frames(9), TrueTime);
    let late = RunTime::from_picos(i64::MAX / 2);
    let (_, transmission) =
        begun(&mut port, &mut device, RunTime::ZERO, Some(frame(0, 0, 64))).expect("the line is free");
    assert_eq!(begun(&mut port, &mut device, late, Some(frame(1, 7, 64))), None);
    assert_eq!(port.next_deadline(&device), Deadline::NEVER);
    assert_eq!(begun(&mut port, &mut device, late, None), None);
    port.handle_line_free(transmission, late);
    assert_eq!(port.next_deadline(&device), Deadline::at(late));
    assert!(begun(&mut port, &mut device, late, None).is_some());
}
