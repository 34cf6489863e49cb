//! The network between the end systems as a role of the agent: switches, links and interface cards, played by the simulator's
//! engine at the instants at which frames come from hosts.
//!
//! - [`Role`](role): opens the ports, starts the thread, reports.
//! - [`outside`]: the hosts as the engine sees them: frames, their bytes, time.
//! - [`files`]: files besides the records, written by a thread that nothing waits for.
//! - [`ports`]: whether the interfaces can be ports of the test, and remain so until its end.
//! - [`foreign`]: frames that do not belong to the test.

mod addresses;
mod captures;
mod cost;
mod crossings;
mod error;
mod expected;
mod files;
mod foreign;
mod outside;
mod ports;
mod role;

pub use role::NetworkBetween;
