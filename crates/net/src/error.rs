//! Refusals of the operating system as sentences.

use std::io;

/// A system call refused during set-up.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}{}", parenthesised(.cure))]
pub struct NetError {
    what: String,
    cure: &'static str,
    source: io::Error,
}

fn parenthesised(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

impl NetError {
    pub(crate) fn last(what: impl Into<String>, cure: &'static str) -> Self {
        Self::of(what, cure, io::Error::last_os_error())
    }
    pub(crate) fn of(what: impl Into<String>, cure: &'static str, source: io::Error) -> Self {
        Self { what: what.into(), cure, source }
    }
    /// The error of a call refused with `source` during `what`.
    pub fn refused(what: impl Into<String>, source: io::Error) -> Self {
        Self::of(what, "", source)
    }
    /// The operating system's own error.
    pub fn io(&self) -> &io::Error {
        &self.source
    }
}
