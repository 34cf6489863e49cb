//! By what a frame was timestamped, and which octet of it the timestamp belongs to.
//!
//! Two timestamps can be laid side by side only when both belong to the same octet. IEEE Std 1588-2019, 7.3.4.1, puts the
//! timestamp at the beginning of the frame, right after its start delimiter; RFC 1242, 3.8, measures a store-and-forward
//! device from the last bit in to the first bit out; capture cards let the user choose. So every capture says which
//! octet its timestamps belong to, and whoever compares moves them by the frame's own length on the line.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Bits of preamble and start delimiter (IEEE Std 802.3, 3.2.1 and 3.2.2).
const PREAMBLE_BITS: u64 = 64;
const PICOS_PER_SECOND: u128 = 1_000_000_000_000;

/// The octet of a frame that a timestamp belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Octet {
    /// The first of the preamble: where the frame begins to occupy the line, as the records of a sender count.
    Preamble,
    /// The first of the destination address, right behind the start delimiter.
    First,
    /// The last of the frame check sequence.
    Last,
}

impl Octet {
    /// By how many picoseconds this octet of a frame of `length` bytes (DA to FCS) passes a point of a line of `rate_bps`
    /// later than the first one; negative for the preamble. Of the last octet it is the end that counts. `None` without a rate.
    ///
    /// ```
    /// use wg_capture::Octet;
    /// assert_eq!(Octet::Last.after_first(600, 1_000_000_000), Some(4_800_000));
    /// assert_eq!(Octet::Preamble.after_first(600, 1_000_000_000), Some(-64_000));
    /// ```
    pub fn after_first(self, length: u64, rate_bps: u64) -> Option<i64> {
        let (bits, sign) = match self {
            Self::Preamble => (PREAMBLE_BITS, -1),
            Self::First => (0, 1),
            Self::Last => (length.checked_mul(8)?, 1),
        };
        let picos = (u128::from(bits) * PICOS_PER_SECOND).checked_div(u128::from(rate_bps))?;
        i64::try_from(picos).ok().map(|picos| sign * picos)
    }

    /// A time of this octet as the time of `other` of the same frame, in picoseconds. `None` without a rate, unless they are the same.
    pub fn moved_to(self, other: Self, picos: i64, length: u64, rate_bps: Option<u64>) -> Option<i64> {
        if self == other {
            return Some(picos);
        }
        let rate = rate_bps?;
        picos.checked_add(other.after_first(length, rate)?)?.checked_sub(self.after_first(length, rate)?)
    }
}

/// What took a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimestampKind {
    /// The kernel, as the driver takes or hands over the frame.
    Software,
    /// The clock of the interface.
    Hardware,
    /// The simulator, by its model: in virtual time, or in real time as a network between hosts.
    Simulated,
}

/// By what the frames of an interface are timestamped, and which octet the timestamp belongs to in each direction.
///
/// Written into a capture as a comment of the interface, for pcapng has no field for it:
///
/// ```
/// use wg_capture::{Octet, TimestampKind, Timestamps};
/// let timestamps = Timestamps { kind: TimestampKind::Hardware, sent: Octet::First, received: Octet::Last };
/// assert_eq!(timestamps.to_string(), "timestamps: hardware; sent: first octet; received: last octet");
/// assert_eq!(timestamps.to_string().parse(), Ok(timestamps));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timestamps {
    /// What takes them.
    pub kind: TimestampKind,
    /// Of frames the interface sent.
    pub sent: Octet,
    /// Of frames it received.
    pub received: Octet,
}

impl Timestamps {
    /// The kernel's own: as the driver takes a frame, none of it is on the line; as it hands one over, all of it is in.
    pub const SOFTWARE: Self =
        Self { kind: TimestampKind::Software, sent: Octet::Preamble, received: Octet::Last };
    /// Of an interface that timestamps as IEEE Std 1588 wants it.
    pub const HARDWARE: Self =
        Self { kind: TimestampKind::Hardware, sent: Octet::First, received: Octet::First };
    /// Of the simulator.
    pub const SIMULATED: Self =
        Self { kind: TimestampKind::Simulated, sent: Octet::Preamble, received: Octet::Last };
}

const KINDS: [(TimestampKind, &str); 3] = [
    (TimestampKind::Software, "software"),
    (TimestampKind::Hardware, "hardware"),
    (TimestampKind::Simulated, "simulated"),
];
const OCTETS: [(Octet, &str); 3] =
    [(Octet::Preamble, "preamble"), (Octet::First, "first octet"), (Octet::Last, "last octet")];

fn text<T: Copy + PartialEq>(table: &[(T, &'static str)], value: T) -> &'static str {
    table.iter().find(|(entry, _)| *entry == value).map_or("", |(_, text)| text)
}

fn value<T: Copy>(table: &[(T, &'static str)], text: &str) -> Result<T, ()> {
    table.iter().find(|(_, entry)| *entry == text).map(|(value, _)| *value).ok_or(())
}

impl fmt::Display for Timestamps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, sent, received) =
            (text(&KINDS, self.kind), text(&OCTETS, self.sent), text(&OCTETS, self.received));
        write!(f, "timestamps: {kind}; sent: {sent}; received: {received}")
    }
}

impl FromStr for Timestamps {
    type Err = ();

    fn from_str(comment: &str) -> Result<Self, ()> {
        let mut parts = comment.split("; ");
        let mut next = |label: &str| parts.next().and_then(|part| part.strip_prefix(label)).ok_or(());
        let kind = value(&KINDS, next("timestamps: ")?)?;
        let sent = value(&OCTETS, next("sent: ")?)?;
        let received = value(&OCTETS, next("received: ")?)?;
        Ok(Self { kind, sent, received })
    }
}
