//! The switch: from the port a frame came in by to the queues it leaves by.
//!
//! A frame passes the ingress rule, the forwarding table and an egress port. Store-and-forward takes it when its
//! last bit and the processing delay are through. Cut-through takes it when its header and the processing delay
//! are: it then leaves at once through every port that is idle and as fast as the one it came by, and falls back to
//! store-and-forward at every other, because a port that is slower or busy would have to hold the frame anyway and a
//! faster one would overtake it.
//!
//! Filters, policing and virtual links belong into [`Ingress`], gates and time-triggered windows into
//! [`Gate`]: the switch itself knows neither.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wg_frame::time::{RunTime, Span};

use crate::deadline::Deadline;
use crate::forwarding::{Forwarding, Route};
use crate::frame::Frame;
use crate::line::LineRate;
use crate::port::{EgressPort, Gate, PortConfig, Transmission};
use crate::queue::{Fill, Full, Limit, SharedBuffer};

/// When a frame is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// When all of it is there.
    StoreAndForward,
    /// When its header is there, if the egress port is idle and as fast as the ingress port.
    CutThrough,
}

/// What the ingress rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Forward it by address.
    Bridge,
    /// Forward it to a group of the forwarding table, as a virtual link's.
    ToGroup(usize),
    /// Drop it; the number is the rule's own reason.
    Refuse(u8),
}

/// What is asked of every frame that comes in: the place of filters, policing and virtual-link tables.
pub trait Ingress {
    /// Judges `frame`, which came in by `port`. Called once for each frame, in the order they are handled.
    fn judge(&mut self, now: RunTime, port: usize, frame: &Frame) -> Verdict;
}

/// No rule: everything is forwarded by its address.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmitAll;

impl Ingress for AdmitAll {
    fn judge(&mut self, _now: RunTime, _port: usize, _frame: &Frame) -> Verdict {
        Verdict::Bridge
    }
}

/// What a switch is built from.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Its ports, by index.
    pub ports: Vec<PortConfig>,
    /// From the last bit in (cut-through: the last bit of the header) to the earliest first bit out.
    pub processing_delay: Span,
    /// Store-and-forward or cut-through.
    pub mode: Mode,
    /// What all ports together can hold.
    pub shared: Limit,
}

/// A frame coming in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// By this port.
    pub port: usize,
    /// The frame.
    pub frame: Frame,
    /// When its last bit is in.
    pub complete: RunTime,
}

/// Why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// No room.
    Full(Full),
    /// The port it came in by does not carry its VLAN.
    ForeignVlan,
    /// There is no port to send it out of but the one it came by.
    NoEgress,
    /// The ingress rule refused it, with the rule's own reason.
    Refused(u8),
}

/// What a switch wants done or noticed.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// The first bit of the preamble leaves now. The driver owes [`Switch::handle_line_free`].
    Transmit {
        /// By this port.
        port: usize,
        /// The frame.
        frame: Frame,
        /// To be handed back with the end.
        transmission: Transmission,
    },
    /// A copy of a frame ended here.
    Dropped {
        /// Egress port it was for; the ingress port when it got no further.
        port: usize,
        /// The frame.
        frame: Frame,
        /// Why.
        reason: Drop,
    },
}

/// Work that waits for its instant.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// A frame handed in early.
    Arrival(Arrival),
    /// A copy that could not be cut through: the egress port that queues it when it is complete.
    Copy { port: usize, frame: Frame },
}

/// A switch.
#[derive(Debug)]
pub struct Switch<G, I> {
    ports: Vec<EgressPort<G>>,
    shared: SharedBuffer,
    forwarding: Forwarding,
    ingress: I,
    processing_delay: Span,
    mode: Mode,
    /// Ordered by instant, equal instants by arrival.
    stages: VecDeque<(RunTime, Stage)>,
    outputs: VecDeque<Output>,
}

impl<G: Gate, I: Ingress> Switch<G, I> {
    /// A switch with this forwarding table and one gate for each port.
    ///
    /// Panics when gates, table and configuration differ in the number of ports.
    pub fn new(config: SwitchConfig, forwarding: Forwarding, gates: Vec<G>, ingress: I) -> Self {
        assert!(
            gates.len() == config.ports.len() && forwarding.ports() == config.ports.len(),
            "wg-core misuse: a switch needs a gate and a place in the table for each of its {} ports",
            config.ports.len()
        );
        let ports = config.ports.into_iter().zip(gates).map(|(port, gate)| EgressPort::new(port, gate));
        Self {
            ports: ports.collect(),
            shared: SharedBuffer::new(config.shared),
            forwarding,
            ingress,
            processing_delay: config.processing_delay,
            mode: config.mode,
            stages: VecDeque::new(),
            outputs: VecDeque::new(),
        }
    }

    /// When the switch can forward a frame whose header and last bit are in at these instants: the best instant to
    /// hand it in.
    pub fn ready_at(&self, header: RunTime, complete: RunTime) -> RunTime {
        match self.mode {
            Mode::StoreAndForward => complete + self.processing_delay,
            Mode::CutThrough => header + self.processing_delay,
        }
    }

    /// A frame. `now` is the instant its header (cut-through) or all of it (store-and-forward) was in and processed, see
    /// [`ready_at`](Self::ready_at). A store-and-forward switch holds a frame that is handed in early until then; a
    /// frame handed in late is forwarded at `now`, behind those that were held and are due.
    pub fn handle_frame(&mut self, now: RunTime, arrival: Arrival) {
        if self.mode == Mode::StoreAndForward {
            let ready = arrival.complete + self.processing_delay;
            if ready > now {
                self.keep(ready, Stage::Arrival(arrival));
                return;
            }
        }
        self.release(now);
        self.forward(now, arrival);
    }

    /// Does what is due at `now`: frames handed in early first, in the order of their instants, then every port whose
    /// line is free. Early calls do nothing; a late call acts as of `now`.
    pub fn handle_deadline(&mut self, now: RunTime) {
        self.release(now);
        for port in 0..self.ports.len() {
            if let Some((frame, transmission)) = self.ports[port].handle_deadline(now, &mut self.shared) {
                self.outputs.push_back(Output::Transmit { port, frame, transmission });
            }
        }
    }

    /// The line of `port` is free from `free_at` on: the answer to [`Output::Transmit`].
    pub fn handle_line_free(&mut self, port: usize, transmission: Transmission, free_at: RunTime) {
        self.ports[port].handle_line_free(transmission, free_at);
    }

    /// The next effect; `None` when all were taken.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`handle_deadline`](Self::handle_deadline) will have something to do.
    #[inline]
    pub fn next_deadline(&self) -> Deadline {
        let stage = self.stages.front().map_or(Deadline::Never, |&(at, _)| Deadline::At(at));
        if self.shared.fill().frames == 0 {
            return stage;
        }
        self.ports.iter().map(EgressPort::next_deadline).min().map_or(stage, |port| port.min(stage))
    }

    /// The line of `port`.
    pub fn line(&self, port: usize) -> LineRate {
        self.ports[port].line()
    }

    /// What waits at `port`.
    pub fn fill(&self, port: usize) -> Fill {
        self.ports[port].fill()
    }

    /// Most bytes that ever waited at `port`.
    pub fn peak_bytes(&self, port: usize) -> u64 {
        self.ports[port].peak_bytes()
    }

    /// Frames inside that wait for their instant before they reach a queue.
    pub fn staged(&self) -> usize {
        self.stages.len()
    }

    fn keep(&mut self, at: RunTime, stage: Stage) {
        let place = self.stages.partition_point(|(other, _)| *other <= at);
        self.stages.insert(place, (at, stage));
    }

    #[inline]
    fn release(&mut self, now: RunTime) {
        while let Some(&(at, stage)) = self.stages.front()
            && at <= now
        {
            self.stages.pop_front();
            match stage {
                Stage::Arrival(arrival) => self.forward(now, arrival),
                Stage::Copy { port, frame } => self.enqueue(now, port, frame),
            }
        }
    }

    fn forward(&mut self, now: RunTime, arrival: Arrival) {
        let Arrival { port, frame, .. } = arrival;
        if !self.forwarding.carries(port, &frame) {
            self.drop(port, frame, Drop::ForeignVlan);
            return;
        }
        let route = match self.ingress.judge(now, port, &frame) {
            Verdict::Refuse(reason) => {
                self.drop(port, frame, Drop::Refused(reason));
                return;
            }
            Verdict::ToGroup(group) => Route::Group(group),
            Verdict::Bridge => {
                self.forwarding.learn(now, port, &frame);
                self.forwarding.route(now, &frame)
            }
        };
        let mut sent = false;
        if let Route::Port(egress) = route {
            sent = egress != port && self.forwarding.carries(egress, &frame);
            if sent {
                self.send(now, egress, arrival);
            }
        } else {
            for egress in 0..self.ports.len() {
                let member = self.forwarding.members(route, &frame).is_some_and(|set| set.has(egress));
                if member && egress != port && self.forwarding.carries(egress, &frame) {
                    sent = true;
                    self.send(now, egress, arrival);
                }
            }
        }
        if !sent {
            self.drop(port, frame, Drop::NoEgress);
        }
    }

    fn send(&mut self, now: RunTime, egress: usize, arrival: Arrival) {
        let complete = arrival.complete + self.processing_delay;
        if self.mode == Mode::StoreAndForward || complete <= now {
            self.enqueue(now, egress, arrival.frame);
            return;
        }
        let alike = self.ports[egress].line() == self.ports[arrival.port].line();
        if alike && self.ports[egress].is_idle(now) {
            self.enqueue(now, egress, arrival.frame);
        } else {
            self.keep(complete, Stage::Copy { port: egress, frame: arrival.frame });
        }
    }

    #[inline]
    fn enqueue(&mut self, now: RunTime, port: usize, frame: Frame) {
        match self.ports[port].handle_frame(now, frame, &mut self.shared) {
            Ok(Some(transmission)) => {
                self.outputs.push_back(Output::Transmit { port, frame, transmission });
            }
            Ok(None) => {}
            Err(full) => self.drop(port, frame, Drop::Full(full)),
        }
    }

    fn drop(&mut self, port: usize, frame: Frame, reason: Drop) {
        self.outputs.push_back(Output::Dropped { port, frame, reason });
    }
}
