//! Numbers for the headers above Ethernet: a frame of the cores has no room for the addresses of a datagram, and
//! switches with IP stream identification compare numbers instead (IEEE Std 802.1CB-2017, 6.7). Without such a switch
//! nothing is numbered.

use std::collections::BTreeMap;

use wg_plan::wire::DISCARD_PORT;
use wg_plan::{FaultKind, FlowId, HeaderField, Identify, IpHeaders, Network, NodeIndex, NodeKind, Run};

/// Origin of frames with their own headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// The sender of a flow.
    Flow(FlowId),
    /// The relay of a flow at one node, towards another.
    Relay(FlowId, NodeIndex, NodeIndex),
    /// An injector or a log, from one node to another.
    Load(NodeIndex, NodeIndex),
}

/// The headers of all frames of a run, numbered from 1.
#[derive(Debug, Default)]
pub(crate) struct HeaderNumbers {
    numbers: BTreeMap<IpHeaders, u16>,
    of: BTreeMap<Origin, u16>,
}

impl HeaderNumbers {
    pub(crate) fn new(network: &Network, run: &Run) -> Self {
        let mut own = Self::default();
        let is_asked = network.nodes.iter().any(|node| match &node.kind {
            NodeKind::Switch(model) => {
                model.tsn.iter().flat_map(|tsn| &tsn.filters).any(|filter| filter.identify == Identify::Ip)
            }
            _ => false,
        });
        if !is_asked {
            return own;
        }
        for flow in &run.flows {
            own.add(Origin::Flow(flow.id), IpHeaders::of(network, flow));
        }
        for relay in &run.relays {
            let Some(flow) = run.flows.iter().find(|flow| flow.id == relay.flow) else { continue };
            let misdirected = relay.faults.iter().filter_map(|fault| match fault.kind {
                FaultKind::Misdirect { to } => Some(to),
                _ => None,
            });
            for to in misdirected.chain([flow.from]) {
                let headers = IpHeaders::of(network, flow).and_then(|own| own.relayed(network, relay.on, to));
                own.add(Origin::Relay(flow.id, relay.on, to), headers);
            }
        }
        let loads = run.injects.iter().map(|inject| (inject.on, inject.to));
        for (from, to) in loads.chain(run.remote_logs.iter().map(|log| (log.on, log.to))) {
            own.add(Origin::Load(from, to), IpHeaders::between(network, from, to, DISCARD_PORT));
        }
        own
    }

    fn add(&mut self, origin: Origin, headers: Option<IpHeaders>) {
        let Some(headers) = headers else { return };
        // Beyond 65 535 headers, frames belong to no stream; a test has no more flows than that.
        let next = u16::try_from(self.numbers.len() + 1).unwrap_or(0);
        let number = *self.numbers.entry(headers).or_insert(next);
        self.of.insert(origin, number);
    }

    /// The number of the headers of an origin; 0 without headers.
    pub(crate) fn of(&self, origin: Origin) -> u16 {
        self.of.get(&origin).copied().unwrap_or(0)
    }

    /// The numbers of all headers that match.
    pub(crate) fn alike<'a>(
        &'a self,
        headers: &'a IpHeaders,
        fields: &'a [HeaderField],
    ) -> impl Iterator<Item = u16> + 'a {
        let alike = self.numbers.iter().filter(|(other, _)| headers.is_alike(other, fields));
        alike.map(|(_, number)| *number).filter(|number| *number != 0)
    }
}
