//! Programs that synchronise this host's clock: linuxptp is started, read and stopped; chrony is queried.
//!
//! A caller states its wishes in numbers and choices. Program, path, configuration and arguments are chosen here; no
//! text of a caller reaches them. Programs die with this process, however it ends, because the kernel kills them with
//! the thread that reads them.

pub mod keeping;
pub mod linuxptp;
pub mod others;
pub mod program;

pub use keeping::{ClockPrograms, Output};

/// Why programs were not started, or did not answer, as a sentence.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The request is invalid.
    #[error("{0}")]
    Asked(String),
    /// The host refuses.
    #[error("{0}")]
    Host(String),
}
