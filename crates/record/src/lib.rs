//! What was observed, and what became of every message.
//!
//! The records are the only bridge between running and judging: agents (and later the simulator) write
//! them, the tracking history is rebuilt from nothing else.
//!
//! - [`Record`] is one frame at one observation point.
//! - [`segment`] is where an agent keeps them while a run is going on.
//! - [`tracking`] gives every message its history and its outcome.
//! - [`parquet`] stores records and messages for good.
//! - [`TruthWriter`] keeps what was true beside the records; nothing that judges reads it.
//! - [`process_run`] goes the whole way, [`retrack`] judges stored records again.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

mod columns;
mod error;
mod guard;
pub mod parquet;
mod pipeline;
mod process;
mod regular;
mod schema;
pub mod segment;
mod sighting;
mod sorting;
pub mod tracking;
mod truth;

pub use error::RecordError;
pub use process::{Tables, process_run, retrack, summarise, track_part};
pub use regular::open_regular;
pub use schema::*;
pub use truth::{TRUTH_FILE, TRUTH_SCHEMA, TruthWriter, read_truth, store_truth};
