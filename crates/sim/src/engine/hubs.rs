//! Frames over the shared medium of a hub.
//!
//! The driver of a host hands a frame to its station and learns no more until it is sent or given up; the port of the
//! host is silent until then. Faults of a hub's links act on complete frames: on the way to the hub when the last bit
//! was sent, on the way from it when the last bit arrived.

use wg_core::Deadline;
use wg_core::frame::{Frame, Marks};
use wg_core::hub::{HubDrop, Output};
use wg_core::port::Transmission;
use wg_frame::time::{RunTime, Span};
use wg_record::{Crc, DropReason, FLOW_FOREIGN, Point, TruthKind};

use super::Engine;
use crate::event_queue::Class;
use crate::faults::LinkEffect;
use crate::message::Carries;
use crate::sink::Sink;
use crate::world::InFlight;

/// Upper bound of the time for which a sent frame is still on the medium.
const HEARD: Span = Span::from_millis(1);

impl<S: Sink> Engine<'_, S> {
    /// A driver has a frame for a station; it is at the transmitter at `ready`.
    pub(super) fn approach_medium(
        &mut self,
        hub: usize,
        station: usize,
        ready: RunTime,
        frame: Frame,
        transmission: Transmission,
    ) {
        // The medium holds a copy until the last station has received it.
        self.retain(&frame);
        let node = &mut self.world.hubs[hub];
        node.stations[station].transmission = Some(transmission);
        let place = node.coming.partition_point(|(at, ..)| *at <= ready);
        node.coming.insert(place, (ready, station, frame));
        self.plan_medium(hub);
    }

    pub(super) fn medium(&mut self, number: usize) {
        let now = self.now;
        // Frames are handed in before signals begin: the core's order of an instant.
        while let Some(&(at, station, frame)) = self.world.hubs[number].coming.front()
            && at <= now
        {
            let hub = &mut self.world.hubs[number];
            hub.coming.pop_front();
            if hub.core.handle_frame(now, station, frame.length, frame).is_err() {
                unreachable!("wg-sim: a port hands its station one frame at a time");
            }
            self.drain_hub(number);
        }
        self.world.hubs[number].core.handle_deadline(now);
        self.drain_hub(number);
        self.plan_medium(number);
    }

    fn plan_medium(&mut self, number: usize) {
        let hub = &self.world.hubs[number];
        let coming = hub.coming.front().map_or(Deadline::NEVER, |(at, ..)| Deadline::at(*at));
        self.queue.set(Class::Medium, number, coming.min(hub.core.next_deadline()));
    }

    fn drain_hub(&mut self, number: usize) {
        while let Some(output) = self.world.hubs[number].core.poll_output() {
            match output {
                Output::Started { station, at, .. } => {
                    self.world.hubs[number].stations[station].began = at;
                }
                Output::Collided { station, attempt, .. } => self.collided(number, station, attempt),
                Output::DrawBackoff { station, limit, at } => {
                    if let Some(frame) = self.world.hubs[number].core.sending(station).copied() {
                        self.had_medium(number, station, &frame, at);
                    }
                    let hub = &mut self.world.hubs[number];
                    // The limit is a power of two.
                    #[expect(clippy::cast_possible_truncation, reason = "the lowest bits are drawn")]
                    let slots = (hub.backoff.next_u64() >> 32) as u16 & (limit - 1);
                    if hub.core.handle_backoff(self.now, station, slots).is_err() {
                        unreachable!("wg-sim: the backoff was asked for and is below its limit");
                    }
                }
                Output::Sent { station, frame, at } => {
                    self.frame_hops += 1;
                    self.had_medium(number, station, &frame, at);
                    self.fade(number, frame);
                    self.left_station(number, station, frame);
                    self.medium_free(number, station);
                }
                Output::Dropped { station, frame, reason, at } => {
                    self.had_medium(number, station, &frame, at);
                    let reason = match reason {
                        HubDrop::LateCollision => DropReason::LateCollision,
                        HubDrop::ExcessiveCollisions => DropReason::ExcessiveCollisions,
                    };
                    let (node, port) = self.port_of(number, station);
                    self.note_drop(&frame, node, port, reason, Crc::Unchecked);
                    self.fade(number, frame);
                    self.medium_free(number, station);
                }
                Output::Received { station, from, frame, .. } => {
                    self.reached_station(number, station, from, frame);
                }
                Output::Garbled { station, from, frame, .. } => {
                    let marks = frame.marks.with(Marks::FCS_ERROR);
                    self.reached_station(number, station, from, Frame { marks, ..frame });
                }
            }
        }
    }

    /// A station had the medium for a frame, or an attempt at it that ended in a collision, until `at`, and the gap behind it.
    fn had_medium(&mut self, number: usize, station: usize, frame: &Frame, at: RunTime) {
        if !S::KEEPS_BYTES || frame.message().flow != FLOW_FOREIGN {
            return;
        }
        let place = &self.world.hubs[number].stations[station];
        let line = self.world.channels[place.channels[0]].line;
        let gap = line.occupation(frame.length) - line.transmission(frame.length);
        let time = at - place.began + gap;
        self.occupied_by(frame, time);
    }

    /// A frame has left its sender and stays on the medium for a while.
    fn fade(&mut self, number: usize, frame: Frame) {
        if !S::KEEPS_BYTES {
            return;
        }
        let now = self.now;
        self.world.hubs[number].fading.push_back((now + HEARD, frame));
        while let Some(&(until, frame)) = self.world.hubs[number].fading.front()
            && until <= now
        {
            self.world.hubs[number].fading.pop_front();
            self.release(&frame);
        }
    }

    fn port_of(&self, number: usize, station: usize) -> (u16, u16) {
        let station = &self.world.hubs[number].stations[station];
        let host = &self.world.hosts[station.host];
        (host.node, host.ports[station.host_port].number)
    }

    fn collided(&mut self, number: usize, station: usize, attempt: u8) {
        let (node, port) = self.port_of(number, station);
        let hub = &self.world.hubs[number];
        if let Some(frame) = hub.core.sending(station).copied() {
            self.reveal(TruthKind::Collision, &frame, node, port, i64::from(attempt));
        }
    }

    /// The last bit of a frame has left its station undisturbed.
    fn left_station(&mut self, number: usize, station: usize, frame: Frame) {
        let (node, port) = self.port_of(number, station);
        let channel = self.world.hubs[number].stations[station].channels[0];
        let began = self.now - self.world.channels[channel].line.transmission(frame.length);
        if !S::KEEPS_BYTES {
            self.note(&frame, node, port, Point::WireSend, began);
        }
        let faulty = self.world.channels[channel].extra.is_some();
        let effect = faulty.then(|| {
            self.capture(channel, 0, &frame, began);
            self.capture(channel, 1, &frame, self.now);
            self.effect(channel, frame)
        });
        self.world.hubs[number].stations[station].effect = effect;
    }

    /// The port of a host may go on.
    fn medium_free(&mut self, number: usize, station: usize) {
        let now = self.now;
        let place = &mut self.world.hubs[number].stations[station];
        let (host, port, transmission) = (place.host, place.host_port, place.transmission.take());
        if let Some(transmission) = transmission {
            self.world.hosts[host].core.handle_line_free(port, transmission, now);
            self.drain_host(host);
        }
    }

    /// The last bit of a frame has come to a station.
    fn reached_station(&mut self, number: usize, station: usize, from: usize, frame: Frame) {
        let hub = &self.world.hubs[number];
        let before = hub.stations[from].effect.unwrap_or(LinkEffect::of(frame));
        let place = &hub.stations[station];
        let (host, host_port, channel) = (place.host, place.host_port, place.channels[1]);
        if before.lost {
            return;
        }
        self.retain(&frame);
        let marks = frame.marks.with(before.frame.marks);
        let frame = Frame { marks, ..frame }.flagged(before.frame.message().flags);
        let watched = self.world.channels[channel].extra.is_some();
        if watched {
            self.capture(channel, 0, &frame, self.now);
        }
        let after = if watched { self.effect(channel, frame) } else { LinkEffect::of(frame) };
        if after.lost {
            self.release(&frame);
            return;
        }
        let by = before.by + after.by;
        let in_flight = InFlight { at: self.now, complete: self.now, frame: after.frame };
        let again = self.world.channels[channel].line.occupation(frame.length);
        if before.twice || after.twice {
            self.retain(&frame);
            self.hold_back(channel, in_flight, by + again);
        }
        if by > Span::ZERO {
            self.hold_back(channel, in_flight, by);
        } else {
            if watched {
                self.capture(channel, 1, &after.frame, self.now);
            }
            self.enter_host(host, host_port, &after.frame);
        }
    }
}
