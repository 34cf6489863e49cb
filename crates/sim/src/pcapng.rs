//! Blocks of a pcapng file (IETF draft-ietf-opsawg-pcapng): section, interfaces, packets.
//!
//! Only what a capture here needs, little endian throughout. Times are in picoseconds (`if_tsresol` 12), so that a
//! capture loses nothing of simulated time; frames include their FCS (`if_fcslen` 4).

/// `LINKTYPE_ETHERNET`.
const ETHERNET: u16 = 1;
/// Option of an interface: its name.
const IF_NAME: u16 = 2;
/// Option of an interface: negative power of ten of its time unit.
const IF_TSRESOL: u16 = 9;
/// Option of an interface: bytes of FCS at the end of a packet.
const IF_FCSLEN: u16 = 13;

/// Begins a file.
pub(crate) fn section(out: &mut Vec<u8>) {
    block(out, 0x0a0d_0d0a, |body| {
        body.extend(0x1a2b_3c4d_u32.to_le_bytes());
        // Version 1.0, section length not given.
        body.extend([1, 0, 0, 0]);
        body.extend(u64::MAX.to_le_bytes());
    });
}

/// The next interface, numbered from 0 in the order of calls, of which `snap` bytes of each frame are kept.
pub(crate) fn interface(out: &mut Vec<u8>, name: &str, snap: u32) {
    block(out, 1, |body| {
        body.extend(ETHERNET.to_le_bytes());
        body.extend([0, 0]);
        body.extend(snap.to_le_bytes());
        option(body, IF_NAME, name.as_bytes());
        option(body, IF_TSRESOL, &[12]);
        option(body, IF_FCSLEN, &[4]);
        option(body, 0, &[]);
    });
}

/// A frame seen by `interface` at `picos`, of which at most `snap` bytes are kept.
pub(crate) fn packet(out: &mut Vec<u8>, interface: u32, picos: u64, frame: &[u8], snap: u32) {
    let kept = &frame[..frame.len().min(snap as usize)];
    block(out, 6, |body| {
        body.extend(interface.to_le_bytes());
        body.extend(((picos >> 32) as u32).to_le_bytes());
        body.extend((picos as u32).to_le_bytes());
        body.extend((kept.len() as u32).to_le_bytes());
        body.extend((frame.len() as u32).to_le_bytes());
        body.extend(kept);
        pad(body);
    });
}

fn block(out: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    fill(out);
    let length = ((out.len() - begin + 4) as u32).to_le_bytes();
    out.extend(length);
    out[begin + 4..begin + 8].copy_from_slice(&length);
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

/// To 32 bits; everything before is a multiple of them, so the length of the whole tells.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_close_with_their_length_on_whole_words() {
        let mut file = Vec::new();
        section(&mut file);
        interface(&mut file, "es1:1", 96);
        packet(&mut file, 0, 0x1_0000_0002, &[7; 101], 97);
        let (mut at, mut kinds) = (0, Vec::new());
        let word = |at: usize| u32::from_le_bytes([file[at], file[at + 1], file[at + 2], file[at + 3]]);
        while at < file.len() {
            let length = word(at + 4) as usize;
            assert_eq!((length % 4, word(at + length - 4) as usize), (0, length));
            kinds.push((word(at), length));
            at += length;
        }
        assert_eq!(kinds, [(0x0a0d_0d0a, 28), (1, 52), (6, 132)]);
        // Of the packet: interface, time high and low, bytes kept and seen.
        assert_eq!([88, 92, 96, 100, 104].map(word), [0, 1, 2, 97, 101]);
    }
}
