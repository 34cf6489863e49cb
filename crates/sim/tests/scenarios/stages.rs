//! Any number of threads gives the same bytes.

use std::time::Duration;

use wg_core::arinc664::{Bag, Contract};
use wg_core::queue::Capacity;
use wg_frame::time::{RunTime, Span};
use wg_plan::random::{Purpose, Stream};
use wg_plan::{
    Attachment, FaultKind, Flow, ForwardingMode, HostModel, LineRate, Link, LinkFault, LinkFaultKind,
    Network, NetworkId, Node, NodeIndex, NodeKind, Protocol, Relay, Run, Send, SwitchKind, SwitchModel, Turn,
    Victims, VirtualLink, VlanTag,
};
use wg_record::Record;
use wg_sim::{Kept, SimError, SimReport, Sink, count_stages, simulate, simulate_on};

use crate::{run, star, switch, way};

/// Numbers of threads that are compared with one.
const THREADS: [usize; 3] = [2, 3, 8];
/// Random networks that are tried.
const NETWORKS: u32 = 120;

/// Asserts that all numbers of threads give these records, truth and report; returns the most stages.
pub(crate) fn are_the_same(network: &Network, run: &Run, kept: &Kept, report: &SimReport) -> usize {
    let mut most = 1;
    for threads in THREADS {
        let stages = count_stages(network, run, threads).expect("a sound plan");
        assert!(stages <= threads);
        if stages == 1 {
            continue;
        }
        let (mut staged, mut repeated) = (Kept::default(), false);
        let own = simulate_on(network, run, threads, &mut staged, |kept| {
            (*kept, repeated) = (Kept::default(), true);
            Ok(())
        });
        let own = own.expect("a sound plan");
        most = most.max(if repeated { 1 } else { stages });
        let pairs = staged.records.iter().zip(&kept.records);
        for (at, (one, other)) in pairs.enumerate() {
            assert_eq!(one, other, "{threads} threads, record {at} of {}", kept.records.len());
        }
        assert_eq!(staged.records.len(), kept.records.len(), "{threads} threads");
        assert!(staged.truth == kept.truth, "{threads} threads: another truth");
        // How often a node's timer is set depends on what else happens at its instant.
        let own = SimReport { events: report.events, ..own };
        assert_eq!(&own, report, "{threads} threads");
    }
    most
}

/// Numbers drawn for a random network.
struct Draw(Stream);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() % n as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// A tree of switches with end systems, the links of each network its own; `twice`: end systems are on both networks.
struct Tree {
    network: Network,
    hosts: u16,
    switches: u16,
    /// The switch above each switch but the first, by its place.
    above: Vec<usize>,
    twice: bool,
}

impl Tree {
    fn new(draw: &mut Draw, critical: bool) -> Self {
        let (hosts, switches) = (3 + draw.below(6) as u16, 1 + draw.below(4) as u16);
        let twice = critical && draw.below(2) == 0;
        let above: Vec<usize> = (1..usize::from(switches)).map(|at| draw.below(at)).collect();
        let model = SwitchModel {
            kind: if critical { SwitchKind::Arinc664 } else { SwitchKind::Cots },
            strict_priority: critical || draw.below(2) == 0,
            forwarding_mode: draw.of(&[ForwardingMode::StoreAndForward, ForwardingMode::CutThrough]),
            processing_delay: Span::from_micros(draw.of(&[0, 2, 16])),
            shared_buffer: draw.of(&[None, None, None, Some(Capacity::bytes(4_000))]),
            ..SwitchModel::cots(draw.of(&[700, 3_000, 1 << 20]))
        };
        let ideal = HostModel::ideal();
        let host = draw.of(&[0, 1]);
        let mut nodes: Vec<Node> = (0..hosts)
            .map(|index| {
                let host = if host == 0 { ideal.clone() } else { HostModel::default() };
                Node::new(index, format!("h{index}"), NodeKind::EndSystem { host })
            })
            .collect();
        let planes = 1 + u16::from(twice);
        nodes.extend(
            (hosts..hosts + planes * switches)
                .map(|index| Node::new(index, format!("s{index}"), NodeKind::Switch(model.clone()))),
        );
        let mut used = vec![0; nodes.len()];
        let mut port = |node: u16| {
            used[usize::from(node)] += 1;
            Attachment { node, port: used[usize::from(node)] }
        };
        let mut links = Vec::new();
        for plane in 0..planes {
            let network = if plane == 0 { NetworkId::A } else { NetworkId::B };
            let first = hosts + plane * switches;
            let mut link = |one, other, rate_bps| {
                let rate = LineRate::new(rate_bps).expect("a rate");
                links.push(Link {
                    ends: [port(one), port(other)],
                    rate,
                    delay: Span::from_nanos(100),
                    network,
                });
            };
            (0..hosts).for_each(|host| link(host, first + host % switches, 100_000_000));
            let rate = draw.of(&[100_000_000, 1_000_000_000]);
            let below = (1..).zip(&above);
            below.for_each(|(at, above): (u16, _)| link(first + at, first + *above as u16, rate));
        }
        Self { network: Network { nodes, links }, hosts, switches, above, twice }
    }

    /// The nodes from a host to another, over the switches of a plane.
    fn nodes(&self, from: u16, to: u16, plane: u16) -> Vec<NodeIndex> {
        let up = |host: u16| {
            let first = usize::from(host % self.switches);
            std::iter::successors(Some(first), |at| (*at > 0).then(|| self.above[at - 1])).collect::<Vec<_>>()
        };
        let (mut one, mut other) = (up(from), up(to));
        while one.len() > 1 && other.len() > 1 && one[one.len() - 2] == other[other.len() - 2] {
            one.pop();
            other.pop();
        }
        other.pop();
        let switch = |at: usize| self.hosts + plane * self.switches + at as u16;
        let between = one.into_iter().chain(other.into_iter().rev()).map(switch);
        [from].into_iter().chain(between).chain([to]).collect()
    }

    fn flow(&self, draw: &mut Draw, id: u16, critical: bool) -> Flow {
        let from = draw.below(self.hosts.into()) as u16;
        let to = (from + 1 + draw.below(usize::from(self.hosts) - 1) as u16) % self.hosts;
        let route = |plane, to| {
            let network = if plane == 0 { NetworkId::A } else { NetworkId::B };
            self.network.route(network, &self.nodes(from, to, plane)).expect("neighbours")
        };
        let mut flow = Flow::plain(id, if critical { Protocol::Rc } else { Protocol::Udp }, route(0, to));
        flow.network = (!self.twice).then_some(NetworkId::A);
        if self.twice {
            flow.routes.push(route(1, to));
        }
        let also = (to + 1) % self.hosts;
        if also != from && draw.below(4) == 0 {
            flow.also_to = vec![also];
            flow.routes.extend((0..=u16::from(self.twice)).map(|plane| route(plane, also)));
        }
        if critical {
            flow.virtual_link = Some(VirtualLink {
                id,
                contract: Contract::new(draw.of(&Bag::ALL[..2]), 300).expect("a contract"),
                sub_links: 1,
                queue: 4,
                skew_max: Span::from_millis(5),
                redundancy_management: true,
                jitter: Span::from_micros(500),
                priority: VirtualLink::usual_priority(),
                number_within: false,
            });
        } else if draw.below(2) == 0 {
            flow.vlan = Some(VlanTag { id: 0, priority: draw.below(8) as u8 });
        }
        flow
    }
}

/// A random network with its run.
fn random(seed: u32) -> (Network, Run) {
    let mut draw = Draw(Stream::new(7, Purpose::Backoff, seed));
    let critical = draw.below(2) == 0;
    let tree = Tree::new(&mut draw, critical);
    let flows: Vec<(Flow, Send)> = (1..=2 + draw.below(12) as u16)
        .map(|id| {
            let flow = tree.flow(&mut draw, id, critical);
            let period = Span::from_micros(draw.of(&[250, 500, 1_000]));
            let mut send = Send::periodic(id, period, 30 + draw.below(200) as u32, 60);
            send.offset = Span::from_micros(draw.of(&[0, 0, 100, 137]));
            (flow, send)
        })
        .collect();
    let mut run = run(flows);
    run.duration = Span::from_millis(60);
    run.drain = Span::from_millis(draw.of(&[0, 1, 100]));
    run.seed = u64::from(seed);
    let plain = |flow: &&Flow| !critical && flow.also_to.is_empty();
    if draw.below(3) == 0
        && let Some(flow) = run.flows.iter().find(plain)
    {
        let on = flow.receivers().next().expect("a receiver");
        let relay = Relay {
            flow: flow.id,
            on,
            vl: None,
            back: None,
            through: draw.of(&[Turn::Servicing, Turn::Task]),
            faults: Vec::new(),
            detours: Vec::new(),
        };
        run.receives.retain(|receive| receive.flow != relay.flow);
        run.relays.push(relay);
    }
    // A second sender of a flow.
    if draw.below(3) == 0 {
        let again = Send { offset: Span::from_micros(77), ..run.sends[0].clone() };
        run.sends.insert(1, again);
    }
    if draw.below(3) == 0 {
        let kind = draw.of(&[
            LinkFaultKind::Loss,
            LinkFaultKind::Duplicate,
            LinkFaultKind::Corrupt,
            LinkFaultKind::Delay { by: Span::from_micros(300) },
        ]);
        let link = draw.below(tree.network.links.len()) as u32;
        let whom = Victims::Share { ppm: 200_000 };
        run.link_faults.push(LinkFault { link, sent_by: None, kind, whom, from: Span::ZERO, until: None });
    }
    (tree.network, run)
}

/// Small periods with few offsets, so that much happens at one instant.
#[test]
fn random_networks_give_the_same_bytes_on_any_number_of_threads() {
    let mut divided = 0;
    for seed in 0..NETWORKS {
        let (network, run) = random(seed);
        let mut kept = Kept::default();
        let report = simulate(&network, &run, &mut kept).expect("a sound plan");
        assert!(report.records > 0);
        divided += u32::from(are_the_same(&network, &run, &kept, &report) > 1);
    }
    assert!(divided > NETWORKS / 2, "only {divided} of {NETWORKS} networks could be divided");
}

/// Takes records until it was asked so many times whether to go on.
struct StopsAfter(u32);

impl Sink for StopsAfter {
    fn record(&mut self, _record: &Record) {}

    fn advance(&mut self, _now: RunTime, _end: RunTime) -> Result<(), SimError> {
        self.0 = self.0.checked_sub(1).ok_or(SimError::Stopped)?;
        Ok(())
    }
}

/// Whoever takes the records stops at any time, as for Ctrl-C or a full disk: no stage waits for another for ever.
#[test]
fn a_sink_that_stops_ends_every_stage() {
    let mut stopped = 0;
    for seed in 0..20 {
        let (network, run) = random(seed);
        if count_stages(&network, &run, 3).expect("a sound plan") == 1 {
            continue;
        }
        for after in [0, 1, 2, 5] {
            let (network, run) = (network.clone(), run.clone());
            let (done, outcome) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let mut sink = StopsAfter(after);
                let again = |sink: &mut StopsAfter| {
                    *sink = StopsAfter(after);
                    Ok(())
                };
                done.send(simulate_on(&network, &run, 3, &mut sink, again).map(drop))
            });
            match outcome.recv_timeout(Duration::from_mins(2)).expect("no thread waits for ever") {
                Ok(()) => {}
                Err(SimError::Stopped) => stopped += 1,
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(stopped >= 10, "only {stopped} were stopped");
}

/// A relay sends to a station that no table knows, and every switch floods the frame: also into earlier stages.
#[test]
fn a_frame_that_goes_where_no_route_leads_is_simulated_on_one_thread() {
    let network = star(4, switch(), 100_000_000);
    let flows = [(1, 0, 1), (2, 2, 3)].map(|(id, from, to)| {
        let flow = Flow::plain(id, Protocol::Udp, way([from, 4, to]));
        (flow, Send::periodic(id, Span::from_millis(1), 100, 50))
    });
    let mut run = run(flows.to_vec());
    run.receives.retain(|receive| receive.flow != 1);
    run.relays.push(Relay {
        flow: 1,
        on: 1,
        vl: None,
        back: None,
        through: Turn::Servicing,
        faults: vec![wg_plan::Fault { sequences: vec![(7, 7)], kind: FaultKind::Misdirect { to: 2 } }],
        detours: Vec::new(),
    });
    let mut kept = Kept::default();
    let report = simulate(&network, &run, &mut kept).expect("a sound plan");
    assert!(count_stages(&network, &run, 2).expect("a sound plan") == 2);
    assert_eq!(are_the_same(&network, &run, &kept, &report), 1, "it was repeated");
}
