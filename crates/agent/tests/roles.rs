//! A second role needs its own file and a line of a registry: the service, the start, the records and the report are
//! those of every role.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use tonic::{Request, Status};
use wg_agent::control::role::{
    ActiveRole, Counters, Fault, OpenError, Role, RoleReport, RunContext, Setup, Timetable, spawn,
};
use wg_agent::control::service::AgentService;
use wg_agent::control::spool::Spool;
use wg_agent::end_system::EndSystem;
use wg_agent::proto::{self, agent_server::Agent};
use wg_agent::recording::record_ring::MessageInfo;
use wg_agent::timestamps::PortTimestamps;
use wg_frame::time::{RunTime, Span};
use wg_net::clock;
use wg_plan::{HostModel, Network, Node, NodeKind, Run};
use wg_record::segment::{SegmentReader, segment_files};
use wg_record::{Clock, Crc, DropReason, Point, RecordFlags};

/// Plays every hub: notes three sightings at each of its ports and does nothing else.
struct Onlooker;

const SIGHTINGS: u32 = 3;

impl Role for Onlooker {
    fn plays(&self, setup: &Setup) -> bool {
        let Some(node) = setup.this_node() else { return false };
        matches!(node.kind, NodeKind::Hub { .. })
    }

    fn open(&self, setup: &Setup, run: &mut RunContext) -> Result<Box<dyn ActiveRole>, OpenError> {
        if setup.ports.is_empty() {
            return Err(OpenError::new(Fault::Request, "an onlooker needs a port"));
        }
        let (last_send, drain) = (RunTime::ZERO, Span::from_millis(1));
        run.timetable = Timetable { last_send, drain, to_send: 0 };
        let counters = run.counters();
        let threads = setup.ports.iter().map(|one| {
            let mut records = run.record_ring(one.port, u64::from(SIGHTINGS), 1);
            let (gate, counters) = (Arc::clone(&run.gate), Arc::clone(&counters));
            spawn("onlooker", move || {
                let Some(epoch) = gate.wait() else { return };
                records.begin(epoch);
                clock::sleep_until(epoch.wall());
                for sequence in 0..SIGHTINGS {
                    let (crc, flags) = (Crc::Ok, RecordFlags::empty());
                    let seen = MessageInfo { flow: 1, sequence, length: 64, crc, flags };
                    let now = clock::realtime();
                    records.push(seen, Point::DriverReceive, Clock::Realtime, DropReason::None, now);
                    Counters::count(&counters.received);
                }
            })
        });
        let threads = threads.collect::<Result<_, _>>()?;
        let ports = setup.ports.iter().map(|one| PortTimestamps { port: one.port, ..Default::default() });
        Ok(Box::new(Looking { threads, ports: ports.collect() }))
    }
}

struct Looking {
    threads: Vec<JoinHandle<()>>,
    ports: Vec<PortTimestamps>,
}

impl ActiveRole for Looking {
    fn close(self: Box<Self>) -> RoleReport {
        let failed = self.threads.into_iter().filter_map(|thread| thread.join().err()).count();
        RoleReport {
            incomplete: (failed > 0).then(|| "an onlooker failed".to_owned()),
            timestamps: self.ports,
            ..RoleReport::default()
        }
    }
}

static NO_ONLOOKER: &[&dyn Role] = &[&EndSystem];
/// The registry, with its line.
static ROLES: &[&dyn Role] = &[&EndSystem, &Onlooker];

fn network() -> Network {
    let kinds = [NodeKind::EndSystem { host: HostModel::default() }, NodeKind::Hub { delay: Span::ZERO }];
    let nodes = (0..).zip(kinds).map(|(i, kind)| Node::new(i, format!("n{i}"), kind)).collect();
    Network { nodes, links: Vec::new() }
}

fn request(node: &str, ports: &[u32]) -> proto::PrepareRequest {
    let ports =
        ports.iter().map(|port| proto::PortInterface { port: *port, interface: format!("eth{port}") });
    proto::PrepareRequest {
        network_json: serde_json::to_vec(&network()).expect("a network is JSON"),
        run_json: serde_json::to_vec(&Run::default()).expect("a run is JSON"),
        end_system: node.into(),
        ports: ports.collect(),
        servicing_core: -1,
        ..proto::PrepareRequest::default()
    }
}

/// By port, the sequences that the segments below `spool` hold.
fn recorded(spool: &Path) -> Vec<(u16, u16, u32)> {
    let mut found = Vec::new();
    for file in segment_files(&spool.join("run-0000/node-0001")).expect("the folder of the run") {
        let mut reader = SegmentReader::open(&file).expect("a segment");
        while let Some(batch) = reader.next_batch() {
            found.extend(batch.iter().map(|record| (record.node, record.port, record.sequence)));
        }
    }
    found.sort_unstable();
    found
}

async fn played(service: &AgentService, spool: &Path) -> Result<(), Status> {
    service.prepare(Request::new(request("n1", &[1, 2]))).await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos();
    let epoch_realtime_ns = i64::try_from(now).expect("before 2262") + 100_000_000;
    service.announce(Request::new(proto::StartRequest { epoch_realtime_ns, common_epoch_ns: 0 })).await?;
    service.start(Request::new(proto::StartRequest { epoch_realtime_ns, common_epoch_ns: 0 })).await?;
    let reply = service.finish(Request::new(proto::FinishRequest { abort: false })).await?;
    let report = reply.into_inner().report.expect("a run that is over has a report");
    assert!(report.complete, "{}", report.incomplete_reason);
    assert_eq!((report.end_system.as_str(), report.records_written), ("n1", 2 * u64::from(SIGHTINGS)));
    assert_eq!(report.timestamps.len(), 2, "one report on timestamps for each port");
    let expected: Vec<_> =
        [1, 2].into_iter().flat_map(|port| (0..SIGHTINGS).map(move |sequence| (1, port, sequence))).collect();
    assert_eq!(recorded(spool), expected);
    Ok(())
}

#[test]
fn a_role_of_its_own_is_played_by_the_same_service() {
    let spool: PathBuf = std::env::temp_dir().join(format!("wiregauge-roles-{}", std::process::id()));
    std::fs::create_dir_all(&spool).expect("a temporary folder");
    std::fs::set_permissions(&spool, std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .expect("it is ours");
    let service = AgentService::new(ROLES, Spool::enter(Some(&spool)).expect("it is ours"), None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let refused = service.prepare(Request::new(request("n7", &[1]))).await.expect_err("no such node");
        assert!(refused.message().contains("'n7'") && refused.message().contains("n0, n1"), "{refused}");
        let refused = service.prepare(Request::new(request("n1", &[]))).await.expect_err("no port");
        assert_eq!(refused.message(), "an onlooker needs a port");
        let refused = service.prepare(Request::new(request("n1", &[0]))).await.expect_err("no port");
        assert!(refused.message().contains("port 0"), "{refused}");
        played(&service, &spool).await.expect("an onlooker does nothing that fails");
        let without = AgentService::new(NO_ONLOOKER, Spool::default(), None);
        let run_json = serde_json::to_vec(&Run { index: 1, ..Run::default() }).expect("a run is JSON");
        let another = proto::PrepareRequest { run_json, ..request("n1", &[1]) };
        let refused = without.prepare(Request::new(another)).await.expect_err("nobody plays a hub");
        assert!(refused.message().contains("no role for node 'n1'"), "{refused}");
    });
    std::fs::remove_dir_all(&spool).expect("what was written is here");
}
