//! Reading any bytes as a capture ends, and what it gives is within its bounds.

use wg_capture::Reader;

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
    frames
}
