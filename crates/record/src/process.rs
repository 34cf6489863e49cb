//! The log processor's one entry: from an agent's segments, or stored records, to judged messages.
//!
//! All records of one run are held and sorted in memory (32 bytes each).

use std::path::{Path, PathBuf};

use wg_plan::{Network, Run};

use crate::error::RecordError;
use crate::parquet::{read_records, write_messages, write_records};
use crate::schema::Record;
use crate::segment::{Damage, SegmentInfo, SegmentReader};
use crate::tracking::{RunSummary, Tracker};

/// Gathers the records of `run` from its segment files, stores them sorted in `records_out`, judges them and
/// stores the messages in `messages_out`.
///
/// A damaged segment does not fail the run: its records up to the damage count, and the summary names it.
///
/// # Errors
/// [`RecordError::Read`] when a segment cannot be opened, [`RecordError::Write`] when an output cannot be
/// written; an output that exists after an error is whole.
pub fn process_run(
    network: &Network,
    run: &Run,
    segment_files: &[PathBuf],
    records_out: &Path,
    messages_out: &Path,
) -> Result<RunSummary, RecordError> {
    let mut records = Vec::new();
    let mut damaged = Vec::new();
    let mut epoch = None;
    for file in segment_files {
        let mut reader = SegmentReader::open(file)?;
        let before = records.len();
        while let Some(batch) = reader.next_batch() {
            records.extend_from_slice(batch);
        }
        // A segment without records says nothing about the epoch: its agent may never have heard of one.
        let misplaced = reader
            .info()
            .filter(|_| records.len() > before)
            .and_then(|info| misplaced(info, run, &mut epoch));
        match misplaced {
            None => damaged.extend(reader.damage().cloned()),
            Some(problem) => {
                records.truncate(before);
                damaged.push(Damage { file: file.display().to_string(), problem, records_read: 0 });
            }
        }
    }
    write_records(records_out, run.index, &mut records)?;
    let summary = judge(network, run, &records, messages_out)?;
    Ok(RunSummary { damaged_segments: damaged, ..summary })
}

/// Judges `run` again from its stored records; the answer is that of [`process_run`], but for the damaged
/// segments, of which stored records know nothing.
///
/// # Errors
/// [`RecordError::Read`] or [`RecordError::Foreign`] when the records cannot be read or are of another run,
/// [`RecordError::Write`] when the messages cannot be written.
pub fn retrack(
    network: &Network,
    run: &Run,
    records_parquet: &Path,
    messages_out: &Path,
) -> Result<RunSummary, RecordError> {
    let (index, records) = read_records(records_parquet)?;
    if index != run.index {
        return Err(RecordError::Foreign {
            path: records_parquet.to_owned(),
            problem: format!("holds records of run {index}, not of run {}; name that run's file", run.index),
        });
    }
    judge(network, run, &records, messages_out)
}

fn judge(
    network: &Network,
    run: &Run,
    records: &[Record],
    messages_out: &Path,
) -> Result<RunSummary, RecordError> {
    let mut tracker = Tracker::new(network, run);
    tracker.observe_all(records);
    let tracked = tracker.finish();
    write_messages(messages_out, &tracked)?;
    Ok(tracked.summary)
}

/// Why a segment cannot be taken into this run. Times can be laid side by side only when they count from one
/// epoch.
fn misplaced(info: &SegmentInfo, run: &Run, epoch: &mut Option<i64>) -> Option<String> {
    if info.run_index != run.index {
        return Some(format!(
            "left out: it holds records of run {}, not of run {}",
            info.run_index, run.index
        ));
    }
    let before = *epoch.get_or_insert(info.epoch_realtime_ns);
    if info.epoch_realtime_ns != before {
        return Some(format!(
            "left out: its times count from {} ns, those of the segments before it from {before} ns",
            info.epoch_realtime_ns
        ));
    }
    None
}
