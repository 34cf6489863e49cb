//! Frames that a host reads one after another, against a model that is worked out turn by turn from all arrivals at
//! once.

use std::collections::BTreeMap;

use wg_core::Cause;
use wg_core::clock::TrueTime;
use wg_core::end_system::{ADAPTIVE_SPACINGS, Cost, Host, HostConfig, Interrupts, Output, ReceiveBuffer};
use wg_core::frame::{Frame, Handle, Marks, NetworkId, STACKS, TrafficClass};
use wg_core::line::LineRate;
use wg_core::port::{Port, PortConfig};
use wg_core::queue::Capacity;
use wg_core::selection::StrictPriority;
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

use crate::input::Input;

/// What comes is read as the rules say, to the picosecond, and dropped where they say so; and whatever is called when,
/// every frame has one end.
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let config = config(&mut input);
    let arrivals = arrivals(&mut input);
    let expected = Model::new(&config).ends_of(&arrivals);
    assert_eq!(ends_at_a_host(config, &arrivals), expected, "{config:?}");
    any_calls(config, &arrivals, &mut input);
}

const US: i64 = 1_000_000;

fn config(input: &mut Input<'_>) -> HostConfig {
    let mut span = |most: i64| {
        Span::from_picos(if input.one_in(4) { 0 } else { input.below(most.unsigned_abs()) as i64 })
    };
    let mut cost = || Cost { fixed: span(20 * US), per_byte: span(20_000) };
    let (receive, read) = (cost(), cost());
    let (wait, interrupt_latency) = (span(300 * US), span(50 * US));
    let interrupts = match input.byte() % 8 {
        0 => Interrupts::EachFrame,
        1 => Interrupts::Coalesced { frames: 1 + u32::from(input.byte() % 5), wait },
        2 => Interrupts::Polled { period: Span::from_picos(1 + wait.as_picos()) },
        3 | 4 => Interrupts::Spaced { spacing: wait },
        _ => Interrupts::Adaptive,
    };
    let mut buffer = || ReceiveBuffer {
        slots: 1 + u32::from(input.byte() % 40),
        fifo_bytes: input.byte().is_multiple_of(2).then(|| 1_000 + u32::from(input.byte()) * 20),
    };
    let buffers = [buffer(), buffer(), buffer()];
    HostConfig {
        transmit: Cost::default(),
        receive,
        backlog: 1,
        ring: 1 + u32::from(input.byte() % 40),
        interrupts,
        interrupt_latency,
        card_read: input.one_in(2).then_some(read),
        // Without any of the three the host has no reader.
        buffers: (input.one_in(2) || !matches!(interrupts, Interrupts::Spaced { .. } | Interrupts::Adaptive))
            .then_some(buffers),
        stacks: [None; STACKS],
        interface_receive_delay: Span::ZERO,
    }
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: i64,
    class: usize,
    length: u16,
    wake_up: i64,
}

/// Lone frames, frames of one instant, and floods.
fn arrivals(input: &mut Input<'_>) -> Vec<Arrival> {
    let (mut at, mut all) = (0, Vec::new());
    while !input.is_done() && all.len() < 300 {
        let (gap, count) = match input.byte() % 6 {
            0 => (0, 1),
            1 => (i64::from(input.byte()) * 20 * US, 1),
            2 => (12 * US, 1 + input.byte() % 60),
            3 => (US, 1 + input.byte() % 20),
            _ => (input.below(100 * US as u64) as i64, 1),
        };
        let length = if input.one_in(2) { 1_518 } else { 64 + input.below(1_455) as u16 };
        let class = usize::from(input.byte() % 3);
        let wake_up = if input.one_in(2) { 0 } else { input.below(10 * US as u64) as i64 };
        for _ in 0..count {
            at += gap;
            all.push(Arrival { at, class, length, wake_up });
        }
    }
    all
}

/// Time at the driver and at the application, or why it was dropped.
type End = Result<(i64, i64), Cause>;

fn frame(number: usize, arrival: &Arrival) -> Frame {
    let classes = [TrafficClass::TimeTriggered, TrafficClass::RateConstrained, TrafficClass::BestEffort];
    Frame {
        destination: MacAddress::BROADCAST,
        source: MacAddress::default(),
        length: arrival.length,
        vlan: 0,
        virtual_link: 0,
        sequence: 0,
        handle: Handle(number as u64),
        priority: 0,
        class: classes[arrival.class],
        network: NetworkId::A,
        marks: Marks::none(),
    }
}

fn host(config: HostConfig) -> Host<StrictPriority, TrueTime> {
    let line = LineRate::new(1_000_000_000).expect("a rate");
    let port = PortConfig::first_in_first_out(line, Capacity::frames(1));
    Host::new(config, vec![(NetworkId::A, Port::new(port, StrictPriority))], None, TrueTime)
}

fn ended(output: Output) -> (usize, End) {
    match output {
        Output::Deliver { frame, driver, application, .. } => {
            (frame.handle.0 as usize, Ok((driver.as_picos(), application.as_picos())))
        }
        Output::Dropped { frame, cause, .. } => (frame.handle.0 as usize, Err(cause)),
        other => panic!("a host that only receives wants {other:?}"),
    }
}

/// Through the core, called when it wants to be.
fn ends_at_a_host(config: HostConfig, arrivals: &[Arrival]) -> BTreeMap<usize, End> {
    let (mut host, mut ends) = (host(config), BTreeMap::new());
    let mut take = |host: &mut Host<_, _>| {
        while let Some(output) = host.poll_output() {
            let (number, end) = ended(output);
            assert_eq!(ends.insert(number, end), None, "frame {number} has one end");
        }
    };
    for (number, arrival) in arrivals.iter().enumerate() {
        let at = RunTime::from_picos(arrival.at);
        while let Some(due) = host.next_deadline().instant()
            && due < at
        {
            host.handle_deadline(due);
            take(&mut host);
        }
        host.handle_frame(at, 0, frame(number, arrival), Span::from_picos(arrival.wake_up));
        take(&mut host);
    }
    while let Some(due) = host.next_deadline().instant() {
        host.handle_deadline(due);
        take(&mut host);
    }
    assert_eq!(host.in_hand(), (0, 0));
    ends
}

/// A host, as its documentation has it.
struct Model<'a> {
    config: &'a HostConfig,
    sizes: Vec<ReceiveBuffer>,
    /// Numbers of the frames in each buffer, in order. Those behind the slots are in the FIFO.
    held: Vec<Vec<usize>>,
    ends: BTreeMap<usize, End>,
}

impl<'a> Model<'a> {
    fn new(config: &'a HostConfig) -> Self {
        let one = vec![ReceiveBuffer { slots: config.ring, fifo_bytes: None }];
        let sizes = config.buffers.map_or(one, |own| own.to_vec());
        Self { config, held: vec![Vec::new(); sizes.len()], sizes, ends: BTreeMap::new() }
    }

    /// Whether the frame was taken.
    fn admit(&mut self, all: &[Arrival], number: usize) -> bool {
        let buffer = if self.sizes.len() == 1 { 0 } else { all[number].class };
        let (slots, held) = (self.sizes[buffer].slots as usize, &mut self.held[buffer]);
        let refused = match self.sizes[buffer].fifo_bytes {
            None => (held.len() == slots).then_some(Cause::Overrun),
            Some(limit) => {
                let in_fifo: u32 = held.iter().skip(slots).map(|n| u32::from(all[*n].length)).sum();
                (in_fifo + u32::from(all[number].length) > limit).then_some(Cause::FifoOverrun)
            }
        };
        match refused {
            Some(cause) => drop(self.ends.insert(number, Err(cause))),
            None => held.push(number),
        }
        refused.is_none()
    }

    /// Turn by turn: from the frame that wakes the reader to the one after which nothing is left.
    #[expect(clippy::too_many_lines, reason = "one step after the other, as the rules have it")]
    fn ends_of(mut self, all: &[Arrival]) -> BTreeMap<usize, End> {
        let (mut next, mut last_interrupt, mut level, mut lane) = (0, None::<i64>, 1_usize, i64::MIN);
        while next < all.len() {
            let first = next;
            next += 1;
            if !self.admit(all, first) {
                continue;
            }
            let mut spaced = |spacing: Span| {
                let at =
                    last_interrupt.map_or(all[first].at, |last| all[first].at.max(last + spacing.as_picos()));
                last_interrupt = Some(at);
                at
            };
            let came = all[first].at;
            let interrupt = match self.config.interrupts {
                Interrupts::EachFrame => came,
                Interrupts::Polled { period } => {
                    let period = period.as_picos();
                    (came + period - 1).div_euclid(period) * period
                }
                Interrupts::Spaced { spacing } => spaced(spacing),
                Interrupts::Adaptive => spaced(ADAPTIVE_SPACINGS[level]),
                Interrupts::Coalesced { frames, wait } => {
                    let (mut waiting, mut at) = (1, came + wait.as_picos());
                    if waiting >= frames {
                        at = came;
                    }
                    while next < all.len() && all[next].at <= at && waiting < frames {
                        waiting += u32::from(self.admit(all, next));
                        if waiting >= frames {
                            at = all[next].at;
                        }
                        next += 1;
                    }
                    at
                }
            };
            let looked = interrupt + self.config.interrupt_latency.as_picos();
            let woken = if self.config.card_read.is_some() { 0 } else { all[first].wake_up };
            let (mut clock, mut turn) = (looked + woken, Vec::new());
            loop {
                while next < all.len() && all[next].at <= clock {
                    self.admit(all, next);
                    next += 1;
                }
                let Some(buffer) = self.held.iter().position(|held| !held.is_empty()) else { break };
                let number = self.held[buffer][0];
                let length = i64::from(all[number].length);
                let time = |cost: Cost| cost.fixed.as_picos() + cost.per_byte.as_picos() * length;
                let end = clock + time(self.config.card_read.unwrap_or(self.config.receive));
                let reached = if self.config.card_read.is_some() {
                    let begun = if lane > end { lane } else { end + all[number].wake_up };
                    lane = begun + time(self.config.receive);
                    (end, lane)
                } else {
                    (looked.max(all[number].at), end)
                };
                self.ends.insert(number, Ok(reached));
                // Its slot is free for a frame that comes as it has been read, not before.
                while next < all.len() && all[next].at < end {
                    self.admit(all, next);
                    next += 1;
                }
                self.held[buffer].remove(0);
                clock = end;
                turn.push(length);
            }
            level = level_after(level, &turn);
        }
        self.ends
    }
}

/// From the table in the documentation.
fn level_after(level: usize, turn: &[i64]) -> usize {
    let (frames, bytes) = (turn.len() as i64, turn.iter().sum::<i64>());
    let mean_above = |limit: i64| bytes > limit * frames;
    match level {
        0 if mean_above(8_000) => 2,
        0 if bytes > 512 && frames < 5 => 1,
        1 if bytes > 10_000 => match frames {
            ..10 => 2,
            _ if mean_above(1_200) => 2,
            36.. => 0,
            _ => 1,
        },
        1 if mean_above(2_000) => 2,
        1 if bytes < 512 && frames <= 2 => 0,
        2 if bytes < 6_000 => 1,
        2 if bytes > 25_000 && frames > 35 => 1,
        same => same,
    }
}

/// Late calls, restarts: every frame still has one end, and none is held at the end.
fn any_calls(config: HostConfig, arrivals: &[Arrival], input: &mut Input<'_>) {
    let (mut host, mut ends, mut late) = (host(config), BTreeMap::new(), 0);
    let take = |host: &mut Host<_, _>, ends: &mut BTreeMap<usize, End>| {
        while let Some(output) = host.poll_output() {
            let (number, end) = ended(output);
            if let Ok((driver, application)) = end {
                assert!(driver >= arrivals[number].at && application >= driver);
            }
            assert_eq!(ends.insert(number, end), None, "frame {number} has one end");
        }
    };
    let mut now = RunTime::ZERO;
    for (number, arrival) in arrivals.iter().enumerate() {
        late += i64::from(input.byte()) * US;
        now = RunTime::from_picos(arrival.at + late);
        match (number + usize::from(input.byte())) % 16 {
            0 => host.handle_restart(now),
            1..8 => host.handle_deadline(now),
            _ => {}
        }
        host.handle_frame(now, 0, frame(number, arrival), Span::from_picos(arrival.wake_up));
        take(&mut host, &mut ends);
    }
    while let Some(due) = host.next_deadline().instant() {
        now = now.max(due);
        host.handle_deadline(now);
        take(&mut host, &mut ends);
    }
    assert_eq!(ends.len(), arrivals.len(), "every frame has an end");
    assert_eq!(host.in_hand(), (0, 0));
}
