//! Time-triggered flows: from a dispatch instant to a window at every port on the way, and whether all windows of all
//! flows go together.
//!
//! # How windows are derived
//! The sender's window opens at the flow's offset. A switch's opens when the whole frame is in and processed, as late as
//! the frame may be: opening + preamble and frame at the link's rate + propagation + processing delay. It is as long as
//! the frame keeps the line (preamble and gap included), plus [`SLACK`] for what clocks and hosts are off by, plus what
//! the frame can be held up by here and before: under shuffling the longest other frame, under preemption the gap after
//! the abort, in a raster the others' slots and the part of a slot too short for the frame. A derived window that would
//! cross the end of the period opens with the next one.

use std::collections::BTreeMap;

use wg_core::line::{GAP, LONGEST_TAGGED_FRAME, LineRate, PREAMBLE};
use wg_core::tte::schedule::{MAX_OPENINGS, PortSchedule, ScheduleFault, Window};
use wg_frame::time::Span;

use super::Senders;
use super::check::{PointCheck, Said};
use super::contracts::number;
use super::whole_send::WholeSend;
use crate::campaign::{FlowId, Hop, Protocol, TimeTriggered, TtReception, TtWindow};
use crate::diagnostic::{Findings, Place, on_line};
use crate::language::flows::flow as own;
use crate::model::{FlowModel, HandSet};
use crate::network::{Attachment, ForwardingMode, Integration, NodeKind};
use crate::reader::Sourced;
use crate::scheduling::Scheduling;

/// What a derived window is longer than its frame: what clocks and hosts are off by.
pub(super) const SLACK: Span = Span::from_micros(2);
/// More lateness than any window has room for.
const ENDLESS: Span = Span::from_millis(1_000_000);

/// A window on its way to the plan, with where it comes from.
struct Placed<'m> {
    flow: &'m FlowModel,
    place: &'m Place,
    window: TtWindow,
    period: Span,
    frame: u16,
    line: LineRate,
}

impl Placed<'_> {
    /// As the port's schedule wants it.
    fn window_of_port(&self) -> Window {
        let TtWindow { offset, length, .. } = self.window;
        Window { flow: number(self.flow), offset, period: self.period, length, longest_frame: self.frame }
    }
}

/// The planned opening of a port for one frame, in picoseconds after the beginning of the period of dispatch.
#[derive(Clone, Copy)]
struct Opening {
    opens: i128,
    /// How much later than planned the frame may start.
    late: Span,
}

/// When a frame is at the next port.
#[derive(Clone, Copy)]
struct Ready {
    /// All of it, processed.
    complete: i128,
    /// As soon as it can be sent on: earlier under cut-through.
    earliest: i128,
    late: Span,
}

/// What is the same at every port.
struct Plan<'m> {
    flow: &'m FlowModel,
    period: Span,
    frame: u16,
    windows: Vec<Placed<'m>>,
    openings: BTreeMap<Attachment, Opening>,
    receptions: Vec<TtReception>,
    last: Span,
    /// Length of the frames that are sent, which may be shorter than planned for.
    sent: u32,
    /// How much sooner than a frame of full length they are there.
    sooner: Span,
    whole: bool,
}

impl PointCheck<'_> {
    pub(super) fn schedules(
        &self,
        senders: &Senders<'_>,
        said: &mut Said,
        found: &mut Findings,
    ) -> BTreeMap<FlowId, TimeTriggered> {
        let mut schedules = BTreeMap::new();
        let mut by_port: BTreeMap<Attachment, Vec<Placed<'_>>> = BTreeMap::new();
        for (at, flow) in self.model.flows.iter().enumerate().filter(|(_, flow)| flow.is(Protocol::Tt)) {
            let Some(sender) = senders.of(at) else { continue };
            let Some((schedule, windows)) = self.time_triggered(flow, sender, found) else { continue };
            let judged = match self.scheduling {
                Scheduling::Done => true,
                Scheduling::Open => flow.carriage.offset.is_some() || !flow.windows.is_empty(),
                Scheduling::Unjudged => false,
            };
            for placed in windows.into_iter().filter(|_| judged) {
                by_port.entry(placed.window.at).or_default().push(placed);
            }
            schedules.insert(flow.id, schedule);
        }
        for (port, windows) in by_port {
            let times = |w: &Placed<'_>| [w.window.offset, w.window.length, w.period];
            let key: Vec<_> = windows.iter().map(|w| (w.flow.id, w.window.at, times(w))).collect();
            if said.sound.contains(&key) {
                continue;
            }
            if self.check_port(port, &windows, found) {
                said.sound.insert(key);
            }
        }
        schedules
    }

    #[expect(clippy::too_many_lines, reason = "one check after the other, each with its message")]
    fn time_triggered<'m>(
        &self,
        flow: &'m FlowModel,
        sender: &WholeSend<'_>,
        found: &mut Findings,
    ) -> Option<(TimeTriggered, Vec<Placed<'m>>)> {
        let carriage = &flow.carriage;
        let Some(period) = &carriage.period else {
            if !carriage.special.contains(&"period")
                && let Some(protocol) = &flow.protocol
            {
                let message = format!("flow {} has {}, but no period", flow.id, protocol.named());
                found.error(&protocol.place, message, "", "add period=\"10ms\" to the flow");
            }
            return None;
        };
        let frame = self.longest_frame(flow, sender, found)?;
        self.check_pace(flow, period, sender, found);
        let offset = self.within_period(flow, &carriage.offset, "offset", period, found)?;
        let early = self.within_period(flow, &carriage.early, "early", period, found)?;
        let late = self.within_period(flow, &carriage.late, "late", period, found)?;
        let mut plan = Plan {
            flow,
            period: period.value,
            frame,
            windows: Vec::new(),
            openings: BTreeMap::new(),
            receptions: Vec::new(),
            last: Span::ZERO,
            sent: sender.frame,
            sooner: Span::ZERO,
            whole: true,
        };
        for (_, reach) in flow.used() {
            for way in &reach.routes {
                self.along(&mut plan, offset.unwrap_or(Span::ZERO), &way.hops, found);
            }
        }
        for hand_set in flow.windows.iter().filter(|_| plan.whole) {
            if flow.has_way() && !plan.openings.contains_key(&hand_set.at) {
                let message = format!("{} is no port flow {} leaves by", hand_set.named, flow.id);
                let cure = "name an output port on the flow's way, the one towards the receiver";
                found.error(&hand_set.place, message, "", cure);
            }
        }
        let usual = (own::EARLY.usual() + plan.sooner).min(period.value);
        let (early, late) = (early.unwrap_or(usual), late.unwrap_or(plan.last));
        if plan.whole && early + late >= period.value {
            let message = format!(
                "flow {} is accepted from {early} before to {late} after its instant, which is its whole {}",
                flow.id,
                period.named()
            );
            found.error(
                &flow.place,
                message,
                format!("less than {}", period.value),
                "write a shorter early or late",
            );
        }
        let schedule = TimeTriggered {
            id: number(flow),
            period: period.value,
            offset: offset.unwrap_or(Span::ZERO),
            longest_frame: frame,
            queue: carriage.queue.as_ref().map(|queue| queue.value),
            windows: plan.windows.iter().map(|placed| placed.window).collect(),
            early,
            late,
            receptions: plan.receptions,
        };
        plan.whole.then_some((schedule, plan.windows))
    }

    /// A sender faster than the schedule fills a queue, or overwrites its own messages.
    fn check_pace(
        &self,
        flow: &FlowModel,
        period: &Sourced<Span>,
        sender: &WholeSend<'_>,
        found: &mut Findings,
    ) {
        if sender.period.as_picos() / i64::from(sender.burst) >= period.value.as_picos() {
            return;
        }
        if flow.carriage.queue.is_none() {
            found.warn(format!(
                "flow {}: {} is faster than the schedule's {}; of the messages within one period the last is sent",
                flow.id,
                sender.pace.text,
                period.named()
            ));
            return;
        }
        let message = format!(
            "{} of flow {} is faster than the schedule's {}",
            sender.pace.text,
            flow.id,
            period.named()
        );
        let least = period.value.checked_mul(i64::from(sender.burst)).unwrap_or(period.value);
        let cure =
            "write a longer period of the sender or a shorter one of the flow; else its queue overflows";
        found.error(&sender.pace.place, message, format!("at least {least}"), cure);
    }

    /// Outer `None`: refused or unreadable.
    fn within_period(
        &self,
        flow: &FlowModel,
        time: &Option<Sourced<Span>>,
        attribute: &str,
        period: &Sourced<Span>,
        found: &mut Findings,
    ) -> Option<Option<Span>> {
        let Some(time) = time else {
            return (!flow.carriage.special.contains(&attribute)).then_some(None);
        };
        if time.value < period.value {
            return Some(Some(time.value));
        }
        let message = format!("{} of flow {} is not within its {}", time.named(), flow.id, period.named());
        found.error(&time.place, message, format!("less than {}", period.value), "write a shorter time");
        None
    }

    /// Windows of all ports of one way; those it shares with another way are there already.
    fn along<'m>(&self, plan: &mut Plan<'m>, offset: Span, hops: &[Hop], found: &mut Findings) {
        let dispatch = i128::from(offset.as_picos());
        let mut ready = Ready { complete: dispatch, earliest: dispatch, late: Span::ZERO };
        let mut before = dispatch;
        for hop in hops {
            let (out, into) = (hop.from, hop.to);
            let line = self.line(hop.link);
            let opening = match plan.openings.get(&out) {
                Some(opening) => *opening,
                None => {
                    let Some(opening) = self.open(plan, (out, line), ready, before, found) else {
                        plan.whole = false;
                        return;
                    };
                    plan.openings.insert(out, opening);
                    opening
                }
            };
            let delay = i128::from(self.topology.network.links[hop.link as usize].delay.as_picos());
            let last_bit = opening.opens + i128::from(line.transmission(plan.frame).as_picos()) + delay;
            match &self.topology.network.nodes[usize::from(into.node)].kind {
                NodeKind::Switch(switch) => {
                    let processing = i128::from(switch.processing_delay.as_picos());
                    let header = opening.opens + i128::from(line.header(false).as_picos()) + delay;
                    let complete = last_bit + processing;
                    let earliest = match switch.forwarding_mode {
                        ForwardingMode::StoreAndForward => complete,
                        ForwardingMode::CutThrough => header + processing,
                    };
                    ready = Ready { complete, earliest, late: opening.late };
                }
                _ => {
                    let period = i128::from(plan.period.as_picos());
                    let offset = phase(last_bit, period);
                    let missing = line.time_of(plan.frame.into()) - line.time_of(plan.sent);
                    plan.sooner = plan.sooner.max(missing);
                    plan.receptions.push(TtReception { at: into, offset });
                }
            }
            before = opening.opens;
        }
    }

    /// The window of one port.
    #[expect(clippy::too_many_lines, reason = "one check after the other, each with its message")]
    fn open<'m>(
        &self,
        plan: &mut Plan<'m>,
        (at, line): (Attachment, LineRate),
        ready: Ready,
        before: i128,
        found: &mut Findings,
    ) -> Option<Opening> {
        let flow = plan.flow;
        let period = i128::from(plan.period.as_picos());
        let occupied = line.occupation(plan.frame);
        // Longer than any period: no window holds the frame then, and many hops add up to no more.
        let late = (ready.late + self.hold_up(at, line, occupied)).min(ENDLESS);
        let by_hand: Option<&'m HandSet> = flow.windows.iter().find(|window| window.at == at);
        let own_length = by_hand.and_then(|window| window.length.as_ref());
        let written = own_length.or(flow.carriage.window.as_ref());
        let length = written.map_or(occupied + late + SLACK, |length| length.value);
        let place = by_hand.map_or(&flow.place, |window| &window.place);
        let port = self.topology.port_name(at);
        if length < occupied {
            let what = written.map_or_else(String::new, Sourced::named);
            let message = format!(
                "{what} of flow {} at {port} is shorter than its frame of {}B takes",
                flow.id, plan.frame
            );
            let cure = "write a longer window or a shorter lmax; preamble and gap take 20B more";
            found.error(
                written.map_or(place, |length| &length.place),
                message,
                format!("at least {occupied}"),
                cure,
            );
            return None;
        }
        let opens = match by_hand {
            Some(window) => {
                let offset = self.within_period(
                    flow,
                    &Some(window.offset.clone()),
                    "window",
                    flow.carriage.period.as_ref()?,
                    found,
                )??;
                let opens = before + (i128::from(offset.as_picos()) - before).rem_euclid(period);
                if opens < ready.earliest {
                    let earliest = phase(ready.earliest, period);
                    let message = format!(
                        "{} opens at {offset}, before the frame of flow {} can be there",
                        window.named, flow.id
                    );
                    let cure = "write a later offset, or an earlier one of the flow";
                    found.error(&window.place, message, format!("{earliest} or later"), cure);
                    return None;
                }
                opens
            }
            None => ready.complete,
        };
        let within = opens.rem_euclid(period);
        let beyond = within + i128::from(length.as_picos()) > period;
        let opens = match beyond {
            true if by_hand.is_none()
                && at.node != flow.ends.as_ref()?.0
                && i128::from(length.as_picos()) <= period =>
            {
                opens - within + period
            }
            true => {
                let message = format!(
                    "the window of flow {} at {port} opens at {} for {length} and ends beyond its period",
                    flow.id,
                    phase(opens, period)
                );
                let cure = "write an earlier offset or a shorter window, or a longer period";
                found.error(place, message, plan.period.to_string(), cure);
                return None;
            }
            false => opens,
        };
        plan.last = length;
        let offset = phase(opens, period);
        let window = TtWindow { at, offset, length };
        plan.windows.push(Placed { flow, place, window, period: plan.period, frame: plan.frame, line });
        Some(Opening { opens, late })
    }

    /// How long other traffic can hold a time-triggered frame up at a port whose window is open.
    fn hold_up(&self, at: Attachment, line: LineRate, occupied: Span) -> Span {
        let NodeKind::Switch(switch) = &self.topology.network.nodes[usize::from(at.node)].kind else {
            return Span::ZERO;
        };
        if let Some(raster) = switch.raster {
            return raster.others() + occupied;
        }
        match switch.integration {
            Integration::TimelyBlock => Span::ZERO,
            Integration::Preemption => line.time_of(PREAMBLE + GAP),
            Integration::Shuffling => line.occupation(LONGEST_TAGGED_FRAME),
        }
    }

    /// True when no two windows of the port are open at once, as the port itself decides it.
    fn check_port(&self, port: Attachment, windows: &[Placed<'_>], found: &mut Findings) -> bool {
        let own = windows.iter().map(Placed::window_of_port).collect();
        let cycle = PortSchedule::common_cycle(windows.iter().map(|placed| placed.period));
        let Some(cycle) = cycle else {
            self.endless_cycle(port, windows, found);
            return false;
        };
        let rate = windows[0].line.bits_per_second();
        let Err(faults) = PortSchedule::new(cycle, own, rate) else { return true };
        for fault in faults {
            match fault {
                ScheduleFault::Clash { first, second, at } => {
                    self.clash(port, [&windows[first], &windows[second]], at, found);
                }
                ScheduleFault::TooMany(_) => self.endless_cycle(port, windows, found),
                // Each window was checked by itself when it was placed.
                other => {
                    let message =
                        format!("the windows at {} do not work: {other}", self.topology.port_name(port));
                    found.error(windows[0].place, message, "", "write other windows");
                }
            }
        }
        false
    }

    fn endless_cycle(&self, port: Attachment, windows: &[Placed<'_>], found: &mut Findings) {
        let mut flows: Vec<String> = windows.iter().take(8).map(|w| w.flow.id.to_string()).collect();
        if windows.len() > 8 {
            flows.push("…".to_owned());
        }
        let message = format!(
            "the windows at {} never begin together again in reasonable time: flows {}",
            self.topology.port_name(port),
            flows.join(", ")
        );
        let cure = "choose periods that divide one another";
        found.error(windows[0].place, message, format!("{MAX_OPENINGS} openings in a cycle"), cure);
    }

    fn clash(&self, port: Attachment, pair: [&Placed<'_>; 2], at: Span, found: &mut Findings) {
        // The later statement is the one to mend.
        let [first, second] = if pair[0].place <= pair[1].place { pair } else { [pair[1], pair[0]] };
        let line = |placed: &Placed<'_>| on_line(placed.place.line);
        let message = format!(
            "the windows of flow {}{} and flow {}{} clash at {}, {at} into the cycle",
            first.flow.id,
            line(first),
            second.flow.id,
            line(second),
            self.topology.port_name(port),
        );
        let cure = "write another offset for one of them, or shorter windows";
        found.error(second.place, message, "1 window at a time", cure);
    }
}

/// How long after the beginning of a period a time is.
#[expect(clippy::cast_possible_truncation, reason = "less than the period")]
fn phase(time: i128, period: i128) -> Span {
    Span::from_picos(time.rem_euclid(period) as i64)
}
