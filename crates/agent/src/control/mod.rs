//! The control plane: what the testmaster may ask of an agent, and the life of a run, whatever role is played in it.

mod admission;
mod calls;
pub mod campaigns;
mod clock_calls;
pub mod gate;
pub mod grants;
mod host_calls;
mod request;
pub mod role;
pub mod run;
mod run_calls;
mod sending;
pub mod service;
mod session;
pub mod spool;
pub(crate) mod supervision;
pub mod trial;
mod versions;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a mutex protects; nothing here leaves it half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
