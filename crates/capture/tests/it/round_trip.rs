//! What is written is read, whole, cut and altered.

use proptest::prelude::*;
use wg_capture::pcapng::{self, Interface, Resolution, Statistics};
use wg_capture::{Direction, Reader, Timestamps, Trouble};

use crate::bodies::reading;

#[derive(Clone, Debug)]
struct Frame {
    interface: usize,
    ticks: u64,
    direction: Direction,
    bytes: Vec<u8>,
    seen: usize,
}

/// Interface, time, direction, bytes kept and length.
type Seen = (usize, i128, Direction, Vec<u8>, usize);

const SNAP: u32 = 1_000;
/// Seconds.
const OFFSETS: [i64; 2] = [0, 1_700_000_000];
const RESOLUTIONS: [(Resolution, i128); 2] = [(Resolution::Nanoseconds, 1_000), (Resolution::Picoseconds, 1)];

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let direction =
        prop_oneof![Just(Direction::Unknown), Just(Direction::Inbound), Just(Direction::Outbound)];
    // Nanoseconds up to the year 2262.
    let frame = (
        0..2_usize,
        0..=i64::MAX as u64,
        direction,
        prop::collection::vec(any::<u8>(), 0..1_600),
        0..2_000_usize,
    )
        .prop_map(|(interface, ticks, direction, bytes, seen)| Frame {
            interface,
            ticks,
            direction,
            bytes,
            seen,
        });
    prop::collection::vec(frame, 0..20)
}

fn file(frames: &[Frame]) -> (Vec<u8>, Vec<usize>) {
    let mut out = Vec::new();
    pcapng::section(&mut out);
    for (number, (resolution, _)) in RESOLUTIONS.into_iter().enumerate() {
        let name = format!("es{number}:1");
        let timestamps = if number == 0 { Timestamps::HARDWARE } else { Timestamps::SIMULATED };
        let rate_bps = (number == 1).then_some(1_000_000_000);
        let fcs = if number == 1 { 4 } else { 0 };
        let offset_seconds = OFFSETS[number];
        pcapng::interface(
            &mut out,
            &Interface { name: &name, snap: SNAP, resolution, offset_seconds, fcs, rate_bps, timestamps },
        );
    }
    let mut ends = vec![out.len()];
    for frame in frames {
        let (first, second) = frame.bytes.split_at(frame.bytes.len() / 3);
        let interface = frame.interface as u32;
        pcapng::packet(&mut out, interface, frame.ticks, frame.direction, &[first, second], frame.seen, SNAP);
        ends.push(out.len());
    }
    (out, ends)
}

fn read(bytes: &[u8]) -> (Vec<Seen>, Reader) {
    let mut reader = Reader::new(std::io::Cursor::new(bytes.to_vec())).expect("it begins well");
    let mut found = Vec::new();
    while let Some(packet) = reader.next_packet() {
        found.push((packet.interface, packet.picos, packet.direction, packet.bytes.to_vec(), packet.length));
    }
    (found, reader)
}

fn expected(frames: &[Frame]) -> Vec<Seen> {
    frames
        .iter()
        .map(|frame| {
            let kept = frame.bytes.len().min(SNAP as usize);
            let offset = i128::from(OFFSETS[frame.interface]) * 1_000_000_000_000;
            let picos = i128::from(frame.ticks) * RESOLUTIONS[frame.interface].1 + offset;
            let seen = frame.seen.max(frame.bytes.len());
            (frame.interface, picos, frame.direction, frame.bytes[..kept].to_vec(), seen)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(frames in frames()) {
        let (bytes, _) = file(&frames);
        let (found, reader) = read(&bytes);
        prop_assert_eq!(found, expected(&frames));
        prop_assert!(!reader.troubles().keys().any(Trouble::ends_the_file));
        let facts: Vec<_> = reader.interfaces().iter().map(|i| (i.name.as_str(), i.fcs, i.rate_bps, i.timestamps)).collect();
        prop_assert_eq!(facts, [
            ("es0:1", 0, None, Some(Timestamps::HARDWARE)),
            ("es1:1", 4, Some(1_000_000_000), Some(Timestamps::SIMULATED)),
        ]);
    }

    #[test]
    fn a_cut_file_gives_every_whole_frame_and_says_that_it_is_cut(frames in frames(), at in any::<prop::sample::Index>()) {
        let (bytes, ends) = file(&frames);
        let cut = ends[0] + at.index(bytes.len() - ends[0] + 1);
        let (found, reader) = read(&bytes[..cut]);
        let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
        prop_assert_eq!(found, &expected(&frames)[..whole]);
        let is_cut = reader.troubles().keys().any(|trouble| matches!(trouble, Trouble::Truncated { .. }));
        prop_assert_eq!(is_cut, !ends.contains(&cut), "cut at {}", cut);
    }

    #[test]
    fn altered_bytes_never_break_the_reader(
        frames in frames(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8)
    ) {
        let (mut bytes, _) = file(&frames);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        reading::body(&bytes);
    }

    #[test]
    fn any_bytes_never_break_the_reader(
        head in prop::sample::select(vec![
            0x0a0d_0d0a_u32.to_le_bytes().to_vec(), 0xa1b2_c3d4_u32.to_le_bytes().to_vec(),
            0xa1b2_3c4d_u32.to_be_bytes().to_vec(), 0xa1b2_cd34_u32.to_le_bytes().to_vec(), vec![],
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..600)
    ) {
        reading::body(&[head, rest].concat());
    }
}

#[test]
fn blocks_close_with_their_length_on_whole_words() {
    let frame = Frame { interface: 0, ticks: 5, direction: Direction::Inbound, bytes: vec![7; 101], seen: 0 };
    let (mut bytes, _) = file(&[frame]);
    let counted = Statistics { received: 9, dropped: 3, written: Some(6) };
    pcapng::statistics(&mut bytes, 1, [1, 1 << 40], counted);
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (mut at, mut kinds) = (0, Vec::new());
    while at < bytes.len() {
        let length = word(at + 4) as usize;
        assert_eq!((length % 4, word(at + length - 4) as usize), (0, length));
        kinds.push(word(at));
        at += length;
    }
    assert_eq!(kinds, [0x0a0d_0d0a, 1, 1, 6, 5]);
    let (_, reader) = read(&bytes);
    assert_eq!(reader.interfaces().iter().map(|i| i.dropped).collect::<Vec<_>>(), [0, 3]);
}
