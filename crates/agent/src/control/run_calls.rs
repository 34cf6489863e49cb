//! Calls about runs: beginning a session, preparing, starting, watching and ending a run, fetching its records.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use wg_frame::time::WallNanos;
use wg_plan::PLAN_SCHEMA;
use wg_record::segment::SEGMENT_SCHEMA;

use super::admission::{caller, kept_at};
use super::calls::{answered, to_its_end};
use super::campaigns;
use super::host_calls::host_facts;
use super::request::setup;
use super::role::{Fault, OpenError, Setup};
use super::run::{ActiveRun, StartError};
use super::service::{AgentService, Streamed};
use super::session::{Prepared, Session};
use super::{lock, sending, versions};
use crate::proto;

/// Least interval between two messages of a watch, ms.
const LEAST_INTERVAL_MS: u32 = 10;
/// Greatest lease that a testmaster may request, ms.
const LONGEST_LEASE_MS: u32 = 3_600_000;

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

impl AgentService {
    /// Begins a session, or restarts it.
    pub(super) async fn greet(
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

    /// Prepares a run in a session.
    pub(super) async fn prepare_run(
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
        (setup.planted_hardware, setup.planted_clock) = (self.planted_hardware, self.planted_clock);
        setup.tsn_folder.clone_from(&self.tsn_folder);
        let service = self.clone();
        to_its_end(async move { service.prepare_in(&session, prepared, setup, place).await }).await
    }

    /// Sends a few trial frames of a stream.
    pub(super) async fn try_out(
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

    /// Notes a common start time, without starting.
    pub(super) fn announce_start(
        &self,
        request: Request<proto::StartRequest>,
    ) -> Result<Response<proto::StartReply>, Status> {
        let session = self.session(&request)?;
        self.with_prepared(&session, &request.into_inner(), ActiveRun::announce)
    }

    /// Starts the run at the announced instant.
    pub(super) fn start_run(
        &self,
        request: Request<proto::StartRequest>,
    ) -> Result<Response<proto::StartReply>, Status> {
        let session = self.session(&request)?;
        let request = request.into_inner();
        let common = Some(request.common_epoch_ns).filter(|ns| *ns != 0).map(WallNanos::new);
        self.with_prepared(&session, &request, |run, epoch| run.start(epoch, common))
    }

    /// Streams the progress of the run until it is over.
    pub(super) fn watch_run(
        &self,
        request: Request<proto::WatchRequest>,
    ) -> Result<Response<Streamed<proto::Progress>>, Status> {
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
                // A stream that is not read, or was closed, gives no sign of life.
                if sender.send(Ok(progress)).await.is_err() {
                    return;
                }
                session.alive();
                tokio::time::sleep(Duration::from_millis(u64::from(interval))).await;
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    /// Makes captures keep their frames around an alarm.
    pub(super) fn keep_frames(
        &self,
        request: Request<proto::KeepRequest>,
    ) -> Result<Response<proto::KeepReply>, Status> {
        let session = self.session(&request)?;
        session.alive();
        let proto::KeepRequest { from_realtime_ns: from, to_realtime_ns: to } = request.into_inner();
        if from > to {
            return Err(Status::invalid_argument(format!("from_realtime_ns is {from}, after {to}, the end")));
        }
        let own = |at| {
            let at = WallNanos::new(at);
            self.planted_clock.map_or(at, |planted| planted.instant(at))
        };
        let run = session.active()?;
        let run = lock(&run);
        let run = run
            .as_ref()
            .ok_or_else(|| Status::failed_precondition("the run is over, or not prepared yet"))?;
        run.keep(own(from), own(to));
        Ok(Response::new(proto::KeepReply {}))
    }

    /// Ends the run and reports.
    pub(super) async fn finish_run(
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

    /// Sends the files of a run that is over, or of stored records.
    pub(super) async fn collect_records(
        &self,
        request: Request<proto::CollectRequest>,
    ) -> Result<Response<Streamed<proto::Chunk>>, Status> {
        let (records, session) = if request.get_ref().campaign.is_empty() {
            let session = self.session(&request)?;
            session.alive();
            (session.records()?, Some(session))
        } else {
            let asked = request.get_ref();
            let (campaign, run, node) = kept_at(&asked.campaign, asked.run, asked.node)?;
            let (caller, service) = (caller(&request).cloned(), self.clone());
            let found = answered(move || service.kept(caller.as_ref(), &campaign, run, node));
            (sending::in_time(found).await?.into_inner(), None)
        };
        let have = request.into_inner().have;
        // Only the sending task waits for the disk: the caller learns of one that does not answer.
        let (sender, receiver) = mpsc::channel(4);
        tokio::spawn(sending::send(records, have, session, sender));
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    /// Ends a session.
    pub(super) async fn release_session(
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

    /// Prepares a run in `session`.
    async fn prepare_in(
        &self,
        session: &Session,
        prepared: Prepared,
        mut setup: Setup,
        place: PathBuf,
    ) -> Result<proto::PrepareReply, Status> {
        let (service, folder) = (self.clone(), session.folder());
        let (index, node) = (setup.run.index, setup.node);
        let made = sending::in_time(answered(move || {
            let made = service.shared.spool.place(&folder, index, node);
            made.map_err(|error| Status::failed_precondition(error.to_string()))
        }));
        setup.spool = made.await.inspect_err(|_| session.withdraw())?.into_inner();
        let roles = self.roles;
        let run = tokio::task::spawn_blocking(move || ActiveRun::prepare(&setup, roles)).await;
        let run = match run {
            Ok(Ok(run)) => Ok(run),
            Ok(Err(error)) => Err(refusal(&error)),
            Err(_) => Err(Status::internal("preparing the run failed; this is a defect of wiregauge")),
        };
        let run = match run {
            Ok(run) => run,
            Err(refused) => {
                self.discard(place).await;
                session.withdraw();
                return Err(refused);
            }
        };
        let reply = proto::PrepareReply {
            grants: run.grants().to_vec(),
            access_points: run.access_points().to_vec(),
            streams: run.streams(),
        };
        let Some(left) = session.prepared(&prepared, run) else { return Ok(reply) };
        let _ = tokio::task::spawn_blocking(move || drop(left)).await;
        self.discard(place).await;
        Err(Status::failed_precondition("the session ended while the run was prepared"))
    }

    /// Removes the folder of a run that does not begin.
    async fn discard(&self, place: PathBuf) {
        let service = self.clone();
        let _ = sending::in_time(answered(move || {
            service.shared.spool.discard(&place);
            Ok(())
        }))
        .await;
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
