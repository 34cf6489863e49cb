//! The end system as a host: the path between an application and the wire.
//!
//! ```text
//! application ── transmit lane ──▶ virtual link layer ──▶ egress queues ── driver ──▶ wire
//! application ◀── receive lane ◀── ring ◀── interrupt ◀── virtual link layer ◀────── wire
//! ```
//!
//! One or two ports, one for each redundant network. The [virtual link layer](crate::virtual_link_layer) is there where
//! virtual links or time-triggered flows begin or end; like the hardware it stands for it works at the wire, before the
//! ring. A frame whose check sequence is wrong gets no further than the port.
//!
//! Each lane is a thread that does one thing at a time. Handing a message down costs a fixed time and a time per
//! byte; then the frame joins the egress queue, and the driver takes it when the line is free. A received
//! frame lies in the ring until the receive lane has handed it to the application; the interrupt that wakes the
//! lane comes for each frame, for several, or by polling. A lane that sleeps must first be woken, which takes as
//! long as the scheduler pleases: the core owns no random source, so that time comes with the input.
//!
//! Messages that leave the lane join the egress queues in the order they were handed down; those that their virtual
//! link or schedule held back join at [`Host::handle_deadline`], behind all inputs of the instant. Only then an idle
//! port chooses, unless the driver says that nothing else comes.
//!
//! Where a processor reads the card itself, where classes have receive buffers of their own, or where interrupts have a
//! least spacing, a reader stands between the port and the receive lane, or in its place: see `reader`.
//!
//! A frame to the host itself ([`Output::Loopback`]) goes from the transmit lane to the receive lane: down one protocol
//! stack and up again, without queue, interface, interrupt and ring.
//!
//! Two lanes were chosen over one processor because a servicing thread that spins on both directions is
//! closer to that than to strict alternation, and because latency then does not depend on a guess about scheduling.

mod config;
mod moderation;
mod output;
mod reader;
mod transmit;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use wg_frame::time::{RunTime, Span};

use crate::cause::Cause;
use crate::clock::LocalClock;
use crate::contention::Contenders;
use crate::deadline::Deadline;
use crate::fifo::{Fifo, RareFifo};
use crate::frame::{Frame, Marks, NetworkId, TrafficClass};
use crate::frer::{Handled, StreamTable};
use crate::line::LineRate;
use crate::port::{NodeShared, Port, Transmission};
use crate::queue::{Capacity, Fill, Full};
use crate::selection::{CreditCourse, TransmissionSelection};
use crate::virtual_link_layer::{Networks, VirtualLinkLayer};
pub use config::{Cost, HostConfig, Interrupts, ReceiveBuffer, StackCosts};
pub use moderation::ADAPTIVE_SPACINGS;
use output::carry_out;
pub use output::{Delivery, Handed, Output};
use reader::{Read, Reader};

/// A frame in the interface or in the ring that nobody has noticed.
#[derive(Clone, Copy, Debug)]
struct Unnoticed {
    port: u8,
    frame: Frame,
    wake_up: Span,
}

/// A frame for an idle port, while other frames of its instant may still arrive.
#[derive(Debug)]
struct Contender {
    frame: Frame,
    /// Instant from which it could have been sent.
    due: RunTime,
    /// Whether it is sent outside any window of a schedule.
    unscheduled: bool,
}

/// A host. Laid out by cache lines, because in a network of a thousand hosts none is in a near cache when its turn
/// comes: first the fields read at every turn, then those that only few hosts use, behind pointers to save space;
/// configuration common to all hosts of a model is shared.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Host<S, C> {
    // First line: configuration and what is due.
    config: Arc<HostConfig>,
    layer: Option<Box<VirtualLinkLayer>>,
    /// Replication and elimination of streams: like the virtual link layer, at the wire.
    streams: Option<Box<StreamTable>>,
    /// Reads frames one after another, in place of ring and receive lane.
    reader: Option<Box<Reader>>,
    /// Frames on their way through the interface, each with the instant of its end; ascending.
    arriving: RareFifo<(RunTime, Unnoticed)>,
    /// Frames in the ring, not yet noticed by the driver.
    unnoticed: RareFifo<Unnoticed>,
    contenders: Contenders<Contender>,
    interrupt_at: Deadline,
    // Second line: the ports, which lie elsewhere.
    ports: Box<[Port<S>]>,
    receive_free: RunTime,
    /// Instants at which noticed frames leave the ring; ascending.
    leaving: Fifo<RunTime>,
    transmit_free: RunTime,
    // Third line: what the ports share.
    device: NodeShared<C>,
    /// Network of each port; with a single port the first entry.
    networks: [NetworkId; 2],
    // Then the contents of the lanes.
    outputs: Fifo<Output>,
    /// Instants at which the lane ends messages that the virtual link layer has already, because it holds them longer.
    ahead: Fifo<RunTime>,
    /// Messages handed down but not yet queued, with their instants; in order, because the lane is one thread.
    handed: Fifo<(RunTime, Frame)>,
}

impl<S: TransmissionSelection, C: LocalClock> Host<S, C> {
    /// An idle host with a port for each network it is on.
    ///
    /// Panics unless it has one port, or two on different networks.
    pub fn new(
        config: impl Into<Arc<HostConfig>>,
        ports: Vec<(NetworkId, Port<S>)>,
        mut layer: Option<VirtualLinkLayer>,
        clock: C,
    ) -> Self {
        let fine = ports.len() == 1 || ports.len() == 2 && ports[0].0 != ports[1].0;
        assert!(fine, "wg-core misuse: a host has one port, or one on network A and one on network B");
        let beginning = RunTime::from_picos(i64::MIN);
        let config = config.into();
        let networks = [ports[0].0, ports[ports.len() - 1].0];
        if let (Some(layer), [_]) = (&mut layer, &ports[..]) {
            layer.expect_one_network();
        }
        Self {
            reader: Reader::of(&config).map(Box::new),
            config,
            layer: layer.map(Box::new),
            streams: None,
            arriving: RareFifo::new(),
            unnoticed: RareFifo::new(),
            contenders: Contenders::new(),
            interrupt_at: Deadline::NEVER,
            ports: ports.into_iter().map(|(_, port)| port).collect(),
            receive_free: beginning,
            leaving: Fifo::new(),
            transmit_free: beginning,
            device: NodeShared::new(Capacity { bytes: u64::MAX, frames: u32::MAX }, clock),
            networks,
            outputs: Fifo::new(),
            ahead: Fifo::new(),
            handed: Fifo::new(),
        }
    }

    /// Reports what becomes of every copy of a frame from now on, see [`Life`]; to be called before the first frame.
    pub const fn follow_copies(&mut self) {
        self.device.follows = true;
    }

    /// Sets the stream replication and elimination functions; to be called before the first frame.
    pub fn set_streams(&mut self, streams: StreamTable) {
        self.streams = (!streams.is_empty()).then(|| Box::new(streams));
    }

    /// Stream replication and elimination functions of the host.
    pub fn streams(&mut self) -> Option<&mut StreamTable> {
        self.streams.as_deref_mut()
    }

    /// The application sends `frame`. The call is made at once if the transmit lane is at work, after `wake_up` if the
    /// lane sleeps, and after the messages already in the lane. With `more` other inputs of this instant may follow.
    ///
    /// # Errors
    /// [`Full`]: the transmit lane holds as many messages as it may; the frame is not taken.
    pub fn handle_send(
        &mut self,
        now: RunTime,
        frame: Frame,
        wake_up: Span,
        more: bool,
    ) -> Result<Handed, Full> {
        let application = self.call_at(now, wake_up)?;
        let queued = application + self.config.transmit_of(&frame);
        self.transmit_free = queued;
        if queued <= now && self.handed.is_empty() {
            self.submit(now, frame, more);
        } else if let Err(frame) = self.hand_ahead(queued, frame) {
            self.handed.push_back((queued, frame));
        }
        Ok(Handed { application, queued })
    }

    /// Instant of the application's call for a message sent at `now`: see [`handle_send`](Self::handle_send).
    ///
    /// # Errors
    /// [`Full`]: the transmit lane holds as many messages as it may.
    #[inline]
    pub fn call_at(&mut self, now: RunTime, wake_up: Span) -> Result<RunTime, Full> {
        // A message that leaves at `now` counts until all inputs of the instant are in.
        while self.ahead.front().is_some_and(|through| *through < now) {
            self.ahead.pop_front();
        }
        if self.handed.len() + self.ahead.len() >= self.config.backlog as usize {
            return Err(Full::Queue);
        }
        Ok(if self.transmit_free > now { self.transmit_free } else { now + wake_up })
    }

    /// A frame that bypasses the application, from a generator that costs the host nothing or from a babbling end
    /// system: it enters the queues past every regulator and schedule. A frame of a virtual link or schedule that
    /// begins here is numbered and takes the path of its flow. With `more` other inputs of this instant may follow.
    pub fn handle_generated(&mut self, now: RunTime, frame: Frame, more: bool) {
        let numbered = self.layer.as_mut().and_then(|layer| layer.number(frame));
        match numbered {
            None if self.streams.is_some() => self.send_stream(now, frame, more),
            None => self.send_on(now, &frame, Networks::of(&frame), now, more),
            Some((frame, networks)) => {
                let unscheduled = frame.class == TrafficClass::TimeTriggered;
                self.copies(&frame, networks, |host, port, frame| {
                    host.join(now, port, Contender { frame, due: now, unscheduled }, more);
                });
            }
        }
    }

    /// The last bit of `frame` came in by `port` at `now`; the receive lane, if it sleeps, takes `wake_up` to wake.
    #[expect(clippy::cast_possible_truncation, reason = "an end system has at most two ports")]
    pub fn handle_frame(&mut self, now: RunTime, port: usize, mut frame: Frame, wake_up: Span) {
        if frame.marks.has(Marks::FCS_ERROR) {
            self.outputs.push_back(Output::lost(port, frame, Cause::FrameCheck));
            return;
        }
        if let Some(streams) = &mut self.streams {
            match streams.handle_frame(now, &frame) {
                Handled::Pass(passed) => frame = passed,
                Handled::Discard(cause) => {
                    self.outputs.push_back(Output::lost(port, frame, cause));
                    return;
                }
                // It relays nothing.
                Handled::Foreign | Handled::Copies(_) | Handled::Branches(_) => {}
            }
        }
        if let Some(layer) = &mut self.layer {
            let network = self.networks[port];
            if let Err(cause) = layer.handle_frame(now, &self.device.clock, network, &frame) {
                self.outputs.push_back(Output::lost(port, frame, cause));
                return;
            }
        }
        let delay = self.config.interface_receive_delay;
        if delay > Span::ZERO {
            self.arriving.push_back((now + delay, Unnoticed { port: port as u8, frame, wake_up }));
        } else {
            self.take_in(now, port, frame, wake_up);
        }
    }

    /// As [`handle_frame`](Self::handle_frame), for drivers of many frames: a frame that the application is sure to get,
    /// as most are, is returned instead of becoming an output. Then no deadline changes, and there are no outputs.
    #[inline]
    pub fn handle_delivered(
        &mut self,
        now: RunTime,
        port: usize,
        frame: &Frame,
        wake_up: Span,
    ) -> Option<Delivery> {
        let is_plain = matches!(self.config.interrupts, Interrupts::EachFrame)
            && self.config.interface_receive_delay == Span::ZERO
            && self.reader.is_none()
            && self.streams.is_none()
            && self.outputs.is_empty()
            && !frame.marks.has(Marks::FCS_ERROR);
        if !is_plain {
            self.handle_frame(now, port, *frame, wake_up);
            return None;
        }
        let taken = match &mut self.layer {
            Some(layer) => layer.handle_frame(now, &self.device.clock, self.networks[port], frame),
            None => Ok(()),
        };
        let room = if self.has_room(now) { Ok(()) } else { Err(Cause::Overrun) };
        match taken.and(room) {
            Ok(()) => Some(self.hand_up(now, frame, wake_up)),
            Err(cause) => {
                self.outputs.push_back(Output::lost(port, *frame, cause));
                None
            }
        }
    }

    /// Takes in the frames whose passage through the interface ends by `now`.
    #[cold]
    fn arrive(&mut self, now: RunTime) {
        while let Some(&(at, Unnoticed { port, frame, wake_up })) = self.arriving.front()
            && at <= now
        {
            self.arriving.pop_front();
            self.take_in(now, port.into(), frame, wake_up);
        }
    }

    /// Takes in a frame whose passage through the interface has ended.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "an end system has at most two ports")]
    fn take_in(&mut self, now: RunTime, port: usize, frame: Frame, wake_up: Span) {
        if let Some(reader) = &mut self.reader {
            if let Err(cause) = reader.handle_frame(now, port as u8, frame, wake_up) {
                self.outputs.push_back(Output::lost(port, frame, cause));
            }
            return;
        }
        if !self.has_room(now) {
            self.outputs.push_back(Output::lost(port, frame, Cause::Overrun));
            return;
        }
        match self.config.interrupts {
            // A reader handles the other two.
            Interrupts::EachFrame | Interrupts::Spaced { .. } | Interrupts::Adaptive => {
                self.notice(now, port, frame, wake_up);
            }
            Interrupts::Coalesced { frames, wait } => {
                self.unnoticed.push_back(Unnoticed { port: port as u8, frame, wake_up });
                if self.unnoticed.len() >= frames as usize {
                    self.interrupt(now);
                } else if self.unnoticed.len() == 1 {
                    self.interrupt_at = Deadline::at(now + wait);
                }
            }
            Interrupts::Polled { period } => {
                self.unnoticed.push_back(Unnoticed { port: port as u8, frame, wake_up });
                if self.unnoticed.len() == 1 {
                    let into = now.as_picos().rem_euclid(period.as_picos());
                    let rest = if into == 0 { 0 } else { period.as_picos() - into };
                    self.interrupt_at = Deadline::at(now + Span::from_picos(rest));
                }
            }
        }
    }

    /// A loopback frame goes up again at `now`: the answer to [`Output::Loopback`]. The receive lane, if it sleeps,
    /// takes `wake_up` to wake. Interrupt and ring are not involved.
    pub fn handle_loopback(&mut self, now: RunTime, frame: Frame, wake_up: Span) {
        let lane = self.reader.as_mut().map_or(&mut self.receive_free, |reader| reader.lane_free());
        let begun = if *lane > now { *lane } else { now + wake_up };
        let application = begun + self.config.receive_of(&frame);
        *lane = application;
        self.outputs.push_back(Output::Deliver { port: 0, frame, driver: now, application });
    }

    /// Does what is due at `now`: frames from the interface join the ring, messages join the queue or the virtual link
    /// layer, which releases what is due, a free line takes the next frame, a due interrupt looks at the ring. Early
    /// calls do nothing; a late call acts as of `now`.
    pub fn handle_deadline(&mut self, now: RunTime) {
        if self.arriving.front().is_some() {
            self.arrive(now);
        }
        while let Some(&(at, frame)) = self.handed.front()
            && at <= now
        {
            self.handed.pop_front();
            self.submit(now, frame, false);
        }
        while self.ahead.front().is_some_and(|through| *through <= now) {
            self.ahead.pop_front();
        }
        self.depart(now);
        if !self.contenders.is_empty() {
            self.settle(now);
        }
        if !self.is_at_rest() {
            for (port, egress) in self.ports.iter_mut().enumerate() {
                let (outputs, layer) = (&mut self.outputs, &mut self.layer);
                let effect = &mut |effect| carry_out(outputs, layer, now, port, effect);
                egress.handle_deadline(now, &mut self.device, effect);
            }
        }
        if self.interrupt_at.is_due(now) {
            self.interrupt(now);
        }
        if let Some(reader) = &mut self.reader {
            let outputs = &mut self.outputs;
            reader.handle_deadline(now, |Read { port, frame, driver, application }| {
                outputs.push_back(Output::Deliver { port: port.into(), frame, driver, application });
            });
        }
    }

    /// The line of `port` is free from `free_at` on: the answer to [`Output::Transmit`] and [`Output::Abort`].
    pub fn handle_line_free(&mut self, port: usize, transmission: Transmission, free_at: RunTime) {
        self.ports[port].handle_line_free(transmission, free_at);
    }

    /// The clock of the host was set at `now`, or changed its frequency: deadlines and windows are converted again.
    pub fn handle_clock_change(&mut self, now: RunTime) {
        if let Some(layer) = &mut self.layer {
            layer.handle_clock_change(now, &self.device.clock);
        }
        for port in &mut self.ports {
            port.handle_clock_change(now, &self.device);
        }
    }

    /// The host gains or loses synchronisation at `now`. Messages are sent by schedule only while it is synchronised;
    /// those that wait for their instants when it is lost are dropped.
    pub fn handle_synchronised(&mut self, now: RunTime, is_synchronised: bool) {
        if let Some(layer) = &mut self.layer {
            let outputs = &mut self.outputs;
            layer.handle_synchronised(now, &self.device.clock, is_synchronised, |frame| {
                outputs.push_back(Output::lost(0, frame, Cause::MissedWindow));
            });
        }
        for port in &mut self.ports {
            port.handle_synchronised(now, &self.device, is_synchronised);
        }
    }

    /// The host restarts at `now`: waiting frames are dropped, the frame on the wire is cut off, numbers begin anew.
    /// Deliveries already made remain.
    pub fn handle_restart(&mut self, now: RunTime) {
        let Self {
            ports,
            device,
            layer,
            streams,
            handed,
            arriving,
            unnoticed,
            leaving,
            reader,
            contenders,
            outputs,
            ..
        } = self;
        let down = Cause::Down;
        for (port, Contender { frame, .. }) in contenders.take() {
            outputs.push_back(Output::lost(port, frame, down));
        }
        for (_, frame) in handed.drain() {
            outputs.push_back(Output::lost_before_ports(frame, down));
        }
        let arriving = arriving.drain().map(|(_, arriving)| arriving);
        for Unnoticed { port, frame, .. } in arriving.chain(unnoticed.drain()) {
            outputs.push_back(Output::lost(port.into(), frame, down));
        }
        self.ahead.clear();
        if let Some(streams) = streams {
            streams.handle_restart();
        }
        if let Some(layer) = layer {
            layer.handle_restart(now, &device.clock, |frame| {
                outputs.push_back(Output::lost_before_ports(frame, down));
            });
        }
        for (port, egress) in ports.iter_mut().enumerate() {
            let effect = &mut |effect| outputs.push_back(Output::of(port, effect));
            egress.handle_restart(now, device, effect);
        }
        if let Some(reader) = reader {
            reader.handle_restart(now, |waiting| {
                outputs.push_back(Output::lost(waiting.port.into(), waiting.frame, down));
            });
        }
        leaving.clear();
        (self.transmit_free, self.receive_free, self.interrupt_at) = (now, now, Deadline::NEVER);
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
        let handed = self.handed.front().map_or(Deadline::NEVER, |&(at, _)| Deadline::at(at));
        let due = self.layer.as_ref().map_or(Deadline::NEVER, |layer| layer.next_deadline());
        let read = self.reader.as_ref().map_or(Deadline::NEVER, |reader| reader.next_deadline());
        let arriving = self.arriving.front().map_or(Deadline::NEVER, |&(at, _)| Deadline::at(at));
        let own =
            handed.min(arriving).min(self.interrupt_at).min(due).min(self.contenders.deadline()).min(read);
        if self.is_at_rest() {
            return own;
        }
        self.ports.iter().fold(own, |earliest, port| earliest.min(port.next_deadline(&self.device)))
    }

    /// Whether its ports have nothing to do without an input.
    #[inline]
    fn is_at_rest(&self) -> bool {
        self.device.buffer.is_idle() && !self.device.follows
    }

    /// The virtual link layer; `None`: no virtual link or time-triggered flow begins or ends here.
    pub fn virtual_link_layer(&self) -> Option<&VirtualLinkLayer> {
        self.layer.as_deref()
    }

    /// Network of `port`.
    pub fn network(&self, port: usize) -> NetworkId {
        self.networks[port]
    }

    /// Line rate of `port`.
    pub fn line(&self, port: usize) -> LineRate {
        self.ports[port].line()
    }

    /// The port with index `port`.
    pub fn port(&self, port: usize) -> &Port<S> {
        &self.ports[port]
    }

    /// Credit of a queue of `port` over time, up to `now`; `None`: the queue has no credit-based shaper.
    pub fn credit(&mut self, now: RunTime, port: usize, queue: usize) -> Option<&CreditCourse> {
        self.ports[port].credit(now, queue, &self.device)
    }

    /// Occupancy of the egress queues of `port`.
    pub fn fill(&self, port: usize) -> Fill {
        self.ports[port].fill()
    }

    /// Number of messages in the transmit lane, and of frames in the interface and the ring that the driver has not
    /// noticed.
    pub fn in_hand(&self) -> (usize, usize) {
        let unread = self.reader.as_ref().map_or(0, |reader| reader.waiting());
        (self.handed.len(), self.arriving.len() + self.unnoticed.len() + unread)
    }

    /// Whether the ring has room for a frame.
    #[inline]
    fn has_room(&mut self, now: RunTime) -> bool {
        while self.leaving.front().is_some_and(|at| *at <= now) {
            self.leaving.pop_front();
        }
        self.leaving.len() + self.unnoticed.len() < self.config.ring as usize
    }

    fn interrupt(&mut self, now: RunTime) {
        self.interrupt_at = Deadline::NEVER;
        while let Some(Unnoticed { port, frame, wake_up }) = self.unnoticed.pop_front() {
            self.notice(now, usize::from(port), frame, wake_up);
        }
    }

    fn notice(&mut self, now: RunTime, port: usize, frame: Frame, wake_up: Span) {
        let Delivery { driver, application } = self.hand_up(now, &frame, wake_up);
        self.outputs.push_back(Output::Deliver { port, frame, driver, application });
    }

    /// The driver sees a frame, and the receive lane hands it to the application.
    #[inline]
    fn hand_up(&mut self, now: RunTime, frame: &Frame, wake_up: Span) -> Delivery {
        let driver = now + self.config.interrupt_latency;
        let begun = if self.receive_free > driver { self.receive_free } else { driver + wake_up };
        let application = begun + self.config.receive_of(frame);
        self.receive_free = application;
        self.leaving.push_back(application);
        Delivery { driver, application }
    }
}
