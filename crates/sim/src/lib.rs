//! The simulator bench: runs a test in virtual time and writes the records the agents would.
//!
//! A discrete-event driver of the cores in `wg-core`. The cores hold every rule of the network; this crate holds time,
//! links and their faults, clocks, chance and the tasks of the test language. Beside the records it writes the truth,
//! which nobody in the network could observe, and the captures that the test requests. The same plan, seed and version
//! give the same bytes.
//!
//! A run is built from the plan once (`build`, into the `world`) and then driven event by event (`engine`, in the order
//! of the `event_queue`). Models of hosts and switches are the plan's: this crate has no figures of its own.
//!
//! - [`simulate`] runs one run of a plan into a [`Sink`].
//! - [`simulate_campaign`] runs all of them, in parallel, each into segments of its own.
//! - [`live::carry`] drives the same engine in real time, between hosts that are real.
//! - [`journeys`] runs one run many times in memory, with other offsets of its senders.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

#[expect(clippy::cast_possible_truncation, reason = "nodes, ports and links are numbered in 32 bits")]
mod build;
mod campaign;
mod capture;
mod clocks;
mod clusters;
mod engine;
mod error;
mod event_queue;
mod faults;
mod headers;
mod imperfections;
mod incidents;
mod journeys;
pub mod live;
mod message;
mod models;
mod order;
mod ptp;
mod report;
mod sharing;
mod sink;
mod stages;
mod traffic;
mod world;

pub use campaign::simulate_campaign;
pub use engine::simulate;
pub use error::SimError;
pub use journeys::{Journeys, Longest, Passage, journeys};
pub use report::{
    AccessPointReport, AgentReport, FrerReport, JunctionReport, PortReport, RecoveryReport, SimReport,
    SwitchReport, TaskReport,
};
pub use sharing::{count_stages, simulate_on};
pub use sink::{Kept, Sink, Spool, Watched};
