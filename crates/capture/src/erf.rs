//! Captures in ERF, the format of Endace cards and of what replaces them: turned into pcapng while they are read.
//!
//! A record has 16 bytes of head: the time in 2^-32 s since 1970 (little-endian), type, flags, its length, a counter of
//! losses and the length on the wire (big-endian); behind it extension headers of 8 bytes each, and of Ethernet two bytes
//! of padding before the frame, which has its FCS.

use std::io::{self, Read};

/// Length of a record's head, in bytes.
const HEAD: usize = 16;
/// Length of an extension header, in bytes.
const EXTENSION: usize = 8;
/// Bytes between the headers and an Ethernet frame: offset and padding.
const PADDING: usize = 2;
/// Types of records with an Ethernet frame: `ETH`, `COLOR_ETH`, `DSM_COLOR_ETH`, `COLOR_HASH_ETH`.
const ETHERNET: [u8; 4] = [2, 11, 16, 20];
/// The type of records that only pad.
const PAD: u8 = 48;
/// The type of records about the capture, which may have no time (`ERF_TYPE_META`).
const META: u8 = 27;
/// The bit of a type behind which extension headers follow.
const EXTENDED: u8 = 0x80;
/// First bytes of pcapng, and of pcap in microseconds, nanoseconds and either byte order.
const MARKED: [u32; 5] = [0x0a0d_0d0a, 0xa1b2_c3d4, 0xd4c3_b2a1, 0xa1b2_3c4d, 0x4d3c_b2a1];
/// Bytes of a frame's FCS.
const FCS: u8 = 4;
/// Ports of a card, by the lower bits of the flags.
const PORTS: u32 = 4;
/// `if_tsresol`: 2^-32 s.
const RESOLUTION: u8 = 0x80 | 32;
/// Link type of Ethernet, and one that says that a record is none.
const LINK_ETHERNET: u16 = 1;
const LINK_ERF: u16 = 197;

/// Whether a file begins as one of ERF does; nothing marks one. `octets` are its first ones, at most two records of them
/// are looked at.
pub(crate) fn begins(octets: &[u8]) -> bool {
    if octets.first_chunk().is_some_and(|first| MARKED.contains(&u32::from_be_bytes(*first))) {
        return false;
    }
    let mut at = 0;
    for _ in 0..2 {
        let Some(head) = octets.get(at..at + HEAD) else { return at > 0 };
        let (kind, length) = (head[8] & !EXTENDED, usize::from(be16(head, 10)));
        let seconds = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let is_known = (1..=META).contains(&kind) || kind == PAD;
        let is_long_enough = length >= HEAD + if ETHERNET.contains(&kind) { PADDING } else { 0 };
        if !is_known || !is_long_enough || seconds == 0 && kind != META {
            return false;
        }
        at += length;
    }
    true
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// A file of ERF as pcapng. It ends where a record is cut or impossible; the pcapng then ends within a block, which its
/// reader says.
pub(crate) struct AsPcapng<R> {
    from: R,
    ready: Vec<u8>,
    at: usize,
    ended: bool,
}

impl<R: Read> AsPcapng<R> {
    pub(crate) fn new(from: R) -> Self {
        let mut ready = Vec::new();
        block(&mut ready, 0x0A0D_0D0A, &[&0x1A2B_3C4D_u32.to_le_bytes(), &[1, 0, 0, 0], &[0xFF; 8]]);
        for port in 0..2 * PORTS {
            let link = if port < PORTS { LINK_ETHERNET } else { LINK_ERF };
            let name = format!("port {}", [b"ABCD"[(port % PORTS) as usize]].escape_ascii());
            let options =
                [option(2, name.as_bytes()), option(9, &[RESOLUTION]), option(13, &[FCS]), vec![0; 4]];
            block(&mut ready, 1, &[&link.to_le_bytes(), &[0; 6], &options.concat()]);
        }
        Self { from, ready, at: 0, ended: false }
    }

    /// Takes the next record; false at the end.
    fn take(&mut self) -> io::Result<bool> {
        let mut record = vec![0; HEAD];
        let got = fill(&mut self.from, &mut record)?;
        if got == 0 {
            return Ok(false);
        }
        let length = usize::from(be16(&record, 10));
        if got < HEAD || length < HEAD {
            self.cut();
            return Ok(true);
        }
        record.resize(length, 0);
        if fill(&mut self.from, &mut record[HEAD..])? < length - HEAD {
            self.cut();
            return Ok(true);
        }
        self.convert(&record);
        Ok(true)
    }

    fn cut(&mut self) {
        self.ready.extend([6, 0, 0, 0]);
        self.ended = true;
    }

    fn convert(&mut self, record: &[u8]) {
        let kind = record[8] & !EXTENDED;
        if [PAD, META].contains(&kind) {
            return;
        }
        let mut begin = HEAD;
        let mut extended = record[8];
        while extended & EXTENDED != 0 {
            let Some(next) = record.get(begin) else { return self.cut() };
            extended = *next;
            begin += EXTENSION;
        }
        let is_ethernet = ETHERNET.contains(&kind);
        let port = u32::from(record[9]) % PORTS + if is_ethernet { 0 } else { PORTS };
        let on_wire = usize::from(be16(record, 14));
        let Some(frame) = record.get(begin + if is_ethernet { PADDING } else { 0 }..) else {
            return self.cut();
        };
        // Records are padded to a multiple of eight.
        let frame = if is_ethernet { &frame[..frame.len().min(on_wire)] } else { frame };
        // Colours have taken the place of the counter of losses.
        let lost = if kind == ETHERNET[0] { u64::from(be16(record, 12)) } else { 0 };
        let time = u64::from_le_bytes([
            record[0], record[1], record[2], record[3], record[4], record[5], record[6], record[7],
        ]);
        #[expect(clippy::cast_possible_truncation, reason = "both halves, and lengths of 16 bits")]
        let head =
            [port, (time >> 32) as u32, time as u32, frame.len() as u32, on_wire.max(frame.len()) as u32];
        let head: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
        let padding = vec![0; frame.len().next_multiple_of(4) - frame.len()];
        let options = [option(4, &lost.to_le_bytes()), vec![0; 4]].concat();
        block(&mut self.ready, 6, &[&head, frame, &padding, &options]);
    }
}

/// Reads until `into` is full or the file at its end; returns how much.
pub(crate) fn fill(from: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match from.read(&mut into[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// An option of pcapng, padded.
fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap_or(0);
    let mut made = [code.to_le_bytes(), length.to_le_bytes()].concat();
    made.extend(value);
    made.resize(made.len().next_multiple_of(4), 0);
    made
}

fn block(into: &mut Vec<u8>, kind: u32, parts: &[&[u8]]) {
    let length = 12 + parts.iter().map(|part| part.len()).sum::<usize>();
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    into.extend(kind.to_le_bytes());
    into.extend(length);
    parts.iter().for_each(|part| into.extend(*part));
    into.extend(length);
}

impl<R: Read> Read for AsPcapng<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.ready.len() && !self.ended {
            self.ready.clear();
            self.at = 0;
            self.ended = !self.take()? || self.ended;
        }
        let some = (self.ready.len() - self.at).min(into.len());
        into[..some].copy_from_slice(&self.ready[self.at..self.at + some]);
        self.at += some;
        Ok(some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;

    /// A record: type with the bit of extensions, flags, losses, and an Ethernet frame with its FCS.
    fn record(kind: u8, flags: u8, lost: u16, time: u64, behind: &[u8], frame: &[u8]) -> Vec<u8> {
        let body = [behind, &[0; PADDING], frame].concat();
        let padded = (HEAD + body.len()).next_multiple_of(8);
        let lengths = [u16::try_from(padded), Ok(lost), u16::try_from(frame.len())];
        let mut made = [&time.to_le_bytes()[..], &[kind, flags]].concat();
        lengths.iter().for_each(|word| made.extend(word.as_ref().expect("a short record").to_be_bytes()));
        made.extend(&body);
        made.resize(padded, 0);
        made
    }

    const TIME: u64 = 1_700_000_000 << 32;

    #[test]
    fn ethernet_of_four_ports_is_read_with_times_losses_and_extensions() {
        let frame = [7; 65];
        let half = TIME | 1 << 31;
        let octets = [
            record(META | EXTENDED, 0, 0, 0, &[0; 8], &[]),
            record(2, 4, 0, TIME, &[], &frame),
            record(PAD, 0, 0, TIME, &[], &[]),
            record(
                2 | EXTENDED,
                1,
                3,
                half,
                &[EXTENDED, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                &frame[..60],
            ),
            record(1, 0, 0, half, &[], &[1, 2, 3]),
        ]
        .concat();
        assert!(begins(&octets));
        let mut reader =
            Reader::new(AsPcapng::new(io::Cursor::new(octets.clone()))).expect("it is pcapng now");
        let mut found = Vec::new();
        while let Some(packet) = reader.next_packet() {
            found.push((packet.interface, packet.picos, packet.bytes.to_vec(), packet.length));
        }
        let second = 1_700_000_000_000_000_000_000_i128;
        assert_eq!(
            found,
            [(0, second, frame.to_vec(), 65), (1, second + 500_000_000_000, frame[..60].to_vec(), 60)]
        );
        let interfaces = reader.interfaces();
        assert_eq!([interfaces[0].dropped, interfaces[1].dropped], [0, 3]);
        assert!(interfaces[1].states_drops && interfaces[1].fcs == FCS);
        assert_eq!(reader.troubles().len(), 1, "the record of another link: {:?}", reader.troubles());
        for cut in [octets.len() - 1, octets.len() - 20, 70] {
            let mut reader =
                Reader::new(AsPcapng::new(io::Cursor::new(octets[..cut].to_vec()))).expect("it begins");
            while reader.next_packet().is_some() {}
            assert!(
                reader.troubles().keys().any(crate::Trouble::ends_the_file),
                "{cut}: {:?}",
                reader.troubles()
            );
        }
    }

    #[test]
    fn what_is_no_capture_does_not_begin_as_one() {
        let big_endian =
            [&[0x0A, 0x0D, 0x0D, 0x0A, 0, 0, 0, 28, 0x1A, 0x2B, 0x3C, 0x4D, 0, 1, 0, 0][..], &[0xFF; 8]];
        let texts =
            [&b""[..], b"plain text that is no capture at all", &[0; 64], &[0xFF; 64], &big_endian.concat()];
        for octets in texts {
            assert!(!begins(octets), "{octets:?}");
        }
    }
}
