//! The control plane: the service, what it is made of, and which call is answered where.
//!
//! Calls about runs are in `run_calls`, those about the host in `host_calls`, those about its clock in `clock_calls`. Calls of
//! a session are serialised by one lock around its state, except that watching a run and reading clocks only look. Nothing a
//! caller sends can end the program but `Shutdown`.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};
use wg_net::clock;

use super::calls::{answered, to_its_end};
use super::campaigns::Campaign;
use super::role::Role;
use super::session::Session;
use super::{lock, sending};
use crate::control::spool::Spool;
use crate::proto::{self, agent_server::Agent};
use crate::recording::planted_clock::PlantedHostClock;
use crate::remote::allowance::Allowance;
use crate::remote::drain::Drain;
use crate::remote::revoked::Revoked;
use crate::timestamps::planted::PlantedHardware;
use crate::tools::mending::Mending;

pub(super) struct Shared {
    pub(super) spool: Spool,
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
    pub(super) planted_hardware: Option<PlantedHardware>,
    pub(super) planted_clock: Option<PlantedHostClock>,
    pub(super) roles: &'static [&'static dyn Role],
    /// Of an agent that serves a network. Over a Unix socket only this user calls.
    pub(super) remote: Option<Arc<Rules>>,
    /// Sets the host for measuring where callers may ask for it.
    pub(super) mending: Option<Arc<Mending>>,
    /// Where it is kept what TSN settings change, where they are allowed.
    pub(super) tsn_folder: Option<PathBuf>,
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
        if let Some(campaign) = session.campaign.clone() {
            let service = self.clone();
            // Whoever takes its place waits for it, but not for a disk that does not answer.
            let _ = sending::in_time(answered(move || {
                service.tidy(&campaign);
                Ok(())
            }))
            .await;
        }
    }

    /// A campaign of which nothing is kept and that nobody is at leaves nothing.
    pub(super) fn tidy(&self, campaign: &Campaign) {
        if !self.sessions().iter().any(|session| session.campaign.as_ref() == Some(campaign)) {
            campaign.tidy();
        }
    }
}

pub(super) type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Agent for AgentService {
    async fn describe(
        &self,
        request: Request<proto::DescribeRequest>,
    ) -> Result<Response<proto::DescribeReply>, Status> {
        self.describe_host(request).await
    }

    async fn hello(
        &self,
        request: Request<proto::HelloRequest>,
    ) -> Result<Response<proto::HelloReply>, Status> {
        self.greet(request).await
    }

    async fn prepare(
        &self,
        request: Request<proto::PrepareRequest>,
    ) -> Result<Response<proto::PrepareReply>, Status> {
        self.prepare_run(request).await
    }

    async fn try_stream(
        &self,
        request: Request<proto::TryStreamRequest>,
    ) -> Result<Response<proto::TryStreamReply>, Status> {
        self.try_out(request).await
    }

    async fn read_interface(
        &self,
        request: Request<proto::ReadInterfaceRequest>,
    ) -> Result<Response<proto::ReadInterfaceReply>, Status> {
        self.interface_counters(request).await
    }

    async fn announce(
        &self,
        request: Request<proto::StartRequest>,
    ) -> Result<Response<proto::StartReply>, Status> {
        self.announce_start(request)
    }

    async fn start(
        &self,
        request: Request<proto::StartRequest>,
    ) -> Result<Response<proto::StartReply>, Status> {
        self.start_run(request)
    }

    type WatchStream = Streamed<proto::Progress>;

    async fn watch(
        &self,
        request: Request<proto::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        self.watch_run(request)
    }

    async fn finish(
        &self,
        request: Request<proto::FinishRequest>,
    ) -> Result<Response<proto::FinishReply>, Status> {
        self.finish_run(request).await
    }

    async fn keep(&self, request: Request<proto::KeepRequest>) -> Result<Response<proto::KeepReply>, Status> {
        self.keep_frames(request)
    }

    type CollectStream = Streamed<proto::Chunk>;

    async fn collect(
        &self,
        request: Request<proto::CollectRequest>,
    ) -> Result<Response<Self::CollectStream>, Status> {
        self.collect_records(request).await
    }

    async fn release(
        &self,
        request: Request<proto::ReleaseRequest>,
    ) -> Result<Response<proto::ReleaseReply>, Status> {
        self.release_session(request).await
    }

    async fn list_records(
        &self,
        request: Request<proto::ListRecordsRequest>,
    ) -> Result<Response<proto::ListRecordsReply>, Status> {
        self.records_kept(request).await
    }

    async fn discard_records(
        &self,
        request: Request<proto::DiscardRecordsRequest>,
    ) -> Result<Response<proto::DiscardRecordsReply>, Status> {
        self.discard_kept(request).await
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
