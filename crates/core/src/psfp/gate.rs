//! Stream gates: when frames of a stream pass, with which internal priority, and how many octets at most
//! (IEEE Std 802.1Q-2022, 8.6.5.4 and 8.6.10).
//!
//! Times are the device's local time. The list repeats; whole cycles before its base time are as those after it.

use alloc::vec::Vec;

use wg_frame::time::Span;

use crate::clock::LocalTime;

/// An entry of a stream gate control list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamGateEntry {
    /// Whether frames pass.
    pub open: bool,
    /// Internal priority value (IPV): the priority a frame is queued by in this device; `None`: its own.
    pub priority: Option<u8>,
    /// Duration of the entry.
    pub length: Span,
    /// Most octets of service data units that pass in it (`IntervalOctetMax`); `None`: any number.
    pub max_octets: Option<u32>,
}

/// Configuration of a stream gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamGateConfig {
    /// Base time: the beginning of a cycle.
    pub base: LocalTime,
    /// Entries of the list; the cycle time is the sum of their lengths.
    pub entries: Vec<StreamGateEntry>,
    /// Whether a frame that arrives while the gate is closed closes it for good (`GateClosedDueToInvalidRxEnable`).
    pub close_on_invalid: bool,
    /// Whether a frame beyond `max_octets` closes it for good (`GateClosedDueToOctetsExceededEnable`).
    pub close_on_octets: bool,
}

/// An invalid stream gate control list: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamGateError {
    /// A list without entries.
    #[error("a stream gate has no entry, or one without length; give each entry a positive length")]
    Empty,
    /// A list longer than the range of times.
    #[error("the list of a stream gate lasts longer than 106 days; shorten it")]
    TooLong,
}

/// Decision of a stream gate about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// The frame passes, with this internal priority value.
    Pass(Option<u8>),
    /// The gate is closed, now or for good.
    Closed,
    /// The octets of the interval are used up.
    OctetsExceeded,
}

/// A stream gate with its state.
#[derive(Clone, Debug)]
pub struct StreamGate {
    config: StreamGateConfig,
    /// Beginning of each entry, relative to that of the cycle.
    begins: Vec<i64>,
    cycle: i64,
    /// Beginning of the interval of the last frame.
    interval: Option<i64>,
    /// Octets passed in that interval.
    used: u64,
    /// Whether the gate is closed for good.
    closed: bool,
}

impl StreamGate {
    /// A gate in its initial state.
    ///
    /// # Errors
    /// [`StreamGateError`] for an invalid list.
    pub fn new(config: StreamGateConfig) -> Result<Self, StreamGateError> {
        let (mut cycle, mut begins) = (0_i64, Vec::with_capacity(config.entries.len()));
        for entry in &config.entries {
            if entry.length <= Span::ZERO {
                return Err(StreamGateError::Empty);
            }
            begins.push(cycle);
            cycle = cycle.checked_add(entry.length.as_picos()).ok_or(StreamGateError::TooLong)?;
        }
        if cycle == 0 {
            return Err(StreamGateError::Empty);
        }
        Ok(Self { config, begins, cycle, interval: None, used: 0, closed: false })
    }

    /// Judges a frame whose last bit came at `now`, with `octets` of service data unit.
    pub fn handle_frame(&mut self, now: LocalTime, octets: u16) -> Passage {
        if self.closed {
            return Passage::Closed;
        }
        let now = now.as_picos();
        let into = now.saturating_sub(self.config.base.as_picos()).rem_euclid(self.cycle);
        let at = self.begins.partition_point(|begins| *begins <= into).max(1) - 1;
        let entry = self.config.entries[at];
        if !entry.open {
            self.closed = self.config.close_on_invalid;
            return Passage::Closed;
        }
        let Some(most) = entry.max_octets else { return Passage::Pass(entry.priority) };
        let interval = Some(now - into + self.begins[at]);
        if self.interval != interval {
            (self.interval, self.used) = (interval, 0);
        }
        if self.used + u64::from(octets) > u64::from(most) {
            self.closed = self.config.close_on_octets;
            return Passage::OctetsExceeded;
        }
        self.used += u64::from(octets);
        Passage::Pass(entry.priority)
    }

    /// The device restarts: the gate follows its list again.
    pub const fn handle_restart(&mut self) {
        (self.interval, self.used, self.closed) = (None, 0, false);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    fn at(picos: i64) -> LocalTime {
        LocalTime::ZERO + Span::from_picos(picos)
    }

    const fn entry(
        open: bool,
        priority: Option<u8>,
        length: i64,
        max_octets: Option<u32>,
    ) -> StreamGateEntry {
        StreamGateEntry { open, priority, length: Span::from_picos(length), max_octets }
    }

    #[test]
    fn a_gate_passes_while_it_is_open_and_counts_octets_anew_in_each_interval() {
        let entries = vec![entry(true, Some(6), 10, Some(100)), entry(false, None, 20, None)];
        let config = StreamGateConfig { base: at(5), entries, ..StreamGateConfig::default() };
        let mut gate = StreamGate::new(config.clone()).unwrap();
        let mut judge = |now, octets| gate.handle_frame(at(now), octets);
        assert_eq!(judge(4, 46), Passage::Closed);
        assert_eq!(judge(5, 100), Passage::Pass(Some(6)));
        assert_eq!(judge(14, 1), Passage::OctetsExceeded);
        assert_eq!(judge(15, 1), Passage::Closed);
        assert_eq!(
            (judge(35, 60), judge(36, 41), judge(37, 40)),
            (Passage::Pass(Some(6)), Passage::OctetsExceeded, Passage::Pass(Some(6)))
        );
        // Closed for good by a frame that came at the wrong time, until the device restarts.
        let mut gate =
            StreamGate::new(StreamGateConfig { close_on_invalid: true, ..config.clone() }).unwrap();
        assert_eq!(gate.handle_frame(at(5), 46), Passage::Pass(Some(6)));
        assert_eq!(gate.handle_frame(at(15), 46), Passage::Closed);
        assert_eq!(gate.handle_frame(at(35), 46), Passage::Closed);
        gate.handle_restart();
        assert_eq!(gate.handle_frame(at(35), 46), Passage::Pass(Some(6)));
        let mut gate = StreamGate::new(StreamGateConfig { close_on_octets: true, ..config }).unwrap();
        assert_eq!(gate.handle_frame(at(5), 101), Passage::OctetsExceeded);
        assert_eq!(gate.handle_frame(at(35), 46), Passage::Closed);
    }

    #[test]
    fn lists_that_cannot_be_followed_are_refused() {
        let gate = |entries| StreamGate::new(StreamGateConfig { entries, ..StreamGateConfig::default() });
        assert_eq!(gate(vec![]).unwrap_err(), StreamGateError::Empty);
        assert_eq!(gate(vec![entry(true, None, 0, None)]).unwrap_err(), StreamGateError::Empty);
        let long = entry(true, None, i64::MAX - 1, None);
        assert_eq!(gate(vec![long, long]).unwrap_err(), StreamGateError::TooLong);
    }

    proptest! {
        /// Against a table of every instant: which entry holds there, and which turn of it it is.
        #[test]
        fn a_gate_is_as_the_table_of_instants_has_it(
            entries in prop::collection::vec(
                (any::<bool>(), prop::option::of(0_u8..8), 1_i64..7, prop::option::of(0_u32..300)), 1..6),
            base in -20_i64..20,
            closing in (any::<bool>(), any::<bool>()),
            frames in prop::collection::vec((0_i64..9, 46_u16..200), 1..60),
        ) {
            let entries: Vec<StreamGateEntry> =
                entries.into_iter().map(|(open, priority, length, most)| entry(open, priority, length, most)).collect();
            // Instants -200 to 800, each with its entry and turn, walked from far before the base.
            let cycle: i64 = entries.iter().map(|entry| entry.length.as_picos()).sum();
            let mut table = vec![];
            let (mut begins, mut turn) = (base - 300 * cycle, 0_u32);
            while begins < 800 {
                for (number, entry) in entries.iter().enumerate() {
                    for _ in 0..entry.length.as_picos() {
                        table.push((begins, number, turn));
                        begins += 1;
                    }
                    turn += 1;
                }
            }
            let config = StreamGateConfig {
                base: at(base), entries: entries.clone(), close_on_invalid: closing.0, close_on_octets: closing.1,
            };
            let mut gate = StreamGate::new(config).unwrap();
            let (mut now, mut shut, mut passed) = (-10, false, vec![]);
            for (step, octets) in frames {
                now += step;
                let &(_, number, turn) = table.iter().find(|(instant, ..)| *instant == now).unwrap();
                let entry = &entries[number];
                let before: u32 =
                    passed.iter().filter(|(of, _)| *of == turn).map(|(_, octets)| u32::from(*octets)).sum();
                let expected = if shut {
                    Passage::Closed
                } else if !entry.open {
                    shut = closing.0;
                    Passage::Closed
                } else if entry.max_octets.is_some_and(|most| before + u32::from(octets) > most) {
                    shut = closing.1;
                    Passage::OctetsExceeded
                } else {
                    passed.push((turn, octets));
                    Passage::Pass(entry.priority)
                };
                prop_assert_eq!(gate.handle_frame(at(now), octets), expected, "at {}", now);
            }
        }
    }
}
