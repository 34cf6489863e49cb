//! Tables beside the records, written by a bench during a run.
//!
//! They go to one Arrow IPC stream beside the segments, readable up to its last complete batch after a crash, as
//! segments are; afterwards to one Parquet file (`wg_track::store_table`). A folder of rotating files, as for records,
//! was not taken, because these tables are sparse.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use wg_frame::time::RunTime;

use crate::columns::Cells;
use crate::error::RecordError;
use crate::guard::guarded;
use crate::regular::open_regular;
use crate::segment::{Damage, Messages};

/// Number of rows in a full batch.
const BATCH: usize = 4096;

/// A row of a table beside the records.
pub trait Row: Copy + 'static {
    /// File name of the table in the spool of a run.
    const FILE: &'static str;
    /// Kind of file; stored as `wiregauge.kind`.
    const KIND: &'static str;
    /// Version of its columns; stored as `wiregauge.schema`.
    const SCHEMA: u32;
    /// Columns with ascending values, which Parquet stores as differences.
    const GROWING: &'static [&'static str];
    /// The columns, in order.
    const COLUMNS: &'static [Cells<Self>];

    /// A row to be filled by decoding.
    fn blank() -> Self;

    /// Time of the row.
    fn time(&self) -> RunTime;

    /// The dictionary of its kinds.
    fn kinds() -> ArrayRef;

    /// Arrow schema of the table, with file metadata.
    fn schema(metadata: HashMap<String, String>) -> SchemaRef {
        let fields = Self::COLUMNS.iter().map(|own| Field::new(own.name, (own.data_type)(), false));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()).with_metadata(metadata))
    }

    /// `rows` in the columns of [`schema`](Self::schema); `kinds` are those of [`kinds`](Self::kinds).
    ///
    /// # Errors
    /// [`ArrowError`] if `schema` differs.
    fn batch(rows: &[Self], schema: &SchemaRef, kinds: &ArrayRef) -> Result<RecordBatch, ArrowError> {
        let columns = Self::COLUMNS.iter().map(|own| (own.write)(rows, kinds));
        RecordBatch::try_new(schema.clone(), columns.collect::<Result<_, _>>()?)
    }

    /// Appends the rows of a batch.
    ///
    /// # Errors
    /// A text about what is wrong with the batch.
    fn decode(batch: &RecordBatch, into: &mut Vec<Self>) -> Result<(), String> {
        let begin = into.len();
        into.resize(begin + batch.num_rows(), Self::blank());
        let read = Self::COLUMNS.iter().try_for_each(|own| (own.read)(batch, own.name, &mut into[begin..]));
        if read.is_err() {
            into.truncate(begin);
        }
        read
    }
}

/// Writes a table of one run to [`Row::FILE`] in its spool.
///
/// Memory is bounded: one batch and its encoded bytes. Dropping the writer without [`finish`](Self::finish) loses
/// the unfinished batch and leaves the file without its end mark, as a crash would.
pub struct TableWriter<R> {
    path: PathBuf,
    file: File,
    schema: SchemaRef,
    kinds: ArrayRef,
    /// Encodes into memory; its output goes to the file in one write.
    encoder: StreamWriter<Vec<u8>>,
    batch: Vec<R>,
    written: u64,
}

impl<R: Row> TableWriter<R> {
    /// Begins writing in `spool`, which is created if missing. The file exists from now on, also without rows: an empty
    /// table is thus on record.
    ///
    /// # Errors
    /// [`RecordError::Write`] when the directory or the file cannot be made.
    pub fn create(spool: &Path, run_index: u32) -> Result<Self, RecordError> {
        fs::create_dir_all(spool).map_err(|e| RecordError::write(spool, e))?;
        let path = spool.join(R::FILE);
        let metadata =
            [("schema", R::SCHEMA.to_string()), ("kind", R::KIND.to_owned()), ("run", run_index.to_string())];
        let metadata = metadata.map(|(key, value)| (format!("wiregauge.{key}"), value));
        let schema = R::schema(metadata.into());
        let encoder =
            StreamWriter::try_new(Vec::new(), &schema).map_err(|e| RecordError::encode(&path, e))?;
        let file = File::create(&path).map_err(|e| RecordError::write(&path, e))?;
        let batch = Vec::with_capacity(BATCH);
        Ok(Self { path, file, schema, kinds: R::kinds(), encoder, batch, written: 0 })
    }

    /// Takes one row; a full batch goes to the file at once.
    ///
    /// # Errors
    /// [`RecordError::Write`] when a batch did not fit on the disk; its rows are lost, everything before stays
    /// readable.
    pub fn push(&mut self, row: R) -> Result<(), RecordError> {
        self.batch.push(row);
        if self.batch.len() == BATCH { self.flush() } else { Ok(()) }
    }

    /// Writes the rows gathered so far as a batch.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn flush(&mut self) -> Result<(), RecordError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let rows = self.batch.len() as u64;
        let encoded = R::batch(&self.batch, &self.schema, &self.kinds).and_then(|b| self.encoder.write(&b));
        self.batch.clear();
        encoded.map_err(|e| RecordError::encode(&self.path, e))?;
        self.emit()?;
        self.written += rows;
        Ok(())
    }

    /// Writes the rest and the end mark. Returns the number of rows in the file.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(mut self) -> Result<u64, RecordError> {
        self.flush()?;
        self.encoder.finish().map_err(|e| RecordError::encode(&self.path, e))?;
        self.emit()?;
        Ok(self.written)
    }

    fn emit(&mut self) -> Result<(), RecordError> {
        let bytes = self.encoder.get_mut();
        let written = self.file.write_all(bytes).map_err(|e| RecordError::write(&self.path, e));
        bytes.clear();
        written
    }
}

/// Reads the table in `path`, up to its end or its damage.
///
/// # Errors
/// [`RecordError::Read`] when the file cannot be opened, [`RecordError::Foreign`] when it belongs to another run than
/// `run_index`.
pub fn read_table<R: Row>(path: &Path, run_index: u32) -> Result<(Vec<R>, Option<Damage>), RecordError> {
    let file = open_regular(path).map_err(|e| RecordError::read(path, e))?;
    let bytes = file.metadata().map_err(|e| RecordError::read(path, e))?.len();
    let mut rows = Vec::new();
    let problem = match Messages::begin(file, bytes)
        .and_then(|messages| guarded(|| StreamReader::try_new(messages, None)))
    {
        Err(problem) => Some(problem),
        Ok(mut stream) => {
            let run = stream.schema().metadata().get("wiregauge.run").cloned().unwrap_or_default();
            if run != run_index.to_string() {
                let problem = format!("holds the {} of run `{run}`, not of run {run_index}", R::KIND);
                return Err(RecordError::Foreign { path: path.to_owned(), problem });
            }
            loop {
                let next = guarded(|| stream.next().transpose())
                    .and_then(|batch| batch.map(|batch| R::decode(&batch, &mut rows)).transpose());
                match next {
                    Ok(Some(())) => {}
                    Ok(None) => break stream.get_mut().take_problem(),
                    Err(problem) => break Some(format!("it is damaged: {problem}")),
                }
            }
        }
    };
    let records_read = rows.len() as u64;
    let file = path.display().to_string();
    let damage = problem.map(|problem| Damage { file, problem, records_read, ..Damage::default() });
    Ok((rows, damage))
}
