//! Simulated hardware clock of an interface, for tests.
//!
//! Few test machines have an interface with hardware timestamps. This module converts kernel timestamps to those that
//! an interface would have taken: with its own clock (offset, drift and resolution) and at the octet that an interface
//! timestamps. They are then processed like real ones, and the results can be compared with the kernel's timestamps.

use std::str::FromStr;

use wg_capture::{Octet, Timestamps};
use wg_frame::time::WallNanos;
use wg_net::{CrossTimestamp, clock, tightest};

use super::clock_reading::ReadsBothClocks;

/// Samples per reading.
const SAMPLES: usize = 5;

/// Simulated clock and its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlantedHardware {
    offset_ns: i64,
    drift_ppb: i64,
    step_ns: i64,
    origin_ns: i64,
}

impl PlantedHardware {
    /// Reading of the clock when `CLOCK_REALTIME` is `realtime_ns`.
    pub fn reading(&self, realtime_ns: i64) -> i64 {
        let passed = i128::from(realtime_ns) - i128::from(self.origin_ns);
        let drifted = passed * i128::from(self.drift_ppb) / 1_000_000_000;
        let drifted = i64::try_from(drifted).unwrap_or(i64::MAX);
        let shown = realtime_ns.saturating_add(self.offset_ns).saturating_add(drifted);
        shown.div_euclid(self.step_ns) * self.step_ns
    }

    /// Timestamp of a sent frame of `length` bytes.
    pub fn sent(&self, driver: WallNanos, length: u16, rate_bps: u64) -> i64 {
        self.timestamp(driver, Timestamps::SOFTWARE.sent, Timestamps::HARDWARE.sent, length, rate_bps)
    }

    /// Timestamp of a received frame of `length` bytes.
    pub fn received(&self, driver: WallNanos, length: u16, rate_bps: u64) -> i64 {
        self.timestamp(driver, Timestamps::SOFTWARE.received, Timestamps::HARDWARE.received, length, rate_bps)
    }

    fn timestamp(&self, driver: WallNanos, from: Octet, to: Octet, length: u16, rate_bps: u64) -> i64 {
        let moved = from.moved_to(to, 0, u64::from(length), Some(rate_bps)).unwrap_or(0);
        self.reading(driver.get() + moved.div_euclid(1_000))
    }
}

impl ReadsBothClocks for PlantedHardware {
    fn cross_timestamp(&mut self) -> std::io::Result<CrossTimestamp> {
        let now = || clock::realtime().get();
        let samples = [(); SAMPLES].map(|()| [now(), self.reading(now()), now()]);
        let mut found =
            tightest(&samples).ok_or_else(|| std::io::Error::other("the system's clock was set"))?;
        // A reading is truncated to the resolution of the clock.
        found.uncertainty_ns += self.step_ns - 1;
        Ok(found)
    }
}

impl FromStr for PlantedHardware {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}': give offset in ns, drift in ppb and step in ns (1 to 1000000), as in -37000000000,20000,8"
            )
        };
        let parts: Vec<i64> =
            text.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        match *parts.as_slice() {
            [offset_ns, drift_ppb, step_ns]
                if (1..=1_000_000).contains(&step_ns)
                    && drift_ppb.abs() <= 100_000
                    && offset_ns.abs() <= 1 << 61 =>
            {
                Ok(Self { offset_ns, drift_ppb, step_ns, origin_ns: clock::realtime().get() })
            }
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_a_clock_or_one_sentence(text in "[-0-9,x]{0,30}") {
            match text.parse::<PlantedHardware>() {
                Ok(clock) => prop_assert!(clock.reading(clock.origin_ns) % clock.step_ns == 0),
                Err(said) => prop_assert!(said.contains("offset in ns")),
            }
        }
    }

    #[test]
    fn timestamps_belong_to_the_octet_an_interface_timestamps() {
        let clock: PlantedHardware = "1000,0,1".parse().expect("it is one");
        let at = WallNanos::new(1_000_000_000);
        // Sent: after the 8 B preamble; received: 1000 B before the last octet.
        assert_eq!(clock.sent(at, 1_000, 1_000_000_000), 1_000_000_000 + 64 + 1_000);
        assert_eq!(clock.received(at, 1_000, 1_000_000_000), 1_000_000_000 - 8_000 + 1_000);
    }
}
