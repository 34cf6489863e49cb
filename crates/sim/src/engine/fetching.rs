//! What the next event meets, asked for while this one is carried out.
//!
//! In a network of hundreds of end systems whatever an event meets was last met so long ago that no near cache has it, and
//! events are so short that each line is waited for by itself. Whose turn is next is mostly known when an event begins: a
//! look at its lines then has all of them come at once, beside the work. Nothing is decided here, and no state is changed: without
//! it the same records come, later. There is no safe way to ask for a line but to read it.

use std::hint::black_box;

use super::Engine;
use crate::event_queue::{Class, Source};
use crate::message::Carries;
use crate::sink::Sink;
use crate::world::{CoreIndex, World};

/// Networks of fewer nodes lie in a near cache as they are.
const MANY: usize = 200;

impl World {
    /// Whether it is larger than near caches.
    pub(super) fn is_large(&self) -> bool {
        self.nodes.len() >= MANY
    }

    fn fetch_host(&self, at: u32) {
        let host = &self.hosts[at as usize];
        black_box((host.extra.is_some(), host.access[2].sent, host.core.fetch()));
    }
}

impl<S: Sink> Engine<'_, S> {
    /// Reads what the event that follows will meet.
    #[inline(never)]
    pub(super) fn fetch_upcoming(&self) {
        let world = &self.world;
        let Some(Source { class, number }) = self.queue.upcoming() else { return };
        match class {
            Class::Arrival => {
                let channel = &world.channels[number as usize];
                let Some(in_flight) = channel.in_flight.front() else { return };
                match channel.to {
                    CoreIndex::Host(at) => {
                        world.fetch_host(at);
                        let flow = world.flow_of_id[usize::from(in_flight.frame.message().flow)];
                        let flow = world.flows.get(usize::from(flow));
                        black_box(flow.and_then(|flow| flow.receivers.first()).map(|end| end.node));
                    }
                    CoreIndex::Switch(at) => {
                        let critical = world.switches[at as usize].core.ingress().critical.as_ref();
                        let port = channel.to_port as usize;
                        black_box(critical.map(|critical| critical.fetch(port, &in_flight.frame)));
                    }
                    CoreIndex::Hub(_) => {}
                }
            }
            Class::Send => {
                let sender = &world.senders[number as usize];
                black_box((sender.frame.length, sender.schedule.total(), sender.done));
                world.fetch_host(sender.host);
            }
            Class::Timer => {
                if let CoreIndex::Host(at) = world.nodes[number as usize].place {
                    world.fetch_host(at);
                }
            }
            _ => {}
        }
    }
}
