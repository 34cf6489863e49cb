//! Bounds of FIFO networks by linear programmes of polynomial size (Bouillard, Performance Evaluation 153, 2022).
//!
//! A node is one class of one port; its service curve is the left-over of the other classes, as proved by total flow
//! analysis: a maximum of rate-latency curves, each of which is a row. The network is cut into trees: for each node the
//! link to the next node in the order of the file is kept, the others are cut. A flow that is cut begins anew, with a
//! burst that a programme bounds; separated flow analysis bounds it as a whole. In a tree rooted at the last node of a
//! piece every node has as many dates as its distance from the root, and two; a date at one node maps to the date at
//! the next at which the arrivals up to it have left, which is FIFO service. Delays known from total and separated flow
//! analysis are rows of the programme, so it is never above them.
//!
//! The delay from one node to another is the same question for every flow: it is solved once. Pieces that enter and
//! leave a tree together are one sum in its programme (see [`tree`]).

mod pieces;
mod tree;

use std::collections::{BTreeMap, BTreeSet};

use crate::curve::Arrival;
use crate::model::Model;
use crate::nodes::Layout;
use crate::programme::{Programme, Scaled};
use crate::rational::Rational;
use crate::tfa::{self, Total};
use crate::values::{Settings, Shift, Values};
use pieces::{Analysis, Piece, Task};
use tree::Tree;

/// Least number of rows passed to a solver at a time, so that small programmes share the cost of a call.
const ROWS_AT_A_TIME: usize = 600;

/// Greatest number of rounds around cycles.
const MOST_ROUNDS: usize = 100;

/// Solves programmes side by side: returns the multipliers of their rows, or nothing.
pub type Solver<'a> = dyn FnMut(&Scaled) -> Option<Vec<f64>> + 'a;

/// Reason why a network cannot be analysed by this method.
pub(crate) struct Unfit(pub(crate) String);

/// Delays of targets, and the numbers of programmes proved and not.
pub(crate) struct Found {
    pub(crate) ends: Vec<Vec<Option<Rational>>>,
    pub(crate) proved: usize,
    pub(crate) unproved: usize,
}

/// Analyses a network.
pub(crate) fn analyse(
    model: &Model,
    layout: &Layout,
    settings: Settings,
    total: &Total<Rational>,
    solve: &mut Solver<'_>,
) -> Found {
    let apart = Settings { grouping: false, shift: Shift::LeftOver, ..settings };
    let separated = tfa::analyse::<Rational>(model, layout, apart).ok();
    let values: Values<Rational> = Values::of(model, layout, settings);
    let mut analysis = Analysis {
        model,
        layout,
        settings,
        total,
        separated: separated.map(|total| (Values::of(model, layout, apart), total)),
        services: (0..layout.nodes.len()).map(|node| values.service(layout, node, &total.shifts)).collect(),
        next: kept_links(model, layout),
        pieces: Vec::new(),
        place: vec![(0, 0); layout.hops.len()],
        at: vec![Vec::new(); layout.nodes.len()],
        ending: BTreeMap::new(),
        passing: BTreeMap::new(),
        proved: 0,
        unproved: 0,
    };
    analysis.cut();
    analysis.separate();
    analysis.bursts(solve);
    let ends = analysis.delays(solve);
    Found { ends, proved: analysis.proved, unproved: analysis.unproved }
}

/// For each node the kept link to the next node of a higher number, if all flows on it have the same wait.
fn kept_links(model: &Model, layout: &Layout) -> Vec<Option<usize>> {
    let mut links: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (index, hop) in layout.hops.iter().enumerate() {
        if let Some(before) = hop.before {
            links.entry((layout.hops[before].node, hop.node)).or_default().push(index);
        }
    }
    let step =
        |hop: usize| &model.flows[layout.hops[hop].flow].steps[hop - layout.first[layout.hops[hop].flow]];
    let mut next = vec![None; layout.nodes.len()];
    for ((from, to), hops) in links {
        let alike =
            hops.iter().all(|hop| step(*hop).variation.is_zero() && step(*hop).wait == step(hops[0]).wait);
        // The map is ordered, so the first match is the next node.
        if to > from && alike && next[from].is_none() {
            next[from] = Some(to);
        }
    }
    next
}

impl Analysis<'_> {
    fn node(&self, hop: usize) -> usize {
        self.layout.hops[hop].node
    }

    fn step(&self, hop: usize) -> &crate::model::Step {
        let flow = self.layout.hops[hop].flow;
        &self.model.flows[flow].steps[hop - self.layout.first[flow]]
    }

    fn cut(&mut self) {
        for hop in 0..self.layout.hops.len() {
            let node = self.node(hop);
            let before = self.layout.hops[hop].before;
            let stays = before.filter(|before| self.next[self.node(*before)] == Some(node));
            let place = match stays {
                Some(before) => {
                    let (piece, position) = self.place[before];
                    // For a flow with two next hops only one link is kept, so a piece never branches.
                    self.pieces[piece].hops.push(hop);
                    (piece, position + 1)
                }
                None => {
                    let from = before.map(|before| self.layout.nodes[self.node(before)].server);
                    let curve = self.model.flows[self.layout.hops[hop].flow].arrival.clone();
                    let variation = self.step(hop).variation.clone();
                    let arrival = before.is_none().then(|| Arrival::new(curve).delayed(&variation));
                    self.pieces.push(Piece { hops: vec![hop], from, arrival });
                    (self.pieces.len() - 1, 0)
                }
            };
            self.place[hop] = place;
            self.at[node].push(place);
        }
    }

    /// Delays of every piece by separated flow analysis, from each node.
    fn separate(&mut self) {
        let Some((values, total)) = &self.separated else { return };
        for piece in &self.pieces {
            for length in 1..=piece.hops.len() {
                let hops = &piece.hops[..length];
                let Some(delay) = crate::separate::in_order(values, self.layout, total, hops) else {
                    continue;
                };
                let ends = (self.node(hops[0]), self.node(hops[length - 1]));
                let both = [(true, &mut self.passing), (length == piece.hops.len(), &mut self.ending)];
                for (_, known) in both.into_iter().filter(|(counts, _)| *counts) {
                    let least = known.entry(ends).or_insert_with(|| delay.clone());
                    if delay < *least {
                        *least = delay.clone();
                    }
                }
            }
        }
    }

    /// Bursts of all pieces that begin at a cut, round by round: first those that depend on none.
    fn bursts(&mut self, solve: &mut Solver<'_>) {
        let cut: Vec<(usize, usize)> = (0..self.pieces.len())
            .filter(|piece| self.pieces[*piece].from.is_some())
            .filter_map(|piece| Some((piece, self.layout.hops[self.pieces[piece].hops[0]].before?)))
            .collect();
        let mut open = cut;
        while !open.is_empty() {
            let roots: BTreeSet<usize> = open.iter().map(|(_, before)| self.node(*before)).collect();
            let known: BTreeSet<usize> = roots.into_iter().filter(|root| self.is_known(*root)).collect();
            let ready = |(_, before): &(usize, usize)| known.contains(&self.node(*before));
            let (now, later): (Vec<_>, Vec<_>) = open.iter().copied().partition(ready);
            if now.is_empty() {
                self.around(&later, solve);
                return;
            }
            let solved = self.burst_programmes(&now, solve);
            for ((piece, _), burst) in now.into_iter().zip(solved) {
                let found = burst.map(|burst| self.begun_with(piece, burst));
                self.pieces[piece].arrival = found.or_else(|| self.shifted(piece));
            }
            open = later;
        }
    }

    fn burst_programmes(&mut self, cuts: &[(usize, usize)], solve: &mut Solver<'_>) -> Vec<Option<Rational>> {
        let task = |(_, before): &(usize, usize)| {
            let (piece, position) = self.place[*before];
            Task::Burst { piece, length: position + 1 }
        };
        let tasks: Vec<Task> = cuts.iter().map(task).collect();
        let solved = self.solved(&tasks, solve);
        tasks.iter().map(|task| solved[task].clone()).collect()
    }

    /// The curve of a piece that is cut off, with its burst.
    fn begun_with(&self, piece: usize, burst: Rational) -> Arrival<Rational> {
        let hop = self.pieces[piece].hops[0];
        let rate = self.model.flows[self.layout.hops[hop].flow].rate().clone();
        Arrival::bucket(burst, rate).delayed(&self.step(hop).variation)
    }

    /// Around cycles: total and separated flow analysis have proved the shifts of flows there. With valid bursts,
    /// programmes find valid bursts that are less, repeatedly; each is rounded up so that fractions stay short.
    fn around(&mut self, cuts: &[(usize, usize)], solve: &mut Solver<'_>) {
        for (piece, _) in cuts {
            self.pieces[*piece].arrival = self.shifted(*piece);
        }
        for _ in 0..MOST_ROUNDS {
            let solved = self.burst_programmes(cuts, solve);
            let mut moved = false;
            for ((piece, _), burst) in cuts.iter().zip(solved) {
                let rounded = burst.and_then(|burst| Rational::from_f64(burst.to_f64_up()));
                let Some(found) = rounded.map(|burst| self.begun_with(*piece, burst)) else { continue };
                let known =
                    self.pieces[*piece].arrival.as_ref().map(|known| known.sustained().burst.to_f64_up());
                let less = found.sustained().burst.to_f64_up();
                if known.is_none_or(|known| less < known * (1.0 - 1e-13)) {
                    self.pieces[*piece].arrival = Some(found);
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
    }

    /// The curve of a piece by total or separated flow analysis, whichever shifts it less.
    fn shifted(&self, piece: usize) -> Option<Arrival<Rational>> {
        let hop = self.pieces[piece].hops[0];
        let curve = self.model.flows[self.layout.hops[hop].flow].arrival.clone();
        let apart = self.separated.as_ref().and_then(|(_, total)| total.shifts[hop].as_ref());
        let least = self.total.shifts[hop].iter().chain(apart).min()?;
        Some(Arrival::new(curve).delayed(least))
    }

    /// Whether all arrivals at a node, and at those before it in its tree, are known.
    fn is_known(&self, root: usize) -> bool {
        self.tree(root)
            .iter()
            .all(|node| self.at[*node].iter().all(|(piece, _)| self.pieces[*piece].arrival.is_some()))
    }

    /// The nodes whose kept links lead to `root`, each before the next; `root` last.
    fn tree(&self, root: usize) -> Vec<usize> {
        let mut nodes = vec![root];
        let mut at = 0;
        while at < nodes.len() {
            let to = nodes[at];
            nodes.extend((0..self.next.len()).filter(|node| self.next[*node] == Some(to)));
            at += 1;
        }
        nodes.reverse();
        nodes
    }

    fn delays(&mut self, solve: &mut Solver<'_>) -> Vec<Vec<Option<Rational>>> {
        let ways: Vec<Vec<Vec<Task>>> = (0..self.model.flows.len()).map(|flow| self.ways(flow)).collect();
        let tasks: Vec<Task> = ways.iter().flatten().flatten().copied().collect();
        let mut solved = self.solved(&tasks, solve);
        for (task, found) in &mut solved {
            let Task::Delay { first, root } = task else { continue };
            let total = self.total_delay(*first, *root);
            *found = match (found.take(), total) {
                (Some(found), Some(total)) => Some(found.min(total)),
                (found, total) => found.or(total),
            };
        }
        let mut ends = Vec::new();
        for (flow, of_flow) in self.model.flows.iter().zip(ways) {
            let mut of_targets = Vec::new();
            for (target, way) in flow.targets.iter().zip(of_flow) {
                let steps = flow.path(target.last);
                let waits = steps.iter().map(|step| &flow.steps[*step].wait);
                let waits = waits.fold(target.wait.clone(), |sum, wait| &sum + wait);
                let programmes =
                    way.iter().try_fold(Rational::ZERO, |sum, task| Some(&sum + solved[task].as_ref()?));
                let hops: Vec<usize> =
                    steps.iter().map(|step| self.layout.first[ends.len()] + step).collect();
                let least = programmes.into_iter().chain(self.apart(&hops)).min();
                of_targets.push(least.map(|least| &least + &waits));
            }
            ends.push(of_targets);
        }
        ends
    }

    /// The delay along hops by separated flow analysis, also over cut links: the pieces each pay for their bursts,
    /// which this avoids.
    fn apart(&self, hops: &[usize]) -> Option<Rational> {
        let (values, total) = self.separated.as_ref()?;
        let steady = hops[1..].iter().all(|hop| self.step(*hop).variation.is_zero());
        if steady { crate::separate::in_order(values, self.layout, total, hops) } else { None }
    }

    /// The pieces on the path to each target of a flow, from the last, and the part of each.
    fn ways(&self, flow: usize) -> Vec<Vec<Task>> {
        let mut ways = Vec::new();
        for target in &self.model.flows[flow].targets {
            let mut way = Vec::new();
            let mut hop = Some(self.layout.first[flow] + target.last);
            while let Some(last) = hop {
                let begun = self.pieces[self.place[last].0].hops[0];
                way.push(Task::Delay { first: self.node(begun), root: self.node(last) });
                hop = self.layout.hops[begun].before;
            }
            ways.push(way);
        }
        ways
    }

    /// The nodes from one to another on kept links.
    fn along(&self, first: usize, last: usize) -> Vec<usize> {
        let mut nodes = vec![first];
        while let Some(node) = nodes.last().filter(|node| **node != last).and_then(|node| self.next[*node]) {
            nodes.push(node);
        }
        nodes
    }

    fn total_delay(&self, first: usize, root: usize) -> Option<Rational> {
        let nodes = self.along(first, root);
        nodes
            .iter()
            .try_fold(Rational::ZERO, |sum, node| Some(&sum + self.total.bounds[*node].delay.as_ref()?))
    }

    /// Proved results of the programmes, for each distinct task.
    fn solved(&mut self, tasks: &[Task], solve: &mut Solver<'_>) -> BTreeMap<Task, Option<Rational>> {
        let mut found: BTreeMap<Task, Option<Rational>> = tasks.iter().map(|task| (*task, None)).collect();
        let list: Vec<Task> = found.keys().copied().collect();
        let mut some: Vec<(Task, Programme)> = Vec::new();
        let mut rows = 0;
        for task in list {
            let Some(programme) = self.programme(task) else {
                self.unproved += 1;
                continue;
            };
            if rows + programme.rows.len() > ROWS_AT_A_TIME {
                self.side_by_side(&some, solve, &mut found);
                some.clear();
                rows = 0;
            }
            rows += programme.rows.len();
            some.push((task, programme));
        }
        self.side_by_side(&some, solve, &mut found);
        found
    }

    fn side_by_side(
        &mut self,
        programmes: &[(Task, Programme)],
        solve: &mut Solver<'_>,
        found: &mut BTreeMap<Task, Option<Rational>>,
    ) {
        if programmes.is_empty() {
            return;
        }
        let mut scaled = Scaled::default();
        for (_, programme) in programmes {
            programme.append_to(&mut scaled);
        }
        let multipliers = solve(&scaled);
        let mut at = 0;
        for (task, programme) in programmes {
            let end = at + programme.rows.len();
            let own = multipliers.as_ref().and_then(|all| all.get(at..end));
            at = end;
            // Rows and objective were scaled; which rows bind does not depend on that.
            let proved = own.and_then(|own| programme.proved(own)).or_else(|| {
                // A programme that a solver gives up among others may be solved alone.
                let mut alone = Scaled::default();
                programme.append_to(&mut alone);
                solve(&alone).and_then(|own| programme.proved(&own))
            });
            self.proved += usize::from(proved.is_some());
            self.unproved += usize::from(proved.is_none());
            found.insert(*task, proved);
        }
    }

    fn programme(&self, task: Task) -> Option<Programme> {
        match task {
            Task::Delay { first, root } => Tree::of(self, root, None)?.of_delay(self, first),
            Task::Burst { piece, length } => {
                let root = self.node(*self.pieces[piece].hops[..length].last()?);
                Tree::of(self, root, Some(piece))?.of_burst(self, piece)
            }
        }
    }
}
