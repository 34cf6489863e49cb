//! Addresses of UDP access points as the kernel has them, of either family.

use std::mem::MaybeUninit;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};

use crate::sys::{length_of, short};

/// An address to hand to the kernel.
#[derive(Clone, Copy)]
pub(crate) enum KernelAddress {
    V4(libc::sockaddr_in),
    V6(libc::sockaddr_in6),
}

impl From<SocketAddr> for KernelAddress {
    fn from(at: SocketAddr) -> Self {
        match at {
            SocketAddr::V4(at) => Self::V4(address_in(at)),
            SocketAddr::V6(at) => Self::V6(libc::sockaddr_in6 {
                sin6_family: short(libc::AF_INET6 as i64),
                sin6_port: at.port().to_be(),
                sin6_flowinfo: at.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: at.ip().octets() },
                sin6_scope_id: at.scope_id(),
            }),
        }
    }
}

impl KernelAddress {
    /// Pointer and length for a call; valid as long as `self` is.
    pub(crate) fn raw(&self) -> (*const libc::sockaddr, u32) {
        match self {
            Self::V4(at) => (std::ptr::from_ref(at).cast(), length_of::<libc::sockaddr_in>()),
            Self::V6(at) => (std::ptr::from_ref(at).cast(), length_of::<libc::sockaddr_in6>()),
        }
    }
}

pub(crate) fn address_in(at: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: short(libc::AF_INET as i64),
        sin_port: at.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*at.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

/// Room for an address that the kernel writes.
#[repr(C)]
pub(crate) union AddressRoom {
    family: libc::sa_family_t,
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl AddressRoom {
    /// Zeroed room: of no family.
    pub(crate) fn empty() -> Self {
        // SAFETY: every bit pattern of its fields, which are integers, is valid.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }

    /// What the kernel wrote; `None`: nothing, or an address of another family.
    pub(crate) fn read(&self) -> Option<SocketAddr> {
        // SAFETY: all bytes were zeroed or written by the kernel, and every bit pattern of the fields is valid; the
        // family is the first field of each.
        unsafe {
            match i32::from(self.family) {
                libc::AF_INET => Some(SocketAddr::V4(SocketAddrV4::new(
                    u32::from_be(self.v4.sin_addr.s_addr).into(),
                    u16::from_be(self.v4.sin_port),
                ))),
                libc::AF_INET6 => Some(SocketAddr::V6(SocketAddrV6::new(
                    self.v6.sin6_addr.s6_addr.into(),
                    u16::from_be(self.v6.sin6_port),
                    0,
                    self.v6.sin6_scope_id,
                ))),
                _ => None,
            }
        }
    }
}
