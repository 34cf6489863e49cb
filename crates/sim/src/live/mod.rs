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
mod headers;
mod replay;

use std::collections::BTreeMap;

use serde::Serialize;
use wg_core::Deadline;
use wg_core::clock::DisciplinedClock;
use wg_core::frame::Frame;
use wg_frame::time::RunTime;
use wg_plan::{Network, NodeIndex, Run};
use wg_record::RecordFlags;

pub use buffers::Buffers;
pub use headers::Headers;
pub use replay::{Replayed, replay};

use crate::SimError;
use crate::clocks::NodeClock;
use crate::report::SimReport;
use crate::sink::Sink;

/// Labels there are for frames that are neither messages nor background load.
pub const MOST_FOREIGN: usize = 256;

/// What became of the frames of one label: of a background load, or of somebody else's of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fate {
    /// Frames that came to a card.
    pub entered: u64,
    /// Frames that cards handed to hosts, every copy.
    pub left: u64,
    /// Frames and copies of them that were lost, by how.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<&'static str, u64>,
    /// For how long they had lines, all together, ps.
    #[serde(skip)]
    pub line_ps: i64,
    /// How often they were to go over media of hubs, whose time is not in that.
    #[serde(skip)]
    pub on_media: u64,
}

/// A frame that a host has handed to its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The host.
    pub node: NodeIndex,
    /// When.
    pub at: RunTime,
    /// Where its bytes are kept, one copy.
    pub place: u32,
    /// What its bytes say.
    pub headers: Headers,
}

/// A frame that a card hands to its host.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The host.
    pub node: NodeIndex,
    /// When, by the model: its last bit is in.
    pub at: RunTime,
    /// The frame, as it came by the line.
    pub frame: &'a Frame,
    /// Where its bytes are kept.
    pub place: u32,
    /// Flow of its message; [`FLOW_FOREIGN`](wg_record::FLOW_FOREIGN) without one.
    pub flow: u16,
    /// Leg and phase of its message.
    pub flags: RecordFlags,
    /// A fault has altered its content.
    pub is_damaged: bool,
}

/// What is behind the cards: hosts, and the bytes of their frames.
pub trait Outside: Sink {
    /// Waits until `due` or until frames have come, whichever is first. Returns the instant up to which every frame is known that
    /// comes: the model goes on to there. `None`: it is over.
    fn wait(&mut self, due: Deadline) -> Option<RunTime>;

    /// The next of the frames that have come, in the order of their instants.
    fn next_incoming(&mut self) -> Option<Incoming>;

    /// A frame that came was handed to its card at `at`, which is later than it came where the model had gone on before
    /// it was known.
    fn entered(&mut self, incoming: &Incoming, at: RunTime);
}

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
