//! What the network costs its core, part by part; waiting, asleep or awake, is no part of it.

use wg_frame::time::{RunTime, Span};

use crate::proto;

/// Time spent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    taking: Span,
    model: Span,
    handing: Span,
    /// Since when the model goes on, what is handed over meanwhile left out.
    since: Option<RunTime>,
}

impl Cost {
    /// Frames were taken out of the ports, up to `end`; from then on the model goes on.
    pub(super) fn took(&mut self, begin: RunTime, end: RunTime) {
        self.taking += end - begin;
        self.since = Some(end);
    }

    /// The model goes on, with no frame that came.
    pub(super) fn go_on(&mut self, at: RunTime) {
        self.since = Some(at);
    }

    /// The model has done what there was to do.
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

    /// For the report.
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
