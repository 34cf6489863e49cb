//! Payload content after the probe header.
//!
//! The content is a pure function of its arguments, the same on every platform and in every version of the
//! program, so a receiver that knows the test can say which byte was damaged, and a run can be repeated to
//! the bit. All functions leave the first [`probe::LEN`] bytes alone and do nothing to a
//! shorter payload.

use crate::probe;

/// Content pattern of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// See [`sequential`].
    Sequential,
    /// See [`random`].
    Random {
        /// Seed of the run.
        seed: u64,
        /// Flow number of the message.
        flow: u16,
        /// Sequence number of the message.
        sequence: u32,
    },
}

impl Pattern {
    /// Fills the payload behind the header.
    pub fn write(self, payload: &mut [u8]) {
        match self {
            Self::Sequential => sequential(payload),
            Self::Random { seed, flow, sequence } => random(payload, seed, flow, sequence),
        }
    }

    /// Offset, from the start of the payload, of the first byte that differs from the output of [`Pattern::write`];
    /// `None`: no damage. The transmit time, if the message has one at `tx_time`, is skipped, since it is not content.
    pub fn first_damage(self, payload: &[u8], tx_time: Option<usize>) -> Option<usize> {
        let skipped = tx_time.map_or(0..0, |at| at..at.saturating_add(probe::TX_TIME_LEN));
        let content = payload.get(probe::LEN..)?;
        let mut generator = match self {
            Self::Sequential => None,
            Self::Random { seed, flow, sequence } => Some(SplitMix64::of_message(seed, flow, sequence)),
        };
        for (word, chunk) in content.chunks(8).enumerate() {
            let expected = match &mut generator {
                None => sequential_word(word),
                Some(generator) => generator.next().to_le_bytes(),
            };
            for (i, (found, expected)) in chunk.iter().zip(expected).enumerate() {
                let at = probe::LEN + 8 * word + i;
                if *found != expected && !skipped.contains(&at) {
                    return Some(at);
                }
            }
        }
        None
    }
}

/// Bytes counting up from 0 at the first byte behind the header, wrapping after 255.
pub fn sequential(payload: &mut [u8]) {
    let mut word = 0;
    lay_down(payload, || {
        word += 1;
        sequential_word(word - 1)
    });
}

/// Bytes of a SplitMix64 generator whose start is mixed from run seed, flow and sequence number; its 64-bit
/// outputs are laid down least significant byte first.
pub fn random(payload: &mut [u8], seed: u64, flow: u16, sequence: u32) {
    let mut generator = SplitMix64::of_message(seed, flow, sequence);
    lay_down(payload, || generator.next().to_le_bytes());
}

fn lay_down(payload: &mut [u8], mut next: impl FnMut() -> [u8; 8]) {
    let Some(content) = payload.get_mut(probe::LEN..) else { return };
    let (words, rest) = content.as_chunks_mut();
    for word in words {
        *word = next();
    }
    if !rest.is_empty() {
        rest.copy_from_slice(&next()[..rest.len()]);
    }
}

fn sequential_word(word: usize) -> [u8; 8] {
    // Only the low byte counts, so losing the rest of the index is intended. It is a multiple of 8 and so at most 248:
    // adding 0 to 7 carries from no byte into the next.
    let [first, ..] = word.wrapping_mul(8).to_le_bytes();
    (u64::from(first) * 0x0101_0101_0101_0101 + 0x0706_0504_0302_0100).to_le_bytes()
}

/// SplitMix64: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA
/// 2014, figure 16, with the finaliser of Vigna's public-domain version. Eight bytes per step, no state to
/// warm up, and equidistributed over its whole period; it is no cryptographic generator and need not be.
struct SplitMix64(u64);

impl SplitMix64 {
    /// An odd number near 2^64 divided by the golden ratio.
    const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

    /// Flow and sequence number are concatenated, so no two messages of a run share a start, and the result is mixed,
    /// so neighbours are not one step apart on the generator's single orbit.
    fn of_message(seed: u64, flow: u16, sequence: u32) -> Self {
        let message = u64::from(flow) << 32 | u64::from(sequence);
        Self(mix(mix(seed.wrapping_add(Self::GAMMA)) ^ message))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::GAMMA);
        mix(self.0)
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}
