//! Permanent storage of the tables beside the records of a run.

use std::collections::HashMap;
use std::path::Path;

use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use wg_record::segment::Damage;
use wg_record::{RecordError, Row, guarded, open_regular, read_table};

use crate::parquet::{properties, write_whole};

/// Stores a table of a run, sorted by time, from `spooled` in `out`. Returns the damage of the spooled file, if any;
/// rows before the damage are stored.
///
/// # Errors
/// As [`read_table`], and [`RecordError::Write`] when the output cannot be written; it is then as it was before.
pub fn store_table<R: Row>(
    spooled: &Path,
    out: &Path,
    run_index: u32,
) -> Result<Option<Damage>, RecordError> {
    let (mut rows, damage) = read_table::<R>(spooled, run_index)?;
    rows.sort_by_key(Row::time);
    let (schema, kinds) = (R::schema(HashMap::new()), R::kinds());
    let properties = properties(R::KIND, R::SCHEMA, run_index, R::GROWING);
    write_whole(out, &schema, properties, &rows, |rows, schema| R::batch(rows, schema, &kinds))?;
    Ok(damage)
}

/// The rows of a stored table.
///
/// # Errors
/// [`RecordError::Read`] when the file cannot be read, [`RecordError::Foreign`] when it is no such table.
pub fn read_stored<R: Row>(path: &Path) -> Result<Vec<R>, RecordError> {
    let foreign = |problem: String| RecordError::Foreign { path: path.to_owned(), problem };
    let file = open_regular(path).map_err(|e| RecordError::read(path, e))?;
    let mut batches = guarded(|| ParquetRecordBatchReaderBuilder::try_new(file)?.build()).map_err(foreign)?;
    let mut rows = Vec::new();
    while let Some(batch) = guarded(|| batches.next().transpose()).map_err(foreign)? {
        R::decode(&batch, &mut rows).map_err(foreign)?;
    }
    Ok(rows)
}
