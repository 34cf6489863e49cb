//! Sending frames by many interfaces, in batches.
//!
//! Uses `AF_XDP` if available, with one socket for each port and one memory for all of them: between namespaces a frame
//! then takes the kernel a third less time than by a packet socket. Otherwise one packet socket, past the queueing
//! disciplines, with one call for the frames of all ports. Both copy a frame into the memory that is handed over, so
//! that the caller can reuse its buffer.
//!
//! `AF_XDP` is not used for receiving: see `packet_ports`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use wg_frame::time::WallNanos;

use crate::clock;
use crate::error::NetError;
use crate::interface::Interface;
use crate::sys::{length_of, link_address, set_option, socket};
use crate::transmit::Flushed;
use crate::xdp::{FRAME_LEN, FramePool, XdpConfig, XdpPort};

/// Frames of a port handed over by one flush: an `AF_XDP` socket sends no more in one call (`max_tx_budget` of the
/// kernel).
const BATCH: usize = 32;
/// Greatest number of frames in one call of the packet socket.
const SLOTS: usize = 64;
/// Size of a port's transmit ring, a power of two.
const RING: u32 = 512;
/// Number of frame buffers shared by the ports: 8 MiB. The kernel returns most of them before the sending call ends.
const FRAMES: u32 = 4_096;
const WHAT: &str = "cannot send by the ports of the network";

/// Report about frames of a port that were handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortsLeft {
    /// Port: index in the list of interfaces.
    pub port: usize,
    /// Beginning of the call that hands them over, by `CLOCK_REALTIME`.
    pub at: WallNanos,
    /// Numbers of frames that the kernel took and refused: the oldest of those pushed and not yet reported.
    pub frames: Flushed,
}

/// The sending side of interfaces of one network namespace.
#[derive(Debug)]
pub struct PortSender(Inner);

#[derive(Debug)]
enum Inner {
    Xdp(XdpSender),
    Packet(Box<PacketSender>),
}

impl PortSender {
    /// Opens an `AF_XDP` sender, or, with the reason, a packet socket.
    ///
    /// # Errors
    /// CAP_NET_RAW is missing.
    pub fn open(interfaces: &[Interface]) -> Result<(Self, Option<NetError>), NetError> {
        match XdpSender::open(interfaces) {
            Ok(open) => Ok((Self(Inner::Xdp(open)), None)),
            Err(why) => Ok((Self::packet(interfaces)?, Some(why))),
        }
    }

    /// Opens a packet socket sender.
    ///
    /// # Errors
    /// CAP_NET_RAW is missing.
    pub fn packet(interfaces: &[Interface]) -> Result<Self, NetError> {
        PacketSender::open(interfaces).map(|open| Self(Inner::Packet(Box::new(open))))
    }

    /// Name of the access method.
    pub const fn access(&self) -> &'static str {
        match self.0 {
            Inner::Xdp(_) => "af_xdp",
            Inner::Packet(_) => "packet",
        }
    }

    /// Queues a frame without FCS, to leave a port with the next [`flush`](Self::flush). False: it is too long, or the
    /// port has no room before a flush.
    #[inline]
    pub fn push(&mut self, port: usize, bytes: &[u8]) -> bool {
        match &mut self.0 {
            Inner::Xdp(inner) => inner.push(port, bytes),
            Inner::Packet(inner) => inner.push(port, bytes),
        }
    }

    /// Whether no frame is queued.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        match &self.0 {
            Inner::Xdp(inner) => inner.touched.is_empty(),
            Inner::Packet(inner) => inner.count == 0,
        }
    }

    /// Whether as many frames are queued as one call takes.
    #[inline]
    pub const fn is_full(&self) -> bool {
        match &self.0 {
            Inner::Xdp(inner) => inner.is_full,
            Inner::Packet(inner) => inner.count == SLOTS,
        }
    }

    /// Hands the queued frames to the kernel, without waiting for room, and reports the result for each port.
    #[inline]
    pub fn flush(&mut self, left: impl FnMut(PortsLeft)) {
        match &mut self.0 {
            Inner::Xdp(inner) => inner.flush(left),
            Inner::Packet(inner) => inner.flush(left),
        }
    }
}

#[derive(Debug)]
struct XdpSender {
    // Dropped before the memory that they use.
    ports: Vec<XdpPort>,
    pool: FramePool,
    /// Number of frames in each port's ring that were not handed over.
    waiting: Vec<usize>,
    /// Ports with such frames.
    touched: Vec<usize>,
    is_full: bool,
}

impl XdpSender {
    fn open(interfaces: &[Interface]) -> Result<Self, NetError> {
        let mut pool = FramePool::new(FRAMES).map_err(|e| NetError::of(WHAT, "8 MiB are needed", e))?;
        let config = || XdpConfig { transmit: RING, ..XdpConfig::default() };
        let ports = interfaces.iter().map(|one| XdpPort::open(&mut pool, one, config()));
        let ports: Vec<XdpPort> = ports.collect::<Result<_, _>>()?;
        let touched = Vec::with_capacity(ports.len());
        Ok(Self { waiting: vec![0; ports.len()], ports, pool, touched, is_full: false })
    }

    #[inline]
    fn push(&mut self, port: usize, bytes: &[u8]) -> bool {
        let Some(own) = self.ports.get_mut(port).filter(|_| bytes.len() <= FRAME_LEN) else { return false };
        if self.pool.free() == 0 {
            own.reap(&mut self.pool);
        }
        let Some(mut frame) = self.pool.take() else {
            self.ports.iter_mut().for_each(|one| one.reap(&mut self.pool));
            return false;
        };
        self.pool.memory_mut(&mut frame)[..bytes.len()].copy_from_slice(bytes);
        self.pool.set_len(&mut frame, bytes.len());
        if let Err(frame) = own.send(frame) {
            self.pool.give_back(frame);
            return false;
        }
        if self.waiting[port] == 0 {
            self.touched.push(port);
        }
        self.waiting[port] += 1;
        self.is_full |= self.waiting[port] >= BATCH;
        true
    }

    fn flush(&mut self, mut left: impl FnMut(PortsLeft)) {
        let Self { ports, pool, waiting, touched, is_full } = self;
        touched.retain(|&port| {
            let at = clock::realtime();
            // An interface that is gone never returns its frames.
            let frames = ports[port].flush_some(pool).unwrap_or(Flushed { taken: 0, refused: waiting[port] });
            waiting[port] = waiting[port].saturating_sub(frames.taken + frames.refused);
            left(PortsLeft { port, at, frames });
            waiting[port] > 0
        });
        *is_full = false;
    }
}

struct PacketSender {
    fd: OwnedFd,
    addresses: Vec<libc::sockaddr_ll>,
    slots: Box<[[u8; FRAME_LEN]]>,
    lengths: [usize; SLOTS],
    ports: [usize; SLOTS],
    count: usize,
}

impl std::fmt::Debug for PacketSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PacketSender").field("fd", &self.fd).field("count", &self.count).finish()
    }
}

impl PacketSender {
    fn open(interfaces: &[Interface]) -> Result<Self, NetError> {
        let right = "packet sockets need root or CAP_NET_RAW";
        // Protocol 0: nothing ever arrives.
        let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, 0).map_err(|e| NetError::of(WHAT, right, e))?;
        // Past the queueing disciplines, which would only add another queue.
        set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)
            .map_err(|e| NetError::of(WHAT, "", e))?;
        Ok(Self {
            fd,
            addresses: interfaces.iter().map(|one| link_address(one.index, 0)).collect(),
            slots: vec![[0; FRAME_LEN]; SLOTS].into_boxed_slice(),
            lengths: [0; SLOTS],
            ports: [0; SLOTS],
            count: 0,
        })
    }

    #[inline]
    fn push(&mut self, port: usize, bytes: &[u8]) -> bool {
        let at = self.count;
        if at == SLOTS || port >= self.addresses.len() || bytes.len() > FRAME_LEN {
            return false;
        }
        self.slots[at][..bytes.len()].copy_from_slice(bytes);
        (self.lengths[at], self.ports[at]) = (bytes.len(), port);
        self.count += 1;
        true
    }

    fn flush(&mut self, mut left: impl FnMut(PortsLeft)) {
        let count = std::mem::take(&mut self.count);
        let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; SLOTS];
        // SAFETY: an mmsghdr of zeroes is a valid "nothing".
        let mut headers: [libc::mmsghdr; SLOTS] = unsafe { std::mem::zeroed() };
        for i in 0..count {
            parts[i] = libc::iovec { iov_base: self.slots[i].as_mut_ptr().cast(), iov_len: self.lengths[i] };
            let header = &mut headers[i].msg_hdr;
            (header.msg_iov, header.msg_iovlen) = (&raw mut parts[i], 1);
            header.msg_name = (&raw mut self.addresses[self.ports[i]]).cast();
            header.msg_namelen = length_of::<libc::sockaddr_ll>();
        }
        let mut next = 0;
        while next < count {
            let at = clock::realtime();
            // SAFETY: `headers[next..count]` point at live parts of live slots and at live addresses, which sending
            // only reads.
            let sent = unsafe {
                libc::sendmmsg(
                    self.fd.as_raw_fd(),
                    headers[next..count].as_mut_ptr(),
                    libc::c_uint::try_from(count - next).unwrap_or(1),
                    libc::MSG_DONTWAIT as _,
                )
            };
            if sent < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                continue;
            }
            let taken = usize::try_from(sent).unwrap_or(0);
            for &port in &self.ports[next..next + taken] {
                left(PortsLeft { port, at, frames: Flushed { taken: 1, refused: 0 } });
            }
            next += taken;
            // The error that stopped the call is reported by the next one only: the first frame that was not taken may
            // yet be.
            if taken == 0 {
                left(PortsLeft { port: self.ports[next], at, frames: Flushed { taken: 0, refused: 1 } });
                next += 1;
            }
        }
    }
}
