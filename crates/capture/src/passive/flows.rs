//! The plan that the captures imply, and the report of each flow.

use std::collections::BTreeMap;

use serde::Serialize;
use wg_frame::ethernet::FRAME_OVERHEAD;
use wg_frame::time::Span;
use wg_plan::{
    Attachment, Bench, Campaign, Fill, Flow, LineRate, Link, Network, NetworkId, Node, NodeKind, PLAN_SCHEMA,
    Protocol, Receive, Run, Send,
};
use wg_record::Gap;

use super::order::Order;
use super::reading::Captures;
use super::relate::Relation;
use super::through::{End, Fates, Origin};

/// Greatest number of flows reported separately; those with the fewest frames beyond it are combined.
const MOST_FLOWS: usize = 1_024;
/// Greatest number of uncrossed flows that are named.
const NAMED: usize = 50;
/// Greatest number of separate intervals of unknown fate.
const MOST_GAPS: usize = 20_000;
/// Length of header and FCS of a frame, in bytes.
#[expect(clippy::cast_possible_truncation, reason = "18")]
const OVERHEAD: u32 = FRAME_OVERHEAD as u32;

/// Least and greatest possible value of a figure.
pub type Interval = [i64; 2];

/// Report of a flow.
#[derive(Debug, Serialize)]
pub struct FlowReport {
    /// Flow number in the records.
    pub flow: u16,
    /// Name as in network analysers.
    pub name: String,
    /// Name of the capture before the device.
    pub from: String,
    /// Name of the capture behind it.
    pub to: String,
    /// Number of frames before the device.
    pub frames: u64,
    /// Number of frames that certainly came through, each with a residence time.
    pub matched: u64,
    /// Number of frames that may match any of several frames of the same content.
    pub ambiguous: u64,
    /// Number of frames that may have come through before the other capture began or after it ended.
    pub at_edge: u64,
    /// Number of frames that are on the other side too, outside the search window.
    pub outside: u64,
    /// Least and greatest number of frames lost, those at an edge and outside excluded.
    pub lost: [u64; 2],
    /// Least and greatest number of frames that came through.
    pub through: [u64; 2],
    /// Longest residence searched for its frames of recurring content, ps; longer than that of all flows if none of its
    /// own frames shows its residence.
    pub recurring_ps: i64,
    /// Least and greatest number of copies behind the device beyond the first.
    pub copies: [u64; 2],
    /// Number of frames behind the device without a frame before it.
    pub appeared: u64,
    /// Number of such frames near the edge of the capture before the device, which may have missed their origin.
    pub appeared_at_edge: u64,
    /// Number of lost frames for which one of the same flow and length, but of another content, appeared in time:
    /// possibly changed.
    pub perhaps_changed: u64,
    /// Number of frames of certain residence that left after one that came later.
    pub overtaken: u64,
    /// Residence times, ps; `null` if nothing came through, or if the offset of the clocks is unknown.
    pub residence: Option<Residence>,
    /// Greatest difference of its residence times, ps; `null` if nothing came through.
    pub varies_ps: Option<i64>,
}

/// Residence times of a flow, first octet in to first octet out, ps: each as least and greatest possible value.
#[derive(Debug, Serialize)]
pub struct Residence {
    /// Number of certain residence times.
    pub n: u64,
    /// The minimum.
    pub least: Interval,
    /// The median.
    pub median: Interval,
    /// The 99th percentile.
    pub p99: Interval,
    /// The maximum.
    pub greatest: Interval,
}

/// A flow that was not seen on the other side.
#[derive(Debug, Serialize)]
pub struct Uncrossed {
    /// Name as in network analysers.
    pub name: String,
    /// Name of the only capture that has it, or of the one it comes from.
    pub seen: String,
    /// Number of its frames.
    pub frames: u64,
}

/// Flow and sequence number of a frame in the records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub(super) flow: u16,
    pub(super) sequence: u32,
}

/// Plan, numbers and reports of all flows.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) campaign: Campaign,
    /// Number of each frame that comes from a side, by side and frame.
    pub(super) numbers: [Vec<Option<Number>>; 2],
    pub(super) flows: Vec<FlowReport>,
    pub(super) uncrossed: Vec<Uncrossed>,
    pub(super) uncrossed_all: [u64; 2],
    pub(super) gaps: Vec<Gap>,
}

/// Counters of a flow in the records.
#[derive(Debug, Default)]
struct Tally {
    frames: u64,
    ambiguous: u64,
    at_edge: u64,
    /// Frames outside the window: those of unique content, and the least number of others.
    outside: [u64; 2],
    through: [u64; 2],
    stemming: u64,
    appeared: u64,
    appeared_at_edge: u64,
    overtaken: u64,
    certain: Vec<i64>,
    uncertain: Vec<(Interval, bool)>,
    latest: Option<i64>,
    /// Time and length of lost frames, and of appeared ones.
    lost: Vec<(i64, u16)>,
    strangers: Vec<(i64, u16)>,
    span: Option<[i64; 2]>,
    length: u16,
    recurring: i64,
    doubtful: Vec<[i64; 2]>,
    was_doubtful: bool,
}

/// Summarises all flows. If the capture before the device has frames `doubled`, losses are unknown.
pub(super) fn summarise(
    order: &Order,
    read: &Captures,
    fates: &Fates,
    relation: &Relation,
    doubled: bool,
) -> Summary {
    let frames = frames_of(read, relation);
    let crossed: Vec<usize> = (0..read.flows.len()).filter(|&flow| fates.crossed(flow)).collect();
    let (places, tallied) = places(read, relation, &frames, &crossed);
    let mut tallies: Vec<Tally> = tallied.iter().map(|_| Tally::default()).collect();
    let mut numbers = [0, 1].map(|side: usize| vec![None; read.sides[side].frames.len()]);
    for &flow in &crossed {
        let tally = &mut tallies[places[flow]];
        tally.through = [0, 1].map(|end| tally.through[end] + fates.through[flow][end]);
        tally.stemming += fates.stemming[flow];
        tally.recurring = tally.recurring.max(relation.recurring[flow]);
        tally.outside = [0, 1].map(|kind| tally.outside[kind] + fates.outside[flow][kind]);
    }
    for (side, numbers) in numbers.iter_mut().enumerate() {
        for (place, frame) in read.sides[side].frames.iter().enumerate() {
            let flow = frame.flow as usize;
            let at = places[flow];
            let Some(tally) = tallies.get_mut(at) else { continue };
            if relation.from[flow] == side {
                let sequence = u32::try_from(tally.frames).unwrap_or(u32::MAX);
                numbers[place] = Some(Number { flow: number(at), sequence });
                tally.note(frame.time, frame.length, fates.ends[side][place]);
            } else {
                tally.note_origin(frame.time, frame.length, fates.origins[side][place]);
            }
        }
    }
    let names = [0, 1].map(|side: usize| read.sides[side].name.clone());
    let flows = tallies.iter_mut().zip(&tallied).enumerate().map(|(at, (tally, of))| {
        let flow = tally.report(number(at), of, &names, relation);
        // Frames that the capture behind the device dropped did come through.
        let surely = if doubled { 0 } else { flow.lost[0].saturating_sub(read.sides[1 - of.from].dropped) };
        FlowReport { lost: [surely, flow.lost[1]], ..flow }
    });
    let flows = flows.collect();
    let (uncrossed, uncrossed_all) = uncrossed(read, relation, fates);
    Summary {
        campaign: campaign(order, read, &tallies, &tallied),
        gaps: gaps(read, &mut tallies, &tallied),
        numbers,
        flows,
        uncrossed,
        uncrossed_all,
    }
}

/// Flow number in the records, from 1.
#[expect(clippy::cast_possible_truncation, reason = "there are at most `MOST_FLOWS` and two more")]
fn number(at: usize) -> u16 {
    at as u16 + 1
}

/// Number of frames before the device, by flow.
fn frames_of(read: &Captures, relation: &Relation) -> Vec<u64> {
    let mut counts = vec![0; read.flows.len()];
    for (side, captured) in read.sides.iter().enumerate() {
        for frame in &captured.frames {
            counts[frame.flow as usize] += u64::from(relation.from[frame.flow as usize] == side);
        }
    }
    counts
}

/// Flow of the records with its number of frames.
#[derive(Debug)]
struct Tallied {
    name: String,
    from: usize,
    in_udp: bool,
}

/// Index in the records' flows of each flow of the captures; flows with the most frames come first.
fn places(
    read: &Captures,
    relation: &Relation,
    frames: &[u64],
    crossed: &[usize],
) -> (Vec<usize>, Vec<Tallied>) {
    let mut by_size = crossed.to_vec();
    by_size.sort_by_key(|&flow| (std::cmp::Reverse(frames[flow]), flow));
    let mut places = vec![usize::MAX; read.flows.len()];
    let mut tallied: Vec<Tallied> = Vec::new();
    let rest = by_size.split_off(by_size.len().min(MOST_FLOWS));
    for flow in by_size {
        places[flow] = tallied.len();
        let key = &read.flows[flow];
        tallied.push(Tallied { name: key.name(), from: relation.from[flow], in_udp: key.in_udp() });
    }
    for side in 0..2 {
        let of_side: Vec<usize> = rest.iter().copied().filter(|&flow| relation.from[flow] == side).collect();
        for &flow in &of_side {
            places[flow] = tallied.len();
        }
        if !of_side.is_empty() {
            let name = format!("{} more flows with fewer frames", of_side.len());
            tallied.push(Tallied { name, from: side, in_udp: false });
        }
    }
    (places, tallied)
}

impl Tally {
    fn note(&mut self, time: i64, length: u16, end: End) {
        self.frames += 1;
        self.length = self.length.max(length);
        self.span = Some([self.span.map_or(time, |span| span[0]), time]);
        let mut is_doubtful = false;
        match end {
            End::Through(residence) => {
                let left = time.saturating_add(residence);
                self.overtaken += u64::from(self.latest.is_some_and(|latest| left < latest));
                self.latest = Some(self.latest.map_or(left, |latest| latest.max(left)));
                self.certain.push(residence);
            }
            End::Ambiguous { residence, may_be_lost } => {
                self.ambiguous += 1;
                self.uncertain.push((residence, may_be_lost));
                is_doubtful = true;
            }
            End::Edge => {
                self.at_edge += 1;
                is_doubtful = true;
            }
            End::Outside => is_doubtful = true,
            End::Lost => self.lost.push((time, length)),
            End::Elsewhere => {}
        }
        if is_doubtful {
            match self.doubtful.last_mut() {
                Some(last) if self.was_doubtful => last[1] = time,
                _ => self.doubtful.push([time, time]),
            }
        }
        self.was_doubtful = is_doubtful;
    }

    fn note_origin(&mut self, time: i64, length: u16, origin: Origin) {
        match origin {
            Origin::Known | Origin::Outside => {}
            Origin::Appeared => {
                self.appeared += 1;
                self.strangers.push((time, length));
            }
            Origin::Edge => self.appeared_at_edge += 1,
        }
    }

    fn report(&mut self, flow: u16, of: &Tallied, names: &[String; 2], relation: &Relation) -> FlowReport {
        let [once, others] = self.outside;
        let followed = (self.frames - self.at_edge).saturating_sub(once);
        let [fewest, most] = self.through;
        let residence = residence(&mut self.certain, &self.uncertain);
        let matched = self.certain.len() as u64;
        FlowReport {
            flow,
            name: of.name.clone(),
            from: names[of.from].clone(),
            to: names[1 - of.from].clone(),
            frames: self.frames,
            matched,
            ambiguous: self.ambiguous,
            at_edge: self.at_edge,
            outside: once + others,
            lost: [followed.saturating_sub(most + others), followed.saturating_sub(fewest)],
            through: self.through,
            recurring_ps: self.recurring,
            copies: [self.stemming.saturating_sub(most), self.stemming.saturating_sub(fewest)],
            appeared: self.appeared,
            appeared_at_edge: self.appeared_at_edge,
            perhaps_changed: self.perhaps_changed(relation.greatest),
            overtaken: self.overtaken,
            varies_ps: residence.as_ref().map(|times| times.greatest[1].saturating_sub(times.least[0])),
            residence: residence.filter(|_| relation.uncertainty.is_some()),
        }
    }

    /// Number of lost frames for which one of the same length appeared; each is used once, the earliest first.
    fn perhaps_changed(&self, greatest: i64) -> u64 {
        let mut free: BTreeMap<u16, Vec<i64>> = BTreeMap::new();
        for &(time, length) in self.strangers.iter().rev() {
            free.entry(length).or_default().push(time);
        }
        let fits = |&&(came, length): &&(i64, u16)| {
            let Some(times) = free.get_mut(&length) else { return false };
            while times.last().is_some_and(|left| *left < came) {
                times.pop();
            }
            let is_in_time = times.last().is_some_and(|left| *left <= came.saturating_add(greatest));
            if is_in_time {
                times.pop();
            }
            is_in_time
        };
        self.lost.iter().filter(fits).count() as u64
    }
}

/// Quantiles of residence times, of which some are only known to lie in an interval, and some may not exist.
fn residence(certain: &mut [i64], uncertain: &[(Interval, bool)]) -> Option<Residence> {
    certain.sort_unstable();
    let ends =
        |end: usize| certain.iter().copied().chain(uncertain.iter().map(move |(between, _)| between[end]));
    let (least, greatest) = (ends(0).min()?, ends(1).max()?);
    // A frame that may be lost is counted at its worst value: so no choice of the actual ones leads beyond the bounds.
    let side = |end: usize, worst: i64| {
        let put = uncertain
            .iter()
            .map(move |(between, may_be_lost)| if *may_be_lost { worst } else { between[end] });
        let mut all: Vec<i64> = certain.iter().copied().chain(put).collect();
        all.sort_unstable();
        all
    };
    let (low, high) = (side(0, least), side(1, greatest));
    let quantile = |share: f64| -> Interval {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
        let rank = |all: &[i64]| all[((all.len() as f64 * share).ceil() as usize).clamp(1, all.len()) - 1];
        [rank(&low), rank(&high)]
    };
    let sure = |end: usize| {
        let sure =
            uncertain.iter().filter(|(_, may_be_lost)| !may_be_lost).map(move |(between, _)| between[end]);
        certain.iter().copied().chain(sure)
    };
    Some(Residence {
        n: certain.len() as u64,
        least: [least, sure(1).min().unwrap_or(greatest)],
        median: quantile(0.5),
        p99: quantile(0.99),
        greatest: [sure(0).max().unwrap_or(least), greatest],
    })
}

fn uncrossed(read: &Captures, relation: &Relation, fates: &Fates) -> (Vec<Uncrossed>, [u64; 2]) {
    let mut seen = vec![[0_u64; 2]; read.flows.len()];
    for (side, captured) in read.sides.iter().enumerate() {
        for frame in &captured.frames {
            seen[frame.flow as usize][side] += 1;
        }
    }
    let none = (0..read.flows.len()).filter(|&flow| !fates.crossed(flow));
    let mut found: Vec<Uncrossed> = none
        .map(|flow| {
            let side = if seen[flow][relation.from[flow]] > 0 {
                relation.from[flow]
            } else {
                1 - relation.from[flow]
            };
            Uncrossed {
                name: read.flows[flow].name(),
                seen: read.sides[side].name.clone(),
                frames: seen[flow].iter().sum(),
            }
        })
        .collect();
    let all = [found.len() as u64, found.iter().map(|flow| flow.frames).sum()];
    found.sort_by(|one, other| (other.frames, &one.name).cmp(&(one.frames, &other.name)));
    found.truncate(NAMED);
    (found, all)
}

/// Arrival times of frames with unknown fate; for a capture that dropped frames, the fate of any missing frame is
/// unknown.
fn gaps(read: &Captures, tallies: &mut [Tally], tallied: &[Tallied]) -> Vec<Gap> {
    let below = i64::try_from(read.sides[0].base_picos % 1_000).unwrap_or_default();
    let mut gaps: Vec<Gap> = (0_u16..)
        .zip(&read.sides)
        .filter(|(_, side)| side.dropped > 0)
        .map(|(node, side)| Gap {
            node: Some(node),
            cause: format!("the capture dropped {} frames", side.dropped),
            ..Gap::default()
        })
        .collect();
    let all: usize = tallies.iter().map(|tally| tally.doubtful.len()).sum();
    for (at, (tally, of)) in tallies.iter_mut().zip(tallied).enumerate() {
        if all > MOST_GAPS {
            let most = (MOST_GAPS * tally.doubtful.len()).div_ceil(all);
            merge(&mut tally.doubtful, most);
        }
        gaps.extend(tally.doubtful.iter().map(|[from, to]| Gap {
            node: Some(u16::from(of.from == 0)),
            flows: vec![number(at)],
            from_ps: Some(from.saturating_add(below)),
            to_ps: Some(to.saturating_add(below)),
            cause: "frames of the same content, the edge of a capture, or content outside what was looked for".into(),
            ..Gap::default()
        }));
    }
    gaps
}

/// Joins neighbouring intervals until `most` are left; the time between them is then unknown as well.
fn merge(stretches: &mut Vec<[i64; 2]>, most: usize) {
    let together = stretches.len().div_ceil(most.max(1));
    let joined = stretches.chunks(together.max(1)).map(|some| [some[0][0], some[some.len() - 1][1]]);
    *stretches = joined.collect();
}

fn campaign(order: &Order, read: &Captures, tallies: &[Tally], tallied: &[Tallied]) -> Campaign {
    let nodes = (0..)
        .zip(&read.sides)
        .map(|(index, side)| {
            Node::new(index, &*side.name, NodeKind::EndSystem { host: wg_plan::HostModel::default() })
        })
        .collect();
    let rate = read.sides.iter().filter_map(|side| side.rate_bps).min().or(order.rate_bps);
    let link = Link {
        ends: [0, 1].map(|node| Attachment { node, port: 1 }),
        rate: rate.and_then(LineRate::new).unwrap_or(LineRate::GIGABIT),
        delay: Span::ZERO,
        network: NetworkId::A,
    };
    let network = Network { nodes, links: vec![link] };
    let spans: Vec<[i64; 2]> = read.sides.iter().map(super::reading::Side::span).collect();
    let [begin, end] = [spans.iter().map(|span| span[0]).min(), spans.iter().map(|span| span[1]).max()];
    let (begin, end) = (begin.unwrap_or_default(), end.unwrap_or_default());
    let mut run = Run { duration: Span::from_picos(end - begin), drain: Span::ZERO, ..Run::default() };
    for (at, (tally, of)) in tallies.iter().zip(tallied).enumerate() {
        let (id, path) = (number(at), [of.from, 1 - of.from].map(|node| u16::from(node == 1)));
        let protocol = if of.in_udp { Protocol::Udp } else { Protocol::Raw };
        let Some(route) = network.route(NetworkId::A, &path) else { continue };
        run.flows.push(Flow { from: path[0], to: path[1], ..Flow::plain(id, protocol, route) });
        run.receives.push(Receive { flow: id, on: path[1] });
        let [first, last] = tally.span.unwrap_or_default();
        let period = (last - first) / i64::try_from(tally.frames.max(2) - 1).unwrap_or(i64::MAX);
        run.sends.push(Send {
            offset: Span::from_picos(first - begin),
            fill: Fill::Sequential,
            ..Send::periodic(
                id,
                Span::from_picos(period.max(1)),
                u32::from(tally.length).saturating_sub(OVERHEAD),
                u32::try_from(tally.frames).unwrap_or(u32::MAX),
            )
        });
    }
    Campaign {
        schema: PLAN_SCHEMA,
        name: format!("{} to {}", read.sides[0].name, read.sides[1].name),
        seed: 0,
        bench: Bench::default(),
        network,
        axes: Vec::new(),
        repeats: 1,
        runs: vec![run],
        limits: Vec::new(),
        warnings: Vec::new(),
        synchronise: None,
    }
}
