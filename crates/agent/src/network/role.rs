//! The role: opens ports, starts the thread that plays the network, and reports.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use wg_frame::time::{Epoch, RunTime, WallNanos};
use wg_net::{Interface, PacketPorts, PortSender};
use wg_record::Crossing;
use wg_sim::live::{Buffers, carry};
use wg_sim::{SimError, SimReport};

use super::addresses::Answers;
use super::cost::Cost;
use super::crossings::Crossings;
use super::error::Release;
use super::expected::Expected;
use super::files::{Files, Written};
use super::foreign::Foreign;
use super::outside::{FRAMES, Hosts, Intake, LONGEST};
use super::ports;
use crate::control::grants;
use crate::control::role::{
    ActiveRole, Fault, OpenError, Role, RoleReport, RunContext, Setup, Timetable, spawn,
};
use crate::control::supervision::defect;
use crate::end_system::servicing::spin::Budget;
use crate::recording::live::SharedClocks;
use crate::stream::lead::Lead;

/// How long before a deadline the thread wakes up, until it has learnt how long waking up takes, ns.
const LEAD_NS: i64 = 100_000;

/// Plays everything between the end systems.
#[derive(Clone, Copy, Debug)]
pub struct NetworkBetween;

/// Result of the thread.
struct Played {
    hosts: Hosts,
    outcome: Result<SimReport, SimError>,
}

impl Role for NetworkBetween {
    fn plays(&self, setup: &Setup) -> bool {
        setup.is_network()
    }

    fn open(&self, setup: &Setup, run: &mut RunContext) -> Result<Box<dyn ActiveRole>, OpenError> {
        let Setup { network, run: plan, .. } = setup;
        let interfaces = ports::open(setup)?;
        let expected = Expected::of(plan).map_err(|error| OpenError::new(Fault::Request, error))?;
        let measured = RunTime::ZERO + plan.warm_up + plan.duration;
        let last_send = expected.last().map_or(measured, |last| last.max(measured));
        run.timetable = Timetable { last_send, drain: plan.drain, to_send: 0 };
        let holding = setup.hold.map(|wait| (wait, Arc::clone(&run.asked)));
        let clocks = SharedClocks::default();
        let files = Files::begin(&setup.spool, network, plan, holding, Arc::clone(&clocks))?;
        run.clocks = Some(clocks);
        let (sender, why) = PortSender::open(&interfaces)?;
        let access = match why {
            None => sender.access().to_owned(),
            Some(why) => format!("{}: {why}", sender.access()),
        };
        let (lead, budget) = pace(setup.own_core);
        let mut hosts = Hosts {
            sender,
            ports: PacketPorts::open(&interfaces)?,
            buffers: Buffers::new(FRAMES),
            records: run.record_ring(0, u64::MAX, 1),
            crossings: Crossings::new(files.pieces.clone(), files.waiting),
            files: files.pieces,
            epoch: Epoch::new(WallNanos::new(0)),
            stop: Arc::clone(&run.stop),
            counters: run.counters(),
            nodes: setup.network_ports.iter().map(|port| port.node).collect(),
            port_of: ports_by_node(setup),
            releases: vec![Release::default(); interfaces.len()],
            intake: Intake::default(),
            foreign: Foreign::none(&network.nodes, plan),
            holds_back: setup.hold.is_some(),
            incoming: VecDeque::with_capacity(FRAMES as usize),
            changed: Vec::with_capacity(LONGEST),
            answers: Answers::open(network, &interfaces)?,
            expected,
            lead,
            budget,
            cost: Cost::default(),
            awake_since: None,
        };
        let (network, plan) = (network.clone(), plan.clone());
        let (gate, priority, core) = (Arc::clone(&run.gate), setup.fifo_priority, setup.servicing_core);
        let (granted, grants) = mpsc::channel();
        let thread = spawn("network", move || {
            let _ = granted.send(grants::of_servicing_thread(priority, core));
            hosts.epoch = gate.wait()?;
            let outcome = carry(&network, &plan, &mut hosts);
            hosts.end();
            if let Ok(done) = &outcome {
                hosts.crossings.push(Crossing::ended(RunTime::from_picos(done.simulated_ps)));
            }
            hosts.crossings.hand_on();
            Some(Played { hosts, outcome })
        })?;
        run.add_grants(grants.recv().unwrap_or_default());
        run.access_points =
            interfaces.iter().map(|one| format!("packet in, {access} out {}", one.name)).collect();
        let setup = setup.clone();
        Ok(Box::new(ActiveNetwork { setup, interfaces, access, thread, files: files.thread }))
    }
}

/// The port that leads to each node.
fn ports_by_node(setup: &Setup) -> Vec<Option<usize>> {
    let mut port_of = vec![None; setup.network.nodes.len()];
    for (port, own) in setup.network_ports.iter().enumerate() {
        port_of[usize::from(own.node)] = Some(port);
    }
    port_of
}

/// Lead and budget with which the thread keeps its instants; smaller if it shares its core.
fn pace(own_core: bool) -> (Lead, Budget) {
    if own_core {
        (Lead::cautious(LEAD_NS), Budget::new(0, 1))
    } else {
        (Lead::new(LEAD_NS), Budget::of_small_host(0))
    }
}

struct ActiveNetwork {
    setup: Setup,
    /// The interfaces at the beginning of the run.
    interfaces: Vec<Interface>,
    /// The kind of socket that frames leave through.
    access: String,
    thread: JoinHandle<Option<Played>>,
    files: JoinHandle<Written>,
}

impl ActiveRole for ActiveNetwork {
    fn trouble(&self) -> Option<String> {
        if self.thread.is_finished() {
            return Some("the network ended before the run did".to_owned());
        }
        ports::gone(&self.setup, &self.interfaces)
    }

    fn close(self: Box<Self>) -> RoleReport {
        let mut report = RoleReport::default();
        match self.thread.join() {
            Ok(Some(Played { mut hosts, outcome })) => {
                report.overlong = ports::overlong(&self.setup, hosts.ports.too_long());
                let too_long: u64 = report.overlong.iter().map(|one| one.frames).sum();
                let dropped = hosts.ports.dropped().unwrap_or(0) + too_long;
                report.intake = Some(hosts.intake.report(dropped));
                report.cost = Some(hosts.cost.report());
                let named = self.setup.network_ports.iter().zip(&hosts.releases);
                let told =
                    named.map(|(port, release)| release.report(self.setup.name(port.node), &self.access));
                report.releases = told.collect();
                let foreign = match &outcome {
                    Ok(done) => done.foreign.as_slice(),
                    Err(_) => &[],
                };
                let ports = &self.setup.network_ports;
                report.foreign = hosts.foreign.report(foreign, |port| self.setup.name(ports[port].node));
                match outcome {
                    Ok(done) => report.simulation = serde_json::to_string(&done).unwrap_or_default(),
                    Err(error) => report.incomplete = Some(error.to_string()),
                }
            }
            Ok(None) => {}
            Err(_) => report.incomplete = Some(defect("the thread that plays the network")),
        }
        let written = self.files.join().unwrap_or_else(|_| Err(defect("the thread that writes its files")));
        match written {
            Ok(captures) => report.captures = captures,
            Err(why) => drop(report.incomplete.get_or_insert(why)),
        }
        if let Some(why) = ports::gone(&self.setup, &self.interfaces) {
            report.incomplete.get_or_insert(why);
        }
        report
    }
}
