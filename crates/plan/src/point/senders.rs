//! Senders: how fast messages come, whether the links carry them, and how many there are.

use std::collections::BTreeMap;

use wg_frame::time::Span;

use super::check::{Medium, PICOS_PER_SECOND, PointCheck, Said, show_load};
use super::course::payload_of;
use super::frer::TAG;
use super::whole_send::{Named, WholeSend};
use crate::campaign::{Hop, Protocol, Send};
use crate::diagnostic::Findings;
use crate::language::tasks::tasks as timing;
use crate::model::{FlowModel, SendModel};
use crate::network::least_gap;
use crate::quantity::show_rate;
use crate::statements::Pace;
use crate::wire::{frame_length, payload_range, wire_bits};

/// Longest period; the mean of exponential intervals is drawn exactly up to here.
const LONGEST_PERIOD: Span = Span::from_millis(1_000_000_000);

/// The senders of a point, in the order of the file.
pub(super) struct Senders<'a> {
    all: Vec<WholeSend<'a>>,
    /// By flow: the place in `all`.
    of: BTreeMap<usize, usize>,
}

impl<'a> FromIterator<WholeSend<'a>> for Senders<'a> {
    fn from_iter<I: IntoIterator<Item = WholeSend<'a>>>(senders: I) -> Self {
        let all: Vec<_> = senders.into_iter().collect();
        Self { of: all.iter().map(|whole| whole.send.flow).zip(0..).collect(), all }
    }
}

impl<'a> std::ops::Deref for Senders<'a> {
    type Target = [WholeSend<'a>];
    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl<'a> Senders<'a> {
    /// The sender of the flow with this index.
    pub(super) fn of(&self, flow: usize) -> Option<&WholeSend<'a>> {
        self.of.get(&flow).map(|at| &self.all[*at])
    }
}

impl PointCheck<'_> {
    pub(super) fn send<'m>(&self, send: &'m SendModel, found: &mut Findings) -> Option<WholeSend<'m>> {
        if let Some(replay) = &send.replay {
            return self.replay(send, &replay.file, found);
        }
        let flow = &self.model.flows[send.flow];
        let protocol = flow.protocol.as_ref()?;
        let sized = flow.sized_as(protocol.value);
        let payload = payload_of(send.payload.as_ref()?, send.of_frame, sized, flow.tag(), found)?;
        let (least, most) = payload_range(sized);
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
        let tag = flow.tag();
        let burst = send.burst.as_ref().map_or(1, |burst| burst.value);
        let wire_bits = wire_bits(sized, tag, payload.value);
        let (period, pace) =
            self.pace(flow, send.pace.as_ref()?, u128::from(wire_bits) * u128::from(burst), found)?;
        let frame = frame_length(sized, tag, payload.value);
        let (offset, before_dispatch) = self.release(send, period, frame, found)?;
        let whole = WholeSend {
            send,
            period,
            pace,
            ramp_to: self.ramp_end(flow, send, u128::from(wire_bits), found)?,
            offset,
            before_dispatch,
            frame,
            payload,
            wire_bits,
            burst,
            spacing: send.spacing.as_ref()?.value,
            replay: None,
        };
        self.check_burst(&whole, found);
        self.check_rate_limit(&whole, found);
        self.check_sub_link(&whole, found);
        self.check_course(&whole, found);
        Some(whole)
    }

    /// The period of `bits`, as written or as the load makes it.
    fn pace(&self, flow: &FlowModel, pace: &Pace, bits: u128, found: &mut Findings) -> Option<(Span, Named)> {
        let (period, text, place, is_load) = match pace {
            Pace::Period(period) => (period.value, period.named(), &period.place, false),
            Pace::Load(load) => {
                let period = self.period_of_load(flow, load.value, bits)?;
                (period, load.named(), &load.place, true)
            }
        };
        let named = Named { text, place: place.clone(), is_load };
        if period <= Span::ZERO {
            let cure = "write the time between two messages";
            found.error(place, format!("{} is zero", named.text), "more than 0s", cure);
            return None;
        }
        if period > LONGEST_PERIOD {
            let message = format!("{} makes less than one message in 11 days", named.text);
            found.error(place, message, "1000000s", "write a shorter period or a higher load");
            return None;
        }
        Some((period, named))
    }

    /// The time in which `bits` are this share of the sender's link, rounded to a picosecond.
    pub(super) fn period_of_load(&self, flow: &FlowModel, load_ppm: u32, bits: u128) -> Option<Span> {
        let (_, reach) = flow.used().next()?;
        let first = reach.routes.first()?.hops.first()?;
        let speed = u128::from(load_ppm) * u128::from(self.rate(first.link));
        let period = (bits * PICOS_PER_SECOND * 1_000_000 + speed / 2) / speed.max(1);
        Some(Span::from_picos(i64::try_from(period).unwrap_or(i64::MAX)))
    }

    fn check_burst(&self, send: &WholeSend<'_>, found: &mut Findings) {
        let length = send.spacing.checked_mul(i64::from(send.burst));
        if send.burst > 1 && length.is_none_or(|length| length > send.period) {
            let id = self.model.flows[send.send.flow].id;
            let message = format!("the bursts of flow {id} are longer than {}", send.pace.text);
            let limit = format!("{} messages in {}", send.burst, send.period);
            found.error(&send.send.place, message, limit, "write a shorter spacing or smaller bursts");
        }
    }

    fn check_rate_limit(&self, send: &WholeSend<'_>, found: &mut Findings) {
        let Some(Some(limit)) = &send.send.rate_limit else { return };
        let flow = &self.model.flows[send.send.flow];
        let offered = send.bits() * PICOS_PER_SECOND * 1_000_000
            / u128::from(send.period.as_picos().max(1).unsigned_abs());
        if offered > u128::from(limit.value) * 1_000_000 {
            let message = format!("{} is less than flow {} offers on average", limit.named(), flow.id);
            let cure = "raise the limit or write a longer period; else messages wait ever longer";
            found.error(&limit.place, message, format!("at least {}", show_load(offered)), cure);
        }
        let first = flow.used().filter_map(|(_, reach)| reach.routes.first()?.hops.first());
        let fastest = first.map(|hop| self.rate(hop.link)).max();
        if let Some(rate) = fastest.filter(|rate| limit.value >= *rate) {
            let message = format!("{} has no effect on a link of {}", limit.named(), show_rate(rate));
            let cure = "write a rate below that of the sender's link, or remove it";
            found.error(&limit.place, message, format!("less than {}", show_rate(rate)), cure);
        }
    }

    fn check_sub_link(&self, send: &WholeSend<'_>, found: &mut Findings) {
        let Some(sub_link) = &send.send.sub_link else { return };
        let flow = &self.model.flows[send.send.flow];
        let links = flow.carriage.sub_links.as_ref().map_or(1, |links| links.value);
        if flow.is(Protocol::Rc) && sub_link.value > links {
            let message = format!("flow {} has no {}", flow.id, sub_link.named());
            let cure = "write a smaller number or add sub-links to the flow";
            found.error(&sub_link.place, message, format!("1 to {links}"), cure);
        }
    }

    pub(super) fn too_fast(&self, send: &WholeSend<'_>, found: &mut Findings) -> bool {
        if send.replay.is_some() {
            // Held against the slowest link where it was made.
            return false;
        }
        let flow = &self.model.flows[send.send.flow];
        // What a switch cannot forward is what a test of overload is about.
        let counts = |hop: &Hop| !self.test.overload || self.topology.is_end_system(hop.from.node);
        let slowest = flow.hops().filter(counts).filter_map(|hop| {
            let rate = self.rate(hop.link);
            Some((Span::of_bits(send.wire_bits - self.spared_bits(&hop), rate)?, rate))
        });
        let Some((frame, rate)) = slowest.max_by_key(|(frame, _)| *frame) else { return false };
        if let Some(deadline) = flow.deadline.as_ref().filter(|deadline| deadline.value < frame) {
            found.warn(format!(
                "flow {}: {} cannot be met; a frame alone takes {frame} on a link of {}",
                flow.id,
                deadline.named(),
                show_rate(rate)
            ));
        }
        let needed = frame.checked_mul(i64::from(send.burst)).unwrap_or(Span::from_picos(i64::MAX));
        // A load is rounded to the picosecond, and so may be less than what it stands for by half of one.
        let rounded = send.pace.is_load || send.ramp_to.is_some();
        if send.shortest().as_picos() + i64::from(rounded) >= needed.as_picos() {
            return false;
        }
        let steepest = send.ramp_to.is_some_and(|to| to < send.period);
        let text = send.send.ramp_named().filter(|_| steepest).unwrap_or_else(|| send.pace.text.clone());
        let payload = send.payload.named();
        let whose = if send.burst > 1 { "its burst of frames" } else { "its frame" };
        let message = match send.pace.is_load {
            true => format!("{text} of flow {} is more than a link of {} carries", flow.id, show_rate(rate)),
            false => format!(
                "{text} of flow {} is shorter than {whose} with {payload} takes on a link of {}",
                flow.id,
                show_rate(rate)
            ),
        };
        let cure = match (send.pace.is_load, send.burst > 1) {
            (true, _) => "write a smaller load",
            (false, true) => "write a longer period, smaller bursts or a smaller payload",
            (false, false) => "write a longer period or a smaller payload",
        };
        found.error(&send.pace.place, message, format!("at least {needed}"), cure);
        true
    }

    /// Bits by which the gap behind a frame is shorter than that of the standard, where the sender of this hop makes it so.
    fn spared_bits(&self, hop: &Hop) -> u64 {
        let gap = self.topology.network.nodes[usize::from(hop.from.node)].interframe_gap;
        8 * u64::from(least_gap().saturating_sub(gap))
    }

    /// The flows that are measured must fit onto every link; overload is the injectors' business.
    pub(super) fn load<'m>(
        &self,
        senders: impl Iterator<Item = &'m WholeSend<'m>>,
        said: &mut Said,
        found: &mut Findings,
    ) {
        // Micro-bit/s, so that rounding down cannot hide an overload worth naming.
        let mut loads: BTreeMap<Medium, (u128, Vec<u16>)> = BTreeMap::new();
        for send in senders {
            let flow = &self.model.flows[send.send.flow];
            // Every copy counts, with its tag.
            let tags = if flow.frer.is_some() { u128::from(TAG) * 8 * u128::from(send.burst) } else { 0 };
            let mut add = |medium: Medium, spared: u64| {
                let (sum, flows) = loads.entry(medium).or_default();
                let bits = send.bits() + tags - u128::from(spared) * u128::from(send.burst);
                *sum += bits * PICOS_PER_SECOND * 1_000_000
                    / u128::from(send.shortest().as_picos().max(1).unsigned_abs());
                flows.push(self.model.flows[send.send.flow].id);
            };
            // With intermediate recovery one is on each link.
            let one_each = flow.frer.is_none_or(|frer| frer.intermediate);
            let members = flow.used().filter(|_| !one_each).flat_map(|(_, reach)| &reach.routes);
            let copies = members.flat_map(|route| route.hops.iter().copied());
            let plain = self.hops(send.send.flow).filter(|_| one_each);
            for hop in plain.chain(copies) {
                match self.topology.is_hub(hop.from.node) {
                    // What leaves a hub came in by it: once on the medium.
                    true => {}
                    // What a switch cannot forward is what the test is about.
                    false if self.test.overload && !self.topology.is_end_system(hop.from.node) => {}
                    false => match self.topology.is_hub(hop.to.node) {
                        true => add(Medium::Hub(hop.to.node), 0),
                        false => add(Medium::Direction(hop), self.spared_bits(&hop)),
                    },
                }
            }
        }
        for (medium, (load, flows)) in loads {
            let Some(link) = self.link_of(medium) else { continue };
            let rate = self.rate(link);
            if load <= u128::from(rate) * 1_000_000 || !said.overloaded.insert(medium) {
                continue;
            }
            let ids: Vec<String> = flows.iter().take(20).map(ToString::to_string).collect();
            let more = if flows.len() > 20 { ", …" } else { "" };
            let message = format!(
                "flows {}{more} together take {} {}",
                ids.join(", "),
                show_load(load),
                self.where_of(medium)
            );
            let place = self
                .model
                .rate
                .as_ref()
                .map_or(&self.topology.link_places[link as usize], |rate| &rate.place);
            let cure = "write longer periods or smaller payloads, or send fewer flows over this link";
            found.error(place, message, show_rate(rate), cure);
        }
    }

    fn link_of(&self, medium: Medium) -> Option<u32> {
        match medium {
            Medium::Direction(hop) => Some(hop.link),
            Medium::Hub(hub) => self.topology.leaving[usize::from(hub)].first().map(|hop| hop.link),
        }
    }

    fn where_of(&self, medium: Medium) -> String {
        match medium {
            Medium::Direction(hop) => self.between(hop),
            Medium::Hub(hub) => format!("at hub \"{}\"", self.topology.name(hub)),
        }
    }

    /// `from "sw1" to "sw2"`.
    pub(super) fn between(&self, hop: Hop) -> String {
        format!("from \"{}\" to \"{}\"", self.topology.name(hop.from.node), self.topology.name(hop.to.node))
    }

    /// Counts and the length of the measured part: whichever of count and duration ends first.
    pub(super) fn schedule(&self, senders: &[WholeSend<'_>], found: &mut Findings) -> (Vec<Send>, i128) {
        let written = self.test.duration.as_ref();
        let mut ends = Vec::new();
        let mut sends = Vec::new();
        let (exchanges, senders): (Vec<_>, Vec<_>) =
            senders.iter().partition(|whole| self.model.flows[whole.send.flow].exchange);
        for whole in senders {
            let flow = self.model.flows[whole.send.flow].id;
            let Some((count, duration)) = self.stated_count(whole, found) else { continue };
            let count = match &whole.replay {
                Some(replay) => count.min(i128::from(replay.frames())),
                None => count,
            };
            let Some(count) = self.count(whole, count, found) else { continue };
            let Some(warm_up_count) = self.warm_up_count(whole, found) else { continue };
            let (length, ramp) = whole.length_of(count, duration);
            ends.push(i128::from(whole.offset.as_picos()) + length);
            let Some(fill) = &whole.send.fill else { continue };
            sends.push(Send {
                flow,
                period: whole.period,
                offset: whole.offset,
                before_dispatch: whole.before_dispatch,
                on_cycle: whole.send.cycle_offset.is_some(),
                payload: whole.payload.value,
                fill: fill.value,
                count,
                warm_up_count,
                pattern: ramp.unwrap_or_else(|| whole.pattern()),
                rate_limit_bps: whole.send.rate_limit.as_ref().and_then(|limit| Some(limit.as_ref()?.value)),
                sub_link: self.sub_link(whole),
                activity: whole.activity(),
                seed: whole.send.course.seed,
                pacing: whole.send.course.shaping.pacing,
                backend: whole.send.course.shaping.backend.as_ref().map(|backend| backend.value),
                launch: whole.send.course.shaping.launch.as_ref().and_then(|launch| launch.value),
                transmit_time: whole.send.course.transmit_time.as_ref().map(|at| at.value),
                replay: whole.replay.clone(),
            });
        }
        let last = ends.into_iter().max().unwrap_or(0);
        let duration = match written {
            Some(Some(duration)) if !sends.is_empty() => last.min(i128::from(duration.value.as_picos())),
            Some(Some(duration)) => i128::from(duration.value.as_picos()),
            _ => last,
        };
        sends.extend(exchanges.into_iter().filter_map(|whole| self.exchanges(whole, duration, found)));
        (sends, duration)
    }

    /// How many messages the test asks for, and the duration that bounds them, if there is one.
    fn stated_count(&self, whole: &WholeSend<'_>, found: &mut Findings) -> Option<(i128, Option<Span>)> {
        let flow = self.model.flows[whole.send.flow].id;
        let fitting = match self.test.duration.as_ref() {
            None => None,
            Some(None) => return None,
            Some(Some(duration)) => {
                let room = i128::from((duration.value - whole.offset).as_picos());
                let fitting = whole.fitting_in_course(room);
                if fitting == 0 {
                    let message = format!("flow {flow} has no message in {}", duration.named());
                    let cure = "write a longer duration or a smaller offset";
                    found.error(&whole.send.place, message, "at least 1 message", cure);
                    return None;
                }
                Some((fitting, duration))
            }
        };
        let count = match (&whole.send.count, fitting) {
            (Some(None), _) => return None,
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
                    found.warn(format!("flow {flow}: {} ends before {}", count.named(), duration.named()));
                }
                count_value.min(fitting)
            }
            (None, Some((fitting, _))) => fitting,
            (None, None) if whole.replay.is_some() => i128::MAX,
            (None, None) => {
                let message = format!("nothing says how many messages flow {flow} sends");
                let cure = "add count=\"1000\" here or duration=\"10s\" to <tasks>";
                found.error(&whole.send.place, message, "", cure);
                return None;
            }
        };
        Some((count, fitting.map(|(_, duration)| duration.value)))
    }

    /// Exchanges go on through the measured part and the first half of the drain, so that there are some after it.
    fn exchanges(&self, whole: &WholeSend<'_>, duration: i128, found: &mut Findings) -> Option<Send> {
        let drain = match &self.test.drain {
            Some(Some(drain)) => drain.value.as_picos(),
            _ => timing::DRAIN.usual().as_picos(),
        };
        let room = duration + i128::from(drain.max(0) / 2) - i128::from(whole.offset.as_picos());
        let flow = self.model.flows[whole.send.flow].id;
        let count = self.count(whole, whole.fitting(room).max(1), found)?;
        Some(Send {
            offset: whole.offset,
            fill: whole.send.fill.as_ref()?.value,
            warm_up_count: self.warm_up_count(whole, found)?,
            pattern: whole.pattern(),
            ..Send::periodic(flow, whole.period, whole.payload.value, count)
        })
    }

    /// From 0; what does not travel on a virtual link has none.
    fn sub_link(&self, send: &WholeSend<'_>) -> u8 {
        match self.model.flows[send.send.flow].is(Protocol::Rc) {
            true => send.send.sub_link.as_ref().map_or(0, |sub_link| sub_link.value - 1),
            false => 0,
        }
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
        if send.replay.is_some() {
            // It begins with its first frame.
            return Some(0);
        }
        let room = send.active_before(warm_up.value);
        let periods = i128::from(room.as_picos() / send.period.as_picos());
        self.count(send, periods * i128::from(send.burst), found)
    }
}
