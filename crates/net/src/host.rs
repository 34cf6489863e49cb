//! Properties of the host: preemption, stolen time, disk space, kernel.

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

/// Steal time, ns, all cores together: time given to others by the hypervisor while this machine was ready to run;
/// `None` if the kernel does not report it.
pub fn steal_ns() -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks: u64 = text.lines().next()?.split_whitespace().nth(8)?.parse().ok()?;
    // SAFETY: takes no pointers.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|n| *n > 0)?;
    Some(ticks.saturating_mul(1_000_000_000 / per_second))
}

/// Space of a disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Total space.
    pub total: u64,
    /// Space available to this user.
    pub free: u64,
}

/// Space of the disk that contains `path`.
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

/// Host name.
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
