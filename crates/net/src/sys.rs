//! The few calls every module needs.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The result of a call that answers -1 on failure.
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

/// `setsockopt` with a plain value.
pub(crate) fn set_option<T: Plain>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> io::Result<()> {
    // SAFETY: the pointer and length describe `value`, which lives across the call; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(result).map(drop)
}

/// `getsockopt` into a plain value; what the kernel does not fill keeps the value of `initial`.
pub(crate) fn get_option<T: Plain>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    initial: T,
) -> io::Result<T> {
    let mut value = initial;
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and length describe `value`; the kernel writes at most `length` bytes into it and
    // every bit pattern of a `Plain` type is valid.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length) };
    check(result).map(|_| value)
}
