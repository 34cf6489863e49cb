//! The event loop: takes the first event of the queue, hands it to its core, carries out the core's effects.

mod clusters;
mod credits;
mod hosts;
mod hubs;
mod imperfections;
mod incidents;
mod links;
mod live;
mod logs;
mod ptp;
pub(crate) mod staged;
mod summary;
mod switches;
mod tasks;

use std::collections::VecDeque;

use wg_core::Deadline;
use wg_core::frame::Frame;
use wg_frame::time::RunTime;
use wg_plan::{Network, NodeIndex, Run};
use wg_record::{Clock, Crc, DropReason, FLOW_FOREIGN, Point, Record, RecordFlags, Truth, TruthKind};

use crate::build;
use crate::capture::Captures;
use crate::clocks::NodeClock;
use crate::error::SimError;
use crate::event_queue::{Class, EventQueue, Source};
use crate::live::{Fate, MOST_FOREIGN, Outside};
use crate::message::{Carries, Flags, Message};
use crate::order::truth_order;
use crate::ptp::Ptp;
use crate::report::SimReport;
use crate::sink::Sink;
use crate::stages::exchange::Exchange;
use crate::stages::graph::is_divisible;
use crate::world::{ACCESS_POINTS, CoreIndex, World};

/// Before time and place of every record, see [`Engine::latest`].
const BEFORE_ALL: (RunTime, u32) = (RunTime::from_picos(i64::MIN), 0);

/// Number of events between two calls of [`Sink::advance`].
const LOOK: u64 = 1 << 14;

/// Simulates `run` on `network` and hands the records, and the truth beside them, to `sink`.
///
/// # Errors
/// [`SimError::Plan`] if the plan contradicts itself, or the error of the sink.
pub fn simulate(network: &Network, run: &Run, sink: &mut impl Sink) -> Result<SimReport, SimError> {
    let network = &*run.switches.applied(network);
    drive(build::world(network, run)?, network, run, sink, |engine| {
        engine.begin();
        engine.run()
    })
}

/// See [`live::carry`](crate::live::carry).
pub(crate) fn carry<O: Outside>(
    network: &Network,
    run: &Run,
    outside: &mut O,
) -> Result<SimReport, SimError> {
    let network = crate::build::between_hosts(network);
    let (network, run) = (&*run.switches.applied(&network), &crate::build::without_tasks(&network, run));
    drive(build::world_between_hosts(network, run)?, network, run, outside, |engine| {
        engine.begin();
        engine.carry()
    })
}

/// Builds the engine, runs `drive` on it and reports.
fn drive<S: Sink>(
    world: World,
    network: &Network,
    run: &Run,
    sink: &mut S,
    course: impl FnOnce(&mut Engine<'_, S>) -> Result<(), SimError>,
) -> Result<SimReport, SimError> {
    let shared = build::ptp::shared(network, run);
    let ptp = build::ptp::domains(&world, network, run, &shared)?;
    let queue = EventQueue::new([
        world.clocked.len(),
        1,
        world.events.len(),
        world.channels.len(),
        world.unusual.len(),
        world.hubs.len(),
        world.relays.len(),
        world.relays.len(),
        world.senders.len(),
        world.babblers.len(),
        world.injectors.len(),
        world.logs.len(),
        world.own_frames.len(),
        world.synchronisers.len(),
        ptp.nodes.len(),
        world.nodes.len(),
        world.clocked.len(),
    ]);
    let mut captures = Captures::new(network, run, S::KEEPS_BYTES);
    captures.begin(sink);
    let records = vec![0; world.nodes.len()].into_boxed_slice();
    let mut engine = Engine {
        is_ordered: !S::KEEPS_BYTES && is_divisible(&world, run),
        latest: BEFORE_ALL,
        is_settled: true,
        truths: Vec::new(),
        exchange: None,
        arriving: 0,
        world,
        ptp,
        queue,
        sink,
        captures,
        next_network_event: 0,
        now: RunTime::ZERO,
        events: 0,
        frame_hops: 0,
        seed: run.seed,
        measured_from: RunTime::ZERO + run.warm_up,
        records,
        ahead: VecDeque::new(),
        unrecorded: Vec::new(),
        most_unrecorded: run.injects.len() + MOST_FOREIGN,
    };
    course(&mut engine)?;
    let end = engine.now;
    engine.captures.end(end, engine.sink);
    Ok(engine.report(network, run))
}

struct Engine<'a, S> {
    world: World,
    ptp: Ptp<'a>,
    queue: EventQueue,
    sink: &'a mut S,
    captures: Captures,
    next_network_event: usize,
    now: RunTime,
    events: u64,
    frame_hops: u64,
    seed: u64,
    measured_from: RunTime,
    /// Number of records, by node.
    records: Box<[u64]>,
    /// Whether records of one instant are ordered by where they were made, so that any number of stages gives the same ones.
    is_ordered: bool,
    /// Time and place of the last record of this instant.
    latest: (RunTime, u32),
    /// Whether nothing is to be done at the end of this instant: its records came in order, and it has no truth.
    is_settled: bool,
    /// Entries of the truth of this instant, if they are ordered.
    truths: Vec<Truth>,
    /// The other stages, if this is one of several.
    exchange: Option<Box<Exchange>>,
    /// The channel of the last arrival.
    arriving: usize,
    /// Records that wait for their time, by the clocks of their nodes.
    ahead: VecDeque<Record>,
    /// Fates of frames without records between real hosts, by label, from 1.
    unrecorded: Vec<Fate>,
    most_unrecorded: usize,
}

impl<S: Sink> Engine<'_, S> {
    /// Clock of the records: between real hosts it is the hosts' own.
    const CLOCK: Clock = if S::KEEPS_BYTES { Clock::Realtime } else { Clock::Simulated };

    fn begin(&mut self) {
        for number in 0..self.world.senders.len() {
            if self.sends(self.world.senders[number].host as usize) {
                self.plan_next(number);
            }
        }
        for number in 0..self.world.injectors.len() {
            self.plan_burst(number);
        }
        self.begin_imperfections();
        if let Some((at, _)) = self.world.network_events.first() {
            self.queue.set(Class::Incident, 0, Deadline::at(*at));
        }
        for number in 0..self.world.clocked.len() {
            let clock = &self.world.nodes[usize::from(self.world.clocked[number])].clock;
            let next = clock.as_ref().map_or(Deadline::NEVER, |clock| clock.next_deadline());
            self.queue.set(Class::Clock, number, next);
            self.queue.set(Class::Sample, number, Deadline::at(RunTime::ZERO));
        }
        self.begin_clusters();
        self.begin_ptp();
    }

    fn run(&mut self) -> Result<(), SimError> {
        while let Some((now, source)) = self.queue.next()
            && (self.world.sending > 0 || now <= self.world.end())
        {
            debug_assert!(now >= self.now, "{source:?} is due at {now:?}, before {:?}", self.now);
            self.happen(now, source)?;
            if self.events.is_multiple_of(LOOK) {
                self.sink.advance(now, self.world.end())?;
            }
        }
        self.enter_instant(self.world.end());
        // As an agent does at the end of a run: relays release the messages they still hold.
        for relay in 0..self.world.relays.len() {
            self.end_relay(relay);
        }
        self.end()
    }

    /// Writes all that is still to be written.
    fn end(&mut self) -> Result<(), SimError> {
        self.settle_begun();
        self.settle_instant();
        self.write_ahead(|_, _, _| true);
        self.sink.advance(self.now, self.now)
    }

    /// Handles an event.
    #[inline(always)]
    fn happen(&mut self, now: RunTime, Source { class, number }: Source) -> Result<(), SimError> {
        if now != self.now {
            self.enter_instant(now);
        }
        let number = number as usize;
        match class {
            Class::Arrival => self.arrival(number),
            Class::Timer => self.timer(number),
            Class::Send => self.send(number),
            Class::Turn => self.turn(number),
            Class::Flush => self.flush(number),
            Class::Inject => self.inject(number),
            Class::HostEvent => self.host_event(number),
            Class::Log => self.log(number),
            Class::OwnFrames => self.own_frames(number),
            Class::Synchronise => self.synchronise(number)?,
            Class::Ptp => self.ptp_due(number)?,
            Class::Medium => self.medium(number),
            Class::Straggler => self.straggler(number),
            Class::Babble => self.babble(number),
            Class::Incident => self.incident(),
            Class::Clock => self.clock(number)?,
            Class::Sample => self.sample(number),
        }
        self.events += 1;
        Ok(())
    }

    // -- copies of frames with bytes --------------------------------------------------------------------------

    /// Counts one more copy of a frame.
    #[inline(always)]
    fn retain(&mut self, frame: &Frame) {
        self.retain_more(frame, 1);
    }

    #[inline(always)]
    fn retain_more(&mut self, frame: &Frame, more: u32) {
        if S::KEEPS_BYTES
            && let Some(place) = frame.message().bytes_at()
        {
            self.sink.retain(place, more);
        }
    }

    /// A copy of a frame has ended.
    #[inline(always)]
    fn release(&mut self, frame: &Frame) {
        if S::KEEPS_BYTES
            && let Some(place) = frame.message().bytes_at()
        {
            self.sink.release(place);
        }
    }

    // -- records ----------------------------------------------------------------------------------------------

    #[inline(always)]
    fn note(&mut self, frame: &Frame, node: NodeIndex, port: u16, point: Point, time: RunTime) {
        let what = (point, Self::CLOCK, Crc::Unchecked, DropReason::None);
        self.write(record(frame, node, port, time, what));
    }

    fn note_drop(&mut self, frame: &Frame, node: NodeIndex, port: u16, reason: DropReason, crc: Crc) {
        self.count_lost_load(frame, reason.name());
        self.write(record(frame, node, port, self.now, (Point::Drop, Self::CLOCK, crc, reason)));
    }

    /// Inlined where records are made, so that the record need not be built in memory first.
    #[inline(always)]
    fn write(&mut self, mut record: Record) {
        // Background load leaves no records: it is counted at the ports.
        if record.flow == FLOW_FOREIGN {
            return;
        }
        if S::KEEPS_BYTES {
            record.sequence = self.sink.sequence(record.sequence);
        }
        self.records[usize::from(record.node)] += 1;
        if self.world.is_exact || !self.sink.is_shown_time() {
            self.sink.record(&record);
            if !S::KEEPS_BYTES {
                // Those of one time and place may differ in what else decides their order.
                let (time, place) = self.latest;
                let own = u32::from(record.node) << 8 | u32::from(record.point.code());
                if record.time <= time && (record.time < time || own <= place) {
                    self.is_settled = false;
                }
                self.latest = (record.time, own);
            }
        } else {
            self.write_as_shown(record);
        }
    }

    /// All events of an instant are over, the next is at `now`.
    #[inline(always)]
    fn enter_instant(&mut self, now: RunTime) {
        self.settle_instant();
        self.now = now;
        self.sink.begin_instant(now);
    }

    /// Puts the records and the truth of an instant that is over in their order.
    #[inline(always)]
    fn settle_instant(&mut self) {
        self.latest = BEFORE_ALL;
        if !self.is_settled {
            self.put_in_order();
        }
    }

    #[cold]
    fn put_in_order(&mut self) {
        self.is_settled = true;
        if self.is_ordered {
            self.sink.sort_instant();
        }
        self.truths.sort_by_key(truth_order);
        for truth in self.truths.drain(..) {
            self.sink.truth(&truth);
        }
    }

    /// Writes an entry of the truth.
    fn write_truth(&mut self, truth: &Truth) {
        if self.is_ordered {
            self.is_settled = false;
            self.truths.push(*truth);
        } else {
            self.sink.truth(truth);
        }
    }

    /// Writes a record with its time as the clock of its node shows it. A record of a future instant at which that
    /// clock may still change waits, and those behind it with it, so that their order stays.
    #[cold]
    fn write_as_shown(&mut self, mut record: Record) {
        if let Some(timestamps) = &mut self.world.nodes[usize::from(record.node)].timestamps {
            record.time = timestamps.shown(record.point, record.time);
        }
        self.ahead.push_back(record);
        self.write_ahead(|record, now, clock| record.time <= now || clock.is_certain(record.time));
    }

    /// Writes the waiting records, up to the first whose reading is not certain.
    fn write_ahead(&mut self, certain: impl Fn(&Record, RunTime, &NodeClock) -> bool) {
        while let Some(&Record { node, time, clock, .. }) = self.ahead.front() {
            let own = self.world.nodes[usize::from(node)]
                .clock
                .as_ref()
                .filter(|own| clock == Self::CLOCK && self.is_shown(node, own));
            if own.is_some_and(|own| !certain(&self.ahead[0], self.now, own)) {
                break;
            }
            let Some(record) = self.ahead.pop_front() else { break };
            let shown = own.map(|own| Record { time: own.read(time), clock: Clock::Local, ..record });
            self.sink.record(&shown.unwrap_or(record));
        }
    }

    /// Whether records of a node have the times of its clock. A real host's programs do not read the clock that a
    /// protocol steers in its card, and its card's records lie beside theirs.
    fn is_shown(&self, node: NodeIndex, own: &NodeClock) -> bool {
        let is_host = matches!(self.world.nodes[usize::from(node)].place, CoreIndex::Host(_));
        !(S::KEEPS_BYTES && is_host && own.is_steered())
    }

    /// Records in the truth what was done to `frame`.
    fn reveal(&mut self, kind: TruthKind, frame: &Frame, node: NodeIndex, port: u16, value: i64) {
        let Message { flow, sequence, flags } = frame.message();
        let flags = RecordFlags::from_bits(flags.of_message());
        let sequence = if flow == FLOW_FOREIGN { 0 } else { self.sink.sequence(sequence) };
        self.write_truth(&Truth { time: self.now, value, sequence, flow, node, port, kind, flags });
    }

    /// Counts a lost frame of background load, which leaves no records, at its injector.
    fn count_lost_load(&mut self, frame: &Frame, how: &'static str) {
        if S::KEEPS_BYTES {
            self.count_unrecorded(frame, |fate| *fate.lost.entry(how).or_insert(0) += 1);
            return;
        }
        if let Some(injector) = self.injector_of(frame) {
            *self.world.injectors[injector].lost.entry(how).or_insert(0) += 1;
        }
    }

    /// Counts a frame of background load lost by link `number`: on the first link of its way, or on another.
    fn count_load_lost_on(&mut self, number: usize, frame: &Frame) {
        if S::KEEPS_BYTES {
            // No host passes on a frame of another: a link out of a host is the first on the way.
            let is_first =
                self.world.hosts.iter().any(|host| host.ports.iter().any(|port| port.channel() == number));
            self.count_lost_load(frame, if is_first { "own-link" } else { "link" });
            return;
        }
        if let Some(injector) = self.injector_of(frame) {
            let host = &self.world.hosts[self.world.injectors[injector].host];
            let is_own = host.ports.iter().any(|port| port.channel() == number);
            self.count_lost_load(frame, if is_own { "own-link" } else { "link" });
        }
    }

    fn injector_of(&self, frame: &Frame) -> Option<usize> {
        let message = frame.message();
        let number = message.sequence as usize;
        (message.flow == FLOW_FOREIGN && number < self.world.injectors.len()).then_some(number)
    }

    /// Records in the truth what happened to `node`.
    fn tell(&mut self, kind: TruthKind, node: NodeIndex, port: u16, value: i64) {
        let flags = RecordFlags::empty();
        let time = self.now;
        self.write_truth(&Truth { time, value, sequence: 0, flow: FLOW_FOREIGN, node, port, kind, flags });
    }

    /// Index of the access point of a frame, by its protocol stack, without looking up the flow. Not to be called for
    /// background load, which has none.
    fn access(frame: &Frame) -> usize {
        let access = frame.marks.stack();
        debug_assert!(access < ACCESS_POINTS.len(), "the stacks of protocols are their access points");
        access
    }
}

const _: () = assert!(
    Flags::RETURN.of_message() == RecordFlags::RETURN.bits()
        && Flags::WARM_UP.of_message() == RecordFlags::WARM_UP.bits()
);

#[inline(always)]
fn record(
    frame: &Frame,
    node: NodeIndex,
    port: u16,
    time: RunTime,
    (point, clock, crc, reason): (Point, Clock, Crc, DropReason),
) -> Record {
    let Message { flow, sequence, flags } = frame.message();
    Record {
        time,
        sequence,
        flow,
        node,
        port,
        length: frame.length,
        point,
        clock,
        crc,
        reason,
        flags: RecordFlags::from_bits(flags.of_message()),
    }
}
