//! Finding the streams of any bytes ends, and its counts fit one another.

use std::io::Cursor;

use wg_capture::Reader;
use wg_capture::streams::{Observed, Streams};

/// Finds the streams of a capture, `data`.
pub(crate) fn body(data: &[u8]) -> Option<Observed> {
    let mut reader = Reader::new(Cursor::new(data.to_vec())).ok()?.with_any_interface();
    let mut streams = Streams::default();
    streams.read(&mut reader, "any.pcapng");
    let observed = streams.finish(Vec::new());
    let in_taps: u64 = observed.taps.iter().map(|tap| tap.frames).sum();
    assert_eq!(in_taps, observed.frames);
    assert!(observed.runts <= observed.frames && observed.duration_ps >= 0);
    let content = observed.streams.iter().filter(|stream| !stream.is_around);
    assert!(
        content.map(|stream| stream.frames).sum::<u64>() + observed.runts + observed.beyond
            >= observed.streams.len().min(1) as u64
    );
    for stream in &observed.streams {
        assert!(stream.frames > 0 && stream.period.n == stream.frames - 1, "{}", stream.name);
        assert!(64 <= stream.shortest && stream.shortest <= stream.longest);
        assert!(stream.period.min <= stream.period.max);
        assert!(stream.bags.windows(2).all(|pair| pair[0].jitter_ps <= pair[1].jitter_ps));
        if let Some(sequence) = &stream.sequence {
            assert!(sequence.numbered <= stream.frames, "{}", stream.name);
            assert!(sequence.duplicates + sequence.reordered + sequence.resets < sequence.numbered);
        }
        assert!(!stream.name.contains(char::is_control), "{:?}", stream.name);
    }
    for copies in &observed.copies {
        assert_eq!(copies.pairs, copies.skew.n);
        for side in 0..2 {
            assert!(copies.pairs + copies.alone[side] + copies.repeated[side] <= copies.frames[side]);
        }
        let listed = copies.listed.iter().map(|alone| alone.len() as u64).sum::<u64>();
        assert!(listed <= copies.alone.iter().sum());
    }
    Some(observed)
}
