//! The test thread: waits for the end of a run, ends its threads in the order of the data, and reports.
//!
//! An end system whose own part is over goes on receiving until the testmaster ends the run: another may send late, and what
//! came after its receiver had left would be told as lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use wg_net::realtime::AwakeCores;
use wg_net::{DiscardSocket, HardwareTimestamping, clock};
use wg_record::RecordError;

use crate::control::gate::Gate;
use crate::end_system::assignment::Assignment;
use crate::end_system::load_sink::LoadSinkStats;
use crate::end_system::report::{self, Gathered};
use crate::end_system::servicing::Counters;
use crate::end_system::threads::{AccessPoint, Stream};
use crate::proto;
use crate::recording::packet_capture::CaptureStats;
use crate::recording::record_writer::LoggingStats;
use crate::timestamps::TimestampInfo;

/// How long senders that run late may go on after the planned end.
const GRACE_NS: i64 = 10_000_000_000;
/// Time between looks at whether the run is over, once it should be; many agents on a host look less often each.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const MANY: u32 = 8;
/// Time between looks before: hundreds of agents may share a processor. Who gives an order wakes the thread.
const REST: Duration = Duration::from_millis(500);

/// Everything the supervisor joins at the end.
pub(crate) struct RunThreads {
    pub(crate) access_points: Vec<AccessPoint>,
    pub(crate) streams: Vec<Stream>,
    pub(crate) absorber: Option<JoinHandle<Option<LoadSinkStats>>>,
    pub(crate) no_account: Option<String>,
    pub(crate) capture: Option<JoinHandle<CaptureStats>>,
    pub(crate) stop_capturing: Arc<AtomicBool>,
    pub(crate) logging: JoinHandle<Option<Result<LoggingStats, RecordError>>>,
    pub(crate) host_counters: JoinHandle<Option<String>>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) stop_injecting: Arc<AtomicBool>,
    pub(crate) grants: Vec<proto::Grant>,
    pub(crate) stamped: TimestampInfo,
    pub(crate) _timestamping: Option<HardwareTimestamping>,
    pub(crate) _sinks: Vec<DiscardSocket>,
    pub(crate) _awake: Option<AwakeCores>,
}

/// What others tell the test thread, and it tells them.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// Set to end early.
    pub(crate) abort: AtomicBool,
    /// Set to end once its own part is over.
    pub(crate) finish: AtomicBool,
    /// Set when its own part is over.
    pub(crate) over: AtomicBool,
}

/// The test thread: waits for the end of the run, ends the threads in the order of the data, and reports.
pub(crate) fn supervise(
    assignment: &Arc<Assignment>,
    gate: &Gate,
    orders: &Orders,
    counters: &[Arc<Counters>],
    crew: RunThreads,
    agents_on_host: u32,
) -> proto::AgentReport {
    let epoch = gate.wait();
    let look = (LOOK_EVERY * agents_on_host.div_ceil(MANY).max(1)).min(REST);
    let steal = wg_net::host::steal_ns();
    let mut reason = None;
    match epoch {
        None => reason = Some("the run was never started".to_owned()),
        Some(epoch) => {
            let drain = assignment.drain.as_nanos_floor();
            let last_send = epoch.wall_nanos(assignment.last_send).get();
            let end = last_send + drain;
            // When the last message had left, and when its way ends at the latest.
            let mut all_sent_at = None;
            loop {
                let now = clock::realtime().get();
                let sent: u64 = counters.iter().map(|c| c.sent.load(Ordering::Relaxed)).sum();
                let all_sent = sent >= assignment.to_send();
                if all_sent && all_sent_at.is_none() {
                    all_sent_at = Some(now);
                }
                let is_over = now >= end && all_sent_at.is_some_and(|at| now >= at.saturating_add(drain));
                if orders.abort.load(Ordering::Relaxed) {
                    let left = assignment.to_send().saturating_sub(sent);
                    if now < end || !all_sent {
                        reason = Some(format!("ended early, with {left} messages still to send"));
                    }
                    break;
                }
                if is_over {
                    orders.over.store(true, Ordering::Release);
                    if orders.finish.load(Ordering::Relaxed) {
                        break;
                    }
                } else if !all_sent && now >= end + GRACE_NS {
                    let left = assignment.to_send().saturating_sub(sent);
                    reason = Some(format!(
                        "{left} messages were still to be sent 10 s after the planned end; the host is too slow for this rate"
                    ));
                    break;
                }
                let nothing_ends_for = last_send.saturating_sub(now).max(0).unsigned_abs();
                std::thread::park_timeout(Duration::from_nanos(nothing_ends_for).clamp(look, REST));
            }
        }
    }
    crew.stop_injecting.store(true, Ordering::Relaxed);
    crew.stop.store(true, Ordering::Relaxed);
    let mut gathered = Gathered::new(epoch, reason, crew.grants);
    gathered.stamped = crew.stamped;
    gathered.steal_ns =
        wg_net::host::steal_ns().zip(steal).map_or(0, |(after, before)| after.saturating_sub(before));
    for access_point in crew.access_points {
        let access = access_point.access;
        gathered.take_access_point(access, access_point.servicing.join());
        if let Some(task) = access_point.relay_task {
            gathered.take_relay_task(access, task.join());
        }
        if let Some(task) = access_point.reception {
            gathered.take_reception(task.join());
        }
        if access_point.feed.is_some_and(|feed| feed.join().is_err()) {
            gathered.defect("a sender task");
        }
    }
    for stream in crew.streams {
        if let Some(stopper) = stream.stopper {
            // Nothing to stop once its frames have left; a refusal only means waiting for them.
            let _ = stopper.stop();
        }
        gathered.take_stream(stream.told, stream.thread.join());
    }
    if let Some(absorber) = crew.absorber {
        gathered.take_load_sink(absorber.join());
    }
    gathered.no_account = crew.no_account;
    // Last of all, so that it has seen what the others did.
    crew.stop_capturing.store(true, Ordering::Relaxed);
    if let Some(capture) = crew.capture {
        gathered.take_capture(capture.join());
    }
    gathered.take_logging(crew.logging.join());
    gathered.take_host_counters(crew.host_counters.join());
    gathered.ended = clock::realtime().get();
    report::compose(assignment, gathered)
}
