//! What was observed, and what became of every message.
//!
//! The records are the only bridge between running and judging: agents (and later the simulator) write
//! them, the tracking history is rebuilt from nothing else.
#![forbid(unsafe_code)]

mod columns;
mod error;
mod schema;
pub mod segment;
pub mod tracking;

pub use error::RecordError;
pub use schema::*;
