//! The socket of an injector: bursts of datagrams nobody looks at.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::error::NetError;
use crate::socket::address_in;
use crate::sys::{check, set_option};

/// Datagrams handed to the kernel in one call.
const BATCH: usize = 64;

/// A UDP socket that sends bursts of equal datagrams to one destination, or swallows them.
#[derive(Debug)]
pub struct FloodSocket {
    fd: OwnedFd,
}

impl FloodSocket {
    /// A socket that sends from `from` to `to`.
    ///
    /// # Errors
    /// The source address is not configured or the destination has no route.
    pub fn sender(from: Ipv4Addr, to: SocketAddrV4) -> Result<Self, NetError> {
        let what = format!("cannot open the injector's socket from {from} to {to}");
        let socket = Self::open(&what)?;
        // A loss in the queue discipline must be seen, or the load made would be overstated.
        set_option(socket.fd.as_fd(), libc::IPPROTO_IP, libc::IP_RECVERR, 1)
            .map_err(|e| NetError::of(what.clone(), "", e))?;
        set_option(socket.fd.as_fd(), libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
            .map_err(|e| NetError::of(what.clone(), "", e))?;
        if set_option(socket.fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, 4 << 20).is_err() {
            set_option(socket.fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, 4 << 20)
                .map_err(|e| NetError::of(what.clone(), "", e))?;
        }
        let local = address_in(SocketAddrV4::new(from, 0));
        let remote = address_in(to);
        for (address, call) in [
            (local, libc::bind as unsafe extern "C" fn(_, _, _) -> _),
            (remote, libc::connect as unsafe extern "C" fn(_, _, _) -> _),
        ] {
            // SAFETY: the pointer and length describe a live sockaddr_in; both calls only read it.
            let done = unsafe {
                call(
                    socket.fd.as_raw_fd(),
                    (&raw const address).cast::<libc::sockaddr>(),
                    size_of::<libc::sockaddr_in>() as u32,
                )
            };
            check(done)
                .map_err(|e| NetError::of(what.clone(), "is the address configured on this host?", e))?;
        }
        Ok(socket)
    }

    /// A socket that swallows what is sent to `at`, so that nobody answers with ICMP errors. Nobody reads it;
    /// its small buffer fills and the kernel drops the rest at once.
    ///
    /// # Errors
    /// The address is in use or not configured.
    pub fn sink(at: SocketAddrV4) -> Result<Self, NetError> {
        let what = format!("cannot open the sink for background load at {at}");
        let socket = Self::open(&what)?;
        set_option(socket.fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 1)
            .map_err(|e| NetError::of(what.clone(), "", e))?;
        let address = address_in(at);
        // SAFETY: the pointer and length describe a live sockaddr_in.
        let bound = unsafe {
            libc::bind(
                socket.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_in>() as u32,
            )
        };
        check(bound).map_err(|e| {
            NetError::of(what.clone(), "is the address configured, and no other agent on it?", e)
        })?;
        Ok(socket)
    }

    fn open(what: &str) -> Result<Self, NetError> {
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(NetError::last(what, ""));
        }
        // SAFETY: `fd` was just created and nobody else owns it.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Sends `count` datagrams of `payload` back to back without waiting; returns how many the kernel took.
    /// One the queue discipline refused is not counted and not tried again.
    ///
    /// # Errors
    /// The socket is unusable.
    pub fn burst(&self, payload: &[u8], count: usize) -> io::Result<usize> {
        let mut part = libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
        // SAFETY: an mmsghdr of zeroes is a valid "nothing".
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for header in &mut headers {
            header.msg_hdr.msg_iov = &raw mut part;
            header.msg_hdr.msg_iovlen = 1;
        }
        let (mut offered, mut taken) = (0, 0);
        while offered < count {
            let now = (count - offered).min(BATCH);
            // SAFETY: `headers` holds at least `now` entries that share one live iovec, which sending only reads.
            let sent = unsafe {
                libc::sendmmsg(
                    self.fd.as_raw_fd(),
                    headers.as_mut_ptr(),
                    now as libc::c_uint,
                    libc::MSG_DONTWAIT as _,
                )
            };
            if sent >= 0 {
                let sent = sent.unsigned_abs() as usize;
                taken += sent;
                offered += sent;
                if sent > 0 {
                    continue;
                }
            } else {
                let error = io::Error::last_os_error();
                match error.raw_os_error() {
                    Some(libc::EINTR) => continue,
                    Some(
                        libc::ENOBUFS
                        | libc::EAGAIN
                        | libc::ECONNREFUSED
                        | libc::EHOSTUNREACH
                        | libc::ENETUNREACH,
                    ) => {}
                    _ => return Err(error),
                }
            }
            offered += 1;
        }
        Ok(taken)
    }
}
