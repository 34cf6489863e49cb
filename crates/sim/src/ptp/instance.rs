//! A PTP instance of `statime`, with the time, chance and clock that it needs.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use rand_core_06::{Error as RngError, RngCore};
use statime::config::{AcceptAnyMaster, TimePropertiesDS};
use statime::filters::{
    BasicFilter, Filter, FilterEstimate, FilterUpdate, KalmanConfiguration, KalmanFilter,
};
use statime::observability::port::{DelayMechanism, PortState};
use statime::port::TimestampContext;
use statime::port::{InBmca, Measurement, NoForwardedTLVs, Port, PortAction, PortActionIterator, Running};
use statime::time::{Duration, Time};
use statime::{Clock, PtpInstance};
use wg_core::clock::{LocalClock, LocalTime, SharedClock};
use wg_core::oscillator::FrequencyOffset;
use wg_frame::time::{RunTime, Span};
use wg_plan::random::Stream;

use super::pi::{PiConfig, PiServo};

/// Time in PTP's timescale for a clock reading of zero, seconds. Run time reaches 106 days either way; `statime` cannot
/// represent times before its epoch.
const ORIGIN: u64 = 1 << 24;

/// Least positive duration of `statime`, 2⁻³² ns.
const LEAST_NS: f64 = 1.0 / 4_294_967_296.0;

/// A clock reading in PTP's timescale.
pub(crate) fn ptp_time(local: LocalTime) -> Time {
    let ps = i128::from(local.as_picos()) + i128::from(ORIGIN) * 1_000_000_000_000;
    let ns = u64::try_from(ps.div_euclid(1_000)).unwrap_or(0);
    let part = u32::try_from((ps.rem_euclid(1_000) << 32) / 1_000).unwrap_or(0);
    Time::from_nanos_subnanos(ns, part)
}

fn span(duration: Duration) -> Option<Span> {
    let ps = (duration.nanos().to_bits().checked_mul(1_000)?.checked_add(1 << 31)?) >> 32;
    Some(Span::from_picos(i64::try_from(ps).ok()?))
}

/// The clock of a node, steered by `statime`.
#[derive(Debug)]
pub(crate) struct SteeredClock {
    pub(crate) clock: Option<SharedClock>,
    pub(crate) control: Rc<Control>,
}

/// State shared by the simulator and the clock that `statime` holds.
#[derive(Debug, Default)]
pub(crate) struct Control {
    pub(crate) now: Cell<RunTime>,
    /// Whether the clock was changed since the simulator last looked.
    pub(crate) is_changed: Cell<bool>,
    pub(crate) refused: Cell<u64>,
}

impl SteeredClock {
    fn change(
        &self,
        change: impl FnOnce(&mut wg_core::clock::DisciplinedClock, RunTime) -> Option<()>,
    ) -> Result<Time, Refused> {
        let clock = self.clock.as_ref().ok_or(Refused)?;
        let done = change(&mut clock.borrow_mut(), self.control.now.get());
        if done.is_none() {
            self.control.refused.set(self.control.refused.get() + 1);
            return Err(Refused);
        }
        self.control.is_changed.set(true);
        Ok(self.now())
    }
}

/// The requested correction is out of the clock's range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused;

impl Clock for SteeredClock {
    type Error = Refused;

    fn now(&self) -> Time {
        ptp_time(self.clock.read(self.control.now.get()))
    }
    fn step_clock(&mut self, offset: Duration) -> Result<Time, Refused> {
        self.change(|clock, now| clock.step(now, span(offset)?).ok())
    }
    fn set_frequency(&mut self, ppm: f64) -> Result<Time, Refused> {
        self.change(|clock, now| {
            #[expect(clippy::cast_possible_truncation, reason = "held within the limit before")]
            let fine = (ppm.is_finite() && ppm.abs() <= 100_000.0).then_some((ppm * 1e9) as i64)?;
            clock.set_frequency(now, FrequencyOffset::nearest(fine)).ok()
        })
    }
    fn set_properties(&mut self, _properties: &TimePropertiesDS) -> Result<(), Refused> {
        Ok(())
    }
}

/// Random numbers for `statime`, from a stream of the run.
#[derive(Debug)]
pub(crate) struct Chance(pub(crate) Stream);

impl RngCore for Chance {
    fn next_u32(&mut self) -> u32 {
        (self.0.next_u64() >> 32) as u32
    }
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let drawn = self.0.next_u64().to_le_bytes();
            chunk.copy_from_slice(&drawn[..chunk.len()]);
        }
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), RngError> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

/// One of the filters of `statime`, or the servo of ptp4l.
#[expect(clippy::large_enum_variant, reason = "one for each port; nearly all are the large one")]
pub(crate) enum Servo {
    Kalman(KalmanFilter, Nudge),
    Basic(BasicFilter),
    Pi(PiServo),
}

/// Keeps measured peer delays from all being equal to the picosecond, as simulated ones are on an idle line.
///
/// The Kalman filter divides by the variance of its measurements, and yields NaN where that is zero. Every other
/// measurement is a picosecond longer; clocks are read in far coarser ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nudge {
    longer: bool,
}

impl Nudge {
    fn applied(&mut self, measurement: Measurement) -> Measurement {
        self.longer = !self.longer;
        if self.longer {
            return measurement;
        }
        let longer = |delay: Duration| delay + Duration::from_fixed_nanos(0.001);
        Measurement { peer_delay: measurement.peer_delay.map(longer), ..measurement }
    }
}

/// The filter and its constants.
#[derive(Clone, Debug)]
pub(crate) enum ServoConfig {
    Kalman(KalmanConfiguration),
    /// Proportional filter with this gain.
    Basic(f64),
    Pi(PiConfig),
}

impl Filter for Servo {
    type Config = ServoConfig;

    fn new(config: ServoConfig) -> Self {
        match config {
            ServoConfig::Kalman(config) => Self::Kalman(KalmanFilter::new(config), Nudge::default()),
            ServoConfig::Basic(gain) => Self::Basic(BasicFilter::new(gain)),
            ServoConfig::Pi(config) => Self::Pi(PiServo::new(config)),
        }
    }
    fn measurement<C: Clock>(&mut self, mut measurement: Measurement, clock: &mut C) -> FilterUpdate {
        // The Kalman filter divides by the variance of delays, which it takes to grow with the delay: on a link whose
        // measured delay is always zero it would compute 0/0 without this least delay.
        if measurement.peer_delay == Some(Duration::ZERO) {
            measurement.peer_delay = Some(Duration::from_fixed_nanos(LEAST_NS));
        }
        match self {
            Self::Kalman(filter, nudge) => filter.measurement(nudge.applied(measurement), clock),
            Self::Basic(filter) => filter.measurement(measurement, clock),
            Self::Pi(filter) => filter.measurement(measurement, clock),
        }
    }
    fn update<C: Clock>(&mut self, clock: &mut C) -> FilterUpdate {
        match self {
            Self::Kalman(filter, _) => filter.update(clock),
            Self::Basic(filter) => filter.update(clock),
            Self::Pi(filter) => filter.update(clock),
        }
    }
    fn demobilize<C: Clock>(self, clock: &mut C) {
        match self {
            Self::Kalman(filter, _) => filter.demobilize(clock),
            Self::Basic(filter) => filter.demobilize(clock),
            Self::Pi(filter) => filter.demobilize(clock),
        }
    }
    fn current_estimates(&self) -> FilterEstimate {
        match self {
            Self::Kalman(filter, _) => filter.current_estimates(),
            Self::Basic(filter) => filter.current_estimates(),
            Self::Pi(filter) => filter.current_estimates(),
        }
    }
}

/// State that the ports of an instance share.
pub(crate) type Shared = PtpInstance<Servo>;
type Of<'a, L> =
    Port<'a, L, AcceptAnyMaster, Chance, SteeredClock, Servo, RefCell<statime::PtpInstanceState>>;

/// Timers of a port, in their order at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Announce,
    Sync,
    Delay,
    AnnounceReceipt,
    Filter,
}
const TIMERS: [Timer; 5] =
    [Timer::Announce, Timer::Sync, Timer::Delay, Timer::AnnounceReceipt, Timer::Filter];
const NEVER: Span = Span::from_picos(i64::MAX);

/// A port of an instance.
pub(crate) struct PtpPort<'a> {
    /// Index of the port in its node.
    pub(crate) index: usize,
    /// The `statime` port; `None` only during the choice of masters.
    port: Option<Of<'a, Running>>,
    /// Deadlines of the timers, by the oscillator.
    timers: [Span; TIMERS.len()],
}

/// A message that an instance wants to send.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// Index of the port in its node.
    pub(crate) port: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) link_local: bool,
    pub(crate) context: Option<TimestampContext>,
}

/// A transmit timestamp on its way to the port.
#[derive(Debug)]
pub(crate) struct Stamp {
    /// Instant from which it is available.
    pub(crate) at: RunTime,
    /// Turn of the message's place, which identifies the message.
    pub(crate) turn: u16,
    /// Index of the port in the instance.
    pub(crate) port: usize,
    pub(crate) context: TimestampContext,
    pub(crate) time: Time,
}

/// A PTP instance: a clock with its ports.
pub(crate) struct Instance<'a> {
    shared: &'a Shared,
    pub(crate) ports: Vec<PtpPort<'a>>,
    pub(crate) control: Rc<Control>,
    next_choice: Span,
    pub(crate) stamps: VecDeque<Stamp>,
    wanted: Vec<Wanted>,
}

/// Configuration of a port of an instance.
pub(crate) struct PortPlan {
    pub(crate) index: usize,
    pub(crate) config: statime::config::PortConfig<AcceptAnyMaster>,
    pub(crate) servo: ServoConfig,
    pub(crate) clock: Option<SharedClock>,
    pub(crate) chance: Chance,
    /// Whether it measures the delay of its link (peer delay) from the start.
    pub(crate) is_peer: bool,
}

impl<'a> Instance<'a> {
    /// An instance powered up at `elapsed` of its oscillator.
    pub(crate) fn new(shared: &'a Shared, ports: Vec<PortPlan>, now: RunTime, elapsed: Span) -> Self {
        let control = Rc::new(Control::default());
        control.now.set(now);
        let mut instance = Self {
            shared,
            ports: Vec::new(),
            control,
            next_choice: NEVER,
            stamps: VecDeque::new(),
            wanted: Vec::new(),
        };
        for plan in ports {
            let clock = SteeredClock { clock: plan.clock, control: instance.control.clone() };
            let port = shared.add_port(plan.config, plan.servo, clock, plan.chance);
            let (port, actions) = port.end_bmca();
            let mut timers = [NEVER; TIMERS.len()];
            if plan.is_peer {
                timers[Timer::Delay as usize] = elapsed;
            }
            take(actions, plan.index, elapsed, &mut timers, &mut instance.wanted);
            instance.ports.push(PtpPort { index: plan.index, port: Some(port), timers });
        }
        instance.next_choice = elapsed + choice_interval(shared);
        instance
    }

    /// Its next deadline, by its oscillator.
    pub(crate) fn next_timer(&self) -> Span {
        let timers = self.ports.iter().flat_map(|port| port.timers);
        timers.min().map_or(self.next_choice, |least| least.min(self.next_choice))
    }

    /// Takes the messages to be sent.
    pub(crate) fn wanted(&mut self) -> Vec<Wanted> {
        std::mem::take(&mut self.wanted)
    }

    /// Does what is due: the choice of masters first, then the timers, port by port.
    pub(crate) fn handle_timers(&mut self, now: RunTime, elapsed: Span) {
        self.control.now.set(now);
        if self.next_choice <= elapsed {
            self.next_choice = elapsed + choice_interval(self.shared);
            self.choose(elapsed);
        }
        for place in 0..self.ports.len() {
            for timer in TIMERS {
                let due = &mut self.ports[place].timers[timer as usize];
                if *due > elapsed {
                    continue;
                }
                *due = NEVER;
                self.with(place, elapsed, |port| match timer {
                    Timer::Announce => port.handle_announce_timer(&mut NoForwardedTLVs),
                    Timer::Sync => port.handle_sync_timer(),
                    Timer::Delay => port.handle_delay_request_timer(),
                    Timer::AnnounceReceipt => port.handle_announce_receipt_timer(),
                    Timer::Filter => port.handle_filter_update_timer(),
                });
            }
        }
    }

    /// A message arrives by the port at this place, with its receive timestamp `stamp` if it is an event message.
    pub(crate) fn handle_message(
        &mut self,
        (now, elapsed): (RunTime, Span),
        place: usize,
        bytes: &[u8],
        stamp: Option<Time>,
    ) {
        self.control.now.set(now);
        let Some(own) = self.ports.get_mut(place) else { return };
        let Some(port) = &mut own.port else { return };
        let actions = match stamp {
            Some(stamp) => port.handle_event_receive(bytes, stamp),
            None => port.handle_general_receive(bytes),
        };
        take(actions, own.index, elapsed, &mut own.timers, &mut self.wanted);
    }

    /// Hands over the transmit timestamps that are available at `now`.
    pub(crate) fn handle_stamps(&mut self, now: RunTime, elapsed: Span) {
        self.control.now.set(now);
        while self.stamps.front().is_some_and(|stamp| stamp.at <= now) {
            let Some(Stamp { port, context, time, .. }) = self.stamps.pop_front() else { break };
            self.with(port, elapsed, |port| port.handle_send_timestamp(context, time));
        }
    }

    fn with(
        &mut self,
        place: usize,
        elapsed: Span,
        call: impl for<'b> FnOnce(&'b mut Of<'a, Running>) -> PortActionIterator<'b>,
    ) {
        let own = &mut self.ports[place];
        if let Some(port) = &mut own.port {
            take(call(port), own.index, elapsed, &mut own.timers, &mut self.wanted);
        }
    }

    /// The best master clock algorithm, over all ports.
    fn choose(&mut self, elapsed: Span) {
        let running = self.ports.iter_mut().filter_map(|own| own.port.take());
        let mut ports: Vec<Of<'a, InBmca>> = running.map(Port::start_bmca).collect();
        self.shared.bmca(&mut ports.iter_mut().collect::<Vec<_>>());
        for (own, port) in self.ports.iter_mut().zip(ports) {
            let (port, actions) = port.end_bmca();
            own.port = Some(port);
            take(actions, own.index, elapsed, &mut own.timers, &mut self.wanted);
        }
    }

    /// Identity of the grandmaster that it announces.
    pub(crate) fn grandmaster(&self) -> [u8; 8] {
        self.shared.parent_ds().grandmaster_identity.0
    }

    /// Whether one of its ports is a slave.
    pub(crate) fn is_steering(&self) -> bool {
        self.ports.iter().filter_map(|own| own.port.as_ref()).any(Port::is_steering)
    }

    /// Whether one of its ports is a master.
    pub(crate) fn is_master(&self) -> bool {
        self.ports.iter().filter_map(|own| own.port.as_ref()).any(Port::is_master)
    }

    /// State code of the port at this place.
    pub(crate) fn state(&self, place: usize) -> u8 {
        self.ports[place].port.as_ref().map_or(0, |port| port.port_ds().port_state as u8)
    }

    /// Link delay of the port with this index, as measured with its peer, 2⁻¹⁶ ns.
    pub(crate) fn link_delay(&self, index: usize) -> i64 {
        let own = self.ports.iter().find(|own| own.index == index).and_then(|own| own.port.as_ref());
        match own.map(|port| port.port_ds().delay_mechanism) {
            Some(DelayMechanism::P2P { mean_link_delay, .. }) => mean_link_delay.0.to_bits(),
            _ => 0,
        }
    }
}

/// Name of a state (IEEE Std 1588-2019, table 27).
pub(crate) fn state_name(code: u8) -> &'static str {
    const NAMED: [(PortState, &str); 5] = [
        (PortState::Faulty, "FAULTY"),
        (PortState::Listening, "LISTENING"),
        (PortState::Master, "MASTER"),
        (PortState::Passive, "PASSIVE"),
        (PortState::Slave, "SLAVE"),
    ];
    NAMED.iter().find(|(state, _)| *state as u8 == code).map_or("DISABLED", |(_, name)| name)
}

fn choice_interval(shared: &Shared) -> Span {
    lasting(shared.bmca_interval())
}

fn lasting(duration: core::time::Duration) -> Span {
    let ps = duration.as_nanos().saturating_mul(1_000);
    Span::from_picos(i64::try_from(ps).unwrap_or(i64::MAX / 4).min(i64::MAX / 4))
}

/// Carries out the actions of a port.
fn take(
    actions: PortActionIterator<'_>,
    port: usize,
    elapsed: Span,
    timers: &mut [Span; TIMERS.len()],
    wanted: &mut Vec<Wanted>,
) {
    for action in actions {
        let mut set = |timer: Timer, duration| timers[timer as usize] = elapsed + lasting(duration);
        match action {
            PortAction::SendEvent { context, data, link_local } => {
                wanted.push(Wanted { port, bytes: data.to_vec(), link_local, context: Some(context) });
            }
            PortAction::SendGeneral { data, link_local } => {
                wanted.push(Wanted { port, bytes: data.to_vec(), link_local, context: None });
            }
            PortAction::ResetAnnounceTimer { duration } => set(Timer::Announce, duration),
            PortAction::ResetSyncTimer { duration } => set(Timer::Sync, duration),
            PortAction::ResetDelayRequestTimer { duration } => set(Timer::Delay, duration),
            PortAction::ResetAnnounceReceiptTimer { duration } => set(Timer::AnnounceReceipt, duration),
            PortAction::ResetFilterUpdateTimer { duration } => set(Timer::Filter, duration),
            // Announce messages here carry no TLV but the path trace, which `statime` makes itself.
            PortAction::ForwardTLV { .. } => {}
        }
    }
}
