//! The servicing thread: one per access point, and the only one that touches its socket.
//!
//! It sends, receives and timestamps, nothing else (MAPS 2015, "Test bed queues and processes"); everything that can
//! be done before or after is done by task threads behind wait-free queues. While a run is going on it does not
//! allocate, lock, or make a system call but `sendto`, `recvmsg`, `ppoll` and `sched_yield`.
//!
//! Sending is an open loop on an absolute schedule: a message that leaves late does not move the next one. The
//! thread sleeps until shortly before a message is due or likely to arrive, then spins on the socket, and in the
//! last microseconds on the clock alone. See [`spin`] for what bounds the spinning.

mod hardware;
mod receive;
pub mod spin;
mod timestamps;
mod transmit;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rtrb::{Consumer, Producer};
use wg_frame::time::{Epoch, RunTime, WallNanos};
use wg_net::{Socket, TX_BATCH, Wake, clock, realtime};
use wg_record::{Crc, RecordFlags};

use self::spin::{Budget, Expectation};
use crate::control::role::Counters;
use crate::end_system::addressing::AccessKind;
use crate::end_system::assignment::{Assignment, FlowRole};
use crate::end_system::buffer::{Buffer, Incoming, Outgoing};
use crate::end_system::outbox::Outboxes;
use crate::end_system::receiver_task::{Inbox, ReceptionStats};
use crate::end_system::relay::RelayState;
use crate::recording::record_ring::{MessageInfo, RecordProducer};
use crate::stream::lead::Lead;
use crate::timestamps::{HardwareStats, TimestampConfig};

use self::hardware::{HardwareTimestamps, OUTSTANDING};

/// The last stretch before a send, spun on the clock alone, ns. Longer than an empty receive takes.
const FINAL: i64 = 4_000;
/// How long to go on spinning for a message that is late, ns.
const TAIL: i64 = 80_000;
/// Longest sleep: how long a stop may go unnoticed.
pub const LONGEST_SLEEP_MS: u32 = 20;
const LONGEST_SLEEP: i64 = LONGEST_SLEEP_MS as i64 * 1_000_000;
/// Spins between two offers of the core to others.
const SPINS_PER_YIELD: u32 = 8;
/// Frames received in a row while messages wait to be sent.
const RECEIVE_BURST: usize = 4;

/// Sends of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendStats {
    /// Messages the kernel took.
    pub done: u64,
    /// Messages that left more than a tenth of the period after their intended time.
    pub late: u64,
}

/// Statistics of an access point.
#[derive(Debug, Default)]
pub struct AccessPointStats {
    /// Frames the kernel took.
    pub frames_sent: u64,
    /// Frames received.
    pub frames_received: u64,
    /// Frames the kernel refused to send.
    pub send_errors: u64,
    /// Frames received but given up because a task's queue was full.
    pub inbox_drops: u64,
    /// Sends whose driver timestamp never came.
    pub missing_tx_timestamps: u64,
    /// Frames that came without the driver's timestamp.
    pub missing_rx_timestamps: u64,
    /// Timestamps of the interface, where it timestamps.
    pub hardware: HardwareStats,
    /// Frames without our header.
    pub foreign_frames: u64,
    /// Frames dropped because the socket's buffer was full.
    pub socket_drops: u64,
    /// Involuntary context switches of the thread.
    pub involuntary_switches: u64,
    /// By position in the flow table.
    pub sends: Vec<SendStats>,
    /// What the messages were, where this thread judged them.
    pub reception: Option<ReceptionStats>,
    /// Relays that turned messages on this thread.
    pub relays: Vec<RelayState>,
    /// The first thing that went wrong with the socket.
    pub failure: Option<String>,
}

/// Queues to and from the relay task.
pub struct TurnQueue {
    /// Messages to be turned there.
    pub inbox: Producer<Incoming>,
    /// The thread to wake.
    pub thread: std::thread::Thread,
}

/// What a servicing thread is made of.
pub struct Parts {
    /// The access point.
    pub socket: Socket,
    /// The interface's timestamps, where it has some.
    pub timestamps: Option<TimestampConfig>,
    /// Its kind.
    pub access: AccessKind,
    /// What the end system has to do.
    pub assignment: Arc<Assignment>,
    /// Queues of messages to send.
    pub outboxes: Vec<Consumer<Outgoing>>,
    /// Where the buffers of each go afterwards; `None`: this thread's own pool.
    pub returns: Vec<Option<Producer<Buffer>>>,
    /// Where received messages go.
    pub inbox: Inbox,
    /// The relay task.
    pub turn: Option<TurnQueue>,
    /// Buffers that come back from tasks.
    pub spent: Vec<Consumer<Buffer>>,
    /// Buffers to receive into.
    pub pool: Vec<Buffer>,
    /// The record ring.
    pub records: RecordProducer,
    /// What others may watch.
    pub counters: Arc<Counters>,
    /// Signalled by the relay task.
    pub wake: Arc<Wake>,
    /// Set to end the run.
    pub stop: Arc<AtomicBool>,
    /// Agents that share a core of this host, this one included.
    pub sharing: u32,
}

/// A send that may still get its driver timestamp.
#[derive(Clone, Copy)]
struct Outstanding {
    number: u32,
    waiting: bool,
    /// The interface's timestamp was asked for, too.
    asked: bool,
    seen: MessageInfo,
}

/// The thread's state.
pub struct Servicing {
    socket: Socket,
    interface: Option<HardwareTimestamps>,
    access: AccessKind,
    assignment: Arc<Assignment>,
    epoch: Epoch,
    outboxes: Outboxes<Outgoing>,
    returns: Vec<Option<Producer<Buffer>>>,
    inbox: Inbox,
    turn: Option<TurnQueue>,
    spent: Vec<Consumer<Buffer>>,
    pool: Vec<Buffer>,
    records: RecordProducer,
    counters: Arc<Counters>,
    wake: Arc<Wake>,
    stop: Arc<AtomicBool>,
    relays: Vec<RelayState>,
    outstanding: Box<[Outstanding]>,
    timestamps_due: usize,
    /// Outstanding timestamps at which a busy thread looks for them.
    collect_at: usize,
    expectations: Vec<Expectation>,
    /// Positions of the flows that are expected here.
    expected: Vec<u16>,
    /// The earliest instant a message is expected at; `i64::MAX`: none.
    next_arrival: i64,
    /// When a relay's held message leaves without its successor.
    next_flush: i64,
    lead: Lead,
    budget: Budget,
    awake_since: i64,
    spins: u32,
    longest_yield: i64,
    stats: AccessPointStats,
}

impl Servicing {
    /// Allocates everything the run will need.
    pub fn new(parts: Parts) -> Self {
        let assignment = parts.assignment;
        let nothing = Outstanding {
            number: 0,
            waiting: false,
            asked: false,
            seen: MessageInfo {
                flow: 0,
                sequence: 0,
                length: 0,
                crc: Crc::Unchecked,
                flags: RecordFlags::empty(),
            },
        };
        let relays = assignment
            .relays
            .iter()
            .map(|task| RelayState::new(task, &assignment.flows[usize::from(task.flow)], &assignment))
            .collect();
        let expected = (0_u16..)
            .zip(&assignment.flows)
            .filter(|(_, f)| f.access == parts.access && f.role != FlowRole::Unexpected)
            .map(|(at, _)| at)
            .collect();
        let stats = AccessPointStats {
            sends: vec![SendStats::default(); assignment.flows.len()],
            ..AccessPointStats::default()
        };
        Self {
            socket: parts.socket,
            interface: parts.timestamps.map(HardwareTimestamps::new),
            access: parts.access,
            epoch: Epoch::new(clock::realtime()),
            outboxes: Outboxes::new(parts.outboxes),
            returns: parts.returns,
            inbox: parts.inbox,
            turn: parts.turn,
            spent: parts.spent,
            pool: parts.pool,
            records: parts.records,
            counters: parts.counters,
            wake: parts.wake,
            stop: parts.stop,
            relays,
            outstanding: vec![nothing; OUTSTANDING].into_boxed_slice(),
            timestamps_due: 0,
            collect_at: TX_BATCH,
            expectations: assignment.flows.iter().map(|f| Expectation::new(f.period_ns)).collect(),
            expected,
            next_arrival: i64::MAX,
            next_flush: i64::MAX,
            lead: Lead::new(60_000),
            budget: Budget::new(clock::realtime().get(), parts.sharing),
            awake_since: clock::realtime().get(),
            spins: 0,
            longest_yield: 0,
            stats,
            assignment,
        }
    }

    /// Services the access point from now until it is told to stop.
    pub fn run(mut self, epoch: Epoch) -> AccessPointStats {
        self.epoch = epoch;
        self.records.begin(epoch);
        let switches = wg_net::host::involuntary_switches();
        while !self.stop.load(Ordering::Relaxed) {
            self.step();
        }
        self.wind_up();
        self.stats.involuntary_switches = wg_net::host::involuntary_switches().saturating_sub(switches);
        self.stats.relays = std::mem::take(&mut self.relays);
        if let Inbox::Inline(checker) = self.inbox {
            self.stats.reception = Some(checker.stats);
        }
        self.stats
    }

    /// One send, one receive, one spin or one sleep, whichever the time demands.
    fn step(&mut self) {
        let now = clock::realtime().get();
        let next = self.outboxes.earliest();
        let due = next.map_or(i64::MAX, |(_, due)| self.wall(due));
        if let Some((index, _)) = next
            && due.saturating_sub(now) <= FINAL
        {
            while clock::realtime().get() < due {
                std::hint::spin_loop();
            }
            self.send_from(index);
            self.receive_waiting(RECEIVE_BURST * usize::from(now > due));
            self.collect_backlog();
            return;
        }
        if self.may_spin(now, due) {
            self.spin();
        } else {
            self.rest(now, due);
        }
    }

    /// Whether a message is about to leave or likely to arrive, and there is budget to wait for it awake.
    fn may_spin(&mut self, now: i64, due: i64) -> bool {
        if self.next_arrival < now - TAIL {
            self.expect_next(now);
        }
        let lead = self.lead.ns();
        if due - now > lead && self.next_arrival.saturating_sub(now) > lead {
            return false;
        }
        self.account(now);
        self.budget.allows()
    }

    fn spin(&mut self) {
        if self.receive(false) {
            return;
        }
        self.spins = self.spins.wrapping_add(1);
        if self.spins.is_multiple_of(SPINS_PER_YIELD) {
            let before = clock::realtime().get();
            realtime::yield_now();
            self.longest_yield = self.longest_yield.max(clock::realtime().get() - before);
        }
        self.collect_backlog();
    }

    /// Charges the time since the last accounting or the last sleep.
    fn account(&mut self, now: i64) {
        self.budget.account(now, now - self.awake_since, self.longest_yield);
        self.awake_since = now;
        self.longest_yield = 0;
    }

    /// Nothing is near: do what has waited, then sleep.
    fn rest(&mut self, now: i64, due: i64) {
        if self.timestamps_due > 0 || self.hardware_timestamps_due() {
            self.collect_timestamps();
        }
        if self.next_flush <= now {
            // A message that waits in the socket may be the successor a held one waits for.
            while self.receive(false) {}
            self.flush_relays(false);
        }
        self.take_back_buffers();
        let lead = self.lead.ns();
        let idle = self.outboxes.is_unused() && self.turn.is_none();
        if idle && self.next_arrival == i64::MAX && self.next_flush == i64::MAX {
            // The common case of a receiver or relay that knows nothing of its flows yet: a single system call takes
            // the frame.
            self.account(clock::realtime().get());
            self.receive(true);
            self.awake_since = clock::realtime().get();
            return;
        }
        let now = clock::realtime().get();
        self.account(now);
        let mut until = now + LONGEST_SLEEP;
        for wanted in [due.saturating_sub(lead), self.next_arrival.saturating_sub(lead), self.next_flush] {
            // Without budget the lead has begun already: sleep to the event itself.
            let wanted = if wanted <= now { wanted.saturating_add(lead) } else { wanted };
            until = until.min(wanted.max(now + 1_000));
        }
        let waited = self.socket.wait(Some(&self.wake), until - now);
        self.awake_since = clock::realtime().get();
        match waited {
            Ok(ready) => {
                if ready.woken {
                    self.wake.clear();
                }
                if ready.timestamps {
                    self.collect_timestamps();
                }
                if ready.frames || ready.timestamps {
                    self.receive(false);
                } else if !ready.woken {
                    self.lead.learn(self.awake_since - until);
                }
            }
            Err(error) => self.fail(&error),
        }
    }

    /// The instant `time` on the wall clock, ns.
    fn wall(&self, time: RunTime) -> i64 {
        self.epoch.wall_nanos(time).get()
    }

    /// A reading of the wall clock, ns, on the timescale of the run.
    fn run_time(&self, wall: i64) -> RunTime {
        // Only a clock set by a season comes to the end of all times.
        self.epoch.run_time(WallNanos::new(wall)).unwrap_or(RunTime::from_picos(i64::MAX))
    }

    /// Finds the earliest instant a message is expected at.
    fn expect_next(&mut self, now: i64) {
        let expectations = &mut self.expectations;
        self.next_arrival = self
            .expected
            .iter()
            .filter_map(|&flow| expectations[usize::from(flow)].next(now, TAIL))
            .min()
            .unwrap_or(i64::MAX);
    }

    fn take_back_buffers(&mut self) {
        for spent in &mut self.spent {
            while self.pool.len() < self.pool.capacity()
                && let Ok(buffer) = spent.pop()
            {
                self.pool.push(buffer);
            }
        }
    }

    /// A buffer back into the pool.
    fn recycle(&mut self, buffer: Buffer) {
        // Its capacity covers every buffer there is; were one too many, it is freed rather than grown for.
        if self.pool.len() < self.pool.capacity() {
            self.pool.push(buffer);
        }
    }

    fn fail(&mut self, error: &std::io::Error) {
        if self.stats.failure.is_none() {
            self.stats.failure = Some(format!("access point: {error}"));
        }
        // Errors of a socket come in streams; a pause keeps them from taking the core.
        std::thread::sleep(std::time::Duration::from_millis(1));
    }

    /// After the run: what still waits in the socket, in a relay, in the error queue.
    fn wind_up(&mut self) {
        for _ in 0..65_536 {
            if !self.receive(false) {
                break;
            }
        }
        self.flush_relays(true);
        for _ in 0..10 {
            self.collect_timestamps();
            if self.timestamps_due == 0 && !self.hardware_timestamps_due() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.stats.missing_tx_timestamps += self.timestamps_due as u64;
        self.stats.hardware = self.interface.as_mut().map(HardwareTimestamps::finish).unwrap_or_default();
        self.stats.socket_drops = self.socket.drops().unwrap_or(0);
    }
}
