//! Instrument data that the log processor needs to grade the run.

use std::thread;

use wg_frame::ethernet::wire_len;

use crate::control::role::RoleReport;
use crate::control::supervision::defect;
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
use crate::stream::summary::{AccountSummary, RxDropsSummary, SendSummary};
use crate::timestamps::PortTimestamps;

/// Properties of a stream before it starts.
#[derive(Clone, Debug)]
pub(super) struct StreamInfo {
    /// `send` or `inject`.
    pub(super) kind: &'static str,
    /// Index among the senders or injectors of this end system.
    pub(super) position: usize,
    /// Send backend.
    pub(super) backend: &'static str,
    /// Reason for the backend.
    pub(super) why: String,
    /// Pacing: what is preserved when a frame is late.
    pub(super) pacing: &'static str,
    /// True if the stream bypasses the queue.
    pub(super) past_queue: bool,
}

impl StreamInfo {
    /// Properties of a stream that is about to start.
    pub(super) fn new(kind: &'static str, position: usize, stream: &StreamTask) -> Self {
        let chosen = &stream.chosen;
        Self {
            kind,
            position,
            backend: chosen.backend.name(),
            why: chosen.why.clone(),
            pacing: stream.pacing.name(),
            past_queue: chosen.past_queue,
        }
    }
}

/// Statistics of all threads of a run. A panicked thread is a defect and makes the run incomplete.
#[derive(Default)]
pub(super) struct Gathered {
    /// Reason why the run is incomplete.
    reason: Option<String>,
    access_points: Vec<(AccessKind, AccessPointStats)>,
    receptions: Vec<ReceptionStats>,
    relays: Vec<RelayState>,
    streams: Vec<(StreamInfo, Outcome)>,
    load_sink: Option<LoadSinkStats>,
    /// Reason why received background load has no account.
    pub(super) no_account: Option<String>,
    captures: Vec<CaptureStats>,
}

impl Gathered {
    /// Records the first reason why the run is incomplete.
    fn incomplete(&mut self, reason: String) {
        self.reason.get_or_insert(reason);
    }

    /// Records that a thread ended unexpectedly.
    pub(super) fn defect(&mut self, who: &str) {
        self.incomplete(defect(who));
    }

    /// Adds the statistics of a servicing thread.
    pub(super) fn take_access_point(
        &mut self,
        access: AccessKind,
        joined: thread::Result<Option<AccessPointStats>>,
    ) {
        match joined {
            Ok(Some(mut stats)) => {
                if let Some(failure) = stats.failure.take() {
                    self.incomplete(format!("{}: {failure}", access.name()));
                }
                self.relays.append(&mut stats.relays);
                self.receptions.extend(stats.reception.take());
                self.access_points.push((access, stats));
            }
            Ok(None) => {}
            Err(_) => self.defect("a servicing thread"),
        }
    }

    /// Adds the statistics of a relay task; to be called after its access point's.
    pub(super) fn take_relay_task(
        &mut self,
        access: AccessKind,
        joined: thread::Result<Option<RelayTaskStats>>,
    ) {
        match joined {
            Ok(Some(stats)) => {
                self.relays.extend(stats.relays);
                for (_, access_point) in self.access_points.iter_mut().filter(|(a, _)| *a == access) {
                    access_point.send_errors += stats.refused;
                }
            }
            Ok(None) => {}
            Err(_) => self.defect("a relay task"),
        }
    }

    /// Adds the statistics of a receiver task.
    pub(super) fn take_reception(&mut self, joined: thread::Result<Option<ReceptionStats>>) {
        match joined {
            Ok(stats) => self.receptions.extend(stats),
            Err(_) => self.defect("a receiver task"),
        }
    }

    /// Adds the outcome of a stream.
    pub(super) fn take_stream(&mut self, info: StreamInfo, joined: Vec<thread::Result<Option<Outcome>>>) {
        let mut all = Outcome::default();
        for (number, one) in joined.into_iter().enumerate() {
            let Ok(outcome) = one else { return self.defect("a stream") };
            let mut outcome = outcome.unwrap_or_default();
            if let Some(failure) = outcome.failure.take() {
                self.incomplete(format!("{} by {}: {failure}", info.kind, info.backend));
            }
            // Several threads share no schedule to compare with, so only the frames sent are counted.
            all = if number == 0 { outcome } else { all.with(&outcome) };
        }
        self.streams.push((info, all));
    }

    /// Adds the statistics of the background-load receiver.
    pub(super) fn take_load_sink(&mut self, joined: thread::Result<Option<LoadSinkStats>>) {
        match joined {
            Ok(Some(mut load_sink)) => {
                if let Some(failure) = load_sink.failure.take() {
                    self.incomplete(failure);
                }
                self.load_sink = Some(load_sink);
            }
            Ok(None) => {}
            Err(_) => self.defect("the receiver of background load"),
        }
    }

    /// Adds the statistics of a capture. An incomplete capture affects no measurement; its task reports it.
    pub(super) fn take_capture(&mut self, joined: thread::Result<CaptureStats>) {
        match joined {
            Ok(stats) => self.captures.push(stats),
            Err(_) => self.defect("a capture task"),
        }
    }

    fn flow(&self, position: u16) -> FlowStats {
        let mut sum = FlowStats::default();
        for stats in self.receptions.iter().filter_map(|r| r.flows.get(usize::from(position))) {
            sum.add(stats);
        }
        sum
    }

    /// Report of the end system.
    pub(super) fn report(self, assignment: &Assignment, mut timestamps: PortTimestamps) -> RoleReport {
        for (_, stats) in &self.access_points {
            timestamps.stats.add(&stats.hardware);
        }
        RoleReport {
            access_points: self
                .access_points
                .iter()
                .map(|(access, stats)| access_point(*access, stats))
                .collect(),
            tasks: tasks(assignment, &self),
            streams: streams(assignment, &self),
            timestamps: vec![timestamps],
            involuntary_switches: self
                .access_points
                .iter()
                .map(|(_, stats)| stats.involuntary_switches)
                .sum(),
            incomplete: self.reason,
            ..RoleReport::default()
        }
    }

    /// Handled and damaged messages of a relay. A relay runs on one thread, but every thread that returns messages
    /// holds a state for it.
    fn relay(&self, position: u16) -> (u64, u64) {
        self.relays
            .iter()
            .filter(|relay| relay.flow() == position)
            .fold((0, 0), |(handled, damaged), relay| (handled + relay.handled, damaged + relay.damaged))
    }
}

fn access_point(access: AccessKind, stats: &AccessPointStats) -> proto::AccessPointReport {
    proto::AccessPointReport {
        protocol: access.name().into(),
        frames_sent: stats.frames_sent,
        frames_received: stats.frames_received,
        send_errors: stats.send_errors,
        socket_drops: stats.socket_drops,
        inbox_drops: stats.inbox_drops,
        missing_tx_timestamps: stats.missing_tx_timestamps,
        missing_rx_timestamps: stats.missing_rx_timestamps,
        foreign_frames: stats.foreign_frames,
    }
}

fn tasks(assignment: &Assignment, gathered: &Gathered) -> Vec<proto::TaskReport> {
    let mut tasks = Vec::new();
    for (position, task) in assignment.sends.iter().enumerate() {
        let at = usize::from(task.flow);
        let mut report = of_flow("send", task.flow, task.schedule.total(), assignment, gathered);
        add_answers(&mut report, task.flow, assignment, gathered);
        for stats in gathered.access_points.iter().filter_map(|(_, f)| f.sends.get(at)) {
            report.done += stats.done;
            report.late += stats.late;
        }
        let of_stream = |info: &StreamInfo| info.kind == "send" && info.position == position;
        for (_, outcome) in gathered.streams.iter().filter(|(info, _)| of_stream(info)) {
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
    for (info, outcome) in gathered.streams.iter().filter(|(info, _)| info.kind == "inject") {
        let Some(task) = assignment.loads.get(info.position) else { continue };
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
    tasks.extend(gathered.captures.iter().map(CaptureStats::report));
    tasks.extend(watch(assignment, gathered));
    tasks
}

/// Streams sent from here and loads received here.
fn streams(assignment: &Assignment, gathered: &Gathered) -> Vec<proto::StreamReport> {
    let mut reports = Vec::new();
    for (info, outcome) in &gathered.streams {
        let number = match info.kind {
            "send" => assignment.sends.get(info.position).map(|task| u32::from(task.send.flow)),
            _ => assignment.loads.get(info.position).map(|task| task.number),
        };
        reports.push(proto::StreamReport {
            kind: info.kind.into(),
            number: number.unwrap_or(0),
            backend: info.backend.into(),
            why: info.why.clone(),
            pacing: info.pacing.into(),
            past_queue: info.past_queue,
            figures_json: json(&SendSummary::of(&outcome.done)),
        });
    }
    let Some(load_sink) = &gathered.load_sink else {
        reports.extend(assignment.loads_to_here.iter().filter_map(|task| {
            let why = gathered.no_account.clone()?;
            let kind = "absorb".into();
            Some(proto::StreamReport { kind, number: task.number, why, ..proto::StreamReport::default() })
        }));
        return reports;
    };
    for (task, account) in assignment.loads_to_here.iter().zip(&load_sink.accounts) {
        let stats = serde_json::json!({
            "account": AccountSummary::of(account),
            "foreign": load_sink.foreign,
            "missed": RxDropsSummary::from(load_sink.drops),
        });
        reports.push(proto::StreamReport {
            kind: "absorb".into(),
            number: task.number,
            backend: load_sink.backend.into(),
            why: load_sink.why.clone(),
            figures_json: stats.to_string(),
            ..proto::StreamReport::default()
        });
    }
    reports
}

/// The figures are plain numbers and names, whose serialization cannot fail.
fn json(stats: &impl serde::Serialize) -> String {
    serde_json::to_string(stats).unwrap_or_default()
}

fn of_flow(
    kind: &str,
    flow: u16,
    planned: u64,
    assignment: &Assignment,
    gathered: &Gathered,
) -> proto::TaskReport {
    let stats = gathered.flow(flow);
    proto::TaskReport {
        kind: kind.into(),
        flow: u32::from(assignment.flows[usize::from(flow)].id),
        planned,
        crc_errors: stats.crc_errors,
        wrong_destination: stats.wrong_destination,
        sequence_gaps: stats.sequence_gaps,
        sequence_repeats: stats.sequence_repeats,
        ..proto::TaskReport::default()
    }
}

/// Adds the messages returned to the sender of a flow whose relays have their own flow numbers.
fn add_answers(report: &mut proto::TaskReport, flow: u16, assignment: &Assignment, gathered: &Gathered) {
    for (at, _) in (0_u16..).zip(&assignment.flows).filter(|(_, facts)| facts.answers == Some(flow)) {
        let back = gathered.flow(at);
        report.crc_errors += back.crc_errors;
        report.wrong_destination += back.wrong_destination;
        report.sequence_gaps += back.sequence_gaps;
        report.sequence_repeats += back.sequence_repeats;
    }
}

/// One report line for all messages that no task expected; `None` if there are none.
fn watch(assignment: &Assignment, gathered: &Gathered) -> Option<proto::TaskReport> {
    let mut report = proto::TaskReport { kind: "watch".into(), ..proto::TaskReport::default() };
    report.unknown_flow = gathered.receptions.iter().map(|r| r.unknown_flow).sum();
    for (at, facts) in (0_u16..).zip(&assignment.flows) {
        if facts.role == FlowRole::Unexpected {
            let stats = gathered.flow(at);
            report.done += stats.received;
            report.crc_errors += stats.crc_errors;
            report.wrong_destination += stats.wrong_destination;
        }
    }
    report.done += report.unknown_flow + report.wrong_destination + report.crc_errors;
    (report.done > 0).then_some(report)
}
