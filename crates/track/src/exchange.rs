//! Arrow IPC files for other programs.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, Schema};

use wg_record::RecordError;
use wg_record::guarded;
use wg_record::open_regular;

/// Copies an Arrow IPC file to `target`, with `metadata` in its schema, for writers that cannot set it.
///
/// # Errors
/// [`RecordError::Read`] and [`RecordError::Foreign`] of the source, [`RecordError::Write`] when the disk refuses.
pub fn label_table(
    source: &Path,
    target: &Path,
    metadata: HashMap<String, String>,
) -> Result<(), RecordError> {
    let file = open_regular(source).map_err(|e| RecordError::read(source, e))?;
    let foreign = |problem| RecordError::Foreign { path: source.to_owned(), problem };
    let mut batches = guarded(|| FileReader::try_new_buffered(file, None)).map_err(foreign)?;
    let schema = Schema::new_with_metadata(batches.schema().fields().clone(), metadata);
    let refused = |error| match error {
        ArrowError::IoError(_, source) => RecordError::write(target, source),
        other => RecordError::encode(target, other),
    };
    let out = File::create(target).map_err(|e| RecordError::write(target, e))?;
    let mut writer = FileWriter::try_new_buffered(out, &schema).map_err(refused)?;
    let schema = Arc::new(schema);
    while let Some(batch) = guarded(|| batches.next().transpose()).map_err(foreign)? {
        RecordBatch::try_new(schema.clone(), batch.columns().to_vec())
            .and_then(|batch| writer.write(&batch))
            .map_err(refused)?;
    }
    writer.finish().map_err(refused)
}
