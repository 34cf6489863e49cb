//! A stage of a network: see [`stages`](crate::stages).

use wg_core::Deadline;
use wg_core::forwarding::PortSet;
use wg_core::frame::Frame;
use wg_core::switch::Arrival;
use wg_frame::time::RunTime;
use wg_plan::{Network, NodeIndex, Run};

use super::{Engine, LOOK, drive};
use crate::build;
use crate::error::SimError;
use crate::event_queue::Class;
use crate::report::SimReport;
use crate::sink::Sink;
use crate::stages::exchange::{Crossing, Exchange};
use crate::stages::graph::Stages;
use crate::world::{CoreIndex, InFlight};

/// The stages of a network; `None` if it is simulated as one.
pub(crate) fn stages(network: &Network, run: &Run, threads: usize) -> Result<Option<Stages>, SimError> {
    if threads < 2 {
        return Ok(None);
    }
    Ok(Stages::new(&build::world(network, run)?, network, run, threads))
}

/// End of a run, as far as the plan tells.
pub(crate) fn planned_end(run: &Run) -> RunTime {
    RunTime::ZERO + run.warm_up + run.duration + run.drain
}

/// Simulates a stage of `run` on `network`, whose switches are those of the run.
pub(crate) fn simulate_stage(
    network: &Network,
    run: &Run,
    exchange: Exchange,
    sink: &mut impl Sink,
) -> Result<SimReport, SimError> {
    drive(build::world(network, run)?, network, run, sink, |engine| {
        engine.enter_stage(exchange);
        engine.begin();
        engine.run_stage()
    })
}

impl<S: Sink> Engine<'_, S> {
    /// Leaves all that other stages drive to them.
    fn enter_stage(&mut self, mut exchange: Exchange) {
        let (stages, own) = (exchange.stages.clone(), exchange.own);
        let world = &mut self.world;
        for (number, channel) in world.channels.iter_mut().enumerate() {
            channel.leaves_stage = stages.near[number] == own && stages.far[number] != own;
        }
        for switch in &mut world.switches {
            let foreign = |(_, port): &(usize, &crate::world::SwitchPort)| stages.near[port.channel()] != own;
            let foreign = switch.ports.iter().enumerate().filter(foreign).map(|(index, _)| index);
            switch.core.leave_ports(PortSet::of(switch.ports.len(), foreign));
        }
        let hosts = &world.hosts;
        let sends = |host: usize| stages.near[hosts[host].ports[0].channel()] == own;
        world.sending =
            world.senders.iter().filter(|one| one.schedule.total() > 0 && sends(one.host as usize)).count();
        if world.sending == 0 {
            exchange.note_sent(None);
        }
        self.exchange = Some(Box::new(exchange));
    }

    /// Whether the stage drives the sending side of a host.
    pub(super) fn sends(&self, host: usize) -> bool {
        let channel = self.world.hosts[host].ports[0].channel();
        self.exchange.as_ref().is_none_or(|exchange| exchange.drives(channel))
    }

    /// Whether the stage drives the host `node`, whose both sides are in one stage.
    pub(super) fn drives(&self, node: NodeIndex) -> bool {
        match self.world.nodes[usize::from(node)].place {
            CoreIndex::Host(host) => self.sends(host as usize),
            CoreIndex::Switch(_) | CoreIndex::Hub(_) => true,
        }
    }

    fn run_stage(&mut self) -> Result<(), SimError> {
        let drain = self.world.drain;
        loop {
            let due = self.queue.earliest().instant().map_or(i64::MAX, RunTime::as_picos);
            let Some(exchange) = &mut self.exchange else { return Err(SimError::Defect) };
            if due > exchange.bound || (due == i64::MAX && !exchange.has_all()) {
                self.await_frames(due)?;
                continue;
            }
            // While it has a message to send, the end of the run is later.
            if !exchange.is_sending() {
                if due == i64::MAX {
                    break;
                }
                match exchange.belongs(due, drain) {
                    Some(true) => {}
                    Some(false) => break,
                    None if exchange.has_all() => {
                        exchange.send_all(due - 1);
                        exchange.pause()?;
                        continue;
                    }
                    // An earlier stage tells how far it has come with its frames.
                    None => {
                        self.await_frames(due)?;
                        continue;
                    }
                }
            }
            let Some((now, source)) = self.queue.next() else { break };
            self.happen(now, source)?;
            if self.events.is_multiple_of(LOOK) {
                self.look(now)?;
            }
            if self.world.sending == 0
                && let Some(exchange) = self.exchange.as_mut().filter(|exchange| exchange.is_sending())
            {
                exchange.note_sent(Some(self.world.last_send));
            }
        }
        self.end_stage()
    }

    /// Gives what there is to other stages.
    fn look(&mut self, now: RunTime) -> Result<(), SimError> {
        let end = self.world.end();
        if let Some(exchange) = &mut self.exchange {
            exchange.send_all(now.as_picos() - 1);
        }
        self.sink.advance(now, end)
    }

    /// Waits for frames of earlier stages: `due` is the next event, which may have to wait for them.
    fn await_frames(&mut self, due: i64) -> Result<(), SimError> {
        let Some(exchange) = &mut self.exchange else { return Err(SimError::Defect) };
        // All events up to the bound are done, and its next message is one of those after it.
        exchange.note_sending(due);
        exchange.send_all(exchange.bound.min(due - 1));
        if exchange.shared.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(SimError::Stopped);
        }
        let queue = &mut self.queue;
        exchange.receive(|channel, at| queue.set(Class::Arrival, channel, Deadline::at(at)));
        Ok(())
    }

    fn end_stage(&mut self) -> Result<(), SimError> {
        let Some(exchange) = &mut self.exchange else { return Err(SimError::Defect) };
        exchange.send_all(i64::MAX);
        self.world.last_send = exchange.last_send()?;
        let end = self.world.end();
        if end != self.now {
            self.enter_instant(end);
        }
        for relay in 0..self.world.relays.len() {
            if self.sends(self.world.relays[relay].host) {
                self.end_relay(relay);
            }
        }
        self.end()
    }

    /// Gives a frame on a channel to the stage that drives the receiving end.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "links are numbered in 32 bits")]
    pub(super) fn leave_stage(&mut self, number: usize, in_flight: InFlight) {
        let now = self.now;
        if let Some(exchange) = &mut self.exchange {
            let to = exchange.stages.far[number];
            exchange.give(to, Crossing { in_flight, channel: number as u32, egress: None }, now);
        }
    }

    /// Gives a copy for a port of a switch to the stage that drives the port.
    #[expect(clippy::cast_possible_truncation, reason = "links and ports are numbered in 32 bits")]
    pub(super) fn hand_over(&mut self, at: usize, port: usize, frame: Frame, complete: RunTime) {
        let (now, channel) = (self.now, self.world.switches[at].ports[port].channel());
        // The channel by which it came is that of the event, which is an arrival.
        let number = self.arriving as u32;
        if let Some(exchange) = &mut self.exchange {
            let to = exchange.stages.near[channel];
            let in_flight = InFlight { at: now, complete, frame };
            exchange.give(to, Crossing { in_flight, channel: number, egress: Some(port as u32) }, now);
        }
    }

    /// A frame of an earlier stage comes by channel `number`.
    #[inline(never)]
    pub(super) fn enter_stage_by(&mut self, number: usize) {
        let Some(exchange) = &mut self.exchange else { return };
        let Some(Crossing { in_flight, egress, .. }) = exchange.take(number) else { return };
        if let Some(next) = exchange.front(number) {
            self.queue.set(Class::Arrival, number, Deadline::at(next.in_flight.at));
        }
        let channel = &self.world.channels[number];
        let (CoreIndex::Switch(at), Some(egress)) = (channel.to, egress) else {
            self.come_out(number, &in_flight);
            return;
        };
        let (at, port) = (at as usize, channel.to_port as usize);
        let arrival = Arrival { port, frame: in_flight.frame, complete: in_flight.complete };
        let more = self.queue.has_input_at(self.now);
        self.world.switches[at].core.handle_copy(self.now, egress as usize, &arrival, more);
        self.drain_switch(at);
    }
}
