//! CRC-32 of IEEE 802.3 (2022), 3.2.9, and changes of it by linearity.
//!
//! The polynomial is reflected, the register starts as all ones and is inverted at the end: the check value of
//! `123456789` is 0xCBF43926. The sum itself is computed by `crc32fast`; this module adds the step that it lacks at
//! constant cost: the change of the sum of a long message when one early byte changes.
//!
//! Start value and final inversion cancel in the difference of two sums of equal length, so
//! `crc(a ^ d) = crc(a) ^ linear(d)`, and trailing zeros of `d` multiply its remainder by a power of x.

/// The generator polynomial, reflected: bit 31 is the coefficient of x^0.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// `x^(32 + 8 i)`: one byte's remainder, followed by `i` zero bytes.
static SHIFT_BY_ONES: [u32; 256] = {
    let mut table = [0; 256];
    let mut power = shift_byte(shift_byte(shift_byte(shift_byte(1 << 31))));
    let mut i = 0;
    while i < 256 {
        table[i] = power;
        power = shift_byte(power);
        i += 1;
    }
    table
};

/// `x^(8 · 256 i)`: 256 `i` zero bytes.
static SHIFT_BY_256: [u32; 256] = {
    let mut step = 1 << 31;
    let mut i = 0;
    while i < 256 {
        step = shift_byte(step);
        i += 1;
    }
    let mut table = [0; 256];
    let mut power = 1 << 31;
    i = 0;
    while i < 256 {
        table[i] = power;
        power = multiply(power, step);
        i += 1;
    }
    table
};

/// `a · x^8` modulo the generator.
const fn shift_byte(mut a: u32) -> u32 {
    let mut bit = 0;
    while bit < 8 {
        a = (a >> 1) ^ (POLYNOMIAL & (a & 1).wrapping_neg());
        bit += 1;
    }
    a
}

/// `a · b` modulo the generator; costs one step per power of x in `a`, counted to its highest.
const fn multiply(mut a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    while a != 0 {
        product ^= b & (a >> 31).wrapping_neg();
        a <<= 1;
        b = (b >> 1) ^ (POLYNOMIAL & (b & 1).wrapping_neg());
    }
    product
}

/// Change (exclusive or) of the sum of a message when a byte with `following` bytes after it changes by `difference`.
/// Constant cost: two look-ups and at most 40 steps.
pub(crate) fn difference(difference: u8, following: u16) -> u32 {
    let [high, low] = following.to_be_bytes();
    let shift = multiply(SHIFT_BY_256[usize::from(high)], SHIFT_BY_ONES[usize::from(low)]);
    multiply(u32::from(difference) << 24, shift)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    /// The standard's own procedure, bit by bit, sharing nothing with the tables or with `crc32fast`: the
    /// message as a polynomial with its first 32 bits inverted, divided by the generator of 3.2.9.
    pub(crate) fn by_division(message: &[u8]) -> u32 {
        let mut remainder = 0_u32;
        let bits = message.iter().flat_map(|byte| (0..8).map(move |i| byte >> i & 1 == 1));
        let padded = bits.chain((0..32).map(|_| false));
        for (i, bit) in padded.enumerate() {
            let out = remainder >> 31 == 1;
            remainder = remainder << 1 | u32::from(bit != (i < 32));
            if out {
                remainder ^= 0x04C1_1DB7;
            }
        }
        !remainder.reverse_bits()
    }

    #[test]
    fn check_values() {
        // The catalogue's check value, and the residue-free cases every implementation gets wrong first.
        assert_eq!(by_division(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32fast::hash(b"123456789"), 0xCBF4_3926);
        assert_eq!(by_division(&[0; 4]), 0x2144_DF1C);
        assert_eq!(by_division(b"a"), 0xE8B7_BE43);
    }

    proptest! {
        #[test]
        fn library_agrees_with_division(message in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(crc32fast::hash(&message), by_division(&message));
        }

        #[test]
        fn difference_is_the_difference_of_sums(
            before in proptest::collection::vec(any::<u8>(), 0..16),
            byte in any::<u8>(),
            change in any::<u8>(),
            following in prop_oneof![0_u16..2048, any::<u16>()],
        ) {
            let mut message: Vec<u8> = before.clone();
            message.push(byte);
            message.extend(vec![0xA5; usize::from(following)]);
            let sum = crc32fast::hash(&message);
            message[before.len()] ^= change;
            prop_assert_eq!(crc32fast::hash(&message), sum ^ super::difference(change, following));
        }
    }
}
