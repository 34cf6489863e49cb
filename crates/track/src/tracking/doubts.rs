//! Messages whose outcome a gap in the records leaves open.

use wg_plan::{FlowId, NodeIndex, Run};
use wg_record::Gap;

use super::window::{Copies, Seen};

/// The gaps that concern one flow at one receiver.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// Begin and end, ps.
    stretches: Vec<[i64; 2]>,
    /// Measured messages with a lower number were sent, with or without a record.
    pub(super) handed_over: u32,
    /// Maximum time from sending to arrival of a message, ps.
    patience: i64,
}

impl Doubts {
    /// The gaps for a flow from `from` to `to` that ends at `last`; for a relayed flow that is `from`.
    pub(super) fn new(flow: FlowId, [from, to, last]: [NodeIndex; 3], run: &Run, gaps: &[Gap]) -> Self {
        let mut found = Self { patience: run.drain.as_picos(), ..Self::default() };
        for gap in gaps.iter().filter(|gap| gap.flows.is_empty() || gap.flows.contains(&flow)) {
            let is_at = |node| gap.node.is_none_or(|at| at == node);
            if let Some(count) = gap.handed_over {
                found.handed_over = found.handed_over.max(if is_at(from) { count } else { 0 });
            } else if is_at(last) || (gap.frames && is_at(to)) {
                found.stretches.push([gap.from_ps.unwrap_or(i64::MIN), gap.to_ps.unwrap_or(i64::MAX)]);
            }
        }
        found
    }

    /// Whether a message that did not arrive, sent at `sent_ps`, may have arrived unseen. A known fate leaves no doubt,
    /// but for a flow that `goes_two_ways`.
    pub(super) fn leave_open(&self, goes_two_ways: bool, seen: &Seen, sent_ps: Option<i64>) -> bool {
        if self.stretches.is_empty() {
            return false;
        }
        let is_traced =
            seen.reason != 0 || seen.copies(Copies::CORRUPTED) > 0 || seen.copies(Copies::MISDIRECTED) > 0;
        if is_traced && !goes_two_ways {
            return false;
        }
        let Some(sent) = sent_ps else { return true };
        self.stretches.iter().any(|&[from, to]| to >= sent && from <= sent.saturating_add(self.patience))
    }
}
