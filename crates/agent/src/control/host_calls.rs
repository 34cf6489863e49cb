//! Calls that concern the host rather than a run: records that it keeps, who may use it, who answers, how it is set.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use tonic::{Request, Response, Status};

use super::admission::{asker, caller, kept_at, may_have, named, of_session};
use super::campaigns;
use super::service::{AgentService, answered, to_its_end};
use crate::proto;
use crate::remote::{interfaces, reach};
use crate::tools::examination;

/// Bytes of the reason for draining a host, at most.
const LONGEST_REASON: usize = 200;

impl AgentService {
    /// Which records lie on this host.
    pub(super) fn records_kept(
        &self,
        request: &Request<proto::ListRecordsRequest>,
    ) -> Result<Response<proto::ListRecordsReply>, Status> {
        let asked = &request.get_ref().campaign;
        let only = if asked.is_empty() { None } else { Some(named(asked)?) };
        let caller = caller(request);
        let recording: Vec<PathBuf> = self.sessions().iter().filter_map(|one| one.recording()).collect();
        let listed = campaigns::kept(only.as_ref()).into_iter().filter(|one| may_have(caller, &one.owner));
        let kept = listed.map(|one| proto::KeptRecords {
            active: named(&one.campaign)
                .is_ok_and(|campaign| recording.contains(&campaign.records(one.run, one.node))),
            campaign: one.campaign,
            run: one.run,
            node: u32::from(one.node),
            owner: one.owner,
            bytes: one.bytes,
            modified_realtime_ns: one.modified_ns,
        });
        Ok(Response::new(proto::ListRecordsReply { kept: kept.collect() }))
    }

    /// Removes records that were fetched.
    pub(super) fn discard_kept(
        &self,
        request: &Request<proto::DiscardRecordsRequest>,
    ) -> Result<Response<proto::DiscardRecordsReply>, Status> {
        let asked = request.get_ref();
        let (campaign, run, node) = kept_at(&asked.campaign, asked.run, asked.node)?;
        self.kept(caller(request), &campaign, run, node)?;
        campaign
            .discard(run, node)
            .map_err(|error| Status::internal(format!("the records cannot be removed: {error}")))?;
        self.tidy(&campaign);
        Ok(Response::new(proto::DiscardRecordsReply {}))
    }

    /// Lets a certificate in no more, and ends its sessions.
    pub(super) async fn revoke_certificate(
        &self,
        request: Request<proto::RevokeRequest>,
    ) -> Result<Response<proto::RevokeReply>, Status> {
        let Some(rules) = &self.remote else {
            return Err(Status::failed_precondition("over a Unix socket there are no certificates"));
        };
        let proto::RevokeRequest { name, fingerprint } = request.into_inner();
        let fingerprint: [u8; 32] = fingerprint.as_slice().try_into().map_err(|_| {
            Status::invalid_argument(format!("a fingerprint has 32 bytes, not {}", fingerprint.len()))
        })?;
        let done = rules.revoked.add(&fingerprint, &name);
        done.map_err(|error| Status::internal(format!("this cannot be kept: {error}")))?;
        let service = self.clone();
        to_its_end(async move {
            for session in service.sessions() {
                if session.holder.as_ref().is_some_and(|holder| holder.caller.fingerprint == fingerprint) {
                    service.end(&session).await;
                }
            }
            Ok(proto::RevokeReply {})
        })
        .await
    }

    /// Keeps further tests out, or lets them in again.
    pub(super) fn drain_host(
        &self,
        request: &Request<proto::DrainRequest>,
    ) -> Result<Response<proto::DrainReply>, Status> {
        let (Some(who), Some(rules)) = (caller(request).cloned(), &self.remote) else {
            return Err(Status::failed_precondition("over a Unix socket there are no others to keep out"));
        };
        let asked = request.get_ref();
        if asked.reason.len() > LONGEST_REASON {
            return Err(Status::invalid_argument(format!(
                "the reason has {} bytes; at most {LONGEST_REASON}",
                asked.reason.len()
            )));
        }
        let done =
            if asked.drained { rules.drain.begin(&who.name, &asked.reason) } else { rules.drain.end() };
        done.map_err(|error| Status::internal(format!("this cannot be kept: {error}")))?;
        Ok(Response::new(proto::DrainReply {}))
    }

    /// Who answers at addresses, by ARP.
    pub(super) async fn reach_addresses(
        &self,
        request: Request<proto::ReachRequest>,
    ) -> Result<Response<proto::ReachReply>, Status> {
        let session = self.session(&request)?;
        session.alive();
        let asked = request.into_inner();
        of_session(&session, &asked.interface)?;
        let addresses = self.askable(&asked)?;
        // One at a time, so that asking stays within what the host may send.
        let _turn = self.shared.reaching.lock().await;
        let answers = tokio::task::spawn_blocking(move || {
            let own = interfaces::address_of(&asked.interface).unwrap_or(Ipv4Addr::UNSPECIFIED);
            let wait = Duration::from_millis(u64::from(asked.wait_ms.clamp(10, 2_000)));
            let bytes = usize::try_from(asked.bytes).unwrap_or(usize::MAX).clamp(46, 9_000);
            reach::ask(&asked.interface, own, &addresses, bytes, wait)
        })
        .await
        .map_err(|_| Status::internal("asking who answers failed; this is a defect of wiregauge"))?
        .map_err(|error| Status::failed_precondition(error.to_string()))?;
        let answered =
            |macs: Vec<[u8; 6]>| proto::Answered { macs: macs.iter().map(|mac| mac.to_vec()).collect() };
        Ok(Response::new(proto::ReachReply { answers: answers.into_iter().map(answered).collect() }))
    }

    /// What of the host stands in the way of measuring.
    pub(super) async fn examine_host(
        &self,
        request: Request<proto::ExamineRequest>,
    ) -> Result<Response<proto::ExamineReply>, Status> {
        let (rules, request) = (self.remote.clone(), request.into_inner());
        let disturbs = self.sessions().iter().any(|session| session.recording().is_some());
        answered(move || {
            examination::answer(&request, rules.as_ref().map(|rules| &rules.allowance), disturbs)
        })
        .await
    }

    /// Sets the host for measuring.
    pub(super) async fn mend_host(
        &self,
        request: Request<proto::MendRequest>,
    ) -> Result<Response<proto::MendReply>, Status> {
        let (mending, session) = self.may_change(&request)?;
        if let Some(session) = &session {
            of_session(session, &request.get_ref().interface)?;
        }
        let who = asker(&request);
        let (rules, request) = (self.remote.clone(), request.into_inner());
        answered(move || {
            let allowance = rules.as_ref().map(|rules| &rules.allowance);
            let of = session.as_ref().and_then(|session| session.challenge());
            let made = mending.answer(&request, of.as_deref(), &who, allowance);
            if let Some(session) = session {
                session.alive();
            }
            made
        })
        .await
    }

    /// Sets the host again as it was.
    pub(super) async fn restore_host(
        &self,
        request: Request<proto::RestoreRequest>,
    ) -> Result<Response<proto::RestoreReply>, Status> {
        let (mending, _) = self.may_change(&request)?;
        let who = asker(&request);
        answered(move || mending.answer_restore(&who)).await
    }
}
