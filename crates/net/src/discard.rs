//! The socket background load ends in.

use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::error::NetError;
use crate::socket::address_in;
use crate::sys::{check, set_option};

/// A UDP socket that swallows datagrams.
#[derive(Debug)]
pub struct DiscardSocket {
    _fd: OwnedFd,
}

impl DiscardSocket {
    /// A socket that swallows what is sent to `at`, so that nobody answers with ICMP errors. Nobody reads it;
    /// its small buffer fills and the kernel drops the rest at once.
    ///
    /// # Errors
    /// The address is in use or not configured.
    pub fn bind(at: SocketAddrV4) -> Result<Self, NetError> {
        let what = format!("cannot open the sink for background load at {at}");
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(NetError::last(what, ""));
        }
        // SAFETY: `fd` was just created and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 1)
            .map_err(|e| NetError::of(what.clone(), "", e))?;
        let address = address_in(at);
        // SAFETY: the pointer and length describe a live sockaddr_in.
        let bound = unsafe {
            libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_in>() as u32)
        };
        check(bound).map_err(|e| {
            NetError::of(what.clone(), "is the address configured, and no other agent on it?", e)
        })?;
        Ok(Self { _fd: fd })
    }
}
