//! Networks as other tools write them, read and written.
//!
//! Formats only: what a number without a unit means, which element stands for what. Where two tools read one file
//! differently it is refused, with the unit to add.

pub mod output_ports;
pub mod physical;
pub mod plan;
pub mod units;
