//! Hardware timestamps: support by the interface, limit on outstanding timestamps, and translation to the system clock.
//!
//! An interface with hardware timestamps timestamps every received frame, and sent frames on request, with its own
//! clock. The servicing threads record these times as `wire-send` and `wire-receive`; [`budget`] limits the requests,
//! and [`translation`] converts the timestamps to `CLOCK_REALTIME` by means of [`clock_track`]. If the interface has no
//! such timestamps or does not permit them, the run uses the kernel's timestamps and reports the reason.

pub mod budget;
mod clock_reading;
pub mod clock_track;
pub mod planted;
pub mod translation;

use serde::Serialize;
use wg_capture::{Octet, Timestamps};
use wg_net::{HardwareClock, HardwareTimestamping, TimestampCapability, TimestampSource};

use self::budget::BudgetStats;
pub use self::clock_reading::{PhcTracker, Rate, ReadsBothClocks};
use self::clock_track::{ClockTrack, Point};
use self::planted::PlantedHardware;
use self::translation::TranslationStats;
use crate::proto;

/// Settings of hardware timestamps for the servicing threads.
#[derive(Clone, Copy, Debug)]
pub struct TimestampConfig {
    /// True if sent frames are timestamped.
    pub transmit: bool,
    /// True if received frames are timestamped.
    pub receive: bool,
    /// Maximum number of outstanding transmit timestamps.
    pub budget: usize,
    /// Nominal offset, ns: added to a timestamp to give a time near `CLOCK_REALTIME`.
    pub nominal_ns: i64,
    /// Line rate.
    pub rate: Rate,
    /// Simulated interface clock that replaces the real one.
    pub planted: Option<PlantedHardware>,
}

/// Timestamping of a run.
pub struct Timestamping {
    /// Information for the testmaster.
    pub info: TimestampInfo,
    /// Settings for the servicing threads; `None`: kernel timestamps only.
    pub config: Option<TimestampConfig>,
    /// Clock for the record writer; `None`: kernel timestamps only.
    pub clock: Option<PhcTracker>,
    /// Keeps hardware timestamping enabled until dropped.
    pub on: Option<HardwareTimestamping>,
}

/// Timestamping information before the run.
#[derive(Clone, Debug, Default)]
pub struct TimestampInfo {
    /// Name of the interface.
    pub interface: String,
    /// Source for sent frames: `hardware`, `planted`, `software` or `none`.
    pub transmit: &'static str,
    /// Source for received frames, with the same values.
    pub receive: &'static str,
    /// Reason why hardware timestamps are not used in both directions; empty if they are.
    pub why: String,
    /// Clock of the timestamps.
    pub clock: Option<String>,
    /// Method of reading this clock.
    pub method: Option<&'static str>,
    /// Line rate, bit/s.
    pub rate_bps: Option<u64>,
    /// Maximum number of outstanding transmit timestamps; 0: none are requested.
    pub budget: usize,
}

impl TimestampInfo {
    /// Descriptions of the sources for sent and received frames.
    pub fn in_words(&self) -> [String; 2] {
        [self.transmit, self.receive].map(|by| match (by, &self.clock) {
            ("hardware", Some(clock)) => format!("hardware, by {clock}, and software, by the driver"),
            ("planted", _) => "planted: software shown as hardware's, a test facility".into(),
            _ => format!("{by}, by the driver"),
        })
    }
}

/// Number of transmit timestamps an interface stores, by driver: the number in its data sheet, or 1. Too high a number
/// makes timestamps go missing; too low a number only leaves frames without timestamps.
fn budget_of(driver: Option<&str>) -> usize {
    match driver {
        // Intel I225/I226: four sets of transmit timestamp registers.
        Some("igc") => 4,
        _ => 1,
    }
}

impl Timestamping {
    /// Timestamping of `interface`, enabled. `planned_bps` is the line rate if the interface does not report it.
    pub fn open(interface: &str, planned_bps: Option<u64>, planted: Option<PlantedHardware>) -> Self {
        let rate_bps = wg_net::line_rate(interface).or(planned_bps);
        match Self::hardware(interface, rate_bps, planted) {
            Ok(timestamping) => timestamping,
            Err((can, why)) => Self {
                info: TimestampInfo {
                    interface: interface.into(),
                    transmit: can.0,
                    receive: can.1,
                    why,
                    rate_bps,
                    ..TimestampInfo::default()
                },
                config: None,
                clock: None,
                on: None,
            },
        }
    }

    /// Hardware timestamps, or their replacement and its reason.
    fn hardware(
        interface: &str,
        rate_bps: Option<u64>,
        planted: Option<PlantedHardware>,
    ) -> Result<Self, ((&'static str, &'static str), String)> {
        let can =
            wg_net::timestamp_capability(interface).map_err(|e| (("software", "software"), e.to_string()))?;
        let kernel = (kernel_at_best(can.transmit()), kernel_at_best(can.receive()));
        let found = match planted {
            Some(planted) => Found::planted(planted),
            None => Found::of(interface, can).map_err(|why| (kernel, why))?,
        };
        let Found { transmit, receive, clock, method, mut source, budget, on } = found;
        let unknown = "the line rate is unknown, so timestamps cannot be moved to their reference octet";
        let rate = Rate(rate_bps.ok_or_else(|| (kernel, unknown.to_owned()))?);
        let first = source.cross_timestamp().map_err(|e| (kernel, format!("clock {clock}: {e}")))?;
        let track = ClockTrack::new(first);
        let named = if planted.is_some() { "planted" } else { "hardware" };
        let info = TimestampInfo {
            interface: interface.into(),
            transmit: if transmit { named } else { kernel.0 },
            receive: if receive { named } else { kernel.1 },
            why: if transmit && receive { String::new() } else { can.described() },
            clock: Some(clock),
            method: Some(method),
            rate_bps,
            budget: if transmit { budget } else { 0 },
        };
        let nominal_ns = track.nominal_ns();
        let config = TimestampConfig { transmit, receive, budget, nominal_ns, rate, planted };
        Ok(Self { info, config: Some(config), clock: Some(PhcTracker { source, track, rate }), on })
    }
}

/// Hardware clock and the directions it timestamps.
struct Found {
    transmit: bool,
    receive: bool,
    clock: String,
    method: &'static str,
    source: Box<dyn ReadsBothClocks + Send>,
    budget: usize,
    on: Option<HardwareTimestamping>,
}

impl Found {
    fn planted(planted: PlantedHardware) -> Self {
        Self {
            transmit: true,
            receive: true,
            clock: "planted".into(),
            method: "planted",
            source: Box::new(planted),
            budget: budget_of(None),
            on: None,
        }
    }

    /// Timestamps of the interface, enabled; or the reason why not.
    fn of(interface: &str, can: TimestampCapability) -> Result<Self, String> {
        let transmit = can.transmit() == TimestampSource::Hardware;
        let receive = can.receive() == TimestampSource::Hardware;
        let number = can
            .phc()
            .filter(|_| transmit || receive)
            .ok_or_else(|| format!("the interface does not support it: {}", can.described()))?;
        let clock = HardwareClock::open(number).map_err(|e| e.to_string())?;
        let on = HardwareTimestamping::start(interface, transmit, receive).map_err(|e| e.to_string())?;
        Ok(Self {
            transmit,
            receive,
            clock: clock.path().display().to_string(),
            method: clock.method().name(),
            source: Box::new(clock),
            budget: budget_of(wg_net::driver(interface).as_deref()),
            on: Some(on),
        })
    }
}

/// Kernel timestamps, if the hardware has none.
fn kernel_at_best(source: TimestampSource) -> &'static str {
    if source == TimestampSource::None { "none" } else { "software" }
}

/// Hardware timestamp statistics of an access point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardwareStats {
    /// Transmit timestamps.
    pub transmit: BudgetStats,
    /// Frames received with a timestamp.
    pub received: u64,
    /// Frames received without a timestamp.
    pub missing: u64,
}

impl HardwareStats {
    /// Adds the statistics of another access point.
    pub fn add(&mut self, other: &Self) {
        self.transmit.add(&other.transmit);
        self.received += other.received;
        self.missing += other.missing;
    }
}

/// Reference octets of timestamps in one direction.
#[derive(Clone, Copy, Debug, Serialize)]
struct Octets {
    /// Octet that is timestamped.
    timestamped: Octet,
    /// Octet to which recorded times refer.
    recorded: Octet,
}

#[derive(Clone, Debug, Serialize)]
struct ClockJson<'a> {
    device: &'a str,
    method: &'a str,
    readings: u64,
    poor: u64,
    steps: u64,
    uncertainty_ns: f64,
    drift_ppm: Option<f64>,
    drift_uncertainty_ppm: Option<f64>,
    step_ns: u64,
    placed: u64,
    unplaced: u64,
    failure: Option<&'a str>,
    points: Vec<PointJson>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct PointJson {
    seconds: f64,
    #[serde(flatten)]
    point: Point,
}

/// Report on the timestamps of a port.
pub fn report(
    port: &PortTimestamps,
    translated: Option<&TranslationStats>,
    epoch_ns: i64,
) -> proto::TimestampReport {
    let info = &port.info;
    proto::TimestampReport {
        interface: info.interface.clone(),
        transmit: info.transmit.into(),
        receive: info.receive.into(),
        why: info.why.clone(),
        figures_json: json(info, &port.stats, translated, epoch_ns),
    }
}

/// Timestamp data of a run for the manifest (docs/reference/run-directory.md).
fn json(
    info: &TimestampInfo,
    got: &HardwareStats,
    placed: Option<&TranslationStats>,
    epoch_ns: i64,
) -> String {
    let octets = |kind: &str, of: fn(Timestamps) -> Octet| {
        let taken =
            if matches!(kind, "hardware" | "planted") { Timestamps::HARDWARE } else { Timestamps::SOFTWARE };
        Octets { timestamped: of(taken), recorded: of(Timestamps::SOFTWARE) }
    };
    let clock = info.clock.as_deref().zip(placed).map(|(device, placed)| ClockJson {
        device,
        method: info.method.unwrap_or_default(),
        readings: placed.track.readings,
        poor: placed.track.poor,
        steps: placed.track.steps,
        uncertainty_ns: placed.track.uncertainty_ns,
        drift_ppm: placed.track.drift_ppm.map(|drift| drift.0),
        drift_uncertainty_ppm: placed.track.drift_ppm.map(|drift| drift.1),
        step_ns: placed.step_ns.max(1),
        placed: placed.placed,
        unplaced: placed.unplaced,
        failure: placed.failure.as_deref(),
        points: placed
            .track
            .points
            .iter()
            .map(|&point| PointJson { seconds: (point.at_ns - epoch_ns) as f64 / 1e9, point })
            .collect(),
    });
    serde_json::json!({
        "sent": octets(info.transmit, |octets| octets.sent),
        "received": octets(info.receive, |octets| octets.received),
        "rate_bps": info.rate_bps,
        "budget": info.budget,
        "transmit_timestamps": got.transmit,
        "receive_timestamps": { "timestamped": got.received, "missing": got.missing },
        "clock": clock,
    })
    .to_string()
}

/// Timestamps at one port: source and statistics.
#[derive(Clone, Debug, Default)]
pub struct PortTimestamps {
    /// Port number.
    pub port: u16,
    /// Source of the timestamps.
    pub info: TimestampInfo,
    /// Statistics of the access points.
    pub stats: HardwareStats,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_clock_the_kernel_timestamps_and_the_reason_is_told() {
        let timestamping = Timestamping::open("lo", Some(1_000_000_000), None);
        assert_eq!((timestamping.info.transmit, timestamping.info.receive), ("software", "software"));
        assert!(timestamping.info.why.contains("no clock of its own"), "{}", timestamping.info.why);
        assert!(timestamping.config.is_none() && timestamping.clock.is_none());
        let json = json(&timestamping.info, &HardwareStats::default(), None, 0);
        assert!(json.contains(r#""sent":{"recorded":"preamble","timestamped":"preamble"}"#), "{json}");
        assert!(json.contains(r#""received":{"recorded":"last","timestamped":"last"}"#), "{json}");
    }

    #[test]
    fn a_planted_clock_is_called_planted_and_needs_the_rate_of_the_line() {
        let planted = "-37000000000,20000,8".parse().ok();
        let timestamping = Timestamping::open("lo", Some(1_000_000_000), planted);
        assert_eq!((timestamping.info.transmit, timestamping.info.receive), ("planted", "planted"));
        let config = timestamping.config.expect("there is a clock");
        assert!((config.nominal_ns - 37_000_000_000).abs() < 1_000_000, "{config:?}");
        assert_eq!((config.budget, config.planted), (1, planted));
        let without = Timestamping::open("lo", None, planted);
        assert!(without.config.is_none() && without.info.why.contains("line rate"));
    }
}
