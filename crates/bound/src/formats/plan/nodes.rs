//! Nodes and links: ports and processors of hosts as servers.

use std::collections::BTreeMap;

use wg_frame::time::Span;
use wg_plan::wire::wire_bits;
use wg_plan::{
    Attachment, ForwardingMode, HeldUp, HostModel, Integration, Interrupts, NodeIndex, NodeKind, Pattern,
    Protocol,
};

use super::{
    AROUND_FRAME, LONGEST_ADAPTIVE_SPACING, PICOS_PER_SECOND, PREAMBLE, Reading, frame_bits, least,
    longest_bits, most, seconds,
};
use crate::curve::RateLatency;
use crate::model::{Reserved, Server, problem};
use crate::rational::Rational;
use crate::rules::CUT;

/// Greatest number of standard deviations in a draw of wander, which is the sum of twelve uniform ones.
const MOST_DEVIATIONS: i128 = 6;

impl Reading<'_> {
    pub(super) fn check_nodes(&mut self) {
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
                    "write forwarding=\"static\", so that ways are entered before the run",
                )),
                _ => {}
            }
        }
        for (index, node) in (0..).zip(self.network.nodes.clone()) {
            let kind = if matches!(node.kind, NodeKind::Switch(_)) { "switch" } else { "end system" };
            if i128::from(node.interframe_gap) + PREAMBLE != AROUND_FRAME {
                let message = "its interfaces leave less than the 12 B gap that frames are counted with here";
                unruled.push((
                    format!("{kind} \"{}\"", node.name),
                    message.to_owned(),
                    "leave interframe-gap out",
                ));
            }
            for ((what, limit, cure), ports) in self.unruled(index) {
                let whose = match &ports[..] {
                    [] => "its ports have".to_owned(),
                    [port] => format!("its port {port} has"),
                    several => {
                        let named: Vec<String> = several.iter().map(ToString::to_string).collect();
                        format!("its ports {} have", named.join(", "))
                    }
                };
                let message = format!("{whose} {what}, which no curve here has");
                self.found.push(problem(0, &format!("{kind} \"{}\"", node.name), &message, limit, cure));
            }
        }
        for (element, message, cure) in said {
            self.say(&element, message, cure);
        }
        for (element, message, cure) in unruled {
            self.say(&element, &message, cure);
        }
    }

    pub(super) fn make_servers(&mut self) {
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
                    class_names: self.class_names(from),
                    gate_times: self.gate_times(from),
                    cuts_through: self.cuts_through(from.node),
                    fragments: self.fragments(from),
                    buffers: BTreeMap::new(),
                    line: 0,
                });
            }
        }
    }

    fn cuts_through(&self, node: NodeIndex) -> bool {
        let kind = &self.network.nodes[usize::from(node)].kind;
        matches!(kind, NodeKind::Switch(switch) if switch.forwarding_mode == ForwardingMode::CutThrough)
    }

    /// A cut-through switch orders frames by their headers: others whose end comes later by up to the longest frame may
    /// precede.
    fn cut_through_latency(&self, from: Attachment, _to: Attachment) -> Rational {
        if !self.cuts_through(from.node) {
            return Rational::ZERO;
        }
        let at = |link: &&wg_plan::Link| link.ends.iter().any(|end| end.node == from.node);
        let slowest = self.network.links.iter().filter(at).map(|link| link.rate.bits_per_second()).min();
        let frames = self.run.flows.iter().map(longest_bits);
        let others = self.run.injects.iter().map(|inject| wire_bits(Protocol::Udp, None, inject.payload));
        let longest = frames.chain(self.run.sends.iter().map(|send| self.bits_of(send))).chain(others).max();
        Rational::new(i128::from(longest.unwrap_or(0)), i128::from(slowest.unwrap_or(1)))
    }

    pub(super) fn host(&self, node: NodeIndex) -> HostModel {
        match &self.network.nodes[usize::from(node)].kind {
            NodeKind::EndSystem { host } => host.clone(),
            _ => HostModel::ideal(),
        }
    }

    /// Processor time of a host for all frames that are due at once: a frame may wait for the others. Frames that are
    /// due between two ticks of its clock, or before the epoch by it, count as due at once.
    pub(super) fn count_processors(&mut self) {
        for send in &self.run.sends {
            let Some(flow) = self.run.flows.iter().find(|flow| flow.id == send.flow) else { continue };
            let frames = match send.pattern {
                Pattern::Bursts { size, .. } => size,
                _ => 1,
            };
            let cost = self.transmit_cost(flow.from, flow.protocol, send.payload);
            let mut frames = Rational::integer(i128::from(frames));
            let period = seconds(send.period);
            if period.signum() > 0 {
                let behind = &self.coarse(flow.from) + &self.behind(flow.from, send);
                frames = &frames + &(&(&frames / &period) * &(&behind * &self.fast(flow.from)));
            }
            let whole = &cost * &frames;
            let entry = self.busy.entry(flow.from).or_default();
            *entry = &*entry + &whole;
        }
    }

    pub(super) fn transmit_cost(&self, node: NodeIndex, protocol: Protocol, payload: u32) -> Rational {
        let host = self.host(node);
        let stack = host.stacks.iter().find(|stack| stack.protocol == protocol);
        let cost = stack.map_or(host.transmit, |stack| stack.costs.transmit);
        &seconds(cost.fixed) + &(&seconds(cost.per_byte) * &Rational::integer(i128::from(payload)))
    }

    /// The processor of a host is a server too: it reads frame by frame, after an interrupt and its wake-up.
    pub(super) fn make_readers(&mut self) {
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

    /// Greatest time from a frame at an interface to the thread that reads it.
    pub(super) fn told(&self, node: NodeIndex) -> Rational {
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
            self.held_up(node, false),
            self.read_cost(node).1,
        ]
        .iter()
        .fold(Rational::ZERO, |sum, part| &sum + part)
    }

    pub(super) fn receive_cost(&self, node: NodeIndex, protocol: Protocol, payload: u32) -> Rational {
        let host = self.host(node);
        let stack = host.stacks.iter().find(|stack| stack.protocol == protocol);
        let cost = stack.map_or(host.receive, |stack| stack.costs.receive);
        let bytes = Rational::integer(i128::from(payload));
        let of = |cost: wg_plan::Cost| &seconds(cost.fixed) + &(&seconds(cost.per_byte) * &bytes);
        &of(cost) + &host.card_read.map_or(Rational::ZERO, of)
    }

    /// Line time that windows of time-triggered frames take from all others. Frames that would not end before a window
    /// wait (timely block), or are cut off and sent again (preemption): either way a window costs more than itself. It
    /// opens and closes by the clock of its node, at its ticks.
    ///
    /// The length of that frame depends on the class ([`Reserved::of`]), the meaning of a window for a rule on the rule
    /// (`classes.rs`).
    pub(super) fn reserve(&mut self) {
        let ports: Vec<(Attachment, usize)> =
            self.servers.iter().map(|(port, server)| (*port, *server)).collect();
        for (port, server) in ports {
            let rate = self.model.servers[server].service[0].rate.clone();
            // A frame that is sent in fragments may be cut for it.
            let in_fragments = self.model.servers[server].fragments.is_some();
            let cut = if in_fragments { Rational::integer(CUT) } else { Rational::ZERO };
            let (fast, ticks) = (self.fast(port.node), self.coarse(port.node));
            let slow = &Rational::integer(2) - &fast;
            let mut windows = Vec::new();
            for schedule in self.run.flows.iter().filter_map(|flow| flow.schedule.as_ref()) {
                for window in schedule.windows.iter().filter(|window| window.at == port) {
                    let frame = Rational::integer(8 * (i128::from(schedule.longest_frame) + AROUND_FRAME));
                    let open = &(&(&seconds(window.length) / &slow) + &ticks) * &rate;
                    windows.push((&open.max(frame) + &cut, &seconds(schedule.period) / &fast));
                }
            }
            let guarded = self.integration(port) != Integration::Shuffling;
            let reserved = (!windows.is_empty()).then_some(Reserved { windows, guarded });
            self.model.servers[server].reserved = reserved;
        }
    }

    /// Method that keeps other frames out of the windows of a port.
    pub(super) fn integration(&self, port: Attachment) -> Integration {
        match &self.network.nodes[usize::from(port.node)].kind {
            NodeKind::Switch(switch) => switch.integration,
            _ => Integration::TimelyBlock,
        }
    }

    /// Bits of the longest frame beside windows that leaves by a port.
    pub(super) fn longest_other(&self, port: Attachment) -> Rational {
        let leaves = |flow: &&wg_plan::Flow| {
            let returns = self.run.relays.iter().any(|relay| relay.flow == flow.id);
            let mut hops = flow.routes.iter().flat_map(|route| &route.hops);
            flow.protocol != Protocol::Tt && hops.any(|hop| hop.from == port || returns && hop.to == port)
        };
        let others = self.run.flows.iter().filter(leaves);
        let sent = others.flat_map(|flow| self.run.sends.iter().filter(|send| send.flow == flow.id));
        let loads =
            self.run.injects.iter().filter(|inject| inject.route.hops.iter().any(|hop| hop.from == port));
        let loads = loads.map(|inject| wire_bits(Protocol::Udp, None, inject.payload));
        let most = sent.map(|send| self.bits_of(send)).chain(loads).max().unwrap_or(0);
        let own = match &self.network.nodes[usize::from(port.node)].kind {
            NodeKind::Switch(switch) => switch.own_frames.iter().map(|frames| frames.length).max(),
            _ => None,
        };
        let own = own.map_or(0, |length| 8 * (i128::from(length) + AROUND_FRAME));
        Rational::integer(own.max(i128::from(most)))
    }

    /// Maximum rate of a node's clock above true time: temperature changes add up, and so does wander, for which the
    /// simulator draws at most six standard deviations each second.
    pub(super) fn fast(&self, node: NodeIndex) -> Rational {
        let clock = &self.network.nodes[usize::from(node)].clock;
        let (mut drift, mut most) = (clock.drift_ppb, clock.drift_ppb.abs());
        for step in &clock.temperature {
            drift = drift.saturating_add(step.drift_ppb);
            most = most.max(drift.abs());
        }
        let length = self.run.warm_up + self.run.duration + self.run.drain;
        let seconds = 1 + i128::from(length.as_picos()) / PICOS_PER_SECOND;
        let wandered = MOST_DEVIATIONS * i128::from(clock.wander_ppb) * seconds;
        Rational::new(1_000_000_000 + i128::from(most) + wandered, 1_000_000_000)
    }

    /// Greatest lateness due to the granularity of a node's clock: all that is due between two ticks comes at once.
    pub(super) fn coarse(&self, node: NodeIndex) -> Rational {
        let granularity = self.network.nodes[usize::from(node)].clock.granularity;
        let slow = &Rational::integer(2) - &self.fast(node);
        if granularity <= Span::from_picos(1) || slow.signum() <= 0 {
            return Rational::ZERO;
        }
        &seconds(granularity) / &slow
    }

    /// Greatest lateness at the epoch of a sender whose clock is ahead then: what was due by that clock comes at once.
    pub(super) fn behind(&self, node: NodeIndex, send: &wg_plan::Send) -> Rational {
        let before = i64::from(send.warm_up_count).saturating_mul(send.period.as_picos());
        self.ahead(node, (self.run.warm_up + send.offset).as_picos().saturating_sub(before))
    }

    /// Time by which a node's clock is beyond an instant at the epoch.
    pub(super) fn ahead(&self, node: NodeIndex, due: i64) -> Rational {
        let ahead = self.network.nodes[usize::from(node)].clock.offset.as_picos().saturating_sub(due.max(0));
        seconds(Span::from_picos(ahead.max(0)))
    }

    /// Greatest delay by events of a host for a sending or receiving thread.
    pub(super) fn held_up(&self, node: NodeIndex, is_sending: bool) -> Rational {
        let other = if is_sending { HeldUp::Receive } else { HeldUp::Send };
        let events =
            self.network.nodes[usize::from(node)].events.iter().filter(|event| event.threads != other);
        events.fold(Rational::ZERO, |sum, event| {
            let ramp = event.ramp_to.map_or(Rational::ZERO, seconds);
            &sum + (&most(&event.latency)).max(&ramp)
        })
    }

    /// Least and greatest time that an application takes to read its clock.
    pub(super) fn read_cost(&self, node: NodeIndex) -> (Rational, Rational) {
        let timestamps = self.network.nodes[usize::from(node)].timestamps.as_deref();
        timestamps.map_or_else(Default::default, |errors| (least(&errors.read_cost), most(&errors.read_cost)))
    }

    /// Variation of the instant at which an application is woken to send, and has read its clock. The ticks of that
    /// clock add to it ([`Self::coarse`]).
    pub(super) fn sending_varies(&self, node: NodeIndex) -> Rational {
        let host = self.host(node);
        let (quickest, slowest) = self.read_cost(node);
        let woken = &most(&host.send_wake_up) - &least(&host.send_wake_up);
        &(&woken + &self.held_up(node, true)) + &(&slowest - &quickest)
    }

    /// Jitter by other virtual links of an end system at its port, with 40 us of its own (ARINC 664 part 7).
    pub(super) fn jitters(&mut self) {
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
        let most = Rational::new(500, 1_000_000);
        let (within, beyond): (Vec<_>, Vec<_>) = sums.into_iter().partition(|(_, jitter)| *jitter <= most);
        for (whose, said) in [(within, "within"), (beyond, "beyond")] {
            let Some((worst, jitter)) = whose.iter().max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(&a.0))) else {
                continue;
            };
            let worst = self.name(*worst);
            let (them, of) = if whose.len() == 1 {
                (format!("\"{worst}\""), String::new())
            } else {
                (format!("{} end systems", whose.len()), format!(" (\"{worst}\")"))
            };
            let text = format!(
                "virtual links leave {them} with a jitter of at most {:.3} µs{of}, {said} the 500 µs of ARINC 664 part 7",
                jitter.to_f64_up() * 1e6
            );
            self.model.notes.push(text);
        }
    }
}
