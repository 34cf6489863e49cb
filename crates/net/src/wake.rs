//! A wake-up between threads that can be awaited together with a socket.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::error::NetError;

/// A wake-up signal (eventfd).
#[derive(Debug)]
pub struct Wake {
    fd: OwnedFd,
}

impl Wake {
    /// A wake-up that is not signalled.
    ///
    /// # Errors
    /// The process is out of file descriptors.
    pub fn new() -> Result<Self, NetError> {
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(NetError::last("eventfd refused", "raise the limit of open files"));
        }
        // SAFETY: `fd` was just created and nobody else owns it.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Wakes the waiter; never blocks.
    pub fn signal(&self) {
        let one = 1_u64;
        // SAFETY: reads the eight bytes of `one`. A full counter (EAGAIN) already means "signalled".
        unsafe { libc::write(self.fd.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Forgets earlier signals; never blocks.
    pub fn clear(&self) {
        let mut count = 0_u64;
        // SAFETY: fills the eight bytes of `count`; EAGAIN leaves it alone.
        unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
