//! Observations: records, gaps in them, and the truth beside them.
//!
//! The records are the only bridge between running and judging: agents and the simulator write them, the
//! tracking history is rebuilt from nothing else.
//!
//! - [`Record`] is one frame at one observation point.
//! - [`segment`] is where an agent keeps them while a run is going on.
//! - [`Gap`] is a stretch in which some may be missing.
//! - [`Sketch`] is a distribution in bounded memory.
//! - [`TableWriter`] keeps what is beside the records: [`Truth`], which nothing that judges reads, and [`Crossing`]s.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

pub mod columns;
mod crossing;
mod error;
mod gap;
mod guard;
pub mod live;
mod regular;
mod schema;
pub mod segment;
mod sketch;
mod table;
mod table_follower;
mod truth;

pub use crossing::{Crossing, CrossingKind};
pub use error::RecordError;
pub use gap::Gap;
pub use guard::guarded;
pub use regular::open_regular;
pub use schema::*;
pub use sketch::{Bucket, Sketch};
pub use table::{Row, TableWriter, read_table};
pub use table_follower::TableFollower;
