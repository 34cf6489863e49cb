//! The course of a sender's traffic: ramps, pauses, sizes given as frames, and what a real host is to do.

use wg_frame::time::Span;

use super::check::{PointCheck, show_load};
use super::whole_send::WholeSend;
use crate::campaign::{Activity, Backend, Fill, Pattern, Protocol, VlanTag};
use crate::diagnostic::Findings;
use crate::model::{FlowModel, SendModel};
use crate::reader::Sourced;
use crate::statements::{RampEnd, Shaping};
use crate::wire::payload_of_frame;

/// The payload, of a frame where `of_frame`.
pub(super) fn payload_of(
    written: &Sourced<u32>,
    of_frame: bool,
    protocol: Protocol,
    tag: Option<VlanTag>,
    found: &mut Findings,
) -> Option<Sourced<u32>> {
    if !of_frame {
        return Some(written.clone());
    }
    let Some(payload) = payload_of_frame(protocol, tag, written.value) else {
        let message = format!("{} is shorter than an Ethernet frame", written.named());
        let cure = "write the length from destination address to FCS";
        found.error(&written.place, message, "at least 64B", cure);
        return None;
    };
    Some(Sourced { value: payload, ..written.clone() })
}

impl PointCheck<'_> {
    /// The period a ramp ends with; outer `None` where it could not be read.
    pub(super) fn ramp_end(
        &self,
        flow: &FlowModel,
        send: &SendModel,
        bits: u128,
        found: &mut Findings,
    ) -> Option<Option<Span>> {
        let Some(end) = &send.course.ramp else { return Some(None) };
        let (period, place, named) = match end.as_ref()? {
            RampEnd::Period(period) => (period.value, &period.place, period.named()),
            RampEnd::Load(load) => (self.period_of_load(flow, load.value, bits)?, &load.place, load.named()),
        };
        if period <= Span::ZERO || period > Span::from_millis(1_000_000_000) {
            let message = format!("{named} ends with no period a sender can keep");
            found.error(place, message, "more than 0s, at most 1000000s", "write another end of the ramp");
            return None;
        }
        Some(Some(period))
    }

    pub(super) fn check_course(&self, send: &WholeSend<'_>, found: &mut Findings) {
        let course = &send.send.course;
        let flow = &self.model.flows[send.send.flow];
        if let Some(at) = &course.transmit_time
            && u32::from(at.value) + 8 > send.payload.value
        {
            let message = format!("{} leaves no 8B within {}", at.named(), send.payload.named());
            let limit = format!("12B to {}B", send.payload.value.saturating_sub(8));
            found.error(&at.place, message, limit, "write a smaller offset or a larger payload");
        }
        let launch = course.shaping.launch.as_ref().filter(|launch| launch.value.is_some());
        let asked = course.shaping.pacing.is_some() || course.shaping.backend.is_some() || launch.is_some();
        if flow.relayed && (asked || course.transmit_time.is_some()) {
            let message = format!(
                "flow {} is relayed; only messages that end where they arrive can be a stream",
                flow.id
            );
            let cure = "remove pacing, backend, launch and transmit-time, or receive the flow instead";
            found.error(&send.send.place, message, "", cure);
        }
        let random = send.send.fill.as_ref().is_some_and(|fill| fill.value == Fill::Random);
        if random && (asked || course.transmit_time.is_some()) {
            let message = format!("flow {} is a stream, whose messages have one content", flow.id);
            let cure = "write fill=\"sequential\", or remove pacing, backend, launch and transmit-time";
            found.error(&send.send.place, message, "", cure);
        }
        check_launch(&course.shaping, found);
        if let Some(backend) = &course.shaping.backend
            && backend.value == Backend::XdpLive
        {
            let message = format!("{} leaves no record of each message", backend.named());
            let cure = "write backend=\"xdp\", or use it on an injector";
            found.error(&backend.place, message, "auto, udp, packet or xdp", cure);
        }
        if let Some(backend) = &course.shaping.backend
            && backend.value == Backend::Udp
            && flow.is(Protocol::Raw)
        {
            let message = format!("{} cannot carry flow {}, whose frames are raw", backend.named(), flow.id);
            found.error(&backend.place, message, "", "write backend=\"packet\"");
        }
        if let Some((active, _)) = &course.shaping.activity
            && active.value < send.shortest()
        {
            let message = format!("{} is shorter than the time between two messages", active.named());
            let cure = "write a longer active time or a shorter period";
            found.error(&active.place, message, format!("at least {}", send.shortest()), cure);
        }
        if let (Some(_), Some(Some(limit))) = (send.ramp_to, &send.send.rate_limit) {
            let peak = u128::from(send.wire_bits) * super::PICOS_PER_SECOND * 1_000_000
                / send.shortest().as_picos().max(1).unsigned_abs() as u128;
            if peak > u128::from(limit.value) * 1_000_000 {
                let message = format!("{} is less than the ramp of flow {} reaches", limit.named(), flow.id);
                let cure = "raise the limit or end the ramp earlier; else messages wait ever longer";
                found.error(&limit.place, message, format!("at least {}", show_load(peak)), cure);
            }
        }
    }
}

impl SendModel {
    /// How the end of its ramp is written.
    pub(super) fn ramp_named(&self) -> Option<String> {
        match self.course.ramp.as_ref()?.as_ref()? {
            RampEnd::Period(period) => Some(period.named()),
            RampEnd::Load(load) => Some(load.named()),
        }
    }
}

impl WholeSend<'_> {
    pub(super) fn activity(&self) -> Option<Activity> {
        let (active, pause) = self.send.course.shaping.activity.as_ref()?;
        Activity::new(active.value, pause.value).ok()
    }

    /// Messages due before `room` ps are over, pauses and ramp counted in.
    pub(super) fn fitting_in_course(&self, room: i128) -> i128 {
        let room = match self.activity() {
            Some(activity) => active_in(activity, room),
            None => room,
        };
        match self.ramp_to {
            // The mean of both rates; see the generator of ramps.
            Some(to) if room > 0 => {
                let q32 = |period: Span| (room << 32) / i128::from(period.as_picos().max(1));
                let twice = q32(self.period) + q32(to);
                (twice + (2 << 32) - 1) / (2 << 32)
            }
            _ => self.fitting(room),
        }
    }

    /// Active time that fits before the measured part into `room`: the end of a cycle is its pause.
    pub(super) fn active_before(&self, room: Span) -> Span {
        let Some((active, pause)) = self.activity().map(|cycle| (cycle.active(), cycle.pause())) else {
            return room;
        };
        let cycle = active.as_picos() + pause.as_picos();
        let rest = room.as_picos() % cycle;
        Span::from_picos(room.as_picos() / cycle * active.as_picos() + (rest - pause.as_picos()).max(0))
    }

    /// How long `count` messages take, ps, and the ramp they follow where there is one. A ramp lasts as long as the
    /// test says, without a word as long as its messages do.
    pub(super) fn length_of(&self, count: u32, duration: Option<Span>) -> (i128, Option<Pattern>) {
        if let Some(replay) = &self.replay {
            let last = count.checked_sub(1).and_then(|last| replay.at(u64::from(last)));
            let last = last.map_or(Span::from_picos(i64::MAX), |last| last.after);
            return (i128::from(last.as_picos()) + i128::from(self.period.as_picos()), None);
        }
        let bursts = i128::from(count.div_ceil(self.burst));
        let (period, mut ramp) = (i128::from(self.period.as_picos()), None);
        let mut active = bursts * period;
        if let Some(to) = self.ramp_to {
            let end = i128::from(to.as_picos());
            let by_count = (2 * i128::from(count) * period).saturating_mul(end) / (period + end);
            let length = match duration {
                Some(duration) => {
                    let room = i128::from((duration - self.offset).as_picos());
                    self.activity().map_or(room, |activity| active_in(activity, room))
                }
                None => by_count,
            };
            active = length;
            let length = Span::from_picos(i64::try_from(length).unwrap_or(i64::MAX));
            ramp = Some(Pattern::Ramp { to, length });
        }
        let whole = match self.activity() {
            // The last pause is not waited for.
            Some(cycle) if active > 0 => {
                let (on, pause) =
                    (i128::from(cycle.active().as_picos()), i128::from(cycle.pause().as_picos()));
                active + (active - 1) / on * pause
            }
            _ => active,
        };
        (whole, ramp)
    }
}

/// Active time in the first `room` ps of cycles.
fn active_in(activity: Activity, room: i128) -> i128 {
    let (active, pause) = (i128::from(activity.active().as_picos()), i128::from(activity.pause().as_picos()));
    let cycle = active + pause;
    room.max(0) / cycle * active + (room.max(0) % cycle).min(active)
}

/// Only packet sockets hand a frame over with its launch time.
pub(super) fn check_launch(shaping: &Shaping, found: &mut Findings) {
    if let (Some(launch), Some(backend)) = (&shaping.launch, &shaping.backend)
        && launch.value == Some(true)
        && backend.value != Backend::Packet
    {
        let message = format!("{} takes no launch times", backend.named());
        let cure = "write backend=\"packet\" or remove launch";
        found.error(&backend.place, message, "auto or packet", cure);
    }
}
