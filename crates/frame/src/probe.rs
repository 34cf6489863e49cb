//! The probe header: makes a message of Wiregauge recognisable, numbered and checkable.
//!
//! Twelve bytes at the start of the message's payload, whatever carries it, in network byte order:
//!
//! ```text
//!  0      1             2      4          8
//! +------+------+------+------+----------+----------+
//! | 0x57 | ver  | flags| flow | sequence | CRC-32   |
//! |      | 4 bit| 4 bit| u16  | u32      | u32      |
//! +------+------+------+------+----------+----------+
//! ```
//!
//! The CRC-32 of IEEE 802.3 covers the whole payload, header included, with its own field taken as zero; it
//! is stored most significant byte first. It is ours and not the frame's FCS: network interfaces, kernels and
//! switches rewrite the FCS, so only a sum made and checked in the application sees damage done in between.
//!
//! An optional transmit time (8 bytes, picoseconds of run time) lies anywhere after the header; both ends know its
//! offset from the test. Header and transmit time do not fit the 18 bytes of UDP payload in a 64-byte frame, but the
//! header alone does, with room for content.
//!
//! A header is read even if the CRC is wrong, because a damaged message must still be attributed to its flow.

use crate::crc;
use crate::time::RunTime;

/// Length of the header in bytes; the shortest payload a message can have.
pub const LEN: usize = 12;
/// Length of the transmit time in bytes.
pub const TX_TIME_LEN: usize = 8;
/// The longest payload a message can have, in bytes: lengths are 16 bits wide in IPv4, UDP and the records.
pub const MAX_LEN: usize = u16::MAX as usize;
/// First byte of every message (`W`).
pub const MAGIC: u8 = 0x57;
/// Version written, and the only one read.
pub const VERSION: u8 = 1;

const CRC_AT: usize = 8;

/// Flags of a message. The fourth bit is reserved: sent as zero, ignored on receipt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProbeFlags(u8);

impl ProbeFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// On the way back from a relay.
    pub const RETURN: Self = Self(1);
    /// The payload holds a transmit time.
    pub const TX_TIME: Self = Self(2);
    /// Sent during the warm-up; excluded from every measure.
    pub const WARM_UP: Self = Self(4);

    /// The flags with these bits; reserved and unknown bits are dropped.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 7)
    }
    /// The bits in the header.
    pub const fn bits(self) -> u8 {
        self.0
    }
    /// The union of both sets.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// This set without `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    /// Whether all of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Content of the probe header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Probe {
    /// Flow of the message.
    pub flow: u16,
    /// Sequence number within the flow and phase, from 0.
    pub sequence: u32,
    /// Leg, phase and options.
    pub flags: ProbeFlags,
}

/// Reason why a payload is not a message of Wiregauge, or cannot become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// Shorter than the header. The sender's fault when sealing; when reading, a foreign or truncated frame.
    #[error("a payload of {len} B cannot hold the probe header; a message needs at least 12 B")]
    TooShort {
        /// Length of the payload in bytes.
        len: usize,
    },
    /// Too long for any length field.
    #[error("a payload of {len} B is longer than a message can be; it holds at most 65535 B")]
    TooLong {
        /// Length of the payload in bytes.
        len: usize,
    },
    /// The first byte is not the magic: a foreign frame, or one damaged just there.
    #[error(
        "the payload begins with {found:#04x}, not with the probe magic 0x57: no message of this program"
    )]
    NotAProbe {
        /// The first byte.
        found: u8,
    },
    /// Another version of the header.
    #[error(
        "the probe header has version {found}, this program reads version 1; run one version on all hosts"
    )]
    Version {
        /// The version found.
        found: u8,
    },
    /// The transmit time does not fit at its offset.
    #[error(
        "a transmit time at byte {offset} does not fit into a payload of {len} B; \
         it takes 8 B behind the 12 B of the probe header"
    )]
    TxTimeOutside {
        /// Configured offset from the start of the payload, in bytes.
        offset: usize,
        /// Length of the payload in bytes.
        len: usize,
    },
}

/// Makes a message of `payload`: writes the header into its first [`LEN`] bytes, with the CRC over the whole content.
/// Content and transmit time must be in place before.
///
/// # Errors
/// [`ProbeError::TooShort`] and [`ProbeError::TooLong`]; the payload is then untouched.
pub fn seal(payload: &mut [u8], probe: Probe) -> Result<(), ProbeError> {
    let len = payload.len();
    if len > MAX_LEN {
        return Err(ProbeError::TooLong { len });
    }
    let Some((header, content)) = payload.split_first_chunk_mut::<LEN>() else {
        return Err(ProbeError::TooShort { len });
    };
    *header = [0; LEN];
    header[0] = MAGIC;
    header[1] = VERSION << 4 | probe.flags.bits();
    header[2..4].copy_from_slice(&probe.flow.to_be_bytes());
    header[4..8].copy_from_slice(&probe.sequence.to_be_bytes());
    let sum = sum(*header, content);
    header[CRC_AT..].copy_from_slice(&sum.to_be_bytes());
    Ok(())
}

/// Reads the header, and whether the CRC over the whole payload is right. With a wrong CRC any field may be damaged.
///
/// # Errors
/// Everything but [`ProbeError::TxTimeOutside`]; foreign frames are an expected case, not a fault.
pub fn read(payload: &[u8]) -> Result<(Probe, bool), ProbeError> {
    let (header, content) = split(payload)?;
    let mut zeroed = *header;
    zeroed[CRC_AT..].fill(0);
    Ok((decode(header), sum(zeroed, content) == stored_sum(header)))
}

/// Reads the header without checking the CRC, for the servicing thread's hot path; `None` where [`read`] returns an
/// error.
#[inline]
pub fn peek(payload: &[u8]) -> Option<Probe> {
    read_header(payload).ok()
}

/// As [`peek`], with the reason.
///
/// # Errors
/// As [`read`].
#[inline]
pub fn read_header(payload: &[u8]) -> Result<Probe, ProbeError> {
    split(payload).map(|(header, _)| decode(header))
}

/// Replaces the flags of a message at constant cost, without a pass over its content.
///
/// The CRC is corrected by the difference of the flags rather than computed anew, so a damaged message keeps a wrong
/// CRC: a relay can never hide damage.
///
/// # Errors
/// As [`read`]; the payload is then untouched.
pub fn set_flags(payload: &mut [u8], flags: ProbeFlags) -> Result<(), ProbeError> {
    split(payload)?;
    let len = payload.len();
    let (Some(header), Ok(following)) = (payload.first_chunk_mut::<LEN>(), u16::try_from(len - 2)) else {
        return Err(ProbeError::TooLong { len });
    };
    let second = VERSION << 4 | flags.bits();
    let corrected = stored_sum(header) ^ crc::difference(header[1] ^ second, following);
    header[1] = second;
    header[CRC_AT..].copy_from_slice(&corrected.to_be_bytes());
    Ok(())
}

/// Writes the transmit time at `offset` bytes from the start of the payload. Call it before [`seal`], whose
/// CRC covers it, and set [`ProbeFlags::TX_TIME`] there.
///
/// # Errors
/// [`ProbeError::TxTimeOutside`] when the eight bytes would overlap the header or the end of the payload.
pub fn write_tx_time(payload: &mut [u8], offset: usize, time: RunTime) -> Result<(), ProbeError> {
    let len = payload.len();
    let outside = ProbeError::TxTimeOutside { offset, len };
    if offset < LEN {
        return Err(outside);
    }
    let field = payload.get_mut(offset..).and_then(<[u8]>::first_chunk_mut::<TX_TIME_LEN>).ok_or(outside)?;
    *field = time.as_picos().to_be_bytes();
    Ok(())
}

/// Reads the transmit time at `offset`. Valid only if [`ProbeFlags::TX_TIME`] is set and the CRC is right.
///
/// # Errors
/// As [`write_tx_time`].
pub fn read_tx_time(payload: &[u8], offset: usize) -> Result<RunTime, ProbeError> {
    let outside = ProbeError::TxTimeOutside { offset, len: payload.len() };
    if offset < LEN {
        return Err(outside);
    }
    let field = payload.get(offset..).and_then(<[u8]>::first_chunk::<TX_TIME_LEN>).ok_or(outside)?;
    Ok(RunTime::from_picos(i64::from_be_bytes(*field)))
}

/// The one place that decides what counts as a message.
fn split(payload: &[u8]) -> Result<(&[u8; LEN], &[u8]), ProbeError> {
    let len = payload.len();
    if len > MAX_LEN {
        return Err(ProbeError::TooLong { len });
    }
    let (header, content) = payload.split_first_chunk().ok_or(ProbeError::TooShort { len })?;
    if header[0] != MAGIC {
        return Err(ProbeError::NotAProbe { found: header[0] });
    }
    let found = header[1] >> 4;
    if found != VERSION {
        return Err(ProbeError::Version { found });
    }
    Ok((header, content))
}

fn decode(header: &[u8; LEN]) -> Probe {
    Probe {
        flow: u16::from_be_bytes([header[2], header[3]]),
        sequence: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
        flags: ProbeFlags::from_bits(header[1] & 0x0F),
    }
}

fn stored_sum(header: &[u8; LEN]) -> u32 {
    u32::from_be_bytes([header[8], header[9], header[10], header[11]])
}

fn sum(zeroed_header: [u8; LEN], content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&zeroed_header);
    hasher.update(content);
    hasher.finalize()
}
