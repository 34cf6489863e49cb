//! Imperfections of nodes in the simulation.

use wg_core::Deadline;
use wg_core::frame::Frame;
use wg_frame::time::Span;
use wg_plan::NodeIndex;
use wg_record::TruthKind;

use super::Engine;
use crate::event_queue::Class;
use crate::sink::Sink;

impl<S: Sink> Engine<'_, S> {
    /// Plans the first of all recurring events.
    pub(super) fn begin_imperfections(&mut self) {
        for number in 0..self.world.events.len() {
            if self.drives(self.world.events[number].node) {
                self.queue.set(Class::HostEvent, number, Deadline::at(self.world.events[number].next()));
            }
        }
        for number in 0..self.world.own_frames.len() {
            self.queue.set(Class::OwnFrames, number, Deadline::at(self.world.own_frames[number].next));
        }
    }

    /// An event of a host begins or ends.
    pub(super) fn host_event(&mut self, number: usize) {
        let event = &mut self.world.events[number];
        let goes_on = event.turn();
        let (node, place) = (event.node, i64::from(event.place));
        self.queue.set(Class::HostEvent, number, Deadline::at(event.next()));
        let kind = if goes_on { TruthKind::HostEventBegan } else { TruthKind::HostEventEnded };
        self.tell(kind, node, 0, place);
    }

    /// Delay by host events of the thread that is woken now for `frame`.
    #[cold]
    pub(super) fn held_up(&mut self, host: usize, frame: &Frame, sending: bool) -> Span {
        let by = self.held_up_now(host, sending);
        if by > Span::ZERO {
            let node = self.world.hosts[host].node;
            self.reveal(TruthKind::HeldUp, frame, node, 0, by.as_picos());
        }
        by
    }

    /// Delay by host events of a thread of `host` that is woken now, for whatever reason.
    pub(super) fn held_up_now(&mut self, host: usize, sending: bool) -> Span {
        let mut by = Span::ZERO;
        let Some(extra) = &self.world.hosts[host].extra else { return by };
        for &event in &extra.events {
            by += self.world.events[event].holds_up(self.now, sending);
        }
        by
    }

    /// Time that reading the clock of `node` takes.
    #[inline]
    pub(super) fn read_cost(&mut self, node: NodeIndex) -> Span {
        if self.world.is_exact {
            return Span::ZERO;
        }
        let timestamps = &mut self.world.nodes[usize::from(node)].timestamps;
        timestamps.as_mut().map_or(Span::ZERO, |timestamps| timestamps.read_cost())
    }

    /// A switch sends frames of its own.
    pub(super) fn own_frames(&mut self, number: usize) {
        let source = &mut self.world.own_frames[number];
        source.next = source.next + source.period;
        let (switch, node, frame) = (source.switch, source.node, source.frame);
        self.queue.set(Class::OwnFrames, number, Deadline::at(source.next));
        if self.world.switches[switch].core.is_down(self.now) {
            return;
        }
        for place in 0..self.world.own_frames[number].ports.len() {
            let port = self.world.own_frames[number].ports[place];
            let own = self.world.switches[switch].ports[port].number;
            self.reveal(TruthKind::OwnFrame, &frame, node, own, 0);
            let more = self.queue.has_input_at(self.now);
            self.world.switches[switch].core.handle_own(self.now, port, frame, more);
        }
        self.drain_switch(switch);
    }
}
