//! Reading any bytes as a capture ends, and what it gives is within its bounds.

use wg_capture::Reader;
use wg_plan::{MOST_TRACED, Wanted};

/// Reads `data` as a capture; returns how many frames it gave.
pub(crate) fn body(data: &[u8]) -> u64 {
    let Ok(mut reader) = Reader::new(std::io::Cursor::new(data.to_vec())) else { return 0 };
    let mut frames = 0_u64;
    while let Some(packet) = reader.next_packet() {
        frames += 1;
        assert!(packet.bytes.len() <= packet.length && packet.length <= usize::from(u16::MAX));
        assert!(packet.picos >= 0, "a time before 1970");
        assert!(packet.bytes.len() <= data.len(), "bytes that are not in the file");
        let interface = packet.interface;
        assert!(interface < reader.interfaces().len());
    }
    // A frame takes 16 bytes at least in either format.
    assert!(frames <= data.len() as u64 / 16, "{frames} frames in {} B", data.len());
    let endings = reader.troubles().keys().filter(|trouble| trouble.ends_the_file()).count();
    assert!(endings <= 1, "a file ends once: {:?}", reader.troubles());
    assert!(reader.next_packet().is_none(), "nothing comes after the end");
    for interface in [None, Some("0")] {
        as_trace(data, interface);
    }
    frames
}

/// The same bytes as what a replay would repeat: a trace in order, or a sentence.
fn as_trace(data: &[u8], interface: Option<&str>) {
    let Ok(reader) = Reader::new(std::io::Cursor::new(data.to_vec())) else { return };
    match wg_capture::trace(reader, Wanted { file: "any", interface, sent: None }) {
        Ok((trace, _)) => {
            assert!((1..=MOST_TRACED).contains(&trace.frames().len()));
            assert!(trace.frames().windows(2).all(|pair| pair[0].after <= pair[1].after));
            assert_eq!(wg_plan::Trace::from_text(&trace.to_text()).as_ref(), Ok(&trace));
        }
        Err(none) => assert!(!none.problem.is_empty()),
    }
}
