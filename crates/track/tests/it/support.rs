//! What the tests of this crate share.

use std::path::Path;

use wg_record::{Record, RecordError};
use wg_track::Tables;
use wg_track::parquet::{MessageWriter, RecordWriter};
use wg_track::tracking::Message;

pub(crate) use crate::records::{Scratch, samples};

/// Stores `records` in the order of time.
pub(crate) fn write_records(path: &Path, run_index: u32, records: &mut [Record]) -> Result<(), RecordError> {
    records.sort_by_key(|record| record.time);
    let mut writer = RecordWriter::create(path, run_index)?;
    writer.write(records)?;
    writer.finish()
}

pub(crate) fn write_messages(path: &Path, run_index: u32, messages: &[Message]) -> Result<(), RecordError> {
    let mut writer = MessageWriter::create(path, run_index)?;
    writer.write(messages)?;
    writer.finish()
}

/// Tables of these names in `directory`.
pub(crate) fn tables(directory: &Path, name: &str) -> Tables {
    let table = |what: &str| directory.join(what).join(format!("{name}.parquet"));
    Tables { messages: table("messages"), passages: table("passages"), sketches: table("sketches") }
}
