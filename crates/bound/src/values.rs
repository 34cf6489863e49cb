//! Values of a model in the number type of an analysis.

use std::collections::BTreeMap;

use crate::curve::{Arrival, Bucket, RateLatency, Service};
use crate::knowledge;
use crate::model::{Model, Multiplexing};
use crate::nodes::{Group, Layout, Node};
use crate::number::Number;
use crate::rational::Rational;
use crate::rules::{self, Rule};

/// Settings of an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The order of service within a class.
    pub multiplexing: Multiplexing,
    /// Whether the traffic of one link is limited by that link.
    pub grouping: bool,
    /// Whether frames are received completely before they are forwarded.
    pub packetizer: bool,
    /// Quantity by which a server shifts a flow.
    pub shift: Shift,
}

/// Quantity by which a server shifts a flow, which bounds the departures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// The delay of all traffic.
    Delay,
    /// The latency of the left-over service.
    LeftOver,
}

/// Values of a model.
pub(crate) struct Values<N> {
    curves: Vec<Arrival<N>>,
    services: Vec<Service<N>>,
    capacities: Vec<Option<N>>,
    variations: Vec<N>,
    /// Longest frame of each flow.
    longest: Vec<N>,
    frames: BTreeMap<(usize, usize), N>,
    blocking: Vec<N>,
    /// Reserved windows at each node.
    reserved: Vec<Option<Arrival<N>>>,
    /// Rule of the class of each node.
    rules: Vec<Option<Rule<N>>>,
    /// Uncuttable part of a frame at each server, if it has preemptable classes.
    uncut: Vec<Option<N>>,
    /// Buffer limit of each node.
    buffers: Vec<Option<N>>,
    settings: Settings,
}

impl<N: Number> Values<N> {
    pub(crate) fn of(model: &Model, layout: &Layout, settings: Settings) -> Self {
        let curve = |buckets: &[Bucket<Rational>]| {
            let converted = buckets.iter().map(|b| Bucket { burst: N::of(&b.burst), rate: N::of(&b.rate) });
            Arrival::new(converted.collect())
        };
        let service = |pieces: &[RateLatency<Rational>]| {
            let converted =
                pieces.iter().map(|p| RateLatency { rate: N::of(&p.rate), latency: N::of(&p.latency) });
            Service::new(converted.collect())
        };
        let mut frames = BTreeMap::new();
        for (index, node) in layout.nodes.iter().enumerate() {
            for (position, group) in node.groups.iter().enumerate() {
                let Some(from) = group.from else { continue };
                let longest = N::of(&group.longest_frame);
                // The end of a frame that was cut may follow that of its interrupter directly.
                let mixed = model.servers[from].fragments.is_some();
                let at_once = if mixed { longest.plus(&longest) } else { longest };
                frames.insert((index, position), at_once);
            }
        }
        Self {
            curves: model.flows.iter().map(|flow| curve(&flow.arrival)).collect(),
            services: model.servers.iter().map(|server| service(&server.service)).collect(),
            capacities: model.servers.iter().map(|server| server.capacity.as_ref().map(N::of)).collect(),
            variations: model
                .flows
                .iter()
                .flat_map(|flow| flow.steps.iter().map(|step| N::of(&step.variation)))
                .collect(),
            longest: model.flows.iter().map(|flow| N::of(&flow.longest_frame)).collect(),
            frames,
            blocking: layout.nodes.iter().map(|node| N::of(&node.blocking)).collect(),
            reserved: (0..layout.nodes.len()).map(|node| reserved(model, layout, node)).collect(),
            rules: layout
                .nodes
                .iter()
                .map(|node| model.servers[node.server].rules.get(&node.class).map(Rule::converted))
                .collect(),
            uncut: model
                .servers
                .iter()
                .map(|server| server.fragments.as_ref().map(|fragments| N::of(&fragments.uncut)))
                .collect(),
            buffers: layout
                .nodes
                .iter()
                .map(|node| model.servers[node.server].buffers.get(&node.class).map(N::of))
                .collect(),
            settings,
        }
    }

    /// Rule of the class of a node, beside strict priority.
    pub(crate) fn rule(&self, node: usize) -> Option<&Rule<N>> {
        self.rules[node].as_ref()
    }

    /// Line time of a node reserved by a schedule.
    pub(crate) fn reserved(&self, node: usize) -> Option<&Arrival<N>> {
        self.reserved[node].as_ref()
    }

    /// Line service of a node.
    pub(crate) fn line(&self, layout: &Layout, node: usize) -> &RateLatency<N> {
        &self.services[layout.nodes[node].server].pieces()[0]
    }

    /// Greatest line rate of a node.
    pub(crate) fn capacity(&self, layout: &Layout, node: usize) -> Option<N> {
        self.capacities[layout.nodes[node].server].clone()
    }

    /// The longest frame of the classes below a node.
    pub(crate) fn blocking(&self, node: usize) -> &N {
        &self.blocking[node]
    }

    /// Part of the longest frame of another node at its server for which a node may have to wait.
    pub(crate) fn hold_up(&self, layout: &Layout, node: usize, other: usize) -> N {
        let longest = self.longest_of(layout, other);
        let cuts = layout.nodes[other].preemptable && !layout.nodes[node].preemptable;
        match &self.uncut[layout.nodes[node].server] {
            Some(uncut) if cuts => longest.lesser(uncut),
            _ => longest,
        }
    }

    /// Line time of the traffic of a node above, if each of its frames may cut one of this node.
    pub(crate) fn with_cuts(
        &self,
        layout: &Layout,
        (node, higher): (usize, usize),
        sent: Arrival<N>,
    ) -> Arrival<N> {
        let cuts = layout.nodes[node].preemptable && !layout.nodes[higher].preemptable;
        if cuts { sent.times(&N::of(&rules::a_cut_for_each())) } else { sent }
    }

    /// The longest frame of a node.
    pub(crate) fn longest_of(&self, layout: &Layout, node: usize) -> N {
        let hops = layout.nodes[node].groups.iter().flat_map(|group| &group.hops);
        hops.map(|hop| &self.longest[layout.hops[*hop].flow])
            .fold(N::zero(), |longest, frame| longest.greater(frame))
    }

    /// Greatest delay of these arrivals with this service; `is_alone`: of one flow, whose frames keep their order.
    pub(crate) fn stay(&self, curve: &Arrival<N>, service: &Service<N>, is_alone: bool) -> Option<N> {
        match self.settings.multiplexing {
            Multiplexing::Fifo => curve.delay(service),
            Multiplexing::Arbitrary => {
                let busy = curve.busy_period(service)?;
                if is_alone { curve.delay(service) } else { Some(busy) }
            }
        }
    }

    /// Arrivals of a group, each flow shifted by its path so far, limited by the link; of flows whose shift is unbounded,
    /// by the link alone.
    fn group(
        &self,
        layout: &Layout,
        at: (usize, usize),
        group: &Group,
        shifts: &[Option<N>],
    ) -> Option<Arrival<N>> {
        let shifted = self.shifted(layout, group, shifts);
        let Some(from) = group.from.filter(|_| self.settings.grouping) else { return shifted };
        let Some(capacity) = &self.capacities[from] else { return shifted };
        let burst = if self.settings.packetizer { self.frames[&at].clone() } else { N::zero() };
        let cap = Arrival::bucket(burst, capacity.clone());
        Some(shifted.map_or_else(|| cap.clone(), |curve| curve.limited(&cap)))
    }

    /// Arrivals of a group, each flow shifted by its path so far.
    fn shifted(&self, layout: &Layout, group: &Group, shifts: &[Option<N>]) -> Option<Arrival<N>> {
        let mut total = Bucket { burst: N::zero(), rate: N::zero() };
        let mut bent = Vec::new();
        for hop in &group.hops {
            let (curve, shift) = (&self.curves[layout.hops[*hop].flow], shifts[*hop].as_ref()?);
            if let [bucket] = curve.buckets() {
                total.burst = total.burst.plus(&bucket.burst).plus(&bucket.rate.times(shift));
                total.rate = total.rate.plus(&bucket.rate);
            } else {
                bent.push(curve.delayed(shift));
            }
        }
        let straight = Arrival::bucket(total.burst, total.rate);
        if bent.is_empty() {
            return Some(straight);
        }
        Some(Arrival::sum(&bent.iter().chain([&straight]).collect::<Vec<_>>()))
    }

    /// All arrivals at a node; `None`: unbounded.
    pub(crate) fn aggregate(&self, layout: &Layout, node: usize, shifts: &[Option<N>]) -> Option<Arrival<N>> {
        let groups: Option<Vec<Arrival<N>>> = layout.nodes[node]
            .groups
            .iter()
            .enumerate()
            .map(|(position, group)| self.group(layout, (node, position), group, shifts))
            .collect();
        Some(Arrival::sum(&groups?.iter().collect::<Vec<_>>()))
    }

    /// Service guaranteed to a node beside the classes above and below it; `None`: nothing.
    pub(crate) fn service(&self, layout: &Layout, node: usize, shifts: &[Option<N>]) -> Option<Service<N>> {
        let Node { server, higher, .. } = &layout.nodes[node];
        if let Some(rule) = self.rule(node) {
            return self.ruled(layout, node, rule, shifts);
        }
        let whole = &self.services[*server];
        let blocking = &self.blocking[node];
        let reserved = self.reserved(node);
        if higher.is_empty() && blocking.is_not_positive() && reserved.is_none() {
            return Some(whole.clone());
        }
        // A strict class sends as soon as it has frames, so those sent while a class below waits came meanwhile.
        let above = |higher: &usize| {
            let sent = match self.rule(*higher) {
                None => self.aggregate(layout, *higher, shifts),
                Some(_) => self.departure(layout, *higher, shifts),
            };
            sent.map(|sent| self.with_cuts(layout, (node, *higher), sent))
        };
        let above: Option<Vec<Arrival<N>>> = higher.iter().map(above).collect();
        let above = above?;
        let frame = Arrival::bucket(blocking.clone(), N::zero());
        let all = Arrival::sum(&above.iter().chain([&frame]).chain(reserved).collect::<Vec<_>>());
        whole.left_over_arbitrary(&all)
    }

    /// The bound of one node.
    pub(crate) fn bound(
        &self,
        layout: &Layout,
        node: usize,
        shifts: &[Option<N>],
    ) -> (Bound<N>, Option<Service<N>>) {
        let service = self.service(layout, node, shifts);
        let (Some(curve), Some(service)) = (self.aggregate(layout, node, shifts), service) else {
            return (Bound::none(), None);
        };
        let is_alone = layout.nodes[node].groups.iter().map(|group| group.hops.len()).sum::<usize>() == 1;
        let (mut delay, backlog) = (self.stay(&curve, &service, is_alone), curve.backlog(&service));
        if let Some(Rule::Cyclic(cycles)) = self.rule(node) {
            delay = knowledge::lesser(delay, Some(cycles.two()));
        }
        let bound = match self.buffered(layout, node, shifts) {
            Some((wait, held)) => Bound {
                full: delay.as_ref().is_none_or(|delay| wait.compare(delay).is_lt()),
                delay: Some(delay.map_or_else(|| wait.clone(), |delay| delay.lesser(&wait))),
                backlog: Some(backlog.map_or_else(|| held.clone(), |backlog| backlog.lesser(&held))),
            },
            None => Bound { delay, backlog, full: false },
        };
        (bound, Some(service))
    }

    /// Greatest delay at a node in order of arrival for frames that fit its buffer, and the backlog then: the buffer, a
    /// frame of its own or of a class below on the line, and the traffic of classes above meanwhile or already there.
    fn buffered(&self, layout: &Layout, node: usize, shifts: &[Option<N>]) -> Option<(N, N)> {
        let buffer = self.buffers[node].as_ref()?;
        let Node { server, higher, .. } = &layout.nodes[node];
        let alike = self.rule(node).is_none()
            && self.reserved(node).is_none()
            && higher.iter().all(|above| self.rule(*above).is_none());
        if !alike || self.settings.multiplexing != Multiplexing::Fifo {
            return None;
        }
        let above = |above: &usize| {
            let delay = self.bound(layout, *above, shifts).0.delay?;
            Some(self.aggregate(layout, *above, shifts)?.delayed(&delay))
        };
        let above: Option<Vec<Arrival<N>>> = higher.iter().map(above).collect();
        let left =
            self.services[*server].left_over_arbitrary(&Arrival::sum(&above?.iter().collect::<Vec<_>>()))?;
        let own = self.longest_of(layout, node);
        let before = buffer.plus(&self.blocking[node].greater(&own));
        let wait = Arrival::bucket(before, N::zero()).delay(&left)?;
        Some((wait, buffer.plus(&own)))
    }

    /// Shift of the flow by each hop of a node.
    pub(crate) fn shift(
        &self,
        layout: &Layout,
        node: usize,
        shifts: &[Option<N>],
        (bound, service): (&Bound<N>, Option<&Service<N>>),
    ) -> Vec<(usize, Option<N>)> {
        let hops = layout.nodes[node].groups.iter().flat_map(|group| &group.hops);
        if self.settings.shift == Shift::Delay {
            return hops.map(|hop| (*hop, bound.delay.clone())).collect();
        }
        let all = self.all_buckets(layout, node, shifts);
        let here = |hop: &usize| {
            let left = all.as_ref().and_then(|all| self.left_over_shift(layout, *hop, all, shifts, service));
            if !self.settings.packetizer {
                return (*hop, left.or_else(|| bound.delay.clone()));
            }
            // A completely received frame comes by its length later than its first bits; or no later than the greatest
            // delay.
            let rate = &self.curves[layout.hops[*hop].flow].sustained().rate;
            let frame = rate.is_positive().then(|| self.longest[layout.hops[*hop].flow].over(rate));
            let whole = left.zip(frame).map(|(left, frame)| left.plus(&frame));
            let least = match (whole, bound.delay.as_ref()) {
                (Some(whole), Some(delay)) => Some(whole.lesser(delay)),
                (whole, delay) => whole.or_else(|| delay.cloned()),
            };
            (*hop, least)
        };
        hops.map(here).collect()
    }

    /// Sum of the sustained buckets of all flows of a node.
    fn all_buckets(&self, layout: &Layout, node: usize, shifts: &[Option<N>]) -> Option<Bucket<N>> {
        let mut all = Bucket { burst: N::zero(), rate: N::zero() };
        for hop in layout.nodes[node].groups.iter().flat_map(|group| &group.hops) {
            let bucket = self.curves[layout.hops[*hop].flow].sustained();
            all.burst = all.burst.plus(&bucket.burst).plus(&bucket.rate.times(shifts[*hop].as_ref()?));
            all.rate = all.rate.plus(&bucket.rate);
        }
        Some(all)
    }

    fn left_over_shift(
        &self,
        layout: &Layout,
        hop: usize,
        all: &Bucket<N>,
        shifts: &[Option<N>],
        service: Option<&Service<N>>,
    ) -> Option<N> {
        let [own] = self.curves[layout.hops[hop].flow].buckets() else { return None };
        let burst = own.burst.plus(&own.rate.times(shifts[hop].as_ref()?));
        let cross = Arrival::bucket(all.burst.minus(&burst), all.rate.minus(&own.rate));
        let left = match self.settings.multiplexing {
            Multiplexing::Fifo => service?.left_overs_fifo(&cross),
            Multiplexing::Arbitrary => service?.left_over_arbitrary(&cross)?.pieces().to_vec(),
        };
        // A piece bounds the departures only if it is as fast as the flow.
        let fit = left.iter().filter(|piece| own.rate.minus(&piece.rate).is_not_positive());
        fit.map(|piece| piece.latency.clone()).reduce(|a, b| a.lesser(&b))
    }

    /// The curve of a flow before a hop.
    pub(crate) fn curve(&self, layout: &Layout, hop: usize, shifts: &[Option<N>]) -> Option<Arrival<N>> {
        Some(self.curves[layout.hops[hop].flow].delayed(shifts[hop].as_ref()?))
    }

    /// The curve of a flow at its entry into the network.
    pub(crate) fn source(&self, layout: &Layout, hop: usize) -> &Arrival<N> {
        &self.curves[layout.hops[hop].flow]
    }

    /// Whether frames are received completely before they are forwarded.
    pub(crate) const fn is_packetized(&self) -> bool {
        self.settings.packetizer
    }

    /// The longest frame of the flow of a hop.
    pub(crate) fn frame(&self, layout: &Layout, hop: usize) -> &N {
        &self.longest[layout.hops[hop].flow]
    }

    /// Variation of the wait before a hop.
    pub(crate) fn variation(&self, hop: usize) -> &N {
        &self.variations[hop]
    }

    /// The shift of a hop, from the shift before the previous hop and that at it.
    pub(crate) fn carried(&self, hop: usize, before: Option<&N>, here: Option<&N>) -> Option<N> {
        Some(before?.plus(here?).plus(&self.variations[hop]))
    }

    /// Shifts of first hops: only the variation before their first server.
    pub(crate) fn start(&self, layout: &Layout) -> Vec<Option<N>> {
        let begins = |(index, hop): (usize, &crate::nodes::Hop)| {
            hop.before.is_none().then(|| self.variations[index].clone())
        };
        layout.hops.iter().enumerate().map(begins).collect()
    }
}

/// Bounds of one node.
#[derive(Clone, Debug)]
pub(crate) struct Bound<N> {
    /// Greatest delay; `None`: unbounded.
    pub delay: Option<N>,
    /// Greatest backlog in bits; `None`: unbounded.
    pub backlog: Option<N>,
    /// Whether more may come than its buffer holds, so that the delay is that of frames that fit.
    pub full: bool,
}

impl<N> Bound<N> {
    pub(crate) const fn none() -> Self {
        Self { delay: None, backlog: None, full: false }
    }
}

/// Windows closed to a node, with its own and higher frames that do not fit before them.
fn reserved<N: Number>(model: &Model, layout: &Layout, node: usize) -> Option<Arrival<N>> {
    let Node { server, higher, .. } = &layout.nodes[node];
    let server = &model.servers[*server];
    let nodes = higher.iter().chain([&node]).map(|one| &layout.nodes[*one]);
    let frames = nodes.flat_map(|one| one.groups.iter().map(|group| &group.longest_frame));
    let longest = frames.max().cloned().unwrap_or_default();
    let kept = server.reserved.as_ref()?.of(&longest, server.rate());
    Some(Arrival::bucket(N::of(&kept.burst), N::of(&kept.rate)))
}
