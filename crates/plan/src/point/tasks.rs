//! Relays, receivers, injectors and captures at one point.

use std::collections::{BTreeMap, BTreeSet};

use wg_frame::time::Span;

use super::check::{PICOS_PER_SECOND, PointCheck};
use super::course::{check_launch, payload_of};
use super::whole_send::WholeSend;
use crate::campaign::{
    Activity, Capture, Fault, FaultKind, FlowId, Inject, LAST_FLOW, Protocol, Receive, Relay, RemoteLog,
    Route,
};
use crate::diagnostic::Findings;
use crate::model::{InjectModel, RelayModel};
use crate::network::{NetworkId, NodeIndex};
use crate::quantity::show_ppm;
use crate::wire::{payload_range, wire_bits};

impl PointCheck<'_> {
    pub(super) fn relays(&self, counts: &BTreeMap<FlowId, u32>, found: &mut Findings) -> Vec<Relay> {
        let mut relays = Vec::new();
        let mut numbers = self.free_numbers();
        for relay in &self.model.relays {
            let flow = &self.model.flows[relay.flow];
            for fault in &relay.faults {
                let Some(&count) = counts.get(&flow.id) else { continue };
                let last = fault.sequences.value.iter().map(|(_, last)| *last).max().unwrap_or(0);
                if last >= count {
                    let message = format!("flow {} has no message {last}", flow.id);
                    let limit = format!("0 to {}", count - 1);
                    let cure = "write a smaller number or raise the count; warm-up messages have no faults";
                    found.error(&fault.place, message, limit, cure);
                } else if fault.kind == FaultKind::Reorder && last == count - 1 {
                    let message =
                        format!("message {last} of flow {} is the last and has no successor", flow.id);
                    let cure = "swap an earlier message";
                    found.error(&fault.place, message, format!("0 to {}", count.saturating_sub(2)), cure);
                }
            }
            let Some(through) = &relay.through else { continue };
            // Where another point of the sweep has a virtual link, this one needs none.
            let vl = relay.vl.as_ref().and_then(|vl| Some(vl.as_ref()?.value));
            let vl = vl.filter(|_| flow.is(Protocol::Rc));
            let faults = relay
                .faults
                .iter()
                .map(|fault| Fault { kind: fault.kind, sequences: fault.sequences.value.clone() })
                .collect();
            let several = self.model.relays_of(relay.flow).count() > 1;
            let back = if several { numbers.next() } else { None };
            if several && back.is_none() {
                let message = format!("the answers of the relays of flow {} have no numbers left", flow.id);
                let limit = format!("{LAST_FLOW} flows, and relays of flows that several answer");
                found.error(&relay.place, message, limit, "declare fewer flows");
                break;
            }
            let (through, detours) = (through.value, self.detours(relay));
            relays.push(Relay { flow: flow.id, on: relay.on, vl, back, through, faults, detours });
        }
        relays
    }

    /// Numbers that no flow has, the highest first: for what several relays of one flow answer.
    fn free_numbers(&self) -> impl Iterator<Item = FlowId> {
        let taken: BTreeSet<FlowId> = self.model.flows.iter().map(|flow| flow.id).collect();
        (1..=LAST_FLOW).rev().filter(move |id| !taken.contains(id))
    }

    /// Routes of what a relay's faults misdirect: over the flow's network where it leads there.
    pub(super) fn detours(&self, relay: &RelayModel) -> Vec<Route> {
        let flow = &self.model.flows[relay.flow];
        let networks: Vec<NetworkId> =
            flow.used().map(|(network, _)| network).chain([NetworkId::A, NetworkId::B]).collect();
        let targets: BTreeSet<NodeIndex> = relay
            .faults
            .iter()
            .filter_map(|fault| match fault.kind {
                FaultKind::Misdirect { to } => Some(to),
                _ => None,
            })
            .collect();
        let route = |to: &NodeIndex| {
            networks.iter().find_map(|&network| {
                let hops = self.topology.reached(relay.on, network).route(*to)?;
                Some(Route { network, hops })
            })
        };
        targets.iter().filter_map(route).collect()
    }

    pub(super) fn receives(&self) -> Vec<Receive> {
        let receives = self.model.receives.iter();
        receives.map(|receive| Receive { flow: self.model.flows[receive.flow].id, on: receive.on }).collect()
    }

    pub(super) fn remote_logs(&self) -> Vec<RemoteLog> {
        let logs = self.model.remote_logs.iter();
        logs.map(|log| RemoteLog {
            on: log.on,
            to: log.to,
            route: Route::clone(&log.route),
            record: log.record,
            records: log.records,
        })
        .collect()
    }

    pub(super) fn captures(&self) -> Vec<Capture> {
        let captures = self.model.captures.iter();
        captures.map(|capture| Capture { on: capture.on, snap: capture.snap }).collect()
    }

    pub(super) fn injects(&self, senders: &[WholeSend<'_>], found: &mut Findings) -> Vec<Inject> {
        let mut injects = Vec::new();
        let mut per_node: BTreeMap<u16, u32> = BTreeMap::new();
        for inject in &self.model.injects {
            let Some(task) = self.inject(inject, found) else { continue };
            let sum = per_node.entry(task.on).or_default();
            *sum = sum.saturating_add(task.load_ppm);
            if *sum > 1_000_000 && *sum - task.load_ppm <= 1_000_000 && task.load_ppm <= 1_000_000 {
                let name = self.topology.name(task.on);
                let message = format!("the loads of \"{name}\" add up to {}", show_ppm(*sum));
                let cure = "lower the loads or use a second end system";
                found.error(&inject.place, message, "100% of its link", cure);
            }
            if task.load_ppm > 0 {
                injects.push(task);
            }
        }
        per_node.retain(|_, load| *load > 0);
        let mut own: BTreeMap<NodeIndex, Vec<String>> = BTreeMap::new();
        for flow in senders.iter().map(|send| &self.model.flows[send.send.flow]).filter(|flow| !flow.exchange)
        {
            if let Some((from, _)) = flow.ends.as_ref().filter(|(from, _)| per_node.contains_key(from)) {
                own.entry(*from).or_default().push(flow.id.to_string());
            }
        }
        for (node, own) in own {
            found.warn(format!(
                "\"{}\" injects load and sends flow {} over the same link; their latency then includes \
                 waiting in the sender",
                self.topology.name(node),
                own.join(", ")
            ));
        }
        injects
    }

    fn inject(&self, inject: &InjectModel, found: &mut Findings) -> Option<Inject> {
        let protocol = Protocol::Udp;
        let (load, burst) = (inject.load.as_ref()?, inject.burst.as_ref()?);
        let payload = payload_of(inject.payload.as_ref()?, inject.of_frame, protocol, None, found)?;
        let (least, most) = payload_range(protocol);
        if payload.value < least || payload.value > most {
            let message = format!("{} is no payload of an injected UDP frame", payload.named());
            found.error(
                &payload.place,
                message,
                format!("{least}B to {most}B"),
                "write a size within the limit",
            );
            return None;
        }
        if load.value > 1_000_000 {
            let message = format!("{} is more than the link of the end system carries", load.named());
            found.error(&load.place, message, "0% to 100%", "inject from several end systems");
            return None;
        }
        let rate = self.rate(inject.route.as_ref()?.hops.first()?.link);
        let bits = u128::from(burst.value) * u128::from(wire_bits(protocol, None, payload.value));
        let speed = u128::from(load.value) * u128::from(rate);
        // Zero load has no task, whatever its interval; the caller leaves it out.
        let interval = match speed {
            0 => 0,
            _ => (bits * PICOS_PER_SECOND * 1_000_000 + speed / 2) / speed,
        };
        let limit = u128::from(Span::from_millis(3_600_000).as_picos().unsigned_abs());
        if interval > limit {
            let message = format!("{} makes less than one burst per hour", load.named());
            found.error(&load.place, message, "1 burst per hour", "write a higher load or 0%");
            return None;
        }
        check_launch(&inject.shaping, found);
        Some(Inject {
            on: inject.on,
            to: inject.to,
            route: Route::clone(inject.route.as_ref()?),
            payload: payload.value,
            burst: burst.value,
            interval: Span::from_picos(i64::try_from(interval).ok()?),
            load_ppm: load.value,
            exponential: inject.exponential,
            threads: inject.threads.clone(),
            activity: inject
                .shaping
                .activity
                .as_ref()
                .and_then(|(active, pause)| Activity::new(active.value, pause.value).ok()),
            pacing: inject.shaping.pacing,
            backend: inject.shaping.backend.as_ref().map(|backend| backend.value),
            launch: inject.shaping.launch.as_ref().and_then(|launch| launch.value),
        })
    }
}
