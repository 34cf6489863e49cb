//! `wiregauge-agent serve`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::transport::Server;
use wg_agent::hardware::planted::PlantedHardware;
use wg_agent::proto::agent_server::AgentServer;
use wg_agent::service::AgentService;
use wg_net::realtime;

use crate::ServeOptions;

enum Listener {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener, PathBuf),
}

/// Bytes of one call to the agent, at most.
const LARGEST_REQUEST: usize = 128 << 20;
/// Serves until told to stop. Exit code 2: a bad option; 3: the host cannot do it.
pub(crate) fn serve(options: &ServeOptions) -> ExitCode {
    let served = planted(options).and_then(|planted| {
        let (listener, address) = prepare(options)?;
        run(listener, &address, options, planted)
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, problem)) => {
            eprintln!("wiregauge-agent: {problem}");
            ExitCode::from(code)
        }
    }
}

/// The clock that stands in for the interface's; a value that is none is told by the name of what was set.
fn planted(options: &ServeOptions) -> Result<Option<PlantedHardware>, Failure> {
    let (set, text) = match (&options.planted_hardware, std::env::var_os("WIREGAUGE_PLANTED_HARDWARE")) {
        (Some(text), _) => ("--planted-hardware ", text.clone()),
        (None, Some(text)) => ("WIREGAUGE_PLANTED_HARDWARE=", text.to_string_lossy().into_owned()),
        (None, None) => return Ok(None),
    };
    text.parse().map(Some).map_err(|said: String| (2, format!("{set}{said}")))
}

/// How long callers may take to close their connections once the program is to end.
const LEAVE_TAKING: Duration = Duration::from_secs(1);

async fn or_overdue<E>(
    serving: impl Future<Output = Result<(), E>>,
    overdue: impl Future<Output = ()>,
) -> Result<(), E> {
    tokio::select! {
        served = serving => served,
        () = overdue => Ok(()),
    }
}

type Failure = (u8, String);

/// Listens in the namespace the program was started in, then enters the one of the network under test: so the
/// control connection never shares a link with what is measured.
fn prepare(options: &ServeOptions) -> Result<(Listener, String), Failure> {
    if options.die_with_parent {
        let parent = realtime::parent();
        realtime::die_with_parent().map_err(|e| (3, format!("--die-with-parent: {e}")))?;
        if realtime::parent() != parent {
            return Err((3, "--die-with-parent: the parent has gone already".into()));
        }
    }
    let (listener, address) = listen(&options.listen)?;
    if let Some(path) = &options.netns {
        wg_net::namespace::enter_network(path).map_err(|e| (3, e.to_string()))?;
    }
    Ok((listener, address))
}

fn listen(at: &str) -> Result<(Listener, String), Failure> {
    if let Some(path) = at.strip_prefix("unix:") {
        let path = Path::new(path);
        // A socket file nobody listens on is left over from a killed agent.
        if path.exists() && std::os::unix::net::UnixStream::connect(path).is_err() {
            drop(std::fs::remove_file(path));
        }
        let listener = std::os::unix::net::UnixListener::bind(path)
            .map_err(|e| (3, format!("cannot listen on {}: {e}", path.display())))?;
        return Ok((Listener::Unix(listener, path.to_owned()), at.to_owned()));
    }
    let address: std::net::SocketAddr = at.parse().map_err(|_| {
        (2, format!("--listen {at}: give ADDRESS:PORT, for example 127.0.0.1:0, or unix:PATH"))
    })?;
    let listener =
        std::net::TcpListener::bind(address).map_err(|e| (3, format!("cannot listen on {at}: {e}")))?;
    let bound = listener.local_addr().map_err(|e| (3, format!("cannot listen on {at}: {e}")))?;
    Ok((Listener::Tcp(listener), bound.to_string()))
}

fn run(
    listener: Listener,
    address: &str,
    options: &ServeOptions,
    planted: Option<PlantedHardware>,
) -> Result<(), Failure> {
    let problem = |e: std::io::Error| (3, format!("cannot serve on {address}: {e}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(problem)?;
    let outcome = runtime.block_on(async {
        let service = AgentService::new(planted);
        let mut terminate = signal(SignalKind::terminate()).map_err(problem)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(problem)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(problem)?;
        // What a terminal sends goes to the whole group: an agent that belongs to a testmaster leaves the end to it, or there would be
        // nobody left to collect the records from.
        let alone = !options.die_with_parent;
        let stop = {
            let service = service.clone();
            async move {
                tokio::select! {
                    () = service.shutdown_requested() => {}
                    _ = terminate.recv() => service.abandon().await,
                    _ = interrupt.recv(), if alone => service.abandon().await,
                    _ = hangup.recv(), if alone => service.abandon().await,
                    () = service.watch_lease() => {}
                }
            }
        };
        // A caller that keeps its connection open must not keep the program alive.
        let (told, mut tell) = tokio::sync::watch::channel(false);
        let stop = async move {
            stop.await;
            let _ = told.send(true);
        };
        let overdue = async move {
            drop(tell.changed().await);
            tokio::time::sleep(LEAVE_TAKING).await;
        };
        let server = Server::builder();
        // A plan with replays says every frame of their captures.
        let service = AgentServer::new(service).max_decoding_message_size(LARGEST_REQUEST);
        let ready = || {
            if options.announce {
                // Whoever asked for the line and went away does not need it.
                let _ = writeln!(std::io::stdout(), "listening {address}")
                    .and_then(|()| std::io::stdout().flush());
            }
        };
        let served = match listener {
            Listener::Tcp(listener) => {
                listener.set_nonblocking(true).map_err(problem)?;
                let listener = tokio::net::TcpListener::from_std(listener).map_err(problem)?;
                ready();
                or_overdue(
                    server.serve_with_incoming_shutdown(service, TcpListenerStream::new(listener), stop),
                    overdue,
                )
                .await
            }
            Listener::Unix(listener, path) => {
                listener.set_nonblocking(true).map_err(problem)?;
                let listener = UnixListener::from_std(listener).map_err(problem)?;
                ready();
                let serving =
                    server.serve_with_incoming_shutdown(service, UnixListenerStream::new(listener), stop);
                let served = or_overdue(serving, overdue).await;
                drop(std::fs::remove_file(path));
                served
            }
        };
        served.map_err(|e| (3, format!("cannot serve on {address}: {e}")))
    });
    // Streams of callers that went away must not keep the program alive.
    runtime.shutdown_background();
    outcome
}
