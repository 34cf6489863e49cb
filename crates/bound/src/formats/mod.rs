//! Network formats of other tools, read and written.
//!
//! Formats only: units of bare numbers, and the meaning of elements. Where two tools read one file differently it is
//! refused, with the unit to add.

pub mod output_ports;
pub mod physical;
pub mod plan;
pub mod units;
