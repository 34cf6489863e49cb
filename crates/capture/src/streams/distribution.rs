//! Distributions as they are reported.

use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use wg_record::Sketch;

/// Quantiles of a distribution.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];
const TOO_FEW_BEYOND: f64 = 5.0;

/// Greatest number of classes of a histogram.
const CLASSES: u64 = 40;

/// Values in classes of equal width from the least to the greatest: least and greatest value, count. None is empty. A
/// value within a thousandth of an edge may be in the next class.
pub(super) fn histogram(sketch: &Sketch) -> Vec<(i64, i64, u64)> {
    let (Some(min), Some(max)) = (sketch.min(), sketch.max()) else { return Vec::new() };
    let width = (max.abs_diff(min) / CLASSES).saturating_add(1);
    let mut classes: Vec<(u64, (i64, i64, u64))> = Vec::new();
    for bucket in sketch.buckets() {
        let class = bucket.low.max(min).abs_diff(min) / width;
        match classes.last_mut().filter(|(known, _)| *known == class) {
            Some((_, (_, _, count))) => *count += bucket.count,
            None => {
                let low = min.saturating_add_unsigned(class.saturating_mul(width));
                let high = low.saturating_add_unsigned(width - 1).min(max);
                classes.push((class, (low, high, bucket.count)));
            }
        }
    }
    classes.into_iter().map(|(_, class)| class).collect()
}

/// A distribution in ps: extremes, mean and n exact, quantiles to a thousandth of themselves.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Distribution {
    /// Number of values.
    pub n: u64,
    /// Least value.
    pub min: Option<i64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Standard deviation.
    pub sd: Option<f64>,
    /// Greatest value.
    pub max: Option<i64>,
    /// Quantiles that n supports, each from the least to the greatest value it may have.
    pub quantiles: Map<String, Json>,
}

impl Distribution {
    pub(super) fn of(sketch: &Sketch) -> Self {
        let n = sketch.n();
        let mut quantiles = Map::new();
        for (name, share) in QUANTILES {
            // A quantile needs some values beyond it.
            if n as f64 * (1.0 - share) < TOO_FEW_BEYOND {
                continue;
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank of n values")]
            let rank = (share * n as f64).ceil() as u64;
            if let (Some(bucket), Some(min), Some(max)) = (sketch.rank(rank), sketch.min(), sketch.max()) {
                quantiles.insert(name.into(), json!([bucket.low.max(min), bucket.high.min(max)]));
            }
        }
        Self {
            n,
            min: sketch.min(),
            mean: (n > 0).then(|| sketch.sum() as f64 / n as f64),
            sd: (n > 1).then(|| (sketch.squared_deviations() / (n - 1) as f64).sqrt()),
            max: sketch.max(),
            quantiles,
        }
    }

    /// The distribution of the negated values; without quantiles other than the median.
    pub(super) fn negated(self) -> Self {
        let median = self.quantiles.get("p50").and_then(|ends| {
            let [low, high] = [ends.get(0)?.as_i64()?, ends.get(1)?.as_i64()?];
            Some(json!([-high, -low]))
        });
        Self {
            n: self.n,
            min: self.max.map(i64::saturating_neg),
            mean: self.mean.map(|value| -value),
            sd: self.sd,
            max: self.min.map(i64::saturating_neg),
            quantiles: median.map(|ends| ("p50".to_owned(), ends)).into_iter().collect(),
        }
    }
}
