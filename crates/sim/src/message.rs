//! The message of a simulated frame: cores carry it as a [`Handle`] and never interpret it.

use wg_core::frame::{Frame, Handle};
use wg_record::FLOW_FOREIGN;

/// Flags of a message: a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// On the way back from a relay.
    pub(crate) const RETURN: Self = Self(1);
    /// Sent during the warm-up.
    pub(crate) const WARM_UP: Self = Self(2);
    /// Payload was altered after its CRC was written; the frame check sequence is right.
    pub(crate) const DAMAGED: Self = Self(4);

    /// The flags that a message has in every record.
    #[inline]
    pub(crate) const fn of_message(self) -> u8 {
        self.0 & (Self::RETURN.0 | Self::WARM_UP.0)
    }
    #[inline]
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    #[inline]
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Flow in the probe header; 65 535 for background load.
    pub(crate) flow: u16,
    /// Sequence number in the probe header; the number of its injector for background load.
    pub(crate) sequence: u32,
    pub(crate) flags: Flags,
}

/// Value instead of a sequence number: the frame is a switch's own.
const OWN: u32 = u32::MAX;
/// Value instead of a sequence number: the frame holds records of a log.
const LOG: u32 = u32::MAX - (1 << 24);
/// Least value instead of a sequence number for control frames, then PTP messages, by their places, up to [`OWN`].
const FIRST_OF_SWITCHES: u32 = LOG + 1;
/// Greatest number of control frames under way; the next one replaces the oldest.
pub(crate) const CONTROL_FRAMES: u32 = 1 << 20;

/// Greatest number of PTP messages under way. A place has a new turn, modulo 2¹⁶, whenever it is taken again.
pub(crate) const PTP_MESSAGES: u32 = 50_000;
/// Least value instead of a sequence number for PTP messages, by place.
const FIRST_OF_PTP: u32 = FIRST_OF_SWITCHES + CONTROL_FRAMES;

impl Message {
    /// Message of a frame that a switch sends of its own accord.
    pub(crate) const OWN: Self = Self { flow: FLOW_FOREIGN, sequence: OWN, flags: Flags(0) };

    /// Least handle of a control frame; few other handles are greater.
    pub(crate) const FIRST_CONTROL: Handle = Handle((FIRST_OF_SWITCHES as u64) << 32);

    /// Message of a frame with log records.
    pub(crate) const LOG: Self = Self { flow: FLOW_FOREIGN, sequence: LOG, flags: Flags(0) };

    /// Message of the protocol control frame at `place`.
    pub(crate) const fn control(place: u32) -> Self {
        Self { flow: FLOW_FOREIGN, sequence: FIRST_OF_SWITCHES + place % CONTROL_FRAMES, flags: Flags(0) }
    }

    /// Message of the PTP message at `place`.
    pub(crate) const fn ptp(place: u32) -> Self {
        Self { flow: FLOW_FOREIGN, sequence: FIRST_OF_PTP + place % PTP_MESSAGES, flags: Flags(0) }
    }

    /// Place of a PTP message; `None` for others.
    #[inline]
    pub(crate) const fn ptp_place(self) -> Option<u32> {
        if self.is_for_switches()
            && self.sequence >= FIRST_OF_PTP
            && self.sequence < FIRST_OF_PTP + PTP_MESSAGES
        {
            Some(self.sequence - FIRST_OF_PTP)
        } else {
            None
        }
    }

    /// Whether switches process the frame themselves: their own, or a protocol control frame.
    #[inline]
    pub(crate) const fn is_for_switches(self) -> bool {
        self.flow == FLOW_FOREIGN && self.sequence >= FIRST_OF_SWITCHES
    }

    /// Place where the bytes of its frame are stored, if frames have bytes from outside.
    #[inline]
    pub(crate) const fn bytes_at(self) -> Option<u32> {
        if self.is_for_switches() { None } else { Some(self.sequence) }
    }

    /// Place of a protocol control frame; `None` for others.
    #[inline]
    pub(crate) const fn control_place(self) -> Option<u32> {
        if self.is_for_switches() && self.sequence < FIRST_OF_SWITCHES + CONTROL_FRAMES {
            Some(self.sequence - FIRST_OF_SWITCHES)
        } else {
            None
        }
    }

    #[inline]
    pub(crate) const fn handle(self) -> Handle {
        Handle((self.sequence as u64) << 32 | (self.flags.0 as u64) << 16 | self.flow as u64)
    }
}

/// Access to the message of a frame.
pub(crate) trait Carries {
    /// The message of the frame.
    fn message(&self) -> Message;
    /// The same frame with a message of `flow`.
    fn of_flow(self, flow: u16) -> Self;
    /// The same frame with these flags added to its message.
    fn flagged(self, flags: Flags) -> Self;
}

impl Carries for Frame {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "fields of a handle have their widths")]
    fn message(&self) -> Message {
        let Handle(bits) = self.handle;
        Message { flow: bits as u16, sequence: (bits >> 32) as u32, flags: Flags((bits >> 16) as u8) }
    }
    #[inline]
    fn of_flow(self, flow: u16) -> Self {
        Self { handle: Message { flow, ..self.message() }.handle(), ..self }
    }
    #[inline]
    fn flagged(self, flags: Flags) -> Self {
        let message = self.message();
        Self { handle: Message { flags: message.flags.with(flags), ..message }.handle(), ..self }
    }
}
