//! `AF_XDP`, receiving.

use std::io;

use super::{FrameFilter, RxDrops, RxFrame};
use crate::error::NetError;
use crate::interface::Interface;
use crate::xdp::{FramePool, XdpConfig, XdpPort, XdpProgram};

/// Frames of memory, a power of two: 32 MiB.
const FRAMES: u32 = 1 << 14;
/// Frames taken in one round, at most.
const ROUND: usize = 4096;

/// A socket that gets the selected frames in place of the host's stack.
#[derive(Debug)]
pub struct XdpReceiver {
    port: XdpPort,
    pool: FramePool,
}

impl XdpReceiver {
    /// Opens the receiver on the first queue of `interface`.
    ///
    /// # Errors
    /// The right to load BPF programs (root, or CAP_BPF and CAP_NET_ADMIN) is missing, the interface has another
    /// program, or its driver knows none.
    pub fn open(interface: &Interface, filter: &FrameFilter) -> Result<Self, NetError> {
        let mut pool = FramePool::new(FRAMES).map_err(|e| {
            NetError::of(format!("cannot receive by AF_XDP on {}", interface.name), "32 MiB are needed", e)
        })?;
        let program = Some(XdpProgram::attach(interface, filter)?);
        let config = XdpConfig { receive: FRAMES, program, ..XdpConfig::default() };
        Ok(Self { port: XdpPort::open(&mut pool, interface, config)?, pool })
    }

    /// Hands every frame that is there, at most a quarter of the memory, to `take`; waits up to `timeout_ms` for the
    /// first. Returns how many there were.
    ///
    /// # Errors
    /// The socket is unusable.
    pub fn take(&mut self, timeout_ms: i32, mut take: impl FnMut(RxFrame<'_>)) -> io::Result<usize> {
        self.port.wait(timeout_ms)?;
        let mut count = 0;
        while count < ROUND
            && let Some((frame, timestamp)) = self.port.receive(&mut self.pool)
        {
            take(RxFrame { frame: self.pool.bytes(&frame), timestamp });
            self.pool.give_back(frame);
            count += 1;
        }
        self.port.refill(&mut self.pool);
        Ok(count)
    }

    /// Frames that found no room, since the socket was opened.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn drops(&self) -> io::Result<RxDrops> {
        self.port.drops()
    }
}
