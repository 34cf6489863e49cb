//! How many records a second the record crate writes, tracks and stores: `cargo bench -p wg-record`.
//!
//! Each figure is the best of a few rounds over the same relayed messages, because the machine is shared and
//! only disturbances can make a round slower. The servicing path is not here; see the agent's benchmark.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use wg_frame::time::{RunTime, Span};
use wg_plan::{
    Attachment, Flow, Hop, HostModel, MacAddress, Network, NetworkId, Node, NodeKind, Protocol, Relay, Route,
    Run, Send, Turn,
};
use wg_record::segment::{SegmentInfo, SegmentReader, SegmentWriter, segment_files};
use wg_record::{Clock, Crc, DropReason, Point, Record, RecordFlags};
use wg_track::parquet::{RecordWriter, read_records};
use wg_track::tracking::{Measure, Tracker};
use wg_track::{Tables, retrack, summarise};

/// A build without optimisation measures nothing: it only shows, in the tests, that this runs.
const SMOKE: bool = cfg!(debug_assertions);
const MESSAGES: u32 = if SMOKE { 1_000 } else { 200_000 };
const ROUNDS: u32 = if SMOKE { 1 } else { 5 };
const FLOW: u16 = 10;

fn main() {
    let scratch = Scratch::new();
    let (network, run) = plan();
    let mut sorted = agent_streams();
    let records = sorted.clone();
    sorted.sort_by_key(|record| record.time);
    let n = records.len();
    println!("{n} records of {MESSAGES} relayed messages, best of {ROUNDS} rounds");

    report("segments: write", n, || {
        drop(fs::remove_dir_all(scratch.0.join("spool")));
        let info = SegmentInfo { end_system: "a".into(), node: 0, run_index: 0, epoch_realtime_ns: 0 };
        let mut writer = SegmentWriter::create(&scratch.0.join("spool"), info).expect("a directory");
        for part in records.chunks(256) {
            writer.write(part).expect("room on the disk");
        }
        assert_eq!(writer.finish().expect("room on the disk"), n as u64);
    });
    report("segments: read", n, || {
        let mut read = 0;
        for file in segment_files(&scratch.0.join("spool")).expect("the segments") {
            let mut reader = SegmentReader::open(&file).expect("a segment");
            while let Some(batch) = reader.next_batch() {
                read += batch.len();
            }
        }
        assert_eq!(read, n);
    });
    let parquet = scratch.0.join("records.parquet");
    report("records to Parquet: encode, sync", n, || {
        let mut writer = RecordWriter::create(&parquet, 0).expect("a directory");
        writer.write(&sorted).expect("room on the disk");
        writer.finish().expect("room on the disk");
    });
    report("records from Parquet", n, || {
        assert_eq!(read_records(&parquet).expect("a records file").1.len(), n);
    });
    report("tracking", n, || {
        let mut tracker = Tracker::new(&network, &run);
        tracker.observe_all(&sorted);
        let tracked = tracker.finish();
        assert_eq!(tracked.summary.flows[0].delivered, u64::from(MESSAGES));
    });
    let files = [parquet];
    for threads in [1, 2] {
        report(&format!("from Parquet to counts and distributions, {threads} thr."), n, || {
            let (summary, _) =
                summarise(&network, &run, &files, Measure::ALL, threads).expect("a run that can be judged");
            assert_eq!(summary.flows[0].delivered, u64::from(MESSAGES));
        });
    }
    report("from Parquet to judged messages in Parquet", n, || {
        let table = |name: &str| scratch.0.join(name);
        let tables = Tables {
            messages: table("messages.parquet"),
            passages: table("passages.parquet"),
            sketches: table("sketches.parquet"),
        };
        retrack(&network, &run, &files, &[], &tables).expect("a run that can be judged");
    });
}

fn report(what: &str, records: usize, mut round: impl FnMut()) {
    let timed = |round: &mut dyn FnMut()| {
        let start = Instant::now();
        round();
        start.elapsed()
    };
    let best = (0..ROUNDS).map(|_| timed(&mut round)).min().unwrap_or(Duration::MAX);
    let millions = records as f64 / best.as_secs_f64() / 1e6;
    let each = best.as_secs_f64() * 1e9 / records as f64;
    println!("{what:<44} {millions:>8.1} M records/s {each:>7.1} ns a record");
}

/// From end system 0 to end system 1 over the one cable.
fn cable() -> Route {
    let end = |node| Attachment { node, port: 1 };
    Route { network: NetworkId::A, hops: vec![Hop { link: 0, from: end(0), to: end(1) }] }
}

fn plan() -> (Network, Run) {
    let node = |i: u8| Node {
        name: format!("n{i}"),
        kind: NodeKind::EndSystem { host: HostModel::default() },
        mac: MacAddress([2, 0, 0, 0, 0, i]),
        ipv4: [198, 18, 0, i],
        clock: wg_plan::Clock::default(),
        tsn: None,
        line_drift_ppb: 0,
        interframe_gap: 12,
        timestamps: None,
        events: Vec::new(),
    };
    let flow = Flow { deadline: Some(Span::from_millis(1)), ..Flow::plain(FLOW, Protocol::Udp, cable()) };
    let send = Send::periodic(FLOW, Span::from_micros(100), 64, MESSAGES);
    let run = Run {
        duration: Span::from_millis(20_000),
        flows: vec![flow],
        sends: vec![send],
        relays: vec![Relay {
            flow: FLOW,
            on: 1,
            vl: None,
            back: None,
            through: Turn::Servicing,
            faults: Vec::new(),
            detours: Vec::new(),
        }],
        ..Run::default()
    };
    (Network { nodes: (0..2).map(node).collect(), links: Vec::new() }, run)
}

/// What two agents record of the messages, one agent after the other.
fn agent_streams() -> Vec<Record> {
    use Point::{ApplicationReceive, ApplicationSend, DriverReceive, DriverSend, IntendedSend};
    const BACK: RecordFlags = RecordFlags::RETURN;
    const OUT: RecordFlags = RecordFlags::empty();
    const SENDER: &[(Point, i64, RecordFlags)] = &[
        (IntendedSend, 0, OUT),
        (ApplicationSend, 150, OUT),
        (DriverSend, 900, OUT),
        (DriverReceive, 9_000, BACK),
        (ApplicationReceive, 11_000, BACK),
    ];
    const RELAY: &[(Point, i64, RecordFlags)] = &[
        (DriverReceive, 3_000, OUT),
        (ApplicationReceive, 5_000, OUT),
        (ApplicationSend, 5_400, BACK),
        (DriverSend, 6_000, BACK),
    ];
    let stream = |node: u16, steps: &'static [(Point, i64, RecordFlags)]| {
        (0..MESSAGES).flat_map(move |sequence| {
            steps.iter().map(move |&(point, after_ns, flags)| Record {
                time: RunTime::from_picos(
                    (i64::from(sequence) * 100_000 + after_ns + i64::from(sequence * 7 % 400)) * 1_000,
                ),
                sequence,
                flow: FLOW,
                node,
                port: 1,
                length: 110,
                point,
                clock: if point == IntendedSend { Clock::Schedule } else { Clock::Realtime },
                crc: if point == ApplicationReceive { Crc::Ok } else { Crc::Unchecked },
                reason: DropReason::None,
                flags,
            })
        })
    };
    stream(0, SENDER).chain(stream(1, RELAY)).collect()
}

/// A directory of its own, gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("wiregauge-bench-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}
