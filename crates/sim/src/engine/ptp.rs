//! PTP clocks and their messages in the simulation.

use std::panic::{AssertUnwindSafe, catch_unwind};

use statime::config::{AcceptAnyMaster, DelayMechanism, PortConfig, PtpMinorVersion};
use statime::filters::KalmanConfiguration;
use statime::time::{Interval, Time};
use wg_core::Deadline;
use wg_core::clock::LocalClock;
use wg_core::frame::{Frame, NetworkId};
use wg_frame::time::{RunTime, Span};
use wg_plan::random::{Purpose, Stream};
use wg_plan::{Network, NodeIndex, PtpDelay, PtpProfile, PtpRole, PtpServo};
use wg_record::{Point, TruthKind};

use super::Engine;
use crate::error::SimError;
use crate::event_queue::Class;
use crate::message::Carries;
use crate::ptp::instance::{Chance, Instance, PortPlan, ServoConfig, Stamp, Wanted, ptp_time, state_name};
use crate::ptp::pi::PiConfig;
use crate::ptp::{Part, Passing, Residence, ToSend, correction, is_event, passing};
use crate::report::{PtpClockReport, PtpDomainReport};
use crate::sink::Sink;
use crate::world::{CoreIndex, InFlight};

/// Gain of the proportional filter, as in the programs of `statime`.
const BASIC_GAIN: f64 = 0.25;

impl<'a, S: Sink> Engine<'a, S> {
    pub(super) fn begin_ptp(&mut self) {
        for number in 0..self.ptp.nodes.len() {
            self.queue.set(Class::Ptp, number, Deadline::at(RunTime::ZERO));
        }
    }

    /// A clock is powered up, or is due.
    pub(super) fn ptp_due(&mut self, number: usize) -> Result<(), SimError> {
        if let Some(node) = self.ptp.failed {
            return Err(SimError::PtpStack(node));
        }
        let own = &self.ptp.nodes[number];
        if own.instance.is_none() {
            if own.powered <= self.now {
                self.power_ptp(number);
            }
        } else {
            let elapsed = self.lasted(own.node);
            self.watch_offset(number);
            let now = self.now;
            self.in_stack(number, |instance| {
                instance.handle_stamps(now, elapsed);
                instance.handle_timers(now, elapsed);
            });
        }
        self.settle_ptp(number);
        Ok(())
    }

    /// Lets the stack of a clock act. A panic in it ends the run, with an error.
    fn in_stack(&mut self, number: usize, act: impl FnOnce(&mut Instance<'a>)) {
        let own = &mut self.ptp.nodes[number];
        let Some(instance) = &mut own.instance else { return };
        if catch_unwind(AssertUnwindSafe(|| act(instance))).is_err() {
            own.instance = None;
            self.ptp.failed = Some(own.node);
        }
    }

    fn power_ptp(&mut self, number: usize) {
        let own = &self.ptp.nodes[number];
        let (node, part) = (own.node, own.part);
        let domain = &self.ptp.domains[own.domain];
        let plan = &domain.plan;
        let role = plan.clocks.iter().find(|clock| clock.node == node).map(|clock| clock.role);
        let interval = |log| Interval::from_log_2(log);
        let delay_interval = interval(plan.log_delay_interval);
        let is_peer = plan.delay == PtpDelay::P2p;
        let config = || PortConfig {
            acceptable_master_list: AcceptAnyMaster,
            delay_mechanism: if is_peer {
                DelayMechanism::P2P { interval: delay_interval }
            } else {
                DelayMechanism::E2E { interval: delay_interval }
            },
            announce_interval: interval(plan.log_announce_interval),
            announce_receipt_timeout: plan.announce_timeout,
            sync_interval: interval(plan.log_sync_interval),
            master_only: role == Some(PtpRole::GrandmasterOnly),
            delay_asymmetry: statime::time::Duration::ZERO,
            minor_ptp_version: PtpMinorVersion::One,
        };
        let servo = match plan.servo {
            PtpServo::Kalman => ServoConfig::Kalman(KalmanConfiguration::default()),
            PtpServo::Basic => ServoConfig::Basic(BASIC_GAIN),
            PtpServo::Pi => ServoConfig::Pi(PiConfig::new(plan.log_sync_interval, &plan.pi)),
        };
        let clock = self.world.nodes[usize::from(node)].shared_clock().filter(|_| part != Part::Transparent);
        let ports = domain.ports.get(&node).map_or(&[][..], Vec::as_slice);
        let seed = self.seed;
        let ports = (0_u32..).zip(ports).map(|(place, index)| PortPlan {
            index: *index,
            config: config(),
            servo: servo.clone(),
            clock: clock.clone(),
            chance: Chance(Stream::new(seed, Purpose::Ptp, 64 * u32::from(node) + place)),
            is_peer,
        });
        let (ports, elapsed): (Vec<_>, _) = (ports.collect(), self.lasted(node));
        let own = &mut self.ptp.nodes[number];
        let Some(shared) = own.shared.pop_front() else { return };
        own.states = vec![0; ports.len()];
        own.instance = Some(Instance::new(shared, ports, self.now, elapsed));
    }

    /// Elapsed time of the run by the oscillator of `node`.
    fn lasted(&self, node: NodeIndex) -> Span {
        self.counted(node, self.now) - wg_core::clock::LocalTime::ZERO
    }

    /// Carries out the actions of a clock, and plans its next one.
    fn settle_ptp(&mut self, number: usize) {
        let Some(instance) = &mut self.ptp.nodes[number].instance else {
            self.plan_ptp(number);
            return;
        };
        let wanted = instance.wanted();
        let is_changed = instance.control.is_changed.replace(false);
        self.ptp.nodes[number].refused += instance_refused(&mut self.ptp.nodes[number].instance);
        self.tell_ptp(number);
        let (node, domain) = (self.ptp.nodes[number].node, self.ptp.nodes[number].domain);
        if is_changed {
            if let Some(clock) = &mut self.world.nodes[usize::from(node)].clock {
                clock.was_changed(self.now);
            }
            self.clock_changed(node);
            self.watch_offset(number);
        }
        let is_gptp = self.ptp.domains[domain].plan.profile == PtpProfile::Gptp;
        for Wanted { port, bytes, link_local, context } in wanted {
            let link_local = link_local || is_gptp;
            let to_send = ToSend { bytes: &bytes, link_local, port, context, residence: None };
            self.send_ptp(node, domain, to_send);
        }
        self.plan_ptp(number);
    }

    fn plan_ptp(&mut self, number: usize) {
        let own = &self.ptp.nodes[number];
        let due = match &own.instance {
            _ if self.ptp.failed.is_some() => Deadline::at(self.now),
            None if own.shared.is_empty() => Deadline::NEVER,
            None => Deadline::at(own.powered),
            Some(instance) => {
                let timer = instance.next_timer();
                let clock = self.world.nodes[usize::from(own.node)].clock.as_ref();
                let timer = match clock {
                    Some(clock) => clock.when_elapsed(timer, self.now),
                    None => Some((RunTime::ZERO + timer).max(self.now)),
                };
                let stamp = instance.stamps.front().map_or(Deadline::NEVER, |stamp| Deadline::at(stamp.at));
                Deadline::from(timer).min(stamp)
            }
        };
        self.queue.set(Class::Ptp, number, due);
    }

    /// The clock of `node` was changed.
    pub(super) fn plan_ptp_of(&mut self, node: NodeIndex) {
        for number in self.ptp.of(node) {
            self.plan_ptp(number);
        }
    }

    /// A switch restarts: its PTP instances are without power until `back_at`.
    pub(super) fn ptp_down(&mut self, node: NodeIndex, back_at: RunTime) {
        for number in self.ptp.of(node) {
            let own = &mut self.ptp.nodes[number];
            (own.instance, own.powered) = (None, back_at);
            self.tell_ptp(number);
            self.plan_ptp(number);
        }
    }

    /// Records changes: states of ports, the grandmaster.
    fn tell_ptp(&mut self, number: usize) {
        let own = &self.ptp.nodes[number];
        let (node, part) = (own.node, own.part);
        let indices = self.ptp.domains[own.domain].ports.get(&node).cloned().unwrap_or_default();
        for (place, index) in indices.into_iter().enumerate() {
            let own = &mut self.ptp.nodes[number];
            // DISABLED without power (table 20).
            let state = own.instance.as_ref().map_or(3, |instance| instance.state(place));
            let Some(told) = own.states.get_mut(place).filter(|told| **told != state) else { continue };
            *told = state;
            let port = self.port_number(node, index);
            self.tell(TruthKind::PtpState, node, port, i64::from(state));
        }
        if part == Part::Transparent {
            return;
        }
        let identity = self.ptp.nodes[number].instance.as_ref().map(Instance::grandmaster);
        let of = |identity: [u8; 8]| {
            let addresses = self.world.addresses.iter();
            addresses.zip(0..).find(|(address, _)| address.0[..] == identity[..6]).map(|(_, node)| node)
        };
        let grandmaster: Option<NodeIndex> = identity.and_then(of);
        if self.ptp.nodes[number].grandmaster != grandmaster {
            self.ptp.nodes[number].grandmaster = grandmaster;
            self.tell(TruthKind::PtpGrandmaster, node, 0, grandmaster.map_or(-1, i64::from));
        }
    }

    fn port_number(&self, node: NodeIndex, index: usize) -> u16 {
        match self.world.nodes[usize::from(node)].place {
            CoreIndex::Host(at) => self.world.hosts[at as usize].ports[index].number,
            CoreIndex::Switch(at) => self.world.switches[at as usize].ports[index].number,
            CoreIndex::Hub(_) => 0,
        }
    }

    // -- messages ---------------------------------------------------------------------------------------------

    fn send_ptp(&mut self, node: NodeIndex, domain: usize, message: ToSend<'_>) {
        let (source, port) = (self.world.addresses[usize::from(node)], message.port);
        let priority = self.ptp.domains[domain].plan.priority;
        let more = self.queue.has_input_at(self.now);
        match self.world.nodes[usize::from(node)].place {
            CoreIndex::Switch(at) => {
                let frame = self.ptp.messages.make(message, source, NetworkId::A, priority);
                self.world.switches[at as usize].core.handle_own(self.now, port, frame, more);
                self.drain_switch(at as usize);
            }
            CoreIndex::Host(at) => {
                let network = self.world.hosts[at as usize].core.network(port);
                let frame = self.ptp.messages.make(message, source, network, priority);
                self.world.hosts[at as usize].core.handle_generated(self.now, frame, more);
                self.drain_host(at as usize);
            }
            CoreIndex::Hub(_) => {}
        }
    }

    /// Timestamp that the interface of `node` takes at `time`.
    fn stamp(&mut self, node: NodeIndex, point: Point, time: RunTime) -> Time {
        let state = &mut self.world.nodes[usize::from(node)];
        let shown = state.timestamps.as_mut().map_or(time, |errors| errors.shown(point, time));
        ptp_time(state.shared_clock().read(shown))
    }

    /// The channel out of a port.
    fn out_of(&self, node: NodeIndex, port: usize) -> usize {
        match self.world.nodes[usize::from(node)].place {
            CoreIndex::Host(at) => self.world.hosts[at as usize].ports[port].channel(),
            CoreIndex::Switch(at) => self.world.switches[at as usize].ports[port].channel(),
            CoreIndex::Hub(_) => 0,
        }
    }

    /// A message leaves `node` now.
    pub(super) fn ptp_leaves(&mut self, node: NodeIndex, frame: &Frame) {
        let Some(port) = self.ptp.messages.port(frame) else { return };
        let channel = &self.world.channels[self.out_of(node, port)];
        let wire = self.now + channel.lead;
        let through = wire + channel.line.transmission(frame.length);
        self.ptp.messages.correct(frame, self.counted(node, wire));
        let Some(context) = self.ptp.messages.take_context(frame) else { return };
        let time = self.stamp(node, Point::WireSend, wire);
        for number in self.ptp.of(node) {
            let Some(instance) = self.ptp.nodes[number].instance.as_mut() else { continue };
            let Some(place) = instance.ports.iter().position(|own| own.index == port) else { continue };
            let at = instance.stamps.iter().position(|stamp| stamp.at > through);
            let at = at.unwrap_or(instance.stamps.len());
            instance
                .stamps
                .insert(at, Stamp { at: through, turn: frame.sequence, port: place, context, time });
            self.plan_ptp(number);
            return;
        }
    }

    /// A port cut off a message it had begun, and will send it again.
    #[cold]
    pub(super) fn ptp_cut_short(&mut self, node: NodeIndex, frame: &Frame) {
        let is_message = frame.message().ptp_place().is_some();
        for own in self.ptp.nodes.iter_mut().filter(|own| is_message && own.node == node) {
            let Some(instance) = &mut own.instance else { continue };
            let Some(at) = instance.stamps.iter().position(|stamp| stamp.turn == frame.sequence) else {
                continue;
            };
            if let Some(stamp) = instance.stamps.remove(at) {
                self.ptp.messages.put_back(frame, stamp.context);
            }
        }
    }

    /// A message came to `node` over link `channel`.
    pub(super) fn ptp_into_node(
        &mut self,
        node: NodeIndex,
        port: usize,
        channel: usize,
        in_flight: &InFlight,
    ) {
        let &InFlight { ref frame, complete, .. } = in_flight;
        let Some(bytes) = self.ptp.messages.read(frame) else { return };
        // The instant of a message is that of its start frame delimiter, at both ends (7.3.4.1).
        let first_bit = complete - self.world.channels[channel].line.transmission(frame.length);
        let domains = self.ptp.domains.len();
        let own = self.ptp.clock_of.get(&node).copied();
        let transparent: Vec<usize> =
            (0..domains).filter_map(|domain| self.ptp.transparent_of.get(&(domain, node)).copied()).collect();
        if own.is_some() || !transparent.is_empty() {
            let stamp = is_event(&bytes).then(|| self.stamp(node, Point::WireReceive, first_bit));
            own.into_iter().for_each(|number| self.ptp_into_clock(number, port, &bytes, stamp));
            for number in transparent.into_iter().filter(|_| !is_sync_or_announce(&bytes)) {
                self.ptp_into_clock(number, port, &bytes, stamp);
            }
        }
        for domain in 0..domains {
            self.pass_on(domain, node, port, &bytes, first_bit);
        }
    }

    fn ptp_into_clock(&mut self, number: usize, port: usize, bytes: &[u8], stamp: Option<Time>) {
        let elapsed = self.lasted(self.ptp.nodes[number].node);
        self.watch_offset(number);
        let Some(instance) = &self.ptp.nodes[number].instance else { return };
        let Some(place) = instance.ports.iter().position(|own| own.index == port) else { return };
        let now = self.now;
        self.in_stack(number, |instance| instance.handle_message((now, elapsed), place, bytes, stamp));
        self.settle_ptp(number);
    }

    /// A switch passes a message of `domain` on.
    fn pass_on(&mut self, domain: usize, node: NodeIndex, from: usize, bytes: &[u8], first_bit: RunTime) {
        let state = &self.ptp.domains[domain];
        let plan = &state.plan;
        let of = (bytes.get(4).copied(), bytes.first().map(|first| first >> 4));
        let is_gptp = plan.profile == PtpProfile::Gptp;
        let is_switch = matches!(self.world.nodes[usize::from(node)].place, CoreIndex::Switch(_));
        let is_clock = self.ptp.clock_of.contains_key(&node);
        if !is_switch || is_clock || of != (Some(plan.number), Some(u8::from(is_gptp))) || is_gptp {
            return;
        }
        let Some(ports) = state.ports.get(&node).filter(|ports| ports.contains(&from)).cloned() else {
            return;
        };
        let how = passing(bytes, plan.delay, plan.transparent.contains(&node));
        let residence = match how {
            Passing::Ends => return,
            Passing::AsItIs => None,
            Passing::Corrected => {
                let peer = self.ptp.transparent_of.get(&(domain, node));
                let instance = peer.and_then(|number| self.ptp.nodes[*number].instance.as_ref());
                let link = instance.map_or(0, |instance| instance.link_delay(from));
                let correction = correction(bytes).saturating_add(link);
                Some(Residence { since: self.counted(node, first_bit), correction })
            }
        };
        for port in ports.into_iter().filter(|port| *port != from) {
            let message = ToSend { bytes, link_local: false, port, context: None, residence };
            self.send_ptp(node, domain, message);
        }
    }

    // -- how far clocks are apart -----------------------------------------------------------------------------

    /// A clock's reading minus that of the grandmaster of its domain.
    fn offset_from_grandmaster(&self, number: usize) -> Option<Span> {
        let own = &self.ptp.nodes[number];
        let grandmaster = self.ptp.domains[own.domain].grandmaster?;
        let shows = |node: NodeIndex| self.world.nodes[usize::from(node)].read(self.now);
        let follows = own.node == grandmaster
            || own.grandmaster == Some(grandmaster)
                && own.instance.as_ref().is_some_and(Instance::is_steering);
        follows.then(|| shows(own.node) - shows(grandmaster))
    }

    /// Samples the offset of one clock: before and after every possible change of it.
    fn watch_offset(&mut self, number: usize) {
        if self.ptp.nodes[number].part == Part::Transparent {
            return;
        }
        let offset =
            self.offset_from_grandmaster(number).map(|offset| Span::from_picos(offset.as_picos().abs()));
        self.watch_error(number);
        let domain = &self.ptp.domains[self.ptp.nodes[number].domain];
        let (limit, hold) = (domain.plan.max_offset, domain.hold);
        let own = &mut self.ptp.nodes[number];
        let within = offset.is_some_and(|offset| offset <= limit);
        if own.is_synchronised {
            own.most = own.most.max(offset);
            if !within {
                own.losses += 1;
                (own.is_synchronised, own.within_since) = (false, None);
            }
        } else if !within {
            own.within_since = None;
        } else {
            let since = *own.within_since.get_or_insert(self.now);
            if self.now - since >= hold {
                own.is_synchronised = true;
                own.most = own.most.max(offset);
                own.synchronised_at.get_or_insert(since);
            }
        }
    }

    /// Samples the error of a clock, which runs evenly between two samples: its extremes are at samples.
    fn watch_error(&mut self, number: usize) {
        if self.now < self.measured_from || self.now > self.world.measured_until {
            return;
        }
        let own = &mut self.ptp.nodes[number];
        let of = |node: NodeIndex| {
            let clock = self.world.nodes[usize::from(node)].clock.as_ref();
            clock.map_or(0, |clock| clock.offset_ps(self.now))
        };
        let error = of(own.node);
        let apart = error - self.ptp.domains[own.domain].grandmaster.map_or(0, of);
        own.error = own.error.max(Span::from_picos(error.abs()));
        own.apart = own.apart.max(Span::from_picos(apart.abs()));
    }

    /// The clock of `node` is about to change, or has just changed.
    pub(super) fn ptp_clock_changes(&mut self, node: NodeIndex) {
        let Some(number) = self.ptp.clock_of.get(&node).copied() else { return };
        let domain = &self.ptp.domains[self.ptp.nodes[number].domain];
        if domain.grandmaster == Some(node) {
            domain.clocks.clone().into_iter().for_each(|clock| self.watch_offset(clock));
        } else {
            self.watch_offset(number);
        }
    }

    /// Compares all clocks of the domain whose first clock `node` is.
    pub(super) fn compare_ptp(&mut self, node: NodeIndex) {
        let Some(&first) = self.ptp.clock_of.get(&node) else { return };
        let number = self.ptp.nodes[first].domain;
        if self.ptp.domains[number].clocks.first() != Some(&first) {
            return;
        }
        self.choose_reference(number);
        let clocks = self.ptp.domains[number].clocks.clone();
        clocks.iter().for_each(|clock| self.watch_offset(*clock));
        let nodes = || clocks.iter().map(|clock| &self.ptp.nodes[*clock]);
        let all = nodes().all(|own| own.is_synchronised);
        let since = nodes().filter_map(|own| own.within_since).max();
        let domain = &self.ptp.domains[number];
        let synchronised_at = domain.synchronised_at.or(since.filter(|_| all));
        let shown = nodes().filter(|own| own.is_synchronised);
        let shown = shown.map(|own| self.world.nodes[usize::from(own.node)].read(self.now));
        let (least, greatest) = (shown.clone().min(), shown.max());
        let spread = least.zip(greatest).map(|(least, greatest)| greatest - least);
        let domain = &mut self.ptp.domains[number];
        domain.synchronised_at = synchronised_at;
        if synchronised_at.is_some() {
            domain.spread = domain.spread.max(spread);
        }
    }

    /// Chooses the reference of a domain: the grandmaster that most clocks follow, the first of several.
    fn choose_reference(&mut self, number: usize) {
        let domain = &self.ptp.domains[number];
        let clocks = || domain.clocks.iter().map(|clock| &self.ptp.nodes[*clock]);
        let mut followers: std::collections::BTreeMap<NodeIndex, usize> = [].into();
        for own in clocks().filter(|own| own.instance.as_ref().is_some_and(Instance::is_steering)) {
            if let Some(grandmaster) = own.grandmaster {
                *followers.entry(grandmaster).or_default() += 1;
            }
        }
        let masters = clocks().filter(|own| {
            own.instance.as_ref().is_some_and(|instance| instance.is_master() && !instance.is_steering())
        });
        let most = masters
            .filter_map(|own| Some((*followers.get(&own.node)?, std::cmp::Reverse(own.node))))
            .max()
            .map(|(_, node)| node.0);
        let domain = &mut self.ptp.domains[number];
        if let Some(now) = most
            && domain.grandmaster != Some(now)
        {
            domain.changes += u64::from(domain.synchronised_at.is_some());
            domain.grandmaster = Some(now);
        }
    }

    pub(super) fn ptp_domain(&self, number: usize, network: &Network) -> PtpDomainReport {
        let domain = &self.ptp.domains[number];
        let named = |node: NodeIndex| network.nodes[usize::from(node)].name.clone();
        let ps = |at: RunTime| (at - RunTime::ZERO).as_picos();
        let own = self.ptp.nodes.iter().filter(|own| own.domain == number);
        let clocks = own.map(|own| {
            let ports = domain.ports.get(&own.node).map_or(&[][..], Vec::as_slice);
            let states = ports.iter().zip(&own.states);
            let report = PtpClockReport {
                part: own.part.name().to_owned(),
                states: states
                    .map(|(index, state)| (self.port_number(own.node, *index), state_name(*state).to_owned()))
                    .collect(),
                grandmaster: own.grandmaster.map(named),
                synchronised: own.is_synchronised,
                synchronised_at_ps: own.synchronised_at.map(ps),
                losses: own.losses,
                offset_ps: own.most.map(Span::as_picos),
                error_ps: own.error.as_picos(),
                apart_ps: own.apart.as_picos(),
                refused: own.refused,
            };
            (named(own.node), report)
        });
        PtpDomainReport {
            number: domain.plan.number,
            max_offset_ps: domain.plan.max_offset.as_picos(),
            grandmaster: domain.grandmaster.map(named),
            grandmaster_changes: domain.changes,
            synchronised_at_ps: domain.synchronised_at.map(ps),
            precision_ps: domain.spread.map(Span::as_picos),
            clocks: clocks.collect(),
        }
    }
}

fn instance_refused(instance: &mut Option<Instance<'_>>) -> u64 {
    instance.as_ref().map_or(0, |instance| instance.control.refused.replace(0))
}

/// Whether a transparent clock ignores the message, since it follows no master.
fn is_sync_or_announce(message: &[u8]) -> bool {
    message.first().is_none_or(|first| matches!(first & 0xF, 0x0 | 0x1 | 0x8 | 0x9 | 0xB))
}
