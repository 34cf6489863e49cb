//! The control plane: the service, its state, and the dispatch of calls.
//!
//! Calls about runs are in `run_calls`, those about the host in `host_calls`, those about its clock in `clock_calls`.
//! Calls of a session are serialised by one lock around its state, except that watching a run and reading clocks only
//! look. Nothing a caller sends can end the program but `Shutdown`.

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
    /// Session of this user's programs, over a Unix socket.
    pub(super) own: Arc<Session>,
    /// Sessions of callers over a network, one for each interface in use.
    pub(super) remote: Mutex<Vec<Arc<Session>>>,
    /// Serialises calls of Reach.
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
    /// Rules of an agent that serves a network; `None`: Unix socket, where only this user calls.
    pub(super) remote: Option<Arc<Rules>>,
    /// Changes host settings, if callers may request it.
    pub(super) mending: Option<Arc<Mending>>,
    /// Folder for the former values of settings that TSN changes, if allowed.
    pub(super) tsn_folder: Option<PathBuf>,
}

/// Rules for callers from a network.
pub(super) struct Rules {
    pub(super) allowance: Allowance,
    pub(super) drain: Drain,
    pub(super) revoked: Arc<Revoked>,
}

impl AgentService {
    /// An idle agent that can play `roles` and writes to `spool`. `planted_hardware` replaces the clock of its
    /// interface, as a test facility.
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

    /// Sets a planted, wrong clock of the host, as a test facility.
    #[must_use]
    pub fn with_clock(self, planted_clock: Option<PlantedHostClock>) -> Self {
        Self { planted_clock, ..self }
    }

    /// Restricts it to callers from a network, who are identified by the [`Caller`] of each call: plans must be signed
    /// and within the allowance, and an interface in use is exclusive.
    #[must_use]
    pub fn bounded(self, allowance: Allowance, drain: Drain, revoked: Arc<Revoked>) -> Self {
        Self { remote: Some(Arc::new(Rules { allowance, drain, revoked })), ..self }
    }

    /// Lets callers change settings of the host for measuring, which are restored in the end.
    #[must_use]
    pub fn with_mending(self, mending: Arc<Mending>) -> Self {
        Self { mending: Some(mending), ..self }
    }

    /// Lets it make TSN settings of its interface, with former values in `folder`.
    #[must_use]
    pub fn with_tsn(self, folder: Option<PathBuf>) -> Self {
        Self { tsn_folder: folder, ..self }
    }

    /// Returns when the testmaster requests a shutdown.
    pub async fn shutdown_requested(&self) {
        self.shared.shutdown.notified().await;
    }

    /// Ends the runs of testmasters whose lease is over; never returns.
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

    /// Ends all runs, and keeps their records.
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

    /// Ends a session and its run, and keeps its records.
    pub(super) async fn end(&self, session: &Arc<Session>) {
        session.abandon().await;
        lock(&self.shared.remote).retain(|one| !Arc::ptr_eq(one, session));
        if let (Some(mending), Some(_)) = (self.mending.clone(), &session.holder) {
            let live = self.sessions().iter().filter_map(|one| one.challenge()).collect::<Vec<_>>();
            // Spawned, so that it is done even if the caller stops waiting.
            let _ = tokio::task::spawn_blocking(move || mending.end_sessions(&live)).await;
        }
        if let Some(campaign) = session.campaign.clone() {
            let service = self.clone();
            // A successor waits for it, but not for a disk that does not answer.
            let _ = sending::in_time(answered(move || {
                service.tidy(&campaign);
                Ok(())
            }))
            .await;
        }
    }

    /// Removes the folder of a campaign without records and sessions.
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
        // A mere observer does not renew the testmaster's lease.
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
