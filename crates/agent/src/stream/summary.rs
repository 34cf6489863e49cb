//! Statistics of streams in reports. Times are ns.

use serde::Serialize;
use wg_net::receive::RxDrops;
use wg_record::Sketch;

use super::account::Account;
use super::gaps::Gaps;
use super::paced_sender::PacedStats;

/// Summary of a distribution. Percentiles are nearest-rank with a relative error of up to 1/1000; absent if n is too
/// small.
#[derive(Clone, Debug, Serialize)]
pub struct Distribution {
    /// Number of values.
    pub n: u64,
    /// Minimum.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Sample standard deviation (n − 1).
    pub sd: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// 99.9th percentile.
    #[serde(rename = "p99.9", skip_serializing_if = "Option::is_none")]
    pub p999: Option<f64>,
    /// Maximum.
    pub max: f64,
}

impl Distribution {
    /// Summary of a sketch of ps values; `None` without values.
    pub fn of(sketch: &Sketch) -> Option<Self> {
        let n = sketch.n();
        let ns = |ps: i64| ps as f64 / 1e3;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number from 0 to n"
        )]
        let quantile = |share: f64| {
            let rank = ((share * n as f64).ceil() as u64).clamp(1, n);
            sketch.rank(rank).map(|bucket| (ns(bucket.low) + ns(bucket.high)) / 2.0)
        };
        let enough = |share: f64| (1.0 - share) * n as f64 >= 1.0;
        Some(Self {
            n,
            min: ns(sketch.min()?),
            mean: sketch.sum() as f64 / n as f64 / 1e3,
            sd: if n > 1 { (sketch.squared_deviations() / (n - 1) as f64).sqrt() / 1e3 } else { 0.0 },
            p50: quantile(0.5)?,
            p99: quantile(0.99).filter(|_| enough(0.99)),
            p999: quantile(0.999).filter(|_| enough(0.999)),
            max: ns(sketch.max()?),
        })
    }
}

/// Summary of gap deviations.
#[derive(Clone, Debug, Serialize)]
pub struct GapSummary {
    /// Number of gaps.
    pub n: u64,
    /// Fraction of gaps within ±1 µs of the nominal gap.
    pub within_1us: f64,
    /// Fraction within ±5 µs.
    pub within_5us: f64,
    /// Fraction within ±50 µs.
    pub within_50us: f64,
    /// Gap minus nominal gap, ns.
    pub deviation_ns: Distribution,
}

impl GapSummary {
    /// Summary of the gaps; `None` without gaps.
    pub fn of(gaps: &Gaps) -> Option<Self> {
        let [within_1us, within_5us, within_50us] = gaps.shares()?;
        let deviation_ns = Distribution::of(&gaps.deviation)?;
        Some(Self { n: gaps.deviation.n(), within_1us, within_5us, within_50us, deviation_ns })
    }
}

/// Statistics of a sender.
#[derive(Clone, Debug, Serialize)]
pub struct SendSummary {
    /// Frames passed to the kernel.
    pub offered: u64,
    /// Frames of these that were refused; the kernel does not report it for live frames.
    pub refused: u64,
    /// Frames skipped because they were too late.
    pub given_up: u64,
    /// Time from the first to the last frame, s.
    pub seconds: f64,
    /// Frames per second.
    pub rate: f64,
    /// Actual minus intended send time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_error_ns: Option<Distribution>,
    /// Gaps between sent frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gaps: Option<GapSummary>,
    /// Frames not sent because their launch time had passed or was refused by the interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launches: Option<LaunchSummary>,
}

/// Missed launch times.
#[derive(Clone, Debug, Serialize)]
pub struct LaunchSummary {
    /// Launch times that had passed before the frame reached the queue.
    pub missed: u64,
    /// Launch times refused by the interface.
    pub invalid: u64,
}

impl SendSummary {
    /// Statistics of a sender.
    pub fn of(done: &PacedStats) -> Self {
        let seconds = done.span.map_or(0.0, |(first, last)| (last - first) as f64 / 1e9);
        let intervals = done.offered.saturating_sub(1) as f64;
        Self {
            offered: done.offered,
            refused: done.refused,
            given_up: done.given_up,
            seconds,
            rate: if seconds > 0.0 { intervals / seconds } else { 0.0 },
            send_error_ns: Distribution::of(&done.error),
            gaps: GapSummary::of(&done.gaps),
            launches: done.unlaunched.map(|not| LaunchSummary { missed: not.missed, invalid: not.invalid }),
        }
    }
}

/// Arrival statistics of a stream.
#[derive(Clone, Debug, Serialize)]
pub struct AccountSummary {
    /// Flow number in the probe header.
    pub flow: u16,
    /// Intact frames.
    pub received: u64,
    /// Distinct frame numbers.
    pub distinct: u64,
    /// Numbers below the highest that did not arrive; frames sent after the highest are not included.
    pub missing: u64,
    /// Frames with a repeated number.
    pub duplicates: u64,
    /// Distinct frames that arrived after a higher number.
    pub reordered: u64,
    /// Frames with a wrong CRC.
    pub corrupted: u64,
    /// Frames too far below the highest number to be classified as duplicates.
    pub behind: u64,
    /// Time from the first to the last frame, s.
    pub seconds: f64,
    /// Frames per second.
    pub rate: f64,
    /// Bits per second on the wire, preamble and gap included.
    pub wire_bps: f64,
    /// Arrival time minus transmit time in the frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Distribution>,
    /// Gaps between transmit times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_gaps: Option<GapSummary>,
    /// Gaps between arrival times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrival_gaps: Option<GapSummary>,
}

impl AccountSummary {
    /// The statistics of an account.
    pub fn of(account: &Account) -> Self {
        let seconds = account.span.map_or(0.0, |(first, last)| (last.get() - first.get()) as f64 / 1e9);
        let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        let frames = account.received + account.corrupted;
        let share = if frames > 0 { frames.saturating_sub(1) as f64 / frames as f64 } else { 0.0 };
        Self {
            flow: account.flow(),
            received: account.received,
            distinct: account.distinct,
            missing: account.missing(),
            duplicates: account.duplicates,
            reordered: account.reordered,
            corrupted: account.corrupted,
            behind: account.behind,
            seconds,
            rate: per_second(frames.saturating_sub(1) as f64),
            wire_bps: per_second(account.wire_bytes as f64 * 8.0 * share),
            latency_ns: Distribution::of(&account.latency),
            sent_gaps: GapSummary::of(&account.sent_gaps),
            arrival_gaps: GapSummary::of(&account.arrival_gaps),
        }
    }
}

/// Frames dropped at a receiver.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RxDropsSummary {
    /// Frames dropped because the receiver was too slow and its ring full.
    pub ring: u64,
    /// All other drops that the kernel counts.
    pub other: u64,
}

impl From<RxDrops> for RxDropsSummary {
    fn from(drops: RxDrops) -> Self {
        Self { ring: drops.ring, other: drops.other }
    }
}
