//! The receiving end of streams on one interface.

use std::io;

use wg_frame::time::WallNanos;
use wg_net::receive::{FrameFilter, RxDrops, RxFrame, XdpReceiver};
use wg_net::{Interface, NetError, PacketRing};

/// How frames are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RxBackend {
    /// A packet ring beside the host's stack.
    Ring,
    /// `AF_XDP` in front of it.
    Xdp,
}

impl RxBackend {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "packet-ring",
            Self::Xdp => "xdp",
        }
    }
}

/// An open receiver.
pub enum StreamReceiver {
    /// See [`RxBackend::Ring`].
    Ring(PacketRing),
    /// See [`RxBackend::Xdp`].
    Xdp(Box<XdpReceiver>),
}

impl StreamReceiver {
    /// Opens the backend asked for, for the reason given with it; without a wish `AF_XDP` where the host grants it and
    /// `fast` asks for it, else the ring. Returns why it is that one, too.
    ///
    /// # Errors
    /// Of the backend asked for, or of the ring.
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

    /// Which it is.
    pub fn backend(&self) -> RxBackend {
        match self {
            Self::Ring(_) => RxBackend::Ring,
            Self::Xdp(_) => RxBackend::Xdp,
        }
    }

    /// Hands what has arrived to `take`; waits up to `timeout_ms` for the first frame. Returns how many there were.
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

    /// Frames that found no room.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn drops(&mut self) -> io::Result<RxDrops> {
        match self {
            Self::Ring(ring) => ring.statistics().map(|(_, ring)| RxDrops { ring, other: 0 }),
            Self::Xdp(xdp) => xdp.drops(),
        }
    }
}
