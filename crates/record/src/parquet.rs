//! Parquet files of a run: its records and its messages.
//!
//! A file appears under its name only when it is whole: it is written beside it, synced and renamed. What a
//! killed writer leaves behind is hidden, and replaced by the next one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use ::parquet::schema::types::ColumnPath;
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, RecordBatch, UInt8Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use wg_frame::time::RunTime;

use crate::columns::{RecordColumns, decode_records, record_schema, vocabulary};
use crate::error::RecordError;
use crate::guard::guarded;
use crate::schema::{Coded, DropReason, Point, RECORD_SCHEMA, Record};
use crate::tracking::{Message, Outcome, Tracked};

/// Version of the message columns; stored as `wiregauge.schema` in every messages file.
pub const MESSAGE_SCHEMA: u32 = 1;

/// Rows handed to the encoder at once.
const ROWS_AT_ONCE: usize = 1 << 16;
/// Rows in a row group.
const ROW_GROUP: usize = 1 << 20;

/// Sorts `records` by time, equal times staying in their order, and writes them to `path`.
///
/// # Errors
/// [`RecordError::Write`] when the disk refuses; `path` is then as it was before.
pub fn write_records(path: &Path, run_index: u32, records: &mut [Record]) -> Result<(), RecordError> {
    records.sort_by_key(|record| record.time);
    let schema = record_schema(Default::default());
    let columns = RecordColumns::new(0);
    let properties = properties("records", RECORD_SCHEMA, run_index, &["time", "sequence"]);
    write_whole(path, &schema, properties, records, |rows| columns.batch_of(rows, &schema))
}

/// Writes the messages of `tracked` to `path`.
///
/// # Errors
/// As [`write_records`].
pub fn write_messages(path: &Path, tracked: &Tracked) -> Result<(), RecordError> {
    let columns = message_columns();
    let fields = columns.iter().map(|(name, nullable, get)| {
        Field::new(*name, get(&[]).map_or(DataType::Null, |array| array.data_type().clone()), *nullable)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let delta = ["sequence", "intended", "tx_app", "tx_drv", "rx_drv", "rx_app", "tx_wire", "rx_wire"];
    let properties = properties("messages", MESSAGE_SCHEMA, tracked.summary.index, &delta);
    write_whole(path, &schema, properties, &tracked.messages, |rows| {
        let arrays = columns.iter().map(|(_, _, get)| get(rows)).collect::<Result<Vec<_>, _>>()?;
        RecordBatch::try_new(schema.clone(), arrays)
    })
}

/// Reads every record of `path` and the index of the run they are of.
///
/// # Errors
/// [`RecordError::Read`] when the file cannot be opened, [`RecordError::Foreign`] when it is damaged or not a
/// records file of this schema.
pub fn read_records(path: &Path) -> Result<(u32, Vec<Record>), RecordError> {
    let file = File::open(path).map_err(|e| RecordError::read(path, e))?;
    let mut records = Vec::new();
    let run_index = guarded(|| -> Result<u32, String> {
        let builder =
            ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| format!("not a Parquet file: {e}"))?;
        let run_index = check_metadata(builder.metadata().file_metadata().key_value_metadata())?;
        let reader =
            builder.with_batch_size(ROWS_AT_ONCE).build().map_err(|e| format!("cannot be decoded: {e}"))?;
        for batch in reader {
            decode_records(&batch.map_err(|e| format!("damaged: {e}"))?, &mut records)?;
        }
        Ok(run_index)
    })
    .map_err(|problem| RecordError::Foreign { path: path.to_owned(), problem })?;
    Ok((run_index, records))
}

fn check_metadata(metadata: Option<&Vec<KeyValue>>) -> Result<u32, String> {
    let get = |key: &str| {
        let found = metadata.into_iter().flatten().find(|pair| pair.key == format!("wiregauge.{key}"));
        found.and_then(|pair| pair.value.as_deref()).unwrap_or_default()
    };
    if get("kind") != "records" {
        return Err("not a records file of wiregauge".to_owned());
    }
    if get("schema") != RECORD_SCHEMA.to_string() {
        return Err(format!(
            "written with record schema `{}`, this program reads {RECORD_SCHEMA}; \
             use the version of wiregauge that wrote it",
            get("schema")
        ));
    }
    get("run").parse().map_err(|_| "its metadata does not say of which run it is".to_owned())
}

/// How a file of ours is encoded and what its metadata says.
pub(crate) fn properties(kind: &str, schema: u32, run_index: u32, delta: &[&str]) -> WriterPropertiesBuilder {
    let pair = |key: &str, value: String| KeyValue::new(format!("wiregauge.{key}"), value);
    let metadata = vec![
        pair("schema", schema.to_string()),
        pair("kind", kind.to_owned()),
        pair("run", run_index.to_string()),
    ];
    let builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_key_value_metadata(Some(metadata));
    // Columns whose values hardly repeat: a dictionary of them would be as long as the column.
    delta.iter().fold(builder, |builder, name| {
        let column = ColumnPath::from(*name);
        builder
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED)
    })
}

/// Writes `rows` beside `path` and moves the whole file there.
pub(crate) fn write_whole<R>(
    path: &Path,
    schema: &SchemaRef,
    properties: WriterPropertiesBuilder,
    rows: &[R],
    batch: impl Fn(&[R]) -> Result<RecordBatch, ArrowError>,
) -> Result<(), RecordError> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|e| RecordError::write(directory, e))?;
    }
    let beside = partial_name(path);
    let written = (|| {
        let file = File::create(&beside).map_err(|e| RecordError::write(path, e))?;
        let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties.build()))
            .map_err(|e| parquet_error(path, e))?;
        for part in rows.chunks(ROWS_AT_ONCE) {
            let batch = batch(part).map_err(|e| RecordError::encode(path, e))?;
            writer.write(&batch).map_err(|e| parquet_error(path, e))?;
        }
        let file = writer.into_inner().map_err(|e| parquet_error(path, e))?;
        file.sync_data().map_err(|e| RecordError::write(path, e))?;
        fs::rename(&beside, path).map_err(|e| RecordError::write(path, e))
    })();
    if written.is_err() {
        drop(fs::remove_file(&beside));
    }
    written
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

type Get = fn(&[Message]) -> Result<ArrayRef, ArrowError>;

/// The message columns: name, whether a cell may be empty, and its values.
fn message_columns() -> [(&'static str, bool, Get); 28] {
    [
        ("flow", false, |rows| u16s(rows, |m| Some(m.flow))),
        ("to", false, |rows| u16s(rows, |m| Some(m.to))),
        ("sequence", false, |rows| u32s(rows, |m| m.sequence)),
        ("warm_up", false, |rows| bools(rows, |m| m.warm_up)),
        ("outcome", false, |rows| codes(rows, |m| Some(m.outcome), Outcome::code)),
        ("intended", true, |rows| times(rows, |m| m.intended)),
        ("tx_app", true, |rows| times(rows, |m| m.tx_app)),
        ("tx_drv", true, |rows| times(rows, |m| m.tx_drv)),
        ("rx_drv", true, |rows| times(rows, |m| m.rx_drv)),
        ("rx_app", true, |rows| times(rows, |m| m.rx_app)),
        ("back_tx_app", true, |rows| times(rows, |m| m.back_tx_app)),
        ("back_tx_drv", true, |rows| times(rows, |m| m.back_tx_drv)),
        ("back_rx_drv", true, |rows| times(rows, |m| m.back_rx_drv)),
        ("back_rx_app", true, |rows| times(rows, |m| m.back_rx_app)),
        ("tx_wire", true, |rows| times(rows, |m| m.tx_wire)),
        ("tx_wire_b", true, |rows| times(rows, |m| m.tx_wire_b)),
        ("rx_wire", true, |rows| times(rows, |m| m.rx_wire)),
        ("rx_wire_b", true, |rows| times(rows, |m| m.rx_wire_b)),
        ("length", false, |rows| u16s(rows, |m| Some(m.length))),
        ("copies", false, |rows| u16s(rows, |m| Some(m.copies))),
        ("corrupted_copies", false, |rows| u16s(rows, |m| Some(m.corrupted_copies))),
        ("misdirected_copies", false, |rows| u16s(rows, |m| Some(m.misdirected_copies))),
        ("reordered", false, |rows| bools(rows, |m| m.reordered)),
        ("reorder_extent", false, |rows| u32s(rows, |m| m.reorder_extent)),
        ("late", false, |rows| bools(rows, |m| m.late)),
        ("last_node", true, |rows| u16s(rows, |m| m.last_node)),
        ("last_point", true, |rows| codes(rows, |m| m.last_point, Point::code)),
        ("drop_reason", false, |rows| codes(rows, |m| Some(m.drop_reason), DropReason::code)),
    ]
}

fn times(rows: &[Message], get: fn(&Message) -> Option<RunTime>) -> Result<ArrayRef, ArrowError> {
    let cells = rows.iter().map(|m| get(m).map(RunTime::as_picos));
    Ok(Arc::new(cells.collect::<PrimitiveArray<Int64Type>>()))
}

fn u16s(rows: &[Message], get: fn(&Message) -> Option<u16>) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(rows.iter().map(get).collect::<PrimitiveArray<UInt16Type>>()))
}

fn u32s(rows: &[Message], get: fn(&Message) -> u32) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(PrimitiveArray::<UInt32Type>::from_iter_values(rows.iter().map(get))))
}

fn bools(rows: &[Message], get: fn(&Message) -> bool) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(rows.iter().map(|m| Some(get(m))).collect::<BooleanArray>()))
}

fn codes<T: Coded>(
    rows: &[Message],
    get: fn(&Message) -> Option<T>,
    code: fn(T) -> u8,
) -> Result<ArrayRef, ArrowError> {
    let keys: UInt8Array = rows.iter().map(|m| get(m).map(code)).collect();
    Ok(Arc::new(DictionaryArray::<UInt8Type>::try_new(keys, vocabulary::<T>())?))
}
