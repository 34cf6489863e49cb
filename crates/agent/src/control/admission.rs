//! Admission of calls: caller, interface and records.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use tonic::{Request, Status};

use super::calls::answered;
use super::campaigns::Campaign;
use super::role::Setup;
use super::service::AgentService;
use super::session::{Holder, Session};
use super::{lock, sending};
use crate::proto;
use crate::remote::callers::{Caller, Right};
use crate::tools::mending::Mending;

/// Greatest number of addresses in one call of Reach.
const MOST_ADDRESSES: usize = 256;
/// Metadata key of every call after Hello to an agent that serves a network: the session.
const SESSION: &str = "session-bin";

/// The caller, if the agent serves a network.
pub(super) fn caller<T>(request: &Request<T>) -> Option<&Caller> {
    request.extensions().get()
}

pub(super) fn named(campaign: &str) -> Result<Campaign, Status> {
    Campaign::named(campaign).map_err(Status::invalid_argument)
}

/// Campaign, run and node of the requested records.
pub(super) fn kept_at(campaign: &str, run: u32, node: u32) -> Result<(Campaign, u32, u16), Status> {
    let node = u16::try_from(node)
        .map_err(|_| Status::invalid_argument(format!("there is no node {node}; nodes go up to 65535")))?;
    Ok((named(campaign)?, run, node))
}

/// Whether this caller may have the records of `owner`.
pub(super) fn may_have(caller: Option<&Caller>, owner: &str) -> bool {
    caller.is_none_or(|caller| caller.name == owner || caller.right >= Right::Administrator)
}

/// Checks that the interface belongs to the session.
pub(super) fn of_session(session: &Session, interface: &str) -> Result<(), Status> {
    match &session.holder {
        Some(holder) if !session.is_on(interface) => Err(Status::permission_denied(format!(
            "this session is for {}, not for {interface}",
            holder.interfaces.join(", ")
        ))),
        _ => Ok(()),
    }
}

/// Checks that this host has the interface; the error names those that it has.
fn existing(interface: &str) -> Result<(), String> {
    let found = wg_net::interfaces().unwrap_or_default();
    if found.iter().any(|one| one.name == interface) {
        return Ok(());
    }
    let others: Vec<&str> = found.iter().map(|one| one.name.as_str()).filter(|name| *name != "lo").collect();
    Err(format!("this host has no interface {interface}; it has {}", others.join(", ")))
}

impl AgentService {
    /// Begins a session for `who` on the requested interfaces, unless one is in use. A session of the same campaign is
    /// taken over: its testmaster has restarted.
    pub(super) async fn hold(&self, who: Caller, asked: proto::HelloRequest) -> Result<Arc<Session>, Status> {
        let campaign = named(&asked.campaign)?;
        let interfaces: Vec<String> = std::iter::once(asked.interface).chain(asked.more_interfaces).collect();
        if let Some(rules) = &self.remote {
            if let Some(drained) = rules.drain.described() {
                return Err(Status::failed_precondition(format!("this host is {drained}")));
            }
            for interface in &interfaces {
                if !rules.allowance.has_interface(interface) {
                    return Err(Status::permission_denied(rules.allowance.refusal(interface)));
                }
                // An interface named by the host's owner may be plugged in later.
                if !rules.allowance.names_interfaces()
                    && let Err(refusal) = existing(interface)
                {
                    return Err(Status::failed_precondition(refusal));
                }
            }
        }
        for (before, interface) in self.users_of(&interfaces) {
            let same = before.campaign.as_ref() == Some(&campaign)
                && before.holder.as_ref().is_some_and(|holder| holder.caller.fingerprint == who.fingerprint);
            if !same {
                return Err(in_use(&before, interface));
            }
            self.end(&before).await;
        }
        let (claimed, name) = (campaign.clone(), who.name.clone());
        let claim = answered(move || {
            claimed.claim(&name).map_err(|error| {
                Status::failed_precondition(format!("nothing can be recorded here: {error}"))
            })
        });
        sending::in_time(claim).await?;
        let session = Arc::new(Session::new(Some(Holder::new(who, interfaces.clone())?), Some(campaign)));
        // Another session may have begun meanwhile.
        let mut remote = lock(&self.shared.remote);
        for interface in &interfaces {
            if let Some(other) = remote.iter().find(|one| one.is_on(interface)) {
                return Err(in_use(other, interface));
            }
        }
        remote.push(Arc::clone(&session));
        drop(remote);
        Ok(session)
    }

    /// Sessions on any of these interfaces, each once, with one of its interfaces.
    fn users_of<'a>(&self, interfaces: &'a [String]) -> Vec<(Arc<Session>, &'a str)> {
        let remote = lock(&self.shared.remote);
        let on = |one: &Arc<Session>| interfaces.iter().find(|interface| one.is_on(interface));
        remote.iter().filter_map(|one| Some((Arc::clone(one), on(one)?.as_str()))).collect()
    }

    /// The session to which a call belongs.
    pub(super) fn session<T>(&self, request: &Request<T>) -> Result<Arc<Session>, Status> {
        let Some(caller) = caller(request) else { return Ok(Arc::clone(&self.shared.own)) };
        let named = request.metadata().get_bin(SESSION).and_then(|value| value.to_bytes().ok());
        let remote = lock(&self.shared.remote);
        let found = remote.iter().find(|session| {
            let holder = session.holder.as_ref();
            holder.is_some_and(|holder| named.as_deref() == Some(lock(&holder.challenge).challenge()))
        });
        let Some(session) = found else {
            return Err(Status::failed_precondition(
                "there is no such session, or its lease is over; call Hello first",
            ));
        };
        match &session.holder {
            Some(holder) if holder.caller.fingerprint == caller.fingerprint => Ok(Arc::clone(session)),
            _ => Err(Status::permission_denied("this session is somebody else's")),
        }
    }

    /// Caller and session of a change of settings: not permitted during a run, or while others use the agent.
    pub(super) fn may_change<T>(
        &self,
        request: &Request<T>,
    ) -> Result<(Arc<Mending>, Option<Arc<Session>>), Status> {
        let Some(mending) = self.mending.clone() else {
            return Err(Status::failed_precondition(
                "this agent changes no settings of its host; `wiregauge doctor --fix` there does",
            ));
        };
        let all = self.sessions();
        // A named session must exist; without a name the call belongs to none.
        let own = match request.metadata().get_bin(SESSION) {
            Some(_) => Some(self.session(request)?),
            None => None,
        };
        if let Some(own) = &own {
            own.alive();
        }
        let others = all.iter().filter(|one| own.as_ref().is_none_or(|own| !Arc::ptr_eq(own, one)));
        if let Some(holder) = others.filter_map(|one| one.holder.as_ref()).next() {
            return Err(Status::failed_precondition(format!(
                "{} of this host is {}; try again when that test is over",
                holder.interfaces.join(", "),
                holder.described()
            )));
        }
        if all.iter().any(|one| one.recording().is_some()) {
            return Err(Status::failed_precondition("a run is prepared or in progress; call Finish first"));
        }
        Ok((mending, own))
    }

    /// Greatest rate that a run of this session may send, bit/s, if the host's allowance covers it beside other
    /// sessions.
    pub(super) fn permitted(&self, session: &Arc<Session>, setup: &Setup) -> Result<u64, Status> {
        let interfaces: Vec<&str> = setup.interfaces().collect();
        for interface in &interfaces {
            of_session(session, interface)?;
        }
        let Some(rules) = &self.remote else { return Ok(0) };
        let others = self.sessions();
        let others_bps =
            others.iter().filter(|one| !Arc::ptr_eq(one, session)).map(|one| one.planned_bps()).sum();
        rules
            .allowance
            .check(&setup.network, &setup.run, &setup.played(), &interfaces, others_bps)
            .map_err(Status::permission_denied)
    }

    /// Folder of a campaign's records, if the caller may have them and no run writes to them.
    pub(super) fn kept(
        &self,
        caller: Option<&Caller>,
        campaign: &Campaign,
        run: u32,
        node: u16,
    ) -> Result<PathBuf, Status> {
        let owner = campaign.owner();
        let owner = owner.map_err(|_| Status::not_found("no records are kept of this campaign"))?;
        if !may_have(caller, &owner) {
            return Err(Status::permission_denied(format!("these records are {owner}'s")));
        }
        let records = campaign.records(run, node);
        if self.sessions().iter().any(|one| one.recording().as_ref() == Some(&records)) {
            return Err(Status::failed_precondition("they are being recorded; call Finish first"));
        }
        if !records.is_dir() {
            return Err(Status::not_found("no records are kept of this run and node"));
        }
        Ok(records)
    }

    /// The addresses of a request, if all are allowed.
    pub(super) fn askable(&self, asked: &proto::ReachRequest) -> Result<Vec<Ipv4Addr>, Status> {
        if asked.addresses.len() > MOST_ADDRESSES {
            return Err(Status::invalid_argument(format!(
                "{} addresses; at most {MOST_ADDRESSES} at a time",
                asked.addresses.len()
            )));
        }
        let mut addresses = Vec::new();
        for text in &asked.addresses {
            let address = text.parse().map_err(|_| {
                Status::invalid_argument(format!("\"{}\" is no IPv4 address", text.escape_debug()))
            })?;
            if let Some(rules) = &self.remote {
                rules.allowance.check_address("Reach", address).map_err(Status::permission_denied)?;
            }
            addresses.push(address);
        }
        Ok(addresses)
    }
}

/// Description of the caller.
pub(super) fn asker<T>(request: &Request<T>) -> String {
    caller(request).map_or_else(|| "this user".into(), ToString::to_string)
}

fn in_use(session: &Session, interface: &str) -> Status {
    let used = session.holder.as_ref().map(Holder::described).unwrap_or_default();
    Status::failed_precondition(format!(
        "{interface} of this host is {used}; try again when that test is over"
    ))
}
