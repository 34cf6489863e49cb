//! Frame templates, whose number, flags and transmit time are changed in place at constant cost.
//!
//! A generator at line rate has some hundred nanoseconds for a frame: too little for a pass over the payload for its
//! CRC-32, and for writing all headers. Everything constant is therefore written once; for each message only the probe
//! header's flags, number and CRC, the transmit time and the UDP checksum change. Both sums are linear: the
//! contribution of a byte to the CRC depends on its value and position alone (see `crc`), and the checksum of RFC 1071
//! is a sum of words.
//!
//! Road not taken: sending the same frame again and again, as packet blasters do, which leaves unknown which of them
//! arrived.

use crate::checksum::Sum;
use crate::crc;
use crate::probe::{self, Probe, ProbeError, ProbeFlags, TX_TIME_LEN};
use crate::time::RunTime;

/// Offsets of the parts of a template, in bytes from the start of the bytes sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Offset of the payload, beginning with the probe header.
    pub payload: usize,
    /// Length of the payload.
    pub payload_len: usize,
    /// Offset of the transmit time in the payload; `None`: the message carries none.
    pub transmit_time: Option<usize>,
    /// Offset of the UDP checksum, if this side computes it; it must be two bytes at an even distance from the payload.
    pub checksum: Option<usize>,
}

/// Precomputed sums that turn a frame into another message of the same flow.
#[derive(Clone, Debug)]
pub struct Template {
    places: Places,
    /// CRC of the payload with flags, number and transmit time of zero.
    crc: u32,
    /// Contribution to the CRC of each value of each changing byte: flags, four of the number, eight of the time.
    tables: [[u32; 256]; 13],
    /// One's complement sum of all bytes under the checksum, with the changing ones taken as zero.
    sum: u16,
}

/// Offsets within the probe header.
const FLAGS_AT: usize = 1;
const SEQUENCE_AT: usize = 4;
const CRC_AT: usize = 8;

impl Template {
    /// Makes a template of a frame. Its headers and content must be in place; probe header and transmit time are
    /// overwritten, with `flow` in the header. The checksum, if there is one, must be right before, and is right after
    /// this call, which leaves message 0 sent at time 0.
    ///
    /// # Errors
    /// An error if the payload does not lie in the frame or is too short for the header or the transmit time.
    pub fn new(frame: &mut [u8], places: Places, flow: u16) -> Result<Self, ProbeError> {
        let Places { payload: start, payload_len: len, transmit_time, checksum } = places;
        let too_short = ProbeError::TooShort { len: frame.len().saturating_sub(start) };
        let end = start.checked_add(len).filter(|end| *end <= frame.len()).ok_or(too_short)?;
        let old = Sum::default().add(&frame[start..end]).folded();
        let payload = &mut frame[start..end];
        let mut flags = ProbeFlags::NONE;
        if let Some(at) = transmit_time {
            probe::write_tx_time(payload, at, RunTime::ZERO)?;
            flags = ProbeFlags::TX_TIME;
        }
        probe::seal(payload, Probe { flow, sequence: 0, flags })?;
        let version_and_flags = payload[FLAGS_AT];
        let sealed = u32::from_be_bytes([payload[8], payload[9], payload[10], payload[11]]);
        let mut tables = [[0; 256]; 13];
        let mut places_of_bytes = [0_usize; 13];
        places_of_bytes[0] = FLAGS_AT;
        for (i, place) in places_of_bytes[1..5].iter_mut().enumerate() {
            *place = SEQUENCE_AT + i;
        }
        for (i, place) in places_of_bytes[5..].iter_mut().enumerate() {
            *place = transmit_time.map_or(0, |at| at + i);
        }
        for (table, place) in tables.iter_mut().zip(places_of_bytes) {
            // `seal` admits 65 535 bytes at most.
            let following = u16::try_from(len - 1 - place).unwrap_or(u16::MAX);
            // One power of x per bit; a byte is the sum of its bits.
            let mut of_bit = [0_u32; 8];
            for (bit, value) in of_bit.iter_mut().enumerate() {
                *value = crc::difference(1 << bit, following);
            }
            for (byte, value) in table.iter_mut().enumerate() {
                *value = (0..8).filter(|bit| byte >> bit & 1 == 1).fold(0, |sum, bit| sum ^ of_bit[bit]);
            }
        }
        let crc = sealed ^ tables[0][usize::from(version_and_flags)];
        let mut template = Self { places, crc, tables, sum: 0 };
        if let Some(at) = checksum {
            // The frame's checksum was right for its old payload: subtract that, and add the new payload without its
            // changing bytes.
            let held = u16::from_be_bytes([frame[at], frame[at + 1]]);
            let fixed = Sum::default().add_word(!held).add_word(!old);
            let mut plain = Sum::default();
            let payload = &frame[start..end];
            let changing = |i: usize| {
                i == FLAGS_AT
                    || (SEQUENCE_AT..CRC_AT + 4).contains(&i)
                    || transmit_time.is_some_and(|t| (t..t + TX_TIME_LEN).contains(&i))
            };
            for (i, byte) in payload.iter().enumerate().filter(|(i, _)| !changing(*i)) {
                plain = plain.add_word(if i % 2 == 0 { u16::from(*byte) << 8 } else { u16::from(*byte) });
            }
            template.sum = fixed.add_word(plain.folded()).folded();
        }
        template.patch(frame, 0, ProbeFlags::NONE, RunTime::ZERO);
        Ok(template)
    }

    /// Offsets of its parts.
    pub const fn places(&self) -> Places {
        self.places
    }

    /// The CRC with number and transmit time of zero and these flags, and the contributions of each byte of number and
    /// time: for code outside this program that changes frames.
    pub fn crc_parts(&self, flags: ProbeFlags) -> (u32, &[[u32; 256]]) {
        let flags = if self.places.transmit_time.is_some() { flags.with(ProbeFlags::TX_TIME) } else { flags };
        let second = probe::VERSION << 4 | flags.bits();
        (self.crc ^ self.tables[0][usize::from(second)], &self.tables[1..])
    }

    /// Turns `frame`, a copy of the template or an earlier message of it, into message `sequence` sent at `time`.
    /// [`ProbeFlags::TX_TIME`] is set if the template has a transmit time.
    ///
    /// # Panics
    /// If `frame` is shorter than the template.
    #[inline]
    pub fn patch(&self, frame: &mut [u8], sequence: u32, flags: ProbeFlags, time: RunTime) {
        let Places { payload: start, payload_len, transmit_time, checksum } = self.places;
        let payload = &mut frame[start..start + payload_len];
        let number = sequence.to_be_bytes();
        let flags = if transmit_time.is_some() { flags.with(ProbeFlags::TX_TIME) } else { flags };
        let second = probe::VERSION << 4 | flags.bits();
        let mut crc = self.crc ^ self.tables[0][usize::from(second)];
        for (table, byte) in self.tables[1..5].iter().zip(number) {
            crc ^= table[usize::from(byte)];
        }
        let mut words = [0_u16; 4];
        if let Some(at) = transmit_time {
            let stamp = time.as_picos().to_be_bytes();
            for (table, byte) in self.tables[5..].iter().zip(stamp) {
                crc ^= table[usize::from(byte)];
            }
            payload[at..at + TX_TIME_LEN].copy_from_slice(&stamp);
            for (word, pair) in words.iter_mut().zip(stamp.as_chunks::<2>().0) {
                *word = u16::from_be_bytes(*pair);
                // At an odd offset every byte belongs to the other half of a word (RFC 1071, 2 (B)).
                *word = if at % 2 == 1 { word.swap_bytes() } else { *word };
            }
        }
        let sum = crc.to_be_bytes();
        payload[FLAGS_AT] = second;
        payload[SEQUENCE_AT..CRC_AT].copy_from_slice(&number);
        payload[CRC_AT..CRC_AT + 4].copy_from_slice(&sum);
        if let Some(at) = checksum {
            #[expect(clippy::cast_possible_truncation, reason = "halves of words")]
            let mut total = Sum::default()
                .add_word(self.sum)
                .add_word(u16::from(second))
                .add_word((sequence >> 16) as u16)
                .add_word(sequence as u16)
                .add_word((crc >> 16) as u16)
                .add_word(crc as u16);
            for word in words {
                total = total.add_word(word);
            }
            // A sum of zero is sent as all ones, since zero means "none" (RFC 768).
            let made = match total.checksum() {
                0 => 0xFFFF,
                made => made,
            };
            frame[at..at + 2].copy_from_slice(&made.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, SocketAddrV4};
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::ethernet::MacAddress;
    use crate::layout::{self, Carrier, Envelope};
    use crate::udp;

    fn envelope() -> Envelope {
        let (from, to) = (Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2));
        Envelope {
            destination: MacAddress([2, 0x57, 0x47, 0, 0, 2]),
            source: MacAddress([2, 0x57, 0x47, 0, 0, 1]),
            tag: None,
            carrier: Carrier::udp(SocketAddrV4::new(from, 61_188), SocketAddrV4::new(to, 61_189)),
        }
    }

    proptest! {
        /// Whatever is patched in whatever order, the frame is the one that sealing and closing would make.
        #[test]
        fn a_patched_frame_is_a_frame_made_anew(
            content in proptest::collection::vec(any::<u8>(), 20..300),
            at in proptest::option::of(12_usize..292),
            messages in proptest::collection::vec((any::<u32>(), any::<i64>(), any::<bool>()), 1..6),
        ) {
            let at = at.filter(|at| at + TX_TIME_LEN <= content.len());
            let whole = envelope();
            let start = whole.header_len();
            let mut buffer = vec![0; start + content.len() + 20];
            buffer[start..start + content.len()].copy_from_slice(&content);
            let len = whole.close(&mut buffer, content.len()).expect("it fits").len();
            let mut frame: Vec<u8> = buffer[..len].to_vec();
            let places = Places {
                payload: start, payload_len: content.len(), transmit_time: at, checksum: Some(start - 2),
            };
            let template = Template::new(&mut frame, places, 7).expect("long enough");
            for (sequence, time, warm_up) in messages {
                let flags = if warm_up { ProbeFlags::WARM_UP } else { ProbeFlags::NONE };
                template.patch(&mut frame, sequence, flags, RunTime::from_picos(time));
                let found = layout::find(&frame).expect("a message of ours");
                prop_assert_eq!(found.udp_checksum, udp::Checksum::Right);
                let (read, right) = probe::read(found.payload).expect("a header");
                prop_assert!(right);
                prop_assert_eq!((read.flow, read.sequence, read.flags.has(ProbeFlags::WARM_UP)), (7, sequence, warm_up));
                prop_assert_eq!(read.flags.has(ProbeFlags::TX_TIME), at.is_some());
                if let Some(at) = at {
                    prop_assert_eq!(probe::read_tx_time(found.payload, at), Ok(RunTime::from_picos(time)));
                }
                for (i, (now, was)) in found.payload.iter().zip(&content).enumerate().skip(probe::LEN) {
                    let stamped = at.is_some_and(|at| (at..at + TX_TIME_LEN).contains(&i));
                    prop_assert!(stamped || now == was, "byte {} of the content changed", i);
                }
            }
        }
    }

    #[test]
    fn a_template_too_short_for_what_it_should_carry_is_refused() {
        let places = Places { payload: 0, payload_len: 18, transmit_time: Some(12), checksum: None };
        let refused = Template::new(&mut [0; 18], places, 1).expect_err("12 + 8 is more than 18");
        assert_eq!(refused, ProbeError::TxTimeOutside { offset: 12, len: 18 });
        let places = Places { payload: 4, payload_len: 18, transmit_time: None, checksum: None };
        assert!(Template::new(&mut [0; 18], places, 1).is_err());
    }
}
