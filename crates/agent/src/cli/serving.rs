//! What serving has in common whoever may connect.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use wg_agent::control::service::AgentService;

/// Bytes of the stack of a thread that calls are handed to; once memory is locked all of it is kept.
pub(super) const STACK: usize = 1 << 20;

/// Bytes of one call to the agent, at most.
pub(super) const LARGEST_REQUEST: usize = 128 << 20;

/// Descriptors that a program may need which serves many connections while it records.
const DESCRIPTORS: u64 = 16_384;

/// Raises how many descriptors this program may have, as far as it may: what it was started with is for programs that use select.
pub(super) fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let now = getrlimit(Resource::Nofile);
    let wanted = now.maximum.map_or(DESCRIPTORS, |most| most.min(DESCRIPTORS));
    if now.current.is_some_and(|current| current < wanted) {
        // A kernel that refuses leaves what there was.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: now.maximum });
    }
}

/// How long callers may take to close their connections once the program is to end.
pub(super) const LEAVE_TAKING: Duration = Duration::from_secs(1);

pub(super) type Failure = (u8, String);

/// Ends where somebody asks for the end of the program: by a call, a signal, or, where the agent belongs to nobody's terminal, by that.
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
