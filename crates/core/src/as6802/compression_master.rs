//! The states of a compression master: a switch, or one channel of it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wg_frame::time::Span;

use super::compression::{Collection, Compressed};
use super::cycle::{Cycle, Phase};
use super::standing::{Finding, Standing, listens};
use super::{
    Clique, ControlRepr, ControlType, HELD, Integrity, MASTERS, NEVER, Output, Parameters, State,
    TransparentClock,
};
use crate::clock::LocalTime;
use crate::tte::dispatch::PermanenceQueue;

const TICK: Span = Span::from_picos(1);

/// A compression master.
///
/// At standard integrity it lets one coldstart frame pass when it is unsynchronised, and then compressed
/// acknowledgements until a timeout. At high integrity it lets acknowledgements pass one by one in the same time; the
/// first coldstart frame blocks the others until then, so that all masters take up the same one.
#[derive(Clone, Debug)]
pub struct CompressionMaster {
    parameters: Parameters,
    state: State,
    timer: LocalTime,
    /// End of the interval in which acknowledgements pass.
    gate: LocalTime,
    cycle: Cycle,
    members: u32,
    standing: Standing,
    held: PermanenceQueue<ControlRepr>,
    integrations: Vec<Collection>,
    acknowledgements: Vec<Collection>,
    /// Frames that will be sent; the instant their frames were compressed to, for integration frames.
    pending: Vec<(LocalTime, Option<LocalTime>, ControlRepr)>,
    outputs: VecDeque<Output>,
    now: LocalTime,
}

impl CompressionMaster {
    /// A compression master that is powered up at `now`.
    pub fn new(parameters: Parameters, now: LocalTime) -> Self {
        Self {
            held: PermanenceQueue::new(parameters.max_transmission_delay, HELD),
            timer: now + parameters.listen_timeout(),
            gate: LocalTime::from_picos(i64::MIN),
            cycle: Cycle::new(parameters.compressed_pit(), Span::ZERO),
            parameters,
            state: State::Integrate,
            members: 0,
            standing: Standing::default(),
            integrations: Vec::new(),
            acknowledgements: Vec::new(),
            pending: Vec::new(),
            outputs: VecDeque::new(),
            now,
        }
    }

    /// Power returns at `now` after a loss: all state is lost.
    pub fn handle_restart(&mut self, now: LocalTime) {
        let old = (self.state, self.members);
        *self = Self::new(self.parameters, now.max(self.now));
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

    /// The last bit of a master's frame came in at `now`.
    pub fn handle_frame(&mut self, now: LocalTime, frame: ControlRepr) {
        self.advance(now - TICK);
        if self.parameters.is_own(&frame) {
            let _ = self.held.handle_frame(now, frame.transparent_clock, frame);
        }
    }

    /// Does what is due at `now`.
    pub fn handle_deadline(&mut self, now: LocalTime) {
        self.advance(now);
    }

    /// The next effect; frames are for the one channel.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time of the next action of [`handle_deadline`](Self::handle_deadline).
    pub fn next_deadline(&self) -> LocalTime {
        let cycle = if self.is_cyclic() { self.cycle.next(&self.parameters).0 } else { NEVER };
        let pending = self.pending.iter().map(|(at, ..)| *at).min().unwrap_or(NEVER);
        let collections = self.integrations.iter().chain(&self.acknowledgements);
        let compressed = collections.map(|one| self.due(one)).min().unwrap_or(NEVER);
        let held = self.held.next_deadline().unwrap_or(NEVER);
        held.min(self.timer).min(cycle).min(pending).min(compressed)
    }

    fn is_cyclic(&self) -> bool {
        self.state.is_cyclic()
    }

    /// When a collection is what it comes to: it may still change before it is closed.
    fn due(&self, collection: &Collection) -> LocalTime {
        collection.compressed(&self.parameters).pit.max(collection.closes(&self.parameters))
    }

    fn advance(&mut self, until: LocalTime) {
        loop {
            let at = self.next_deadline();
            if at > until {
                break;
            }
            self.now = self.now.max(at);
            // What collections come to is needed before the instant is judged.
            if let Some(compressed) = self.take_due(at, ControlType::Integration) {
                self.compressed(&compressed);
            } else if let Some(compressed) = self.take_due(at, ControlType::ColdstartAcknowledge) {
                self.acknowledged(&compressed);
            } else if self.held.next_deadline().is_some_and(|pit| pit <= at) {
                self.held.handle_deadline(at);
                if let Some((pit, frame)) = self.held.poll_output() {
                    self.permanent(pit, &frame);
                }
            } else if self.is_cyclic() && self.cycle.next(&self.parameters).0 <= at {
                self.in_cycle();
            } else if self.timer <= at {
                self.expire(at);
            }
            self.send_pending(at);
        }
        self.now = self.now.max(until);
    }

    fn take_due(&mut self, at: LocalTime, control_type: ControlType) -> Option<Compressed> {
        let of = |this: &Self, one: &Collection| this.due(one) <= at;
        let collections = match control_type {
            ControlType::Integration => &self.integrations,
            _ => &self.acknowledgements,
        };
        let place = collections.iter().position(|one| of(self, one))?;
        let collections = match control_type {
            ControlType::Integration => &mut self.integrations,
            _ => &mut self.acknowledgements,
        };
        Some(collections.remove(place).compressed(&self.parameters))
    }

    fn send_pending(&mut self, at: LocalTime) {
        let outputs = &mut self.outputs;
        self.pending.retain(|(due, _, frame)| {
            let stays = *due > at;
            if !stays {
                outputs.push_back(Output::Send { channel: 0, frame: *frame });
            }
            stays
        });
    }

    fn send(&mut self, at: LocalTime, pit: Option<LocalTime>, frame: ControlRepr) {
        if self.pending.len() < HELD {
            let frame = ControlRepr { transparent_clock: TransparentClock(0), ..frame };
            self.pending.push((at, pit, frame));
        }
    }

    fn frame(&self, control_type: ControlType, compressed: &Compressed) -> ControlRepr {
        ControlRepr {
            integration_cycle: compressed.cycle,
            membership: compressed.members,
            sync_priority: self.parameters.priority,
            sync_domain: self.parameters.domain,
            control_type,
            transparent_clock: TransparentClock(0),
        }
    }

    fn enter(&mut self, state: State, timer: LocalTime) {
        self.timer = timer;
        self.standing = Standing::default();
        if self.state == state {
            return;
        }
        if !state.is_cyclic() {
            self.note_members(0);
            if self.state.is_cyclic() {
                // What it was about to send was of a cycle it no longer believes in.
                self.pending.clear();
            }
        }
        self.state = state;
        self.outputs.push_back(Output::State(state));
    }

    fn note_members(&mut self, members: u32) {
        if self.members != members {
            self.members = members;
            self.outputs.push_back(Output::Membership(members));
        }
    }

    fn permanent(&mut self, pit: LocalTime, frame: &ControlRepr) {
        let collections = match frame.control_type {
            ControlType::Coldstart => return self.coldstart(pit, frame),
            ControlType::ColdstartAcknowledge if pit > self.gate || self.state.is_synchronised() => return,
            ControlType::ColdstartAcknowledge if self.parameters.integrity == Integrity::High => {
                let at = pit + self.parameters.compression_master_delay();
                return self.send(at, None, *frame);
            }
            ControlType::ColdstartAcknowledge => &mut self.acknowledgements,
            ControlType::Integration => &mut self.integrations,
        };
        let cycle = frame.integration_cycle;
        let is_taken =
            collections.iter_mut().any(|one| one.take(&self.parameters, cycle, frame.membership, pit));
        if !is_taken && collections.len() < usize::from(MASTERS) {
            collections.push(Collection::new(cycle, frame.membership, pit));
        }
    }

    fn coldstart(&mut self, pit: LocalTime, frame: &ControlRepr) {
        let high = self.parameters.integrity == Integrity::High;
        let passes = match self.state {
            State::Unsync => true,
            State::WaitForCycleStart | State::TentativeSync => high,
            _ => false,
        };
        if !passes || pit <= self.gate {
            return;
        }
        self.gate = pit + self.parameters.acknowledge_enabled();
        self.send(pit, None, *frame);
        if !high {
            self.enter(State::AcknowledgeEnabled, self.gate);
        }
    }

    fn acknowledged(&mut self, compressed: &Compressed) {
        let enabled = matches!(self.state, State::AcknowledgeEnabled | State::WaitForIntegration);
        if enabled {
            let at = compressed.pit + self.parameters.dispatch_delay();
            let frame = self.frame(ControlType::ColdstartAcknowledge, compressed);
            self.send(at, None, frame);
            self.enter(State::WaitForIntegration, at + self.parameters.wait_for_integration());
        }
    }

    fn compressed(&mut self, compressed: &Compressed) {
        let at = compressed.pit + self.parameters.dispatch_delay();
        let number = compressed.cycle % self.parameters.cycles;
        let frame = self.frame(ControlType::Integration, compressed);
        if self.is_cyclic() {
            let (pit, members) = (compressed.pit, compressed.members);
            if self.cycle.take(&self.parameters, pit, number, 0, members) && self.cycle.is_best(0, pit) {
                self.pending.retain(|(_, compressed, _)| compressed.is_none());
                self.send(at, Some(pit), frame);
            }
            return;
        }
        let (heard, thresholds) = (compressed.members.count_ones(), self.parameters.thresholds);
        let tentative = heard >= u32::from(thresholds.tentative);
        let high = self.parameters.integrity == Integrity::High;
        let state = match self.state {
            _ if heard >= u32::from(thresholds.sync) => State::Sync,
            State::WaitForIntegration if tentative => State::TentativeSync,
            State::Unsync if tentative && high => State::TentativeSync,
            State::Integrate if tentative && high => State::WaitForCycleStart,
            _ => return,
        };
        self.cycle.join(compressed.pit, number, 0, compressed.members);
        self.send(at, Some(compressed.pit), frame);
        if state == State::WaitForCycleStart {
            self.enter(state, self.cycle.next_begin(&self.parameters));
            return;
        }
        self.enter(state, NEVER);
        let position = self.cycle.position(&self.parameters, self.now);
        self.outputs.push_back(Output::Clock { position });
    }

    fn expire(&mut self, at: LocalTime) {
        match self.state {
            State::Integrate | State::AcknowledgeEnabled | State::WaitForIntegration => {
                self.enter(State::Unsync, NEVER);
            }
            State::WaitForCycleStart => {
                let number = (self.cycle.number + 1) % self.parameters.cycles;
                self.cycle.begin_at(at, number);
                self.enter(State::TentativeSync, NEVER);
                let position = self.cycle.position(&self.parameters, at);
                self.outputs.push_back(Output::Clock { position });
            }
            _ => self.timer = NEVER,
        }
    }

    fn in_cycle(&mut self) {
        let (at, phase) = self.cycle.next(&self.parameters);
        match phase {
            Phase::Begin => {
                if let Some(clique) = self.cycle.begin(&self.parameters) {
                    self.fail(at, clique);
                }
            }
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
        if listens(clique, self.members, self.state) {
            self.enter(State::Integrate, at + self.parameters.listen_timeout());
        } else {
            self.enter(State::Unsync, NEVER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::as6802::Thresholds;

    fn parameters(integrity: Integrity) -> Parameters {
        let parameters = Parameters {
            integrity,
            domain: 1,
            priority: 2,
            integration_cycle: Span::from_millis(10),
            cycles: 16,
            precision: Span::from_micros(10),
            max_transmission_delay: Span::from_micros(100),
            calculation_overhead: Span::ZERO,
            frame_time: Span::from_nanos(6_720),
            masters: 4,
            faulty_masters: 1,
            channels: 1,
            thresholds: Thresholds::of(4, 1),
            stable_cycles: 3,
            unstable_cycles: 1,
        };
        parameters.check().expect("a cluster that can work");
        parameters
    }

    /// Coldstart frames that pass, by the bit of their master, of those that come at these instants from the first one
    /// on.
    fn passed(integrity: Integrity, coming: &[(Span, u8)]) -> Vec<u32> {
        let parameters = parameters(integrity);
        let mut device = CompressionMaster::new(parameters, LocalTime::ZERO);
        let begin = LocalTime::ZERO + parameters.listen_timeout() + Span::from_millis(1);
        device.handle_deadline(begin);
        assert_eq!(device.state(), State::Unsync);
        for (at, master) in coming {
            let frame = ControlRepr {
                integration_cycle: 0,
                membership: 1 << master,
                sync_priority: parameters.priority,
                sync_domain: parameters.domain,
                control_type: ControlType::Coldstart,
                // As old as a frame can be: it is permanent as it comes.
                transparent_clock: TransparentClock::from_delay(parameters.max_transmission_delay).unwrap(),
            };
            device.handle_frame(begin + *at, frame);
        }
        device.handle_deadline(begin + Span::from_millis(1_000));
        let mut sent = Vec::new();
        while let Some(output) = device.poll_output() {
            if let Output::Send { frame, .. } = output
                && frame.control_type == ControlType::Coldstart
            {
                sent.push(frame.membership);
            }
        }
        sent
    }

    /// When two masters start at once, all have to take up the same coldstart frame. At high integrity only the gate
    /// ensures that; at standard integrity the state does, up to the last instant of the gate.
    #[test]
    fn the_first_coldstart_frame_closes_the_way_for_others() {
        let open = parameters(Integrity::High).acknowledge_enabled();
        assert!(open > Span::from_micros(1));
        for integrity in [Integrity::Standard, Integrity::High] {
            let pass = |second| passed(integrity, &[(Span::ZERO, 0), (second, 1)]);
            assert_eq!(pass(TICK), [1], "{integrity:?}");
            assert_eq!(pass(open - TICK), [1], "{integrity:?}");
            assert_eq!(pass(open), [1], "{integrity:?}");
            assert_eq!(pass(open + TICK), [1, 2], "{integrity:?}");
        }
    }
}
