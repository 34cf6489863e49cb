//! Configuration of a host: processing times of its lanes, interrupts, receive buffers.

use wg_frame::time::Span;

use crate::frame::{Frame, STACKS};

/// Processing time of a thread for handing over one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Cost {
    /// Time for any frame.
    pub fixed: Span,
    /// Additional time for each byte, destination address to FCS.
    pub per_byte: Span,
}

impl Cost {
    /// The processing time of a frame of `length` bytes.
    pub fn of(self, length: u16) -> Span {
        Span::from_picos(self.fixed.as_picos() + self.per_byte.as_picos() * i64::from(length))
    }
}

/// Processing times of one protocol's stack, in place of those of any frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StackCosts {
    /// Time from the application's call to the frame in the egress queue.
    pub transmit: Cost,
    /// Time from the lane's first look at a frame until the application has it.
    pub receive: Cost,
}

/// Time at which the interface interrupts the host for frames in the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "type", rename_all = "kebab-case")
)]
pub enum Interrupts {
    /// As soon as a frame is in the ring.
    #[default]
    EachFrame,
    /// Once `frames` are in the ring, or the first has waited for `wait`.
    Coalesced {
        /// Frames that raise it at once; at least 1.
        frames: u32,
        /// Longest wait of the first.
        wait: Span,
    },
    /// At the multiples of a period, counted from the epoch.
    Polled {
        /// The period; positive.
        period: Span,
    },
    /// At once, but at least `spacing` after the one before; then the driver reads until the ring is empty.
    Spaced {
        /// Least time between interrupts. 0: whenever the driver is idle.
        spacing: Span,
    },
    /// As `Spaced`, with a spacing that the driver chooses by the frames and bytes of its last turn, in three levels.
    Adaptive,
}

impl Interrupts {
    /// Whether a driver that is reading also reads frames that arrive meanwhile.
    pub(super) const fn keeps_reading(self) -> bool {
        matches!(self, Self::Spaced { .. } | Self::Adaptive)
    }
}

/// Receive buffer of one traffic class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReceiveBuffer {
    /// Capacity in frames, the one being read among them; at least 1.
    pub slots: u32,
    /// Capacity of the byte FIFO in front of the slots, destination address to FCS; at least a longest frame. `None`:
    /// frames enter the slots directly.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub fifo_bytes: Option<u32>,
}

/// Configuration of a host, without its ports.
#[derive(Clone, Copy, Debug)]
pub struct HostConfig {
    /// Time from the application's call to the frame in the egress queue.
    pub transmit: Cost,
    /// Time from the lane's first look at a frame until the application has it.
    pub receive: Cost,
    /// Greatest number of messages in the transmit lane.
    pub backlog: u32,
    /// Capacity of the receive ring, in frames.
    pub ring: u32,
    /// Times at which the interface interrupts the host.
    pub interrupts: Interrupts,
    /// Time from the interrupt, or the poll, to the driver's look at the ring.
    pub interrupt_latency: Span,
    /// Processor time for reading a frame from the card, one after another; `None`: the card writes frames to memory.
    pub card_read: Option<Cost>,
    /// Separate receive buffers for time-triggered, rate-constrained and best-effort frames, served in this order;
    /// `None`: one ring for all.
    pub buffers: Option<[ReceiveBuffer; 3]>,
    /// Processing times by [stack](crate::frame::Marks::stack); `None`: `transmit` and `receive` apply.
    pub stacks: [Option<StackCosts>; STACKS],
    /// Time from the last bit of a frame on the wire to the frame in the ring, or in the buffer of its class.
    pub interface_receive_delay: Span,
}

impl HostConfig {
    /// Time from the application's call to `frame` in the egress queue.
    #[inline]
    pub(super) fn transmit_of(&self, frame: &Frame) -> Span {
        let own = self.stacks[frame.marks.stack()].as_ref();
        own.map_or(&self.transmit, |stack| &stack.transmit).of(frame.length)
    }

    /// Time from the lane's first look at `frame` until the application has it.
    #[inline]
    pub(super) fn receive_of(&self, frame: &Frame) -> Span {
        let own = self.stacks[frame.marks.stack()].as_ref();
        own.map_or(&self.receive, |stack| &stack.receive).of(frame.length)
    }
}
