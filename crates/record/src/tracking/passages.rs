//! Passages of frames through switches.
//!
//! A passage is the record of a frame entering a switch together with each record of it leaving, by whatever port.
//! A frame that enters a switch more than once in one direction (a link duplicated it) is paired in the order in which
//! it came and left each port. The warm-up is left out.

use std::collections::{HashMap, VecDeque};

use wg_frame::time::RunTime;

use super::sketch::Sketch;
use crate::schema::{Point, Record, RecordFlags};

/// Frames in a switch that are remembered of a flow, node and direction; a power of two.
const REMEMBERED: usize = 1 << 12;
/// Frames that entered a switch twice which are remembered of a flow.
const REPEATED: usize = 1 << 12;
/// Ports that fit the mask of a frame that entered once.
const MASKED_PORTS: u16 = 63;

/// One frame through one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Its flow.
    pub flow: u16,
    /// Its sequence number.
    pub sequence: u32,
    /// The switch, index into the plan's nodes.
    pub node: u16,
    /// The port it left by, from 1.
    pub port: u16,
    /// On the way back from a relay.
    pub returning: bool,
    /// When it came, last bit in or as the switch stamps it.
    pub came: RunTime,
    /// When it left.
    pub left: RunTime,
}

/// Where and in which direction.
type Place = (u16, bool);

/// The frames of one flow in the switches.
#[derive(Debug, Default)]
pub(super) struct Passing {
    switches: Vec<Switch>,
    repeated: HashMap<(Place, u32), Repeated>,
    oldest: VecDeque<(Place, u32)>,
    hops: Vec<((u16, u16), Sketch)>,
}

#[derive(Debug)]
struct Switch {
    place: Place,
    /// By sequence number modulo its length; doubles as needed.
    frames: Vec<Frame>,
}

/// A frame that entered the switch once.
#[derive(Clone, Copy, Debug)]
struct Frame {
    came: i64,
    /// Ports it left by.
    ports: u64,
    sequence: u32,
    is_known: bool,
    /// It entered again: see `repeated`.
    is_repeated: bool,
}

const NO_FRAME: Frame = Frame { came: 0, ports: 0, sequence: 0, is_known: false, is_repeated: false };

/// A frame that entered the switch more than once.
#[derive(Debug, Default)]
struct Repeated {
    came: Vec<i64>,
    /// How often it left by each port.
    left: HashMap<u16, usize>,
}

impl Passing {
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
        let time = record.time.as_picos();
        let frame = self.frame(place, record.sequence);
        let is_known = frame.is_known && frame.sequence == record.sequence;
        let came = match (enters, is_known) {
            (true, false) => {
                *frame = Frame { came: time, sequence: record.sequence, is_known: true, ..NO_FRAME };
                return None;
            }
            (true, true) => {
                self.repeat(place, record.sequence, time);
                return None;
            }
            (false, false) => return None,
            (false, true) if frame.is_repeated => self.pair(place, record)?,
            (false, true) => {
                let port = 1 << record.port.min(MASKED_PORTS);
                if frame.ports & port != 0 {
                    return None;
                }
                frame.ports |= port;
                frame.came
            }
        };
        let hop = (record.node, record.port);
        let sketch = match self.hops.iter_mut().find(|(at, _)| *at == hop) {
            Some((_, sketch)) => sketch,
            None => {
                self.hops.push((hop, Sketch::default()));
                &mut self.hops.last_mut()?.1
            }
        };
        sketch.add(time.saturating_sub(came));
        Some(Passage {
            flow: record.flow,
            sequence: record.sequence,
            node: record.node,
            port: record.port,
            returning,
            came: RunTime::from_picos(came),
            left: record.time,
        })
    }

    /// Residence times by switch and output port.
    pub(super) fn into_hops(mut self) -> Vec<((u16, u16), Sketch)> {
        self.hops.sort_by_key(|(at, _)| *at);
        self.hops
    }

    #[inline]
    fn frame(&mut self, place: Place, sequence: u32) -> &mut Frame {
        let at = match self.switches.iter().position(|switch| switch.place == place) {
            Some(at) => at,
            None => {
                self.switches.push(Switch { place, frames: vec![NO_FRAME; 1] });
                self.switches.len() - 1
            }
        };
        self.switches[at].frame(sequence)
    }

    #[cold]
    fn repeat(&mut self, place: Place, sequence: u32, time: i64) {
        let frame = self.frame(place, sequence);
        let (came, ports) = (frame.came, frame.ports);
        let is_first = !std::mem::replace(&mut frame.is_repeated, true);
        let entry = self.repeated.entry((place, sequence)).or_default();
        if is_first {
            entry.came = vec![came];
            entry.left =
                (0..=MASKED_PORTS).filter(|port| ports >> port & 1 == 1).map(|port| (port, 1)).collect();
            self.oldest.push_back((place, sequence));
        }
        entry.came.push(time);
        if self.oldest.len() > REPEATED
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.repeated.remove(&oldest);
        }
    }

    #[cold]
    fn pair(&mut self, place: Place, record: &Record) -> Option<i64> {
        let entry = self.repeated.get_mut(&(place, record.sequence))?;
        let before = entry.left.entry(record.port.min(MASKED_PORTS)).or_default();
        let came = entry.came.get(*before).copied();
        *before += 1;
        came
    }
}

impl Switch {
    /// The place of `sequence`, which another frame may still hold; grows while frames that are younger would be lost.
    #[inline]
    fn frame(&mut self, sequence: u32) -> &mut Frame {
        let mut slot = sequence as usize & (self.frames.len() - 1);
        while self.frames.len() < REMEMBERED
            && self.frames[slot].is_known
            && self.frames[slot].sequence != sequence
        {
            self.grow();
            slot = sequence as usize & (self.frames.len() - 1);
        }
        &mut self.frames[slot]
    }

    #[cold]
    fn grow(&mut self) {
        let size = self.frames.len() * 4;
        let mut frames = vec![NO_FRAME; size];
        for frame in self.frames.iter().filter(|frame| frame.is_known) {
            frames[frame.sequence as usize & (size - 1)] = *frame;
        }
        self.frames = frames;
    }
}
