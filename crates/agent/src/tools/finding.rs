//! Findings of the doctor.

use serde::Serialize;

/// Result of one check of the host.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Name of the check.
    pub name: &'static str,
    /// True if granted.
    pub granted: bool,
    /// Granted value, or the reason for the refusal.
    pub detail: String,
    /// Remedy; empty if granted.
    pub cure: &'static str,
}
