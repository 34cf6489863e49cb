//! What was asked of the host, and what it granted.

use std::io;

use wg_net::clock;
use wg_net::realtime::{self, AwakeCores};

use crate::proto;

/// A request the host granted (with what) or refused (with why).
pub fn grant(name: &str, done: io::Result<String>) -> proto::Grant {
    match done {
        Ok(detail) => proto::Grant { name: name.into(), granted: true, detail },
        Err(error) => proto::Grant { name: name.into(), granted: false, detail: error.to_string() },
    }
}

/// Readings of which the cost of one is taken.
const CLOCK_READS: usize = 1_000;

/// What is asked once for the whole program: memory kept in place and cores kept awake. With it goes what a reading of
/// the clock costs here, because every application timestamp is uncertain by that much.
pub fn of_process() -> (Vec<proto::Grant>, Option<AwakeCores>) {
    let locked = grant("mlockall", realtime::lock_memory().map(|()| "all pages".into()));
    let reading = grant("clock-read", Ok(format!("{} ns", clock::read_cost_ns(CLOCK_READS))));
    match realtime::keep_cores_awake() {
        Ok(awake) => (vec![locked, reading, grant("cpu-dma-latency", Ok("0 us".into()))], Some(awake)),
        Err(error) => (vec![locked, reading, grant("cpu-dma-latency", Err(error))], None),
    }
}

/// What a servicing thread asks for itself.
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

/// Adds grants, of which threads that asked alike were answered alike, once each.
pub fn merge(grants: &mut Vec<proto::Grant>, more: Vec<proto::Grant>) {
    for grant in more {
        if !grants.contains(&grant) {
            grants.push(grant);
        }
    }
}

/// Puts a task thread behind the servicing threads but before everything ordinary: its work per message is bounded, and
/// a servicing thread is only as good as what it is fed. Where the host refuses, it refused the servicing thread too, and
/// the run says so there.
pub fn of_task_thread(fifo_priority: u32) {
    if fifo_priority > 1 {
        let _ = realtime::fifo(fifo_priority / 2);
    }
}
