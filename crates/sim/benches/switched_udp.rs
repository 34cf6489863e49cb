//! The network and traffic of `benches/ns3/switched_udp.cc`, for a comparison in one run; keep the two alike.
//!
//! 32 end systems on four switches in a star, 1 Gbit/s, 100 ns; 128 periodic UDP flows. Every frame leaves its records in
//! segment files, as in a run of `wiregauge`; hosts and switches take no time, as theirs do.
//!
//! `cargo bench -p wg-sim --bench switched_udp [-- SECONDS]` simulates so many seconds (10) of traffic and prints one
//! JSON object; `python -m benchmarks.ns3.compare` runs both.
#![forbid(unsafe_code)]

use wg_frame::time::Span;
use wg_plan::{
    Attachment, Flow, HostModel, LineRate, Link, Network, NetworkId, Node, NodeKind, Protocol, Receive, Run,
    Send, SwitchModel,
};
use wg_sim::{Spool, simulate};

const END_SYSTEMS: u16 = 32;
const SWITCHES: u16 = 4;
const FLOWS: u16 = 128;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().filter_map(|a| a.parse::<i64>().ok()).next();
    // A build without optimisation measures nothing: it only shows, in the tests, that this runs.
    let seconds = seconds.unwrap_or(if cfg!(debug_assertions) { 1 } else { 10 });
    let network = network();
    let run = run(&network, seconds);
    let directory = std::env::temp_dir().join(format!("wiregauge-switched-udp-{}", std::process::id()));
    let begun = cpu_s()?;
    let mut spool = Spool::create(&directory, &network, &run)?;
    let report = simulate(&network, &run, &mut spool)?;
    spool.finish()?;
    let cpu = cpu_s()? - begun;
    std::fs::remove_dir_all(&directory)?;
    println!(
        r#"{{"simulator": "wiregauge", "frame_hops": {}, "cpu_s": {cpu}, "peak_rss_kib": {}}}"#,
        report.frame_hops,
        peak_rss_kib().unwrap_or(0)
    );
    Ok(())
}

/// Processor time of this thread so far, in seconds, as Linux counts it: what others do on the machine is not in it.
fn cpu_s() -> std::io::Result<f64> {
    let all = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = all.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.map(|nanos| nanos / 1e9).ok_or_else(|| std::io::Error::other("schedstat is not what it was"))
}

/// Most memory this process has had, as Linux counts it; none elsewhere.
fn peak_rss_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// Switch of an end system; the first switch for any other.
fn uplink(node: u16) -> u16 {
    if node < END_SYSTEMS { END_SYSTEMS + node % SWITCHES } else { END_SYSTEMS }
}

fn network() -> Network {
    let nodes = (0..END_SYSTEMS + SWITCHES).map(|index| {
        if index < END_SYSTEMS {
            Node::new(index, format!("es{index}"), NodeKind::EndSystem { host: HostModel::ideal() })
        } else {
            let name = format!("sw{}", index - END_SYSTEMS);
            Node::new(index, name, NodeKind::Switch(SwitchModel::cots(1 << 20)))
        }
    });
    // The port towards the uplink is the first; those of a switch for what is at it follow.
    let links = (0..END_SYSTEMS).chain(END_SYSTEMS + 1..END_SYSTEMS + SWITCHES).map(|node| Link {
        ends: [Attachment { node, port: 1 }, Attachment { node: uplink(node), port: 2 + node }],
        rate: LineRate::GIGABIT,
        delay: Span::from_nanos(100),
        network: NetworkId::A,
    });
    Network { nodes: nodes.collect(), links: links.collect() }
}

fn run(network: &Network, seconds: i64) -> Run {
    let duration = Span::from_millis(1_000 * seconds);
    let (mut flows, mut sends, mut receives) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..FLOWS {
        let from = index % END_SYSTEMS;
        let to = (from + 1 + index * 7 % (END_SYSTEMS - 1)) % END_SYSTEMS;
        let mut path = vec![from, uplink(from), END_SYSTEMS, uplink(to), to];
        // Not over the first switch where both are at one, and once where either is at the first.
        if uplink(from) == uplink(to) {
            path.drain(2..4);
        }
        path.dedup();
        let period = Span::from_millis(1 << (index % 8));
        let offset = Span::from_micros(i64::from(index) * 7_919 % (period.as_picos() / 1_000_000));
        let payload = 18 + u32::from(index) * 389 % 1_455;
        let count = ((duration - offset).as_picos() / period.as_picos()) as u32;
        let id = index + 1;
        let route = network.route(NetworkId::A, &path).expect("neighbours");
        flows.push(Flow::plain(id, Protocol::Udp, route));
        sends.push(Send { offset, ..Send::periodic(id, period, payload, count) });
        receives.push(Receive { flow: id, on: to });
    }
    Run { seed: 1, duration, drain: Span::from_millis(100), flows, sends, receives, ..Run::default() }
}
