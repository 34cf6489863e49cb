//! Threads of an end system, started with their queues and record rings and held at the gate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use rtrb::{Consumer, Producer, RingBuffer};
use wg_net::transmit::Stopper;
use wg_net::{Interface, Socket, Wake, realtime};

use super::addressing::AccessKind;
use super::assignment::{Assignment, Expected, FlowRole};
use super::buffer::{Buffer, Outgoing};
use super::flooder::Flooder;
use super::load_sink::{LoadSink, LoadSinkStats};
use super::message_builder::{self, MessageBuilder};
use super::receiver_task::{self, Inbox, MessageChecker, ReceptionStats};
use super::relay_task::{self, RelayQueues, RelayTaskStats};
use super::report::StreamInfo;
use super::servicing::{AccessPointStats, Parts, Servicing, TurnQueue};
use super::stream_task::{Outcome, StreamTask};
use crate::control::grants;
use crate::control::role::{Counters, OpenError, RunContext, Setup, spawn};
use crate::control::trial::TrialServer;
use crate::proto;
use crate::recording::packet_capture::{self, Capture, CaptureConfig, CaptureInterface, CaptureStats};
use crate::timestamps::TimestampConfig;

/// Maximum number of buffers queued for the checking task: half a second at 130 000 messages a second, 128 MiB.
const MAX_BUFFERS: usize = 1 << 16;
/// Spare capacity of a buffer ring.
const SPARE: usize = 64;

/// Threads of an access point.
pub(super) struct AccessPoint {
    pub(super) access: AccessKind,
    pub(super) servicing: JoinHandle<Option<AccessPointStats>>,
    /// Receiver task; `None` if the servicing thread checks messages itself.
    pub(super) receiver: Option<JoinHandle<Option<ReceptionStats>>>,
    pub(super) builder: Option<JoinHandle<()>>,
    pub(super) relay_task: Option<JoinHandle<Option<RelayTaskStats>>>,
}

/// Thread of a stream, or the threads of an injector with several.
pub(super) struct Stream {
    pub(super) info: StreamInfo,
    pub(super) stopper: Option<Stopper>,
    pub(super) threads: Vec<JoinHandle<Option<Outcome>>>,
}

/// Capture thread; it ends when this is dropped.
pub(super) struct CaptureThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<CaptureStats>>,
}

impl CaptureThread {
    pub(super) fn finish(mut self) -> Option<thread::Result<CaptureStats>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join)
    }
}

impl Drop for CaptureThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Queues between a servicing thread and its tasks, at the servicing thread's end.
#[derive(Default)]
struct Queues {
    outboxes: Vec<Consumer<Outgoing>>,
    returns: Vec<Option<Producer<Buffer>>>,
    spent: Vec<Consumer<Buffer>>,
}

/// Common inputs of the threads.
pub(super) struct Starter<'a> {
    pub(super) assignment: Arc<Assignment>,
    pub(super) interface: &'a Interface,
    pub(super) setup: &'a Setup,
    pub(super) run: &'a mut RunContext,
    /// Hardware timestamps, if enabled.
    pub(super) timestamps: Option<TimestampConfig>,
    /// Sources of transmit and receive timestamps, for the grants.
    pub(super) timestamped_by: [String; 2],
}

fn choice(kind: &str, number: u32, stream: &StreamTask) -> proto::StreamChoice {
    let backend = stream.chosen.backend.name().into();
    proto::StreamChoice { kind: kind.into(), number, backend, can_be_tried: stream.can_be_tried() }
}

/// Number of the host's agents that share a core.
fn sharing_a_core(agents: u32) -> u32 {
    let cores = thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1));
    agents.div_ceil(cores.max(1))
}

impl Starter<'_> {
    pub(super) fn start_capture(&self) -> Result<Option<CaptureThread>, OpenError> {
        let Some(snap) = self.assignment.capture_snap else { return Ok(None) };
        let (port, rate_bps) = self.assignment.port;
        let name = format!("{}:{port}", self.assignment.name);
        let tap = CaptureInterface { interface: self.interface.clone(), name, rate_bps };
        let how = CaptureConfig { snap, see_all: false, by_hardware: false };
        let capture = Capture::open(vec![tap], &self.setup.spool.join(packet_capture::FILE), how)?;
        let capture = match self.setup.hold {
            Some(patience) => capture.on_demand(patience, Arc::clone(&self.run.asked)),
            None => capture,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let stop = Arc::clone(&stop);
            spawn("capture", move || capture.run(&stop))?
        };
        Ok(Some(CaptureThread { stop, thread: Some(thread) }))
    }

    pub(super) fn start_access_point(
        &mut self,
        access: AccessKind,
        socket: Socket,
    ) -> Result<AccessPoint, OpenError> {
        let expected = self.assignment.expected(access);
        let in_task = self
            .assignment
            .flows
            .iter()
            .any(|facts| facts.access == access && matches!(facts.role, FlowRole::RelayInTask(_)));
        let sharing = sharing_a_core(self.setup.agents_on_host);
        let inline = receiver_task::checks_inline(expected.at_once, sharing);
        // Messages checked inline need no queue.
        let at_once = if inline && !in_task { 0 } else { expected.at_once };
        let buffers = usize::try_from(at_once).unwrap_or(usize::MAX).clamp(256, MAX_BUFFERS);
        let mut pool = Vec::with_capacity(buffers + SPARE);
        pool.extend((0..buffers).map(|_| Buffer::new()));
        let wake = Arc::new(Wake::new()?);
        let mut queues = Queues::default();
        let (builder, departures) = self.start_builder(access, &mut queues)?;
        let (turn, relay_task) = if in_task {
            let (turn, task) = self.start_relay_task(access, &expected, buffers, &wake, &mut queues)?;
            (Some(turn), Some(task))
        } else {
            (None, None)
        };
        let checker = MessageChecker::new(&self.assignment);
        let (inbox, receiver) = if inline {
            (Inbox::Inline(checker), None)
        } else {
            let (inbox, task) = self.start_receiver_task(access, checker, &expected, buffers, &mut queues)?;
            (Inbox::Task(inbox), Some(task))
        };
        let parts = Parts {
            socket,
            timestamps: self.timestamps,
            access,
            assignment: Arc::clone(&self.assignment),
            outboxes: queues.outboxes,
            returns: queues.returns,
            inbox,
            turn,
            spent: queues.spent,
            pool,
            records: self.record_ring(departures.saturating_add(expected.in_all), 6),
            counters: self.run.counters(),
            wake,
            stop: Arc::clone(&self.run.stop),
            sharing,
        };
        let servicing = self.start_servicing(access, Servicing::new(parts))?;
        Ok(AccessPoint { access, servicing, receiver, builder, relay_task })
    }

    fn record_ring(
        &mut self,
        messages: u64,
        per_message: u64,
    ) -> crate::recording::record_ring::RecordProducer {
        self.run.record_ring(self.assignment.port.0, messages, per_message)
    }

    /// Starts the message builder; returns it with its number of messages.
    fn start_builder(
        &self,
        access: AccessKind,
        queues: &mut Queues,
    ) -> Result<(Option<JoinHandle<()>>, u64), OpenError> {
        let mut builders = Vec::new();
        let mut departures = 0_u64;
        for task in &self.assignment.sends {
            let facts = &self.assignment.flows[usize::from(task.flow)];
            if facts.access == access && !task.stream {
                departures = departures.saturating_add(facts.planned);
                let (builder, ends) = MessageBuilder::new(task.clone());
                builders.push(builder);
                queues.outboxes.push(ends.outbox);
                queues.returns.push(Some(ends.home));
            }
        }
        if builders.is_empty() {
            return Ok((None, departures));
        }
        let (assignment, stop) = (Arc::clone(&self.assignment), Arc::clone(&self.run.stop));
        let priority = self.setup.fifo_priority;
        let thread = spawn(&format!("send-{}", access.name()), move || {
            grants::of_task_thread(priority);
            message_builder::run(builders, &assignment, &stop);
        })?;
        Ok((Some(thread), departures))
    }

    fn start_relay_task(
        &mut self,
        access: AccessKind,
        expected: &Expected,
        buffers: usize,
        wake: &Arc<Wake>,
        queues: &mut Queues,
    ) -> Result<(TurnQueue, JoinHandle<Option<RelayTaskStats>>), OpenError> {
        let (turn_in, inbox) = RingBuffer::new(buffers);
        let (outbox, outbox_end) = RingBuffer::new(buffers);
        let (spent, home) = RingBuffer::new(buffers + SPARE);
        queues.outboxes.push(outbox_end);
        queues.returns.push(None);
        queues.spent.push(home);
        let records = self.record_ring(expected.in_all, 4);
        let ends = RelayQueues { inbox, outbox, spent, records, wake: Arc::clone(wake) };
        let (gate, assignment) = (Arc::clone(&self.run.gate), Arc::clone(&self.assignment));
        let priority = self.setup.fifo_priority;
        let thread = spawn(&format!("relay-{}", access.name()), move || {
            grants::of_task_thread(priority);
            gate.wait().map(|epoch| relay_task::run(&assignment, epoch, ends))
        })?;
        Ok((TurnQueue { inbox: turn_in, thread: thread.thread().clone() }, thread))
    }

    fn start_receiver_task(
        &mut self,
        access: AccessKind,
        checker: MessageChecker,
        expected: &Expected,
        buffers: usize,
        queues: &mut Queues,
    ) -> Result<(Producer<super::buffer::Incoming>, JoinHandle<Option<ReceptionStats>>), OpenError> {
        let (inbox, inbox_end) = RingBuffer::new(buffers);
        let (spent, home) = RingBuffer::new(buffers + SPARE);
        queues.spent.push(home);
        let mut records = self.record_ring(expected.in_all, 3);
        let (gate, priority) = (Arc::clone(&self.run.gate), self.setup.fifo_priority);
        let thread = spawn(&format!("receive-{}", access.name()), move || {
            grants::of_task_thread(priority);
            gate.wait().map(|epoch| {
                records.begin(epoch);
                receiver_task::run(checker, inbox_end, spent, records)
            })
        })?;
        Ok((inbox, thread))
    }

    fn start_servicing(
        &mut self,
        access: AccessKind,
        servicing: Servicing,
    ) -> Result<JoinHandle<Option<AccessPointStats>>, OpenError> {
        let (name, (tell, told)) = (access.name(), mpsc::channel());
        let gate = Arc::clone(&self.run.gate);
        let (priority, core) = (self.setup.fifo_priority, self.setup.servicing_core);
        let thread = spawn(&format!("service-{name}"), move || {
            // The receiver is gone if preparation failed meanwhile.
            drop(tell.send(grants::of_servicing_thread(priority, core)));
            gate.wait().map(|epoch| servicing.run(epoch))
        })?;
        let mut granted = told.recv().unwrap_or_default();
        for (direction, by) in ["tx", "rx"].into_iter().zip(&self.timestamped_by) {
            granted.push(grants::grant(&format!("{direction}-timestamps-{name}"), Ok(by.clone())));
        }
        self.run.add_grants(granted);
        Ok(thread)
    }

    /// True if threads of several senders, of this end system or of others on the host, may share a core. Injectors
    /// have no core of their own and a lower priority, so they take no turns with senders.
    fn is_in_turn(&self) -> bool {
        let own = self.assignment.sends.iter().filter(|task| task.stream).count();
        own > 1 || sharing_a_core(self.setup.agents_on_host) > 1
    }

    /// Starts the streams: senders and injectors.
    pub(super) fn start_streams(&mut self) -> Result<Vec<Stream>, OpenError> {
        let mut streams = Vec::new();
        let assignment = Arc::clone(&self.assignment);
        for (position, task) in assignment.sends.iter().enumerate().filter(|(_, task)| task.stream) {
            let stream = StreamTask::of_send(&assignment, self.interface, task, &self.setup.distrusted)?;
            let flow = u32::from(assignment.flows[usize::from(task.flow)].id);
            streams.push(self.start_sender(position, flow, task.schedule.total(), stream)?);
        }
        for (position, task) in assignment.loads.iter().enumerate() {
            let flooders = task.inject.threads.as_ref().map_or_else(Vec::new, |threads| {
                Flooder::all(threads.number, task.inject.interval, task.inject.burst)
            });
            let open = |flooder| {
                let distrusted = &self.setup.distrusted;
                StreamTask::of_load(&assignment, self.interface, task, distrusted, flooder)
            };
            let mut parts = flooders.into_iter().map(Some).map(open).collect::<Result<Vec<_>, _>>()?;
            let first = if parts.is_empty() { open(None)? } else { parts.remove(0) };
            let mut stream = self.start_injector(position, task.number, first)?;
            for part in parts {
                // The first thread was tried for all of them.
                stream.threads.push(self.spawn_injector(part, None)?);
            }
            streams.push(stream);
        }
        Ok(streams)
    }

    fn start_sender(
        &mut self,
        position: usize,
        flow: u32,
        messages: u64,
        mut stream: StreamTask,
    ) -> Result<Stream, OpenError> {
        let info = StreamInfo::new("send", position, &stream);
        let trial = self.run.trial(choice("send", flow, &stream));
        let mut records = self.record_ring(messages, 2);
        let counters: Arc<Counters> = self.run.counters();
        let (priority, core) = (self.setup.fifo_priority, self.setup.servicing_core);
        let (gate, stop) = (Arc::clone(&self.run.gate), Arc::clone(&self.run.stop));
        let (assignment, in_turn) = (Arc::clone(&self.assignment), self.is_in_turn());
        let thread = spawn("stream", move || {
            // A sender that keeps the core while it sends runs below the servicing threads, which yield. A sender that
            // yields has their priority, or their spinning would delay it. A priority refused here was also refused to
            // them, and is reported there.
            let last = if priority > 1 && !in_turn { priority - 1 } else { priority };
            grants::of_servicing_thread(last, core);
            trial.serve(&gate, |frames| stream.try_out(frames));
            gate.wait().map(|epoch| {
                records.begin(epoch);
                stream.run(&assignment, epoch, in_turn, &stop, Some((&mut records, &counters)))
            })
        })?;
        Ok(Stream { info, stopper: None, threads: vec![thread] })
    }

    fn start_injector(
        &mut self,
        position: usize,
        number: u32,
        stream: StreamTask,
    ) -> Result<Stream, OpenError> {
        let info = StreamInfo::new("inject", position, &stream);
        let trial = self.run.trial(choice("inject", number, &stream));
        let stopper = stream.stopper();
        let threads = vec![self.spawn_injector(stream, Some(trial))?];
        Ok(Stream { info, stopper, threads })
    }

    fn spawn_injector(
        &self,
        mut stream: StreamTask,
        trial: Option<TrialServer>,
    ) -> Result<JoinHandle<Option<Outcome>>, OpenError> {
        let (restful, priority) = (stream.is_restful(), self.setup.fifo_priority);
        let (gate, stop) = (Arc::clone(&self.run.gate), Arc::clone(&self.run.stop));
        let assignment = Arc::clone(&self.assignment);
        spawn("inject", move || {
            // Best effort; without these settings the load is slightly less steady. A thread that sleeps between bursts
            // may run before ordinary threads; one that is always awake may not.
            let _ = (realtime::no_timer_slack(), realtime::nice(-10));
            if restful && priority > 3 {
                let _ = realtime::fifo(priority / 4);
            }
            if let Some(trial) = trial {
                trial.serve(&gate, |frames| stream.try_out(frames));
            }
            gate.wait().map(|epoch| stream.run(&assignment, epoch, false, &stop, None))
        })
    }

    /// Starts the receiver of background load, if any load is sent to this end system.
    pub(super) fn start_load_sink(&self) -> Result<LoadSinkThread, OpenError> {
        if self.assignment.loads_to_here.is_empty() {
            return Ok(LoadSinkThread::None);
        }
        let sink = match LoadSink::open(&self.assignment, self.interface, self.setup.card) {
            Ok(sink) => sink,
            Err(why) => return Ok(LoadSinkThread::Refused(why)),
        };
        let (gate, stop) = (Arc::clone(&self.run.gate), Arc::clone(&self.run.stop));
        let thread = spawn("load-sink", move || {
            // Best effort; the ring holds more than a second of frames.
            let _ = realtime::nice(-10);
            gate.wait().map(|epoch| sink.run(epoch, &stop))
        })?;
        Ok(LoadSinkThread::Running(thread))
    }
}

/// Thread of the background-load receiver.
pub(super) enum LoadSinkThread {
    /// No load is sent here.
    None,
    /// Refused by the host for this reason; the load is not counted.
    Refused(String),
    /// Running thread.
    Running(JoinHandle<Option<LoadSinkStats>>),
}
