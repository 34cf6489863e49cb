//! `wiregauge-agent serve`.

use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use wg_net::realtime;

use super::options::ServeOptions;
use super::serve_tls;
use super::serving::{Failure, LARGEST_REQUEST, LEAVE_TAKING, STACK, asked_to_stop, or_overdue};
use crate::console;
use crate::control::service::AgentService;
use crate::control::spool::Spool;
use crate::proto::agent_server::AgentServer;
use crate::registry::ROLES;
use crate::timestamps::planted::PlantedHardware;

/// Serves until a stop is requested. Exit code 2: a bad option; 3: the host refuses.
pub(crate) fn serve(options: &ServeOptions) -> ExitCode {
    let served = planted(options).and_then(|planted| {
        if let Some(address) = options.listen.strip_prefix("tls:") {
            return serve_tls::serve(address, options, planted);
        }
        let (listener, path) = prepare(options)?;
        let spool = Spool::enter(options.spool.as_deref()).map_err(|e| (3, e.to_string()))?;
        run(
            listener,
            &path,
            options,
            AgentService::new(ROLES, spool, planted).with_clock(options.planted_clock),
        )
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, problem)) => {
            console::complain(&problem);
            ExitCode::from(code)
        }
    }
}

/// The planted hardware clock; an invalid value is reported with the name of its option or variable.
fn planted(options: &ServeOptions) -> Result<Option<PlantedHardware>, Failure> {
    let (set, text) = match (&options.planted_hardware, std::env::var_os("WIREGAUGE_PLANTED_HARDWARE")) {
        (Some(text), _) => ("--planted-hardware ", text.clone()),
        (None, Some(text)) => ("WIREGAUGE_PLANTED_HARDWARE=", text.to_string_lossy().into_owned()),
        (None, None) => return Ok(None),
    };
    text.parse().map(Some).map_err(|said: String| (2, format!("{set}{said}")))
}

/// Listens in the namespace in which the program was started, then enters the one of the network under test, so that
/// the control connection never shares a link with the traffic under test.
fn prepare(options: &ServeOptions) -> Result<(UnixListener, PathBuf), Failure> {
    if options.die_with_parent {
        let parent = realtime::parent();
        realtime::die_with_parent().map_err(|e| (3, format!("--die-with-parent: {e}")))?;
        if realtime::parent() != parent {
            return Err((3, "--die-with-parent: the parent has gone already".into()));
        }
    }
    let (listener, path) = listen(&options.listen)?;
    // The spool becomes the working directory.
    let path = std::path::absolute(path).map_err(|e| (3, format!("--listen {}: {e}", options.listen)))?;
    if let Some(space) = &options.netns {
        wg_net::namespace::enter_network(space).map_err(|e| (3, e.to_string()))?;
    }
    Ok((listener, path))
}

/// Whether a caller is accepted: programs of this user and of root.
fn is_heard(stream: &tokio::net::UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == own || peer.uid() == 0 => true,
        Ok(peer) => {
            console::complain(&format!(
                "refused a connection of user {}; only user {own} and root may control this agent",
                peer.uid()
            ));
            false
        }
        Err(error) => {
            console::complain(&format!("refused a connection whose user the kernel does not tell: {error}"));
            false
        }
    }
}

fn listen(at: &str) -> Result<(UnixListener, PathBuf), Failure> {
    let Some(path) = at.strip_prefix("unix:").map(Path::new) else {
        return Err((
            2,
            format!(
                "--listen {at}: give tls:ADDRESS:PORT, or unix:PATH; without TLS anybody could give orders over a network, \
                 on loopback too"
            ),
        ));
    };
    let problem = |e: std::io::Error| (3, format!("cannot listen on {}: {e}", path.display()));
    // A socket of this user without a listener is left over from a killed agent; nothing else is removed.
    let own = rustix::process::geteuid().as_raw();
    let left = std::fs::symlink_metadata(path)
        .is_ok_and(|found| found.file_type().is_socket() && found.uid() == own);
    if left && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path).map_err(problem)?;
    }
    let listener = UnixListener::bind(path).map_err(problem)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(problem)?;
    Ok((listener, path.to_owned()))
}

fn run(
    listener: UnixListener,
    path: &Path,
    options: &ServeOptions,
    service: AgentService,
) -> Result<(), Failure> {
    let address = format!("unix:{}", path.display());
    let problem = |e: std::io::Error| (3, format!("cannot serve on {address}: {e}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .thread_stack_size(STACK)
        .enable_all()
        .build()
        .map_err(problem)?;
    let outcome = runtime.block_on(async {
        // A terminal's signal goes to the whole process group: an agent of a testmaster ignores it, because otherwise
        // nobody would collect the records.
        let alone = !options.die_with_parent;
        let stop = {
            let service = service.clone();
            async move { asked_to_stop(&service, alone).await }
        };
        // A caller that keeps its connection open must not keep the program alive.
        let (told, mut tell) = tokio::sync::watch::channel(false);
        let stop = async move {
            let _ = stop.await;
            let _ = told.send(true);
        };
        let overdue = async move {
            drop(tell.changed().await);
            tokio::time::sleep(LEAVE_TAKING).await;
        };
        let server = Server::builder();
        // A plan with replays contains every frame of their captures.
        let service = AgentServer::new(service).max_decoding_message_size(LARGEST_REQUEST);
        let ready = || {
            if options.announce {
                // A reader that went away does not need the line.
                let _ = writeln!(std::io::stdout(), "listening {address}")
                    .and_then(|()| std::io::stdout().flush());
            }
        };
        listener.set_nonblocking(true).map_err(problem)?;
        let listener = tokio::net::UnixListener::from_std(listener).map_err(problem)?;
        let heard = UnixListenerStream::new(listener).filter(|caller| caller.as_ref().map_or(true, is_heard));
        ready();
        let served = or_overdue(server.serve_with_incoming_shutdown(service, heard, stop), overdue).await;
        drop(std::fs::remove_file(path));
        served.map_err(|e| (3, format!("cannot serve on {address}: {e}")))
    });
    // Streams of callers that went away must not keep the program alive.
    runtime.shutdown_background();
    outcome
}
