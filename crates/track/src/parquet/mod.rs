//! Parquet files of a run: its records, its messages, passages and distributions.

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

/// Rows handed to the encoder, and taken from the decoder, at once.
pub(crate) const ROWS_AT_ONCE: usize = 1 << 14;
/// Records in a row group: a decoder's portion of work.
pub(crate) const ROW_GROUP: usize = 1 << 20;
/// Rows in a row group of a table of messages or passages. Who reads one holds some whole groups of all columns at once, and a
/// message has many.
pub(crate) const TABLE_GROUP: usize = 1 << 17;
