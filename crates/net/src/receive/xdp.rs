//! Receiving by `AF_XDP`.

use std::io;

use super::{FrameFilter, RxDrops, RxFrame};
use crate::error::NetError;
use crate::interface::Interface;
use crate::xdp::{FramePool, XdpConfig, XdpPort, XdpProgram};

/// Number of frame buffers, a power of two: 32 MiB.
const FRAMES: u32 = 1 << 14;
/// Greatest number of frames taken in one round.
const ROUND: usize = 4096;

/// A socket that receives the selected frames in place of the host's stack.
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
    /// program, or its driver supports none.
    pub fn open(interface: &Interface, filter: &FrameFilter) -> Result<Self, NetError> {
        let mut pool = FramePool::new(FRAMES).map_err(|e| {
            NetError::of(format!("cannot receive by AF_XDP on {}", interface.name), "32 MiB are needed", e)
        })?;
        let program = Some(XdpProgram::attach(interface, filter)?);
        let config = XdpConfig { receive: FRAMES, program, ..XdpConfig::default() };
        Ok(Self { port: XdpPort::open(&mut pool, interface, config)?, pool })
    }

    /// Calls `take` with every available frame, at most a quarter of the buffers; waits up to `timeout_ms` for the
    /// first. Returns the number of frames.
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

    /// Numbers of frames missed since the socket was opened.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn drops(&self) -> io::Result<RxDrops> {
        self.port.drops()
    }
}
