//! Simulation of all runs of a sweep, in parallel.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use wg_plan::{Campaign, Run};

use crate::engine::simulate;
use crate::error::SimError;
use crate::report::SimReport;
use crate::sink::{Spool, Watched};

/// Simulates every run of `campaign` on `threads` threads (at least one), run `i` into the directory `spool_of(run)`,
/// one folder per node, and returns the reports in the order of the runs.
///
/// Runs are independent, so files are the same bytes at any number of threads. `finished` is called on this thread with
/// each run as it ends, in the order of ending; false stops the campaign.
///
/// # Errors
/// The first error of [`simulate`], in the order of the runs; [`SimError::Stopped`] if `finished` returned false.
pub fn simulate_campaign(
    campaign: &Campaign,
    spool_of: impl Fn(&Run) -> PathBuf + Sync,
    threads: usize,
    mut finished: impl FnMut(&Run, &SimReport) -> bool,
) -> Result<Vec<SimReport>, SimError> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut reports: Vec<Option<Result<SimReport, SimError>>> = campaign.runs.iter().map(|_| None).collect();
    let mut stopped = false;
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        for _ in 0..threads.clamp(1, campaign.runs.len().max(1)) {
            let (tell, next, stop, spool_of) = (tell.clone(), &next, &stop, &spool_of);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(run) = campaign.runs.get(index) else { return };
                    // The receiver is gone when the campaign was stopped.
                    drop(tell.send((index, into_spool(campaign, run, spool_of(run), stop))));
                }
            });
        }
        drop(tell);
        for (index, outcome) in told {
            let go_on = match &outcome {
                Ok(report) => finished(&campaign.runs[index], report),
                Err(_) => false,
            };
            stopped |= outcome.is_ok() && !go_on;
            reports[index] = Some(outcome);
            if !go_on {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
    let mut whole = Vec::with_capacity(reports.len());
    for report in reports {
        match report {
            Some(Ok(report)) => whole.push(report),
            Some(Err(SimError::Stopped)) | None => {}
            Some(Err(error)) => return Err(error),
        }
    }
    if whole.len() == campaign.runs.len() {
        return Ok(whole);
    }
    Err(if stopped { SimError::Stopped } else { SimError::Defect })
}

fn into_spool(
    campaign: &Campaign,
    run: &Run,
    spool: PathBuf,
    stop: &AtomicBool,
) -> Result<SimReport, SimError> {
    let sink = Spool::create(&spool, &campaign.network, run)?;
    let mut watched = Watched { sink, watch: |_| !stop.load(Ordering::Relaxed) };
    let report = simulate(&campaign.network, run, &mut watched)?;
    watched.sink.finish()?;
    Ok(report)
}
