//! Reading any bytes as a capture ends, and what it gives is within its bounds; so is the trace made of it for a
//! replay.

use std::io::Cursor;

use wg_capture::{Reader, trace};
use wg_plan::Wanted;

/// Reads `data` as a capture; returns how many Ethernet frames it gave.
pub(crate) fn body(data: &[u8]) -> u64 {
    let Ok(reader) = Reader::new(Cursor::new(data.to_vec())) else { return 0 };
    let frames = read(reader, data);
    if let Ok(reader) = Reader::new(Cursor::new(data.to_vec())) {
        assert!(read(reader.with_any_interface(), data) >= frames);
    }
    traces(data, frames);
    frames
}

fn read(mut reader: Reader, data: &[u8]) -> u64 {
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
    frames
}

/// A trace has no more frames than were read, in the order of their times.
fn traces(data: &[u8], frames: u64) {
    for (interface, sent) in [(None, None), (Some("0"), Some(true)), (Some("1"), Some(false))] {
        let Ok(reader) = Reader::new(Cursor::new(data.to_vec())) else { return };
        match trace(reader, Wanted { file: "any.pcapng", interface, sent }) {
            Ok((made, _)) => {
                assert!(made.frames().len() as u64 <= frames, "frames nobody captured");
                assert!(made.frames().windows(2).all(|pair| pair[0].after <= pair[1].after));
            }
            Err(why) => assert!(!why.problem.is_empty(), "a refusal says why"),
        }
    }
}
