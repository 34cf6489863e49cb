//! Senders that replay a capture: whether its frames fit the flow and the link, and what they become.

use wg_core::line::bytes;
use wg_frame::probe;
use wg_frame::time::Span;

use super::check::{PICOS_PER_SECOND, PointCheck, show_load};
use super::whole_send::{Named, WholeSend};
use crate::campaign::Protocol;
use crate::diagnostic::Findings;
use crate::model::{FlowModel, SendModel};
use crate::quantity::show_rate;
use crate::reader::Sourced;
use crate::trace::{Replay, Trace};
use crate::wire::{AROUND_FRAME, frame_length, payload_of_frame, payload_range};

/// Bytes of a transmit time.
const TRANSMIT_TIME: u32 = bytes(probe::TX_TIME_LEN);

/// By how much the software timestamps of frames that came back to back may lie too close together, in all.
const TIMESTAMPS_OF_A_BURST: Span = Span::from_micros(10);

impl PointCheck<'_> {
    /// The sender, or nothing where something is wrong with it.
    #[expect(clippy::too_many_lines, reason = "a sender is put together from what the checks found")]
    pub(super) fn replay<'m>(
        &self,
        send: &'m SendModel,
        file: &Sourced<Option<Trace>>,
        found: &mut Findings,
    ) -> Option<WholeSend<'m>> {
        let statement = send.replay.as_ref()?;
        let flow = &self.model.flows[send.flow];
        let protocol = flow.protocol.as_ref()?;
        let trace = file.value.as_ref()?;
        may_replay(send, flow, protocol.value, found)?;
        let tag = flow.tag();
        let sized = flow.sized_as(protocol.value);
        let (shortest, most) = payload_range(sized);
        let transmit_time = send.course.transmit_time.as_ref().map(|at| u32::from(at.value) + TRANSMIT_TIME);
        let needed = frame_length(sized, tag, transmit_time.unwrap_or(shortest).max(shortest));
        // Raw frames have no length field: below this, padding could not be told from content.
        let least = needed.max(64);
        let limit = frame_length(sized, tag, most);
        let longest = u32::from(trace.longest());
        check_lengths(file, trace, flow, limit, found)?;
        let speed = statement.speed_ppm.as_ref()?;
        let of_gap = |gap| Replay {
            file: file.written.to_string(),
            trace: trace.clone(),
            speed_ppm: u64::from(speed.value),
            loops: 1,
            loop_gap: gap,
            least: u16::try_from(least).unwrap_or(u16::MAX),
        };
        let one = of_gap(Span::ZERO);
        let rate = flow.hops().map(|hop| self.rate(hop.link)).min()?;
        let bits = 8 * one.wire_bytes();
        let gap = match &statement.loop_gap {
            Some(gap) => gap.as_ref()?.value,
            None => one.mean_gap(rate),
        };
        let replay = Replay { loops: statement.loops.as_ref()?.value, ..of_gap(gap) };
        if replay.raised() > 0 {
            found.warn(format!(
                "flow {}: {} of {} frames of {} are sent longer than they were, {least} B: as much as the probe header{} needs",
                flow.id,
                replay.raised(),
                trace.frames().len(),
                file.named(),
                if transmit_time.is_some() { " and the transmit time" } else { "" },
            ));
        }
        let cycle = Span::of_bits(bits, rate).unwrap_or(Span::from_picos(i64::MAX));
        check_pace(file, &speed.written, flow, (&one, &replay), rate, found)?;
        // Means, rounded so that what fits the link does not seem not to.
        let frames = trace.frames().len() as u64;
        let whole = replay.cycle().max(cycle).as_picos().unsigned_abs().div_ceil(frames).max(1);
        let period = Span::from_picos(i64::try_from(whole).unwrap_or(i64::MAX));
        let longest = longest.max(least);
        let payload = payload_of_frame(protocol.value, tag, longest)?;
        let send = WholeSend {
            send,
            period,
            pace: Named { text: file.named(), place: file.place.clone(), is_load: false },
            payload: Sourced {
                value: payload,
                attribute: "file",
                written: file.written.clone(),
                place: file.place.clone(),
            },
            before_dispatch: None,
            offset: send.offset.as_ref()?.value,
            frame: longest,
            wire_bits: bits / frames,
            burst: 1,
            spacing: Span::ZERO,
            ramp_to: None,
            replay: Some(replay),
        };
        self.check_course(&send, found);
        Some(send)
    }
}

/// Whether messages of this flow can be a replay.
fn may_replay(send: &SendModel, flow: &FlowModel, protocol: Protocol, found: &mut Findings) -> Option<()> {
    if matches!(protocol, Protocol::Rc | Protocol::Tt) {
        let message = format!("flow {} has a contract or a schedule, which no capture keeps to", flow.id);
        let cure = "replay a udp, raw or be flow, or write <send> with a period";
        found.error(&send.place, message, "udp, raw and be flows", cure);
        return None;
    }
    if flow.relayed {
        let message =
            format!("flow {} is relayed; only messages that end where they arrive can be a replay", flow.id);
        found.error(&send.place, message, "", "receive the flow instead");
        return None;
    }
    Some(())
}

/// Whether every frame of the capture fits into one of the flow.
fn check_lengths(
    file: &Sourced<Option<Trace>>,
    trace: &Trace,
    flow: &FlowModel,
    limit: u32,
    found: &mut Findings,
) -> Option<()> {
    let longest = trace.longest();
    if u32::from(longest) > limit {
        let beyond = trace.frames().iter().filter(|frame| u32::from(frame.length) > limit).count();
        let message = format!(
            "{} has {beyond} of {} frames that do not fit into a frame of flow {}; the longest has {longest}B",
            file.named(),
            trace.frames().len(),
            flow.id
        );
        let cure = "capture with offloads off (ethtool -K IFACE gro off tso off gso off), or leave them out: \
                    tshark -r IN -Y \"frame.len <= 1514\" -w OUT";
        found.error(&file.place, message, format!("{limit}B, destination address to FCS"), cure);
        return None;
    }
    Some(())
}

/// Whether a link of `rate` carries a replay, `one` loop of it as all of them; a warning where gaps are shorter than frames.
fn check_pace(
    file: &Sourced<Option<Trace>>,
    speed: &str,
    flow: &FlowModel,
    (one, replay): (&Replay, &Replay),
    rate: u64,
    found: &mut Findings,
) -> Option<()> {
    let bits = 8 * one.wire_bytes();
    // The last frame ends behind the span.
    let trace = &replay.trace;
    let least = u32::from(replay.least);
    let last = trace.frames().last().map_or(least, |frame| u32::from(frame.length).max(least));
    let last_bits = 8 * u64::from(last + AROUND_FRAME);
    let (crowded, wait) = replay.crowding(rate);
    let span = one.scaled(trace.span());
    let before_last = Span::of_bits(bits - last_bits, rate).unwrap_or(Span::from_picos(i64::MAX));
    let cycle = Span::of_bits(bits, rate).unwrap_or(Span::from_picos(i64::MAX));
    let looped = replay.loops > 1 && cycle > replay.cycle();
    if before_last > span + TIMESTAMPS_OF_A_BURST || looped {
        let offered = 1_000_000 * u128::from(bits) * PICOS_PER_SECOND
            / replay.cycle().as_picos().max(1).unsigned_abs() as u128;
        let message = format!(
            "{} at {} is {} on average, more than a link of {} on the way of flow {} carries",
            file.named(),
            speed,
            show_load(offered),
            show_rate(rate),
            flow.id
        );
        let cure = match looped {
            true => "write a lower speed, a longer loop-gap or a faster link",
            false => "write a lower speed or a faster link",
        };
        found.error(&file.place, message, show_rate(rate), cure);
        return None;
    }
    if crowded > 0 {
        found.warn(format!(
            "flow {}: {crowded} of {} frames of {} are due while the one before is still on a link of {}; they wait \
             up to {wait}, so those gaps cannot be kept",
            flow.id,
            trace.frames().len(),
            file.named(),
            show_rate(rate)
        ));
    }
    Some(())
}
