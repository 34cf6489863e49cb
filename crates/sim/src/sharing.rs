//! Simulates one network on several threads, in [stages](crate::stages).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::thread;

use wg_plan::{Network, Run};

use crate::engine::{self, staged};
use crate::error::SimError;
use crate::report::SimReport;
use crate::sink::Sink;
use crate::stages::exchange::{Exchange, Shared, StopsOthers};
use crate::stages::graph::Stages;
use crate::stages::merge::{self, StageSink};
use crate::stages::sum;

/// Batches between two stages, and between the stages and the merging thread, that may wait.
const WAITING: usize = 8;

/// Simulates `run` on `network` on up to `threads` threads, and hands the records to `sink` on this one. Records, truth and
/// report are those of [`simulate`](crate::simulate), whatever the number of threads; a network that cannot be divided is
/// simulated on this thread alone.
///
/// A frame that goes where no route leads may cross stages the wrong way, which shows only then. `again` is to empty the
/// sink in that case, and all is simulated again on this thread.
///
/// # Errors
/// As [`simulate`](crate::simulate), and those of `again`.
pub fn simulate_on<S: Sink>(
    network: &Network,
    run: &Run,
    threads: usize,
    sink: &mut S,
    again: impl FnOnce(&mut S) -> Result<(), SimError>,
) -> Result<SimReport, SimError> {
    let applied = run.switches.applied(network);
    if let Some(stages) = staged::stages(&applied, run, threads)? {
        if let Some(report) = in_stages(&applied, run, &Arc::new(stages), sink)? {
            return Ok(report);
        }
        again(sink)?;
    }
    engine::simulate(network, run, sink)
}

/// Simulates in stages; `None` if frames went where no route leads.
fn in_stages(
    network: &Network,
    run: &Run,
    stages: &Arc<Stages>,
    sink: &mut impl Sink,
) -> Result<Option<SimReport>, SimError> {
    let shared = Arc::new(Shared::new(stages.count));
    let (record, records) = sync_channel(WAITING);
    let (to, inboxes): (Vec<_>, Vec<_>) = (0..stages.count).map(|_| sync_channel(WAITING)).unzip();
    let (merged, reports) = thread::scope(|scope| {
        let (mut threads, mut back) = (Vec::new(), Vec::new());
        for (own, inbox) in (0_u8..).zip(inboxes) {
            let feeds = stages.feeds[usize::from(own)].iter().zip(&to);
            let to = feeds.map(|(feeds, to)| feeds.then(|| to.clone())).collect();
            let (stages, shared) = (stages.clone(), shared.clone());
            let (empty, empties) = sync_channel(WAITING);
            back.push(empty);
            let mut sink = StageSink::new(own.into(), record.clone(), empties, shared.clone());
            threads.push(scope.spawn(move || {
                let _others = StopsOthers(shared.clone());
                let exchange = Exchange::new((stages, shared.clone()), own, inbox, to);
                let done = staged::simulate_stage(network, run, exchange, &mut sink);
                match &done {
                    Ok(_) => sink.finish(),
                    Err(_) => shared.stop.store(true, Ordering::Relaxed),
                }
                done
            }));
        }
        drop((record, to));
        let merged = merge::merge(&records, &back, staged::planned_end(run), sink);
        // Stages that still hand over records find that nobody takes them.
        drop(records);
        let reports: Vec<_> =
            threads.into_iter().map(|thread| thread.join().unwrap_or(Err(SimError::Defect))).collect();
        (merged, reports)
    });
    if shared.astray.load(Ordering::Relaxed) {
        return Ok(None);
    }
    merged?;
    // The error of a stage stops the others: it comes before theirs.
    let (done, mut failed): (Vec<_>, Vec<_>) = reports.into_iter().partition(Result::is_ok);
    failed.sort_by_key(|one| matches!(one, Err(SimError::Stopped)));
    if let Some(Err(error)) = failed.into_iter().next() {
        return Err(error);
    }
    Ok(done.into_iter().flatten().reduce(sum::sum).map(|whole| sum::in_order(whole, network)))
}

/// The number of stages in which `run` on `network` is simulated on up to `threads` threads: 1 if it cannot be divided.
///
/// # Errors
/// [`SimError::Plan`] if the plan contradicts itself.
pub fn count_stages(network: &Network, run: &Run, threads: usize) -> Result<usize, SimError> {
    let stages = staged::stages(&run.switches.applied(network), run, threads)?;
    Ok(stages.map_or(1, |stages| stages.count))
}
