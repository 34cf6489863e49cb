//! Interface between roles and the service and supervision of a run.
//!
//! A role opens its ports and starts threads that wait at the gate; at the end of the run it ends them and reports. The
//! service, the start, the supervision, the records and the host's counters are common to all roles.

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
use crate::recording::live::{LiveBoard, LiveFlow, SharedClocks};
use crate::recording::packet_capture::CaptureError;
use crate::recording::planted_clock::PlantedHostClock;
use crate::recording::record_ring::{RecordConsumer, RecordProducer, record_ring};
use crate::recording::remote_log::RemoteLog;
use crate::remote::allowance::Played;
use crate::timestamps::planted::PlantedHardware;
use crate::timestamps::{PhcTracker, PortTimestamps};

/// Stack size of a thread, bytes. All of it is locked in memory, if the host permits, and hundreds of agents may share
/// a host.
const STACK: usize = 512 << 10;
/// Greatest number of records in a ring.
const MAX_RING: usize = 1 << 20;

/// A role that a node of the network under test can play.
pub trait Role: Sync {
    /// Whether it is the role requested by `setup`.
    fn plays(&self, setup: &Setup) -> bool;

    /// Opens the node's ports and starts threads that wait at the gate; no frame of the run is sent yet.
    ///
    /// See [`OpenError`]. Threads started before are cancelled.
    /// See [`OpenError`]. The threads started until then are sent home.
    fn open(&self, setup: &Setup, run: &mut RunContext) -> Result<Box<dyn ActiveRole>, OpenError>;
}

/// A role whose threads are ready or running.
pub trait ActiveRole: Send {
    /// What has happened to the run for which its report will be incomplete, looked at again and again while it goes on.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Ends the threads in the order of the data flow, and reports. The stop has been signalled before.
    fn close(self: Box<Self>) -> RoleReport;
}

/// Decoded request of the testmaster.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The network under test.
    pub network: Network,
    /// The run.
    pub run: Run,
    /// Index of the node that this agent plays.
    pub node: NodeIndex,
    /// The interfaces of its ports.
    pub ports: Vec<PortInterface>,
    /// Interfaces that lead to the end systems, for an agent that plays the network between them, which is no node.
    pub network_ports: Vec<NetworkInterface>,
    /// Whether the far end of this end system's link is its interface card, played by the network.
    pub card: bool,
    /// Folder for the records of this run.
    pub spool: PathBuf,
    /// Number of agents of the run on this host.
    pub agents_on_host: u32,
    /// Backends whose trial frames did not arrive, each with the observation.
    pub distrusted: Vec<(Backend, String)>,
    /// CPU for servicing threads.
    pub servicing_core: Option<usize>,
    /// Whether no servicing thread of another agent of the run uses that CPU.
    pub own_core: bool,
    /// SCHED_FIFO priority of servicing threads; 0: ordinary scheduling.
    pub fifo_priority: u32,
    /// Time after which a capture drops held frames that were not requested; `None`: it writes all.
    pub hold: Option<Duration>,
    /// Test facility: a clock in place of the interface's own.
    pub planted_hardware: Option<PlantedHardware>,
    /// Test facility: a clock in place of the host's own.
    pub planted_clock: Option<PlantedHostClock>,
    /// Folder for the former values of settings that TSN changes; `None`: this agent makes no TSN settings.
    pub tsn_folder: Option<PathBuf>,
}

impl Setup {
    /// The node that this agent plays.
    pub fn this_node(&self) -> Option<&Node> {
        self.network.nodes.get(usize::from(self.node))
    }

    /// Whether this agent plays the network between the end systems.
    pub fn is_network(&self) -> bool {
        !self.network_ports.is_empty()
    }

    /// Names of all interfaces in use.
    pub fn interfaces(&self) -> impl Iterator<Item = &str> {
        let own = self.ports.iter().map(|port| port.interface.as_str());
        own.chain(self.network_ports.iter().map(|port| port.interface.as_str()))
    }

    /// Node or nodes that it plays.
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

    /// Name of a node, or of the network.
    pub fn name(&self, node: NodeIndex) -> String {
        let named = self.network.nodes.get(usize::from(node));
        named.map_or_else(|| "the network".to_owned(), |node| node.name.clone())
    }
}

/// A port of the node and its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortInterface {
    /// The port, from 1.
    pub port: u16,
    /// Name of the interface.
    pub interface: String,
}

/// An end system and the interface that leads to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkInterface {
    /// Index of the end system.
    pub node: NodeIndex,
    /// Name of the interface.
    pub interface: String,
}

/// Cause of a failure to open a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A fault of the plan, or of its sender.
    Request,
    /// Something named in the request does not exist here.
    NotFound,
    /// A missing right.
    Permission,
    /// A resource of the host is exhausted.
    Exhausted,
    /// The state of the host does not permit it.
    Precondition,
}

/// Reason why a role cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct OpenError {
    /// The cause.
    pub fault: Fault,
    message: String,
}

impl OpenError {
    /// An error with one sentence and its cause.
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

/// End of a role's own part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timetable {
    /// Last intended send of the run.
    pub last_send: RunTime,
    /// Drain: longest time that frames may be under way after it.
    pub drain: Span,
    /// Number of messages that this role will send.
    pub to_send: u64,
}

/// Counters that other threads may read during a run.
#[derive(Debug, Default)]
pub struct Counters {
    /// Messages of sender tasks that have been sent or refused.
    pub sent: AtomicU64,
    /// Messages received.
    pub received: AtomicU64,
}

impl Counters {
    /// Increments a counter; only for its single writer.
    pub fn count(counter: &AtomicU64) {
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// Resources that a run gives to a role, and results that the role adds.
#[derive(Default)]
pub struct RunContext {
    /// Gate at which threads wait for the start.
    pub gate: Arc<Gate>,
    /// Set when the run is over.
    pub stop: Arc<AtomicBool>,
    /// End of the role's part.
    pub timetable: Timetable,
    /// Grants of the host.
    pub grants: Vec<proto::Grant>,
    /// The access points in use, one line each.
    pub access_points: Vec<String>,
    /// Flows with live figures during the run.
    pub live: Vec<LiveFlow>,
    /// Clocks of the network that the role plays, for live figures of it.
    pub clocks: Option<SharedClocks>,
    /// Log that the record writer sends over the network.
    pub remote_log: Option<RemoteLog>,
    /// Intervals in which captures have to keep held frames.
    pub asked: Arc<Asked>,
    pub(super) board: Arc<LiveBoard>,
    pub(super) trials: Vec<(proto::StreamChoice, TrialClient)>,
    pub(super) counters: Vec<Arc<Counters>>,
    pub(super) records: Vec<RecordConsumer>,
    pub(super) hardware_clocks: Vec<(u16, PhcTracker)>,
    node: NodeIndex,
}

impl RunContext {
    /// A context for the run of this node.
    pub fn new(node: NodeIndex) -> Self {
        Self { node, ..Self::default() }
    }

    /// A ring for a thread that makes `per_message` records at `port` for each of `messages`. A short run fits
    /// completely, because the record writer is the last to get a core; a longer one must be written while it goes on.
    pub fn record_ring(&mut self, port: u16, messages: u64, per_message: u64) -> RecordProducer {
        let wanted = messages.saturating_mul(per_message).saturating_add(8_192);
        let capacity = usize::try_from(wanted).unwrap_or(MAX_RING).min(MAX_RING);
        let (producer, consumer) = record_ring(capacity, self.node, port);
        self.records.push(consumer);
        producer
    }

    /// Adds the clock of the hardware timestamps of `port`.
    pub fn add_hardware_clock(&mut self, port: u16, clock: PhcTracker) {
        self.hardware_clocks.push((port, clock));
    }

    /// Counters that the testmaster watches.
    pub fn counters(&mut self) -> Arc<Counters> {
        let counters = Arc::new(Counters::default());
        self.counters.push(Arc::clone(&counters));
        counters
    }

    /// Adds a stream whose trial the testmaster may request, and returns the serving end.
    pub fn trial(&mut self, choice: proto::StreamChoice) -> TrialServer {
        let (client, server) = trial();
        self.trials.push((choice, client));
        server
    }

    /// Adds grants of the host to a thread.
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

/// Report of a role.
#[derive(Debug, Default)]
pub struct RoleReport {
    /// Reason why its part of the run is incomplete; `None`: complete.
    pub incomplete: Option<String>,
    /// Reports of its access points.
    pub access_points: Vec<proto::AccessPointReport>,
    /// Reports of its tasks.
    pub tasks: Vec<proto::TaskReport>,
    /// Reports of its streams.
    pub streams: Vec<proto::StreamReport>,
    /// Hardware timestamps at its ports.
    pub timestamps: Vec<PortTimestamps>,
    /// Involuntary context switches of its servicing threads.
    pub involuntary_switches: u64,
    /// Delays of frames that left the simulated network, by end system.
    pub releases: Vec<proto::PortRelease>,
    /// Fates of the frames that hosts sent to the simulated network.
    pub intake: Option<proto::ArrivalIntake>,
    /// CPU time of the played network, by purpose.
    pub cost: Option<proto::NetworkCost>,
    /// Counters of the played network's devices, as a simulation reports them, in JSON.
    pub simulation: String,
    /// Captures at devices of the played network.
    pub captures: Vec<proto::DeviceCapture>,
    /// Frames from hosts to the played network that do not belong to the test.
    pub foreign: Vec<proto::ForeignFrames>,
    /// Frames to the played network that are longer than any line permits.
    pub overlong: Vec<proto::OverlongFrames>,
}
