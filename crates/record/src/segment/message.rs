//! Arrow messages of a segment: schema and batches of records.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{FixedSizeBinaryArray, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::root_as_message;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::row::{CELL, Cell, FILLER, Layout, MOST_CELLS, decode_from};
use crate::schema::Record;

/// Name of the one column.
pub(super) const COLUMN: &str = "cell";

/// Width of a cell, in the type that Arrow uses.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "16")]
const CELL_WIDTH: i32 = CELL as i32;

/// The one column, with file metadata.
pub(super) fn segment_schema(metadata: HashMap<String, String>) -> SchemaRef {
    let field = Field::new(COLUMN, DataType::FixedSizeBinary(CELL_WIDTH), false);
    Arc::new(Schema::new(vec![field]).with_metadata(metadata))
}

/// The schema message at the beginning of a stream.
pub(super) fn schema_message(schema: &SchemaRef) -> Result<Vec<u8>, ArrowError> {
    let mut encoder = StreamWriter::try_new(Vec::new(), schema)?;
    Ok(std::mem::take(encoder.get_mut()))
}

/// A batch of `cells` as a message.
pub(super) fn message_of(cells: &[u8], schema: &SchemaRef) -> Result<Vec<u8>, ArrowError> {
    let column = FixedSizeBinaryArray::try_new(CELL_WIDTH, Buffer::from(cells), None)?;
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(column)])?;
    let mut encoder = StreamWriter::try_new(Vec::new(), schema)?;
    encoder.get_mut().clear();
    encoder.write(&batch)?;
    Ok(std::mem::take(encoder.get_mut()))
}

/// A position in a batch, between two records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    at: usize,
    layout: Layout,
    others: usize,
}

/// A full batch, encoded in place.
///
/// The messages of all full batches differ only in the bytes of the records: Arrow encodes one, and later records
/// overwrite its cells.
pub(super) struct FullBatch {
    message: Vec<u8>,
    /// Position of its cells in the message.
    place: Range<usize>,
    /// Position of the next cell.
    at: usize,
    layout: Layout,
    /// Number of cells that only precede a record's cell.
    others: usize,
}

impl FullBatch {
    /// A batch of `cells` cells.
    pub(super) fn new(schema: &SchemaRef, cells: usize) -> Result<Self, ArrowError> {
        let message = message_of(&vec![0; cells * CELL], schema)?;
        let is_whole = |place: &Range<usize>| place.len() == cells * CELL && place.start.is_multiple_of(CELL);
        let place = place(&message).filter(is_whole).ok_or_else(|| {
            ArrowError::IpcError("a batch is not laid out as the Arrow columnar format has it".to_owned())
        })?;
        Ok(Self { message, at: place.start, place, layout: Layout::new(), others: 0 })
    }

    /// Adds a record; call [`clear`](Self::clear) once the batch is full.
    #[inline(always)]
    pub(super) fn push(&mut self, record: &Record) {
        let (before, cell) = self.layout.encode(record);
        if let Some(before) = before {
            self.put(before);
            self.others += 1;
        }
        self.put(cell);
    }

    #[inline(always)]
    fn put(&mut self, cell: Cell) {
        // Cells lie at multiples of their length.
        if let Some(place) = self.message.as_chunks_mut::<CELL>().0.get_mut(self.at / CELL) {
            let [low, high] = cell.map(u128::from);
            *place = (high << 64 | low).to_le_bytes();
            self.at += CELL;
        }
    }

    /// The position of the next record.
    #[inline(always)]
    pub(super) const fn mark(&self) -> Mark {
        Mark { at: self.at, layout: self.layout, others: self.others }
    }

    /// Moves the records since `mark` to `into`.
    ///
    /// # Errors
    /// A sentence, if cells are no records.
    pub(super) fn take_back(&mut self, mark: &Mark, into: &mut Vec<Record>) -> Result<(), String> {
        let taken = decode_from(&mark.layout, self.message[mark.at..self.at].as_chunks().0, into);
        (self.at, self.layout, self.others) = (mark.at, mark.layout, mark.others);
        taken
    }

    /// Whether there may be no room for another record.
    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.at + MOST_CELLS * CELL > self.place.end
    }

    /// Number of records in the batch.
    pub(super) const fn records(&self) -> usize {
        (self.at - self.place.start) / CELL - self.others
    }

    /// The cells written so far.
    pub(super) fn cells(&self) -> &[u8] {
        &self.message[self.place.start..self.at]
    }

    /// The encoded message of a full batch.
    pub(super) fn message(&mut self) -> &[u8] {
        while self.at < self.place.end {
            self.put(FILLER);
        }
        &self.message
    }

    /// Removes all records.
    pub(super) const fn clear(&mut self) {
        self.at = self.place.start;
        self.layout = Layout::new();
        self.others = 0;
    }
}

/// Position of the values of the only column in `message`, which has a validity bitmap and values.
pub(super) fn place(message: &[u8]) -> Option<Range<usize>> {
    let length: [u8; 4] = message.get(4..8)?.try_into().ok()?;
    let body = 8 + usize::try_from(u32::from_le_bytes(length)).ok()?;
    let header = root_as_message(message.get(8..body)?).ok()?;
    let buffers = header.header_as_record_batch()?.buffers()?;
    if buffers.len() != 2 {
        return None;
    }
    let values = buffers.get(1);
    let begin = body.checked_add(usize::try_from(values.offset()).ok()?)?;
    let place = begin..begin.checked_add(usize::try_from(values.length()).ok()?)?;
    message.get(place.clone()).map(|_| place)
}
