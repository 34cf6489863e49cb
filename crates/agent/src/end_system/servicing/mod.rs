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

/// Final interval before a send, spun on the clock alone, ns; longer than an empty receive call.
const FINAL: i64 = 4_000;
/// Spinning time after the expected arrival of a late message, ns.
const TAIL: i64 = 80_000;
/// Longest sleep, which bounds the delay of a stop.
pub const LONGEST_SLEEP_MS: u32 = 20;
const LONGEST_SLEEP: i64 = LONGEST_SLEEP_MS as i64 * 1_000_000;
/// Spins between two calls of `sched_yield`.
const SPINS_PER_YIELD: u32 = 8;
/// Frames received in a row while messages wait to be sent.
const RECEIVE_BURST: usize = 4;

/// Send counts of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendStats {
    /// Messages accepted by the kernel.
    pub done: u64,
    /// Messages that left more than a tenth of the period after their intended time.
    pub late: u64,
}

/// Statistics of an access point.
#[derive(Debug, Default)]
pub struct AccessPointStats {
    /// Frames accepted by the kernel.
    pub frames_sent: u64,
    /// Frames received.
    pub frames_received: u64,
    /// Frames the kernel refused to send.
    pub send_errors: u64,
    /// Received frames dropped because a task's queue was full.
    pub inbox_drops: u64,
    /// Sends without a driver timestamp.
    pub missing_tx_timestamps: u64,
    /// Received frames without a driver timestamp.
    pub missing_rx_timestamps: u64,
    /// Statistics of hardware timestamps, if the interface supports them.
    pub hardware: HardwareStats,
    /// Frames without the probe header.
    pub foreign_frames: u64,
    /// Frames dropped because the socket's buffer was full.
    pub socket_drops: u64,
    /// Involuntary context switches of the thread.
    pub involuntary_switches: u64,
    /// Send counts by position in the flow table.
    pub sends: Vec<SendStats>,
    /// Reception counts, if this thread checked the messages.
    pub reception: Option<ReceptionStats>,
    /// Relays that ran on this thread.
    pub relays: Vec<RelayState>,
    /// First socket error.
    pub failure: Option<String>,
}

/// Queues to and from the relay task.
pub struct TurnQueue {
    /// Messages to be returned by the task.
    pub inbox: Producer<Incoming>,
    /// Thread of the task, for wake-ups.
    pub thread: std::thread::Thread,
}

/// Inputs of a servicing thread.
pub struct Parts {
    /// The access point.
    pub socket: Socket,
    /// Hardware timestamps, if the interface supports them.
    pub timestamps: Option<TimestampConfig>,
    /// Kind of access point.
    pub access: AccessKind,
    /// Assignment of the end system.
    pub assignment: Arc<Assignment>,
    /// Queues of messages to send.
    pub outboxes: Vec<Consumer<Outgoing>>,
    /// Return path of each outbox's buffers; `None`: this thread's own pool.
    pub returns: Vec<Option<Producer<Buffer>>>,
    /// Destination of received messages.
    pub inbox: Inbox,
    /// The relay task.
    pub turn: Option<TurnQueue>,
    /// Buffers returned by tasks.
    pub spent: Vec<Consumer<Buffer>>,
    /// Buffers to receive into.
    pub pool: Vec<Buffer>,
    /// The record ring.
    pub records: RecordProducer,
    /// Counters visible to other threads.
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
    /// True if a hardware timestamp was requested too.
    asked: bool,
    seen: MessageInfo,
}

/// State of the servicing thread.
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
    /// Number of outstanding timestamps at which a busy thread collects them.
    collect_at: usize,
    expectations: Vec<Expectation>,
    /// Positions of the flows with expected arrivals.
    expected: Vec<u16>,
    /// Earliest expected arrival; `i64::MAX`: none.
    next_arrival: i64,
    /// Time at which a relay's held message leaves without its successor.
    next_flush: i64,
    lead: Lead,
    budget: Budget,
    awake_since: i64,
    spins: u32,
    longest_yield: i64,
    stats: AccessPointStats,
}

impl Servicing {
    /// Allocates all memory of the run.
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

    /// Services the access point until told to stop.
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

    /// Performs one send, receive, spin or sleep, depending on the time.
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

    /// True if a send or an expected arrival is near and the budget allows spinning for it.
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

    /// Handles pending work, then sleeps; called when no event is near.
    fn rest(&mut self, now: i64, due: i64) {
        if self.timestamps_due > 0 || self.hardware_timestamps_due() {
            self.collect_timestamps();
        }
        if self.next_flush <= now {
            // A message in the socket may be the successor that a held message waits for.
            while self.receive(false) {}
            self.flush_relays(false);
        }
        self.take_back_buffers();
        let lead = self.lead.ns();
        let idle = self.outboxes.is_unused() && self.turn.is_none();
        if idle && self.next_arrival == i64::MAX && self.next_flush == i64::MAX {
            // Common case of a receiver or relay without expected arrivals yet: one system call receives the frame.
            self.account(clock::realtime().get());
            self.receive(true);
            self.awake_since = clock::realtime().get();
            return;
        }
        let now = clock::realtime().get();
        self.account(now);
        let mut until = now + LONGEST_SLEEP;
        for wanted in [due.saturating_sub(lead), self.next_arrival.saturating_sub(lead), self.next_flush] {
            // Without budget the lead time has begun already, so the sleep ends at the event itself.
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

    /// Run time `time` on the wall clock, ns.
    fn wall(&self, time: RunTime) -> i64 {
        self.epoch.wall_nanos(time).get()
    }

    /// Wall clock reading, ns, as run time.
    fn run_time(&self, wall: i64) -> RunTime {
        // Only a grossly wrong clock exceeds the range of run time.
        self.epoch.run_time(WallNanos::new(wall)).unwrap_or(RunTime::from_picos(i64::MAX))
    }

    /// Updates the earliest expected arrival.
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

    /// Returns a buffer to the pool.
    fn recycle(&mut self, buffer: Buffer) {
        // The capacity covers all buffers; an extra one would be freed instead of growing the pool.
        if self.pool.len() < self.pool.capacity() {
            self.pool.push(buffer);
        }
    }

    fn fail(&mut self, error: &std::io::Error) {
        if self.stats.failure.is_none() {
            self.stats.failure = Some(format!("access point: {error}"));
        }
        // Socket errors come in rapid succession; a pause keeps them from using up the core.
        std::thread::sleep(std::time::Duration::from_millis(1));
    }

    /// Handles the frames left in the socket, in relays and in the error queue after the run.
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
