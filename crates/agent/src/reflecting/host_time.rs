//! The host's clock as test packets state it.

use wg_frame::stamp::{ErrorEstimate, Format, Timestamp};
use wg_net::clock;

/// How long a reading of the clock's discipline is used.
const FRESH_NS: i64 = 1_000_000_000;

/// Times of this host in one format, with their error as the kernel knows it.
#[derive(Debug)]
pub struct HostTime {
    format: Format,
    tai_ahead_ns: i64,
    error: ErrorEstimate,
    read_at: i64,
    worst_ns: u64,
    was_unsynchronised: bool,
}

impl HostTime {
    /// Times in `format`.
    pub fn new(format: Format) -> Self {
        let error = ErrorEstimate::new(false, format, u64::MAX);
        Self { format, tai_ahead_ns: 0, error, read_at: i64::MIN, worst_ns: 0, was_unsynchronised: false }
            .refreshed()
    }

    fn refreshed(mut self) -> Self {
        self.refresh();
        self
    }

    /// Reads the discipline of the clock again if the last reading is old.
    pub fn refresh(&mut self) {
        let now = clock::monotonic();
        if now < self.read_at.saturating_add(FRESH_NS) {
            return;
        }
        self.read_at = now;
        self.tai_ahead_ns = clock::tai_ahead();
        let (synchronised, error_ns) = clock::discipline().map_or((false, u64::MAX), |told| {
            (told.synchronised, u64::try_from(told.max_error_us.saturating_mul(1_000)).unwrap_or(u64::MAX))
        });
        self.worst_ns = self.worst_ns.max(error_ns);
        self.was_unsynchronised |= !synchronised;
        // TAI without its offset is UTC under a wrong name.
        let is_right = synchronised && (self.format == Format::Ntp || self.tai_ahead_ns != 0);
        self.error = ErrorEstimate::new(is_right, self.format, error_ns);
    }

    /// `ns` of `CLOCK_REALTIME` as a timestamp.
    pub fn timestamp(&self, ns: i64) -> Timestamp {
        let ahead = if self.format == Format::Ptp { self.tai_ahead_ns } else { 0 };
        Timestamp::new(ns.saturating_add(ahead), self.format)
    }

    /// Error estimate beside the timestamps.
    pub fn error(&self) -> ErrorEstimate {
        self.error
    }

    /// Greatest error that the kernel stated since the begin, ns; `None`: the clock was not synchronised throughout.
    pub fn error_ns(&self) -> Option<u64> {
        (!self.was_unsynchronised).then_some(self.worst_ns)
    }

    /// TAI less UTC as the kernel has it, ns; 0: it was not told.
    pub fn tai_ahead_ns(&self) -> i64 {
        self.tai_ahead_ns
    }
}
