//! Settings shared by both ways of serving.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::control::service::AgentService;

/// Stack size of a thread that handles calls, bytes; resident once memory is locked.
pub(super) const STACK: usize = 1 << 20;

/// Greatest length of one call to the agent, bytes.
pub(super) const LARGEST_REQUEST: usize = 128 << 20;

/// Number of descriptors for a program that serves many connections while it records.
const DESCRIPTORS: u64 = 16_384;

/// Raises the limit of descriptors as far as permitted: the default is meant for programs that use select.
pub(super) fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let now = getrlimit(Resource::Nofile);
    let wanted = now.maximum.map_or(DESCRIPTORS, |most| most.min(DESCRIPTORS));
    if now.current.is_some_and(|current| current < wanted) {
        // If the kernel refuses, the old limit stays.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: now.maximum });
    }
}

/// Time for callers to close their connections once the program has to end.
pub(super) const LEAVE_TAKING: Duration = Duration::from_secs(1);

pub(super) type Failure = (u8, String);

/// Returns when the end of the program is requested: by a call, by SIGTERM, or, if the agent runs on its own (`alone`),
/// by a terminal's signal.
pub(super) async fn asked_to_stop(service: &AgentService, alone: bool) -> Result<(), std::io::Error> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::select! {
        () = service.shutdown_requested() => {}
        _ = terminate.recv() => service.abandon().await,
        _ = interrupt.recv(), if alone => service.abandon().await,
        _ = hangup.recv(), if alone => service.abandon().await,
        () = service.watch_lease() => {}
    }
    Ok(())
}

pub(super) async fn or_overdue<E>(
    serving: impl Future<Output = Result<(), E>>,
    overdue: impl Future<Output = ()>,
) -> Result<(), E> {
    tokio::select! {
        served = serving => served,
        () = overdue => Ok(()),
    }
}
