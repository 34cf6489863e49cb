//! One run of a compiled test: directed hops become servers, senders become arrival curves.
//!
//! Lengths are those on the wire, with preamble and gap. What no curve bounds (exponential intervals, replays, shared
//! media, flooding) is refused by name; what a curve can only widen (pauses, counts, rate limits) is left out.

mod classes;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use wg_frame::time::Span;
use wg_plan::wire::{frame_length, sized_as, wire_bits};
use wg_plan::{
    Attachment, Bound, Diagnostic, Distribution, Flow as PlannedFlow, ForwardingMode, Hop, HostModel, Inject,
    Integration, Interrupts, Network, NetworkId, NodeIndex, NodeKind, Pattern, Protocol, Relay, Route, Run,
    Send, SwitchKind,
};

use crate::curve::{Bucket, RateLatency};
use crate::model::{Flow, Limit, Model, Multiplexing, Passage, Scheduled, Server, Wishes, problem};
use crate::rational::Rational;

const PER_SECOND: i128 = 1_000_000_000_000;
const AROUND_FRAME: i128 = 20;
/// The least interrupt rate an adaptive driver chooses is 4000 a second.
const LONGEST_ADAPTIVE_SPACING: Span = Span::from_micros(250);

/// A limit as the plan writes it.
#[derive(Deserialize)]
pub struct PlannedLimit {
    /// The flow.
    pub flow: Option<u16>,
    /// The measure.
    pub measure: String,
    /// The side.
    pub bound: Bound,
    /// In nanoseconds, of a latency.
    pub value: f64,
    /// As written.
    pub written: String,
    /// Line of the test.
    pub line: u32,
}

fn seconds(span: Span) -> Rational {
    Rational::new(i128::from(span.as_picos()), PER_SECOND)
}

fn most(distribution: &Distribution) -> Rational {
    distribution.quantiles.last().map_or(Rational::ZERO, |(_, time)| seconds(*time))
}

fn least(distribution: &Distribution) -> Rational {
    seconds(distribution.least())
}

/// What a sender brings in at most.
#[derive(Clone)]
struct Traffic {
    /// Frames at once.
    frames: u64,
    /// Bits of one on the wire.
    bits: u64,
    /// Time between as many.
    period: Span,
}

struct Reading<'a> {
    network: Cow<'a, Network>,
    run: &'a Run,
    servers: BTreeMap<Attachment, usize>,
    model: Model,
    found: Vec<Diagnostic>,
    /// Time that all frames due at once on a host take of its processor, by node.
    busy: BTreeMap<NodeIndex, Rational>,
    /// Hosts whose processor takes time for what comes: their servers, by node.
    readers: BTreeMap<NodeIndex, usize>,
}

/// Reads one run of a plan.
///
/// # Errors
/// Everything that no curve bounds.
pub fn read(
    name: &str,
    network: &Network,
    run: &Run,
    limits: &[PlannedLimit],
) -> Result<Model, Vec<Diagnostic>> {
    let mut changed = run.switches.applied(network).into_owned();
    if let Some(rate) = run.link_rate {
        for link in &mut changed.links {
            link.rate = rate;
        }
    }
    let mut reading = Reading {
        network: Cow::Owned(changed),
        run,
        servers: BTreeMap::new(),
        model: Model {
            name: name.to_owned(),
            wishes: Wishes { multiplexing: Some(Multiplexing::Fifo), grouping: Some(true), packetizer: true },
            ..Model::default()
        },
        found: Vec::new(),
        busy: BTreeMap::new(),
        readers: BTreeMap::new(),
    };
    reading.check_nodes();
    reading.check_run();
    reading.make_servers();
    reading.count_processors();
    reading.make_readers();
    reading.reserve();
    for flow in &run.flows {
        reading.flow(flow);
    }
    for (index, inject) in run.injects.iter().enumerate() {
        reading.inject(index, inject);
    }
    reading.own_frames();
    reading.check_slopes();
    reading.assume();
    reading.limits(limits);
    if !reading.found.is_empty() {
        return Err(reading.found);
    }
    let Reading { mut model, .. } = reading;
    model.drop_idle();
    model.check()?;
    Ok(model)
}

impl Reading<'_> {
    fn say(&mut self, element: &str, message: &str, cure: &str) {
        self.found.push(problem(0, element, message, "", cure));
    }

    fn name(&self, node: NodeIndex) -> &str {
        &self.network.nodes[usize::from(node)].name
    }

    fn check_nodes(&mut self) {
        let (mut said, mut unruled) = (Vec::new(), Vec::new());
        for node in &self.network.nodes {
            match &node.kind {
                NodeKind::Hub { .. } => said.push((
                    format!("hub \"{}\"", node.name),
                    "who sends next on a shared medium is chance, and nothing bounds it",
                    "put a switch in its place",
                )),
                NodeKind::Switch(switch) if switch.raster.is_some() => said.push((
                    format!("switch \"{}\"", node.name),
                    "its raster keeps slots for time-triggered frames, which are not bounded",
                    "leave the raster out",
                )),
                NodeKind::Switch(switch) if switch.learning => said.push((
                    format!("switch \"{}\"", node.name),
                    "it learns addresses, and floods what it has not learnt yet to ports where no flow is planned",
                    "write learning=\"false\", so that ways are entered before the run",
                )),
                _ => {}
            }
        }
        for (index, node) in (0..).zip(&self.network.nodes) {
            let kind = if matches!(node.kind, NodeKind::Switch(_)) { "switch" } else { "end system" };
            for (what, cure) in self.unruled(index) {
                let message = "its ports have ".to_owned() + what + ", which no curve here has";
                unruled.push((format!("{kind} \"{}\"", node.name), message, cure));
            }
        }
        for (element, message, cure) in said {
            self.say(&element, message, cure);
        }
        for (element, message, cure) in unruled {
            self.say(&element, &message, cure);
        }
    }

    /// What of the run no curve bounds, whatever its nodes are.
    fn check_run(&mut self) {
        let mut said = Vec::new();
        for flow in self.run.flows.iter().filter(|flow| flow.frer.is_some()) {
            said.push((
                format!("flow {}", flow.id),
                "it has member streams, and how their copies meet is not bounded",
                "leave <frer> out, and bound each way by itself",
            ));
        }
        if !self.run.clusters.is_empty() {
            said.push((
                "<as6802>".to_owned(),
                "its control frames go before all others and set clocks: neither is in a curve here",
                "leave it out",
            ));
        }
        if !self.run.ptp_domains.is_empty() {
            said.push((
                "<ptp-domain>".to_owned(),
                "its messages go out of every port and have no arrival curve here",
                "leave it out",
            ));
        }
        if !self.run.remote_logs.is_empty() {
            said.push((
                "<remote-log>".to_owned(),
                "what it sends depends on what is logged, and has no arrival curve",
                "leave it out",
            ));
        }
        for (element, message, cure) in said {
            self.say(&element, message, cure);
        }
    }

    fn make_servers(&mut self) {
        for link in self.network.links.clone() {
            for (from, to) in [(link.ends[0], link.ends[1]), (link.ends[1], link.ends[0])] {
                // A line that drifts is slower by as much as its node's clock may be.
                let ppb = self.network.nodes[usize::from(from.node)].line_drift_ppb;
                let slow = Rational::new(1_000_000_000 - i128::from(ppb.abs()), 1_000_000_000);
                let fast = Rational::new(1_000_000_000 + i128::from(ppb.abs()), 1_000_000_000);
                let nominal = Rational::integer(i128::from(link.rate.bits_per_second()));
                let rate = &nominal * &slow;
                let latency = self.cut_through_latency(from, to);
                self.servers.insert(from, self.model.servers.len());
                self.model.servers.push(Server {
                    name: format!("{}:{}", self.name(from.node), from.port),
                    service: vec![RateLatency { rate, latency }],
                    capacity: Some(&nominal * &fast),
                    reserved: None,
                    rules: self.rules(from),
                    line: 0,
                });
            }
        }
    }

    /// A switch that cuts through orders frames by their headers: others whose end comes later by as much as the longest
    /// frame lasts may go before.
    fn cut_through_latency(&self, from: Attachment, _to: Attachment) -> Rational {
        let NodeKind::Switch(switch) = &self.network.nodes[usize::from(from.node)].kind else {
            return Rational::ZERO;
        };
        if switch.forwarding_mode != ForwardingMode::CutThrough {
            return Rational::ZERO;
        }
        let at = |link: &&wg_plan::Link| link.ends.iter().any(|end| end.node == from.node);
        let slowest = self.network.links.iter().filter(at).map(|link| link.rate.bits_per_second()).min();
        let frames = self.run.flows.iter().map(longest_bits);
        let others = self.run.injects.iter().map(|inject| wire_bits(Protocol::Udp, None, inject.payload));
        let longest = frames.chain(self.run.sends.iter().map(|send| self.bits_of(send))).chain(others).max();
        Rational::new(i128::from(longest.unwrap_or(0)), i128::from(slowest.unwrap_or(1)))
    }

    fn bits_of(&self, send: &Send) -> u64 {
        let flow = self.run.flows.iter().find(|flow| flow.id == send.flow);
        flow.map_or(0, |flow| frame_bits(flow, send.payload))
    }

    fn host(&self, node: NodeIndex) -> HostModel {
        match &self.network.nodes[usize::from(node)].kind {
            NodeKind::EndSystem { host } => host.clone(),
            _ => HostModel::ideal(),
        }
    }

    /// What all frames that are due at once cost a host's processor: a frame may wait for the others.
    fn count_processors(&mut self) {
        for send in &self.run.sends {
            let Some(flow) = self.run.flows.iter().find(|flow| flow.id == send.flow) else { continue };
            let frames = match send.pattern {
                Pattern::Bursts { size, .. } => size,
                _ => 1,
            };
            let cost = self.transmit_cost(flow.from, flow.protocol, send.payload);
            let whole = &cost * &Rational::integer(i128::from(frames));
            let entry = self.busy.entry(flow.from).or_default();
            *entry = &*entry + &whole;
        }
    }

    fn transmit_cost(&self, node: NodeIndex, protocol: Protocol, payload: u32) -> Rational {
        let host = self.host(node);
        let stack = host.stacks.iter().find(|stack| stack.protocol == protocol);
        let cost = stack.map_or(host.transmit, |stack| stack.costs.transmit);
        &seconds(cost.fixed) + &(&seconds(cost.per_byte) * &Rational::integer(i128::from(payload)))
    }

    /// The processor of a host is a server too: it reads frame by frame, after it was told and has woken.
    fn make_readers(&mut self) {
        let mut slowest: BTreeMap<NodeIndex, Rational> = BTreeMap::new();
        let mut comes = |node: NodeIndex, bits: u64, cost: Rational| {
            if cost.signum() > 0 {
                let rate = &Rational::integer(i128::from(bits)) / &cost;
                slowest.entry(node).and_modify(|least| *least = (&*least).min(&rate).clone()).or_insert(rate);
            }
        };
        for send in &self.run.sends {
            let Some(flow) = self.run.flows.iter().find(|flow| flow.id == send.flow) else { continue };
            let bits = frame_bits(flow, send.payload);
            let back = self.run.relays.iter().any(|relay| relay.flow == flow.id).then_some(flow.from);
            for receiver in flow.receivers().chain(back) {
                comes(receiver, bits, self.receive_cost(receiver, flow.protocol, send.payload));
            }
        }
        for inject in self.run.injects.iter().filter(|inject| self.host(inject.to).receives_load) {
            let bits = wire_bits(Protocol::Udp, None, inject.payload);
            comes(inject.to, bits, self.receive_cost(inject.to, Protocol::Udp, inject.payload));
        }
        for (node, rate) in slowest {
            let latency = self.told(node);
            self.readers.insert(node, self.model.servers.len());
            let service = vec![RateLatency { rate, latency }];
            self.model.servers.push(Server::new(format!("{} receives", self.name(node)), service));
        }
    }

    /// From a frame at an interface to a thread that reads it, at most.
    fn told(&self, node: NodeIndex) -> Rational {
        let host = self.host(node);
        let moderated = match host.interrupts {
            Interrupts::EachFrame => Span::ZERO,
            Interrupts::Coalesced { wait, .. } => wait,
            Interrupts::Polled { period } => period,
            Interrupts::Spaced { spacing } => spacing,
            Interrupts::Adaptive => LONGEST_ADAPTIVE_SPACING,
        };
        [
            seconds(host.interface_receive_delay),
            seconds(host.interrupt_latency),
            seconds(moderated),
            most(&host.receive_wake_up),
        ]
        .iter()
        .fold(Rational::ZERO, |sum, part| &sum + part)
    }

    fn receive_cost(&self, node: NodeIndex, protocol: Protocol, payload: u32) -> Rational {
        let host = self.host(node);
        let stack = host.stacks.iter().find(|stack| stack.protocol == protocol);
        let cost = stack.map_or(host.receive, |stack| stack.costs.receive);
        let bytes = Rational::integer(i128::from(payload));
        let of = |cost: wg_plan::Cost| &seconds(cost.fixed) + &(&seconds(cost.per_byte) * &bytes);
        &of(cost) + &host.card_read.map_or(Rational::ZERO, of)
    }

    /// The end of a route: over the last wire, and to the application.
    fn arriving(&self, route: &Route) -> (Rational, Option<Passage>) {
        let wire = route
            .hops
            .last()
            .map_or(Rational::ZERO, |hop| seconds(self.network.links[hop.link as usize].delay));
        let receiver = route.receiver().unwrap_or_default();
        match self.readers.get(&receiver) {
            Some(server) => {
                (Rational::ZERO, Some(Passage { wait: wire, class: 10, ..Passage::from(*server) }))
            }
            None => (&wire + &self.told(receiver), None),
        }
    }

    /// Where a flow is served among others at a port; less is better.
    fn class(&self, port: Attachment, flow: &PlannedFlow) -> u8 {
        let at = port.node;
        if let Some(tsn) = self.tsn(port) {
            return Self::rank(&tsn, self.priority(at, flow));
        }
        const UNTAGGED: u8 = 0;
        let priority = flow.vlan.map_or(UNTAGGED, |tag| tag.priority);
        let virtual_link = |link: &wg_plan::VirtualLink| if link.priority >= 4 { 1 } else { 2 };
        let ordinary = 3 + (7 - priority.min(7));
        match (&self.network.nodes[usize::from(at)].kind, &flow.virtual_link) {
            (NodeKind::EndSystem { .. }, Some(link)) => virtual_link(link),
            (NodeKind::Switch(switch), Some(link)) if switch.strict_priority => {
                if switch.kind >= SwitchKind::Arinc664 {
                    virtual_link(link)
                } else {
                    3 + (7 - link.priority.min(7))
                }
            }
            (NodeKind::Switch(switch), None) if switch.strict_priority => ordinary,
            _ => 10,
        }
    }

    /// The servers of a route and what a frame waits for before each.
    fn passages(&self, flow: &PlannedFlow, route: &[Hop], first: (Rational, Rational)) -> Vec<Passage> {
        let mut passages = Vec::with_capacity(route.len());
        let mut before: Option<&Hop> = None;
        for hop in route {
            let (wait, variation) = match before {
                None => first.clone(),
                Some(before) => self.forwarding(before, hop),
            };
            let class = self.class(hop.from, flow);
            passages.push(Passage { server: self.servers[&hop.from], class, wait, variation });
            before = Some(hop);
        }
        passages
    }

    /// From the end of one hop to the queue of the next.
    fn forwarding(&self, before: &Hop, hop: &Hop) -> (Rational, Rational) {
        let [came, goes] = [before, hop].map(|hop| &self.network.links[hop.link as usize]);
        let wire = seconds(came.delay);
        let NodeKind::Switch(switch) = &self.network.nodes[usize::from(hop.from.node)].kind else {
            return (wire, Rational::ZERO);
        };
        let mixed = if came.rate == goes.rate { Rational::ZERO } else { seconds(switch.mixed_rate_delay) };
        let fixed = &(&wire + &seconds(switch.processing_delay)) + &mixed;
        let (low, high) = (least(&switch.drawn_delay), most(&switch.drawn_delay));
        (&fixed + &high, &high - &low)
    }

    fn sender(&mut self, flow: &PlannedFlow, send: &Send) -> Option<Traffic> {
        let element = format!("<send flow=\"{}\">", flow.id);
        let bits = frame_bits(flow, send.payload);
        if send.replay.is_some() {
            self.say(
                &element,
                "it replays a capture, whose gaps are no arrival curve",
                "give it a period in its place",
            );
            return None;
        }
        let (frames, period) = match send.pattern {
            Pattern::Periodic => (1, send.period),
            Pattern::Bursts { size, .. } => (u64::from(size), send.period),
            Pattern::Ramp { to, .. } => (1, send.period.min(to)),
            Pattern::Exponential => {
                self.say(
                    &element,
                    "its intervals are exponential: any number of frames may come at once, and no curve bounds them",
                    "make it periodic, or send it on a virtual link",
                );
                return None;
            }
        };
        Some(Traffic { frames, bits, period })
    }

    fn flow(&mut self, flow: &PlannedFlow) {
        let sends: Vec<&Send> = self.run.sends.iter().filter(|send| send.flow == flow.id).collect();
        if sends.is_empty() || flow.is_loopback() {
            return;
        }
        if flow.protocol == Protocol::Tt {
            self.scheduled(flow, &sends);
            return;
        }
        let mut traffic = Vec::new();
        for send in sends.iter().copied() {
            traffic.extend(self.sender(flow, send));
        }
        if traffic.len() < sends.len() {
            return;
        }
        let payload = sends.iter().map(|send| send.payload).max().unwrap_or(0);
        let Some((arrival, shaped)) = self.arrival(flow, &traffic) else { return };
        let mut bounded = Flow::new(flow.id.to_string(), vec![arrival]);
        let longest = traffic.iter().map(|one| one.bits).max().unwrap_or(0);
        bounded.longest_frame = Rational::integer(i128::from(longest));
        let host = self.host(flow.from);
        let work = self.busy.get(&flow.from).cloned().unwrap_or_default();
        let wake = most(&host.send_wake_up);
        let jitter = &(&wake - &least(&host.send_wake_up)) + &work;
        let wait = &(&(&wake + &work) + &seconds(host.interface_delay)) + &shaped;
        for route in &flow.routes {
            let Some(receiver) = route.receiver() else { continue };
            let suffix = self.suffix(flow, route);
            let first = (wait.clone(), jitter.clone());
            let mut passages = self.passages(flow, &route.hops, first);
            let target = format!("{}{suffix}", self.name(receiver));
            let (end, reader) = self.arriving(route);
            passages.extend(reader);
            bounded.add_target(&target, passages.clone(), end.clone());
            for relay in self.run.relays.iter().filter(|relay| relay.flow == flow.id && relay.on == receiver)
            {
                self.returned(
                    &mut bounded,
                    (flow, relay, payload),
                    route,
                    &mut passages.clone(),
                    &end,
                    &suffix,
                );
            }
        }
        self.model.flows.push(bounded);
    }

    /// From a relay back to the sender, behind all it passed on the way there.
    fn returned(
        &self,
        bounded: &mut Flow,
        (flow, relay, payload): (&PlannedFlow, &Relay, u32),
        route: &Route,
        passages: &mut Vec<Passage>,
        arriving: &Rational,
        suffix: &str,
    ) {
        let back = route.reversed();
        let host = self.host(relay.on);
        let wait = [
            arriving.clone(),
            most(&host.relay_wake_up),
            self.transmit_cost(relay.on, flow.protocol, payload),
            seconds(host.interface_delay),
        ]
        .iter()
        .fold(Rational::ZERO, |sum, part| &sum + part);
        // All of it may vary: a host is no switch.
        let more = self.passages(flow, &back.hops, (wait.clone(), wait));
        passages.extend(more);
        let target = format!("{}{suffix} and back", self.name(relay.on));
        let (end, reader) = self.arriving(&back);
        passages.extend(reader);
        bounded.add_target(&target, passages.iter().cloned(), end);
    }

    /// A time-triggered message waits for its dispatch, at most a period, and then goes by the schedule.
    fn scheduled(&mut self, flow: &PlannedFlow, sends: &[&Send]) {
        let element = format!("<flow id=\"{}\">", flow.id);
        let Some(schedule) = &flow.schedule else { return };
        let period = seconds(schedule.period);
        let slower = sends.len() == 1 && sends[0].pattern.is_periodic() && seconds(sends[0].period) >= period;
        if !slower || schedule.queue.is_some() || self.run.relays.iter().any(|relay| relay.flow == flow.id) {
            self.say(
                &element,
                "its messages may come faster than its schedule sends them, or wait in a queue, or come back",
                "give it one periodic sender that is no faster than the schedule",
            );
            return;
        }
        let host = self.host(flow.from);
        let work = self.busy.get(&flow.from).cloned().unwrap_or_default();
        let before = &(&most(&host.send_wake_up) + &work) + &seconds(host.interface_delay);
        let mut targets = Vec::new();
        for route in &flow.routes {
            let (Some(receiver), Some(last)) = (route.receiver(), route.hops.last()) else { continue };
            let Some(reception) = schedule.receptions.iter().find(|reception| reception.at == last.to) else {
                continue;
            };
            // From dispatch to each window in turn and to the last instant of reception; offsets go round with the period.
            let windows = route
                .hops
                .iter()
                .filter_map(|hop| schedule.windows.iter().find(|window| window.at == hop.from));
            let instants = windows.map(|window| window.offset).chain([reception.offset]);
            let (mut at, mut span) = (schedule.offset, Span::ZERO);
            for instant in instants {
                let step = (instant.as_picos() - at.as_picos()).rem_euclid(schedule.period.as_picos().max(1));
                (at, span) = (instant, span + Span::from_picos(step));
            }
            let span = seconds(span + schedule.late);
            let reading = self.readers.get(&receiver).map_or_else(
                || self.told(receiver),
                |server| {
                    let service = &self.model.servers[*server].service[0];
                    let bits = Rational::integer(i128::from(self.bits_of(sends[0])));
                    &service.latency + &(&bits / &service.rate)
                },
            );
            let path = route
                .hops
                .iter()
                .map(|hop| self.model.servers[self.servers[&hop.from]].name.clone())
                .collect();
            let target = format!("{}{}", self.name(receiver), self.suffix(flow, route));
            let delay =
                [&period, &before, &span, &reading].iter().fold(Rational::ZERO, |sum, part| &sum + part);
            targets.push((target, path, delay));
        }
        self.model.scheduled.push(Scheduled { name: flow.id.to_string(), targets });
    }

    /// What windows of time-triggered frames keep from all others. Frames that would not be done before a window wait
    /// (timely block), or are cut off and sent again (preemption): either way a window costs a frame more than itself.
    fn reserve(&mut self) {
        let ports: Vec<(Attachment, usize)> =
            self.servers.iter().map(|(port, server)| (*port, *server)).collect();
        for (port, server) in ports {
            let rate = self.model.servers[server].service[0].rate.clone();
            let longest = self.longest_other();
            let guard = match &self.network.nodes[usize::from(port.node)].kind {
                NodeKind::Switch(switch) if switch.integration == Integration::Shuffling => Rational::ZERO,
                _ => &longest / &rate,
            };
            let (mut burst, mut share) = (Rational::ZERO, Rational::ZERO);
            for schedule in self.run.flows.iter().filter_map(|flow| flow.schedule.as_ref()) {
                for window in schedule.windows.iter().filter(|window| window.at == port) {
                    let frame = Rational::integer(8 * (i128::from(schedule.longest_frame) + AROUND_FRAME));
                    let length = seconds(window.length).max(&frame / &rate);
                    let whole = &(&length + &guard) * &rate;
                    burst = &burst + &whole;
                    share = &share + &(&whole / &seconds(schedule.period));
                }
            }
            if share.signum() > 0 {
                self.model.servers[server].reserved = Some(Bucket { burst, rate: share });
            }
        }
    }

    /// Bits of the longest frame that is not time-triggered.
    fn longest_other(&self) -> Rational {
        let others = self.run.flows.iter().filter(|flow| flow.protocol != Protocol::Tt);
        let sent = self.run.sends.iter().filter(|send| others.clone().any(|flow| flow.id == send.flow));
        let loads = self.run.injects.iter().map(|inject| wire_bits(Protocol::Udp, None, inject.payload));
        let bits = sent.map(|send| self.bits_of(send)).chain(loads).max().unwrap_or(0);
        Rational::integer(i128::from(bits))
    }

    fn suffix(&self, flow: &PlannedFlow, route: &Route) -> String {
        match (flow.network, route.network) {
            (Some(_), _) => String::new(),
            (None, NetworkId::A) => " A".to_owned(),
            (None, NetworkId::B) => " B".to_owned(),
        }
    }

    /// The curve of a flow behind its regulator, and how long a frame may wait in that.
    fn arrival(&mut self, flow: &PlannedFlow, traffic: &[Traffic]) -> Option<(Bucket<Rational>, Rational)> {
        let fast = self.fast(flow.from);
        let mut burst = Rational::ZERO;
        let mut rate = Rational::ZERO;
        let (mut frames, mut frequency) = (Rational::ZERO, Rational::ZERO);
        for one in traffic {
            let bits = Rational::integer(i128::from(one.bits) * i128::from(one.frames));
            let period = seconds(one.period);
            if period.signum() <= 0 {
                let element = format!("<send flow=\"{}\">", flow.id);
                self.say(&element, "its period is not above zero", "give it one");
                return None;
            }
            let own = &Rational::integer(i128::from(one.frames)) / &period;
            burst = &burst + &bits;
            rate = &rate + &(&(&bits / &period) * &fast);
            frames = &frames + &Rational::integer(i128::from(one.frames));
            frequency = &frequency + &(&own * &fast);
        }
        let Some(link) = &flow.virtual_link else { return Some((Bucket { burst, rate }, Rational::ZERO)) };
        let bag = seconds(link.contract.bag().span());
        let contract = &fast / &bag;
        if frequency > contract {
            let element = format!("<flow id=\"{}\">", flow.id);
            self.say(
                &element,
                "its senders send more frames than its BAG lets pass, and they wait without end",
                "lengthen the periods, or shorten the BAG",
            );
            return None;
        }
        // One frame passes at once, the others one each BAG.
        let wait = &(&frames - &Rational::ONE).max(Rational::ZERO) * &bag;
        let bits = traffic.iter().map(|one| one.bits).max().unwrap_or(0);
        let bits = Rational::integer(i128::from(bits));
        let rate = &(&bits * &contract).min(rate.clone()).max(Rational::ZERO);
        let burst = bits;
        Some((Bucket { burst, rate: rate.clone() }, wait))
    }

    /// How much faster than time a node's clock may run.
    fn fast(&self, node: NodeIndex) -> Rational {
        let clock = &self.network.nodes[usize::from(node)].clock;
        let steps = clock.temperature.iter().map(|step| clock.drift_ppb + step.drift_ppb);
        let drift = steps.chain([clock.drift_ppb]).map(i64::abs).max().unwrap_or(0);
        Rational::new(1_000_000_000 + i128::from(drift), 1_000_000_000)
    }

    fn inject(&mut self, index: usize, inject: &Inject) {
        let name = format!("inject {index} {} to {}", self.name(inject.on), self.name(inject.to));
        let element = format!("<inject on=\"{}\">", self.name(inject.on));
        if inject.exponential {
            self.say(
                &element,
                "its bursts come at exponential intervals, and no curve bounds them",
                "make it periodic",
            );
            return;
        }
        let threads = inject.threads.as_ref().map_or(1, |threads| i128::from(threads.number).max(1));
        let bits = i128::from(wire_bits(Protocol::Udp, None, inject.payload));
        let burst = Rational::integer(bits * i128::from(inject.burst) * threads);
        let interval = seconds(inject.interval);
        if interval.signum() <= 0 {
            self.say(&element, "its interval is not above zero", "give it a load");
            return;
        }
        let rate = &(&Rational::integer(bits * i128::from(inject.burst)) / &interval) * &self.fast(inject.on);
        let mut flow = Flow::new(name, vec![Bucket { burst, rate }]);
        flow.longest_frame = Rational::integer(bits);
        let stands_for = PlannedFlow::plain(0, Protocol::Udp, inject.route.clone());
        let passages = self.passages(&stands_for, &inject.route.hops, (Rational::ZERO, Rational::ZERO));
        let target = self.name(inject.to).to_owned();
        let (end, reader) = self.arriving(&inject.route);
        // An interface discards load unless its host's model says otherwise.
        let reader = reader.filter(|_| self.host(inject.to).receives_load);
        flow.add_target(target, passages.into_iter().chain(reader), end);
        self.model.flows.push(flow);
    }

    fn own_frames(&mut self) {
        let mut flows = Vec::new();
        for (index, node) in self.network.nodes.iter().enumerate() {
            let NodeKind::Switch(switch) = &node.kind else { continue };
            for (number, frames) in switch.own_frames.iter().enumerate() {
                let bits = Rational::integer(8 * (i128::from(frames.length) + AROUND_FRAME));
                let period = seconds(frames.period);
                if period.signum() <= 0 {
                    continue;
                }
                for (port, server) in self.servers.iter().filter(|(port, _)| usize::from(port.node) == index)
                {
                    if !frames.ports.is_empty() && !frames.ports.contains(&port.port) {
                        continue;
                    }
                    let name = format!("frames {number} of {}:{}", node.name, port.port);
                    let rate = &bits / &period;
                    let mut flow = Flow::new(name, vec![Bucket { burst: bits.clone(), rate }]);
                    flow.longest_frame = bits.clone();
                    let class = if let Some(tsn) = switch.tsn_of(port.port) {
                        Self::rank(tsn, frames.priority)
                    } else if switch.strict_priority {
                        3 + (7 - frames.priority.min(7))
                    } else {
                        10
                    };
                    let passage = Passage { class, ..Passage::from(*server) };
                    flow.add_target("link", [passage], Rational::ZERO);
                    flows.push(flow);
                }
            }
        }
        self.model.flows.extend(flows);
    }

    fn assume(&mut self) {
        let planted = self.run.link_faults.len()
            + self.run.incidents.len()
            + self.run.relays.iter().map(|relay| relay.faults.len()).sum::<usize>();
        let mut all = vec!["a host begins no message later than its model says".to_owned()];
        self.jitters();
        if planted > 0 {
            all.push(format!("none of the {planted} faults that the test plants happens"));
        }
        if self.network.nodes.iter().any(|node| !node.events.is_empty()) {
            all.push("no event of a host holds up its threads".to_owned());
        }
        if self.network.nodes.iter().any(|node| node.clock.wander_ppb > 0) {
            all.push("clocks keep their drift: wander is left out".to_owned());
        }
        self.model.assumptions.extend(all);
    }

    /// ARINC 664 part 7: what virtual links of an end system do to one another at its port, beside 40 us of its own.
    fn jitters(&mut self) {
        let mut sums: BTreeMap<NodeIndex, Rational> = BTreeMap::new();
        for flow in &self.run.flows {
            let Some((link, hop)) =
                flow.virtual_link.zip(flow.routes.first().and_then(|route| route.hops.first()))
            else {
                continue;
            };
            let bits = Rational::integer(8 * (i128::from(link.contract.lmax()) + AROUND_FRAME));
            let rate =
                Rational::integer(i128::from(self.network.links[hop.link as usize].rate.bits_per_second()));
            let sum = sums.entry(flow.from).or_insert(Rational::new(40, 1_000_000));
            *sum = &*sum + &(&bits / &rate);
        }
        for (node, jitter) in sums {
            let within = if jitter <= Rational::new(500, 1_000_000) { "within" } else { "beyond" };
            let text = format!(
                "virtual links leave \"{}\" with a jitter of at most {:.3} us, {within} the 500 us of ARINC 664 part 7",
                self.name(node),
                jitter.to_f64_up() * 1e6
            );
            self.model.notes.push(text);
        }
    }

    fn limits(&mut self, limits: &[PlannedLimit]) {
        for limit in limits {
            if limit.measure != "latency.max" || limit.bound != Bound::AtMost {
                continue;
            }
            let Some(nanos) = Rational::from_f64(limit.value) else { continue };
            let at_most = &nanos / &Rational::integer(1_000_000_000);
            let tested = |id: u16| self.run.flows.iter().any(|flow| flow.id == id && !flow.exchange);
            let flows: Vec<u16> = match limit.flow {
                Some(id) => vec![id],
                None => self.run.flows.iter().map(|flow| flow.id).filter(|id| tested(*id)).collect(),
            };
            for flow in flows {
                let written = limit.written.clone();
                let name = Some(flow.to_string());
                self.model.limits.push(Limit {
                    flow: name,
                    at_most: at_most.clone(),
                    written,
                    line: limit.line,
                });
            }
        }
    }
}

/// Bits of a frame of a flow on the wire.
fn frame_bits(flow: &PlannedFlow, payload: u32) -> u64 {
    let within = flow.virtual_link.is_some_and(|link| link.number_within);
    wire_bits(sized_as(flow.protocol, within), flow.vlan, payload)
}

/// Bits of the longest frame its contract allows.
fn longest_bits(flow: &PlannedFlow) -> u64 {
    let longest = flow
        .virtual_link
        .map_or(frame_length(flow.protocol, flow.vlan, 0), |link| u32::from(link.contract.lmax()));
    (u64::from(longest) + 20) * 8
}
