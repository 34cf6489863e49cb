//! Pieces of a network, and their known bounds.

use std::collections::BTreeMap;

use crate::curve::{Arrival, Service};
use crate::model::Model;
use crate::nodes::Layout;
use crate::rational::Rational;
use crate::tfa::Total;
use crate::values::{Settings, Values};

/// A part of a flow along links that are not cut.
#[derive(Debug)]
pub(super) struct Piece {
    /// Its hops in order.
    pub(super) hops: Vec<usize>,
    /// Server behind which it was cut; `None` for the beginning of a flow.
    pub(super) from: Option<usize>,
    /// Arrival curve, once it is known.
    pub(super) arrival: Option<Arrival<Rational>>,
}

/// Question for a linear programme.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Task {
    /// Greatest delay from a node to the output of another.
    Delay { first: usize, root: usize },
    /// Greatest burst of a piece at the output of the last of `length` nodes.
    Burst { piece: usize, length: usize },
}

/// State of an analysis.
pub(super) struct Analysis<'a> {
    pub(super) model: &'a Model,
    pub(super) layout: &'a Layout,
    pub(super) settings: Settings,
    pub(super) total: &'a Total<Rational>,
    pub(super) separated: Option<(Values<Rational>, Total<Rational>)>,
    /// Service guaranteed to each node beside the classes above and below it.
    pub(super) services: Vec<Option<Service<Rational>>>,
    /// The next node of each on the link that is kept.
    pub(super) next: Vec<Option<usize>>,
    pub(super) pieces: Vec<Piece>,
    /// Piece of each hop, and its position there.
    pub(super) place: Vec<(usize, usize)>,
    /// Pieces at each node, with the position of the hop.
    pub(super) at: Vec<Vec<(usize, usize)>>,
    /// Delay from a node to the output of another by separated flow analysis: the least of the pieces that end there.
    pub(super) ending: BTreeMap<(usize, usize), Rational>,
    /// As `ending`, for all pieces that pass both nodes.
    pub(super) passing: BTreeMap<(usize, usize), Rational>,
    pub(super) proved: usize,
    pub(super) unproved: usize,
}
