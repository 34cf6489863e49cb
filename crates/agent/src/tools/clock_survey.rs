//! Survey of this host's clocks: reading cost, resolution, and drift between clocks.
//!
//! Measured here and not in the testmaster, because the loop must be as short as that of a servicing thread. Facts are
//! reported as soon as they are known, so that the caller can show progress and keep results when it stops. The caller
//! computes statistics beyond sums and order.

use std::path::PathBuf;
use std::time::Duration;

use crate::timestamps::translation::greatest_common_divisor;
use serde::Serialize;
use wg_net::clock_sources::{ClockSource, counter, counter_name, hardware, sources};
use wg_net::{clock, realtime};

/// Settings of a survey.
#[derive(Clone, Debug)]
pub struct Order {
    /// Readings per clock for the cost, at least 2.
    pub reads: usize,
    /// Duration of the clock comparison, s.
    pub seconds: f64,
    /// Interval between comparisons.
    pub every: Duration,
    /// PTP hardware clocks to include.
    pub hardware: Vec<PathBuf>,
    /// Core of the measurement.
    pub core: Option<usize>,
    /// Real-time priority to request; 0: none.
    pub priority: u32,
}

/// Result of the survey, in order of availability.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fact {
    /// Permissions granted by the host, and the counter that brackets each reading.
    Begun {
        /// Name of the counter.
        ruler: &'static str,
        /// Rate of the counter, measured against `CLOCK_MONOTONIC_RAW` over 50 ms.
        ticks_per_ns: f64,
        /// Median of its back-to-back readings, ns; subtracted from the cost of every other clock.
        floor_ns: f64,
        /// Names of the surveyed clocks.
        clocks: Vec<String>,
        /// Refused permissions, as sentences.
        refused: Vec<String>,
    },
    /// Reading cost of a clock.
    Cost(Cost),
    /// Step sizes of a clock.
    Step(Step),
    /// Readings of all clocks at nearly the same time.
    Together(Together),
}

/// Cost of readings, ns, less the median of the bracket; for the counter itself, times between its readings.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// Clock name.
    pub clock: String,
    /// Number of readings.
    pub n: usize,
    /// Mean.
    pub mean: f64,
    /// Sample standard deviation (n − 1).
    pub sd: f64,
    /// Quantiles as fraction and value (nearest rank).
    pub quantiles: Vec<(f64, f64)>,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
}

/// Steps of a clock: nonzero differences of successive readings.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Clock name.
    pub clock: String,
    /// Number of readings.
    pub readings: usize,
    /// Number of readings that differed from the previous one.
    pub steps: usize,
    /// Smallest step, ns.
    pub least_ns: Option<f64>,
    /// Median step, ns.
    pub median_ns: Option<f64>,
    /// Largest whole number of ns (or ticks) that divides every step, ns.
    pub divisor_ns: Option<f64>,
    /// Resolution stated by the kernel, ns.
    pub stated_ns: Option<i64>,
    /// Number of readings before the previous one.
    pub backwards: usize,
}

/// Readings of all clocks within one bracket.
#[derive(Clone, Debug, Serialize)]
pub struct Together {
    /// `CLOCK_MONOTONIC_RAW` at the middle, ns.
    pub raw: i64,
    /// For each clock: its reading (ns or ticks), the midpoint of the raw clock readings around it, and the time
    /// between these two, ns.
    pub readings: Vec<(i64, i64, i64)>,
}

/// Runs the survey and passes every fact to `tell`, which returns false to stop.
pub fn measure(order: &Order, mut tell: impl FnMut(Fact) -> bool) {
    let mut refused = Vec::new();
    if let Some(core) = order.core
        && let Err(error) = realtime::bind_to_core(core)
    {
        refused.push(format!("core {core}: {error}"));
    }
    if order.priority > 0
        && let Err(error) = realtime::fifo(order.priority)
    {
        refused.push(format!("real-time priority {}: {error}", order.priority));
    }
    let mut clocks = sources();
    for device in &order.hardware {
        match hardware(device) {
            Ok(source) => clocks.push(source),
            Err(error) => refused.push(format!("{}: {error}", device.display())),
        }
    }
    let rate = ticks_per_ns();
    let mut between = vec![0; order.reads.max(2)];
    back_to_back(&mut between);
    between.sort_unstable();
    let floor = between[between.len() / 2] as f64 / rate;
    let begun = Fact::Begun {
        ruler: counter_name().unwrap_or("CLOCK_MONOTONIC_RAW"),
        ticks_per_ns: rate,
        floor_ns: floor,
        clocks: clocks.iter().map(|source| source.name().to_owned()).collect(),
        refused,
    };
    if !tell(begun) {
        return;
    }
    for source in &clocks {
        if source.in_ticks() {
            back_to_back(&mut between);
        } else {
            bracketed(source, &mut between);
        }
        let less = if source.in_ticks() { 0.0 } else { floor };
        if !tell(Fact::Cost(cost(source, &mut between, rate, less))) || !tell(Fact::Step(steps(source, rate)))
        {
            return;
        }
        rest();
    }
    // A comparison mostly sleeps and works without priority, since only the narrowest of several brackets is used.
    let begin = clock::monotonic_raw();
    let length = Duration::from_secs_f64(order.seconds).as_nanos();
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    loop {
        if !tell(Fact::Together(together(&clocks))) || clock::monotonic_raw() - begin >= length {
            return;
        }
        std::thread::sleep(order.every);
    }
}

/// Sleeps at intervals, since the kernel stops real-time threads that never sleep for tens of milliseconds.
fn rest() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Rate of the counter, from the narrowest brackets at both ends of 50 ms.
fn ticks_per_ns() -> f64 {
    let edge = || {
        (0..64)
            .map(|_| {
                let before = counter();
                let raw = clock::monotonic_raw();
                let after = counter();
                (after - before, before + (after - before) / 2, raw)
            })
            .min()
            .map_or((0, 0), |(_, ticks, raw)| (ticks, raw))
    };
    let first = edge();
    std::thread::sleep(Duration::from_millis(50));
    let last = edge();
    (last.0 - first.0) as f64 / (last.1 - first.1).max(1) as f64
}

fn back_to_back(into: &mut [i64]) {
    let mut before = counter();
    for slot in into {
        let now = counter();
        *slot = now.wrapping_sub(before).cast_signed();
        before = now;
    }
}

fn bracketed(source: &ClockSource, into: &mut [i64]) {
    let mut before = counter();
    for slot in into {
        std::hint::black_box(source.read());
        let now = counter();
        *slot = now.wrapping_sub(before).cast_signed();
        before = now;
    }
}

const QUANTILES: [f64; 7] = [0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999];

fn cost(source: &ClockSource, ticks: &mut [i64], rate: f64, less: f64) -> Cost {
    ticks.sort_unstable();
    let n = ticks.len();
    let ns = |ticks: i64| ticks as f64 / rate - less;
    let mean = ticks.iter().map(|&t| ns(t)).sum::<f64>() / n as f64;
    let squares = ticks.iter().map(|&t| (ns(t) - mean).powi(2)).sum::<f64>();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number from 0 to n")]
    let rank = |q: f64| (q * n as f64).ceil() as usize;
    let at = |q: f64| ns(ticks[rank(q).clamp(1, n) - 1]);
    Cost {
        clock: source.name().into(),
        n,
        mean,
        sd: (squares / (n.max(2) - 1) as f64).sqrt(),
        quantiles: QUANTILES.iter().map(|&q| (q, at(q))).collect(),
        min: ns(ticks[0]),
        max: ns(ticks[n - 1]),
    }
}

/// Reads until 2000 steps were seen, for at most 60 ms: a coarse clock advances every few milliseconds.
fn steps(source: &ClockSource, rate: f64) -> Step {
    let scale = if source.in_ticks() { rate } else { 1.0 };
    let begin = clock::monotonic_raw();
    let (mut readings, mut backwards) = (1, 0);
    let mut found: Vec<i64> = Vec::with_capacity(2_000);
    let mut before = source.read();
    while found.len() < 2_000 && clock::monotonic_raw() - begin < 60_000_000 {
        for _ in 0..64 {
            let now = source.read();
            readings += 1;
            backwards += usize::from(now < before);
            if now > before && found.len() < 2_000 {
                found.push(now - before);
            }
            before = now;
        }
    }
    found.sort_unstable();
    let common = found.iter().fold(0, |a, &b| greatest_common_divisor(a, b.unsigned_abs()));
    Step {
        clock: source.name().into(),
        readings,
        steps: found.len(),
        least_ns: found.first().map(|&s| s as f64 / scale),
        median_ns: found.get(found.len() / 2).map(|&s| s as f64 / scale),
        divisor_ns: (common > 0).then(|| common as f64 / scale),
        stated_ns: source.stated_resolution(),
        backwards,
    }
}

/// Narrowest of nine brackets for each clock.
fn together(clocks: &[ClockSource]) -> Together {
    let readings = clocks
        .iter()
        .map(|source| {
            (0..9)
                .map(|_| {
                    let before = clock::monotonic_raw();
                    let reading = source.read();
                    let after = clock::monotonic_raw();
                    (after - before, reading, before + (after - before) / 2)
                })
                .min()
                .map_or((0, 0, 0), |(width, reading, middle)| (reading, middle, width))
        })
        .collect();
    Together { raw: clock::monotonic_raw(), readings }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_common_divisor_divides_and_is_the_greatest(a in 1_u64..5_000, b in 1_u64..5_000) {
            let common = greatest_common_divisor(a, b);
            prop_assert!(a % common == 0 && b % common == 0);
            prop_assert!((common + 1..=a.min(b)).all(|k| a % k != 0 || b % k != 0));
        }

        #[test]
        fn cost_is_the_plain_statistics_of_the_differences(mut ticks in proptest::collection::vec(1_i64..1_000_000, 2..200)) {
            let source = &sources()[0];
            let mean = ticks.iter().sum::<i64>() as f64 / ticks.len() as f64 / 2.0 - 3.0;
            let found = cost(source, &mut ticks, 2.0, 3.0);
            prop_assert!((found.mean - mean).abs() < 1e-6 * mean.abs().max(1.0));
            prop_assert!(found.min <= found.quantiles[0].1 && found.max >= found.quantiles[6].1);
            prop_assert!(found.quantiles.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        }
    }

    #[test]
    fn every_clock_is_measured_and_stopping_stops() {
        let order = Order {
            reads: 100,
            seconds: 0.02,
            every: Duration::from_millis(5),
            hardware: vec![PathBuf::from("/dev/null")],
            core: None,
            priority: 0,
        };
        let (mut costs, mut steps, mut together, mut names) = (0, 0, 0, 0);
        measure(&order, |fact| {
            match fact {
                Fact::Begun { clocks, refused, ticks_per_ns, .. } => {
                    names = clocks.len();
                    assert!(refused.len() == 1 && refused[0].starts_with("/dev/null"), "{refused:?}");
                    assert!(ticks_per_ns > 0.0);
                }
                Fact::Cost(cost) => {
                    costs += 1;
                    assert_eq!(cost.n, 100);
                }
                Fact::Step(step) => {
                    steps += 1;
                    assert_eq!(step.backwards, 0, "{}", step.clock);
                }
                Fact::Together(found) => {
                    together += 1;
                    assert_eq!(found.readings.len(), names);
                }
            }
            true
        });
        assert!(costs == names && steps == names && together >= 2);

        let mut told = 0;
        measure(&order, |_| {
            told += 1;
            false
        });
        assert_eq!(told, 1);
    }
}
