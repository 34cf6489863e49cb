//! Facts from the records about each message that can still change.
//!
//! A [`Window`] holds the messages of one flow, phase and receiver whose numbers are close to the newest one. It is a
//! ring over the sequence number, so that finding a message is an index and memory does not grow with the run. Messages
//! that leave it at the old end are closed: judged, counted and removed.

use std::collections::BTreeMap;

use wg_frame::time::RunTime;

use super::due::Due;
use wg_record::{Point, Record};

/// Initial number of messages of a window; it doubles up to its limit as needed.
const FIRST: usize = 64;
/// Greatest number of numbers far ahead that wait for their sender.
const MOST_AHEAD: usize = 1 << 16;
/// The time of no observation. A run lasts at most 106 days, so only a nonsensical record has it; such a time is
/// lowered by 1 ps.
pub(super) const UNSEEN: i64 = i64::MAX;

/// The times of a message in the messages table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Instant {
    Intended,
    TxApp,
    TxDrv,
    RxDrv,
    RxApp,
    BackTxApp,
    BackTxDrv,
    BackRxDrv,
    BackRxApp,
    TxWire,
    TxWireB,
    RxWire,
    RxWireB,
}

impl Instant {
    pub(super) const COUNT: usize = Self::RxWireB as usize + 1;

    /// The time that a record of `point` gives, at the source or the destination of its leg; `on_b` for the copy on
    /// network B of a flow on both.
    #[inline]
    pub(super) fn of(
        point: Point,
        returning: bool,
        at_source: bool,
        at_destination: bool,
        on_b: bool,
    ) -> Option<Self> {
        let (instant, is_at) = match (point, returning) {
            (Point::IntendedSend, false) => (Self::Intended, at_source),
            (Point::ApplicationSend, false) => (Self::TxApp, at_source),
            (Point::DriverSend, false) => (Self::TxDrv, at_source),
            (Point::WireSend, false) => (if on_b { Self::TxWireB } else { Self::TxWire }, at_source),
            (Point::WireReceive, false) => (if on_b { Self::RxWireB } else { Self::RxWire }, at_destination),
            (Point::DriverReceive, false) => (Self::RxDrv, at_destination),
            (Point::ApplicationReceive, false) => (Self::RxApp, at_destination),
            (Point::Tap, false) if at_source => (Self::TxApp, true),
            (Point::Tap, false) => (Self::RxApp, at_destination),
            (Point::Tap, true) if at_source => (Self::BackTxApp, true),
            (Point::Tap, true) => (Self::BackRxApp, at_destination),
            (Point::ApplicationSend, true) => (Self::BackTxApp, at_source),
            (Point::DriverSend, true) => (Self::BackTxDrv, at_source),
            (Point::DriverReceive, true) => (Self::BackRxDrv, at_destination),
            (Point::ApplicationReceive, true) => (Self::BackRxApp, at_destination),
            _ => return None,
        };
        is_at.then_some(instant)
    }
}

/// A place on the path of a message, in the order of the path: leg, node on the leg, point at the node, node. A node
/// off the path comes after all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Way(u32);

impl Way {
    /// Before every place: nothing seen.
    pub(super) const NOWHERE: Self = Self(0);
    /// After every place.
    pub(super) const BEYOND: Self = Self(u32::MAX);
    /// Number of distinguishable places on a leg.
    pub(super) const PLACES: u16 = 1 << 10;
    /// Bit set in every real place.
    const SEEN: u32 = 1 << 31;

    #[inline]
    pub(super) fn new(returning: bool, place: u16, point: Point, node: u16) -> Self {
        let place = place.min(Self::PLACES - 1);
        Self(
            Self::SEEN
                | u32::from(returning) << 30
                | u32::from(place) << 20
                | u32::from(point.code()) << 16
                | u32::from(node),
        )
    }
    pub(super) fn node(self) -> u16 {
        (self.0 & 0xffff) as u16
    }
    pub(super) fn point(self) -> Option<Point> {
        Point::from_code((self.0 >> 16 & 0xf) as u8)
    }
}

/// State of one message besides its times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Nearest place to the sender with an undamaged record, and in the lower bits the frame length there.
    nearest: u64,
    /// Numbers of copies at applications, see [`Copies`].
    copies: Copies,
    /// Farthest place on the path.
    pub(super) last: Way,
    /// Place of the farthest drop.
    pub(super) drop: Way,
    /// Distance in arrivals to the earliest arrival with a higher number; 0: in order.
    pub(super) extent: u32,
    /// Number of copies removed as second copies.
    pub(super) redundant_discarded: u16,
    /// Code of the reason of `drop`.
    pub(super) reason: u8,
    flags: u8,
}

/// Numbers of copies at applications, by kind: four adjacent counters that saturate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copies(u64);

impl Copies {
    pub(super) const NONE: Self = Self(0);
    /// An intact copy at the final destination.
    pub(super) const INTACT: Self = Self(1);
    /// An undamaged copy at any application.
    pub(super) const ARRIVED: Self = Self(1 << 16);
    /// A damaged copy at an application on the path.
    pub(super) const CORRUPTED: Self = Self(1 << 32);
    /// An intact copy at an application off the path.
    pub(super) const MISDIRECTED: Self = Self(1 << 48);

    /// Combination of both kinds.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Adds at most one copy of each kind.
    #[inline]
    fn add(&mut self, more: Self) {
        const HALF_FULL: u64 = 0x8000_8000_8000_8000;
        if self.0 & HALF_FULL == 0 {
            self.0 += more.0;
        } else {
            self.add_to_limit(more);
        }
    }

    #[cold]
    fn add_to_limit(&mut self, more: Self) {
        for kind in [Self::INTACT, Self::ARRIVED, Self::CORRUPTED, Self::MISDIRECTED] {
            if more.0 & kind.0 != 0 && self.of(kind) < u16::MAX {
                self.0 += kind.0;
            }
        }
    }

    #[inline]
    fn of(self, kind: Self) -> u16 {
        (self.0 >> kind.0.trailing_zeros() & 0xffff) as u16
    }

    /// Exactly one intact copy and no other.
    #[inline]
    fn is_one(self) -> bool {
        self.0 & !(0xffff * Self::ARRIVED.0) == Self::INTACT.0
    }
}

impl Seen {
    const NOTHING: Self = Self {
        nearest: u64::MAX,
        copies: Copies::NONE,
        last: Way::NOWHERE,
        drop: Way::NOWHERE,
        extent: 0,
        redundant_discarded: 0,
        reason: 0,
        flags: 0,
    };
    /// The sender recorded its sending.
    pub(super) const SEND_RECORDED: u8 = 1;
    /// The sender's application handed it over.
    pub(super) const HANDED_OVER: u8 = 2;
    /// An observer verified its CRC.
    pub(super) const VERIFIED: u8 = 4;

    /// Whether it was sent, delivered once and nothing else happened.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        let odd = self.extent | u32::from(self.redundant_discarded) | u32::from(self.reason);
        self.copies.is_one() && odd == 0 && self.has(Self::SEND_RECORDED)
    }

    /// Notes an undamaged record at this place, of a frame of `length` bytes. [`Way::BEYOND`] is no place.
    #[inline]
    pub(super) fn comes_by(&mut self, way: Way, length: u16) {
        self.nearest = self.nearest.min(u64::from(way.0) << 16 | u64::from(length));
    }
    #[inline]
    pub(super) fn add(&mut self, copies: Copies) {
        self.copies.add(copies);
    }
    /// Frame length nearest to the sender; 0 if no undamaged record was seen.
    pub(super) fn length(&self) -> u16 {
        if self.nearest >> 16 < u64::from(Way::BEYOND.0) { (self.nearest & 0xffff) as u16 } else { 0 }
    }
    /// Number of copies of one kind.
    #[inline]
    pub(super) fn copies(&self, kind: Copies) -> u16 {
        self.copies.of(kind)
    }

    #[inline]
    pub(super) fn set(&mut self, flag: u8) {
        self.flags |= flag;
    }
    #[inline]
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A stretch of messages with consecutive numbers that are being closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch<'a> {
    /// Number of the first message.
    pub(super) first: u32,
    pub(super) seen: &'a [Seen],
    /// Times by instant; empty if no message has such a time.
    times: [&'a [i64]; Instant::COUNT],
}

impl<'a> Stretch<'a> {
    /// The times of one instant, [`UNSEEN`] if missing; `None` if no message has one.
    #[inline]
    pub(super) fn column(&self, instant: Instant) -> Option<&'a [i64]> {
        let column = self.times[instant as usize];
        (!column.is_empty()).then_some(column)
    }
    /// The message at this position of the stretch.
    #[expect(clippy::cast_possible_truncation, reason = "a stretch is no longer than the window")]
    pub(super) fn at(&self, place: usize) -> Closing<'a> {
        Closing { sequence: self.first + place as u32, seen: &self.seen[place], stretch: *self, place }
    }
}

/// A message that is being closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing<'a> {
    pub(super) sequence: u32,
    pub(super) seen: &'a Seen,
    stretch: Stretch<'a>,
    place: usize,
}

impl Closing<'_> {
    /// The time of an instant, ps.
    #[inline]
    pub(super) fn ps(&self, instant: Instant) -> Option<i64> {
        self.stretch.column(instant).map(|column| column[self.place]).filter(|ps| *ps != UNSEEN)
    }
    pub(super) fn time(&self, instant: Instant) -> Option<RunTime> {
        self.ps(instant).map(RunTime::from_picos)
    }
}

/// Position of a number relative to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Open, in this slot.
    Open(usize),
    /// Closed.
    Closed,
    /// Not yet reached by the window.
    Ahead,
}

/// The open messages of one flow, phase, receiver and life of its sender.
#[derive(Debug)]
pub(super) struct Window {
    /// Lowest open number.
    base: u32,
    limit: usize,
    states: Vec<Seen>,
    /// Earliest time by instant and slot; empty until the flow has such a time.
    times: [Vec<i64>; Instant::COUNT],
    /// Records of numbers beyond the window, unconfirmed by any record of the sender.
    ahead: BTreeMap<u32, Vec<Record>>,
    /// Intended sends of numbers beyond the window.
    pub(super) due: Due,
}

impl Window {
    /// A window of at most `limit` messages, a power of two, with at most `intended` intended sends beyond them.
    pub(super) fn new([limit, intended]: [usize; 2]) -> Self {
        Self {
            base: 0,
            limit,
            states: Vec::new(),
            times: Default::default(),
            ahead: BTreeMap::new(),
            due: Due::new(intended),
        }
    }

    #[inline]
    fn slot(&self, sequence: u32) -> usize {
        sequence as usize & self.states.len().wrapping_sub(1)
    }

    /// Slot of `sequence`, if it is open in the window as it is.
    #[inline]
    pub(super) fn open_slot(&self, sequence: u32) -> Option<usize> {
        // A wrapped number lies below the base, not a little above it.
        let distance = sequence.checked_sub(self.base)? as usize;
        (distance < self.states.len()).then(|| self.slot(sequence))
    }

    /// Position of `sequence`; the window grows to its limit for it, but never closes a message.
    #[inline]
    pub(super) fn place(&mut self, sequence: u32) -> Place {
        let Some(distance) = sequence.checked_sub(self.base) else { return Place::Closed };
        let distance = distance as usize;
        if let Some(slot) = self.open_slot(sequence) {
            return Place::Open(slot);
        }
        if distance >= self.limit {
            return Place::Ahead;
        }
        self.grow(distance + 1);
        Place::Open(self.slot(sequence))
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let (old, new) = (self.states.len(), needed.next_power_of_two().max(FIRST).min(self.limit));
        let moved = |slot: usize| {
            // The one number at or above `base` that belongs to this slot.
            let ahead = slot.wrapping_sub(self.base as usize) & (old - 1);
            (self.base as usize + ahead) & (new - 1)
        };
        let mut states = vec![Seen::NOTHING; new];
        for (slot, seen) in self.states.iter().enumerate() {
            states[moved(slot)] = *seen;
        }
        for column in self.times.iter_mut().filter(|column| !column.is_empty()) {
            let mut times = vec![UNSEEN; new];
            for (slot, ps) in column.iter().enumerate() {
                times[moved(slot)] = *ps;
            }
            *column = times;
        }
        self.states = states;
    }

    /// Whether `sequence` is within a few windows of the newest open number.
    pub(super) fn is_near(&self, sequence: u32) -> bool {
        u64::from(sequence) < u64::from(self.base) + 2 * self.limit as u64
    }

    #[inline]
    pub(super) fn seen(&mut self, slot: usize) -> &mut Seen {
        &mut self.states[slot]
    }

    /// Notes a time; true if it is earlier than any before.
    #[inline]
    pub(super) fn note(&mut self, slot: usize, instant: Instant, time: RunTime) -> bool {
        let ps = time.as_picos().min(UNSEEN - 1);
        let column = &mut self.times[instant as usize];
        let entry = if slot < column.len() {
            &mut column[slot]
        } else {
            Self::begun(column, self.states.len(), slot)
        };
        let is_earliest = ps < *entry;
        if is_earliest {
            *entry = ps;
        }
        is_earliest
    }

    /// Column of an instant, created when the flow first has such a time.
    #[cold]
    fn begun(column: &mut Vec<i64>, slots: usize, slot: usize) -> &mut i64 {
        column.resize(slots, UNSEEN);
        &mut column[slot]
    }

    /// Whether the sender's application is known to have handed `sequence` over. A closed message counts as handed
    /// over.
    pub(super) fn was_handed_over(&self, sequence: u32) -> bool {
        match sequence.checked_sub(self.base) {
            None => true,
            Some(distance) if (distance as usize) < self.states.len() => {
                self.states[self.slot(sequence)].has(Seen::HANDED_OVER)
            }
            Some(_) => false,
        }
    }

    /// Stores a record of a number ahead; true if too many wait, so that the window must advance to them.
    pub(super) fn keep(&mut self, record: &Record) -> bool {
        self.ahead.entry(record.sequence).or_default().push(*record);
        self.ahead.len() > MOST_AHEAD
    }

    /// The lowest number that waits ahead.
    pub(super) fn waiting(&self) -> Option<u32> {
        self.ahead.first_key_value().map(|(&sequence, _)| sequence)
    }

    /// The records of the lowest waiting number, once the window reaches it.
    pub(super) fn reached(&mut self) -> Option<Vec<Record>> {
        let reach = u64::from(self.base) + self.limit as u64;
        self.waiting().filter(|&sequence| u64::from(sequence) < reach)?;
        self.ahead.pop_first().map(|(_, records)| records)
    }

    /// The intended send of the lowest stored number, once the window reaches it.
    pub(super) fn due_now(&mut self) -> Option<Record> {
        let reach = u64::from(self.base) + self.limit as u64;
        self.due.take_below(reach)
    }

    /// The base that admits `sequence` and leaves room for some numbers after it, so that closing is done in batches.
    pub(super) fn base_for(&self, sequence: u32) -> u32 {
        let room = (self.limit / 8).max(1) as u64;
        let base = (u64::from(sequence) + room).saturating_sub(self.limit as u64);
        u32::try_from(base).unwrap_or(u32::MAX).clamp(self.base, sequence)
    }

    /// The highest number that fits without closing a message.
    pub(super) fn farthest(&self) -> u32 {
        u32::try_from(u64::from(self.base) + self.limit as u64 - 1).unwrap_or(u32::MAX)
    }

    /// The highest number that can be open, plus one.
    pub(super) fn end(&self) -> u32 {
        u32::try_from(u64::from(self.base) + self.states.len() as u64).unwrap_or(u32::MAX)
    }

    /// Closes every message below `base`, in order of number.
    pub(super) fn close_below(&mut self, base: u32, mut close: impl FnMut(Stretch<'_>)) {
        let count = base.min(self.end()).saturating_sub(self.base) as usize;
        self.close(count, &mut close);
        self.base = self.base.max(base);
    }

    /// Closes all open messages. Number 2^32 - 1 would never fall below a base, so it is closed separately.
    pub(super) fn close_all(&mut self, mut close: impl FnMut(Stretch<'_>)) {
        let count = (u32::MAX - self.base) as usize + 1;
        self.close(count.min(self.states.len()), &mut close);
        self.base = self.end();
    }

    /// Closes the first `count` messages and frees their slots, as one stretch before and one after the end of the
    /// ring.
    #[expect(clippy::cast_possible_truncation, reason = "a stretch is no longer than the window")]
    fn close(&mut self, count: usize, close: &mut impl FnMut(Stretch<'_>)) {
        let begin = self.slot(self.base);
        let before = count.min(self.states.len() - begin.min(self.states.len()));
        for (from, length, ahead) in [(begin, before, 0), (0, count - before, before)] {
            if length == 0 {
                continue;
            }
            let slots = from..from + length;
            let mut times: [&[i64]; Instant::COUNT] = [&[]; Instant::COUNT];
            for (column, all) in times.iter_mut().zip(&self.times) {
                *column = all.get(slots.clone()).unwrap_or_default();
            }
            close(Stretch { first: self.base + ahead as u32, seen: &self.states[slots.clone()], times });
            self.states[slots.clone()].fill(Seen::NOTHING);
            for column in self.times.iter_mut().filter(|column| !column.is_empty()) {
                column[slots.clone()].fill(UNSEEN);
            }
        }
    }
}
