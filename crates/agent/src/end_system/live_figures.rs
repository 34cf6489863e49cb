//! Flows of an end system with live figures during a run: flows under test that start or end here.

use crate::end_system::assignment::{Assignment, FlowRole};
use crate::recording::live::{LiveFlow, LivePart};

/// Live flows in the order of the plan.
pub(super) fn of(assignment: &Assignment) -> Vec<LiveFlow> {
    (0_u16..)
        .zip(&assignment.flows)
        .filter(|(_, facts)| !facts.exchange && facts.answers.is_none())
        .filter_map(|(position, facts)| {
            let part = match facts.role {
                FlowRole::RoundTripSender => LivePart::RoundTrip,
                FlowRole::Receiver => {
                    let due = assignment.due.iter().find(|(flow, _)| *flow == position);
                    LivePart::Receiver(due.map(|(_, schedule)| schedule.clone()))
                }
                FlowRole::Unexpected if facts.from == assignment.node => LivePart::Sender,
                _ => return None,
            };
            let (planned, in_half_a_second) = (facts.planned, facts.in_half_a_second);
            Some(LiveFlow { id: facts.id, part, planned, in_half_a_second })
        })
        .collect()
}
