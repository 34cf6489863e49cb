//! Memory shared with the kernel.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// A mapping, unmapped when dropped. Code that reads or writes through it must account for concurrent accesses of the
/// kernel.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is owned memory; the pointer is not tied to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// A private anonymous mapping, zeroed and resident.
    pub(crate) fn anonymous(len: usize) -> io::Result<Self> {
        Self::map(len, -1, 0, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE)
    }

    /// A mapping of `len` bytes of `fd` at `offset`.
    pub(crate) fn of(fd: BorrowedFd<'_>, len: usize, offset: i64) -> io::Result<Self> {
        Self::map(len, fd.as_raw_fd(), offset, libc::MAP_SHARED | libc::MAP_POPULATE)
    }

    fn map(len: usize, fd: libc::c_int, offset: i64, flags: libc::c_int) -> io::Result<Self> {
        // SAFETY: no address is asked for, so nothing that exists is replaced.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                fd,
                offset as libc::off_t,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(found) if start != libc::MAP_FAILED => Ok(Self { start: found, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Address of the first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The address of `T` at byte `at`.
    ///
    /// # Panics
    /// If it is outside the mapping, or not aligned.
    pub(crate) fn at<T>(&self, at: usize) -> *mut T {
        assert!(at.checked_add(size_of::<T>()).is_some_and(|end| end <= self.len), "beyond the mapping");
        // SAFETY: `at` lies within the mapping, checked above.
        let pointer = unsafe { self.start().add(at) }.cast::<T>();
        assert!(pointer.is_aligned(), "misaligned");
        pointer
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: start and length are those of the mapping, which nobody uses after its owner.
        unsafe { libc::munmap(self.start().cast(), self.len) };
    }
}
