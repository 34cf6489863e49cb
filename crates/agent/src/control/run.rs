//! One run on this end system: opens everything, starts the threads, waits for the end, gathers the figures.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

use wg_frame::time::{Epoch, WallNanos};
use wg_net::transmit::Backend;
use wg_net::{DiscardSocket, NetError, clock};
use wg_plan::{Network, Run};
use wg_record::RecordError;

use super::supervision::{Orders, RunThreads, supervise};
use crate::control::gate::Gate;
use crate::control::grants;
use crate::control::trial::TrialClient;
use crate::end_system::access_points::{check_interface, describe, open, silence};
use crate::end_system::assignment::{Assignment, AssignmentError, DISCARD_PORT};
use crate::end_system::servicing::Counters;
use crate::end_system::threads::{Common, start_capture};
use crate::proto;
use crate::recording::packet_capture::CaptureError;
use crate::stream::backend::BackendError;
use crate::timestamps::Timestamping;
use crate::timestamps::planted::PlantedHardware;

/// Bytes of a thread's stack. All of it is kept in memory, where the host allows it, and hundreds of agents may share a host.
const STACK: usize = 512 << 10;
/// Frames of a trial, at most.
const MOST_TRIED: u32 = 256;

/// What the testmaster asked for.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The network under test.
    pub network: Network,
    /// The run.
    pub run: Run,
    /// The end system this agent is.
    pub end_system: String,
    /// Its interface under test.
    pub interface: String,
    /// Folder for what is recorded, made for this run.
    pub spool: PathBuf,
    /// Agents of the run on this host.
    pub agents_on_host: u32,
    /// Backends whose frames did not arrive when they were tried, each with what was seen.
    pub distrusted: Vec<(Backend, String)>,
    /// Core for servicing threads.
    pub servicing_core: Option<usize>,
    /// Their SCHED_FIFO priority; 0: ordinary scheduling.
    pub fifo_priority: u32,
    /// A clock in place of the interface's own, which is a test facility.
    pub planted_hardware: Option<PlantedHardware>,
}

/// Why a run could not be prepared or started.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan's fault.
    #[error(transparent)]
    Assignment(#[from] AssignmentError),
    /// No such interface.
    #[error("there is no interface '{name}' in this agent's network namespace; it has {existing}")]
    NoInterface {
        /// The name asked for.
        name: String,
        /// Those there are.
        existing: String,
    },
    /// The interface is another one than planned.
    #[error("interface '{name}' has the address {found}, but the plan gives {planned} to '{end_system}'")]
    OtherAddress {
        /// The interface.
        name: String,
        /// Its MAC address.
        found: String,
        /// The plan's.
        planned: String,
        /// Whose.
        end_system: String,
    },
    /// A stream cannot leave as the test asks.
    #[error(transparent)]
    Way(#[from] BackendError),
    /// The operating system refused.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The spool cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The capture cannot begin.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The host is out of threads.
    #[error("cannot start a thread: {0}; raise the limit of processes")]
    Thread(std::io::Error),
    /// Too late.
    #[error(
        "the common start time passed {late_us} us ago on this host; announce it earlier, or synchronise the clocks"
    )]
    EpochPassed {
        /// How long ago, in µs.
        late_us: i64,
    },
    /// Another start time than the one announced last.
    #[error("the start time is not the one announced last; call Announce first")]
    NotAnnounced,
    /// Started already.
    #[error("the run has been started already")]
    Started,
}

/// A run whose threads stand ready.
pub struct ActiveRun {
    assignment: Arc<Assignment>,
    gate: Arc<Gate>,
    orders: Arc<Orders>,
    counters: Vec<Arc<Counters>>,
    supervisor: Option<JoinHandle<proto::AgentReport>>,
    grants: Vec<proto::Grant>,
    access_points: Vec<String>,
    announced: Option<WallNanos>,
    trials: Vec<(proto::StreamChoice, TrialClient)>,
}

impl ActiveRun {
    /// Opens the access points and allocates everything; no frame is sent yet.
    ///
    /// # Errors
    /// See [`RunError`]; nothing is left open then.
    pub fn prepare(setup: &Setup) -> Result<Self, RunError> {
        let assignment = Arc::new(Assignment::new(&setup.network, &setup.run, &setup.end_system)?);
        let interface = check_interface(setup, &assignment)?;
        let here = assignment.address().ipv4;
        let mut sinks = vec![DiscardSocket::bind(std::net::SocketAddrV4::new(here, DISCARD_PORT))?];
        sinks.extend(silence(&assignment)?);
        let (mut grants, awake) = grants::of_process();
        let gate = Arc::new(Gate::new());
        let orders = Arc::new(Orders::default());
        let timestamping = Timestamping::open(&interface.name, assignment.port.1, setup.planted_hardware);
        let by_hardware = timestamping.asking.is_some();
        let Timestamping { told: stamped, asking, clockwork, on: timestamping } = timestamping;
        let mut common = Common {
            assignment: Arc::clone(&assignment),
            gate: Arc::clone(&gate),
            stop: Arc::new(AtomicBool::new(false)),
            sources: Vec::new(),
            asking,
            clockwork,
            timestamped_by: stamped.in_words(),
            trials: Vec::new(),
        };
        // From here on threads wait at the gate; whoever fails must send them home.
        let mut guard = CancelOnDrop {
            gate: Arc::clone(&gate),
            stop: Arc::clone(&common.stop),
            stop_capturing: Arc::new(AtomicBool::new(false)),
            armed: true,
        };
        let mut access_points = Vec::new();
        let mut counters = Vec::new();
        for &access in &assignment.accesses {
            let socket = open(access, &assignment, &interface, by_hardware)?;
            let (access_point, of_thread, watched) = common.start_access_point(access, socket, setup)?;
            access_points.push(access_point);
            grants::merge(&mut grants, of_thread);
            counters.push(watched);
        }
        let stop_injecting = Arc::new(AtomicBool::new(false));
        let (streams, of_streams) = common.start_streams(&stop_injecting, &interface, setup)?;
        counters.extend(of_streams);
        let (absorber, no_account) = common.start_load_sink(&interface)?;
        let rings = common.sources.iter().map(|source| Arc::clone(&source.dropped)).collect();
        let logging = common.start_logging(setup)?;
        let stop_capturing = Arc::clone(&guard.stop_capturing);
        let capture = start_capture(&assignment, &interface, setup, &stop_capturing)?;
        let host_counters = common.start_host_counters(setup, rings)?;
        let names = describe(&assignment, &setup.interface);
        let crew = RunThreads {
            access_points,
            streams,
            absorber,
            no_account,
            capture,
            stop_capturing,
            logging,
            host_counters,
            stop: Arc::clone(&common.stop),
            stop_injecting,
            grants: grants.clone(),
            stamped,
            _timestamping: timestamping,
            _sinks: sinks,
            _awake: awake,
        };
        let supervisor = {
            let (assignment, gate) = (Arc::clone(&assignment), Arc::clone(&gate));
            let (orders, counters) = (Arc::clone(&orders), counters.clone());
            let sharing = setup.agents_on_host;
            spawn("test", move || {
                let report = supervise(&assignment, &gate, &orders, &counters, crew, sharing);
                orders.over.store(true, Ordering::Release);
                report
            })?
        };
        guard.armed = false;
        let trials = std::mem::take(&mut common.trials);
        Ok(Self {
            trials,
            assignment,
            gate,
            orders,
            counters,
            supervisor: Some(supervisor),
            grants,
            access_points: names,
            announced: None,
        })
    }

    /// What was asked of the host and what it granted.
    pub fn grants(&self) -> &[proto::Grant] {
        &self.grants
    }

    /// The access points in use, one line each.
    pub fn access_points(&self) -> &[String] {
        &self.access_points
    }

    /// The streams that are to be sent, and how.
    pub fn streams(&self) -> Vec<proto::StreamChoice> {
        self.trials.iter().map(|(choice, _)| choice.clone()).collect()
    }

    /// Sends a few frames that nobody takes by the way of one stream, before the run begins; how many. Blocks as long as that takes.
    ///
    /// # Errors
    /// There is no such stream, or its way is unusable.
    pub fn try_out(&self, request: &proto::TryStreamRequest) -> Result<u32, String> {
        let found = self.trials.iter().find(|(c, _)| c.kind == request.kind && c.number == request.number);
        let (_, trial) =
            found.ok_or_else(|| format!("there is no stream {} {}", request.kind, request.number))?;
        trial.ask(request.frames.min(MOST_TRIED))
    }

    /// Takes note of a common start time, in place of any other. Nothing begins.
    ///
    /// # Errors
    /// It has passed already.
    pub fn announce(&mut self, epoch: WallNanos) -> Result<(), RunError> {
        self.announced = None;
        ahead(epoch)?;
        self.announced = Some(epoch);
        Ok(())
    }

    /// Lets the run begin at the start time announced last.
    ///
    /// # Errors
    /// It is another one, it has passed already, or the run was started or cancelled before.
    pub fn start(&self, epoch: WallNanos) -> Result<(), RunError> {
        if self.announced != Some(epoch) {
            return Err(RunError::NotAnnounced);
        }
        ahead(epoch)?;
        if self.gate.open(Epoch::new(epoch)) { Ok(()) } else { Err(RunError::Started) }
    }

    /// Where the run stands.
    pub fn progress(&self) -> proto::Progress {
        let sum = |pick: fn(&Counters) -> &AtomicU64| {
            self.counters.iter().map(|c| pick(c).load(Ordering::Relaxed)).sum()
        };
        proto::Progress {
            done: self.orders.over.load(Ordering::Acquire),
            sent: sum(|c| &c.sent),
            received: sum(|c| &c.received),
            to_send: self.assignment.to_send(),
        }
    }

    /// Waits for the end of its own part, or brings it about with `abort`, then stops receiving and reports. Blocks for as long as that takes.
    pub fn finish(mut self, abort: bool) -> proto::AgentReport {
        self.end(abort)
    }

    fn end(&mut self, abort: bool) -> proto::AgentReport {
        if abort {
            self.orders.abort.store(true, Ordering::Relaxed);
        }
        self.orders.finish.store(true, Ordering::Relaxed);
        // Without a start there is nothing to wait for.
        self.gate.cancel();
        if let Some(supervisor) = &self.supervisor {
            supervisor.thread().unpark();
        }
        let joined = self.supervisor.take().map(JoinHandle::join);
        match joined {
            Some(Ok(report)) => report,
            _ => proto::AgentReport {
                end_system: self.assignment.name.clone(),
                incomplete_reason: "the test thread of the agent failed; this is a defect of wiregauge"
                    .into(),
                ..proto::AgentReport::default()
            },
        }
    }
}

impl Drop for ActiveRun {
    /// A run nobody finished, for example after a lost lease: its threads end and its records are flushed.
    fn drop(&mut self) {
        if self.supervisor.is_some() {
            self.end(true);
        }
    }
}

fn ahead(epoch: WallNanos) -> Result<(), RunError> {
    let late = clock::realtime().get() - epoch.get();
    if late >= 0 { Err(RunError::EpochPassed { late_us: late / 1_000 }) } else { Ok(()) }
}

/// Sends waiting threads home when preparing fails half way.
struct CancelOnDrop {
    gate: Arc<Gate>,
    stop: Arc<AtomicBool>,
    stop_capturing: Arc<AtomicBool>,
    armed: bool,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if self.armed {
            self.stop.store(true, Ordering::Relaxed);
            self.stop_capturing.store(true, Ordering::Relaxed);
            self.gate.cancel();
        }
    }
}

pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, RunError> {
    Builder::new().name(name.into()).stack_size(STACK).spawn(body).map_err(RunError::Thread)
}
