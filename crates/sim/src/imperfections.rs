//! Imperfections of nodes: timestamp errors, host events, frames of switches, injecting threads.

use wg_core::frame::Frame;
use wg_core::line::LineRate;
use wg_frame::time::{RunTime, Span};
use wg_plan::random::{Purpose, Stream};
use wg_plan::{HeldUp, HostEvent, NodeIndex, SendingThreads, Timestamps};
use wg_record::Point;

use crate::error::SimError;
use crate::models::Draws;

/// Timestamp errors of a node.
#[derive(Debug)]
pub(crate) struct TimestampErrors {
    application: Draws,
    driver: Draws,
    wire: Draws,
    errors: Stream,
    read_cost: Draws,
    costs: Stream,
    /// Correction subtracted from every timestamp of an application.
    subtracted: Span,
}

impl TimestampErrors {
    pub(crate) fn new(model: &Timestamps, node: NodeIndex, seed: u64) -> Result<Self, SimError> {
        let entity = u32::from(node);
        Ok(Self {
            application: Draws::signed(&model.application_error)?,
            driver: Draws::signed(&model.driver_error)?,
            wire: Draws::signed(&model.wire_error)?,
            errors: Stream::new(seed, Purpose::Timestamp, entity),
            read_cost: Draws::new(&model.read_cost)?,
            costs: Stream::new(seed, Purpose::ReadCost, entity),
            subtracted: if model.subtract_read_cost { model.read_cost.least() } else { Span::ZERO },
        })
    }

    /// Time that the next reading of the clock takes.
    pub(crate) fn read_cost(&mut self) -> Span {
        self.read_cost.draw(&mut self.costs)
    }

    /// The instant that a timestamp taken at `time` shows.
    pub(crate) fn shown(&mut self, point: Point, time: RunTime) -> RunTime {
        match point {
            Point::ApplicationSend | Point::ApplicationReceive => {
                time + self.application.draw(&mut self.errors) - self.subtracted
            }
            Point::DriverSend | Point::DriverReceive => time + self.driver.draw(&mut self.errors),
            Point::WireSend | Point::WireReceive | Point::SwitchIn | Point::SwitchOut => {
                time + self.wire.draw(&mut self.errors)
            }
            _ => time,
        }
    }
}

/// A recurring event of a host.
#[derive(Debug)]
pub(crate) struct RecurringEvent {
    pub(crate) node: NodeIndex,
    /// Index among the events of its host.
    pub(crate) place: u16,
    period: Span,
    duration: Span,
    latency: Draws,
    ramp: Option<[Span; 2]>,
    pub(crate) threads: HeldUp,
    chance: Stream,
    /// Beginning of the present or next occurrence.
    begins: RunTime,
    active: bool,
}

impl RecurringEvent {
    pub(crate) fn new(model: &HostEvent, node: NodeIndex, place: u16, seed: u64) -> Result<Self, SimError> {
        if model.period < model.duration || model.duration <= Span::ZERO {
            return Err(SimError::plan(format!("an event of node {node} has no duration within its period")));
        }
        Ok(Self {
            node,
            place,
            period: model.period,
            duration: model.duration,
            latency: Draws::new(&model.latency)?,
            ramp: model.ramp_to.map(|to| [model.latency.least(), to]),
            threads: model.threads,
            chance: Stream::new(seed, Purpose::HostEvent, u32::from(node) * 64 + u32::from(place)),
            begins: RunTime::ZERO + model.offset,
            active: false,
        })
    }

    /// Instant at which it next begins or ends.
    pub(crate) fn next(&self) -> RunTime {
        if self.active { self.begins + self.duration } else { self.begins }
    }

    /// Begins or ends the event; returns whether it is then in progress.
    pub(crate) fn turn(&mut self) -> bool {
        if self.active {
            self.begins = self.begins + self.period;
        }
        self.active = !self.active;
        self.active
    }

    /// Delay of a thread that is woken at `now`.
    pub(crate) fn holds_up(&mut self, now: RunTime, sending: bool) -> Span {
        let concerns = match self.threads {
            HeldUp::Both => true,
            HeldUp::Send => sending,
            HeldUp::Receive => !sending,
        };
        if !self.active || !concerns {
            return Span::ZERO;
        }
        match self.ramp {
            None => self.latency.draw(&mut self.chance),
            Some([from, to]) => {
                let rise = i128::from((to - from).as_picos()) * i128::from((now - self.begins).as_picos());
                let part = rise / i128::from(self.duration.as_picos());
                from + Span::from_picos(i64::try_from(part).unwrap_or(0))
            }
        }
    }
}

/// Frames that a switch sends of its own accord.
#[derive(Debug)]
pub(crate) struct OwnFrameSource {
    pub(crate) switch: usize,
    pub(crate) node: NodeIndex,
    /// Indices of the sending ports.
    pub(crate) ports: Vec<usize>,
    pub(crate) frame: Frame,
    pub(crate) period: Span,
    pub(crate) next: RunTime,
}

/// Processing time of a switch for the frames of a port.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) draws: Draws,
    pub(crate) chance: Stream,
    /// When the previous frame could be forwarded completely: frames of a port keep their order.
    pub(crate) last: RunTime,
}

impl Decision {
    /// When a frame can be forwarded whose header was received at `seen` and whose last bit arrives at `complete`.
    pub(crate) fn at(&mut self, seen: RunTime, complete: RunTime) -> RunTime {
        let at = self.last.max(seen + self.draws.draw(&mut self.chance));
        self.last = at + (complete - seen);
        at
    }
}

/// Threads of an injector.
#[derive(Debug)]
pub(crate) struct Threads {
    threads: Vec<Thread>,
    send_cost: Draws,
    sleep_overhead: Draws,
    burst: u32,
    /// Sleep that each thread requests after a burst.
    sleep: Span,
}

#[derive(Debug)]
struct Thread {
    chance: Stream,
    next: RunTime,
    /// Frames of its burst still to be sent.
    left: u32,
}

impl Threads {
    /// Threads that share bursts at `interval`: they begin one interval after the other.
    pub(crate) fn new(
        model: &SendingThreads,
        interval: Span,
        burst: u32,
        number: u32,
        seed: u64,
    ) -> Result<Self, SimError> {
        let missing = || SimError::plan("the threads of a background load sleep for more than 106 days");
        let sleep = interval.checked_mul(i64::from(model.number)).ok_or_else(missing)?;
        let thread = |place: u16| Thread {
            chance: Stream::new(seed, Purpose::InjectingThread, number * 64 + u32::from(place)),
            next: RunTime::ZERO + interval.checked_mul(i64::from(place)).unwrap_or(Span::ZERO),
            left: burst,
        };
        Ok(Self {
            threads: (0..model.number).map(thread).collect(),
            send_cost: Draws::new(&model.send_cost)?,
            sleep_overhead: Draws::new(&model.sleep_overhead)?,
            burst,
            sleep,
        })
    }

    /// Instant of the next frame of any thread.
    pub(crate) fn next(&self) -> Option<RunTime> {
        self.threads.iter().map(|thread| thread.next).min()
    }

    /// Number of frames sent at `now`; their threads go on or to sleep.
    pub(crate) fn send(&mut self, now: RunTime) -> u32 {
        let mut sent = 0;
        for thread in self.threads.iter_mut().filter(|thread| thread.next <= now) {
            let called = self.send_cost.draw(&mut thread.chance);
            thread.left -= 1;
            sent += 1;
            thread.next = now + called;
            if thread.left == 0 {
                thread.left = self.burst;
                thread.next = thread.next + self.sleep + self.sleep_overhead.draw(&mut thread.chance);
            }
        }
        sent
    }
}

/// A line rate changed by the drift of its oscillator, to the nearest bit per second.
pub(crate) fn drifted(line: LineRate, drift_ppb: i64) -> LineRate {
    if drift_ppb == 0 {
        return line;
    }
    let rate = i128::from(line.bits_per_second());
    let drifted = rate + (rate * i128::from(drift_ppb) + 500_000_000).div_euclid(1_000_000_000);
    u64::try_from(drifted).ok().and_then(LineRate::new).unwrap_or(line)
}
