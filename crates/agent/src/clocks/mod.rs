//! The programs that keep this host's clock with others: linuxptp started, heard and stopped; chrony asked.
//!
//! A caller says what it wants in numbers and choices. Which program that is, where it lies, what it is configured with and
//! what it is asked are this module's; no text of a caller comes near them. What is started dies with this process, however
//! that ends, because the kernel kills it with the thread that listens to it.

pub mod keeping;
pub mod linuxptp;
pub mod others;
pub mod program;

pub use keeping::{ClockPrograms, Output};

/// Why programs were not started, or did not answer, as a sentence.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// What was asked is not in order.
    #[error("{0}")]
    Asked(String),
    /// The host cannot do it.
    #[error("{0}")]
    Host(String),
}
