//! Stream functions of a node (IEEE Std 802.1CB): replication, elimination, relaying.

use std::collections::BTreeMap;

use wg_core::frer::{Elimination, Relay, Replication, StreamId, StreamTable};
use wg_frame::ethernet::MacAddress;
use wg_plan::{Flow, Frer, NodeIndex, Run};

use crate::error::SimError;

/// The stream functions of `node` for the copies of `flows`; `None` for most nodes.
pub(super) fn streams(flows: &[&Flow], node: NodeIndex) -> Result<Option<StreamTable>, SimError> {
    let (mut replications, mut eliminations) = (Vec::new(), Vec::new());
    let (mut junctions, mut relays) = (Vec::new(), Vec::new());
    for (flow, frer) in flows.iter().filter_map(|flow| Some((*flow, flow.frer?))) {
        if frer.replicate_at == node {
            let members = addresses(flow, frer.made(&flow.routes));
            replications.push(Replication { stream: stream(flow, 0), members });
        }
        if frer.eliminate_at == node {
            eliminations.push(Elimination {
                stream: stream(flow, 0),
                members: addresses(flow, frer.removed(&flow.routes)),
                recovery: frer.recovery(),
                individual: frer.individual_recovery(),
                latent: frer.latent_errors,
            });
        }
        if let Some(junction) = frer.junctions(&flow.routes).remove(&node) {
            let mut leaves: BTreeMap<usize, Vec<MacAddress>> = BTreeMap::new();
            for (&out, comes) in &junction.leaves {
                for into in comes {
                    leaves.entry(*into).or_default().push(Frer::address(flow.id, out));
                }
                if comes.len() > 1 {
                    junctions.push(Elimination {
                        stream: stream(flow, out),
                        members: addresses(flow, comes.iter().copied()),
                        recovery: frer.recovery(),
                        individual: frer.individual_recovery(),
                        latent: None,
                    });
                }
            }
            let relay = |(into, leaves)| Relay { stream: stream(flow, into), leaves };
            relays.extend(leaves.into_iter().map(relay));
        }
    }
    if replications.is_empty() && eliminations.is_empty() && relays.is_empty() {
        return Ok(None);
    }
    StreamTable::new(replications, eliminations)
        .and_then(|table| table.with_relays(junctions, relays))
        .map(Some)
        .map_err(|error| SimError::plan(format!("node {node}: {error}")))
}

/// Flows whose copies are removed at `node`, in the order of [`StreamTable::eliminated`].
pub(crate) fn eliminated_at(run: &Run, node: NodeIndex) -> Vec<u16> {
    let here = |flow: &&Flow| flow.frer.is_some_and(|frer| frer.eliminate_at == node);
    run.flows.iter().filter(here).map(|flow| flow.id).collect()
}

/// Flows whose copies are joined at `node`, with the member stream as which they go on, in the order of
/// [`StreamTable::joined`].
pub(crate) fn joined_at(run: &Run, node: NodeIndex) -> Vec<(u16, usize)> {
    let mut all = Vec::new();
    for (flow, frer) in run.flows.iter().filter_map(|flow| Some((flow, flow.frer?))) {
        let junction = frer.junctions(&flow.routes).remove(&node).unwrap_or_default();
        let joined = junction.leaves.into_iter().filter(|(_, comes)| comes.len() > 1);
        all.extend(joined.map(|(out, _)| (flow.id, out)));
    }
    all
}

fn stream(flow: &Flow, member: usize) -> StreamId {
    StreamId { destination: Frer::address(flow.id, member), vlan: flow.vlan.map_or(0, |tag| tag.id) }
}

fn addresses(flow: &Flow, members: impl IntoIterator<Item = usize>) -> Vec<MacAddress> {
    members.into_iter().map(|member| Frer::address(flow.id, member)).collect()
}
