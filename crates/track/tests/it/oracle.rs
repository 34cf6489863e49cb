//! An independent judge of messages: the definitions of the run directory's reference, read aloud.
//!
//! It shares no code and no structure with the tracker: every question is answered by looking through all
//! records again, so it is slow and has no state to get wrong. Each [`Mutant`] breaks one rule of it, to show
//! that the scenarios would notice that rule broken in the tracker.

use std::collections::{BTreeMap, BTreeSet};

use wg_frame::time::RunTime;
use wg_plan::{Flow, NodeIndex, Route, Run};
use wg_record::{Crc, DropReason, FLOW_FOREIGN, Point, Record, RecordFlags};
use wg_track::tracking::{
    FlowSummary, Message, Outcome, OutcomeCounts, RunSummary, UnplannedCounts, WarmUpCounts, window_for,
};

/// One broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    None,
    ExtentFromNearest,
    ReorderedAgainstPredecessor,
    EveryCopyIsAnArrival,
    PhasesShareNumbers,
    LateAtTheDeadline,
    DamagedIsIntact,
    DestinationIgnoresLeg,
    DamagedBelievedAnywhere,
    SentOnlyIfRecorded,
    DeliveredAtTheRelay,
    LastByTime,
    LatestCopyCounts,
    NeverSentIsSent,
    BabbleIsSent,
    SecondCopyIsADrop,
    NetworksShareAWire,
    EverySwitchRecordIsEverybodys,
    ReceiversDoNotVouch,
    RestartIsADuplicate,
    LatestLifeTakesAll,
    OrderForeseesTheSending,
}

impl Mutant {
    pub(crate) const BROKEN: [Self; 21] = [
        Self::ExtentFromNearest,
        Self::ReorderedAgainstPredecessor,
        Self::EveryCopyIsAnArrival,
        Self::PhasesShareNumbers,
        Self::LateAtTheDeadline,
        Self::DamagedIsIntact,
        Self::DestinationIgnoresLeg,
        Self::DamagedBelievedAnywhere,
        Self::SentOnlyIfRecorded,
        Self::DeliveredAtTheRelay,
        Self::LastByTime,
        Self::LatestCopyCounts,
        Self::NeverSentIsSent,
        Self::BabbleIsSent,
        Self::SecondCopyIsADrop,
        Self::NetworksShareAWire,
        Self::EverySwitchRecordIsEverybodys,
        Self::ReceiversDoNotVouch,
        Self::RestartIsADuplicate,
        Self::LatestLifeTakesAll,
        Self::OrderForeseesTheSending,
    ];
}

struct Judge<'a> {
    run: &'a Run,
    flow: &'a Flow,
    /// The receiver judged for.
    to: NodeIndex,
    /// In the order of time.
    records: &'a [Record],
    /// Life of the sender to which each record belongs.
    lives: &'a [usize],
    mutant: Mutant,
}

/// A message: in the warm-up or not, which life of its sender, number.
type Name = (bool, usize, u32);

pub(crate) fn judge(run: &Run, records: &[Record], mutant: Mutant) -> Judged {
    let mut records = records.to_vec();
    records.sort_by_key(|r| r.time);
    let records = records.as_slice();
    let mut flows: Vec<&Flow> = run.flows.iter().collect();
    flows.sort_by_key(|flow| flow.id);
    let app = |r: &&Record| r.point == Point::ApplicationReceive;
    let known = |r: &Record| flows.iter().any(|flow| flow.id == r.flow);
    let mut unplanned = UnplannedCounts::default();
    for r in records.iter().filter(app).filter(|r| !known(r)) {
        if r.flow == FLOW_FOREIGN {
            unplanned.foreign += 1;
        } else if r.crc == Crc::Bad {
            unplanned.damaged += 1;
        } else {
            unplanned.unknown_flow += 1;
        }
    }
    let mut messages = Vec::new();
    let mut summaries = Vec::new();
    for (flow, to) in flows.iter().flat_map(|flow| flow.receivers().map(move |to| (*flow, to))) {
        let lives = Judge { run, flow, to, records, lives: &[], mutant }.lives_of_records();
        let judge = Judge { run, flow, to, records, lives: &lives, mutant };
        let mut rows = judge.rows(true);
        rows.extend(judge.rows(false));
        for (r, life) in records
            .iter()
            .zip(&lives)
            .filter(|(r, _)| judge.is_arrival(r) && r.flow == flow.id && judge.concerns(r))
        {
            let name = (r.flags.has(RecordFlags::WARM_UP), *life, r.sequence);
            let sent = rows.iter().any(|m| name_of(m) == name);
            if judge.damaged(r) {
                unplanned.damaged += u64::from(!(sent && judge.believable(r)));
            } else {
                unplanned.never_sent += u64::from(!sent);
            }
        }
        summaries.push(judge.summary(&rows));
        messages.extend(rows);
    }
    let summary = RunSummary {
        index: run.index,
        records: records.len() as u64,
        window: window_for(run) as u64,
        flows: summaries,
        unplanned,
        out_of_order: 0,
        gaps: Vec::new(),
        clock_jumps: Vec::new(),
        damaged_segments: Vec::new(),
    };
    Judged { messages, summary }
}

/// What the judge says: the rows, and what they add up to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) messages: Vec<Message>,
    pub(crate) summary: RunSummary,
}

fn name_of(m: &Message) -> Name {
    (m.warm_up, usize::from(m.life), m.sequence)
}

impl Judge<'_> {
    fn relayed(&self) -> bool {
        self.run.relays.iter().any(|relay| relay.flow == self.flow.id)
    }
    fn damaged(&self, r: &Record) -> bool {
        r.crc == Crc::Bad && self.mutant != Mutant::DamagedIsIntact
    }
    fn intact(&self, r: &Record) -> bool {
        // Nobody can check what a tap captured in part.
        let tapped = r.point == Point::Tap && r.crc == Crc::Unchecked;
        r.crc == Crc::Ok || tapped || (r.crc == Crc::Bad && self.mutant == Mutant::DamagedIsIntact)
    }
    /// At an application, or at a tap where a leg that is planned ends: it stands for the application there.
    fn is_arrival(&self, r: &Record) -> bool {
        let ends_here =
            if Self::returning(r) { self.relayed() && r.node == self.flow.from } else { r.node == self.to };
        r.point == Point::ApplicationReceive || (r.point == Point::Tap && ends_here)
    }
    fn believable(&self, r: &Record) -> bool {
        self.ways().any(|way| way.nodes().any(|node| node == r.node))
            || self.mutant == Mutant::DamagedBelievedAnywhere
    }
    /// The ways to this receiver.
    fn ways(&self) -> impl Iterator<Item = &Route> {
        self.flow.routes.iter().filter(|way| way.receiver() == Some(self.to))
    }
    /// Whether the record tells of the copy for this receiver. Switches are joined to end system `e` by port `e + 1`.
    fn concerns(&self, r: &Record) -> bool {
        let receivers: Vec<NodeIndex> = self.flow.receivers().collect();
        let is_arrival = r.point == Point::ApplicationReceive;
        let passes = |to: NodeIndex| {
            let on_way = self.flow.routes_to(to).any(|way| way.nodes().any(|node| node == r.node));
            let by_port = [self.flow.from, to].contains(&(r.port.wrapping_sub(1)));
            on_way && (by_port || self.mutant == Mutant::EverySwitchRecordIsEverybodys)
        };
        match () {
            () if receivers.len() == 1 => true,
            () if receivers.contains(&r.node) => r.node == self.to,
            () if is_arrival => self.to == receivers[0],
            () if r.node == self.flow.from => true,
            () if receivers.iter().any(|&to| passes(to)) => passes(self.to),
            () => self.to == receivers[0],
        }
    }
    fn returning(r: &Record) -> bool {
        r.flags.has(RecordFlags::RETURN)
    }
    fn planned(&self, warm_up: bool) -> u32 {
        let counts = self.run.sends.iter().filter(|send| send.flow == self.flow.id);
        counts.map(|send| if warm_up { send.warm_up_count } else { send.count }).max().unwrap_or(0)
    }

    /// A sender that hands a number over again has begun its numbers anew. What it puts on its way is of its latest
    /// life, any other record of the latest that has handed the number over by then.
    fn lives_of_records(&self) -> Vec<usize> {
        let mut handed_over = [true, false].map(|_| vec![BTreeSet::<u32>::new()]);
        let mut life_of = |r: &Record| {
            let lives = &mut handed_over[usize::from(r.flags.has(RecordFlags::WARM_UP))];
            let send_side = r.point == Point::IntendedSend || is_sending(r.point);
            let of_source = r.node == self.flow.from && !Self::returning(r) && !self.damaged(r) && send_side;
            let last = lives.len() - 1;
            if of_source && r.point == Point::ApplicationSend && self.mutant != Mutant::RestartIsADuplicate {
                if !lives[last].insert(r.sequence) {
                    lives.push(BTreeSet::from([r.sequence]));
                }
                lives.len() - 1
            } else if of_source || self.mutant == Mutant::LatestLifeTakesAll {
                last
            } else {
                lives.iter().rposition(|numbers| numbers.contains(&r.sequence)).unwrap_or(last)
            }
        };
        let ours = |r: &Record| r.flow == self.flow.id && (!self.damaged(r) || self.believable(r));
        self.records.iter().map(|r| if ours(r) { life_of(r) } else { 0 }).collect()
    }

    /// The records of one message, in the order of the input.
    fn of(&self, (warm_up, life, sequence): Name) -> Vec<(usize, Record)> {
        let same_phase = |r: &Record| {
            r.flags.has(RecordFlags::WARM_UP) == warm_up || self.mutant == Mutant::PhasesShareNumbers
        };
        let mine = |r: &Record| r.flow == self.flow.id && same_phase(r) && r.sequence == sequence;
        let all = self.records.iter().copied().enumerate().filter(|(i, _)| self.lives[*i] == life);
        let mine = |r: &Record| mine(r) && self.concerns(r);
        all.filter(|(_, r)| mine(r) && (!self.damaged(r) || self.believable(r))).collect()
    }

    fn sent(&self, name: Name) -> bool {
        if name.2 >= self.planned(name.0) {
            return match self.mutant {
                Mutant::NeverSentIsSent => !self.of(name).is_empty(),
                Mutant::BabbleIsSent => self.send_recorded(name),
                _ => self.sent_with(name, &[Point::ApplicationSend]),
            };
        }
        let receivers = self.flow.receivers().filter(|_| self.mutant != Mutant::ReceiversDoNotVouch);
        let received = receivers.chain([self.to]).any(|to| {
            let other = Judge { to, ..*self };
            other.of(name).iter().any(|(_, r)| self.intact(r))
        });
        self.send_recorded(name) || (received && self.mutant != Mutant::SentOnlyIfRecorded)
    }

    fn send_recorded(&self, name: Name) -> bool {
        let points: Vec<Point> = Point::ALL.iter().copied().filter(|point| is_sending(*point)).collect();
        self.sent_with(name, &points)
    }

    fn sent_with(&self, name: Name, points: &[Point]) -> bool {
        self.of(name).iter().any(|(_, r)| {
            !self.damaged(r) && points.contains(&r.point) && r.node == self.flow.from && !Self::returning(r)
        })
    }

    /// Where an intact frame of this leg should end; nowhere when the flow has no such leg.
    fn destination(&self, r: &Record) -> Option<u16> {
        match (Self::returning(r), self.relayed()) {
            _ if self.mutant == Mutant::DestinationIgnoresLeg => Some(self.to),
            (false, _) => Some(self.to),
            (true, true) => Some(self.flow.from),
            (true, false) => None,
        }
    }

    /// Intact copies at the final destination: arrival time and place in the input.
    fn copies(&self, name: Name) -> Vec<(RunTime, usize)> {
        let final_leg = self.relayed() && self.mutant != Mutant::DeliveredAtTheRelay;
        let mut copies: Vec<(RunTime, usize)> = self
            .of(name)
            .into_iter()
            .filter(|(_, r)| self.is_arrival(r) && self.intact(r))
            .filter(|(_, r)| Self::returning(r) == final_leg && self.destination(r) == Some(r.node))
            .map(|(i, r)| (r.time, i))
            .collect();
        copies.sort();
        if self.mutant == Mutant::LatestCopyCounts {
            copies.reverse();
        }
        copies
    }

    fn rows(&self, warm_up: bool) -> Vec<Message> {
        let of_flow = self.records.iter().zip(self.lives).filter(|(r, _)| r.flow == self.flow.id);
        let names: BTreeSet<Name> = of_flow.map(|(r, &life)| (warm_up, life, r.sequence)).collect();
        let names: Vec<Name> = names.into_iter().filter(|&name| self.sent(name)).collect();
        let mut arrivals: Vec<(RunTime, usize, Name)> = Vec::new();
        for &name in &names {
            let copies = self.copies(name);
            let taken = if self.mutant == Mutant::EveryCopyIsAnArrival { copies.len() } else { 1 };
            let first = copies.into_iter().take(taken).filter(|(_, i)| self.is_message_by(name, *i));
            arrivals.extend(first.map(|(time, i)| (time, i, name)));
        }
        arrivals.sort();
        let order: Vec<Name> = arrivals.into_iter().map(|(_, _, name)| name).collect();
        names.into_iter().map(|name| self.row(name, &order)).collect()
    }

    /// Whether it was known by record `i` that this number is a message of the run.
    fn is_message_by(&self, name: Name, i: usize) -> bool {
        name.2 < self.planned(name.0)
            || self.mutant == Mutant::OrderForeseesTheSending
            || self.of(name).iter().any(|(k, r)| {
                *k < i
                    && r.point == Point::ApplicationSend
                    && r.node == self.flow.from
                    && !Self::returning(r)
                    && !self.damaged(r)
            })
    }

    /// RFC 4737: distance to the earliest earlier arrival with a higher number.
    fn extent(&self, order: &[Name], n: Name) -> u32 {
        let Some(i) = order.iter().rposition(|&m| m == n) else { return 0 };
        let earlier_and_higher: Vec<usize> = (0..i).filter(|&j| order[j] > n).collect();
        let against = match self.mutant {
            Mutant::ExtentFromNearest => earlier_and_higher.last(),
            Mutant::ReorderedAgainstPredecessor => earlier_and_higher.last().filter(|&&j| j + 1 == i),
            _ => earlier_and_higher.first(),
        };
        against.map_or(0, |j| (i - j) as u32)
    }

    #[expect(clippy::too_many_lines, reason = "the definitions in the order of the page")]
    fn row(&self, name: Name, order: &[Name]) -> Message {
        let (warm_up, life, sequence) = name;
        let all = self.of(name);
        let sound: Vec<Record> = all.iter().map(|(_, r)| *r).filter(|r| !self.damaged(r)).collect();
        let (from, to) = (self.flow.from, self.to);
        let wire = |point: Point, node: u16, port: u16| {
            let both = self.flow.network.is_none() && self.mutant != Mutant::NetworksShareAWire;
            let here = sound.iter().filter(|r| r.point == point && r.node == node && !Self::returning(r));
            let here = here.filter(|r| if both { (r.port == 2) == (port == 2) } else { port == 1 });
            here.map(|r| r.time).min()
        };
        let time = |point: Point, back: bool, node: u16| {
            let planned_leg = !back || self.relayed();
            let is_application = matches!(point, Point::ApplicationSend | Point::ApplicationReceive);
            let matching = sound.iter().filter(|r| {
                (r.point == point || (is_application && r.point == Point::Tap)) && r.node == node
            });
            let matching = matching.filter(|r| Self::returning(r) == back && planned_leg);
            matching.filter(|r| r.point != Point::ApplicationReceive || self.intact(r)).map(|r| r.time).min()
        };
        let copies = self.copies(name);
        let at_application = |r: &&(usize, Record)| self.is_arrival(&r.1);
        let misdirected = all
            .iter()
            .filter(at_application)
            .filter(|(_, r)| self.intact(r) && self.destination(r) != Some(r.node))
            .count();
        let corrupted = all.iter().filter(at_application).filter(|(_, r)| self.damaged(r)).count();
        let tx_app = time(Point::ApplicationSend, false, from);
        let late = match (self.flow.deadline, tx_app, copies.first()) {
            (Some(deadline), Some(sent), Some(&(arrived, _))) => {
                let took = arrived - sent;
                took > deadline || (took == deadline && self.mutant == Mutant::LateAtTheDeadline)
            }
            _ => false,
        };
        let extent = self.extent(order, name);
        let delivered = !copies.is_empty();
        let outcome = match () {
            () if copies.len() > 1 => Outcome::Duplicated,
            () if delivered && extent > 0 => Outcome::Reordered,
            () if delivered && late => Outcome::Late,
            () if delivered => Outcome::Delivered,
            () if corrupted > 0 => Outcome::Corrupted,
            () if misdirected > 0 => Outcome::Misdirected,
            () => Outcome::Lost,
        };
        let ends = |r: &&Record| {
            r.point != Point::Drop
                || r.reason != DropReason::SecondCopy
                || self.mutant == Mutant::SecondCopyIsADrop
        };
        let last = match self.mutant {
            Mutant::LastByTime => all.iter().map(|(_, r)| r).max_by_key(|r| (r.time, self.way(r))),
            _ => all.iter().map(|(_, r)| r).filter(ends).max_by_key(|r| self.way(r)),
        };
        let last = last.filter(|_| !delivered);
        let drops = all.iter().filter(|(_, r)| r.point == Point::Drop && r.reason != DropReason::None);
        let drops = drops.filter(|(_, r)| ends(&r));
        Message {
            flow: self.flow.id,
            to,
            sequence,
            life: life as u16,
            warm_up,
            outcome,
            intended: time(Point::IntendedSend, false, from),
            tx_app,
            tx_drv: time(Point::DriverSend, false, from),
            rx_drv: time(Point::DriverReceive, false, to),
            rx_app: time(Point::ApplicationReceive, false, to),
            back_tx_app: time(Point::ApplicationSend, true, to),
            back_tx_drv: time(Point::DriverSend, true, to),
            back_rx_drv: time(Point::DriverReceive, true, from),
            back_rx_app: time(Point::ApplicationReceive, true, from),
            tx_wire: wire(Point::WireSend, from, 1),
            tx_wire_b: wire(Point::WireSend, from, 2),
            rx_wire: wire(Point::WireReceive, to, 1),
            rx_wire_b: wire(Point::WireReceive, to, 2),
            length: sound.iter().min_by_key(|r| (self.way(r), r.length)).map_or(0, |r| r.length),
            copies: copies.len() as u16,
            corrupted_copies: corrupted as u16,
            misdirected_copies: misdirected as u16,
            reordered: extent > 0,
            reorder_extent: extent,
            late,
            last_node: last.map(|r| r.node),
            last_point: last.map(|r| r.point),
            drop_reason: drops
                .max_by_key(|(_, r)| (self.way(r), r.reason))
                .map_or(DropReason::None, |(_, r)| r.reason),
        }
    }

    /// The order of the way: leg, node on the leg (those off the way last), point, node.
    fn way(&self, r: &Record) -> (bool, usize, Point, u16) {
        let mut ways: Vec<Vec<NodeIndex>> = self.ways().map(|way| way.nodes().collect()).collect();
        let longest = ways.iter().map(Vec::len).max().unwrap_or(0);
        if Self::returning(r) {
            ways.iter_mut().for_each(|way| way.reverse());
        }
        let place = ways.iter().find_map(|way| way.iter().position(|&node| node == r.node));
        (Self::returning(r), place.unwrap_or(longest), r.point, r.node)
    }

    fn summary(&self, rows: &[Message]) -> FlowSummary {
        let measured: Vec<&Message> = rows.iter().filter(|m| !m.warm_up).collect();
        let count = |test: &dyn Fn(&Message) -> bool| measured.iter().filter(|m| test(m)).count() as u64;
        let by = |outcome| count(&|m| m.outcome == outcome);
        let warm_up =
            |test: &dyn Fn(&Message) -> bool| rows.iter().filter(|m| m.warm_up && test(m)).count() as u64;
        FlowSummary {
            flow: self.flow.id,
            to: self.to,
            planned: u64::from(self.planned(false)),
            sent: measured.len() as u64,
            delivered: count(&|m| m.copies > 0),
            lost: count(&|m| m.copies == 0),
            // The judge is told of no gap: what it does not see arrive is lost.
            unknown: 0,
            duplicated: count(&|m| m.copies > 1),
            extra_copies: measured.iter().map(|m| u64::from(m.copies.max(1) - 1)).sum(),
            reordered: count(&|m| m.reordered),
            late: count(&|m| m.late),
            misdirected: count(&|m| m.misdirected_copies > 0),
            corrupted: count(&|m| m.corrupted_copies > 0),
            outcomes: OutcomeCounts {
                delivered: by(Outcome::Delivered),
                duplicated: by(Outcome::Duplicated),
                reordered: by(Outcome::Reordered),
                late: by(Outcome::Late),
                lost: by(Outcome::Lost),
                unknown: by(Outcome::Unknown),
                misdirected: by(Outcome::Misdirected),
                corrupted: by(Outcome::Corrupted),
            },
            warm_up: WarmUpCounts { sent: warm_up(&|_| true), delivered: warm_up(&|m| m.copies > 0) },
            drop_reasons: DropReason::ALL
                .iter()
                .filter(|r| **r != DropReason::None)
                .map(|r| (r.name().to_owned(), count(&|m| m.drop_reason == *r)))
                .collect(),
            missing_send_records: count(&|m| !self.send_recorded(name_of(m))),
            redundant_discarded: measured
                .iter()
                .flat_map(|m| self.of(name_of(m)))
                .filter(|(_, r)| r.point == Point::Drop && r.reason == DropReason::SecondCopy)
                .count() as u64,
            restarts: self.restarts(),
            behind_window: 0,
            unpaired_departures: self.unpaired_departures(),
        }
    }

    /// By definition: the k-th departure of a number by a port belongs to its k-th coming to the switch, if that was
    /// before.
    fn unpaired_departures(&self) -> u64 {
        if self.flow.receivers().next() != Some(self.to) {
            return 0;
        }
        let mut came: BTreeMap<(u16, bool), BTreeMap<u32, usize>> = BTreeMap::new();
        let mut left: BTreeMap<(u16, bool, u16, u32), usize> = BTreeMap::new();
        let mut unpaired = 0;
        let of_flow = self.records.iter().filter(|r| r.flow == self.flow.id);
        for r in of_flow.filter(|r| !r.flags.has(RecordFlags::WARM_UP)) {
            let place = (r.node, Self::returning(r));
            if r.point == Point::SwitchIn {
                *came.entry(place).or_default().entry(r.sequence).or_default() += 1;
            } else if r.point == Point::SwitchOut
                && let Some(entered) = came.get(&place)
            {
                let times = entered.get(&r.sequence).copied().unwrap_or(0);
                let before = left.entry((place.0, place.1, r.port, r.sequence)).or_default();
                if *before < times {
                    *before += 1;
                } else {
                    unpaired += 1;
                }
            }
        }
        unpaired
    }

    fn restarts(&self) -> u64 {
        let measured = self
            .records
            .iter()
            .zip(self.lives)
            .filter(|(r, _)| r.flow == self.flow.id && !r.flags.has(RecordFlags::WARM_UP));
        measured.map(|(_, life)| *life as u64).max().unwrap_or(0)
    }
}

fn is_sending(point: Point) -> bool {
    matches!(point, Point::ApplicationSend | Point::DriverSend | Point::WireSend | Point::Tap | Point::Drop)
}
