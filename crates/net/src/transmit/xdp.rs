//! `AF_XDP`, sending.

use std::io;
use std::os::fd::AsRawFd;

use super::{Flushed, SLOT_LEN, Slot};
use crate::error::NetError;
use crate::interface::Interface;
use crate::xdp::{self, Descriptor, Ring, Umem};

/// Frames handed over in one flush, at most. The kernel takes 32 in one call unless told otherwise.
pub(super) const BATCH: usize = 64;
/// Slots, twice a power of two of batches: while some are with the kernel others are filled. A power of two.
const SLOTS: u32 = 512;

/// How long the interface may take nothing at all before it counts as dead.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// A sending socket with memory of its own. Slot `i` is used for every [`SLOTS`]-th frame: the kernel completes
/// frames in order, so counting tells which are free.
#[derive(Debug)]
pub(super) struct XdpTransmitter {
    socket: xdp::Socket,
    umem: Umem,
    tx: Ring,
    completed: Ring,
    holds: Vec<u32>,
    /// Frames committed since the beginning.
    head: u32,
    /// Frames published to the kernel.
    published: u32,
    /// Frames completed.
    tail: u32,
}

impl XdpTransmitter {
    pub(super) fn open(interface: &Interface, queue: u32) -> Result<Self, NetError> {
        let what = format!("cannot open an AF_XDP socket on {}", interface.name);
        let umem = Umem::new(SLOTS, SLOT_LEN as u32).map_err(|e| NetError::of(what.clone(), "", e))?;
        let socket = xdp::Socket::open(&what)?;
        let plain = |e| NetError::of(what.clone(), "", e);
        socket.register(&umem).map_err(|e| NetError::of(what.clone(), "raise RLIMIT_MEMLOCK", e))?;
        // The kernel insists on a fill ring, though nothing is received.
        let _fill = socket.ring(xdp::Kind::Fill, 64).map_err(plain)?;
        let completed = socket.ring(xdp::Kind::Completion, SLOTS).map_err(plain)?;
        let tx = socket.ring(xdp::Kind::Transmit, SLOTS).map_err(plain)?;
        xdp::patiently(|| socket.bind(interface.index, queue))
            .map_err(|e| NetError::of(what.clone(), "does another AF_XDP socket hold its first queue?", e))?;
        Ok(Self {
            socket,
            umem,
            tx,
            completed,
            holds: vec![0; SLOTS as usize],
            head: 0,
            published: 0,
            tail: 0,
        })
    }

    #[inline]
    pub(super) fn slot(&mut self) -> Option<Slot<'_>> {
        if self.head.wrapping_sub(self.published) as usize >= BATCH {
            return None;
        }
        if self.head.wrapping_sub(self.tail) >= SLOTS {
            self.reap();
            if self.head.wrapping_sub(self.tail) >= SLOTS {
                return None;
            }
        }
        let at = self.head % SLOTS;
        Some(Slot { bytes: self.umem.frame_mut(at), holds: &mut self.holds[at as usize] })
    }

    fn reap(&mut self) {
        let done = self.completed.readable();
        self.completed.release(done);
        self.tail = self.tail.wrapping_add(done);
    }

    #[inline]
    pub(super) fn commit(&mut self, len: usize) {
        let at = self.head % SLOTS;
        let len = len.min(SLOT_LEN) as u32;
        let address = u64::from(at) * SLOT_LEN as u64;
        self.tx.write_descriptor(self.head, Descriptor { address, len, options: 0 });
        self.head = self.head.wrapping_add(1);
    }

    pub(super) fn flush(&mut self) -> io::Result<Flushed> {
        let count = self.head.wrapping_sub(self.published);
        self.tx.publish(self.head);
        self.published = self.head;
        let mut refused = 0;
        // In copy mode one call takes a bounded number; go on until the kernel has them all.
        let mut stuck: Option<std::time::Instant> = None;
        while self.tx.unconsumed(self.head) > 0 {
            let before = self.tx.unconsumed(self.head);
            // SAFETY: takes no pointers.
            let sent = unsafe {
                libc::sendto(
                    self.socket.as_raw_fd(),
                    std::ptr::null(),
                    0,
                    libc::MSG_DONTWAIT,
                    std::ptr::null(),
                    0,
                )
            };
            if sent < 0 {
                let error = io::Error::last_os_error();
                match error.raw_os_error() {
                    // EBUSY: the driver dropped one; EAGAIN: more are left, or its queue is full.
                    Some(libc::EBUSY) => refused += 1,
                    Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS) => self.reap(),
                    _ => return Err(error),
                }
            }
            if self.tx.unconsumed(self.head) != before {
                stuck = None;
            } else if stuck.get_or_insert_with(std::time::Instant::now).elapsed() > PATIENCE {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the interface takes no frames; is its other end up?",
                ));
            }
        }
        Ok(Flushed { taken: (count as usize).saturating_sub(refused), refused })
    }
}
