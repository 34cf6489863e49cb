//! The port with all a selection can have: time-triggered windows, integration, raster, by a clock of its own.

use std::collections::{BTreeMap, BTreeSet};

use wg_core::clock::{DisciplinedClock, LocalClock, LocalTime};
use wg_core::frame::{Frame, Handle, Marks, NetworkId, TrafficClass};
use wg_core::line::{GAP, LineRate};
use wg_core::oscillator::{FrequencyOffset, Oscillator};
use wg_core::port::{Effect, NodeShared, Port, PortConfig};
use wg_core::queue::Capacity;
use wg_core::selection::{Missed, TimeTriggered, WindowConfig};
use wg_core::tte::access::{DeltaRaster, Integration};
use wg_core::tte::schedule::{PortSchedule, Window};
use wg_core::{Cause, Deadline};
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

use crate::input::Input;

const LINE_RATE: u64 = 1_000_000_000;
const TT: TrafficClass = TrafficClass::TimeTriggered;

/// Any schedule, clock, integration, raster, traffic and calls: one frame at a time, time-triggered ones in their
/// windows and slots and before all others, others out of their way as the integration promises, order within each flow
/// and queue, and every frame has one end or still waits.
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let mut run = Run::new(&mut input);
    while !input.is_done() && run.ended.len() < 400 {
        match input.byte() % 16 {
            0 | 1 => run.deadline(),
            2..=4 => run.now = run.now + Span::from_picos(input.below(8_000_000) as i64),
            5..=8 => run.reach_next_deadline(),
            9 if input.one_in(8) => run.change_clock(&mut input),
            10 if input.one_in(32) => run.restart(),
            _ => run.arrive(&mut input),
        }
    }
    for _ in 0..500 {
        run.reach_next_deadline();
    }
    let waiting = run.port.fill().frames + run.port.scheduled();
    let ended = run.ended.iter().filter(|ended| **ended).count();
    assert_eq!(ended + waiting as usize, run.ended.len(), "every frame has one end or waits");
    assert_eq!(run.device.buffer.fill(), run.port.fill());
    assert_eq!(run.device.buffer.apart(), run.port.scheduled());
}

#[derive(Clone, Copy)]
struct Sent {
    frame: Frame,
    last_bit: RunTime,
}

struct Run {
    port: Port<TimeTriggered>,
    device: NodeShared<DisciplinedClock>,
    schedule: PortSchedule,
    integration: Integration,
    raster: Option<DeltaRaster>,
    missed: Missed,
    capacity: usize,
    now: RunTime,
    free_at: RunTime,
    on_wire: Option<Sent>,
    ended: Vec<bool>,
    /// Number and length of waiting time-triggered frames, by flow.
    waiting: BTreeMap<u16, Vec<(u32, u16)>>,
    last_of: BTreeMap<(TrafficClass, u16), u32>,
    again: BTreeSet<u32>,
}

impl Run {
    fn new(input: &mut Input<'_>) -> Self {
        let cycle = Span::from_micros(120);
        let mut schedule = PortSchedule::new(cycle, Vec::new(), LINE_RATE).expect("an empty schedule");
        // Windows that do not go with those before are left out.
        for flow in 0..input.byte() % 8 {
            let mut windows = schedule.windows().to_vec();
            windows.push(window(input, flow % 5));
            schedule = PortSchedule::new(cycle, windows, LINE_RATE).unwrap_or(schedule);
        }
        let integration = match input.byte() % 3 {
            0 => Integration::Preemption,
            1 => Integration::TimelyBlock,
            _ => Integration::Shuffling,
        };
        let raster = input.one_in(3).then(|| {
            let slot = Span::from_micros(1 + input.below(40) as i64);
            DeltaRaster::new(slot, 1 + u16::from(input.byte() % 3)).expect("positive")
        });
        let frequency =
            FrequencyOffset::from_ppb(input.below(200_000_000) as i64 - 100_000_000).expect("in range");
        let granularity = Span::from_picos(if input.one_in(2) { 1 } else { 1 + input.below(50_000) as i64 });
        let offset = Span::from_picos(input.below(1 << 50) as i64 - (1 << 49));
        let clock = DisciplinedClock::new(Oscillator::new(frequency), offset, granularity).expect("a clock");
        let missed = if input.one_in(3) { Missed::Drop } else { Missed::Keep };
        let capacity = 1 + usize::from(input.byte() % 3);
        let line = LineRate::new(LINE_RATE).expect("a rate");
        let limit = Capacity::frames(1 + u32::from(input.byte() % 20));
        let windows =
            WindowConfig { schedule: schedule.clone(), integration, raster, frames: capacity as u32, missed };
        Self {
            port: Port::new(PortConfig::critical(line, limit), TimeTriggered::new(windows)),
            device: NodeShared::new(Capacity { bytes: u64::MAX, frames: u32::MAX }, clock),
            schedule,
            integration,
            raster,
            missed,
            capacity,
            now: RunTime::ZERO,
            free_at: RunTime::ZERO,
            on_wire: None,
            ended: Vec::new(),
            waiting: BTreeMap::new(),
            last_of: BTreeMap::new(),
            again: BTreeSet::new(),
        }
    }

    fn call(
        &mut self,
        call: impl FnOnce(&mut Port<TimeTriggered>, &mut NodeShared<DisciplinedClock>, &mut dyn FnMut(Effect)),
    ) -> bool {
        let mut effects = Vec::new();
        call(&mut self.port, &mut self.device, &mut |effect| effects.push(effect));
        let acted = !effects.is_empty();
        effects.into_iter().for_each(|effect| self.carry_out(effect));
        if let Some(at) = self.port.next_deadline(&self.device).instant() {
            assert!(at >= self.now, "a deadline lies in the past");
        }
        acted
    }

    fn deadline(&mut self) {
        let now = self.now;
        queries(&self.schedule, self.device.clock.read(now));
        let acted = self.call(|port, device, effects| port.handle_deadline(now, device, &mut |e| effects(e)));
        let next = self.port.next_deadline(&self.device);
        assert!(acted || next > Deadline::at(now), "asked back at once");
    }

    fn reach_next_deadline(&mut self) {
        if let Some(at) = self.port.next_deadline(&self.device).instant() {
            self.now = self.now.max(at);
        }
        self.deadline();
    }

    fn change_clock(&mut self, input: &mut Input<'_>) {
        let (now, clock) = (self.now, &mut self.device.clock);
        let by = input.below(200_000_000) as i64 - 100_000_000;
        let changed = match input.byte() % 4 {
            0 | 1 => clock.step(now, Span::from_picos(by)),
            2 => clock.set_frequency(now, FrequencyOffset::from_ppb(by).expect("in range")),
            _ => clock.set_drift(now, FrequencyOffset::from_ppb(by).expect("in range")),
        };
        changed.expect("in order");
        self.port.handle_clock_change(self.now, &self.device);
    }

    fn restart(&mut self) {
        let now = self.now;
        self.call(|port, device, effects| port.handle_restart(now, device, &mut |e| effects(e)));
        assert!(self.port.fill().frames == 0 && self.port.scheduled() == 0, "all was given back");
        self.again.clear();
    }

    fn arrive(&mut self, input: &mut Input<'_>) {
        let class = match input.byte() % 4 {
            0 | 1 => TT,
            2 => TrafficClass::RateConstrained,
            _ => TrafficClass::BestEffort,
        };
        let short = class == TT && !input.one_in(8);
        let length = 64 + input.below(if short { 40 } else { 1_459 }) as u16;
        let frame = Frame {
            destination: MacAddress::BROADCAST,
            source: MacAddress::default(),
            length,
            vlan: 0,
            virtual_link: u16::from(input.byte() % 6),
            handle: Handle(self.ended.len() as u64),
            priority: input.byte() % 8,
            class,
            network: NetworkId::A,
            sequence: 0,
            marks: Marks::none(),
        };
        self.ended.push(false);
        if class == TT {
            self.waiting.entry(frame.virtual_link).or_default().push((frame.handle.0 as u32, length));
        }
        let now = self.now;
        self.call(|port, device, effects| port.handle_frame(now, frame, device, &mut |e| effects(e)));
    }

    fn end(&mut self, frame: Frame) {
        let ended = &mut self.ended[frame.handle.0 as usize];
        assert!(!*ended, "a frame has one end");
        *ended = true;
        if frame.class == TT {
            self.waiting
                .entry(frame.virtual_link)
                .or_default()
                .retain(|(n, _)| *n != (frame.handle.0 as u32));
        }
    }

    /// How long the window that is open may be used for its flow, by another reading of schedule, raster and clock.
    fn open(&self) -> Option<(u16, RunTime)> {
        let clock = &self.device.clock;
        let local = clock.read(self.now);
        let open = self.schedule.open_at(local)?;
        let phase = self.raster.map(|raster| raster.phase_at(local));
        let ends = phase.map_or(open.closes, |phase| phase.ends.min(open.closes));
        let until = clock.true_time(ends, self.now).expect("within a run");
        let flow = self.schedule.windows()[open.window].flow;
        phase.is_none_or(|phase| phase.time_triggered).then_some((flow, until))
    }

    /// The time-triggered frame that may begin now, if the line were free so much later.
    fn due(&self, later: Span) -> Option<u32> {
        let (flow, until) = self.open()?;
        let &(sequence, length) = self.waiting.get(&flow)?.first()?;
        (self.now + later + self.port.line().occupation(length) <= until).then_some(sequence)
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Follow { .. } => panic!("copies are not followed"),
            Effect::Transmit { frame, transmission } => {
                assert!(self.free_at <= self.now, "two frames on one wire");
                let due = self.due(Span::ZERO);
                if frame.class == TT {
                    assert_eq!(due, Some(frame.handle.0 as u32), "not in its window");
                } else {
                    assert_eq!(due, None, "a time-triggered frame was passed over");
                    self.check_other(frame);
                }
                // Frames of one queue or flow keep their order; an aborted one comes again.
                let queue = match frame.class {
                    TrafficClass::TimeTriggered => frame.virtual_link,
                    TrafficClass::RateConstrained => u16::from(frame.priority >= 4),
                    TrafficClass::BestEffort => u16::from(frame.priority),
                };
                let last = self.last_of.insert((frame.class, queue), frame.handle.0 as u32);
                let again = self.again.remove(&(frame.handle.0 as u32));
                assert!(last.is_none_or(
                    |last| last < (frame.handle.0 as u32) || again && last == (frame.handle.0 as u32)
                ));
                self.end(frame);
                let line = self.port.line();
                self.free_at = self.now + line.occupation(frame.length);
                self.on_wire = Some(Sent { frame, last_bit: self.now + line.transmission(frame.length) });
                self.port.handle_line_free(transmission, self.free_at);
            }
            Effect::Fragment { .. } => panic!("nothing is sent in fragments"),
            Effect::Abort { frame, transmission } => {
                let sent = self.on_wire.take().expect("something is on the wire");
                assert!(sent.frame == frame && sent.last_bit > self.now, "it is through already");
                self.ended[frame.handle.0 as usize] = false;
                let gap = self.port.line().time_of(GAP);
                if self.port.fill().frames > 0 && frame.class != TT && self.due(gap).is_some() {
                    assert_eq!(self.integration, Integration::Preemption);
                    self.again.insert(frame.handle.0 as u32);
                }
                self.free_at = self.now + gap;
                self.port.handle_line_free(transmission, self.free_at);
            }
            Effect::Drop { frame, cause } => {
                let waiting = self.waiting.get(&frame.virtual_link).map_or(0, Vec::len);
                let windows = self.schedule.windows();
                match cause {
                    Cause::Superseded => assert!(frame.class == TT && waiting > self.capacity),
                    Cause::MissedWindow => assert!(frame.class == TT && self.missed == Missed::Drop),
                    Cause::NoWindow => {
                        assert!(windows.iter().all(|window| window.flow != frame.virtual_link));
                    }
                    Cause::Full(_) => assert!(frame.class != TT),
                    Cause::Down => {}
                    other => panic!("{other:?} is no reason of a port"),
                }
                self.end(frame);
            }
        }
    }

    fn check_other(&self, frame: Frame) {
        let clock = &self.device.clock;
        let local = clock.read(self.now);
        let ends = self.now + self.port.line().occupation(frame.length);
        let instant = |local: LocalTime| clock.true_time(local, self.now).expect("within a run");
        if self.integration == Integration::TimelyBlock
            && let Some(next) = self.schedule.next_after(local)
        {
            assert!(ends <= instant(next.opens), "across the opening of a window");
        }
        if let Some(phase) = self.raster.map(|raster| raster.phase_at(local)) {
            assert!(!phase.time_triggered && ends <= instant(phase.ends), "not in a slot for others");
        }
    }
}

fn window(input: &mut Input<'_>, flow: u8) -> Window {
    let period = Span::from_micros([120, 60, 40, 30, 7][usize::from(input.byte() % 5)]);
    let room = period.as_picos().unsigned_abs();
    let offset = if input.one_in(32) { input.extreme() } else { input.below(room) as i64 };
    let length = if input.one_in(32) { input.extreme() } else { input.below(room / 3) as i64 };
    Window {
        flow: u16::from(flow),
        offset: Span::from_picos(offset),
        period,
        length: Span::from_picos(length),
        longest_frame: input.below(100) as u16,
    }
}

fn queries(schedule: &PortSchedule, now: LocalTime) {
    let tick = Span::from_picos(1);
    if let Some(open) = schedule.open_at(now) {
        assert!(open.opens <= now && now < open.closes);
        assert_eq!(schedule.next_after(open.opens - tick), Some(open));
        assert_ne!(schedule.open_at(open.closes).map(|other| other.opens), Some(open.opens));
    }
    match schedule.next_after(now) {
        Some(next) => {
            assert!(next.opens > now);
            assert_eq!(schedule.open_at(next.opens), Some(next));
            assert_eq!(schedule.next_after(next.opens - tick), Some(next));
            let before = schedule.open_at(next.opens - tick);
            assert!(before.is_none_or(|before| before.closes <= next.opens));
        }
        None => assert!(schedule.windows().is_empty()),
    }
}
