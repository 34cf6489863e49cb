//! `AF_XDP`, sending from slots that keep their bytes.

use std::io;

use super::slot::{Flushed, Slot};
use crate::error::NetError;
use crate::interface::Interface;
use crate::xdp::{FramePool, XdpConfig, XdpFrame, XdpPort};

/// Frames handed over in one flush, at most. The kernel takes 32 in one call unless told otherwise.
pub(super) const BATCH: usize = 64;
/// Slots, twice a power of two of batches: while some are with the kernel others are filled. A power of two.
const SLOTS: u32 = 512;

/// A sending port with memory of its own.
#[derive(Debug)]
pub(super) struct XdpTransmitter {
    port: XdpPort,
    pool: FramePool,
    /// The slot that was given last and is not committed.
    next: Option<XdpFrame>,
    /// By frame, which template it holds.
    templates: Vec<u32>,
    committed: usize,
}

impl XdpTransmitter {
    pub(super) fn open(interface: &Interface, queue: u32) -> Result<Self, NetError> {
        let mut pool = FramePool::new(SLOTS).map_err(|e| {
            NetError::of(format!("cannot send by AF_XDP on {}", interface.name), "1 MiB is needed", e)
        })?;
        let config = XdpConfig { queue, transmit: SLOTS, ..XdpConfig::default() };
        let port = XdpPort::open(&mut pool, interface, config)?;
        Ok(Self { port, pool, next: None, templates: vec![0; SLOTS as usize], committed: 0 })
    }

    #[inline]
    pub(super) fn slot(&mut self) -> Option<Slot<'_>> {
        if self.committed >= BATCH {
            return None;
        }
        if self.next.is_none() {
            if self.pool.free() == 0 {
                self.port.reap(&mut self.pool);
            }
            self.next = self.pool.take();
        }
        let frame = self.next.as_mut()?;
        let template = &mut self.templates[frame.index()];
        Some(Slot { bytes: self.pool.memory_mut(frame), template })
    }

    #[inline]
    pub(super) fn commit(&mut self, len: usize) {
        let Some(mut frame) = self.next.take() else { return };
        self.pool.set_len(&mut frame, len);
        match self.port.send(frame) {
            Ok(()) => self.committed += 1,
            // The ring has room for every slot.
            Err(frame) => self.pool.give_back(frame),
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<Flushed> {
        self.committed = 0;
        self.port.flush(&mut self.pool)
    }
}
