//! AS6802 devices in the simulation.

use wg_core::Deadline;
use wg_core::as6802::{CompressionMaster, EndSystem, Output, Role, State};
use wg_core::clock::LocalTime;
use wg_core::frame::Frame;
use wg_frame::time::{RunTime, Span};
use wg_plan::NodeIndex;
use wg_record::TruthKind;

use super::Engine;
use crate::clusters::{Part, SyncCore, Way};
use crate::error::SimError;
use crate::event_queue::Class;
use crate::message::Carries;
use crate::sink::Sink;
use crate::world::{CoreIndex, InFlight};

/// Value in records instead of a state: no power.
const NO_POWER: i64 = -1;

impl<S: Sink> Engine<'_, S> {
    /// At the start no device has power, and none sends by schedule.
    pub(super) fn begin_clusters(&mut self) {
        for number in 0..self.world.synchronisers.len() {
            let device = &self.world.synchronisers[number];
            let (node, powered) = (device.node, device.powered);
            self.queue.set(Class::Synchronise, number, Deadline::at(powered));
            self.set_synchronised(node, false);
        }
    }

    /// A device is powered up, or is due.
    pub(super) fn synchronise(&mut self, number: usize) -> Result<(), SimError> {
        let node = self.world.synchronisers[number].node;
        let now = self.counted(node, self.now);
        let parameters = self.world.clusters[self.world.synchronisers[number].cluster].parameters;
        let device = &mut self.world.synchronisers[number];
        match &mut device.core {
            Some(core) => core.handle_deadline(now),
            None if device.powered > self.now => {}
            None => {
                let end = |role| SyncCore::End(EndSystem::new(parameters, role, device.behaviour, now));
                device.core = Some(match device.part {
                    Part::Master(bit) => end(Role::Master(bit)),
                    Part::Client => end(Role::Client),
                    Part::CompressionMaster(_) => {
                        SyncCore::Compression(CompressionMaster::new(parameters, now))
                    }
                });
                self.tell(TruthKind::SyncState, node, 0, i64::from(State::Integrate.code()));
            }
        }
        self.drain_synchroniser(number)
    }

    /// Count of the oscillator of `node` at `time`.
    pub(super) fn counted(&self, node: NodeIndex, time: RunTime) -> LocalTime {
        let clock = self.world.nodes[usize::from(node)].clock.as_ref();
        LocalTime::ZERO + clock.map_or(time - RunTime::ZERO, |clock| clock.elapsed(time))
    }

    /// Plans the next deadline of a device, by its clock as it is now.
    fn plan_device(&mut self, number: usize) {
        let device = &self.world.synchronisers[number];
        let due = match &device.core {
            None => Deadline::at(device.powered),
            Some(core) if core.next_deadline() == LocalTime::from_picos(i64::MAX) => Deadline::NEVER,
            Some(core) => {
                let due = core.next_deadline() - LocalTime::ZERO;
                let clock = self.world.nodes[usize::from(device.node)].clock.as_ref();
                clock.and_then(|clock| clock.when_elapsed(due, self.now)).into()
            }
        };
        self.queue.set(Class::Synchronise, number, due);
    }

    /// The clock of `node` was changed.
    pub(super) fn plan_synchroniser(&mut self, node: NodeIndex) {
        if let Some(number) = self.synchroniser_of(node) {
            self.plan_device(number);
        }
    }

    fn synchroniser_of(&self, node: NodeIndex) -> Option<usize> {
        self.world.synchroniser_of.get(&node).copied()
    }

    /// A switch restarts: its device is without power until `back_at`.
    pub(super) fn synchroniser_down(&mut self, node: NodeIndex, back_at: RunTime) {
        let Some(number) = self.synchroniser_of(node) else { return };
        let device = &mut self.world.synchronisers[number];
        (device.core, device.powered, device.members) = (None, back_at, 0);
        self.enter_state(number, State::Integrate);
        self.tell(TruthKind::SyncState, node, 0, NO_POWER);
        self.plan_device(number);
    }

    fn drain_synchroniser(&mut self, number: usize) -> Result<(), SimError> {
        loop {
            let device = &mut self.world.synchronisers[number];
            let node = device.node;
            let Some(output) = device.core.as_mut().and_then(SyncCore::poll_output) else { break };
            match output {
                Output::State(state) => {
                    self.enter_state(number, state);
                    self.tell(TruthKind::SyncState, node, 0, i64::from(state.code()));
                }
                Output::Membership(members) => {
                    device.members = members;
                    self.tell(TruthKind::SyncMembership, node, 0, i64::from(members));
                }
                Output::Clique(clique) => {
                    device.cliques[usize::from(clique.code())] += 1;
                    self.tell(TruthKind::SyncClique, node, 0, i64::from(clique.code()));
                }
                Output::Clock { position } => self.set_clock(number, position)?,
                Output::Send { channel, frame } => {
                    let (cluster, part) = (device.cluster, device.part);
                    let way = match part {
                        Part::CompressionMaster(channel) => Way { cluster, channel, down: true },
                        _ => Way { cluster, channel, down: false },
                    };
                    self.send_control(node, way, frame);
                }
            }
        }
        self.plan_device(number);
        Ok(())
    }

    fn enter_state(&mut self, number: usize, state: State) {
        let now = self.now;
        let device = &mut self.world.synchronisers[number];
        let (node, cluster) = (device.node, device.cluster);
        let (before, after) = (device.state.is_synchronised(), state.is_synchronised());
        device.state = state;
        device.is_set &= state.is_cyclic();
        if before == after {
            return;
        }
        if after {
            device.synchronised_at.get_or_insert(now);
        } else {
            device.losses += 1;
        }
        self.set_synchronised(node, after);
        let devices = &self.world.synchronisers;
        let cluster = &mut self.world.clusters[cluster];
        let sound = |number: &usize| devices[*number].is_faulty() || devices[*number].state.is_synchronised();
        if cluster.synchronised_at.is_none() && cluster.devices.iter().all(sound) {
            cluster.synchronised_at = Some(now);
        }
    }

    /// Enables or disables the schedules of a node.
    fn set_synchronised(&mut self, node: NodeIndex, is_synchronised: bool) {
        match self.world.nodes[usize::from(node)].place {
            CoreIndex::Switch(at) => {
                self.world.switches[at as usize].core.handle_synchronised(self.now, is_synchronised);
                self.drain_switch(at as usize);
            }
            CoreIndex::Host(at) => {
                self.world.hosts[at as usize].core.handle_synchronised(self.now, is_synchronised);
                self.drain_host(at as usize);
            }
            CoreIndex::Hub(_) => {}
        }
    }

    /// Sets the clock of a device to a position in the cluster cycle. Frames do not say which cluster cycle it is: the
    /// one nearest to the readings of devices that are set already is taken, or the one nearest to its own clock.
    fn set_clock(&mut self, number: usize, position: Span) -> Result<(), SimError> {
        let (node, cluster) =
            (self.world.synchronisers[number].node, self.world.synchronisers[number].cluster);
        self.measure_spread(cluster);
        let cycle = self.world.clusters[cluster].parameters.cluster_cycle().as_picos();
        let shows = |node: NodeIndex| self.world.nodes[usize::from(node)].read(self.now).as_picos();
        let own = shows(node);
        let devices =
            self.world.clusters[cluster].devices.iter().map(|other| &self.world.synchronisers[*other]);
        let mut set = devices.filter(|device| device.is_set && device.node != node && !device.is_faulty());
        let like = set.next().map_or(own, |device| shows(device.node));
        let ahead = (position.as_picos() - like).rem_euclid(cycle);
        let target = like + if ahead > cycle / 2 { ahead - cycle } else { ahead };
        let by = Span::from_picos(target - own);
        self.world.synchronisers[number].is_set = true;
        if by != Span::ZERO {
            if let Some(clock) = &mut self.world.nodes[usize::from(node)].clock {
                clock.steer(self.now, by)?;
            }
            self.clock_changed(node);
        }
        Ok(())
    }

    /// Compares the clocks of a cluster, and records the worst difference once a cycle.
    fn measure_spread(&mut self, number: usize) {
        let now = self.now;
        let (world, cluster) = (&self.world, &self.world.clusters[number]);
        let cycle = cluster.parameters.cluster_cycle().as_picos();
        let agreeing = cluster.devices.iter().map(|device| &world.synchronisers[*device]);
        let mut shown = agreeing
            .filter(|device| device.agrees())
            .map(|device| world.nodes[usize::from(device.node)].read(now).as_picos());
        let Some(first) = shown.next() else { return };
        let (mut low, mut high) = (0, 0);
        for one in shown {
            let off = (one - first + cycle / 2).rem_euclid(cycle) - cycle / 2;
            (low, high) = (low.min(off), high.max(off));
        }
        let spread = Span::from_picos(high - low);
        let cluster = &mut self.world.clusters[number];
        cluster.spread = cluster.spread.max(spread);
        if cluster.synchronised_at.is_some() {
            cluster.most = Some(cluster.most.map_or(spread, |most| most.max(spread)));
        }
        if now - cluster.told >= cluster.parameters.integration_cycle {
            let (told, devices) = (cluster.spread, &cluster.devices);
            let of = devices.iter().map(|device| &self.world.synchronisers[*device]);
            let mut first = of.filter(|device| matches!(device.part, Part::CompressionMaster(_)));
            let node = first.next().map_or(0, |device| device.node);
            (cluster.spread, cluster.told) = (Span::ZERO, now);
            self.tell(TruthKind::SyncPrecision, node, 0, told.as_picos());
        }
    }

    // -- control frames ---------------------------------------------------------------------------------------

    /// Sends a control frame out of every port of its way.
    fn send_control(&mut self, node: NodeIndex, way: Way, content: wg_core::as6802::ControlRepr) {
        let cluster = &self.world.clusters[way.cluster];
        let key = (way.channel, node);
        let ports = if way.down {
            cluster.down.get(&key).cloned().unwrap_or_default()
        } else {
            cluster.up.get(&key).copied().into_iter().collect()
        };
        let source = self.world.addresses[usize::from(node)];
        for port in ports {
            let more = self.queue.has_input_at(self.now);
            let network = match self.world.nodes[usize::from(node)].place {
                CoreIndex::Host(at) => self.world.hosts[at as usize].core.network(port),
                _ => wg_core::frame::NetworkId::A,
            };
            let frame = self.world.control_frames.make(self.now, content, way, source, network);
            match self.world.nodes[usize::from(node)].place {
                CoreIndex::Switch(at) => {
                    self.world.switches[at as usize].core.handle_own(self.now, port, frame, more);
                }
                CoreIndex::Host(at) => {
                    self.world.hosts[at as usize].core.handle_generated(self.now, frame, more);
                }
                CoreIndex::Hub(_) => {}
            }
        }
        match self.world.nodes[usize::from(node)].place {
            CoreIndex::Switch(at) => self.drain_switch(at as usize),
            CoreIndex::Host(at) => self.drain_host(at as usize),
            CoreIndex::Hub(_) => {}
        }
    }

    /// A control frame leaves `node` now: its transparent clock counts its waiting time.
    #[cold]
    pub(super) fn control_leaves(&mut self, node: NodeIndex, frame: &Frame) {
        if frame.message().ptp_place().is_some() {
            self.ptp_leaves(node, frame);
            return;
        }
        let (now, until) = (self.now, self.counted(node, self.now));
        let clock = self.world.nodes[usize::from(node)].clock.as_ref();
        let waited = |since: RunTime| match clock {
            Some(clock) => until - (LocalTime::ZERO + clock.elapsed(since)),
            None => now - since,
        };
        self.world.control_frames.count(frame, now, waited);
    }

    /// A control frame came over link `channel`, and was complete at `complete`.
    fn control_arrives(&mut self, channel: usize, frame: &Frame, complete: RunTime) {
        let link = &self.world.channels[channel];
        let constant = link.lead + link.delay + link.line.transmission(frame.length);
        let decided = self.now - complete;
        self.world.control_frames.count(frame, self.now, |_| constant + decided);
    }

    #[cold]
    pub(super) fn control_into_switch(&mut self, at: usize, port: usize, in_flight: &InFlight) {
        let &InFlight { ref frame, complete, .. } = in_flight;
        let switch = &self.world.switches[at];
        let (node, channel) = (switch.node, switch.ports[port].channel() ^ 1);
        if switch.core.is_down(self.now) {
            return;
        }
        if frame.message().ptp_place().is_some() {
            self.ptp_into_node(node, port, channel, in_flight);
            return;
        }
        self.control_arrives(channel, frame, complete);
        let Some((content, way)) = self.world.control_frames.read(frame) else { return };
        if !way.down && self.is_root(node, way) {
            self.control_into_device(node, way, content);
            return;
        }
        self.send_control(node, way, content);
        if way.down {
            self.control_into_device(node, way, content);
        }
    }

    #[cold]
    pub(super) fn control_into_host(&mut self, at: usize, port: usize, frame: &Frame) {
        let host = &self.world.hosts[at];
        let (node, channel) = (host.node, host.ports[port].channel() ^ 1);
        if frame.message().ptp_place().is_some() {
            let in_flight = InFlight { at: self.now, complete: self.now, frame: *frame };
            self.ptp_into_node(node, port, channel, &in_flight);
            return;
        }
        self.control_arrives(channel, frame, self.now);
        let Some((content, way)) = self.world.control_frames.read(frame) else { return };
        if way.down {
            self.control_into_device(node, way, content);
        }
    }

    fn is_root(&self, node: NodeIndex, way: Way) -> bool {
        self.synchroniser_of(node).is_some_and(|number| {
            let device = &self.world.synchronisers[number];
            device.cluster == way.cluster && device.part == Part::CompressionMaster(way.channel)
        })
    }

    fn control_into_device(&mut self, node: NodeIndex, way: Way, content: wg_core::as6802::ControlRepr) {
        let Some(number) = self.synchroniser_of(node) else { return };
        let now = self.counted(node, self.now);
        let device = &mut self.world.synchronisers[number];
        if device.cluster != way.cluster {
            return;
        }
        match (&mut device.core, device.part) {
            (Some(SyncCore::End(core)), _) => core.handle_frame(now, way.channel, content),
            (Some(SyncCore::Compression(core)), Part::CompressionMaster(channel))
                if channel == way.channel && !way.down =>
            {
                core.handle_frame(now, content);
            }
            _ => {}
        }
        // The device now does what was due before as well; a refused clock setting shows when it is planned.
        self.plan_device(number);
    }
}
