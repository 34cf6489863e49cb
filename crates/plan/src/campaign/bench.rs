//! Benches.

use serde::{Deserialize, Serialize};

/// Where a test runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bench {
    /// In virtual time.
    #[default]
    Sim,
    /// Between network namespaces of one machine.
    Netns,
    /// Between the hosts of a lab.
    Lab,
}
