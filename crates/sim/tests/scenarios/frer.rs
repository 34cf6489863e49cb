//! Frame replication and elimination (IEEE Std 802.1CB) over rings: cuts lose nothing, copies are seen and removed.

use wg_frame::classify::classify;
use wg_frame::time::Span;
use wg_plan::{
    Attachment, Capture, Flow, Frer, Hop, HostModel, Incident, IncidentKind, IndividualRecovery, LineRate,
    Link, Network, NetworkId, Node, NodeIndex, NodeKind, Protocol, Route, Run, Send,
};
use wg_record::{DropReason, Point};
use wg_sim::{Kept, RecoveryReport, SimReport};

use crate::captures::packets;
use crate::{at, dropped, run, sequences, simulated, switch};

/// End systems of a ring, evenly at its switches, each on port 3 of its own.
const HOSTS: u16 = 3;

/// A ring of so many switches, which come behind the end systems. Link `i` leads from switch `i`, port 1, to the next, port 2;
/// the links of the end systems come behind.
fn ring(switches: u16) -> Network {
    let host =
        |index| Node::new(index, format!("h{index}"), NodeKind::EndSystem { host: HostModel::ideal() });
    let relay = |index| Node::new(HOSTS + index, format!("r{index}"), switch());
    let nodes = (0..HOSTS).map(host).chain((0..switches).map(relay)).collect();
    let end = |node, port| Attachment { node, port };
    let link = |ends| Link {
        ends,
        rate: LineRate::new(1_000_000_000).expect("a rate"),
        delay: Span::from_nanos(500),
        network: NetworkId::A,
    };
    let round = (0..switches).map(|at| link([end(HOSTS + at, 1), end(HOSTS + (at + 1) % switches, 2)]));
    let out = (0..HOSTS).map(|host| link([end(host, 1), end(HOSTS + home(host, switches), 3)]));
    Network { nodes, links: round.chain(out).collect() }
}

/// The switch of an end system, by number.
fn home(host: u16, switches: u16) -> u16 {
    host * switches / HOSTS
}

/// From one end system to another, one way round or the other.
fn round(network: &Network, from: NodeIndex, to: NodeIndex, backwards: bool) -> Route {
    let switches = (network.nodes.len() as u16) - HOSTS;
    let hop = |link: u16, reversed: bool| {
        let ends = network.links[usize::from(link)].ends;
        let hop = Hop { link: link.into(), from: ends[0], to: ends[1] };
        if reversed { hop.reversed() } else { hop }
    };
    let (mut here, there) = (home(from, switches), home(to, switches));
    let mut hops = vec![hop(switches + from, false)];
    while here != there {
        if backwards {
            here = (here + switches - 1) % switches;
            hops.push(hop(here, true));
        } else {
            hops.push(hop(here, false));
            here = (here + 1) % switches;
        }
    }
    hops.push(hop(switches + to, true));
    Route { network: NetworkId::A, hops }
}

/// Both ways round, copied and removed at the ends, or at their switches.
fn both_ways(network: &Network, id: u16, [from, to]: [NodeIndex; 2], at_switches: bool) -> Flow {
    let switches = (network.nodes.len() as u16) - HOSTS;
    let node = |end| if at_switches { HOSTS + home(end, switches) } else { end };
    let protocol = if id.is_multiple_of(2) { Protocol::Udp } else { Protocol::Raw };
    let routes = [false, true].map(|backwards| round(network, from, to, backwards));
    let frer = Frer {
        replicate_at: node(from),
        eliminate_at: node(to),
        intermediate: false,
        history_length: Some(8),
        reset: Span::from_millis(2_000),
        individual: None,
        latent_errors: None,
    };
    Flow { routes: routes.to_vec(), frer: Some(frer), ..Flow::plain(id, protocol, routes[0].clone()) }
}

/// Messages of each flow.
const MESSAGES: u32 = 60;

fn sent(flows: Vec<Flow>) -> Run {
    let send = |flow: &Flow| Send::periodic(flow.id, Span::from_micros(500), 200, MESSAGES);
    Run {
        duration: Span::from_millis(30),
        ..run(flows
            .into_iter()
            .map(|flow| {
                let send = send(&flow);
                (flow, send)
            })
            .collect())
    }
}

fn cut(link: u32, from: i64, until: Option<i64>) -> Incident {
    let until = until.map(Span::from_micros);
    Incident { at: Span::from_micros(from), kind: IncidentKind::Cut { link, until } }
}

/// The messages of each flow that reached their receiver, in order.
fn received(kept: &Kept, flow: u16) -> Vec<u32> {
    let mut all = at(kept, Point::ApplicationReceive);
    all.retain(|record| record.flow == flow);
    sequences(&all)
}

fn counted(report: &SimReport, flow: u16) -> RecoveryReport {
    report.frer[&flow].recovery
}

#[test]
fn any_link_of_a_ring_of_thirty_may_be_cut() {
    let network = ring(30);
    let flows = |copied: bool| {
        let pairs = [[0, 1], [1, 0], [2, 1], [0, 2]];
        let flows = (1..).zip(pairs).map(|(id, ends)| {
            let flow = both_ways(&network, id, ends, id > 2);
            if copied { flow } else { Flow::plain(id, flow.protocol, flow.routes[0].clone()) }
        });
        sent(flows.collect())
    };
    let all: Vec<u32> = (0..MESSAGES).collect();
    let mut lost_without = 0;
    for link in 0..30 {
        // In the middle of the run and for good; and for a while, in which more messages go than a history holds.
        for until in [None, Some(20_000)] {
            let mut run = flows(true);
            run.incidents = vec![cut(link, 10_003, until)];
            let (kept, report) = simulated(&network, &run);
            for flow in 1..=4 {
                assert_eq!(received(&kept, flow), all, "flow {flow}, link {link} cut");
                let counts = counted(&report, flow);
                assert_eq!((counts.passed, counts.rogue, counts.lost), (u64::from(MESSAGES), 0, 0));
                let came: u64 = report.frer[&flow].came.iter().sum();
                assert_eq!(came, counts.passed + counts.discarded);
                assert!(came < 2 * u64::from(MESSAGES), "the cut is on one of the two ways round");
            }
            assert_eq!(at(&kept, Point::Drop).len(), dropped(&kept, DropReason::SecondCopy).len());
        }
        let mut run = flows(false);
        run.incidents = vec![cut(link, 10_003, None)];
        let (kept, _) = simulated(&network, &run);
        lost_without += (1..=4).filter(|flow| received(&kept, *flow).len() < all.len()).count();
    }
    // What one way alone loses: 10, 20, 20 and 20 of 30 links are on the way.
    assert_eq!(lost_without, 10 + 20 + 20 + 20);
    // An end system has one link: the exception.
    let mut run = flows(true);
    run.incidents = vec![cut(30, 10_003, None)];
    let (kept, _) = simulated(&network, &run);
    assert!(received(&kept, 1).len() < all.len());
}

#[test]
fn every_message_comes_once_and_the_second_copy_ends_where_it_is_told() {
    let network = ring(6);
    for at_switches in [false, true] {
        let flow = both_ways(&network, 1, [0, 1], at_switches);
        let frer = flow.frer.expect("copies");
        let (kept, report) = simulated(&network, &sent(vec![flow]));
        assert_eq!(received(&kept, 1), (0..MESSAGES).collect::<Vec<_>>());
        let copies = dropped(&kept, DropReason::SecondCopy);
        assert_eq!(copies.len(), MESSAGES as usize);
        assert!(copies.iter().all(|copy| copy.node == frer.eliminate_at && copy.length == 224));
        let sums = RecoveryReport {
            passed: MESSAGES.into(),
            discarded: MESSAGES.into(),
            ..RecoveryReport::default()
        };
        assert_eq!(counted(&report, 1), sums);
        assert_eq!(report.frer[&1].came, [u64::from(MESSAGES); 2]);
        // The way forwards leads over 2 links of the ring, backwards over 4.
        let entered = at(&kept, Point::SwitchIn).len() as u32;
        assert_eq!(entered, MESSAGES * if at_switches { 1 + 2 + 4 } else { 3 + 5 });
        // A frame of 200 B of payload, 18 B round it and, between where it is copied and where copies are removed, 6 B of tag.
        let lengths = |point| at(&kept, point).iter().map(|record| record.length).collect::<Vec<_>>();
        assert!(lengths(Point::ApplicationReceive).iter().all(|length| *length == 218));
        let wire = if at_switches { 218 } else { 224 };
        assert!(lengths(Point::WireSend).iter().all(|length| *length == wire));
    }
}

#[test]
fn captures_show_the_tag() {
    let network = ring(6);
    let mut run = sent(vec![both_ways(&network, 1, [0, 1], true), both_ways(&network, 2, [0, 1], false)]);
    // At the first switch behind the one that copies flow 1.
    run.captures = vec![Capture { on: HOSTS + 1, snap: 2_000 }, Capture { on: 0, snap: 2_000 }];
    let (kept, _) = simulated(&network, &run);
    let mut numbers = [Vec::new(), Vec::new()];
    for packet in packets(&kept.captures[&(HOSTS + 1)]) {
        let whole = packet.bytes.len() - 4;
        let (frame, fcs) = packet.bytes.split_at(whole);
        assert_eq!(crc32fast::hash(frame).to_le_bytes(), fcs);
        let seen = classify(frame).expect("a frame by layers");
        let [high, low] = [frame[4], frame[5]];
        let flow = u16::from_be_bytes([high, low]);
        assert_eq!(seen.destination, Frer::address(flow, 1));
        numbers[usize::from(flow) - 1].push(seen.redundancy.expect("a tag"));
    }
    for numbers in numbers {
        // Each is seen as it comes and as it leaves.
        let mut once = numbers.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!((numbers.len(), once), (2 * MESSAGES as usize, (0..MESSAGES as u16).collect()));
    }
    // Flow 1 leaves its sender without a tag, flow 2 twice with one.
    let tagged: Vec<bool> = packets(&kept.captures[&0])
        .iter()
        .map(|packet| {
            classify(&packet.bytes[..packet.bytes.len() - 4]).expect("a frame").redundancy.is_some()
        })
        .collect();
    let count = |wanted| tagged.iter().filter(|tagged| **tagged == wanted).count();
    assert_eq!((count(false), count(true)), (MESSAGES as usize, 2 * MESSAGES as usize));
}

#[test]
fn after_a_silence_longer_than_the_history_nothing_passes_before_the_reset() {
    let network = ring(6);
    let cuts = |reset| {
        let mut flow = both_ways(&network, 1, [0, 1], false);
        if let Some(frer) = &mut flow.frer {
            frer.reset = Span::from_millis(reset);
        }
        let mut run = sent(vec![flow]);
        // The link of the receiver, for messages 20 to 39.
        run.incidents = vec![cut(7, 9_900, Some(19_900))];
        simulated(&network, &run)
    };
    // The timer runs out within the silence of 10 ms: message 40 is accepted.
    let (kept, report) = cuts(5);
    assert_eq!(received(&kept, 1).len(), 40);
    assert_eq!((counted(&report, 1).rogue, counted(&report, 1).resets), (0, 2));
    // It does not: 40 is 21 behind 19, and the history is 8. Every copy is rogue until 8 ms later no more.
    let (kept, report) = cuts(18);
    let first = received(&kept, 1)[20];
    assert!(first > 52 && first < 58, "message 19 passed at 9.5 ms, any number does after 27.5 ms: {first}");
    assert_eq!(dropped(&kept, DropReason::Integrity).len() as u64, counted(&report, 1).rogue);
    assert_eq!(u64::from(first - 40) * 2, counted(&report, 1).rogue);
}

#[test]
fn individual_recovery_by_vector_stays_deaf_to_a_way_that_was_away_too_long() {
    let network = ring(6);
    let away = |individual, history| {
        let mut flow = both_ways(&network, 1, [0, 1], false);
        if let Some(frer) = &mut flow.frer {
            frer.individual = Some(individual);
            frer.history_length = Some(history);
            frer.reset = Span::from_millis(4);
        }
        let mut run = sent(vec![flow]);
        // The way forwards, for messages 20 to 24: not as long as the reset takes.
        run.incidents = vec![cut(0, 9_900, Some(12_400))];
        let (kept, report) = simulated(&network, &run);
        assert_eq!(received(&kept, 1).len(), MESSAGES as usize, "the other way delivers");
        let [forwards, backwards] = report.frer[&1].individual[..] else { panic!("two member streams") };
        assert_eq!((backwards.passed, backwards.discarded), (MESSAGES.into(), 0));
        (forwards.passed, forwards.rogue)
    };
    assert_eq!(away(IndividualRecovery::Match, 4), (55, 0));
    assert_eq!(away(IndividualRecovery::Vector, 8), (55, 0), "a history that holds what was away");
    // Message 25 is 6 behind 19. It is discarded, which starts the timer again, and so is every later one.
    assert_eq!(away(IndividualRecovery::Vector, 4), (20, 35));
}

#[test]
fn latent_errors_are_signalled_though_nothing_is_lost() {
    let network = ring(6);
    let signalled = |cuts: Vec<Incident>, difference| {
        let mut flow = both_ways(&network, 1, [0, 1], false);
        if let Some(frer) = &mut flow.frer {
            frer.latent_errors = Some(wg_core::frer::LatentErrorConfig {
                paths: 2,
                difference,
                period: Span::from_millis(5),
                reset_period: Span::from_millis(1_000),
            });
        }
        let mut run = sent(vec![flow]);
        run.incidents = cuts;
        let (kept, report) = simulated(&network, &run);
        assert_eq!(received(&kept, 1).len(), MESSAGES as usize);
        let report = &report.frer[&1];
        (report.latent_errors, report.first_latent_error_ps)
    };
    // A copy may be on its way when a test looks.
    assert_eq!(signalled(Vec::new(), 1), (Some(0), None));
    // From 10 ms on two copies in a millisecond are missing: 4 of them are beyond the limit at 15 ms.
    let (count, first) = signalled(vec![cut(0, 9_900, None)], 4);
    assert_eq!(first, Some(15_000_000_000));
    assert!(count.is_some_and(|count| count > 3));
}

/// The ladder of annex C of the standard, with a rung: links by the nodes at their ends, sender 0 and receiver 1.
const LADDER: [[u16; 2]; 9] = [[0, 2], [2, 3], [2, 4], [3, 4], [3, 5], [4, 6], [5, 7], [6, 7], [7, 1]];
/// Every way through it, over the rung in both directions.
const WAYS: [&[u16]; 4] =
    [&[0, 2, 3, 5, 7, 1], &[0, 2, 4, 6, 7, 1], &[0, 2, 3, 4, 6, 7, 1], &[0, 2, 4, 3, 5, 7, 1]];

fn ladder(replicate_at: u16, eliminate_at: u16) -> (Network, Flow) {
    let host =
        |index| Node::new(index, format!("h{index}"), NodeKind::EndSystem { host: HostModel::ideal() });
    let nodes =
        (0..2).map(host).chain((2..8).map(|index| Node::new(index, format!("s{index}"), switch()))).collect();
    let mut used = [0; 8];
    let mut end = |node: u16| {
        used[usize::from(node)] += 1;
        Attachment { node, port: used[usize::from(node)] }
    };
    let links: Vec<Link> = LADDER
        .iter()
        .map(|nodes| Link {
            ends: nodes.map(&mut end),
            rate: LineRate::GIGABIT,
            delay: Span::from_nanos(500),
            network: NetworkId::A,
        })
        .collect();
    let hop = |pair: &[u16]| {
        let joins = |link: &&Link| pair.iter().all(|node| link.ends.iter().any(|end| end.node == *node));
        let (number, link) = (0..).zip(&links).find(|(_, link)| joins(link)).expect("a link");
        let hop = Hop { link: number, from: link.ends[0], to: link.ends[1] };
        if hop.from.node == pair[0] { hop } else { hop.reversed() }
    };
    let routes: Vec<Route> = WAYS
        .iter()
        .map(|way| Route { network: NetworkId::A, hops: way.windows(2).map(hop).collect() })
        .collect();
    let frer = Frer {
        replicate_at,
        eliminate_at,
        intermediate: true,
        history_length: Some(8),
        reset: Span::from_millis(2_000),
        individual: Some(IndividualRecovery::Match),
        latent_errors: None,
    };
    let flow = Flow { frer: Some(frer), ..Flow::plain(1, Protocol::Udp, routes[0].clone()) };
    (Network { nodes, links }, Flow { routes, ..flow })
}

/// Whichever of its inner links are cut, a message arrives once where any way is whole, and each link carries it at most once.
#[test]
fn a_ladder_delivers_while_any_way_through_it_is_whole() {
    let (network, flow) = ladder(0, 1);
    for cuts in 0..1_u32 << 7 {
        let is_cut = |link: usize| (1..8).contains(&link) && cuts >> (link - 1) & 1 == 1;
        let mut run = sent(vec![flow.clone()]);
        run.incidents = (0..9).filter(|link| is_cut(*link as usize)).map(|link| cut(link, 0, None)).collect();
        let (kept, report) = simulated(&network, &run);
        let whole = flow.routes.iter().any(|route| !route.hops.iter().any(|hop| is_cut(hop.link as usize)));
        let expected: Vec<u32> = if whole { (0..MESSAGES).collect() } else { Vec::new() };
        assert_eq!(received(&kept, 1), expected, "cut {cuts:b}");
        let mut out: Vec<_> =
            at(&kept, Point::SwitchOut).iter().map(|r| (r.node, r.port, r.sequence)).collect();
        let all = out.len();
        out.sort_unstable();
        out.dedup();
        assert_eq!(out.len(), all, "one copy on a link");
        // Copies that came together on the way, and were removed there.
        let junctions = &report.frer[&1].junctions;
        let removed: u64 = junctions.iter().map(|one| one.recovery.discarded).sum();
        assert_eq!(dropped(&kept, DropReason::SecondCopy).len() as u64, removed);
    }
}

#[test]
fn junctions_of_a_ladder_count_what_came_and_what_went() {
    let (network, flow) = ladder(2, 7);
    let (kept, report) = simulated(&network, &sent(vec![flow]));
    let report = &report.frer[&1];
    let n = u64::from(MESSAGES);
    assert_eq!((report.node.as_str(), &report.came[..]), ("s7", &[n, n][..]));
    assert_eq!((report.recovery.passed, report.recovery.discarded), (n, n));
    let seen: Vec<_> = report.junctions.iter().map(|one| (one.node.as_str(), &one.came[..])).collect();
    // Each side gets a copy over its own first link and one over the rung.
    assert_eq!(seen, [("s3", &[n, n][..]), ("s4", &[n, n][..])]);
    assert!(report.junctions.iter().all(|one| (one.recovery.passed, one.recovery.discarded) == (n, n)));
    assert!(report.junctions.iter().all(|one| one.individual.len() == 2));
    // Tags are put in by the first switch and taken out by the last.
    let lengths = |node| {
        let mut all: Vec<u16> =
            at(&kept, Point::SwitchIn).iter().filter(|r| r.node == node).map(|r| r.length).collect();
        all.dedup();
        all
    };
    assert_eq!(
        [2, 3, 4, 5, 6, 7].map(lengths),
        [vec![218 + 28], vec![218 + 34], vec![218 + 34], vec![218 + 34], vec![218 + 34], vec![218 + 34]]
    );
}
