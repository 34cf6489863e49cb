//! Kinds of frame timestamps, and the octet of the frame to which they belong.
//!
//! Two timestamps can be compared only when both belong to the same octet. IEEE Std 1588-2019, 7.3.4.1, puts the
//! timestamp at the beginning of the frame, right after its start delimiter; RFC 1242, 3.8, measures a
//! store-and-forward device from the last bit in to the first bit out; capture cards let the user choose. So every
//! capture states the octet of its timestamps, and comparisons convert them by the frame's own length on the line.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Bits of preamble and start delimiter (IEEE Std 802.3, 3.2.1 and 3.2.2).
const PREAMBLE_BITS: u64 = 64;
const PICOS_PER_SECOND: u128 = 1_000_000_000_000;

/// Octet of a frame to which a timestamp belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Octet {
    /// The first octet of the preamble: where the frame begins to occupy the line, as in the records of a sender.
    Preamble,
    /// The first octet of the destination address, right after the start delimiter.
    First,
    /// The last octet of the frame check sequence.
    Last,
}

impl Octet {
    /// Time, ps, by which this octet of a frame of `length` bytes (DA to FCS) passes a point of a line of `rate_bps`
    /// later than the first one; negative for the preamble. The last octet counts at its end. `None` without a rate.
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

    /// The time of `other` of the same frame, given the time `picos` of this octet, in ps. `None` without a rate,
    /// unless they are the same.
    pub fn moved_to(self, other: Self, picos: i64, length: u64, rate_bps: Option<u64>) -> Option<i64> {
        if self == other {
            return Some(picos);
        }
        let rate = rate_bps?;
        picos.checked_add(other.after_first(length, rate)?)?.checked_sub(self.after_first(length, rate)?)
    }
}

/// Origin of a timestamp.
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

/// Origin of an interface's timestamps, and the octet to which they belong in each direction.
///
/// Written into a capture as a comment of the interface, because pcapng has no field for it:
///
/// ```
/// use wg_capture::{Octet, TimestampKind, Timestamps};
/// let timestamps = Timestamps { kind: TimestampKind::Hardware, sent: Octet::First, received: Octet::Last };
/// assert_eq!(timestamps.to_string(), "timestamps: hardware; sent: first octet; received: last octet");
/// assert_eq!(timestamps.to_string().parse(), Ok(timestamps));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timestamps {
    /// Origin of the timestamps.
    pub kind: TimestampKind,
    /// Octet for frames that the interface sent.
    pub sent: Octet,
    /// Octet for frames that it received.
    pub received: Octet,
}

impl Timestamps {
    /// Kernel timestamps: when the driver takes a frame, none of it is on the line; when it hands one over, all of it
    /// has arrived.
    pub const SOFTWARE: Self =
        Self { kind: TimestampKind::Software, sent: Octet::Preamble, received: Octet::Last };
    /// Hardware timestamps according to IEEE Std 1588.
    pub const HARDWARE: Self =
        Self { kind: TimestampKind::Hardware, sent: Octet::First, received: Octet::First };
    /// Timestamps of the simulator.
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
