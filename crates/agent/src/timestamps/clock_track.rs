//! Offset between an interface clock and `CLOCK_REALTIME`, from readings of both during a run.
//!
//! Each reading of both clocks gives a knot: an offset with an uncertainty of half the duration of the reading. Between
//! two knots the offset is interpolated linearly. The error is at most the larger uncertainty of the two knots plus the
//! curvature between them: the chord of a curve whose slope changes by `c` within a time `d` deviates by at most `c d /
//! 4`, and `c` is estimated from the adjacent segments. If the clock was stepped between two knots there is no offset
//! between them, and timestamps from this time are not translated.
//!
//! A single line for the whole run was rejected, since a disciplined clock does not follow one.

use std::collections::VecDeque;

use wg_net::CrossTimestamp;

/// Number of segments stored for late timestamps.
const REMEMBERED: usize = 256;
/// Maximum number of points of the offset plot.
const MAX_POINTS: usize = 256;
/// Maximum drift between two clocks, ns/s: 100 ppm each according to IEEE Std 802.3-2022, plus 500 ppm of kernel
/// slewing.
const FASTEST: f64 = 7e5;
/// Factor above the best uncertainty beyond which a reading is rejected …
const POOR: i64 = 4;
/// … unless no reading was accepted for this time, ns.
const LONGEST_WITHOUT: i64 = 50_000_000;

/// Reading of both clocks at one time. Times of the interface clock include the nominal offset.
#[derive(Clone, Copy, Debug)]
struct Knot {
    at_ns: i64,
    offset_ns: f64,
    uncertainty_ns: f64,
}

/// Segment between two knots.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: Knot,
    to: Knot,
    /// True if the clock was stepped within it.
    broken: bool,
    /// Error bound of the interpolation, ns; increases when the next segment is known.
    half_width_ns: f64,
}

impl Stretch {
    fn length_s(&self) -> f64 {
        (self.to.at_ns - self.from.at_ns) as f64 / 1e9
    }

    /// Slope, ns per second.
    fn slope(&self) -> f64 {
        (self.to.offset_ns - self.from.offset_ns) / self.length_s()
    }

    /// Difference in slope to an adjacent segment, ns per second. Contributions of the knots' uncertainties are
    /// included, since they could also hide a change of the same size.
    fn change(&self, other: &Self) -> f64 {
        (self.slope() - other.slope()).abs()
    }

    fn bent(&mut self, by: f64) {
        self.half_width_ns += by * self.length_s() / 4.0;
    }
}

/// Result of translating a time of the interface clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translated {
    /// Offset to be added, ps.
    By(i64),
    /// After the last reading; to be repeated after the next.
    Later,
    /// Within a segment with a step, or older than the stored segments.
    Never,
}

/// Offset of the two clocks at one time, for the plot.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Point {
    /// Time, ns since 1970.
    #[serde(skip)]
    pub at_ns: i64,
    /// `CLOCK_REALTIME` minus the interface clock and the nominal offset, ns.
    pub offset_ns: f64,
    /// Uncertainty of the offset, ns.
    pub half_width_ns: f64,
}

/// Statistics of the two clocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrackStats {
    /// Accepted readings.
    pub readings: u64,
    /// Readings rejected for their uncertainty.
    pub poor: u64,
    /// Steps of the clock.
    pub steps: u64,
    /// Largest error bound of a translated time, ns.
    pub uncertainty_ns: f64,
    /// Drift of the interface clock relative to `CLOCK_REALTIME`, ppm, and its uncertainty.
    pub drift_ppm: Option<(f64, f64)>,
    /// The offset over time.
    pub points: Vec<Point>,
}

/// Offset over time. Reads no clock.
#[derive(Debug)]
pub struct ClockTrack {
    nominal_ns: i64,
    first: Knot,
    last: Knot,
    best_ns: i64,
    stretches: VecDeque<Stretch>,
    points: Vec<Point>,
    /// Segments per plot point, and segments in the last point.
    stride: usize,
    in_last: usize,
    stats: TrackStats,
}

impl ClockTrack {
    /// Track with a first reading, whose offset is the nominal one.
    pub fn new(first: CrossTimestamp) -> Self {
        let knot =
            Knot { at_ns: first.realtime_ns, offset_ns: 0.0, uncertainty_ns: first.uncertainty_ns as f64 };
        Self {
            nominal_ns: first.offset_ns(),
            first: knot,
            last: knot,
            best_ns: first.uncertainty_ns,
            stretches: VecDeque::with_capacity(REMEMBERED),
            points: Vec::with_capacity(MAX_POINTS),
            stride: 1,
            in_last: 0,
            stats: TrackStats { readings: 1, ..TrackStats::default() },
        }
    }

    /// Nominal offset, ns: added to a timestamp of the interface clock before translation.
    pub const fn nominal_ns(&self) -> i64 {
        self.nominal_ns
    }

    /// Adds a reading; true if it was accepted.
    pub fn handle_reading(&mut self, timestamp: CrossTimestamp) -> bool {
        let knot = Knot {
            at_ns: timestamp.hardware_ns.saturating_add(self.nominal_ns),
            offset_ns: timestamp.offset_ns().saturating_sub(self.nominal_ns) as f64,
            uncertainty_ns: timestamp.uncertainty_ns as f64,
        };
        let passed = knot.at_ns.saturating_sub(self.last.at_ns);
        if timestamp.uncertainty_ns > self.best_ns.saturating_mul(POOR)
            && (0..LONGEST_WITHOUT).contains(&passed)
        {
            self.stats.poor += 1;
            return false;
        }
        self.best_ns = self.best_ns.min(timestamp.uncertainty_ns);
        let unsure = self.last.uncertainty_ns + knot.uncertainty_ns;
        let moved = (knot.offset_ns - self.last.offset_ns).abs();
        let broken = passed <= 0 || moved > unsure + FASTEST * passed as f64 / 1e9;
        if passed <= 0 && moved <= unsure {
            // The clocks have not advanced, so the reading gives no information.
            return false;
        }
        self.stats.readings += 1;
        let half_width_ns = 1.0 + self.last.uncertainty_ns.max(knot.uncertainty_ns);
        let mut stretch = Stretch { from: self.last, to: knot, broken, half_width_ns };
        self.last = knot;
        if broken {
            self.stats.steps += 1;
            self.first = knot;
        } else if let Some(before) = self.stretches.back_mut().filter(|before| !before.broken) {
            let change = stretch.change(before);
            before.bent(change);
            stretch.bent(change);
        }
        self.settle_last();
        if self.stretches.len() == REMEMBERED {
            self.stretches.pop_front();
        }
        self.stretches.push_back(stretch);
        true
    }

    /// Translation of `shown_ns`, a timestamp plus the nominal offset.
    pub fn place(&self, shown_ns: i64) -> Translated {
        let Some(stretch) = self.stretch_of(shown_ns) else {
            let begun = self.stretches.front().is_some_and(|first| shown_ns < first.from.at_ns);
            return if begun { Translated::Never } else { Translated::Later };
        };
        if stretch.broken {
            return Translated::Never;
        }
        let passed = (shown_ns - stretch.from.at_ns) as f64 / 1e9;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "rounded; offsets of clocks are far within the range"
        )]
        Translated::By(((stretch.from.offset_ns + stretch.slope() * passed) * 1e3).round() as i64)
    }

    /// Error bound of a time translated there, ns, as known so far.
    pub fn half_width_ns(&self, shown_ns: i64) -> Option<f64> {
        self.stretch_of(shown_ns).filter(|stretch| !stretch.broken).map(|stretch| stretch.half_width_ns)
    }

    fn stretch_of(&self, shown_ns: i64) -> Option<&Stretch> {
        // Latest first: after a backward step a time may lie in two segments.
        let within = |s: &&Stretch| {
            let (a, b) = (s.from.at_ns.min(s.to.at_ns), s.from.at_ns.max(s.to.at_ns));
            (a..=b).contains(&shown_ns)
        };
        self.stretches.iter().rev().find(within)
    }

    /// Statistics at the end of the run.
    pub fn finish(&mut self) -> TrackStats {
        self.settle_last();
        let (from, to) = (self.first, self.last);
        if to.at_ns > from.at_ns {
            let seconds = (to.at_ns - from.at_ns) as f64 / 1e9;
            // The offset to be added decreases if the clock runs fast.
            let drift = (from.offset_ns - to.offset_ns) / seconds / 1e3;
            self.stats.drift_ppm = Some((drift, (from.uncertainty_ns + to.uncertainty_ns) / seconds / 1e3));
        }
        self.stats.points = std::mem::take(&mut self.points);
        std::mem::take(&mut self.stats)
    }

    /// Adds the final error bound of the last segment to the statistics.
    fn settle_last(&mut self) {
        let Some(stretch) = self.stretches.back().filter(|stretch| !stretch.broken) else { return };
        self.stats.uncertainty_ns = self.stats.uncertainty_ns.max(stretch.half_width_ns);
        if self.in_last == 0 && self.points.len() == MAX_POINTS {
            let pairs = self.points.chunks(2).map(|pair| Point {
                half_width_ns: pair.iter().fold(0.0, |most, point| most.max(point.half_width_ns)),
                ..pair[0]
            });
            self.points = pairs.collect();
            self.stride *= 2;
        }
        match self.points.last_mut().filter(|_| self.in_last > 0) {
            Some(point) => point.half_width_ns = point.half_width_ns.max(stretch.half_width_ns),
            None => self.points.push(Point {
                at_ns: stretch.from.at_ns,
                offset_ns: stretch.from.offset_ns,
                half_width_ns: stretch.half_width_ns,
            }),
        }
        self.in_last = (self.in_last + 1) % self.stride;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Readings of a clock with the offset `offset_of` to true time, each at some time within its bracket.
    fn readings(offset_of: impl Fn(i64) -> i64, brackets: &[(i64, i64)], every: i64) -> Vec<CrossTimestamp> {
        let reading = |(number, &(width, share)): (usize, &(i64, i64))| {
            let begin = 1_700_000_000_000_000_000 + number as i64 * every;
            // The hardware clock is read at any time within the bracket, not only at the middle.
            let at = begin + width * share / 100;
            let sample = [begin, at + offset_of(at), begin + width];
            wg_net::tightest(&[sample]).expect("it is good")
        };
        brackets.iter().enumerate().map(reading).collect()
    }

    fn brackets() -> impl Strategy<Value = Vec<(i64, i64)>> {
        proptest::collection::vec((100_i64..4_000, 0_i64..=100), 4..120)
    }

    const START: i64 = 1_700_000_000_000_000_000;
    const EVERY: i64 = 20_000_000;

    /// Translation errors between the readings, with their stated bounds.
    fn errors(track: &ClockTrack, offset_of: impl Fn(i64) -> i64, until: i64) -> Vec<(f64, f64)> {
        let mut found = Vec::new();
        let mut at = START;
        while at < until {
            let shown = at + offset_of(at) + track.nominal_ns();
            if let (Translated::By(ps), Some(bound)) = (track.place(shown), track.half_width_ns(shown)) {
                found.push((((shown - at) as f64 + ps as f64 / 1e3).abs(), bound));
            }
            at += 1_234_567;
        }
        found
    }

    proptest! {
        /// With offset, drift and an oscillating frequency, the true time is always within the stated bound.
        #[test]
        fn the_true_time_is_within_the_bound_under_drift_and_wander(
            offset in -1_i64 << 60..1 << 50,
            drift_ppb in -100_000_i64..100_000,
            swing_ns in 0.0_f64..2_000.0,
            period_s in 0.5_f64..20.0,
            brackets in brackets(),
        ) {
            let offset_of = |at: i64| {
                let passed = at - START;
                let swing = swing_ns * (passed as f64 / 1e9 / period_s * std::f64::consts::TAU).sin();
                offset + (i128::from(passed) * i128::from(drift_ppb) / 1_000_000_000) as i64 + swing as i64
            };
            let timestamps = readings(offset_of, &brackets, EVERY);
            let mut track = ClockTrack::new(timestamps[0]);
            for timestamp in &timestamps[1..] {
                track.handle_reading(*timestamp);
            }
            let until = START + EVERY * (brackets.len() as i64 - 1);
            let errors = errors(&track, offset_of, until);
            prop_assert!(!errors.is_empty());
            for (error, bound) in &errors {
                prop_assert!(error <= bound, "{error} ns beyond {bound} ns");
            }
            let stats = track.finish();
            let drift = stats.drift_ppm.expect("there is more than one reading");
            let within = swing_ns * 2.0 / (EVERY as f64 * (brackets.len() - 2) as f64) * 1e6 + drift.1 + 0.001;
            prop_assert!((drift.0 - drift_ppb as f64 / 1e3).abs() <= within, "{drift:?}");
            prop_assert!(stats.steps == 0 && stats.points.len() <= MAX_POINTS);
            let widest = errors.iter().fold(0.0_f64, |most, (_, bound)| most.max(*bound));
            prop_assert!(stats.uncertainty_ns >= widest);
        }
    }

    /// With frequency steps, as of a disciplined clock, the true time is within the bound in 95 % of cases. The seed is
    /// fixed, since this is a rate and not a guarantee.
    #[test]
    fn a_steered_clock_is_covered_in_nearly_all_cases() {
        let strategy = (
            proptest::collection::vec(-5_000_i64..5_000, 1..40),
            proptest::collection::vec((100_i64..1_000, 0_i64..=100), 40..120),
        );
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let (mut held, mut all) = (0, 0);
        for _ in 0..200 {
            let drawn = strategy.new_tree(&mut runner).expect("nothing is rejected");
            let (jumps, brackets) = proptest::strategy::ValueTree::current(&drawn);
            // A new frequency every 70 ms, in ppb.
            let offset_of = |at: i64| {
                let (mut left, mut sum, mut n) = (at - START, 0_i64, 0);
                while left > 0 {
                    let part = left.min(70_000_000);
                    sum += part * jumps[n % jumps.len()] / 1_000_000_000;
                    left -= part;
                    n += 1;
                }
                sum
            };
            let timestamps = readings(offset_of, &brackets, EVERY);
            let mut track = ClockTrack::new(timestamps[0]);
            for timestamp in &timestamps[1..] {
                track.handle_reading(*timestamp);
            }
            let errors = errors(&track, offset_of, START + EVERY * (brackets.len() as i64 - 1));
            held += errors.iter().filter(|(error, bound)| error <= bound).count();
            all += errors.len();
        }
        assert!(held * 100 >= all * 95, "{held} of {all}");
    }

    #[test]
    fn a_clock_that_was_set_places_nothing_where_it_was_and_goes_on_behind() {
        let offset_of = |at: i64| if at < START + 10 * EVERY + EVERY / 2 { 500 } else { 37_000_000_500 };
        let timestamps = readings(offset_of, &[(200, 50); 30], EVERY);
        let mut track = ClockTrack::new(timestamps[0]);
        for timestamp in &timestamps[1..] {
            assert!(track.handle_reading(*timestamp));
        }
        let place = |at: i64| track.place(at + offset_of(at) + track.nominal_ns());
        assert_eq!(place(START + 5 * EVERY + 1), Translated::By(0));
        assert_eq!(place(START + 10 * EVERY + 1_000_000), Translated::Never);
        assert_eq!(place(START + 15 * EVERY + 1), Translated::By(-37_000_000_000_000));
        assert_eq!(place(START + 40 * EVERY), Translated::Later);
        assert_eq!(place(START - EVERY), Translated::Never);
        assert_eq!(track.finish().steps, 1);
    }

    #[test]
    fn a_poor_reading_is_left_out_while_good_ones_are_near() {
        let timestamps = readings(|_| 0, &[(200, 50), (200, 50), (5_000, 100), (200, 50)], EVERY);
        let mut track = ClockTrack::new(timestamps[0]);
        let taken: Vec<bool> =
            timestamps[1..].iter().map(|timestamp| track.handle_reading(*timestamp)).collect();
        assert_eq!(taken, [true, false, true]);
        let stats = track.finish();
        assert_eq!((stats.readings, stats.poor), (3, 1));
        assert!(stats.uncertainty_ns <= 101.0, "{stats:?}");
    }

    #[test]
    fn the_picture_of_a_long_run_stays_small_and_keeps_the_worst() {
        let brackets: Vec<(i64, i64)> = (0..5_000).map(|n| (if n == 777 { 390 } else { 100 }, 50)).collect();
        let timestamps = readings(|_| 0, &brackets, EVERY);
        let mut track = ClockTrack::new(timestamps[0]);
        for timestamp in &timestamps[1..] {
            track.handle_reading(*timestamp);
        }
        let stats = track.finish();
        assert!((MAX_POINTS / 2..=MAX_POINTS).contains(&stats.points.len()), "{}", stats.points.len());
        assert!(stats.points.iter().any(|point| point.half_width_ns >= 196.0));
    }
}
