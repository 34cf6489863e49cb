//! Sessions: who uses an agent, and the state of their run.
//!
//! Over a Unix socket there is one session, of this user's programs. Over a network there is one for each interface in
//! use, so that tests on different interfaces of a host are independent, and no interface has two.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tonic::Status;
use wg_frame::time::WallNanos;
use wg_net::clock;

use super::campaigns::Campaign;
use super::lock;
use super::run::ActiveRun;
use super::supervision::Commands;
use crate::clocks::ClockPrograms;
use crate::proto;
use crate::remote::callers::Caller;
use crate::remote::signed_plan::Challenge;

/// Interval at which the end of a run by another caller is awaited.
const LOOK: Duration = Duration::from_millis(20);

/// State of a session.
enum State {
    /// Between runs; the last finished one, if there was one.
    Idle(Option<Finished>),
    /// A run is prepared or going on.
    Active {
        run: Arc<Mutex<Option<ActiveRun>>>,
        records: PathBuf,
        /// Ends the run, also while a caller waits for its end; `None` while it is being prepared.
        commands: Option<Arc<Commands>>,
    },
}

/// A finished run.
#[derive(Clone)]
struct Finished {
    records: PathBuf,
    /// Report of the run; `None`: it could not be ended in order.
    report: Option<Box<proto::AgentReport>>,
}

/// The testmaster's last sign of life, and the length of its lease.
#[derive(Clone, Copy)]
struct Lease {
    length: Option<Duration>,
    seen: Instant,
}

/// The holder of an interface of an agent that serves a network.
pub(super) struct Holder {
    /// The caller of Hello.
    pub(super) caller: Caller,
    /// The interface; several for the network between end systems.
    pub(super) interfaces: Vec<String>,
    /// Challenge to which plans are bound and which calls must name.
    pub(super) challenge: Mutex<Challenge>,
    since: WallNanos,
}

impl Holder {
    pub(super) fn new(caller: Caller, interfaces: Vec<String>) -> Result<Self, Status> {
        let challenge = Challenge::draw()
            .map_err(|_| Status::internal("the kernel has no random numbers for a session"))?;
        Ok(Self { caller, interfaces, challenge: Mutex::new(challenge), since: clock::realtime() })
    }

    /// Description of the holder.
    pub(super) fn described(&self) -> String {
        let for_s = (clock::realtime().get() - self.since.get()) / 1_000_000_000;
        format!("used by {} for {for_s} s", self.caller.name)
    }
}

/// A session.
pub(super) struct Session {
    /// The holder; `None`: this user's programs, over a Unix socket.
    pub(super) holder: Option<Holder>,
    /// Campaign of its records; `None`: they are in a run directory of this host.
    pub(super) campaign: Option<Campaign>,
    /// Greatest rate of its run, bit/s.
    planned_bps: AtomicU64,
    state: Mutex<State>,
    lease: Mutex<Lease>,
    programs: Mutex<Option<Arc<ClockPrograms>>>,
    /// Whether it is over: nothing may begin in it any more.
    ended: AtomicBool,
}

impl Session {
    pub(super) fn new(holder: Option<Holder>, campaign: Option<Campaign>) -> Self {
        Self {
            holder,
            campaign,
            planned_bps: AtomicU64::new(0),
            state: Mutex::new(State::Idle(None)),
            lease: Mutex::new(Lease { length: None, seen: Instant::now() }),
            programs: Mutex::default(),
            ended: AtomicBool::new(false),
        }
    }

    /// Its clock programs, if any run.
    pub(super) fn programs(&self) -> Option<Arc<ClockPrograms>> {
        lock(&self.programs).clone()
    }

    /// Takes over started programs; if it has some already, ends the new ones and returns `false`.
    pub(super) fn take_programs(&self, started: ClockPrograms) -> bool {
        let mut programs = lock(&self.programs);
        let free = programs.is_none() && !self.is_ended();
        if free {
            *programs = Some(Arc::new(started));
        }
        free
    }

    /// Ends its clock programs, off the control thread.
    pub(super) async fn stop_programs(&self) {
        let Some(programs) = lock(&self.programs).take() else { return };
        let _ = tokio::task::spawn_blocking(move || programs.stop()).await;
    }

    /// Folder of its records, below the spool.
    pub(super) fn folder(&self) -> PathBuf {
        self.campaign.as_ref().map(Campaign::folder).unwrap_or_default()
    }

    /// Challenge that its calls must name; `None` over a Unix socket.
    pub(super) fn challenge(&self) -> Option<Vec<u8>> {
        self.holder.as_ref().map(|holder| lock(&holder.challenge).challenge().to_vec())
    }

    /// Whether it has this interface.
    pub(super) fn is_on(&self, interface: &str) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.interfaces.iter().any(|own| own == interface))
    }

    /// Sets the lease: the testmaster must give a sign of life this often; `None`: it need not.
    pub(super) fn lease(&self, length: Option<Duration>) {
        *lock(&self.lease) = Lease { length, seen: Instant::now() };
        // Over a Unix socket the same session begins again.
        self.ended.store(false, Ordering::SeqCst);
    }

    /// Whether it is over.
    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Notes a sign of life of the testmaster.
    pub(super) fn alive(&self) {
        lock(&self.lease).seen = Instant::now();
    }

    /// Whether the lease has expired; true once.
    pub(super) fn overdue(&self) -> bool {
        let mut lease = lock(&self.lease);
        let over = lease.length.is_some_and(|length| lease.seen.elapsed() > length);
        if over {
            lease.length = None;
        }
        over
    }

    /// Greatest rate of its run, bit/s; 0 without a run.
    pub(super) fn planned_bps(&self) -> u64 {
        self.planned_bps.load(Ordering::Relaxed)
    }

    /// Folder of the run that is prepared or going on.
    pub(super) fn recording(&self) -> Option<PathBuf> {
        match &*lock(&self.state) {
            State::Active { records, .. } => Some(records.clone()),
            State::Idle(_) => None,
        }
    }

    /// Begins a run, for [`Self::prepared`]. Refused while there is another.
    pub(super) fn begin(&self, records: &Path, planned_bps: u64) -> Result<Prepared, Status> {
        let mut state = lock(&self.state);
        if matches!(&*state, State::Active { .. }) {
            return Err(Status::failed_precondition("a run is prepared or in progress; call Finish first"));
        }
        let run = Arc::new(Mutex::new(None));
        *state = State::Active { run: Arc::clone(&run), records: records.to_owned(), commands: None };
        self.planned_bps.store(planned_bps, Ordering::Relaxed);
        Ok(Prepared(run))
    }

    /// Sets the prepared run; returns it if the session ended meanwhile.
    pub(super) fn prepared(&self, run: &Prepared, prepared: ActiveRun) -> Option<ActiveRun> {
        let mut state = lock(&self.state);
        if self.is_ended() {
            *state = State::Idle(None);
            return Some(prepared);
        }
        if let State::Active { commands, .. } = &mut *state {
            *commands = Some(prepared.commands());
        }
        *lock(&run.0) = Some(prepared);
        self.alive();
        None
    }

    /// The run could not be prepared.
    pub(super) fn withdraw(&self) {
        *lock(&self.state) = State::Idle(None);
        self.planned_bps.store(0, Ordering::Relaxed);
    }

    /// The current run.
    pub(super) fn active(&self) -> Result<Arc<Mutex<Option<ActiveRun>>>, Status> {
        match &*lock(&self.state) {
            State::Active { run, .. } => Ok(Arc::clone(run)),
            State::Idle(_) => Err(Status::failed_precondition("there is no run; call Prepare first")),
        }
    }

    /// Folder of the finished run's records.
    pub(super) fn records(&self) -> Result<PathBuf, Status> {
        match &*lock(&self.state) {
            State::Idle(Some(finished)) => Ok(finished.records.clone()),
            State::Idle(None) => Err(Status::failed_precondition("no run has finished yet")),
            State::Active { .. } => Err(Status::failed_precondition("call Finish first")),
        }
    }

    /// Ends the run and waits for its threads, off the control thread. A finished run returns its report again: the
    /// caller may not have received it.
    pub(super) async fn end_run(&self, abort: bool) -> Result<proto::AgentReport, Status> {
        let run = loop {
            match &*lock(&self.state) {
                State::Active { run, commands, .. } => {
                    if let Some(run) = lock(run).take() {
                        break run;
                    }
                    // Another caller waits for its end, or it is being prepared.
                    if let Some(commands) = commands.as_ref().filter(|_| abort) {
                        commands.abort.store(true, Ordering::Relaxed);
                    }
                }
                State::Idle(Some(Finished { report: Some(report), .. })) => return Ok((**report).clone()),
                State::Idle(_) => {
                    return Err(Status::failed_precondition("there is no run to finish; call Prepare first"));
                }
            }
            tokio::time::sleep(LOOK).await;
        };
        let report = tokio::task::spawn_blocking(move || run.finish(abort)).await.ok();
        let mut state = lock(&self.state);
        if let State::Active { records, .. } = &*state {
            let report = report.clone().map(Box::new);
            *state = State::Idle(Some(Finished { records: records.clone(), report }));
        }
        self.planned_bps.store(0, Ordering::Relaxed);
        report.ok_or_else(|| Status::internal("the run could not be ended; this is a defect of wiregauge"))
    }

    /// Ends the current run, if any, and keeps its records; also ends its clock programs.
    pub(super) async fn abandon(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.stop_programs().await;
        if self.recording().is_some() {
            let _ = self.end_run(true).await;
        }
    }
}

/// A run that is being prepared.
pub(super) struct Prepared(Arc<Mutex<Option<ActiveRun>>>);
