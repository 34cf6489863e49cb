//! The record crate, used from outside as the agent and the log processor use it.

mod encodings;
mod oracle;
mod process;
mod scenario;
mod segment;
mod support;
mod tracking;
mod truth;
mod volume;
