//! The switch: from the ingress port of a frame to the egress queues.
//!
//! A frame passes the ingress rule, the forwarding table and an egress port. Store-and-forward takes it after its last
//! bit and the processing delay, cut-through after its header and the processing delay: it then leaves at once through
//! every port that is idle and as fast as the one it came by, and falls back to store-and-forward at every other,
//! because a port that is slower or busy would have to hold the frame anyway and a faster one would overtake it. The
//! switch looks at the ports once, at that instant; of the frames of one instant for the same idle port the most urgent
//! is cut through.
//!
//! Filters, policing and virtual links belong into [`Ingress`] ([`IngressRules`](crate::ingress::IngressRules)), gates
//! and time-triggered windows into the [selection](crate::selection) of the ports: the switch itself knows neither.
//!
//! Frames to the group addresses of IEEE Std 802.1Q-2022, table 8-1 (pause, spanning tree, LACP, 802.1X, LLDP, delays
//! between PTP neighbours) end at the switch, as at any bridge. Those of a protocol that the switch takes part in never
//! come here.
//!
//! A store-and-forward switch drops frames with a wrong check sequence and those shorter or longer than [it
//! accepts](FrameLengths). A cut-through switch has decided before the end of the frame, so it forwards the damage,
//! also out of ports where the frame had to wait: so do real ones, which mark it at most. Neither learns from it. A
//! forwarded frame shorter than the shortest leaves padded.

mod ingress;
mod output;
mod passage;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wg_frame::time::{RunTime, Span};

use crate::cause::Cause;
use crate::clock::LocalClock;
use crate::contention::Contenders;
use crate::deadline::Deadline;
use crate::fifo::Fifo;
use crate::forwarding::{Forwarding, PortSet};
use crate::frame::{Frame, FrameLengths};
use crate::frer::StreamTable;
use crate::line::LineRate;
use crate::port::{NodeShared, Port, Transmission};
use crate::queue::Fill;
use crate::selection::{CreditCourse, TransmissionSelection};
pub use ingress::{AdmitAll, Arrival, ForwardingMode, Ingress, SwitchConfig, Verdict};
pub use output::{Output, Passing};

/// A frame or copy held until its instant.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// A frame handed in early.
    Arrival(Arrival),
    /// A copy that could not be cut through, with the egress port that queues it when it is complete.
    Copy { port: usize, frame: Frame },
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
    /// Ports that another instance of this switch drives; `None`: all are its own.
    elsewhere: Option<Box<PortSet>>,
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
            elsewhere: None,
            outputs: Fifo::new(),
        }
    }

    /// Leaves `ports` to another instance of this switch: copies for them become [`Output::Elsewhere`]; to be called before
    /// the first frame. The instances together behave as one if the ports share no buffer.
    pub fn leave_ports(&mut self, ports: PortSet) {
        self.elsewhere = Some(Box::new(ports));
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

    /// Whether the switch has stream replication or elimination functions.
    pub const fn has_streams(&self) -> bool {
        self.streams.is_some()
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

    /// Takes a copy that another instance of this switch has let in by the port of `arrival`, as [`Output::Elsewhere`]
    /// says, for the port `egress` of this one. With `more` other inputs of this instant may follow.
    pub fn handle_copy(&mut self, now: RunTime, egress: usize, arrival: &Arrival, more: bool) {
        if self.contenders.is_overdue(now) {
            self.settle(now);
        }
        self.release(now);
        let passing = self.send(now, egress, arrival, more);
        self.put(&arrival.frame, passing);
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

    /// Time of the next action of [`handle_deadline`](Self::handle_deadline).
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
}

#[cfg(test)]
mod tests;
