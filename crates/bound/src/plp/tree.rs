//! The linear programme of one tree.
//!
//! Pieces that enter at one node over one link and leave at one node share one variable for each date: their sum
//! satisfies the sum of their curves, and no other row uses one of them alone. Every trajectory of the pieces is one of
//! the sum, so the programme of the sums is never below that of the pieces: it stays a bound. A piece whose burst is
//! wanted stays separate.

use std::collections::{BTreeMap, BTreeSet};

use super::pieces::Analysis;
use crate::curve::{Arrival, Bucket};
use crate::programme::Programme;
use crate::rational::Rational;

/// Pieces that enter and leave a tree together.
struct Group {
    /// First and last node.
    first: usize,
    last: usize,
    /// Sum of their arrival curves.
    arrival: Arrival<Rational>,
    /// Their longest frame.
    longest_frame: Rational,
    /// Variables for the arrivals of the group at the dates of `first`; the last is the origin.
    come: Vec<Option<usize>>,
}

/// A tree and its programme.
pub(super) struct Tree {
    programme: Programme,
    root: usize,
    /// Distance of each node from the root.
    depth: BTreeMap<usize, usize>,
    /// Variables for the dates of each node.
    dates: BTreeMap<usize, Vec<usize>>,
    groups: Vec<Group>,
    /// Groups at each node, and the server from which each comes.
    at: BTreeMap<usize, Vec<(usize, Option<usize>)>>,
    /// Index of the group with the separate piece.
    apart: Option<usize>,
    data_scale: f64,
}

fn one() -> Rational {
    Rational::ONE
}

fn minus(value: &Rational) -> Rational {
    -value
}

impl Tree {
    /// The variables of a tree, in which one piece may stay separate.
    pub(super) fn of(analysis: &Analysis<'_>, root: usize, apart: Option<usize>) -> Option<Self> {
        let nodes = analysis.tree(root);
        let mut tree = Self {
            programme: Programme::default(),
            root,
            depth: BTreeMap::new(),
            dates: BTreeMap::new(),
            groups: Vec::new(),
            at: BTreeMap::new(),
            apart: None,
            data_scale: 1.0,
        };
        let mut time = 0.0;
        for node in nodes.iter().rev() {
            let depth = if *node == root { 0 } else { tree.depth[&analysis.next[*node]?] + 1 };
            tree.depth.insert(*node, depth);
            time += analysis.total.bounds[*node].delay.as_ref()?.to_f64_up();
        }
        let time_scale = if time > 0.0 { time } else { 1.0 };
        tree.enter(analysis, &nodes, apart)?;
        let data: f64 = tree.groups.iter().map(|group| group.arrival.sustained().burst.to_f64_up()).sum();
        tree.data_scale = if data > 0.0 { data } else { 1.0 };
        for node in &nodes {
            let dates = (0..tree.depth[node] + 2).map(|_| tree.programme.variable(time_scale)).collect();
            tree.dates.insert(*node, dates);
        }
        for group in &mut tree.groups {
            let count = tree.depth[&group.first] + 2;
            let variables =
                (0..count).map(|k| (k + 1 < count).then(|| tree.programme.variable(tree.data_scale)));
            group.come = variables.collect();
        }
        Some(tree)
    }

    /// Groups the pieces; `None` if an arrival curve is not known.
    fn enter(&mut self, analysis: &Analysis<'_>, nodes: &[usize], apart: Option<usize>) -> Option<()> {
        let mut together: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for node in nodes {
            for (piece, _) in analysis.at[*node].iter().filter(|(_, position)| *position == 0) {
                let known = &analysis.pieces[*piece];
                let within = known.hops.iter().map(|hop| analysis.node(*hop));
                let last = within.take_while(|node| self.depth.contains_key(node)).last()?;
                let key = (*node, last, known.from, apart == Some(*piece));
                together.entry(key).or_default().push(*piece);
            }
        }
        for ((first, last, from, alone), pieces) in together {
            let curves: Option<Vec<&Arrival<Rational>>> =
                pieces.iter().map(|piece| analysis.pieces[*piece].arrival.as_ref()).collect();
            let frame = |piece: &usize| {
                let flow = analysis.layout.hops[analysis.pieces[*piece].hops[0]].flow;
                &analysis.model.flows[flow].longest_frame
            };
            let index = self.groups.len();
            self.apart = if alone { Some(index) } else { self.apart };
            let mut over = from;
            for node in analysis.along(first, last) {
                self.at.entry(node).or_default().push((index, over));
                over = Some(analysis.layout.nodes[node].server);
            }
            self.groups.push(Group {
                first,
                last,
                arrival: Arrival::sum(&curves?),
                longest_frame: pieces.iter().map(frame).max().cloned().unwrap_or_default(),
                come: Vec::new(),
            });
        }
        Some(())
    }

    /// The programme of the delay from a node to the output of the root.
    pub(super) fn of_delay(mut self, analysis: &Analysis<'_>, first: usize) -> Option<Programme> {
        self.rows(analysis, false)?;
        self.programme.objective = vec![(*self.dates.get(&first)?.first()?, minus(&one()))];
        Some(self.programme)
    }

    /// The programme of the arrivals of the separate piece when the root's first date has left, less its departures.
    pub(super) fn of_burst(mut self, analysis: &Analysis<'_>, piece: usize) -> Option<Programme> {
        self.rows(analysis, true)?;
        let now = self.programme.variable(self.data_scale);
        let group = &self.groups[self.apart?];
        for (date, come) in self.dates[&group.first].iter().zip(&group.come) {
            for Bucket { burst, rate } in analysis.pieces[piece].arrival.as_ref()?.buckets() {
                let row = [(Some(now), one()), (*come, minus(&one())), (Some(*date), rate.clone())];
                self.programme.at_most(row, burst.clone());
            }
        }
        self.programme.objective = vec![(now, one())];
        if let Some(before) = group.come[0] {
            self.programme.objective.push((before, minus(&one())));
        }
        Some(self.programme)
    }

    /// Adds all rows; `None` if a node has no service curve. `whole`: frames are received completely behind the root
    /// too.
    fn rows(&mut self, analysis: &Analysis<'_>, whole: bool) -> Option<()> {
        self.times(analysis);
        self.arrivals();
        self.services(analysis, whole)?;
        if analysis.settings.grouping {
            self.shaping(analysis);
        }
        self.known_delays(analysis);
        Some(())
    }

    /// The date `index` behind a node: at the next one, or the departure of the root's first, which is zero.
    fn after(&self, analysis: &Analysis<'_>, node: usize, index: usize) -> Option<usize> {
        if node == self.root {
            return None;
        }
        self.dates[&analysis.next[node]?].get(index).copied()
    }

    fn times(&mut self, analysis: &Analysis<'_>) {
        for (node, depth) in &self.depth {
            let dates = &self.dates[node];
            for u in 0..=*depth {
                let behind = self.after(analysis, *node, u);
                let rows = [
                    [(Some(dates[u + 1]), one()), (Some(dates[u]), minus(&one()))],
                    [(Some(dates[u]), one()), (behind, minus(&one()))],
                ];
                for row in rows {
                    self.programme.at_most(row, Rational::ZERO);
                }
            }
        }
    }

    fn arrivals(&mut self) {
        for Group { first, arrival, come, .. } in &self.groups {
            let dates = &self.dates[first];
            for u in 0..dates.len() {
                for v in u + 1..dates.len() {
                    for Bucket { burst, rate } in arrival.buckets() {
                        let row = [
                            (come[u], one()),
                            (come[v], minus(&one())),
                            (Some(dates[u]), minus(rate)),
                            (Some(dates[v]), rate.clone()),
                        ];
                        self.programme.at_most(row, burst.clone());
                    }
                }
                if u + 1 < dates.len() {
                    let row = [(come[u + 1], one()), (come[u], minus(&one()))];
                    self.programme.at_most(row, Rational::ZERO);
                }
            }
        }
    }

    fn services(&mut self, analysis: &Analysis<'_>, whole: bool) -> Option<()> {
        for (node, depth) in &self.depth {
            let last = self.dates[node][depth + 1];
            let behind = self.after(analysis, *node, *depth);
            let groups = self.at.get(node).map_or(&[][..], Vec::as_slice);
            let groups = || groups.iter().map(|(group, _)| &self.groups[*group]);
            let longest = groups().map(|group| &group.longest_frame).max().cloned().unwrap_or_default();
            let received = analysis.settings.packetizer && (*node != self.root || whole);
            let frame = if received { longest } else { Rational::ZERO };
            let mut rows = Vec::new();
            for service in analysis.services[*node].as_ref()?.pieces() {
                let mut row: Vec<(Option<usize>, Rational)> = Vec::new();
                for Group { first, come, .. } in groups() {
                    debug_assert!(self.depth[first] >= *depth, "bug: a group that enters behind");
                    row.push((come[*depth], minus(&one())));
                    row.push((come[depth + 1], one()));
                }
                row.push((behind, service.rate.clone()));
                row.push((Some(last), minus(&service.rate)));
                rows.push((row, &(&service.rate * &service.latency) + &frame));
            }
            for (row, limit) in rows {
                self.programme.at_most(row, limit);
            }
        }
        Some(())
    }

    /// The arrivals over one link are limited by its rate; also behind a cut.
    fn shaping(&mut self, analysis: &Analysis<'_>) {
        for (node, groups) in &self.at {
            let mut links: BTreeMap<usize, Vec<&Group>> = BTreeMap::new();
            for (group, from) in groups {
                if let Some(from) = from {
                    links.entry(*from).or_default().push(&self.groups[*group]);
                }
            }
            for (from, groups) in links {
                let Some(capacity) = &analysis.model.servers[from].capacity else { continue };
                let longest = groups.iter().map(|group| &group.longest_frame).max();
                let frame = longest.filter(|_| analysis.settings.packetizer).cloned().unwrap_or_default();
                // As in total flow analysis.
                let mixed = analysis.model.servers[from].fragments.is_some();
                let frame = if mixed { &frame + &frame } else { frame };
                let dates = &self.dates[node];
                for u in 0..dates.len() {
                    for v in u + 1..dates.len() {
                        let mut row: Vec<(Option<usize>, Rational)> = Vec::new();
                        for group in &groups {
                            row.push((group.come[u], one()));
                            row.push((group.come[v], minus(&one())));
                        }
                        row.push((Some(dates[u]), minus(capacity)));
                        row.push((Some(dates[v]), capacity.clone()));
                        self.programme.at_most(row, frame.clone());
                    }
                }
            }
        }
    }

    /// Adds rows for a delay of at most `delay` from `first` to the output of `last`.
    fn takes(&mut self, analysis: &Analysis<'_>, (first, last): (usize, usize), delay: &Rational) {
        // As many dates as the node behind `last` has: its distance from the root and one more.
        for (k, date) in self.dates[&first].iter().enumerate().take(self.depth[&last] + 1) {
            let behind = self.after(analysis, last, k);
            self.programme.at_most([(behind, one()), (Some(*date), minus(&one()))], delay.clone());
        }
    }

    fn known_delays(&mut self, analysis: &Analysis<'_>) {
        for node in self.depth.keys().copied().collect::<Vec<_>>() {
            if let Some(delay) = &analysis.total.bounds[node].delay {
                self.takes(analysis, (node, node), delay);
            }
        }
        let ways: BTreeSet<(usize, usize)> =
            self.groups.iter().map(|group| (group.first, group.last)).collect();
        for (first, last) in ways {
            let known = if last == self.root { &analysis.passing } else { &analysis.ending };
            if let Some(delay) = known.get(&(first, last)) {
                self.takes(analysis, (first, last), delay);
            }
        }
    }
}
