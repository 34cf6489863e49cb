//! Every clock that a program on this host can read, and the counter that measures the cost of a reading.
//!
//! [`clock`](crate::clock) has the two clocks of timestamps; this module has all clocks, for comparison: those of
//! `clock_gettime`, the processor's time-stamp counter, and PTP hardware clocks. A reading never allocates.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::clock::nanos;
use crate::sys::check;

/// A clock that can be read.
#[derive(Debug)]
pub struct ClockSource {
    name: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Posix(libc::clockid_t),
    /// The file keeps the dynamic clock number valid.
    Hardware(File),
    Counter,
}

/// Clocks of `clock_gettime` on every supported kernel. Processor-time clocks are omitted: they stop during sleep.
const POSIX: [(&str, libc::clockid_t); 7] = [
    ("CLOCK_REALTIME", libc::CLOCK_REALTIME),
    ("CLOCK_MONOTONIC", libc::CLOCK_MONOTONIC),
    ("CLOCK_MONOTONIC_RAW", libc::CLOCK_MONOTONIC_RAW),
    ("CLOCK_BOOTTIME", libc::CLOCK_BOOTTIME),
    ("CLOCK_TAI", libc::CLOCK_TAI),
    ("CLOCK_REALTIME_COARSE", libc::CLOCK_REALTIME_COARSE),
    ("CLOCK_MONOTONIC_COARSE", libc::CLOCK_MONOTONIC_COARSE),
];

/// The clocks of `clock_gettime`, and the counter if this processor lets programs read it.
pub fn sources() -> Vec<ClockSource> {
    let counter =
        counter_name().map(|name| ClockSource { name: name.into(), kind: Kind::Counter }).into_iter();
    POSIX
        .iter()
        .map(|&(name, id)| ClockSource { name: name.into(), kind: Kind::Posix(id) })
        .chain(counter)
        .collect()
}

/// The PTP hardware clock of a device file.
///
/// # Errors
/// The device cannot be opened, or cannot be read as a clock.
pub fn hardware(device: &Path) -> io::Result<ClockSource> {
    let file = File::open(device)?;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec the call fills; a descriptor that is no clock is refused.
    check(unsafe { libc::clock_gettime(dynamic(&file), &raw mut time) })?;
    Ok(ClockSource { name: format!("PHC {}", device.display()), kind: Kind::Hardware(file) })
}

/// Clock number of an open clock device (`FD_TO_CLOCKID`, clock_getres(2)).
fn dynamic(file: &File) -> libc::clockid_t {
    (!file.as_raw_fd() << 3) | 3
}

impl ClockSource {
    /// Name of the clock, instruction or device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether readings are ticks instead of nanoseconds.
    pub const fn in_ticks(&self) -> bool {
        matches!(self.kind, Kind::Counter)
    }

    /// The present reading in ns, or in ticks of the counter.
    #[inline]
    pub fn read(&self) -> i64 {
        match &self.kind {
            Kind::Posix(id) => read(*id),
            Kind::Hardware(file) => read(dynamic(file)),
            Kind::Counter => counter().cast_signed(),
        }
    }

    /// The resolution stated by the kernel, ns; `None` for the counter.
    pub fn stated_resolution(&self) -> Option<i64> {
        let id = match &self.kind {
            Kind::Posix(id) => *id,
            Kind::Hardware(file) => dynamic(file),
            Kind::Counter => return None,
        };
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a live timespec the call fills.
        check(unsafe { libc::clock_getres(id, &raw mut time) }).ok().map(|_| nanos(time))
    }
}

#[inline]
fn read(id: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec the call fills; on failure it keeps its initial value.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    nanos(time)
}

/// Name of the counter that [`counter`] reads; `None` if it reads `CLOCK_MONOTONIC_RAW` instead.
pub const fn counter_name() -> Option<&'static str> {
    if cfg!(target_arch = "x86_64") {
        Some("RDTSC")
    } else if cfg!(target_arch = "aarch64") {
        Some("CNTVCT_EL0")
    } else {
        None
    }
}

/// The cheapest counter, in its own ticks. The processor may reorder instructions between two readings, unless data
/// dependencies prevent it.
#[inline]
pub fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the instruction is part of x86-64; where the system forbids it to programs, the process ends by a
        // signal and no memory is touched.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: reads a register that Linux opens to programs; touches neither memory nor flags.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags))
        };
        ticks
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        read(libc::CLOCK_MONOTONIC_RAW).cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_reads_and_none_runs_backwards() {
        for source in sources() {
            let first = source.read();
            let second = source.read();
            assert!(first > 0 && second >= first, "{}", source.name());
            assert_eq!(source.stated_resolution().is_none(), source.in_ticks(), "{}", source.name());
        }
    }

    #[test]
    fn the_counter_follows_the_raw_clock() {
        let (ticks, raw) = (counter(), crate::clock::monotonic_raw());
        while crate::clock::monotonic_raw() - raw < 2_000_000 {}
        let rate = (counter() - ticks) as f64 / (crate::clock::monotonic_raw() - raw) as f64;
        assert!((0.001..20.0).contains(&rate), "{rate} ticks per ns");
    }

    #[test]
    fn a_device_that_is_no_clock_is_refused() {
        assert!(hardware(Path::new("/dev/null")).is_err());
    }
}
