//! Fast transmitters: frames in slots, handed to the kernel in batches.
//!
//! Three backends with one interface, and a fourth, [`LiveFrames`], beside it. A caller takes a slot, writes a frame
//! into it (or changes an earlier one there), commits it and after any number of them flushes: one system call sends
//! all. Slots keep their bytes, so a generator writes its template into each once and then changes only what varies.
//!
//! - [`Backend::Udp`] works everywhere and without rights; headers are the kernel's.
//! - [`Backend::Packet`] writes whole frames past the queue discipline (`PACKET_QDISC_BYPASS`) or through it.
//! - [`Backend::Xdp`] shares memory with the driver (`AF_XDP`); the kernel copies where the driver cannot take it.
//!
//! Road not taken: `PACKET_TX_RING`. Its frames refer to pages of the ring, which virtual links have to copy anyway
//! before they may pass them on; measured, it is slower than copying them at once.

mod datagrams;
mod launch;
mod live;
mod slot;
mod xdp;

pub use launch::{Launch, NoLaunch, Unlaunched};
pub use live::{LONGEST_GAP_NS, LiveFrames, LiveSchedule, Stopper, trial_frame};
pub use slot::{Flushed, SLOT_LEN, Slot};

use std::io;
use std::net::SocketAddrV4;

use crate::error::NetError;
use crate::interface::Interface;

use wg_frame::time::WallNanos;

/// Send mechanism for frames of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backend {
    /// UDP sockets, `sendmmsg`.
    Udp,
    /// Packet sockets, `sendmmsg`.
    Packet,
    /// `AF_XDP` sockets.
    Xdp,
    /// A BPF program inside the kernel, see [`LiveFrames`].
    Live,
}

impl Backend {
    /// Name in the test language and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Packet => "packet",
            Self::Xdp => "xdp",
            Self::Live => "xdp-live",
        }
    }

    /// The backend with this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Udp, Self::Packet, Self::Xdp, Self::Live].into_iter().find(|backend| backend.name() == name)
    }
}

/// An open transmitter.
#[derive(Debug)]
pub struct Transmitter(Inner);

#[derive(Debug)]
enum Inner {
    Datagrams(Box<datagrams::Datagrams>),
    Xdp(Box<xdp::XdpTransmitter>),
}

impl Transmitter {
    /// Sends datagrams from `from` to `to`; a slot holds the UDP payload.
    ///
    /// # Errors
    /// The source address is not configured or the destination has no route.
    pub fn udp(from: SocketAddrV4, to: SocketAddrV4) -> Result<Self, NetError> {
        datagrams::Datagrams::udp(from, to).map(|open| Self(Inner::Datagrams(Box::new(open))))
    }

    /// Sends complete frames without FCS through a packet socket. `bypass` goes past the queueing discipline: faster,
    /// but ignores a shaper that stands for the link's rate.
    ///
    /// # Errors
    /// CAP_NET_RAW is missing.
    pub fn packet(interface: &Interface, bypass: bool) -> Result<Self, NetError> {
        datagrams::Datagrams::packet(interface, bypass).map(|open| Self(Inner::Datagrams(Box::new(open))))
    }

    /// Sends complete frames without FCS through a packet socket and the queueing discipline, each held until its
    /// launch time.
    ///
    /// # Errors
    /// As [`packet`](Self::packet), or the kernel has no launch times.
    pub fn launching(interface: &Interface, launch: Launch) -> Result<Self, NetError> {
        let open = datagrams::Datagrams::launching(interface, launch)?;
        Ok(Self(Inner::Datagrams(Box::new(open))))
    }

    /// Sends complete frames without FCS through `AF_XDP`, past the queueing discipline.
    ///
    /// # Errors
    /// CAP_NET_RAW is missing, the kernel has no `AF_XDP`, or another socket holds the queue.
    pub fn xdp(interface: &Interface) -> Result<Self, NetError> {
        xdp::XdpTransmitter::open(interface, 0).map(|open| Self(Inner::Xdp(Box::new(open))))
    }

    /// The next slot; `None` if all wait for the kernel: flush, and call again.
    #[inline]
    pub fn slot(&mut self) -> Option<Slot<'_>> {
        match &mut self.0 {
            Inner::Datagrams(inner) => inner.slot(),
            Inner::Xdp(inner) => inner.slot(),
        }
    }

    /// Commits the frame of `len` bytes in the slot last returned.
    #[inline]
    pub fn commit(&mut self, len: usize) {
        match &mut self.0 {
            Inner::Datagrams(inner) => inner.commit(len),
            Inner::Xdp(inner) => inner.commit(len),
        }
    }

    /// Sets the launch time of the frame committed last; only for a launching transmitter.
    #[inline]
    pub fn launch_at(&mut self, at: WallNanos) {
        if let Inner::Datagrams(inner) = &mut self.0 {
            inner.launch_at(at);
        }
    }

    /// Numbers of frames whose launch time was not kept, so far.
    ///
    /// # Errors
    /// The transmitter is unusable.
    pub fn unlaunched(&mut self) -> io::Result<Unlaunched> {
        match &mut self.0 {
            Inner::Datagrams(inner) => inner.unlaunched(),
            Inner::Xdp(_) => Ok(Unlaunched::default()),
        }
    }

    /// Hands all committed frames to the kernel, in order, without waiting for room.
    ///
    /// # Errors
    /// The transmitter is unusable, for example because its interface is gone.
    #[inline]
    pub fn flush(&mut self) -> io::Result<Flushed> {
        match &mut self.0 {
            Inner::Datagrams(inner) => inner.flush(),
            Inner::Xdp(inner) => inner.flush(),
        }
    }

    /// Greatest number of frames in one flush.
    pub fn batch(&self) -> usize {
        match &self.0 {
            Inner::Datagrams(_) => datagrams::BATCH,
            Inner::Xdp(_) => xdp::BATCH,
        }
    }
}
