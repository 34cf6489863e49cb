//! The control plane: what the testmaster may ask of an agent.
//!
//! Calls are serialised by one lock around the agent's state, except that watching a run and reading clocks only
//! look. Nothing a caller sends can end the program but `Shutdown`.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::sync::{Notify, mpsc};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status};
use wg_frame::time::WallNanos;
use wg_net::clock;
use wg_net::transmit::Backend;
use wg_plan::{Network, PLAN_SCHEMA, Run};
use wg_record::segment::{SEGMENT_SCHEMA, segment_files};

use super::role::{Fault, OpenError, PortInterface, Role, Setup};
use super::run::{ActiveRun, StartError};
use crate::control::spool::Spool;
use crate::proto::{self, agent_server::Agent};
use crate::recording::packet_capture;
use crate::recording::planted_clock::PlantedHostClock;
use crate::remote::allowance::Allowance;
use crate::remote::callers::Caller;
use crate::remote::interfaces;
use crate::remote::signed_plan::Session;
use crate::timestamps::planted::PlantedHardware;

/// Bytes of a file sent at a time.
const CHUNK: usize = 256 << 10;
/// Shortest time between two messages of a watch, ms.
const LEAST_INTERVAL_MS: u32 = 10;
/// Longest time between two signs of life a testmaster may ask for, ms.
const LONGEST_LEASE_MS: u32 = 3_600_000;

/// Metadata of every call after Hello, where the agent serves a network: the session it named.
const SESSION: &str = "session-bin";

/// What the agent is at.
enum State {
    /// Between runs; the spool of the last finished run, if there was one.
    Idle(Option<PathBuf>),
    /// A run is prepared or going on.
    Active { run: Arc<Mutex<Option<ActiveRun>>>, spool: PathBuf },
}

/// The last sign of life of the testmaster, and how long it lasts.
#[derive(Clone, Copy)]
struct Lease {
    length: Option<Duration>,
    seen: Instant,
}

/// Who uses an agent that serves a network.
struct Holder {
    caller: Caller,
    since: WallNanos,
    session: Session,
}

struct Shared {
    spool: Spool,
    state: Mutex<State>,
    lease: Mutex<Lease>,
    holder: Mutex<Option<Holder>>,
    shutdown: Notify,
}

/// The service.
#[derive(Clone)]
pub struct AgentService {
    shared: Arc<Shared>,
    planted_hardware: Option<PlantedHardware>,
    planted_clock: Option<PlantedHostClock>,
    roles: &'static [&'static dyn Role],
    /// Of an agent that serves a network: what callers may do. Over a Unix socket only this user calls.
    allowance: Option<Arc<Allowance>>,
    /// Where it is kept what TSN settings change, where they are allowed.
    tsn_folder: Option<PathBuf>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AgentService {
    /// An idle agent that can play `roles` and writes to `spool`. `planted_hardware` stands in for the clock of its
    /// interface, which is a test facility.
    pub fn new(
        roles: &'static [&'static dyn Role],
        spool: Spool,
        planted_hardware: Option<PlantedHardware>,
    ) -> Self {
        let lease = Lease { length: None, seen: Instant::now() };
        Self {
            roles,
            planted_hardware,
            planted_clock: None,
            allowance: None,
            tsn_folder: None,
            shared: Arc::new(Shared {
                spool,
                state: Mutex::new(State::Idle(None)),
                lease: Mutex::new(lease),
                holder: Mutex::new(None),
                shutdown: Notify::new(),
            }),
        }
    }

    /// The same with a clock of the host that is wrong on purpose, which is a test facility.
    #[must_use]
    pub fn with_clock(self, planted_clock: Option<PlantedHostClock>) -> Self {
        Self { planted_clock, ..self }
    }

    /// The same for callers from a network, who are told apart by the [`Caller`] beside each call: plans have to be signed
    /// and to stay within what is allowed, and who uses the agent keeps others out.
    #[must_use]
    pub fn bounded(self, allowance: Allowance) -> Self {
        Self { allowance: Some(Arc::new(allowance)), ..self }
    }

    /// The same that makes TSN settings of its interface, and keeps in `folder` what they change.
    #[must_use]
    pub fn with_tsn(self, folder: Option<PathBuf>) -> Self {
        Self { tsn_folder: folder, ..self }
    }

    /// Ends when the testmaster asks for it.
    pub async fn shutdown_requested(&self) {
        self.shared.shutdown.notified().await;
    }

    /// Ends a run whose testmaster has fallen silent; never returns.
    pub async fn watch_lease(&self) {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let lease = *lock(&self.shared.lease);
            if lease.length.is_some_and(|length| lease.seen.elapsed() > length) {
                lock(&self.shared.lease).length = None;
                self.abandon().await;
                *lock(&self.shared.holder) = None;
            }
        }
    }

    /// Ends the run that is going on, if any, and keeps what it recorded.
    pub async fn abandon(&self) {
        let _ = self.end_run(true).await;
    }

    fn alive(&self) {
        lock(&self.shared.lease).seen = Instant::now();
    }

    /// Ends the run and waits for its threads, off the control thread.
    async fn end_run(&self, abort: bool) -> Result<proto::AgentReport, Status> {
        let taken = {
            let state = lock(&self.shared.state);
            match &*state {
                State::Active { run, .. } => lock(run).take(),
                State::Idle(_) => None,
            }
        };
        let Some(run) = taken else {
            return Err(Status::failed_precondition("there is no run to finish; call Prepare first"));
        };
        let report = tokio::task::spawn_blocking(move || run.finish(abort)).await;
        let mut state = lock(&self.shared.state);
        if let State::Active { spool, .. } = &*state {
            *state = State::Idle(Some(spool.clone()));
        }
        report.map_err(|_| Status::internal("the run could not be ended; this is a defect of wiregauge"))
    }

    /// The run that is going on.
    fn active(&self) -> Result<Arc<Mutex<Option<ActiveRun>>>, Status> {
        match &*lock(&self.shared.state) {
            State::Active { run, .. } => Ok(Arc::clone(run)),
            State::Idle(_) => Err(Status::failed_precondition("there is no run; call Prepare first")),
        }
    }
}

fn refusal(error: &OpenError) -> Status {
    let message = error.to_string();
    match error.fault {
        Fault::Request => Status::invalid_argument(message),
        Fault::NotFound => Status::not_found(message),
        Fault::Permission => Status::permission_denied(message),
        Fault::Exhausted => Status::resource_exhausted(message),
        Fault::Precondition => Status::failed_precondition(message),
    }
}

fn not_started(error: &StartError) -> Status {
    match error {
        StartError::EpochPassed { .. } => Status::out_of_range(error.to_string()),
        StartError::NotAnnounced | StartError::Started => Status::failed_precondition(error.to_string()),
    }
}

/// What is asked for, if it is in order and allowed; where it is recorded, and what is planted, is not in it.
fn setup(request: proto::PrepareRequest, allowance: Option<&Allowance>) -> Result<Setup, Status> {
    let network: Network = serde_json::from_slice(&request.network_json)
        .map_err(|e| Status::invalid_argument(format!("network_json is not a network: {e}")))?;
    let run: Run = serde_json::from_slice(&request.run_json)
        .map_err(|e| Status::invalid_argument(format!("run_json is not a run: {e}")))?;
    if request.fifo_priority > 99 {
        let asked = request.fifo_priority;
        return Err(Status::invalid_argument(format!("fifo_priority is {asked}; it must be from 0 to 99")));
    }
    let node = network.nodes.iter().position(|node| node.name == request.end_system).ok_or_else(|| {
        let names: Vec<&str> = network.nodes.iter().map(|node| node.name.as_str()).collect();
        Status::invalid_argument(format!(
            "the plan has no node '{}'; it has {}",
            request.end_system,
            names.join(", ")
        ))
    })?;
    let node =
        u16::try_from(node).map_err(|_| Status::invalid_argument("the plan has more than 65536 nodes"))?;
    let ports = request
        .ports
        .into_iter()
        .map(|one| match u16::try_from(one.port) {
            Ok(port) if port > 0 => Ok(PortInterface { port, interface: one.interface }),
            _ => Err(Status::invalid_argument(format!(
                "port {} is not a port; ports go from 1 to 65535",
                one.port
            ))),
        })
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(allowance) = allowance {
        allowance.check(&network, &run, node, &ports).map_err(Status::permission_denied)?;
    }
    Ok(Setup {
        network,
        run,
        node,
        ports,
        spool: PathBuf::new(),
        agents_on_host: request.agents_on_host,
        distrusted: request
            .distrusted
            .into_iter()
            .filter_map(|one| Some((Backend::named(&one.backend)?, one.seen)))
            .collect(),
        servicing_core: usize::try_from(request.servicing_core).ok(),
        fifo_priority: request.fifo_priority,
        planted_hardware: None,
        planted_clock: None,
        tsn_folder: None,
    })
}

type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Facts of the host; one whose clock is planted shares its clock with nobody.
fn host_facts(planted: bool) -> std::collections::BTreeMap<String, String> {
    let mut facts = crate::tools::doctor::host_facts();
    if planted {
        facts.insert("boot-id".into(), "planted clock".into());
    }
    facts
}

/// Who calls, where the agent serves a network.
fn caller<T>(request: &Request<T>) -> Option<&Caller> {
    request.extensions().get()
}

#[tonic::async_trait]
impl Agent for AgentService {
    async fn describe(
        &self,
        request: Request<proto::DescribeRequest>,
    ) -> Result<Response<proto::DescribeReply>, Status> {
        let reached = caller(&request).and_then(|caller| caller.to);
        let (allowance, planted_clock) = (self.allowance.clone(), self.planted_clock);
        let (interfaces, host) = tokio::task::spawn_blocking(move || {
            let allows =
                |name: &str| allowance.as_ref().is_none_or(|allowance| allowance.has_interface(name));
            (interfaces::described(allows), host_facts(planted_clock.is_some()))
        })
        .await
        .map_err(|_| {
            Status::internal("the interfaces could not be looked at; this is a defect of wiregauge")
        })?;
        let in_use = lock(&self.shared.holder).as_ref().map(Holder::described);
        Ok(Response::new(proto::DescribeReply {
            agent_version: env!("CARGO_PKG_VERSION").into(),
            plan_schema: PLAN_SCHEMA,
            record_schema: SEGMENT_SCHEMA,
            host_name: wg_net::host::name(),
            host: host.into_iter().collect(),
            interfaces,
            in_use: in_use.unwrap_or_default(),
            reached_at: reached.map(|at| at.ip().to_canonical().to_string()).unwrap_or_default(),
            allowed: self.allowance.as_ref().map(|allowance| allowance.described()).unwrap_or_default(),
        }))
    }

    async fn hello(
        &self,
        request: Request<proto::HelloRequest>,
    ) -> Result<Response<proto::HelloReply>, Status> {
        let who = caller(&request).cloned();
        let asked = request.into_inner().lease_ms;
        if asked > LONGEST_LEASE_MS {
            return Err(Status::invalid_argument(format!(
                "lease_ms is {asked}; it must be at most {LONGEST_LEASE_MS}, or 0 for no lease"
            )));
        }
        let length = (asked > 0).then(|| Duration::from_millis(u64::from(asked)));
        let session = who.map(|who| self.hold(who, length)).transpose()?;
        *lock(&self.shared.lease) = Lease { length, seen: Instant::now() };
        Ok(Response::new(proto::HelloReply {
            agent_version: env!("CARGO_PKG_VERSION").into(),
            plan_schema: PLAN_SCHEMA,
            record_schema: SEGMENT_SCHEMA,
            host: host_facts(self.planted_clock.is_some()).into_iter().collect(),
            session: session.unwrap_or_default(),
        }))
    }

    async fn prepare(
        &self,
        request: Request<proto::PrepareRequest>,
    ) -> Result<Response<proto::PrepareReply>, Status> {
        self.check_holder(&request)?;
        if let Some(caller) = caller(&request) {
            let mut holder = lock(&self.shared.holder);
            let session = holder.as_mut().map(|holder| &mut holder.session);
            session
                .ok_or_else(|| Status::failed_precondition("there is no session; call Hello first"))?
                .take(request.get_ref(), &caller.key)
                .map_err(|error| Status::permission_denied(error.to_string()))?;
        }
        self.alive();
        let run = Arc::new(Mutex::new(None));
        let setup = {
            let mut state = lock(&self.shared.state);
            if matches!(&*state, State::Active { .. }) {
                return Err(Status::failed_precondition(
                    "a run is prepared or in progress; call Finish first",
                ));
            }
            let mut setup = setup(request.into_inner(), self.allowance.as_deref())?;
            let place = self.shared.spool.place(setup.run.index, setup.node);
            setup.spool = place.map_err(|e| Status::failed_precondition(e.to_string()))?;
            (setup.planted_hardware, setup.planted_clock) = (self.planted_hardware, self.planted_clock);
            setup.tsn_folder.clone_from(&self.tsn_folder);
            *state = State::Active { run: Arc::clone(&run), spool: setup.spool.clone() };
            setup
        };
        let (place, roles) = (setup.spool.clone(), self.roles);
        let prepared = tokio::task::spawn_blocking(move || ActiveRun::prepare(&setup, roles)).await;
        let prepared = match prepared {
            Ok(Ok(prepared)) => Ok(prepared),
            Ok(Err(error)) => Err(refusal(&error)),
            Err(_) => Err(Status::internal("preparing the run failed; this is a defect of wiregauge")),
        };
        let prepared = prepared.inspect_err(|_| {
            self.shared.spool.discard(&place);
            *lock(&self.shared.state) = State::Idle(None);
        })?;
        let reply = proto::PrepareReply {
            grants: prepared.grants().to_vec(),
            access_points: prepared.access_points().to_vec(),
            streams: prepared.streams(),
        };
        *lock(&run) = Some(prepared);
        self.alive();
        Ok(Response::new(reply))
    }

    async fn try_stream(
        &self,
        request: Request<proto::TryStreamRequest>,
    ) -> Result<Response<proto::TryStreamReply>, Status> {
        self.check_holder(&request)?;
        self.alive();
        let (run, request) = (self.active()?, request.into_inner());
        let tried = tokio::task::spawn_blocking(move || lock(&run).as_ref().map(|run| run.try_out(&request)));
        match tried.await {
            Ok(Some(Ok(sent))) => Ok(Response::new(proto::TryStreamReply { sent })),
            Ok(Some(Err(why))) => Err(Status::failed_precondition(why)),
            Ok(None) => Err(Status::failed_precondition("the run is not prepared yet")),
            Err(_) => Err(Status::internal("trying a stream failed; this is a defect of wiregauge")),
        }
    }

    async fn read_interface(
        &self,
        request: Request<proto::ReadInterfaceRequest>,
    ) -> Result<Response<proto::ReadInterfaceReply>, Status> {
        self.check_holder(&request)?;
        self.alive();
        let counted = wg_net::link_counters(&request.into_inner().interface)
            .map_err(|error| Status::not_found(error.to_string()))?;
        let (received, receive_dropped) = (counted.received, counted.receive_dropped);
        Ok(Response::new(proto::ReadInterfaceReply { received, receive_dropped }))
    }

    async fn announce(
        &self,
        request: Request<proto::StartRequest>,
    ) -> Result<Response<proto::StartReply>, Status> {
        self.check_holder(&request)?;
        self.with_prepared(&request.into_inner(), ActiveRun::announce)
    }

    async fn start(
        &self,
        request: Request<proto::StartRequest>,
    ) -> Result<Response<proto::StartReply>, Status> {
        self.check_holder(&request)?;
        let request = request.into_inner();
        let common = Some(request.common_epoch_ns).filter(|ns| *ns != 0).map(WallNanos::new);
        self.with_prepared(&request, |run, epoch| run.start(epoch, common))
    }

    type WatchStream = Streamed<proto::Progress>;

    async fn watch(
        &self,
        request: Request<proto::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        self.check_holder(&request)?;
        self.alive();
        let run = self.active()?;
        let interval = request.into_inner().interval_ms.max(LEAST_INTERVAL_MS);
        let (sender, receiver) = mpsc::channel(4);
        let service = self.clone();
        tokio::spawn(async move {
            let mut done = false;
            loop {
                let progress = lock(&run).as_ref().map(ActiveRun::progress);
                let Some(progress) = progress else {
                    if done {
                        return;
                    }
                    let over = Status::aborted("the run was ended while it was watched");
                    drop(sender.send(Err(over)).await);
                    return;
                };
                done |= progress.done;
                // A stream nobody reads fills up and, like one that was closed, gives no sign of life.
                if sender.send(Ok(progress)).await.is_err() {
                    return;
                }
                service.alive();
                tokio::time::sleep(Duration::from_millis(u64::from(interval))).await;
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn finish(
        &self,
        request: Request<proto::FinishRequest>,
    ) -> Result<Response<proto::FinishReply>, Status> {
        self.check_holder(&request)?;
        self.alive();
        let report = self.end_run(request.into_inner().abort).await?;
        self.alive();
        Ok(Response::new(proto::FinishReply { report: Some(report) }))
    }

    type CollectStream = Streamed<proto::Chunk>;

    async fn collect(
        &self,
        request: Request<proto::CollectRequest>,
    ) -> Result<Response<Self::CollectStream>, Status> {
        self.check_holder(&request)?;
        self.alive();
        let spool = match &*lock(&self.shared.state) {
            State::Idle(Some(spool)) => spool.clone(),
            State::Idle(None) => return Err(Status::failed_precondition("no run has finished yet")),
            State::Active { .. } => return Err(Status::failed_precondition("call Finish first")),
        };
        let mut files = segment_files(&spool).map_err(|error| Status::data_loss(error.to_string()))?;
        files.extend(Some(spool.join(packet_capture::FILE)).filter(|capture| capture.exists()));
        files.extend(
            Some(spool.join(crate::recording::host_counters::FILE))
                .filter(|host_counters| host_counters.exists()),
        );
        let (sender, receiver) = mpsc::channel(4);
        let service = self.clone();
        tokio::spawn(async move {
            for path in files {
                if let Err(error) = service.send_file(&path, &sender).await {
                    let problem = format!("cannot read {}: {error}", path.display());
                    drop(sender.send(Err(Status::data_loss(problem))).await);
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn release(
        &self,
        request: Request<proto::ReleaseRequest>,
    ) -> Result<Response<proto::ReleaseReply>, Status> {
        self.check_holder(&request)?;
        self.abandon().await;
        lock(&self.shared.lease).length = None;
        *lock(&self.shared.holder) = None;
        Ok(Response::new(proto::ReleaseReply {}))
    }

    async fn read_clock(
        &self,
        request: Request<proto::ReadClockRequest>,
    ) -> Result<Response<proto::ReadClockReply>, Status> {
        // Whoever only looks does not speak for the testmaster.
        if self.check_holder(&request).is_ok() {
            self.alive();
        }
        let (realtime, monotonic_raw_ns) = clock::read_pair();
        let realtime = self.planted_clock.map_or(realtime, |planted| planted.shown(realtime));
        Ok(Response::new(proto::ReadClockReply { realtime_ns: realtime.get(), monotonic_raw_ns }))
    }

    async fn shutdown(
        &self,
        _: Request<proto::ShutdownRequest>,
    ) -> Result<Response<proto::ShutdownReply>, Status> {
        self.abandon().await;
        self.shared.shutdown.notify_one();
        Ok(Response::new(proto::ShutdownReply {}))
    }
}

impl Holder {
    fn described(&self) -> String {
        let for_s = (clock::realtime().get() - self.since.get()) / 1_000_000_000;
        format!("used by {} for {for_s} s", self.caller.name)
    }
}

impl AgentService {
    /// Has `who` use the agent from now on, unless it is in use; what its plans are bound to and its calls have to name.
    fn hold(&self, who: Caller, lease: Option<Duration>) -> Result<Vec<u8>, Status> {
        if lease.is_none() {
            return Err(Status::invalid_argument("over a network lease_ms has to be more than 0"));
        }
        let mut holder = lock(&self.shared.holder);
        if let Some(other) = holder.as_ref() {
            return Err(Status::failed_precondition(format!(
                "this host is {}; try again when that test is over",
                other.described()
            )));
        }
        let session = Session::draw()
            .map_err(|_| Status::internal("the kernel has no random numbers for a session"))?;
        let challenge = session.challenge().to_vec();
        *holder = Some(Holder { caller: who, since: clock::realtime(), session });
        Ok(challenge)
    }

    /// Keeps out whoever does not use the agent.
    fn check_holder<T>(&self, request: &Request<T>) -> Result<(), Status> {
        let Some(caller) = caller(request) else { return Ok(()) };
        let named = request.metadata().get_bin(SESSION).and_then(|value| value.to_bytes().ok());
        match lock(&self.shared.holder).as_ref() {
            None => Err(Status::failed_precondition(
                "there is no session, or its lease is over; call Hello first",
            )),
            Some(holder)
                if holder.caller.fingerprint == caller.fingerprint
                    && named.as_deref() == Some(holder.session.challenge()) =>
            {
                Ok(())
            }
            Some(holder) => Err(Status::permission_denied(format!("this host is {}", holder.described()))),
        }
    }

    fn with_prepared(
        &self,
        request: &proto::StartRequest,
        act: impl FnOnce(&mut ActiveRun, WallNanos) -> Result<(), StartError>,
    ) -> Result<Response<proto::StartReply>, Status> {
        self.alive();
        let run = self.active()?;
        let mut run = lock(&run);
        let Some(run) = run.as_mut() else {
            return Err(Status::failed_precondition("the run is not prepared yet"));
        };
        let epoch = WallNanos::new(request.epoch_realtime_ns);
        let epoch = self.planted_clock.map_or(epoch, |planted| planted.instant(epoch));
        act(run, epoch).map_err(|error| not_started(&error))?;
        Ok(Response::new(proto::StartReply {}))
    }

    /// One file in chunks; an empty one as a single empty chunk. Returns early when the caller has gone.
    async fn send_file(
        &self,
        path: &std::path::Path,
        sender: &mpsc::Sender<Result<proto::Chunk, Status>>,
    ) -> std::io::Result<()> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut file = tokio::fs::File::open(path).await?;
        let mut first = true;
        loop {
            let mut data = vec![0; CHUNK];
            let read = file.read(&mut data).await?;
            if read == 0 && !first {
                return Ok(());
            }
            first = false;
            data.truncate(read);
            if sender.send(Ok(proto::Chunk { file: name.clone(), data })).await.is_err() {
                return Ok(());
            }
            self.alive();
        }
    }
}
