//! Processor time that the network takes on its core, by part; time spent waiting, asleep or awake, does not count.

use wg_frame::time::{RunTime, Span};

use crate::proto;

/// Processor time by part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    taking: Span,
    model: Span,
    handing: Span,
    /// When the model began to work, moved on by the time spent on handing frames over meanwhile.
    since: Option<RunTime>,
}

impl Cost {
    /// Frames were taken from the ports until `end`, when the model begins to work.
    pub(super) fn took(&mut self, begin: RunTime, end: RunTime) {
        self.taking += end - begin;
        self.since = Some(end);
    }

    /// The model begins to work without an arrival.
    pub(super) fn go_on(&mut self, at: RunTime) {
        self.since = Some(at);
    }

    /// The model has finished its work.
    pub(super) fn rest(&mut self, at: RunTime) {
        if let Some(since) = self.since.take() {
            self.model += at - since;
        }
    }

    /// Frames were handed to the kernel.
    pub(super) fn handed(&mut self, begin: RunTime, end: RunTime) {
        self.handing += end - begin;
        self.since = self.since.map(|since| since + (end - begin));
    }

    /// The cost for the report.
    pub(super) fn report(&self) -> proto::NetworkCost {
        proto::NetworkCost {
            taking_ns: self.taking.as_nanos_floor(),
            model_ns: self.model.as_nanos_floor(),
            handing_ns: self.handing.as_nanos_floor(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stretch_is_of_one_part_and_rests_are_of_none() {
        let at = |us: i64| RunTime::ZERO + Span::from_micros(us);
        let mut cost = Cost::default();
        cost.rest(at(5));
        cost.took(at(10), at(13));
        cost.handed(at(15), at(19));
        cost.rest(at(20));
        cost.rest(at(90));
        cost.go_on(at(100));
        cost.rest(at(101));
        cost.handed(at(110), at(111));
        let told = cost.report();
        assert_eq!((told.taking_ns, told.model_ns, told.handing_ns), (3_000, 4_000, 5_000));
    }
}
