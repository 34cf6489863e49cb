//! A half-duplex hub at 10 or 100 Mbit/s: stations that share one medium by CSMA/CD (IEEE 802.3-2022, clause 4).
//!
//! Stations hang on a repeating hub in a star. A signal that station i sends is present at station j from
//! i's delay + the hub's + j's delay after its first bit until as long after its last. Each station senses
//! only what is present at its own place, which is why collisions exist.
//!
//! What follows clause 4, by name: deference and the two-part interframe gap (4.2.3.2.1 and 4.2.3.2.2: carrier
//! restarts the gap in its first 64 bit times and is ignored in the last 32), collision enforcement by a 32-bit
//! jam after at least the preamble (4.2.3.2.4), truncated binary exponential backoff (4.2.3.2.5: after the nth
//! collision an integer 0 ≤ r < 2^min(n,10) of 512-bit slots) and 16 attempts at most. The parameters are those
//! of 4.4.2 for 10 and 100 Mbit/s.
//!
//! Where it departs: a late collision (more than 512 bit times after the transmission began) drops the frame.
//! The standard's procedure tries again at these rates and counts it; controllers give up (Cirrus CS89712 data
//! sheet, collision resolution), and users see them. The hub repeats bits with a constant delay; it neither
//! jams nor partitions a port by itself, so the collision domain is the signals' overlap and nothing else.
//!
//! # Time and call order
//! Effects carry their own instants. Events at one instant are handled in this order: transmissions end,
//! signals end, backoffs end, gaps end, frames are handed in, signals begin. So two stations that begin at
//! the same instant collide, and a signal that begins as another ends does not meet it. A late call handles
//! everything due in order of time, each at its own instant; but a backoff drawn late ends no earlier than it
//! was answered. An earlier call than one before counts as made at the later instant. Poll until empty after
//! each call and answer every [`Output::DrawBackoff`]: until then its station is silent.

mod medium;
mod station;
#[cfg(test)]
mod tests;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use wg_frame::time::{RunTime, Span};

use crate::Deadline;
use crate::line::SMALLEST_FRAME;
pub use medium::{
    ATTEMPT_LIMIT, BACKOFF_LIMIT, BackoffError, GAP_BITS, GAP_PART1_BITS, HubDrop, HubError, HubRefusal,
    JAM_BITS, MAX_STATIONS, Output, PREAMBLE_BITS, Rate, SLOT_BITS, StationPlan,
};
use station::{Deference, Outgoing, Sending, Signal, Station, Transmitter};

/// Events without an input. The order of variants is their order at one instant; see the head of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    SendingEnds { station: usize, transmission: u64 },
    SignalEnds { station: usize, from: usize, transmission: u64 },
    BackoffEnds { station: usize },
    GapEnds { station: usize },
    HandedIn,
    SignalBegins { station: usize, from: usize, transmission: u64 },
}

/// A hub and its stations. `F` is whatever the driver calls a frame; each receiver gets a clone.
///
/// Memory: each station's queue, and per station and other station the few signals that are on the cable at
/// once, at most four, since delays are at most 1024 bit times and a signal with its gap lasts at least 192.
#[derive(Clone, Debug)]
pub struct Hub<F> {
    rate: Rate,
    hub_delay: Span,
    stations: Vec<Station<F>>,
    /// Transmissions that ended and are still on their way, oldest first.
    under_way: VecDeque<UnderWay<F>>,
    events: BTreeSet<(RunTime, Event)>,
    outputs: VecDeque<Output<F>>,
    now: RunTime,
    transmissions: u64,
}

/// A transmission that has not ended at all stations yet.
#[derive(Clone, Debug)]
struct UnderWay<F> {
    transmission: u64,
    /// The frame, if it was sent whole.
    frame: Option<F>,
    ends_left: usize,
}

impl<F: Clone> Hub<F> {
    /// A quiet hub with `hub_delay` between any two cables.
    ///
    /// # Errors
    /// [`HubError`].
    pub fn new(rate: Rate, hub_delay: Span, plans: &[StationPlan]) -> Result<Self, HubError> {
        if plans.is_empty() || plans.len() > MAX_STATIONS {
            return Err(HubError::Stations(plans.len()));
        }
        let limit = rate.bits(2 * SLOT_BITS);
        let mut delays = plans.iter().map(|plan| plan.delay).chain([hub_delay]);
        if let Some(delay) = delays.find(|delay| *delay < Span::ZERO || *delay > limit) {
            return Err(HubError::Delay(delay, limit));
        }
        Ok(Self {
            rate,
            hub_delay,
            stations: plans.iter().map(Station::new).collect(),
            under_way: VecDeque::new(),
            events: BTreeSet::new(),
            outputs: VecDeque::new(),
            now: RunTime::from_picos(i64::MIN),
            transmissions: 0,
        })
    }

    /// Whether every collision reaches every sender within its 512 bit times: twice the longest path does not
    /// exceed the slot. Only then is a frame sent also a frame received.
    pub fn holds_collision_window(&self) -> bool {
        let count = self.stations.len();
        let pairs = (0..count).flat_map(|i| (0..i).map(move |j| (i, j)));
        let longest = pairs.map(|(i, j)| self.path(i, j)).max().unwrap_or(Span::ZERO);
        longest + longest <= self.rate.bits(SLOT_BITS)
    }

    /// Hands a frame of `frame_len` bytes (DA to FCS; shorter ones are padded to 64) to a station.
    ///
    /// # Errors
    /// [`HubRefusal`] hands it back.
    pub fn handle_frame(
        &mut self,
        now: RunTime,
        station: usize,
        frame_len: u16,
        frame: F,
    ) -> Result<(), HubRefusal<F>> {
        self.advance(now, Event::HandedIn);
        let Some(place) = self.stations.get_mut(station) else {
            return Err(HubRefusal::NoSuchStation(frame));
        };
        if place.queue.len() >= place.capacity {
            return Err(HubRefusal::QueueFull(frame));
        }
        let bytes = i64::from(frame_len.max(SMALLEST_FRAME));
        let duration = self.rate.bits(PREAMBLE_BITS + 8 * bytes);
        place.queue.push_back(Outgoing { frame, duration });
        if place.transmitter == Transmitter::Idle {
            place.transmitter = Transmitter::Ready;
            self.start_if_allowed(station);
        }
        Ok(())
    }

    /// Answers a [`Output::DrawBackoff`] with `slots`.
    ///
    /// # Errors
    /// [`BackoffError`]; nothing has changed but the time.
    pub fn handle_backoff(&mut self, now: RunTime, station: usize, slots: u16) -> Result<(), BackoffError> {
        self.advance(now, Event::HandedIn);
        let now = self.now;
        let asked = self.stations.get_mut(station).ok_or(BackoffError::NotAsked(station))?;
        let Transmitter::AwaitingDraw { since, limit } = asked.transmitter else {
            return Err(BackoffError::NotAsked(station));
        };
        if slots >= limit {
            return Err(BackoffError::OutOfRange { slots, limit });
        }
        let until = (since + self.rate.bits(i64::from(slots) * SLOT_BITS)).max(now);
        asked.transmitter = Transmitter::BackingOff { until };
        self.events.insert((until, Event::BackoffEnds { station }));
        Ok(())
    }

    /// Time has come to `now`: everything due up to and including it happens.
    pub fn handle_deadline(&mut self, now: RunTime) {
        let last = Event::SignalBegins { station: usize::MAX, from: usize::MAX, transmission: u64::MAX };
        self.advance(now, last);
    }

    /// The frame a station is sending, or trying to send.
    pub fn sending(&self, station: usize) -> Option<&F> {
        self.stations.get(station)?.queue.front().map(|outgoing| &outgoing.frame)
    }

    /// The next effect, in order of time.
    pub fn poll_output(&mut self) -> Option<Output<F>> {
        self.outputs.pop_front()
    }

    /// Instant of the next event without an input.
    pub fn next_deadline(&self) -> Deadline {
        self.events.first().map(|(at, _)| *at).into()
    }

    fn path(&self, from: usize, to: usize) -> Span {
        self.stations[from].delay + self.hub_delay + self.stations[to].delay
    }

    /// Handles all events before (`now`, `bound`).
    fn advance(&mut self, now: RunTime, bound: Event) {
        let end = (now.max(self.now), bound);
        while self.events.first().is_some_and(|first| *first < end) {
            if let Some((at, event)) = self.events.pop_first() {
                self.now = at;
                self.happen(event);
            }
        }
        self.now = end.0;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::SendingEnds { station, transmission } => self.sending_ends(station, transmission),
            Event::SignalEnds { station, from, transmission } => {
                self.signal_ends(station, from, transmission)
            }
            Event::BackoffEnds { station } => {
                let place = &mut self.stations[station];
                if place.transmitter == (Transmitter::BackingOff { until: self.now }) {
                    place.transmitter = Transmitter::Ready;
                    self.start_if_allowed(station);
                }
            }
            Event::GapEnds { station } => {
                if self.stations[station].gap_ends(self.now) {
                    self.start(station);
                }
            }
            Event::HandedIn => {}
            Event::SignalBegins { station, from, transmission } => {
                self.stations[station].hear(self.now, self.rate, Signal { from, transmission, clean: true });
                self.collide_if_sending(station);
            }
        }
    }

    fn start_if_allowed(&mut self, station: usize) {
        if self.stations[station].deference == Deference::Quiet {
            self.start(station);
        }
    }

    fn start(&mut self, station: usize) {
        let now = self.now;
        self.transmissions += 1;
        let transmission = self.transmissions;
        let place = &mut self.stations[station];
        let Some(head) = place.queue.front() else { return };
        let ends = now + head.duration;
        place.attempts += 1;
        let sending = Sending { transmission, began: now, ends, collision: None };
        place.transmitter = Transmitter::Sending(sending);
        place.deference = Deference::Busy { was_transmitting: true };
        self.outputs.push_back(Output::Started { station, at: now, attempt: place.attempts });
        self.events.insert((ends, Event::SendingEnds { station, transmission }));
        for other in (0..self.stations.len()).filter(|other| *other != station) {
            let arrives = now + self.path(station, other);
            let begins = Event::SignalBegins { station: other, from: station, transmission };
            self.events.insert((arrives, begins));
        }
        if !self.stations[station].present.is_empty() {
            self.collide_if_sending(station);
        }
    }

    /// Another station's signal arrives: makes a transmission of this station, if any, a collision.
    fn collide_if_sending(&mut self, station: usize) {
        let (now, rate) = (self.now, self.rate);
        let place = &mut self.stations[station];
        let Transmitter::Sending(sending) = &mut place.transmitter else { return };
        for signal in &mut place.present {
            signal.clean = false;
        }
        if sending.collision.is_some() {
            return;
        }
        let late = now - sending.began > rate.bits(SLOT_BITS);
        // 4.2.3.2.4: the preamble is completed before the jam.
        sending.ends = now.max(sending.began + rate.bits(PREAMBLE_BITS)) + rate.bits(JAM_BITS);
        sending.collision = Some(late);
        let ends = Event::SendingEnds { station, transmission: sending.transmission };
        self.events.insert((sending.ends, ends));
        self.outputs.push_back(Output::Collided { station, at: now, attempt: place.attempts, late });
    }

    fn sending_ends(&mut self, station: usize, transmission: u64) {
        let now = self.now;
        let Transmitter::Sending(sending) = self.stations[station].transmitter else { return };
        // A collided transmission has two scheduled ends; the original one no longer counts.
        if sending.transmission != transmission || sending.ends != now {
            return;
        }
        let others = self.stations.len() - 1;
        for other in (0..self.stations.len()).filter(|other| *other != station) {
            let arrives = now + self.path(station, other);
            let ends = Event::SignalEnds { station: other, from: station, transmission };
            self.events.insert((arrives, ends));
        }
        let place = &mut self.stations[station];
        let outcome = place.end_transmission(station, now, sending.collision);
        let gap = place.silence(now, self.rate);
        let frame = match &outcome {
            Output::Sent { frame, .. } => Some(frame.clone()),
            _ => None,
        };
        if others > 0 {
            self.under_way.push_back(UnderWay { transmission, frame, ends_left: others });
        }
        self.outputs.push_back(outcome);
        self.schedule_gap(station, gap);
    }

    fn signal_ends(&mut self, station: usize, from: usize, transmission: u64) {
        let now = self.now;
        let place = &mut self.stations[station];
        let clean = place.unhear(transmission);
        let gap = place.silence(now, self.rate);
        self.schedule_gap(station, gap);
        let Some(at) = self.under_way.iter().position(|past| past.transmission == transmission) else {
            return;
        };
        let past = &mut self.under_way[at];
        past.ends_left -= 1;
        let frame = if past.ends_left == 0 {
            self.under_way.remove(at).and_then(|past| past.frame)
        } else {
            past.frame.clone()
        };
        if let Some(frame) = frame {
            self.outputs.push_back(if clean {
                Output::Received { station, from, at: now, frame }
            } else {
                Output::Garbled { station, from, at: now, frame }
            });
        }
    }

    fn schedule_gap(&mut self, station: usize, gap: Option<RunTime>) {
        if let Some(ends) = gap {
            self.events.insert((ends, Event::GapEnds { station }));
        }
    }
}
