//! The control plane: what the testmaster may ask of an agent, and the life of a run, whatever role is played in it.

pub mod gate;
pub mod grants;
pub mod role;
pub mod run;
pub mod service;
pub mod spool;
pub(crate) mod supervision;
pub mod trial;
mod versions;
