//! The states of a synchronisation master or client.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wg_frame::time::Span;

use super::cycle::{Cycle, Phase};
use super::standing::{Finding, Standing, listens};
use super::{
    Behaviour, CHANNELS, Clique, ControlRepr, ControlType, HELD, Integrity, NEVER, Output, Parameters, State,
    TransparentClock,
};
use crate::clock::LocalTime;
use crate::tte::dispatch::PermanenceQueue;

/// The role of a device that is no compression master in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A synchronisation master with this bit of the membership, less than [`MASTERS`](super::MASTERS).
    Master(u8),
    /// A synchronisation client: sends nothing.
    Client,
}

const TICK: Span = Span::from_picos(1);

/// A synchronisation master or client.
#[derive(Clone, Debug)]
pub struct EndSystem {
    parameters: Parameters,
    role: Role,
    behaviour: Behaviour,
    state: State,
    /// Instant at which the current state times out.
    timer: LocalTime,
    /// Instant at which the acknowledgement of the current flood was sent.
    acknowledged: Option<LocalTime>,
    cycle: Cycle,
    members: u32,
    standing: Standing,
    held: PermanenceQueue<(usize, ControlRepr)>,
    /// Frames that a faulty master sends late, with instant and channel.
    pending: Vec<(LocalTime, usize, ControlRepr)>,
    outputs: VecDeque<Output>,
    now: LocalTime,
}

impl EndSystem {
    /// A device that is powered up at `now`.
    ///
    /// Panics if a master's bit is [`MASTERS`](super::MASTERS) or more.
    pub fn new(parameters: Parameters, role: Role, behaviour: Behaviour, now: LocalTime) -> Self {
        if let Role::Master(bit) = role {
            assert!(bit < super::MASTERS, "wg-core misuse: master {bit} has no bit of the membership");
        }
        let cycle = Cycle::new(parameters.receive_pit(), behaviour.lead());
        Self {
            held: PermanenceQueue::new(parameters.max_transmission_delay, HELD),
            timer: now + parameters.listen_timeout(),
            parameters,
            role,
            behaviour,
            state: State::Integrate,
            acknowledged: None,
            cycle,
            members: 0,
            standing: Standing::default(),
            pending: Vec::new(),
            outputs: VecDeque::new(),
            now,
        }
    }

    /// Power returns at `now` after a loss: all state is lost.
    pub fn handle_restart(&mut self, now: LocalTime) {
        let old = (self.state, self.members);
        *self = Self::new(self.parameters, self.role, self.behaviour, now.max(self.now));
        if old.0 != State::Integrate {
            self.outputs.push_back(Output::State(State::Integrate));
        }
        if old.1 != 0 {
            self.outputs.push_back(Output::Membership(0));
        }
    }

    /// The current state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Membership: the masters that were in schedule at the last evaluation.
    pub const fn membership(&self) -> u32 {
        self.members
    }

    /// The last bit of a frame came in by `channel` at `now`. Frames of other clusters and those too long under way are
    /// ignored.
    pub fn handle_frame(&mut self, now: LocalTime, channel: usize, frame: ControlRepr) {
        self.advance(now - TICK);
        if channel < CHANNELS && self.parameters.is_own(&frame) {
            // A frame that was under way for too long has no instant, and one too many no place: neither is used.
            let _ = self.held.handle_frame(now, frame.transparent_clock, (channel, frame));
        }
    }

    /// Does what is due at `now`.
    pub fn handle_deadline(&mut self, now: LocalTime) {
        self.advance(now);
    }

    /// The next effect.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`handle_deadline`](Self::handle_deadline) has something to do; the end of all time: only after an input.
    pub fn next_deadline(&self) -> LocalTime {
        let cycle = if self.state.is_cyclic() { self.cycle.next(&self.parameters).0 } else { NEVER };
        let pending = self.pending.iter().map(|(at, ..)| *at).min().unwrap_or(NEVER);
        self.held.next_deadline().unwrap_or(NEVER).min(self.timer).min(cycle).min(pending)
    }

    fn advance(&mut self, until: LocalTime) {
        loop {
            let at = self.next_deadline();
            if at > until {
                break;
            }
            self.now = self.now.max(at);
            if self.held.next_deadline().is_some_and(|pit| pit <= at) {
                self.held.handle_deadline(at);
                if let Some((pit, (channel, frame))) = self.held.poll_output() {
                    self.permanent(pit, channel, &frame);
                }
            } else if self.state.is_cyclic() && self.cycle.next(&self.parameters).0 <= at {
                self.in_cycle();
            } else if self.timer <= at {
                self.expire(at);
            }
            self.send_pending(at);
        }
        self.now = self.now.max(until);
    }

    fn send_pending(&mut self, at: LocalTime) {
        let outputs = &mut self.outputs;
        self.pending.retain(|(due, channel, frame)| {
            let stays = *due > at;
            if !stays {
                outputs.push_back(Output::Send { channel: *channel, frame: *frame });
            }
            stays
        });
    }

    fn send(&mut self, at: LocalTime, control_type: ControlType) {
        let Role::Master(bit) = self.role else { return };
        let frame = ControlRepr {
            integration_cycle: if control_type == ControlType::Integration { self.cycle.number } else { 0 },
            membership: 1 << bit,
            sync_priority: self.parameters.priority,
            sync_domain: self.parameters.domain,
            control_type,
            transparent_clock: TransparentClock(0),
        };
        for channel in 0..usize::from(self.parameters.channels) {
            if let Some(delay) = self.behaviour.delay(channel)
                && self.pending.len() < HELD
            {
                self.pending.push((at + delay, channel, frame));
            }
        }
    }

    fn enter(&mut self, state: State, timer: LocalTime) {
        self.timer = timer;
        (self.standing, self.acknowledged) = (Standing::default(), None);
        if !state.is_cyclic() {
            self.note_members(0);
        }
        if self.state != state {
            self.state = state;
            self.outputs.push_back(Output::State(state));
        }
    }

    fn note_members(&mut self, members: u32) {
        if self.members != members {
            self.members = members;
            self.outputs.push_back(Output::Membership(members));
        }
    }

    fn tell_clock(&mut self, at: LocalTime) {
        let position = self.cycle.position(&self.parameters, at);
        self.outputs.push_back(Output::Clock { position });
    }

    fn permanent(&mut self, pit: LocalTime, channel: usize, frame: &ControlRepr) {
        match frame.control_type {
            ControlType::Integration => self.integration(pit, channel, frame),
            ControlType::Coldstart => self.coldstart(pit, frame),
            ControlType::ColdstartAcknowledge => self.acknowledge(pit),
        }
    }

    fn integration(&mut self, pit: LocalTime, channel: usize, frame: &ControlRepr) {
        let (number, members) = (frame.integration_cycle % self.parameters.cycles, frame.membership);
        if self.state.is_cyclic() {
            self.cycle.take(&self.parameters, pit, number, channel, members);
            return;
        }
        let heard = members.count_ones();
        let thresholds = self.parameters.thresholds;
        let tentative = heard >= u32::from(thresholds.tentative);
        let (join, state) = if heard >= u32::from(thresholds.sync) {
            (true, State::Sync)
        } else if tentative && self.role == Role::Client {
            // A client starts nothing; it waits until enough are synchronised.
            (false, self.state)
        } else {
            match self.state {
                State::Unsync => (tentative, State::TentativeSync),
                State::Integrate => (tentative, State::WaitForCycleStart),
                _ => (false, self.state),
            }
        };
        if !join {
            return;
        }
        self.cycle.join(pit, number, channel, members);
        if state == State::WaitForCycleStart {
            self.enter(state, self.cycle.next_begin(&self.parameters));
            return;
        }
        self.enter(state, NEVER);
        self.tell_clock(pit);
    }

    fn coldstart(&mut self, pit: LocalTime, frame: &ControlRepr) {
        let Role::Master(bit) = self.role else { return };
        let counts = self.parameters.integrity == Integrity::Standard || frame.membership != 1 << bit;
        if counts && matches!(self.state, State::Unsync | State::Flood) {
            let sends = pit + self.parameters.coldstart_offset() - self.behaviour.lead();
            self.enter(State::Flood, sends.max(pit));
        }
    }

    fn acknowledge(&mut self, pit: LocalTime) {
        if self.role == Role::Client {
            return;
        }
        let accepted = match self.state {
            State::Integrate | State::Unsync | State::WaitForCycleStartColdstart => true,
            State::Flood => self.acknowledged.is_some_and(|sent| {
                let off = (pit - sent) - self.parameters.acknowledge_round_trip();
                off.as_picos().abs() <= self.acknowledge_window().as_picos()
            }),
            _ => false,
        };
        if accepted {
            let begins = pit + self.parameters.acknowledge_offset();
            self.enter(State::WaitForCycleStartColdstart, begins);
        }
    }

    /// Either side of the round trip: frames that were compressed are up to two precisions later than their first.
    fn acknowledge_window(&self) -> Span {
        self.parameters.max_observation_window() + self.parameters.acceptance()
    }

    fn expire(&mut self, at: LocalTime) {
        let retry = at + self.parameters.coldstart_timeout();
        match self.state {
            State::Integrate if self.role == Role::Client => self.timer = NEVER,
            State::Integrate | State::Unsync => {
                self.send(at, ControlType::Coldstart);
                self.enter(State::Unsync, retry);
            }
            State::Flood if self.acknowledged.is_none() => {
                self.send(at, ControlType::ColdstartAcknowledge);
                self.acknowledged = Some(at);
                self.timer = at + self.parameters.acknowledge_round_trip() + self.acknowledge_window() + TICK;
            }
            State::Flood => self.enter(State::Unsync, retry),
            State::WaitForCycleStart => {
                let number = (self.cycle.number + 1) % self.parameters.cycles;
                self.begin_tentative(at, number);
            }
            State::WaitForCycleStartColdstart => self.begin_tentative(at, 0),
            _ => self.timer = NEVER,
        }
    }

    fn begin_tentative(&mut self, at: LocalTime, number: u32) {
        self.cycle.begin_at(at, number);
        self.enter(State::TentativeSync, NEVER);
        self.tell_clock(at);
    }

    fn in_cycle(&mut self) {
        let (at, phase) = self.cycle.next(&self.parameters);
        match phase {
            Phase::Begin => match self.cycle.begin(&self.parameters) {
                Some(clique) => self.fail(at, clique),
                None => self.send(at, ControlType::Integration),
            },
            Phase::Evaluate => self.evaluate(at),
            Phase::Correct => {
                if let Some(position) = self.cycle.correct(&self.parameters, at) {
                    self.outputs.push_back(Output::Clock { position });
                }
            }
        }
    }

    fn evaluate(&mut self, at: LocalTime) {
        let members = self.cycle.evaluate();
        self.note_members(members);
        match self.standing.judge(&self.parameters, self.state, members.count_ones()) {
            Finding::None => {}
            Finding::Enter(state) => self.enter(state, NEVER),
            Finding::TooFew => self.fail(at, Clique::Synchronous),
        }
    }

    fn fail(&mut self, at: LocalTime, clique: Clique) {
        self.outputs.push_back(Output::Clique(clique));
        if listens(clique, self.members, self.state) || self.role == Role::Client {
            self.enter(State::Integrate, at + self.parameters.listen_timeout());
        } else {
            self.enter(State::Unsync, at + self.parameters.restart_timeout());
        }
    }
}
