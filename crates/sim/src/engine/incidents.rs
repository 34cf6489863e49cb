//! What befalls the network, and what its clocks do.

use wg_core::Deadline;
use wg_plan::NodeIndex;
use wg_record::TruthKind;

use super::Engine;
use crate::agenda::Class;
use crate::clocks::SAMPLE;
use crate::error::SimError;
use crate::incidents::Deed;
use crate::sink::Sink;
use crate::world::Place;

impl<S: Sink> Engine<'_, S> {
    pub(super) fn incident(&mut self) {
        let Some(&(_, deed)) = self.world.deeds.get(self.next_deed) else { return };
        self.next_deed += 1;
        let next = self.world.deeds.get(self.next_deed).map(|(at, _)| *at);
        self.agenda.set(Class::Incident, 0, next.into());
        match deed {
            Deed::Cut(link) => (0..2).for_each(|side| self.cut(2 * link + side, true)),
            Deed::Restored(link) => (0..2).for_each(|side| self.cut(2 * link + side, false)),
            Deed::Down(node, back_at) => {
                let Place::Switch(at) = self.world.nodes[usize::from(node)].place else { return };
                let at = at as usize;
                let switch = &mut self.world.switches[at];
                // A restart during a restart lengthens it.
                let back_at = switch.back_at.map_or(back_at, |earlier| earlier.max(back_at));
                switch.back_at = Some(back_at);
                switch.core.handle_restart(self.now, back_at);
                self.tell(TruthKind::Down, node, 0, 0);
                self.drain_switch(at);
            }
            Deed::Up(node) => {
                let Place::Switch(at) = self.world.nodes[usize::from(node)].place else { return };
                if self.world.switches[at as usize].back_at == Some(self.now) {
                    self.tell(TruthKind::Up, node, 0, 0);
                }
            }
            Deed::BabbleBegins(number) => {
                self.agenda.set(Class::Babble, number, Deadline::at(self.now));
                let (frame, node) = (self.world.babblers[number].frame, self.world.babblers[number].node);
                self.reveal(TruthKind::BabbleBegan, &frame, node, 0, 0);
            }
            Deed::BabbleEnds(number) => {
                let (frame, node) = (self.world.babblers[number].frame, self.world.babblers[number].node);
                self.reveal(TruthKind::BabbleEnded, &frame, node, 0, 0);
            }
            Deed::ClockStepped(node, by) => {
                self.tell(TruthKind::ClockStepped, node, 0, by.as_picos());
                self.tell_offset(node);
            }
            Deed::DriftChanged(node) => self.tell_offset(node),
        }
    }

    /// A clock changes as the plan or chance has it.
    pub(super) fn clock(&mut self, number: usize) -> Result<(), SimError> {
        let node = self.world.clocked[number];
        let Some(clock) = &mut self.world.nodes[usize::from(node)].clock else { return Ok(()) };
        clock.handle_deadline(self.now)?;
        self.agenda.set(Class::Clock, number, clock.next_deadline());
        self.clock_changed(node);
        Ok(())
    }

    /// The clock of `node` was changed now: what was planned by it is planned again.
    fn clock_changed(&mut self, node: NodeIndex) {
        match self.world.nodes[usize::from(node)].place {
            Place::Switch(at) => {
                let at = at as usize;
                self.world.switches[at].core.handle_clock_change(self.now);
                self.drain_switch(at);
            }
            Place::Host(at) => {
                let at = at as usize;
                self.world.hosts[at].core.handle_clock_change(self.now);
                self.drain_host(at);
                for number in 0..self.world.senders.len() {
                    if self.world.senders[number].host == at {
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
            Place::Hub(_) => {}
        }
    }

    pub(super) fn sample(&mut self, number: usize) {
        self.agenda.set(Class::Sample, number, Deadline::at(self.now + SAMPLE));
        self.tell_offset(self.world.clocked[number]);
    }

    /// Writes what a clock shows less the true time.
    fn tell_offset(&mut self, node: NodeIndex) {
        if let Some(clock) = &self.world.nodes[usize::from(node)].clock {
            let offset = clock.offset_ps(self.now);
            self.tell(TruthKind::ClockOffset, node, 0, offset);
        }
    }
}
