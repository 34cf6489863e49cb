//! Clocks of the host.
//!
//! Timestamps are `CLOCK_REALTIME`, because the kernel's frame timestamps use that clock and because it is the one that
//! hosts synchronise. `CLOCK_MONOTONIC_RAW` is never stepped or slewed; the difference of the two reveals a step.

use wg_frame::time::WallNanos;

use crate::sys::check;

fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec the call fills. The clocks used here exist on every supported kernel, so the
    // call cannot fail; were it to, `time` would keep its initial value.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    nanos(time)
}

/// A `timespec` as nanoseconds; saturates after the year 2262.
pub(crate) fn nanos(time: libc::timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

/// `CLOCK_REALTIME` now, ns since 1970.
pub fn realtime() -> WallNanos {
    WallNanos::new(read(libc::CLOCK_REALTIME))
}

/// `CLOCK_MONOTONIC_RAW` now, ns since an arbitrary start.
pub fn monotonic_raw() -> i64 {
    read(libc::CLOCK_MONOTONIC_RAW)
}

/// `CLOCK_MONOTONIC` now, ns since an arbitrary start, as printed by programs of linuxptp.
pub fn monotonic() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// A leap second that the kernel will apply at the end of the day (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leap {
    /// No leap second.
    None,
    /// 23:59:60 is inserted.
    Insert,
    /// 23:59:59 is omitted.
    Delete,
}

/// State of the kernel's clock (adjtimex(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelClock {
    /// TAI minus UTC, s; 0 if not set.
    pub tai_s: i32,
    /// A pending leap second.
    pub leap: Leap,
}

/// Reads the state of the kernel's clock; changes nothing.
///
/// # Errors
/// None on a supported kernel.
pub fn kernel_clock() -> std::io::Result<KernelClock> {
    // SAFETY: a timex of zeroes is valid; `modes` 0 only reads.
    let mut told: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `told` is a live timex the call fills.
    crate::sys::check(unsafe { libc::adjtimex(&raw mut told) })?;
    let leap = match told.status & (libc::STA_INS | libc::STA_DEL) {
        libc::STA_INS => Leap::Insert,
        libc::STA_DEL => Leap::Delete,
        _ => Leap::None,
    };
    let tai_s = i32::try_from(tai_ahead() / 1_000_000_000).unwrap_or(i32::MAX);
    Ok(KernelClock { tai_s, leap })
}

/// `CLOCK_TAI` minus `CLOCK_REALTIME`, ns: whole seconds, 0 if not set in the kernel.
pub fn tai_ahead() -> i64 {
    let difference = read(libc::CLOCK_TAI) - read(libc::CLOCK_REALTIME);
    (difference + 500_000_000).div_euclid(1_000_000_000) * 1_000_000_000
}

/// Discipline of the kernel's clock, as reported to it (adjtimex(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discipline {
    /// Whether a program disciplines the clock and has reported it as synchronised.
    pub synchronised: bool,
    /// Greatest error of the clock, µs; grows until the next report.
    pub max_error_us: i64,
    /// TAI minus UTC, s; 0 if not set.
    pub tai_offset_s: i32,
}

/// Reads the discipline of the kernel's clock. Changes nothing.
///
/// # Errors
/// The kernel refuses.
pub fn discipline() -> std::io::Result<Discipline> {
    // SAFETY: a timex of zeroes is valid; `modes` 0 sets nothing.
    let mut told: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `told` is a live timex, which the call fills.
    let state = check(unsafe { libc::adjtimex(&raw mut told) })?;
    #[expect(clippy::useless_conversion, reason = "its types differ between C libraries")]
    let max_error_us = i64::from(told.maxerror);
    Ok(Discipline {
        synchronised: told.status & libc::STA_UNSYNC == 0 && state != libc::TIME_ERROR,
        max_error_us,
        tai_offset_s: told.tai,
    })
}

/// Reads both clocks together, three times, and returns the pair with the least time between its readings of
/// `CLOCK_REALTIME`.
pub fn read_pair() -> (WallNanos, i64) {
    let mut best = (i64::MAX, 0, 0);
    for _ in 0..3 {
        let before = read(libc::CLOCK_REALTIME);
        let raw = read(libc::CLOCK_MONOTONIC_RAW);
        let after = read(libc::CLOCK_REALTIME);
        let width = after.saturating_sub(before).max(0);
        if width < best.0 {
            best = (width, before + width / 2, raw);
        }
    }
    (WallNanos::new(best.1), best.2)
}

/// Sleeps until `CLOCK_REALTIME` reaches `until`; returns at once when it has passed, and early on a signal.
pub fn sleep_until(until: WallNanos) {
    let at = until.get().max(0);
    let time = libc::timespec { tv_sec: at / 1_000_000_000, tv_nsec: at % 1_000_000_000 };
    // SAFETY: `time` is a valid timespec that lives across the call; the remainder pointer may be null.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_REALTIME,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    };
}

/// Median time of one reading of `CLOCK_REALTIME` in ns, from `rounds` (at least 1) groups of 16 readings.
pub fn read_cost_ns(rounds: usize) -> i64 {
    let mut costs: Vec<i64> = (0..rounds.max(1))
        .map(|_| {
            let start = monotonic_raw();
            for _ in 0..16 {
                std::hint::black_box(realtime());
            }
            (monotonic_raw() - start) / 16
        })
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_what_it_was_told_of_its_clock() {
        let told = kernel_clock().expect("adjtimex reads without rights");
        assert_eq!(i64::from(told.tai_s) * 1_000_000_000, tai_ahead());
    }

    #[test]
    fn clocks_run_forward_and_sleep_ends_after_its_time() {
        let (wall, raw) = read_pair();
        let until = WallNanos::new(wall.get() + 2_000_000);
        sleep_until(until);
        assert!(monotonic_raw() > raw);
        assert!(realtime() >= until, "clock_nanosleep woke before the absolute time");
        assert!(read_cost_ns(32) >= 0);
    }
}
