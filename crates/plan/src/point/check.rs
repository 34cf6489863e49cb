//! What a point of the sweep is checked against, and what was said of others.

use std::collections::BTreeSet;

use wg_frame::time::Span;

use crate::campaign::Hop;
use crate::disturbances::Disturbances;
use crate::model::Model;
use crate::places::{Attachment, FlowId, NodeIndex};
use crate::scheduling::Scheduling;
use crate::statements::Statements;
use crate::topology::Topology;

pub(super) const PICOS_PER_SECOND: u128 = 1_000_000_000_000;

/// A load given in micro-bit/s, in Mbit/s rounded up to a tenth: never shown as fitting when it does not.
pub(super) fn show_load(micro: u128) -> String {
    let tenths = micro.div_ceil(100_000_000_000);
    format!("{}.{}Mbit/s", tenths / 10, tenths % 10)
}

/// What was already said about other points of the same sweep.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(super) overloaded: BTreeSet<Medium>,
    pub(super) contracted: BTreeSet<Hop>,
    /// Windows of a port that go together.
    pub(super) sound: BTreeSet<Vec<(FlowId, Attachment, [Span; 3])>>,
}

pub(crate) struct PointCheck<'a> {
    pub(crate) test: &'a Statements,
    pub(crate) topology: &'a Topology,
    pub(crate) model: &'a Model,
    pub(crate) disturbances: &'a Disturbances,
    pub(crate) scheduling: Scheduling,
}

/// Where frames share a capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Medium {
    Direction(Hop),
    /// All links of a hub.
    Hub(NodeIndex),
}
