//! The Internet checksum: one's complement of the one's complement sum of 16-bit words (RFC 1071, 1).

/// A running sum. Parts must be added in order, and only the last may have an odd length, because a part
/// always begins a new word.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum(u64);

impl Sum {
    /// Adds a part; an odd last byte counts as the high half of a word (RFC 1071, 4.1).
    ///
    /// Words are added four bytes at a time and in the machine's byte order, and only the result is turned:
    /// RFC 1071, 2 (A) and (B), shows that neither changes the sum.
    #[must_use]
    pub(crate) fn add(self, part: &[u8]) -> Self {
        let (words, rest) = part.as_chunks::<4>();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        let sum: u64 = words.iter().chain([&last]).map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
        Self(self.0 + u64::from(u16::from_be(fold(sum))))
    }

    /// Adds one word.
    #[must_use]
    pub(crate) fn add_word(self, word: u16) -> Self {
        Self(self.0 + u64::from(word))
    }

    /// The sum with the carries folded in, not inverted: all ones for data that holds its own checksum.
    pub(crate) fn folded(self) -> u16 {
        fold(self.0)
    }

    /// The checksum.
    pub(crate) fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// `sum` modulo 65 535 in 16 bits; zero stays zero and only zero becomes zero.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    let [.., high, low] = sum.to_be_bytes();
    u16::from_be_bytes([high, low])
}

#[cfg(test)]
mod tests {
    use super::Sum;
    use proptest::prelude::*;

    /// RFC 1071 by its words: 16-bit additions, each carry added back at once.
    fn end_around(bytes: &[u8]) -> u16 {
        let mut sum = 0_u16;
        let mut i = 0;
        while i < bytes.len() {
            let low = if i + 1 < bytes.len() { bytes[i + 1] } else { 0 };
            let (next, carry) = sum.overflowing_add(u16::from(bytes[i]) * 256 + u16::from(low));
            sum = next + u16::from(carry);
            i += 2;
        }
        sum
    }

    #[test]
    fn example_of_rfc_1071() {
        // RFC 1071, 3: the bytes 00 01 f2 03 f4 f5 f6 f7 sum to ddf2.
        assert_eq!(Sum::default().add(&[0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7]).folded(), 0xDDF2);
    }

    proptest! {
        #[test]
        fn agrees_with_end_around_carry(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(Sum::default().add(&bytes).folded(), end_around(&bytes));
        }

        #[test]
        fn parts_add_up(
            first in proptest::collection::vec(any::<[u8; 2]>(), 0..40),
            second in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let first = first.concat();
            let whole = [first.clone(), second.clone()].concat();
            let parts = Sum::default().add(&first).add(&second);
            prop_assert_eq!(parts.checksum(), Sum::default().add(&whole).checksum());
        }
    }
}
