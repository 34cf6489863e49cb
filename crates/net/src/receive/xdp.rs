//! `AF_XDP`, receiving.

use std::io;
use std::os::fd::AsRawFd;

use wg_frame::time::WallNanos;

use super::{FrameFilter, RxDrops, RxFrame};
use crate::bpf::xdp::{Attached, TIMESTAMP_LEN};
use crate::clock;
use crate::error::NetError;
use crate::interface::Interface;
use crate::xdp::{self, Kind, Ring, Umem};

/// Frames of memory, a power of two: 32 MiB.
const FRAMES: u32 = 1 << 14;
const FRAME_LEN: u32 = 2048;
/// Frames taken in one round, at most.
const ROUND: u32 = 4096;

/// A socket that gets the selected frames in place of the host's stack.
#[derive(Debug)]
pub struct XdpReceiver {
    // The program first, so that nothing is directed at a socket that is gone.
    _attached: Attached,
    socket: xdp::Socket,
    receive: Ring,
    fill: Ring,
    filled: u32,
    umem: Umem,
    /// `CLOCK_TAI` − `CLOCK_REALTIME`, ns.
    tai_ahead: i64,
}

impl XdpReceiver {
    /// Opens the receiver on the first queue of `interface`.
    ///
    /// # Errors
    /// The right to load BPF programs (root, or CAP_BPF and CAP_NET_ADMIN) is missing, the interface has another
    /// program, or its driver knows none.
    pub fn open(interface: &Interface, selection: &FrameFilter) -> Result<Self, NetError> {
        let what = format!("cannot receive by AF_XDP on {}", interface.name);
        let plain = |e| NetError::of(what.clone(), "", e);
        let umem = Umem::new(FRAMES, FRAME_LEN).map_err(plain)?;
        let socket = xdp::Socket::open(&what)?;
        socket.register(&umem).map_err(|e| NetError::of(what.clone(), "raise RLIMIT_MEMLOCK", e))?;
        let mut fill = socket.ring(Kind::Fill, FRAMES).map_err(plain)?;
        let _completed = socket.ring(Kind::Completion, 64).map_err(plain)?;
        let receive = socket.ring(Kind::Receive, FRAMES).map_err(plain)?;
        for frame in 0..FRAMES {
            fill.write_address(frame, u64::from(frame) * u64::from(FRAME_LEN));
        }
        fill.publish(FRAMES);
        let attached = Attached::new(interface.index, selection).map_err(|e| {
            NetError::of(what.clone(), "BPF programmes need root, and no other programme on the interface", e)
        })?;
        xdp::patiently(|| socket.bind(interface.index, 0))
            .map_err(|e| NetError::of(what.clone(), "does another AF_XDP socket hold its first queue?", e))?;
        attached.direct(0, socket.borrow()).map_err(plain)?;
        let tai_ahead = clock::tai_ahead();
        Ok(Self { _attached: attached, socket, receive, fill, filled: FRAMES, umem, tai_ahead })
    }

    /// Hands every frame that is there, at most a quarter of the memory, to `take`; waits up to `timeout_ms` for the
    /// first. Returns how many there were.
    ///
    /// # Errors
    /// The socket is unusable.
    pub fn take(&mut self, timeout_ms: i32, mut take: impl FnMut(RxFrame<'_>)) -> io::Result<usize> {
        let mut count = self.receive.readable();
        if count == 0 && timeout_ms > 0 {
            let mut polled = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: `polled` is one live entry.
            if unsafe { libc::poll(&raw mut polled, 1, timeout_ms) } < 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            count = self.receive.readable();
        }
        let count = count.min(ROUND);
        for ahead in 0..count {
            let got = self.receive.read_descriptor(ahead);
            let timestamp_at = got.address.saturating_sub(TIMESTAMP_LEN as u64);
            if let Some(stamp) = self.umem.bytes(timestamp_at, TIMESTAMP_LEN).first_chunk::<TIMESTAMP_LEN>() {
                let stamp = i64::from_ne_bytes(*stamp).saturating_sub(self.tai_ahead);
                let frame = self.umem.bytes(got.address, got.len as usize);
                take(RxFrame { frame, stamp: WallNanos::new(stamp) });
            }
            // Back to the beginning of its frame.
            self.fill.write_address(self.filled, got.address & !u64::from(FRAME_LEN - 1));
            self.filled = self.filled.wrapping_add(1);
        }
        self.receive.release(count);
        self.fill.publish(self.filled);
        Ok(count as usize)
    }

    /// Frames that found no room, since the socket was opened.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn drops(&mut self) -> io::Result<RxDrops> {
        self.socket.statistics().map(|told| drops(&told))
    }
}

/// Each frame once: one that found no room to be copied into is both among those dropped and a look into an empty fill ring
/// (`xsk_rcv` and `xp_alloc` of the kernel), one that found the receive ring full is in `rx_ring_full` alone.
fn drops(told: &libc::xdp_statistics) -> RxDrops {
    let without_room = told.rx_fill_ring_empty_descs.min(told.rx_dropped);
    RxDrops { ring: told.rx_ring_full + without_room, other: told.rx_dropped - without_room }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_without_room_is_missed_once() {
        // SAFETY: statistics of zeroes are valid.
        let none: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        let told =
            libc::xdp_statistics { rx_dropped: 12, rx_fill_ring_empty_descs: 10, rx_ring_full: 3, ..none };
        assert_eq!(drops(&told), RxDrops { ring: 13, other: 2 });
        let looked_only = libc::xdp_statistics { rx_fill_ring_empty_descs: 5, ..none };
        assert_eq!(drops(&looked_only), RxDrops::default());
    }
}
