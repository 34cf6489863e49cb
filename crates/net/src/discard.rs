//! Sink socket for background load (discard, RFC 863).

use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};

use crate::error::NetError;
use crate::socket::address::address_in;
use crate::sys::{bind, set_option, socket};

/// A UDP socket that discards datagrams.
#[derive(Debug)]
pub struct DiscardSocket {
    _fd: OwnedFd,
}

impl DiscardSocket {
    /// Binds a socket to `at`, so that the host does not answer with ICMP errors. It is never read; its small buffer
    /// fills and the kernel drops the rest at once.
    ///
    /// # Errors
    /// The address is in use or not configured, or its port is below 1024 without CAP_NET_BIND_SERVICE.
    pub fn bind(at: SocketAddrV4) -> Result<Self, NetError> {
        let what = format!("cannot open the sink for background load at {at}");
        let fd = socket(libc::AF_INET, libc::SOCK_DGRAM, 0).map_err(|e| NetError::of(what.clone(), "", e))?;
        set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 1)
            .map_err(|e| NetError::of(what.clone(), "", e))?;
        bind(fd.as_fd(), &address_in(at)).map_err(|e| {
            let cure = match e.kind() {
                std::io::ErrorKind::PermissionDenied => "its port needs root or CAP_NET_BIND_SERVICE",
                _ => "is the address configured, and no other agent on it?",
            };
            NetError::of(what.clone(), cure, e)
        })?;
        Ok(Self { _fd: fd })
    }
}
