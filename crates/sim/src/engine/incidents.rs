//! Incidents of the network, and changes of its clocks.

use wg_core::Deadline;
use wg_plan::NodeIndex;
use wg_record::{RecordFlags, Truth, TruthKind};

use super::Engine;
use crate::clocks::SAMPLE;
use crate::error::SimError;
use crate::event_queue::Class;
use crate::incidents::NetworkEvent;
use crate::message::{Carries, Message};
use crate::sink::Sink;
use crate::world::{Babbler, CoreIndex};

impl<S: Sink> Engine<'_, S> {
    pub(super) fn incident(&mut self) {
        let Some(&(_, event)) = self.world.network_events.get(self.next_network_event) else { return };
        self.next_network_event += 1;
        let next = self.world.network_events.get(self.next_network_event).map(|(at, _)| *at);
        self.queue.set(Class::Incident, 0, next.into());
        match event {
            NetworkEvent::Cut(link) => (0..2).for_each(|side| self.cut(2 * link + side, true)),
            NetworkEvent::Restored(link) => (0..2).for_each(|side| self.cut(2 * link + side, false)),
            NetworkEvent::Down(node, back_at) => {
                let CoreIndex::Switch(at) = self.world.nodes[usize::from(node)].place else { return };
                let at = at as usize;
                let switch = &mut self.world.switches[at];
                // A restart during a restart lengthens it.
                let back_at = switch.back_at.map_or(back_at, |earlier| earlier.max(back_at));
                switch.back_at = Some(back_at);
                switch.core.handle_restart(self.now, back_at);
                self.tell(TruthKind::Down, node, 0, 0);
                self.drain_switch(at);
                self.synchroniser_down(node, back_at);
                self.ptp_down(node, back_at);
            }
            NetworkEvent::Up(node) => {
                let CoreIndex::Switch(at) = self.world.nodes[usize::from(node)].place else { return };
                if self.world.switches[at as usize].back_at == Some(self.now) {
                    self.tell(TruthKind::Up, node, 0, 0);
                }
            }
            NetworkEvent::BabbleBegins(number) => {
                self.queue.set(Class::Babble, number, Deadline::at(self.now));
                self.tell_of_babbler(TruthKind::BabbleBegan, number);
            }
            NetworkEvent::BabbleEnds(number) => {
                self.tell_of_babbler(TruthKind::BabbleEnded, number);
            }
            NetworkEvent::ClockStepped(node, by) => {
                self.tell(TruthKind::ClockStepped, node, 0, by.as_picos());
                self.tell_offset(node);
            }
            NetworkEvent::DriftChanged(node) => self.tell_offset(node),
        }
    }

    /// Records that a babbler begins or ends, with the number of its next message.
    fn tell_of_babbler(&mut self, kind: TruthKind, number: usize) {
        let Babbler { frame, node, .. } = self.world.babblers[number];
        let Message { flow, sequence, flags } = frame.message();
        let (time, flags) = (self.now, RecordFlags::from_bits(flags.of_message()));
        self.sink.truth(&Truth { time, value: 0, sequence, flow, node, port: 0, kind, flags });
    }

    /// A clock changes by plan or by chance.
    pub(super) fn clock(&mut self, number: usize) -> Result<(), SimError> {
        let node = self.world.clocked[number];
        self.ptp_clock_changes(node);
        let Some(clock) = &mut self.world.nodes[usize::from(node)].clock else { return Ok(()) };
        clock.handle_deadline(self.now)?;
        self.queue.set(Class::Clock, number, clock.next_deadline());
        self.clock_changed(node);
        self.ptp_clock_changes(node);
        Ok(())
    }

    /// The clock of `node` was changed now: instants planned by it are planned again.
    pub(super) fn clock_changed(&mut self, node: NodeIndex) {
        match self.world.nodes[usize::from(node)].place {
            CoreIndex::Switch(at) => {
                let at = at as usize;
                self.world.switches[at].core.handle_clock_change(self.now);
                self.drain_switch(at);
            }
            CoreIndex::Host(at) => {
                let at = at as usize;
                self.world.hosts[at].core.handle_clock_change(self.now);
                self.drain_host(at);
                for number in 0..self.world.senders.len() {
                    if self.world.senders[number].host as usize == at {
                        self.pace_again(number);
                        self.plan_send(number);
                    }
                }
                for number in 0..self.world.injectors.len() {
                    if self.world.injectors[number].host == at {
                        self.plan_burst(number);
                    }
                }
            }
            CoreIndex::Hub(_) => {}
        }
        self.plan_synchroniser(node);
        self.plan_ptp_of(node);
    }

    pub(super) fn sample(&mut self, number: usize) {
        self.queue.set(Class::Sample, number, Deadline::at(self.now + SAMPLE));
        self.tell_offset(self.world.clocked[number]);
        self.compare_ptp(self.world.clocked[number]);
    }

    /// Records a clock's reading minus true time.
    fn tell_offset(&mut self, node: NodeIndex) {
        if let Some(clock) = &self.world.nodes[usize::from(node)].clock {
            let offset = clock.offset_ps(self.now);
            self.tell(TruthKind::ClockOffset, node, 0, offset);
        }
    }
}
