//! Receiver of streams on one interface.

use std::io;

use wg_frame::time::WallNanos;
use wg_net::receive::{FrameFilter, RxDrops, RxFrame, XdpReceiver};
use wg_net::{Interface, NetError, PacketRing};

/// Receive backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RxBackend {
    /// A packet ring parallel to the host's stack.
    Ring,
    /// `AF_XDP`, before the host's stack.
    Xdp,
}

impl RxBackend {
    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "packet-ring",
            Self::Xdp => "xdp",
        }
    }
}

/// Open receiver.
pub enum StreamReceiver {
    /// See [`RxBackend::Ring`].
    Ring(PacketRing),
    /// See [`RxBackend::Xdp`].
    Xdp(Box<XdpReceiver>),
}

impl StreamReceiver {
    /// Opens the given backend, for the given reason. Without one, opens `AF_XDP` if `fast` is set and the host permits
    /// it, else the ring. Also returns the reason for the backend.
    ///
    /// # Errors
    /// The error of the given backend, or of the ring.
    pub fn open(
        interface: &Interface,
        filter: &FrameFilter,
        preferred: Option<(RxBackend, &str)>,
        fast: bool,
    ) -> Result<(Self, String), NetError> {
        let ring = || PacketRing::arrivals(interface, filter).map(Self::Ring);
        let xdp = || XdpReceiver::open(interface, filter).map(|open| Self::Xdp(Box::new(open)));
        match preferred {
            Some((RxBackend::Ring, why)) => Ok((ring()?, why.into())),
            Some((RxBackend::Xdp, why)) => Ok((xdp()?, why.into())),
            None if fast => match xdp() {
                Ok(open) => {
                    Ok((open, "frames may arrive faster than the host's network stack can take them".into()))
                }
                Err(refusal) => Ok((ring()?, format!("AF_XDP is not available: {refusal}"))),
            },
            None => Ok((ring()?, "fast enough for this load".into())),
        }
    }

    /// Backend in use.
    pub fn backend(&self) -> RxBackend {
        match self {
            Self::Ring(_) => RxBackend::Ring,
            Self::Xdp(_) => RxBackend::Xdp,
        }
    }

    /// Passes received frames to `take`; waits up to `timeout_ms` for the first. Returns the number of frames.
    ///
    /// # Errors
    /// The socket is unusable.
    pub fn take(&mut self, timeout_ms: i32, mut take: impl FnMut(RxFrame<'_>)) -> io::Result<usize> {
        match self {
            Self::Ring(ring) => ring.take(timeout_ms, |frame| {
                take(RxFrame { frame: frame.bytes, timestamp: WallNanos::new(frame.timestamp_ns) });
            }),
            Self::Xdp(xdp) => xdp.take(timeout_ms, take),
        }
    }

    /// Frames dropped for lack of buffer space.
    ///
    /// # Errors
    /// The kernel does not report the number.
    pub fn drops(&mut self) -> io::Result<RxDrops> {
        match self {
            Self::Ring(ring) => ring.statistics().map(|(_, ring)| RxDrops { ring, other: 0 }),
            Self::Xdp(xdp) => xdp.drops(),
        }
    }
}
