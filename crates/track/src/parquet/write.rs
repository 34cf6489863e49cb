//! Writing of files that appear under their name only when complete.
//!
//! A file is written beside its name, synced and renamed. The remains of a killed writer are hidden, and replaced by
//! the next.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, Encoding};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use ::parquet::schema::types::ColumnPath;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};

use super::{ROW_GROUP, ROWS_AT_ONCE, TABLE_GROUP};
use wg_record::RecordError;
use wg_record::columns::{RecordColumns, record_schema};
use wg_record::{RECORD_SCHEMA, Record};

/// Encoding and metadata of a file.
pub(crate) fn properties(kind: &str, schema: u32, run_index: u32, delta: &[&str]) -> WriterPropertiesBuilder {
    let pair = |key: &str, value: String| KeyValue::new(format!("wiregauge.{key}"), value);
    let metadata = vec![
        pair("schema", schema.to_string()),
        pair("kind", kind.to_owned()),
        pair("run", run_index.to_string()),
    ];
    let builder = WriterProperties::builder()
        .set_compression(Compression::LZ4_RAW)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(TABLE_GROUP))
        .set_key_value_metadata(Some(metadata));
    // Columns with few repetitions: their dictionary would be as long as the column.
    delta.iter().fold(builder, |builder, name| {
        let column = ColumnPath::from(*name);
        builder
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED)
    })
}

/// A table being written; dropped unfinished, it leaves no file.
pub(crate) struct TableWriter {
    path: PathBuf,
    beside: PathBuf,
    schema: SchemaRef,
    writer: Option<ArrowWriter<File>>,
}

impl TableWriter {
    pub(crate) fn create(
        path: &Path,
        schema: &SchemaRef,
        properties: WriterPropertiesBuilder,
    ) -> Result<Self, RecordError> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(|e| RecordError::write(directory, e))?;
        }
        let beside = partial_name(path);
        let file = File::create(&beside).map_err(|e| RecordError::write(path, e))?;
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties.build()));
        let mut table = Self { path: path.to_owned(), beside, schema: schema.clone(), writer: None };
        table.writer = Some(writer.map_err(|e| parquet_error(path, e))?);
        Ok(table)
    }

    /// Appends `rows`, a batch at a time.
    pub(crate) fn write<R>(
        &mut self,
        rows: &[R],
        batch: impl Fn(&[R], &SchemaRef) -> Result<RecordBatch, ArrowError>,
    ) -> Result<(), RecordError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        for part in rows.chunks(ROWS_AT_ONCE) {
            let batch = batch(part, &self.schema).map_err(|e| RecordError::encode(&self.path, e))?;
            writer.write(&batch).map_err(|e| parquet_error(&self.path, e))?;
        }
        Ok(())
    }

    /// Ends the file and renames it to its final name.
    pub(crate) fn finish(mut self) -> Result<(), RecordError> {
        let path = self.path.clone();
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        // Not `into_inner`, whose error for a full disk has only the text.
        writer.finish().map_err(|e| parquet_error(&path, e))?;
        writer.inner().sync_data().map_err(|e| RecordError::write(&path, e))?;
        fs::rename(&self.beside, &path).map_err(|e| RecordError::write(&path, e))
    }
}

impl Drop for TableWriter {
    fn drop(&mut self) {
        // After the rename the name no longer exists.
        drop(fs::remove_file(&self.beside));
    }
}

/// Writes `rows` as a complete table.
pub(crate) fn write_whole<R>(
    path: &Path,
    schema: &SchemaRef,
    properties: WriterPropertiesBuilder,
    rows: &[R],
    batch: impl Fn(&[R], &SchemaRef) -> Result<RecordBatch, ArrowError>,
) -> Result<(), RecordError> {
    let mut table = TableWriter::create(path, schema, properties)?;
    table.write(rows, batch)?;
    table.finish()
}

/// Stores records, which must come in the order of time.
pub struct RecordWriter {
    table: TableWriter,
    columns: RecordColumns,
}

impl RecordWriter {
    /// Begins the records file of run `run_index`.
    ///
    /// # Errors
    /// [`RecordError::Write`] when the disk refuses; `path` is then as it was before.
    pub fn create(path: &Path, run_index: u32) -> Result<Self, RecordError> {
        let properties = properties("records", RECORD_SCHEMA, run_index, &["time", "sequence"])
            .set_max_row_group_row_count(Some(ROW_GROUP));
        let table = TableWriter::create(path, &record_schema(Default::default()), properties)?;
        Ok(Self { table, columns: RecordColumns::default() })
    }

    /// Appends `records`.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn write(&mut self, records: &[Record]) -> Result<(), RecordError> {
        self.table.write(records, |rows, schema| self.columns.batch_of(rows, schema))
    }

    /// Ends the file and renames it to its final name.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn finish(self) -> Result<(), RecordError> {
        self.table.finish()
    }
}

fn partial_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.partial"))
}

fn parquet_error(path: &Path, error: ParquetError) -> RecordError {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(source) => RecordError::write(path, *source),
            Err(cause) => RecordError::encode(path, cause),
        },
        other => RecordError::encode(path, other),
    }
}
