//! Clusters of devices that synchronise.

use wg_core::as6802::{Behaviour, State};
use wg_frame::time::{RunTime, Span};
use wg_plan::random::{Purpose, Stream};
use wg_plan::{Cluster, NodeIndex, Run};

use super::places::{Ports, position};
use crate::clusters::{ClusterState, Part, Synchroniser};
use crate::error::SimError;
use crate::world::World;

impl World {
    pub(super) fn build_clusters(&mut self, run: &Run, ports: &Ports) -> Result<(), SimError> {
        for (number, cluster) in run.clusters.iter().enumerate() {
            cluster.parameters.check().map_err(|error| SimError::plan(error.to_string()))?;
            let first = self.synchronisers.len();
            for (bit, master) in (0..).zip(&cluster.masters) {
                let part = (Part::Master(bit), master.behaviour);
                self.add_synchroniser(run, number, cluster, master.node, part)?;
            }
            for (channel, of) in cluster.channels.iter().enumerate() {
                let part = (Part::CompressionMaster(channel), Behaviour::Correct);
                self.add_synchroniser(run, number, cluster, of.compression_master, part)?;
            }
            for client in &cluster.clients {
                self.add_synchroniser(run, number, cluster, *client, (Part::Client, Behaviour::Correct))?;
            }
            let mut state = ClusterState {
                parameters: cluster.parameters,
                precision_bound: cluster.precision_bound,
                startup_bound: cluster.startup_bound,
                up: [].into(),
                down: [].into(),
                devices: (first..self.synchronisers.len()).collect(),
                spread: Span::ZERO,
                most: None,
                told: RunTime::ZERO,
                powered: self.synchronisers[first..]
                    .iter()
                    .map(|one| one.powered)
                    .max()
                    .unwrap_or(RunTime::ZERO),
                synchronised_at: None,
            };
            for (channel, of) in cluster.channels.iter().enumerate() {
                for hop in &of.ways {
                    let port = |at: wg_plan::Attachment| {
                        let own = ports.get(usize::from(at.node)).map_or(&[][..], Vec::as_slice);
                        let index = position(own, at.port);
                        own.get(index).filter(|(number, _)| *number == at.port).map(|_| index)
                    };
                    let missing = || SimError::plan("a way of a cluster takes a port that is not there");
                    let (from, to) = (port(hop.from).ok_or_else(missing)?, port(hop.to).ok_or_else(missing)?);
                    state.down.entry((channel, hop.from.node)).or_default().push(from);
                    state.up.insert((channel, hop.to.node), to);
                }
            }
            self.clusters.push(state);
        }
        Ok(())
    }

    fn add_synchroniser(
        &mut self,
        run: &Run,
        number: usize,
        cluster: &Cluster,
        node: NodeIndex,
        (part, behaviour): (Part, Behaviour),
    ) -> Result<(), SimError> {
        let twice = self.synchroniser_of.insert(node, self.synchronisers.len()).is_some();
        let clock = self.nodes.get(usize::from(node)).and_then(|state| state.clock.as_ref());
        if twice || clock.is_none() {
            return Err(SimError::plan(format!("node {node} has no part in a cluster, or two")));
        }
        let mut chance = Stream::new(run.seed, Purpose::ClusterPower, u32::from(node));
        let within = i128::from(cluster.powered_within.as_picos());
        let drawn = (i128::from(chance.next_u64()) * within) >> 64;
        let powered = RunTime::ZERO + Span::from_picos(i64::try_from(drawn).unwrap_or(0));
        self.synchronisers.push(Synchroniser {
            node,
            cluster: number,
            part,
            behaviour,
            core: None,
            powered,
            state: State::Integrate,
            is_set: false,
            synchronised_at: None,
            losses: 0,
            cliques: [0; 3],
            members: 0,
        });
        Ok(())
    }
}
