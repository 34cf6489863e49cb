//! What a host is built from: costs of its lanes, its interrupts.

use wg_frame::time::Span;

use crate::frame::{Frame, STACKS};

/// What handing a frame over costs a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Cost {
    /// For any frame.
    pub fixed: Span,
    /// For each byte, destination address to FCS.
    pub per_byte: Span,
}

impl Cost {
    /// The cost of a frame of `length` bytes.
    pub fn of(self, length: u16) -> Span {
        Span::from_picos(self.fixed.as_picos() + self.per_byte.as_picos() * i64::from(length))
    }
}

/// What one protocol's way through the operating system costs, in the place of what any frame's does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StackCosts {
    /// From the application's call to the frame in the egress queue.
    pub transmit: Cost,
    /// From the lane's first look at a frame to the application's possession of it.
    pub receive: Cost,
}

/// When the interface tells the host of frames in the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "type", rename_all = "kebab-case")
)]
pub enum Interrupts {
    /// As soon as one is there.
    #[default]
    EachFrame,
    /// When so many are there, or when the first has waited so long.
    Coalesced {
        /// Frames that raise it at once; at least 1.
        frames: u32,
        /// Longest wait of the first.
        wait: Span,
    },
    /// At the multiples of a period, counted from the epoch.
    Polled {
        /// Longer than 0.
        period: Span,
    },
    /// At once, but no sooner than so long after the one before; then the driver reads until nothing is left.
    Spaced {
        /// From one to the next, at least. 0: whenever the driver is idle.
        spacing: Span,
    },
    /// As with a least spacing that the driver chooses by the frames and bytes of its last turn, in three levels.
    Adaptive,
}

impl Interrupts {
    /// Whether a driver at work looks at what comes meanwhile.
    pub(super) const fn keeps_reading(self) -> bool {
        matches!(self, Self::Spaced { .. } | Self::Adaptive)
    }
}

/// What holds the received frames of a class until they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReceiveBuffer {
    /// Frames, the one being read among them; at least 1.
    pub slots: u32,
    /// Bytes in front of the slots, destination address to FCS; at least a longest frame. `None`: frames come into the slots
    /// straight away.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub fifo_bytes: Option<u32>,
}

/// What a host is built from, besides its ports.
#[derive(Clone, Copy, Debug)]
pub struct HostConfig {
    /// From the application's call to the frame in the egress queue.
    pub transmit: Cost,
    /// From the lane's first look at a frame to the application's possession of it.
    pub receive: Cost,
    /// Messages the transmit lane may have in hand.
    pub backlog: u32,
    /// Frames the receive ring holds.
    pub ring: u32,
    /// When the ring is looked at.
    pub interrupts: Interrupts,
    /// From the interrupt, or the poll, to the driver's look at the ring.
    pub interrupt_latency: Span,
    /// What reading a frame from the card costs the processor, one frame after another; `None`: the card writes it to memory.
    pub card_read: Option<Cost>,
    /// Receive buffers of their own for time-triggered, rate-constrained and best-effort frames, served in this order;
    /// `None`: one ring for all.
    pub buffers: Option<[ReceiveBuffer; 3]>,
    /// By [stack](crate::frame::Marks::stack): what it costs where that is not `transmit` and `receive`.
    pub stacks: [Option<StackCosts>; STACKS],
    /// From the last bit of a frame on the wire to the frame in the ring, or in the buffer of its class.
    pub interface_receive_delay: Span,
}

impl HostConfig {
    /// From the application's call to `frame` in the egress queue.
    #[inline]
    pub(super) fn transmit_of(&self, frame: &Frame) -> Span {
        let own = self.stacks[frame.marks.stack()].as_ref();
        own.map_or(&self.transmit, |stack| &stack.transmit).of(frame.length)
    }

    /// From the lane's first look at `frame` to the application's possession of it.
    #[inline]
    pub(super) fn receive_of(&self, frame: &Frame) -> Span {
        let own = self.stacks[frame.marks.stack()].as_ref();
        own.map_or(&self.receive, |stack| &stack.receive).of(frame.length)
    }
}
