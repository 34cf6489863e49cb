//! Flow meters: two token buckets that colour frames (IEEE Std 802.1Q-2022, 8.6.5.5; MEF 10.3, bandwidth profile
//! algorithm).
//!
//! Tokens are counted exactly, in bits times picoseconds per second: a bucket gains its rate in bit/s for each
//! picosecond, and a byte costs 8 * 10^12. Nothing is rounded, however long a meter waits between frames.

use wg_frame::time::RunTime;

/// Configuration of a flow meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterConfig {
    /// Committed information rate (CIR), bit/s of frames from destination address to FCS.
    pub committed_rate_bps: u64,
    /// Committed burst size (CBS), bytes.
    pub committed_burst: u32,
    /// Excess information rate (EIR), bit/s.
    pub excess_rate_bps: u64,
    /// Excess burst size (EBS), bytes.
    pub excess_burst: u32,
    /// Coupling flag (CF): tokens that overflow the committed bucket go to the excess bucket.
    pub coupling: bool,
    /// Colour mode (CM): a drop-eligible frame is never green.
    pub colour_aware: bool,
    /// Whether yellow frames are dropped rather than marked (`DropOnYellow`).
    pub drop_on_yellow: bool,
    /// Whether every frame after the first red one is red (`MarkAllFramesRedEnable`).
    pub mark_all_red: bool,
}

/// Colour of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Within the committed profile.
    Green,
    /// Within the excess profile.
    Yellow,
    /// Beyond both: it is dropped.
    Red,
}

/// Tokens for a byte.
const BYTE: u128 = 8_000_000_000_000;

/// A meter, both buckets full at first.
#[derive(Clone, Copy, Debug)]
pub struct FlowMeter {
    config: MeterConfig,
    committed: u128,
    excess: u128,
    /// Instant of the last frame.
    seen: Option<RunTime>,
    /// `MarkAllFramesRed`.
    all_red: bool,
}

impl FlowMeter {
    /// A meter with full buckets.
    pub fn new(config: MeterConfig) -> Self {
        let full = |burst: u32| u128::from(burst) * BYTE;
        Self {
            config,
            committed: full(config.committed_burst),
            excess: full(config.excess_burst),
            seen: None,
            all_red: false,
        }
    }

    /// Colours a frame of `length` bytes, destination address to FCS, whose last bit came at `now`. Calls are in the
    /// order of time; an earlier `now` adds no tokens.
    pub fn handle_frame(&mut self, now: RunTime, length: u16, drop_eligible: bool) -> Colour {
        self.refill(now);
        if self.all_red {
            return Colour::Red;
        }
        let cost = u128::from(length) * BYTE;
        let colour = if !(self.config.colour_aware && drop_eligible) && cost <= self.committed {
            self.committed -= cost;
            Colour::Green
        } else if cost <= self.excess {
            self.excess -= cost;
            Colour::Yellow
        } else {
            self.all_red = self.config.mark_all_red;
            Colour::Red
        };
        match colour {
            Colour::Yellow if self.config.drop_on_yellow => Colour::Red,
            colour => colour,
        }
    }

    fn refill(&mut self, now: RunTime) {
        let elapsed = self.seen.map_or(0, |seen| (now - seen).as_picos().max(0).unsigned_abs());
        self.seen = Some(self.seen.map_or(now, |seen| seen.max(now)));
        let gained = |rate: u64| u128::from(rate) * u128::from(elapsed);
        let room = u128::from(self.config.committed_burst) * BYTE;
        let committed = self.committed + gained(self.config.committed_rate_bps);
        let overflow = committed.saturating_sub(room);
        self.committed = committed.min(room);
        let coupled = if self.config.coupling { overflow } else { 0 };
        let room = u128::from(self.config.excess_burst) * BYTE;
        self.excess = (self.excess + gained(self.config.excess_rate_bps) + coupled).min(room);
    }

    /// The device restarts: its buckets are full again.
    pub fn handle_restart(&mut self) {
        *self = Self::new(self.config);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;
    use wg_frame::time::Span;

    use super::*;

    fn at(picos: i64) -> RunTime {
        RunTime::ZERO + Span::from_picos(picos)
    }

    #[test]
    fn a_burst_is_green_then_yellow_then_red_and_the_rates_give_it_back() {
        let config = MeterConfig {
            committed_rate_bps: 8_000_000,
            committed_burst: 200,
            excess_rate_bps: 4_000_000,
            excess_burst: 100,
            ..MeterConfig::default()
        };
        let mut meter = FlowMeter::new(config);
        let colours: Vec<Colour> = (0..4).map(|_| meter.handle_frame(at(0), 100, false)).collect();
        assert_eq!(colours, [Colour::Green, Colour::Green, Colour::Yellow, Colour::Red]);
        // 8 Mbit/s is a byte each microsecond: 100 bytes are there after 100 µs and not a picosecond before.
        assert_eq!(meter.handle_frame(at(99_999_999), 100, false), Colour::Red);
        assert_eq!(meter.handle_frame(at(100_000_000), 100, false), Colour::Green);
        // The excess bucket has gained half as much.
        assert_eq!(meter.handle_frame(at(100_000_000), 50, false), Colour::Yellow);
        assert_eq!(meter.handle_frame(at(100_000_000), 1, false), Colour::Red);
    }

    #[test]
    fn colour_mode_drop_on_yellow_and_marking_all_red() {
        let config = MeterConfig { committed_burst: 100, excess_burst: 100, ..MeterConfig::default() };
        let aware = MeterConfig { colour_aware: true, ..config };
        assert_eq!(FlowMeter::new(aware).handle_frame(at(0), 64, true), Colour::Yellow);
        assert_eq!(FlowMeter::new(config).handle_frame(at(0), 64, true), Colour::Green);
        let dropping = MeterConfig { drop_on_yellow: true, mark_all_red: true, ..aware };
        let mut meter = FlowMeter::new(dropping);
        assert_eq!(meter.handle_frame(at(0), 64, true), Colour::Red);
        // A yellow frame that is dropped is no red one: it does not make all others red.
        assert_eq!(meter.handle_frame(at(0), 64, false), Colour::Green);
        assert_eq!(meter.handle_frame(at(0), 64, false), Colour::Red);
        assert_eq!(meter.handle_frame(at(1_000), 1, false), Colour::Red);
        meter.handle_restart();
        assert_eq!(meter.handle_frame(at(2_000), 64, false), Colour::Green);
    }

    /// The algorithm of MEF 10.3 word for word, in integers of picobits: the bucket before the frame, the elapsed time,
    /// the overflow `max(0, Bc + CIR * t - CBS)` and the excess bucket with `CF * O`.
    fn profile(config: &MeterConfig, frames: &[(i64, u16, bool)]) -> Vec<Colour> {
        const PICO: i128 = 1_000_000_000_000;
        let (cbs, ebs) =
            (i128::from(config.committed_burst) * 8 * PICO, i128::from(config.excess_burst) * 8 * PICO);
        let (mut committed, mut excess, mut last, mut red) = (cbs, ebs, None, false);
        let mut colours = Vec::new();
        for &(when, length, drop_eligible) in frames {
            let elapsed = i128::from(when - last.unwrap_or(when));
            last = Some(when);
            let would_be = committed + i128::from(config.committed_rate_bps) * elapsed;
            let overflow = (would_be - cbs).max(0);
            committed = cbs.min(would_be);
            let coupled = if config.coupling { overflow } else { 0 };
            excess = ebs.min(excess + i128::from(config.excess_rate_bps) * elapsed + coupled);
            let needs = i128::from(length) * 8 * PICO;
            let green = !config.colour_aware || !drop_eligible;
            let colour = if red {
                Colour::Red
            } else if green && needs <= committed {
                committed -= needs;
                Colour::Green
            } else if needs <= excess {
                excess -= needs;
                if config.drop_on_yellow { Colour::Red } else { Colour::Yellow }
            } else {
                red = config.mark_all_red;
                Colour::Red
            };
            colours.push(colour);
        }
        colours
    }

    proptest! {
        #[test]
        fn colours_are_those_of_the_bandwidth_profile(
            rates in (0_u64..20_000_000, 0_u64..20_000_000),
            bursts in (0_u32..3_000, 0_u32..3_000),
            flags in prop::array::uniform4(any::<bool>()),
            frames in prop::collection::vec((0_i64..2_000_000_000, 64_u16..1_523, any::<bool>()), 1..100),
        ) {
            let config = MeterConfig {
                committed_rate_bps: rates.0,
                committed_burst: bursts.0,
                excess_rate_bps: rates.1,
                excess_burst: bursts.1,
                coupling: flags[0],
                colour_aware: flags[1],
                drop_on_yellow: flags[2],
                mark_all_red: flags[3],
            };
            let mut now = 0;
            let frames: Vec<_> =
                frames.into_iter().map(|(step, length, eligible)| { now += step; (now, length, eligible) }).collect();
            let mut meter = FlowMeter::new(config);
            let met: Vec<Colour> =
                frames.iter().map(|&(when, length, eligible)| meter.handle_frame(at(when), length, eligible)).collect();
            prop_assert_eq!(met, profile(&config, &frames));
        }

        /// Green frames keep CIR and CBS over every window, whatever comes.
        #[test]
        fn what_is_green_keeps_the_committed_profile(
            rate in 1_u64..50_000_000, burst in 64_u32..4_000,
            frames in prop::collection::vec((0_i64..500_000_000, 64_u16..1_523), 1..80),
        ) {
            let config = MeterConfig { committed_rate_bps: rate, committed_burst: burst, ..MeterConfig::default() };
            let (mut meter, mut now, mut green) = (FlowMeter::new(config), 0, Vec::new());
            for (step, length) in frames {
                now += step;
                if meter.handle_frame(at(now), length, false) == Colour::Green {
                    green.push((now, i128::from(length)));
                }
            }
            for first in 0..green.len() {
                let mut sum = 0;
                for (when, length) in &green[first..] {
                    sum += length * 8 * 1_000_000_000_000;
                    let allowed = i128::from(burst) * 8 * 1_000_000_000_000
                        + i128::from(rate) * i128::from(when - green[first].0);
                    prop_assert!(sum <= allowed);
                }
            }
        }
    }
}
