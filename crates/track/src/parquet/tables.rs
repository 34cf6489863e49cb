//! Tables of tracking: messages, passages through switches, and distributions.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, UInt64Builder};
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, PrimitiveArray, RecordBatch, StringArray,
    UInt8Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use wg_frame::time::RunTime;

use super::write::{TableWriter, properties, write_whole};
use super::{MESSAGE_SCHEMA, PASSAGE_SCHEMA, SKETCH_SCHEMA};
use crate::tracking::{Distributions, Message, Outcome, Passage};
use wg_record::RecordError;
use wg_record::Sketch;
use wg_record::columns::{bits, numbers, vocabulary};
use wg_record::{Coded, DropReason, Point};

/// Stores messages.
pub struct MessageWriter(TableWriter);

impl MessageWriter {
    /// Begins the messages file of run `run_index`.
    ///
    /// # Errors
    /// [`RecordError::Write`] when the disk refuses; `path` is then as it was before.
    pub fn create(path: &Path, run_index: u32) -> Result<Self, RecordError> {
        let fields = message_columns().map(|(name, nullable, get)| {
            Field::new(name, get(&[]).map_or(DataType::Null, |array| array.data_type().clone()), nullable)
        });
        let delta = ["sequence", "intended", "tx_app", "tx_drv", "rx_drv", "rx_app", "tx_wire", "rx_wire"];
        let properties = properties("messages", MESSAGE_SCHEMA, run_index, &delta);
        TableWriter::create(path, &Arc::new(Schema::new(fields.to_vec())), properties).map(Self)
    }

    /// Appends `messages`.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn write(&mut self, messages: &[Message]) -> Result<(), RecordError> {
        self.0.write(messages, |rows, schema| {
            let arrays =
                message_columns().iter().map(|(_, _, get)| get(rows)).collect::<Result<Vec<_>, _>>()?;
            RecordBatch::try_new(schema.clone(), arrays)
        })
    }

    /// Ends the file and renames it to its final name.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn finish(self) -> Result<(), RecordError> {
        self.0.finish()
    }
}

/// Stores passages through switches.
pub struct PassageWriter(TableWriter);

impl PassageWriter {
    /// Begins the passages file of run `run_index`.
    ///
    /// # Errors
    /// [`RecordError::Write`] when the disk refuses; `path` is then as it was before.
    pub fn create(path: &Path, run_index: u32) -> Result<Self, RecordError> {
        let field = |name: &str, data_type| Field::new(name, data_type, false);
        let schema = Schema::new(vec![
            field("flow", DataType::UInt16),
            field("sequence", DataType::UInt32),
            field("node", DataType::UInt16),
            field("port", DataType::UInt16),
            field("returning", DataType::Boolean),
            field("came", DataType::Int64),
            field("left", DataType::Int64),
        ]);
        let properties = properties("passages", PASSAGE_SCHEMA, run_index, &["sequence", "came", "left"]);
        TableWriter::create(path, &Arc::new(schema), properties).map(Self)
    }

    /// Appends `passages`.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn write(&mut self, passages: &[Passage]) -> Result<(), RecordError> {
        self.0.write(passages, |rows, schema| {
            let columns = vec![
                numbers::<_, UInt16Type>(rows, |p| p.flow),
                numbers::<_, UInt32Type>(rows, |p| p.sequence),
                numbers::<_, UInt16Type>(rows, |p| p.node),
                numbers::<_, UInt16Type>(rows, |p| p.port),
                bits(rows, |p| p.returning),
                numbers::<_, Int64Type>(rows, |p| p.came.as_picos()),
                numbers::<_, Int64Type>(rows, |p| p.left.as_picos()),
            ];
            RecordBatch::try_new(schema.clone(), columns)
        })
    }

    /// Ends the file and renames it to its final name.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn finish(self) -> Result<(), RecordError> {
        self.0.finish()
    }
}

/// A row of the sketches table.
struct Row<'a> {
    flow: u16,
    node: u16,
    port: u16,
    series: &'static str,
    sketch: &'a Sketch,
}

/// Writes the distributions of run `run_index` to `path`.
///
/// # Errors
/// [`RecordError::Write`] when the disk refuses; `path` is then as it was before.
pub fn write_sketches(path: &Path, run_index: u32, distributions: &Distributions) -> Result<(), RecordError> {
    let mut rows = Vec::new();
    for (flow, to, series) in &distributions.flows {
        let of_flow = series.sketches();
        rows.extend(of_flow.map(|(series, sketch)| Row { flow: *flow, node: *to, port: 0, series, sketch }));
    }
    for (flow, node, port, sketch) in &distributions.hops {
        rows.push(Row { flow: *flow, node: *node, port: *port, series: "residence", sketch });
    }
    let field = |name: &str, data_type| Field::new(name, data_type, false);
    let list = |of| DataType::List(Arc::new(Field::new("item", of, true)));
    let schema = Arc::new(Schema::new(vec![
        field("flow", DataType::UInt16),
        field("node", DataType::UInt16),
        field("port", DataType::UInt16),
        field("series", DataType::Utf8),
        field("n", DataType::UInt64),
        field("min", DataType::Int64),
        field("max", DataType::Int64),
        field("mean", DataType::Float64),
        field("squared_deviations", DataType::Float64),
        field("low", list(DataType::Int64)),
        field("high", list(DataType::Int64)),
        field("count", list(DataType::UInt64)),
    ]));
    write_whole(path, &schema, properties("sketches", SKETCH_SCHEMA, run_index, &[]), &rows, sketch_batch)
}

fn sketch_batch(rows: &[Row<'_>], schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let (mut low, mut high) = (ListBuilder::new(Int64Builder::new()), ListBuilder::new(Int64Builder::new()));
    let mut count = ListBuilder::new(UInt64Builder::new());
    for row in rows {
        for bucket in row.sketch.buckets() {
            low.values().append_value(bucket.low);
            high.values().append_value(bucket.high);
            count.values().append_value(bucket.count);
        }
        low.append(true);
        high.append(true);
        count.append(true);
    }
    let float = |get: fn(&Sketch) -> f64| -> ArrayRef {
        Arc::new(rows.iter().map(|row| Some(get(row.sketch))).collect::<Float64Array>())
    };
    RecordBatch::try_new(
        schema.clone(),
        vec![
            numbers::<_, UInt16Type>(rows, |row| row.flow),
            numbers::<_, UInt16Type>(rows, |row| row.node),
            numbers::<_, UInt16Type>(rows, |row| row.port),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.series))),
            numbers::<_, UInt64Type>(rows, |row| row.sketch.n()),
            numbers::<_, Int64Type>(rows, |row| row.sketch.min().unwrap_or_default()),
            numbers::<_, Int64Type>(rows, |row| row.sketch.max().unwrap_or_default()),
            float(|sketch| sketch.sum() as f64 / sketch.n() as f64),
            float(Sketch::squared_deviations),
            Arc::new(low.finish()),
            Arc::new(high.finish()),
            Arc::new(count.finish()),
        ],
    )
}

type Get = fn(&[Message]) -> Result<ArrayRef, ArrowError>;

/// The message columns: name, whether a cell may be empty, and its values.
fn message_columns() -> [(&'static str, bool, Get); 29] {
    [
        ("flow", false, |rows| u16s(rows, |m| Some(m.flow))),
        ("to", false, |rows| u16s(rows, |m| Some(m.to))),
        ("sequence", false, |rows| u32s(rows, |m| m.sequence)),
        ("life", false, |rows| u16s(rows, |m| Some(m.life))),
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
