//! A cluster in virtual time: devices with oscillators of their own, and links that delay.

use std::collections::BTreeMap;

use wg_core::as6802::{
    Behaviour, CompressionMaster, EndSystem, Integrity, Output, Parameters, Role, State, Thresholds,
    TransparentClock,
};
use wg_core::clock::{DisciplinedClock, LocalClock, LocalTime};
use wg_core::oscillator::{FrequencyOffset, Oscillator};
use wg_frame::time::{RunTime, Span};
use wg_frame::tte::ControlRepr;

use super::{Draws, US};

/// What fails, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    Early(usize, i64),
    Late(usize, i64),
    Silent(usize),
    Inconsistent(usize, i64),
    /// Its frames are lost by a seeded draw for each channel.
    MasterOmits(usize, u64),
    /// Its compression master sends nothing.
    ChannelSilent(usize),
    /// Frames of its compression master reach some and others not.
    ChannelOmits(usize, u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    pub(crate) integrity: Integrity,
    pub(crate) channels: u8,
    pub(crate) masters: u8,
    pub(crate) faulty_masters: u8,
    pub(crate) clients: u8,
    pub(crate) cycle: i64,
    pub(crate) max_delay: i64,
    pub(crate) drift_ppb: i64,
    pub(crate) powered_within: i64,
    pub(crate) fault: Fault,
}

enum Core {
    End(EndSystem),
    Compression(usize, CompressionMaster),
}

struct Device {
    core: Option<Core>,
    powered: i64,
    clock: DisciplinedClock,
    drift_ppb: i64,
    state: State,
    /// Position told last, and the count then.
    position: Option<(Span, Span)>,
    is_faulty: bool,
}

/// What a device takes an instant wrong by.
const READING: i64 = 2_000;

impl Setup {
    pub(crate) fn parameters(&self) -> Parameters {
        let mut parameters = Parameters {
            integrity: self.integrity,
            domain: 1,
            priority: 2,
            integration_cycle: Span::from_picos(self.cycle),
            cycles: 16,
            precision: Span::from_micros(1),
            max_transmission_delay: Span::from_picos(self.max_delay),
            calculation_overhead: Span::from_nanos(400),
            frame_time: Span::from_nanos(6_720),
            masters: self.masters,
            faulty_masters: self.faulty_masters,
            channels: self.channels,
            thresholds: Thresholds::of(self.masters, self.faulty_masters),
            stable_cycles: 3,
            unstable_cycles: 1,
        };
        // The windows are part of what the bound is about.
        for _ in 0..4 {
            parameters.precision = self.bound(&parameters);
        }
        parameters.check().expect("a cluster that can work");
        parameters
    }

    pub(crate) fn bound(&self, parameters: &Parameters) -> Span {
        parameters.precision_bound(self.drift_ppb, Span::from_picos(READING))
    }
}

#[derive(Debug)]
struct Frame {
    to: usize,
    channel: usize,
    frame: ControlRepr,
}

/// How much of its bound a figure took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shares {
    pub(crate) precision: f64,
    pub(crate) startup: f64,
}

pub(crate) struct Cluster {
    setup: Setup,
    /// What its precision is judged by.
    judge: Setup,
    parameters: Parameters,
    devices: Vec<Device>,
    flying: BTreeMap<(i64, u64), Frame>,
    sent: u64,
    draws: Draws,
    now: i64,
}

impl Cluster {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self::with(setup, setup.parameters())
    }

    /// Devices that go by `parameters`.
    pub(crate) fn with(setup: &Setup, parameters: Parameters) -> Self {
        let mut draws = Draws(setup.seed);
        let count = usize::from(setup.masters + setup.clients + setup.channels);
        let devices = (0..count).map(|number| {
            let drift_ppb = draws.within(-setup.drift_ppb, setup.drift_ppb);
            let oscillator = Oscillator::new(FrequencyOffset::from_ppb(drift_ppb).expect("small"));
            let faulty = match setup.fault {
                Fault::Early(n, _) | Fault::Late(n, _) | Fault::Silent(n) => Some(n),
                Fault::Inconsistent(n, _) | Fault::MasterOmits(n, _) => Some(n),
                Fault::ChannelSilent(c) | Fault::ChannelOmits(c, _) => {
                    Some(c + usize::from(setup.masters + setup.clients))
                }
                Fault::None => None,
            };
            Device {
                core: None,
                powered: draws.below(setup.powered_within),
                clock: DisciplinedClock::over(oscillator, Span::ZERO),
                drift_ppb,
                state: State::Integrate,
                position: None,
                is_faulty: faulty == Some(number),
            }
        });
        let devices = devices.collect();
        let flying = BTreeMap::new();
        let (setup, judge) = (setup.clone(), setup.clone());
        Self { setup, judge, parameters, devices, flying, sent: 0, draws, now: 0 }
    }

    pub(crate) fn judge_by(&mut self, setup: &Setup) {
        self.judge = setup.clone();
    }

    fn count(&self, device: usize, at: i64) -> LocalTime {
        LocalTime::ZERO + self.devices[device].clock.elapsed(RunTime::from_picos(at))
    }

    fn power(&mut self, number: usize) {
        let at = self.count(number, self.now);
        let (masters, ends) =
            (usize::from(self.setup.masters), usize::from(self.setup.masters + self.setup.clients));
        let ps = Span::from_picos;
        let core = if number < ends {
            let role = if number < masters { Role::Master(number as u8) } else { Role::Client };
            let behaviour = match self.setup.fault {
                Fault::Early(n, by) if n == number => Behaviour::Early(ps(by)),
                Fault::Late(n, by) if n == number => Behaviour::Late(ps(by)),
                Fault::Silent(n) if n == number => Behaviour::Silent,
                Fault::Inconsistent(n, by) if n == number => Behaviour::Inconsistent(ps(by)),
                _ => Behaviour::Correct,
            };
            Core::End(EndSystem::new(self.parameters, role, behaviour, at))
        } else {
            Core::Compression(number - ends, CompressionMaster::new(self.parameters, at))
        };
        self.devices[number].core = Some(core);
    }

    fn send(&mut self, from: usize, channel: usize, frame: ControlRepr) {
        let ends = usize::from(self.setup.masters + self.setup.clients);
        let to: Vec<usize> = if from < ends { vec![ends + channel] } else { (0..ends).collect() };
        for to in to {
            let lost = match self.setup.fault {
                Fault::ChannelSilent(c) => from == ends + c,
                Fault::ChannelOmits(c, seed) => {
                    from == ends + c && Draws(seed ^ to as u64).next().is_multiple_of(2)
                }
                Fault::MasterOmits(n, seed) => {
                    n == from && Draws(seed ^ channel as u64).next().is_multiple_of(3)
                }
                _ => false,
            };
            if lost {
                continue;
            }
            let delay = self.draws.within(2 * US, self.setup.max_delay - READING);
            // Devices on the way measure their part by oscillators of their own.
            let clock = TransparentClock::from_delay(Span::from_picos(delay + self.draws.below(READING)));
            let frame = ControlRepr { transparent_clock: clock.expect("positive"), ..frame };
            self.sent += 1;
            self.flying.insert((self.now + delay, self.sent), Frame { to, channel, frame });
        }
    }

    fn drain(&mut self, number: usize) {
        loop {
            let device = &mut self.devices[number];
            let (output, channel) = match device.core.as_mut() {
                Some(Core::End(core)) => (core.poll_output(), None),
                Some(Core::Compression(channel, core)) => (core.poll_output(), Some(*channel)),
                None => return,
            };
            let Some(output) = output else { return };
            match output {
                Output::Send { channel: of_end, frame } => {
                    self.send(number, channel.unwrap_or(of_end), frame)
                }
                Output::State(state) => {
                    if std::env::var_os("AS6802_TRACE").is_some() {
                        println!("{:>12.3} us: {number} {state:?}", self.now as f64 / 1e6);
                    }
                    device.state = state;
                }
                Output::Clock { position } => {
                    let elapsed = device.clock.elapsed(RunTime::from_picos(self.now));
                    device.position = Some((position, elapsed));
                }
                Output::Clique(_) | Output::Membership(_) => {}
            }
        }
    }

    /// The next instant at which something happens.
    fn next(&self) -> i64 {
        let flying = self.flying.first_key_value().map(|((at, _), _)| *at);
        let mut next = flying.unwrap_or(i64::MAX);
        for device in &self.devices {
            let deadline = match &device.core {
                None if device.powered >= self.now => {
                    next = next.min(device.powered);
                    continue;
                }
                None => continue,
                Some(Core::End(core)) => core.next_deadline(),
                Some(Core::Compression(_, core)) => core.next_deadline(),
            };
            let due = (deadline.as_picos() != i64::MAX)
                .then(|| device.clock.when_elapsed(deadline - LocalTime::ZERO, RunTime::from_picos(self.now)))
                .flatten();
            next = next.min(due.map_or(i64::MAX, RunTime::as_picos));
        }
        next
    }

    fn step(&mut self) {
        self.now = self.next();
        for number in 0..self.devices.len() {
            if self.devices[number].core.is_none() && self.devices[number].powered <= self.now {
                self.power(number);
            }
        }
        while let Some(entry) = self.flying.first_entry()
            && entry.key().0 <= self.now
        {
            let Frame { to, channel, frame } = entry.remove();
            let count = self.count(to, self.now);
            match &mut self.devices[to].core {
                Some(Core::End(core)) => core.handle_frame(count, channel, frame),
                Some(Core::Compression(_, core)) => core.handle_frame(count, frame),
                None => {}
            }
            self.drain(to);
        }
        for number in 0..self.devices.len() {
            let count = self.count(number, self.now);
            match &mut self.devices[number].core {
                Some(Core::End(core)) if core.next_deadline() <= count => core.handle_deadline(count),
                Some(Core::Compression(_, core)) if core.next_deadline() <= count => {
                    core.handle_deadline(count);
                }
                _ => continue,
            }
            self.drain(number);
        }
    }

    /// Correct devices that are not synchronised.
    fn missing(&self) -> Vec<usize> {
        let out = |(number, device): (usize, &Device)| {
            (!device.is_faulty && !device.state.is_synchronised()).then_some(number)
        };
        self.devices.iter().enumerate().filter_map(out).collect()
    }

    /// The greatest difference of the clocks of correct, synchronised devices.
    fn spread(&self) -> Span {
        let cluster = self.parameters.cluster_cycle().as_picos();
        let mut positions =
            self.devices.iter().filter(|d| !d.is_faulty && d.state.is_synchronised()).filter_map(|device| {
                let (position, elapsed) = device.position?;
                let now = device.clock.elapsed(RunTime::from_picos(self.now));
                Some((position + (now - elapsed)).as_picos())
            });
        let Some(first) = positions.next() else { return Span::ZERO };
        let (mut low, mut high) = (0, 0);
        for position in positions {
            let off = (position - first + cluster / 2).rem_euclid(cluster) - cluster / 2;
            (low, high) = (low.min(off), high.max(off));
        }
        Span::from_picos(high - low)
    }

    /// Once a cycle oscillators wander, within what the bound allows.
    fn wander(&mut self, last: &mut i64) {
        if self.now - *last < self.setup.cycle {
            return;
        }
        *last = self.now;
        let limit = self.setup.drift_ppb;
        for device in &mut self.devices {
            let step = self.draws.within(-limit / 20, limit / 20);
            device.drift_ppb = (device.drift_ppb + step).clamp(-limit, limit);
            let frequency = FrequencyOffset::from_ppb(device.drift_ppb).expect("small");
            device.clock.set_drift(RunTime::from_picos(self.now), frequency).expect("in order");
            device.clock.forget_before(RunTime::from_picos(self.now - 1));
        }
    }

    /// Starts it; how much of both bounds it took.
    pub(crate) fn start(mut self) -> Result<Shares, String> {
        let powered = self.devices.iter().map(|device| device.powered).max().unwrap_or(0);
        let within = self.parameters.startup_bound().as_picos();
        // A bound by slow oscillators.
        let by = powered + within + within / 1_000;
        let (mut worst, mut wandered) = (Span::ZERO, 0);
        let bound = self.judge.bound(&self.parameters);
        let mut synchronised: Option<i64> = None;
        loop {
            self.step();
            self.wander(&mut wandered);
            let missing = self.missing();
            match (missing.is_empty(), synchronised) {
                (true, None) => synchronised = Some(self.now),
                (false, Some(since)) => {
                    let at = self.now - since;
                    return Err(format!("{missing:?} fell out after {} us", at / US));
                }
                (false, None) if self.now > by => {
                    let states: Vec<_> = self.devices.iter().map(|device| device.state).collect();
                    return Err(format!("{missing:?} not within {} us: {states:?}", by / US));
                }
                _ => {}
            }
            if let Some(since) = synchronised {
                worst = worst.max(self.spread());
                if worst > bound {
                    return Err(format!("clocks {worst} apart, bound {bound}"));
                }
                if self.now - since > 30 * self.setup.cycle {
                    let share = |part: i64, whole: i64| part as f64 / whole as f64;
                    return Ok(Shares {
                        precision: share(worst.as_picos(), bound.as_picos()),
                        startup: share((since - powered).max(0), within),
                    });
                }
            }
        }
    }
}
