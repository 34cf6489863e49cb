//! How well the network kept the instants of its model.

use wg_record::Sketch;

use crate::proto;

/// Of the frames towards one end system: how much later than the model wanted they left.
#[derive(Clone, Debug, Default)]
pub(super) struct Release {
    late: Sketch,
    /// Frames that the kernel did not take.
    pub(super) undelivered: u64,
}

impl Release {
    /// A frame left so much later, ps.
    #[inline]
    pub(super) fn add(&mut self, late_ps: i64) {
        self.late.add(late_ps);
    }

    /// For the report.
    pub(super) fn report(&self, end_system: String) -> proto::PortRelease {
        let n = self.late.n();
        // The value of which this share is not above, the upper end of its bucket: never less than what was seen.
        let at = |thousandths: u64| {
            let rank = (n * thousandths).div_ceil(1_000).max(1);
            self.late
                .rank(rank)
                .map_or(0, |bucket| bucket.high.min(self.late.max().unwrap_or(bucket.high)) / 1_000)
        };
        proto::PortRelease {
            end_system,
            frames: n,
            p50_ns: at(500),
            p99_ns: at(990),
            p999_ns: at(999),
            max_ns: self.late.max().unwrap_or(0) / 1_000,
            undelivered: self.undelivered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_never_better_than_what_was_seen() {
        let mut release = Release::default();
        assert_eq!(release.report("a".into()).frames, 0);
        (1..=1_000).for_each(|us| release.add(us * 1_000_000));
        let report = release.report("a".into());
        assert_eq!((report.frames, report.max_ns), (1_000, 1_000_000));
        assert!((500_000..=520_000).contains(&report.p50_ns), "{}", report.p50_ns);
        assert!((999_000..=1_000_000).contains(&report.p999_ns), "{}", report.p999_ns);
    }
}
