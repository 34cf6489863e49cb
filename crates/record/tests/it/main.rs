//! The record crate, used from outside as the agent uses it.

mod crossing;
mod segment;
mod support;
mod truth;
