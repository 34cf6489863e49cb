//! The executable test. Serialised as JSON it is also the contract between testmaster and agents and the
//! copy of the plan kept in the run directory.

mod addresses;
mod bench;
mod clocks;
mod clusters;
mod disturbances;
mod flows;
mod frer;
mod ptp;
mod routes;
mod tasks;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wg_frame::time::Span;

use crate::network::NodeIndex;

pub use self::addresses::{Addresses, Ends};
pub use self::bench::Bench;
pub use self::clocks::{OnFailure, Ptp, PtpDelay, PtpTimestamps, PtpTransport, Synchronise};
pub use self::clusters::{Cluster, ClusterChannel, ClusterMaster};
pub use self::disturbances::{Incident, IncidentKind, LinkFault, LinkFaultKind, Victims};
pub use self::flows::{
    Flow, FlowId, LAST_FLOW, Protocol, TimeTriggered, TtReception, TtWindow, VirtualLink, VlanTag,
};
pub use self::frer::{Frer, IndividualRecovery, StreamJunction};
pub use self::ptp::{DelayFilter, PtpClock, PtpDomain, PtpPi, PtpProfile, PtpRole, PtpServo};
pub use self::routes::{Hop, Route};
pub use self::tasks::{
    Activity, Backend, Capture, Fault, FaultKind, Fill, Inject, LATE_DIVISOR, Pacing, Pattern, Receive,
    Relay, RemoteLog, Send, SendingThreads, Turn,
};
use crate::network::{LineRate, Network, SwitchChange};

/// Version of the JSON form of [`Campaign`]; raised when a reader of an older form would misread it.
pub const PLAN_SCHEMA: u32 = 5;

/// A whole test: one network and the runs its sweep expands to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// [`PLAN_SCHEMA`] of the writer.
    pub schema: u32,
    /// Name of the test.
    pub name: String,
    /// Seed every random choice of the campaign derives from.
    pub seed: u64,
    /// The bench it runs on, unless the command line names one.
    #[serde(default)]
    pub bench: Bench,
    /// The network under test.
    pub network: Network,
    /// How the clocks of its end systems are kept together and compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronise: Option<Synchronise>,
    /// Swept parameters in the order of the file; empty for a single run.
    pub axes: Vec<Axis>,
    /// How often each point is measured.
    pub repeats: u32,
    /// The runs, points in the order of the axes (the last axis fastest), repeats innermost.
    pub runs: Vec<Run>,
    /// Limits the measures are judged against.
    pub limits: Vec<Limit>,
    /// What is allowed but worth knowing, one sentence each.
    pub warnings: Vec<String>,
}

/// One swept parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// What is swept: `payload`, `load`, `protocol`, `period`, …
    pub of: String,
    /// The values as written, in the order of the file.
    pub values: Vec<String>,
}

/// One run: one point of the sweep, once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Position in [`Campaign::runs`].
    pub index: u32,
    /// The axis values of this run, as written; empty without a sweep.
    pub point: BTreeMap<String, String>,
    /// 0-based number of the repeat.
    pub repeat: u32,
    /// Seed of this run, derived from the campaign's.
    pub seed: u64,
    /// Rate of every link in bit/s, where the sweep sets it; absent: each link has its own.
    #[serde(default, rename = "link_rate_bps", skip_serializing_if = "Option::is_none")]
    pub link_rate: Option<LineRate>,
    /// Settings of switches that the sweep changes.
    #[serde(default, skip_serializing_if = "SwitchChange::is_none")]
    pub switches: SwitchChange,
    /// Time before the measured part. Messages sent in it are marked and excluded from every measure.
    pub warm_up: Span,
    /// Length of the measured part.
    pub duration: Span,
    /// Wait for frames in flight after the last planned send.
    pub drain: Span,
    /// Flows with the axis values applied.
    pub flows: Vec<Flow>,
    /// Sender tasks.
    pub sends: Vec<Send>,
    /// Receiver tasks.
    pub receives: Vec<Receive>,
    /// Relay tasks.
    pub relays: Vec<Relay>,
    /// Background load.
    pub injects: Vec<Inject>,
    /// Remote logging tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remote_logs: Vec<RemoteLog>,
    /// Capture tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<Capture>,
    /// Faults of links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link_faults: Vec<LinkFault>,
    /// Events in the network at stated instants, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incidents: Vec<Incident>,
    /// Clusters that synchronise by SAE AS6802.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<Cluster>,
    /// Domains of clocks that synchronise by PTP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ptp_domains: Vec<PtpDomain>,
}

/// A limit on a measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The flow it judges; absent: all flows.
    pub flow: Option<FlowId>,
    /// Name of the measure, for example `latency.p99` or `lost`.
    pub measure: String,
    /// Whether `value` is the largest or the smallest allowed.
    pub bound: Bound,
    /// The limit in the measure's base unit: ns, messages, bit/s, one per second, or a share of 1.
    pub value: f64,
    /// The limit as written.
    pub written: String,
    /// Line in the test file; 0 when built in code.
    pub line: u32,
}

impl Run {
    /// The run in its JSON form. Other crates read it by this, so that the code of all its types is compiled once.
    ///
    /// # Errors
    /// Where it is not JSON, or no run.
    pub fn from_json(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    /// The nodes whose clocks a protocol of the test keeps.
    pub fn kept_clocks(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        let by_ptp = self.ptp_domains.iter().flat_map(|domain| domain.clocks.iter().map(|clock| clock.node));
        self.clusters.iter().flat_map(Cluster::devices).chain(by_ptp)
    }

    /// Whether a protocol of the test keeps the clock of `node`.
    pub fn keeps_clock_of(&self, node: NodeIndex) -> bool {
        self.kept_clocks().any(|kept| kept == node)
    }

    /// The senders of each flow that has any.
    pub fn sends_by_flow(&self) -> BTreeMap<FlowId, Vec<&Send>> {
        let mut senders: BTreeMap<FlowId, Vec<&Send>> = BTreeMap::new();
        for send in &self.sends {
            senders.entry(send.flow).or_default().push(send);
        }
        senders
    }

    /// The virtual links that relays send messages back on, each as a flow of the same number the other way round: over
    /// the same links, with the same contract, without sub-virtual-links.
    pub fn returns(&self) -> impl Iterator<Item = Flow> + '_ {
        let flows: BTreeMap<FlowId, &Flow> = self.flows.iter().map(|flow| (flow.id, flow)).collect();
        self.relays.iter().filter_map(move |relay| {
            let flow = *flows.get(&relay.flow)?;
            let link = VirtualLink { id: relay.vl?, sub_links: 1, ..flow.virtual_link? };
            let routes: Vec<Route> = flow.routes_to(relay.on).map(Route::reversed).collect();
            let first = routes.first()?.clone();
            Some(Flow {
                network: flow.network,
                routes,
                virtual_link: Some(link),
                ..Flow::plain(flow.id, flow.protocol, first)
            })
        })
    }
}

/// Which side of a limit is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The measure must not exceed the value.
    AtMost,
    /// The measure must reach the value.
    AtLeast,
}
