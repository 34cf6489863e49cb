//! Sending by `AF_XDP`, from slots that keep their bytes.

use std::io;

use super::slot::{Flushed, Slot};
use crate::error::NetError;
use crate::interface::Interface;
use crate::xdp::{FramePool, XdpConfig, XdpFrame, XdpPort};

/// Greatest number of frames handed over in one flush. The kernel takes 32 in one call by default.
pub(super) const BATCH: usize = 64;
/// Number of slots, a power of two: while some are with the kernel others are filled.
const SLOTS: u32 = 512;

/// A sending port with its own memory.
#[derive(Debug)]
pub(super) struct XdpTransmitter {
    port: XdpPort,
    pool: FramePool,
    /// The slot returned last, if not committed yet.
    next: Option<XdpFrame>,
    /// Template number of each frame buffer.
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
