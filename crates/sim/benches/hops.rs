//! Frame-hops per second on one core: an AFDX network of 58 end systems, 8 switches and 265 periodic flows, once as
//! virtual links (regulated, filtered, policed, checked for integrity) and once as UDP over commercial switches; and one of
//! 1000 end systems, 50 switches and 4500 virtual links.
//!
//! A frame-hop is one frame over one link. Every frame leaves a record at every observation point. Two sinks: one that
//! looks at each record and forgets it (what the simulator itself costs) and the segment files a run directory gets.
//! Speeds are per second of processor time, as Linux counts it for the one thread, system calls included: what others do on
//! the machine is not in it. Best of three, the two sinks in turn.
//!
//! `cargo bench -p wg-sim --bench hops -- [SECONDS] [small|udp|large]` simulates so many seconds (60) of traffic, in all three
//! networks or in one.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::Instant;

use wg_core::arinc664::{Bag, Contract};
use wg_frame::time::{RunTime, Span};
use wg_plan::wire::frame_length;
use wg_plan::{
    Attachment, Flow, HostModel, LineRate, Link, Network, NetworkId, Node, NodeIndex, NodeKind, Protocol,
    Receive, Route, Run, Send, SwitchKind, SwitchModel, VirtualLink,
};
use wg_record::Record;
use wg_sim::{SimError, SimReport, Sink, Spool, count_stages, simulate, simulate_on};

/// How large a network is.
#[derive(Clone, Copy)]
struct Size {
    end_systems: u16,
    switches: u16,
    flows: u16,
    /// Receivers lie at most so many end systems behind their sender.
    reach: u16,
    /// Rate between switches.
    backbone: u64,
}

const SMALL: Size = Size { end_systems: 58, switches: 8, flows: 265, reach: 57, backbone: RATE };
const LARGE: Size = Size { end_systems: 1_000, switches: 50, flows: 4_500, reach: 7, backbone: 10 * RATE };
/// What the three networks are called on the command line.
const NAMES: [&str; 3] = ["small", "udp", "large"];
const RATE: u64 = 100_000_000;
/// A build without optimisation measures nothing: it only shows, in the tests, that this runs.
const SMOKE: bool = cfg!(debug_assertions);
const ROUNDS: usize = if SMOKE { 1 } else { 3 };
/// Frame-hops per second on the network of virtual links, records in segment files.
const BAR: f64 = 5e6;

/// Looks at every record, keeps none.
#[derive(Default)]
struct Digest {
    sum: u64,
}

impl Sink for Digest {
    fn record(&mut self, record: &Record) {
        let seen = record.time.as_picos() as u64 ^ u64::from(record.sequence) << 32 ^ u64::from(record.node);
        self.sum = (self.sum ^ seen).wrapping_mul(0x100_0000_01b3) ^ u64::from(record.point.code());
    }

    fn advance(&mut self, _now: RunTime, _end: RunTime) -> Result<(), SimError> {
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().filter_map(|a| a.parse::<i64>().ok()).next();
    let seconds = seconds.unwrap_or(if SMOKE { 1 } else { 60 });
    let (rc, udp) = ((Protocol::Rc, "virtual links"), (Protocol::Udp, "UDP flows"));
    let mut nanos = Vec::new();
    // As many hops of each.
    let (millis, fewer) = (1_000 * seconds, if SMOKE { 20 } else { (1_000 * seconds / 16).max(1_000) });
    let only = std::env::args().find(|argument| NAMES.contains(&argument.as_str()));
    let networks = [(SMALL, rc, millis), (SMALL, udp, millis), (LARGE, rc, fewer)];
    for (name, (size, (protocol, what), millis)) in NAMES.into_iter().zip(networks) {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let Size { end_systems, switches, flows, .. } = size;
        println!(
            "{end_systems} end systems, {switches} switches, {flows} {what}, {} Mbit/s, {millis} ms simulated",
            RATE / 1_000_000
        );
        nanos.push(measure(size, protocol, millis)?);
    }
    if let [small, _, large] = nanos[..] {
        println!(
            "a hop of 1000 end systems takes {:.2} times as long as one of 58 (aim: at most 1.5)",
            large / small
        );
    }
    Ok(())
}

/// Nanoseconds of a hop, records in segment files.
fn measure(size: Size, protocol: Protocol, millis: i64) -> Result<f64, Box<dyn std::error::Error>> {
    let network = network(size, protocol);
    let run = run(size, &network, protocol, millis);
    let directory = std::env::temp_dir().join(format!("wiregauge-hops-{}", std::process::id()));
    let mut best = [f64::INFINITY; 2];
    let mut report = SimReport::default();
    for _ in 0..ROUNDS {
        let mut digest = Digest::default();
        let begun = cpu_s()?;
        report = simulate(&network, &run, &mut digest)?;
        best[0] = best[0].min(cpu_s()? - begun);
        std::hint::black_box(digest.sum);
        let begun = cpu_s()?;
        let mut spool = Spool::create(&directory, &network, &run)?;
        simulate(&network, &run, &mut spool)?;
        spool.finish()?;
        best[1] = best[1].min(cpu_s()? - begun);
        std::fs::remove_dir_all(&directory)?;
    }
    show("records looked at", &report, best[0]);
    show("records in segment files", &report, best[1]);
    share_out(&network, &run, &directory)?;
    let reached = report.frame_hops as f64 / best[1];
    if protocol == Protocol::Rc && size.end_systems == SMALL.end_systems {
        let verdict = if reached >= BAR { "at or above" } else { "BELOW" };
        println!("{verdict:>25} the bar of {:.1} M frame-hops/s with records in segment files", BAR / 1e6);
    }
    Ok(1e9 / reached)
}

/// What two threads gain for one network, beside what two runs of it at once gain on the same machine: the latter is all
/// that two cores can give.
fn share_out(network: &Network, run: &Run, directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let stages = count_stages(network, run, 2)?;
    let into = |name: &str, threads| -> Result<f64, SimError> {
        let spool = directory.join(name);
        let begun = Instant::now();
        let mut sink = Spool::create(&spool, network, run)?;
        simulate_on(network, run, threads, &mut sink, |_| Err(SimError::Stopped))?;
        sink.finish()?;
        let took = begun.elapsed().as_secs_f64();
        drop(std::fs::remove_dir_all(&spool));
        Ok(took)
    };
    let [mut one, mut both, mut staged] = [f64::INFINITY; 3];
    let mut work = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        let begun = all_cpu_s()?;
        one = one.min(into("one", 1)?);
        work[0] = work[0].min(all_cpu_s()? - begun);
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| into("other", 1));
            into("one", 1)?;
            other.join().unwrap_or(Err(SimError::Defect))
        })?;
        both = both.min(begun.elapsed().as_secs_f64());
        let begun = all_cpu_s()?;
        staged = staged.min(into("staged", 2)?);
        work[1] = work[1].min(all_cpu_s()? - begun);
    }
    let (gain, can) = (one / staged, 2.0 * one / both);
    println!(
        "{:>25}: {gain:.2} times as fast in {stages} stages; two runs at once gain {can:.2}: {:.2} of that (aim: at least 0.9); processor time {:.2} times that of one",
        "two threads",
        gain / can,
        work[1] / work[0]
    );
    Ok(())
}

/// Processor time of this thread so far, in seconds.
fn cpu_s() -> std::io::Result<f64> {
    let all = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = all.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.map(|nanos| nanos / 1e9).ok_or_else(|| std::io::Error::other("schedstat is not what it was"))
}

/// Processor time of all threads so far, in seconds.
fn all_cpu_s() -> std::io::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let ticks = stat.rsplit(')').next().map(|rest| rest.split_whitespace().skip(11).take(2));
    let ticks: f64 = ticks.into_iter().flatten().filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Ok(ticks / 100.0)
}

fn show(what: &str, report: &SimReport, seconds: f64) {
    let millions = |count: u64| count as f64 / seconds / 1e6;
    println!(
        "{what:>25}: {:5.2} M frame-hops/s  {:5.2} M events/s  {:5.2} M records/s  {:5.1} x real time  ({} hops in {seconds:.2} s of processor time)",
        millions(report.frame_hops),
        millions(report.events),
        millions(report.records),
        report.simulated_ps as f64 / 1e12 / seconds,
        report.frame_hops,
    );
}

/// Switches in a ring with chords across it, end systems spread evenly over them.
fn network(size: Size, protocol: Protocol) -> Network {
    let Size { end_systems, switches, backbone, .. } = size;
    let node = |index: u16| {
        if index < end_systems {
            Node::new(index, format!("es{index}"), NodeKind::EndSystem { host: HostModel::default() })
        } else {
            let name = format!("sw{}", index - end_systems);
            let cots = SwitchModel::cots(1 << 20);
            let afdx = SwitchModel {
                kind: SwitchKind::Arinc664,
                strict_priority: true,
                processing_delay: Span::from_micros(16),
                ..cots.clone()
            };
            Node::new(index, name, NodeKind::Switch(if protocol == Protocol::Rc { afdx } else { cots }))
        }
    };
    let mut used: BTreeMap<NodeIndex, u16> = BTreeMap::new();
    let mut port = |node: NodeIndex| {
        let last = used.entry(node).or_default();
        *last += 1;
        Attachment { node, port: *last }
    };
    let mut link = |a: NodeIndex, b: NodeIndex, rate_bps: u64| Link {
        ends: [port(a), port(b)],
        rate: LineRate::new(rate_bps).expect("a rate"),
        delay: Span::from_nanos(100),
        network: NetworkId::A,
    };
    let switch = |n: u16| end_systems + n % switches;
    let mut links: Vec<Link> = (0..end_systems).map(|es| link(es, switch(es), RATE)).collect();
    links.extend((0..switches).map(|n| link(switch(n), switch(n + 1), backbone)));
    links.extend((0..switches / 2).map(|n| link(switch(n), switch(n + switches / 2), backbone)));
    Network { nodes: (0..end_systems + switches).map(node).collect(), links }
}

fn run(size: Size, network: &Network, protocol: Protocol, millis: i64) -> Run {
    let duration = Span::from_millis(millis);
    let (mut flows, mut sends, mut receives) = (Vec::new(), Vec::new(), Vec::new());
    let neighbours = neighbours(network);
    for index in 0..size.flows {
        // Spread without a random source: strides that share no factor with what they run over.
        let from = index % size.end_systems;
        let to = (from + 1 + (u32::from(index) * 23 % u32::from(size.reach)) as u16) % size.end_systems;
        let bag = Bag::ALL[usize::from(index % 8)];
        let gap = bag.span();
        // The longest fits a frame of either kind.
        let payload = 18 + (u32::from(index) * 389) % (1_471 - 18 + 1);
        let id = index + 1;
        let virtual_link = (protocol == Protocol::Rc).then(|| VirtualLink {
            id,
            contract: Contract::new(bag, frame_length(protocol, None, payload) as u16).expect("a contract"),
            sub_links: 1,
            queue: 64,
            skew_max: Span::from_millis(5),
            redundancy_management: true,
            jitter: Span::from_micros(500),
            priority: VirtualLink::usual_priority(),
            number_within: false,
        });
        flows.push(Flow { virtual_link, ..Flow::plain(id, protocol, route(network, &neighbours, from, to)) });
        let offset = Span::from_micros(i64::from(index) * 7_919 % (gap.as_picos() / 1_000_000));
        let count = ((duration - offset).as_picos().max(0) / gap.as_picos()) as u32;
        sends.push(Send { offset, ..Send::periodic(id, gap, payload, count) });
        receives.push(Receive { flow: id, on: to });
    }
    Run { seed: 1, duration, drain: Span::from_millis(100), flows, sends, receives, ..Run::default() }
}

fn route(network: &Network, neighbours: &[Vec<NodeIndex>], from: NodeIndex, to: NodeIndex) -> Route {
    let mut before: BTreeMap<NodeIndex, NodeIndex> = BTreeMap::new();
    let mut front = VecDeque::from([to]);
    while let Some(at) = front.pop_front()
        && at != from
    {
        for &next in &neighbours[usize::from(at)] {
            if next != to && !before.contains_key(&next) {
                before.insert(next, at);
                front.push_back(next);
            }
        }
    }
    let nodes: Vec<NodeIndex> = std::iter::successors(Some(from), |at| before.get(at).copied()).collect();
    network.route(NetworkId::A, &nodes).expect("neighbours")
}

/// Neighbours of each node, in the order of the links.
fn neighbours(network: &Network) -> Vec<Vec<NodeIndex>> {
    let mut neighbours = vec![Vec::new(); network.nodes.len()];
    for [one, other] in network.links.iter().map(|link| link.ends.map(|end| end.node)) {
        neighbours[usize::from(one)].push(other);
        neighbours[usize::from(other)].push(one);
    }
    neighbours
}
