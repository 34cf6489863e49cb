//! One point of the sweep: the checks that need every value at once, and the run it becomes.
//!
//! A value that an axis replaced carries the axis as its place, so a message about the one bad point of a
//! sweep names the axis and the value and not the task it overrode.

use std::collections::{BTreeMap, BTreeSet};

use wg_frame::time::Span;

use crate::campaign::{Fault, Flow, Inject, Pattern, Receive, Relay, Run, Send};
use crate::diagnostic::Findings;
use crate::model::{InjectModel, Model, SendModel};
use crate::network::NodeKind;
use crate::quantity::{show_ppm, show_rate};
use crate::reader::Sourced;
use crate::statements::Statements;
use crate::topology::{Hop, Topology};
use crate::wire::{payload_range, wire_bits};

/// Longest run. An `i64` of picoseconds lasts 106 days.
const LONGEST_RUN_DAYS: i64 = 100;
const DAY: i64 = 86_400 * 1_000_000_000_000;
/// Longest wait for stragglers that can be asked for.
const LONGEST_DRAIN: Span = Span::from_millis(600_000);
/// Wait for stragglers where none is written, before the time the buffers need.
const SHORTEST_DRAIN: i64 = 200_000_000_000;
/// Largest wait that is derived from the buffers.
const LONGEST_DERIVED_DRAIN: i64 = 5_000_000_000_000;
const PICOS_PER_SECOND: u128 = 1_000_000_000_000;

/// A load given in micro-bit/s, in Mbit/s rounded up to a tenth: never shown as fitting when it does not.
fn show_load(micro: u128) -> String {
    let tenths = micro.div_ceil(100_000_000_000);
    format!("{}.{}Mbit/s", tenths / 10, tenths % 10)
}

/// What was already said about other points of the same sweep.
#[derive(Debug, Default)]
pub(crate) struct Said {
    overloaded: BTreeSet<Hop>,
}

/// A sender whose values are all known.
struct WholeSend<'a> {
    send: &'a SendModel,
    period: &'a Sourced<Span>,
    payload: &'a Sourced<u32>,
    offset: &'a Sourced<Span>,
    wire_bits: u64,
}

pub(crate) struct PointCheck<'a> {
    pub(crate) test: &'a Statements,
    pub(crate) topology: &'a Topology,
    pub(crate) model: &'a Model,
}

impl PointCheck<'_> {
    /// Checks the point; the run is whole only when nothing was found, here or before.
    pub(crate) fn run(&self, said: &mut Said, found: &mut Findings) -> Run {
        self.flows(found);
        let senders: Vec<WholeSend<'_>> =
            self.model.sends.iter().filter_map(|send| self.send(send, found)).collect();
        let fast: BTreeSet<usize> =
            senders.iter().filter(|send| self.too_fast(send, found)).map(|send| send.send.flow).collect();
        self.load(senders.iter().filter(|send| !fast.contains(&send.send.flow)), said, found);
        let (sends, length) = self.schedule(&senders, found);
        // What does not fit was refused by `length`; the clamp only keeps the type.
        let duration = Span::from_picos(i64::try_from(length).unwrap_or(i64::MAX));
        let relays = self.relays(&sends, found);
        let injects = self.injects(&senders, found);
        let warm_up = self.test.warm_up.as_ref().map_or(Span::ZERO, |warm_up| warm_up.value);
        let drain = self.drain(found);
        self.length(warm_up, length, drain, found);
        Run {
            link_rate_bps: self.model.rate.as_ref().map(|rate| rate.value),
            warm_up,
            duration,
            drain,
            flows: self.planned_flows(),
            sends,
            receives: self.receives(),
            relays,
            injects,
            ..Run::default()
        }
    }

    fn rate(&self, link: usize) -> u64 {
        self.model.rate.as_ref().map_or(self.topology.network.links[link].rate_bps, |rate| rate.value)
    }

    fn flows(&self, found: &mut Findings) {
        for flow in &self.model.flows {
            let Some(protocol) = &flow.protocol else { continue };
            if protocol.written.as_ref() == "udp" && flow.vlan.is_some() {
                let message = format!("flow {} has a VLAN tag, but {}", flow.id, protocol.named());
                let cure = "use protocol=\"raw\" or remove vlan and priority";
                found.error(&protocol.place, message, "VLAN tags on raw flows only", cure);
            }
        }
    }

    fn send<'m>(&self, send: &'m SendModel, found: &mut Findings) -> Option<WholeSend<'m>> {
        let flow = &self.model.flows[send.flow];
        let period = send.period.as_ref().filter(|period| {
            let positive = period.value > Span::ZERO;
            if !positive {
                let message = format!("{} is zero", period.named());
                found.error(&period.place, message, "more than 0s", "write the time between two messages");
            }
            positive
        });
        let (payload, protocol) = (send.payload.as_ref()?, flow.protocol.as_ref()?);
        let (least, most) = payload_range(protocol.value);
        if payload.value < least || payload.value > most {
            let (how, cure) = if payload.value < least {
                ("cannot hold the 12B probe header", "write a larger payload")
            } else {
                ("does not fit into one frame", "write a smaller payload; messages are not fragmented")
            };
            let message =
                format!("{} of flow {}, protocol {}, {how}", payload.named(), flow.id, protocol.written);
            found.error(&payload.place, message, format!("{least}B to {most}B"), cure);
            return None;
        }
        let wire_bits = wire_bits(protocol.value, flow.vlan, payload.value);
        let (period, offset) = (period?, send.offset.as_ref()?);
        Some(WholeSend { send, period, payload, offset, wire_bits })
    }

    /// Hops of a flow, both ways when it is relayed.
    fn hops(&self, flow: usize) -> impl Iterator<Item = Hop> + '_ {
        let flow = &self.model.flows[flow];
        let back = flow.hops.iter().map(|hop| Hop { link: hop.link, forward: !hop.forward });
        flow.hops.iter().copied().chain(back.filter(|_| flow.relayed))
    }

    fn too_fast(&self, send: &WholeSend<'_>, found: &mut Findings) -> bool {
        let flow = &self.model.flows[send.send.flow];
        let slowest = flow.hops.iter().map(|hop| hop.link).min_by_key(|link| self.rate(*link));
        let Some(link) = slowest else { return false };
        let rate = self.rate(link);
        let Some(frame) = Span::of_bits(send.wire_bits, rate) else { return false };
        if let Some(deadline) = flow.deadline.as_ref().filter(|deadline| deadline.value < frame) {
            found.warn(format!(
                "flow {}: {} cannot be met; a frame alone takes {frame} on a link of {}",
                flow.id,
                deadline.named(),
                show_rate(rate)
            ));
        }
        if send.period.value >= frame {
            return false;
        }
        let message = format!(
            "{} of flow {} is shorter than its frame with {} takes on a link of {}",
            send.period.named(),
            flow.id,
            send.payload.named(),
            show_rate(rate)
        );
        let cure = "write a longer period or a smaller payload";
        found.error(&send.period.place, message, format!("at least {frame}"), cure);
        true
    }

    /// The flows that are measured must fit onto every link; overload is the injectors' business.
    fn load<'m>(
        &self,
        senders: impl Iterator<Item = &'m WholeSend<'m>>,
        said: &mut Said,
        found: &mut Findings,
    ) {
        // Micro-bit/s, so that rounding down cannot hide an overload worth naming.
        let mut loads: BTreeMap<Hop, (u128, Vec<u16>)> = BTreeMap::new();
        for send in senders {
            let load = u128::from(send.wire_bits) * PICOS_PER_SECOND * 1_000_000
                / send.period.value.as_picos().max(1) as u128;
            for hop in self.hops(send.send.flow) {
                let (sum, flows) = loads.entry(hop).or_default();
                *sum += load;
                flows.push(self.model.flows[send.send.flow].id);
            }
        }
        for (hop, (load, flows)) in loads {
            let rate = self.rate(hop.link);
            if load <= u128::from(rate) * 1_000_000 || !said.overloaded.insert(hop) {
                continue;
            }
            let ends = self.topology.network.links[hop.link].ends.map(|end| self.topology.name(end.node));
            let (from, to) = if hop.forward { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
            let ids: Vec<String> = flows.iter().take(20).map(ToString::to_string).collect();
            let more = if flows.len() > 20 { ", …" } else { "" };
            let message = format!(
                "flows {}{more} together take {} from \"{from}\" to \"{to}\"",
                ids.join(", "),
                show_load(load)
            );
            let place =
                self.model.rate.as_ref().map_or(&self.topology.link_places[hop.link], |rate| &rate.place);
            let cure = "write longer periods or smaller payloads, or send fewer flows over this link";
            found.error(place, message, show_rate(rate), cure);
        }
    }

    /// Counts and the length of the measured part: whichever of count and duration ends first.
    fn schedule(&self, senders: &[WholeSend<'_>], found: &mut Findings) -> (Vec<Send>, i128) {
        let written = self.test.duration.as_ref();
        let mut ends = Vec::new();
        let mut sends = Vec::new();
        for whole in senders {
            let flow = self.model.flows[whole.send.flow].id;
            let period = i128::from(whole.period.value.as_picos());
            let offset = i128::from(whole.offset.value.as_picos());
            let fitting = match written {
                None => None,
                Some(None) => continue,
                Some(Some(duration)) => {
                    let room = i128::from(duration.value.as_picos()) - offset;
                    let fitting = if room > 0 { (room + period - 1) / period } else { 0 };
                    if fitting == 0 {
                        let message = format!("flow {flow} has no message in {}", duration.named());
                        let cure = "write a longer duration or a smaller offset";
                        found.error(&whole.send.place, message, "at least 1 message", cure);
                        continue;
                    }
                    Some((fitting, duration))
                }
            };
            let count = match (&whole.send.count, fitting) {
                (Some(None), _) => continue,
                (Some(Some(count)), None) => i128::from(count.value),
                (Some(Some(count)), Some((fitting, duration))) => {
                    let count_value = i128::from(count.value);
                    if count_value > fitting {
                        found.warn(format!(
                            "flow {flow}: {} stops {} after {fitting} messages",
                            duration.named(),
                            count.named()
                        ));
                    } else if count_value < fitting {
                        found.warn(format!(
                            "flow {flow}: {} ends before {}",
                            count.named(),
                            duration.named()
                        ));
                    }
                    count_value.min(fitting)
                }
                (None, Some((fitting, _))) => fitting,
                (None, None) => {
                    let message = format!("nothing says how many messages flow {flow} sends");
                    let cure = "add count=\"1000\" here or duration=\"10s\" to <tasks>";
                    found.error(&whole.send.place, message, "", cure);
                    continue;
                }
            };
            let Some(count) = self.count(whole, count, found) else { continue };
            let Some(warm_up_count) = self.warm_up_count(whole, found) else { continue };
            ends.push(offset + i128::from(count) * period);
            let Some(fill) = &whole.send.fill else { continue };
            sends.push(Send {
                flow,
                period: whole.period.value,
                offset: whole.offset.value,
                payload: whole.payload.value,
                fill: fill.value,
                count,
                warm_up_count,
                pattern: Pattern::Periodic,
                rate_limit_bps: None,
                sub_link: 0,
            });
        }
        let last = ends.into_iter().max().unwrap_or(0);
        let duration = match written {
            Some(Some(duration)) if !sends.is_empty() => last.min(i128::from(duration.value.as_picos())),
            Some(Some(duration)) => i128::from(duration.value.as_picos()),
            _ => last,
        };
        (sends, duration)
    }

    fn count(&self, send: &WholeSend<'_>, count: i128, found: &mut Findings) -> Option<u32> {
        let number = u32::try_from(count).ok();
        if number.is_none() {
            let flow = self.model.flows[send.send.flow].id;
            let message = format!("flow {flow} would send {count} messages");
            let cure = "write a longer period or a shorter duration";
            found.error(&send.send.place, message, u32::MAX.to_string(), cure);
        }
        number
    }

    fn warm_up_count(&self, send: &WholeSend<'_>, found: &mut Findings) -> Option<u32> {
        let warm_up = self.test.warm_up.as_ref()?;
        let count = warm_up.value.as_picos() / send.period.value.as_picos();
        self.count(send, i128::from(count), found)
    }

    fn relays(&self, sends: &[Send], found: &mut Findings) -> Vec<Relay> {
        let mut relays = Vec::new();
        for relay in &self.model.relays {
            let flow = &self.model.flows[relay.flow];
            let count = sends.iter().find(|send| send.flow == flow.id).map(|send| send.count);
            for fault in &relay.faults {
                let Some(count) = count else { continue };
                let last = fault.sequences.value.iter().map(|(_, last)| *last).max().unwrap_or(0);
                let swap = fault.kind == crate::campaign::FaultKind::Swap;
                if last >= count {
                    let message = format!("flow {} has no message {last}", flow.id);
                    let limit = format!("0 to {}", count - 1);
                    let cure = "write a smaller number or raise the count; warm-up messages have no faults";
                    found.error(&fault.place, message, limit, cure);
                } else if swap && last == count - 1 {
                    let message =
                        format!("message {last} of flow {} is the last and has no successor", flow.id);
                    let cure = "swap an earlier message";
                    found.error(&fault.place, message, format!("0 to {}", count.saturating_sub(2)), cure);
                }
            }
            let (Some(through), Some((_, on))) = (&relay.through, flow.ends) else { continue };
            let faults = relay
                .faults
                .iter()
                .map(|fault| Fault { kind: fault.kind, sequences: fault.sequences.value.clone() })
                .collect();
            relays.push(Relay { flow: flow.id, on, through: through.value, faults });
        }
        relays
    }

    fn receives(&self) -> Vec<Receive> {
        let flows = self.model.receives.iter().map(|index| &self.model.flows[*index]);
        flows.filter_map(|flow| Some(Receive { flow: flow.id, on: flow.ends?.1 })).collect()
    }

    fn planned_flows(&self) -> Vec<Flow> {
        let flows = self.model.flows.iter().filter_map(|flow| {
            flow.ends?;
            Some(Flow {
                deadline: flow.deadline.as_ref().map(|deadline| deadline.value),
                vlan: flow.vlan,
                ..Flow::plain(flow.id, flow.protocol.as_ref()?.value, flow.path.clone())
            })
        });
        flows.collect()
    }

    fn injects(&self, senders: &[WholeSend<'_>], found: &mut Findings) -> Vec<Inject> {
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
        for (node, load) in per_node {
            let own: Vec<String> = senders
                .iter()
                .map(|send| &self.model.flows[send.send.flow])
                .filter(|flow| load > 0 && flow.ends.is_some_and(|(from, _)| from == node))
                .map(|flow| flow.id.to_string())
                .collect();
            if !own.is_empty() {
                found.warn(format!(
                    "\"{}\" injects load and sends flow {} over the same link; their latency then includes \
                     waiting in the sender",
                    self.topology.name(node),
                    own.join(", ")
                ));
            }
        }
        injects
    }

    fn inject(&self, inject: &InjectModel, found: &mut Findings) -> Option<Inject> {
        let (load, payload, burst) =
            (inject.load.as_ref()?, inject.payload.as_ref()?, inject.burst.as_ref()?);
        let protocol = crate::campaign::Protocol::Udp;
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
        let rate = self.rate(inject.first_hop?.link);
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
        Some(Inject {
            on: inject.on,
            to: inject.to,
            payload: payload.value,
            burst: burst.value,
            interval: Span::from_picos(i64::try_from(interval).ok()?),
            load_ppm: load.value,
        })
    }

    fn drain(&self, found: &mut Findings) -> Span {
        let Some(written) = &self.test.drain else { return self.derived_drain() };
        let Some(drain) = written else { return Span::ZERO };
        if drain.value > LONGEST_DRAIN {
            let message = format!("{} is out of range", drain.named());
            found.error(&drain.place, message, "10min", "write a shorter time; frames do not live that long");
            return Span::ZERO;
        }
        drain.value
    }

    /// 200 ms and the time to empty every full buffer on the longest way, 5 s at most.
    fn derived_drain(&self) -> Span {
        let longest = (0..self.model.flows.len()).map(|flow| self.buffer_time(flow)).max().unwrap_or(0);
        let drain = u128::from(SHORTEST_DRAIN.unsigned_abs()) + longest;
        Span::from_picos(i64::try_from(drain).unwrap_or(i64::MAX).min(LONGEST_DERIVED_DRAIN))
    }

    fn buffer_time(&self, flow: usize) -> u128 {
        let network = &self.topology.network;
        let time = |hop: Hop| {
            let link = &network.links[hop.link];
            let sender = link.ends[usize::from(!hop.forward)].node;
            match &network.nodes[usize::from(sender)].kind {
                NodeKind::EndSystem { .. } | NodeKind::Hub { .. } => 0,
                NodeKind::Switch(switch) => {
                    let bits = u128::from(switch.port_buffer.bytes) * 8;
                    bits * PICOS_PER_SECOND / u128::from(self.rate(hop.link).max(1))
                }
            }
        };
        self.hops(flow).map(time).sum()
    }

    fn length(&self, warm_up: Span, duration: i128, drain: Span, found: &mut Findings) {
        let total = i128::from(warm_up.as_picos()) + duration + i128::from(drain.as_picos());
        if total > i128::from(LONGEST_RUN_DAYS) * i128::from(DAY) {
            let days = total / i128::from(DAY);
            let message = format!("a run of this test lasts {days} days");
            let cure = "write a shorter duration, a smaller count or a shorter period";
            found.error(&self.test.tasks, message, format!("{LONGEST_RUN_DAYS} days"), cure);
        }
    }
}
