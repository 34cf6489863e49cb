//! The receiving end of streams on one interface.

use std::io;

use wg_frame::time::WallNanos;
use wg_net::arrivals::{Arrival, Missed, Selection, XdpArrivals};
use wg_net::{Interface, NetError, PacketRing};

/// How frames come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// A packet ring beside the host's stack.
    Ring,
    /// `AF_XDP` in front of it.
    Xdp,
}

impl Entrance {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "packet-ring",
            Self::Xdp => "xdp",
        }
    }
}

/// An open receiver.
pub enum Arrivals {
    /// See [`Entrance::Ring`].
    Ring(PacketRing),
    /// See [`Entrance::Xdp`].
    Xdp(Box<XdpArrivals>),
}

impl Arrivals {
    /// Opens the entrance asked for, for the reason given with it; without a wish `AF_XDP` where the host grants it and
    /// `fast` asks for it, else the ring. Returns why it is that one, too.
    ///
    /// # Errors
    /// Of the entrance asked for, or of the ring.
    pub fn open(
        interface: &Interface,
        selection: &Selection,
        wish: Option<(Entrance, &str)>,
        fast: bool,
    ) -> Result<(Self, String), NetError> {
        let ring = || PacketRing::arrivals(interface, selection).map(Self::Ring);
        let xdp = || XdpArrivals::open(interface, selection).map(|open| Self::Xdp(Box::new(open)));
        match wish {
            Some((Entrance::Ring, why)) => Ok((ring()?, why.into())),
            Some((Entrance::Xdp, why)) => Ok((xdp()?, why.into())),
            None if fast => match xdp() {
                Ok(open) => Ok((open, "frames may come faster than the host's stack takes them".into())),
                Err(refusal) => Ok((ring()?, format!("AF_XDP is not to be had: {refusal}"))),
            },
            None => Ok((ring()?, "fast enough for this load".into())),
        }
    }

    /// Which it is.
    pub fn entrance(&self) -> Entrance {
        match self {
            Self::Ring(_) => Entrance::Ring,
            Self::Xdp(_) => Entrance::Xdp,
        }
    }

    /// Hands what has arrived to `take`; waits up to `timeout_ms` for the first frame. Returns how many there were.
    ///
    /// # Errors
    /// The socket is unusable.
    pub fn take(&mut self, timeout_ms: i32, mut take: impl FnMut(Arrival<'_>)) -> io::Result<usize> {
        match self {
            Self::Ring(ring) => ring.take(timeout_ms, |frame| {
                take(Arrival { frame: frame.bytes, stamp: WallNanos::new(frame.stamp_ns) });
            }),
            Self::Xdp(xdp) => xdp.take(timeout_ms, take),
        }
    }

    /// Frames that found no room.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn missed(&mut self) -> io::Result<Missed> {
        match self {
            Self::Ring(ring) => ring.statistics().map(|(_, ring)| Missed { ring, other: 0 }),
            Self::Xdp(xdp) => xdp.missed(),
        }
    }
}
