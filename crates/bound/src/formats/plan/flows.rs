//! Flows: arrival curves of senders, and the servers on the path to each receiver.

use wg_frame::rtag;
use wg_plan::{
    Attachment, Flow as PlannedFlow, Hop, LinkPriority, NetworkId, NodeKind, Pattern, Protocol, Relay, Route,
    Send, SwitchKind, TimeTriggered,
};

use super::classes::{FIRST_COME, LINKS, of_priority};
use super::{Reading, Traffic, frame_bits, least, most, seconds};
use crate::curve::Bucket;
use crate::model::{Copies, Flow, Passage, Place, Scheduled, Takes};
use crate::rational::Rational;

/// Bits of the redundancy tag of a copy.
const RTAG: i128 = 8 * rtag::TAG_LEN as i128;

/// Bits of the frames of a flow, with and without the tag of a copy.
fn lengths(flow: &PlannedFlow, traffic: &[Traffic]) -> Vec<i128> {
    let tags = if flow.frer.is_some() { vec![0, RTAG] } else { vec![0] };
    tags.iter().flat_map(|tag| traffic.iter().map(move |one| i128::from(one.bits) + tag)).collect()
}

impl Reading<'_> {
    pub(super) fn bits_of(&self, send: &Send) -> u64 {
        let flow = self.run.flows.iter().find(|flow| flow.id == send.flow);
        flow.map_or(0, |flow| frame_bits(flow, send.payload))
    }

    /// The end of a route: the last wire, and the host up to the application.
    pub(super) fn arriving(&self, route: &Route) -> (Rational, Option<Passage>) {
        let wire = route
            .hops
            .last()
            .map_or(Rational::ZERO, |hop| seconds(self.network.links[hop.link as usize].delay));
        let receiver = route.receiver().unwrap_or_default();
        match self.readers.get(&receiver) {
            Some(server) => {
                (Rational::ZERO, Some(Passage { wait: wire, class: FIRST_COME, ..Passage::from(*server) }))
            }
            None => (&wire + &self.told(receiver), None),
        }
    }

    /// Least time from the last line of a route to the application.
    fn least_arriving(&self, route: &Route) -> Rational {
        let receiver = route.receiver().unwrap_or_default();
        let wire = route.hops.last().map(|hop| seconds(self.network.links[hop.link as usize].delay));
        // Where the host reads, the line is the wait before that.
        let wire = wire.filter(|_| !self.readers.contains_key(&receiver)).unwrap_or_default();
        &wire + &seconds(self.host(receiver).interface_receive_delay)
    }

    /// Class of a flow among others at a port; less is better.
    fn class(&self, port: Attachment, flow: &PlannedFlow) -> u8 {
        let at = port.node;
        if let Some(tsn) = self.tsn(port) {
            return match &flow.virtual_link {
                Some(link) if self.knows_links(at) => Self::rank_of_link(&tsn, link.priority),
                _ => Self::rank(&tsn, self.priority(at, flow)),
            };
        }
        const UNTAGGED: u8 = 0;
        let priority = flow.vlan.map_or(UNTAGGED, |tag| tag.priority);
        let virtual_link = |link: &wg_plan::VirtualLink| {
            LINKS + u8::from(LinkPriority::of(link.priority) == LinkPriority::Low)
        };
        let ordinary = of_priority(priority);
        match (&self.network.nodes[usize::from(at)].kind, &flow.virtual_link) {
            (NodeKind::EndSystem { .. }, Some(link)) => virtual_link(link),
            (NodeKind::Switch(switch), Some(link)) if switch.strict_priority => {
                if switch.kind >= SwitchKind::Arinc664 {
                    virtual_link(link)
                } else {
                    of_priority(link.priority)
                }
            }
            (NodeKind::Switch(switch), None) if switch.strict_priority => ordinary,
            _ => FIRST_COME,
        }
    }

    /// Servers of a route, with the wait before each.
    pub(super) fn passages(
        &self,
        flow: &PlannedFlow,
        route: &[Hop],
        first: (Rational, Rational),
    ) -> Vec<Passage> {
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

    /// Time from the end of one hop to the queue of the next.
    pub(super) fn forwarding(&self, before: &Hop, hop: &Hop) -> (Rational, Rational) {
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

    pub(super) fn flow(&mut self, flow: &PlannedFlow) {
        let sends: Vec<&Send> = self.run.sends.iter().filter(|send| send.flow == flow.id).collect();
        // A loopback message passes no port; if it costs processor time, that is taken from other frames.
        if sends.is_empty() || flow.is_loopback() && !self.readers.contains_key(&flow.from) {
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
        let (wait, jitter) = self.before_port(flow, &sends, shaped);
        let mut bounded = self.begun(flow, &sends, (arrival, &traffic));
        let copied_at_once = flow.frer.is_some_and(|frer| frer.replicate_at == flow.from);
        let mut parts = Vec::new();
        for (member, route) in flow.routes.iter().enumerate() {
            if member > 0 && copied_at_once {
                let part = bounded.another_part();
                parts.push(std::mem::replace(&mut bounded, part));
            }
            let Some(receiver) = route.receiver() else { continue };
            let suffix = self.suffix(flow, (member, route));
            let first = (wait.clone(), jitter.clone());
            let mut passages = self.passages(flow, &route.hops, first);
            let target = format!("{}{suffix}", self.name(receiver));
            let (end, reader) = self.arriving(route);
            passages.extend(reader);
            bounded.add_target(&target, passages.clone(), end.clone());
            if let Some(target) = bounded.targets.last_mut() {
                target.least_wait = self.least_arriving(route);
            }
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
        if let Some(reader) = self.readers.get(&flow.from).filter(|_| flow.is_loopback()) {
            let within = Passage { wait, variation: jitter, class: FIRST_COME, ..Passage::from(*reader) };
            bounded.add_target(self.name(flow.from).to_owned(), [within], Rational::ZERO);
        }
        let lengths = lengths(flow, &traffic);
        parts.push(bounded);
        for part in parts {
            self.push(flow, part, &lengths);
        }
    }

    /// A flow without its ways. If it is copied, each copy is counted to the end of its way, also behind the place where all
    /// but one are removed, and has the redundancy tag all the way.
    fn begun(
        &self,
        flow: &PlannedFlow,
        sends: &[&Send],
        (arrival, traffic): (Bucket<Rational>, &[Traffic]),
    ) -> Flow {
        let mut bounded = Flow::new(flow.id.to_string(), vec![arrival]);
        let bits = || traffic.iter().map(|one| i128::from(one.bits));
        bounded.longest_frame = Rational::integer(bits().max().unwrap_or(0));
        bounded.shortest_frame = Rational::integer(bits().min().unwrap_or(0));
        bounded.least_wait = self.least_before_port(flow, sends);
        let Some(frer) = &flow.frer else {
            bounded.sent = self.instants(flow, sends);
            return bounded;
        };
        let tag = Rational::integer(RTAG);
        let grown = &(&bounded.shortest_frame + &tag) / &bounded.shortest_frame;
        for bucket in &mut bounded.arrival {
            (bucket.burst, bucket.rate) = (&bucket.burst * &grown, &bucket.rate * &grown);
        }
        bounded.longest_frame = &bounded.longest_frame + &tag;
        let frequency = traffic.iter().fold(Rational::ZERO, |sum, one| {
            &sum + &(&Rational::integer(i128::from(one.frames)) / &seconds(one.period))
        });
        bounded.copies = Some(Copies {
            target: self.name(flow.to).to_owned(),
            period: &Rational::ONE / &(&frequency * &self.fast(flow.from)),
            history: frer.history_length,
            reset: seconds(frer.reset),
        });
        bounded
    }

    /// Greatest time from a call to the port, and how much earlier or later than its period a frame may get there.
    fn before_port(&self, flow: &PlannedFlow, sends: &[&Send], shaped: Rational) -> (Rational, Rational) {
        // A latency begins with the application's call. Before it, the application had to wake up and wait for the
        // processor's work for other messages: that shifts its frames, which is jitter, and is no part of the latency.
        // After it, the processor works for this message alone, because it handles one after the other.
        let jitter = sends.iter().map(|send| self.handed_over(flow, send).varies).max().unwrap_or_default();
        let behind = sends.iter().map(|send| self.behind(flow.from, send)).max().unwrap_or_default();
        let ticks = &self.coarse(flow.from) + &behind;
        let costs = sends.iter().map(|send| self.transmit_cost(flow.from, flow.protocol, send.payload));
        let own = costs.max().unwrap_or_default();
        // A regulator delays a frame that comes within its BAG: by the jitter as well. It counts the BAG by the
        // oscillator, so frames that come at one tick leave it one BAG apart.
        let (held, jitter) = if flow.virtual_link.is_some() {
            (&(&shaped + &jitter) + &ticks, jitter)
        } else {
            (shaped, &jitter + &ticks)
        };
        (&(&own + &seconds(self.host(flow.from).interface_delay)) + &held, jitter)
    }

    /// Least time from a call to the port.
    fn least_before_port(&self, flow: &PlannedFlow, sends: &[&Send]) -> Rational {
        let costs = sends.iter().map(|send| self.transmit_cost(flow.from, flow.protocol, send.payload));
        &costs.min().unwrap_or_default() + &seconds(self.host(flow.from).interface_delay)
    }

    /// The path from a relay back to the sender, after the outward path.
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
            self.held_up(relay.on, false),
            self.read_cost(relay.on).1,
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

    /// A time-triggered message waits for its dispatch and then follows the schedule.
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
        let dispatch = self.until_dispatch(flow, sends[0], schedule);
        let mut drops = self.scheduled_drops(flow, sends[0], schedule);
        let (mut targets, mut read) = (Vec::new(), Vec::new());
        for route in &flow.routes {
            let Some(receiver) = route.receiver() else { continue };
            let Some(course) = self.course(sends[0], schedule, route) else { continue };
            drops.extend(course.drops);
            let target = format!("{}{}", self.name(receiver), self.suffix(flow, (0, route)));
            let arrives = course.longest.map(|span| &dispatch + &span);
            if let Some(server) = self.readers.get(&receiver) {
                read.push((target, *server, arrives, course.late));
                continue;
            }
            let path = route
                .hops
                .iter()
                .map(|hop| self.model.servers[self.servers[&hop.from]].name.clone())
                .collect();
            targets.push((target, path, arrives.map(|arrives| &arrives + &self.told(receiver))));
        }
        drops.sort();
        drops.dedup();
        self.read_by_hosts(flow, (sends[0], schedule), read, &drops);
        if !targets.is_empty() {
            self.model.scheduled.push(Scheduled { name: flow.id.to_string(), targets, drops });
        }
    }

    /// Time-triggered frames wait for the processor of their receiver with all others that are read there: after the
    /// last line they are a flow like others. `read`: for each target the server, the arrival time of a frame there,
    /// and its variation.
    fn read_by_hosts(
        &mut self,
        flow: &PlannedFlow,
        (send, schedule): (&Send, &TimeTriggered),
        read: Vec<(String, usize, Option<Rational>, Rational)>,
        drops: &[(String, String)],
    ) {
        if read.is_empty() {
            return;
        }
        let bits = Rational::integer(i128::from(self.bits_of(send)));
        let period = seconds(schedule.period);
        let rate = &(&bits / &period) * &self.fast(flow.from);
        let mut bounded = Flow::new(flow.id.to_string(), vec![Bucket { burst: bits.clone(), rate }]);
        bounded.longest_frame = bits;
        for (target, server, arrives, late) in read {
            let is_bounded = arrives.is_some();
            // A frame that misses its window uses a later one; each lets one pass.
            let variation = if is_bounded { late } else { period.clone() };
            let wait = arrives.unwrap_or_default();
            bounded.add_target(
                target,
                [Passage { server, class: FIRST_COME, wait, variation }],
                Rational::ZERO,
            );
            bounded.targets.last_mut().into_iter().for_each(|target| target.unbounded = !is_bounded);
        }
        self.note_lengths([i128::from(self.bits_of(send))].into_iter());
        let at = self.model.flows.len();
        self.model.flows.push(bounded);
        // The send queue of the host is reported once for all its flows.
        let sends = self.backlog_full(flow.from).map(|(place, _)| place);
        for (name, why) in drops.iter().filter(|(place, _)| Some(place) != sends.as_ref()) {
            let takes = Takes::NotAll(why.clone());
            self.model.places.push(Place { name: name.clone(), flows: vec![at], takes });
        }
    }

    /// How a target of a flow is told from the same receiver of another copy.
    fn suffix(&self, flow: &PlannedFlow, (member, route): (usize, &Route)) -> String {
        if flow.frer.is_some() {
            return format!(", path {}", member + 1);
        }
        match (flow.network, route.network) {
            (Some(_), _) => String::new(),
            (None, NetworkId::A) => " A".to_owned(),
            (None, NetworkId::B) => " B".to_owned(),
        }
    }

    /// The curve of a flow behind its regulator, and the longest wait in it.
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
        // One frame passes at once, each further one after a BAG.
        let wait = &(&frames - &Rational::ONE).max(Rational::ZERO) * &bag;
        let bits = traffic.iter().map(|one| one.bits).max().unwrap_or(0);
        let bits = Rational::integer(i128::from(bits));
        let rate = &(&bits * &contract).min(rate.clone()).max(Rational::ZERO);
        let burst = bits;
        Some((Bucket { burst, rate: rate.clone() }, wait))
    }
}
