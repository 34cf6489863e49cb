//! Tracking history of messages, and the Parquet files of records and messages.
//!
//! - [`tracking`] gives every message its history and its outcome.
//! - [`parquet`] stores records and messages for good.
//! - [`process_run`] goes the whole way, [`retrack`] judges stored records again.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

mod beside;
mod exchange;
pub mod parquet;
mod pipeline;
mod process;
mod sighting;
mod sorting;
pub mod tracking;

pub use beside::{read_stored, store_table};
pub use exchange::label_table;
pub use process::{Tables, process_run, retrack, summarise, track_part};
