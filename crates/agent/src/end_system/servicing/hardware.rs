//! Hardware timestamps of the interface at an access point.

use wg_frame::time::WallNanos;
use wg_net::Received;

use crate::timestamps::budget::TimestampBudget;
use crate::timestamps::{HardwareStats, TimestampConfig};

/// Maximum number of sends with outstanding transmit timestamps; a power of two.
pub(super) const OUTSTANDING: usize = 8192;

/// Hardware timestamps at one access point. Returned times include the nominal offset.
pub(super) struct HardwareTimestamps {
    pub(super) config: TimestampConfig,
    pub(super) budget: TimestampBudget,
    pub(super) stats: HardwareStats,
}

impl HardwareTimestamps {
    pub(super) fn new(config: TimestampConfig) -> Self {
        Self { config, budget: TimestampBudget::new(config.budget), stats: HardwareStats::default() }
    }

    /// True if a timestamp may be requested for the next frame.
    pub(super) fn may_ask(&mut self, now: WallNanos) -> bool {
        self.config.transmit && self.budget.may_ask(now.get())
    }

    pub(super) fn handle_asked(&mut self, number: u32, now: WallNanos) {
        self.budget.handle_asked(number, now.get());
    }

    /// Time at which the interface received a frame of `length` bytes; a missing timestamp is counted.
    pub(super) fn received(&mut self, frame: &Received, length: u16) -> Option<WallNanos> {
        if !self.config.receive {
            return None;
        }
        let timestamp = match self.config.planted {
            Some(planted) => frame.timestamp.map(|at| planted.received(at, length, self.config.rate.0)),
            None => frame.hardware_ns,
        };
        *if timestamp.is_some() { &mut self.stats.received } else { &mut self.stats.missing } += 1;
        timestamp.map(|ns| self.near_realtime(ns))
    }

    pub(super) fn near_realtime(&self, timestamp_ns: i64) -> WallNanos {
        WallNanos::new(timestamp_ns.saturating_add(self.config.nominal_ns))
    }

    /// Statistics at the end of the run.
    pub(super) fn finish(&mut self) -> HardwareStats {
        HardwareStats { transmit: self.budget.finish(), ..self.stats }
    }
}
