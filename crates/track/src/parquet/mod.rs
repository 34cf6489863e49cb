//! Parquet files of a run: records, messages, passages and distributions.

mod coding;
mod column;
mod excerpt;
mod read;
mod tables;
mod write;

pub(crate) use read::{Buffers, Division};
pub use read::{RecordFiles, read_records};
pub use tables::{MessageWriter, PassageWriter, write_sketches};
pub use write::RecordWriter;
pub(crate) use write::{properties, write_whole};

/// Version of the message columns; stored as `wiregauge.schema` in every messages file.
pub const MESSAGE_SCHEMA: u32 = 3;
/// Version of the passage columns.
pub const PASSAGE_SCHEMA: u32 = 1;
/// Version of the sketch columns.
pub const SKETCH_SCHEMA: u32 = 1;

/// Number of rows encoded or decoded at once.
pub(crate) const ROWS_AT_ONCE: usize = 1 << 14;
/// Number of records in a row group: a decoder's unit of work.
pub(crate) const ROW_GROUP: usize = 1 << 20;
/// Number of rows in a row group of messages or passages. Readers hold some complete groups of all columns at once, and
/// a message has many columns.
pub(crate) const TABLE_GROUP: usize = 1 << 17;
