//! What the log processor must know of the instrument to grade the run.

use std::thread;

use wg_frame::ethernet::wire_len;
use wg_frame::time::Epoch;
use wg_record::RecordError;

use crate::end_system::addressing::AccessKind;
use crate::end_system::assignment::{Assignment, FlowRole};
use crate::end_system::load_sink::LoadSinkStats;
use crate::end_system::receiver_task::{FlowStats, ReceptionStats};
use crate::end_system::relay::RelayState;
use crate::end_system::relay_task::RelayTaskStats;
use crate::end_system::servicing::AccessPointStats;
use crate::end_system::stream_task::{Outcome, StreamTask, load_shape};
use crate::proto;
use crate::recording::packet_capture::CaptureStats;
use crate::recording::record_writer::LoggingStats;
use crate::stream::summary::{AccountSummary, RxDropsSummary, SendSummary};
use crate::timestamps::{self, HardwareStats, TimestampInfo};

/// What is known of a stream before it starts.
#[derive(Clone, Debug)]
pub struct StreamInfo {
    /// `send` or `inject`.
    pub kind: &'static str,
    /// Its place among the senders or injectors of this end system.
    pub position: usize,
    /// How it leaves.
    pub backend: &'static str,
    /// Why so.
    pub why: String,
    /// What is kept.
    pub mode: &'static str,
    /// Whether it passes by the queue.
    pub past_queue: bool,
}

impl StreamInfo {
    /// Of a stream about to start.
    pub fn new(kind: &'static str, position: usize, stream: &StreamTask) -> Self {
        let chosen = &stream.chosen;
        Self {
            kind,
            position,
            backend: chosen.backend.name(),
            why: chosen.why.clone(),
            mode: stream.pacing.name(),
            past_queue: chosen.past_queue,
        }
    }
}

/// The figures of all threads of a run. A thread that panicked is a defect and makes the run incomplete.
#[derive(Default)]
pub struct Gathered {
    /// Why the run is incomplete.
    reason: Option<String>,
    /// Stolen time during the run.
    pub steal_ns: u64,
    /// What the host granted.
    grants: Vec<proto::Grant>,
    /// The run's epoch, ns.
    started: Option<i64>,
    /// When the last thread had ended, ns.
    pub ended: i64,
    access_points: Vec<(AccessKind, AccessPointStats)>,
    receptions: Vec<ReceptionStats>,
    relays: Vec<RelayState>,
    streams: Vec<(StreamInfo, Outcome)>,
    absorbed: Option<LoadSinkStats>,
    /// Why background load that arrived here has no account.
    pub no_account: Option<String>,
    captures: Vec<CaptureStats>,
    /// By what frames were timestamped.
    pub stamped: TimestampInfo,
    logging: LoggingStats,
}

impl Gathered {
    /// Before any thread was joined.
    pub fn new(epoch: Option<Epoch>, reason: Option<String>, grants: Vec<proto::Grant>) -> Self {
        Self { reason, grants, started: epoch.map(|epoch| epoch.wall().get()), ..Self::default() }
    }

    /// Notes the first reason why the run is incomplete.
    fn incomplete(&mut self, reason: String) {
        self.reason.get_or_insert(reason);
    }

    /// A thread that should not have ended.
    pub fn defect(&mut self, who: &str) {
        self.incomplete(format!("{who} of the agent failed; this is a defect of wiregauge"));
    }

    /// The end of a servicing thread.
    pub fn take_access_point(
        &mut self,
        access: AccessKind,
        joined: thread::Result<Option<AccessPointStats>>,
    ) {
        match joined {
            Ok(Some(mut figures)) => {
                if let Some(failure) = figures.failure.take() {
                    self.incomplete(format!("{}: {failure}", access.name()));
                }
                self.relays.append(&mut figures.relays);
                self.receptions.extend(figures.reception.take());
                self.access_points.push((access, figures));
            }
            Ok(None) => {}
            Err(_) => self.defect("a servicing thread"),
        }
    }

    /// The end of a relay task; to be told after its access point.
    pub fn take_relay_task(&mut self, access: AccessKind, joined: thread::Result<Option<RelayTaskStats>>) {
        match joined {
            Ok(Some(figures)) => {
                self.relays.extend(figures.relays);
                for (_, access_point) in self.access_points.iter_mut().filter(|(a, _)| *a == access) {
                    access_point.send_errors += figures.refused;
                }
            }
            Ok(None) => {}
            Err(_) => self.defect("a relay task"),
        }
    }

    /// The end of a receiver task.
    pub fn take_reception(&mut self, joined: thread::Result<Option<ReceptionStats>>) {
        match joined {
            Ok(figures) => self.receptions.extend(figures),
            Err(_) => self.defect("a receiver task"),
        }
    }

    /// The end of a stream.
    pub fn take_stream(&mut self, told: StreamInfo, joined: thread::Result<Option<Outcome>>) {
        match joined {
            Ok(outcome) => {
                let mut outcome = outcome.unwrap_or_default();
                if let Some(failure) = outcome.failure.take() {
                    self.incomplete(format!("{} by {}: {failure}", told.kind, told.backend));
                }
                self.streams.push((told, outcome));
            }
            Err(_) => self.defect("a stream"),
        }
    }

    /// The end of the receiver of background load.
    pub fn take_load_sink(&mut self, joined: thread::Result<Option<LoadSinkStats>>) {
        match joined {
            Ok(Some(mut absorbed)) => {
                if let Some(failure) = absorbed.failure.take() {
                    self.incomplete(failure);
                }
                self.absorbed = Some(absorbed);
            }
            Ok(None) => {}
            Err(_) => self.defect("the receiver of background load"),
        }
    }

    /// The end of a capture. One that is not whole spoils no measurement: it is told with its task.
    pub fn take_capture(&mut self, joined: thread::Result<CaptureStats>) {
        match joined {
            Ok(figures) => self.captures.push(figures),
            Err(_) => self.defect("a capture task"),
        }
    }

    /// The end of the logging thread.
    pub fn take_logging(&mut self, joined: thread::Result<Option<Result<LoggingStats, RecordError>>>) {
        match joined {
            Ok(Some(Ok(mut figures))) => {
                if let Some(failure) = figures.failure.take() {
                    self.incomplete(failure);
                }
                self.logging = figures;
            }
            Ok(Some(Err(error))) => self.incomplete(error.to_string()),
            Ok(None) => {}
            Err(_) => self.defect("the logging thread"),
        }
    }

    /// The end of the thread that watches the host.
    pub fn take_host_counters(&mut self, joined: thread::Result<Option<String>>) {
        match joined {
            Ok(failure) => failure.into_iter().for_each(|failure| self.incomplete(failure)),
            Err(_) => self.defect("the thread that watches the host"),
        }
    }

    fn flow(&self, position: u16) -> FlowStats {
        let mut sum = FlowStats::default();
        for figures in self.receptions.iter().filter_map(|r| r.flows.get(usize::from(position))) {
            sum.add(figures);
        }
        sum
    }

    /// A relay runs on one thread, but every thread that turns messages holds a state for it.
    fn relay(&self, position: u16) -> (u64, u64) {
        self.relays
            .iter()
            .filter(|relay| relay.flow() == position)
            .fold((0, 0), |(handled, damaged), relay| (handled + relay.handled, damaged + relay.damaged))
    }
}

/// The report to the testmaster.
pub fn compose(assignment: &Assignment, gathered: Gathered) -> proto::AgentReport {
    let access_points = gathered
        .access_points
        .iter()
        .map(|(access, figures)| proto::AccessPointReport {
            protocol: access.name().into(),
            frames_sent: figures.frames_sent,
            frames_received: figures.frames_received,
            send_errors: figures.send_errors,
            socket_drops: figures.socket_drops,
            inbox_drops: figures.inbox_drops,
            missing_tx_stamps: figures.missing_tx_stamps,
            missing_rx_stamps: figures.missing_rx_stamps,
            foreign_frames: figures.foreign_frames,
        })
        .collect();
    proto::AgentReport {
        end_system: assignment.name.clone(),
        complete: gathered.reason.is_none(),
        incomplete_reason: gathered.reason.clone().unwrap_or_default(),
        access_points,
        tasks: tasks(assignment, &gathered),
        records_written: gathered.logging.written,
        records_dropped: gathered.logging.dropped,
        clock_steps: gathered.logging.clock_steps,
        largest_clock_step_ns: gathered.logging.largest_clock_step_ns,
        involuntary_switches: gathered.access_points.iter().map(|(_, f)| f.involuntary_switches).sum(),
        steal_ns: gathered.steal_ns,
        started_realtime_ns: gathered.started.unwrap_or(gathered.ended),
        ended_realtime_ns: gathered.ended,
        streams: streams(assignment, &gathered),
        stamps: vec![stamps(&gathered)],
        grants: gathered.grants,
    }
}

/// By what frames were timestamped, and what became of the interface's timestamps.
fn stamps(gathered: &Gathered) -> proto::StampReport {
    let told = &gathered.stamped;
    let mut got = HardwareStats::default();
    for (_, figures) in &gathered.access_points {
        got.add(&figures.hardware);
    }
    let epoch = gathered.started.unwrap_or(gathered.ended);
    proto::StampReport {
        interface: told.interface.clone(),
        transmit: told.transmit.into(),
        receive: told.receive.into(),
        why: told.why.clone(),
        figures_json: timestamps::json(told, &got, gathered.logging.placed.as_ref(), epoch),
    }
}

fn tasks(assignment: &Assignment, gathered: &Gathered) -> Vec<proto::TaskReport> {
    let mut tasks = Vec::new();
    for (position, task) in assignment.sends.iter().enumerate() {
        let at = usize::from(task.flow);
        let mut report = of_flow("send", task.flow, task.schedule.total(), assignment, gathered);
        for figures in gathered.access_points.iter().filter_map(|(_, f)| f.sends.get(at)) {
            report.done += figures.done;
            report.late += figures.late;
        }
        let of_stream = |told: &StreamInfo| told.kind == "send" && told.position == position;
        for (_, outcome) in gathered.streams.iter().filter(|(told, _)| of_stream(told)) {
            report.done += outcome.sends.done;
            report.late += outcome.sends.late;
        }
        tasks.push(report);
    }
    for &flow in &assignment.receives {
        let planned = assignment.flows[usize::from(flow)].planned;
        let mut report = of_flow("receive", flow, planned, assignment, gathered);
        report.done = gathered.flow(flow).received;
        tasks.push(report);
    }
    for task in &assignment.relays {
        let planned = assignment.flows[usize::from(task.flow)].planned;
        let mut report = of_flow("relay", task.flow, planned, assignment, gathered);
        let (handled, damaged) = gathered.relay(task.flow);
        report.done = handled;
        report.crc_errors += damaged;
        tasks.push(report);
    }
    for (told, outcome) in gathered.streams.iter().filter(|(told, _)| told.kind == "inject") {
        let Some(task) = assignment.loads.get(told.position) else { continue };
        let taken = outcome.done.offered.saturating_sub(outcome.done.refused);
        let on_wire = wire_len(load_shape(assignment, task).frame_len()) as u64;
        tasks.push(proto::TaskReport {
            kind: "inject".into(),
            planned: task.schedule.due_before(assignment.load_until()) * u64::from(task.inject.burst),
            done: taken,
            wire_bytes: taken * on_wire,
            ..proto::TaskReport::default()
        });
    }
    tasks.extend(gathered.captures.iter().map(capture));
    tasks.extend(watch(assignment, gathered));
    tasks
}

/// Streams sent here and loads that arrived here.
fn streams(assignment: &Assignment, gathered: &Gathered) -> Vec<proto::StreamReport> {
    let mut reports = Vec::new();
    for (told, outcome) in &gathered.streams {
        let number = match told.kind {
            "send" => assignment.sends.get(told.position).map(|task| u32::from(task.send.flow)),
            _ => assignment.loads.get(told.position).map(|task| task.number),
        };
        reports.push(proto::StreamReport {
            kind: told.kind.into(),
            number: number.unwrap_or(0),
            backend: told.backend.into(),
            why: told.why.clone(),
            mode: told.mode.into(),
            past_queue: told.past_queue,
            figures_json: json(&SendSummary::of(&outcome.done)),
        });
    }
    let Some(absorbed) = &gathered.absorbed else {
        reports.extend(assignment.loads_to_here.iter().filter_map(|task| {
            let why = gathered.no_account.clone()?;
            let kind = "absorb".into();
            Some(proto::StreamReport { kind, number: task.number, why, ..proto::StreamReport::default() })
        }));
        return reports;
    };
    for (task, account) in assignment.loads_to_here.iter().zip(&absorbed.accounts) {
        let figures = serde_json::json!({
            "account": AccountSummary::of(account),
            "foreign": absorbed.foreign,
            "missed": RxDropsSummary::from(absorbed.drops),
        });
        reports.push(proto::StreamReport {
            kind: "absorb".into(),
            number: task.number,
            backend: absorbed.entrance.into(),
            why: absorbed.why.clone(),
            figures_json: figures.to_string(),
            ..proto::StreamReport::default()
        });
    }
    reports
}

/// Figures are plain numbers and names: nothing in them can fail to be written.
fn json(figures: &impl serde::Serialize) -> String {
    serde_json::to_string(figures).unwrap_or_default()
}

fn of_flow(
    kind: &str,
    flow: u16,
    planned: u64,
    assignment: &Assignment,
    gathered: &Gathered,
) -> proto::TaskReport {
    let figures = gathered.flow(flow);
    proto::TaskReport {
        kind: kind.into(),
        flow: u32::from(assignment.flows[usize::from(flow)].id),
        planned,
        crc_errors: figures.crc_errors,
        wrong_destination: figures.wrong_destination,
        sequence_gaps: figures.sequence_gaps,
        sequence_repeats: figures.sequence_repeats,
        ..proto::TaskReport::default()
    }
}

/// The report of a capture.
fn capture(figures: &CaptureStats) -> proto::TaskReport {
    proto::TaskReport {
        kind: "capture".into(),
        planned: figures.seen,
        done: figures.written,
        ring_drops: figures.dropped,
        unwritten: figures.unwritten,
        hardware_stamps: figures.by_hardware,
        failure: figures.failure.clone().unwrap_or_default(),
        ..proto::TaskReport::default()
    }
}

/// What came here although no task expected it: one line in all, and only if there was something.
fn watch(assignment: &Assignment, gathered: &Gathered) -> Option<proto::TaskReport> {
    let mut report = proto::TaskReport { kind: "watch".into(), ..proto::TaskReport::default() };
    report.unknown_flow = gathered.receptions.iter().map(|r| r.unknown_flow).sum();
    for (at, facts) in (0_u16..).zip(&assignment.flows) {
        if facts.duty == FlowRole::Watch {
            let figures = gathered.flow(at);
            report.done += figures.received;
            report.crc_errors += figures.crc_errors;
            report.wrong_destination += figures.wrong_destination;
        }
    }
    report.done += report.unknown_flow + report.wrong_destination + report.crc_errors;
    (report.done > 0).then_some(report)
}
