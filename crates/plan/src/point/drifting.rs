//! Whether clocks that nothing keeps together stay within the windows of time-triggered flows until the run is over.
//!
//! Schedules follow the clock of each node. A node whose clock is `e` ahead of true time acts `e` early, so a frame from
//! node A is early at node B by e(A) − e(B), and late where that is negative. At a switch an early frame waits for its
//! window, and leaves a period too early once it is there before the window of the period before has no more room for
//! it; a late one finds less room than it takes. A receiver accepts from `early` before to `late` after its instant.
//!
//! The most that is allowed for: no other frame in the way, no wander, readings without granularity. So what is said
//! here is certain; a run may lose frames sooner. Steps by faults are planted and not warned of.

use std::collections::{BTreeMap, BTreeSet};

use wg_frame::time::Span;

use super::check::PointCheck;
use super::{Carried, Senders};
use crate::campaign::{FlowId, Hop, Protocol};
use crate::diagnostic::Findings;
use crate::network::{Clock, ForwardingMode, NodeIndex, NodeKind};

/// Picoseconds in a millisecond.
const MILLI_PS: i128 = 1_000_000_000;

/// How much a frame may be off at the end of a hop before it misses.
struct Room {
    early: Span,
    late: Span,
    /// What it misses then.
    what: String,
}

/// The first miss between the clocks of two nodes.
struct Parting {
    at: Span,
    flow: FlowId,
    is_late: bool,
    what: String,
    /// Windows missed by the end of the run.
    windows: usize,
}

impl PointCheck<'_> {
    /// `end` of the run, after the epoch; `together`: nodes whose clocks are kept together.
    pub(super) fn warn_of_parting_clocks(
        &self,
        senders: &Senders<'_>,
        carried: &Carried,
        together: &[BTreeSet<NodeIndex>],
        end: Span,
        found: &mut Findings,
    ) {
        let mut partings: BTreeMap<(NodeIndex, NodeIndex), Parting> = BTreeMap::new();
        for (at, flow) in self.model.flows.iter().enumerate().filter(|(_, flow)| flow.is(Protocol::Tt)) {
            let Some(sent) = senders.of(at) else { continue };
            let ways = flow.used().flat_map(|(_, reach)| &reach.routes);
            let steps: BTreeSet<(Hop, Option<Hop>)> = ways
                .flat_map(|way| {
                    (0..way.hops.len()).map(|place| (way.hops[place], way.hops.get(place + 1).copied()))
                })
                .collect();
            for (hop, next) in steps {
                let (out, into) = (hop.from, hop.to);
                // What is kept together does not part.
                let of = |node: NodeIndex| together.iter().position(|nodes| nodes.contains(&node));
                if of(out.node).is_some() && of(out.node) == of(into.node) {
                    continue;
                }
                let Some(room) = self.room(carried, flow.id, hop, next, sent.frame) else { continue };
                let missed = parting(self.clock(out.node), self.clock(into.node), &room, end);
                let Some((at, is_late)) = missed else { continue };
                let first = partings.entry((out.node, into.node)).or_insert_with(|| Parting {
                    at,
                    flow: flow.id,
                    is_late,
                    what: room.what.clone(),
                    windows: 0,
                });
                first.windows += 1;
                if at < first.at {
                    *first = Parting { at, flow: flow.id, is_late, what: room.what, ..*first };
                }
            }
        }
        for ((from, to), parting) in partings {
            let more = match parting.windows {
                1 => String::new(),
                several => format!(", and {} more by the end", several - 1),
            };
            found.warn(format!(
                "{} and {} part and nothing keeps them together: from {} after the epoch on, frames of flow {} come too {} \
                 for {}{more}; write the same clock for both, longer windows or a shorter run",
                self.told(from),
                self.told(to),
                parting.at,
                parting.flow,
                if parting.is_late { "late" } else { "early" },
                parting.what,
            ));
        }
    }

    /// What a frame of `flow` finds at the end of `hop`: the window of the `next` one, or the receiver's own.
    fn room(&self, carried: &Carried, flow: FlowId, hop: Hop, next: Option<Hop>, sent: u32) -> Option<Room> {
        let schedule = carried.schedules.get(&flow)?;
        let window = |hop: Hop| schedule.windows.iter().find(|window| window.at == hop.from);
        let (line, sent) = (self.line(hop.link), u16::try_from(sent).ok()?);
        let opens = window(hop)?.offset;
        let into = hop.to;
        let (Some(next), NodeKind::Switch(switch)) =
            (next, &self.topology.network.nodes[usize::from(into.node)].kind)
        else {
            // A frame shorter than planned is there sooner than the instant.
            let sooner = line.time_of(schedule.longest_frame.saturating_sub(sent).into());
            let name = self.topology.name(into.node);
            let (early, late) = (schedule.early, schedule.late);
            return Some(Room {
                early: (early - sooner).max(Span::ZERO),
                late: late + sooner,
                what: format!("\"{name}\", which accepts from {early} before to {late} after its instant"),
            });
        };
        let needed = match switch.forwarding_mode {
            ForwardingMode::StoreAndForward => line.transmission(sent),
            ForwardingMode::CutThrough => line.header(false),
        };
        let delay = self.topology.network.links[hop.link as usize].delay + switch.processing_delay;
        let ready = opens.checked_add(needed)?.checked_add(delay)?;
        let onwards = window(next)?;
        let waits = (onwards.offset - ready).as_picos().rem_euclid(schedule.period.as_picos());
        let spare = onwards.length - self.line(next.link).occupation(sent);
        let late = Span::from_picos(waits) + spare.max(Span::ZERO);
        let port = self.topology.port_name(onwards.at);
        Some(Room {
            early: (schedule.period - late).max(Span::ZERO),
            late,
            what: format!("the window at {port}, {} from {} on", onwards.length, onwards.offset),
        })
    }

    fn clock(&self, node: NodeIndex) -> &Clock {
        &self.topology.network.nodes[usize::from(node)].clock
    }

    /// A node and its clock.
    fn told(&self, node: NodeIndex) -> String {
        let clock = self.clock(node);
        let drift = match clock.drift_ppb {
            whole if whole % 1_000 == 0 => format!("{}ppm", whole / 1_000),
            ppb => format!("{ppb}ppb"),
        };
        let offset = match clock.offset {
            Span::ZERO => String::new(),
            offset => format!(", offset {offset}"),
        };
        let temperature = if clock.temperature.is_empty() { "" } else { ", changing with temperature" };
        format!("the clock of \"{}\" (drift {drift}{offset}{temperature})", self.topology.name(node))
    }
}

/// When a frame sent by clock `from` first misses its room by clock `to`, rounded up to a millisecond, and whether it is
/// late then; `None`: not before `end`.
fn parting(from: &Clock, to: &Clock, room: &Room, end: Span) -> Option<(Span, bool)> {
    let mut changes: Vec<(Span, i64)> = Vec::new();
    changes.extend(from.temperature.iter().map(|step| (step.at, step.drift_ppb)));
    changes.extend(to.temperature.iter().map(|step| (step.at, -step.drift_ppb)));
    changes.sort_unstable();
    changes.push((end, 0));
    // How early the frame is, in picoseconds, and how fast that grows, in parts per billion.
    let mut early = i128::from((from.offset - to.offset).as_picos());
    let mut drift = i128::from(from.drift_ppb - to.drift_ppb);
    let mut now = Span::ZERO;
    let (most_early, most_late) = (i128::from(room.early.as_picos()), i128::from(room.late.as_picos()));
    for (at, change) in changes {
        let at = at.clamp(now, end);
        if early > most_early || -early > most_late {
            return Some((now, early < 0));
        }
        let (left, is_late) = if drift < 0 { (most_late + early, true) } else { (most_early - early, false) };
        if drift != 0 {
            let takes = (left * 1_000_000_000) / drift.abs() + 1;
            if takes <= i128::from((at - now).as_picos()) {
                let millis = (i128::from(now.as_picos()) + takes - 1) / MILLI_PS + 1;
                return Some((Span::from_millis(i64::try_from(millis).ok()?), is_late));
            }
        }
        early += drift * i128::from((at - now).as_picos()) / 1_000_000_000;
        drift += i128::from(change);
        now = at;
    }
    None
}
