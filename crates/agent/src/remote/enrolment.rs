//! Service of an agent that is not a member of a lab yet.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;
use tonic::{Request, Response, Status};

use super::audit::{Audit, Entry};
use super::identity::{Identity, MembershipError};
use super::join_code::{GUESS_TAKES, Invitation, Refused};
use super::posted_code::PostedCode;
use crate::console;
use crate::proto::{self, enrolment_server::Enrolment};

/// Enrolment by join code.
#[derive(Clone, Debug)]
pub struct EnrolmentService {
    identity: Arc<Identity>,
    invitation: Arc<Mutex<Invitation>>,
    audit: Arc<Audit>,
    host: String,
    posted: Option<Arc<PostedCode>>,
    joined: Arc<Notify>,
}

impl EnrolmentService {
    /// Service with the printed code.
    pub fn new(identity: Arc<Identity>, invitation: Invitation, audit: Arc<Audit>, host: String) -> Self {
        let joined = Arc::new(Notify::new());
        Self { identity, invitation: Arc::new(Mutex::new(invitation)), audit, host, posted: None, joined }
    }

    /// Adds a code file, which is removed once the code is invalid.
    #[must_use]
    pub fn shown(self, posted: PostedCode) -> Self {
        Self { posted: Some(Arc::new(posted)), ..self }
    }

    /// Completes when the host has become a member.
    pub async fn joined(&self) {
        self.joined.notified().await;
    }

    fn admit(
        &self,
        request: &proto::JoinRequest,
        from: Option<SocketAddr>,
    ) -> Result<(), (Status, Option<Refused>)> {
        let mut invitation = self.invitation.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = invitation.take(&request.secret, Instant::now());
        if let (Ok(()) | Err(Refused::Taken | Refused::TooOld), Some(posted)) = (taken, &self.posted) {
            posted.withdraw();
        }
        if let Err(Refused::Wrong { so_far }) = taken {
            tell_of_guess(so_far, from);
        }
        taken.map_err(|refused| (Status::permission_denied(refused.to_string()), Some(refused)))?;
        self.identity.join(&request.authority, &request.certificate).map_err(|error| match error {
            MembershipError::Disk(_) => (Status::internal(error.to_string()), None),
            _ => {
                let why = format!("{error}; start the agent again for a new join code");
                (Status::invalid_argument(why), None)
            }
        })
    }
}

#[tonic::async_trait]
impl Enrolment for EnrolmentService {
    async fn introduce(
        &self,
        _: Request<proto::IntroduceRequest>,
    ) -> Result<Response<proto::IntroduceReply>, Status> {
        let request = self.identity.request(&self.host);
        let certificate_request =
            request.map_err(|error| Status::internal(format!("the key cannot sign: {error}")))?;
        Ok(Response::new(proto::IntroduceReply {
            agent_version: env!("CARGO_PKG_VERSION").into(),
            host_name: self.host.clone(),
            certificate_request,
        }))
    }

    async fn join(&self, request: Request<proto::JoinRequest>) -> Result<Response<proto::JoinReply>, Status> {
        let from = request.remote_addr();
        let admitted = self.admit(request.get_ref(), from);
        let refused = admitted.as_ref().err().map(|(status, _)| status.message());
        self.audit.write(&Entry { who: "nobody", from, call: "Join", refused, done: None });
        if let Err((status, why)) = admitted {
            if let Some(Refused::Wrong { .. }) = why {
                tokio::time::sleep(GUESS_TAKES).await;
            }
            return Err(status);
        }
        self.joined.notify_one();
        Ok(Response::new(proto::JoinReply {}))
    }
}

/// Prints wrong guesses on the terminal, at a decreasing rate for many guesses.
fn tell_of_guess(so_far: u64, from: Option<SocketAddr>) {
    const EACH: u64 = 5;
    if so_far <= EACH || so_far.is_power_of_two() {
        let from = from.map_or_else(String::new, |from| format!(" from {}", from.ip()));
        let times = if so_far == 1 { "the first time".to_owned() } else { format!("{so_far} times so far") };
        console::complain(&format!(
            "somebody{from} gave a wrong join code, {times}; the code above stays good for whoever has it"
        ));
    }
}
