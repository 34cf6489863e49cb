//! A fence around decoders that are fed bytes from outside.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a step of a decoder. The Arrow and Parquet decoders are meant to return errors on bad bytes; a panic
/// they may still hold is turned into one, because a damaged file must never end the program.
pub fn guarded<T, E: ToString>(step: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(_) => Err("its decoder gave up on it".to_owned()),
    }
}
