//! A flow as seen by one of its receivers: the records that concern it, and what they mean.
//!
//! A multicast flow has one for each receiver, so that every count and every outcome belongs to one receiver and `sent
//! = delivered + lost + unknown` holds for each. Events before the paths part concern all of them.

use wg_plan::{FlowId, NodeIndex, Run};

use super::doubts::Doubts;
use super::facts::{Facts, NO_PORT, Plan};
use super::ledger::{Closed, Ledger};
use super::phase::{Life, Phase, ordinal};
use super::series::{FlowSeries, Measure};
use super::window::{Copies, Instant, Place, Seen, Way};
use crate::sighting::{Manner, Sighting};
use wg_record::Gap;
use wg_record::{Crc, DropReason, Point, Record, RecordFlags};

#[derive(Debug)]
pub(super) struct FlowState {
    facts: Facts,
    measured: Phase,
    warm_up: Phase,
    ledger: Ledger,
    /// Kinds of records seen lately; empty until first used.
    kinds: Vec<Kind>,
}

impl FlowState {
    /// The flow as seen by `to`, one of its receivers; `limits` are the greatest numbers of open messages of a phase,
    /// and of intended sends stored beyond them.
    pub(super) fn new(plan: &Plan<'_>, flow: &wg_plan::Flow, to: NodeIndex, limits: [usize; 2]) -> Self {
        let sends = || plan.sends.get(&flow.id).into_iter().flatten();
        let facts = Facts::new(plan, flow, to);
        let planned = sends().map(|send| send.count).max().unwrap_or(0);
        let series = FlowSeries::new(flow, to, facts.relayed);
        Self {
            ledger: Ledger::new(&facts, planned, series),
            measured: Phase::new(false, planned, limits),
            warm_up: Phase::new(true, sends().map(|send| send.warm_up_count).max().unwrap_or(0), limits),
            facts,
            kinds: Vec::new(),
        }
    }

    /// Whether this receiver answers with messages of `flow`.
    pub(super) fn is_answered_as(&self, flow: FlowId) -> bool {
        self.facts.answered_as == Some(flow)
    }

    /// Sets the gaps in its records.
    pub(super) fn doubt(&mut self, run: &Run, gaps: &[Gap]) {
        let Facts { id, from, to, relayed, .. } = self.facts;
        let last = if relayed { from } else { to };
        self.facts.doubts = Doubts::new(id, [from, to, last], run, gaps);
    }

    pub(super) fn keep_only(&mut self, measures: &[Measure]) {
        self.ledger.series.keep_only(measures);
    }

    pub(super) fn to(&self) -> NodeIndex {
        self.facts.to
    }

    /// Whether this record of the multicast flow, not taken at a receiver, concerns the copy on the path to this one.
    pub(super) fn is_passed_by(&self, record: &Record) -> bool {
        if record.node == self.facts.from {
            return true;
        }
        let mut ports = self.facts.ports.iter().filter(|(node, _)| *node == record.node).peekable();
        // If the plan does not state the ports, the node decides.
        let knows = ports.peek().is_some();
        self.facts.place(record.node) < self.facts.hops
            && (!knows || ports.any(|(_, port)| *port == record.port))
    }

    /// Another receiver of the flow, or a switch on its path, verified the message: so it was sent.
    pub(super) fn vouch(&mut self, record: &Record, closed: &mut Closed<'_>) {
        if let Some((life, slot)) = self.find(record, Claim::Hearsay, closed) {
            self.phase(record).window(life).seen(slot).set(Seen::VERIFIED);
        }
    }

    fn phase(&mut self, record: &Record) -> &mut Phase {
        if record.flags.has(RecordFlags::WARM_UP) { &mut self.warm_up } else { &mut self.measured }
    }

    /// Life and slot of the message of `record`, after making room for it; `None` if it is closed or not yet reached.
    fn find(&mut self, record: &Record, claim: Claim, closed: &mut Closed<'_>) -> Option<(usize, usize)> {
        let phase = self.phase(record);
        let life = phase.life_of(record.sequence, claim == Claim::HandedOver, claim.is_of_source());
        match phase.window(life).place(record.sequence) {
            Place::Open(slot) if !phase.is_crowded() => Some((life, slot)),
            Place::Closed => {
                self.ledger.summary.behind_window += u64::from(claim != Claim::Hearsay);
                None
            }
            _ => self.make_room(record, life, claim, closed),
        }
    }

    /// Closes messages so that the one of `record` can be open, if the record can be trusted so far.
    #[cold]
    fn make_room(
        &mut self,
        record: &Record,
        life: usize,
        claim: Claim,
        closed: &mut Closed<'_>,
    ) -> Option<(usize, usize)> {
        let phase = self.phase(record);
        if claim == Claim::Intended && record.crc == Crc::Unchecked && !phase.is_crowded() {
            // An intended send does not show what was sent by then: a late sender's schedule is far ahead.
            let is_kept = phase.window(life).due.keep(record);
            self.ledger.summary.behind_window += u64::from(!is_kept);
            return None;
        }
        let in_plan = record.sequence < phase.planned();
        let follows = record.crc == Crc::Ok && phase.window(life).is_near(record.sequence);
        // A record from another node may be nonsense: only a number that follows closely may close messages.
        let may_close = phase.is_crowded()
            || claim == Claim::HandedOver
            || (in_plan && (claim == Claim::Source || follows));
        let to = match claim {
            _ if may_close => record.sequence,
            Claim::Hearsay => return None,
            _ if phase.keep(life, record) => phase.window(life).waiting()?,
            _ => return None,
        };
        // The warm-up precedes the measured part in the table, too.
        if !record.flags.has(RecordFlags::WARM_UP) {
            self.warm_up.close_all(&self.facts, &mut self.ledger, closed);
        }
        let phase =
            if record.flags.has(RecordFlags::WARM_UP) { &mut self.warm_up } else { &mut self.measured };
        let life = if phase.is_crowded() {
            phase.close_oldest(&self.facts, &mut self.ledger, closed);
            life.saturating_sub(1)
        } else {
            phase.advance(life, to, &self.facts, &mut self.ledger, closed)
        };
        self.settle(record.flags.has(RecordFlags::WARM_UP), life);
        let phase = self.phase(record);
        match phase.window(life).place(record.sequence) {
            Place::Open(slot) if may_close => Some((life, slot)),
            _ => None,
        }
    }

    /// Notes the intended sends whose numbers the window has reached.
    fn settle(&mut self, is_warm_up: bool, life: usize) {
        let phase = if is_warm_up { &mut self.warm_up } else { &mut self.measured };
        let mut life = phase.life(life);
        while let Some(record) = life.window.due_now() {
            // Numbers behind the window were never sent.
            let Place::Open(slot) = life.window.place(record.sequence) else { continue };
            let kind = *kind_of(&mut self.kinds, &record, &self.facts);
            let Record { time, sequence, length, .. } = record;
            let one = Sighting { time, sequence, length, manner: 0 };
            life.note(&kind, &one, slot, &mut self.ledger.series);
        }
    }

    /// Notes records with their messages, in the order of time. Returns the number of arrivals that were damaged and
    /// seen off the flow's paths: their headers cannot be trusted. `kinds` are those of the records' keys, `record`
    /// returns a complete record.
    pub(super) fn observe_all(
        &mut self,
        sightings: &[Sighting],
        kinds: &[Kind],
        record: impl Fn(&Sighting) -> Record,
        closed: &mut Closed<'_>,
    ) -> u64 {
        let mut disbelieved = 0;
        let mut rest = sightings;
        while let [first, others @ ..] = rest {
            let taken = self.note_open(rest, kinds);
            if taken > 0 {
                rest = &rest[taken..];
            } else {
                let record = record(first);
                let believed = self.observe(&record, closed);
                disbelieved += u64::from(!believed && record.point == Point::ApplicationReceive);
                rest = others;
            }
        }
        disbelieved
    }

    /// Notes the record with its message. False if its header cannot be trusted.
    pub(super) fn observe(&mut self, record: &Record, closed: &mut Closed<'_>) -> bool {
        let believed = self.note(record, closed);
        if self.phase(record).has_waiting() {
            while let Some(records) = self.phase(record).reached() {
                for record in &records {
                    self.note(record, closed);
                }
            }
        }
        believed
    }

    /// Notes the first of `sightings` while their messages are open and need no decision about lives; returns their
    /// number.
    fn note_open(&mut self, sightings: &[Sighting], kinds: &[Kind]) -> usize {
        let first = sightings.first().and_then(|first| kinds.get(usize::from(first.manner)));
        let Some(is_warm_up) = first.map(|kind| kind.is_warm_up) else { return 0 };
        let phase = if is_warm_up { &mut self.warm_up } else { &mut self.measured };
        let Some(mut only) = phase.only_life() else { return 0 };
        for (place, one) in sightings.iter().enumerate() {
            let kind = &kinds[usize::from(one.manner)];
            let slot = only.window.open_slot(one.sequence).filter(|slot| {
                let begins_anew =
                    kind.claim == Claim::HandedOver && only.window.seen(*slot).has(Seen::HANDED_OVER);
                kind.is_warm_up == is_warm_up && !kind.is_refused && !begins_anew
            });
            let Some(slot) = slot else { return place };
            only.note(kind, one, slot, &mut self.ledger.series);
        }
        sightings.len()
    }

    /// Meaning of records with this key for this receiver.
    pub(super) fn kind(&self, manner: Manner) -> Kind {
        Kind::of(manner, &self.facts)
    }

    fn note(&mut self, record: &Record, closed: &mut Closed<'_>) -> bool {
        let kind = *kind_of(&mut self.kinds, record, &self.facts);
        if kind.is_refused {
            return false;
        }
        if let Some((life, slot)) = self.find(record, kind.claim, closed) {
            let is_warm_up = record.flags.has(RecordFlags::WARM_UP);
            let phase = if is_warm_up { &mut self.warm_up } else { &mut self.measured };
            let Record { time, sequence, length, .. } = *record;
            let one = Sighting { time, sequence, length, manner: 0 };
            phase.life(life).note(&kind, &one, slot, &mut self.ledger.series);
        }
        true
    }

    /// Opens the measured messages up to this number, of which the last may have no record; in steps, because a message
    /// that never had a slot would not be counted.
    fn open_up_to(&mut self, last: u32, closed: &mut Closed<'_>) {
        while matches!(self.measured.window(0).place(last), Place::Ahead) {
            let farthest = self.measured.window(0).farthest();
            self.measured.window(0).place(farthest);
            self.measured.advance(0, farthest + 1, &self.facts, &mut self.ledger, closed);
        }
    }

    /// Closes every message and returns the totals.
    pub(super) fn finish(mut self, closed: &mut Closed<'_>) -> Ledger {
        for is_warm_up in [true, false] {
            loop {
                let phase = if is_warm_up { &mut self.warm_up } else { &mut self.measured };
                let Some((life, sequence)) = phase.waiting() else { break };
                let life = phase.advance(life, sequence, &self.facts, &mut self.ledger, closed);
                self.settle(is_warm_up, life);
                let phase = if is_warm_up { &mut self.warm_up } else { &mut self.measured };
                for record in phase.window(life).reached().unwrap_or_default() {
                    self.note(&record, closed);
                }
            }
            if !is_warm_up && let Some(last) = self.facts.doubts.handed_over.checked_sub(1) {
                self.open_up_to(last, closed);
            }
            let phase = if is_warm_up { &mut self.warm_up } else { &mut self.measured };
            phase.close_all(&self.facts, &mut self.ledger, closed);
        }
        self.ledger
    }
}

/// Information of a record about the sending of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// Hand-over of the message by the sender's application.
    HandedOver,
    /// Transmission of the message by the sender.
    Source,
    /// Intended sending time.
    Intended,
    /// Observation at another node.
    Seen,
    /// Observation at another node, on the path to another receiver.
    Hearsay,
}

impl Claim {
    fn is_of_source(self) -> bool {
        matches!(self, Self::HandedOver | Self::Source | Self::Intended)
    }
}

/// Whether the record shows an intact message: verified, or seen by a tap. A frame captured in part cannot be verified,
/// and counts as intact.
pub(super) fn is_sound(point: Point, crc: Crc) -> bool {
    crc == Crc::Ok || (point == Point::Tap && crc == Crc::Unchecked)
}

/// Claim of a record at this point of the sender.
fn claim_of(point: Point) -> Claim {
    match point {
        Point::ApplicationSend => Claim::HandedOver,
        Point::IntendedSend => Claim::Intended,
        Point::DriverSend | Point::WireSend | Point::Tap | Point::Drop => Claim::Source,
        _ => Claim::Seen,
    }
}

impl Life<'_> {
    /// Notes a record of this kind with the message in `slot`.
    #[inline]
    fn note(&mut self, kind: &Kind, record: &Sighting, slot: usize, series: &mut FlowSeries) {
        let seen = self.window.seen(slot);
        seen.last = seen.last.max(kind.last);
        seen.comes_by(kind.first, record.length);
        seen.set(kind.sets);
        seen.add(kind.copies);
        if kind.is_drop {
            kind.dropped(seen);
        }
        // Beyond the plan only messages handed over by the sender count and take part in any order.
        let is_sent = record.sequence < self.planned || seen.has(Seen::HANDED_OVER);
        let Some(instant) = kind.instant else { return };
        if !self.window.note(slot, instant, record.time) || !is_sent {
            return;
        }
        if kind.is_delivery {
            let extent = self.arrivals.next(ordinal(self.number, record.sequence));
            if extent > 0 {
                self.window.seen(slot).extent = extent;
            }
        }
        match instant {
            Instant::RxApp if !self.is_warm_up => series.arrived(record.time.as_picos()),
            Instant::TxWire if !self.is_warm_up => series.left(record.time.as_picos()),
            _ => {}
        }
    }
}

/// Meaning of a record; stored for its kind.
#[inline]
fn kind_of<'a>(kinds: &'a mut Vec<Kind>, record: &Record, facts: &Facts) -> &'a Kind {
    let manner = Manner::of(record);
    if kinds.is_empty() {
        kinds.resize(Kind::REMEMBERED, Kind::UNKNOWN);
    }
    let known = &mut kinds[Kind::place(record)];
    if known.manner != manner {
        *known = Kind::of(manner, facts);
    }
    known
}

/// Meaning of records of one kind for their message: those of one node, port, point, verdict, reason and leg.
///
/// A flow has few kinds and very many records, so the rules are evaluated once for each kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    manner: Manner,
    is_warm_up: bool,
    is_of_switch: bool,
    /// Damaged, and seen off the flow's paths: its header cannot be trusted.
    is_refused: bool,
    claim: Claim,
    /// Candidate for the farthest place; [`Way::NOWHERE`]: none.
    last: Way,
    /// Candidate for the farthest drop.
    drop: Way,
    reason: u8,
    /// Candidate for the nearest place; [`Way::BEYOND`]: none.
    first: Way,
    sets: u8,
    copies: Copies,
    /// Whether it is a drop, or the removal of a second copy.
    is_drop: bool,
    instant: Option<Instant>,
    /// Whether the message ends its path here.
    is_delivery: bool,
}

impl Kind {
    /// Number of kinds remembered.
    const REMEMBERED: usize = 32;
    /// Placeholder: no record has this key.
    pub(super) const UNKNOWN: Self = Self {
        manner: Manner::NONE,
        is_warm_up: false,
        is_of_switch: false,
        is_refused: true,
        claim: Claim::Seen,
        last: Way::NOWHERE,
        drop: Way::NOWHERE,
        reason: 0,
        first: Way::BEYOND,
        sets: 0,
        copies: Copies::NONE,
        is_drop: false,
        instant: None,
        is_delivery: false,
    };

    #[inline]
    pub(super) fn is_of(&self, manner: Manner) -> bool {
        self.manner == manner
    }
    #[inline]
    pub(super) fn is_of_switch(&self) -> bool {
        self.is_of_switch
    }

    #[cold]
    fn dropped(&self, seen: &mut Seen) {
        if self.drop == Way::NOWHERE {
            seen.redundant_discarded = seen.redundant_discarded.saturating_add(1);
        } else if (self.drop, self.reason) > (seen.drop, seen.reason) {
            (seen.drop, seen.reason) = (self.drop, self.reason);
        }
    }

    /// The kind of records that are not evaluated for a single receiver.
    pub(super) fn refused(manner: Manner) -> Self {
        let is_of_switch = matches!(manner.point(), Some(Point::SwitchIn | Point::SwitchOut));
        Self { manner, is_of_switch, ..Self::UNKNOWN }
    }

    /// Index of its kind in the memory.
    #[inline]
    fn place(record: &Record) -> usize {
        let node = usize::from(record.node) * 7;
        (usize::from(record.point.code()) + node + usize::from(record.flags.bits()) * 16) % Self::REMEMBERED
    }

    #[cold]
    #[expect(clippy::too_many_lines, reason = "a case for each point of observation")]
    fn of(manner: Manner, facts: &Facts) -> Self {
        let record = &manner.record(&Sighting::NOTHING);
        let unknown = Self { is_warm_up: record.flags.has(RecordFlags::WARM_UP), ..Self::refused(manner) };
        let returning = record.flags.has(RecordFlags::RETURN);
        let outward_place = facts.place(record.node);
        let on_the_way = outward_place < facts.hops;
        let damaged = record.crc == Crc::Bad;
        if damaged && !on_the_way {
            return unknown;
        }
        let place = if returning && on_the_way { facts.hops - 1 - outward_place } else { outward_place };
        let way = Way::new(returning, place, record.point, record.node);
        let (at_from, at_to) = (record.node == facts.from, record.node == facts.to);
        // The removal of a second copy is no drop of the message.
        let is_drop = record.point == Point::Drop;
        let is_second_copy = is_drop && record.reason == DropReason::SecondCopy;
        let is_loss = is_drop && !is_second_copy && record.reason != DropReason::None;
        // A tap at the end of a leg stands for the application, which it cannot see.
        let ends_here =
            if returning { facts.relayed && record.node == facts.from } else { record.node == facts.to };
        let tapped = record.point == Point::Tap && ends_here;
        let arrived = record.point == Point::ApplicationReceive || tapped;
        let kind = Self {
            is_refused: false,
            last: if is_second_copy { Way::NOWHERE } else { way },
            drop: if is_loss { way } else { Way::NOWHERE },
            reason: if is_loss { record.reason.code() } else { 0 },
            copies: if damaged && arrived { Copies::CORRUPTED } else { Copies::NONE },
            is_drop: is_second_copy || is_loss,
            ..unknown
        };
        if damaged {
            return kind;
        }
        let claim = if at_from && !returning { claim_of(record.point) } else { Claim::Seen };
        // A one-way flow has no return leg: a message seen there was misdirected.
        let leg_is_planned = facts.relayed || !returning;
        let (at_source, at_destination) = if returning { (at_to, at_from) } else { (at_from, at_to) };
        let is_final = returning == facts.relayed;
        let sound = is_sound(record.point, record.crc);
        let intact = arrived && sound;
        let second_port = match (at_from, at_to) {
            (true, _) => facts.second_ports[0],
            (false, true) => facts.second_ports[1],
            (false, false) => NO_PORT,
        };
        let on_b = record.port != NO_PORT && record.port == second_port;
        let instant = Instant::of(record.point, returning, at_source, at_destination, on_b);
        Self {
            claim,
            first: way,
            sets: match claim {
                Claim::HandedOver => Seen::SEND_RECORDED | Seen::HANDED_OVER,
                Claim::Source => Seen::SEND_RECORDED,
                _ if sound => Seen::VERIFIED,
                _ => 0,
            },
            copies: match (arrived, intact) {
                (true, true) if !(leg_is_planned && at_destination) => {
                    Copies::ARRIVED.and(Copies::MISDIRECTED)
                }
                (true, true) if is_final => Copies::ARRIVED.and(Copies::INTACT),
                (true, _) => Copies::ARRIVED,
                _ => kind.copies,
            },
            instant: instant.filter(|_| leg_is_planned && (intact || !arrived)),
            is_delivery: intact && is_final,
            ..kind
        }
    }
}
