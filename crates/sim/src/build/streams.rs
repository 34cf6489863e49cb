//! What a node does with the copies of streams (IEEE Std 802.1CB): numbers and makes them, or removes them.

use wg_core::frer::{Elimination, Replication, StreamId, StreamTable};
use wg_plan::{Flow, Frer, NodeIndex, Run};

use crate::error::SimError;

/// The functions of `node`, where copies of `flows` are made or removed; none of most.
pub(super) fn streams(flows: &[&Flow], node: NodeIndex) -> Result<Option<StreamTable>, SimError> {
    let (mut replications, mut eliminations) = (Vec::new(), Vec::new());
    for (flow, frer) in flows.iter().filter_map(|flow| Some((*flow, flow.frer?))) {
        if frer.replicate_at == node {
            replications.push(Replication { stream: stream(flow), members: members(flow) });
        }
        if frer.eliminate_at == node {
            eliminations.push(Elimination {
                stream: stream(flow),
                members: members(flow),
                recovery: frer.recovery(),
                individual: frer.individual_recovery(),
                latent: frer.latent_errors,
            });
        }
    }
    if replications.is_empty() && eliminations.is_empty() {
        return Ok(None);
    }
    StreamTable::new(replications, eliminations)
        .map(Some)
        .map_err(|error| SimError::plan(format!("node {node}: {error}")))
}

/// Which flow has its copies removed where, in the order of [`StreamTable::eliminated`].
pub(crate) fn eliminated_at(run: &Run, node: NodeIndex) -> Vec<u16> {
    let here = |flow: &&Flow| flow.frer.is_some_and(|frer| frer.eliminate_at == node);
    run.flows.iter().filter(here).map(|flow| flow.id).collect()
}

fn stream(flow: &Flow) -> StreamId {
    StreamId { destination: Frer::address(flow.id, 0), vlan: flow.vlan.map_or(0, |tag| tag.id) }
}

fn members(flow: &Flow) -> Vec<wg_frame::ethernet::MacAddress> {
    (1..=flow.routes.len()).map(|member| Frer::address(flow.id, member)).collect()
}
