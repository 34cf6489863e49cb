//! Analyses of one flow and its left-over service: separated flow analysis, and pay multiplexing only once.
//!
//! Both turn the servers of a path into one. Separated flow analysis takes the left-over of each and convolves them;
//! pay multiplexing only once convolves first, so that a burst that shares several servers is paid for once. With
//! grouping, cross traffic that comes over one link is bounded together, as it was served together before; without,
//! each flow by itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::curve::{Arrival, Bucket, RateLatency, Service};
use crate::method::{Choice, Method};
use crate::model::{Model, Multiplexing};
use crate::nodes::Layout;
use crate::number::Number;
use crate::tfa::{self, Total};
use crate::values::Values;

/// Delays to each target of each flow. Flows that are bounded one by one need no total flow analysis.
///
/// # Errors
/// The servers of a cycle without a proved fixed point, or one that the method does not support.
pub(crate) fn analyse<N: Number>(
    model: &Model,
    layout: &Layout,
    choice: Choice,
    total: Option<&Total<N>>,
) -> Result<Vec<Vec<Option<N>>>, Vec<usize>> {
    let mut separated = Separated::begun(model, layout, choice, total)?;
    let mut ends = Vec::with_capacity(model.flows.len());
    for (index, flow) in model.flows.iter().enumerate() {
        ends.push((0..flow.targets.len()).map(|target| separated.end(model, (index, target))).collect());
    }
    Ok(ends)
}

/// A flow and its target, the left-over services of the path and the delay.
pub(crate) type Way<N> = ((usize, usize), Vec<Service<N>>, N);

/// Hops of one node, and the curve of their traffic together.
pub(crate) type Set<N> = (Vec<usize>, Arrival<N>);

/// The steps of all targets, and the sets on which they rest.
pub(crate) type Steps<N> = (Vec<Way<N>>, Vec<Set<N>>);

/// Separated flow analysis with its steps: for each target with a bound the left-over service at each server of its path,
/// before complete reception counts, and its delay; with grouping also the curves of sets.
///
/// # Errors
/// As [`analyse`].
pub(crate) fn ways<N: Number>(
    model: &Model,
    layout: &Layout,
    choice: Choice,
    total: Option<&Total<N>>,
) -> Result<Steps<N>, Vec<usize>> {
    let mut separated = Separated::begun(model, layout, choice, total)?;
    let mut found = Vec::new();
    for (index, flow) in model.flows.iter().enumerate() {
        for (position, target) in flow.targets.iter().enumerate() {
            let of = (index, position);
            let end = separated.end(model, of);
            let hops = flow.path(target.last).into_iter().map(|step| layout.first[index] + step);
            let left: Option<Vec<Service<N>>> =
                hops.map(|hop| separated.left_over(&BTreeSet::from([hop]))).collect();
            found.extend(left.zip(end).map(|(left, end)| (of, left, end)));
        }
    }
    let sets = separated.known.into_iter().filter_map(|(hops, curve)| Some((hops, curve?)));
    Ok((found, sets.collect()))
}

/// The delay of a flow along `hops` with FIFO servers, from shifts by left-over services.
pub(crate) fn in_order<N: Number>(
    values: &Values<N>,
    layout: &Layout,
    total: &Total<N>,
    hops: &[usize],
) -> Option<N> {
    let mut path: Option<Service<N>> = None;
    for (position, hop) in hops.iter().enumerate() {
        let node = layout.hops[*hop].node;
        let others =
            layout.nodes[node].groups.iter().flat_map(|group| &group.hops).filter(|other| *other != hop);
        let curves: Option<Vec<Arrival<N>>> =
            others.map(|other| values.curve(layout, *other, &total.shifts)).collect();
        let cross = Arrival::sum(&curves?.iter().collect::<Vec<_>>());
        let left = values.service(layout, node, &total.shifts)?.left_overs_fifo(&cross);
        let [left] = &left[..] else { return None };
        let mut left = Service::rate_latency(left.rate.clone(), left.latency.clone());
        if values.is_packetized() && position + 1 < hops.len() {
            left = packetized(&left, values.frame(layout, *hop));
        }
        path = Some(path.map_or_else(|| left.clone(), |path| path.then(&left)));
    }
    values.curve(layout, *hops.first()?, &total.shifts)?.delay(&path?)
}

struct Separated<'a, N> {
    layout: &'a Layout,
    choice: Choice,
    values: Values<N>,
    services: Vec<Option<Service<N>>>,
    /// Greatest delay of any traffic at each node.
    delays: Vec<Option<N>>,
    /// Shift of each hop, if flows are bounded one by one.
    shifts: Option<Vec<Option<N>>>,
    /// Curves of sets of hops at one node.
    known: BTreeMap<Vec<usize>, Option<Arrival<N>>>,
}

impl<'a, N: Number> Separated<'a, N> {
    fn begun(
        model: &Model,
        layout: &'a Layout,
        choice: Choice,
        total: Option<&Total<N>>,
    ) -> Result<Self, Vec<usize>> {
        let alone = choice.method == Method::Sfa && !choice.settings.grouping;
        if !alone && let Some(cycle) = layout.order.iter().find(|together| together.len() > 1) {
            return Err(cycle.iter().map(|node| layout.nodes[*node].server).collect());
        }
        let delays = total.into_iter().flat_map(|total| &total.bounds).map(|bound| bound.delay.clone());
        let mut separated = Self {
            layout,
            choice,
            values: Values::of(model, layout, choice.settings),
            services: Vec::new(),
            delays: delays.collect(),
            shifts: None,
            known: BTreeMap::new(),
        };
        if alone {
            let own: Total<N> =
                tfa::analyse(model, layout, choice.settings).map_err(|cycle| cycle.servers)?;
            separated.shifts = Some(own.shifts);
        }
        let Some(shifts) = total.map(|total| &total.shifts).or(separated.shifts.as_ref()) else {
            return Err(Vec::new());
        };
        let services = (0..layout.nodes.len()).map(|node| separated.values.service(layout, node, shifts));
        separated.services = services.collect();
        Ok(separated)
    }

    /// The delay to a target of a flow.
    fn end(&mut self, model: &Model, (index, target): (usize, usize)) -> Option<N> {
        let flow = &model.flows[index];
        let target = &flow.targets[target];
        let steps = flow.path(target.last);
        let hops: Vec<usize> = steps.iter().map(|step| self.layout.first[index] + step).collect();
        let waits =
            steps.iter().fold(N::of(&target.wait), |sum, step| sum.plus(&N::of(&flow.steps[*step].wait)));
        let steady = hops[1..].iter().all(|hop| self.values.variation(*hop).is_not_positive());
        let delay = if steady { self.path_delay(&hops) } else { self.by_parts(&hops) };
        delay.map(|delay| delay.plus(&waits))
    }

    /// The delay of a flow along its hops.
    fn path_delay(&mut self, hops: &[usize]) -> Option<N> {
        let source = self.values.source(self.layout, *hops.first()?).delayed(self.values.variation(hops[0]));
        source.delay(&self.path_service(hops)?)
    }

    /// Sum over the servers, where waits between them vary, so that the servers of the path cannot be merged.
    fn by_parts(&mut self, hops: &[usize]) -> Option<N> {
        let mut sum = N::zero();
        for hop in hops {
            let curve = self.bound(&[*hop])?;
            let service = self.left_over(&BTreeSet::from([*hop]))?;
            sum = sum.plus(&curve.delay(&service)?);
        }
        Some(sum)
    }

    fn path_service(&mut self, hops: &[usize]) -> Option<Service<N>> {
        if self.choice.method == Method::Pmoo {
            let sets: Vec<BTreeSet<usize>> = hops.iter().map(|hop| BTreeSet::from([*hop])).collect();
            return self.once(&sets);
        }
        let mut path: Option<Service<N>> = None;
        for (position, hop) in hops.iter().enumerate() {
            let mut left = self.left_over(&BTreeSet::from([*hop]))?;
            if self.choice.settings.packetizer && position + 1 < hops.len() {
                left = packetized(&left, self.values.frame(self.layout, *hop));
            }
            path = Some(path.map_or_else(|| left.clone(), |path| path.then(&left)));
        }
        path
    }

    /// Service left over by the other flows of a node for a set of its hops.
    fn left_over(&mut self, own: &BTreeSet<usize>) -> Option<Service<N>> {
        let layout = self.layout;
        let node = layout.hops[*own.first()?].node;
        let all = layout.nodes[node].groups.iter().flat_map(|group| &group.hops);
        let others: Vec<usize> = all.copied().filter(|hop| !own.contains(hop)).collect();
        let cross = self.bound(&others)?;
        let service = self.services[node].as_ref()?;
        match self.choice.settings.multiplexing {
            Multiplexing::Arbitrary => service.left_over_arbitrary(&cross),
            Multiplexing::Fifo => {
                // Each piece holds by itself; the one with the least delay is taken.
                let pieces = service.left_overs_fifo(&cross);
                let curve = self.bound(&own.iter().copied().collect::<Vec<_>>())?;
                let mut best: Option<(N, RateLatency<N>)> = None;
                for piece in pieces {
                    let alone = Service::rate_latency(piece.rate.clone(), piece.latency.clone());
                    let Some(delay) = curve.delay(&alone) else { continue };
                    if best.as_ref().is_none_or(|(least, _)| delay.compare(least).is_lt()) {
                        best = Some((delay, piece));
                    }
                }
                best.map(|(_, piece)| Service::rate_latency(piece.rate, piece.latency))
            }
        }
    }

    /// The curve of a set of hops of one node together.
    fn bound(&mut self, hops: &[usize]) -> Option<Arrival<N>> {
        if hops.is_empty() {
            return Some(Arrival::none());
        }
        if let Some(shifts) = &self.shifts {
            let curves: Option<Vec<Arrival<N>>> =
                hops.iter().map(|hop| self.values.curve(self.layout, *hop, shifts)).collect();
            return Some(Arrival::sum(&curves?.iter().collect::<Vec<_>>()));
        }
        let mut key = hops.to_vec();
        key.sort_unstable();
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let found = self.bound_anew(&key);
        self.known.insert(key, found.clone());
        found
    }

    fn bound_anew(&mut self, hops: &[usize]) -> Option<Arrival<N>> {
        let layout = self.layout;
        let mut parts: Vec<Arrival<N>> = Vec::new();
        let mut before: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for hop in hops {
            match layout.hops[*hop].before {
                None => {
                    let source = self.values.source(layout, *hop);
                    parts.push(source.delayed(self.values.variation(*hop)));
                }
                Some(earlier) => {
                    // Without grouping, each flow is a set by itself.
                    let single = if self.choice.settings.grouping { 0 } else { *hop };
                    before.entry((layout.hops[earlier].node, single)).or_default().push(*hop);
                }
            }
        }
        for together in before.into_values() {
            parts.push(self.left(&together)?);
        }
        Some(Arrival::sum(&parts.iter().collect::<Vec<_>>()))
    }

    /// The departures from the previous node, for hops that come from one.
    fn left(&mut self, hops: &[usize]) -> Option<Arrival<N>> {
        let layout = self.layout;
        let varied =
            hops.iter().map(|hop| self.values.variation(*hop).clone()).reduce(|a, b| a.greater(&b))?;
        let earlier: BTreeSet<usize> = hops.iter().filter_map(|hop| layout.hops[*hop].before).collect();
        let list: Vec<usize> = earlier.iter().copied().collect();
        let output = if self.choice.method == Method::Pmoo {
            // As far back as all of them came the same way.
            let mut sets = vec![earlier.clone()];
            loop {
                let first = &sets[0];
                let previous: BTreeSet<usize> =
                    first.iter().filter_map(|hop| layout.hops[*hop].before).collect();
                let nodes: BTreeSet<usize> = previous.iter().map(|hop| layout.hops[*hop].node).collect();
                let steady = first.iter().all(|hop| self.values.variation(*hop).is_not_positive());
                if previous.len() < first.len() || nodes.len() != 1 || !steady {
                    break;
                }
                sets.insert(0, previous);
            }
            let service = self.once(&sets)?;
            let entering: Vec<usize> = sets[0].iter().copied().collect();
            self.bound(&entering)?.served(&service)?
        } else {
            let service = self.left_over(&earlier)?;
            self.bound(&list)?.served(&service)?
        };
        if !self.choice.settings.packetizer {
            return Some(output.delayed(&varied));
        }
        // Complete frames come in steps of a frame; and no later than the greatest delay.
        let frame =
            hops.iter().map(|hop| self.values.frame(layout, *hop).clone()).reduce(|a, b| a.greater(&b))?;
        let whole = output.plus(&Arrival::bucket(frame, N::zero()));
        let node = layout.hops[list[0]].node;
        let output = match self.delays[node].clone() {
            Some(delay) => whole.limited(&self.bound(&list)?.delayed(&delay)),
            None => whole,
        };
        Some(output.delayed(&varied))
    }

    /// Left-over along a path, each cross flow paid for once: `sets` are the own hops at each node of it.
    ///
    /// It holds for one piece of each server. Of all choices of pieces the one with the least delay is taken; with too
    /// many choices, only those with the same piece everywhere are tried.
    fn once(&mut self, sets: &[BTreeSet<usize>]) -> Option<Service<N>> {
        let layout = self.layout;
        let nodes: Vec<usize> = sets.iter().filter_map(|set| Some(layout.hops[*set.first()?].node)).collect();
        let mut pieces = Vec::with_capacity(nodes.len());
        for (position, node) in nodes.iter().enumerate() {
            let service = self.services[*node].as_ref()?;
            if self.choice.settings.packetizer && position + 1 < nodes.len() {
                let hops = layout.nodes[*node].groups.iter().flat_map(|group| &group.hops);
                let frames = hops.map(|hop| self.values.frame(layout, *hop).clone());
                let longest = frames.reduce(|a, b| a.greater(&b))?;
                pieces.push(packetized(service, &longest).pieces().to_vec());
            } else {
                pieces.push(service.pieces().to_vec());
            }
        }
        let mut asked = Vec::with_capacity(nodes.len());
        for (node, own) in nodes.iter().zip(sets) {
            let others = layout.nodes[*node].groups.iter().flat_map(|group| &group.hops);
            let rates = others
                .filter(|hop| !own.contains(hop))
                .map(|hop| &self.values.source(layout, *hop).sustained().rate);
            asked.push(rates.fold(N::zero(), |sum, rate| sum.plus(rate)));
        }
        let mut cross = Vec::new();
        for (entering, range) in self.segments(&nodes, sets) {
            cross.push((self.bound(&entering)?.sustained().clone(), range));
        }
        let entering: Vec<usize> = sets.first()?.iter().copied().collect();
        let own = self.bound(&entering)?;
        let mut best: Option<(N, Service<N>)> = None;
        for choice in choices(&pieces) {
            let Some(service) = paid_once(&choice, &asked, &cross) else { continue };
            let Some(delay) = own.delay(&service) else { continue };
            if best.as_ref().is_none_or(|(least, _)| delay.compare(least).is_lt()) {
                best = Some((delay, service));
            }
        }
        best.map(|(_, service)| service)
    }

    /// Cross traffic of a path: the hops that enter together and the nodes for which they stay.
    fn segments(
        &self,
        nodes: &[usize],
        own: &[BTreeSet<usize>],
    ) -> Vec<(Vec<usize>, core::ops::Range<usize>)> {
        let layout = self.layout;
        let mut segments: BTreeMap<(usize, usize, usize, usize), Vec<usize>> = BTreeMap::new();
        for (position, node) in nodes.iter().enumerate() {
            for hop in layout.nodes[*node].groups.iter().flat_map(|group| &group.hops) {
                if own[position].contains(hop) {
                    continue;
                }
                let before = layout.hops[*hop].before;
                // If the wait before a server varies, the servers of the path cannot be merged for the traffic.
                let steady = |hop: usize| self.values.variation(hop).is_not_positive();
                let on_path = |hop: usize, at: usize| nodes.get(at) == Some(&layout.hops[hop].node);
                if position > 0 && steady(*hop) && before.is_some_and(|before| on_path(before, position - 1))
                {
                    continue;
                }
                let (mut at, mut end) = (*hop, position + 1);
                while let Some(next) =
                    layout.hops[at].after.iter().find(|next| on_path(**next, end) && steady(**next))
                {
                    (at, end) = (*next, end + 1);
                }
                let from = before.map_or(usize::MAX, |before| layout.hops[before].node);
                let single = if self.choice.settings.grouping && before.is_some() { 0 } else { *hop + 1 };
                segments.entry((position, end, from, single)).or_default().push(*hop);
            }
        }
        segments.into_iter().map(|((start, end, ..), hops)| (hops, start..end)).collect()
    }
}

/// A server with complete reception of frames behind it: `β − l`.
fn packetized<N: Number>(service: &Service<N>, frame: &N) -> Service<N> {
    let later = |piece: &RateLatency<N>| RateLatency {
        rate: piece.rate.clone(),
        latency: piece.latency.plus(&frame.over(&piece.rate)),
    };
    Service::new(service.pieces().iter().map(later).collect())
}

/// Greatest number of choices of pieces that are all tried.
const MOST_CHOICES: usize = 64;

/// One piece of each server, in all ways or in the plain ones.
fn choices<N: Number>(pieces: &[Vec<RateLatency<N>>]) -> Vec<Vec<&RateLatency<N>>> {
    let count = pieces.iter().try_fold(1_usize, |count, all| count.checked_mul(all.len()));
    if count.is_none_or(|count| count > MOST_CHOICES) {
        let most = pieces.iter().map(Vec::len).max().unwrap_or(0);
        let same = |index: usize| pieces.iter().map(|all| &all[index.min(all.len() - 1)]).collect();
        return (0..most).map(same).collect();
    }
    pieces.iter().fold(vec![Vec::new()], |begun, all| {
        let with =
            |piece| begun.iter().map(move |chosen: &Vec<_>| chosen.iter().copied().chain([piece]).collect());
        all.iter().flat_map(with).collect()
    })
}

/// `(R, T)` with `R` the least of `R_j − r_j` and `T = Σ T_j + Σ_x (b_x + r_x · Σ T_j of the servers x passes) / R`.
fn paid_once<N: Number>(
    pieces: &[&RateLatency<N>],
    asked: &[N],
    cross: &[(Bucket<N>, core::ops::Range<usize>)],
) -> Option<Service<N>> {
    let left = pieces.iter().zip(asked).map(|(piece, asked)| piece.rate.minus(asked));
    let spare = left.reduce(|a, b| a.lesser(&b)).filter(Number::is_positive)?;
    let latency =
        |pieces: &[&RateLatency<N>]| pieces.iter().fold(N::zero(), |sum, piece| sum.plus(&piece.latency));
    let paid = cross.iter().fold(N::zero(), |sum, (bucket, range)| {
        sum.plus(&bucket.burst).plus(&bucket.rate.times(&latency(&pieces[range.clone()])))
    });
    Some(Service::rate_latency(spare.clone(), latency(pieces).plus(&paid.over(&spare))))
}
