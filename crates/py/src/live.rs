//! Live figures of a simulated run, from its segments while they are written.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use serde::Serialize;
use wg_frame::time::RunTime;
use wg_net::realtime;
use wg_plan::Run;
use wg_record::live::{ClockState, ClockStates, FlowSums, LiveFlow, LivePart, LiveSums, PortSums};
use wg_record::segment::SegmentFollower;
use wg_record::{TableFollower, Truth};

use crate::error::NativeError;
use crate::plan_json::parse;

/// Pause where no new batch is there.
const PAUSE: Duration = Duration::from_millis(50);
/// Interval between figures.
const EVERY: Duration = Duration::from_secs(1);
/// Messages of a flow that may be under way, each with a stored send time.
const UNDER_WAY: u64 = 2_048;

/// What `figures` returns as JSON, in the terms of the agents' `LiveFigures`.
#[derive(Serialize)]
struct Figures {
    number: u32,
    at_ns: i64,
    records_dropped: u64,
    flows: Vec<FlowSums>,
    flows_left_out: u32,
    network: NetworkFigures,
}

#[derive(Serialize)]
struct NetworkFigures {
    ports: Vec<PortSums>,
    clocks: Vec<ClockState>,
}

/// What reader and caller share.
#[derive(Default)]
struct Shared {
    shown: Mutex<Option<Figures>>,
    stopped: AtomicBool,
}

/// A simulated run that is followed until `stop`, on a thread that has only time that nobody else wants: it may fall
/// behind, and the simulation does not notice it.
#[pyclass]
pub struct LiveRun {
    shared: Arc<Shared>,
}

#[pymethods]
impl LiveRun {
    /// Begins to follow a run by its segments and the truth beside them. Raises NativeError.
    #[new]
    fn new(run_json: &str, segments: PathBuf, spool: PathBuf) -> PyResult<Self> {
        let run: Run = parse("run", run_json)?;
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("live".to_owned())
            .spawn(move || follow(&run, SegmentFollower::new(&segments), TableFollower::new(&spool), &own))
            .map_err(|error| NativeError::new_err(error.to_string()))?;
        Ok(Self { shared })
    }

    /// JSON of the sums of a second, once; None where there are no new ones.
    fn figures(&self) -> Option<String> {
        let shown = self.shared.shown.try_lock().ok()?.take()?;
        serde_json::to_string(&shown).ok()
    }

    /// Ends it. The thread is not awaited: it may get no time for long.
    fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
    }
}

impl Drop for LiveRun {
    fn drop(&mut self) {
        self.stop();
    }
}

fn flows_of(run: &Run) -> Vec<LiveFlow> {
    let part = |id, to| match run.relays.iter().any(|relay| relay.flow == id) {
        true => LivePart::RoundTrip,
        false => LivePart::Both(to),
    };
    run.flows
        .iter()
        .filter(|flow| !flow.exchange)
        .map(|flow| LiveFlow {
            id: flow.id,
            part: part(flow.id, flow.to),
            planned: u64::MAX,
            in_half_a_second: UNDER_WAY,
        })
        .collect()
}

fn follow(run: &Run, mut segments: SegmentFollower, mut truth: TableFollower<Truth>, shared: &Shared) {
    // Refused on no supported kernel; the figures would then cost the simulation a little.
    drop(realtime::idle());
    let (mut sums, mut clocks) = (LiveSums::new(flows_of(run)), ClockStates::default());
    let (mut number, mut latest, mut shown) = (0_u32, RunTime::from_picos(0), Instant::now());
    while !shared.stopped.load(Ordering::Relaxed) {
        match segments.next_batch() {
            // A damaged or removed file has nothing more to show.
            Err(_) => return,
            Ok(None) => std::thread::sleep(PAUSE),
            Ok(Some(records)) => {
                sums.take(records);
                latest = records.last().map_or(latest, |record| latest.max(record.time));
            }
        }
        if shown.elapsed() < EVERY || !sums.has_begun() {
            continue;
        }
        shown = Instant::now();
        // Without it the clocks stay as they were last known, with that time.
        while let Ok(Some(entries)) = truth.next_batch() {
            entries.iter().for_each(|entry| clocks.take(entry));
        }
        number = number.saturating_add(1);
        *shared.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(Figures {
            number,
            at_ns: latest.as_picos() / 1_000,
            records_dropped: 0,
            flows: sums.look(true),
            flows_left_out: sums.left_out(),
            network: NetworkFigures { ports: sums.look_at_ports(), clocks: clocks.all() },
        });
    }
}
