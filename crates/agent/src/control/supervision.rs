//! The test thread: waits for the end of a run, ends its role, and reports.
//!
//! A node whose own part is over goes on receiving until the testmaster ends the run: another may send late, and what
//! arrives after its receiver has left would be reported as lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use wg_frame::time::Epoch;
use wg_net::clock;
use wg_net::realtime::AwakeCores;

use super::gate::Gate;
use super::role::{ActiveRole, Counters, RoleReport, Timetable};
use crate::recording::record_writer::{self, RecordWriterStats};
use crate::recording::remote_log::RemoteLogStats;
use crate::tsn::{self, InForce};
use crate::{proto, timestamps};

/// Time for which late senders may go on after the planned end.
pub(super) const GRACE_NS: i64 = 10_000_000_000;
/// Interval of checks whether the run is over, once it should be; longer with many agents on a host.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const MANY: u32 = 8;
/// Interval of checks before: hundreds of agents may share a processor. A command wakes the thread.
const REST: Duration = Duration::from_millis(500);

/// Flags between the test thread and others.
#[derive(Debug, Default)]
pub(super) struct Commands {
    /// Set to end the run early.
    pub(super) abort: AtomicBool,
    /// Set to end the run once the role's part is over.
    pub(super) finish: AtomicBool,
    /// Set by the test thread when the role's part is over.
    pub(super) over: AtomicBool,
    /// Irreversible event of the run.
    pub(super) trouble: OnceLock<String>,
}

/// Result of a run.
pub(super) struct Outcome {
    epoch: Option<Epoch>,
    /// Reason why the run is incomplete; `None`: complete.
    reason: Option<String>,
    /// Events that its role reported during the run.
    trouble: Option<String>,
    steal_ns: u64,
}

/// Waits for the end of the run, which `role` has a part in.
pub(super) fn supervise(
    timetable: Timetable,
    gate: &Gate,
    commands: &Commands,
    counters: &[Arc<Counters>],
    agents_on_host: u32,
    role: &dyn ActiveRole,
) -> Outcome {
    let epoch = gate.wait();
    let steal = wg_net::host::steal_ns();
    let reason = match epoch {
        None => Some("the run was never started".to_owned()),
        Some(epoch) => wait_for_the_end(timetable, epoch, commands, counters, agents_on_host, role),
    };
    let steal_ns =
        wg_net::host::steal_ns().zip(steal).map_or(0, |(after, before)| after.saturating_sub(before));
    Outcome { epoch, reason, trouble: commands.trouble.get().cloned(), steal_ns }
}

/// Returns why the run is incomplete.
fn wait_for_the_end(
    timetable: Timetable,
    epoch: Epoch,
    commands: &Commands,
    counters: &[Arc<Counters>],
    agents_on_host: u32,
    role: &dyn ActiveRole,
) -> Option<String> {
    let Timetable { last_send, drain, to_send } = timetable;
    let look = (LOOK_EVERY * agents_on_host.div_ceil(MANY).max(1)).min(REST);
    let drain = drain.as_nanos_floor();
    let last_send = epoch.wall_nanos(last_send).get();
    let end = last_send + drain;
    // When the last message had left, and the latest end of its path.
    let mut all_sent_at = None;
    let rest_ns = i64::try_from(REST.as_nanos()).unwrap_or(i64::MAX);
    let mut look_at = i64::MIN;
    loop {
        let now = clock::realtime().get();
        if now >= look_at && commands.trouble.get().is_none() {
            look_at = now.saturating_add(rest_ns);
            role.trouble().map(|trouble| commands.trouble.set(trouble));
        }
        let sent: u64 = counters.iter().map(|c| c.sent.load(Ordering::Relaxed)).sum();
        let (all_sent, left) = (sent >= to_send, to_send.saturating_sub(sent));
        if all_sent && all_sent_at.is_none() {
            all_sent_at = Some(now);
        }
        let is_over = now >= end && all_sent_at.is_some_and(|at| now >= at.saturating_add(drain));
        if commands.abort.load(Ordering::Relaxed) {
            let early = now < end || !all_sent;
            return early.then(|| format!("ended early, with {left} messages still to send"));
        }
        if is_over {
            commands.over.store(true, Ordering::Release);
            if commands.finish.load(Ordering::Relaxed) {
                return None;
            }
        } else if !all_sent && now >= end + GRACE_NS {
            return Some(format!(
                "{left} messages were still unsent 10 s after the planned end; the host is too slow for this rate"
            ));
        }
        let nothing_ends_for = last_send.saturating_sub(now).max(0).unsigned_abs();
        std::thread::park_timeout(Duration::from_nanos(nothing_ends_for).clamp(look, REST));
    }
}

/// All threads that end with a run.
pub(super) struct RunThreads {
    pub(super) role: Box<dyn ActiveRole>,
    pub(super) writer: JoinHandle<record_writer::Outcome>,
    pub(super) host_counters: JoinHandle<Option<String>>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) tsn: Option<InForce>,
    pub(super) _awake: Option<AwakeCores>,
}

impl RunThreads {
    /// Ends the threads in the order of the data flow, and reports.
    pub(super) fn finish(
        self,
        name: String,
        outcome: Outcome,
        mut grants: Vec<proto::Grant>,
    ) -> proto::AgentReport {
        let Outcome { epoch, reason, trouble, steal_ns } = outcome;
        self.stop.store(true, Ordering::Relaxed);
        let role = self.role.close();
        let mut incomplete = reason.or(role.incomplete).or(trouble);
        let written = match self.writer.join() {
            Ok(Some(Ok(mut written))) => {
                incomplete = incomplete.or(written.failure.take());
                written
            }
            Ok(None) => RecordWriterStats::default(),
            Ok(Some(Err(error))) => {
                incomplete.get_or_insert_with(|| error.to_string());
                RecordWriterStats::default()
            }
            Err(_) => {
                incomplete.get_or_insert_with(|| defect("the record writer"));
                RecordWriterStats::default()
            }
        };
        let counted = self
            .host_counters
            .join()
            .unwrap_or_else(|_| Some(defect("the thread that reads the host's counters")));
        incomplete = incomplete.or(counted);
        if let Some(Err(problem)) = self.tsn.map(InForce::take_off) {
            grants.push(tsn::left_behind(problem));
        }
        let ended = clock::realtime().get();
        let started = epoch.map_or(ended, |epoch| epoch.wall().get());
        let RoleReport { access_points, mut tasks, streams, timestamps, involuntary_switches, .. } = role;
        tasks.extend(written.remote_log.map(remote_log));
        proto::AgentReport {
            end_system: name,
            complete: incomplete.is_none(),
            incomplete_reason: incomplete.unwrap_or_default(),
            access_points,
            tasks,
            records_written: written.written,
            records_dropped: written.dropped,
            clock_steps: written.clock_steps,
            largest_clock_step_ns: written.largest_clock_step_ns,
            involuntary_switches,
            steal_ns,
            started_realtime_ns: started,
            ended_realtime_ns: ended,
            streams,
            timestamps: timestamps
                .iter()
                .map(|port| timestamps::report(port, written.translated.get(&port.port), started))
                .collect(),
            grants,
            releases: role.releases,
            intake: role.intake,
            cost: role.cost,
            simulation_json: role.simulation,
            captures: role.captures,
            foreign: role.foreign,
            overlong: role.overlong,
        }
    }
}

/// Report of the remote log task.
fn remote_log(log: RemoteLogStats) -> proto::TaskReport {
    proto::TaskReport {
        kind: "remote-log".into(),
        planned: log.frames,
        done: log.sent,
        wire_bytes: log.wire_bytes,
        ..proto::TaskReport::default()
    }
}

/// Message about a thread that ended unexpectedly.
pub(crate) fn defect(who: &str) -> String {
    format!("{who} of the agent failed; this is a defect of wiregauge")
}
