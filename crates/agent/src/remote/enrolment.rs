//! The service of an agent that belongs to nobody yet.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;
use tonic::{Request, Response, Status};

use super::audit::{Audit, Entry};
use super::identity::{Identity, MembershipError};
use super::join_code::{Invitation, Refused};
use super::posted_code::PostedCode;
use crate::proto::{self, enrolment_server::Enrolment};

/// Waits for whoever was told the join code.
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
    /// With the code that was printed.
    pub fn new(identity: Arc<Identity>, invitation: Invitation, audit: Arc<Audit>, host: String) -> Self {
        let joined = Arc::new(Notify::new());
        Self { identity, invitation: Arc::new(Mutex::new(invitation)), audit, host, posted: None, joined }
    }

    /// The same with a code that is shown elsewhere, and is not once it is good for nothing.
    #[must_use]
    pub fn shown(self, posted: PostedCode) -> Self {
        Self { posted: Some(Arc::new(posted)), ..self }
    }

    /// Ends when the host has become a member.
    pub async fn joined(&self) {
        self.joined.notified().await;
    }

    fn admit(&self, request: &proto::JoinRequest) -> Result<(), Status> {
        let mut invitation = self.invitation.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = invitation.take(&request.secret, Instant::now());
        if let (Ok(()) | Err(Refused::TooOften | Refused::TooOld), Some(posted)) = (taken, &self.posted) {
            posted.withdraw();
        }
        taken.map_err(|refused| Status::permission_denied(refused.to_string()))?;
        self.identity.join(&request.authority, &request.certificate).map_err(|error| match error {
            MembershipError::Disk(_) => Status::internal(error.to_string()),
            _ => Status::invalid_argument(format!("{error}; start the agent again for a new join code")),
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
        let admitted = self.admit(request.get_ref());
        let refused = admitted.as_ref().err().map(Status::message);
        self.audit.write(&Entry { who: "nobody", from, call: "Join", refused, done: None });
        admitted?;
        self.joined.notify_one();
        Ok(Response::new(proto::JoinReply {}))
    }
}
