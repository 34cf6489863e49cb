//! Test packets of STAMP (RFC 8762, with the session identifier of RFC 8972), and those of TWAMP in its
//! unauthenticated mode (RFC 5357, clauses 4.1.2 and 4.2.1), which have the same fields at the same places.
//!
//! Octets behind the fields are padding, or TLVs ([`tlv`]). In the authenticated mode a packet ends
//! with a keyed hash of the octets before it; this module says where it lies and computes none.

pub mod tlv;

use crate::bytes::{put, put_u16, u16_at, u32_at, u64_at};

/// UDP port of reflectors (RFC 8762, clause 4.1).
pub const PORT: u16 = 862;
/// Length of the hash in the authenticated mode, in bytes: HMAC-SHA-256 cut to 128 bits (RFC 8762, clause 4.4).
pub const HASH_LEN: usize = 16;
/// Shortest packet that can be answered at its own length, in bytes: an answer of TWAMP may end behind the TTL
/// (RFC 5357, clause 4.2.1).
const SHORTEST: usize = 41;
/// Shortest answer that is read, in bytes: some reflectors leave out the TTL.
const WITHOUT_TTL: usize = 38;

const NANOS: i128 = 1_000_000_000;
/// Seconds from 1900, where NTP's first era begins, to 1970.
const NTP_TO_1970_S: i128 = 2_208_988_800;
/// Seconds after which the seconds of either format begin anew.
const ERA_S: i128 = 1 << 32;

/// Whether packets are authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Unauthenticated.
    Open,
    /// Authenticated: packets end with a hash.
    Authenticated,
}

/// Offsets of fields in both kinds of packets: of a request, and the further ones of an answer.
struct Offsets {
    timestamp: usize,
    error: usize,
    session: usize,
    received: usize,
    asked_sequence: usize,
    asked_timestamp: usize,
    asked_error: usize,
    ttl: usize,
}

/// RFC 8762, figures 2 and 5.
const OPEN: Offsets = Offsets {
    timestamp: 4,
    error: 12,
    session: 14,
    received: 16,
    asked_sequence: 24,
    asked_timestamp: 28,
    asked_error: 36,
    ttl: 40,
};
/// RFC 8762, figures 4 and 6.
const AUTHENTICATED: Offsets = Offsets {
    timestamp: 16,
    error: 24,
    session: 26,
    received: 32,
    asked_sequence: 48,
    asked_timestamp: 64,
    asked_error: 72,
    ttl: 80,
};

impl Mode {
    /// Length of a packet without padding, in bytes; the same for requests and answers.
    pub const fn packet_len(self) -> usize {
        match self {
            Self::Open => 44,
            Self::Authenticated => self.hashed_len() + HASH_LEN,
        }
    }

    /// Number of octets that the hash covers; it follows them. 0 in the unauthenticated mode.
    pub const fn hashed_len(self) -> usize {
        match self {
            Self::Open => 0,
            Self::Authenticated => 96,
        }
    }

    const fn offsets(self) -> Offsets {
        match self {
            Self::Open => OPEN,
            Self::Authenticated => AUTHENTICATED,
        }
    }

    const fn shortest(self) -> usize {
        match self {
            Self::Open => SHORTEST,
            Self::Authenticated => self.packet_len(),
        }
    }
}

/// Format of a timestamp: the Z bit of the error estimate beside it (RFC 8186).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// NTP: seconds of UTC since 1900, and 2^-32 s.
    Ntp,
    /// Truncated PTP: seconds of TAI since 1970, and nanoseconds.
    Ptp,
}

/// A timestamp as written in a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The timestamp of `ns` nanoseconds since 1970, rounded down to a step of the format.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both halves are below 2^32")]
    pub fn new(ns: i64, format: Format) -> Self {
        let ns = i128::from(ns);
        let (seconds, within) = (ns.div_euclid(NANOS), ns.rem_euclid(NANOS));
        let (seconds, fraction) = match format {
            Format::Ntp => (seconds + NTP_TO_1970_S, within * ERA_S / NANOS),
            Format::Ptp => (seconds, within),
        };
        Self((seconds.rem_euclid(ERA_S) * ERA_S + fraction) as u64)
    }

    /// Nanoseconds since 1970, in the era that is nearest to `near_ns`, rounded up where a step is shorter than a
    /// nanosecond. `None`: no time, as PTP's nanoseconds go beyond a second, or one that does not fit.
    pub fn nanos(self, format: Format, near_ns: i64) -> Option<i64> {
        let (seconds, fraction) = (i128::from(self.0 >> 32), i128::from(self.0 & 0xFFFF_FFFF));
        let within_era = match format {
            Format::Ntp => (seconds - NTP_TO_1970_S) * NANOS + (fraction * NANOS + 0xFFFF_FFFF) / ERA_S,
            Format::Ptp if fraction < NANOS => seconds * NANOS + fraction,
            Format::Ptp => return None,
        };
        let era = ERA_S * NANOS;
        let eras = (i128::from(near_ns) - within_era + era / 2).div_euclid(era);
        i64::try_from(within_era + eras * era).ok()
    }
}

/// Error estimate of a timestamp (RFC 4656, clause 4.1.2, with the Z bit of RFC 8186).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorEstimate(pub u16);

impl ErrorEstimate {
    const SYNCHRONISED: u16 = 0x8000;
    const PTP: u16 = 0x4000;
    const LARGEST_SCALE: u16 = 0x3F;

    /// The smallest estimate of at least `ns` nanoseconds.
    #[expect(clippy::cast_possible_truncation, reason = "the multiplier was brought below 256")]
    pub fn new(synchronised: bool, format: Format, ns: u64) -> Self {
        let mut multiplier = (u128::from(ns) << 32).div_ceil(NANOS.unsigned_abs()).max(1);
        let mut scale = 0;
        while multiplier > 0xFF {
            multiplier = multiplier.div_ceil(2);
            scale += 1;
        }
        let flags = if synchronised { Self::SYNCHRONISED } else { 0 }
            | if format == Format::Ptp { Self::PTP } else { 0 };
        Self(flags | (scale << 8) | multiplier as u16)
    }

    /// Whether the clock is synchronised to UTC by an external source, as its owner states: the S bit.
    pub const fn is_synchronised(self) -> bool {
        self.0 & Self::SYNCHRONISED != 0
    }

    /// Format of the timestamp beside it.
    pub const fn format(self) -> Format {
        if self.0 & Self::PTP == 0 { Format::Ntp } else { Format::Ptp }
    }

    /// The estimate in ns, rounded up: multiplier * 2^(scale - 32) s. `None`: the multiplier is zero, which no sender
    /// may write, or the estimate is longer than 292 years.
    pub fn nanos(self) -> Option<u64> {
        let (scale, multiplier) = ((self.0 >> 8) & Self::LARGEST_SCALE, u128::from(self.0 & 0xFF));
        let ns = ((multiplier * NANOS.unsigned_abs()) << scale).div_ceil(1 << 32);
        u64::try_from(ns).ok().filter(|ns| *ns > 0 && i64::try_from(*ns).is_ok())
    }
}

/// Fields of a request, from a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Sequence number, from 0.
    pub sequence: u32,
    /// Time of sending.
    pub timestamp: Timestamp,
    /// Error estimate of the time.
    pub error: ErrorEstimate,
    /// Identifier of the session (RFC 8972); 0: none.
    pub session: u16,
}

/// Fields of an answer, from a reflector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Sequence number: the reflector's own, or that of the request.
    pub sequence: u32,
    /// Time of sending.
    pub timestamp: Timestamp,
    /// Error estimate of the reflector's times.
    pub error: ErrorEstimate,
    /// Time at which the request arrived.
    pub received: Timestamp,
    /// The request. Its identifier of the session is the one of the answer.
    pub request: Request,
    /// TTL of the request at its arrival; `None`: the answer ends before it.
    pub ttl: Option<u8>,
}

/// A packet that ends before its last field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{len} B cannot hold the {needed} B of a test packet")]
pub struct TooShort {
    /// Number of bytes available.
    pub len: usize,
    /// Least number of bytes needed.
    pub needed: usize,
}

const fn long_enough(len: usize, needed: usize) -> Result<(), TooShort> {
    if len < needed { Err(TooShort { len, needed }) } else { Ok(()) }
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// It is too short to be answered at its own length.
    pub fn parse(bytes: &[u8], mode: Mode) -> Result<Self, TooShort> {
        long_enough(bytes.len(), mode.shortest())?;
        let at = mode.offsets();
        Ok(Self {
            sequence: u32_at(bytes, 0),
            timestamp: Timestamp(u64_at(bytes, at.timestamp)),
            error: ErrorEstimate(u16_at(bytes, at.error)),
            session: u16_at(bytes, at.session),
        })
    }

    /// Writes it into the head of `bytes`, with zeros between its fields; what lies behind, and the hash, stays.
    ///
    /// # Errors
    /// `bytes` is shorter than the shortest packet.
    pub fn emit(&self, bytes: &mut [u8], mode: Mode) -> Result<(), TooShort> {
        clear(bytes, mode)?;
        let at = mode.offsets();
        put(bytes, 0, self.sequence.to_be_bytes());
        put(bytes, at.timestamp, self.timestamp.0.to_be_bytes());
        put_u16(bytes, at.error, self.error.0);
        put_u16(bytes, at.session, self.session);
        Ok(())
    }
}

impl Answer {
    /// Reads an answer.
    ///
    /// # Errors
    /// It ends before its last field.
    pub fn parse(bytes: &[u8], mode: Mode) -> Result<Self, TooShort> {
        let needed = if mode == Mode::Open { WITHOUT_TTL } else { mode.shortest() };
        long_enough(bytes.len(), needed)?;
        let at = mode.offsets();
        Ok(Self {
            sequence: u32_at(bytes, 0),
            timestamp: Timestamp(u64_at(bytes, at.timestamp)),
            error: ErrorEstimate(u16_at(bytes, at.error)),
            received: Timestamp(u64_at(bytes, at.received)),
            request: Request {
                sequence: u32_at(bytes, at.asked_sequence),
                timestamp: Timestamp(u64_at(bytes, at.asked_timestamp)),
                error: ErrorEstimate(u16_at(bytes, at.asked_error)),
                session: u16_at(bytes, at.session),
            },
            ttl: bytes.get(at.ttl).copied(),
        })
    }

    /// Writes it into the head of `bytes`, with zeros between its fields; what lies behind, and the hash, stays.
    ///
    /// # Errors
    /// `bytes` is shorter than the shortest packet.
    pub fn emit(&self, bytes: &mut [u8], mode: Mode) -> Result<(), TooShort> {
        clear(bytes, mode)?;
        let at = mode.offsets();
        put(bytes, 0, self.sequence.to_be_bytes());
        put(bytes, at.timestamp, self.timestamp.0.to_be_bytes());
        put_u16(bytes, at.error, self.error.0);
        put_u16(bytes, at.session, self.request.session);
        put(bytes, at.received, self.received.0.to_be_bytes());
        put(bytes, at.asked_sequence, self.request.sequence.to_be_bytes());
        put(bytes, at.asked_timestamp, self.request.timestamp.0.to_be_bytes());
        put_u16(bytes, at.asked_error, self.request.error.0);
        put(bytes, at.ttl, [self.ttl.unwrap_or(0)]);
        Ok(())
    }
}

/// Zeros in all fields, but not in the hash.
fn clear(bytes: &mut [u8], mode: Mode) -> Result<(), TooShort> {
    long_enough(bytes.len(), mode.shortest())?;
    let end = match mode {
        Mode::Open => mode.packet_len(),
        Mode::Authenticated => mode.hashed_len(),
    };
    bytes.iter_mut().take(end).for_each(|byte| *byte = 0);
    Ok(())
}
