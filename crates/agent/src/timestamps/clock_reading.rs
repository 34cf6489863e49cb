//! Who reads the clock of an interface together with the system's.

use std::io;

use wg_net::{CrossTimestamp, HardwareClock};

use super::clock_track::ClockTrack;

/// Something that reads the interface's clock and the system's together.
pub trait ReadsBothClocks {
    /// Both clocks at one instant.
    ///
    /// # Errors
    /// The clock is gone.
    fn cross_timestamp(&mut self) -> io::Result<CrossTimestamp>;
}

impl ReadsBothClocks for HardwareClock {
    fn cross_timestamp(&mut self) -> io::Result<CrossTimestamp> {
        Self::cross_timestamp(self)
    }
}

/// Rate of a line in bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub u64);

/// The interface's clock, for the record writer.
pub struct PhcTracker {
    /// Reads it.
    pub source: Box<dyn ReadsBothClocks + Send>,
    /// What is known of it.
    pub track: ClockTrack,
    /// Rate of the line.
    pub rate: Rate,
}
