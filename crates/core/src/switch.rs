//! The switch: from the ingress port of a frame to the egress queues.
//!
//! A frame passes the ingress rule, the forwarding table and an egress port. Store-and-forward takes it after its last
//! bit and the processing delay, cut-through after its header and the processing delay: it then leaves at once through
//! every port that is idle and as fast as the one it came by, and falls back to store-and-forward at every other,
//! because a port that is slower or busy would have to hold the frame anyway and a faster one would overtake it. The
//! switch looks at the ports once, at that instant; of the frames of one instant for the same idle port the most urgent
//! is cut through.
//! same port idle the most urgent is cut through.
//!
//! Filters, policing and virtual links belong into [`Ingress`] ([`IngressRules`](crate::ingress::IngressRules)), gates
//! and time-triggered windows into the [selection](crate::selection) of the ports: the switch itself knows neither.
//!
//! A store-and-forward switch drops frames with a wrong check sequence and those shorter or longer than [it
//! accepts](FrameLengths). A cut-through switch has decided before the end of the frame, so it forwards the damage,
//! also out of ports where the frame had to wait: so do real ones, which mark it at most. Neither learns from it. A
//! forwarded frame shorter than the shortest leaves padded.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wg_frame::time::{RunTime, Span};

use crate::cause::Cause;
use crate::clock::LocalClock;
use crate::contention::Contenders;
use crate::deadline::Deadline;
use crate::fifo::Fifo;
use crate::forwarding::{Forwarding, PortSet, Route};
use crate::frame::{Frame, FrameLengths, Marks};
use crate::frer::{Handled, StreamTable};
use crate::line::{LineRate, SMALLEST_FRAME};
use crate::port::{Effect, FragmentEdge, Life, NodeShared, Port, Transmission};
use crate::queue::{Capacity, Fill};
use crate::selection::{CreditCourse, TransmissionSelection};

/// When a frame is forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum ForwardingMode {
    /// When all of it has arrived.
    #[default]
    StoreAndForward,
    /// When its header has arrived, if the egress port is idle and as fast as the ingress port.
    CutThrough,
}

/// The ingress rule's decision about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Forward it by address.
    Bridge,
    /// Forward it by address, with these changes.
    BridgeAs {
        /// Internal priority value in this switch; `None`: unchanged.
        priority: Option<u8>,
        /// Whether it becomes drop eligible.
        drop_eligible: bool,
    },
    /// Forward it out of this port, as a frame of a virtual link. VLANs are ignored.
    ToPort(usize),
    /// Forward it to a group of the forwarding table, as a frame of a virtual link.
    ToGroup(usize),
    /// Drop it.
    Refuse(Cause),
}

/// The ingress rule applied to every frame: filters, policing and virtual-link tables.
pub trait Ingress {
    /// Judges a frame. Called once for each frame, in the order they are handled; the frames of a port come in the
    /// order they were complete. `clock` is the switch's own.
    fn judge(&mut self, clock: &impl LocalClock, arrival: &Arrival) -> Verdict;

    /// The switch restarts: the state of the rule is reset.
    fn handle_restart(&mut self) {}
}

/// The empty rule: everything is forwarded by its address.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmitAll;

impl Ingress for AdmitAll {
    fn judge(&mut self, _clock: &impl LocalClock, _arrival: &Arrival) -> Verdict {
        Verdict::Bridge
    }
}

/// Configuration of a switch, without its ports.
#[derive(Clone, Copy, Debug)]
pub struct SwitchConfig {
    /// Time from the last bit in (cut-through: the last bit of the header) to the earliest first bit out.
    pub processing_delay: Span,
    /// Additional delay between ports of different line rates.
    pub mixed_rate_delay: Span,
    /// Store-and-forward or cut-through.
    pub mode: ForwardingMode,
    /// Capacity of all ports together.
    pub shared: Capacity,
}

/// An arriving frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Ingress port.
    pub port: usize,
    /// The frame.
    pub frame: Frame,
    /// Instant of its last bit.
    pub complete: RunTime,
}

/// An effect of a switch, for the driver to carry out or record. A frame may have an internal priority value: on the
/// wire it is as in [`Frame::leaving`].
///
/// The frame lies at one place in all of them: whoever takes one looks at it before anything else.
#[derive(Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Output {
    /// The first bit of the preamble leaves now. The driver owes [`Switch::handle_line_free`].
    Transmit {
        /// The frame.
        frame: Frame,
        /// Egress port.
        port: usize,
        /// Token to hand back with the end of the transmission.
        transmission: Transmission,
    },
    /// The transmission in progress is cut off now: what is on the wire of the frame reaches nobody whole. The driver
    /// owes [`Switch::handle_line_free`] with the end of the gap. The frame waits again, or is dropped next.
    Abort {
        /// The frame.
        frame: Frame,
        /// Egress port.
        port: usize,
        /// Token to hand back with the end of the transmission.
        transmission: Transmission,
    },
    /// The frame on the wire is sent in fragments, and one of them ends or begins. Of one that begins the driver owes
    /// [`Switch::handle_line_free`].
    Fragment {
        /// The frame.
        frame: Frame,
        /// Egress port.
        port: usize,
        /// Which edge of the fragment.
        edge: FragmentEdge,
    },
    /// A copy of a frame ended here.
    Dropped {
        /// The frame.
        frame: Frame,
        /// Egress port that it was for; the ingress port if it was dropped before.
        port: usize,
        /// The reason.
        cause: Cause,
    },
    /// What became of a copy, where [copies are followed](Switch::follow_copies).
    Follow {
        /// The frame.
        frame: Frame,
        /// Egress port of the copy; the ingress port for a frame that became several.
        port: usize,
        /// What became of it.
        life: Life,
    },
}

/// A frame that passes straight through a switch: unchanged, by one port and at once. The driver owes
/// [`Switch::handle_line_free`].
#[derive(Debug, PartialEq, Eq)]
pub struct Passing {
    /// Egress port.
    pub port: usize,
    /// Token to hand back with the end of the transmission.
    pub transmission: Transmission,
}

/// A frame or copy held until its instant.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// A frame handed in early.
    Arrival(Arrival),
    /// A copy that could not be cut through, with the egress port that queues it when it is complete.
    Copy { port: usize, frame: Frame },
}

impl Output {
    /// The frame concerned.
    #[inline]
    pub const fn frame(&self) -> &Frame {
        match self {
            Self::Transmit { frame, .. }
            | Self::Abort { frame, .. }
            | Self::Fragment { frame, .. }
            | Self::Dropped { frame, .. }
            | Self::Follow { frame, .. } => frame,
        }
    }

    #[inline(always)]
    fn of(port: usize, effect: Effect) -> Self {
        match effect {
            Effect::Transmit { frame, transmission } => Self::Transmit { port, frame, transmission },
            Effect::Abort { frame, transmission } => Self::Abort { port, frame, transmission },
            Effect::Fragment { frame, edge } => Self::Fragment { port, frame, edge },
            Effect::Drop { frame, cause } => Self::Dropped { port, frame, cause },
            Effect::Follow { frame, life } => Self::Follow { port, frame, life },
        }
    }
}

/// A switch.
#[derive(Debug)]
pub struct Switch<S, I, C> {
    ports: Vec<Port<S>>,
    /// Ports with waiting frames: the others have no deadline.
    waiting: PortSet,
    device: NodeShared<C>,
    forwarding: Forwarding,
    ingress: I,
    /// Replication and elimination of streams.
    streams: Option<Box<StreamTable>>,
    processing_delay: Span,
    mixed_rate_delay: Span,
    mode: ForwardingMode,
    lengths: FrameLengths,
    /// End of the last restart: frames that begin before it are not received.
    back_at: Option<RunTime>,
    /// Held frames, ordered by instant, equal instants by arrival.
    stages: VecDeque<(RunTime, Stage)>,
    /// Copies for idle ports, each with the instant from which all of it can be forwarded.
    contenders: Contenders<(Frame, RunTime)>,
    outputs: Fifo<Output>,
}

impl<S: TransmissionSelection, I: Ingress, C: LocalClock> Switch<S, I, C> {
    /// A switch with these ports, this forwarding table and this clock.
    ///
    /// Panics if the table is for another number of ports.
    pub fn new(
        config: SwitchConfig,
        ports: Vec<Port<S>>,
        forwarding: Forwarding,
        ingress: I,
        clock: C,
    ) -> Self {
        assert!(
            forwarding.ports() == ports.len(),
            "wg-core misuse: a switch needs a place in the table for each of its {} ports",
            ports.len()
        );
        Self {
            waiting: PortSet::none(ports.len()),
            ports,
            device: NodeShared::new(config.shared, clock),
            forwarding,
            ingress,
            streams: None,
            processing_delay: config.processing_delay,
            mixed_rate_delay: config.mixed_rate_delay,
            mode: config.mode,
            lengths: FrameLengths::STANDARD,
            back_at: None,
            stages: VecDeque::new(),
            contenders: Contenders::new(),
            outputs: Fifo::new(),
        }
    }

    /// Reports what becomes of every copy of a frame from now on, see [`Life`]; to be called before the first frame.
    pub const fn follow_copies(&mut self) {
        self.device.follows = true;
    }

    /// Sets the stream replication and elimination functions; to be called before the first frame. They need complete
    /// frames.
    ///
    /// Panics for a cut-through switch.
    pub fn set_streams(&mut self, streams: StreamTable) {
        assert!(
            self.mode == ForwardingMode::StoreAndForward,
            "wg-core misuse: copies of streams are made and removed of whole frames"
        );
        self.streams = (!streams.is_empty()).then(|| Box::new(streams));
    }

    /// Sets the accepted frame lengths, in place of the standard's.
    pub const fn set_lengths(&mut self, lengths: FrameLengths) {
        self.lengths = lengths;
    }

    /// The ingress rule.
    pub const fn ingress(&self) -> &I {
        &self.ingress
    }

    /// Stream replication and elimination functions of the switch.
    pub fn streams(&mut self) -> Option<&mut StreamTable> {
        self.streams.as_deref_mut()
    }

    /// The earliest instant to forward a frame whose header and last bit arrive at these instants: the best one for
    /// handing it in.
    pub fn ready_at(&self, header: RunTime, complete: RunTime) -> RunTime {
        match self.mode {
            ForwardingMode::StoreAndForward => complete + self.processing_delay,
            ForwardingMode::CutThrough => header + self.processing_delay,
        }
    }

    /// A frame arrives. `now` is the instant at which its header (cut-through) or all of it (store-and-forward) was
    /// received and processed, see [`ready_at`](Self::ready_at). A store-and-forward switch holds a frame that is
    /// handed in early until then; a frame handed in late is forwarded at `now`, after held ones that are due.
    ///
    /// With `more` other inputs of this instant may follow: an idle port then chooses among them at
    /// [`handle_deadline`](Self::handle_deadline).
    pub fn handle_frame(&mut self, now: RunTime, arrival: Arrival, more: bool) {
        let passing = self.handle_passing(now, &arrival, more);
        self.put(&arrival.frame, passing);
    }

    /// As [`handle_frame`](Self::handle_frame), for drivers of many frames: a frame that passes straight through, as
    /// most do, is returned instead of becoming an output. It precedes all outputs not taken yet.
    #[inline]
    pub fn handle_passing(&mut self, now: RunTime, arrival: &Arrival, more: bool) -> Option<Passing> {
        if self.contenders.is_overdue(now) {
            self.settle(now);
        }
        if self.back_at.is_some() && self.is_missed(arrival) {
            self.drop(arrival.port, arrival.frame, Cause::Down);
            return None;
        }
        if self.mode == ForwardingMode::StoreAndForward {
            let ready = arrival.complete + self.processing_delay;
            if ready > now {
                self.keep(ready, Stage::Arrival(*arrival));
                return None;
            }
        }
        self.release(now);
        self.forward(now, arrival, more)
    }

    /// Takes a frame that the switch itself sends, for one of its ports. With `more` other inputs of this instant may
    /// follow.
    pub fn handle_own(&mut self, now: RunTime, port: usize, frame: Frame, more: bool) {
        if self.contenders.is_overdue(now) {
            self.settle(now);
        }
        if self.is_down(now) {
            return;
        }
        self.release(now);
        let passing = self.offer(now, port, &frame, now, more);
        self.put(&frame, passing);
    }

    /// Does what is due at `now`: frames handed in early first, in the order of their instants, then every port whose
    /// line is free. Early calls do nothing; a late call acts as of `now`.
    pub fn handle_deadline(&mut self, now: RunTime) {
        self.release(now);
        if !self.contenders.is_empty() {
            self.settle(now);
        }
        for word in 0..self.ports.len().div_ceil(64) {
            let mut left = self.waiting.word(word);
            while left != 0 {
                let port = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                let (egress, outputs) = (&mut self.ports[port], &mut self.outputs);
                let effect = &mut |effect| outputs.push_back(Output::of(port, effect));
                egress.handle_deadline(now, &mut self.device, effect);
                self.waiting.set(port, !egress.is_at_rest(&self.device));
            }
        }
    }

    /// The line of `port` is free from `free_at` on: the answer to [`Output::Transmit`] and [`Output::Abort`].
    pub fn handle_line_free(&mut self, port: usize, transmission: Transmission, free_at: RunTime) {
        self.ports[port].handle_line_free(transmission, free_at);
    }

    /// The clock of the switch was set at `now`, or changed its frequency: deadlines are converted again.
    pub fn handle_clock_change(&mut self, now: RunTime) {
        for port in &mut self.ports {
            port.handle_clock_change(now, &self.device);
        }
    }

    /// The switch gains or loses synchronisation at `now`; frames are sent by schedule only while it is synchronised.
    pub fn handle_synchronised(&mut self, now: RunTime, is_synchronised: bool) {
        for port in &mut self.ports {
            port.handle_synchronised(now, &self.device, is_synchronised);
        }
    }

    /// The switch restarts at `now` and is up again at `back_at`. Held frames are dropped, frames on the wire are cut
    /// off, learnt addresses and the state of the ingress rule are reset; a frame whose first bit comes before
    /// `back_at` is not received.
    pub fn handle_restart(&mut self, now: RunTime, back_at: RunTime) {
        self.release(now);
        self.back_at = Some(back_at);
        let cause = Cause::Down;
        while let Some((_, stage)) = self.stages.pop_front() {
            let (port, frame) = match stage {
                Stage::Arrival(Arrival { port, frame, .. }) | Stage::Copy { port, frame } => (port, frame),
            };
            self.outputs.push_back(Output::Dropped { port, frame, cause });
        }
        for (port, (frame, _)) in self.contenders.take() {
            self.outputs.push_back(Output::Dropped { port, frame, cause });
        }
        for (port, egress) in self.ports.iter_mut().enumerate() {
            let effect = &mut |effect| self.outputs.push_back(Output::of(port, effect));
            egress.handle_restart(now, &mut self.device, effect);
            self.waiting.set(port, !egress.is_at_rest(&self.device));
        }
        self.forwarding.forget();
        self.ingress.handle_restart();
        if let Some(streams) = &mut self.streams {
            streams.handle_restart();
        }
    }

    /// Whether the switch is down at `now` after a restart.
    pub fn is_down(&self, now: RunTime) -> bool {
        self.back_at.is_some_and(|back_at| now < back_at)
    }

    /// The port with index `port`.
    pub fn port(&self, port: usize) -> &Port<S> {
        &self.ports[port]
    }

    /// The effects not taken yet, for drivers that take many at once.
    #[inline]
    pub const fn outputs(&mut self) -> &mut Fifo<Output> {
        &mut self.outputs
    }

    /// The next effect; `None` when all are taken.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`handle_deadline`](Self::handle_deadline) will have something to do.
    #[inline]
    pub fn next_deadline(&self) -> Deadline {
        let nothing_waits = self.device.buffer.is_idle() && !self.device.follows;
        if nothing_waits && self.stages.is_empty() && self.contenders.is_empty() {
            return Deadline::NEVER;
        }
        self.earliest_deadline()
    }

    /// The earliest deadline of held frames, contenders and ports with waiting frames.
    fn earliest_deadline(&self) -> Deadline {
        let stage = self.stages.front().map_or(Deadline::NEVER, |&(at, _)| Deadline::at(at));
        let stage = stage.min(self.contenders.deadline());
        if self.device.buffer.is_idle() && !self.device.follows {
            return stage;
        }
        self.waiting
            .iter()
            .map(|port| self.ports[port].next_deadline(&self.device))
            .fold(stage, Deadline::min)
    }

    /// Line rate of `port`.
    pub fn line(&self, port: usize) -> LineRate {
        self.ports[port].line()
    }

    /// Credit of a queue of `port` over time, up to `now`; `None`: the queue has no credit-based shaper.
    pub fn credit(&mut self, now: RunTime, port: usize, queue: usize) -> Option<&CreditCourse> {
        self.ports[port].credit(now, queue, &self.device)
    }

    /// Occupancy of the queues of `port`.
    pub fn fill(&self, port: usize) -> Fill {
        self.ports[port].fill()
    }

    /// Greatest occupancy of `port` so far, in bytes.
    pub fn peak_bytes(&self, port: usize) -> u64 {
        self.ports[port].peak_bytes()
    }

    /// Number of frames inside that have not reached a queue: they wait for their instant, or for the end of it.
    pub fn staged(&self) -> usize {
        self.stages.len() + self.contenders.len()
    }

    fn keep(&mut self, at: RunTime, stage: Stage) {
        let place = self.stages.partition_point(|(other, _)| *other <= at);
        self.stages.insert(place, (at, stage));
    }

    #[inline]
    fn release(&mut self, now: RunTime) {
        if self.stages.front().is_some_and(|(at, _)| *at <= now) {
            self.release_due(now);
        }
    }

    #[cold]
    fn release_due(&mut self, now: RunTime) {
        while let Some(&(at, stage)) = self.stages.front()
            && at <= now
        {
            self.stages.pop_front();
            match stage {
                Stage::Arrival(arrival) => {
                    let passing = self.forward(now, &arrival, true);
                    self.put(&arrival.frame, passing);
                }
                Stage::Copy { port, frame } => {
                    let passing = self.offer(now, port, &frame, now, true);
                    self.put(&frame, passing);
                }
            }
        }
    }

    /// Whether the switch was down when the first bit came.
    fn is_missed(&self, arrival: &Arrival) -> bool {
        let line = self.ports[arrival.port].line();
        self.is_down(arrival.complete - line.transmission(arrival.frame.length))
    }

    /// Forwards a frame; returns it if it passes straight through, before all outputs.
    #[inline(always)]
    fn forward(&mut self, now: RunTime, arrival: &Arrival, more: bool) -> Option<Passing> {
        let fails_check = arrival.frame.marks.has(Marks::FCS_ERROR);
        let damaged = fails_check || !self.lengths.have(&arrival.frame);
        if damaged && self.mode == ForwardingMode::StoreAndForward {
            let cause = if fails_check { Cause::FrameCheck } else { Cause::WrongLength };
            self.drop(arrival.port, arrival.frame, cause);
            return None;
        }
        let is_padded = arrival.frame.length < SMALLEST_FRAME;
        let padded;
        let arrival = if is_padded {
            padded = Arrival { frame: Frame { length: SMALLEST_FRAME, ..arrival.frame }, ..*arrival };
            &padded
        } else {
            arrival
        };
        let Arrival { port, ref frame, .. } = *arrival;
        let (route, critical) = match self.ingress.judge(&self.device.clock, arrival) {
            Verdict::Refuse(cause) => {
                self.drop(port, *frame, cause);
                return None;
            }
            Verdict::ToPort(egress) => (Route::Port(egress), true),
            Verdict::ToGroup(group) => (Route::Group(group), true),
            Verdict::Bridge if !self.forwarding.carries(port, frame) => {
                self.drop(port, *frame, Cause::ForeignVlan);
                return None;
            }
            Verdict::BridgeAs { priority, drop_eligible } => {
                self.bridge_as(now, arrival, (priority, drop_eligible), more);
                return None;
            }
            Verdict::Bridge => {
                if !damaged {
                    self.forwarding.learn(now, port, frame);
                }
                if self.streams.is_some() && self.handle_stream(now, arrival, more) {
                    return None;
                }
                (self.forwarding.route(now, frame), false)
            }
        };
        if self.device.follows {
            self.follow(route, arrival, critical);
        }
        match self.spread(now, route, arrival, critical, more) {
            Ok(passing) if !is_padded && self.outputs.is_empty() => passing,
            Ok(passing) => {
                self.put(frame, passing);
                None
            }
            Err(cause) => {
                self.drop(port, *frame, cause);
                None
            }
        }
    }

    /// Forwards a frame by its address, with an internal priority or as drop eligible. A separate function, because few
    /// frames are changed.
    #[cold]
    fn bridge_as(&mut self, now: RunTime, arrival: &Arrival, change: (Option<u8>, bool), more: bool) {
        let Arrival { port, frame, .. } = *arrival;
        if !self.forwarding.carries(port, &frame) {
            self.drop(port, frame, Cause::ForeignVlan);
            return;
        }
        let (priority, drop_eligible) = change;
        let eligible = if drop_eligible { Marks::DROP_ELIGIBLE } else { Marks::none() };
        let frame = Frame { marks: frame.marks.with(eligible), ..frame };
        let frame = priority.map_or(frame, |priority| frame.with_internal_priority(priority));
        let arrival = Arrival { frame, ..*arrival };
        if !frame.marks.has(Marks::FCS_ERROR) {
            self.forwarding.learn(now, port, &frame);
        }
        if self.streams.is_none() || !self.handle_stream(now, &arrival, more) {
            self.bridge(now, &arrival, more);
        }
    }

    /// Applies the stream function of a frame; false if it belongs to no stream.
    #[inline(never)]
    fn handle_stream(&mut self, now: RunTime, arrival: &Arrival, more: bool) -> bool {
        let Arrival { port, ref frame, complete } = *arrival;
        let Some(streams) = &mut self.streams else { return false };
        match streams.handle_frame(complete, frame) {
            Handled::Foreign => return false,
            Handled::Discard(cause) => self.drop(port, *frame, cause),
            Handled::Pass(frame) => self.bridge(now, &Arrival { frame, ..*arrival }, more),
            Handled::Branches(branches) => {
                self.follow_stream(arrival, branches.count());
                for at in 0..branches.count() {
                    let Some(streams) = &mut self.streams else { break };
                    match streams.relay(complete, branches, at, frame) {
                        Handled::Pass(frame) => self.bridge(now, &Arrival { frame, ..*arrival }, more),
                        Handled::Discard(cause) => self.drop(port, *frame, cause),
                        Handled::Foreign | Handled::Copies(_) | Handled::Branches(_) => {}
                    }
                }
            }
            Handled::Copies(copies) => {
                self.follow_stream(arrival, copies.count());
                for at in 0..copies.count() {
                    let Some(streams) = &self.streams else { break };
                    let frame = streams.copy(copies, at, frame);
                    self.bridge(now, &Arrival { frame, ..*arrival }, more);
                }
            }
        }
        true
    }

    /// Forwards a frame of a stream, or one that was changed, by its address.
    #[inline(never)]
    fn bridge(&mut self, now: RunTime, arrival: &Arrival, more: bool) {
        let route = self.forwarding.route(now, &arrival.frame);
        if self.device.follows {
            self.follow(route, arrival, false);
        }
        match self.spread(now, route, arrival, false, more) {
            Ok(passing) => self.put(&arrival.frame, passing),
            Err(cause) => self.drop(arrival.port, arrival.frame, cause),
        }
    }

    /// Sends a copy out of every port of the route; returns the frame if its only copy leaves at once.
    #[inline(always)]
    fn spread(
        &mut self,
        now: RunTime,
        route: Route,
        arrival: &Arrival,
        critical: bool,
        more: bool,
    ) -> Result<Option<Passing>, Cause> {
        let Arrival { port, ref frame, .. } = *arrival;
        if let Route::Port(egress) = route {
            let is_way = egress != port && (critical || self.forwarding.carries(egress, frame));
            return if is_way { Ok(self.send(now, egress, arrival, more)) } else { Err(Cause::NoEgress) };
        }
        let mut sent = false;
        for word in 0..self.ports.len().div_ceil(64) {
            let mut left = self.forwarding.members(route, frame).map_or(0, |set| set.word(word));
            while left != 0 {
                let egress = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                if egress != port && (critical || self.forwarding.carries(egress, frame)) {
                    sent = true;
                    let passing = self.send(now, egress, arrival, more);
                    self.put(frame, passing);
                }
            }
        }
        if sent { Ok(None) } else { Err(Cause::NoEgress) }
    }

    /// Reports the number of copies of a stream's frame, if more than one.
    fn follow_stream(&mut self, arrival: &Arrival, copies: usize) {
        if self.device.follows && copies > 1 {
            let Arrival { port, frame, .. } = *arrival;
            self.outputs.push_back(Output::Follow { port, frame, life: Life::Copied(copies as u32) });
        }
    }

    /// Reports the number of copies of a frame, if more than one.
    #[cold]
    fn follow(&mut self, route: Route, arrival: &Arrival, critical: bool) {
        let Arrival { port, frame, .. } = *arrival;
        let forwarding = &self.forwarding;
        let leaves = |egress: &usize| *egress != port && (critical || forwarding.carries(*egress, &frame));
        let copies = forwarding.members(route, &frame).map_or(0, |set| set.iter().filter(leaves).count());
        if copies > 1 {
            self.outputs.push_back(Output::Follow { port, frame, life: Life::Copied(copies as u32) });
        }
    }

    /// Sends a copy out of port `egress`; returns it if it leaves at once.
    #[inline]
    fn send(&mut self, now: RunTime, egress: usize, arrival: &Arrival, more: bool) -> Option<Passing> {
        let frame = &arrival.frame;
        let complete = arrival.complete + self.processing_delay;
        if self.mixed_rate_delay > Span::ZERO && !self.are_alike(egress, arrival.port) {
            let at = now.max(complete) + self.mixed_rate_delay;
            self.keep(at, Stage::Copy { port: egress, frame: *frame });
            return None;
        }
        if self.mode == ForwardingMode::StoreAndForward || complete <= now {
            return self.offer(now, egress, frame, now, more);
        }
        let alike = self.are_alike(egress, arrival.port);
        if alike && self.ports[egress].is_idle(now) {
            return self.offer(now, egress, frame, complete, more);
        }
        self.keep(complete, Stage::Copy { port: egress, frame: *frame });
        None
    }

    /// Whether the lines of two ports have one rate.
    fn are_alike(&self, one: usize, other: usize) -> bool {
        self.ports[one].line() == self.ports[other].line()
    }

    /// Hands a copy to its port, or holds it while other frames of this instant could still be more urgent. All of it
    /// can be forwarded from `complete` on. Returns it if it leaves at once.
    #[inline]
    fn offer(
        &mut self,
        now: RunTime,
        port: usize,
        frame: &Frame,
        complete: RunTime,
        more: bool,
    ) -> Option<Passing> {
        let alone = !more && self.contenders.is_empty();
        if !alone && self.ports[port].is_idle(now) && self.ports[port].urgency(frame, false).is_some() {
            self.contenders.push(now, port, (*frame, complete));
            return None;
        }
        self.enqueue(now, port, frame)
    }

    /// All inputs of an instant are in: idle ports choose among the arrivals. A copy that is not chosen and not
    /// complete is stored.
    #[cold]
    fn settle(&mut self, now: RunTime) {
        let ports = &self.ports;
        let copies =
            self.contenders.settle(|port, (frame, _)| ports[port].urgency(frame, false).unwrap_or(0));
        for (port, (frame, complete)) in copies {
            if complete <= now || self.ports[port].is_idle(now) {
                let passing = self.enqueue(now, port, &frame);
                self.put(&frame, passing);
            } else {
                self.keep(complete, Stage::Copy { port, frame });
            }
        }
    }

    /// Hands a frame to its port; returns it if it leaves at once.
    #[inline]
    fn enqueue(&mut self, now: RunTime, port: usize, frame: &Frame) -> Option<Passing> {
        let transmission = self.ports[port].begin_at_once(now, frame, &self.device);
        if transmission.is_none() {
            self.line_up(now, port, frame);
        }
        transmission.map(|transmission| Passing { port, transmission })
    }

    /// Turns a frame that passed straight through into an ordinary output.
    #[inline]
    fn put(&mut self, frame: &Frame, passing: Option<Passing>) {
        if let Some(Passing { port, transmission }) = passing {
            self.outputs.push_back(Output::Transmit { frame: *frame, port, transmission });
        }
    }

    /// Hands a frame to a port where it may have to wait.
    #[inline(never)]
    fn line_up(&mut self, now: RunTime, port: usize, frame: &Frame) {
        let effect = &mut |effect| self.outputs.push_back(Output::of(port, effect));
        let egress = &mut self.ports[port];
        egress.handle_frame(now, *frame, &mut self.device, effect);
        self.waiting.set(port, !egress.is_at_rest(&self.device));
    }

    #[cold]
    fn drop(&mut self, port: usize, frame: Frame, cause: Cause) {
        self.outputs.push_back(Output::Dropped { port, frame, cause });
    }
}

#[cfg(test)]
mod tests;
