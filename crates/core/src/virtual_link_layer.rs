//! The virtual link layer of an end system: between its send and receive lanes and its one or two ports.
//!
//! ```text
//! message ─┬─ rate-constrained: sub-virtual-links ─ regulator ─ numbering ─┬─▶ port on network A
//!          ├─ time-triggered: dispatcher (local clock) ─ numbering ────────┴─▶ port on network B
//!          └─ best effort ──────────────────────────────────────────────────▶ one of them, or both
//! frame ───┬─ rate-constrained: integrity of its network ─ redundancy ─▶ receive lane
//!          ├─ time-triggered: acceptance window (local clock) ─ redundancy ─▶ receive lane
//!          └─ best effort ─▶ receive lane
//! ```
//!
//! The parts are cores of their own ([regulator], [integrity], [redundancy], [dispatch]), combined here by identifier.
//! Eligible frames of all virtual links meet in the egress queues, which are the multiplexer of ARINC 664 part 7: their
//! waiting time there is the output jitter, recorded for each virtual link and port. Both copies of a frame carry one
//! number.
//!
//! # Time
//! Gaps of virtual links and instants of schedules follow the local clock, and move when it is
//! [changed](VirtualLinkLayer::handle_clock_change). Late calls change no eligible time and no planned instant, only
//! when the frames are passed on. A message that need not wait leaves at once, before those held back until then. Of
//! frames held back that are due at one call the earliest leaves first; among equals virtual links before schedules,
//! lower identifiers before higher. Each effect inspects one number for each virtual link and schedule sent here.
//!
//! [regulator]: crate::arinc664::regulator
//! [integrity]: crate::arinc664::integrity
//! [redundancy]: crate::arinc664::redundancy
//! [dispatch]: crate::tte::dispatch

mod config;
mod table;

use alloc::boxed::Box;

use wg_frame::time::RunTime;

use crate::arinc664::integrity::SequenceGenerator;
use crate::arinc664::redundancy::{Decision, Receiver, RedundancyManager};
use crate::arinc664::regulator::{JitterAccount, Regulator};
use crate::cause::Cause;
use crate::clock::{LocalClock, LocalTime};
use crate::deadline::Deadline;
use crate::fifo::Fifo;
use crate::frame::{Frame, NetworkId, TrafficClass};
use crate::tte::dispatch::{Acceptance, AcceptanceWindow, Dispatch, Dispatcher, Unsent};
pub use config::{
    IncomingLink, IncomingSchedule, Networks, OutgoingLink, OutgoingSchedule, VirtualLinkLayerConfig,
    VirtualLinkLayerError,
};
use table::Table;

/// A frame that leaves for the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The frame, numbered.
    pub frame: Frame,
    /// Networks on which it is sent.
    pub networks: Networks,
    /// Instant from which it could have been sent.
    pub due: RunTime,
}

/// A virtual link that begins here. The fields used for a frame lie in two cache lines, the second for its port.
#[derive(Debug)]
#[repr(C, align(64))]
struct Link {
    regulator: Regulator<Frame>,
    numbers: SequenceGenerator,
    networks: Networks,
    ports: [Multiplexed; 2],
}

/// The frames of a virtual link in the egress queues of a port.
#[derive(Debug)]
struct Multiplexed {
    /// Eligible times of waiting frames; ascending.
    eligible: Fifo<RunTime>,
    /// Eligible time of the frame that began last.
    last: RunTime,
    account: JitterAccount,
}

const _: () = assert!(core::mem::size_of::<Link>() == 192, "three lines of cache");
const _: () = assert!(core::mem::offset_of!(Link, ports) == 64, "what is of a port is in lines of its own");

#[derive(Debug)]
struct Schedule {
    dispatcher: Dispatcher<Frame>,
    longest_frame: u16,
    numbers: SequenceGenerator,
    networks: Networks,
}

#[derive(Debug)]
struct Expected {
    windows: [Option<AcceptanceWindow>; 2],
    manager: RedundancyManager,
}

const NEVER: RunTime = RunTime::from_picos(i64::MAX);

/// The virtual link layer of an end system.
#[derive(Debug)]
pub struct VirtualLinkLayer {
    links: Table<Link>,
    schedules: Table<Schedule>,
    receivers: Table<Receiver>,
    expected: Table<Expected>,
    /// Instants at which each link and then each schedule has a frame to pass on.
    due: Box<[RunTime]>,
    earliest: RunTime,
    /// Whether sending by schedule is suspended, because the end system is not synchronised.
    suspended: bool,
}

impl VirtualLinkLayer {
    /// A layer whose clock shows `start`.
    ///
    /// # Errors
    /// [`VirtualLinkLayerError`] for the first part of the configuration that cannot work.
    pub fn new(config: VirtualLinkLayerConfig, start: LocalTime) -> Result<Self, VirtualLinkLayerError> {
        let VirtualLinkLayerConfig {
            mut outgoing_links,
            mut outgoing_schedules,
            mut incoming_links,
            mut incoming_schedules,
        } = config;
        sort(&mut outgoing_links, |link| link.id)?;
        sort(&mut outgoing_schedules, |schedule| schedule.id)?;
        sort(&mut incoming_links, |link| link.id)?;
        sort(&mut incoming_schedules, |schedule| schedule.id)?;
        let links = outgoing_links.into_iter().map(|link| Ok((link.id, Link::new(link)?)));
        let schedules =
            outgoing_schedules.into_iter().map(|schedule| Ok((schedule.id, Schedule::new(schedule, start)?)));
        let receivers = incoming_links.into_iter().map(|IncomingLink { id, bag, redundancy }| {
            let receiver = Receiver::new(redundancy, bag);
            receiver.map(|receiver| (id, receiver)).map_err(|error| VirtualLinkLayerError::Skew { id, error })
        });
        let expected = incoming_schedules.into_iter().map(|flow| Ok((flow.id, Expected::new(flow)?)));
        let (links, schedules) = (Table::new(links)?, Table::new(schedules)?);
        let due = alloc::vec![NEVER; links.all.len() + schedules.all.len()].into_boxed_slice();
        Ok(Self {
            links,
            schedules,
            receivers: Table::new(receivers)?,
            expected: Table::new(expected)?,
            due,
            earliest: NEVER,
            suspended: false,
        })
    }

    /// The end system has a single network: no frame is a second copy.
    pub(crate) fn expect_one_network(&mut self) {
        self.receivers.all.iter_mut().for_each(Receiver::expect_one_network);
        self.expected.all.iter_mut().for_each(|expected| expected.manager.expect_one_network());
    }

    /// A message in its frame, from the lane. `lost` is called for each frame that will not be sent: this one, or an
    /// older one that it replaces. Returns the departure of a message that need not wait; others leave by
    /// [`poll_departure`](Self::poll_departure), also if due at `now`.
    pub fn handle_message(
        &mut self,
        now: RunTime,
        clock: &impl LocalClock,
        frame: Frame,
        mut lost: impl FnMut(Frame, Cause),
    ) -> Option<Departure> {
        let id = frame.virtual_link;
        match frame.class {
            TrafficClass::TimeTriggered => {
                let Some(at) = self.schedules.place(id) else {
                    lost(frame, Cause::Filtered);
                    return None;
                };
                if self.suspended {
                    lost(frame, Cause::MissedWindow);
                    return None;
                }
                let schedule = &mut self.schedules.all[at];
                if frame.length > schedule.longest_frame {
                    lost(frame, Cause::Regulator);
                    return None;
                }
                match schedule.dispatcher.handle_message(clock.read(now), frame) {
                    None => {}
                    Some(Unsent::Overwritten(frame)) => lost(frame, Cause::Superseded),
                    Some(Unsent::QueueFull(frame)) => lost(frame, Cause::Regulator),
                }
                self.set_schedule(at, now, clock);
            }
            TrafficClass::RateConstrained => {
                let Some(at) = self.links.place(id) else {
                    lost(frame, Cause::Filtered);
                    return None;
                };
                let link = &mut self.links.all[at];
                let sub_link = usize::from(frame.sequence);
                if link.regulator.handle_frame(now, sub_link, usize::from(frame.length), frame).is_err() {
                    lost(frame, Cause::Regulator);
                    return None;
                }
                // Fast path: nothing else is due, so neither the list of instants nor the next turn changes.
                let at_rest = self.earliest >= now && self.due[at] == NEVER;
                if at_rest && link.regulator.next_deadline().is_due(now) {
                    return link.depart(clock);
                }
                self.set_link(at);
            }
            TrafficClass::BestEffort => lost(frame, Cause::Filtered),
        }
        None
    }

    /// Takes a message that will leave the lane at `comes`, in its frame, ahead of that instant, if it is then sure to
    /// wait for the gap of its virtual link, which saves an event. Messages of one virtual link must be handed in, here
    /// or to [`handle_message`](Self::handle_message), in the order they come.
    ///
    /// # Errors
    /// The frame, to be handed in when it comes.
    pub fn handle_ahead(&mut self, comes: RunTime, frame: Frame) -> Result<(), Frame> {
        let of_a_link = frame.class == TrafficClass::RateConstrained && frame.sequence == 0;
        let Some(at) = self.links.place(frame.virtual_link).filter(|_| of_a_link) else { return Err(frame) };
        self.links.all[at].regulator.handle_ahead(comes, usize::from(frame.length), frame)?;
        self.set_link(at);
        Ok(())
    }

    /// The next frame held back that leaves for the ports at `now`; `None` when there is none before the next deadline.
    /// To be called at every deadline, after the messages of the instant.
    pub fn poll_departure(&mut self, now: RunTime, clock: &impl LocalClock) -> Option<Departure> {
        while self.earliest <= now {
            let at = self.due.iter().position(|due| *due == self.earliest)?;
            let due = self.due[at];
            if at < self.links.all.len() {
                let link = &mut self.links.all[at];
                link.regulator.handle_deadline(now);
                let departure = link.depart(clock);
                self.set_link(at);
                if departure.is_some() {
                    return departure;
                }
            } else {
                let schedule = &mut self.schedules.all[at - self.links.all.len()];
                schedule.dispatcher.handle_deadline(clock.read(now));
                let mut departure = None;
                while let Some(done) = schedule.dispatcher.poll_output() {
                    if let Dispatch::Send { message, .. } = done {
                        let frame = numbered(message, &mut schedule.numbers);
                        departure = Some(Departure { frame, networks: schedule.networks, due });
                        break;
                    }
                }
                self.set_schedule(at - self.links.all.len(), now, clock);
                if departure.is_some() {
                    return departure;
                }
            }
        }
        None
    }

    /// Time at which [`poll_departure`](Self::poll_departure) returns a frame.
    #[inline]
    pub fn next_deadline(&self) -> Deadline {
        Deadline::at(self.earliest)
    }

    /// Numbers a frame that bypasses regulator and schedule, as a babbling end system sends it, and returns its
    /// networks; `None`: its flow does not begin here.
    pub fn number(&mut self, frame: Frame) -> Option<(Frame, Networks)> {
        let id = frame.virtual_link;
        match frame.class {
            TrafficClass::BestEffort => None,
            TrafficClass::RateConstrained => {
                let at = self.links.place(id)?;
                let link = &mut self.links.all[at];
                Some((numbered(frame, &mut link.numbers), link.networks))
            }
            TrafficClass::TimeTriggered => {
                let at = self.schedules.place(id)?;
                let schedule = &mut self.schedules.all[at];
                Some((numbered(frame, &mut schedule.numbers), schedule.networks))
            }
        }
    }

    /// A frame whose last bit came by `network` at `now`. `Ok`: the receive lane gets it.
    ///
    /// # Errors
    /// The reason to drop it.
    pub fn handle_frame(
        &mut self,
        now: RunTime,
        clock: &impl LocalClock,
        network: NetworkId,
        frame: &Frame,
    ) -> Result<(), Cause> {
        #[expect(clippy::cast_possible_truncation, reason = "an ARINC 664 sequence number is a byte")]
        let (id, number) = (frame.virtual_link, frame.sequence as u8);
        match frame.class {
            TrafficClass::BestEffort => Ok(()),
            TrafficClass::RateConstrained => {
                let at = self.receivers.place(id).ok_or(Cause::Filtered)?;
                let received = self.receivers.all[at].handle_frame(now, network, number);
                received.map(|_| ()).map_err(Cause::from)
            }
            TrafficClass::TimeTriggered => {
                let at = self.expected.place(id).ok_or(Cause::Filtered)?;
                let expected = &mut self.expected.all[at];
                let window = expected.windows[usize::from(network == NetworkId::B)];
                match window.map(|window| window.judge(clock.read(now))) {
                    None | Some(Acceptance::InSchedule(_)) => {}
                    Some(Acceptance::Early(_) | Acceptance::Late(_)) => return Err(Cause::OutOfWindow),
                }
                match expected.manager.handle_frame(now, network, number) {
                    Decision::Forward { .. } => Ok(()),
                    Decision::SecondCopy { .. } => Err(Cause::SecondCopy),
                }
            }
        }
    }

    /// The local clock was changed at `now`.
    pub fn handle_clock_change(&mut self, now: RunTime, clock: &impl LocalClock) {
        for at in 0..self.links.all.len() {
            self.links.all[at].regulator.handle_clock_change(now, clock);
            self.set_link(at);
        }
        for at in 0..self.schedules.all.len() {
            self.schedules.all[at].dispatcher.handle_clock_change(clock.read(now));
            self.set_schedule(at, now, clock);
        }
    }

    /// The end system gains or loses synchronisation at `now`: frames that wait for their instants when it is lost are
    /// handed to `lost`.
    pub fn handle_synchronised(
        &mut self,
        now: RunTime,
        clock: &impl LocalClock,
        is_synchronised: bool,
        mut lost: impl FnMut(Frame),
    ) {
        self.suspended = !is_synchronised;
        if self.suspended {
            for at in 0..self.schedules.all.len() {
                self.schedules.all[at].dispatcher.handle_reset(clock.read(now)).for_each(&mut lost);
                self.set_schedule(at, now, clock);
            }
        }
        self.handle_clock_change(now, clock);
    }

    /// The end system restarts at `now`: numbers begin at zero, all state is reset, and waiting frames are handed to
    /// `lost`.
    pub fn handle_restart(&mut self, now: RunTime, clock: &impl LocalClock, mut lost: impl FnMut(Frame)) {
        for link in &mut self.links.all {
            link.regulator.handle_reset().into_iter().for_each(&mut lost);
            link.numbers.handle_reset();
            link.ports.iter_mut().for_each(|port| port.eligible.clear());
        }
        for schedule in &mut self.schedules.all {
            schedule.dispatcher.handle_reset(clock.read(now)).for_each(&mut lost);
            schedule.numbers.handle_reset();
        }
        self.receivers.all.iter_mut().for_each(Receiver::handle_reset);
        self.expected.all.iter_mut().for_each(|expected| expected.manager.handle_reset());
        self.due.fill(NEVER);
        self.earliest = NEVER;
    }

    /// A frame that was due at `due` joins the queues of `port` (0 or 1).
    pub(crate) fn joins(&mut self, port: usize, frame: &Frame, due: RunTime) {
        if let Some(multiplexed) = self.multiplexed(port, frame) {
            multiplexed.eligible.push_back(due);
        }
    }

    /// The transmission of a frame begins at `now`.
    pub(crate) fn begins(&mut self, port: usize, frame: &Frame, now: RunTime) {
        if let Some(multiplexed) = self.multiplexed(port, frame)
            && let Some(due) = multiplexed.eligible.pop_front()
        {
            multiplexed.last = due;
            multiplexed.account.handle_start(due, now);
        }
    }

    /// A frame that was due at `due` arrives at `port` at `now`, where none waits, and its transmission begins: as
    /// [`joins`](Self::joins) and [`begins`](Self::begins).
    #[inline]
    pub(crate) fn passes(&mut self, port: usize, frame: &Frame, due: RunTime, now: RunTime) {
        if let Some(multiplexed) = self.multiplexed(port, frame) {
            multiplexed.last = due;
            multiplexed.account.handle_start(due, now);
        }
    }

    /// The frame that began last was aborted and waits again.
    pub(crate) fn waits_again(&mut self, port: usize, frame: &Frame) {
        if let Some(multiplexed) = self.multiplexed(port, frame) {
            multiplexed.eligible.push_front(multiplexed.last);
        }
    }

    /// The frame that joined last was dropped for lack of room.
    pub(crate) fn leaves(&mut self, port: usize, frame: &Frame) {
        if let Some(multiplexed) = self.multiplexed(port, frame) {
            multiplexed.eligible.pop_back();
        }
    }

    /// The output jitter of a virtual link at `port` (0 or 1) so far.
    pub fn output_jitter(&self, id: u16, port: usize) -> Option<&JitterAccount> {
        self.links.place(id).map(|at| &self.links.all[at].ports[port].account)
    }

    /// Number of frames that wait in regulators and for their instants.
    pub fn waiting(&self) -> usize {
        let links = self.links.all.iter().map(|link| link.regulator.waiting());
        let schedules = self.schedules.all.iter().map(|schedule| schedule.dispatcher.waiting());
        links.chain(schedules).sum()
    }

    fn multiplexed(&mut self, port: usize, frame: &Frame) -> Option<&mut Multiplexed> {
        if frame.class != TrafficClass::RateConstrained {
            return None;
        }
        self.links.place(frame.virtual_link).map(|at| &mut self.links.all[at].ports[port])
    }

    fn set_link(&mut self, at: usize) {
        let due = self.links.all[at].regulator.next_deadline();
        self.set(at, due.instant().unwrap_or(NEVER));
    }

    fn set_schedule(&mut self, at: usize, now: RunTime, clock: &impl LocalClock) {
        let dispatcher = &self.schedules.all[at].dispatcher;
        let due = if dispatcher.has_output() {
            now
        } else if dispatcher.is_empty() {
            NEVER
        } else {
            clock.true_time(dispatcher.next_deadline(), now).unwrap_or(NEVER)
        };
        self.set(self.links.all.len() + at, due);
    }

    fn set(&mut self, at: usize, due: RunTime) {
        let before = core::mem::replace(&mut self.due[at], due);
        if due <= self.earliest {
            self.earliest = due;
        } else if before == self.earliest {
            self.earliest = self.due.iter().copied().min().unwrap_or(NEVER);
        }
    }
}

impl Link {
    fn new(link: OutgoingLink) -> Result<Self, VirtualLinkLayerError> {
        let OutgoingLink { id, contract, queues, networks, jitter_budget } = link;
        let regulator = Regulator::new(contract, &queues)
            .map_err(|error| VirtualLinkLayerError::Regulator { id, error })?;
        let multiplexed = || Multiplexed {
            eligible: Fifo::new(),
            last: RunTime::ZERO,
            account: JitterAccount::new(jitter_budget),
        };
        let ports = [multiplexed(), multiplexed()];
        Ok(Self { regulator, numbers: SequenceGenerator::new(), networks, ports })
    }

    fn depart(&mut self, clock: &impl LocalClock) -> Option<Departure> {
        let eligible = self.regulator.poll_output(clock)?;
        let frame = numbered(eligible.frame, &mut self.numbers);
        Some(Departure { frame, networks: self.networks, due: eligible.eligible_at })
    }
}

impl Schedule {
    fn new(schedule: OutgoingSchedule, start: LocalTime) -> Result<Self, VirtualLinkLayerError> {
        let OutgoingSchedule { id, instants, mode, longest_frame, networks } = schedule;
        let dispatcher = Dispatcher::new(instants, mode, start)
            .map_err(|error| VirtualLinkLayerError::Dispatch { id, error })?;
        Ok(Self { dispatcher, longest_frame, numbers: SequenceGenerator::new(), networks })
    }
}

impl Expected {
    fn new(schedule: IncomingSchedule) -> Result<Self, VirtualLinkLayerError> {
        let IncomingSchedule { id, period, windows, redundancy } = schedule;
        let manager = RedundancyManager::with_interval(redundancy, period)
            .map_err(|error| VirtualLinkLayerError::Skew { id, error })?;
        Ok(Self { windows, manager })
    }
}

fn numbered(frame: Frame, numbers: &mut SequenceGenerator) -> Frame {
    Frame { sequence: numbers.next_number().into(), ..frame }
}

fn sort<T>(list: &mut [T], id: impl Fn(&T) -> u16) -> Result<(), VirtualLinkLayerError> {
    list.sort_by_key(&id);
    match list.windows(2).find(|pair| id(&pair[0]) == id(&pair[1])) {
        Some(pair) => Err(VirtualLinkLayerError::Twice(id(&pair[0]))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
