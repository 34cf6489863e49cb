//! Whole runs of small networks: what is done to the traffic on purpose, and that the records and the truth tell it.
#![forbid(unsafe_code)]

mod captures;
mod clocks;
#[path = "../../../core/tests/contracts/pacing.rs"]
mod contract;
mod converged;
mod critical;
mod disturbances;
mod frer;
mod journeys;
mod live;
mod networks;
mod pacing;
mod ptp;
mod relays;
mod replays;
mod stages;
mod synchronising;

use wg_frame::time::Span;
use wg_plan::{
    Attachment, Flow, Hop, HostModel, LineRate, Link, Network, NetworkId, Node, NodeIndex, NodeKind, Receive,
    Route, Run, Send, SwitchModel,
};
use wg_record::{DropReason, Point, Record, Truth, TruthKind};
use wg_sim::{Kept, SimReport, simulate};

/// `hosts` ideal end systems around node `hosts`; each on port 1, its index + 1 at the centre.
fn star(hosts: u16, centre: NodeKind, rate_bps: u64) -> Network {
    let host =
        |index| Node::new(index, format!("h{index}"), NodeKind::EndSystem { host: HostModel::ideal() });
    let mut nodes: Vec<Node> = (0..hosts).map(host).collect();
    nodes.push(Node::new(hosts, "centre", centre));
    let link = |index: NodeIndex| Link {
        ends: [Attachment { node: index, port: 1 }, Attachment { node: hosts, port: index + 1 }],
        rate: LineRate::new(rate_bps).expect("a rate"),
        delay: Span::from_nanos(500),
        network: NetworkId::A,
    };
    Network { nodes, links: (0..hosts).map(link).collect() }
}

/// Through the centre of a [`star`].
fn way([from, centre, to]: [NodeIndex; 3]) -> Route {
    let end = |node, port| Attachment { node, port };
    let up = Hop { link: from.into(), from: end(from, 1), to: end(centre, from + 1) };
    let down = Hop { link: to.into(), from: end(centre, to + 1), to: end(to, 1) };
    Route { network: NetworkId::A, hops: vec![up, down] }
}

fn switch() -> NodeKind {
    NodeKind::Switch(SwitchModel::cots(1 << 20))
}

/// A run of `flows`, each with its sender, for a second.
fn run(flows: Vec<(Flow, Send)>) -> Run {
    let receives = flows
        .iter()
        .flat_map(|(flow, _)| flow.receivers().map(|on| Receive { flow: flow.id, on }).collect::<Vec<_>>());
    let receives = receives.collect();
    let (flows, sends) = flows.into_iter().unzip();
    let (duration, drain) = (Span::from_millis(1_000), Span::from_millis(100));
    Run { seed: 5, duration, drain, flows, sends, receives, ..Run::default() }
}

fn simulated(network: &Network, run: &Run) -> (Kept, SimReport) {
    let mut kept = Kept::default();
    let report = simulate(network, run, &mut kept).expect("a sound plan");
    live::is_the_same(network, run);
    stages::are_the_same(network, run, &kept, &report);
    (kept, report)
}

fn at(kept: &Kept, point: Point) -> Vec<Record> {
    kept.records.iter().copied().filter(|record| record.point == point).collect()
}

fn sequences(records: &[Record]) -> Vec<u32> {
    records.iter().map(|record| record.sequence).collect()
}

fn dropped(kept: &Kept, reason: DropReason) -> Vec<Record> {
    at(kept, Point::Drop).into_iter().filter(|record| record.reason == reason).collect()
}

fn truths(kept: &Kept, kind: TruthKind) -> Vec<Truth> {
    kept.truth.iter().copied().filter(|truth| truth.kind == kind).collect()
}
