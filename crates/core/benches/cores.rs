//! Frames per second through the cores alone, without a simulator around them: what a switch and an end system cost.
//!
//! `cargo bench -p wg-core --bench cores [-- FRAMES]` sends so many frames (4 000 000) through each.
#![forbid(unsafe_code)]

use std::time::Instant;

use wg_core::arinc664::filter::Entry;
use wg_core::arinc664::policing::{self, Account};
use wg_core::arinc664::redundancy::Redundancy;
use wg_core::arinc664::{Bag, Contract, VirtualLinkId};
use wg_core::clock::{DisciplinedClock, LocalClock, LocalTime, TrueTime};
use wg_core::end_system::{self, Cost, Host, HostConfig, Interrupts};
use wg_core::forwarding::{Forwarding, PortSet};
use wg_core::frame::{Frame, Handle, Marks, NetworkId, STACKS, TrafficClass};
use wg_core::ingress::{CriticalIngress, Egress, InputTable, VirtualLinkEntry};
use wg_core::line::LineRate;
use wg_core::port::{Port, PortConfig};
use wg_core::queue::Capacity;
use wg_core::selection::{
    Missed, Selection, StrictPriority, TimeTriggered, TransmissionSelection, WindowConfig,
};
use wg_core::switch::{self, AdmitAll, Arrival, ForwardingMode, Ingress, Switch, SwitchConfig};
use wg_core::tte::access::Integration;
use wg_core::tte::schedule::{PortSchedule, Window};
use wg_core::virtual_link_layer::{
    IncomingLink, Networks, OutgoingLink, VirtualLinkLayer, VirtualLinkLayerConfig,
};
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

const PORTS: usize = 8;
const LINKS: u16 = 128;
const RATE: u64 = 100_000_000;
/// Between two frames into the switch: each port gets one every 62.5 µs.
const STEP: Span = Span::from_nanos(7_812);

fn main() {
    let frames = std::env::args().filter_map(|a| a.parse().ok()).next();
    // A build without optimisation measures nothing: it only shows, in the tests, that this runs.
    let frames = frames.unwrap_or(if cfg!(debug_assertions) { 1_000 } else { 4_000_000 });
    let line = LineRate::new(RATE).expect("a rate");
    let limit = Capacity::bytes(1 << 20);
    let plain = || Port::new(PortConfig::strict_priority(line, limit), StrictPriority);
    let critical = || Port::new(PortConfig::critical(line, limit), Selection::StrictPriority(StrictPriority));
    let shared = Capacity::bytes(u64::MAX);
    let config = SwitchConfig {
        mixed_rate_delay: Span::ZERO,
        processing_delay: Span::ZERO,
        mode: ForwardingMode::StoreAndForward,
        shared,
    };
    let ports = |_| plain();
    let switch = Switch::new(config, (0..PORTS).map(ports).collect(), forwarding(), AdmitAll, TrueTime);
    report("switch, by address", frames, through_switch(switch, TrafficClass::BestEffort, frames));
    let ports = (0..PORTS).map(|_| critical()).collect();
    let switch = Switch::new(config, ports, forwarding(), rule(), DisciplinedClock::default());
    report(
        "switch, by virtual link, policed",
        frames,
        through_switch(switch, TrafficClass::RateConstrained, frames),
    );
    let ports = (0..PORTS).map(|_| {
        Port::new(
            PortConfig::critical(line, limit),
            Selection::TimeTriggered(Box::new(TimeTriggered::new(windows()))),
        )
    });
    let switch = Switch::new(config, ports.collect(), forwarding(), rule(), DisciplinedClock::default());
    report("the same around windows", frames, through_switch(switch, TrafficClass::RateConstrained, frames));
    let host = through_host(TrafficClass::BestEffort, plain(), TrueTime, None, frames);
    report("end system, best effort", frames, host);
    let interface = VirtualLinkLayer::new(interface(), LocalTime::ZERO).expect("an interface");
    let clock = DisciplinedClock::default();
    let host = through_host(TrafficClass::RateConstrained, critical(), clock, Some(interface), frames);
    report("end system, virtual links", frames, host);
}

fn report(what: &str, frames: u32, seconds: f64) {
    println!("{what:>34}: {:6.1} M frames/s", f64::from(frames) / seconds / 1e6);
}

fn frame(class: TrafficClass, number: u32) -> Frame {
    let link = (number % u32::from(LINKS)) as u16;
    let destination = match class {
        TrafficClass::BestEffort => station(link),
        _ => MacAddress(VirtualLinkId(link).destination().0),
    };
    Frame {
        destination,
        source: station(1_000 + link),
        length: 64 + (number * 37 % 400) as u16,
        vlan: 0,
        virtual_link: link,
        handle: Handle(u64::from(number)),
        priority: 4,
        class,
        network: NetworkId::A,
        sequence: 0,
        marks: Marks::none(),
    }
}

fn station(number: u16) -> MacAddress {
    let [high, low] = number.to_be_bytes();
    MacAddress([2, 0, 0, 0, high, low])
}

/// The way of link `n`: in by port `n % 8`, out by the next but two.
fn egress(link: u16) -> usize {
    (usize::from(link) + 3) % PORTS
}

fn forwarding() -> Forwarding {
    let mut forwarding = Forwarding::new(PORTS, None);
    for link in 0..LINKS {
        forwarding.set_station(0, station(link), egress(link));
        forwarding.add_group(PortSet::of(PORTS, [egress(link)]));
    }
    forwarding
}

fn rule() -> CriticalIngress {
    let mut tables = vec![InputTable::default(); PORTS];
    for link in 0..LINKS {
        let contract = Contract::new(Bag::ALL[0], 600).expect("a contract");
        let account = Account::new(contract, Span::from_micros(500), policing::Mode::ByteBased);
        let entry = Entry { virtual_link: VirtualLinkId(link), lmin: 64, lmax: 600 };
        let entry = VirtualLinkEntry { entry, account: account.ok(), to: Egress::Port(egress(link)) };
        tables[usize::from(link) % PORTS].virtual_links.push(entry);
    }
    CriticalIngress::new(tables).expect("sound tables")
}

fn windows() -> WindowConfig {
    let period = Span::from_millis(1);
    let window = |flow: u16| Window {
        flow,
        offset: Span::from_micros(200 * i64::from(flow)),
        period,
        length: Span::from_micros(10),
        longest_frame: 100,
    };
    WindowConfig {
        schedule: PortSchedule::new(period, (0..5).map(window).collect(), RATE).expect("sound"),
        integration: Integration::TimelyBlock,
        raster: None,
        frames: 1,
        missed: Missed::Keep,
    }
}

fn through_switch<S: TransmissionSelection, I: Ingress, C: LocalClock>(
    mut switch: Switch<S, I, C>,
    class: TrafficClass,
    frames: u32,
) -> f64 {
    let begun = Instant::now();
    let (mut now, mut sent) = (RunTime::ZERO, 0);
    let mut drain = |switch: &mut Switch<S, I, C>, now: RunTime| {
        while let Some(output) = switch.poll_output() {
            match output {
                switch::Output::Transmit { port, frame, transmission } => {
                    let free_at = now + switch.line(port).occupation(frame.length);
                    switch.handle_line_free(port, transmission, free_at);
                    sent += 1;
                }
                other => panic!("nothing is lost in this traffic: {other:?}"),
            }
        }
    };
    for number in 0..frames {
        let arrival = now + STEP;
        while let Some(at) = switch.next_deadline().instant().filter(|at| *at < arrival) {
            switch.handle_deadline(at);
            drain(&mut switch, at);
        }
        now = arrival;
        let frame = frame(class, number);
        let port = usize::from(frame.virtual_link) % PORTS;
        switch.handle_frame(now, Arrival { port, frame, complete: now }, false);
        drain(&mut switch, now);
    }
    while let Some(at) = switch.next_deadline().instant() {
        switch.handle_deadline(at);
        drain(&mut switch, at);
    }
    assert_eq!(sent, frames);
    begun.elapsed().as_secs_f64()
}

fn interface() -> VirtualLinkLayerConfig {
    let contract = Contract::new(Bag::ALL[0], 600).expect("a contract");
    let budget = Span::from_micros(500);
    let ids = 0..LINKS / 8;
    VirtualLinkLayerConfig {
        outgoing_links: ids
            .clone()
            .map(|id| OutgoingLink {
                id,
                contract,
                queues: vec![64],
                networks: Networks::One(NetworkId::A),
                jitter_budget: budget,
            })
            .collect(),
        incoming_links: ids
            .map(|id| IncomingLink { id, bag: Bag::ALL[0], redundancy: Redundancy::Off })
            .collect(),
        ..VirtualLinkLayerConfig::default()
    }
}

/// Every second frame is sent, every second one received, each as far as the host takes it.
fn through_host<S: TransmissionSelection, C: LocalClock>(
    class: TrafficClass,
    port: Port<S>,
    clock: C,
    interface: Option<VirtualLinkLayer>,
    frames: u32,
) -> f64 {
    let cost = Cost { fixed: Span::from_nanos(2_000), per_byte: Span::from_picos(150) };
    let config = HostConfig {
        transmit: cost,
        receive: cost,
        backlog: 1_000,
        ring: 1_000,
        interrupts: Interrupts::EachFrame,
        interrupt_latency: Span::from_micros(1),
        card_read: None,
        buffers: None,
        stacks: [None; STACKS],
        interface_receive_delay: Span::ZERO,
    };
    let mut host = Host::new(config, vec![(NetworkId::A, port)], interface, clock);
    let begun = Instant::now();
    let (mut now, mut ended) = (RunTime::ZERO, 0_u32);
    let mut drain = |host: &mut Host<S, C>, now: RunTime| {
        while let Some(output) = host.poll_output() {
            match output {
                end_system::Output::Transmit { port, frame, transmission } => {
                    let free_at = now + host.line(port).occupation(frame.length);
                    host.handle_line_free(port, transmission, free_at);
                    ended += 1;
                }
                end_system::Output::Deliver { .. } => ended += 1,
                other => panic!("nothing is lost in this traffic: {other:?}"),
            }
        }
    };
    let mut numbers = [0_u8; 16];
    for number in 0..frames {
        let next = now + Span::from_micros(40);
        while let Some(at) = host.next_deadline().instant().filter(|at| *at < next) {
            host.handle_deadline(at);
            drain(&mut host, at);
        }
        now = next;
        let link = ((number / 2) % 16) as u16;
        let frame = Frame { virtual_link: link, ..frame(class, number) };
        if number % 2 == 0 {
            host.handle_send(now, frame, Span::ZERO, false).expect("there is room");
        } else {
            let last = &mut numbers[usize::from(link)];
            host.handle_frame(now, 0, Frame { sequence: (*last).into(), ..frame }, Span::ZERO);
            *last = last.checked_add(1).unwrap_or(1);
        }
        drain(&mut host, now);
    }
    while let Some(at) = host.next_deadline().instant() {
        host.handle_deadline(at);
        drain(&mut host, at);
    }
    assert_eq!(ended, frames);
    begun.elapsed().as_secs_f64()
}
