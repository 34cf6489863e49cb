//! The network between hosts that are real, in virtual time: what hosts sent in a simulation is handed to the cards at the
//! same instants, and the network has to do with it what it did there.

use std::collections::VecDeque;
use std::net::SocketAddrV4;

use wg_core::Deadline;
use wg_frame::layout::{Carrier, Envelope};
use wg_frame::probe::{self, Probe, ProbeFlags};
use wg_frame::time::{RunTime, Span};
use wg_plan::wire::DISCARD_PORT;
use wg_plan::{
    FaultKind, Flow, HostModel, IncidentKind, Inject, LinkFault, LinkFaultKind, Network, NodeIndex, NodeKind,
    Run, SwitchModel, Victims,
};
use wg_record::{Crossing, CrossingKind, DropReason, Point, Record, RecordFlags};
use wg_sim::live::{Buffers, Headers, Incoming, Outgoing, Outside, carry, replay};
use wg_sim::{SimError, Sink, simulate};

use crate::{ptp, run, star, way};

/// A simulation in true time.
#[derive(Default)]
struct True(Vec<Record>);

impl Sink for True {
    fn record(&mut self, record: &Record) {
        self.0.push(*record);
    }
    fn is_shown_time(&self) -> bool {
        false
    }
    fn advance(&mut self, _now: RunTime, _end: RunTime) -> Result<(), SimError> {
        Ok(())
    }
}

/// Hosts whose frames are known beforehand.
struct Scripted {
    records: Vec<Record>,
    buffers: Buffers,
    to_come: VecDeque<(RunTime, NodeIndex, Vec<u8>)>,
    end: RunTime,
    delivered: Vec<(NodeIndex, RunTime, u32)>,
    crossings: Vec<Crossing>,
}

impl Sink for Scripted {
    const KEEPS_BYTES: bool = true;

    fn record(&mut self, record: &Record) {
        self.records.push(*record);
    }
    fn is_shown_time(&self) -> bool {
        false
    }
    fn sequence(&self, place: u32) -> u32 {
        self.buffers.sequence(place)
    }
    fn keep(&mut self, bytes: &[u8], sequence: u32) -> Option<u32> {
        self.buffers.keep(bytes, sequence)
    }
    fn retain(&mut self, place: u32, more: u32) {
        self.buffers.retain(place, more);
    }
    fn release(&mut self, place: u32) {
        self.buffers.release(place);
    }
    fn deliver(&mut self, outgoing: &Outgoing<'_>) {
        let sequence = self.buffers.sequence(outgoing.place);
        self.delivered.push((outgoing.node, outgoing.at, sequence));
        self.crossings.push(outgoing.crossing(sequence, Span::ZERO, true));
    }
    fn on_line(&self, place: u32, _frame: &wg_core::frame::Frame) -> Vec<u8> {
        self.buffers.bytes(place).to_vec()
    }
    fn advance(&mut self, _now: RunTime, _end: RunTime) -> Result<(), SimError> {
        Ok(())
    }
}

impl Outside for Scripted {
    fn wait(&mut self, due: Deadline) -> Option<RunTime> {
        let next = self.to_come.front().map(|(at, ..)| *at);
        match (due.instant(), next) {
            (None, None) => None,
            (Some(due), None) => (due <= self.end).then_some(due),
            // What is due before a frame comes happens before it is known.
            (Some(due), Some(next)) if due < next => Some(due),
            (_, Some(next)) => Some(next),
        }
    }
    fn next_incoming(&mut self) -> Option<Incoming> {
        let (at, node, bytes) = self.to_come.front()?;
        let mut headers = Headers::read(bytes).expect("a frame");
        if headers.sequence() == 0 && headers.probe.is_none() {
            // The first of no load: a frame of somebody else.
            headers.label = 3;
        }
        let place = self.buffers.keep(bytes, headers.sequence()).expect("a place");
        let incoming = Incoming { node: *node, at: *at, place, headers };
        self.to_come.pop_front();
        Some(incoming)
    }
    fn entered(&mut self, incoming: &Incoming, at: RunTime) {
        assert_eq!(incoming.at, at, "the model went on too far");
        self.crossings.push(incoming.crossing(at));
    }
}

/// The bytes of a message as its host sends it.
fn bytes(network: &Network, flow: &Flow, sent: &Record) -> Vec<u8> {
    let is_back = sent.flags.has(RecordFlags::RETURN);
    let to = if is_back { flow.from } else { flow.to };
    let mac = |node: NodeIndex| network.nodes[usize::from(node)].mac.0;
    let chosen = |own: Option<wg_frame::ethernet::MacAddress>| own.filter(|_| !is_back).map(|mac| mac.0);
    let mut bytes = Vec::new();
    bytes.extend(chosen(flow.addresses.mac.destination).unwrap_or(mac(to)));
    bytes.extend(chosen(flow.addresses.mac.source).unwrap_or(mac(sent.node)));
    if let Some(tag) = flow.vlan {
        let control = u16::from(tag.priority) << 13 | tag.id;
        bytes.extend(0x8100_u16.to_be_bytes());
        bytes.extend(control.to_be_bytes());
    }
    bytes.extend(0x88B5_u16.to_be_bytes());
    let mut flags = ProbeFlags::NONE;
    for (record, probe) in
        [(RecordFlags::RETURN, ProbeFlags::RETURN), (RecordFlags::WARM_UP, ProbeFlags::WARM_UP)]
    {
        if sent.flags.has(record) {
            flags = flags.with(probe);
        }
    }
    let mut payload = vec![0; usize::from(sent.length) - 4 - bytes.len()];
    let seal = Probe { flow: sent.flow, sequence: sent.sequence, flags };
    probe::seal(&mut payload, seal).expect("a message");
    bytes.extend(payload);
    bytes
}

/// Whether what hosts did is in the records, and nothing that befell them counts.
fn is_comparable(network: &Network, run: &Run) -> bool {
    let hosts = network.nodes.iter().all(|node| match &node.kind {
        NodeKind::EndSystem { host } => *host == HostModel::ideal(),
        NodeKind::Switch(_) | NodeKind::Hub { .. } => true,
    });
    let plain = run.injects.is_empty()
        && run.remote_logs.is_empty()
        && run.ptp_domains.is_empty()
        && run
            .relays
            .iter()
            .flat_map(|relay| &relay.faults)
            .all(|fault| !matches!(fault.kind, FaultKind::Misdirect { .. }))
        && run.flows.iter().all(|flow| flow.from != flow.to)
        && run.sends.iter().all(|send| send.sub_link == 0);
    hosts && plain
}

/// From what crossed alone the network does the same again.
fn is_replayed(network: &Network, run: &Run, outside: &Scripted) {
    let mut again = True::default();
    let replayed = replay(network, run, &outside.crossings, &mut again).expect("a sound plan");
    assert!(replayed.is_whole);
    let left = outside.crossings.iter().filter(|row| row.kind == CrossingKind::Left);
    assert!(left.eq(&replayed.left), "what leaves again is not what left");
    assert_eq!(again.0.len(), outside.records.len());
    for (ours, theirs) in again.0.iter().zip(&outside.records) {
        assert_eq!(ours, theirs, "the replay and what it replays part here");
    }
}

/// What of a record both know: when, where, what, of which message.
type Seen = (RunTime, NodeIndex, u16, Point, u16, u32, u16, DropReason);

fn seen(record: &Record) -> Option<Seen> {
    let of_network = matches!(record.point, Point::SwitchIn | Point::SwitchOut | Point::Drop)
        && !matches!(
            record.reason,
            DropReason::SendRefused | DropReason::RingFull | DropReason::PlantedFault
        );
    let Record { time, node, port, point, flow, sequence, length, reason, .. } = *record;
    of_network.then_some((time, node, port, point, flow, sequence, length, reason))
}

/// The network between real hosts does what it did in the simulation, and forgets no buffer.
pub(crate) fn is_the_same(network: &Network, run: &Run) {
    if !is_comparable(network, run) {
        return;
    }
    let mut simulated = True::default();
    simulate(network, run, &mut simulated).expect("a sound plan");
    let True(simulated) = simulated;
    let flow_of = |id: u16| {
        let answered = run.relays.iter().find(|relay| relay.answers_as() == id).map(|relay| relay.flow);
        run.flows.iter().find(|flow| flow.id == id || Some(flow.id) == answered).expect("a flow")
    };
    let sent = simulated.iter().filter(|record| record.point == Point::ApplicationSend);
    let mut to_come: Vec<_> =
        sent.map(|sent| (sent.time, sent.node, bytes(network, flow_of(sent.flow), sent))).collect();
    to_come.sort_by_key(|(at, ..)| *at);
    let end = simulated.iter().map(|record| record.time).max().unwrap_or(RunTime::ZERO);
    let mut outside = Scripted {
        records: Vec::new(),
        buffers: Buffers::new(1 << 12),
        to_come: to_come.into(),
        end: end + Span::from_millis(3_000),
        delivered: Vec::new(),
        crossings: Vec::new(),
    };
    let report = carry(network, run, &mut outside).expect("a sound plan");
    outside.crossings.push(Crossing::ended(RunTime::from_picos(report.simulated_ps)));
    is_replayed(network, run, &outside);
    // What the network makes in the place of a host has no order with what hosts send at that instant.
    if run.incidents.iter().any(|one| matches!(one.kind, IncidentKind::Babble { .. })) {
        let came = simulated.iter().filter(|one| one.point == Point::DriverReceive).count();
        assert_eq!(outside.delivered.len(), came);
        assert_eq!(outside.buffers.used(), 0, "frames that have ended keep their buffers");
        return;
    }
    let received = simulated.iter().filter(|record| record.point == Point::DriverReceive);
    let mut received: Vec<_> = received.map(|one| (one.node, one.time, one.sequence)).collect();
    received.sort_unstable();
    outside.delivered.retain(|one| one.1 <= end);
    outside.delivered.sort_unstable();
    assert_eq!(outside.delivered, received, "what cards hand to their hosts");
    let mut theirs: Vec<_> = simulated.iter().filter_map(seen).collect();
    let mut ours: Vec<_> = outside.records.iter().filter_map(seen).filter(|one| one.0 <= end).collect();
    theirs.sort_unstable();
    ours.sort_unstable();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "the live network and the simulated one part here");
    }
    assert_eq!(ours.len(), theirs.len());
    // What a medium sent last it keeps until it sends again.
    let kept = network.nodes.iter().any(|node| matches!(node.kind, NodeKind::Hub { .. }));
    assert!(kept || outside.buffers.used() == 0, "frames that have ended keep their buffers");
}

/// The bytes of a frame of background load, as its host sends it: by its number, from 1.
fn load(network: &Network, number: u16, [from, to]: [NodeIndex; 2]) -> Vec<u8> {
    let node = |at: NodeIndex| &network.nodes[usize::from(at)];
    let at = |end: NodeIndex, port| SocketAddrV4::new(node(end).ipv4.into(), port);
    let carrier = Carrier::udp(at(from, 61_200), at(to, DISCARD_PORT));
    let envelope = Envelope { destination: node(to).mac, source: node(from).mac, tag: None, carrier };
    let mut buffer = [0; 1_600];
    let begin = envelope.header_len();
    let probe = Probe { flow: number, ..Probe::default() };
    probe::seal(&mut buffer[begin..begin + 972], probe).expect("a message");
    envelope.close(&mut buffer, 972).expect("a frame").to_vec()
}

#[test]
fn load_that_leaves_no_records_is_accounted_for_and_so_are_frames_of_others() {
    let network = star(3, NodeKind::Switch(SwitchModel::cots(3_000)), 100_000_000);
    let mut run = run(vec![]);
    let way = |from| way([from, 3, 2]);
    run.injects = [0, 1].map(|from| Inject::periodic(way(from), 972, 1, Span::from_micros(100), 1)).to_vec();
    run.link_faults = vec![LinkFault {
        link: 0,
        sent_by: Some(0),
        kind: LinkFaultKind::Loss,
        whom: Victims::Share { ppm: 100_000 },
        from: Span::ZERO,
        until: None,
    }];
    let stray = [&[0x33; 12][..], &[0x86, 0xDD], &[0; 60]].concat();
    let at = |us: i64| RunTime::ZERO + Span::from_micros(us);
    // Two loads of 81 % of a line each meet at one.
    let mut to_come: Vec<_> = (0..1_000)
        .flat_map(|n| [0, 1].map(|from| (at(100 * n), from, load(&network, from + 1, [from, 2]))))
        .collect();
    to_come.push((at(200_000), 1, stray));
    let mut outside = Scripted {
        records: Vec::new(),
        buffers: Buffers::new(1 << 12),
        to_come: to_come.into(),
        end: at(300_000),
        delivered: Vec::new(),
        crossings: Vec::new(),
    };
    let report = carry(&network, &run, &mut outside).expect("a sound plan");
    let [faulty, sound] = report.loads.as_slice() else { panic!("two loads: {:?}", report.loads) };
    for fate in [faulty, sound] {
        assert_eq!(fate.entered, 1_000);
        assert_eq!(fate.left + fate.lost.values().sum::<u64>(), 1_000, "{fate:?}");
    }
    let full: u64 = [faulty, sound].iter().filter_map(|fate| fate.lost.get("buffer-full")).sum();
    assert!(full > 300, "{faulty:?} {sound:?}");
    assert!((50..200).contains(&faulty.lost["own-link"]), "{faulty:?}");
    assert!(!sound.lost.contains_key("own-link"));
    assert_eq!(outside.delivered.len() as u64, faulty.left + sound.left + 2);
    // 74 B and their check sequence, with preamble and gap: on its own line and on those to the two others.
    let [foreign] = report.foreign.as_slice() else { panic!("one kind: {:?}", report.foreign) };
    assert_eq!((foreign.entered, foreign.left, foreign.lost.len()), (1, 2, 0));
    assert_eq!(foreign.line_ps, 3 * (74 + 4 + 20) * 80_000);
    assert_eq!(outside.buffers.used(), 0);
    // By what is stored of it, too.
    outside.crossings.push(Crossing::ended(RunTime::from_picos(report.simulated_ps)));
    let mut again = True::default();
    let replayed = replay(&network, &run, &outside.crossings, &mut again).expect("a sound plan");
    assert_eq!((replayed.report.loads, replayed.report.foreign), (report.loads, report.foreign));
}

#[test]
fn frames_of_others_have_a_medium_for_every_attempt_at_it() {
    let hub = NodeKind::Hub { delay: Span::from_nanos(500) };
    let network = star(3, hub, 10_000_000);
    let stray = |to: u8| [&[to; 12][..], &[0x86, 0xDD], &[0; 60]].concat();
    let at = |us: i64| RunTime::ZERO + Span::from_micros(us);
    let time = |to_come: Vec<(RunTime, NodeIndex, Vec<u8>)>| {
        let mut outside = Scripted {
            records: Vec::new(),
            buffers: Buffers::new(1 << 6),
            to_come: to_come.into(),
            end: at(100_000),
            delivered: Vec::new(),
            crossings: Vec::new(),
        };
        let report = carry(&network, &run(vec![]), &mut outside).expect("a sound plan");
        report.foreign.iter().map(|fate| fate.line_ps).sum::<i64>()
    };
    // Preamble, 74 B with their check sequence, and the gap; 800 ns a byte.
    let whole = (8 + 74 + 4 + 12) * 800_000;
    assert_eq!(time(vec![(at(10), 0, stray(0x33))]), whole);
    // An attempt that ends in a collision: preamble, jam and gap.
    let attempt = (64 + 32 + 96) * 100_000;
    let both = time(vec![(at(10), 0, stray(0x33)), (at(10), 1, stray(0x33))]);
    assert!(both >= 2 * whole + 2 * attempt, "{both}");
    assert_eq!((both - 2 * whole) % attempt, 0);
}

#[test]
fn faults_of_links_meet_frames_that_no_host_has_sent() {
    let network = ptp::network(2, 1, &[(0, 2), (1, 2)], 1_000_000_000);
    let mut run = ptp::lasting(3, vec![ptp::domain(&network, &[2], &[])]);
    run.link_faults = vec![LinkFault {
        link: 0,
        sent_by: None,
        kind: LinkFaultKind::Loss,
        whom: Victims::Share { ppm: 300_000 },
        from: Span::ZERO,
        until: None,
    }];
    let mut outside = Scripted {
        records: Vec::new(),
        buffers: Buffers::new(1 << 6),
        to_come: VecDeque::new(),
        end: RunTime::ZERO + run.duration,
        delivered: Vec::new(),
        crossings: Vec::new(),
    };
    let report = carry(&network, &run, &mut outside).expect("a sound plan");
    assert_eq!(report.ptp_domains.len(), 1);
    assert_eq!(outside.buffers.used(), 0);
}
