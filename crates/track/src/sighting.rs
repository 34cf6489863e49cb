//! Records flow by flow, in half the room.
//!
//! What a record says besides its time, number and length it says in very few ways: at this node and port, of this
//! flow, by that clock. Such a way is a [`Manner`]; it is looked up once and then goes by a number, so that
//! nothing has to be decided from record to record.

use std::ops::Range;
use std::sync::Arc;

use wg_frame::time::RunTime;

use crate::parquet::ROWS_AT_ONCE;
use wg_record::{Clock, Crc, DropReason, Point, Record, RecordFlags};

/// What a record says besides time, number and length, packed into one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Manner(u64);

impl Manner {
    /// No record has it.
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

    /// From fields at their places, each within its width.
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
            // Codes came out of values, or were checked when they were read.
            point: self.point().unwrap_or(Point::Tap),
            clock: Clock::from_code(self.field(Self::CLOCK, 3)).unwrap_or(Clock::Schedule),
            crc: Crc::from_code(self.field(Self::CRC, 2)).unwrap_or(Crc::Unchecked),
            reason: DropReason::from_code(self.field(Self::REASON, 5)).unwrap_or(DropReason::None),
            flags: RecordFlags::from_bits(self.field(Self::FLAGS, 2)),
        }
    }
}

// What the fields of a manner have room for.
const _: () = assert!(
    Point::ALL.len() <= 1 << 4
        && Clock::ALL.len() <= 1 << 3
        && Crc::ALL.len() <= 1 << 2
        && DropReason::ALL.len() <= 1 << 5
);

/// One record, as 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sighting {
    pub(crate) time: RunTime,
    pub(crate) sequence: u32,
    pub(crate) length: u16,
    /// Number of its manner.
    pub(crate) manner: u16,
}

impl Sighting {
    pub(crate) const NOTHING: Self = Self { time: RunTime::from_picos(0), sequence: 0, length: 0, manner: 0 };
}

/// Records flow by flow, those of each in the order in which they came.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) sightings: Vec<Sighting>,
    /// By number; of more records than these.
    pub(crate) manners: Arc<[Manner]>,
    /// By rank of the flow: where its records begin. One more tells the end.
    begins: Vec<usize>,
}

impl Block {
    /// No records; its rooms are used again by [`Grouper::group`].
    pub(crate) fn empty() -> Self {
        Self { sightings: Vec::new(), manners: Arc::new([]), begins: Vec::new() }
    }

    /// Number of ranks.
    pub(crate) fn ranks(&self) -> usize {
        self.begins.len().saturating_sub(1)
    }

    /// Records of these ranks.
    pub(crate) fn of(&self, ranks: &Range<usize>) -> &[Sighting] {
        match (self.begins.get(ranks.start), self.begins.get(ranks.end)) {
            (Some(&begin), Some(&end)) => &self.sightings[begin..end],
            _ => &[],
        }
    }

    /// Records of each of these ranks that has any.
    pub(crate) fn by_rank(&self, ranks: Range<usize>) -> impl Iterator<Item = &[Sighting]> {
        ranks.map(|rank| self.of(&(rank..rank + 1))).filter(|sightings| !sightings.is_empty())
    }

    /// The records of these ranks, whole.
    pub(crate) fn records(&self, ranks: &Range<usize>) -> impl Iterator<Item = Record> {
        self.of(ranks).iter().map(|sighting| self.manners[usize::from(sighting.manner)].record(sighting))
    }
}

/// Numbers manners, and puts records together by the rank of their flow.
#[derive(Debug)]
pub(crate) struct Grouper {
    /// By number.
    known: Vec<Manner>,
    /// `known` as others may keep it.
    shared: Arc<[Manner]>,
    /// By number: rank of the flow.
    ranks: Vec<u16>,
    /// By hash; open addressing, a power of two, at most half full.
    table: Vec<(Manner, u16)>,
    /// By record of the block: number of its manner.
    numbers: Vec<u16>,
}

impl Grouper {
    /// Most records in a block.
    pub(crate) const MOST: usize = ROWS_AT_ONCE;
    /// Entries the table begins with.
    const TABLE: usize = 1 << 8;
    /// No manner has this number.
    pub(crate) const UNNUMBERED: u16 = u16::MAX;
    /// Codes of manners there can be; so many manners can be numbered and no number is ever given anew.
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

    /// Takes the manners of the next records; `rank` is that of a flow.
    pub(crate) fn note(&mut self, manners: impl Iterator<Item = Manner>, rank: impl Fn(u16) -> u16) {
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.extend(manners.map(|manner| self.number(manner, &rank)));
        self.numbers = numbers;
    }

    /// Likewise, told by codes of the manners; `numbers` has by code the number of the manner, or [`UNNUMBERED`](Self::UNNUMBERED).
    /// Nothing but this may have been noted before, and codes must be below [`CODES`](Self::CODES).
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

    /// Groups the records whose manners were [noted](Self::note), at most [`MOST`](Self::MOST), into `into`, given the rest of
    /// them; there are so many `ranks`.
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
        // Every field is stored where it stays: behind the records of its flow that came before.
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
