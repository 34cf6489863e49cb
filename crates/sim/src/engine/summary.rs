//! The report of a run.

use std::collections::BTreeMap;

use wg_core::line::{GAP, PREAMBLE};
use wg_frame::time::{RunTime, Span};
use wg_plan::{Network, Run};

use super::Engine;
use crate::build::streams::{eliminated_at, joined_at};
use crate::clusters::{ClusterState, Synchroniser};
use crate::report::{
    AccessPointReport, AgentReport, ClusterReport, FilterReport, FrerReport, JunctionReport, LoadAccount,
    LoadFigures, LoadReport, PortReport, SimReport, SwitchReport, SynchroniserReport, TaskReport,
};
use crate::sink::Sink;
use crate::world::{ACCESS_POINTS, CoreIndex, Injector, Reception, World};

/// The tasks of a host, by index in the order of the plan, found for all hosts in one pass over the tasks.
#[derive(Clone, Default)]
struct HostTasks {
    senders: Vec<usize>,
    /// Flows with messages that end at the host.
    flows: Vec<usize>,
    injectors: Vec<usize>,
}

impl HostTasks {
    /// The tasks of all hosts, by host.
    fn of_all(world: &World) -> Vec<Self> {
        let mut all = vec![Self::default(); world.hosts.len()];
        for (number, sender) in world.senders.iter().enumerate() {
            all[sender.host as usize].senders.push(number);
        }
        for (number, flow) in world.flows.iter().enumerate().filter(|(_, flow)| flow.planned > 0) {
            for end in &flow.receivers {
                if let CoreIndex::Host(at) = world.nodes[usize::from(end.node)].place {
                    let own = &mut all[at as usize].flows;
                    // Once only, if a flow names it twice.
                    if own.last() != Some(&number) {
                        own.push(number);
                    }
                }
            }
        }
        for (number, injector) in world.injectors.iter().enumerate() {
            all[injector.host].injectors.push(number);
        }
        all
    }
}

impl<S: Sink> Engine<'_, S> {
    pub(super) fn report(mut self, network: &Network, run: &Run) -> SimReport {
        let mut report = SimReport {
            records: self.records.iter().sum(),
            events: self.events,
            frame_hops: self.frame_hops,
            simulated_ps: self.now.as_picos(),
            ..SimReport::default()
        };
        let tasks = HostTasks::of_all(&self.world);
        for (at, host) in self.world.hosts.iter().enumerate() {
            let name = network.nodes[usize::from(host.node)].name.clone();
            report.agents.insert(name.clone(), self.agent(at, &tasks[at], name));
        }
        for node in &self.world.switches {
            let ports = node.ports.iter().enumerate().map(|(index, port)| PortReport {
                port: port.number,
                frames: port.frames,
                bytes: port.bytes,
                dropped: port
                    .stats
                    .dropped
                    .iter()
                    .map(|(reason, n)| ((*reason).to_owned(), *n))
                    .collect::<BTreeMap<_, _>>(),
                most_waiting_bytes: node.core.peak_bytes(index),
            });
            let name = network.nodes[usize::from(node.node)].name.clone();
            report.switches.insert(name, SwitchReport { ports: ports.collect() });
        }
        if S::KEEPS_BYTES {
            report.loads = std::mem::take(&mut self.unrecorded);
            report.loads.resize_with(report.loads.len().max(run.injects.len()), Default::default);
            report.foreign = report.loads.split_off(run.injects.len());
        }
        report.frer = self.frer(network, run);
        report.stream_filters = self.stream_filters(network);
        report.credits = self.credits(network);
        report.clusters = self.world.clusters.iter().map(|cluster| self.cluster(cluster, network)).collect();
        report.ptp_domains = (0..self.ptp.domains.len()).map(|one| self.ptp_domain(one, network)).collect();
        report
    }

    /// Counters of stream filters up to the end.
    fn stream_filters(&self, network: &Network) -> Vec<FilterReport> {
        let mut reports = Vec::new();
        for node in &self.world.switches {
            let Some(filters) = &node.core.ingress().streams else { continue };
            let name = &network.nodes[usize::from(node.node)].name;
            reports.extend(node.filters.iter().zip(filters.counters()).map(|(&(flow, port), counted)| {
                FilterReport {
                    node: name.clone(),
                    port,
                    flow,
                    matching: counted.matching,
                    passed: counted.passed(),
                    not_passing_sdu: counted.not_passing_sdu,
                    not_passing: counted.not_passing,
                    red: counted.red,
                    yellow: counted.yellow,
                }
            }));
        }
        reports
    }

    /// Counters of elimination functions up to the end.
    fn frer(&mut self, network: &Network, run: &Run) -> BTreeMap<u16, FrerReport> {
        let mut reports: BTreeMap<u16, FrerReport> = BTreeMap::new();
        let mut junctions = Vec::new();
        for (index, node) in (0..).zip(&network.nodes) {
            let streams = match self.world.nodes[usize::from(index)].place {
                CoreIndex::Host(at) => self.world.hosts[at as usize].core.streams(),
                CoreIndex::Switch(at) => self.world.switches[at as usize].core.streams(),
                CoreIndex::Hub(_) => None,
            };
            let Some(streams) = streams else { continue };
            let flows = eliminated_at(run, index);
            reports.extend(flows.into_iter().zip(streams.eliminated(self.now)).map(|(flow, counted)| {
                let report = FrerReport {
                    node: node.name.clone(),
                    came: counted.came,
                    recovery: counted.recovery.into(),
                    individual: counted.individual.into_iter().map(Into::into).collect(),
                    latent_errors: counted.latent.map(|(errors, _)| errors),
                    first_latent_error_ps: counted.latent.and_then(|(_, first)| Some(first?.as_picos())),
                    junctions: Vec::new(),
                };
                (flow, report)
            }));
            let joined = joined_at(run, index).into_iter().zip(streams.joined(self.now));
            junctions.extend(joined.map(|((flow, stream), counted)| {
                let report = JunctionReport {
                    node: node.name.clone(),
                    stream,
                    came: counted.came,
                    recovery: counted.recovery.into(),
                    individual: counted.individual.into_iter().map(Into::into).collect(),
                };
                (flow, report)
            }));
        }
        for (flow, junction) in junctions {
            reports.entry(flow).or_default().junctions.push(junction);
        }
        reports
    }

    fn cluster(&self, cluster: &ClusterState, network: &Network) -> ClusterReport {
        let devices = || cluster.devices.iter().map(|number| &self.world.synchronisers[*number]);
        let ps = |at: RunTime| (at - RunTime::ZERO).as_picos();
        let of = |device: &Synchroniser| SynchroniserReport {
            part: device.part.name().to_owned(),
            faulty: device.is_faulty(),
            state: device.state.name().to_owned(),
            synchronised: device.state.is_synchronised(),
            synchronised_at_ps: device.synchronised_at.map(ps),
            losses: device.losses,
            cliques: device.cliques,
            membership: device.members,
        };
        let named = |device: &Synchroniser| network.nodes[usize::from(device.node)].name.clone();
        // A switch that restarted was powered up again later; the start counts.
        ClusterReport {
            domain: cluster.parameters.domain,
            priority: cluster.parameters.priority,
            precision_bound_ps: cluster.precision_bound.as_picos(),
            precision_ps: cluster.most.map(Span::as_picos),
            startup_bound_ps: cluster.startup_bound.as_picos(),
            startup_ps: cluster.synchronised_at.map(|at| (at - cluster.powered).as_picos().max(0)),
            devices: devices().map(|device| (named(device), of(device))).collect(),
        }
    }

    fn agent(&self, at: usize, tasks: &HostTasks, end_system: String) -> AgentReport {
        let host = &self.world.hosts[at];
        let access_points = self.world.access_points.iter().map(|&access| {
            let figures = host.access[access];
            AccessPointReport {
                protocol: ACCESS_POINTS[access].1.to_owned(),
                frames_sent: figures.sent,
                frames_received: figures.received,
                send_errors: figures.refused,
                ..AccessPointReport::default()
            }
        });
        AgentReport {
            end_system,
            complete: true,
            access_points: access_points.collect(),
            tasks: self.tasks(at, tasks),
            streams: self.loads_to(at),
            load_read: host.load_read,
            unreceived: host.unreceived.iter().map(|(reason, n)| ((*reason).to_owned(), *n)).collect(),
            records_written: self.records[usize::from(host.node)],
            ended_realtime_ns: self.now.as_picos() / 1_000,
            ..AgentReport::default()
        }
    }

    fn loads_to(&self, at: usize) -> Vec<LoadReport> {
        let address = self.world.hosts[at].address;
        let to_here = |(_, load): &(usize, &Injector)| load.frame.destination == address;
        let of = |(number, load): (usize, &Injector)| LoadReport {
            kind: "absorb".into(),
            number,
            backend: "simulated".into(),
            figures: LoadFigures {
                account: LoadAccount { received: load.arrived, distinct: load.arrived },
                lost: load.lost.iter().map(|(how, n)| ((*how).to_owned(), *n)).collect(),
            },
        };
        self.world.injectors.iter().enumerate().filter(to_here).map(of).collect()
    }

    fn tasks(&self, at: usize, own: &HostTasks) -> Vec<TaskReport> {
        let world = &self.world;
        let node = world.hosts[at].node;
        let mut tasks = Vec::new();
        for sender in own.senders.iter().map(|sender| &world.senders[*sender]) {
            let flow = &world.flows[sender.flow as usize];
            let back: Vec<_> = flow.relays.iter().map(|relay| world.relays[*relay].came_back).collect();
            let sum = |of: fn(&Reception) -> u64| back.iter().map(of).sum();
            tasks.push(TaskReport {
                kind: "send".into(),
                flow: u32::from(flow.id),
                planned: sender.schedule.total(),
                done: sender.done,
                late: sender.late,
                crc_errors: sum(|back| back.damaged),
                wrong_destination: sum(|back| back.elsewhere),
                sequence_gaps: sum(|back| back.gaps),
                sequence_repeats: sum(|back| back.repeats),
                ..TaskReport::default()
            });
        }
        for flow in own.flows.iter().map(|flow| &world.flows[*flow]) {
            let Some(receiver) = flow.receiver(node) else { continue };
            let came = flow.receivers[receiver].came;
            let here = flow.relays.iter().copied().find(|relay| world.relays[*relay].node == node);
            let (kind, done) = match here {
                Some(relay) => ("relay", world.relays[relay].handled),
                None => ("receive", came.received),
            };
            tasks.push(TaskReport {
                kind: kind.into(),
                flow: u32::from(flow.id),
                planned: flow.planned,
                done,
                crc_errors: came.damaged,
                wrong_destination: came.elsewhere,
                sequence_gaps: came.gaps,
                sequence_repeats: came.repeats,
                ..TaskReport::default()
            });
        }
        for injector in own.injectors.iter().map(|injector| &world.injectors[*injector]) {
            tasks.push(TaskReport {
                kind: "inject".into(),
                planned: injector.planned.due_before(world.load_until()) * u64::from(injector.burst),
                done: injector.done,
                wire_bytes: injector.done * u64::from(u32::from(injector.frame.length) + PREAMBLE + GAP),
                ..TaskReport::default()
            });
        }
        tasks.extend(self.log_task(at));
        tasks.extend(self.watch_task(at));
        tasks
    }

    /// The watch task: frames that came to a host and belong to none of its tasks.
    fn watch_task(&self, at: usize) -> Option<TaskReport> {
        let strays = self.world.hosts[at].strays;
        let done = strays.damaged + strays.elsewhere;
        (done > 0).then(|| TaskReport {
            kind: "watch".into(),
            done,
            crc_errors: strays.damaged,
            wrong_destination: strays.elsewhere,
            ..TaskReport::default()
        })
    }

    /// The remote-log task: frames of records that a host has sent.
    fn log_task(&self, at: usize) -> Option<TaskReport> {
        let log = &self.world.logs[self.world.hosts[at].log()?];
        Some(TaskReport {
            kind: "remote-log".into(),
            planned: log.logged / u64::from(log.records),
            done: log.sent,
            wire_bytes: log.sent * u64::from(u32::from(log.frame.length) + PREAMBLE + GAP),
            ..TaskReport::default()
        })
    }
}
