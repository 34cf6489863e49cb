//! Flows with ATS schedulers on their path: a flow goes on behind each as one by itself.

use wg_plan::{AsynchronousShaper, Attachment, Flow as PlannedFlow, FlowScheduler};

use super::classes::rank;
use super::{PICOS_PER_SECOND, Reading};
use crate::curve::Bucket;
use crate::model::{Flow, Regulator, Step, Target};
use crate::rational::Rational;

impl Reading<'_> {
    /// The scheduler of a flow in front of a port, with the shaper that it belongs to.
    fn scheduler(&self, flow: &PlannedFlow, step: &Step) -> Option<(AsynchronousShaper, FlowScheduler)> {
        step.before?;
        let at: Attachment = *self.servers.iter().find(|(_, server)| **server == step.server)?.0;
        if !flow.routes.iter().flat_map(|route| &route.hops).any(|hop| hop.from == at) {
            // Frames back from a relay are no frames of its stream.
            return None;
        }
        let tsn = self.tsn(at)?;
        let class = (0..tsn.classes.len()).find(|class| rank(&tsn, *class) == step.class)?;
        let shaper = tsn.classes[class].asynchronous.clone()?;
        let own = shaper.schedulers.iter().find(|own| own.flow == flow.id).copied()?;
        Some((shaper, own))
    }

    /// Adds a flow of the model: the part up to its first regulators, and one behind each. `bits`: lengths of its frames
    /// on the wire.
    pub(super) fn push(&mut self, planned: &PlannedFlow, flow: Flow, bits: &[i128]) {
        let schedulers: Vec<_> = flow.steps.iter().map(|step| self.scheduler(planned, step)).collect();
        let first = self.model.flows.len();
        let root = Flow { steps: Vec::new(), targets: Vec::new(), ..flow.clone() };
        let mut parts = vec![root];
        // Part and step there of each step of the whole.
        let mut at: Vec<(usize, usize)> = Vec::with_capacity(flow.steps.len());
        for (step, scheduler) in flow.steps.iter().zip(schedulers) {
            let before = step.before.map(|before| at[before]);
            let (part, own) = match (before, scheduler) {
                (Some((from, last)), Some((shaper, scheduler))) => {
                    let target = Target {
                        name: String::new(),
                        last,
                        wait: step.wait.clone(),
                        least_wait: Rational::ZERO,
                        unbounded: false,
                        goes_on: true,
                    };
                    parts[from].targets.push(target);
                    let from = (first + from, parts[from].targets.len() - 1);
                    parts.push(behind(&flow, from, (step, &shaper, scheduler), bits));
                    let own = Step {
                        before: None,
                        wait: Rational::ZERO,
                        variation: Rational::ZERO,
                        ..step.clone()
                    };
                    (parts.len() - 1, own)
                }
                (before, _) => (
                    before.map_or(0, |(part, _)| part),
                    Step { before: before.map(|(_, step)| step), ..step.clone() },
                ),
            };
            parts[part].steps.push(own);
            at.push((part, parts[part].steps.len() - 1));
        }
        for target in flow.targets {
            let (part, last) = at[target.last];
            parts[part].targets.push(Target { last, ..target });
        }
        for part in parts {
            self.note_lengths(bits.iter().copied());
            self.model.flows.push(part);
        }
    }
}

/// A flow behind a scheduler, and behind what lies before its step. Durations there are whole picoseconds, rounded up.
fn behind(
    flow: &Flow,
    from: (usize, usize),
    (before, shaper, scheduler): (&Step, &AsynchronousShaper, FlowScheduler),
    bits: &[i128],
) -> Flow {
    let rate = i128::from(scheduler.rate_bps.max(1));
    let lasts = |bits: i128| {
        let exactly = bits * PICOS_PER_SECOND;
        (exactly + rate - 1) / rate
    };
    let fills_in = Rational::new(lasts(8 * i128::from(scheduler.burst)), PICOS_PER_SECOND);
    // Rounding makes a frame count for a little more than it has.
    let least = bits.iter().map(|bits| Rational::new(bits * PICOS_PER_SECOND, lasts(*bits).max(1))).min();
    let rate = Rational::integer(rate);
    let passes = least.unwrap_or_else(|| rate.clone());
    // A frame longer than the bucket passes when that is full.
    let burst = (&rate * &fills_in).max(flow.longest_frame.clone());
    let mut part = Flow::new(flow.name.clone(), vec![Bucket { burst, rate: rate.clone() }]);
    part.is_part = true;
    part.longest_frame = flow.longest_frame.clone();
    part.shortest_frame = flow.shortest_frame.clone();
    part.least_wait = &before.wait - &before.variation;
    part.regulator = Some(Regulator {
        from,
        rate,
        passes: Bucket { burst: &passes * &fills_in, rate: passes },
        fills_in,
        longest_wait: super::seconds(shaper.longest_residence),
    });
    part
}
