//! Messages of the Precision Time Protocol (IEEE Std 1588-2019, clause 13): the common header, and the timestamps and
//! identities of event messages, their answers and announcements.
//!
//! They follow EtherType 0x88F7 (annex E) or UDP ports 319 and 320 (annex C). Bytes beyond a message's own length
//! (padding, FCS) are ignored; suffix TLVs count as part of the message and are not parsed.

use crate::bytes::{array_at, put, put_u16, u16_at, u32_at, u64_at};

/// Length of the common header, in bytes (13.3).
pub const HEADER_LEN: usize = 34;
/// UDP port of event messages (annex C.2).
pub const EVENT_PORT: u16 = 319;
/// UDP port of general messages (annex C.2).
pub const GENERAL_PORT: u16 = 320;
/// Version of the protocol that is read and written (13.3.2.4).
pub const VERSION: u8 = 2;

const BODY: usize = HEADER_LEN;
const TIMESTAMP_LEN: usize = 10;
const PORT_IDENTITY_LEN: usize = 10;

/// Kind of message (table 36).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageType {
    /// Sync.
    Sync = 0x0,
    /// Delay_Req.
    DelayReq = 0x1,
    /// Pdelay_Req.
    PdelayReq = 0x2,
    /// Pdelay_Resp.
    PdelayResp = 0x3,
    /// Follow_Up.
    FollowUp = 0x8,
    /// Delay_Resp.
    DelayResp = 0x9,
    /// Pdelay_Resp_Follow_Up.
    PdelayRespFollowUp = 0xA,
    /// Announce.
    Announce = 0xB,
    /// Signaling.
    Signaling = 0xC,
    /// Management.
    Management = 0xD,
}

impl MessageType {
    /// The kind with this number; `None` for reserved numbers.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0x0 => Self::Sync,
            0x1 => Self::DelayReq,
            0x2 => Self::PdelayReq,
            0x3 => Self::PdelayResp,
            0x8 => Self::FollowUp,
            0x9 => Self::DelayResp,
            0xA => Self::PdelayRespFollowUp,
            0xB => Self::Announce,
            0xC => Self::Signaling,
            0xD => Self::Management,
            _ => return None,
        })
    }

    /// Whether it is an event message, which is timestamped (6.4).
    pub const fn is_event(self) -> bool {
        (self as u8) < 8
    }

    /// Shortest message of this kind, in bytes (13.5 to 13.12).
    pub const fn shortest(self) -> usize {
        match self {
            Self::Sync | Self::DelayReq | Self::FollowUp => BODY + TIMESTAMP_LEN,
            Self::PdelayReq | Self::PdelayResp | Self::DelayResp | Self::PdelayRespFollowUp => {
                BODY + TIMESTAMP_LEN + PORT_IDENTITY_LEN
            }
            Self::Announce => 64,
            Self::Signaling => BODY + PORT_IDENTITY_LEN,
            Self::Management => 48,
        }
    }
}

/// A port of a clock (7.5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortIdentity {
    /// Clock identity.
    pub clock: [u8; 8],
    /// Port number, from 1.
    pub port: u16,
}

/// A timestamp (5.3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since the epoch, 48 bits.
    pub seconds: u64,
    /// Nanoseconds after the whole seconds.
    pub nanoseconds: u32,
}

/// Grandmaster fields of an Announce message (13.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grandmaster {
    /// Seconds TAI is ahead of UTC.
    pub utc_offset: i16,
    /// Priority 1.
    pub priority1: u8,
    /// Clock class.
    pub clock_class: u8,
    /// Clock accuracy.
    pub clock_accuracy: u8,
    /// Offset scaled logarithmic variance.
    pub variance: u16,
    /// Priority 2.
    pub priority2: u8,
    /// Clock identity.
    pub identity: [u8; 8],
    /// Number of communication paths between the grandmaster and the sender.
    pub steps_removed: u16,
    /// Time source.
    pub time_source: u8,
}

/// Reason why bytes are not a valid PTP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PtpError {
    /// Too short for the header.
    #[error("{len} B cannot hold the 34 B of a PTP header")]
    TooShort {
        /// Number of bytes available.
        len: usize,
    },
    /// A length field below the minimum of the message type, or beyond the bytes available.
    #[error("PTP message length {found} B does not lie between {shortest} B and the {len} B there are")]
    Length {
        /// The field.
        found: usize,
        /// Least length of the message type.
        shortest: usize,
        /// Number of bytes available.
        len: usize,
    },
    /// An unsupported version.
    #[error("PTP version {found} is not 2")]
    Version {
        /// The version.
        found: u8,
    },
    /// A reserved message type.
    #[error("PTP message type {found:#x} is reserved")]
    Type {
        /// The type.
        found: u8,
    },
}

/// A view of a message. See [`ethernet::Frame`](crate::ethernet::Frame) about `T`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<T>(T);

impl<T: AsRef<[u8]>> Message<T> {
    /// A view of `bytes`, whose length field must be valid for the message type.
    ///
    /// # Errors
    /// [`PtpError::TooShort`] and [`PtpError::Length`].
    pub fn new_checked(bytes: T) -> Result<Self, PtpError> {
        let len = bytes.as_ref().len();
        if len < HEADER_LEN {
            return Err(PtpError::TooShort { len });
        }
        let view = Self(bytes);
        let shortest = MessageType::from_number(view.type_field()).map_or(HEADER_LEN, MessageType::shortest);
        let found = view.message_length();
        if found < shortest || found > len {
            return Err(PtpError::Length { found, shortest, len });
        }
        Ok(view)
    }
    /// Returns the bytes.
    pub fn into_inner(self) -> T {
        self.0
    }
    /// The type field, 0 to 15.
    pub fn type_field(&self) -> u8 {
        self.0.as_ref()[0] & 0x0F
    }
    /// Major sdoId, 0 to 15: 1 in gPTP.
    pub fn major_sdo_id(&self) -> u8 {
        self.0.as_ref()[0] >> 4
    }
    /// Version of the protocol, 0 to 15.
    pub fn version(&self) -> u8 {
        self.0.as_ref()[1] & 0x0F
    }
    /// Length of the message, in bytes.
    pub fn message_length(&self) -> usize {
        usize::from(u16_at(self.0.as_ref(), 2))
    }
    /// Domain number.
    pub fn domain(&self) -> u8 {
        self.0.as_ref()[4]
    }
    /// Flags, the first byte the more significant (table 37).
    pub fn flags(&self) -> u16 {
        u16_at(self.0.as_ref(), 6)
    }
    /// Correction, in 2⁻¹⁶ ns (13.3.2.9).
    pub fn correction(&self) -> i64 {
        u64_at(self.0.as_ref(), 8).cast_signed()
    }
    /// Port identity of the sender.
    pub fn source_port(&self) -> PortIdentity {
        self.port_identity(20)
    }
    /// Sequence number.
    pub fn sequence_id(&self) -> u16 {
        u16_at(self.0.as_ref(), 30)
    }
    /// Logarithm (base 2) of the mean interval between messages of its kind.
    pub fn log_interval(&self) -> i8 {
        self.0.as_ref()[33].cast_signed()
    }
    /// The timestamp after the header, in all kinds but Signaling and Management: when the message, or the one that it
    /// answers or follows, was sent or received.
    pub fn timestamp(&self) -> Option<Timestamp> {
        use MessageType::{Management, Signaling};
        let kind = MessageType::from_number(self.type_field())?;
        let bytes = self.0.as_ref();
        let seconds = u64::from(u16_at(bytes, BODY)) << 32 | u64::from(u32_at(bytes, BODY + 2));
        let nanoseconds = u32_at(bytes, BODY + 6);
        (!matches!(kind, Signaling | Management)).then_some(Timestamp { seconds, nanoseconds })
    }
    /// The requesting port, in Delay_Resp, Pdelay_Resp and Pdelay_Resp_Follow_Up.
    pub fn requesting_port(&self) -> Option<PortIdentity> {
        use MessageType::{DelayResp, PdelayResp, PdelayRespFollowUp};
        let kind = MessageType::from_number(self.type_field())?;
        let answers = matches!(kind, DelayResp | PdelayResp | PdelayRespFollowUp);
        answers.then(|| self.port_identity(BODY + TIMESTAMP_LEN))
    }
    /// Grandmaster fields of an Announce message; `None` for other messages.
    pub fn grandmaster(&self) -> Option<Grandmaster> {
        let bytes = self.0.as_ref();
        (self.type_field() == MessageType::Announce as u8).then(|| Grandmaster {
            utc_offset: u16_at(bytes, 44).cast_signed(),
            priority1: bytes[47],
            clock_class: bytes[48],
            clock_accuracy: bytes[49],
            variance: u16_at(bytes, 50),
            priority2: bytes[52],
            identity: array_at(bytes, 53),
            steps_removed: u16_at(bytes, 61),
            time_source: bytes[63],
        })
    }
    /// The bytes after the header, up to the length of the message.
    pub fn body(&self) -> &[u8] {
        &self.0.as_ref()[HEADER_LEN..self.message_length()]
    }

    fn port_identity(&self, at: usize) -> PortIdentity {
        let bytes = self.0.as_ref();
        PortIdentity { clock: array_at(bytes, at), port: u16_at(bytes, at + 8) }
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Message<T> {
    /// Sets the correction, as transparent clocks do.
    pub fn set_correction(&mut self, correction: i64) {
        put(self.0.as_mut(), 8, correction.to_be_bytes());
    }
    /// Sets the timestamp after the header; no effect if the kind of message has none.
    pub fn set_timestamp(&mut self, timestamp: Timestamp) {
        if self.timestamp().is_some() {
            let [_, _, seconds @ ..] = timestamp.seconds.to_be_bytes();
            put(self.0.as_mut(), BODY, seconds);
            put(self.0.as_mut(), BODY + 6, timestamp.nanoseconds.to_be_bytes());
        }
    }
    /// Sets the requesting port; no effect if the kind of message has none.
    pub fn set_requesting_port(&mut self, port: PortIdentity) {
        if self.requesting_port().is_some() {
            put(self.0.as_mut(), BODY + TIMESTAMP_LEN, port.clock);
            put_u16(self.0.as_mut(), BODY + TIMESTAMP_LEN + 8, port.port);
        }
    }
    /// Sets the grandmaster fields of an Announce message; no effect on other messages.
    pub fn set_grandmaster(&mut self, of: Grandmaster) {
        if self.grandmaster().is_some() {
            let bytes = self.0.as_mut();
            put(bytes, 44, of.utc_offset.to_be_bytes());
            put(bytes, 47, [of.priority1, of.clock_class, of.clock_accuracy]);
            put_u16(bytes, 50, of.variance);
            bytes[52] = of.priority2;
            put(bytes, 53, of.identity);
            put_u16(bytes, 61, of.steps_removed);
            bytes[63] = of.time_source;
        }
    }
}

/// The content of the common header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Kind of message.
    pub message_type: MessageType,
    /// Major sdoId, 0 to 15.
    pub major_sdo_id: u8,
    /// Minor version, 0 to 15: 1 since 2019.
    pub minor_version: u8,
    /// Length of the message, in bytes.
    pub length: u16,
    /// Domain number.
    pub domain: u8,
    /// Minor sdoId.
    pub minor_sdo_id: u8,
    /// Flags.
    pub flags: u16,
    /// Correction, in 2⁻¹⁶ ns.
    pub correction: i64,
    /// Field whose meaning depends on the message type.
    pub type_specific: [u8; 4],
    /// Port identity of the sender.
    pub source_port: PortIdentity,
    /// Sequence number.
    pub sequence_id: u16,
    /// Control field, obsolete since 2008.
    pub control: u8,
    /// Logarithm (base 2) of the mean interval between messages of its kind.
    pub log_interval: i8,
}

impl Repr {
    /// Parses the header of `message`.
    ///
    /// # Errors
    /// [`PtpError::Version`] and [`PtpError::Type`].
    pub fn parse<T: AsRef<[u8]>>(message: &Message<T>) -> Result<Self, PtpError> {
        if message.version() != VERSION {
            return Err(PtpError::Version { found: message.version() });
        }
        let found = message.type_field();
        let bytes = message.0.as_ref();
        Ok(Self {
            message_type: MessageType::from_number(found).ok_or(PtpError::Type { found })?,
            major_sdo_id: message.major_sdo_id(),
            minor_version: bytes[1] >> 4,
            length: u16_at(bytes, 2),
            domain: message.domain(),
            minor_sdo_id: bytes[5],
            flags: message.flags(),
            correction: message.correction(),
            type_specific: array_at(bytes, 16),
            source_port: message.source_port(),
            sequence_id: message.sequence_id(),
            control: bytes[32],
            log_interval: message.log_interval(),
        })
    }

    /// Writes the header into `bytes`, which hold the message; the bytes after the header stay.
    ///
    /// # Errors
    /// As [`Message::new_checked`] for what was written.
    pub fn emit<'a>(&self, bytes: &'a mut [u8]) -> Result<Message<&'a mut [u8]>, PtpError> {
        let len = bytes.len();
        if len < HEADER_LEN {
            return Err(PtpError::TooShort { len });
        }
        bytes[0] = self.major_sdo_id << 4 | self.message_type as u8;
        bytes[1] = self.minor_version << 4 | VERSION;
        put_u16(bytes, 2, self.length);
        put(bytes, 4, [self.domain, self.minor_sdo_id]);
        put_u16(bytes, 6, self.flags);
        put(bytes, 8, self.correction.to_be_bytes());
        put(bytes, 16, self.type_specific);
        put(bytes, 20, self.source_port.clock);
        put_u16(bytes, 28, self.source_port.port);
        put_u16(bytes, 30, self.sequence_id);
        put(bytes, 32, [self.control, self.log_interval.cast_unsigned()]);
        Message::new_checked(bytes)
    }
}
