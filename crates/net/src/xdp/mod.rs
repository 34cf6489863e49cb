//! `AF_XDP`: a port whose frames are in memory shared with the driver, received and sent by this program without a
//! copy.
//!
//! A [`FramePool`] owns the memory and the list of free frames; an [`XdpPort`] is one queue of one interface. Ports of
//! one pool share its memory, so a frame received at one can be sent by another. An [`XdpFrame`] is the right to a
//! frame: it comes from the pool or from a port, and goes back to either. Frames with the kernel are in one of four
//! rings; every other one is free or owned by a caller, and [`FramePool::free`] counts the free ones.

mod pool;
mod rings;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wg_frame::time::WallNanos;

pub use pool::{FRAME_LEN, FramePool, XdpFrame};

use self::rings::{Consumer, Descriptor, Kind, Producer, Socket, patiently};
use crate::bpf::xdp::{Attached, TIMESTAMP_LEN};
use crate::clock;
use crate::error::NetError;
use crate::interface::Interface;
use crate::receive::{FrameFilter, RxDrops};
use crate::sys::wait_readable;
use crate::transmit::Flushed;

/// Least size of a ring; the kernel demands rings even if unused.
const LEAST_RING: u32 = 64;
/// Greatest number of calls of one flush that does not wait.
const ATTEMPTS: usize = 4;
/// Time without progress after which the interface counts as dead.
const PATIENCE: Duration = Duration::from_secs(1);

/// A program on an interface that timestamps the selected frames and directs them to the ports of their queues.
#[derive(Debug)]
pub struct XdpProgram(Attached);

impl XdpProgram {
    /// Selects the frames of `filter`; all others go to the host's stack.
    ///
    /// # Errors
    /// The right to load BPF programs (root, or CAP_BPF and CAP_NET_ADMIN) is missing, the interface has another
    /// program, or its driver supports none.
    pub fn attach(interface: &Interface, filter: &FrameFilter) -> Result<Arc<Self>, NetError> {
        let failed = |e| {
            let what = format!("cannot attach an XDP program to {}", interface.name);
            NetError::of(what, "BPF programs need root, and no other program on the interface", e)
        };
        Attached::new(interface.index, filter).map(|attached| Arc::new(Self(attached))).map_err(failed)
    }
}

/// Configuration of a port.
#[derive(Clone, Debug, Default)]
pub struct XdpConfig {
    /// Queue of the interface, from 0.
    pub queue: u32,
    /// Size of the fill ring, a power of two; 0: nothing is received.
    pub receive: u32,
    /// Size of the transmit ring, a power of two; 0: nothing is sent.
    pub transmit: u32,
    /// Program that directs frames to the port; `None`: nothing is received.
    pub program: Option<Arc<XdpProgram>>,
}

/// One queue of an interface. Frames with the kernel when it is dropped are lost to their pool.
#[derive(Debug)]
pub struct XdpPort {
    // Dropped first, so that no frame is directed to a closed socket.
    _program: Option<Arc<XdpProgram>>,
    socket: Socket,
    fill: Producer<u64>,
    completed: Consumer<u64>,
    received: Option<Consumer<Descriptor>>,
    transmit: Option<Producer<Descriptor>>,
    /// Number of frames handed to `transmit` since the last flush.
    unflushed: usize,
    /// `CLOCK_TAI` − `CLOCK_REALTIME`, ns.
    tai_ahead: i64,
}

impl XdpPort {
    /// Opens a queue of `interface`, with frames of `pool`.
    ///
    /// # Errors
    /// CAP_NET_RAW is missing, the kernel has no `AF_XDP`, or another socket holds the queue.
    pub fn open(pool: &mut FramePool, interface: &Interface, config: XdpConfig) -> Result<Self, NetError> {
        let XdpConfig { queue, receive, transmit, program } = config;
        let what = format!("cannot open an AF_XDP socket on queue {queue} of {}", interface.name);
        let plain = |e| NetError::of(what.clone(), "", e);
        let socket = Socket::open(&what)?;
        let owner = pool.owner().map_err(plain)?;
        if owner.is_none() {
            pool.register(&socket).map_err(|e| NetError::of(what.clone(), "raise RLIMIT_MEMLOCK", e))?;
        }
        let fill = socket.producer(Kind::Fill, receive.max(LEAST_RING)).map_err(plain)?;
        let completed = socket.consumer(Kind::Completion, transmit.max(LEAST_RING)).map_err(plain)?;
        let ring = |size: u32| (size > 0).then_some(size);
        let received = ring(receive).map(|size| socket.consumer(Kind::Receive, size)).transpose();
        let transmit = ring(transmit).map(|size| socket.producer(Kind::Transmit, size)).transpose();
        let (received, transmit) = (received.map_err(plain)?, transmit.map_err(plain)?);
        let shared = owner.as_ref().map(Socket::borrow);
        patiently(|| socket.bind(interface.index, queue, shared))
            .map_err(|e| NetError::of(what.clone(), "does another AF_XDP socket hold this queue?", e))?;
        if let Some(program) = &program {
            program.0.direct(queue, socket.borrow()).map_err(plain)?;
        }
        let (unflushed, tai_ahead) = (0, clock::tai_ahead());
        let mut port =
            Self { _program: program, socket, fill, completed, received, transmit, unflushed, tai_ahead };
        port.refill(pool);
        Ok(port)
    }

    /// Gives free frames to the kernel, as many as the fill ring has room for.
    pub fn refill(&mut self, pool: &mut FramePool) {
        if self.received.is_none() {
            return;
        }
        while let Some(frame) = pool.take() {
            if !self.fill.push(frame.start()) {
                pool.give_back(frame);
                break;
            }
        }
        self.fill.publish();
    }

    /// The next received frame, with the time at which the kernel received it from the driver.
    #[inline]
    pub fn receive(&mut self, pool: &mut FramePool) -> Option<(XdpFrame, WallNanos)> {
        loop {
            let found = self.received.as_mut()?.pop()?;
            let frame = pool.filled(found.address, found.len);
            // The program puts the timestamp before the frame; a frame without one bypassed it.
            match pool.before::<TIMESTAMP_LEN>(&frame) {
                Some(bytes) => {
                    let ns = i64::from_ne_bytes(bytes).saturating_sub(self.tai_ahead);
                    return Some((frame, WallNanos::new(ns)));
                }
                None => pool.give_back(frame),
            }
        }
    }

    /// Waits until a frame can be received, at most `timeout_ms`.
    ///
    /// # Errors
    /// The socket is unusable.
    pub fn wait(&mut self, timeout_ms: i32) -> io::Result<()> {
        if timeout_ms <= 0 || !self.received.as_mut().is_none_or(Consumer::is_empty) {
            return Ok(());
        }
        wait_readable(self.socket.borrow(), timeout_ms)
    }

    /// Puts a frame into the transmit ring; [`flush`](Self::flush) hands it over.
    ///
    /// # Errors
    /// The ring is full, and the frame comes back.
    #[inline]
    pub fn send(&mut self, frame: XdpFrame) -> Result<(), XdpFrame> {
        let descriptor = Descriptor { address: frame.address(), len: frame.len(), options: 0 };
        if self.transmit.as_mut().is_some_and(|ring| ring.push(descriptor)) {
            self.unflushed += 1;
            return Ok(());
        }
        Err(frame)
    }

    /// Hands the frames of the transmit ring to the driver, and takes back those that were sent.
    ///
    /// # Errors
    /// The interface is gone, or makes no progress for a second.
    pub fn flush(&mut self, pool: &mut FramePool) -> io::Result<Flushed> {
        let count = std::mem::take(&mut self.unflushed);
        let Some(transmit) = &self.transmit else { return Ok(Flushed::default()) };
        transmit.publish();
        let mut refused = 0;
        // In copy mode one call takes a bounded number; go on until the kernel has them all.
        let mut stuck: Option<Instant> = None;
        loop {
            let before = transmit.untaken();
            if before == 0 {
                break;
            }
            if let Err(error) = self.socket.kick() {
                match error.raw_os_error() {
                    // EBUSY: the driver dropped one; EAGAIN: more are left, or its queue is full.
                    Some(libc::EBUSY) => refused += 1,
                    Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS) => reap(&mut self.completed, pool),
                    _ => return Err(error),
                }
            }
            if transmit.untaken() != before {
                stuck = None;
            } else if stuck.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                let problem = "the interface accepts no frames; is the other end of the link up?";
                return Err(io::Error::new(io::ErrorKind::TimedOut, problem));
            }
        }
        reap(&mut self.completed, pool);
        Ok(Flushed { taken: count.saturating_sub(refused), refused })
    }

    /// As [`flush`](Self::flush), but never waits: frames that the kernel does not take now stay for the next flush.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn flush_some(&mut self, pool: &mut FramePool) -> io::Result<Flushed> {
        let Some(transmit) = &self.transmit else { return Ok(Flushed::default()) };
        self.unflushed = 0;
        let before = transmit.untaken() as usize;
        transmit.publish();
        let mut refused = 0;
        for _ in 0..ATTEMPTS {
            if transmit.untaken() == 0 {
                break;
            }
            let Err(error) = self.socket.kick() else { continue };
            match error.raw_os_error() {
                Some(libc::EBUSY) => refused += 1,
                Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS) => reap(&mut self.completed, pool),
                _ => return Err(error),
            }
        }
        reap(&mut self.completed, pool);
        // A frame that the interface dropped has left the ring, too.
        let gone = before - transmit.untaken() as usize;
        Ok(Flushed { taken: gone.saturating_sub(refused), refused })
    }

    /// Takes back frames that were sent.
    pub fn reap(&mut self, pool: &mut FramePool) {
        reap(&mut self.completed, pool);
    }

    /// Numbers of frames missed since the port was opened.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn drops(&self) -> io::Result<RxDrops> {
        self.socket.statistics().map(|counted| drops(&counted))
    }
}

fn reap(completed: &mut Consumer<u64>, pool: &mut FramePool) {
    while let Some(address) = completed.pop() {
        let frame = pool.filled(address, 0);
        pool.give_back(frame);
    }
}

/// Counts each frame once: one without a buffer to be copied into counts both as dropped and as a look into an empty
/// fill ring (`xsk_rcv` and `xp_alloc` of the kernel), one that found the receive ring full is in `rx_ring_full` alone.
fn drops(counted: &libc::xdp_statistics) -> RxDrops {
    let without_room = counted.rx_fill_ring_empty_descs.min(counted.rx_dropped);
    RxDrops { ring: counted.rx_ring_full + without_room, other: counted.rx_dropped - without_room }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_without_room_is_missed_once() {
        // SAFETY: statistics of zeroes are valid.
        let none: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        let counted =
            libc::xdp_statistics { rx_dropped: 12, rx_fill_ring_empty_descs: 10, rx_ring_full: 3, ..none };
        assert_eq!(drops(&counted), RxDrops { ring: 13, other: 2 });
        let looked_only = libc::xdp_statistics { rx_fill_ring_empty_descs: 5, ..none };
        assert_eq!(drops(&looked_only), RxDrops::default());
    }
}
