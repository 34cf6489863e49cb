//! `wiregauge-agent serve --listen tls:…`: joins a lab, then serves its members.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tonic::transport::{Certificate, Identity as TlsIdentity, Server, ServerTlsConfig};
use wg_net::clock;

use super::options::ServeOptions;
use super::serving::{
    Failure, LARGEST_REQUEST, LEAVE_TAKING, STACK, asked_to_stop, or_overdue, raise_descriptors,
};
use crate::console;
use crate::control::campaigns;
use crate::control::service::AgentService;
use crate::control::spool::Spool;
use crate::proto::agent_server::AgentServer;
use crate::proto::enrolment_server::EnrolmentServer;
use crate::registry::ROLES;
use crate::remote::allowance::Allowance;
use crate::remote::audit::Audit;
use crate::remote::callers::Guard;
use crate::remote::connections::{Bounds, Connections, Incoming};
use crate::remote::drain::Drain;
use crate::remote::enrolment::EnrolmentService;
use crate::remote::identity::{Identity, Membership};
use crate::remote::join_code::{Invitation, JoinCode, LIFETIME};
use crate::remote::posted_code::PostedCode;
use crate::remote::private_file;
use crate::remote::revoked::Revoked;
use crate::timestamps::planted::PlantedHardware;
use crate::tools::mending::Mending;

/// Default path of the host's rules.
const CONFIG: &str = "/etc/wiregauge/agent.toml";
/// Keepalive interval and timeout. A control network may be interrupted for 30 s.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// Greatest number of concurrent calls on a connection of an unknown caller.
const STRANGERS_CALLS: u32 = 4;
/// Greatest length of one call to an agent without a lab, bytes.
const LARGEST_STRANGER: usize = 64 << 10;

pub(super) fn serve(
    address: &str,
    options: &ServeOptions,
    planted: Option<PlantedHardware>,
) -> Result<(), Failure> {
    let address = listened_on(address)?;
    if options.netns.is_some() {
        return Err((
            2,
            "--netns has no effect with --listen tls; start the agent inside the namespace".into(),
        ));
    }
    if options.die_with_parent {
        wg_net::realtime::die_with_parent().map_err(|e| (3, format!("--die-with-parent: {e}")))?;
    }
    let usual = Path::new(CONFIG);
    let config: Option<PathBuf> = options.config.clone().or_else(|| usual.exists().then(|| usual.to_owned()));
    let allowance = Allowance::read(config.as_deref()).map_err(|e| (2, e.to_string()))?;
    let bounds = allowance.connections();
    raise_descriptors();
    let host = wg_net::host::name();
    let identity = Identity::open(options.state.as_deref(), &host).map_err(|e| (3, e.to_string()))?;
    let audit = Audit::open(identity.folder())
        .map_err(|e| (3, format!("{}: the audit log cannot be written: {e}", identity.folder().display())))?;
    let audit = Arc::new(audit);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .thread_stack_size(STACK)
        .enable_all()
        .build()
        .map_err(|e| (3, e.to_string()))?;
    let (membership, address) = match identity.membership() {
        Some(membership) => (membership.clone(), address),
        None => match runtime.block_on(join(address, options, &identity, &audit, (&host, bounds)))? {
            Some(joined) => joined,
            None => return Ok(()),
        },
    };
    let drain =
        Drain::open(identity.folder()).map_err(|e| (3, format!("{}: {e}", identity.folder().display())))?;
    let revoked =
        Revoked::open(identity.folder()).map_err(|e| (3, format!("{}: {e}", identity.folder().display())))?;
    let revoked = Arc::new(revoked);
    let spool = spool(options, &identity)?;
    if let Err(problem) = crate::tsn::recover(identity.folder()) {
        console::complain(&problem);
    }
    let mending = Arc::new(Mending::in_folder(identity.folder(), Some(Arc::clone(&audit))));
    // A killed agent may have left changed settings.
    mending.restore_all();
    let service = AgentService::new(ROLES, spool, planted)
        .with_clock(options.planted_clock)
        .with_tsn(allowance.allows_tsn().then(|| identity.folder().to_owned()))
        .bounded(allowance, drain, Arc::clone(&revoked))
        .with_mending(Arc::clone(&mending));
    let outcome = runtime.block_on(members(
        address,
        options,
        &identity.key(),
        &membership,
        Guard(audit, revoked, Connections::new(bounds)),
        service,
    ));
    mending.restore_all();
    // Streams of callers that went away must not keep the program alive.
    runtime.shutdown_background();
    outcome
}

fn listened_on(address: &str) -> Result<SocketAddr, Failure> {
    address.parse().map_err(|_| {
        (2, format!("--listen tls:{address}: give an address and a port, for example tls:0.0.0.0:47170"))
    })
}

/// Folder in which records survive restarts of the agent; used by this agent alone.
fn spool(options: &ServeOptions, identity: &Identity) -> Result<Spool, Failure> {
    let folder = match &options.spool {
        Some(named) => named.clone(),
        None => {
            let usual = identity.folder().join("records");
            private_file::enter(&usual).map_err(|e| (3, format!("{}: {e}", usual.display())))?;
            usual
        }
    };
    let spool = Spool::enter(Some(&folder)).map_err(|e| (3, e.to_string()))?;
    spool.lock().map_err(|e| (3, e.to_string()))?;
    campaigns::tidy();
    Ok(spool)
}

/// Reports when the join code expires; never ends.
async fn tell_of_age() {
    tokio::time::sleep(LIFETIME).await;
    console::complain("the join code is older than an hour; start the agent again for a new one");
    std::future::pending().await
}

/// Leaves the lab.
pub(super) fn leave(state: Option<&Path>) -> ExitCode {
    match Identity::leave(state) {
        Ok(true) => {
            println!(
                "this host has left its lab; an agent that still runs stays in it until it is started again"
            )
        }
        Ok(false) => println!("this host is in no lab"),
        Err(problem) => {
            console::complain(&problem);
            return ExitCode::from(3);
        }
    }
    ExitCode::SUCCESS
}

/// Prints the join code of the agent that waits to be joined.
pub(super) fn join_code(state: Option<&Path>) -> ExitCode {
    let found = Identity::place(state)
        .map_err(|e| e.to_string())
        .and_then(|folder| PostedCode::read(&folder, clock::realtime()).map_err(|e| e.to_string()));
    match found {
        Ok((code, left)) => {
            println!("{code}");
            eprintln!("good once, for {} min more", left.as_secs().div_ceil(60));
            ExitCode::SUCCESS
        }
        Err(problem) => {
            console::complain(&problem);
            ExitCode::from(3)
        }
    }
}

fn problem(address: SocketAddr) -> impl Fn(&dyn std::error::Error) -> Failure + Copy {
    move |error| {
        // The transport's own message is only "transport error".
        let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        (3, format!("cannot serve on tls:{address}: {why}"))
    }
}

/// Waits for a caller with the join code; returns the host's credentials from then on, and the bound address. `None` if
/// the program has to end before.
async fn join(
    address: SocketAddr,
    options: &ServeOptions,
    identity: &Identity,
    audit: &Arc<Audit>,
    (host, bounds): (&str, Bounds),
) -> Result<Option<(Membership, SocketAddr)>, Failure> {
    let problem = problem(address);
    let random = |_| (3, "the kernel has no random numbers for a join code".to_owned());
    let code = JoinCode::draw(identity.own_certificate().der()).map_err(random)?;
    let own = Arc::new(Identity::open(Some(identity.folder()), host).map_err(|e| (3, e.to_string()))?);
    // The certificate that the code names, not a new one.
    let tls = TlsIdentity::from_pem(identity.own_certificate().pem(), identity.key());
    let service =
        EnrolmentService::new(own, Invitation::new(code, Instant::now()), Arc::clone(audit), host.into());
    let listener = TcpListener::bind(address).await.map_err(|e| problem(&e))?;
    let bound = listener.local_addr().map_err(|e| problem(&e))?;
    let posted = PostedCode::post(identity.folder(), &code, clock::realtime());
    let service = service.shown(posted.map_err(|e| (3, format!("the join code cannot be kept: {e}")))?);
    say(&format!("this host is in no lab yet; its join code, good once and for an hour:\n\n    {code}\n"));
    if options.announce {
        say(&format!("joining tls:{bound} {code}"));
    }
    let done = service.clone();
    let (finish, finished) = tokio::sync::oneshot::channel::<bool>();
    let until = async move {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        let joined = tokio::select! {
            () = done.joined() => true,
            () = tell_of_age() => false,
            _ = terminate.recv() => false,
            _ = tokio::signal::ctrl_c() => false,
        };
        let _ = finish.send(joined);
        Ok::<(), std::io::Error>(())
    };
    let tls = ServerTlsConfig::new().identity(tls);
    let server = Server::builder().max_concurrent_streams(STRANGERS_CALLS);
    let server = server.tls_config(tls).map_err(|e| problem(&e))?;
    let service = EnrolmentServer::new(service).max_decoding_message_size(LARGEST_STRANGER);
    // Joining takes one short connection: none is admitted for longer.
    let incoming = Incoming::new(listener, Connections::new(bounds));
    let serving = server.serve_with_incoming_shutdown(service, incoming, async {
        let _ = until.await;
        // The answer to the joining caller is on its way.
        tokio::time::sleep(Duration::from_millis(100)).await;
    });
    serving.await.map_err(|e| problem(&e))?;
    if !finished.await.unwrap_or(false) {
        return Ok(None);
    }
    let joined = Identity::open(Some(identity.folder()), host).map_err(|e| (3, e.to_string()))?;
    say("this host has joined the lab");
    Ok(joined.membership().cloned().map(|membership| (membership, bound)))
}

/// Serves the members of the lab until a stop is requested.
async fn members(
    address: SocketAddr,
    options: &ServeOptions,
    key: &str,
    membership: &Membership,
    guard: Guard,
    service: AgentService,
) -> Result<(), Failure> {
    let problem = problem(address);
    let tls = ServerTlsConfig::new()
        .identity(TlsIdentity::from_pem(&membership.certificate, key))
        .client_ca_root(Certificate::from_pem(&membership.authority));
    // A caller whose host or cable failed sends no goodbye.
    let builder =
        Server::builder().http2_keepalive_interval(Some(KEEPALIVE)).http2_keepalive_timeout(Some(KEEPALIVE));
    let connections = Arc::clone(&guard.2);
    let server = builder.tls_config(tls).map_err(|e| problem(&e))?.layer(guard);
    let listener = TcpListener::bind(address).await.map_err(|e| problem(&e))?;
    let bound = listener.local_addr().map_err(|e| problem(&e))?;
    if options.announce {
        say(&format!("listening tls:{bound}"));
    } else {
        say(&format!("serving the lab on {bound}"));
    }
    let (told, mut tell) = tokio::sync::watch::channel(false);
    let stop = {
        let (service, alone) = (service.clone(), !options.die_with_parent);
        async move {
            let _ = asked_to_stop(&service, alone).await;
            let _ = told.send(true);
        }
    };
    // A caller that keeps its connection open must not keep the program alive.
    let overdue = async move {
        drop(tell.changed().await);
        tokio::time::sleep(LEAVE_TAKING).await;
    };
    let service = AgentServer::new(service).max_decoding_message_size(LARGEST_REQUEST);
    let incoming = Incoming::new(listener, connections);
    let serving = server.serve_with_incoming_shutdown(service, incoming, stop);
    or_overdue(serving, overdue).await.map_err(|e| problem(&e))
}

/// Prints a line on standard output; a reader that went away does not need it.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}").and_then(|()| std::io::stdout().flush());
}
