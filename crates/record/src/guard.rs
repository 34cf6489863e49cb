//! Protection against panics in decoders of foreign bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a step of a decoder. The Arrow and Parquet decoders are meant to return errors for bad bytes; a panic in them
/// is turned into an error too, because a damaged file must never end the program.
pub fn guarded<T, E: ToString>(step: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(_) => Err("its decoder gave up on it".to_owned()),
    }
}
