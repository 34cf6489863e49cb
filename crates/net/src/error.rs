//! A refusal of the operating system as one sentence.

use std::io;

/// A call the operating system refused while something was being set up.
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
    /// A call refused with `source` while `what` was being tried.
    pub fn refused(what: impl Into<String>, source: io::Error) -> Self {
        Self::of(what, "", source)
    }
    /// The operating system's own error.
    pub fn io(&self) -> &io::Error {
        &self.source
    }
}
