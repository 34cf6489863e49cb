//! The network between real hosts: the same engine, driven by arriving frames.
//!
//! The engine plays the interface card of each end system: the virtual link layer, the queues before the line, and the line. A
//! frame that a host hands to its card enters with the instant at which it did; a frame that a card delivers to its host leaves
//! the engine. In between everything happens at the instants of the model, however late the process is, and a frame leaves as
//! soon as its instant has come. So all decisions and their order are those of the model. Only departures are late, by a time
//! that can be measured.
//!
//! The alternative, one program for each switch and one interface for each link, was not chosen: frames would cross a kernel at
//! every hop, and each hop would have the delay of a host.

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

/// The clock of a node that no protocol synchronises, with its changes until `until`; `None` for one that shows true time.
///
/// # Errors
/// [`SimError::Plan`] if such a clock is impossible.
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

/// Plays `network` without its hosts until `outside` ends the run.
///
/// # Errors
/// [`SimError::Plan`] if the plan contradicts itself; errors of the sink.
pub fn carry(network: &Network, run: &Run, outside: &mut impl Outside) -> Result<SimReport, SimError> {
    crate::engine::carry(network, run, outside)
}
