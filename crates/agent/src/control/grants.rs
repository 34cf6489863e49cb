//! Requests to the host, and whether it granted them.

use std::io;

use wg_net::clock;
use wg_net::realtime::{self, AwakeCores};

use crate::proto;

/// A request that the host granted (with a detail) or refused (with the reason).
pub fn grant(name: &str, done: io::Result<String>) -> proto::Grant {
    match done {
        Ok(detail) => proto::Grant { name: name.into(), granted: true, detail },
        Err(error) => proto::Grant { name: name.into(), granted: false, detail: error.to_string() },
    }
}

/// Number of readings for measuring the cost of one.
const CLOCK_READS: usize = 1_000;

/// Requests for the whole program: locked memory and cores kept awake. Also reports the cost of a clock reading, which
/// is an uncertainty of every application timestamp.
pub fn of_process() -> (Vec<proto::Grant>, Option<AwakeCores>) {
    let locked = grant("mlockall", realtime::lock_memory().map(|()| "all pages".into()));
    let reading = grant("clock-read", Ok(format!("{} ns", clock::read_cost_ns(CLOCK_READS))));
    match realtime::keep_cores_awake() {
        Ok(awake) => (vec![locked, reading, grant("cpu-dma-latency", Ok("0 us".into()))], Some(awake)),
        Err(error) => (vec![locked, reading, grant("cpu-dma-latency", Err(error))], None),
    }
}

/// Requests of a servicing thread for itself.
pub fn of_servicing_thread(fifo_priority: u32, core: Option<usize>) -> Vec<proto::Grant> {
    let mut grants = Vec::new();
    if fifo_priority > 0 {
        let done = realtime::fifo(fifo_priority).map(|()| format!("priority {fifo_priority}"));
        grants.push(grant("sched-fifo", done));
    }
    if let Some(core) = core {
        grants.push(grant("affinity", realtime::bind_to_core(core).map(|()| format!("core {core}"))));
    }
    grants.push(grant("timer-slack", realtime::no_timer_slack().map(|()| "1 ns".into())));
    grants
}

/// Adds grants; equal requests of several threads with equal answers are listed once.
pub fn merge(grants: &mut Vec<proto::Grant>, more: Vec<proto::Grant>) {
    for grant in more {
        if !grants.contains(&grant) {
            grants.push(grant);
        }
    }
}

/// Schedules a task thread after the servicing threads but before all ordinary ones: its work per message is bounded,
/// and a servicing thread depends on its input. Where the host refuses, it refused the servicing thread too, which the
/// run reports.
pub fn of_task_thread(fifo_priority: u32) {
    if fifo_priority > 1 {
        let _ = realtime::fifo(fifo_priority / 2);
    }
}
