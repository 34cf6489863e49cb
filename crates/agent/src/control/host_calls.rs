//! Calls about the host rather than a run: stored records, certificates, reachability, settings.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use tonic::{Request, Response, Status};
use wg_plan::PLAN_SCHEMA;
use wg_record::segment::SEGMENT_SCHEMA;

use super::admission::{asker, caller, kept_at, may_have, named, of_session};
use super::calls::{answered, to_its_end};
use super::service::AgentService;
use super::{campaigns, lock};
use crate::proto;
use crate::remote::{interfaces, reach};
use crate::tools::examination;

/// Greatest length of the reason for draining a host, bytes.
const LONGEST_REASON: usize = 200;

/// Facts of the host; a planted clock is never reported as shared with others.
pub(super) fn host_facts(planted: bool) -> std::collections::BTreeMap<String, String> {
    let mut facts = crate::tools::doctor::host_facts();
    if planted {
        facts.insert("boot-id".into(), "planted clock".into());
    }
    facts
}

impl AgentService {
    /// Describes the host and its interfaces.
    pub(super) async fn describe_host(
        &self,
        request: Request<proto::DescribeRequest>,
    ) -> Result<Response<proto::DescribeReply>, Status> {
        let reached = caller(&request).and_then(|caller| caller.to);
        let (rules, planted_clock) = (self.remote.clone(), self.planted_clock);
        let sessions = lock(&self.shared.remote).clone();
        let holders = sessions.iter().filter_map(|session| session.holder.as_ref());
        let in_use: Vec<(String, String)> = holders
            .flat_map(|holder| holder.interfaces.iter().map(|one| (one.clone(), holder.described())))
            .collect();
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

    /// Counters of an interface under test.
    pub(super) async fn interface_counters(
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

    /// Lists the records stored on this host.
    pub(super) async fn records_kept(
        &self,
        request: Request<proto::ListRecordsRequest>,
    ) -> Result<Response<proto::ListRecordsReply>, Status> {
        let asked = &request.get_ref().campaign;
        let only = if asked.is_empty() { None } else { Some(named(asked)?) };
        let caller = caller(&request).cloned();
        let service = self.clone();
        answered(move || {
            let listed = campaigns::kept(only.as_ref());
            let recording: Vec<PathBuf> =
                service.sessions().iter().filter_map(|one| one.recording()).collect();
            let kept = listed.into_iter().filter(|one| may_have(caller.as_ref(), &one.owner));
            let kept = kept.map(|one| proto::KeptRecords {
                active: named(&one.campaign)
                    .is_ok_and(|campaign| recording.contains(&campaign.records(one.run, one.node))),
                campaign: one.campaign,
                run: one.run,
                node: u32::from(one.node),
                owner: one.owner,
                bytes: one.bytes,
                modified_realtime_ns: one.modified_ns,
            });
            Ok(proto::ListRecordsReply { kept: kept.collect() })
        })
        .await
    }

    /// Removes records that were fetched.
    pub(super) async fn discard_kept(
        &self,
        request: Request<proto::DiscardRecordsRequest>,
    ) -> Result<Response<proto::DiscardRecordsReply>, Status> {
        let asked = request.get_ref();
        let (campaign, run, node) = kept_at(&asked.campaign, asked.run, asked.node)?;
        let (caller, service) = (caller(&request).cloned(), self.clone());
        answered(move || {
            service.kept(caller.as_ref(), &campaign, run, node)?;
            campaign
                .discard(run, node)
                .map_err(|error| Status::internal(format!("the records cannot be removed: {error}")))?;
            service.tidy(&campaign);
            Ok(proto::DiscardRecordsReply {})
        })
        .await
    }

    /// Revokes a certificate, and ends its sessions.
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

    /// Refuses further tests, or admits them again.
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

    /// Finds by ARP which addresses answer.
    pub(super) async fn reach_addresses(
        &self,
        request: Request<proto::ReachRequest>,
    ) -> Result<Response<proto::ReachReply>, Status> {
        let session = self.session(&request)?;
        session.alive();
        let asked = request.into_inner();
        of_session(&session, &asked.interface)?;
        let addresses = self.askable(&asked)?;
        // One request at a time, so that ARP stays within the host's allowance.
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

    /// Examines the host for obstacles to measuring.
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

    /// Changes settings of the host for measuring.
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

    /// Restores the settings of the host.
    pub(super) async fn restore_host(
        &self,
        request: Request<proto::RestoreRequest>,
    ) -> Result<Response<proto::RestoreReply>, Status> {
        let (mending, _) = self.may_change(&request)?;
        let who = asker(&request);
        answered(move || mending.answer_restore(&who)).await
    }
}
