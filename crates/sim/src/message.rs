//! The message a simulated frame carries: what the cores carry as a [`Handle`] and never look at.

use wg_core::frame::{Frame, Handle};

/// What a message has besides its number. A set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// On the way back from a relay.
    pub(crate) const RETURN: Self = Self(1);
    /// Sent during the warm-up.
    pub(crate) const WARM_UP: Self = Self(2);
    /// Payload was altered after its CRC was written; the frame check sequence is right.
    pub(crate) const DAMAGED: Self = Self(4);

    /// Those a message has wherever it is seen, as records have them.
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

impl Message {
    #[inline]
    pub(crate) const fn handle(self) -> Handle {
        Handle((self.sequence as u64) << 32 | (self.flags.0 as u64) << 16 | self.flow as u64)
    }
}

/// Frames of the simulator.
pub(crate) trait Carries {
    /// The message in it.
    fn message(&self) -> Message;
    /// The same frame, its message with these flags too.
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
    fn flagged(self, flags: Flags) -> Self {
        let message = self.message();
        Self { handle: Message { flags: message.flags.with(flags), ..message }.handle(), ..self }
    }
}
