//! What is known of loops, and of ways found lately.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::campaign::Hop;
use crate::network::NetworkId;
use crate::places::NodeIndex;

/// What is known of loops.
#[derive(Clone, Debug)]
pub(super) struct Loops {
    /// The shortest way is taken where there are several.
    pub(super) shortest: bool,
    /// By network and node: another node of the same connected part; the first of a part is its own.
    pub(super) parts: [Vec<NodeIndex>; 2],
    /// Links whose ends were joined before.
    pub(super) closing: Vec<u32>,
    /// Links on a cycle.
    pub(super) cyclic: BTreeSet<u32>,
    /// Ways found lately, by sender.
    pub(super) remembered: RefCell<BTreeMap<(NodeIndex, NetworkId), Rc<Reached>>>,
}

impl Loops {
    pub(super) fn new(shortest: bool) -> Self {
        let remembered = RefCell::new(BTreeMap::new());
        Self { shortest, parts: Default::default(), closing: Vec::new(), cyclic: BTreeSet::new(), remembered }
    }

    /// The first node of the part of `node`.
    pub(super) fn part(&mut self, network: NetworkId, node: NodeIndex) -> NodeIndex {
        let parts = &mut self.parts[network as usize];
        #[expect(clippy::cast_possible_truncation, reason = "nodes are numbered in 16 bits")]
        let known = parts.len() as NodeIndex;
        parts.extend(known..=node.max(known.saturating_sub(1)));
        let mut at = node;
        while parts[usize::from(at)] != at {
            let above = parts[usize::from(at)];
            parts[usize::from(at)] = parts[usize::from(above)];
            at = above;
        }
        at
    }
}

/// Senders whose ways are remembered: flows of one sender mostly stand together.
pub(super) const REMEMBERED: usize = 256;

/// How every node is reached from one over one network.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(super) from: NodeIndex,
    /// By node: the link it is reached by.
    pub(super) by: Vec<Option<Hop>>,
}

impl Reached {
    /// The links to `to`, first to last; `None` without a way.
    pub(crate) fn route(&self, to: NodeIndex) -> Option<Vec<Hop>> {
        let (mut hops, mut at) = (Vec::new(), to);
        while at != self.from {
            let hop = self.by[usize::from(at)]?;
            hops.push(hop);
            at = hop.from.node;
        }
        hops.reverse();
        Some(hops)
    }
}
