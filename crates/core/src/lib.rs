//! State machines of the network, without a clock, a socket, a thread or a random source.
//!
//! The time is an argument of every call and effects are values, so the simulator (virtual time) and the live
//! programs (real time) drive the very same code.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod arinc664;
mod deadline;
pub mod frame;
pub mod generator;
pub mod hub;
pub mod oscillator;
pub mod tte;

pub use deadline::Deadline;
