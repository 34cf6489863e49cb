//! Captures as traces for a replay: times and lengths exactly, and a sentence for whatever gives none.

use std::io::Cursor;

use proptest::prelude::*;
use wg_capture::pcapng::{self, Interface, Resolution};
use wg_capture::{Direction, Files, Reader, Timestamps, trace};
use wg_frame::time::Span;
use wg_plan::{Captures, NoTrace, TraceRead, Traced, Wanted};

use crate::foreign::classic;

const ANY: Wanted<'_> = Wanted { file: "x", interface: None, sent: None };

/// A capture of two interfaces, the second with an FCS: which, ticks, which way, length.
fn capture(resolution: Resolution, frames: &[(u32, u64, Direction, usize)]) -> Vec<u8> {
    let mut out = Vec::new();
    pcapng::section(&mut out);
    for (name, fcs) in [("left", 0), ("right", 4)] {
        let timestamps = Timestamps::SIMULATED;
        pcapng::interface(
            &mut out,
            &Interface { name, snap: 96, resolution, offset_seconds: 0, fcs, rate_bps: None, timestamps },
        );
    }
    for &(interface, ticks, direction, length) in frames {
        let bytes = vec![7; length];
        pcapng::packet(&mut out, interface, ticks, direction, &[&bytes], length, 96);
    }
    out
}

fn read(file: Vec<u8>, wanted: Wanted<'_>) -> Result<TraceRead, NoTrace> {
    trace(Reader::new(Cursor::new(file)).expect("it is a capture"), wanted)
}

fn problem(file: Vec<u8>, wanted: Wanted<'_>) -> String {
    read(file, wanted).expect_err("it gives no trace").of("x")
}

const OUT: Direction = Direction::Outbound;
const IN: Direction = Direction::Inbound;

proptest! {
    #[test]
    fn a_trace_has_the_times_and_lengths_of_the_capture(
        begin in 0_u64..1 << 50,
        frames in proptest::collection::vec((0_u64..1 << 40, 14_usize..2_000), 1..50),
        picos: bool,
        right: bool,
    ) {
        let (resolution, unit) = if picos { (Resolution::Picoseconds, 1) } else { (Resolution::Nanoseconds, 1_000) };
        let mut now = begin;
        let mut written = Vec::new();
        let mut expected = Vec::new();
        for (i, (gap, length)) in frames.iter().enumerate() {
            now += if i == 0 { 0 } else { *gap };
            written.push((u32::from(right), now, OUT, *length));
            // Where the capture has the FCS it is part of the length already.
            let length = if right { *length } else { length + 4 };
            let after = Span::from_picos(((now - begin) * unit) as i64);
            expected.push(Traced { after, length: length as u16 });
        }
        let (trace, notes) = read(capture(resolution, &written), ANY).expect("a trace");
        prop_assert_eq!(trace.frames(), expected);
        prop_assert!(notes.is_empty());
    }
}

#[test]
fn classic_captures_of_micro_and_nanoseconds_in_either_order() {
    for big in [false, true] {
        for (magic, unit) in [(0xa1b2_c3d4, 1_000_000), (0xa1b2_3c4d, 1_000)] {
            let file = classic(big, magic, 1, &[(5, 999_999, &[7; 60]), (6, 3, &[7; 96])]);
            let (trace, _) = read(file, ANY).expect("a trace");
            let after = Span::from_picos(1_000_000_000_000 - 999_996 * unit);
            assert_eq!(
                trace.frames(),
                [Traced { after: Span::ZERO, length: 64 }, Traced { after, length: 100 }]
            );
        }
    }
}

#[test]
fn an_interface_and_a_direction_are_chosen() {
    let frames = [(0, 1_000, OUT, 60), (1, 2_000, IN, 100), (1, 3_000, OUT, 200), (0, 4_000, IN, 300)];
    let file = || capture(Resolution::Nanoseconds, &frames);
    let lengths = |interface, sent| {
        let (trace, _) = read(file(), Wanted { interface, sent, ..ANY }).expect("a trace");
        trace.frames().iter().map(|frame| frame.length).collect::<Vec<_>>()
    };
    assert_eq!(lengths(Some("left"), None), [64, 304]);
    assert_eq!(lengths(Some("1"), None), [100, 200]);
    assert_eq!(lengths(Some("right"), Some(true)), [200]);
    assert_eq!(lengths(Some("0"), Some(false)), [304]);
    let both = problem(file(), ANY);
    assert!(both.contains("several interfaces, 0 and 1") && both.contains("interface=\"0\""), "{both}");
    let none = problem(file(), Wanted { interface: Some("eth0"), ..ANY });
    assert!(
        none.contains("no frame of interface \"eth0\"") && none.contains("0 (left), 1 (right)"),
        "{none}"
    );
}

#[test]
fn what_gives_no_trace_is_said_with_the_cure() {
    let nanos = |frames: &[_]| capture(Resolution::Nanoseconds, frames);
    let back = problem(nanos(&[(0, 9, OUT, 60), (0, 7, OUT, 60), (0, 6, OUT, 60), (0, 9, OUT, 60)]), ANY);
    let said =
        "go back 2 times, first at frame 2 by 2ns (limit: times in ascending order); sort it: reordercap";
    assert!(back.contains(said), "{back}");
    let empty = problem(nanos(&[]), ANY);
    assert!(empty.contains("has no frame (limit: at least 1"), "{empty}");
    let mut cut = nanos(&[(0, 9, OUT, 60), (0, 10, OUT, 60)]);
    cut.truncate(cut.len() - 10);
    let cut = problem(cut, ANY);
    assert!(cut.contains("is not whole") && cut.contains("tshark"), "{cut}");
    let unknown = classic(false, 0xa1b2_c3d4, 1, &[(5, 0, &[7; 60])]);
    let unknown = problem(unknown, Wanted { sent: Some(true), ..ANY });
    assert!(unknown.contains("says of no frame which way it went"), "{unknown}");
    let wireless = problem(classic(false, 0xa1b2_c3d4, 105, &[(5, 0, &[7; 60])]), ANY);
    assert!(
        wireless.contains("1 frames of link type IEEE802_11 (wireless LAN) (105)")
            && wireless.contains("nothing remains"),
        "{wireless}"
    );
    let year = 366 * 86_400_u32;
    let long = problem(classic(false, 0xa1b2_c3d4, 1, &[(5, 0, &[7; 60]), (year, 0, &[7; 60])]), ANY);
    assert!(long.contains("106 days"), "{long}");
    let files = Files { below: "/nowhere".into() };
    let missing =
        files.read(Wanted { file: "gone.pcapng", ..ANY }).expect_err("no such file").of("gone.pcapng");
    assert!(missing.contains("is not there") && missing.contains("/nowhere/gone.pcapng"), "{missing}");
}
