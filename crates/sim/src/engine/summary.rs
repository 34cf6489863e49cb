//! What a run says of itself at its end.

use std::collections::BTreeMap;

use wg_core::line::{GAP, PREAMBLE};
use wg_plan::Network;

use super::Engine;
use crate::report::{AccessPointReport, AgentReport, PortReport, SimReport, SwitchReport, TaskReport};
use crate::sink::Sink;
use crate::world::ACCESS_POINTS;

impl<S: Sink> Engine<'_, S> {
    pub(super) fn report(self, network: &Network) -> SimReport {
        let mut report = SimReport {
            records: self.records.iter().sum(),
            events: self.events,
            frame_hops: self.frame_hops,
            simulated_ps: self.now.as_picos(),
            ..SimReport::default()
        };
        for (at, host) in self.world.hosts.iter().enumerate() {
            let name = network.nodes[usize::from(host.node)].name.clone();
            report.agents.insert(name.clone(), self.agent(at, name));
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
        report
    }

    fn agent(&self, at: usize, end_system: String) -> AgentReport {
        let host = &self.world.hosts[at];
        let access_points = self.world.access_points.iter().map(|&access| {
            let figures = host.access[access];
            AccessPointReport {
                protocol: ACCESS_POINTS[access].1.to_owned(),
                frames_sent: figures.sent,
                frames_received: figures.received,
                send_errors: figures.refused,
                socket_drops: figures.overrun,
                ..AccessPointReport::default()
            }
        });
        AgentReport {
            end_system,
            complete: true,
            access_points: access_points.collect(),
            tasks: self.tasks(at),
            records_written: self.records[usize::from(host.node)],
            ended_realtime_ns: self.now.as_picos() / 1_000,
            ..AgentReport::default()
        }
    }

    fn tasks(&self, at: usize) -> Vec<TaskReport> {
        let world = &self.world;
        let node = world.hosts[at].node;
        let mut tasks = Vec::new();
        for sender in world.senders.iter().filter(|sender| sender.host == at) {
            let flow = &world.flows[sender.flow];
            let back = flow.at_from;
            tasks.push(TaskReport {
                kind: "send".into(),
                flow: u32::from(flow.id),
                planned: sender.schedule.total(),
                done: sender.done,
                late: sender.late,
                crc_errors: back.damaged,
                wrong_destination: back.elsewhere,
                sequence_gaps: back.gaps,
                sequence_repeats: back.repeats,
                ..TaskReport::default()
            });
        }
        for flow in world.flows.iter().filter(|flow| flow.planned > 0) {
            let Some(receiver) = flow.receiver(node) else { continue };
            let came = flow.receivers[receiver].1;
            let here = flow.relay.filter(|relay| world.relays[*relay].node == node);
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
        for injector in world.injectors.iter().filter(|injector| injector.host == at) {
            tasks.push(TaskReport {
                kind: "inject".into(),
                planned: injector.planned.due_before(world.load_until()) * u64::from(injector.burst),
                done: injector.done,
                wire_bytes: injector.done * u64::from(u32::from(injector.frame.length) + PREAMBLE + GAP),
                ..TaskReport::default()
            });
        }
        let strays = world.hosts[at].strays;
        if strays.damaged + strays.elsewhere > 0 {
            tasks.push(TaskReport {
                kind: "watch".into(),
                done: strays.damaged + strays.elsewhere,
                crc_errors: strays.damaged,
                wrong_destination: strays.elsewhere,
                ..TaskReport::default()
            });
        }
        tasks
    }
}
