//! What befalls the network at stated instants, as one list in the order of time.

use wg_frame::time::{RunTime, Span};
use wg_plan::{Incident, IncidentKind, NodeIndex, Run};

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// A link is cut.
    Cut(usize),
    /// A cut ends.
    Restored(usize),
    /// A switch goes down until then.
    Down(NodeIndex, RunTime),
    /// It is back.
    Up(NodeIndex),
    /// A babbler begins, by index.
    BabbleBegins(usize),
    /// It ends.
    BabbleEnds(usize),
    /// A clock is set forward by so much.
    ClockStepped(NodeIndex, Span),
    /// A clock's frequency changes.
    DriftChanged(NodeIndex),
}

/// The incidents of `run` and the temperature steps of its clocks, ascending; at equal instants in the order of the
/// plan, an end after its own beginning.
pub(crate) fn deeds(
    run: &Run,
    temperatures: impl Iterator<Item = (NodeIndex, Span)>,
) -> Vec<(RunTime, Deed)> {
    let at = |span: Span| RunTime::ZERO + span;
    let mut deeds = Vec::new();
    let mut babblers = 0;
    for &Incident { at: when, kind } in &run.incidents {
        let when = at(when);
        match kind {
            IncidentKind::Cut { link, until } => {
                deeds.push((when, Deed::Cut(link as usize)));
                deeds.extend(until.map(|until| (at(until), Deed::Restored(link as usize))));
            }
            IncidentKind::Babble { until, .. } => {
                deeds.push((when, Deed::BabbleBegins(babblers)));
                deeds.push((at(until), Deed::BabbleEnds(babblers)));
                babblers += 1;
            }
            IncidentKind::Restart { switch, until } => {
                deeds.push((when, Deed::Down(switch, at(until))));
                deeds.push((at(until), Deed::Up(switch)));
            }
            IncidentKind::ClockStep { node, by } => deeds.push((when, Deed::ClockStepped(node, by))),
        }
    }
    deeds.extend(temperatures.map(|(node, when)| (at(when), Deed::DriftChanged(node))));
    deeds.sort_by_key(|(when, _)| *when);
    deeds
}
