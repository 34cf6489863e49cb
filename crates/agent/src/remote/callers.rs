//! Identity and permissions of callers.
//!
//! A caller's role is the organisational unit (OU) of its certificate, signed by the lab's authority; TLS has verified
//! this signature before a call arrives here.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use ring::digest::{SHA256, digest};
use tonic::Status;
use tonic::body::Body;
use tonic::transport::server::{TcpConnectInfo, TlsConnectInfo};
use tower::{Layer, Service};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::audit::{Audit, Entry};
use super::connections::Connections;
use super::revoked::Revoked;

/// Role of a caller; each role includes the rights of the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Reads the state of a host.
    Observer,
    /// Runs tests.
    Operator,
    /// Changes settings of the host and stops the agent.
    Administrator,
}

impl Right {
    /// Role by its name in a certificate.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "observer" => Some(Self::Observer),
            "operator" => Some(Self::Operator),
            "administrator" => Some(Self::Administrator),
            _ => None,
        }
    }

    /// Role needed for a call of [`Agent`](crate::proto::agent_server::Agent); unlisted calls are always refused.
    pub fn needed(call: &str) -> Option<Self> {
        match call {
            "Describe" | "ReadClock" | "Examine" => Some(Self::Observer),
            "Hello" | "Prepare" | "TryStream" | "ReadInterface" | "Announce" | "Start" | "Watch" | "Keep"
            | "Finish" | "Collect" | "Release" | "ListRecords" | "DiscardRecords" | "Drain" | "Reach"
            | "StartClockPrograms" | "WatchClockPrograms" | "AskClockPrograms" | "StopClockPrograms" => {
                Some(Self::Operator)
            }
            "Shutdown" | "Mend" | "Restore" | "Revoke" => Some(Self::Administrator),
            _ => None,
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Observer => "observer",
            Self::Operator => "operator",
            Self::Administrator => "administrator",
        })
    }
}

/// Caller according to its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Common name.
    pub name: String,
    /// Role.
    pub right: Right,
    /// Public key: an uncompressed point of P-256.
    pub key: Vec<u8>,
    /// SHA-256 of the certificate.
    pub fingerprint: [u8; 32],
    /// Address of the caller.
    pub from: Option<SocketAddr>,
    /// Address of this host to which the call was made.
    pub to: Option<SocketAddr>,
}

impl Caller {
    /// Reads a certificate (DER), whose signature TLS has checked.
    ///
    /// # Errors
    /// Problem of the certificate, as a sentence.
    pub fn of(certificate: &[u8]) -> Result<Self, String> {
        let (_, parsed) = X509Certificate::from_der(certificate)
            .map_err(|_| "the certificate cannot be read".to_owned())?;
        let subject = parsed.subject();
        let name = subject.iter_common_name().find_map(|name| name.as_str().ok()).unwrap_or("nobody");
        let unit = subject.iter_organizational_unit().find_map(|unit| unit.as_str().ok()).unwrap_or("");
        let right = Right::named(unit).ok_or_else(|| {
            format!(
                "the certificate of {name} names no role; its organisational unit is \"{unit}\" and must be observer, \
                 operator or administrator"
            )
        })?;
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(digest(&SHA256, certificate).as_ref());
        let key = parsed.public_key().subject_public_key.data.to_vec();
        Ok(Self { name: name.to_owned(), right, key, fingerprint, from: None, to: None })
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.right)
    }
}

/// Layer that wraps a service in [`Guarded`].
#[derive(Clone, Debug)]
pub struct Guard(pub Arc<Audit>, pub Arc<Revoked>, pub Arc<Connections>);

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Guarded {
            inner,
            audit: Arc::clone(&self.0),
            revoked: Arc::clone(&self.1),
            connections: Arc::clone(&self.2),
        }
    }
}

/// Admits a call if its caller has the required role, attaches the [`Caller`], and writes the call and its result to
/// the audit log.
#[derive(Clone, Debug)]
pub struct Guarded<S> {
    inner: S,
    audit: Arc<Audit>,
    revoked: Arc<Revoked>,
    connections: Arc<Connections>,
}

type Answer =
    std::pin::Pin<Box<dyn Future<Output = Result<Response<Body>, std::convert::Infallible>> + Send>>;

impl<S> Service<Request<Body>> for Guarded<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = std::convert::Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = std::convert::Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Answer {
        let call = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        let audit = Arc::clone(&self.audit);
        let caller = match admitted(&request, &call, &self.revoked) {
            Ok(caller) => caller,
            Err((who, from, refusal)) => {
                let refused = Some(refusal.message());
                audit.write(&Entry { who: &who, from, call: &call, refused, done: None });
                return Box::pin(std::future::ready(Ok(refusal.into_http())));
            }
        };
        let (who, from) = (caller.to_string(), caller.from);
        if let Some(peer) = from {
            self.connections.admit(peer);
        }
        request.extensions_mut().insert(caller);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            let refused =
                Status::from_header_map(response.headers()).filter(|status| status.code() != tonic::Code::Ok);
            // Keep-alives and read-only calls are too frequent for the log.
            if refused.is_some()
                || !matches!(call.as_str(), "ReadClock" | "Describe" | "Watch" | "AskClockPrograms")
            {
                let refused = refused.as_ref().map(Status::message);
                audit.write(&Entry { who: &who, from, call: &call, refused, done: None });
            }
            Ok(response)
        })
    }
}

type Refusal = (String, Option<SocketAddr>, Status);

fn admitted(request: &Request<Body>, call: &str, revoked: &Revoked) -> Result<Caller, Refusal> {
    let connection = request.extensions().get::<TlsConnectInfo<TcpConnectInfo>>();
    let (from, to) = connection.map_or((None, None), |connection| {
        let tcp = connection.get_ref();
        (tcp.remote_addr(), tcp.local_addr())
    });
    let nobody = |message: String| ("nobody".to_owned(), from, Status::unauthenticated(message));
    let certificates = connection.and_then(TlsConnectInfo::peer_certs);
    let Some(certificate) = certificates.as_ref().and_then(|all| all.first()) else {
        return Err(nobody("a certificate of the lab's authority is needed".into()));
    };
    let caller = Caller::of(certificate).map_err(nobody)?;
    let denied = |message: String| (caller.to_string(), from, Status::permission_denied(message));
    if revoked.has(&caller.fingerprint) {
        return Err(denied(format!("the certificate of {} was revoked", caller.name)));
    }
    match Right::needed(call) {
        Some(needed) if caller.right >= needed => Ok(Caller { from, to, ..caller }),
        Some(needed) => Err(denied(format!(
            "{call} needs the role {needed}; the certificate of {} has the role {}",
            caller.name, caller.right
        ))),
        None => Err(denied(format!("there is no call {call}"))),
    }
}
