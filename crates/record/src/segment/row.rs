//! Records as cells of a segment.
//!
//! A cell has 16 bytes: a recording agent has no time to spare, half of which goes into handing bytes to the system. A
//! record takes one cell if its time is near to that of the record before it and its node and port fit few bits, as
//! nearly all do. Others take a preceding cell with those values in full. Each batch starts anew, so that it can be
//! read without those before it.

use wg_frame::time::RunTime;

use crate::schema::{Clock, Crc, DropReason, Point, Record, RecordFlags};

/// Length of a cell in bytes.
pub(super) const CELL: usize = 16;
/// Greatest number of cells of a record.
pub(super) const MOST_CELLS: usize = 2;

/// Layout of the bits of a cell, the least significant first, for readers of segments with other means. Stored in the
/// metadata of every segment.
///
/// A point of 15 marks a cell that precedes another: its first 64 bits are a time, then follow 16 of a node and 16 of a
/// port; the cell after it counts from that time and leaves node and port empty. 14 marks a filler cell. The first
/// record of a batch counts from -2⁶³ ps; sums wrap at 64 bits.
pub(super) const LAYOUT: &str = "picoseconds-since-last:i32 sequence:u32 flow:u16 length:u16 node:u10 port:u6 \
                                 returning:u1 warm_up:u1 crc:u2 clock:u3 point:u4 reason:u5";

/// Point code of a cell with time, node and port of the following one.
const AHEAD: u64 = 15;
/// Point code of a filler cell.
const NOTHING: u64 = 14;
/// Lowest bit of the point in the second word.
const POINT: u32 = 55;
const NODES: u16 = 1 << 10;
const PORTS: u16 = 1 << 6;

const _: () = assert!(Point::ALL.len() as u64 <= NOTHING && Clock::ALL.len() <= 8);
const _: () = assert!(Crc::ALL.len() <= 4 && DropReason::ALL.len() <= 32);

/// A filler cell, to fill up a batch.
pub(super) const FILLER: Cell = [0, NOTHING << POINT];

/// The two words of a cell, in order.
pub(super) type Cell = [u64; 2];

/// Encodes records, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Time from which the next record counts, ps.
    last: i64,
}

/// Time from which the first record of a batch counts: so far away that it nearly always needs a preceding cell.
const BEGINNING: i64 = i64::MIN;

impl Layout {
    /// A layout at the beginning of a batch.
    pub(super) const fn new() -> Self {
        Self { last: BEGINNING }
    }

    /// The cell of `record`, with the one that has to precede it, if any.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the lowest bits; the others are looked at"
    )]
    pub(super) fn encode(&mut self, record: &Record) -> (Option<Cell>, Cell) {
        // Differences wrap, and so do the reader's sums.
        let since = record.time.as_picos().wrapping_sub(self.last);
        self.last = record.time.as_picos();
        let too_far = since.wrapping_add(1 << 31).cast_unsigned() >> 32;
        if too_far | u64::from(record.node / NODES) | u64::from(record.port / PORTS) == 0 {
            (None, record_cell(record, since as u32, (record.node, record.port)))
        } else {
            (Some(ahead(record)), record_cell(record, 0, (0, 0)))
        }
    }
}

/// Inlined where a record is made, so that it exists in memory only as a cell. Every field is widened before it is
/// shifted, and the uppermost one is followed by nothing within four bytes: otherwise a load would span several recent
/// stores, and wait for the cache.
#[inline(always)]
fn record_cell(record: &Record, since: u32, (node, port): (u16, u16)) -> Cell {
    let what = u64::from(record.flags.bits())
        | u64::from(record.crc.code()) << 2
        | u64::from(record.clock.code()) << 4
        | u64::from(record.point.code()) << 7
        | u64::from(record.reason.code()) << 11;
    let place = u64::from(node) | u64::from(port) << 10;
    [
        u64::from(since) | u64::from(record.sequence) << 32,
        u64::from(record.flow) | u64::from(record.length) << 16 | place << 32 | what << 48,
    ]
}

#[cold]
fn ahead(record: &Record) -> Cell {
    let place = u64::from(record.node) | u64::from(record.port) << 16;
    [record.time.as_picos().cast_unsigned(), place | AHEAD << POINT]
}

/// The records in the cells of a batch, or a sentence about what is wrong with them.
pub(super) fn decode(cells: &[[u8; CELL]], into: &mut Vec<Record>) -> Result<(), String> {
    decode_from(&Layout::new(), cells, into)
}

/// As [`decode`], for cells in the middle of a batch, laid out from `layout` on.
#[expect(clippy::cast_possible_truncation, reason = "fields of a cell have their widths")]
pub(super) fn decode_from(
    layout: &Layout,
    cells: &[[u8; CELL]],
    into: &mut Vec<Record>,
) -> Result<(), String> {
    into.reserve(cells.len());
    let (mut last, mut said) = (layout.last, None);
    for (number, bytes) in cells.iter().enumerate() {
        let bits = u128::from_le_bytes(*bytes);
        let (low, high) = (bits as u64, (bits >> 64) as u64);
        let point = high >> POINT & 15;
        if point == AHEAD && said.is_none() {
            last = low.cast_signed();
            said = Some((high as u16, (high >> 16) as u16));
            continue;
        }
        if point == NOTHING && said.is_none() {
            continue;
        }
        let record = (|| {
            let since = i64::from((low as u32).cast_signed());
            let place = (high >> 32) as u16;
            let time = RunTime::from_picos(last.wrapping_add(since));
            let (node, port) = said.take().unwrap_or((place % NODES, place / NODES));
            Some(Record {
                time,
                sequence: (low >> 32) as u32,
                flow: high as u16,
                node,
                port,
                length: (high >> 16) as u16,
                point: Point::from_code(point as u8)?,
                clock: Clock::from_code((high >> 52 & 7) as u8)?,
                crc: Crc::from_code((high >> 50 & 3) as u8)?,
                reason: DropReason::from_code((high >> 59) as u8)?,
                flags: RecordFlags::from_bits((high >> 48 & 3) as u8),
            })
        })();
        let record = record.ok_or_else(|| format!("cell {number} of a batch is no record"))?;
        last = record.time.as_picos();
        into.push(record);
    }
    if said.is_some() {
        return Err("the last record of a batch is missing".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record() -> impl Strategy<Value = Record> {
        let vocabulary = (
            prop::sample::select(Point::ALL),
            prop::sample::select(Clock::ALL),
            prop::sample::select(Crc::ALL),
            prop::sample::select(DropReason::ALL),
        );
        // Steps of both kinds, up to all limits.
        let edge = i64::from(i32::MAX);
        let time = prop_oneof![
            4 => 0_i64..1 << 33,
            1 => prop::sample::select(vec![i64::MIN, i64::MAX, 0, edge, edge + 1, -edge, -edge - 1, -edge - 2]),
        ];
        let place = prop_oneof![4 => (0_u16..1_030, 0_u16..66), 1 => any::<(u16, u16)>()];
        let numbers = (time, any::<u32>(), any::<[u16; 2]>(), place, 0_u8..4);
        (numbers, vocabulary).prop_map(|((time, sequence, [flow, length], (node, port), flags), words)| {
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

    fn bytes(cell: Cell) -> [u8; CELL] {
        let [low, high] = cell.map(u128::from);
        (high << 64 | low).to_le_bytes()
    }

    proptest! {
        #[test]
        fn what_is_laid_out_is_read(records in prop::collection::vec(record(), 0..40), fill in 0_usize..3) {
            let (mut layout, mut cells) = (Layout::new(), Vec::new());
            for record in &records {
                let (before, cell) = layout.encode(record);
                cells.extend(before.map(bytes));
                cells.push(bytes(cell));
                cells.extend(std::iter::repeat_n(bytes(FILLER), fill));
            }
            let mut read = Vec::new();
            prop_assert_eq!(decode(&cells, &mut read), Ok(()));
            prop_assert_eq!(&read, &records);
            // The preceding cell of a last record, alone, is a batch cut off.
            if let Some(before) = records.first().and_then(|record| Layout::new().encode(record).0) {
                let before = bytes(before);
                prop_assert!(decode(&[before], &mut Vec::new()).is_err());
                prop_assert!(decode(&[before, before], &mut Vec::new()).is_err());
            }
        }

        #[test]
        fn any_cells_are_records_or_a_sentence(cells in prop::collection::vec(prop::array::uniform16(any::<u8>()), 0..20)) {
            let mut read = Vec::new();
            prop_assert!(decode(&cells, &mut read).is_err() || read.len() <= cells.len());
        }
    }
}
