//! The control plane: what the testmaster may ask of an agent.
//!
//! Calls of a session are serialised by one lock around its state, except that watching a run and reading clocks only
//! look. Nothing a caller sends can end the program but `Shutdown`.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status};
use wg_frame::time::WallNanos;
use wg_net::clock;
use wg_plan::PLAN_SCHEMA;
use wg_record::segment::SEGMENT_SCHEMA;

use super::admission::{caller, kept_at, of_session};
use super::campaigns::{self, Campaign};
use super::request::setup;
use super::role::{Fault, OpenError, Role, Setup};
use super::run::{ActiveRun, StartError};
use super::session::{Prepared, Session};
use super::versions;
use super::{lock, sending};
use crate::control::spool::Spool;
use crate::proto::{self, agent_server::Agent};
use crate::recording::planted_clock::PlantedHostClock;
use crate::remote::allowance::Allowance;
use crate::remote::drain::Drain;
use crate::remote::interfaces;
use crate::remote::revoked::Revoked;
use crate::timestamps::planted::PlantedHardware;
use crate::tools::mending::Mending;

/// Shortest time between two messages of a watch, ms.
const LEAST_INTERVAL_MS: u32 = 10;
/// Longest time between two signs of life a testmaster may ask for, ms.
const LONGEST_LEASE_MS: u32 = 3_600_000;

pub(super) struct Shared {
    spool: Spool,
    /// Of this user's programs, over a Unix socket.
    pub(super) own: Arc<Session>,
    /// Of callers over a network, one for each interface that is used.
    pub(super) remote: Mutex<Vec<Arc<Session>>>,
    /// Held while somebody asks who answers.
    pub(super) reaching: tokio::sync::Mutex<()>,
    shutdown: Notify,
}

/// The service.
#[derive(Clone)]
pub struct AgentService {
    pub(super) shared: Arc<Shared>,
    planted_hardware: Option<PlantedHardware>,
    pub(super) planted_clock: Option<PlantedHostClock>,
    roles: &'static [&'static dyn Role],
    /// Of an agent that serves a network. Over a Unix socket only this user calls.
    pub(super) remote: Option<Arc<Rules>>,
    /// Sets the host for measuring where callers may ask for it.
    pub(super) mending: Option<Arc<Mending>>,
    /// Where it is kept what TSN settings change, where they are allowed.
    tsn_folder: Option<PathBuf>,
}

/// What holds for callers from a network.
pub(super) struct Rules {
    pub(super) allowance: Allowance,
    pub(super) drain: Drain,
    pub(super) revoked: Arc<Revoked>,
}

impl AgentService {
    /// An idle agent that can play `roles` and writes to `spool`. `planted_hardware` stands in for the clock of its
    /// interface, which is a test facility.
    pub fn new(
        roles: &'static [&'static dyn Role],
        spool: Spool,
        planted_hardware: Option<PlantedHardware>,
    ) -> Self {
        Self {
            roles,
            planted_hardware,
            planted_clock: None,
            remote: None,
            mending: None,
            tsn_folder: None,
            shared: Arc::new(Shared {
                spool,
                own: Arc::new(Session::new(None, None)),
                remote: Mutex::default(),
                reaching: tokio::sync::Mutex::default(),
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
    /// and to stay within what is allowed, and an interface that is used keeps others out.
    #[must_use]
    pub fn bounded(self, allowance: Allowance, drain: Drain, revoked: Arc<Revoked>) -> Self {
        Self { remote: Some(Arc::new(Rules { allowance, drain, revoked })), ..self }
    }

    /// The same, and callers may have settings of the host changed for measuring, which are restored in the end.
    #[must_use]
    pub fn with_mending(self, mending: Arc<Mending>) -> Self {
        Self { mending: Some(mending), ..self }
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

    /// Ends the runs of testmasters that have fallen silent; never returns.
    pub async fn watch_lease(&self) {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            for session in self.sessions() {
                if session.overdue() {
                    self.end(&session).await;
                }
            }
        }
    }

    /// Ends the runs that are going on, and keeps what they recorded.
    pub async fn abandon(&self) {
        for session in self.sessions() {
            session.abandon().await;
        }
    }

    pub(super) fn sessions(&self) -> Vec<Arc<Session>> {
        let mut all = lock(&self.shared.remote).clone();
        all.push(Arc::clone(&self.shared.own));
        all
    }

    /// Ends a session and its run, and keeps what it recorded.
    pub(super) async fn end(&self, session: &Arc<Session>) {
        session.abandon().await;
        lock(&self.shared.remote).retain(|one| !Arc::ptr_eq(one, session));
        if let (Some(mending), Some(_)) = (self.mending.clone(), &session.holder) {
            let live = self.sessions().iter().filter_map(|one| one.challenge()).collect::<Vec<_>>();
            // Spawned: a caller that waits no longer must not keep it from being done.
            let _ = tokio::task::spawn_blocking(move || mending.end_sessions(&live)).await;
        }
        if let Some(campaign) = &session.campaign {
            self.tidy(campaign);
        }
    }

    /// A campaign of which nothing is kept and that nobody is at leaves nothing.
    pub(super) fn tidy(&self, campaign: &Campaign) {
        if !self.sessions().iter().any(|session| session.campaign.as_ref() == Some(campaign)) {
            campaign.tidy();
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

pub(super) type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Facts of the host; one whose clock is planted shares its clock with nobody.
fn host_facts(planted: bool) -> std::collections::BTreeMap<String, String> {
    let mut facts = crate::tools::doctor::host_facts();
    if planted {
        facts.insert("boot-id".into(), "planted clock".into());
    }
    facts
}

#[tonic::async_trait]
impl Agent for AgentService {
    async fn describe(
        &self,
        request: Request<proto::DescribeRequest>,
    ) -> Result<Response<proto::DescribeReply>, Status> {
        let reached = caller(&request).and_then(|caller| caller.to);
        let (rules, planted_clock) = (self.remote.clone(), self.planted_clock);
        let sessions = lock(&self.shared.remote).clone();
        let holders = sessions.iter().filter_map(|session| session.holder.as_ref());
        let in_use: Vec<(String, String)> =
            holders.map(|holder| (holder.interface.clone(), holder.described())).collect();
        let of_all = in_use.iter().map(|(interface, used)| format!("{interface} is {used}"));
        let of_all = of_all.collect::<Vec<_>>().join(", ");
        let (interfaces, host) = tokio::task::spawn_blocking(move || {
            let allows = |name: &str| rules.as_ref().is_none_or(|rules| rules.allowance.has_interface(name));
            let used = |name: &str| {
                in_use.iter().find(|(on, _)| on == name).map(|(_, used)| used.clone()).unwrap_or_default()
            };
            (interfaces::described(allows, used), host_facts(planted_clock.is_some()))
        })
        .await
        .map_err(|_| {
            Status::internal("the interfaces could not be looked at; this is a defect of wiregauge")
        })?;
        let rules = self.remote.as_ref();
        Ok(Response::new(proto::DescribeReply {
            agent_version: env!("CARGO_PKG_VERSION").into(),
            plan_schema: PLAN_SCHEMA,
            record_schema: SEGMENT_SCHEMA,
            host_name: wg_net::host::name(),
            host: host.into_iter().collect(),
            interfaces,
            in_use: of_all,
            reached_at: reached.map(|at| at.ip().to_canonical().to_string()).unwrap_or_default(),
            allowed: rules.map(|rules| rules.allowance.described()).unwrap_or_default(),
            drained: rules.and_then(|rules| rules.drain.described()).unwrap_or_default(),
        }))
    }

    async fn hello(
        &self,
        request: Request<proto::HelloRequest>,
    ) -> Result<Response<proto::HelloReply>, Status> {
        let who = caller(&request).cloned();
        let request = request.into_inner();
        versions::agree(&request).map_err(Status::failed_precondition)?;
        let asked = request.lease_ms;
        if asked > LONGEST_LEASE_MS {
            return Err(Status::invalid_argument(format!(
                "lease_ms is {asked}; it must be at most {LONGEST_LEASE_MS}, or 0 for no lease"
            )));
        }
        let length = (asked > 0).then(|| Duration::from_millis(u64::from(asked)));
        let session = match who {
            Some(_) if length.is_none() => {
                return Err(Status::invalid_argument("over a network lease_ms has to be more than 0"));
            }
            Some(who) => {
                let service = self.clone();
                to_its_end(async move { service.hold(who, request).await }).await?.into_inner()
            }
            None => Arc::clone(&self.shared.own),
        };
        session.lease(length);
        let challenge = session.holder.as_ref().map(|holder| lock(&holder.challenge).challenge().to_vec());
        Ok(Response::new(proto::HelloReply {
            agent_version: env!("CARGO_PKG_VERSION").into(),
            plan_schema: PLAN_SCHEMA,
            record_schema: SEGMENT_SCHEMA,
            host: host_facts(self.planted_clock.is_some()).into_iter().collect(),
            session: challenge.unwrap_or_default(),
        }))
    }

    async fn prepare(
        &self,
        request: Request<proto::PrepareRequest>,
    ) -> Result<Response<proto::PrepareReply>, Status> {
        let session = self.session(&request)?;
        if let (Some(caller), Some(holder)) = (caller(&request), &session.holder) {
            lock(&holder.challenge)
                .take(request.get_ref(), &caller.key)
                .map_err(|error| Status::permission_denied(error.to_string()))?;
        }
        session.alive();
        let mut setup = setup(request.into_inner())?;
        let planned_bps = self.permitted(&session, &setup)?;
        let place = campaigns::place(&session.folder(), setup.run.index, setup.node);
        if self.sessions().iter().any(|other| other.recording().as_ref() == Some(&place)) {
            return Err(Status::failed_precondition("a run is prepared or in progress; call Finish first"));
        }
        let prepared = session.begin(&place, planned_bps)?;
        let made = self.shared.spool.place(&session.folder(), setup.run.index, setup.node);
        setup.spool = made.map_err(|e| {
            session.withdraw();
            Status::failed_precondition(e.to_string())
        })?;
        (setup.planted_hardware, setup.planted_clock) = (self.planted_hardware, self.planted_clock);
        setup.tsn_folder.clone_from(&self.tsn_folder);
        let service = self.clone();
        to_its_end(async move { service.prepare_in(&session, prepared, setup, place).await }).await
    }

    async fn try_stream(
        &self,
        request: Request<proto::TryStreamRequest>,
    ) -> Result<Response<proto::TryStreamReply>, Status> {
        let session = self.session(&request)?;
        session.alive();
        let (run, request) = (session.active()?, request.into_inner());
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
        let session = self.session(&request)?;
        session.alive();
        let interface = request.into_inner().interface;
        of_session(&session, &interface)?;
        let counted =
            wg_net::link_counters(&interface).map_err(|error| Status::not_found(error.to_string()))?;
        let (received, receive_dropped) = (counted.received, counted.receive_dropped);
        Ok(Response::new(proto::ReadInterfaceReply { received, receive_dropped }))
    }

    async fn announce(
        &self,
        request: Request<proto::StartRequest>,
    ) -> Result<Response<proto::StartReply>, Status> {
        let session = self.session(&request)?;
        self.with_prepared(&session, &request.into_inner(), ActiveRun::announce)
    }

    async fn start(
        &self,
        request: Request<proto::StartRequest>,
    ) -> Result<Response<proto::StartReply>, Status> {
        let session = self.session(&request)?;
        let request = request.into_inner();
        let common = Some(request.common_epoch_ns).filter(|ns| *ns != 0).map(WallNanos::new);
        self.with_prepared(&session, &request, |run, epoch| run.start(epoch, common))
    }

    type WatchStream = Streamed<proto::Progress>;

    async fn watch(
        &self,
        request: Request<proto::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let session = self.session(&request)?;
        session.alive();
        let run = session.active()?;
        let proto::WatchRequest { interval_ms, live } = request.into_inner();
        let interval = interval_ms.max(LEAST_INTERVAL_MS);
        let mut known = live.then_some(0);
        let (sender, receiver) = mpsc::channel(4);
        tokio::spawn(async move {
            let mut done = false;
            loop {
                let progress = lock(&run).as_ref().map(|run| run.progress(known));
                let Some(progress) = progress else {
                    if done {
                        return;
                    }
                    let over = Status::aborted("the run was ended while it was watched");
                    drop(sender.send(Err(over)).await);
                    return;
                };
                done |= progress.done;
                if let Some(live) = &progress.live {
                    known = Some(live.number);
                }
                if session.is_ended() {
                    return;
                }
                // A stream nobody reads fills up and, like one that was closed, gives no sign of life.
                if sender.send(Ok(progress)).await.is_err() {
                    return;
                }
                session.alive();
                tokio::time::sleep(Duration::from_millis(u64::from(interval))).await;
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn finish(
        &self,
        request: Request<proto::FinishRequest>,
    ) -> Result<Response<proto::FinishReply>, Status> {
        let session = self.session(&request)?;
        session.alive();
        let abort = request.into_inner().abort;
        to_its_end(async move {
            let report = session.end_run(abort).await?;
            session.alive();
            Ok(proto::FinishReply { report: Some(report) })
        })
        .await
    }

    type CollectStream = Streamed<proto::Chunk>;

    async fn collect(
        &self,
        request: Request<proto::CollectRequest>,
    ) -> Result<Response<Self::CollectStream>, Status> {
        let (records, session) = if request.get_ref().campaign.is_empty() {
            let session = self.session(&request)?;
            session.alive();
            (session.records()?, Some(session))
        } else {
            let asked = request.get_ref();
            let (campaign, run, node) = kept_at(&asked.campaign, asked.run, asked.node)?;
            (self.kept(caller(&request), &campaign, run, node)?, None)
        };
        let (files, have) = (sending::files(&records)?, request.into_inner().have);
        let (sender, receiver) = mpsc::channel(4);
        tokio::spawn(sending::send(files, have, session, sender));
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn release(
        &self,
        request: Request<proto::ReleaseRequest>,
    ) -> Result<Response<proto::ReleaseReply>, Status> {
        let (service, session) = (self.clone(), self.session(&request)?);
        to_its_end(async move {
            service.end(&session).await;
            Ok(proto::ReleaseReply {})
        })
        .await
    }

    async fn list_records(
        &self,
        request: Request<proto::ListRecordsRequest>,
    ) -> Result<Response<proto::ListRecordsReply>, Status> {
        self.records_kept(&request)
    }

    async fn discard_records(
        &self,
        request: Request<proto::DiscardRecordsRequest>,
    ) -> Result<Response<proto::DiscardRecordsReply>, Status> {
        self.discard_kept(&request)
    }

    async fn revoke(
        &self,
        request: Request<proto::RevokeRequest>,
    ) -> Result<Response<proto::RevokeReply>, Status> {
        self.revoke_certificate(request).await
    }

    async fn drain(
        &self,
        request: Request<proto::DrainRequest>,
    ) -> Result<Response<proto::DrainReply>, Status> {
        self.drain_host(&request)
    }

    async fn reach(
        &self,
        request: Request<proto::ReachRequest>,
    ) -> Result<Response<proto::ReachReply>, Status> {
        self.reach_addresses(request).await
    }

    async fn read_clock(
        &self,
        request: Request<proto::ReadClockRequest>,
    ) -> Result<Response<proto::ReadClockReply>, Status> {
        // Whoever only looks does not speak for the testmaster.
        if let Ok(session) = self.session(&request) {
            session.alive();
        }
        let (realtime, monotonic_raw_ns) = clock::read_pair();
        let realtime = self.planted_clock.map_or(realtime, |planted| planted.shown(realtime));
        Ok(Response::new(proto::ReadClockReply { realtime_ns: realtime.get(), monotonic_raw_ns }))
    }

    async fn shutdown(
        &self,
        _: Request<proto::ShutdownRequest>,
    ) -> Result<Response<proto::ShutdownReply>, Status> {
        let service = self.clone();
        to_its_end(async move {
            service.abandon().await;
            service.shared.shutdown.notify_one();
            Ok(proto::ShutdownReply {})
        })
        .await
    }

    async fn examine(
        &self,
        request: Request<proto::ExamineRequest>,
    ) -> Result<Response<proto::ExamineReply>, Status> {
        self.examine_host(request).await
    }

    async fn mend(&self, request: Request<proto::MendRequest>) -> Result<Response<proto::MendReply>, Status> {
        self.mend_host(request).await
    }

    async fn restore(
        &self,
        request: Request<proto::RestoreRequest>,
    ) -> Result<Response<proto::RestoreReply>, Status> {
        self.restore_host(request).await
    }

    async fn start_clock_programs(
        &self,
        request: Request<proto::StartClockProgramsRequest>,
    ) -> Result<Response<proto::StartClockProgramsReply>, Status> {
        self.start_programs(request).await.map(Response::new)
    }

    type WatchClockProgramsStream = Streamed<proto::ClockProgramLine>;

    async fn watch_clock_programs(
        &self,
        request: Request<proto::WatchClockProgramsRequest>,
    ) -> Result<Response<Self::WatchClockProgramsStream>, Status> {
        self.watch_programs(&request).map(Response::new)
    }

    async fn ask_clock_programs(
        &self,
        request: Request<proto::AskClockProgramsRequest>,
    ) -> Result<Response<proto::AskClockProgramsReply>, Status> {
        self.ask_programs(request).await.map(Response::new)
    }

    async fn stop_clock_programs(
        &self,
        request: Request<proto::StopClockProgramsRequest>,
    ) -> Result<Response<proto::StopClockProgramsReply>, Status> {
        let session = self.session(&request)?;
        session.alive();
        session.stop_programs().await;
        Ok(Response::new(proto::StopClockProgramsReply {}))
    }
}

/// Work that goes on to its end although the caller waits no longer.
pub(super) async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<Response<T>, Status> {
    let done = tokio::spawn(work).await;
    done.map_err(|_| Status::internal("the call failed; this is a defect of wiregauge"))?.map(Response::new)
}

/// What work that may block answers, off the control thread.
pub(super) async fn answered<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<Response<T>, Status> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Status::internal("the call failed; this is a defect of wiregauge"))?.map(Response::new)
}

impl AgentService {
    /// Prepares a run that `session` has taken up.
    async fn prepare_in(
        &self,
        session: &Session,
        prepared: Prepared,
        setup: Setup,
        place: PathBuf,
    ) -> Result<proto::PrepareReply, Status> {
        let roles = self.roles;
        let run = tokio::task::spawn_blocking(move || ActiveRun::prepare(&setup, roles)).await;
        let run = match run {
            Ok(Ok(run)) => Ok(run),
            Ok(Err(error)) => Err(refusal(&error)),
            Err(_) => Err(Status::internal("preparing the run failed; this is a defect of wiregauge")),
        };
        let run = run.inspect_err(|_| {
            self.shared.spool.discard(&place);
            session.withdraw();
        })?;
        let reply = proto::PrepareReply {
            grants: run.grants().to_vec(),
            access_points: run.access_points().to_vec(),
            streams: run.streams(),
        };
        let Some(left) = session.prepared(&prepared, run) else { return Ok(reply) };
        let _ = tokio::task::spawn_blocking(move || drop(left)).await;
        self.shared.spool.discard(&place);
        Err(Status::failed_precondition("the session ended while the run was prepared"))
    }

    fn with_prepared(
        &self,
        session: &Session,
        request: &proto::StartRequest,
        act: impl FnOnce(&mut ActiveRun, WallNanos) -> Result<(), StartError>,
    ) -> Result<Response<proto::StartReply>, Status> {
        session.alive();
        let run = session.active()?;
        let mut run = lock(&run);
        let Some(run) = run.as_mut() else {
            return Err(Status::failed_precondition("the run is not prepared yet"));
        };
        let epoch = WallNanos::new(request.epoch_realtime_ns);
        let epoch = self.planted_clock.map_or(epoch, |planted| planted.instant(epoch));
        act(run, epoch).map_err(|error| not_started(&error))?;
        Ok(Response::new(proto::StartReply {}))
    }
}
