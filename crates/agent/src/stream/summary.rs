//! What streams did, as the statistics of a report. Times are ns.

use serde::Serialize;
use wg_net::receive::RxDrops;
use wg_record::Sketch;

use super::account::Account;
use super::gaps::Gaps;
use super::paced_sender::PacedStats;

/// A distribution. Percentiles are nearest-rank, to a thousandth; absent where n is too small for one above them.
#[derive(Clone, Debug, Serialize)]
pub struct Distribution {
    /// Values.
    pub n: u64,
    /// Lowest.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation, n − 1.
    pub sd: f64,
    /// Median.
    pub p50: f64,
    /// 99 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// 99.9 %.
    #[serde(rename = "p99.9", skip_serializing_if = "Option::is_none")]
    pub p999: Option<f64>,
    /// Highest.
    pub max: f64,
}

impl Distribution {
    /// Of a sketch of ps; `None` without values.
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

/// How gaps were kept.
#[derive(Clone, Debug, Serialize)]
pub struct GapSummary {
    /// Gaps.
    pub n: u64,
    /// Share of them within ±1 µs of the nominal gap.
    pub within_1us: f64,
    /// Within ±5 µs.
    pub within_5us: f64,
    /// Within ±50 µs.
    pub within_50us: f64,
    /// Gap minus nominal gap, ns.
    pub deviation_ns: Distribution,
}

impl GapSummary {
    /// `None` without gaps.
    pub fn of(gaps: &Gaps) -> Option<Self> {
        let [within_1us, within_5us, within_50us] = gaps.shares()?;
        let deviation_ns = Distribution::of(&gaps.deviation)?;
        Some(Self { n: gaps.deviation.n(), within_1us, within_5us, within_50us, deviation_ns })
    }
}

/// Statistics of a sender.
#[derive(Clone, Debug, Serialize)]
pub struct SendSummary {
    /// Frames handed to the kernel.
    pub offered: u64,
    /// Of these, refused; of live frames the kernel does not tell.
    pub refused: u64,
    /// Frames so late that they were not sent.
    pub given_up: u64,
    /// From the first to the last, s.
    pub seconds: f64,
    /// Frames a second.
    pub rate: f64,
    /// Actual minus intended send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_error_ns: Option<Distribution>,
    /// Gaps as sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gaps: Option<GapSummary>,
    /// Frames whose launch time had passed, and whose launch time the interface did not take; they were not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launches: Option<LaunchSummary>,
}

/// Launch times that were not kept.
#[derive(Clone, Debug, Serialize)]
pub struct LaunchSummary {
    /// Passed before the frame came to the queue.
    pub missed: u64,
    /// Not taken.
    pub invalid: u64,
}

impl SendSummary {
    /// The statistics of a sender.
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

/// What became of a stream.
#[derive(Clone, Debug, Serialize)]
pub struct AccountSummary {
    /// Number in the probe header.
    pub flow: u16,
    /// Intact frames.
    pub received: u64,
    /// Different numbers.
    pub distinct: u64,
    /// Numbers below the highest that never came; what was sent after the highest is not among them.
    pub missing: u64,
    /// Repeated numbers.
    pub duplicates: u64,
    /// Numbers that came after a higher one.
    pub reordered: u64,
    /// Frames with a wrong CRC.
    pub corrupted: u64,
    /// Frames too late to say whether they are repeats.
    pub behind: u64,
    /// From the first to the last, s.
    pub seconds: f64,
    /// Frames a second.
    pub rate: f64,
    /// Bits a second on the wire, preamble and gap included.
    pub wire_bps: f64,
    /// Arrival minus transmit time in the frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Distribution>,
    /// Gaps between transmit times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_gaps: Option<GapSummary>,
    /// Gaps between arrivals.
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

/// What a receiver did not get.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RxDropsSummary {
    /// Its ring was full: the receiver was too slow.
    pub ring: u64,
    /// Anything else the kernel counts.
    pub other: u64,
}

impl From<RxDrops> for RxDropsSummary {
    fn from(drops: RxDrops) -> Self {
        Self { ring: drops.ring, other: drops.other }
    }
}
