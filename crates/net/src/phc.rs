//! Cross-timestamps between an interface's hardware clock and the system clock.
//!
//! A timestamp of the interface is a reading of its own clock, `/dev/ptpN`; to compare it with other times, the offset
//! of that clock to `CLOCK_REALTIME` at that time is needed. The kernel has three methods to read both, from best to
//! worst: by the hardware at one instant (`PTP_SYS_OFFSET_PRECISE`), between two readings of the system clock
//! (`_EXTENDED`), and alternating (`PTP_SYS_OFFSET`). With the last two the sample with the least time between its
//! system readings is taken: the rest of that time is bus and processor, and the offset is wrong by at most half of it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::error::NetError;
use crate::sys::check;

/// Number of samples of one reading.
const SAMPLES: usize = 9;
const SAMPLES_UINT: libc::c_uint = 9;

/// Method of reading both clocks together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossMethod {
    /// Both clocks at one instant, by the hardware.
    Precise,
    /// The hardware clock between two readings of the system's.
    Extended,
    /// Both clocks in turns.
    Alternating,
}

impl CrossMethod {
    /// All methods, from best to worst.
    pub const ALL: [Self; 3] = [Self::Precise, Self::Extended, Self::Alternating];

    /// Name of the method in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Precise => "precise cross-timestamp",
            Self::Extended => "extended cross-timestamp",
            Self::Alternating => "alternating readings",
        }
    }
}

/// Readings of both clocks at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossTimestamp {
    /// Reading of the hardware clock, ns.
    pub hardware_ns: i64,
    /// Reading of `CLOCK_REALTIME`, ns.
    pub realtime_ns: i64,
    /// Greatest time between the two readings, ns.
    pub uncertainty_ns: i64,
}

impl CrossTimestamp {
    /// Offset to add to a timestamp of the hardware clock to convert it to `CLOCK_REALTIME`, ns.
    pub const fn offset_ns(self) -> i64 {
        self.realtime_ns.saturating_sub(self.hardware_ns)
    }
}

/// The sample with the least time between its readings of the system clock; each is system, hardware, system, in ns. A
/// sample whose system readings decrease is invalid: the clock was set between them.
pub fn tightest(samples: &[[i64; 3]]) -> Option<CrossTimestamp> {
    let widths = samples.iter().filter_map(|&[before, hardware, after]| {
        let width = after.checked_sub(before).filter(|width| *width >= 0)?;
        Some((width, before, hardware))
    });
    let (width, before, hardware_ns) = widths.min()?;
    let half = width / 2;
    Some(CrossTimestamp { hardware_ns, realtime_ns: before + half, uncertainty_ns: width - half })
}

/// A PTP hardware clock.
#[derive(Debug)]
pub struct HardwareClock {
    file: File,
    path: PathBuf,
    method: CrossMethod,
}

impl HardwareClock {
    /// Opens `/dev/ptpN` and finds the best method to read it.
    ///
    /// # Errors
    /// The device is missing or not accessible to this user, or the driver supports no method.
    pub fn open(number: u32) -> Result<Self, NetError> {
        Self::open_at(Path::new(&format!("/dev/ptp{number}")))
    }

    /// As [`open`](Self::open), for a device of any name.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_at(path: &Path) -> Result<Self, NetError> {
        let what = || format!("cannot read the hardware clock {}", path.display());
        let file =
            File::open(path).map_err(|e| NetError::of(what(), "let the user read it, or run as root", e))?;
        let mut refused = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
        for method in CrossMethod::ALL {
            match read(&file, method) {
                Ok(_) => return Ok(Self { file, path: path.to_owned(), method }),
                Err(error) => refused = error,
            }
        }
        Err(NetError::of(what(), "its driver has no cross-timestamps", refused))
    }

    /// Path of the device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The method in use.
    pub const fn method(&self) -> CrossMethod {
        self.method
    }

    /// Reads both clocks.
    ///
    /// # Errors
    /// The clock is gone.
    pub fn cross_timestamp(&self) -> io::Result<CrossTimestamp> {
        read(&self.file, self.method)
    }
}

fn nanos(time: libc::ptp_clock_time) -> i64 {
    time.sec.saturating_mul(1_000_000_000).saturating_add(i64::from(time.nsec))
}

fn read(file: &File, method: CrossMethod) -> io::Result<CrossTimestamp> {
    let fd = file.as_raw_fd();
    let none = || io::Error::other("the system's clock was set while it was read");
    match method {
        CrossMethod::Precise => {
            // SAFETY: integers only: valid as zeroes.
            let mut both: libc::ptp_sys_offset_precise = unsafe { std::mem::zeroed() };
            // SAFETY: `both` is the live structure this request fills.
            check(unsafe { libc::ioctl(fd, libc::PTP_SYS_OFFSET_PRECISE as _, &raw mut both) })?;
            let (hardware_ns, realtime_ns) = (nanos(both.device), nanos(both.sys_realtime));
            Ok(CrossTimestamp { hardware_ns, realtime_ns, uncertainty_ns: 1 })
        }
        CrossMethod::Extended => {
            // SAFETY: integers only: valid as zeroes.
            let mut sampled: libc::ptp_sys_offset_extended = unsafe { std::mem::zeroed() };
            sampled.n_samples = SAMPLES_UINT;
            // SAFETY: `sampled` is the live structure this request reads and fills; it has room for 25 samples.
            check(unsafe { libc::ioctl(fd, libc::PTP_SYS_OFFSET_EXTENDED as _, &raw mut sampled) })?;
            let samples: Vec<[i64; 3]> =
                sampled.ts.iter().take(SAMPLES).map(|three| (*three).map(nanos)).collect();
            tightest(&samples).ok_or_else(none)
        }
        CrossMethod::Alternating => {
            // SAFETY: integers only: valid as zeroes.
            let mut sampled: libc::ptp_sys_offset = unsafe { std::mem::zeroed() };
            sampled.n_samples = SAMPLES_UINT;
            // SAFETY: `sampled` is the live structure this request reads and fills; it has room for 25 samples and one.
            check(unsafe { libc::ioctl(fd, libc::PTP_SYS_OFFSET as _, &raw mut sampled) })?;
            let times: Vec<i64> = sampled.ts.iter().take(2 * SAMPLES + 1).map(|time| nanos(*time)).collect();
            // System, hardware, system, hardware, …, system.
            let samples: Vec<[i64; 3]> =
                times.windows(3).step_by(2).map(|three| [three[0], three[1], three[2]]).collect();
            tightest(&samples).ok_or_else(none)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_sample_decides_and_bounds_its_own_error() {
        let samples =
            [[1_000, 500, 2_300], [5_000, 4_100, 5_401], [9_000, 8_000, 8_999], [i64::MIN, 0, i64::MAX]];
        let found = tightest(&samples).expect("there are good ones");
        assert_eq!(found, CrossTimestamp { hardware_ns: 4_100, realtime_ns: 5_200, uncertainty_ns: 201 });
        assert_eq!(found.offset_ns(), 1_100);
        // The clock was set back in all samples, or there are none.
        assert_eq!(tightest(&[[9_000, 8_000, 8_999]]), None);
        assert_eq!(tightest(&[]), None);
    }

    #[test]
    fn the_true_offset_is_within_the_bound_wherever_in_a_sample_the_hardware_was_read() {
        for late in 0..=400 {
            let (begin, true_offset) = (10_000, 777);
            let sample = [begin, begin + late - true_offset, begin + 400];
            let found = tightest(&[sample]).expect("it is good");
            assert!((found.offset_ns() - true_offset).abs() <= found.uncertainty_ns, "{late}: {found:?}");
        }
    }

    #[test]
    fn what_is_no_clock_is_refused_with_its_name() {
        for path in ["/dev/null", "/dev/no-such-clock"] {
            let error = HardwareClock::open_at(Path::new(path)).expect_err("it is no clock");
            assert!(error.to_string().contains(path), "{error}");
        }
    }
}
