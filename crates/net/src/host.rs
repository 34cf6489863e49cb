//! Facts of the host: preemption, stolen time, disk space.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{fs, io};

use crate::sys::check;

/// Involuntary context switches of the calling thread so far.
pub fn involuntary_switches() -> u64 {
    // SAFETY: an rusage of zeroes is valid and the call fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a live rusage.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage.ru_nivcsw.unsigned_abs()
}

/// Time the hypervisor gave to others while this machine wanted to run, ns, all cores together; `None` where the
/// kernel does not tell.
pub fn steal_ns() -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks: u64 = text.lines().next()?.split_whitespace().nth(8)?.parse().ok()?;
    // SAFETY: takes no pointers.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|n| *n > 0)?;
    Some(ticks.saturating_mul(1_000_000_000 / per_second))
}

/// Room on a disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// In all.
    pub total: u64,
    /// Free to this user.
    pub free: u64,
}

/// The room on the disk that `path` is on.
///
/// # Errors
/// There is no such path.
pub fn disk_space(path: &Path) -> io::Result<DiskSpace> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a statvfs of zeroes is valid and the call fills it.
    let mut told: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` is a live terminated string and `told` a live statvfs.
    check(unsafe { libc::statvfs(path.as_ptr(), &raw mut told) })?;
    #[expect(clippy::useless_conversion, reason = "its types differ between C libraries")]
    let bytes = |blocks| u64::from(told.f_frsize).saturating_mul(u64::from(blocks));
    Ok(DiskSpace { total: bytes(told.f_blocks), free: bytes(told.f_bavail) })
}

/// The name of this host, as it has it for itself.
pub fn name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "unknown".into(), |s| s.trim().into())
}

/// Release of the running kernel, for example `6.1.0-18-amd64`.
pub fn kernel_release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").map_or_else(|_| "unknown".into(), |s| s.trim().into())
}

/// Whether the effective user is root (of this user namespace).
pub fn is_root() -> bool {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_room_and_what_is_not_there_has_none() {
        let told = disk_space(Path::new("/")).expect("there is a root");
        assert!(told.total > 0 && told.free <= told.total, "{told:?}");
        assert!(disk_space(Path::new("/no/such/path")).is_err());
    }
}
