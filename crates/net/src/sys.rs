//! System calls shared by the modules.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Converts the result of a call that returns -1 on failure.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Types whose bytes may be handed to and filled by the kernel: plain integers and C structures of them,
/// valid for every bit pattern.
///
/// # Safety
/// An implementor has no padding the kernel would read as data, no pointers it would follow, and no
/// invalid bit patterns.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: integers.
unsafe impl Plain for libc::c_int {}
// SAFETY: a C structure of two integers.
unsafe impl Plain for libc::timeval {}
// SAFETY: a C structure of integers; unused for reading padding.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: a C structure of integers.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: nine integers.
unsafe impl Plain for [u32; 9] {}

// SAFETY: 84 bytes.
unsafe impl Plain for [u8; 84] {}

// SAFETY: integers; its padding is sent and read by nobody.
unsafe impl Plain for libc::sockaddr_in {}
// SAFETY: likewise.
unsafe impl Plain for libc::sockaddr_in6 {}
// SAFETY: likewise.
unsafe impl Plain for libc::sockaddr_ll {}
// SAFETY: likewise.
unsafe impl Plain for libc::sockaddr_xdp {}

/// A constant of the C headers in the type of its field.
///
/// # Panics
/// If it does not fit, which no constant used here does.
pub(crate) const fn short(constant: i64) -> u16 {
    assert!(constant >= 0 && constant <= u16::MAX as i64, "a constant of 16 bits");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    {
        constant as u16
    }
}

/// Length of a C structure, in the type that the kernel expects.
pub(crate) const fn length_of<T>() -> u32 {
    assert!(size_of::<T>() <= u16::MAX as usize, "a small structure");
    #[expect(clippy::cast_possible_truncation, reason = "checked above")]
    {
        size_of::<T>() as u32
    }
}

/// A socket that is closed on exec.
pub(crate) fn socket(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let fd = check(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: `fd` was just created and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Binds a socket to an address of its family.
pub(crate) fn bind<T: Plain>(fd: BorrowedFd<'_>, address: &T) -> io::Result<()> {
    let pointer = std::ptr::from_ref(address).cast::<libc::sockaddr>();
    // SAFETY: the pointer and length describe a live C structure, which the call only reads.
    check(unsafe { libc::bind(fd.as_raw_fd(), pointer, length_of::<T>()) }).map(drop)
}

/// Connects a socket to an address of its family.
pub(crate) fn connect<T: Plain>(fd: BorrowedFd<'_>, address: &T) -> io::Result<()> {
    let pointer = std::ptr::from_ref(address).cast::<libc::sockaddr>();
    // SAFETY: as in `bind`.
    check(unsafe { libc::connect(fd.as_raw_fd(), pointer, length_of::<T>()) }).map(drop)
}

/// The address of an interface for packet sockets; protocol 0 receives nothing.
pub(crate) fn link_address(interface: u32, protocol: u16) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: short(libc::AF_PACKET as i64),
        sll_protocol: protocol.to_be(),
        sll_ifindex: interface.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

/// Waits until a socket is readable, at most `timeout_ms`; a signal ends the wait early.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, timeout_ms: i32) -> io::Result<()> {
    let mut polled = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: `polled` is one live entry.
    match check(unsafe { libc::poll(&raw mut polled, 1, timeout_ms) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// Waits until a socket is readable, at most `ns` ns; a signal ends the wait early.
pub(crate) fn wait_readable_for(fd: BorrowedFd<'_>, ns: i64) -> io::Result<()> {
    let mut polled = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let limit = libc::timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 };
    // SAFETY: `polled` is one live entry, `limit` lives across the call, and a null mask leaves signals be.
    match check(unsafe { libc::ppoll(&raw mut polled, 1, &raw const limit, std::ptr::null()) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// `setsockopt` with a plain value.
pub(crate) fn set_option<T: Plain>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> io::Result<()> {
    // SAFETY: the pointer and length describe `value`, which lives across the call; the kernel only reads it.
    let result =
        unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), length_of::<T>()) };
    check(result).map(drop)
}

/// `getsockopt` into a plain value; bytes that the kernel does not fill keep those of `initial`.
pub(crate) fn get_option<T: Plain>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    initial: T,
) -> io::Result<T> {
    let mut value = initial;
    let mut length = length_of::<T>();
    // SAFETY: the pointer and length describe `value`; the kernel writes at most `length` bytes into it and
    // every bit pattern of a `Plain` type is valid.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length) };
    check(result).map(|_| value)
}
