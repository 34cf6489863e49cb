//! Real-time requests of a servicing thread to the host. Each request is granted or returns the reason; a host that
//! grants none still measures, and the run reports it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::enclose::in_child;
use crate::sys::check;

/// Gives the calling thread the SCHED_FIFO policy at `priority` (1 to 99). Threads that it starts later get the
/// ordinary policy.
///
/// # Errors
/// The right is missing (root, CAP_SYS_NICE or RLIMIT_RTPRIO), or the control group has no real-time budget.
pub fn fifo(priority: u32) -> io::Result<()> {
    let priority = libc::c_int::try_from(priority).unwrap_or(libc::c_int::MAX);
    scheduling(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority)
}

/// Gives the calling thread the lowest priority: SCHED_BATCH, nice 19.
///
/// # Errors
/// None on a supported kernel.
pub fn background() -> io::Result<()> {
    scheduling(libc::SCHED_BATCH, 0)?;
    nice(19)
}

/// Gives the calling thread only the time that no other thread wants: SCHED_IDLE.
///
/// # Errors
/// None on a supported kernel.
pub fn idle() -> io::Result<()> {
    scheduling(libc::SCHED_IDLE, 0)
}

/// Calls the kernel directly: musl's function of this name always returns ENOSYS, so that an agent linked with it would
/// never be a real-time one.
fn scheduling(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    // The kernel's sched_param is this one integer.
    // SAFETY: `priority` lives across the call; 0 names the calling thread.
    let done = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets the nice value of the calling thread, -20 (first) to 19 (last).
///
/// # Errors
/// A lower value than before needs CAP_SYS_NICE or RLIMIT_NICE.
pub fn nice(value: i32) -> io::Result<()> {
    // SAFETY: takes no pointers; 0 names the calling thread.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, value) }).map(drop)
}

/// Binds the calling thread to one CPU.
///
/// # Errors
/// The CPU does not exist or is not allowed for this process.
pub fn bind_to_core(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: a cpu_set_t of zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `core` is below CPU_SETSIZE, checked above.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: `set` lives across the call and its size is given.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) }).map(drop)
}

/// Locks every present and future page of the process in memory. Under a finite RLIMIT_MEMLOCK later allocations would
/// fail at the limit, so nothing is locked then unless the limit can be raised or does not apply to this process.
///
/// # Errors
/// RLIMIT_MEMLOCK is finite, may not be raised (CAP_SYS_RESOURCE) and applies (no CAP_IPC_LOCK).
pub fn lock_memory() -> io::Result<()> {
    let unlimited = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    let mut limit = unlimited;
    // SAFETY: `limit` is a live rlimit the call fills.
    check(unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) })?;
    if limit.rlim_cur != libc::RLIM_INFINITY && !exempt_from_lock_limit() {
        // SAFETY: `unlimited` lives across the call, which only reads it.
        check(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const unlimited) })?;
    }
    // SAFETY: takes no pointers; locking pages changes no contents.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }).map(drop)
}

/// Lets timers of the calling thread fire within 1 ns of their time instead of 50 µs; real-time threads have no slack
/// anyway.
///
/// # Errors
/// None on a supported kernel.
pub fn no_timer_slack() -> io::Result<()> {
    // SAFETY: an integer argument only.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) }).map(drop)
}

/// Makes the kernel kill this process when the thread that started it ends. To be called first: a parent that has ended
/// before is not noticed.
///
/// # Errors
/// None on a supported kernel.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: an integer argument only.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(drop)
}

/// Makes the kernel kill the program that `command` starts when the calling thread ends, and so when this process is
/// killed. The calling thread must be the one that starts it, and must outlive it.
pub fn die_with_this_thread(command: &mut Command) -> &mut Command {
    let starter = std::process::id();
    // SAFETY: between fork and exec only prctl(2) and getppid(2) are called, which are async-signal-safe; nothing
    // allocates.
    unsafe {
        command.pre_exec(move || {
            die_with_parent()?;
            // The starter may have ended before the prctl.
            if u32::try_from(parent()) == Ok(starter) {
                Ok(())
            } else {
                Err(io::Error::from_raw_os_error(libc::ESRCH))
            }
        })
    }
}

/// Process id of the parent; 1 or another reaper once it has gone.
pub fn parent() -> i32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::getppid() }
}

/// Yields the CPU to threads of the same priority; returns at once if there are none.
pub fn yield_now() {
    // SAFETY: takes no arguments and cannot fail on Linux.
    unsafe { libc::sched_yield() };
}

/// While this exists, no CPU enters a sleep state with an exit latency.
#[derive(Debug)]
pub struct AwakeCores {
    _file: File,
}

/// Requests that CPUs wake without delay (`/dev/cpu_dma_latency` held at 0 µs).
///
/// # Errors
/// The device is missing or only root may write to it.
pub fn keep_cores_awake() -> io::Result<AwakeCores> {
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency")?;
    file.write_all(&0_i32.to_ne_bytes())?;
    Ok(AwakeCores { _file: file })
}

/// Whether CAP_IPC_LOCK is held in the initial user namespace, the only one where it counts.
fn exempt_from_lock_limit() -> bool {
    const CAP_IPC_LOCK: u64 = 1 << 14;
    let effective = std::fs::read_to_string("/proc/thread-self/status").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(line.trim(), 16).ok()
    });
    let initial = std::fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]));
    initial && effective.is_some_and(|set| set & CAP_IPC_LOCK != 0)
}

/// Whether [`lock_memory`] would be granted; tried in a child, so that this process's locks and limits stay.
///
/// # Errors
/// The refusal.
pub fn can_lock_memory() -> io::Result<()> {
    in_child(lock_memory)
}
