//! Fast receivers: every frame of chosen streams, many at a time, from memory shared with the kernel.
//!
//! - [`PacketRing`](crate::PacketRing) is a packet socket with a ring (`TPACKET_V3`): works on every interface, timestamped by the kernel;
//!   the host's own stack sees the frames too and spends its time on them.
//! - [`XdpReceiver`] takes the frames off the interface before the host's stack does, timestamped by a BPF program.
//!
//! Both count what they could not take, so that a receiver that is too slow is seen and not guessed.

mod filter;
mod xdp;

pub use filter::{FrameFilter, MAX_PORTS};
pub use xdp::XdpReceiver;

use wg_frame::time::WallNanos;

/// A frame that arrived.
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'a> {
    /// Its bytes without FCS.
    pub frame: &'a [u8],
    /// When the kernel had it from the driver.
    pub timestamp: WallNanos,
}

/// Frames a receiver did not get, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxDrops {
    /// A ring was full, or had no free frame.
    pub ring: u64,
    /// Anything else the kernel gives account of: a frame too long.
    pub other: u64,
}
