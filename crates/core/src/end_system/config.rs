//! What a host is built from: costs of its lanes, its interrupts.

use wg_frame::time::Span;

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
}
