//! Fast receivers: all frames of selected streams, in batches, from memory shared with the kernel.
//!
//! - [`PacketRing`](crate::PacketRing) is a packet socket with a ring (`TPACKET_V3`): works on every interface, timestamped by the kernel;
//!   the host's own stack sees the frames too and spends its time on them.
//! - [`XdpReceiver`] takes the frames off the interface before the host's stack does, timestamped by a BPF program.
//!
//! Both count the frames they missed, so that a receiver that is too slow is noticed.

mod filter;
mod xdp;

pub use filter::{FrameFilter, MAX_PORTS};
pub use xdp::XdpReceiver;

use wg_frame::time::WallNanos;

/// A frame that arrived.
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'a> {
    /// Bytes without FCS.
    pub frame: &'a [u8],
    /// Time at which the kernel received it from the driver.
    pub timestamp: WallNanos,
}

/// Numbers of frames that a receiver missed, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxDrops {
    /// A ring was full, or had no free buffer.
    pub ring: u64,
    /// Any other drop that the kernel reports: a frame too long.
    pub other: u64,
}
