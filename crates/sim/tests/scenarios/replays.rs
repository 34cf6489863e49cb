//! Replays: what a link carries has the gaps and sizes of the capture, to the picosecond, and a capture of it gives the same
//! trace again.

use std::io::Cursor;

use proptest::prelude::*;
use wg_capture::{Reader, trace};
use wg_frame::time::Span;
use wg_plan::{Capture, Flow, NodeIndex, Protocol, Replay, Send, Trace, Traced, Wanted};
use wg_record::Point;
use wg_sim::Kept;

use crate::{run, simulated, star, switch, way};

const RATE: u64 = 1_000_000_000;

/// Lets host 0 replay `replay` to host 1, both captured.
fn replayed(protocol: Protocol, replay: &Replay) -> Kept {
    let network = star(2, switch(), RATE);
    let flow = Flow::plain(1, protocol, way([0, 2, 1]));
    let longest = u32::from(replay.trace.longest().max(replay.least));
    let payload = wg_plan::wire::payload_of_frame(protocol, None, longest).expect("a frame");
    let count = u32::try_from(replay.frames()).expect("few");
    let send =
        Send { replay: Some(replay.clone()), ..Send::periodic(1, Span::from_nanos(1), payload, count) };
    let mut run = run(vec![(flow, send)]);
    run.captures = vec![Capture { on: 0, snap: 2_000 }, Capture { on: 1, snap: 2_000 }];
    simulated(&network, &run).0
}

fn captured(files: &Kept, node: NodeIndex) -> Trace {
    let reader = Reader::new(Cursor::new(files.captures[&node].clone())).expect("a capture");
    let wanted = Wanted { file: "sim", interface: None, sent: None };
    let (trace, notes) = trace(reader, wanted).expect("a trace");
    assert!(notes.is_empty(), "{notes:?}");
    trace
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Gaps no frame is too long for: nothing waits, so nothing moves.
    #[test]
    fn the_wire_has_the_gaps_and_sizes_of_the_capture(
        frames in proptest::collection::vec((0_i64..1 << 36, 64_u16..=1_518), 1..30),
        loops in 1_u32..3,
        raw: bool,
    ) {
        let mut after = Span::ZERO;
        let mut before = 0;
        let frames: Vec<Traced> = frames
            .into_iter()
            .enumerate()
            .map(|(i, (gap, length))| {
                let on_wire = Span::of_bits(8 * (u64::from(before) + 20), RATE).expect("short");
                after += if i == 0 { Span::ZERO } else { on_wire + Span::from_picos(gap) };
                before = length;
                Traced { after, length }
            })
            .collect();
        let trace = Trace::new(frames.clone()).expect("ascending");
        let loop_gap = Span::from_picos(20_000_001);
        let replay = Replay { file: "x".into(), trace, speed_ppm: 1_000_000, loops, loop_gap, least: 64 };
        let files = replayed(if raw { Protocol::Raw } else { Protocol::Udp }, &replay);
        let mut expected = Vec::new();
        for number in 0..i64::from(loops) {
            let begin = Span::from_picos(number * replay.cycle().as_picos());
            expected.extend(frames.iter().map(|f| Traced { after: begin + f.after, length: f.length }));
        }
        // Sent is when the first bit leaves.
        let sent = captured(&files, 0);
        prop_assert_eq!(sent.frames(), &expected[..]);
        // What was captured is replayed again, and is the same.
        let again = Replay { trace: sent.clone(), loops: 1, ..replay.clone() };
        prop_assert_eq!(captured(&replayed(Protocol::Udp, &again), 0), sent);
        // Every one is accounted for, with its own length.
        let of = |point| files.records.iter().filter(|record| record.point == point).collect::<Vec<_>>();
        let came = of(Point::ApplicationReceive);
        prop_assert_eq!(came.len(), expected.len());
        for (record, frame) in came.iter().zip(&expected) {
            prop_assert_eq!(record.length, frame.length);
        }
        let due: Vec<i64> = of(Point::IntendedSend).iter().map(|record| record.time.as_picos()).collect();
        prop_assert_eq!(due, expected.iter().map(|frame| frame.after.as_picos()).collect::<Vec<_>>());
    }
}

/// Frames too close for the line leave back to back, in order, and none is lost.
#[test]
fn what_the_line_cannot_carry_at_its_time_waits() {
    let frames = (0..5).map(|i| Traced { after: Span::from_nanos(i), length: 600 }).collect();
    let trace = Trace::new(frames).expect("ascending");
    let replay =
        Replay { file: "x".into(), trace, speed_ppm: 1_000_000, loops: 1, loop_gap: Span::ZERO, least: 64 };
    let sent = captured(&replayed(Protocol::Udp, &replay), 0);
    let back_to_back: Vec<i64> = sent.frames().iter().map(|frame| frame.after.as_nanos_floor()).collect();
    assert_eq!(back_to_back, [0, 4_960, 9_920, 14_880, 19_840]);
}

/// Half the pace is twice the gap; the pace of the capture is rounded once and not per gap.
#[test]
fn speed_scales_times_and_short_frames_are_raised() {
    let frames = (0..4).map(|i| Traced { after: Span::from_picos(i * 10_000_001), length: 60 }).collect();
    let trace = Trace::new(frames).expect("ascending");
    let slow =
        Replay { file: "x".into(), trace, speed_ppm: 300_000, loops: 1, loop_gap: Span::ZERO, least: 66 };
    let sent = captured(&replayed(Protocol::Udp, &slow), 0);
    let times: Vec<i64> = sent.frames().iter().map(|frame| frame.after.as_picos()).collect();
    assert_eq!(times, [0, 33_333_337, 66_666_673, 100_000_010]);
    assert!(sent.frames().iter().all(|frame| frame.length == 66));
}
