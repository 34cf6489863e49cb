//! Incidents of the network at stated instants, as one list in the order of time.

use wg_frame::time::{RunTime, Span};
use wg_plan::{Incident, IncidentKind, NodeIndex, Run};

/// An incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetworkEvent {
    /// A link is cut.
    Cut(usize),
    /// A cut ends.
    Restored(usize),
    /// A switch goes down until the given instant.
    Down(NodeIndex, RunTime),
    /// A switch is up again.
    Up(NodeIndex),
    /// A babbler, by index, begins.
    BabbleBegins(usize),
    /// A babbler ends.
    BabbleEnds(usize),
    /// A clock is stepped by the given time.
    ClockStepped(NodeIndex, Span),
    /// A clock's frequency changes.
    DriftChanged(NodeIndex),
}

/// The incidents of `run` and the temperature steps of its clocks, ascending; at equal instants in the order of the
/// plan, an end after its own beginning.
pub(crate) fn network_events(
    run: &Run,
    temperatures: impl Iterator<Item = (NodeIndex, Span)>,
) -> Vec<(RunTime, NetworkEvent)> {
    let at = |span: Span| RunTime::ZERO + span;
    let mut network_events = Vec::new();
    let mut babblers = 0;
    for &Incident { at: when, kind } in &run.incidents {
        let when = at(when);
        match kind {
            IncidentKind::Cut { link, until } => {
                network_events.push((when, NetworkEvent::Cut(link as usize)));
                network_events.extend(until.map(|until| (at(until), NetworkEvent::Restored(link as usize))));
            }
            IncidentKind::Babble { until, .. } => {
                network_events.push((when, NetworkEvent::BabbleBegins(babblers)));
                network_events.push((at(until), NetworkEvent::BabbleEnds(babblers)));
                babblers += 1;
            }
            IncidentKind::Restart { switch, until } => {
                network_events.push((when, NetworkEvent::Down(switch, at(until))));
                network_events.push((at(until), NetworkEvent::Up(switch)));
            }
            IncidentKind::ClockStep { node, by } => {
                network_events.push((when, NetworkEvent::ClockStepped(node, by)))
            }
        }
    }
    network_events.extend(temperatures.map(|(node, when)| (at(when), NetworkEvent::DriftChanged(node))));
    network_events.sort_by_key(|(when, _)| *when);
    network_events
}
