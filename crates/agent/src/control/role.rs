//! What a role is to the service and to the supervision of a run.
//!
//! A role opens its ports and starts threads that wait at the gate; when the run is over it ends them and reports. The
//! service, the start, the watch, the records and the host's counters are the same for every role, and know none by name.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use wg_frame::time::{RunTime, Span};
use wg_net::transmit::Backend;
use wg_net::{NetError, NoInterface};
use wg_plan::{Network, Node, NodeIndex, Run};

use super::gate::Gate;
use super::grants;
use super::trial::{TrialClient, TrialServer, trial};
use crate::proto;
use crate::recording::held_back::Asked;
use crate::recording::live::{LiveBoard, LiveFlow};
use crate::recording::packet_capture::CaptureError;
use crate::recording::planted_clock::PlantedHostClock;
use crate::recording::record_ring::{RecordConsumer, RecordProducer, record_ring};
use crate::recording::remote_log::RemoteLog;
use crate::remote::allowance::Played;
use crate::timestamps::planted::PlantedHardware;
use crate::timestamps::{PhcTracker, PortTimestamps};

/// Bytes of a thread's stack. All of it is kept in memory, where the host allows it, and hundreds of agents may share a host.
const STACK: usize = 512 << 10;
/// Records of a ring, at most.
const MAX_RING: usize = 1 << 20;

/// A part that a node of the network under test can play.
pub trait Role: Sync {
    /// Whether it is what this agent is asked to be.
    fn plays(&self, setup: &Setup) -> bool;

    /// Opens the node's ports and starts threads that wait at the gate; no frame of the run is sent yet.
    ///
    /// # Errors
    /// See [`OpenError`]. The threads started until then are sent home.
    fn open(&self, setup: &Setup, run: &mut RunContext) -> Result<Box<dyn ActiveRole>, OpenError>;
}

/// A role whose threads stand ready, or are at work.
pub trait ActiveRole: Send {
    /// Ends the threads in the order of the data, and reports. The stop was signalled before.
    fn close(self: Box<Self>) -> RoleReport;
}

/// What the testmaster asked for.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The network under test.
    pub network: Network,
    /// The run.
    pub run: Run,
    /// The node this agent is, by its index.
    pub node: NodeIndex,
    /// The interfaces of its ports.
    pub ports: Vec<PortInterface>,
    /// Of an agent that is the network between the end systems, which is no node: the interfaces that lead to them.
    pub network_ports: Vec<NetworkInterface>,
    /// Whether what this end system's frames meet at the other end of its link is its interface card, played by the network.
    pub card: bool,
    /// Folder for what is recorded, made for this run.
    pub spool: PathBuf,
    /// Agents of the run on this host.
    pub agents_on_host: u32,
    /// Backends whose frames did not arrive when they were tried, each with what was seen.
    pub distrusted: Vec<(Backend, String)>,
    /// Core for servicing threads.
    pub servicing_core: Option<usize>,
    /// No servicing thread of another agent of the run has that core.
    pub own_core: bool,
    /// Their SCHED_FIFO priority; 0: ordinary scheduling.
    pub fifo_priority: u32,
    /// How long a capture holds frames back before it drops those that nobody asked for; `None`: it keeps all.
    pub hold: Option<Duration>,
    /// A clock in place of the interface's own, which is a test facility.
    pub planted_hardware: Option<PlantedHardware>,
    /// A clock in place of the host's own, likewise.
    pub planted_clock: Option<PlantedHostClock>,
    /// Where it is kept what TSN settings change; `None`: this agent makes none.
    pub tsn_folder: Option<PathBuf>,
}

impl Setup {
    /// The node this agent is.
    pub fn this_node(&self) -> Option<&Node> {
        self.network.nodes.get(usize::from(self.node))
    }

    /// Whether this agent is the network between the end systems.
    pub fn is_network(&self) -> bool {
        !self.network_ports.is_empty()
    }

    /// Every interface that it uses.
    pub fn interfaces(&self) -> impl Iterator<Item = &str> {
        let own = self.ports.iter().map(|port| port.interface.as_str());
        own.chain(self.network_ports.iter().map(|port| port.interface.as_str()))
    }

    /// For whom it sends.
    pub fn played(&self) -> Played {
        if self.is_network() {
            Played {
                nodes: self.network_ports.iter().map(|port| port.node).collect(),
                with_interfaces: false,
            }
        } else {
            Played { nodes: vec![self.node], with_interfaces: !self.card }
        }
    }

    /// The name of a node, or of the network.
    pub fn name(&self, node: NodeIndex) -> String {
        let named = self.network.nodes.get(usize::from(node));
        named.map_or_else(|| "the network".to_owned(), |node| node.name.clone())
    }
}

/// A port of the node and the interface that is it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortInterface {
    /// The port, from 1.
    pub port: u16,
    /// The interface's name.
    pub interface: String,
}

/// An end system and the interface that leads to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkInterface {
    /// The end system, by its index.
    pub node: NodeIndex,
    /// The interface's name.
    pub interface: String,
}

/// Whose fault it is that a role cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The plan's, or of whoever sent it.
    Request,
    /// Something the request names does not exist here.
    NotFound,
    /// A right is missing.
    Permission,
    /// The host is out of something.
    Exhausted,
    /// The state of the host forbids it.
    Precondition,
}

/// Why a role cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct OpenError {
    /// Whose fault it is.
    pub fault: Fault,
    message: String,
}

impl OpenError {
    /// One sentence, and whose fault it is.
    pub fn new(fault: Fault, message: impl ToString) -> Self {
        Self { fault, message: message.to_string() }
    }
}

impl From<NetError> for OpenError {
    fn from(error: NetError) -> Self {
        let denied = error.io().kind() == io::ErrorKind::PermissionDenied;
        Self::new(if denied { Fault::Permission } else { Fault::Precondition }, error)
    }
}

impl From<NoInterface> for OpenError {
    fn from(error: NoInterface) -> Self {
        match error {
            NoInterface::Unknown(error) => error.into(),
            NoInterface::Missing { .. } => Self::new(Fault::NotFound, error),
        }
    }
}

impl From<CaptureError> for OpenError {
    fn from(error: CaptureError) -> Self {
        Self::new(Fault::Precondition, error)
    }
}

/// When a role's own part is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timetable {
    /// The last intended send of the run.
    pub last_send: RunTime,
    /// How long frames may be under way after it.
    pub drain: Span,
    /// Messages this role will send.
    pub to_send: u64,
}

/// What other threads may watch while a run goes on.
#[derive(Debug, Default)]
pub struct Counters {
    /// Messages of sender tasks whose time has come, refused ones included.
    pub sent: AtomicU64,
    /// Messages received.
    pub received: AtomicU64,
}

impl Counters {
    /// One more, by the only writer.
    pub fn count(counter: &AtomicU64) {
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// What a run lends to a role, and what the role leaves in it.
#[derive(Default)]
pub struct RunContext {
    /// Where threads wait for the start.
    pub gate: Arc<Gate>,
    /// Set when the run is over.
    pub stop: Arc<AtomicBool>,
    /// When the role's part is over.
    pub timetable: Timetable,
    /// What the host granted.
    pub grants: Vec<proto::Grant>,
    /// The access points in use, one line each.
    pub access_points: Vec<String>,
    /// Flows whose figures may be watched while the run goes on.
    pub live: Vec<LiveFlow>,
    /// The log that the record writer sends over the network.
    pub remote_log: Option<RemoteLog>,
    /// The stretches of time of which captures keep frames that they hold back.
    pub asked: Arc<Asked>,
    pub(super) board: Arc<LiveBoard>,
    pub(super) trials: Vec<(proto::StreamChoice, TrialClient)>,
    pub(super) counters: Vec<Arc<Counters>>,
    pub(super) records: Vec<RecordConsumer>,
    pub(super) hardware_clocks: Vec<(u16, PhcTracker)>,
    node: NodeIndex,
}

impl RunContext {
    /// For the run of this node.
    pub fn new(node: NodeIndex) -> Self {
        Self { node, ..Self::default() }
    }

    /// A ring for a thread that makes `per_message` records at `port` for each of `messages`. A short run fits as a whole,
    /// because the record writer is the last to get a core; a longer one must be written while it goes on.
    pub fn record_ring(&mut self, port: u16, messages: u64, per_message: u64) -> RecordProducer {
        let wanted = messages.saturating_mul(per_message).saturating_add(8_192);
        let capacity = usize::try_from(wanted).unwrap_or(MAX_RING).min(MAX_RING);
        let (producer, consumer) = record_ring(capacity, self.node, port);
        self.records.push(consumer);
        producer
    }

    /// The clock that the hardware timestamps of `port` are read from.
    pub fn add_hardware_clock(&mut self, port: u16, clock: PhcTracker) {
        self.hardware_clocks.push((port, clock));
    }

    /// Counters that the testmaster watches.
    pub fn counters(&mut self) -> Arc<Counters> {
        let counters = Arc::new(Counters::default());
        self.counters.push(Arc::clone(&counters));
        counters
    }

    /// The serving end of a stream's trials, which the testmaster may ask for.
    pub fn trial(&mut self, choice: proto::StreamChoice) -> TrialServer {
        let (client, server) = trial();
        self.trials.push((choice, client));
        server
    }

    /// Adds what the host granted to a thread.
    pub fn add_grants(&mut self, granted: Vec<proto::Grant>) {
        grants::merge(&mut self.grants, granted);
    }
}

/// Starts a thread of a run.
///
/// # Errors
/// The host is out of threads.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, OpenError> {
    Builder::new().name(name.into()).stack_size(STACK).spawn(body).map_err(|error| {
        let message = format!("cannot start a thread: {error}; raise the limit of processes");
        OpenError::new(Fault::Exhausted, message)
    })
}

/// What a role did.
#[derive(Debug, Default)]
pub struct RoleReport {
    /// Why its part of the run is incomplete.
    pub incomplete: Option<String>,
    /// Its access points.
    pub access_points: Vec<proto::AccessPointReport>,
    /// Its tasks.
    pub tasks: Vec<proto::TaskReport>,
    /// Its streams.
    pub streams: Vec<proto::StreamReport>,
    /// Timestamps at its ports.
    pub timestamps: Vec<PortTimestamps>,
    /// Involuntary context switches of its servicing threads.
    pub involuntary_switches: u64,
    /// Of the network: how late frames left, by end system.
    pub releases: Vec<proto::PortRelease>,
    /// Of the network: what became of the frames that hosts sent.
    pub intake: Option<proto::ArrivalIntake>,
    /// Of the network: what it spent its core's time on.
    pub cost: Option<proto::NetworkCost>,
    /// Of the network: what its devices counted, as a simulation reports it, in JSON.
    pub simulation: String,
    /// Of the network: captures at its devices.
    pub captures: Vec<proto::DeviceCapture>,
    /// Of the network: frames from hosts that are not of the test.
    pub foreign: Vec<proto::ForeignFrames>,
    /// Of the network: frames that no line has.
    pub overlong: Vec<proto::OverlongFrames>,
}
