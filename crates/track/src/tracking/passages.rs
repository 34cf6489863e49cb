//! Passages of frames through switches.
//!
//! A passage is a frame's record of entering a switch together with each record of leaving it, by any port. The entries
//! and departures of a frame that enters a switch more than once in one direction (duplicated by a link) are paired in
//! order, for each port. The warm-up is excluded. A departure without a remembered arrival is counted: it has no
//! residence time.

use std::collections::{HashMap, VecDeque};

use wg_frame::time::RunTime;

use wg_record::Sketch;
use wg_record::{Point, Record, RecordFlags};

/// Least and greatest number of frames remembered for a flow, switch and direction; powers of two.
const REMEMBERED: [usize; 2] = [1 << 6, 1 << 12];
/// Number of remembered frames of a flow that entered a switch twice, or were displaced while they were in it.
const REPEATED: usize = 1 << 12;

/// The passage of one frame through one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Its flow.
    pub flow: u16,
    /// Its sequence number.
    pub sequence: u32,
    /// Index of the switch in the plan.
    pub node: u16,
    /// Egress port, from 1.
    pub port: u16,
    /// Whether it is on the way back from a relay.
    pub returning: bool,
    /// Time of arrival, of the last bit or as the switch timestamps it.
    pub came: RunTime,
    /// Time of departure.
    pub left: RunTime,
}

/// Switch and direction.
type Place = (u16, bool);

/// The frames of one flow in the switches.
#[derive(Debug)]
pub(super) struct Passing {
    flow: u16,
    /// Number of frames remembered for a switch and direction.
    remembered: usize,
    switches: Vec<Switch>,
    repeated: HashMap<(Place, u32), Repeated>,
    oldest: VecDeque<(Place, u32)>,
    hops: Vec<((u16, u16), Sketch)>,
    /// Number of departures without a remembered arrival, from switches that have seen arrivals of the flow.
    unpaired: u64,
}

#[derive(Debug)]
struct Switch {
    place: Place,
    /// Frames by sequence number modulo the length; grows as needed.
    frames: Vec<Frame>,
    /// Egress ports of frames, in the order of first use; one for most flows.
    ports: Vec<u16>,
    /// For each frame `words` words, with a bit for each entry of `ports` by which it left.
    left: Vec<u64>,
    words: usize,
    /// Whether any frame was seen to enter; captures may have tapped the far side only.
    has_entered: bool,
}

/// A frame that entered the switch once.
#[derive(Clone, Copy, Debug)]
struct Frame {
    came: i64,
    sequence: u32,
    is_known: bool,
    /// Whether it entered again: see `repeated`.
    is_repeated: bool,
}

const NO_FRAME: Frame = Frame { came: 0, sequence: 0, is_known: false, is_repeated: false };

/// A frame that entered the switch more than once, or was displaced.
#[derive(Debug, Default)]
struct Repeated {
    came: Vec<i64>,
    /// Number of departures by each port.
    left: HashMap<u16, usize>,
}

impl Passing {
    /// Passages of flow `flow`, with `remembered` frames for each switch and direction, within limits.
    pub(super) fn new(flow: u16, remembered: usize) -> Self {
        let [least, most] = REMEMBERED;
        let remembered = remembered.clamp(least, most).next_power_of_two();
        let (switches, hops) = (Vec::new(), Vec::new());
        Self {
            flow,
            remembered,
            switches,
            repeated: HashMap::new(),
            oldest: VecDeque::new(),
            hops,
            unpaired: 0,
        }
    }

    /// Takes a record; returns the passage that it ends.
    #[inline]
    pub(super) fn observe(&mut self, record: &Record) -> Option<Passage> {
        let enters = match record.point {
            Point::SwitchIn => true,
            Point::SwitchOut => false,
            _ => return None,
        };
        if record.flags.has(RecordFlags::WARM_UP) {
            return None;
        }
        let returning = record.flags.has(RecordFlags::RETURN);
        let place = (record.node, returning);
        if enters {
            self.enter(place, record);
            return None;
        }
        let came = self.came(place, record)?;
        let hop = (record.node, record.port);
        let sketch = match self.hops.iter_mut().find(|(at, _)| *at == hop) {
            Some((_, sketch)) => sketch,
            None => {
                self.hops.push((hop, Sketch::default()));
                &mut self.hops.last_mut()?.1
            }
        };
        sketch.add(record.time.as_picos().saturating_sub(came));
        Some(Passage {
            flow: self.flow,
            sequence: record.sequence,
            node: record.node,
            port: record.port,
            returning,
            came: RunTime::from_picos(came),
            left: record.time,
        })
    }

    /// A frame enters a switch.
    #[inline]
    fn enter(&mut self, place: Place, record: &Record) {
        let time = record.time.as_picos();
        let is_aside = self.is_aside(place, record.sequence);
        let (switch, slot) = self.slot(place, record.sequence);
        let frame = switch.frames[slot];
        if frame.is_known && frame.sequence == record.sequence {
            self.repeat(place, record.sequence, time);
        } else if is_aside {
            self.put_aside(place, Frame { came: time, sequence: record.sequence, ..NO_FRAME });
        } else {
            let entering = Frame { came: time, sequence: record.sequence, is_known: true, ..NO_FRAME };
            let is_waiting = frame.is_known && !frame.is_repeated && switch.left_by(slot).next().is_none();
            switch.enter(slot, entering);
            if is_waiting {
                self.put_aside(place, frame);
            }
        }
    }

    /// Time at which a leaving frame entered; `None` if that is not remembered, which is counted unless no frame was
    /// ever seen to enter.
    #[inline]
    fn came(&mut self, place: Place, record: &Record) -> Option<i64> {
        let (switch, slot) = self.slot(place, record.sequence);
        let frame = switch.frames[slot];
        let has_entered = switch.has_entered;
        let is_known = frame.is_known && frame.sequence == record.sequence;
        if is_known && !frame.is_repeated {
            return if switch.leave(slot, record.port) { Some(frame.came) } else { self.unpaired() };
        }
        match self.pair(place, record) {
            Some(came) => Some(came),
            None if is_known || has_entered => self.unpaired(),
            None => None,
        }
    }

    #[cold]
    fn unpaired<T>(&mut self) -> Option<T> {
        self.unpaired += 1;
        None
    }

    /// Number of the flow.
    pub(super) fn flow(&self) -> u16 {
        self.flow
    }

    pub(super) fn unpaired_departures(&self) -> u64 {
        self.unpaired
    }

    /// Residence times by switch and output port.
    pub(super) fn into_hops(mut self) -> Vec<((u16, u16), Sketch)> {
        self.hops.sort_by_key(|(at, _)| *at);
        self.hops
    }

    #[inline]
    fn slot(&mut self, place: Place, sequence: u32) -> (&mut Switch, usize) {
        let at = match self.switches.iter().position(|switch| switch.place == place) {
            Some(at) => at,
            None => {
                let (frames, ports, left) = (vec![NO_FRAME; 1], Vec::new(), vec![0; 1]);
                self.switches.push(Switch { place, frames, ports, left, words: 1, has_entered: false });
                self.switches.len() - 1
            }
        };
        let switch = &mut self.switches[at];
        let slot = switch.slot(sequence, self.remembered);
        (switch, slot)
    }

    #[cold]
    fn repeat(&mut self, place: Place, sequence: u32, time: i64) {
        let (switch, slot) = self.slot(place, sequence);
        let left = switch.left_by(slot).map(|port| (port, 1)).collect();
        let frame = &mut switch.frames[slot];
        let came = frame.came;
        let is_first = !std::mem::replace(&mut frame.is_repeated, true);
        let entry = self.repeated.entry((place, sequence)).or_default();
        if is_first {
            (entry.came, entry.left) = (vec![came], left);
            self.oldest.push_back((place, sequence));
        }
        entry.came.push(time);
        self.forget_oldest();
    }

    #[inline]
    fn is_aside(&self, place: Place, sequence: u32) -> bool {
        !self.repeated.is_empty() && self.repeated.contains_key(&(place, sequence))
    }

    /// Stores a frame that is displaced while still in the switch: distant numbers may share a slot.
    #[cold]
    fn put_aside(&mut self, place: Place, frame: Frame) {
        let entry = self.repeated.entry((place, frame.sequence)).or_default();
        if entry.came.is_empty() {
            self.oldest.push_back((place, frame.sequence));
        }
        entry.came.push(frame.came);
        self.forget_oldest();
    }

    fn forget_oldest(&mut self) {
        if self.oldest.len() > REPEATED
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.repeated.remove(&oldest);
        }
    }

    #[cold]
    fn pair(&mut self, place: Place, record: &Record) -> Option<i64> {
        let entry = self.repeated.get_mut(&(place, record.sequence))?;
        let before = entry.left.entry(record.port).or_default();
        let came = entry.came.get(*before).copied();
        *before += 1;
        came
    }
}

impl Switch {
    /// Slot of `sequence`, which another frame may occupy. The table grows to `most` for frames that have left by some
    /// port, and further for those still in the switch: they wait longest, and none may be lost.
    #[inline]
    fn slot(&mut self, sequence: u32, most: usize) -> usize {
        let [_, waiting] = REMEMBERED;
        let mut slot = sequence as usize & (self.frames.len() - 1);
        while self.frames.len() < waiting
            && self.frames[slot].is_known
            && self.frames[slot].sequence != sequence
            && (self.frames.len() < most || self.left_by(slot).next().is_none())
        {
            self.grow();
            slot = sequence as usize & (self.frames.len() - 1);
        }
        slot
    }

    #[cold]
    fn grow(&mut self) {
        let (size, words) = (self.frames.len() * 4, self.words);
        let (mut frames, mut left) = (vec![NO_FRAME; size], vec![0; size * words]);
        for (frame, ports) in
            self.frames.iter().zip(self.left.chunks(words)).filter(|(frame, _)| frame.is_known)
        {
            let slot = frame.sequence as usize & (size - 1);
            frames[slot] = *frame;
            left[slot * words..][..words].copy_from_slice(ports);
        }
        (self.frames, self.left) = (frames, left);
    }

    #[inline]
    fn enter(&mut self, slot: usize, frame: Frame) {
        self.has_entered = true;
        self.frames[slot] = frame;
        self.left[slot * self.words..][..self.words].fill(0);
    }

    /// Notes that the frame leaves by `port`; returns whether for the first time.
    #[inline]
    fn leave(&mut self, slot: usize, port: u16) -> bool {
        let at = match self.ports.iter().position(|other| *other == port) {
            Some(at) => at,
            None => self.add_port(port),
        };
        let word = slot * self.words + at / 64;
        let bit = 1 << (at % 64);
        let is_first = self.left[word] & bit == 0;
        self.left[word] |= bit;
        is_first
    }

    #[cold]
    fn add_port(&mut self, port: u16) -> usize {
        self.ports.push(port);
        if self.ports.len() > 64 * self.words {
            let wider = self.left.chunks(self.words).flat_map(|own| own.iter().copied().chain([0]));
            self.left = wider.collect();
            self.words += 1;
        }
        self.ports.len() - 1
    }

    /// The ports by which a frame left.
    fn left_by(&self, slot: usize) -> impl Iterator<Item = u16> {
        let own = &self.left[slot * self.words..][..self.words];
        let ports = self.ports.iter().enumerate();
        ports.filter(|(at, _)| own[at / 64] >> (at % 64) & 1 == 1).map(|(_, port)| *port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wg_record::{Clock, Crc, DropReason};

    /// However few frames are remembered for each flow, a burst that waits in a switch is not forgotten.
    #[test]
    fn frames_that_wait_in_a_switch_are_remembered_however_many_flows_there_are() {
        let mut passing = Passing::new(1, 1);
        let at = |point, sequence: u32, ns: i64| Record {
            flow: 1,
            sequence,
            node: 3,
            port: 2,
            point,
            time: RunTime::from_picos(1_000 * ns),
            length: 64,
            clock: Clock::Local,
            crc: Crc::Ok,
            reason: DropReason::None,
            flags: RecordFlags::from_bits(0),
        };
        for burst in 0..3 {
            let numbers = || (0..1_000_u32).map(move |k| 1_000 * burst + k);
            for k in numbers() {
                assert!(passing.observe(&at(Point::SwitchIn, k, i64::from(k))).is_none());
            }
            let left =
                numbers().filter_map(|k| passing.observe(&at(Point::SwitchOut, k, 5_000 + i64::from(k))));
            assert_eq!(left.count(), 1_000);
        }
        assert_eq!(passing.unpaired_departures(), 0);
    }

    /// With more frames than are remembered for a switch, those without a residence time are counted, each once; if
    /// arrivals are not recorded at all, no departure counts as unpaired.
    #[test]
    fn departures_whose_arrival_is_forgotten_are_counted() {
        let mut passing = Passing::new(1, 1);
        let at = |point, sequence: u32| Record {
            flow: 1,
            sequence,
            node: 3,
            port: 2,
            point,
            time: RunTime::from_picos(0),
            length: 64,
            clock: Clock::Local,
            crc: Crc::Ok,
            reason: DropReason::None,
            flags: RecordFlags::from_bits(0),
        };
        let [_, most] = REMEMBERED;
        let burst = 3 * most as u32;
        for sequence in 0..burst {
            passing.observe(&at(Point::SwitchIn, sequence));
        }
        let paired = (0..burst).filter_map(|k| passing.observe(&at(Point::SwitchOut, k))).count();
        assert_eq!(passing.unpaired_departures() + paired as u64, u64::from(burst));
        assert_eq!(paired, most + REPEATED);
        let mut unseen = Passing::new(1, 1);
        assert!((0..5).all(|k| unseen.observe(&at(Point::SwitchOut, k)).is_none()));
        assert_eq!(unseen.unpaired_departures(), 0);
    }
}
