//! The network between the end systems as a role of the agent: switches, links and interface cards, played by the simulator's
//! engine at the instants at which frames come from hosts.
//!
//! - [`Role`](role): opens the ports, starts the thread, reports.
//! - [`outside`]: what the engine sees of the hosts: frames, their bytes, time.
//! - [`files`]: what is written beside the records, by a thread that nothing waits for.

mod addresses;
mod crossings;
mod error;
mod expected;
mod files;
mod outside;
mod role;

pub use role::NetworkBetween;
