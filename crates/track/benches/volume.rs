//! Many records, tracked: `cargo bench -p wg-record --bench volume -- FILE [RECORDS] [THREADS]`.
//!
//! Writes FILE (Parquet) with so many sent and received records of 16 flows unless it is there, with losses, duplicates
//! and swaps, and then answers for each flow: sent, received, p50, p99, p99.9 and maximum of the one-way latency.
//! Prints one line of JSON. `benches/log_processor.py` puts the same question to DuckDB and Polars.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;
use wg_frame::time::{RunTime, Span};
use wg_plan::{
    Attachment, Flow, Hop, HostModel, MacAddress, Network, NetworkId, Node, NodeKind, Protocol, Route, Run,
    Send,
};
use wg_record::{Clock, Crc, DropReason, Point, Record, RecordFlags};
use wg_track::parquet::RecordWriter;
use wg_track::summarise;
use wg_track::tracking::Measure;

const FLOWS: u16 = 16;
/// Time between two messages of a flow, ps.
const PERIOD: i64 = 100_000_000;
/// Messages of every flow that are made, sorted and written at once.
const CHUNK: u32 = 1 << 14;

fn main() {
    // Cargo passes `--bench`; without a file there is nothing to measure, and a build without optimisation measures
    // nothing: it only shows, in the tests, that this runs.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let smoke = std::env::temp_dir().join(format!("wiregauge-volume-{}.parquet", std::process::id()));
    let given = arguments.first().map(PathBuf::from);
    let Some(file) = given.clone().or(cfg!(debug_assertions).then(|| smoke.clone())) else {
        println!("volume: no FILE given; see benchmarks/log_processor.py");
        return;
    };
    let number = |place: usize, otherwise: u64| {
        arguments.get(place).map_or(Ok(otherwise), |text| text.parse()).expect("a number")
    };
    let records = number(1, if cfg!(debug_assertions) { 10_000 } else { 10_000_000 });
    let threads = usize::try_from(number(2, 2)).expect("a number of threads");
    let (network, run) = plan(records);
    if !file.exists() {
        write(&file, &run);
    }
    let start = Instant::now();
    let (summary, distributions) =
        summarise(&network, &run, &[file], &[Measure::Latency], threads).expect("a records file");
    let seconds = start.elapsed().as_secs_f64();
    let flows: Vec<_> = summary
        .flows
        .iter()
        .zip(&distributions.flows)
        .map(|(counts, (_, _, series))| {
            let latency = series.sketch(Measure::Latency).expect("latencies");
            let quantile = |q: f64| latency.rank((q * latency.n() as f64).ceil() as u64).map(|b| b.low);
            json!({
                "flow": counts.flow, "sent": counts.sent, "received": counts.delivered,
                "p50": quantile(0.5), "p99": quantile(0.99), "p99.9": quantile(0.999), "max": latency.max(),
            })
        })
        .collect();
    println!(
        "{}",
        json!({"records": summary.records, "seconds": seconds, "threads": threads, "flows": flows,
               "peak_kib": peak_kib()})
    );
    if given.is_none() {
        drop(std::fs::remove_file(&smoke));
    }
}

/// Most memory the process has had, KiB.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// From end system 0 to end system 1 over the one cable.
fn cable() -> Route {
    let end = |node| Attachment { node, port: 1 };
    Route { network: NetworkId::A, hops: vec![Hop { link: 0, from: end(0), to: end(1) }] }
}

fn plan(records: u64) -> (Network, Run) {
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
    let count = u32::try_from(records / 2 / u64::from(FLOWS)).expect("a count a flow can have");
    let flows = (1..=FLOWS).map(|id| Flow::plain(id, Protocol::Udp, cable())).collect();
    let sends = (1..=FLOWS).map(|id| Send::periodic(id, Span::from_micros(100), 64, count)).collect();
    let duration = Span::from_picos(PERIOD * i64::from(count));
    let run = Run { duration, flows, sends, ..Run::default() };
    (Network { nodes: (0..2).map(node).collect(), links: Vec::new() }, run)
}

fn write(file: &Path, run: &Run) {
    let count = run.sends.first().map_or(0, |send| send.count);
    let mut writer = RecordWriter::create(file, run.index).expect("a directory");
    let mut waiting: Vec<Record> = Vec::new();
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for from in (0..count).step_by(CHUNK as usize) {
        for sequence in from..count.min(from + CHUNK) {
            for flow in 1..=FLOWS {
                let sent = i64::from(sequence) * PERIOD + i64::from(flow) * (PERIOD / i64::from(FLOWS));
                let record = |time, node, point, crc| Record {
                    time: RunTime::from_picos(time),
                    sequence,
                    flow,
                    node,
                    port: 1,
                    length: 110,
                    point,
                    clock: Clock::Realtime,
                    crc,
                    reason: DropReason::None,
                    flags: RecordFlags::empty(),
                };
                let sent = sent + (next() % 2_000) as i64 * 1_000;
                waiting.push(record(sent, 0, Point::ApplicationSend, Crc::Unchecked));
                let draw = next();
                // Now and then a message is lost, comes twice, or is held back behind its successors.
                let copies = match draw % 10_000 {
                    0 => 0,
                    1 => 2,
                    _ => 1,
                };
                let held = if draw % 10_000 == 2 { 5 * PERIOD } else { 0 };
                let tail = (draw >> 20) % 1_000;
                let queue = if tail < 20 { (next() % 60_000) as i64 } else { (next() % 4_000) as i64 };
                for copy in 0..copies {
                    let arrived = sent + held + (9_000 + queue + copy * 700) * 1_000;
                    waiting.push(record(arrived, 1, Point::ApplicationReceive, Crc::Ok));
                }
            }
        }
        waiting.sort_by_key(|record| record.time);
        let done = i64::from(from + CHUNK) * PERIOD;
        let old = waiting.partition_point(|record| record.time.as_picos() < done);
        writer.write(&waiting[..old]).expect("room on the disk");
        waiting.drain(..old);
    }
    writer.write(&waiting).expect("room on the disk");
    writer.finish().expect("room on the disk");
}
