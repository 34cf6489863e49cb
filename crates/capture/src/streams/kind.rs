//! What describes a kind of stream, and what is found of it in a frame.

use super::layers::{Layers, Vlans};
use super::numbering::Rule;

/// Number of values of a frame that are followed.
pub(super) const VALUES: usize = 3;
/// Number of words of an identity.
pub(super) const WORDS: usize = 6;

/// How a word of an identity, or a value, is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum As {
    Number,
    Hex,
    Mac,
    /// An IP address, of this word and the next.
    Address,
    /// A port; none where the word is 2^16.
    Port,
    Ptp,
    Control,
    /// 2^-16 ns.
    ScaledNs,
}

/// A part of the identity of a stream.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) word: usize,
    pub(super) shown: As,
}

/// A value in each frame of a stream.
pub(super) struct Value {
    pub(super) name: &'static str,
    pub(super) shown: As,
}

/// A message of a stream in a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found<'a> {
    /// What distinguishes the stream from others of its kind.
    pub(super) id: [u64; WORDS],
    /// Redundant network: 0 unknown, 1 A, 2 B.
    pub(super) network: u8,
    pub(super) number: Option<u64>,
    /// What makes the numbers begin with 0.
    pub(super) epoch: Option<u64>,
    pub(super) values: [Option<i64>; VALUES],
    /// Name that the publisher gives the stream; its hash is part of `id`.
    pub(super) text: Option<&'a [u8]>,
    /// Identity without network and path: copies of one group with the same number are redundant copies.
    pub(super) group: Option<[u64; 2]>,
    /// Index by which a frame is known when it comes back, and whether it has passed a station.
    pub(super) echo: Option<(u8, bool)>,
    /// Source and number if it may be RTP, which nothing in a frame makes certain.
    pub(super) rtp: Option<(u32, u16)>,
}

/// Calls back with each message of a kind in a frame.
pub(super) type Find = fn(&Layers<'_>, &mut dyn FnMut(Found<'_>));

/// A kind of stream.
pub(super) struct Kind {
    /// Name in JSON.
    pub(super) name: &'static str,
    /// Name for people.
    pub(super) title: &'static str,
    pub(super) rule: Option<Rule>,
    /// Whether other streams may take numbers of the same series, so that a number that is missing here need not be
    /// lost.
    pub(super) is_shared: bool,
    /// Whether it is around content that is a stream of its own.
    pub(super) is_around: bool,
    pub(super) fields: &'static [Field],
    pub(super) values: &'static [Value],
    pub(super) find: Find,
}

impl Kind {
    /// An entry without numbers and values, to begin with.
    pub(super) const fn new(name: &'static str, title: &'static str, find: Find) -> Self {
        Self { name, title, rule: None, is_shared: false, is_around: false, fields: &[], values: &[], find }
    }
}

/// What distinguishes a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    pub(super) kind: u8,
    pub(super) network: u8,
    pub(super) tap: u16,
    pub(super) vlans: Vlans,
    pub(super) words: [u64; WORDS],
}

pub(super) const fn field(name: &'static str, word: usize, shown: As) -> Field {
    Field { name, word, shown }
}

pub(super) const fn value(name: &'static str, shown: As) -> Value {
    Value { name, shown }
}

/// A hash for identities, the same on every machine (FNV-1a).
pub(super) fn digest(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[expect(clippy::cast_possible_truncation, reason = "the halves of an address")]
pub(super) fn halves(address: u128) -> [u64; 2] {
    [(address >> 64) as u64, address as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_published_one() {
        assert_eq!(digest(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(digest(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
