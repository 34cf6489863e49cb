//! Entering a network namespace.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::error::NetError;
use crate::sys::check;

/// Moves the calling thread into the network namespace of the file `path`. Threads started later inherit it, so call
/// this before any other thread exists.
///
/// # Errors
/// The file is missing or is no network namespace, or CAP_SYS_ADMIN is missing.
pub fn enter_network(path: &Path) -> Result<(), NetError> {
    let what = || format!("cannot enter the network namespace {}", path.display());
    let file = File::open(path).map_err(|e| NetError::of(what(), "`ip netns list` shows what exists", e))?;
    // SAFETY: takes a live descriptor and no pointers.
    let entered = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
    check(entered)
        .map(drop)
        .map_err(|e| NetError::of(what(), "it must be a network namespace, and CAP_SYS_ADMIN is needed", e))
}
