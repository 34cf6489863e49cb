//! Release error: how well the network kept the instants of its model.

use std::collections::VecDeque;

use wg_frame::time::RunTime;
use wg_net::transmit::Flushed;
use wg_record::{Crossing, CrossingKind, Sketch};

use crate::proto;

/// The release error of frames to one end system: how much later they left than the model wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Release {
    late: Sketch,
    /// Frames not yet handed to the kernel, with the instants at which the model wanted them to leave.
    waiting: VecDeque<Crossing>,
    /// Frames that the kernel did not take.
    pub(super) undelivered: u64,
}

impl Release {
    /// Notes a frame that leaves with the next call of the kernel, with its row.
    #[inline]
    pub(super) fn wait(&mut self, row: Crossing) {
        self.waiting.push_back(row);
    }

    /// Notes what the kernel, called at `at`, did with the waiting frames, oldest first. Their rows go to `gone`.
    #[inline]
    pub(super) fn leave(&mut self, at: RunTime, frames: Flushed, mut gone: impl FnMut(Crossing)) {
        let Flushed { taken, refused } = frames;
        for (number, row) in self.waiting.drain(..(taken + refused).min(self.waiting.len())).enumerate() {
            let late = at - row.time;
            let kind = if number < taken { CrossingKind::Left } else { CrossingKind::Refused };
            match kind {
                CrossingKind::Left => self.late.add(late.as_picos()),
                _ => self.undelivered += 1,
            }
            gone(Crossing { late, kind, ..row });
        }
    }

    /// Notes that the newest waiting frame found no room; returns false if none waits.
    pub(super) fn refuse_last(&mut self, gone: impl FnOnce(Crossing)) -> bool {
        let row = self.waiting.pop_back();
        self.undelivered += u64::from(row.is_some());
        row.map(|row| gone(Crossing { kind: CrossingKind::Refused, ..row })).is_some()
    }

    /// The release error for the report.
    pub(super) fn report(&self, end_system: String, access: &str) -> proto::PortRelease {
        let n = self.late.n();
        // The upper end of the bucket that holds the percentile: never less than the observed value.
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
            access: access.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wg_frame::time::Span;

    #[test]
    fn quantiles_are_never_better_than_what_was_seen() {
        let mut release = Release::default();
        assert_eq!(release.report("a".into(), "packet").frames, 0);
        let at = |us| RunTime::ZERO + Span::from_micros(us);
        let mut rows = Vec::new();
        (0..=1_001).for_each(|us| release.wait(Crossing::ended(at(1_000 - us))));
        release.leave(at(1_000), Flushed { taken: 1_000, refused: 1 }, |row| rows.push(row));
        assert!(release.refuse_last(|row| rows.push(row)) && !release.refuse_last(|_| ()));
        let refused = rows.iter().filter(|row| row.kind == CrossingKind::Refused);
        assert_eq!((rows.len(), refused.count(), release.undelivered), (1_002, 2, 2));
        assert_eq!(rows[7].late, Span::from_micros(7));
        let report = release.report("a".into(), "packet");
        assert_eq!((report.frames, report.max_ns), (1_000, 999_000));
        assert!((499_000..=520_000).contains(&report.p50_ns), "{}", report.p50_ns);
        assert!((998_000..=999_000).contains(&report.p999_ns), "{}", report.p999_ns);
    }
}
