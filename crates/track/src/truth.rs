//! Storing what was true of a run for good.

use std::collections::HashMap;
use std::path::Path;

use wg_record::columns::vocabulary;
use wg_record::segment::Damage;
use wg_record::{RecordError, TRUTH_SCHEMA, TruthKind, read_truth, truth_batch, truth_schema};

use crate::parquet::{properties, write_whole};

/// Stores what was true of a run, sorted by time, from `spooled` in `truth_out`. Returns what was wrong with the
/// spooled file; its rows up to the damage are stored.
///
/// # Errors
/// As [`read_truth`], and [`RecordError::Write`] when the output cannot be written; it is then as it was before.
pub fn store_truth(spooled: &Path, truth_out: &Path, run_index: u32) -> Result<Option<Damage>, RecordError> {
    let (mut rows, damage) = read_truth(spooled, run_index)?;
    rows.sort_by_key(|truth| truth.time);
    let (schema, kinds) = (truth_schema(HashMap::new()), vocabulary::<TruthKind>());
    let properties = properties("truth", TRUTH_SCHEMA, run_index, &["time", "value"]);
    write_whole(truth_out, &schema, properties, &rows, |rows, schema| truth_batch(rows, schema, &kinds))?;
    Ok(damage)
}
