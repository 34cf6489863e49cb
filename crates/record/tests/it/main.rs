//! The record crate, used from outside as the agent and the log processor use it.

mod segment;
mod support;
