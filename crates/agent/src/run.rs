//! One run on this end system: opens everything, starts the threads, waits for the end, gathers the figures.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rtrb::RingBuffer;
use wg_frame::time::{Epoch, WallNanos};
use wg_net::realtime::{self, AwakeCores};
use wg_net::transmit::Stopper;
use wg_net::{FloodSocket, Interface, NetError, Protocols, Socket, Wake, clock};
use wg_plan::{Network, Protocol, Run};
use wg_record::RecordError;
use wg_record::segment::SegmentInfo;

use crate::assignment::{Assignment, AssignmentError, DISCARD_PORT, Duty, RAW_ETHER_TYPE};
use crate::buffer::Buffer;
use crate::capturing::{self, Capture, CaptureError, CaptureFigures, How, Tap};
use crate::feed::{self, Feed};
use crate::gate::Gate;
use crate::log::{self, LogSource};
use crate::logging::{self, LoggingFigures};
use crate::noise::Noise;
use crate::reception::{self, ReceptionFigures};
use crate::relay_task::{self, TaskEnds, TaskFigures};
use crate::report::{self, Gathered, StreamFacts};
use crate::servicing::{AccessPointFigures, Counters, LONGEST_SLEEP, Parts, Servicing, TurnQueue};
use crate::stream::absorb::{Absorbed, Absorber};
use crate::stream::task::{Outcome, StreamTask};
use crate::stream::way::WayError;
use crate::{grants, proto};

/// How long senders that run late may go on after the planned end.
const GRACE_NS: i64 = 10_000_000_000;
/// Time between looks at whether the run is over.
const LOOK_EVERY: Duration = Duration::from_millis(10);

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
    /// Directory for segments.
    pub spool: PathBuf,
    /// Core for servicing threads.
    pub servicing_core: Option<usize>,
    /// Their SCHED_FIFO priority; 0: ordinary scheduling.
    pub fifo_priority: u32,
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
    Way(#[from] WayError),
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
    /// Started already.
    #[error("the run has been started already")]
    Started,
}

/// A run whose threads stand ready.
pub struct ActiveRun {
    assignment: Arc<Assignment>,
    gate: Arc<Gate>,
    abort: Arc<AtomicBool>,
    done: Arc<AtomicBool>,
    counters: Vec<Arc<Counters>>,
    supervisor: Option<JoinHandle<proto::AgentReport>>,
    grants: Vec<proto::Grant>,
    access_points: Vec<String>,
}

struct AccessPoint {
    protocol: Protocol,
    servicing: JoinHandle<Option<AccessPointFigures>>,
    reception: JoinHandle<Option<ReceptionFigures>>,
    feed: Option<JoinHandle<()>>,
    relay_task: Option<JoinHandle<Option<TaskFigures>>>,
}

/// Everything the supervisor joins at the end.
struct Crew {
    access_points: Vec<AccessPoint>,
    streams: Vec<Stream>,
    absorber: Option<JoinHandle<Option<Absorbed>>>,
    no_account: Option<String>,
    capture: Option<JoinHandle<CaptureFigures>>,
    stop_capturing: Arc<AtomicBool>,
    logging: JoinHandle<Option<Result<LoggingFigures, RecordError>>>,
    noise: JoinHandle<Option<String>>,
    stop: Arc<AtomicBool>,
    stop_injecting: Arc<AtomicBool>,
    grants: Vec<proto::Grant>,
    _sink: FloodSocket,
    _awake: Option<AwakeCores>,
}

/// A stream's thread.
struct Stream {
    told: StreamFacts,
    stopper: Option<Stopper>,
    thread: JoinHandle<Option<Outcome>>,
}

/// What the threads of a run share.
struct Common {
    assignment: Arc<Assignment>,
    gate: Arc<Gate>,
    stop: Arc<AtomicBool>,
    sources: Vec<LogSource>,
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
        let sink = FloodSocket::sink(std::net::SocketAddrV4::new(here, DISCARD_PORT))?;
        let (mut grants, awake) = grants::of_process();
        let gate = Arc::new(Gate::new());
        let abort = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicBool::new(false));
        let mut common = Common {
            assignment: Arc::clone(&assignment),
            gate: Arc::clone(&gate),
            stop: Arc::new(AtomicBool::new(false)),
            sources: Vec::new(),
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
        for &protocol in &assignment.protocols {
            let socket = open(protocol, &assignment, &interface)?;
            let (access_point, of_thread, watched) = common.start_access_point(protocol, socket, setup)?;
            access_points.push(access_point);
            grants::merge(&mut grants, of_thread);
            counters.push(watched);
        }
        let stop_injecting = Arc::new(AtomicBool::new(false));
        let (streams, of_streams) = common.start_streams(&stop_injecting, &interface, setup)?;
        counters.extend(of_streams);
        let (absorber, no_account) = common.start_absorber(&interface)?;
        let rings = common.sources.iter().map(|source| Arc::clone(&source.dropped)).collect();
        let logging = common.start_logging(setup)?;
        let stop_capturing = Arc::clone(&guard.stop_capturing);
        let capture = start_capture(&assignment, &interface, setup, &stop_capturing)?;
        let noise = common.start_noise(setup, rings)?;
        let names = describe(&assignment, &setup.interface);
        let crew = Crew {
            access_points,
            streams,
            absorber,
            no_account,
            capture,
            stop_capturing,
            logging,
            noise,
            stop: Arc::clone(&common.stop),
            stop_injecting,
            grants: grants.clone(),
            _sink: sink,
            _awake: awake,
        };
        let supervisor = {
            let (assignment, gate) = (Arc::clone(&assignment), Arc::clone(&gate));
            let (abort, done, counters) = (Arc::clone(&abort), Arc::clone(&done), counters.clone());
            spawn("test", move || {
                let report = supervise(&assignment, &gate, &abort, &counters, crew);
                done.store(true, Ordering::Release);
                report
            })?
        };
        guard.armed = false;
        Ok(Self {
            assignment,
            gate,
            abort,
            done,
            counters,
            supervisor: Some(supervisor),
            grants,
            access_points: names,
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

    /// Announces the common start time.
    ///
    /// # Errors
    /// It has passed already, or the run was started or cancelled before.
    pub fn start(&self, epoch: WallNanos) -> Result<(), RunError> {
        let late = clock::realtime().get() - epoch.get();
        if late >= 0 {
            return Err(RunError::EpochPassed { late_us: late / 1_000 });
        }
        if self.gate.open(Epoch::new(epoch)) { Ok(()) } else { Err(RunError::Started) }
    }

    /// Where the run stands.
    pub fn progress(&self) -> proto::Progress {
        let sum = |pick: fn(&Counters) -> &AtomicU64| {
            self.counters.iter().map(|c| pick(c).load(Ordering::Relaxed)).sum()
        };
        proto::Progress {
            done: self.done.load(Ordering::Acquire),
            sent: sum(|c| &c.sent),
            received: sum(|c| &c.received),
            to_send: self.assignment.to_send(),
        }
    }

    /// Waits for the end, or brings it about with `abort`, and reports. Blocks for as long as that takes.
    pub fn finish(mut self, abort: bool) -> proto::AgentReport {
        self.end(abort)
    }

    fn end(&mut self, abort: bool) -> proto::AgentReport {
        if abort {
            self.abort.store(true, Ordering::Relaxed);
        }
        // Without a start there is nothing to wait for.
        self.gate.cancel();
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

fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, RunError> {
    Builder::new().name(name.into()).spawn(body).map_err(RunError::Thread)
}

fn check_interface(setup: &Setup, assignment: &Assignment) -> Result<Interface, RunError> {
    let existing = wg_net::interfaces()?;
    let Some(found) = existing.iter().find(|i| i.name == setup.interface) else {
        let existing: Vec<&str> = existing.iter().map(|i| i.name.as_str()).collect();
        return Err(RunError::NoInterface { name: setup.interface.clone(), existing: existing.join(", ") });
    };
    let planned = assignment.address().mac;
    if let Some(mac) = wg_net::hardware_address(&found.name)?
        && mac != planned
    {
        let text = |mac: [u8; 6]| mac.map(|byte| format!("{byte:02x}")).join(":");
        return Err(RunError::OtherAddress {
            name: found.name.clone(),
            found: text(mac),
            planned: text(planned),
            end_system: assignment.name.clone(),
        });
    }
    Ok(found.clone())
}

fn open(protocol: Protocol, assignment: &Assignment, interface: &Interface) -> Result<Socket, NetError> {
    let socket = match protocol {
        Protocol::Udp | Protocol::Be | Protocol::Rc => Socket::udp(assignment.address().probes())?,
        Protocol::Raw | Protocol::Tt => {
            let tagged = assignment.flows.iter().any(|f| f.protocol == protocol && f.vlan_tci.is_some());
            let protocols =
                if tagged { Protocols::WithTags(RAW_ETHER_TYPE) } else { Protocols::Only(RAW_ETHER_TYPE) };
            Socket::packet(interface.index, assignment.address().mac, protocols)?
        }
    };
    socket.limit_blocking((LONGEST_SLEEP / 1_000_000) as u32)?;
    Ok(socket)
}

fn describe(assignment: &Assignment, interface: &str) -> Vec<String> {
    assignment
        .protocols
        .iter()
        .map(|protocol| match protocol {
            Protocol::Udp | Protocol::Be | Protocol::Rc => format!("udp {}", assignment.address().probes()),
            Protocol::Raw | Protocol::Tt => format!("raw {interface} {RAW_ETHER_TYPE:#06x}"),
        })
        .collect()
}

/// The name of an access point in grants and reports.
pub fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Udp | Protocol::Be | Protocol::Rc => "udp",
        Protocol::Raw | Protocol::Tt => "raw",
    }
}

fn start_capture(
    assignment: &Assignment,
    interface: &Interface,
    setup: &Setup,
    stop: &Arc<AtomicBool>,
) -> Result<Option<JoinHandle<CaptureFigures>>, RunError> {
    let Some(snap) = assignment.capture_snap else { return Ok(None) };
    let (port, rate_bps) = assignment.port;
    let name = format!("{}:{port}", assignment.name);
    let tap = Tap { interface: interface.clone(), name, rate_bps };
    let how = How { snap, see_all: false, by_hardware: false };
    let capture = Capture::open(vec![tap], &setup.spool.join(capturing::FILE), how)?;
    let stop = Arc::clone(stop);
    spawn("capture", move || capture.run(&stop)).map(Some)
}

impl Common {
    /// A ring for a thread that makes `per_message` records for each of `messages`. A short run fits as a whole, because the
    /// logging thread is the last to get a core; a longer one must be written while it goes on.
    fn ring(&mut self, messages: u64, per_message: u64) -> log::Log {
        const MOST: usize = 1 << 20;
        let wanted = messages.saturating_mul(per_message).saturating_add(8_192);
        let (log, source) =
            log::ring(usize::try_from(wanted).unwrap_or(MOST).min(MOST), self.assignment.node);
        self.sources.push(source);
        log
    }

    fn start_access_point(
        &mut self,
        protocol: Protocol,
        socket: Socket,
        setup: &Setup,
    ) -> Result<(AccessPoint, Vec<proto::Grant>, Arc<Counters>), RunError> {
        let name = protocol_name(protocol);
        let assignment = Arc::clone(&self.assignment);
        let arrivals = assignment.arrivals(protocol);
        let (mut outboxes, mut returns, mut spent) = (Vec::new(), Vec::new(), Vec::new());
        let mut feeds = Vec::new();
        let mut departures = 0_u64;
        for task in &assignment.sends {
            let facts = &assignment.flows[usize::from(task.flow)];
            if facts.protocol == protocol && !task.stream {
                departures = departures.saturating_add(facts.planned);
                let (feed, ends) = Feed::new(task.clone());
                feeds.push(feed);
                outboxes.push(ends.outbox);
                returns.push(Some(ends.home));
            }
        }
        let buffers = usize::try_from(arrivals.at_once).unwrap_or(usize::MAX).clamp(256, 16_384);
        let mut pool = Vec::with_capacity(buffers + 64);
        pool.extend((0..buffers).map(|_| Buffer::new()));
        let (inbox, inbox_end) = RingBuffer::new(buffers);
        let (spent_end, home) = RingBuffer::new(buffers + 64);
        spent.push(home);
        let wake = Arc::new(Wake::new()?);

        let in_task = assignment
            .flows
            .iter()
            .any(|facts| facts.protocol == protocol && matches!(facts.duty, Duty::TurnInTask(_)));
        let (mut turn, mut relay_task) = (None, None);
        if in_task {
            let (turn_in, turn_inbox) = RingBuffer::new(buffers);
            let (outbox, outbox_end) = RingBuffer::new(buffers);
            let (unused, unused_home) = RingBuffer::new(buffers + 64);
            outboxes.push(outbox_end);
            returns.push(None);
            spent.push(unused_home);
            let log = self.ring(arrivals.in_all, 3);
            let ends = TaskEnds { inbox: turn_inbox, outbox, spent: unused, log, wake: Arc::clone(&wake) };
            let (gate, assignment) = (Arc::clone(&self.gate), Arc::clone(&assignment));
            let priority = setup.fifo_priority;
            let handle = spawn(&format!("relay-{name}"), move || {
                grants::of_task_thread(priority);
                gate.wait().map(|epoch| relay_task::run(&assignment, epoch, ends))
            })?;
            turn = Some(TurnQueue { inbox: turn_in, thread: handle.thread().clone() });
            relay_task = Some(handle);
        }
        let feed = if feeds.is_empty() {
            None
        } else {
            let (assignment, stop) = (Arc::clone(&assignment), Arc::clone(&self.stop));
            let priority = setup.fifo_priority;
            Some(spawn(&format!("send-{name}"), move || {
                grants::of_task_thread(priority);
                feed::run(feeds, &assignment, &stop);
            })?)
        };
        let reception = {
            let mut log = self.ring(arrivals.in_all, 2);
            let (gate, assignment) = (Arc::clone(&self.gate), Arc::clone(&assignment));
            let priority = setup.fifo_priority;
            spawn(&format!("receive-{name}"), move || {
                grants::of_task_thread(priority);
                gate.wait().map(|epoch| {
                    log.begin(epoch);
                    reception::run(&assignment, inbox_end, spent_end, log)
                })
            })?
        };
        let counters = Arc::new(Counters::default());
        let parts = Parts {
            socket,
            protocol,
            assignment: Arc::clone(&assignment),
            outboxes,
            returns,
            inbox,
            turn,
            spent,
            pool,
            log: self.ring(departures.saturating_add(arrivals.in_all), 4),
            counters: Arc::clone(&counters),
            wake,
            stop: Arc::clone(&self.stop),
        };
        let servicing = Servicing::new(parts);
        let (tell, told) = mpsc::channel();
        let (gate, priority, core) = (Arc::clone(&self.gate), setup.fifo_priority, setup.servicing_core);
        let servicing = spawn(&format!("service-{name}"), move || {
            // Nobody listens when preparing failed meanwhile.
            drop(tell.send(grants::of_servicing_thread(priority, core)));
            gate.wait().map(|epoch| servicing.run(epoch))
        })?;
        let mut granted = told.recv().unwrap_or_default();
        for direction in ["tx", "rx"] {
            granted.push(grants::grant(
                &format!("{direction}-timestamps-{name}"),
                Ok("software, by the driver".into()),
            ));
        }
        Ok((AccessPoint { protocol, servicing, reception, feed, relay_task }, granted, counters))
    }

    /// Starts the senders that are streams, and the injectors.
    fn start_streams(
        &mut self,
        stop: &Arc<AtomicBool>,
        interface: &Interface,
        setup: &Setup,
    ) -> Result<(Vec<Stream>, Vec<Arc<Counters>>), RunError> {
        let (mut streams, mut counters) = (Vec::new(), Vec::new());
        let assignment = Arc::clone(&self.assignment);
        for (position, task) in assignment.sends.iter().enumerate().filter(|(_, task)| task.stream) {
            let stream = StreamTask::of_send(&assignment, interface, task)?;
            let told = StreamFacts::new("send", position, &stream);
            let mut log = self.ring(task.schedule.total(), 2);
            let watched = Arc::new(Counters::default());
            counters.push(Arc::clone(&watched));
            let (priority, core) = (setup.fifo_priority, setup.servicing_core);
            let (gate, stop, assignment) =
                (Arc::clone(&self.gate), Arc::clone(stop), Arc::clone(&assignment));
            let thread = spawn("stream", move || {
                // It spins as long as it sends, so the servicing threads, which do not, go first. What is refused here was
                // refused to them, and they say so.
                grants::of_servicing_thread(if priority > 1 { priority - 1 } else { priority }, core);
                gate.wait().map(|epoch| {
                    log.begin(epoch);
                    stream.run(&assignment, epoch, &stop, Some((&mut log, &watched)))
                })
            })?;
            streams.push(Stream { told, stopper: None, thread });
        }
        for (position, task) in assignment.loads.iter().enumerate() {
            let stream = StreamTask::of_load(&assignment, interface, task)?;
            let told = StreamFacts::new("inject", position, &stream);
            let (stopper, restful, priority) = (stream.stopper(), stream.is_restful(), setup.fifo_priority);
            let (gate, stop, assignment) =
                (Arc::clone(&self.gate), Arc::clone(stop), Arc::clone(&assignment));
            let thread = spawn("inject", move || {
                // All only help; without them the load is a little less steady. A thread that sleeps between its bursts may
                // go before ordinary ones; one that is always awake may not.
                let _ = (realtime::no_timer_slack(), realtime::nice(-10));
                if restful && priority > 3 {
                    let _ = realtime::fifo(priority / 4);
                }
                gate.wait().map(|epoch| stream.run(&assignment, epoch, &stop, None))
            })?;
            streams.push(Stream { told, stopper, thread });
        }
        Ok((streams, counters))
    }

    /// Starts the receiver of background load, where some leads here; or tells why its frames are not counted.
    #[expect(clippy::type_complexity, reason = "one caller, which takes it apart at once")]
    fn start_absorber(
        &self,
        interface: &Interface,
    ) -> Result<(Option<JoinHandle<Option<Absorbed>>>, Option<String>), RunError> {
        if self.assignment.loads_to_here.is_empty() {
            return Ok((None, None));
        }
        let absorber = match Absorber::open(&self.assignment, interface) {
            Ok(absorber) => absorber,
            Err(why) => return Ok((None, Some(why))),
        };
        let (gate, stop) = (Arc::clone(&self.gate), Arc::clone(&self.stop));
        let thread = spawn("absorb", move || {
            // Only helps: its ring bridges more than a second.
            let _ = realtime::nice(-10);
            gate.wait().map(|epoch| absorber.run(epoch, &stop))
        })?;
        Ok((Some(thread), None))
    }

    fn start_logging(
        &mut self,
        setup: &Setup,
    ) -> Result<JoinHandle<Option<Result<LoggingFigures, RecordError>>>, RunError> {
        std::fs::create_dir_all(&setup.spool).map_err(|source| RecordError::Write {
            path: setup.spool.clone(),
            source,
            records_lost: 0,
        })?;
        let sources = std::mem::take(&mut self.sources);
        let (gate, spool) = (Arc::clone(&self.gate), setup.spool.clone());
        let (end_system, node, run_index) =
            (self.assignment.name.clone(), self.assignment.node, self.assignment.run_index);
        let planted = self.assignment.planted_clock;
        spawn("log", move || {
            // The kernel always lets a thread step back.
            let _ = realtime::background();
            gate.wait().map(|epoch| {
                let epoch_realtime_ns = epoch.wall().get();
                let info = SegmentInfo { end_system, node, run_index, epoch_realtime_ns };
                logging::run(&spool, info, sources, planted)
            })
        })
    }

    fn start_noise(
        &self,
        setup: &Setup,
        rings: Vec<Arc<AtomicU64>>,
    ) -> Result<JoinHandle<Option<String>>, RunError> {
        let length = (self.assignment.last_send + self.assignment.drain).as_picos().max(0).unsigned_abs();
        let noise = Noise {
            core: setup.servicing_core,
            interface: setup.interface.clone(),
            rings,
            length: Duration::from_nanos(length / 1_000),
        };
        let (gate, stop, spool) = (Arc::clone(&self.gate), Arc::clone(&self.stop), setup.spool.clone());
        spawn("noise", move || {
            // The kernel always lets a thread step back.
            let _ = realtime::background();
            gate.wait().and_then(|epoch| noise.run(&spool, epoch, &stop))
        })
    }
}

/// The test thread: waits for the end of the run, ends the threads in the order of the data, and reports.
fn supervise(
    assignment: &Arc<Assignment>,
    gate: &Gate,
    abort: &AtomicBool,
    counters: &[Arc<Counters>],
    crew: Crew,
) -> proto::AgentReport {
    let epoch = gate.wait();
    let steal = wg_net::host::steal_ns();
    let mut reason = None;
    match epoch {
        None => reason = Some("the run was never started".to_owned()),
        Some(epoch) => {
            let end = epoch.wall_nanos(assignment.last_send).get() + assignment.drain.as_nanos_floor();
            loop {
                let now = clock::realtime().get();
                let sent: u64 = counters.iter().map(|c| c.sent.load(Ordering::Relaxed)).sum();
                let all_sent = sent >= assignment.to_send();
                if abort.load(Ordering::Relaxed) {
                    let left = assignment.to_send().saturating_sub(sent);
                    if now < end || !all_sent {
                        reason = Some(format!("ended early, with {left} messages still to send"));
                    }
                    break;
                }
                if now >= end && all_sent {
                    break;
                }
                if now >= end + GRACE_NS {
                    let left = assignment.to_send().saturating_sub(sent);
                    reason = Some(format!(
                        "{left} messages were still to be sent 10 s after the planned end; the host is too slow for this rate"
                    ));
                    break;
                }
                std::thread::sleep(LOOK_EVERY);
            }
        }
    }
    crew.stop_injecting.store(true, Ordering::Relaxed);
    crew.stop.store(true, Ordering::Relaxed);
    let mut gathered = Gathered::new(epoch, reason, crew.grants);
    gathered.steal_ns =
        wg_net::host::steal_ns().zip(steal).map_or(0, |(after, before)| after.saturating_sub(before));
    for access_point in crew.access_points {
        let protocol = access_point.protocol;
        gathered.take_access_point(protocol, access_point.servicing.join());
        if let Some(task) = access_point.relay_task {
            gathered.take_relay_task(protocol, task.join());
        }
        gathered.take_reception(access_point.reception.join());
        if access_point.feed.is_some_and(|feed| feed.join().is_err()) {
            gathered.defect("a sender task");
        }
    }
    for stream in crew.streams {
        if let Some(stopper) = stream.stopper {
            // Nothing to stop once its frames have left; a refusal only means waiting for them.
            let _ = stopper.stop();
        }
        gathered.take_stream(stream.told, stream.thread.join());
    }
    if let Some(absorber) = crew.absorber {
        gathered.take_absorbed(absorber.join());
    }
    gathered.no_account = crew.no_account;
    // Last of all, so that it has seen what the others did.
    crew.stop_capturing.store(true, Ordering::Relaxed);
    if let Some(capture) = crew.capture {
        gathered.take_capture(capture.join());
    }
    gathered.take_logging(crew.logging.join());
    gathered.take_noise(crew.noise.join());
    gathered.ended = clock::realtime().get();
    report::compose(assignment, gathered)
}
