//! Planted truth on real frames: three end systems behind a bridge, in namespaces that leave nothing behind.
//!
//! Every test builds its network inside an enclosure.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tonic::transport::Channel;
use wg_agent::proto::{self, agent_client::AgentClient};
use wg_frame::time::Span;
use wg_plan::{
    Attachment, Clock, Fault, FaultKind, Fill, Flow, Hop, HostModel, MacAddress, Network, NetworkId, Node,
    NodeKind, Protocol, Receive, Relay, Route, Run, Send, Turn,
};
use wg_record::segment::{SegmentReader, segment_files};
use wg_record::{Crc, DropReason, Point, Record, RecordFlags};

#[path = "../../net/tests/enclosed/mod.rs"]
mod enclosed;

use enclosed::ip;

#[path = "planted/traffic.rs"]
mod traffic;

const AGENT: &str = env!("CARGO_BIN_EXE_wiregauge-agent");

fn main() -> ExitCode {
    enclosed::main(&[
        ("planted_faults_come_back_exactly_udp", planted_faults_come_back_exactly_udp),
        (
            "planted_faults_come_back_exactly_raw_through_a_task",
            planted_faults_come_back_exactly_raw_through_a_task,
        ),
        (
            "every_point_of_a_one_way_message_is_recorded_in_order",
            every_point_of_a_one_way_message_is_recorded_in_order,
        ),
        (
            "what_is_sent_after_the_planned_end_of_its_receiver_still_arrives",
            what_is_sent_after_the_planned_end_of_its_receiver_still_arrives,
        ),
        (
            "a_missing_interface_is_named_together_with_those_that_exist",
            a_missing_interface_is_named_together_with_those_that_exist,
        ),
        ("every_kind_of_traffic_comes_whole", traffic::every_kind_of_traffic_comes_whole),
        ("every_receiver_of_a_flow_has_every_message", traffic::every_receiver_of_a_flow_has_every_message),
        (
            "a_flow_from_a_host_to_itself_passes_its_stack",
            traffic::a_flow_from_a_host_to_itself_passes_its_stack,
        ),
        (
            "faults_of_relays_come_back_exactly_on_virtual_links_and_beside_them",
            traffic::faults_of_relays_come_back_exactly_on_virtual_links_and_beside_them,
        ),
        (
            "logs_and_flooding_threads_send_what_they_report",
            traffic::logs_and_flooding_threads_send_what_they_report,
        ),
    ])
}

const NODES: usize = 3;

fn network() -> Network {
    let node = |i: usize| Node {
        name: format!("n{i}"),
        kind: NodeKind::EndSystem { host: HostModel::default() },
        mac: MacAddress([2, 0, 0, 0, 0, i as u8 + 1]),
        ipv4: [198, 18, 0, i as u8 + 1],
        clock: Clock::default(),
        tsn: None,
        line_drift_ppb: 0,
        interframe_gap: 12,
        timestamps: None,
        events: Vec::new(),
    };
    Network { nodes: (0..NODES).map(node).collect(), links: Vec::new() }
}

/// One namespace per end system, all on one bridge.
fn build(network: &Network) {
    // Where br_netfilter is loaded, it cuts off what lies behind a datagram: the number of a virtual link.
    drop(std::fs::write("/proc/sys/net/bridge/bridge-nf-call-iptables", "0"));
    ip("link add hub type bridge");
    ip("link set hub up");
    for (i, node) in network.nodes.iter().enumerate() {
        let name = &node.name;
        let mac = node.mac;
        ip(&format!("netns add {name}"));
        ip(&format!("link add port{i} type veth peer name eth0 netns {name} address {mac}"));
        ip(&format!("link set port{i} master hub up"));
        ip(&format!("-n {name} addr add 198.18.0.{}/15 dev eth0", i + 1));
        ip(&format!("-n {name} link set lo up"));
        ip(&format!("-n {name} link set eth0 up"));
    }
    for (i, node) in network.nodes.iter().enumerate() {
        for (j, other) in network.nodes.iter().enumerate().filter(|(j, _)| *j != i) {
            let mac = other.mac;
            let name = &node.name;
            ip(&format!("-n {name} neigh replace 198.18.0.{} lladdr {mac} dev eth0 nud permanent", j + 1));
        }
    }
}

/// An agent that ends with its value.
struct Agent {
    program: Child,
    client: AgentClient<Channel>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

async fn start_agent(node: &str, spool: &Path) -> Agent {
    drop(DirBuilder::new().mode(0o700).create(spool));
    let mut program = Command::new(AGENT)
        .args(["serve", "--announce", "--die-with-parent", "--listen"])
        .arg(format!("unix:/run/netns/{node}.socket"))
        .arg("--netns")
        .arg(format!("/run/netns/{node}"))
        .arg("--spool")
        .arg(spool)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the agent program runs");
    let mut line = String::new();
    let output = program.stdout.take().expect("its output is piped");
    BufReader::new(output).read_line(&mut line).expect("it announces itself");
    let address = line.trim().strip_prefix("listening ").expect("the documented line").to_owned();
    let client = AgentClient::connect(address).await.expect("it listens");
    Agent { program, client }
}

/// Runs `run` on three agents; their reports and records.
fn perform(run: &Run, spool: &Path) -> (Vec<proto::AgentReport>, Vec<Record>) {
    perform_behind(run, spool, [0; NODES])
}

/// How long before its start a run is announced, ns: a busy machine takes a while to tell every agent.
const ANNOUNCED_NS: i64 = 1_000_000_000;

/// Likewise, each agent so many ms behind the common start.
fn perform_behind(
    run: &Run,
    spool: &Path,
    behind_ms: [i64; NODES],
) -> (Vec<proto::AgentReport>, Vec<Record>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    runtime.block_on(async {
        let network = network();
        let mut agents = Vec::new();
        for node in &network.nodes {
            let mut agent = start_agent(&node.name, spool).await;
            let hello =
                proto::HelloRequest { master_version: "test".into(), lease_ms: 60_000, ..Default::default() };
            agent.client.hello(hello).await.expect("Hello is answered");
            let request = proto::PrepareRequest {
                network_json: serde_json::to_vec(&network).expect("a network is JSON"),
                run_json: serde_json::to_vec(run).expect("a run is JSON"),
                end_system: node.name.clone(),
                ports: vec![proto::PortInterface { port: 1, interface: "eth0".into() }],
                servicing_core: -1,
                fifo_priority: 50,
                agents_on_host: NODES as u32,
                card: run.flows.iter().any(|flow| matches!(flow.protocol, Protocol::Rc | Protocol::Tt)),
                ..proto::PrepareRequest::default()
            };
            agent.client.prepare(request).await.expect("the run can be prepared");
            agents.push(agent);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as i64;
        for (agent, behind) in agents.iter_mut().zip(behind_ms) {
            let epoch_realtime_ns = now + ANNOUNCED_NS + behind * 1_000_000;
            let request = proto::StartRequest { epoch_realtime_ns, common_epoch_ns: 0 };
            agent.client.announce(request).await.expect("the epoch has not passed");
            agent.client.start(request).await.expect("it was announced");
        }
        let mut reports = Vec::new();
        for agent in &mut agents {
            let request = proto::WatchRequest { interval_ms: 50, live: false };
            let mut stream = agent.client.watch(request).await.expect("it can be watched").into_inner();
            while let Some(progress) = stream.message().await.expect("the stream lasts to the end") {
                if progress.done {
                    break;
                }
            }
            let finished = agent.client.finish(proto::FinishRequest { abort: false }).await;
            reports.extend(finished.expect("it finishes").into_inner().report);
        }
        let mut records = Vec::new();
        for number in 0..network.nodes.len() {
            let place = spool.join(format!("run-0000/node-{number:04}"));
            for file in segment_files(&place).expect("the spool exists") {
                let mut reader = SegmentReader::open(&file).expect("a segment");
                while let Some(batch) = reader.next_batch() {
                    records.extend(batch);
                }
                assert!(reader.damage().is_none(), "a finished segment is whole");
            }
        }
        (reports, records)
    })
}

fn run(protocol: Protocol, count: u32, period_us: i64, relay: Option<(Turn, Vec<Fault>)>) -> Run {
    let end = |node| Attachment { node, port: 1 };
    let hops = vec![Hop { link: 0, from: end(0), to: end(1) }];
    let flow = Flow::plain(7, protocol, Route { network: NetworkId::A, hops });
    Run {
        seed: 1,
        warm_up: Span::from_micros(period_us * 21),
        duration: Span::from_micros(period_us * i64::from(count)),
        drain: Span::from_millis(500),
        flows: vec![flow],
        sends: vec![Send {
            fill: Fill::Random,
            warm_up_count: 20,
            ..Send::periodic(7, Span::from_micros(period_us), 40, count)
        }],
        receives: if relay.is_none() { vec![Receive { flow: 7, on: 1 }] } else { Vec::new() },
        relays: relay
            .into_iter()
            .map(|(through, faults)| Relay {
                flow: 7,
                on: 1,
                vl: None,
                back: None,
                through,
                faults,
                detours: Vec::new(),
            })
            .collect(),
        ..Run::default()
    }
}

/// Whether the host took frames or records from the instrument itself, which no test can forbid it.
fn host_interfered(reports: &[proto::AgentReport]) -> bool {
    reports.iter().any(|report| {
        report.records_dropped > 0
            || report.access_points.iter().any(|a| a.socket_drops + a.inbox_drops + a.send_errors > 0)
    })
}

/// What became of the measured messages, as seen back at the sender.
#[derive(Debug, Default, PartialEq, Eq)]
struct Observed {
    lost: BTreeSet<u32>,
    twice: BTreeSet<u32>,
    reordered: BTreeSet<u32>,
    damaged: BTreeSet<u32>,
    misdirected: BTreeSet<u32>,
    dropped: BTreeSet<u32>,
}

fn outcome(records: &[Record], home: u16, returning: bool, count: u32) -> Observed {
    let mut seen = Observed { lost: (0..count).collect(), ..Observed::default() };
    let measured = records.iter().filter(|r| !r.flags.has(RecordFlags::WARM_UP));
    let mut arrivals = Vec::new();
    for record in measured {
        match record.point {
            Point::Drop if record.reason == DropReason::PlantedFault => {
                seen.dropped.insert(record.sequence);
            }
            Point::ApplicationReceive if record.node == 2 => {
                seen.misdirected.insert(record.sequence);
            }
            Point::ApplicationReceive
                if record.node == home && record.flags.has(RecordFlags::RETURN) == returning =>
            {
                if record.crc == Crc::Ok {
                    arrivals.push((record.time, record.sequence));
                } else {
                    seen.damaged.insert(record.sequence);
                }
            }
            _ => {}
        }
    }
    arrivals.sort_unstable();
    let mut highest = None;
    for (_, sequence) in arrivals {
        if !seen.lost.remove(&sequence) {
            seen.twice.insert(sequence);
        } else if highest > Some(sequence) {
            seen.reordered.insert(sequence);
        }
        highest = highest.max(Some(sequence));
    }
    seen
}

fn spool(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("wiregauge-{name}-{}", std::process::id()))
}

/// Plays the run at ever longer periods until the host lets it pass undisturbed, at most three times.
fn undisturbed(name: &str, at: impl Fn(i64) -> Run) -> Vec<Record> {
    for period_us in [20, 50, 100] {
        let directory = spool(name);
        // Process numbers begin anew in every enclosure: one that was killed may have left this folder.
        drop(std::fs::remove_dir_all(&directory));
        let (reports, records) = perform(&at(period_us), &directory);
        drop(std::fs::remove_dir_all(&directory));
        for report in &reports {
            assert!(report.complete, "{}: {}", report.end_system, report.incomplete_reason);
        }
        if !host_interfered(&reports) {
            return records;
        }
        eprintln!("{name}: the host interfered at a period of {period_us} us: {reports:?}");
    }
    panic!("{name}: three times the host dropped frames or records of the instrument itself");
}

fn faults() -> Vec<Fault> {
    let fault = |kind, sequences: &[(u32, u32)]| Fault { kind, sequences: sequences.to_vec() };
    vec![
        fault(FaultKind::Loss, &[(100, 119), (5_000, 5_000)]),
        fault(FaultKind::Duplicate, &[(200, 219)]),
        fault(FaultKind::Reorder, &[(300, 300), (302, 302), (310, 312), (90_000, 90_000)]),
        fault(FaultKind::Corrupt, &[(400, 409)]),
        fault(FaultKind::Misdirect { to: 2 }, &[(500, 504)]),
    ]
}

fn expected() -> Observed {
    let dropped: BTreeSet<u32> = (100..=119).chain([5_000]).collect();
    let damaged: BTreeSet<u32> = (400..=409).collect();
    let misdirected: BTreeSet<u32> = (500..=504).collect();
    Observed {
        lost: dropped.iter().chain(&damaged).chain(&misdirected).copied().collect(),
        twice: (200..=219).collect(),
        reordered: [300, 302, 310, 311, 312, 90_000].into(),
        damaged,
        misdirected,
        dropped,
    }
}

fn planted_faults_come_back_exactly_udp() {
    build(&network());
    let records =
        undisturbed("udp", |period| run(Protocol::Udp, 100_000, period, Some((Turn::Servicing, faults()))));
    assert_eq!(outcome(&records, 0, true, 100_000), expected());
}

fn planted_faults_come_back_exactly_raw_through_a_task() {
    build(&network());
    let records =
        undisturbed("raw", |period| run(Protocol::Raw, 100_000, 5 * period, Some((Turn::Task, faults()))));
    assert_eq!(outcome(&records, 0, true, 100_000), expected());
}

fn every_point_of_a_one_way_message_is_recorded_in_order() {
    build(&network());
    for protocol in [Protocol::Udp, Protocol::Raw] {
        let records = undisturbed("one-way", |period| run(protocol, 500, 20 * period, None));
        assert_eq!(outcome(&records, 1, false, 500), Observed::default());
        for sequence in 0..500 {
            let mut of_message: Vec<(Point, i64)> = records
                .iter()
                .filter(|r| r.sequence == sequence && !r.flags.has(RecordFlags::WARM_UP))
                .map(|r| (r.point, r.time.as_picos()))
                .collect();
            of_message.sort_unstable();
            let points: Vec<Point> = of_message.iter().map(|p| p.0).collect();
            let whole = [
                Point::IntendedSend,
                Point::ApplicationSend,
                Point::DriverSend,
                Point::DriverReceive,
                Point::ApplicationReceive,
            ];
            assert_eq!(points, whole, "message {sequence}");
            assert!(of_message.windows(2).all(|w| w[0].1 <= w[1].1), "message {sequence}: {of_message:?}");
        }
    }
}

/// A sender that cannot keep its schedule is late; its receiver must not have left by then.
fn what_is_sent_after_the_planned_end_of_its_receiver_still_arrives() {
    build(&network());
    let run = run(Protocol::Udp, 100, 1_000, None);
    // The receiver's own part is over 600 ms after the start.
    let place = spool("late");
    let (reports, _) = perform_behind(&run, &place, [1_500, 0, 0]);
    drop(std::fs::remove_dir_all(place));
    let received = reports[1].tasks.iter().find(|task| task.kind == "receive").expect("its task");
    assert_eq!(received.done, 120, "{reports:?}");
    assert!(reports.iter().all(|report| report.complete), "{reports:?}");
}

fn a_missing_interface_is_named_together_with_those_that_exist() {
    build(&network());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be built").block_on(async {
        let mut agent = start_agent("n0", &spool("missing")).await;
        let request = proto::PrepareRequest {
            network_json: serde_json::to_vec(&network()).expect("a network is JSON"),
            run_json: serde_json::to_vec(&run(Protocol::Udp, 1, 1000, None)).expect("a run is JSON"),
            end_system: "n0".into(),
            ports: vec![proto::PortInterface { port: 1, interface: "eth7".into() }],
            servicing_core: -1,
            fifo_priority: 0,
            agents_on_host: 1,
            ..proto::PrepareRequest::default()
        };
        let refusal = agent.client.prepare(request.clone()).await.expect_err("there is no eth7");
        assert!(refusal.message().contains("'eth7'") && refusal.message().contains("eth0"), "{refusal}");
        let good = proto::PrepareRequest {
            ports: vec![proto::PortInterface { port: 1, interface: "eth0".into() }],
            ..request
        };
        agent.client.prepare(good).await.expect("one failure does not spoil the next run");
        let late = proto::StartRequest { epoch_realtime_ns: 1, common_epoch_ns: 0 };
        let refusal = agent.client.announce(late).await.expect_err("1970 has passed");
        assert_eq!(refusal.code(), tonic::Code::OutOfRange);
        let in_time = proto::StartRequest { epoch_realtime_ns: i64::MAX / 2, common_epoch_ns: 0 };
        let refusal = agent.client.start(in_time).await.expect_err("nobody announced it");
        assert_eq!(refusal.code(), tonic::Code::FailedPrecondition);
        agent.client.announce(in_time).await.expect("it lies ahead");
        agent.client.announce(late).await.expect_err("1970 has passed");
        let refusal = agent.client.start(in_time).await.expect_err("what was announced last counts");
        assert_eq!(refusal.code(), tonic::Code::FailedPrecondition);
        tokio::time::sleep(Duration::from_millis(10)).await;
    });
    drop(std::fs::remove_dir_all(spool("missing")));
}
