//! Segment files: an agent's records during a run.
//!
//! A segment is an Arrow IPC stream: schema, then whole batches. A batch goes to the file in one
//! write, so that a crash at any byte costs at most the batch that was under way. The IPC *file* format was
//! not taken because it is unreadable without the footer that a killed writer never writes.
//!
//! Its one column has records as cells, as [`row`] defines them: a recording agent has no time to split records into
//! columns, and every segment is read once, from beginning to end.
//!
//! Damage is data: [`SegmentReader`] returns every record before it and then reports what it found. The stream has no
//! checksum, so an inverted bit inside a number is not noticed; a torn, cut or structurally broken file is.

mod follow;
mod groups;
mod growing;
mod message;
mod read;
mod row;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use arrow_schema::{Metadata, SchemaRef};
use serde::{Deserialize, Serialize};

use crate::error::RecordError;
use crate::schema::Record;

pub use follow::SegmentFollower;
pub use groups::GroupWriter;
pub(crate) use growing::{Fetched, Growing};
use message::{FullBatch, message_of, schema_message, segment_schema};
pub(crate) use read::Messages;
pub use read::SegmentReader;

/// Version of segments, stored as `wiregauge.schema` in each: of the layout of a record and of its codes.
pub const SEGMENT_SCHEMA: u32 = 2;

/// Greatest number of records in a batch.
pub const BATCH_RECORDS: usize = 16_384;
/// File size in bytes from which a new file is begun.
pub const SEGMENT_BYTES: u64 = 64 << 20;
/// File name suffix of segments.
pub const SEGMENT_SUFFIX: &str = "arrows";

/// `node` of a segment with the records of all nodes.
pub const ALL_NODES: u16 = u16::MAX;

/// The end mark of an Arrow IPC stream.
const END_MARK: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Origin of a segment's records; stored in its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Name of the end system, or of the program that observed all nodes.
    pub end_system: String,
    /// Index of its node in the plan; [`ALL_NODES`] for all nodes.
    pub node: u16,
    /// Index of the run in the plan.
    pub run_index: u32,
    /// The run's epoch on `CLOCK_REALTIME`, in ns.
    pub epoch_realtime_ns: i64,
}

/// Damage of a segment, and how much of it could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// The problem.
    pub problem: String,
    /// Number of records read before the damage.
    pub records_read: u64,
    /// Beginning of the missing records, ps after the epoch: the agent's latest time before. `None`: it recorded
    /// nothing before.
    #[serde(default)]
    pub after_ps: Option<i64>,
    /// End of the missing records, ps after the epoch: the agent's first time afterwards. `None`: it recorded nothing
    /// afterwards.
    #[serde(default)]
    pub until_ps: Option<i64>,
}

/// Writes the records of one agent and run to `NNNNNN.arrows` in one directory.
///
/// Memory is bounded: one encoded batch. Dropping the writer without
/// [`finish`](Self::finish) loses the records of the unfinished batch and leaves the file without its end mark,
/// as a crash would.
pub struct SegmentWriter {
    directory: PathBuf,
    schema: SchemaRef,
    /// The schema message at the beginning of a file.
    head: Vec<u8>,
    /// The unfinished batch.
    batch: FullBatch,
    next_number: u32,
    rotate_at: u64,
    current: Option<Open>,
    records_written: u64,
}

struct Open {
    path: PathBuf,
    file: File,
    /// Size of the file up to its last complete batch, bytes.
    whole: u64,
}

impl SegmentWriter {
    /// Begins writing in `directory`, which is created if missing. Files of an earlier writer stay: numbering continues
    /// after the highest.
    ///
    /// # Errors
    /// [`RecordError::Write`] when the directory or the first file cannot be made.
    pub fn create(directory: &Path, info: SegmentInfo) -> Result<Self, RecordError> {
        Self::create_rotating(directory, info, SEGMENT_BYTES)
    }

    /// As [`create`](Self::create), with a new file every `rotate_at` bytes.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_rotating(directory: &Path, info: SegmentInfo, rotate_at: u64) -> Result<Self, RecordError> {
        fs::create_dir_all(directory).map_err(|e| RecordError::write(directory, e))?;
        let next_number = segment_files(directory)?
            .last()
            .and_then(|path| path.file_stem()?.to_str()?.parse::<u32>().ok())
            .map_or(0, |number| number.saturating_add(1));
        let schema = segment_schema(info.metadata());
        let encode = |error| RecordError::encode(directory, error);
        let mut writer = Self {
            directory: directory.to_owned(),
            head: schema_message(&schema).map_err(encode)?,
            batch: FullBatch::new(&schema, BATCH_RECORDS).map_err(encode)?,
            schema,
            next_number,
            rotate_at,
            current: None,
            records_written: 0,
        };
        writer.current = Some(writer.open()?);
        Ok(writer)
    }

    /// Takes `records`; every full batch goes to the file at once.
    ///
    /// # Errors
    /// [`RecordError::Write`] when a batch did not fit on the disk: its records and the rest of `records` are
    /// lost and counted in the error, everything before stays readable, and the next call begins a new file.
    pub fn write(&mut self, records: &[Record]) -> Result<(), RecordError> {
        for (at, record) in records.iter().enumerate() {
            self.push(record).map_err(|e| with_more_lost(e, records.len() - at - 1))?;
        }
        Ok(())
    }

    /// Takes one record, as [`write`](Self::write) does.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    #[inline(always)]
    pub fn push(&mut self, record: &Record) -> Result<(), RecordError> {
        self.batch.push(record);
        if self.batch.is_full() { self.flush() } else { Ok(()) }
    }

    /// Writes the records gathered so far as a batch.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn flush(&mut self) -> Result<(), RecordError> {
        let records = self.batch.records();
        if records == 0 {
            return Ok(());
        }
        let done = self.emit();
        self.batch.clear();
        match done {
            Ok(()) => {
                self.records_written += records as u64;
                Ok(())
            }
            Err(e) => {
                if let Some(open) = self.current.take() {
                    open.abandon();
                }
                Err(with_more_lost(e, records))
            }
        }
    }

    /// Number of records in files.
    pub fn records_written(&self) -> u64 {
        self.records_written
    }

    /// Writes the rest and the end mark. Returns the number of records in the files.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn finish(mut self) -> Result<u64, RecordError> {
        self.flush()?;
        if let Some(open) = self.current.take() {
            open.close(&self.head)?;
        }
        Ok(self.records_written)
    }

    fn open(&mut self) -> Result<Open, RecordError> {
        let path = self.directory.join(format!("{:06}.{SEGMENT_SUFFIX}", self.next_number));
        let file = File::options()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(|e| RecordError::write(&path, e))?;
        self.next_number += 1;
        Ok(Open { path, file, whole: 0 })
    }

    fn emit(&mut self) -> Result<(), RecordError> {
        if self.current.as_ref().is_some_and(|open| open.whole >= self.rotate_at)
            && let Some(full) = self.current.take()
        {
            full.close(&self.head)?;
        }
        let mut open = match self.current.take() {
            Some(open) => open,
            None => self.open()?,
        };
        let written = if self.batch.is_full() {
            open.write(&self.head, self.batch.message())
        } else {
            message_of(self.batch.cells(), &self.schema)
                .map_err(|e| RecordError::encode(&open.path, e))
                .and_then(|message| open.write(&self.head, &message))
        };
        self.current = Some(open);
        written
    }
}

impl Open {
    /// Writes the message of a batch, after the schema if it is the first of the file.
    fn write(&mut self, head: &[u8], message: &[u8]) -> Result<(), RecordError> {
        if self.whole > 0 {
            return self.put(message);
        }
        self.put(&[head, message].concat())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        self.file.write_all(bytes).map_err(|e| RecordError::write(&self.path, e))?;
        self.whole += bytes.len() as u64;
        Ok(())
    }

    fn close(mut self, head: &[u8]) -> Result<(), RecordError> {
        let head = if self.whole > 0 { &[][..] } else { head };
        self.put(&[head, &END_MARK].concat())
    }

    /// After a failed write: cuts the file back to its last complete batch and tries to write the end mark. Errors here
    /// are ignored; the reader copes with a torn tail.
    fn abandon(self) {
        let Self { path, mut file, whole, .. } = self;
        if whole == 0 {
            drop(file);
            drop(fs::remove_file(path));
            return;
        }
        let marked = file
            .set_len(whole)
            .and_then(|()| io::Seek::seek(&mut file, io::SeekFrom::Start(whole)))
            .and_then(|_| file.write_all(&END_MARK));
        if marked.is_err() {
            drop(file.set_len(whole));
        }
    }
}

impl SegmentInfo {
    fn metadata(&self) -> HashMap<String, String> {
        [
            ("schema", SEGMENT_SCHEMA.to_string()),
            ("kind", "segment".to_owned()),
            ("layout", row::LAYOUT.to_owned()),
            ("end_system", self.end_system.clone()),
            ("node", self.node.to_string()),
            ("run", self.run_index.to_string()),
            ("epoch_realtime_ns", self.epoch_realtime_ns.to_string()),
        ]
        .map(|(key, value)| (format!("wiregauge.{key}"), value))
        .into()
    }

    fn from_metadata(metadata: &Metadata) -> Result<Self, String> {
        let get = |key: &str| {
            metadata
                .get(&format!("wiregauge.{key}"))
                .ok_or_else(|| format!("not a segment of wiregauge: `wiregauge.{key}` is missing"))
        };
        let schema = get("schema")?;
        if *schema != SEGMENT_SCHEMA.to_string() {
            return Err(format!(
                "written with segment schema {schema}, this program reads {SEGMENT_SCHEMA}; \
                 use the version of wiregauge that wrote it"
            ));
        }
        if get("kind")? != "segment" {
            return Err("not a segment of wiregauge".to_owned());
        }
        Ok(Self {
            end_system: get("end_system")?.clone(),
            node: number(get("node")?)?,
            run_index: number(get("run")?)?,
            epoch_realtime_ns: number(get("epoch_realtime_ns")?)?,
        })
    }
}

/// The segment files of `directory` in the order they were written; empty when it does not exist.
///
/// # Errors
/// [`RecordError::Read`] when the directory cannot be listed.
pub fn segment_files(directory: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(RecordError::read(directory, e)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| RecordError::read(directory, e))?.path();
        if path.extension().is_some_and(|ending| ending == SEGMENT_SUFFIX) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn with_more_lost(error: RecordError, more: usize) -> RecordError {
    match error {
        RecordError::Write { path, source, records_lost } => {
            RecordError::Write { path, source, records_lost: records_lost + more as u64 }
        }
        other => other,
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("its metadata has `{text}` where a number should be"))
}
