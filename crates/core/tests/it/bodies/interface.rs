//! A host on both networks with virtual links, time-triggered flows and best effort.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use wg_core::arinc664::redundancy::{Receiver, Redundancy};
use wg_core::arinc664::{Bag, Contract};
use wg_core::clock::{DisciplinedClock, LocalClock, SharedClock};
use wg_core::end_system::{Cost, Host, HostConfig, Interrupts, Output};
use wg_core::frame::{Frame, Handle, Marks, NetworkId, STACKS, TrafficClass};
use wg_core::line::{GAP, LineRate};
use wg_core::oscillator::{FrequencyOffset, Oscillator};
use wg_core::port::{Port, PortConfig};
use wg_core::queue::Capacity;
use wg_core::selection::{Missed, TimeTriggered, WindowConfig};
use wg_core::tte::access::Integration;
use wg_core::tte::dispatch::{AcceptanceWindow, Instants, PortMode};
use wg_core::tte::schedule::{PortSchedule, Window};
use wg_core::virtual_link_layer::{
    IncomingLink, IncomingSchedule, Networks, OutgoingLink, OutgoingSchedule, VirtualLinkLayer,
    VirtualLinkLayerConfig,
};
use wg_core::{Cause, Deadline};
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

use crate::input::Input;

const RATE: u64 = 100_000_000;
const BAG: Span = Span::from_millis(1);
const TT: TrafficClass = TrafficClass::TimeTriggered;
const RC: TrafficClass = TrafficClass::RateConstrained;
const NETWORKS: [NetworkId; 2] = [NetworkId::A, NetworkId::B];
/// A virtual link with one queue on both networks, one with two queues on network B.
const LINKS: [(u16, Networks); 2] = [(3, Networks::Both), (9, Networks::One(NetworkId::B))];
/// A time-triggered flow on both networks, one on network A.
const SCHEDULES: [(u16, Networks); 2] = [(3, Networks::Both), (5, Networks::One(NetworkId::A))];

/// Any messages, arrivals, clock changes, restarts and calls: each copy of a message leaves or is dropped once; both
/// copies carry one number and numbers leave no gap; a virtual link keeps its gap at the regulator and the jitter
/// account says how late each frame began; time-triggered frames leave in their windows; every frame that comes is
/// delivered or dropped as the receiver of its own virtual link and network has it.
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let mut run = Run::new(&mut input);
    while !input.is_done() && run.messages.len() < 300 {
        match input.byte() % 16 {
            0 | 1 => run.deadline(),
            2 | 3 => run.now = run.now + Span::from_picos(input.below(400_000_000) as i64),
            4..=6 => run.reach_next_deadline(),
            7 if input.one_in(8) => run.change_clock(&mut input),
            8 if input.one_in(32) => run.restart(),
            9 | 10 => run.arrive(&mut input),
            _ => run.send(&mut input),
        }
        run.collect();
    }
    for _ in 0..2_000 {
        run.reach_next_deadline();
        run.collect();
    }
    let (at_ports, before) = run.waiting();
    let open = run.copies_open();
    assert!(open >= at_ports + before && open <= at_ports + 2 * before, "every copy has one end or waits");
    assert_eq!(run.arrived, 0, "every frame that came has one end");
}

/// What is still to become of a message.
struct Message {
    /// Ports where a copy of it has not ended.
    expected: BTreeSet<usize>,
    number: Option<u8>,
    /// A copy of it has ended.
    left: bool,
}

struct Run {
    host: Host<TimeTriggered, SharedClock>,
    clock: SharedClock,
    schedule: PortSchedule,
    now: RunTime,
    free_at: [RunTime; 2],
    last_bit: [RunTime; 2],
    messages: Vec<Message>,
    /// Eligible times of the first virtual link's frames that have not begun, by port.
    /// When frames came, and what has elapsed by the clock when they are eligible.
    eligible: [VecDeque<(RunTime, Span)>; 2],
    last_eligible: Option<Span>,
    /// Eligible time of the frame that began last.
    begun: [(RunTime, Span); 2],
    greatest: [Span; 2],
    numbers: BTreeMap<(TrafficClass, u16, usize), u8>,
    receivers: [Receiver; 2],
    arrived: usize,
}

fn redundancy() -> Redundancy {
    Redundancy::FirstValidWins { skew_max: Span::from_millis(3) }
}

fn interface(start: RunTime, clock: &DisciplinedClock) -> VirtualLinkLayer {
    let contract = Contract::new(Bag::ALL[0], 400).expect("a contract");
    let instants = |us| Instants::new(Span::from_micros(us), BAG).expect("within the period");
    let window = AcceptanceWindow::new(instants(200), Span::from_micros(100), Span::from_micros(100));
    let config = VirtualLinkLayerConfig {
        outgoing_links: LINKS
            .into_iter()
            .zip([vec![1_000], vec![2, 3]])
            .map(|((id, networks), queues)| OutgoingLink {
                id,
                contract,
                queues,
                networks,
                jitter_budget: Span::from_micros(500),
            })
            .collect(),
        outgoing_schedules: SCHEDULES
            .into_iter()
            .zip([(100, PortMode::Sampling), (600, PortMode::Queuing(3))])
            .map(|((id, networks), (offset, mode))| OutgoingSchedule {
                id,
                instants: instants(offset),
                mode,
                longest_frame: 200,
                networks,
            })
            .collect(),
        incoming_links: [7, 8]
            .map(|id| IncomingLink { id, bag: Bag::ALL[0], redundancy: redundancy() })
            .to_vec(),
        incoming_schedules: vec![IncomingSchedule {
            id: 7,
            period: BAG,
            windows: [Some(window.expect("within the period")), None],
            redundancy: Redundancy::Off,
        }],
    };
    VirtualLinkLayer::new(config, clock.read(start)).expect("an interface")
}

impl Run {
    #[expect(clippy::too_many_lines, reason = "every setting of a host is drawn once")]
    fn new(input: &mut Input<'_>) -> Self {
        let frequency = FrequencyOffset::from_ppb(input.below(200_000) as i64 - 100_000).expect("in range");
        let offset = Span::from_picos(input.below(1 << 40) as i64 - (1 << 39));
        let granularity = Span::from_picos(if input.one_in(2) { 1 } else { 8_000 });
        let clock = DisciplinedClock::new(Oscillator::new(frequency), offset, granularity).expect("a clock");
        let window = |flow, us| Window {
            flow,
            offset: Span::from_micros(us),
            period: BAG,
            length: Span::from_micros(30),
            longest_frame: 200,
        };
        let schedule = PortSchedule::new(BAG, vec![window(3, 100), window(5, 600)], RATE).expect("sound");
        let integration = match input.byte() % 3 {
            0 => Integration::Preemption,
            1 => Integration::TimelyBlock,
            _ => Integration::Shuffling,
        };
        let line = LineRate::new(RATE).expect("a rate");
        let ports = NETWORKS.map(|network| {
            let windows = WindowConfig {
                schedule: schedule.clone(),
                integration,
                raster: None,
                frames: 2,
                missed: Missed::Keep,
            };
            let limit = Capacity::frames(u32::MAX);
            (network, Port::new(PortConfig::critical(line, limit), TimeTriggered::new(windows)))
        });
        let cost = Cost { fixed: Span::from_picos(input.below(3_000_000) as i64), per_byte: Span::ZERO };
        let config = HostConfig {
            transmit: cost,
            receive: cost,
            backlog: 4_096,
            ring: 4_096,
            interrupts: Interrupts::EachFrame,
            interrupt_latency: Span::ZERO,
            card_read: None,
            buffers: None,
            stacks: [None; STACKS],
            interface_receive_delay: Span::ZERO,
        };
        let receiver = || Receiver::new(redundancy(), Bag::ALL[0]).expect("a receiver");
        let interface = interface(RunTime::ZERO, &clock);
        let clock = Rc::new(RefCell::new(clock));
        Self {
            host: Host::new(config, ports.into(), Some(interface), clock.clone()),
            clock,
            schedule,
            now: RunTime::ZERO,
            free_at: [RunTime::ZERO; 2],
            last_bit: [RunTime::ZERO; 2],
            messages: Vec::new(),
            eligible: Default::default(),
            last_eligible: None,
            begun: [(RunTime::ZERO, Span::ZERO); 2],
            greatest: [Span::ZERO; 2],
            numbers: BTreeMap::new(),
            receivers: [receiver(), receiver()],
            arrived: 0,
        }
    }

    fn deadline(&mut self) {
        self.host.handle_deadline(self.now);
        self.collect();
        let next = self.host.next_deadline();
        assert!(next > Deadline::at(self.now), "asked back at once");
    }

    fn reach_next_deadline(&mut self) {
        if let Some(at) = self.host.next_deadline().instant() {
            self.now = self.now.max(at);
        }
        // An effect may make another one due at the same instant, but not without end.
        for _ in 0..4 {
            self.host.handle_deadline(self.now);
            self.collect();
        }
        self.deadline();
    }

    fn change_clock(&mut self, input: &mut Input<'_>) {
        let now = self.now;
        let changed = if input.one_in(2) {
            let step = Span::from_picos(input.below(4_000_000_000) as i64 - 2_000_000_000);
            self.clock.borrow_mut().step(now, step)
        } else {
            let ppb = input.below(200_000) as i64 - 100_000;
            let frequency = FrequencyOffset::from_ppb(ppb).expect("in range");
            self.clock.borrow_mut().set_frequency(now, frequency)
        };
        changed.expect("in order");
        self.host.handle_clock_change(now);
    }

    fn restart(&mut self) {
        self.host.handle_restart(self.now);
        self.collect();
        assert_eq!(self.waiting(), (0, 0), "all was given back");
        assert_eq!(self.copies_open(), 0, "every copy has one end");
        self.numbers.clear();
        self.eligible.iter_mut().for_each(VecDeque::clear);
        self.last_eligible = None;
        self.receivers.iter_mut().for_each(Receiver::handle_reset);
    }

    fn copies_open(&self) -> usize {
        self.messages.iter().map(|message| message.expected.len()).sum()
    }

    /// Frames that wait at the ports, and before them.
    fn waiting(&self) -> (usize, usize) {
        let ports = (0..2).map(|port| self.host.fill(port).frames + self.host.port(port).scheduled());
        let interface = self.host.virtual_link_layer().map_or(0, VirtualLinkLayer::waiting);
        (ports.sum::<u32>() as usize, self.host.in_hand().0 + interface)
    }

    fn frame(&self, class: TrafficClass, input: &mut Input<'_>) -> Frame {
        Frame {
            destination: MacAddress::BROADCAST,
            source: MacAddress::default(),
            length: 64 + input.below(if class == TT { 100 } else { 330 }) as u16,
            vlan: 0,
            virtual_link: 0,
            handle: Handle(self.messages.len() as u64),
            priority: input.byte() % 8,
            class,
            network: NETWORKS[usize::from(input.byte() % 2)],
            sequence: 0,
            marks: Marks::none(),
        }
    }

    fn send(&mut self, input: &mut Input<'_>) {
        let which = usize::from(input.byte() % 2);
        let (mut frame, networks) = match input.byte() % 4 {
            0 | 1 => {
                (Frame { virtual_link: LINKS[which].0, priority: 4, ..self.frame(RC, input) }, LINKS[which].1)
            }
            2 => (Frame { virtual_link: SCHEDULES[which].0, ..self.frame(TT, input) }, SCHEDULES[which].1),
            _ => {
                let frame = self.frame(TrafficClass::BestEffort, input);
                let both = which == 0;
                let marks = if both { Marks::BOTH_NETWORKS } else { Marks::none() };
                (Frame { marks, ..frame }, if both { Networks::Both } else { Networks::One(frame.network) })
            }
        };
        if frame.class == RC && which == 1 {
            frame.sequence = u16::from(input.byte() % 3);
        }
        let expected = (0..2).filter(|port| networks.has(NETWORKS[*port])).collect();
        self.messages.push(Message { expected, number: None, left: false });
        let past_regulators = which == 1 && frame.class != TT && input.one_in(4);
        if past_regulators {
            self.host.handle_generated(self.now, frame, false);
        } else {
            let handed = self.host.handle_send(self.now, frame, Span::ZERO, false).expect("there is room");
            // The lane is done at once for the model: everything else at this instant comes later.
            self.now = handed.queued;
            for _ in 0..4 {
                self.host.handle_deadline(self.now);
                self.note_eligible(frame);
                frame.class = TrafficClass::BestEffort;
                self.collect();
            }
        }
    }

    /// The regulator of the first virtual link, read again: e(k) = max(a(k), e(k−1) + BAG) by the clock.
    fn note_eligible(&mut self, frame: Frame) {
        if frame.class == RC && frame.virtual_link == LINKS[0].0 {
            let came = self.clock.elapsed(self.now);
            let elapsed = self.last_eligible.map_or(came, |last| came.max(last + BAG));
            self.last_eligible = Some(elapsed);
            self.eligible.iter_mut().for_each(|port| port.push_back((self.now, elapsed)));
        }
    }

    fn arrive(&mut self, input: &mut Input<'_>) {
        let port = usize::from(input.byte() % 2);
        let class = [RC, RC, TT, TrafficClass::BestEffort][usize::from(input.byte() % 4)];
        let marks = if input.one_in(8) { Marks::FCS_ERROR } else { Marks::none() };
        let frame = Frame {
            virtual_link: 6 + u16::from(input.byte() % 4),
            sequence: u16::from(input.byte() % 8),
            marks,
            ..self.frame(class, input)
        };
        let link = usize::from(frame.virtual_link).wrapping_sub(7);
        let expected = match class {
            _ if marks == Marks::FCS_ERROR => Some(Cause::FrameCheck),
            TrafficClass::BestEffort => None,
            TrafficClass::RateConstrained => match self.receivers.get_mut(link) {
                None => Some(Cause::Filtered),
                Some(receiver) => {
                    let number = frame.sequence as u8;
                    receiver.handle_frame(self.now, NETWORKS[port], number).err().map(Cause::from)
                }
            },
            TrafficClass::TimeTriggered if link != 0 => Some(Cause::Filtered),
            TrafficClass::TimeTriggered => {
                let phase = self.clock.read(self.now).as_picos().rem_euclid(BAG.as_picos());
                let inside = (100_000_000..=300_000_000).contains(&phase) || port == 1;
                (!inside).then_some(Cause::OutOfWindow)
            }
        };
        self.host.handle_frame(self.now, port, frame, Span::ZERO);
        self.arrived += 1;
        let fate = match self.host.poll_output() {
            Some(Output::Deliver { port: by, frame: same, driver, application }) => {
                assert!(by == port && same == frame && driver >= self.now && application >= driver);
                None
            }
            Some(Output::Dropped { port: by, frame: same, cause, all_copies: false }) => {
                assert!(by == port && same == frame);
                Some(cause)
            }
            other => panic!("{other:?} is no end of a frame that came"),
        };
        assert_eq!(fate, expected);
        self.arrived -= 1;
    }

    fn collect(&mut self) {
        while let Some(output) = self.host.poll_output() {
            match output {
                Output::Follow { .. } => panic!("copies are not followed"),
                Output::Transmit { port, frame, transmission } => {
                    assert!(self.free_at[port] <= self.now, "two frames on one wire");
                    assert_eq!(frame.network, NETWORKS[port]);
                    self.begin(port, frame);
                    let line = self.host.line(port);
                    self.free_at[port] = self.now + line.occupation(frame.length);
                    self.last_bit[port] = self.now + line.transmission(frame.length);
                    self.host.handle_line_free(port, transmission, self.free_at[port]);
                }
                Output::Fragment { .. } => panic!("nothing is sent in fragments"),
                Output::Abort { port, frame, transmission } => {
                    assert!(self.last_bit[port] > self.now);
                    let message = &mut self.messages[frame.handle.0 as usize];
                    assert!(message.expected.insert(port));
                    self.take_back(port, frame);
                    self.free_at[port] = self.now + self.host.line(port).time_of(GAP);
                    self.host.handle_line_free(port, transmission, self.free_at[port]);
                }
                Output::Dropped { port, frame, cause, all_copies } => {
                    let message = &mut self.messages[frame.handle.0 as usize];
                    if all_copies {
                        assert!(!message.left && !message.expected.is_empty(), "a message has one end");
                        message.expected.clear();
                    } else {
                        assert!(message.expected.remove(&port), "a copy has one end");
                    }
                    message.left = true;
                    let fits = match cause {
                        Cause::Superseded => frame.class == TT,
                        Cause::NoWindow => frame.class == TT,
                        Cause::Regulator => frame.class != TrafficClass::BestEffort,
                        Cause::Down => true,
                        _ => false,
                    };
                    assert!(fits, "{cause:?} of a {:?} frame", frame.class);
                }
                Output::Deliver { .. } | Output::Loopback { .. } => panic!("nothing came"),
            }
        }
    }

    fn begin(&mut self, port: usize, frame: Frame) {
        let message = &mut self.messages[frame.handle.0 as usize];
        assert!(message.expected.remove(&port), "a copy leaves once");
        message.left = true;
        if frame.class == TrafficClass::BestEffort {
            return;
        }
        let number = frame.sequence as u8;
        assert!(message.number.replace(number).is_none_or(|other| other == number), "copies share a number");
        if frame.class == TT {
            let open = self.schedule.open_at(self.clock.read(self.now)).expect("a window is open");
            assert_eq!(self.schedule.windows()[open.window].flow, frame.virtual_link);
            return;
        }
        let last = self.numbers.insert((RC, frame.virtual_link, port), number);
        let next = last.map_or(0, |last| last.checked_add(1).unwrap_or(1));
        assert_eq!(number, next, "numbers leave no gap");
        if frame.virtual_link == LINKS[0].0 {
            let (came, elapsed) = self.eligible[port].pop_front().expect("it was handed in");
            let eligible = self.clock.when_elapsed(elapsed, came).expect("in range");
            assert!(eligible <= self.now, "before its gap was over");
            self.begun[port] = (came, elapsed);
            self.greatest[port] = self.greatest[port].max(self.now - eligible);
            let account = self.host.virtual_link_layer().and_then(|i| i.output_jitter(LINKS[0].0, port));
            assert_eq!(account.map(|account| account.greatest()), Some(self.greatest[port]));
        }
    }

    fn take_back(&mut self, port: usize, frame: Frame) {
        if frame.class != RC {
            return;
        }
        let key = (RC, frame.virtual_link, port);
        match frame.sequence as u8 {
            0 => self.numbers.remove(&key),
            1 => self.numbers.insert(key, 0),
            number => self.numbers.insert(key, number - 1),
        };
        if frame.virtual_link == LINKS[0].0 {
            self.eligible[port].push_front(self.begun[port]);
        }
    }
}
