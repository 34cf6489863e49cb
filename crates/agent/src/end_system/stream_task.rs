//! Streams as tasks of a run: senders and injectors of an end system, each with its frames, backend and schedule.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wg_core::pacing::Pacing;
use wg_frame::ethernet::MacAddress;
use wg_frame::layout::{Carrier, Envelope};
use wg_frame::probe::{Probe, ProbeFlags};
use wg_frame::template::Template;
use wg_frame::time::{Epoch, RunTime, Span, WallNanos};
use wg_net::transmit::{Backend, LiveFrames, LiveSchedule, Stopper, trial_frame};
use wg_net::{Interface, clock};
use wg_plan::schedule::Schedule;
use wg_plan::{Addresses, Inject, Pattern, Protocol, Replay};
use wg_record::{Clock, Crc, DropReason, Point};

use crate::control::role::Counters;
use crate::end_system::addressing::AccessKind;
use crate::end_system::assignment::{Assignment, DISCARD_PORT, LoadTask, SendTask};
use crate::end_system::flooder::{Flooder, wait_until};
use crate::end_system::framing;
use crate::end_system::servicing::SendStats;
use crate::recording::record_ring::RecordProducer;
use crate::stream::backend::{BackendError, ChosenBackend, LaunchPolicy, StreamNeeds, StreamSender, choose};
use crate::stream::paced_sender::{DueFrame, PacedSender, PacedStats, SendObserver, Unobserved, Waiting};
use crate::stream::{FrameSpec, TRANSMIT_TIME_OF_LOAD};

/// Delay, ns, after which a burst of background load is skipped: a host too slow for the load must not spend the rest
/// of the run catching up.
const GIVE_UP: i64 = 20_000_000;
/// Mean time between frames above which sending leaves a core mostly idle, ps.
const RESTFUL_GAP_PS: i64 = 10_000_000;
/// Interval between trial frames, long enough for small receive buffers.
const BETWEEN_TRIALS: std::time::Duration = std::time::Duration::from_millis(1);
/// Time before the first live frame at which the kernel takes over, ns.
const HEAD_START: i64 = 20_000;

/// Stream ready to start.
pub struct StreamTask {
    /// Selected backend.
    pub chosen: ChosenBackend,
    /// Pacing: what is preserved when a frame is late.
    pub pacing: Pacing,
    schedule: Schedule,
    /// Frames sent per item of the schedule.
    burst: u32,
    /// Frame length of each template, ascending.
    lengths: Vec<u16>,
    of: Of,
}

enum Of {
    Send { position: u16, late_after_ns: i64, in_turn: Option<Addresses> },
    Load { until: RunTime, spin: bool, flooder: Option<Flooder> },
}

/// Result of a stream for the run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Figures of the stream.
    pub done: PacedStats,
    /// Send counts reported by a sender task.
    pub sends: SendStats,
    /// First error.
    pub failure: Option<String>,
}

fn backend_of(backend: Option<wg_plan::Backend>) -> Option<Backend> {
    backend.map(|backend| match backend {
        wg_plan::Backend::Udp => Backend::Udp,
        wg_plan::Backend::Packet => Backend::Packet,
        wg_plan::Backend::Xdp => Backend::Xdp,
        wg_plan::Backend::XdpLive => Backend::Live,
    })
}

fn wish_of(launch: Option<bool>) -> LaunchPolicy {
    match launch {
        None => LaunchPolicy::Auto,
        Some(true) => LaunchPolicy::On,
        Some(false) => LaunchPolicy::Off,
    }
}

impl StreamTask {
    /// Stream of a sender task.
    ///
    /// # Errors
    /// No backend supports it.
    pub fn of_send(
        assignment: &Assignment,
        interface: &Interface,
        task: &SendTask,
        distrusted: &[(Backend, String)],
    ) -> Result<Self, BackendError> {
        let facts = &assignment.flows[usize::from(task.flow)];
        let envelope = assignment.outward(facts, 0);
        let spec = |payload| FrameSpec {
            flow: facts.id,
            envelope,
            payload,
            transmit_time: task.send.transmit_time.map(usize::from),
            number: (facts.protocol == Protocol::Rc).then_some(task.send.sub_link),
        };
        let lengths = lengths_of(task, facts.length);
        let around = usize::from(facts.length).saturating_sub(usize::from(facts.payload));
        let specs: Vec<FrameSpec> = match lengths[..] {
            // A single frame may be padded.
            [_] if task.send.replay.is_none() => vec![spec(usize::from(facts.payload))],
            // Frames of a replay never are.
            _ => lengths.iter().map(|length| spec(usize::from(*length).saturating_sub(around))).collect(),
        };
        let pacing = task.send.pacing.unwrap_or_default();
        let constant = task.send.pattern == Pattern::Periodic
            && task.send.activity.is_none()
            && task.send.rate_limit_bps.is_none()
            && task.send.replay.is_none();
        let least_gap_ps = match task.send.pattern {
            Pattern::Bursts { spacing, .. } => spacing.as_picos(),
            Pattern::Ramp { to, .. } => to.min(task.send.period).as_picos(),
            Pattern::Periodic | Pattern::Exponential => task.send.period.as_picos(),
        };
        let least_gap_ps = match &task.send.replay {
            Some(replay) => gap_of(replay),
            None => least_gap_ps,
        };
        let chosen = choose(&StreamNeeds {
            interface,
            specs: &specs,
            // Messages from a host to itself can only pass through its stack.
            forced: if facts.is_loopback { Some(Backend::Udp) } else { backend_of(task.send.backend) },
            least_gap_ps,
            constant_gap_ps: constant.then_some(least_gap_ps),
            recorded: true,
            alone: assignment.may_pass_queues(),
            plain_headers: facts.access == AccessKind::Udp && facts.headers.addresses.is_none(),
            launch: if facts.is_loopback { LaunchPolicy::Off } else { wish_of(task.send.launch) },
            priority: assignment.priority(facts),
            distrusted,
            tried_later: true,
        })?;
        let addresses = facts.headers.addresses;
        let in_turn = (!addresses.macs.is_none()).then_some(addresses);
        let of = Of::Send { position: task.flow, late_after_ns: facts.late_after_ns, in_turn };
        Ok(Self { chosen, pacing, schedule: task.schedule.clone(), burst: 1, lengths, of })
    }

    /// Stream of an injector.
    ///
    /// # Errors
    /// No backend supports it.
    pub fn of_load(
        assignment: &Assignment,
        interface: &Interface,
        task: &LoadTask,
        distrusted: &[(Backend, String)],
        flooder: Option<Flooder>,
    ) -> Result<Self, BackendError> {
        let LoadTask { inject, schedule, .. } = task;
        let pacing = inject.pacing.unwrap_or_default();
        let one_by_one = inject.burst == 1 && !inject.exponential && inject.activity.is_none();
        let gap = if inject.burst == 1 && flooder.is_none() { inject.interval.as_picos() } else { 0 };
        let chosen = choose(&StreamNeeds {
            interface,
            specs: &[load_shape(assignment, task)],
            forced: backend_of(inject.backend),
            least_gap_ps: gap,
            constant_gap_ps: (one_by_one && flooder.is_none()).then_some(gap),
            recorded: false,
            alone: assignment.may_pass_queues(),
            plain_headers: true,
            launch: wish_of(inject.launch),
            priority: 0,
            distrusted,
            tried_later: true,
        })?;
        let of = Of::Load { until: assignment.load_until(), spin: inject.pacing.is_some(), flooder };
        let lengths = Vec::new();
        Ok(Self { chosen, pacing, schedule: schedule.clone(), burst: inject.burst, lengths, of })
    }

    /// True if the stream sleeps most of the time: any host can send its frames, and the test sets no timing limits.
    pub fn is_restful(&self) -> bool {
        let Of::Load { spin: false, .. } = &self.of else { return false };
        let mut ahead = self.schedule.clone();
        let gap_ps = match (ahead.next(), ahead.next()) {
            (Some(first), Some(second)) => (second.at - first.at).as_picos() / i64::from(self.burst.max(1)),
            _ => i64::MAX,
        };
        gap_ps > RESTFUL_GAP_PS
    }

    /// True if trial frames may be sent by its backend: not by one through the host's own stack, whose frames a
    /// receiver would count as messages, and not by one that needs a launch time.
    pub fn can_be_tried(&self) -> bool {
        self.chosen.backend != Backend::Udp && self.chosen.launch.is_none()
    }

    /// Sends `frames` trial frames by the stream's backend to its destination.
    ///
    /// # Errors
    /// The backend is unusable.
    pub fn try_out(&mut self, frames: u32) -> Result<u32, String> {
        match &mut self.chosen.sender {
            StreamSender::Live(live, template) => {
                live.try_out(&trial_frame(&template.0), frames).map_err(|error| error.to_string())?;
            }
            StreamSender::Transmitter(transmitter, templates) => {
                let Some((bytes, _)) = templates.first() else { return Ok(0) };
                let frame = trial_frame(bytes);
                for _ in 0..frames {
                    if let Some(slot) = transmitter.slot() {
                        slot.bytes[..frame.len()].copy_from_slice(&frame);
                        // The template must be written again.
                        *slot.template = 0;
                        transmitter.commit(frame.len());
                    }
                    transmitter.flush().map_err(|error| error.to_string())?;
                    std::thread::sleep(BETWEEN_TRIALS);
                }
            }
        }
        Ok(frames)
    }

    /// Handle that stops the stream while the kernel sends it.
    pub fn stopper(&self) -> Option<Stopper> {
        match &self.chosen.sender {
            StreamSender::Live(live, _) => Some(live.stopper()),
            StreamSender::Transmitter(..) => None,
        }
    }

    /// Sends until the schedule ends; `in_turn` with others that wait awake on the same core. `observer` records and
    /// counts the messages of a sender task.
    pub fn run(
        self,
        assignment: &Assignment,
        epoch: Epoch,
        in_turn: bool,
        stop: &AtomicBool,
        observer: Option<(&mut RecordProducer, &Counters)>,
    ) -> Outcome {
        if let Of::Load { until, flooder: Some(flooder), .. } = &self.of {
            let (until, flooder) = (*until, flooder.clone());
            return self.flood(&flooder, until, epoch, stop);
        }
        let Self { chosen, pacing, schedule, burst, lengths, of } = self;
        let mut outcome = Outcome::default();
        let (mut transmitter, templates) = match chosen.sender {
            StreamSender::Transmitter(transmitter, templates) => (transmitter, templates),
            StreamSender::Live(mut live, template) => {
                let until = match of {
                    Of::Load { until, .. } => until,
                    Of::Send { .. } => assignment.last_send,
                };
                if let Some(schedule) = live_schedule(&schedule, until, epoch, pacing) {
                    send_live(&mut live, &template.1, &schedule, stop, &mut outcome);
                }
                return outcome;
            }
        };
        let facts = |position| &assignment.flows[usize::from(position)];
        let mut sender = PacedSender {
            transmitter: &mut transmitter,
            templates: &templates,
            epoch,
            pacing,
            give_up_ns: None,
            ahead_ns: chosen.launch.map(|launch| launch.ahead_ns),
            waiting: if in_turn { Waiting::AwakeInTurn } else { Waiting::Awake },
            in_turn: match of {
                Of::Send { in_turn, .. } => in_turn,
                Of::Load { .. } => None,
            },
            stop,
        };
        let sent = match (of, observer) {
            (Of::Send { position, late_after_ns, .. }, Some((records, counters))) => {
                let (flow, stats) = (facts(position).id, SendStats::default());
                let mut recorder =
                    SendRecorder { records, counters, flow, lengths: &lengths, late_after_ns, stats };
                let sent = sender.run(dues(schedule, &lengths), &mut outcome.done, &mut recorder);
                outcome.sends = recorder.stats;
                outcome.sends.done -= outcome.done.refused.min(outcome.sends.done);
                sent
            }
            (Of::Send { .. }, None) => {
                sender.run(dues(schedule, &lengths), &mut outcome.done, &mut Unobserved)
            }
            (Of::Load { until, spin, .. }, _) => {
                if !spin {
                    sender.waiting = Waiting::Asleep;
                }
                sender.give_up_ns = (pacing == Pacing::Rate).then_some(GIVE_UP);
                sender.run(bursts(schedule, until, burst), &mut outcome.done, &mut Unobserved)
            }
        };
        outcome.failure = sent.err().map(|error| error.to_string());
        outcome
    }
}

impl StreamTask {
    /// Sends bursts and sleeps between them.
    fn flood(self, flooder: &Flooder, until: RunTime, epoch: Epoch, stop: &AtomicBool) -> Outcome {
        let mut outcome = Outcome::default();
        // Frames generated in the kernel have a constant gap, unlike those of a flooder.
        let StreamSender::Transmitter(mut transmitter, templates) = self.chosen.sender else {
            return outcome;
        };
        let Some(template) = templates.first() else { return outcome };
        let sent = flooder.run(&mut transmitter, template, epoch, until, stop, &mut outcome.done);
        outcome.failure = sent.err().map(|error| error.to_string());
        outcome
    }
}

impl Outcome {
    /// Sum with the outcome of another thread of the same stream.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.done.offered += other.done.offered;
        self.done.refused += other.done.refused;
        self.done.span = match (self.done.span, other.done.span) {
            (Some(own), Some(theirs)) => Some((own.0.min(theirs.0), own.1.max(theirs.1))),
            (own, theirs) => own.or(theirs),
        };
        self
    }
}

/// Frames of an injector: `burst` of them for each item of its schedule before `until`.
fn bursts(schedule: Schedule, until: RunTime, burst: u32) -> impl Iterator<Item = DueFrame> {
    let times = schedule
        .take_while(move |due| due.at < until)
        .flat_map(move |due| std::iter::repeat_n(due.at, burst.max(1) as usize));
    // Numbers wrap after 2³² frames, which the receiver's window allows.
    let numbers = (0..=u32::MAX).cycle();
    times.zip(numbers).map(|(at, sequence)| DueFrame { at, sequence, warm_up: false, template: 0 })
}

/// Schedule of live frames; `None`: no frame is due.
fn live_schedule(schedule: &Schedule, until: RunTime, epoch: Epoch, pacing: Pacing) -> Option<LiveSchedule> {
    let count = u32::try_from(schedule.due_before(until)).unwrap_or(u32::MAX);
    let mut ahead = schedule.clone();
    let first = ahead.next().filter(|_| count > 0)?;
    Some(LiveSchedule {
        first: 0,
        count,
        flags: ProbeFlags::NONE,
        epoch_ns: epoch.wall().get(),
        first_due_ps: first.at.as_picos(),
        gap_ps: ahead.next().map_or(0, |second| (second.at - first.at).as_picos()),
        exact_gaps: pacing == Pacing::Gap,
    })
}

fn send_live(
    live: &mut LiveFrames,
    template: &Template,
    schedule: &LiveSchedule,
    stop: &AtomicBool,
    outcome: &mut Outcome,
) {
    let begin = schedule.epoch_ns + schedule.first_due_ps.div_euclid(1_000);
    wait_until(begin - HEAD_START, stop);
    if stop.load(Ordering::Relaxed) {
        return;
    }
    match live.send(template, schedule) {
        Ok(()) => outcome.done.offered = u64::from(schedule.count),
        Err(error) => outcome.failure = Some(format!("live frames: {error}")),
    }
    outcome.done.span = Some((begin, clock::realtime().get()));
}

/// Frame lengths of a sender, ascending.
fn lengths_of(task: &SendTask, length: u16) -> Vec<u16> {
    task.send.replay.as_ref().map_or_else(|| vec![length], distinct_lengths)
}

/// Frame lengths of a replay, ascending.
pub fn distinct_lengths(replay: &Replay) -> Vec<u16> {
    let all = replay.trace.frames().iter().map(|frame| frame.length.max(replay.least));
    all.collect::<BTreeSet<u16>>().into_iter().collect()
}

/// Frames of a schedule, each with the template of its length.
pub fn dues(schedule: Schedule, lengths: &[u16]) -> impl Iterator<Item = DueFrame> + '_ {
    schedule.map(|due| {
        let template = u16::try_from(lengths.binary_search(&due.length).unwrap_or(0)).unwrap_or(0);
        DueFrame { at: due.at, sequence: due.sequence, warm_up: due.warm_up, template }
    })
}

/// Smallest mean gap between frames of a replay within any millisecond, ps.
pub fn gap_of(replay: &Replay) -> i64 {
    let window = Span::from_millis(1);
    window.as_picos() / i64::try_from(replay.densest(window)).unwrap_or(i64::MAX).max(1)
}

/// Frames of an injector; its number in the plan, counted from 1, replaces the flow number.
pub fn load_shape(assignment: &Assignment, task: &LoadTask) -> FrameSpec {
    let Inject { on, to, payload, .. } = task.inject;
    let (here, there) = (assignment.addresses[usize::from(on)], assignment.addresses[usize::from(to)]);
    let source = std::net::SocketAddrV4::new(here.ipv4, load_port(task.number));
    let destination = std::net::SocketAddrV4::new(there.ipv4, DISCARD_PORT);
    let payload = payload as usize;
    FrameSpec {
        flow: task.flow(),
        envelope: Envelope {
            destination: MacAddress(there.mac),
            source: MacAddress(here.mac),
            tag: None,
            carrier: Carrier::udp(source, destination),
        },
        payload,
        transmit_time: (payload >= TRANSMIT_TIME_OF_LOAD + 8).then_some(TRANSMIT_TIME_OF_LOAD),
        number: None,
    }
}

/// Source port of an injector: unique, above those of access points.
fn load_port(number: u32) -> u16 {
    61_200 + (number % 4_096) as u16
}

/// Writes the records of a sender task.
struct SendRecorder<'a> {
    records: &'a mut RecordProducer,
    counters: &'a Counters,
    flow: u16,
    /// Frame lengths by template.
    lengths: &'a [u16],
    late_after_ns: i64,
    stats: SendStats,
}

impl SendObserver for SendRecorder<'_> {
    #[inline]
    fn sent(&mut self, due: DueFrame, target: WallNanos, at: WallNanos) {
        let flags = if due.warm_up { ProbeFlags::WARM_UP } else { ProbeFlags::NONE };
        let length = self.lengths.get(usize::from(due.template)).copied().unwrap_or(0);
        let seen =
            framing::seen(Probe { flow: self.flow, sequence: due.sequence, flags }, length, Crc::Unchecked);
        self.records.push(seen, Point::IntendedSend, Clock::Schedule, DropReason::None, target);
        self.records.push(seen, Point::ApplicationSend, Clock::Realtime, DropReason::None, at);
        self.counters.sent.store(self.counters.sent.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.stats.done += 1;
        self.stats.late += u64::from(at.get() - target.get() > self.late_after_ns);
    }
}

/// True if the frame rate of a receiver's loads is so high that the frames should bypass the host's stack.
pub fn is_fast(loads: &[Arc<LoadTask>]) -> bool {
    let frames_per_second: f64 = loads
        .iter()
        .map(|task| f64::from(task.inject.burst) * 1e12 / task.inject.interval.as_picos().max(1) as f64)
        .sum();
    frames_per_second > 250_000.0
}
