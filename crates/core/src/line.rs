//! Transmission times of frames on a line.
//!
//! The wire conventions of the whole project are here. A transmission begins with the first bit of the
//! preamble; the frame is through with the last bit of its FCS; the line is free again one inter-packet gap
//! later. A frame shorter than the smallest is padded to it, so no frame occupies less than 84 bytes.

use wg_frame::time::Span;
use wg_frame::{ethernet, vlan};

/// Preamble and start frame delimiter, bytes (IEEE Std 802.3-2022, 3.2.1 and 3.2.2).
pub const PREAMBLE: u32 = bytes(ethernet::PREAMBLE_LEN);
/// Inter-packet gap, bytes (IEEE Std 802.3-2022, 4.4.2: 96 bit).
pub const GAP: u32 = bytes(ethernet::GAP_LEN);
/// Smallest frame, destination address to FCS, bytes (IEEE Std 802.3-2022, 4.4.2).
#[expect(clippy::cast_possible_truncation, reason = "64")]
pub const SMALLEST_FRAME: u16 = ethernet::MIN_FRAME_LEN as u16;
/// Longest frame without tags, destination address to FCS, bytes (IEEE Std 802.3-2022, 4.4.2: maxBasicFrameSize).
#[expect(clippy::cast_possible_truncation, reason = "1518")]
pub const LONGEST_FRAME: u16 = ethernet::MAX_FRAME_LEN as u16;
/// Longest frame with a VLAN tag, destination address to FCS, bytes (IEEE Std 802.3-2022, 4.4.2: maxQTaggedFrameSize).
#[expect(clippy::cast_possible_truncation, reason = "1522")]
pub const LONGEST_TAGGED_FRAME: u16 = vlan::MAX_TAGGED_FRAME_LEN as u16;
/// What cut-through forwarding must have seen of an untagged frame, bytes.
const HEADER: u32 = bytes(ethernet::HEADER_LEN);
/// 802.1Q tag, bytes.
const TAG: u32 = bytes(vlan::TAG_LEN);

/// Length in bytes as a `u32`. For constants: panics beyond 65 535 bytes.
#[expect(clippy::cast_possible_truncation, reason = "looked at before")]
pub const fn bytes(length: usize) -> u32 {
    assert!(length <= u16::MAX as usize, "wg-core misuse: no part of a frame is so long");
    length as u32
}

/// The bit rate of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "u64", into = "u64")
)]
pub struct LineRate {
    bits_per_second: u64,
    /// Picoseconds per byte where whole, as at every Ethernet rate; else 0.
    picos_per_byte: i64,
}

/// A bit rate that no line can have, in bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line of {0} bit/s carries nothing; give it a rate")]
pub struct LineRateError(pub u64);

impl TryFrom<u64> for LineRate {
    type Error = LineRateError;
    fn try_from(bits_per_second: u64) -> Result<Self, LineRateError> {
        Self::new(bits_per_second).ok_or(LineRateError(bits_per_second))
    }
}

impl From<LineRate> for u64 {
    fn from(line: LineRate) -> Self {
        line.bits_per_second
    }
}

impl LineRate {
    /// 1 Gbit/s.
    pub const GIGABIT: Self = Self { bits_per_second: 1_000_000_000, picos_per_byte: 8_000 };

    /// A line of `bits_per_second`; `None` for zero, or when a longest frame would take more than 106 days.
    pub const fn new(bits_per_second: u64) -> Option<Self> {
        if Span::of_bits(8 * (1 << 16), bits_per_second).is_none() {
            return None;
        }
        const PICOS: u64 = 8_000_000_000_000;
        let whole = PICOS.is_multiple_of(bits_per_second);
        Some(Self {
            bits_per_second,
            picos_per_byte: if whole { (PICOS / bits_per_second).cast_signed() } else { 0 },
        })
    }

    /// Bit rate in bit/s.
    pub const fn bits_per_second(self) -> u64 {
        self.bits_per_second
    }

    /// Transmission time of `bytes`, rounded up to a picosecond.
    #[inline]
    pub const fn time_of(self, bytes: u32) -> Span {
        if self.picos_per_byte != 0 {
            return Span::from_picos(self.picos_per_byte * bytes as i64);
        }
        match Span::of_bits(8 * bytes as u64, self.bits_per_second) {
            Some(span) => span,
            None => panic!("wg-core misuse: more bytes than a frame has"),
        }
    }

    /// Time from the first bit of the preamble to the last bit of the FCS.
    #[inline]
    pub const fn transmission(self, length: u16) -> Span {
        self.time_of(PREAMBLE + floor(length))
    }

    /// Time from the first bit of the preamble until the next preamble may follow.
    #[inline]
    pub const fn occupation(self, length: u16) -> Span {
        self.time_of(PREAMBLE + floor(length) + GAP)
    }

    /// As [`occupation`](Self::occupation), with an inter-packet gap of `gap` bytes.
    #[inline]
    pub const fn occupation_with_gap(self, length: u16, gap: u8) -> Span {
        self.time_of(PREAMBLE + floor(length) + gap as u32)
    }

    /// Time from the first bit of the preamble to the last bit of the EtherType.
    #[inline]
    pub const fn header(self, tagged: bool) -> Span {
        self.time_of(PREAMBLE + HEADER + if tagged { TAG } else { 0 })
    }
}

const fn floor(length: u16) -> u32 {
    if length < SMALLEST_FRAME { SMALLEST_FRAME as u32 } else { length as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whole_and_broken_byte_times_agree_with_exact_division(
            rate in prop_oneof![Just(10_000_000_u64), Just(100_000_000), Just(1_000_000_000), Just(25_000_000_000), 1_000_u64..1 << 40],
            length in 0_u16..=1_522,
        ) {
            let line = LineRate::new(rate).expect("a sensible rate");
            let bytes = u128::from(length.max(64)) + 20;
            let exact = (bytes * 8 * 1_000_000_000_000).div_ceil(u128::from(rate));
            prop_assert_eq!(line.occupation(length).as_picos() as u128, exact);
            prop_assert!(line.transmission(length) < line.occupation(length));
            prop_assert!(line.header(true) < line.transmission(length));
        }
    }

    #[test]
    fn no_rate_is_no_line() {
        assert_eq!(LineRate::new(0), None);
    }
}
