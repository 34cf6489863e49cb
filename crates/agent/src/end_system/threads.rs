//! The threads of a run: started with their queues and their records, and waiting at the gate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rtrb::RingBuffer;
use wg_net::realtime;
use wg_net::transmit::Stopper;
use wg_net::{Interface, Socket, Wake};
use wg_record::RecordError;
use wg_record::segment::SegmentInfo;

use crate::control::gate::Gate;
use crate::control::grants;
use crate::control::run::{RunError, Setup, spawn};
use crate::control::trial::{TrialClient, trial};
use crate::end_system::addressing::AccessKind;
use crate::end_system::assignment::{Assignment, FlowRole};
use crate::end_system::buffer::Buffer;
use crate::end_system::load_sink::{LoadSink, LoadSinkStats};
use crate::end_system::message_builder::{self, MessageBuilder};
use crate::end_system::receiver_task::{self, Inbox, MessageChecker, ReceptionStats};
use crate::end_system::relay_task::{self, RelayQueues, RelayTaskStats};
use crate::end_system::report::StreamInfo;
use crate::end_system::servicing::{AccessPointStats, Counters, Parts, Servicing, TurnQueue};
use crate::end_system::stream_task::{Outcome, StreamTask};
use crate::proto;
use crate::recording::host_counters::HostCounters;
use crate::recording::packet_capture::{self, Capture, CaptureConfig, CaptureInterface, CaptureStats};
use crate::recording::record_ring::{self, RecordConsumer};
use crate::recording::record_writer::{self, LoggingStats};
use crate::timestamps::translation::TimestampTranslator;
use crate::timestamps::{PhcTracker, TimestampConfig};

/// Messages that may wait for the task that judges them, at most: half a second at 130 000 messages a second, 128 MiB.
const MOST_BUFFERS: usize = 1 << 16;

/// The threads of an access point.
pub(crate) struct AccessPoint {
    pub(crate) access: AccessKind,
    pub(crate) servicing: JoinHandle<Option<AccessPointStats>>,
    /// Where the servicing thread does not judge what it receives.
    pub(crate) reception: Option<JoinHandle<Option<ReceptionStats>>>,
    pub(crate) feed: Option<JoinHandle<()>>,
    pub(crate) relay_task: Option<JoinHandle<Option<RelayTaskStats>>>,
}

/// A stream's thread.
pub(crate) struct Stream {
    pub(crate) told: StreamInfo,
    pub(crate) stopper: Option<Stopper>,
    pub(crate) thread: JoinHandle<Option<Outcome>>,
}

/// What the threads of a run share.
pub(crate) struct Common {
    pub(crate) assignment: Arc<Assignment>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) sources: Vec<RecordConsumer>,
    /// The interface's timestamps, where it has some, and the clock they are of.
    pub(crate) asking: Option<TimestampConfig>,
    pub(crate) clockwork: Option<PhcTracker>,
    /// What timestamps frames that are sent and received, for the grants.
    pub(crate) timestamped_by: [String; 2],
    /// Streams and the ways they were given, with who has them tried.
    pub(crate) trials: Vec<(proto::StreamChoice, TrialClient)>,
}

fn choice(kind: &str, number: u32, stream: &StreamTask) -> proto::StreamChoice {
    let backend = stream.chosen.backend.name().into();
    proto::StreamChoice { kind: kind.into(), number, backend, can_be_tried: stream.can_be_tried() }
}

pub(crate) fn start_capture(
    assignment: &Assignment,
    interface: &Interface,
    setup: &Setup,
    stop: &Arc<AtomicBool>,
) -> Result<Option<JoinHandle<CaptureStats>>, RunError> {
    let Some(snap) = assignment.capture_snap else { return Ok(None) };
    let (port, rate_bps) = assignment.port;
    let name = format!("{}:{port}", assignment.name);
    let tap = CaptureInterface { interface: interface.clone(), name, rate_bps };
    let how = CaptureConfig { snap, see_all: false, by_hardware: false };
    let capture = Capture::open(vec![tap], &setup.spool.join(packet_capture::FILE), how)?;
    let stop = Arc::clone(stop);
    spawn("capture", move || capture.run(&stop)).map(Some)
}

/// How many of the host's agents share a core.
fn sharing_a_core(agents: u32) -> u32 {
    let cores =
        std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1));
    agents.div_ceil(cores.max(1))
}

impl Common {
    /// A ring for a thread that makes `per_message` records for each of `messages`. A short run fits as a whole, because the
    /// logging thread is the last to get a core; a longer one must be written while it goes on.
    fn ring(&mut self, messages: u64, per_message: u64) -> record_ring::RecordProducer {
        const MOST: usize = 1 << 20;
        let wanted = messages.saturating_mul(per_message).saturating_add(8_192);
        let (log, source) =
            record_ring::ring(usize::try_from(wanted).unwrap_or(MOST).min(MOST), self.assignment.node);
        self.sources.push(source);
        log
    }

    pub(crate) fn start_access_point(
        &mut self,
        access: AccessKind,
        socket: Socket,
        setup: &Setup,
    ) -> Result<(AccessPoint, Vec<proto::Grant>, Arc<Counters>), RunError> {
        let name = access.name();
        let assignment = Arc::clone(&self.assignment);
        let arrivals = assignment.arrivals(access);
        let (mut outboxes, mut returns, mut spent) = (Vec::new(), Vec::new(), Vec::new());
        let mut feeds = Vec::new();
        let mut departures = 0_u64;
        for task in &assignment.sends {
            let facts = &assignment.flows[usize::from(task.flow)];
            if facts.access == access && !task.stream {
                departures = departures.saturating_add(facts.planned);
                let (feed, ends) = MessageBuilder::new(task.clone());
                feeds.push(feed);
                outboxes.push(ends.outbox);
                returns.push(Some(ends.home));
            }
        }
        let in_task = assignment
            .flows
            .iter()
            .any(|facts| facts.access == access && matches!(facts.duty, FlowRole::TurnInTask(_)));
        let inline_check = receiver_task::checks_inline(arrivals.at_once);
        // Nothing waits for a judge who is at hand.
        let at_once = if inline_check && !in_task { 0 } else { arrivals.at_once };
        let buffers = usize::try_from(at_once).unwrap_or(usize::MAX).clamp(256, MOST_BUFFERS);
        let mut pool = Vec::with_capacity(buffers + 64);
        pool.extend((0..buffers).map(|_| Buffer::new()));
        let wake = Arc::new(Wake::new()?);

        let (mut turn, mut relay_task) = (None, None);
        if in_task {
            let (turn_in, turn_inbox) = RingBuffer::new(buffers);
            let (outbox, outbox_end) = RingBuffer::new(buffers);
            let (unused, unused_home) = RingBuffer::new(buffers + 64);
            outboxes.push(outbox_end);
            returns.push(None);
            spent.push(unused_home);
            let log = self.ring(arrivals.in_all, 4);
            let ends = RelayQueues { inbox: turn_inbox, outbox, spent: unused, log, wake: Arc::clone(&wake) };
            let (gate, assignment) = (Arc::clone(&self.gate), Arc::clone(&assignment));
            let priority = setup.fifo_priority;
            let handle = spawn(&format!("relay-{name}"), move || {
                grants::of_task_thread(priority);
                gate.wait().map(|epoch| relay_task::run(&assignment, epoch, ends))
            })?;
            turn = Some(TurnQueue { inbox: turn_in, thread: handle.thread().clone() });
            relay_task = Some(handle);
        }
        let feed = if feeds.is_empty() {
            None
        } else {
            let (assignment, stop) = (Arc::clone(&assignment), Arc::clone(&self.stop));
            let priority = setup.fifo_priority;
            Some(spawn(&format!("send-{name}"), move || {
                grants::of_task_thread(priority);
                message_builder::run(feeds, &assignment, &stop);
            })?)
        };
        let judge = MessageChecker::new(&assignment);
        let (inbox, reception) = if inline_check {
            (Inbox::Inline(judge), None)
        } else {
            let (inbox, inbox_end) = RingBuffer::new(buffers);
            let (spent_end, home) = RingBuffer::new(buffers + 64);
            spent.push(home);
            let mut log = self.ring(arrivals.in_all, 3);
            let (gate, priority) = (Arc::clone(&self.gate), setup.fifo_priority);
            let task = spawn(&format!("receive-{name}"), move || {
                grants::of_task_thread(priority);
                gate.wait().map(|epoch| {
                    log.begin(epoch);
                    receiver_task::run(judge, inbox_end, spent_end, log)
                })
            })?;
            (Inbox::Task(inbox), Some(task))
        };
        let counters = Arc::new(Counters::default());
        let parts = Parts {
            socket,
            asking: self.asking,
            access,
            assignment: Arc::clone(&assignment),
            outboxes,
            returns,
            inbox,
            turn,
            spent,
            pool,
            log: self.ring(departures.saturating_add(arrivals.in_all), 6),
            counters: Arc::clone(&counters),
            wake,
            stop: Arc::clone(&self.stop),
            sharing: sharing_a_core(setup.agents_on_host),
        };
        let servicing = Servicing::new(parts);
        let (tell, told) = mpsc::channel();
        let (gate, priority, core) = (Arc::clone(&self.gate), setup.fifo_priority, setup.servicing_core);
        let servicing = spawn(&format!("service-{name}"), move || {
            // Nobody listens when preparing failed meanwhile.
            drop(tell.send(grants::of_servicing_thread(priority, core)));
            gate.wait().map(|epoch| servicing.run(epoch))
        })?;
        let mut granted = told.recv().unwrap_or_default();
        for (direction, by) in ["tx", "rx"].into_iter().zip(&self.timestamped_by) {
            granted.push(grants::grant(&format!("{direction}-timestamps-{name}"), Ok(by.clone())));
        }
        Ok((AccessPoint { access, servicing, reception, feed, relay_task }, granted, counters))
    }

    /// Starts the senders that are streams, and the injectors.
    pub(crate) fn start_streams(
        &mut self,
        stop: &Arc<AtomicBool>,
        interface: &Interface,
        setup: &Setup,
    ) -> Result<(Vec<Stream>, Vec<Arc<Counters>>), RunError> {
        let (mut streams, mut counters) = (Vec::new(), Vec::new());
        let assignment = Arc::clone(&self.assignment);
        for (position, task) in assignment.sends.iter().enumerate().filter(|(_, task)| task.stream) {
            let mut stream = StreamTask::of_send(&assignment, interface, task, &setup.distrusted)?;
            let told = StreamInfo::new("send", position, &stream);
            let (trial, tried) = trial();
            let flow = u32::from(assignment.flows[usize::from(task.flow)].id);
            self.trials.push((choice("send", flow, &stream), trial));
            let mut log = self.ring(task.schedule.total(), 2);
            let watched = Arc::new(Counters::default());
            counters.push(Arc::clone(&watched));
            let (priority, core) = (setup.fifo_priority, setup.servicing_core);
            let (gate, stop, assignment) =
                (Arc::clone(&self.gate), Arc::clone(stop), Arc::clone(&assignment));
            let thread = spawn("stream", move || {
                // It spins as long as it sends, so the servicing threads, which do not, go first. What is refused here was
                // refused to them, and they say so.
                grants::of_servicing_thread(if priority > 1 { priority - 1 } else { priority }, core);
                tried.serve(&gate, |frames| stream.try_out(frames));
                gate.wait().map(|epoch| {
                    log.begin(epoch);
                    stream.run(&assignment, epoch, &stop, Some((&mut log, &watched)))
                })
            })?;
            streams.push(Stream { told, stopper: None, thread });
        }
        for (position, task) in assignment.loads.iter().enumerate() {
            let mut stream = StreamTask::of_load(&assignment, interface, task, &setup.distrusted)?;
            let told = StreamInfo::new("inject", position, &stream);
            let (trial, tried) = trial();
            self.trials.push((choice("inject", task.number, &stream), trial));
            let (stopper, restful, priority) = (stream.stopper(), stream.is_restful(), setup.fifo_priority);
            let (gate, stop, assignment) =
                (Arc::clone(&self.gate), Arc::clone(stop), Arc::clone(&assignment));
            let thread = spawn("inject", move || {
                // All only help; without them the load is a little less steady. A thread that sleeps between its bursts may
                // go before ordinary ones; one that is always awake may not.
                let _ = (realtime::no_timer_slack(), realtime::nice(-10));
                if restful && priority > 3 {
                    let _ = realtime::fifo(priority / 4);
                }
                tried.serve(&gate, |frames| stream.try_out(frames));
                gate.wait().map(|epoch| stream.run(&assignment, epoch, &stop, None))
            })?;
            streams.push(Stream { told, stopper, thread });
        }
        Ok((streams, counters))
    }

    /// Starts the receiver of background load, where some leads here; or tells why its frames are not counted.
    #[expect(clippy::type_complexity, reason = "one caller, which takes it apart at once")]
    pub(crate) fn start_load_sink(
        &self,
        interface: &Interface,
    ) -> Result<(Option<JoinHandle<Option<LoadSinkStats>>>, Option<String>), RunError> {
        if self.assignment.loads_to_here.is_empty() {
            return Ok((None, None));
        }
        let absorber = match LoadSink::open(&self.assignment, interface) {
            Ok(absorber) => absorber,
            Err(why) => return Ok((None, Some(why))),
        };
        let (gate, stop) = (Arc::clone(&self.gate), Arc::clone(&self.stop));
        let thread = spawn("absorb", move || {
            // Only helps: its ring bridges more than a second.
            let _ = realtime::nice(-10);
            gate.wait().map(|epoch| absorber.run(epoch, &stop))
        })?;
        Ok((Some(thread), None))
    }

    pub(crate) fn start_logging(
        &mut self,
        setup: &Setup,
    ) -> Result<JoinHandle<Option<Result<LoggingStats, RecordError>>>, RunError> {
        let sources = std::mem::take(&mut self.sources);
        let (gate, spool) = (Arc::clone(&self.gate), setup.spool.clone());
        let (end_system, node, run_index) =
            (self.assignment.name.clone(), self.assignment.node, self.assignment.run_index);
        let planted = self.assignment.planted_clock;
        let clockwork = self.clockwork.take();
        spawn("log", move || {
            // The kernel always lets a thread step back.
            let _ = realtime::background();
            gate.wait().map(|epoch| {
                let epoch_realtime_ns = epoch.wall().get();
                let info = SegmentInfo { end_system, node, run_index, epoch_realtime_ns };
                let placer = clockwork.map(|clock| TimestampTranslator::new(clock, epoch));
                record_writer::run(&spool, info, sources, planted, placer)
            })
        })
    }

    pub(crate) fn start_host_counters(
        &self,
        setup: &Setup,
        rings: Vec<Arc<AtomicU64>>,
    ) -> Result<JoinHandle<Option<String>>, RunError> {
        let length = (self.assignment.last_send + self.assignment.drain).as_picos().max(0).unsigned_abs();
        let host_counters = HostCounters {
            core: setup.servicing_core,
            interface: setup.interface.clone(),
            rings,
            length: Duration::from_nanos(length / 1_000),
            sharing: setup.agents_on_host,
        };
        let (gate, stop, spool) = (Arc::clone(&self.gate), Arc::clone(&self.stop), setup.spool.clone());
        spawn("noise", move || {
            // The kernel always lets a thread step back.
            let _ = realtime::background();
            gate.wait().and_then(|epoch| host_counters.run(&spool, epoch, &stop))
        })
    }
}
