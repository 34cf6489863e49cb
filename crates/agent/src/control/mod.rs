//! The control plane: calls of the testmaster, and the life of a run of any role.

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

/// Locks a mutex, poisoned or not: no code here leaves its data half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
