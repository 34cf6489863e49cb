//! The network between hosts that are real: the same engine, driven by frames that come.
//!
//! Of an end system the engine plays the interface card: the virtual link layer, the queues before the line, the line. What
//! a host hands to its card comes in with the instant at which it did, and what a card would hand to its host goes out. In between
//! everything happens at the instants of the model, however late the program is that plays it; what has to leave is
//! given out as soon as time has come that far. So what is decided, and in what order, is the model's, and only what is given
//! out is late, by a time that whoever gives it out can measure.
//!
//! Road not taken: a switch, a program, a link, an interface. Frames between switches would cross a kernel at every hop, and each
//! hop's delay would be that of a host.

mod buffers;
mod crossing;
mod fates;
mod frames;
mod headers;
mod outside;
mod replay;

use wg_core::clock::DisciplinedClock;
use wg_frame::time::RunTime;
use wg_plan::{Network, NodeIndex, Run};

pub use buffers::Buffers;
pub use fates::{Fate, MOST_FOREIGN};
pub use frames::{Incoming, Outgoing};
pub use headers::Headers;
pub use outside::Outside;
pub use replay::{Replayed, replay};

use crate::SimError;
use crate::clocks::NodeClock;
use crate::report::SimReport;

/// The clock of a node that no protocol keeps, with all that happens to it up to `until`; nothing for one that shows true time.
///
/// # Errors
/// [`SimError::Plan`] where there cannot be such a clock.
pub fn planted_clock(
    network: &Network,
    run: &Run,
    node: NodeIndex,
    until: RunTime,
) -> Result<Option<DisciplinedClock>, SimError> {
    let Some(own) = network.nodes.get(usize::from(node)) else { return Ok(None) };
    let clock = NodeClock::new(node, &own.clock, &run.incidents, run.seed, true, false)?;
    clock.map(|clock| clock.after(until)).transpose()
}

/// Plays everything in `network` but the hosts, until `outside` ends it.
///
/// # Errors
/// [`SimError::Plan`] when the plan contradicts itself, or what the sink returned.
pub fn carry(network: &Network, run: &Run, outside: &mut impl Outside) -> Result<SimReport, SimError> {
    crate::engine::carry(network, run, outside)
}
