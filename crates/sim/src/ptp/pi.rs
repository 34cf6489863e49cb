//! The servo of ptp4l (linuxptp): a proportional-integral controller behind a filter of the measured delays.
//!
//! Formulas, states and limits are those of `ptp4l(8)` and linuxptp 4.0. Constants that are not given are its defaults for
//! hardware timestamps: `pi_proportional_scale` 0.7, `pi_proportional_exponent` −0.3, `pi_proportional_norm_max` 0.7,
//! `pi_integral_scale` 0.3, `pi_integral_exponent` 0.4, `pi_integral_norm_max` 0.3.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use statime::Clock;
use statime::filters::{Filter, FilterEstimate, FilterUpdate};
use statime::port::Measurement;
use statime::time::{Duration, Time};
use wg_frame::time::Span;
use wg_plan::{DelayFilter, PtpPi};

/// Greatest correction of the frequency that a clock takes, parts in 10⁹ (the limit of `set_frequency`).
const MOST_PPB: f64 = 100_000_000.0;
/// What is added to an interval before it counts as long enough for a first estimate of the frequency.
const MARGIN: f64 = 0.001;

/// What a clock keeps when it follows another master: ptp4l has one servo for all ports.
#[derive(Debug)]
struct Memory {
    /// Whether the first correction is still to come.
    is_first: Cell<bool>,
    /// The integral: estimate of how fast the clock is, parts in 10⁹.
    drift: Cell<f64>,
}

/// Constants of the controller, and what the ports of a clock share.
#[derive(Clone, Debug)]
pub(crate) struct PiConfig {
    /// Part of an offset that corrects the frequency, parts in 10⁹ for each ns.
    proportional: f64,
    /// Part of an offset that corrects it from now on, parts in 10⁹ for each ns.
    integral: f64,
    /// A first offset beyond this is stepped, ns.
    first_step_ns: Option<f64>,
    /// Any offset beyond this is stepped, ns.
    step_ns: Option<f64>,
    delay_filter: DelayFilter,
    delays: usize,
    memory: Rc<Memory>,
}

impl PiConfig {
    /// That of a clock that powers up, for Syncs every 2^`log_interval` seconds.
    pub(crate) fn new(log_interval: i8, plan: &PtpPi) -> Self {
        let interval = f64::from(log_interval).exp2();
        let constant = |given: Option<u32>, scale: f64, exponent: f64, most: f64| match given {
            Some(thousandths) => f64::from(thousandths) / 1e3,
            None => (scale * (exponent * f64::from(log_interval)).exp2()).min(most / interval),
        };
        #[expect(clippy::cast_precision_loss, reason = "exact below two hours")]
        let beyond = |span: Span| (span > Span::ZERO).then(|| span.as_picos() as f64 / 1e3);
        Self {
            proportional: constant(plan.kp_thousandths, 0.7, -0.3, 0.7),
            integral: constant(plan.ki_thousandths, 0.3, 0.4, 0.3),
            first_step_ns: beyond(plan.first_step_threshold),
            step_ns: plan.step_threshold.and_then(beyond),
            delay_filter: plan.delay_filter,
            delays: usize::from(plan.delay_filter_length),
            memory: Rc::new(Memory { is_first: Cell::new(true), drift: Cell::new(0.0) }),
        }
    }

    /// Least time between the two offsets from which the frequency is estimated, s.
    fn estimate_interval(&self) -> f64 {
        (0.016 / self.integral).min(1_000.0)
    }
}

/// An offset and when it was measured.
#[derive(Clone, Copy, Debug)]
struct Sample {
    offset_ns: f64,
    at: Time,
}

/// State of the controller.
#[derive(Clone, Copy, Debug)]
enum State {
    /// No offset is known.
    Unlocked,
    /// Waits for a second offset, which tells the frequency.
    First(Sample),
    Locked,
}

/// What it does with an offset.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Correction {
    None,
    /// Sets the frequency, parts in 10⁹.
    Steer(f64),
    /// Sets the frequency and steps by the offset.
    Step(f64),
}

/// The servo.
#[derive(Debug)]
pub(crate) struct PiServo {
    config: PiConfig,
    state: State,
    delays: VecDeque<Duration>,
    /// Whether the clock was stepped since the last Sync: that and a later delay request are not of one time scale.
    is_stepped: bool,
    offset: Duration,
    delay: Duration,
}

impl PiServo {
    /// The delay that counts after one more was measured.
    fn filtered(&mut self, delay: Duration) -> Duration {
        if self.delays.len() == self.config.delays {
            self.delays.pop_front();
        }
        self.delays.push_back(delay);
        if self.config.delay_filter == DelayFilter::Average {
            let sum: f64 = self.delays.iter().map(|delay| nanos(*delay)).sum();
            #[expect(clippy::cast_precision_loss, reason = "at most a hundred")]
            return Duration::from_fixed_nanos(sum / self.delays.len() as f64);
        }
        let mut sorted: Vec<Duration> = self.delays.iter().copied().collect();
        sorted.sort_unstable();
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2 }
    }

    fn sample(&mut self, sample: Sample) -> Correction {
        let Sample { offset_ns, at } = sample;
        let (memory, is_beyond) =
            (&self.config.memory, |limit: Option<f64>| limit.is_some_and(|limit| offset_ns.abs() > limit));
        match self.state {
            State::Unlocked => {
                self.state = State::First(sample);
                Correction::None
            }
            State::First(first) => {
                let passed_ns = nanos(at - first.at);
                if passed_ns <= 0.0 {
                    self.state = State::Unlocked;
                    return Correction::None;
                }
                if passed_ns / 1e9 * (1.0 + MARGIN) < self.config.estimate_interval() {
                    return Correction::None;
                }
                let drift = memory.drift.get();
                let estimate = (1e9 - drift) * (offset_ns - first.offset_ns) / passed_ns;
                let drift = (drift + estimate).clamp(-MOST_PPB, MOST_PPB);
                memory.drift.set(drift);
                self.state = State::Locked;
                let is_first = memory.is_first.replace(false);
                let is_step =
                    is_beyond(self.config.step_ns) || is_first && is_beyond(self.config.first_step_ns);
                if is_step { Correction::Step(drift) } else { Correction::Steer(drift) }
            }
            State::Locked if is_beyond(self.config.step_ns) => {
                // The next two offsets tell how far, and how fast.
                self.state = State::Unlocked;
                Correction::None
            }
            State::Locked => {
                let integral = self.config.integral * offset_ns;
                let drift = memory.drift.get();
                let wanted = self.config.proportional * offset_ns + drift + integral;
                let limited = wanted.clamp(-MOST_PPB, MOST_PPB);
                // At its limit the integral does not grow on.
                if limited.to_bits() == wanted.to_bits() {
                    memory.drift.set(drift + integral);
                }
                Correction::Steer(limited)
            }
        }
    }
}

impl Filter for PiServo {
    type Config = PiConfig;

    fn new(config: PiConfig) -> Self {
        Self {
            delays: VecDeque::with_capacity(config.delays),
            config,
            state: State::Unlocked,
            is_stepped: false,
            offset: Duration::ZERO,
            delay: Duration::ZERO,
        }
    }

    fn measurement<C: Clock>(&mut self, measurement: Measurement, clock: &mut C) -> FilterUpdate {
        let mut update = FilterUpdate::default();
        self.is_stepped &= measurement.raw_sync_offset.is_none();
        let delay = measurement.delay.filter(|_| !self.is_stepped);
        if let Some(delay) = delay.or(measurement.peer_delay) {
            self.delay = self.filtered(delay);
            update.mean_delay = Some(self.delay);
        }
        let Some(offset) = measurement.offset else { return update };
        self.offset = offset;
        // A correction that a clock refuses is counted there.
        match self.sample(Sample { offset_ns: nanos(offset), at: measurement.event_time }) {
            Correction::None => {}
            Correction::Steer(fast) => drop(clock.set_frequency(-fast / 1e3)),
            Correction::Step(fast) => {
                drop(clock.set_frequency(-fast / 1e3));
                drop(clock.step_clock(-offset));
                self.is_stepped = true;
            }
        }
        update
    }

    fn update<C: Clock>(&mut self, _clock: &mut C) -> FilterUpdate {
        FilterUpdate::default()
    }

    fn demobilize<C: Clock>(self, _clock: &mut C) {}

    fn current_estimates(&self) -> FilterEstimate {
        FilterEstimate { offset_from_master: self.offset, mean_delay: self.delay }
    }
}

/// A duration in ns.
fn nanos(duration: Duration) -> f64 {
    duration.nanos_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;
    use statime::config::TimePropertiesDS;

    /// A clock that notes what is done to it.
    #[derive(Debug, Default)]
    struct Noted {
        ppm: Vec<f64>,
        steps: Vec<Duration>,
    }

    impl Clock for Noted {
        type Error = ();

        fn now(&self) -> Time {
            Time::default()
        }
        fn step_clock(&mut self, offset: Duration) -> Result<Time, ()> {
            self.steps.push(offset);
            Ok(Time::default())
        }
        fn set_frequency(&mut self, ppm: f64) -> Result<Time, ()> {
            self.ppm.push(ppm);
            Ok(Time::default())
        }
        fn set_properties(&mut self, _properties: &TimePropertiesDS) -> Result<(), ()> {
            Ok(())
        }
    }

    fn offset(seconds: u64, ns: i64) -> Measurement {
        let offset = Duration::from_nanos(ns);
        Measurement {
            event_time: Time::from_secs(seconds),
            offset: Some(offset),
            raw_sync_offset: Some(offset),
            ..Measurement::default()
        }
    }

    fn delay(ns: i64) -> Measurement {
        Measurement { delay: Some(Duration::from_nanos(ns)), ..Measurement::default() }
    }

    #[test]
    fn constants_are_those_of_ptp4l() {
        let near = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 1e-3, "{found} {wanted}");
        for (log, proportional, integral) in
            [(0, 0.7, 0.3), (-3, 1.306_3, 0.130_6), (-7, 3.001, 0.043_07), (4, 0.043_75, 0.018_75)]
        {
            let config = PiConfig::new(log, &PtpPi::default());
            near(config.proportional, proportional);
            near(config.integral, integral);
        }
    }

    #[test]
    fn the_frequency_is_estimated_then_the_clock_is_stepped_then_steered() {
        let (mut servo, mut clock) = (PiServo::new(PiConfig::new(0, &PtpPi::default())), Noted::default());
        servo.measurement(offset(1, 1_000_000), &mut clock);
        assert!(clock.ppm.is_empty());
        // 20 µs more in a second: 20 parts in 10⁶ fast.
        servo.measurement(offset(2, 1_020_000), &mut clock);
        assert_eq!(clock.steps, [Duration::from_nanos(-1_020_000)]);
        assert!((clock.ppm[0] + 20.0).abs() < 1e-3, "{:?}", clock.ppm);
        // 0.7 × 100 + 0.3 × 100 parts in 10⁹ more; and then 30 of them are kept.
        servo.measurement(offset(3, 100), &mut clock);
        servo.measurement(offset(4, 0), &mut clock);
        assert!((clock.ppm[1] - clock.ppm[0] + 0.100).abs() < 1e-6, "{:?}", clock.ppm);
        assert!((clock.ppm[2] - clock.ppm[0] + 0.030).abs() < 1e-6, "{:?}", clock.ppm);
        // Later offsets are steered away, however large.
        servo.measurement(offset(5, 5_000_000), &mut clock);
        assert_eq!(clock.steps.len(), 1);
    }

    /// Offsets in ns, one each Sync interval, and what the PI servo of linuxptp (`pi.c` and `servo.c` of June 2026 with
    /// the defaults of ptp4l) answered to each but the first, in parts in 10⁹; by binary logarithm of the interval.
    const ANSWERED: [(i8, &[(i64, f64)]); 3] = [
        (
            0,
            &[
                (1_000_000, 0.0),
                (1_002_500, 2_500.0),
                (1_005_000, 1_007_500.0),
                (504, 304_504.0),
                (912, 305_063.2),
                (449, 304_873.8),
                (500, 305_059.5),
                (-459, 304_250.5),
                (484, 305_055.8),
                (-90, 304_627.0),
                (892, 305_582.0),
                (-965, 303_992.6),
                (700_000, 1_004_668.1),
                (415, 515_083.1),
                (-400_000_000, -100_000_000.0),
                (-627, 514_165.6),
            ],
        ),
        (
            -3,
            &[
                (1_000_000, 0.0),
                (1_002_500, 20_000.0),
                (1_005_000, 1_464_012.916_509),
                (-166, 150_996.983_841),
                (-149, 150_999.733_221),
                (119, 151_365.346_527),
                (-582, 150_373.668_885),
                (300, 151_564.952_798),
                (-196, 150_891.460_502),
                (-738, 150_087.105_121),
                (373, 151_587.051_94),
                (-138, 150_901.539_741),
                (700_000, 1_156_861.942_567),
                (898, 243_779.883_099),
                (-400_000_000, -100_000_000.0),
                (520, 243_354.024_984),
            ],
        ),
        (
            1,
            &[
                (1_000_000, 0.0),
                (1_002_500, 1_250.0),
                (1_005_000, 503_750.0),
                (-837, 151_581.5),
                (348, 152_048.45),
                (-211, 151_821.15),
                (780, 152_285.0),
                (-499, 151_762.5),
                (-434, 151_720.15),
                (173, 151_958.55),
                (297, 152_046.5),
                (-869, 151_508.05),
                (700_000, 501_812.2),
                (-177, 256_723.7),
                (-400_000_000, -100_000_000.0),
                (-777, 256_397.15),
            ],
        ),
    ];

    #[test]
    fn it_answers_as_the_servo_of_linuxptp_does() {
        for (log, answered) in ANSWERED {
            let (mut servo, mut clock) =
                (PiServo::new(PiConfig::new(log, &PtpPi::default())), Noted::default());
            let interval = statime::time::Duration::from_log_interval(log);
            let mut at = Time::from_secs(1);
            for &(offset_ns, _) in answered {
                at += interval;
                let offset = Duration::from_nanos(offset_ns);
                let measured = Measurement { event_time: at, offset: Some(offset), ..Measurement::default() };
                servo.measurement(measured, &mut clock);
            }
            assert_eq!(clock.steps, [Duration::from_nanos(-answered[1].0)], "the first correction only");
            let wanted: Vec<f64> = answered[1..].iter().map(|(_, fast)| -fast / 1e3).collect();
            assert_eq!(clock.ppm.len(), wanted.len());
            for (found, wanted) in clock.ppm.iter().zip(wanted) {
                assert!((found - wanted).abs() < 1e-8 * wanted.abs(), "2^{log} s: {found} and {wanted}");
            }
        }
    }

    #[test]
    fn the_median_of_ten_delays_counts() {
        let (mut servo, mut clock) = (PiServo::new(PiConfig::new(0, &PtpPi::default())), Noted::default());
        let mut last = None;
        for ns in [500, 510, 90_000, 490, 500, 505, 495, 80_000, 70_000, 500, 1_000_000] {
            last = servo.measurement(delay(ns), &mut clock).mean_delay;
        }
        // 490 495 500 500 505 510 70 000 80 000 90 000 1 000 000
        assert_eq!(last, Some((Duration::from_nanos(505) + Duration::from_nanos(510)) / 2));
    }

    #[test]
    fn settings_of_ptp4l_have_their_effect() {
        let mut plan = PtpPi { kp_thousandths: Some(100), ki_thousandths: Some(1), ..PtpPi::default() };
        (plan.delay_filter, plan.delay_filter_length) = (DelayFilter::Average, 3);
        (plan.first_step_threshold, plan.step_threshold) = (Span::ZERO, Some(Span::from_nanos(1_000)));
        let (mut servo, mut clock) = (PiServo::new(PiConfig::new(-3, &plan)), Noted::default());
        let means = [6, 9, 12, 30].map(|ns| servo.measurement(delay(ns), &mut clock).mean_delay);
        assert_eq!(means.map(|mean| mean.map(|mean| mean.nanos_rounded())), [6, 7, 9, 17].map(Some));
        // 0.016 / 0.001 = 16 s from one offset to the other give the frequency; neither is stepped.
        for (seconds, ns) in [(1, 900), (10, 900), (18, 900), (19, 500)] {
            servo.measurement(offset(seconds, ns), &mut clock);
        }
        assert!(clock.steps.is_empty());
        assert!((clock.ppm[0]).abs() < 1e-12 && (clock.ppm[1] + 0.0505).abs() < 1e-9, "{:?}", clock.ppm);
        // One beyond the threshold starts anew: two more offsets, and a step by the last.
        for (seconds, ns) in [(20, 1_001), (21, 5_000), (38, 5_000)] {
            servo.measurement(offset(seconds, ns), &mut clock);
        }
        assert_eq!(clock.steps, [Duration::from_nanos(-5_000)]);
    }

    #[test]
    fn a_clock_that_follows_another_master_keeps_its_frequency_and_is_not_stepped_again() {
        let (config, mut clock) = (PiConfig::new(0, &PtpPi::default()), Noted::default());
        let mut servo = PiServo::new(config.clone());
        for (seconds, ns) in [(1, 1_000_000), (2, 1_020_000), (3, 0)] {
            servo.measurement(offset(seconds, ns), &mut clock);
        }
        servo.demobilize(&mut clock);
        let mut other = PiServo::new(config);
        for (seconds, ns) in [(4, 900_000), (5, 900_000)] {
            other.measurement(offset(seconds, ns), &mut clock);
        }
        assert_eq!(clock.steps.len(), 1);
        assert!((clock.ppm.last().unwrap() + 20.0).abs() < 1e-3, "{:?}", clock.ppm);
    }

    #[test]
    fn a_delay_between_a_sync_before_a_step_and_a_request_behind_it_does_not_count() {
        let (mut servo, mut clock) = (PiServo::new(PiConfig::new(0, &PtpPi::default())), Noted::default());
        servo.measurement(offset(1, 1_000_000), &mut clock);
        servo.measurement(offset(2, 1_000_000), &mut clock);
        assert_eq!(servo.measurement(delay(500_000), &mut clock).mean_delay, None);
        servo.measurement(offset(3, 0), &mut clock);
        let counted = servo.measurement(delay(500), &mut clock).mean_delay;
        assert_eq!(counted, Some(Duration::from_nanos(500)));
    }
}
