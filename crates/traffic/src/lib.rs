//! When each message of a test is due, the seeded randomness behind it, and what relays do to it.
//!
//! The simulator and the agents ask the same question and must get the same answer, to the picosecond: otherwise a
//! simulated run and a real one of the same test would not offer the same traffic. This crate joins what the plan says
//! (`wg-plan`) with the generators of the core (`wg-core`), neither of which knows the other.
#![forbid(unsafe_code)]

pub mod random;
pub mod relaying;
pub mod sending;
