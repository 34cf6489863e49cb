//! Records grouped by flow, in half the memory.
//!
//! Apart from its time, number and length, a record has few distinct contents: node, port, flow, clock and so on. Such
//! a combination is a [`Manner`]; it is looked up once and then stands for its number, so that nothing has to be
//! decided for each record.

use std::ops::Range;
use std::sync::Arc;

use wg_frame::time::RunTime;

use crate::parquet::ROWS_AT_ONCE;
use wg_record::{Clock, Crc, DropReason, Point, Record, RecordFlags};

/// The record key: all fields of a record but time, number and length, packed into one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Manner(u64);

impl Manner {
    /// A key that no record has.
    pub(crate) const NONE: Self = Self(u64::MAX);

    pub(crate) const NODE: u32 = 16;
    pub(crate) const PORT: u32 = 32;
    pub(crate) const POINT: u32 = 48;
    pub(crate) const CLOCK: u32 = 52;
    pub(crate) const CRC: u32 = 55;
    pub(crate) const REASON: u32 = 57;
    pub(crate) const FLAGS: u32 = 62;

    #[inline]
    pub(crate) fn of(record: &Record) -> Self {
        Self(
            u64::from(record.flow)
                | u64::from(record.node) << Self::NODE
                | u64::from(record.port) << Self::PORT
                | u64::from(record.point.code()) << Self::POINT
                | u64::from(record.clock.code()) << Self::CLOCK
                | u64::from(record.crc.code()) << Self::CRC
                | u64::from(record.reason.code()) << Self::REASON
                | u64::from(record.flags.bits()) << Self::FLAGS,
        )
    }

    /// A key from fields at their bit positions, each within its width.
    #[inline]
    pub(crate) fn from_fields(fields: u64) -> Self {
        Self(fields)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a field has at most eight bits")]
    fn field(self, place: u32, bits: u32) -> u8 {
        (self.0 >> place & ((1 << bits) - 1)) as u8
    }
    #[inline]
    pub(crate) fn flow(self) -> u16 {
        (self.0 & 0xffff) as u16
    }
    #[inline]
    pub(crate) fn point(self) -> Option<Point> {
        Point::from_code(self.field(Self::POINT, 4))
    }

    /// The record that `sighting` stands for.
    pub(crate) fn record(self, sighting: &Sighting) -> Record {
        Record {
            time: sighting.time,
            sequence: sighting.sequence,
            flow: self.flow(),
            node: (self.0 >> Self::NODE & 0xffff) as u16,
            port: (self.0 >> Self::PORT & 0xffff) as u16,
            length: sighting.length,
            // Codes came from values, or were checked when they were read.
            point: self.point().unwrap_or(Point::Tap),
            clock: Clock::from_code(self.field(Self::CLOCK, 3)).unwrap_or(Clock::Schedule),
            crc: Crc::from_code(self.field(Self::CRC, 2)).unwrap_or(Crc::Unchecked),
            reason: DropReason::from_code(self.field(Self::REASON, 5)).unwrap_or(DropReason::None),
            flags: RecordFlags::from_bits(self.field(Self::FLAGS, 2)),
        }
    }
}

// The fields of a key fit their widths.
const _: () = assert!(
    Point::ALL.len() <= 1 << 4
        && Clock::ALL.len() <= 1 << 3
        && Crc::ALL.len() <= 1 << 2
        && DropReason::ALL.len() <= 1 << 5
);

/// A record in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sighting {
    pub(crate) time: RunTime,
    pub(crate) sequence: u32,
    pub(crate) length: u16,
    /// Number of its record key.
    pub(crate) manner: u16,
}

impl Sighting {
    pub(crate) const NOTHING: Self = Self { time: RunTime::from_picos(0), sequence: 0, length: 0, manner: 0 };
}

/// Records grouped by flow, those of each in the order in which they came.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) sightings: Vec<Sighting>,
    /// Record keys by number; may include keys of other records.
    pub(crate) manners: Arc<[Manner]>,
    /// Index of the first record of each flow rank, and the end.
    begins: Vec<usize>,
}

impl Block {
    /// An empty block; [`Grouper::group`] reuses its memory.
    pub(crate) fn empty() -> Self {
        Self { sightings: Vec::new(), manners: Arc::new([]), begins: Vec::new() }
    }

    /// Number of ranks.
    pub(crate) fn ranks(&self) -> usize {
        self.begins.len().saturating_sub(1)
    }

    /// The records of these ranks.
    pub(crate) fn of(&self, ranks: &Range<usize>) -> &[Sighting] {
        match (self.begins.get(ranks.start), self.begins.get(ranks.end)) {
            (Some(&begin), Some(&end)) => &self.sightings[begin..end],
            _ => &[],
        }
    }

    /// The records of each non-empty rank.
    pub(crate) fn by_rank(&self, ranks: Range<usize>) -> impl Iterator<Item = &[Sighting]> {
        ranks.map(|rank| self.of(&(rank..rank + 1))).filter(|sightings| !sightings.is_empty())
    }

    /// The complete records of these ranks.
    pub(crate) fn records(&self, ranks: &Range<usize>) -> impl Iterator<Item = Record> {
        self.of(ranks).iter().map(|sighting| self.manners[usize::from(sighting.manner)].record(sighting))
    }
}

/// Numbers record keys, and groups records by the rank of their flow.
#[derive(Debug)]
pub(crate) struct Grouper {
    /// Record keys by number.
    known: Vec<Manner>,
    /// `known` as shared with blocks.
    shared: Arc<[Manner]>,
    /// Flow rank of each key, by its number.
    ranks: Vec<u16>,
    /// Hash table of keys with open addressing; its size is a power of two, at most half full.
    table: Vec<(Manner, u16)>,
    /// Key numbers of the block's records.
    numbers: Vec<u16>,
}

impl Grouper {
    /// Greatest number of records in a block.
    pub(crate) const MOST: usize = ROWS_AT_ONCE;
    /// Initial size of the table.
    const TABLE: usize = 1 << 8;
    /// A number that no key has.
    pub(crate) const UNNUMBERED: u16 = u16::MAX;
    /// Greatest number of key codes; this many keys can be numbered without reusing a number.
    pub(crate) const CODES: usize = 1 << 15;

    pub(crate) fn new() -> Self {
        Self {
            known: Vec::new(),
            shared: Arc::new([]),
            ranks: Vec::new(),
            table: vec![(Manner::NONE, 0); Self::TABLE],
            numbers: Vec::new(),
        }
    }

    /// Takes the keys of the next records; `rank` returns the rank of a flow.
    pub(crate) fn note(&mut self, manners: impl Iterator<Item = Manner>, rank: impl Fn(u16) -> u16) {
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.extend(manners.map(|manner| self.number(manner, &rank)));
        self.numbers = numbers;
    }

    /// As [`note`](Self::note), by codes of the keys; `numbers` has the number of each code's key, or
    /// [`UNNUMBERED`](Self::UNNUMBERED). Only this method may have been used for the block, and codes must be below
    /// [`CODES`](Self::CODES).
    pub(crate) fn note_codes(
        &mut self,
        codes: &[u16],
        numbers: &mut [u16],
        manner: impl Fn(u16) -> Manner,
        rank: impl Fn(u16) -> u16,
    ) {
        let mut noted = std::mem::take(&mut self.numbers);
        noted.extend(codes.iter().map(|&code| {
            let known = &mut numbers[usize::from(code)];
            if *known == Self::UNNUMBERED {
                *known = self.number(manner(code), &rank);
            }
            *known
        }));
        self.numbers = noted;
    }

    /// Groups the records whose keys were [noted](Self::note), at most [`MOST`](Self::MOST), into `into`, given their
    /// other fields; there are `ranks` ranks.
    pub(crate) fn group(
        &mut self,
        rest: impl Iterator<Item = (RunTime, u32, u16)>,
        ranks: usize,
        into: &mut Block,
    ) {
        if self.shared.len() < self.known.len() {
            self.shared = self.known.as_slice().into();
        }
        let mut counts = vec![0usize; self.known.len()];
        for &number in &self.numbers {
            counts[usize::from(number)] += 1;
        }
        into.begins.clear();
        into.begins.resize(ranks + 1, 0);
        for (count, rank) in counts.iter().zip(&self.ranks) {
            into.begins[usize::from(*rank) + 1] += count;
        }
        for rank in 0..ranks {
            into.begins[rank + 1] += into.begins[rank];
        }
        // Every field is stored at its final place: behind the earlier records of its flow.
        let mut next = into.begins.clone();
        into.sightings.resize(self.numbers.len(), Sighting::NOTHING);
        let (by_number, sightings) = (self.ranks.as_slice(), into.sightings.as_mut_slice());
        for (&manner, (time, sequence, length)) in self.numbers.iter().zip(rest) {
            let place = &mut next[usize::from(by_number[usize::from(manner)])];
            sightings[*place] = Sighting { time, sequence, length, manner };
            *place += 1;
        }
        into.manners = self.shared.clone();
        self.numbers.clear();
        if self.known.len() + Self::MOST > usize::from(u16::MAX) {
            *self = Self::new();
        }
    }

    #[inline]
    fn number(&mut self, manner: Manner, rank: &impl Fn(u16) -> u16) -> u16 {
        let mask = self.table.len() - 1;
        let mut at = Self::hash(manner) & mask;
        loop {
            let (known, number) = self.table[at];
            if known == manner {
                return number;
            }
            if known == Manner::NONE {
                return self.learn(manner, rank(manner.flow()));
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn hash(manner: Manner) -> usize {
        (manner.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize
    }

    #[cold]
    fn learn(&mut self, manner: Manner, rank: u16) -> u16 {
        #[expect(clippy::cast_possible_truncation, reason = "a block numbers no more than there is room for")]
        let number = self.known.len() as u16;
        self.known.push(manner);
        self.ranks.push(rank);
        if self.known.len() * 2 > self.table.len() {
            self.table = vec![(Manner::NONE, 0); self.table.len() * 4];
            for (&manner, number) in self.known.iter().zip(0..) {
                Self::enter(&mut self.table, manner, number);
            }
        } else {
            Self::enter(&mut self.table, manner, number);
        }
        number
    }

    fn enter(table: &mut [(Manner, u16)], manner: Manner, number: u16) {
        let mask = table.len() - 1;
        let mut at = Self::hash(manner) & mask;
        while table[at].0 != Manner::NONE {
            at = (at + 1) & mask;
        }
        table[at] = (manner, number);
    }
}
