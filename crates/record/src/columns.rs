//! Records as Arrow columns and back; shared by segment files and Parquet.
//!
//! Vocabulary columns carry their whole vocabulary as dictionary, in the order of the codes, so that a key is the code
//! itself and encoding needs no look-up. Decoding uses the dictionary's text, not its order, because a rewritten file
//! may number its dictionary differently.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_buffer::{BooleanBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use crate::schema::{Clock, Coded, Crc, DropReason, Point, Record, RecordFlags};

/// Type of a vocabulary column.
pub fn vocabulary_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8))
}

/// The dictionary of a vocabulary column: every name, at the index of its code.
pub fn vocabulary<T: Coded>() -> ArrayRef {
    Arc::new(StringArray::from_iter_values(T::all().iter().map(|v| v.text())))
}

/// The record columns, with file metadata.
pub fn record_schema(metadata: HashMap<String, String>) -> SchemaRef {
    let field = |name: &str, data_type| Field::new(name, data_type, false);
    Arc::new(
        Schema::new(vec![
            field("time", DataType::Int64),
            field("flow", DataType::UInt16),
            field("sequence", DataType::UInt32),
            field("node", DataType::UInt16),
            field("port", DataType::UInt16),
            field("length", DataType::UInt16),
            field("point", vocabulary_type()),
            field("clock", vocabulary_type()),
            field("crc", vocabulary_type()),
            field("reason", vocabulary_type()),
            field("returning", DataType::Boolean),
            field("warm_up", DataType::Boolean),
        ])
        .with_metadata(metadata),
    )
}

/// Encodes batches of records.
#[derive(Debug)]
pub struct RecordColumns {
    dictionaries: [ArrayRef; 4],
}

impl Default for RecordColumns {
    fn default() -> Self {
        let dictionaries =
            [vocabulary::<Point>(), vocabulary::<Clock>(), vocabulary::<Crc>(), vocabulary::<DropReason>()];
        Self { dictionaries }
    }
}

impl RecordColumns {
    /// `records` as a batch.
    pub fn batch_of(&self, records: &[Record], schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let [points, clocks, crcs, reasons] = &self.dictionaries;
        RecordBatch::try_new(
            schema.clone(),
            vec![
                numbers::<Record, Int64Type>(records, |r| r.time.as_picos()),
                numbers::<Record, UInt16Type>(records, |r| r.flow),
                numbers::<Record, UInt32Type>(records, |r| r.sequence),
                numbers::<Record, UInt16Type>(records, |r| r.node),
                numbers::<Record, UInt16Type>(records, |r| r.port),
                numbers::<Record, UInt16Type>(records, |r| r.length),
                codes(records, points, |r| r.point.code())?,
                codes(records, clocks, |r| r.clock.code())?,
                codes(records, crcs, |r| r.crc.code())?,
                codes(records, reasons, |r| r.reason.code())?,
                bits(records, |r| r.flags.has(RecordFlags::RETURN)),
                bits(records, |r| r.flags.has(RecordFlags::WARM_UP)),
            ],
        )
    }
}

/// A column of numbers.
pub fn numbers<R, T: ArrowPrimitiveType>(rows: &[R], get: impl Fn(&R) -> T::Native) -> ArrayRef {
    let values: Vec<T::Native> = rows.iter().map(get).collect();
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), None))
}

/// A vocabulary column; `dictionary` is that of [`vocabulary`].
pub fn codes<R>(rows: &[R], dictionary: &ArrayRef, get: impl Fn(&R) -> u8) -> Result<ArrayRef, ArrowError> {
    let keys: Vec<u8> = rows.iter().map(get).collect();
    let keys = PrimitiveArray::<UInt8Type>::new(ScalarBuffer::from(keys), None);
    Ok(Arc::new(DictionaryArray::try_new(keys, dictionary.clone())?))
}

/// A column of flags.
pub fn bits<R>(rows: &[R], get: impl Fn(&R) -> bool) -> ArrayRef {
    let values = BooleanBuffer::collect_bool(rows.len(), |i| get(&rows[i]));
    Arc::new(BooleanArray::new(values, None))
}

fn column<'a, A: Array + 'static>(batch: &'a RecordBatch, name: &str) -> Result<&'a A, String> {
    let array = batch.column_by_name(name).ok_or_else(|| format!("the column `{name}` is missing"))?;
    if array.null_count() != 0 {
        return Err(format!("the column `{name}` has empty cells"));
    }
    array
        .as_any()
        .downcast_ref::<A>()
        .ok_or_else(|| format!("the column `{name}` has the unexpected type {}", array.data_type()))
}

/// The numeric column `name`, or a text about what is wrong with it.
pub fn number_column<'a, T: ArrowPrimitiveType>(
    batch: &'a RecordBatch,
    name: &str,
) -> Result<&'a [T::Native], String> {
    Ok(column::<PrimitiveArray<T>>(batch, name)?.values())
}

/// The flag column `name`, or a text about what is wrong with it.
pub fn bit_column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a BooleanArray, String> {
    column(batch, name)
}

/// A vocabulary column.
pub struct CodeColumn<'a, T> {
    keys: &'a [u8],
    /// Value of each key.
    meaning: [T; 256],
}

impl<'a, T: Coded> CodeColumn<'a, T> {
    /// The vocabulary column `name`, or a text about what is wrong with it.
    pub fn of(batch: &'a RecordBatch, name: &str) -> Result<Self, String> {
        let array: &DictionaryArray<UInt8Type> = column(batch, name)?;
        let texts = array
            .values()
            .as_any()
            .downcast_ref::<StringArray>()
            .ok_or_else(|| format!("the dictionary of column `{name}` is not text"))?;
        let mut meaning = [T::all()[0]; 256];
        let mut is_known = [false; 256];
        for (key, text) in texts.iter().enumerate().take(256) {
            if let Some(value) = text.and_then(|text| T::all().iter().copied().find(|v| v.text() == text)) {
                (meaning[key], is_known[key]) = (value, true);
            }
        }
        let keys: &[u8] = array.keys().values();
        // Usually every name is known, and a check of the highest key suffices.
        let known = is_known.iter().take_while(|known| **known).count();
        let highest = keys.iter().copied().max().map_or(0, usize::from);
        if highest >= known && !keys.iter().all(|key| is_known[usize::from(*key)]) {
            return Err(format!("the column `{name}` has a word outside its vocabulary"));
        }
        Ok(Self { keys, meaning })
    }

    /// The value in this row.
    #[inline]
    pub fn at(&self, row: usize) -> T {
        self.meaning[usize::from(self.keys[row])]
    }
}

/// A column of a table beside the records, defined once for its schema, writing and reading.
pub struct Cells<R> {
    /// Name of the column.
    pub name: &'static str,
    /// Arrow type of the column.
    pub data_type: fn() -> DataType,
    /// Encodes the cells of rows; the array is the dictionary of their kinds.
    pub write: fn(&[R], &ArrayRef) -> Result<ArrayRef, ArrowError>,
    /// Decodes the column of this name into rows, or returns what is wrong with it.
    pub read: fn(&RecordBatch, &str, &mut [R]) -> Result<(), String>,
}

/// [`Cells`] of numbers: name, Arrow type, and how to read and set the field of a row.
macro_rules! number_cells {
    ($name:literal, $arrow:ty, $get:expr, $set:expr) => {
        $crate::columns::Cells {
            name: $name,
            data_type: || <$arrow as ::arrow_array::types::ArrowPrimitiveType>::DATA_TYPE,
            write: |rows, _| Ok($crate::columns::numbers::<Self, $arrow>(rows, $get)),
            read: |batch, name, rows| {
                let set: fn(&mut Self, <$arrow as ::arrow_array::types::ArrowPrimitiveType>::Native) = $set;
                let cells = $crate::columns::number_column::<$arrow>(batch, name)?;
                rows.iter_mut().zip(cells).for_each(|(row, cell)| set(row, *cell));
                Ok(())
            },
        }
    };
}

/// [`Cells`] of the kinds of rows, which have a field `kind` of this vocabulary.
macro_rules! kind_cells {
    ($kind:ty) => {
        $crate::columns::Cells {
            name: "kind",
            data_type: $crate::columns::vocabulary_type,
            write: |rows, kinds| $crate::columns::codes(rows, kinds, |row: &Self| row.kind.code()),
            read: |batch, name, rows| {
                let cells = $crate::columns::CodeColumn::<$kind>::of(batch, name)?;
                rows.iter_mut().enumerate().for_each(|(at, row)| row.kind = cells.at(at));
                Ok(())
            },
        }
    };
}

/// [`Cells`] of one of the flags of rows, which have a field `flags`.
macro_rules! flag_cells {
    ($name:literal, $flag:expr) => {
        $crate::columns::Cells {
            name: $name,
            data_type: || ::arrow_schema::DataType::Boolean,
            write: |rows, _| Ok($crate::columns::bits(rows, |row: &Self| row.flags.has($flag))),
            read: |batch, name, rows| {
                let cells = $crate::columns::bit_column(batch, name)?;
                for (row, is_set) in rows.iter_mut().zip(cells.values()) {
                    if is_set {
                        row.flags = row.flags.with($flag);
                    }
                }
                Ok(())
            },
        }
    };
}

pub(crate) use {flag_cells, kind_cells, number_cells};
