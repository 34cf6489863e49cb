//! `sendmmsg` on UDP and packet sockets.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use wg_frame::time::WallNanos;

use super::launch::{self, Launch, LaunchTime, Unlaunched};
use super::slot::{Flushed, SLOT_LEN, Slot};
use crate::error::NetError;
use crate::interface::Interface;
use crate::socket::address::address_in;
use crate::sys::{bind, connect, link_address, set_option, socket};

/// Number of frames in one system call.
pub(super) const BATCH: usize = 64;
/// Requested buffer for frames under way, in bytes.
const SEND_BUFFER: libc::c_int = 4 << 20;

/// Slots, and the headers that point to them. Both are boxed and never move.
pub(super) struct Datagrams {
    fd: OwnedFd,
    slots: Box<[[u8; SLOT_LEN]]>,
    templates: [u32; BATCH],
    lengths: [usize; BATCH],
    committed: usize,
    /// Launch parameters, and the launch time of each frame, if frames are launched.
    launch: Option<(Launch, [LaunchTime; BATCH])>,
    unlaunched: Unlaunched,
}

impl std::fmt::Debug for Datagrams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Datagrams").field("fd", &self.fd).field("committed", &self.committed).finish()
    }
}

impl Datagrams {
    pub(super) fn udp(from: SocketAddrV4, to: SocketAddrV4) -> Result<Self, NetError> {
        let what = format!("cannot open a generator's socket from {from} to {to}");
        let open = Self::open(libc::AF_INET, libc::SOCK_DGRAM, &what, "")?;
        let plain = |e| NetError::of(what.clone(), "", e);
        let fd = open.fd.as_fd();
        // A drop in the queueing discipline must be noticed, or the load would be overstated.
        set_option(fd, libc::IPPROTO_IP, libc::IP_RECVERR, 1).map_err(plain)?;
        set_option(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO).map_err(plain)?;
        // Several streams of one host may use one source port.
        set_option(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1).map_err(plain)?;
        let unconfigured = |e| NetError::of(what.clone(), "is the address configured on this host?", e);
        bind(fd, &address_in(from)).map_err(unconfigured)?;
        connect(fd, &address_in(to)).map_err(unconfigured)?;
        Ok(open)
    }

    pub(super) fn packet(interface: &Interface, bypass: bool) -> Result<Self, NetError> {
        let what = format!("cannot open a generator's packet socket on {}", interface.name);
        let cure = "packet sockets need root or CAP_NET_RAW";
        let open = Self::open(libc::AF_PACKET, libc::SOCK_RAW, &what, cure)?;
        let plain = |e| NetError::of(what.clone(), "", e);
        let fd = open.fd.as_fd();
        if bypass {
            set_option(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1).map_err(plain)?;
        }
        bind(fd, &link_address(interface.index, 0)).map_err(plain)?;
        Ok(open)
    }

    fn open(
        family: libc::c_int,
        kind: libc::c_int,
        what: &str,
        cure: &'static str,
    ) -> Result<Self, NetError> {
        let fd = socket(family, kind, 0).map_err(|e| NetError::of(what, cure, e))?;
        if set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BUFFER).is_err() {
            set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, SEND_BUFFER)
                .map_err(|e| NetError::of(what, "", e))?;
        }
        Ok(Self {
            fd,
            slots: vec![[0; SLOT_LEN]; BATCH].into_boxed_slice(),
            templates: [0; BATCH],
            lengths: [0; BATCH],
            committed: 0,
            launch: None,
            unlaunched: Unlaunched::default(),
        })
    }

    pub(super) fn launching(interface: &Interface, launch: Launch) -> Result<Self, NetError> {
        let mut open = Self::packet(interface, false)?;
        Launch::enable(&open.fd).map_err(|e| {
            let what = format!("cannot give launch times to frames on {}", interface.name);
            NetError::of(what, "Linux 4.19 or later is needed", e)
        })?;
        open.launch = Some((launch, [launch.time(WallNanos::new(0)); BATCH]));
        Ok(open)
    }

    #[inline]
    pub(super) fn launch_at(&mut self, at: WallNanos) {
        if let (Some((launch, times)), Some(last)) = (&mut self.launch, self.committed.checked_sub(1)) {
            times[last] = launch.time(at);
        }
    }

    pub(super) fn unlaunched(&mut self) -> io::Result<Unlaunched> {
        if self.launch.is_some() {
            launch::take_unlaunched(&self.fd, &mut self.unlaunched)?;
        }
        Ok(self.unlaunched)
    }

    #[inline]
    pub(super) fn slot(&mut self) -> Option<Slot<'_>> {
        let at = self.committed;
        let bytes = self.slots.get_mut(at)?;
        Some(Slot { bytes, template: &mut self.templates[at] })
    }

    #[inline]
    pub(super) fn commit(&mut self, len: usize) {
        if self.committed < BATCH {
            self.lengths[self.committed] = len.min(SLOT_LEN);
            self.committed += 1;
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<Flushed> {
        let count = std::mem::take(&mut self.committed);
        if count == 1 && self.launch.is_none() {
            return self.send_one();
        }
        let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        // SAFETY: an mmsghdr of zeroes is a valid "nothing".
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for i in 0..count {
            parts[i] = libc::iovec { iov_base: self.slots[i].as_mut_ptr().cast(), iov_len: self.lengths[i] };
            headers[i].msg_hdr.msg_iov = &raw mut parts[i];
            headers[i].msg_hdr.msg_iovlen = 1;
            if let Some((_, times)) = &mut self.launch {
                headers[i].msg_hdr.msg_control = (&raw mut times[i]).cast();
                headers[i].msg_hdr.msg_controllen = size_of::<LaunchTime>() as _;
            }
        }
        let mut done = Flushed::default();
        let mut at = 0;
        while at < count {
            // SAFETY: `headers[at..count]` point at live parts of live slots and at live control messages, which
            // sending only reads.
            let sent = unsafe {
                libc::sendmmsg(
                    self.fd.as_raw_fd(),
                    headers[at..count].as_mut_ptr(),
                    libc::c_uint::try_from(count - at).unwrap_or(1),
                    libc::MSG_DONTWAIT as _,
                )
            };
            if sent > 0 {
                done.taken += sent.unsigned_abs() as usize;
                at += sent.unsigned_abs() as usize;
                continue;
            }
            if refusal(io::Error::last_os_error())? {
                done.refused += 1;
                at += 1;
            }
        }
        Ok(done)
    }

    /// Sends a single frame by the shorter system call.
    fn send_one(&mut self) -> io::Result<Flushed> {
        loop {
            // SAFETY: the slot is live and at least as long as its length says.
            let sent = unsafe {
                libc::send(
                    self.fd.as_raw_fd(),
                    self.slots[0].as_ptr().cast(),
                    self.lengths[0],
                    libc::MSG_DONTWAIT,
                )
            };
            if sent >= 0 {
                return Ok(Flushed { taken: 1, refused: 0 });
            }
            if refusal(io::Error::last_os_error())? {
                return Ok(Flushed { taken: 0, refused: 1 });
            }
        }
    }
}

/// Whether a failed send lost its frame (true) or has to be repeated (false).
fn refusal(error: io::Error) -> io::Result<bool> {
    match error.raw_os_error() {
        Some(libc::EINTR) => Ok(false),
        // Full queues, an ICMP answer to an earlier datagram, a link that is down.
        Some(
            libc::ENOBUFS
            | libc::EAGAIN
            | libc::ECONNREFUSED
            | libc::EHOSTUNREACH
            | libc::ENETUNREACH
            | libc::ENETDOWN,
        ) => Ok(true),
        _ => Err(error),
    }
}
