//! The network under test: nodes, links, clocks and what each of them is made of.
//!
//! Every default of the test language is applied here, so a bench reads figures and never invents one. A bench that runs
//! on real machines takes from this what it can build and leaves the rest to the machine. What a core is built from is stated
//! in the core's own type, so that a plan holds only what makes one. Beside each type stands how it is read from its element.

mod clock;
mod host;
mod imperfections;
mod kinds;
mod link;
mod node;
mod switch;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
pub use wg_core::end_system::{Cost, Interrupts, ReceiveBuffer, StackCosts};
pub use wg_core::frame::{FrameLengths, NetworkId};
pub use wg_core::line::LineRate;
pub use wg_core::queue::Capacity;
pub use wg_core::switch::ForwardingMode;
pub use wg_core::tte::access::{DeltaRaster, Integration};
pub use wg_frame::ethernet::MacAddress;

pub use self::clock::{Clock, TemperatureStep};
pub(crate) use self::host::HostModels;
pub use self::host::{HostModel, Stack};
pub use self::imperfections::{HostEvent, OwnFrames, Timestamps};
pub(crate) use self::kinds::KeptModel;
pub use self::kinds::{HeldUp, Policing, SwitchKind};
pub use self::link::Link;
pub(crate) use self::link::LinkStatement;
pub use self::node::{Node, NodeKind};
pub(crate) use self::node::{NodeStatement, least_gap};
pub use self::switch::{AddressTable, SwitchModel, VlanPorts};
use crate::campaign::{Hop, Route};
pub use crate::distribution::Distribution;
pub use crate::places::{Attachment, NodeIndex};

/// Nodes and links. Node `i` of the list has [`NodeIndex`] `i`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// End systems, switches and hubs.
    pub nodes: Vec<Node>,
    /// Links between their ports.
    pub links: Vec<Link>,
}

impl Network {
    /// The network in its JSON form, as [`Run::from_json`](crate::Run::from_json) reads a run.
    ///
    /// # Errors
    /// Where it is not JSON, or no network.
    pub fn from_json(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    /// The route along these nodes over one of the redundant networks; between two, the first link of the plan. `None`
    /// where two neighbours have none.
    pub fn route(&self, network: NetworkId, nodes: &[NodeIndex]) -> Option<Route> {
        let hop = |pair: &[NodeIndex]| {
            (0..).zip(&self.links).filter(|(_, link)| link.network == network).find_map(|(number, link)| {
                let [a, b] = link.ends;
                let hop = Hop { link: number, from: a, to: b };
                match [a.node, b.node] {
                    ends if ends == pair => Some(hop),
                    [a, b] if [b, a] == pair => Some(hop.reversed()),
                    _ => None,
                }
            })
        };
        let hops: Option<Vec<Hop>> = nodes.windows(2).map(hop).collect();
        hops.map(|hops| Route { network, hops })
    }
}

/// Settings of switches that the sweep changes for one run; absent: each switch has its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchChange {
    /// Forwarding mode of every switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarding_mode: Option<ForwardingMode>,
    /// Policing of every switch that knows virtual links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policing: Option<Policing>,
    /// Integration of every mixed-criticality switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integration: Option<Integration>,
}

impl SwitchChange {
    /// Whether it changes nothing.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The network with its switches changed.
    pub fn applied<'n>(&self, network: &'n Network) -> Cow<'n, Network> {
        if self.is_none() {
            return Cow::Borrowed(network);
        }
        let mut changed = network.clone();
        for node in &mut changed.nodes {
            let NodeKind::Switch(switch) = &mut node.kind else { continue };
            switch.forwarding_mode = self.forwarding_mode.unwrap_or(switch.forwarding_mode);
            if switch.kind >= SwitchKind::Arinc664 {
                switch.policing = self.policing.unwrap_or(switch.policing);
            }
            if switch.kind == SwitchKind::MixedCriticality {
                switch.integration = self.integration.unwrap_or(switch.integration);
            }
        }
        Cow::Owned(changed)
    }
}
