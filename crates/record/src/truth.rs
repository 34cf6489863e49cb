//! What was true beside the records: how a bench keeps it during a run, and how it is stored for good.
//!
//! During a run it goes to one Arrow IPC stream beside the segments, readable up to its last whole batch after
//! a crash, as segments are; afterwards to one Parquet file (`wg_track::store_truth`). Nothing that judges reads either of them: they are
//! there so that judging can be judged. A folder of rotating files, as records have, was not taken, because
//! truth is sparse.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::{Int64Type, UInt16Type, UInt32Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use wg_frame::time::RunTime;

use crate::columns::{
    CodeColumn, bit_column, bits, codes, number_column, numbers, vocabulary, vocabulary_type,
};
use crate::error::RecordError;
use crate::guard::guarded;
use crate::regular::open_regular;
use crate::schema::{RecordFlags, Truth, TruthKind};
use crate::segment::{Damage, Messages};

/// Version of the truth columns; stored as `wiregauge.schema` in every truth file.
pub const TRUTH_SCHEMA: u32 = 1;

/// Name of the truth of a run in its spool.
pub const TRUTH_FILE: &str = "truth.arrows";

/// Rows in a full batch.
const BATCH: usize = 4096;

/// Writes the truth of one run to [`TRUTH_FILE`] in its spool.
///
/// Memory is bounded: one batch and its encoded bytes. Dropping the writer without [`finish`](Self::finish) loses
/// the unfinished batch and leaves the file without its end mark, as a crash would.
pub struct TruthWriter {
    path: PathBuf,
    file: File,
    schema: SchemaRef,
    kinds: ArrayRef,
    /// Encodes into memory; what it holds goes to the file in one write.
    encoder: StreamWriter<Vec<u8>>,
    batch: Vec<Truth>,
    written: u64,
}

impl TruthWriter {
    /// Begins in `spool`, which is created if missing. The file exists from now on, also when nothing follows:
    /// a run without disturbances then says so.
    ///
    /// # Errors
    /// [`RecordError::Write`] when the directory or the file cannot be made.
    pub fn create(spool: &Path, run_index: u32) -> Result<Self, RecordError> {
        fs::create_dir_all(spool).map_err(|e| RecordError::write(spool, e))?;
        let path = spool.join(TRUTH_FILE);
        let metadata = [
            ("schema", TRUTH_SCHEMA.to_string()),
            ("kind", "truth".to_owned()),
            ("run", run_index.to_string()),
        ];
        let metadata = metadata.map(|(key, value)| (format!("wiregauge.{key}"), value));
        let schema = truth_schema(metadata.into());
        let encoder =
            StreamWriter::try_new(Vec::new(), &schema).map_err(|e| RecordError::encode(&path, e))?;
        let file = File::create(&path).map_err(|e| RecordError::write(&path, e))?;
        let kinds = vocabulary::<TruthKind>();
        Ok(Self { path, file, schema, kinds, encoder, batch: Vec::with_capacity(BATCH), written: 0 })
    }

    /// Takes one row; a full batch goes to the file at once.
    ///
    /// # Errors
    /// [`RecordError::Write`] when a batch did not fit on the disk; its rows are lost, everything before stays
    /// readable.
    pub fn push(&mut self, truth: Truth) -> Result<(), RecordError> {
        self.batch.push(truth);
        if self.batch.len() == BATCH { self.flush() } else { Ok(()) }
    }

    /// Writes out the rows gathered so far, as a batch of their own.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn flush(&mut self) -> Result<(), RecordError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let rows = self.batch.len() as u64;
        let encoded =
            truth_batch(&self.batch, &self.schema, &self.kinds).and_then(|b| self.encoder.write(&b));
        self.batch.clear();
        encoded.map_err(|e| RecordError::encode(&self.path, e))?;
        self.emit()?;
        self.written += rows;
        Ok(())
    }

    /// Writes out the rest and sets the end mark. Returns the number of rows in the file.
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

/// Reads the truth in `path`, up to its end or its damage.
///
/// # Errors
/// [`RecordError::Read`] when the file cannot be opened, [`RecordError::Foreign`] when it is the truth of
/// another run than `run_index`.
pub fn read_truth(path: &Path, run_index: u32) -> Result<(Vec<Truth>, Option<Damage>), RecordError> {
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
                let problem = format!("holds what was true of run `{run}`, not of run {run_index}");
                return Err(RecordError::Foreign { path: path.to_owned(), problem });
            }
            loop {
                let next = guarded(|| stream.next().transpose())
                    .and_then(|batch| batch.map(|batch| decode(&batch, &mut rows)).transpose());
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

/// Columns of the truth, and what their file says of itself.
pub fn truth_schema(metadata: HashMap<String, String>) -> SchemaRef {
    let field = |name: &str, data_type| Field::new(name, data_type, false);
    let fields = vec![
        field("time", DataType::Int64),
        field("kind", vocabulary_type()),
        field("value", DataType::Int64),
        field("flow", DataType::UInt16),
        field("sequence", DataType::UInt32),
        field("node", DataType::UInt16),
        field("port", DataType::UInt16),
        field("returning", DataType::Boolean),
        field("warm_up", DataType::Boolean),
    ];
    Arc::new(Schema::new(fields).with_metadata(metadata))
}

/// `rows` in the columns of [`truth_schema`]; `kinds` is the [vocabulary] of [`TruthKind`].
///
/// # Errors
/// Of Arrow, where `schema` is another.
pub fn truth_batch(rows: &[Truth], schema: &SchemaRef, kinds: &ArrayRef) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_new(
        schema.clone(),
        vec![
            numbers::<Truth, Int64Type>(rows, |t| t.time.as_picos()),
            codes(rows, kinds, |t| t.kind.code())?,
            numbers::<Truth, Int64Type>(rows, |t| t.value),
            numbers::<Truth, UInt16Type>(rows, |t| t.flow),
            numbers::<Truth, UInt32Type>(rows, |t| t.sequence),
            numbers::<Truth, UInt16Type>(rows, |t| t.node),
            numbers::<Truth, UInt16Type>(rows, |t| t.port),
            bits(rows, |t| t.flags.has(RecordFlags::RETURN)),
            bits(rows, |t| t.flags.has(RecordFlags::WARM_UP)),
        ],
    )
}

fn decode(batch: &RecordBatch, into: &mut Vec<Truth>) -> Result<(), String> {
    let time = number_column::<Int64Type>(batch, "time")?;
    let kind = CodeColumn::<TruthKind>::of(batch, "kind")?;
    let value = number_column::<Int64Type>(batch, "value")?;
    let flow = number_column::<UInt16Type>(batch, "flow")?;
    let sequence = number_column::<UInt32Type>(batch, "sequence")?;
    let node = number_column::<UInt16Type>(batch, "node")?;
    let port = number_column::<UInt16Type>(batch, "port")?;
    let returning = bit_column(batch, "returning")?;
    let warm_up = bit_column(batch, "warm_up")?;
    into.extend((0..batch.num_rows()).map(|i| Truth {
        time: RunTime::from_picos(time[i]),
        value: value[i],
        sequence: sequence[i],
        flow: flow[i],
        node: node[i],
        port: port[i],
        kind: kind.at(i),
        flags: RecordFlags::from_bits(u8::from(returning.value(i)) | u8::from(warm_up.value(i)) << 1),
    }));
    Ok(())
}
