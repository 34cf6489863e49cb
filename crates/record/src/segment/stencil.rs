//! A full batch without the encoder.
//!
//! All full batches of a segment have one length, so that their messages differ in the bytes of the columns and in
//! nothing else. Arrow encodes such a message once; after that the columns are laid into it where that message says
//! they are. This writes what Arrow would write, byte for byte, in a fraction of the time, and allocates nothing.
//!
//! Records are laid in as they come, a block at a time: a batch of them is never kept in another form, which would
//! cost the caches more than the work itself. What of a batch was laid in can be read out of it again.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_ipc::root_as_message;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::SchemaRef;
use wg_frame::time::RunTime;

use crate::columns::RecordColumns;
use crate::error::RecordError;
use crate::schema::{Clock, Crc, DropReason, Point, Record, RecordFlags};

/// Columns of a record.
const COLUMNS: usize = 12;
/// Records laid in at a time: they stay in the innermost cache until they are. A whole number of bytes of flags.
pub(super) const BLOCK: usize = 64;

/// A record to have a message of; it is overwritten.
const ANY: Record = Record {
    time: RunTime::ZERO,
    sequence: 0,
    flow: 0,
    node: 0,
    port: 0,
    length: 0,
    point: Point::IntendedSend,
    clock: Clock::Schedule,
    crc: Crc::Unchecked,
    reason: DropReason::None,
    flags: RecordFlags::empty(),
};

/// Records on their way into a batch, column by column: a record that was just put together is read as it was written,
/// field by field, which a copy of the whole would have to wait for.
#[derive(Debug)]
pub(super) struct Block {
    len: usize,
    times: [i64; BLOCK],
    sequences: [u32; BLOCK],
    flows: [u16; BLOCK],
    nodes: [u16; BLOCK],
    ports: [u16; BLOCK],
    lengths: [u16; BLOCK],
    points: [u8; BLOCK],
    clocks: [u8; BLOCK],
    crcs: [u8; BLOCK],
    reasons: [u8; BLOCK],
    flags: [u8; BLOCK],
}

impl Block {
    /// Without records.
    pub(super) const fn new() -> Self {
        Self {
            len: 0,
            times: [0; BLOCK],
            sequences: [0; BLOCK],
            flows: [0; BLOCK],
            nodes: [0; BLOCK],
            ports: [0; BLOCK],
            lengths: [0; BLOCK],
            points: [0; BLOCK],
            clocks: [0; BLOCK],
            crcs: [0; BLOCK],
            reasons: [0; BLOCK],
            flags: [0; BLOCK],
        }
    }

    /// Takes a record, over the first where it is full.
    #[inline]
    pub(super) fn push(&mut self, record: &Record) {
        let at = self.len % BLOCK;
        self.times[at] = record.time.as_picos();
        self.sequences[at] = record.sequence;
        self.flows[at] = record.flow;
        self.nodes[at] = record.node;
        self.ports[at] = record.port;
        self.lengths[at] = record.length;
        self.points[at] = record.point.code();
        self.clocks[at] = record.clock.code();
        self.crcs[at] = record.crc.code();
        self.reasons[at] = record.reason.code();
        self.flags[at] = record.flags.bits();
        self.len = at + 1;
    }

    /// Records in it.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Forgets them.
    pub(super) const fn clear(&mut self) {
        self.len = 0;
    }
}

/// The message of a full batch.
pub(super) struct Stencil {
    message: Vec<u8>,
    /// Where the values of each column are.
    places: [Range<usize>; COLUMNS],
    /// What stands before the first batch of a stream: the schema, then the dictionaries.
    schema: Vec<u8>,
    dictionaries: Vec<u8>,
}

impl Stencil {
    /// For batches of `records` records.
    ///
    /// # Errors
    /// [`RecordError::Write`] at `path` when Arrow refuses to encode them, or in a way that is not known here.
    pub(super) fn new(
        path: &std::path::Path,
        columns: &RecordColumns,
        schema: &SchemaRef,
        records: usize,
    ) -> Result<Self, RecordError> {
        let encoded = || {
            let batch = columns.batch_of(&vec![ANY; records], schema)?;
            let mut encoder = StreamWriter::try_new(Vec::new(), schema)?;
            let schema = std::mem::take(encoder.get_mut());
            encoder.write(&batch)?;
            let mut dictionaries = std::mem::take(encoder.get_mut());
            encoder.write(&batch)?;
            let message = std::mem::take(encoder.get_mut());
            dictionaries.truncate(dictionaries.len().saturating_sub(message.len()));
            Ok::<_, arrow_schema::ArrowError>((schema, dictionaries, message))
        };
        let (schema, dictionaries, message) = encoded().map_err(|error| RecordError::encode(path, error))?;
        let places = places(&message).ok_or_else(|| {
            let unknown = "a batch is not laid out as the Arrow columnar format has it".to_owned();
            RecordError::encode(path, arrow_schema::ArrowError::IpcError(unknown))
        })?;
        Ok(Self { message, places, schema, dictionaries })
    }

    /// The message of a schema, with which a stream begins.
    pub(super) fn schema(&self) -> &[u8] {
        &self.schema
    }

    /// The messages of the dictionaries, which come with the first batch of a stream.
    pub(super) fn dictionaries(&self) -> &[u8] {
        &self.dictionaries
    }

    /// The message with all that was laid in last at each place.
    pub(super) fn message(&self) -> &[u8] {
        &self.message
    }

    /// Lays in `block` from record `first` of the batch on, a multiple of [`BLOCK`]. What follows the records of a block
    /// that is not full means nothing.
    pub(super) fn lay(&mut self, first: usize, block: &Block) {
        self.values(0, first, &block.times, i64::to_ne_bytes);
        self.values(1, first, &block.flows, u16::to_ne_bytes);
        self.values(2, first, &block.sequences, u32::to_ne_bytes);
        self.values(3, first, &block.nodes, u16::to_ne_bytes);
        self.values(4, first, &block.ports, u16::to_ne_bytes);
        self.values(5, first, &block.lengths, u16::to_ne_bytes);
        self.values(6, first, &block.points, u8::to_ne_bytes);
        self.values(7, first, &block.clocks, u8::to_ne_bytes);
        self.values(8, first, &block.crcs, u8::to_ne_bytes);
        self.values(9, first, &block.reasons, u8::to_ne_bytes);
        self.flags(10, first, block, RecordFlags::RETURN);
        self.flags(11, first, block, RecordFlags::WARM_UP);
    }

    /// The first `records` of what was laid in.
    pub(super) fn laid(&self, records: usize) -> Vec<Record> {
        let record = |at: usize| {
            let flag = |column: usize| self.value::<1>(column, at / 8)[0] >> (at % 8) & 1;
            Some(Record {
                time: RunTime::from_picos(i64::from_ne_bytes(self.value(0, at))),
                flow: u16::from_ne_bytes(self.value(1, at)),
                sequence: u32::from_ne_bytes(self.value(2, at)),
                node: u16::from_ne_bytes(self.value(3, at)),
                port: u16::from_ne_bytes(self.value(4, at)),
                length: u16::from_ne_bytes(self.value(5, at)),
                point: Point::from_code(self.value::<1>(6, at)[0])?,
                clock: Clock::from_code(self.value::<1>(7, at)[0])?,
                crc: Crc::from_code(self.value::<1>(8, at)[0])?,
                reason: DropReason::from_code(self.value::<1>(9, at)[0])?,
                flags: RecordFlags::from_bits(flag(10) | flag(11) << 1),
            })
        };
        // Only codes that were laid in are there.
        (0..records).filter_map(record).collect()
    }

    fn value<const N: usize>(&self, column: usize, at: usize) -> [u8; N] {
        self.message[self.places[column].clone()].as_chunks::<N>().0[at]
    }

    #[inline]
    fn values<T: Copy, const N: usize>(
        &mut self,
        column: usize,
        first: usize,
        values: &[T; BLOCK],
        bytes: impl Fn(T) -> [u8; N],
    ) {
        let column = &mut self.message[self.places[column].clone()][first * N..];
        for (place, value) in column.as_chunks_mut::<N>().0.iter_mut().zip(values) {
            *place = bytes(*value);
        }
    }

    /// Least significant bit first (Arrow columnar format, validity bitmaps and Booleans).
    #[inline]
    fn flags(&mut self, column: usize, first: usize, block: &Block, flag: RecordFlags) {
        let column = &mut self.message[self.places[column].clone()][first / 8..];
        for (bits, eight) in column.iter_mut().zip(block.flags.as_chunks::<8>().0) {
            let set = eight.iter().enumerate();
            *bits = set.fold(0, |bits, (at, flags)| bits | u8::from(flags & flag.bits() != 0) << at);
        }
    }
}

/// The message of a batch that is not the first of its stream, so that no dictionary comes with it.
pub(super) fn second_message(
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> Result<Vec<u8>, arrow_schema::ArrowError> {
    let mut encoder = StreamWriter::try_new(Vec::new(), schema)?;
    encoder.write(batch)?;
    encoder.get_mut().clear();
    encoder.write(batch)?;
    Ok(std::mem::take(encoder.get_mut()))
}

/// Where the values of each column are in `message`: each has a bitmap of what is valid and its values.
fn places(message: &[u8]) -> Option<[Range<usize>; COLUMNS]> {
    let length: [u8; 4] = message.get(4..8)?.try_into().ok()?;
    let body = 8 + usize::try_from(u32::from_le_bytes(length)).ok()?;
    let header = root_as_message(message.get(8..body)?).ok()?;
    let buffers = header.header_as_record_batch()?.buffers()?;
    if buffers.len() != 2 * COLUMNS {
        return None;
    }
    let mut places = [const { 0..0 }; COLUMNS];
    for (column, place) in places.iter_mut().enumerate() {
        let values = buffers.get(2 * column + 1);
        let begin = body.checked_add(usize::try_from(values.offset()).ok()?)?;
        *place = begin..begin.checked_add(usize::try_from(values.length()).ok()?)?;
        message.get(place.clone())?;
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::columns::record_schema;

    fn any_record() -> impl Strategy<Value = Record> {
        let vocabulary = (
            prop::sample::select(Point::ALL),
            prop::sample::select(Clock::ALL),
            prop::sample::select(Crc::ALL),
            prop::sample::select(DropReason::ALL),
        );
        let numbers = (any::<i64>(), any::<u32>(), any::<[u16; 4]>(), 0_u8..4);
        (numbers, vocabulary).prop_map(|((time, sequence, [flow, node, port, length], flags), words)| {
            Record {
                time: RunTime::from_picos(time),
                sequence,
                flow,
                node,
                port,
                length,
                point: words.0,
                clock: words.1,
                crc: words.2,
                reason: words.3,
                flags: RecordFlags::from_bits(flags),
            }
        })
    }

    proptest! {
        /// Twice with one stencil, so that nothing of one batch is left in the next.
        #[test]
        fn it_writes_what_arrow_writes(
            batches in (1_usize..5).prop_flat_map(|blocks| {
                let batch = || prop::collection::vec(any_record(), blocks * BLOCK);
                (batch(), batch())
            }),
            more in prop::collection::vec(any_record(), 0..BLOCK),
        ) {
            let schema = record_schema([].into());
            let columns = RecordColumns::new();
            let path = std::path::Path::new("none");
            let mut stencil = Stencil::new(path, &columns, &schema, batches.0.len()).expect("a message");
            for records in [&batches.0, &batches.1] {
                let batch = columns.batch_of(records, &schema).expect("columns");
                let expected = second_message(&batch, &schema).expect("a message");
                let mut block = Block::new();
                for (number, some) in records.chunks(BLOCK).enumerate() {
                    block.clear();
                    some.iter().for_each(|record| block.push(record));
                    stencil.lay(number * BLOCK, &block);
                }
                prop_assert_eq!(stencil.message(), &expected[..]);
                prop_assert_eq!(&stencil.laid(records.len()), records);
                let mut stream = StreamWriter::try_new(Vec::new(), &schema).expect("a stream");
                stream.write(&batch).expect("a batch");
                let whole = [stencil.schema(), stencil.dictionaries(), stencil.message()].concat();
                prop_assert_eq!(stream.get_ref(), &whole);
            }
            let mut block = Block::new();
            more.iter().for_each(|record| block.push(record));
            stencil.lay(0, &block);
            prop_assert_eq!(stencil.laid(block.len()), more);
        }
    }
}
