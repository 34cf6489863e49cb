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

use super::{RunError, Setup, spawn};
use crate::access::Access;
use crate::assignment::{Assignment, Duty};
use crate::buffer::Buffer;
use crate::capturing::{self, Capture, CaptureFigures, How, Tap};
use crate::feed::{self, Feed};
use crate::gate::Gate;
use crate::hardware::placing::Placer;
use crate::hardware::{Asking, Clockwork};
use crate::log::{self, LogSource};
use crate::logging::{self, LoggingFigures};
use crate::noise::Noise;
use crate::reception::{self, Inbox, Judge, ReceptionFigures};
use crate::relay_task::{self, TaskEnds, TaskFigures};
use crate::report::StreamFacts;
use crate::servicing::{AccessPointFigures, Counters, Parts, Servicing, TurnQueue};
use crate::stream::absorb::{Absorbed, Absorber};
use crate::stream::task::{Outcome, StreamTask};
use crate::stream::trial::{Trial, trial};
use crate::{grants, proto};

/// Messages that may wait for the task that judges them, at most: half a second at 130 000 messages a second, 128 MiB.
const MOST_BUFFERS: usize = 1 << 16;

/// The threads of an access point.
pub(super) struct AccessPoint {
    pub(super) access: Access,
    pub(super) servicing: JoinHandle<Option<AccessPointFigures>>,
    /// Where the servicing thread does not judge what it receives.
    pub(super) reception: Option<JoinHandle<Option<ReceptionFigures>>>,
    pub(super) feed: Option<JoinHandle<()>>,
    pub(super) relay_task: Option<JoinHandle<Option<TaskFigures>>>,
}

/// A stream's thread.
pub(super) struct Stream {
    pub(super) told: StreamFacts,
    pub(super) stopper: Option<Stopper>,
    pub(super) thread: JoinHandle<Option<Outcome>>,
}

/// What the threads of a run share.
pub(super) struct Common {
    pub(super) assignment: Arc<Assignment>,
    pub(super) gate: Arc<Gate>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) sources: Vec<LogSource>,
    /// The interface's stamps, where it has some, and the clock they are of.
    pub(super) asking: Option<Asking>,
    pub(super) clockwork: Option<Clockwork>,
    /// What stamps frames that are sent and received, for the grants.
    pub(super) stamped_by: [String; 2],
    /// Streams and the ways they were given, with who has them tried.
    pub(super) trials: Vec<(proto::StreamChoice, Trial)>,
}

fn choice(kind: &str, number: u32, stream: &StreamTask) -> proto::StreamChoice {
    let backend = stream.chosen.backend.name().into();
    proto::StreamChoice { kind: kind.into(), number, backend, can_be_tried: stream.can_be_tried() }
}

pub(super) fn start_capture(
    assignment: &Assignment,
    interface: &Interface,
    setup: &Setup,
    stop: &Arc<AtomicBool>,
) -> Result<Option<JoinHandle<CaptureFigures>>, RunError> {
    let Some(snap) = assignment.capture_snap else { return Ok(None) };
    let (port, rate_bps) = assignment.port;
    let name = format!("{}:{port}", assignment.name);
    let tap = Tap { interface: interface.clone(), name, rate_bps };
    let how = How { snap, see_all: false, by_hardware: false };
    let capture = Capture::open(vec![tap], &setup.spool.join(capturing::FILE), how)?;
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
    fn ring(&mut self, messages: u64, per_message: u64) -> log::Log {
        const MOST: usize = 1 << 20;
        let wanted = messages.saturating_mul(per_message).saturating_add(8_192);
        let (log, source) =
            log::ring(usize::try_from(wanted).unwrap_or(MOST).min(MOST), self.assignment.node);
        self.sources.push(source);
        log
    }

    pub(super) fn start_access_point(
        &mut self,
        access: Access,
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
                let (feed, ends) = Feed::new(task.clone());
                feeds.push(feed);
                outboxes.push(ends.outbox);
                returns.push(Some(ends.home));
            }
        }
        let in_task = assignment
            .flows
            .iter()
            .any(|facts| facts.access == access && matches!(facts.duty, Duty::TurnInTask(_)));
        let on_the_spot = reception::is_on_the_spot(arrivals.at_once);
        // Nothing waits for a judge who is at hand.
        let at_once = if on_the_spot && !in_task { 0 } else { arrivals.at_once };
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
            let ends = TaskEnds { inbox: turn_inbox, outbox, spent: unused, log, wake: Arc::clone(&wake) };
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
                feed::run(feeds, &assignment, &stop);
            })?)
        };
        let judge = Judge::new(&assignment);
        let (inbox, reception) = if on_the_spot {
            (Inbox::OnTheSpot(judge), None)
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
                    reception::run(judge, inbox_end, spent_end, log)
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
        for (direction, by) in ["tx", "rx"].into_iter().zip(&self.stamped_by) {
            granted.push(grants::grant(&format!("{direction}-timestamps-{name}"), Ok(by.clone())));
        }
        Ok((AccessPoint { access, servicing, reception, feed, relay_task }, granted, counters))
    }

    /// Starts the senders that are streams, and the injectors.
    pub(super) fn start_streams(
        &mut self,
        stop: &Arc<AtomicBool>,
        interface: &Interface,
        setup: &Setup,
    ) -> Result<(Vec<Stream>, Vec<Arc<Counters>>), RunError> {
        let (mut streams, mut counters) = (Vec::new(), Vec::new());
        let assignment = Arc::clone(&self.assignment);
        for (position, task) in assignment.sends.iter().enumerate().filter(|(_, task)| task.stream) {
            let mut stream = StreamTask::of_send(&assignment, interface, task, &setup.distrusted)?;
            let told = StreamFacts::new("send", position, &stream);
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
            let told = StreamFacts::new("inject", position, &stream);
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
    pub(super) fn start_absorber(
        &self,
        interface: &Interface,
    ) -> Result<(Option<JoinHandle<Option<Absorbed>>>, Option<String>), RunError> {
        if self.assignment.loads_to_here.is_empty() {
            return Ok((None, None));
        }
        let absorber = match Absorber::open(&self.assignment, interface) {
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

    pub(super) fn start_logging(
        &mut self,
        setup: &Setup,
    ) -> Result<JoinHandle<Option<Result<LoggingFigures, RecordError>>>, RunError> {
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
                let placer = clockwork.map(|clock| Placer::new(clock, epoch));
                logging::run(&spool, info, sources, planted, placer)
            })
        })
    }

    pub(super) fn start_noise(
        &self,
        setup: &Setup,
        rings: Vec<Arc<AtomicU64>>,
    ) -> Result<JoinHandle<Option<String>>, RunError> {
        let length = (self.assignment.last_send + self.assignment.drain).as_picos().max(0).unsigned_abs();
        let noise = Noise {
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
            gate.wait().and_then(|epoch| noise.run(&spool, epoch, &stop))
        })
    }
}
