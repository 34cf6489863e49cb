//! The life of a run: preparing, announcing, starting, watching, finishing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread::JoinHandle;

use wg_frame::time::{Epoch, Span, WallNanos};
use wg_net::clock;

use super::gate::Gate;
use super::grants;
use super::role::{Counters, Fault, OpenError, Role, RunContext, Setup, Timetable, spawn};
use super::supervision::{Commands, GRACE_NS, RunThreads, supervise};
use super::trial::TrialClient;
use crate::proto;
use crate::recording::held_back::Asked;
use crate::recording::live::{LiveBoard, LiveFigures};
use crate::recording::planted_clock::PlantedClock;
use crate::recording::{host_counters, record_writer};

/// Greatest number of frames in a trial.
const MAX_TRIAL: u32 = 256;

/// Why a run could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The start time has passed.
    #[error(
        "the start time passed {late_us} us ago on this host; announce it earlier or synchronise the clocks"
    )]
    EpochPassed {
        /// Time since the start time, in µs.
        late_us: i64,
    },
    /// The start time is not the one announced last.
    #[error("the start time is not the one announced last; call Announce first")]
    NotAnnounced,
    /// The run was started already.
    #[error("the run was started before")]
    Started,
}

/// A run whose threads are ready.
pub struct ActiveRun {
    name: String,
    timetable: Timetable,
    gate: Arc<Gate>,
    commands: Arc<Commands>,
    counters: Vec<Arc<Counters>>,
    board: Arc<LiveBoard>,
    asked: Arc<Asked>,
    supervisor: Option<JoinHandle<proto::AgentReport>>,
    grants: Vec<proto::Grant>,
    access_points: Vec<String>,
    announced: Option<WallNanos>,
    common_epoch: Arc<AtomicI64>,
    trials: Vec<(proto::StreamChoice, TrialClient)>,
}

impl ActiveRun {
    /// Prepares a run: the node's role opens everything; no frame of the run is sent yet.
    ///
    /// # Errors
    /// See [`OpenError`]; nothing is left open then.
    pub fn prepare(setup: &Setup, roles: &[&dyn Role]) -> Result<Self, OpenError> {
        let name = setup.name(setup.node);
        let role = roles.iter().find(|role| role.plays(setup)).ok_or_else(|| {
            OpenError::new(Fault::Request, format!("this agent has no role for node '{name}'"))
        })?;
        let mut run = RunContext::new(setup.node);
        let awake;
        (run.grants, awake) = grants::of_process();
        // From here on threads wait at the gate; an error must cancel them.
        let mut guard =
            CancelOnDrop { gate: Arc::clone(&run.gate), stop: Arc::clone(&run.stop), armed: true };
        // Before the role looks at its transmit queues; a later error undoes the settings.
        let tsn = crate::tsn::make(setup, &mut run.grants)?;
        let active = role.open(setup, &mut run)?;
        let (gate, commands) = (Arc::clone(&run.gate), Arc::new(Commands::default()));
        let rings = run.records.iter().map(|records| Arc::clone(&records.dropped)).collect();
        let common_epoch: Arc<AtomicI64> = Arc::default();
        let writer = record_writer::WriterConfig {
            node: setup.node,
            name: name.clone(),
            run_index: setup.run.index,
            planted: planted(setup, run.timetable)?,
            planted_host: setup.planted_clock,
            common_epoch: Arc::clone(&common_epoch),
        };
        let threads = RunThreads {
            role: active,
            writer: start_writer(writer, &mut run, &setup.spool)?,
            host_counters: start_host_counters(setup, &run, rings)?,
            stop: Arc::clone(&run.stop),
            tsn,
            _awake: awake,
        };
        let counters = run.counters.clone();
        let (timetable, grants) = (run.timetable, run.grants.clone());
        let supervisor = {
            let (gate, commands) = (Arc::clone(&gate), Arc::clone(&commands));
            let (counters, name, agents) = (counters.clone(), name.clone(), setup.agents_on_host);
            spawn("test", move || {
                let outcome = supervise(timetable, &gate, &commands, &counters, agents, &*threads.role);
                let report = threads.finish(name, outcome, grants);
                commands.over.store(true, Ordering::Release);
                report
            })?
        };
        guard.armed = false;
        Ok(Self {
            name,
            timetable,
            gate,
            commands,
            counters,
            board: run.board,
            asked: run.asked,
            supervisor: Some(supervisor),
            grants: run.grants,
            access_points: run.access_points,
            announced: None,
            common_epoch,
            trials: run.trials,
        })
    }

    /// Requests to the host, and whether it granted them.
    pub fn grants(&self) -> &[proto::Grant] {
        &self.grants
    }

    /// The access points in use, one line each.
    pub fn access_points(&self) -> &[String] {
        &self.access_points
    }

    /// The streams to be sent, with their backends.
    pub fn streams(&self) -> Vec<proto::StreamChoice> {
        self.trials.iter().map(|(choice, _)| choice.clone()).collect()
    }

    /// Sends a few trial frames of one stream before the run begins; returns their number. Blocks meanwhile.
    ///
    /// # Errors
    /// There is no such stream, or its backend is unusable.
    pub fn try_out(&self, request: &proto::TryStreamRequest) -> Result<u32, String> {
        let found = self.trials.iter().find(|(c, _)| c.kind == request.kind && c.number == request.number);
        let (_, trial) =
            found.ok_or_else(|| format!("there is no stream {} {}", request.kind, request.number))?;
        trial.ask(request.frames.min(MAX_TRIAL))
    }

    /// Notes a common start time, which replaces an earlier one. Nothing begins.
    ///
    /// # Errors
    /// The time has passed already.
    pub fn announce(&mut self, epoch: WallNanos) -> Result<(), StartError> {
        self.announced = None;
        ahead(epoch)?;
        self.announced = Some(epoch);
        Ok(())
    }

    /// Starts the run at the start time announced last; `common` is its value on the common timescale of the records,
    /// if different.
    ///
    /// # Errors
    /// It differs, it has passed already, or the run was started or cancelled before.
    pub fn start(&self, epoch: WallNanos, common: Option<WallNanos>) -> Result<(), StartError> {
        if self.announced != Some(epoch) {
            return Err(StartError::NotAnnounced);
        }
        ahead(epoch)?;
        self.common_epoch.store(common.map_or(0, WallNanos::get), Ordering::Release);
        if self.gate.open(Epoch::new(epoch)) { Ok(()) } else { Err(StartError::Started) }
    }

    /// Progress of the run; with live figures if there are newer ones than those of second `known`.
    pub fn progress(&self, known: Option<u32>) -> proto::Progress {
        let sum = |pick: fn(&Counters) -> &AtomicU64| {
            self.counters.iter().map(|c| pick(c).load(Ordering::Relaxed)).sum()
        };
        proto::Progress {
            done: self.commands.over.load(Ordering::Acquire),
            sent: sum(|c| &c.sent),
            received: sum(|c| &c.received),
            to_send: self.timetable.to_send,
            trouble: self.commands.trouble.get().cloned().unwrap_or_default(),
            live: known.and_then(|known| self.board.newer_than(known)).map(Arc::unwrap_or_clone),
        }
    }

    /// Makes captures keep the frames between two instants of this host's clock.
    pub fn keep(&self, from: WallNanos, to: WallNanos) {
        self.asked.ask(from.get(), to.get());
    }

    /// Commands that end the run, also while a caller waits in [`Self::finish`].
    pub(super) fn commands(&self) -> Arc<Commands> {
        Arc::clone(&self.commands)
    }

    /// Waits for the end of the role's part, or ends it with `abort`; then stops receiving and reports. Blocks
    /// meanwhile.
    pub fn finish(mut self, abort: bool) -> proto::AgentReport {
        self.end(abort)
    }

    fn end(&mut self, abort: bool) -> proto::AgentReport {
        if abort {
            self.commands.abort.store(true, Ordering::Relaxed);
        }
        self.commands.finish.store(true, Ordering::Relaxed);
        // A run that was not started has no end to wait for.
        self.gate.cancel();
        if let Some(supervisor) = &self.supervisor {
            supervisor.thread().unpark();
        }
        let joined = self.supervisor.take().map(JoinHandle::join);
        match joined {
            Some(Ok(report)) => report,
            _ => proto::AgentReport {
                end_system: self.name.clone(),
                incomplete_reason: "the test thread of the agent failed; this is a defect of wiregauge"
                    .into(),
                ..proto::AgentReport::default()
            },
        }
    }
}

impl Drop for ActiveRun {
    /// Ends an unfinished run, for example after a lost lease: its threads end and its records are flushed.
    fn drop(&mut self) {
        if self.supervisor.is_some() {
            self.end(true);
        }
    }
}

/// The clock by which the node's records are written. A clock synchronised by a protocol of the test is that of the
/// card, which its programs do not read.
fn planted(setup: &Setup, timetable: Timetable) -> Result<Option<PlantedClock>, OpenError> {
    if setup.run.keeps_clock_of(setup.node) {
        return Ok(None);
    }
    let until = timetable.last_send + timetable.drain + Span::from_nanos(GRACE_NS);
    PlantedClock::of(&setup.network, &setup.run, setup.node, until)
        .map_err(|error| OpenError::new(Fault::Request, error))
}

fn ahead(epoch: WallNanos) -> Result<(), StartError> {
    let late = clock::realtime().get() - epoch.get();
    if late >= 0 { Err(StartError::EpochPassed { late_us: late / 1_000 }) } else { Ok(()) }
}

fn start_writer(
    writer: record_writer::WriterConfig,
    run: &mut RunContext,
    spool: &Path,
) -> Result<JoinHandle<record_writer::Outcome>, OpenError> {
    let (records, clocks) = (std::mem::take(&mut run.records), std::mem::take(&mut run.hardware_clocks));
    let (gate, spool) = (Arc::clone(&run.gate), spool.to_owned());
    let remote_log = run.remote_log.take();
    let live = LiveFigures::new(std::mem::take(&mut run.live), run.clocks.take(), Arc::clone(&run.board));
    spawn("log", move || {
        // The kernel always permits lowering the priority.
        let _ = wg_net::realtime::background();
        let sources = record_writer::Sources { rings: records, clocks, live, remote_log };
        gate.wait().map(|epoch| record_writer::run(&spool, writer, epoch, sources))
    })
}

fn start_host_counters(
    setup: &Setup,
    run: &RunContext,
    rings: Vec<Arc<AtomicU64>>,
) -> Result<JoinHandle<Option<String>>, OpenError> {
    let Timetable { last_send, drain, .. } = run.timetable;
    let length = (last_send + drain).as_picos().max(0).unsigned_abs();
    let host_counters = host_counters::HostCounters {
        core: setup.servicing_core,
        interfaces: setup.ports.iter().map(|port| port.interface.clone()).collect(),
        rings,
        length: std::time::Duration::from_nanos(length / 1_000),
        sharing: setup.agents_on_host,
    };
    let (gate, stop, spool) = (Arc::clone(&run.gate), Arc::clone(&run.stop), setup.spool.clone());
    spawn("noise", move || {
        // The kernel always permits lowering the priority.
        let _ = wg_net::realtime::background();
        gate.wait().and_then(|epoch| host_counters.run(&spool, epoch, &stop))
    })
}

/// Cancels waiting threads if preparing fails.
struct CancelOnDrop {
    gate: Arc<Gate>,
    stop: Arc<AtomicBool>,
    armed: bool,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if self.armed {
            self.stop.store(true, Ordering::Relaxed);
            self.gate.cancel();
        }
    }
}
