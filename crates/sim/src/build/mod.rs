//! From the plan to the simulated network.

mod clusters;
mod forwarding;
mod hosts;
mod imperfections;
mod places;
pub(crate) mod ptp;
mod stream_filters;
pub(crate) mod streams;
mod tasks;
mod traffic_classes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wg_core::Deadline;
use wg_core::fifo::Fifo;
use wg_core::hub::{Hub, Rate, StationPlan};
use wg_frame::time::{RunTime, Span};
use wg_plan::{ForwardingMode, HostModel, LinkFaultKind, Network, Node, NodeIndex, NodeKind, PortTsn, Run};

use self::forwarding::Tables;
use self::places::{Ports, position};
use crate::clocks::NodeClock;
use crate::clusters::ControlFrames;
use crate::error::SimError;
use crate::faults::Rule;
use crate::headers::HeaderNumbers;
use crate::imperfections::drifted;
use crate::incidents;
use crate::models::{Capabilities, Draws};
use crate::world::{
    Channel, CoreIndex, Extra, HostExtra, HostNode, HostPort, HostPorts, HubNode, NodeState, Station, Strays,
    SwitchNode, SwitchPort, World,
};
use wg_plan::random::{Purpose, Stream};

/// The world of one run in virtual time.
pub(crate) fn world(network: &Network, run: &Run) -> Result<World, SimError> {
    let (mut world, ports) = built(network, run)?;
    world.build_tasks(network, run)?;
    finished(world, network, run, &ports)
}

/// The world of one run between real hosts: `network` and `run` are those of [`between_hosts`] and [`without_tasks`].
pub(crate) fn world_between_hosts(network: &Network, run: &Run) -> Result<World, SimError> {
    let (mut world, ports) = built(network, run)?;
    world.build_flows(run)?;
    world.build_frames(network, run)?;
    world.build_babblers(run)?;
    world.hosts.iter_mut().for_each(|host| host.core.follow_copies());
    world.switches.iter_mut().for_each(|switch| switch.core.follow_copies());
    finished(world, network, run, &ports)
}

/// The network with cards in place of end systems: the processing times of real hosts are their own.
pub(crate) fn between_hosts(network: &Network) -> Network {
    let mut network = network.clone();
    for node in &mut network.nodes {
        if let NodeKind::EndSystem { host } = &mut node.kind {
            *host = HostModel { egress_bytes: host.egress_bytes, ..HostModel::ideal() };
        }
    }
    network
}

/// The run without the tasks that real hosts carry out themselves. Routes still follow from all of it.
pub(crate) fn without_tasks(network: &Network, run: &Run) -> Run {
    let mut run = run.clone();
    run.captures.retain(|capture| {
        let on = network.nodes.get(usize::from(capture.on));
        on.is_some_and(|node| !matches!(node.kind, NodeKind::EndSystem { .. }))
    });
    run
}

/// Nodes, links and cores.
fn built(network: &Network, run: &Run) -> Result<(World, Ports), SimError> {
    let mut world = World {
        nodes: Vec::new(),
        clocked: Vec::new(),
        addresses: network.nodes.iter().map(|node| node.mac).collect(),
        hosts: Vec::new(),
        switches: Vec::new(),
        hubs: Vec::new(),
        channels: Vec::new(),
        held: BTreeMap::new(),
        unusual: Vec::new(),
        flows: Vec::new(),
        flow_of_id: vec![u16::MAX; usize::from(u16::MAX) + 1].into_boxed_slice(),
        senders: Vec::new(),
        sending: 0,
        awaiting: 0,
        relays: Vec::new(),
        injectors: Vec::new(),
        babblers: Vec::new(),
        logs: Vec::new(),
        events: Vec::new(),
        own_frames: Vec::new(),
        headers: HeaderNumbers::new(network, run),
        synchronisers: Vec::new(),
        synchroniser_of: BTreeMap::new(),
        clusters: Vec::new(),
        control_frames: ControlFrames::default(),
        is_exact: true,
        network_events: Vec::new(),
        access_points: Vec::new(),
        measured_until: RunTime::ZERO + run.warm_up + run.duration,
        last_send: RunTime::ZERO + run.warm_up + run.duration,
        load_ends: None,
        drain: run.drain,
        frames: Vec::new(),
        networks: Vec::new(),
    };
    let ports = ports(network)?;
    // Forwarding treats the virtual links back from relays like any others.
    let carried = Run { flows: run.flows.iter().cloned().chain(run.returns()).collect(), ..run.clone() };
    world.build_nodes(network, run)?;
    world.build_channels(network, run, &ports)?;
    world.build_cores(network, &carried, &ports)?;
    world.build_faults(network, run)?;
    world.build_captures(network, run, &ports)?;
    Ok((world, ports))
}

/// Adds all that happens besides the tasks.
fn finished(mut world: World, network: &Network, run: &Run, ports: &Ports) -> Result<World, SimError> {
    world.build_imperfections(network, run, ports)?;
    world.build_clusters(run, ports)?;
    let temperatures = (0..)
        .zip(&network.nodes)
        .flat_map(|(index, node)| node.clock.temperature.iter().map(move |step| (index, step.at)));
    world.network_events = incidents::network_events(run, temperatures);
    Ok(world)
}

/// Whether a port sends frames in fragments, or may cut them off: a frame from it is then passed on only when complete.
pub(crate) fn gives_way(node: &Node, port: u16) -> bool {
    let preempts = |tsn: &PortTsn| tsn.classes.iter().any(|class| class.preemptable);
    match &node.kind {
        NodeKind::Switch(model) => {
            Capabilities::of(model).preemption || model.tsn_of(port).is_some_and(preempts)
        }
        NodeKind::EndSystem { .. } => {
            node.tsn.as_ref().and_then(|tsn| tsn.port()).is_some_and(|tsn| preempts(&tsn))
        }
        NodeKind::Hub { .. } => false,
    }
}

impl World {
    fn build_nodes(&mut self, network: &Network, run: &Run) -> Result<(), SimError> {
        let (mut hosts, mut switches, mut hubs) = (0, 0, 0);
        // A captured frame carries the transmit time of its message, however long ago that was sent.
        let remember = !run.captures.is_empty() && run.sends.iter().any(|send| send.transmit_time.is_some());
        let steered: BTreeSet<NodeIndex> = run.kept_clocks().collect();
        for (index, node) in (0..).zip(&network.nodes) {
            let (counter, place): (_, fn(u32) -> CoreIndex) = match node.kind {
                NodeKind::EndSystem { .. } => (&mut hosts, CoreIndex::Host),
                NodeKind::Switch(_) => (&mut switches, CoreIndex::Switch),
                NodeKind::Hub { .. } => (&mut hubs, CoreIndex::Hub),
            };
            let clock = NodeClock::new(
                index,
                &node.clock,
                &run.incidents,
                run.seed,
                remember,
                steered.contains(&index),
            )?;
            self.clocked.extend(clock.is_some().then_some(index));
            self.nodes.push(NodeState {
                place: place(*counter),
                clock: clock.map(Box::new),
                timestamps: None,
            });
            *counter += 1;
        }
        Ok(())
    }

    fn build_channels(&mut self, network: &Network, run: &Run, ports: &Ports) -> Result<(), SimError> {
        for link in &network.links {
            let nominal = run.link_rate.unwrap_or(link.rate);
            for side in [0, 1] {
                let (from, to) = (link.ends[side], link.ends[1 - side]);
                let line = drifted(nominal, network.nodes[usize::from(from.node)].line_drift_ppb);
                let lead = match &network.nodes[usize::from(from.node)].kind {
                    NodeKind::EndSystem { host } => host.interface_delay,
                    _ => Span::ZERO,
                };
                let (by_header, processing) = match &network.nodes[usize::from(to.node)].kind {
                    NodeKind::Switch(switch) => {
                        let cut_through = switch.forwarding_mode == ForwardingMode::CutThrough;
                        let whole = gives_way(&network.nodes[usize::from(from.node)], from.port);
                        (cut_through && !whole, switch.processing_delay)
                    }
                    _ => (false, Span::ZERO),
                };
                self.channels.push(Channel {
                    to: self.nodes[usize::from(to.node)].place,
                    to_port: position(&ports[usize::from(to.node)], to.port) as u32,
                    line,
                    delay: link.delay,
                    lead,
                    by_header,
                    gap: network.nodes[usize::from(from.node)].interframe_gap,
                    leaves_stage: false,
                    processing,
                    in_flight: Fifo::new(),
                    extra: None,
                });
            }
        }
        Ok(())
    }

    fn build_cores(&mut self, network: &Network, run: &Run, ports: &Ports) -> Result<(), SimError> {
        let tables = &Tables::new(network, run, ports);
        for (index, node) in (0..).zip(&network.nodes) {
            let own = &ports[usize::from(index)];
            match &node.kind {
                NodeKind::EndSystem { host } => self.add_host(index, own, host, (network, run), tables)?,
                NodeKind::Switch(model) => {
                    let (mut core, filters) = forwarding::switch(
                        self,
                        &forwarding::Site { network, ports, node: index, model, tables },
                    )?;
                    if let Some(streams) = streams::streams(&tables.copied[usize::from(index)], index)? {
                        if model.forwarding_mode == ForwardingMode::CutThrough {
                            let name = &node.name;
                            let problem = format!("copies of streams at cut-through switch '{name}'");
                            return Err(SimError::plan(problem));
                        }
                        core.set_streams(streams);
                    }
                    core.set_lengths(model.frame_lengths);
                    let preempts = Capabilities::of(model).preemption;
                    let ports =
                        own.iter().map(|&(number, channel)| SwitchPort::new(number, channel, preempts));
                    let ports = ports.collect();
                    let processing_delay = model.processing_delay;
                    self.switches.push(SwitchNode {
                        node: index,
                        core,
                        timer: Deadline::NEVER,
                        processing_delay,
                        is_drawn: !model.drawn_delay.is_none(),
                        back_at: None,
                        ports,
                        filters,
                    });
                }
                NodeKind::Hub { delay } => self.add_hub(index, &node.name, own, *delay, network, run)?,
            }
        }
        Ok(())
    }

    fn add_host(
        &mut self,
        node: NodeIndex,
        own: &[(u16, usize)],
        model: &HostModel,
        (network, run): (&Network, &Run),
        tables: &Tables<'_>,
    ) -> Result<(), SimError> {
        let mut core = hosts::host(self, &hosts::Site { network, tables, node, own, model })?;
        let streams = streams::streams(&tables.copied[usize::from(node)], node)?;
        let has_streams = streams.is_some();
        if let Some(streams) = streams {
            core.set_streams(streams);
        }
        let ports = own.iter().map(|&(number, channel)| HostPort::new(number, channel));
        let ports =
            HostPorts::new(ports).ok_or_else(|| SimError::plan(format!("end system {node} has no link")))?;
        let extra =
            model.receives_load.then(|| Box::new(HostExtra { receives_load: true, ..HostExtra::default() }));
        self.hosts.push(HostNode {
            node,
            address: self.addresses[usize::from(node)],
            core,
            has_streams,
            timer: Deadline::NEVER,
            ports,
            wake_ups: Stream::new(run.seed, Purpose::ReceivingThread, u32::from(node)),
            send_wake_up: self.draws(Draws::new(&model.send_wake_up)?),
            receive_wake_up: self.draws(Draws::new(&model.receive_wake_up)?),
            relay_wake_up: self.draws(Draws::new(&model.relay_wake_up)?),
            extra,
            access: Default::default(),
            strays: Strays::default(),
            load_read: 0,
            unreceived: BTreeMap::new(),
        });
        Ok(())
    }

    /// The draws of the host built last, where they are equal: hosts of one model then share cache lines.
    fn draws(&self, draws: Draws) -> Draws {
        let of = |host: &HostNode| {
            [&host.send_wake_up, &host.receive_wake_up, &host.relay_wake_up].map(Draws::clone)
        };
        let known = self.hosts.last().map(of).into_iter().flatten().find(|known| *known == draws);
        known.unwrap_or(draws)
    }

    fn add_hub(
        &mut self,
        node: NodeIndex,
        name: &str,
        own: &[(u16, usize)],
        delay: Span,
        network: &Network,
        run: &Run,
    ) -> Result<(), SimError> {
        let mut stations = Vec::with_capacity(own.len());
        for &(_, out) in own {
            // The two directions of a link have adjacent channels.
            let (back, link) = (out ^ 1, &network.links[out / 2]);
            let end = link.ends[1 - out % 2];
            let CoreIndex::Host(host) = self.nodes[usize::from(end.node)].place else {
                return Err(SimError::plan(format!("hub '{name}' joins something else than end systems")));
            };
            let (host, host_port) = (host as usize, self.channels[out].to_port as usize);
            stations.push(Station {
                host,
                host_port,
                channels: [back, out],
                transmission: None,
                began: RunTime::ZERO,
                effect: None,
            });
        }
        let mut lines = own.iter().map(|&(_, out)| self.channels[out].line);
        let first = lines.next();
        let rate = first.filter(|first| lines.all(|line| line == *first));
        let rate = rate.and_then(|line| Rate::new(line.bits_per_second())).ok_or_else(|| {
            SimError::plan(format!("the links of hub '{name}' are not all of 10 or all of 100 Mbit/s"))
        })?;
        // A station holds one frame, the one being sent: queues are at the host.
        let plans: Vec<_> =
            own.iter().map(|&(_, out)| StationPlan { delay: self.channels[out].delay, queue: 1 }).collect();
        let core = Hub::new(rate, delay, &plans)
            .map_err(|error| SimError::plan(format!("hub '{name}': {error}")))?;
        let backoff = Stream::new(run.seed, Purpose::Backoff, u32::from(node));
        self.hubs.push(HubNode { core, stations, coming: VecDeque::new(), backoff, fading: VecDeque::new() });
        Ok(())
    }

    fn build_faults(&mut self, network: &Network, run: &Run) -> Result<(), SimError> {
        for (number, fault) in (0..).zip(&run.link_faults) {
            let link = network.links.get(fault.link as usize).ok_or_else(|| no_link(fault.link))?;
            for side in [0, 1] {
                if fault.sent_by.is_none_or(|end| end == link.ends[side].node) {
                    let rule = Rule::new(number, side as u32, fault, run.seed)?;
                    let extra = self.extra(network, 2 * fault.link as usize + side);
                    match fault.kind {
                        LinkFaultKind::WrongLength { .. } => extra.lengths.push(rule),
                        _ => extra.rules.push(rule),
                    }
                }
                self.let_stragglers_out(network, link.ends[side].node);
            }
        }
        for incident in &run.incidents {
            if let wg_plan::IncidentKind::Cut { link, .. } = incident.kind {
                network.links.get(link as usize).ok_or_else(|| no_link(link))?;
                for side in [0, 1] {
                    self.extra(network, 2 * link as usize + side);
                }
            }
        }
        Ok(())
    }

    fn build_captures(&mut self, network: &Network, run: &Run, ports: &Ports) -> Result<(), SimError> {
        for capture in &run.captures {
            let own = ports
                .get(usize::from(capture.on))
                .ok_or_else(|| SimError::plan(format!("a capture is on node {}", capture.on)))?;
            for &(number, out) in own {
                let tap = Some((capture.on, number));
                self.extra(network, out).taps[0] = tap;
                self.extra(network, out ^ 1).taps[1] = tap;
            }
        }
        Ok(())
    }

    /// Lets frames that a fault on the way to a hub holds back or doubles come out of the links of all its stations.
    fn let_stragglers_out(&mut self, network: &Network, node: NodeIndex) {
        if let Some(CoreIndex::Hub(hub)) = self.nodes.get(usize::from(node)).map(|state| state.place) {
            let out: Vec<_> =
                self.hubs[hub as usize].stations.iter().map(|station| station.channels[1]).collect();
            for channel in out {
                self.extra(network, channel);
            }
        }
    }

    fn extra(&mut self, network: &Network, channel: usize) -> &mut Extra {
        let end = network.links[channel / 2].ends[1 - channel % 2];
        let (unusual, channels) = (&mut self.unusual, &mut self.channels);
        channels[channel].extra.get_or_insert_with(|| {
            unusual.push(channel);
            Box::new(Extra {
                node: end.node,
                port: end.port,
                rules: Vec::new(),
                lengths: Vec::new(),
                decision: None,
                cuts: 0,
                stragglers: BTreeMap::new(),
                departures: 0,
                source: unusual.len() - 1,
                taps: [None; 2],
            })
        })
    }
}

fn no_link(link: u32) -> SimError {
    SimError::plan(format!("a fault is on link {link}, which is not there"))
}

fn ports(network: &Network) -> Result<Ports, SimError> {
    let mut ports = vec![Vec::new(); network.nodes.len()];
    for (number, link) in network.links.iter().enumerate() {
        for side in [0, 1] {
            let end = link.ends[side];
            ports
                .get_mut(usize::from(end.node))
                .ok_or_else(|| {
                    SimError::plan(format!("link {number} ends at node {}, which is not there", end.node))
                })?
                .push((end.port, 2 * number + side));
        }
    }
    for own in &mut ports {
        own.sort_unstable();
        if own.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(SimError::plan("two links end at one port"));
        }
    }
    Ok(ports)
}
