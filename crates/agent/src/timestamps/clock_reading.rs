//! Readers of an interface clock together with the system clock.

use std::io;

use wg_net::{CrossTimestamp, HardwareClock};

use super::clock_track::ClockTrack;

/// Reader of the interface clock and the system clock at the same time.
pub trait ReadsBothClocks {
    /// Reads both clocks at one time.
    ///
    /// # Errors
    /// The clock no longer exists.
    fn cross_timestamp(&mut self) -> io::Result<CrossTimestamp>;
}

impl ReadsBothClocks for HardwareClock {
    fn cross_timestamp(&mut self) -> io::Result<CrossTimestamp> {
        Self::cross_timestamp(self)
    }
}

/// Line rate in bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub u64);

/// Interface clock for the record writer.
pub struct PhcTracker {
    /// Reader of the clock.
    pub source: Box<dyn ReadsBothClocks + Send>,
    /// Offset of the clock over time.
    pub track: ClockTrack,
    /// Line rate.
    pub rate: Rate,
}
