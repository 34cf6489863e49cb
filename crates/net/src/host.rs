//! What the host did to us: preemption and stolen time.

use std::fs;

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

/// Release of the running kernel, for example `6.1.0-18-amd64`.
pub fn kernel_release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").map_or_else(|_| "unknown".into(), |s| s.trim().into())
}

/// Whether the effective user is root (of this user namespace).
pub fn is_root() -> bool {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
