//! A network in pieces, and what is known of them.

use std::collections::BTreeMap;

use crate::curve::{Arrival, Service};
use crate::model::Model;
use crate::nodes::Layout;
use crate::rational::Rational;
use crate::tfa::Total;
use crate::values::{Settings, Values};

/// A part of a flow that stays on links that are not cut.
#[derive(Debug)]
pub(super) struct Piece {
    /// Its hops in order.
    pub(super) hops: Vec<usize>,
    /// The server it was cut behind; none of the beginning of a flow.
    pub(super) from: Option<usize>,
    /// What it brings, once that is known.
    pub(super) arrival: Option<Arrival<Rational>>,
}

/// What a programme is asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Task {
    /// How long it takes from a node to behind another.
    Delay { first: usize, root: usize },
    /// What of a piece may leave the last of so many of its nodes at once.
    Burst { piece: usize, length: usize },
}

/// An analysis under way.
pub(super) struct Analysis<'a> {
    pub(super) model: &'a Model,
    pub(super) layout: &'a Layout,
    pub(super) settings: Settings,
    pub(super) total: &'a Total<Rational>,
    pub(super) separated: Option<(Values<Rational>, Total<Rational>)>,
    /// What each node is guaranteed beside the classes above and below it.
    pub(super) services: Vec<Option<Service<Rational>>>,
    /// The node behind each on the link that stays.
    pub(super) next: Vec<Option<usize>>,
    pub(super) pieces: Vec<Piece>,
    /// The piece of each hop and where in it.
    pub(super) place: Vec<(usize, usize)>,
    /// Pieces at each node, with the position of the hop.
    pub(super) at: Vec<Vec<(usize, usize)>>,
    /// From a node to behind another by separated flow analysis: the least of the pieces that end there.
    pub(super) ending: BTreeMap<(usize, usize), Rational>,
    /// The same of all pieces that pass both.
    pub(super) passing: BTreeMap<(usize, usize), Rational>,
    pub(super) proved: usize,
    pub(super) unproved: usize,
}
