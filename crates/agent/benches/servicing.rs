//! What a record costs the servicing thread, what its live figures cost the logging thread, and whether the logging
//! thread keeps up.
//!
//! `cargo bench -p wg-agent --bench servicing`. Prints one line of JSON per figure. Exit code 1 when a bar is missed:
//! at most 100 ns added per record, none lost at 1.5 million records per second.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use wg_agent::recording::live::{LiveFigures, LiveFlow, LivePart};
use wg_agent::recording::record_ring::{self, MessageInfo, RecordProducer};
use wg_agent::recording::record_writer::{self, Sources, WriterConfig};
use wg_frame::time::{Epoch, RunTime, WallNanos};
use wg_net::clock;
use wg_record::{Clock, Crc, DropReason, Point, Record, RecordFlags};

const BAR_NS: f64 = 100.0;
const RATE: u64 = if SMOKE { 1_000 } else { 1_500_000 };
/// A build without optimisation measures nothing: it only shows, in the tests, that this runs.
const SMOKE: bool = cfg!(debug_assertions);
const SECONDS: u64 = if SMOKE { 1 } else { 3 };
/// As large as a run makes its rings at most.
const RING: usize = 1 << 20;

fn seen(sequence: u32) -> MessageInfo {
    MessageInfo { flow: 7, sequence, length: 64, crc: Crc::Ok, flags: RecordFlags::empty() }
}

fn push(log: &mut RecordProducer, sequence: u32, now: WallNanos) {
    log.push(seen(sequence), Point::ApplicationSend, Clock::Realtime, DropReason::None, now);
}

fn config() -> WriterConfig {
    WriterConfig {
        node: 0,
        name: "bench".into(),
        run_index: 0,
        planted: None,
        planted_host: None,
        common_epoch: Arc::default(),
    }
}

/// The median over 200 bursts of 1000 records, so that a burst in which the thread was preempted does not count.
fn cost_ns() -> f64 {
    let (mut log, mut source) = record_ring::record_ring(4096, 0, 1);
    let epoch = clock::realtime();
    log.begin(Epoch::new(epoch));
    let mut costs: Vec<f64> = (0..200)
        .map(|_| {
            let start = clock::monotonic_raw();
            for sequence in 0..1000 {
                push(&mut log, std::hint::black_box(sequence), epoch);
            }
            let took = clock::monotonic_raw() - start;
            while source.ring.pop().is_ok() {}
            took as f64 / 1000.0
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}

fn live(part: LivePart) -> LiveFigures {
    let flow = LiveFlow { id: 7, part, planned: u64::MAX, in_half_a_second: 10_000 };
    LiveFigures::new(vec![flow], None, Arc::default())
}

/// What the logging thread pays for live figures of a record: of a round trip, which is the dearest. Median of 200
/// bursts.
fn live_cost_ns() -> f64 {
    let mut live = live(LivePart::RoundTrip);
    let record = |sequence: u32, point, flags| Record {
        time: RunTime::from_picos(i64::from(sequence) * 1_000_000),
        sequence,
        flow: 7,
        node: 0,
        port: 1,
        length: 64,
        point,
        clock: Clock::Realtime,
        crc: Crc::Ok,
        reason: DropReason::None,
        flags,
    };
    let mut costs: Vec<f64> = (0..200)
        .map(|burst| {
            let records: Vec<Record> = (burst * 500..(burst + 1) * 500)
                .flat_map(|sequence| {
                    [
                        record(sequence, Point::ApplicationSend, RecordFlags::empty()),
                        record(sequence, Point::ApplicationReceive, RecordFlags::RETURN),
                    ]
                })
                .collect();
            let start = clock::monotonic_raw();
            live.take(std::hint::black_box(&records));
            let took = clock::monotonic_raw() - start;
            took as f64 / records.len() as f64
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}

/// Pushes at [`RATE`] in steps of 1 ms on an absolute schedule; returns records written and dropped.
fn sustain(directory: &std::path::Path) -> Result<(u64, u64), String> {
    let (mut log, source) = record_ring::record_ring(RING, 0, 1);
    let epoch = clock::realtime();
    log.begin(Epoch::new(epoch));
    let dropped = source.dropped.clone();
    let spool = directory.to_owned();
    let logger = std::thread::spawn(move || {
        let sources = Sources {
            rings: vec![source],
            clocks: Vec::new(),
            live: live(LivePart::RoundTrip),
            remote_log: None,
        };
        record_writer::run(&spool, config(), Epoch::new(epoch), sources)
    });
    let per_step = RATE / 1000;
    for step in 0..SECONDS * 1000 {
        clock::sleep_until(WallNanos::new(epoch.get() + step as i64 * 1_000_000));
        for i in 0..per_step {
            push(&mut log, (step * per_step + i) as u32, clock::realtime());
        }
    }
    drop(log);
    let stats = logger.join().map_err(|_| "the logging thread failed")?.map_err(|e| e.to_string())?;
    Ok((stats.written, dropped.load(Ordering::Relaxed)))
}

fn main() -> ExitCode {
    let cost = cost_ns();
    let live_cost = live_cost_ns();
    let directory = std::env::temp_dir().join(format!("wiregauge-bench-{}", std::process::id()));
    let sustained = sustain(&directory);
    drop(std::fs::remove_dir_all(&directory));
    println!("{{\"figure\": \"record_cost_ns\", \"value\": {cost:.1}, \"bar\": {BAR_NS}}}");
    println!("{{\"figure\": \"live_cost_ns\", \"value\": {live_cost:.1}, \"bar\": {BAR_NS}}}");
    match sustained {
        Ok((written, dropped)) => {
            println!(
                "{{\"figure\": \"records_lost\", \"value\": {dropped}, \"bar\": 0, \"written\": {written}, \"rate\": {RATE}}}"
            );
            let met =
                SMOKE || cost <= BAR_NS && live_cost <= BAR_NS && dropped == 0 && written == RATE * SECONDS;
            if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(problem) => {
            eprintln!("servicing bench: {problem}");
            ExitCode::FAILURE
        }
    }
}
