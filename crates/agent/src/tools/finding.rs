//! What the doctor finds.

use serde::Serialize;

/// One thing the host grants or not.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What.
    pub name: &'static str,
    /// Whether it is granted.
    pub granted: bool,
    /// The value granted, or why not.
    pub detail: String,
    /// What to do about it; empty when granted.
    pub cure: &'static str,
}
