//! Records from captures: a bus tap, or any file that holds messages of ours, judged like a run.
//!
//! A capture is read twice, in bounded memory. The first pass learns what is there: taps (interfaces), flows, where each
//! flow comes by first and last. The second writes a record of each message at each tap. Without a test the taps
//! themselves become the network: latency is the time between the first and the last tap of a flow, the receive period
//! that between arrivals at the last. With a test the taps are ports of its nodes.
//!
//! Timestamps are moved to one octet before they become times, so that no figure mixes two: without a test to the first
//! octet at every tap (first octet to first octet; a store-and-forward device takes 8 L / R less from its last bit in to its
//! first bit out); with one as the simulator's records are, from the preamble out to the last octet in.

mod frames;
mod gaps;
mod mapping;
mod order;
mod plan;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;
use wg_frame::time::RunTime;
use wg_plan::{Campaign, Flow, Network, NodeIndex, Run};
use wg_record::Gap;
use wg_record::segment::{ALL_NODES, SegmentInfo, SegmentWriter};
use wg_record::{Clock, Point, Record, RecordFlags};

use crate::read::Reader;
use crate::timestamps::{Octet, TimestampKind, Timestamps};
use frames::Message;
use mapping::Map;
pub use order::{Order, TapError, Test};
use scan::{Contents, Tap};

/// What was made of them.
#[derive(Debug, Serialize)]
pub struct Taken {
    /// The campaign that the taps themselves make; absent with a test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub campaign: Option<Campaign>,
    /// Time of the first frame, ns since 1970; times in the records count from it.
    pub epoch_realtime_ns: i64,
    /// Records written.
    pub records: u64,
    /// The taps.
    pub taps: Vec<TapReport>,
    /// What of the files could not be used.
    pub troubles: Vec<TroubleReport>,
    /// By flow that the test does not have: messages left out.
    pub unknown_flows: BTreeMap<u16, u64>,
    /// Stretches of time in which the fate of messages is not known.
    pub gaps: Vec<Gap>,
}

/// A tap and what came by it.
#[derive(Debug, Serialize)]
pub struct TapReport {
    /// Its name.
    pub name: String,
    /// The file.
    pub file: String,
    /// The node of the plan it is at.
    pub node: String,
    /// The port there, from 1.
    pub port: u16,
    /// By what it timestamps, and which octet; `null` where the file does not say.
    pub timestamps: Option<Timestamps>,
    /// The octet its timestamps were taken to belong to, where the file does not say.
    pub octet: Octet,
    /// The octet its times were moved to, where that is one.
    pub reference: &'static str,
    /// Line rate, bit/s.
    pub rate_bps: Option<u64>,
    /// Smallest step of its timestamps, ns.
    pub step_ns: f64,
    /// Frames in the file.
    pub frames: u64,
    /// Messages of ours among them.
    pub messages: u64,
    /// Those whose CRC, or whose frame check sequence, does not match.
    pub damaged: u64,
    /// Those captured in part, whose CRC nobody can check.
    pub unchecked: u64,
    /// Frames that are no messages of ours.
    pub foreign: u64,
    /// Frames the capture itself says it dropped.
    pub dropped: u64,
    /// By how much a time lies before the latest in front of it in the file, at most, ps.
    pub back_ps: u64,
    /// How often a time lies before that of the frame in front of it: a clock that is set back does so once.
    pub turns: u64,
}

/// Frames, or a rest of a file, that could not be used.
#[derive(Debug, Serialize)]
pub struct TroubleReport {
    /// The file.
    pub file: String,
    /// What.
    pub what: String,
    /// How often.
    pub count: u64,
    /// Whether frames behind it are missing.
    pub ends_the_file: bool,
}

/// Reads the captures of `order` and writes the records of their messages as segments below `spool`.
///
/// # Errors
/// See [`TapError`]; what is wrong within a file is in the answer instead.
pub fn take(order: &Order, spool: &Path) -> Result<Taken, TapError> {
    let contents = scan::scan(order)?;
    let mut made = None;
    let (network, run, map) = if let Some(test) = &order.test {
        let map = Map::of_test(order, &contents, &test.network, &test.run)?;
        (&test.network, &test.run, map)
    } else {
        let campaign = made.insert(plan::from_taps(order, &contents));
        (&campaign.network, &campaign.runs[0], Map::of_taps(&campaign.network, &contents))
    };
    let epoch_realtime_ns = i64::try_from(contents.first_picos / 1_000).unwrap_or(i64::MAX);
    let mut unknown_flows = BTreeMap::new();
    let info =
        SegmentInfo { end_system: "taps".into(), node: ALL_NODES, run_index: run.index, epoch_realtime_ns };
    let mut writer = SegmentWriter::create(&spool.join("taps"), info)?;
    let mut writing = Writing {
        order,
        contents: &contents,
        map: &map,
        run,
        epoch_picos: i128::from(epoch_realtime_ns) * 1_000,
        unknown_flows: &mut unknown_flows,
        firsts: Firsts::default(),
    };
    writing.all(&mut writer)?;
    let gaps = gaps::of(&contents, &map, i128::from(epoch_realtime_ns) * 1_000);
    let records = writer.finish()?;
    let taps =
        contents.taps.iter().enumerate().map(|(number, tap)| report(order, &map, network, number, tap));
    Ok(Taken {
        epoch_realtime_ns,
        records,
        taps: taps.collect(),
        troubles: contents.troubles.iter().map(TroubleReport::of).collect(),
        unknown_flows,
        gaps,
        campaign: made,
    })
}

/// What the second pass knows.
struct Writing<'a> {
    order: &'a Order,
    contents: &'a Contents,
    map: &'a Map,
    run: &'a Run,
    epoch_picos: i128,
    unknown_flows: &'a mut BTreeMap<u16, u64>,
    firsts: Firsts,
}

/// The messages whose first copy came, as far back as copies can be late.
#[derive(Default)]
struct Firsts {
    seen: BTreeMap<(u16, bool, bool), BTreeSet<u32>>,
}

impl Firsts {
    /// Numbers remembered of a flow, phase and direction.
    const MOST: usize = 1 << 16;

    fn is_first(&mut self, flow: u16, message: &Message) -> bool {
        if message.is_damaged() {
            return true;
        }
        let seen = self.seen.entry((flow, message.is_returning(), message.is_warm_up())).or_default();
        let is_new = seen.insert(message.probe.sequence);
        if seen.len() > Self::MOST {
            seen.pop_first();
        }
        is_new
    }
}

/// Whether a message seen at `node` has come where it should.
fn point_is_arrival(flow: &Flow, node: NodeIndex, message: &Message) -> bool {
    if message.is_returning() { node == flow.from } else { flow.receivers().any(|to| to == node) }
}

impl Writing<'_> {
    /// Writes the records of all files, side by side, so that they come in the order of time.
    fn all(&mut self, writer: &mut SegmentWriter) -> Result<(), TapError> {
        let mut files = Vec::new();
        for path in &self.order.files {
            files.push(Ahead::new(scan::open(path)?));
        }
        loop {
            let next = files
                .iter()
                .enumerate()
                .filter_map(|(file, ahead)| Some((ahead.frame.as_ref()?.picos, file)));
            let Some((_, file)) = next.min() else { return Ok(()) };
            let Some(frame) = files[file].take() else { return Ok(()) };
            self.frame(file, &frame, writer)?;
        }
    }

    fn frame(&mut self, file: usize, frame: &Frame, writer: &mut SegmentWriter) -> Result<(), TapError> {
        let here = |tap: &Tap| (tap.file, tap.interface) == (file, frame.interface);
        let Some(number) = self.contents.taps.iter().position(here) else { return Ok(()) };
        let tap = &self.contents.taps[number];
        let found = frames::message(&frame.bytes, frame.length, tap.fcs, &self.contents.payloads);
        let Some(message) = found else { return Ok(()) };
        let (node, port) = self.map.place(number);
        let Some(flow) = self.run.flows.iter().find(|flow| flow.id == message.probe.flow) else {
            if !message.is_damaged() {
                *self.unknown_flows.entry(message.probe.flow).or_default() += 1;
            }
            return Ok(());
        };
        let timestamped = octet(self.order, tap, frame.direction);
        let Ok(time) = i64::try_from(frame.picos - self.epoch_picos) else { return Ok(()) };
        // The receiver removes the second copy of a flow on both networks; of both there are timestamps of the wire.
        let is_second = flow.network.is_none()
            && point_is_arrival(flow, node, &message)
            && !self.firsts.is_first(flow.id, &message);
        for (point, reference) in self.map.points(number, flow, &message, frame.direction) {
            if is_second && point == Point::Tap {
                continue;
            }
            let rate = tap.rate_bps.or_else(|| self.map.rate(number)).or(self.order.rate_bps);
            let Some(time) = timestamped.moved_to(reference, time, u64::from(message.length), rate) else {
                return Err(TapError::NoRate { tap: tap.name.clone() });
            };
            writer.push(&Record {
                time: RunTime::from_picos(time),
                sequence: message.probe.sequence,
                flow: flow.id,
                node,
                port,
                length: message.length,
                point,
                clock: clock(tap),
                crc: message.crc,
                reason: wg_record::DropReason::None,
                flags: flags(&message),
            })?;
        }
        Ok(())
    }
}

/// A frame that left its reader's buffer.
struct Frame {
    interface: usize,
    picos: i128,
    direction: crate::Direction,
    bytes: Vec<u8>,
    length: usize,
}

/// A file with its next frame.
struct Ahead {
    reader: Reader,
    frame: Option<Frame>,
}

impl Ahead {
    fn new(reader: Reader) -> Self {
        let mut ahead = Self { reader, frame: None };
        ahead.take();
        ahead
    }

    /// The next frame, and the one behind it in its place.
    fn take(&mut self) -> Option<Frame> {
        let next = self.reader.next_packet().map(|packet| Frame {
            interface: packet.interface,
            picos: packet.picos,
            direction: packet.direction,
            bytes: packet.bytes.to_vec(),
            length: packet.length,
        });
        std::mem::replace(&mut self.frame, next)
    }
}

fn flags(message: &Message) -> RecordFlags {
    let mut flags = RecordFlags::empty();
    if message.is_returning() {
        flags = flags.with(RecordFlags::RETURN);
    }
    if message.is_warm_up() {
        flags = flags.with(RecordFlags::WARM_UP);
    }
    flags
}

/// The octet that timestamps of `tap` belong to.
fn octet(order: &Order, tap: &Tap, direction: crate::Direction) -> Octet {
    match (tap.timestamps, direction) {
        (Some(timestamps), crate::Direction::Outbound) => timestamps.sent,
        (Some(timestamps), crate::Direction::Inbound) => timestamps.received,
        _ => order.octet.unwrap_or(Octet::First),
    }
}

/// A tap of which nothing is known has a clock of its own.
fn clock(tap: &Tap) -> Clock {
    clock_of(tap.timestamps.map(|timestamps| timestamps.kind))
}

/// The clock that records of a tap with such timestamps are of.
pub(crate) fn clock_of(kind: Option<TimestampKind>) -> Clock {
    match kind {
        Some(TimestampKind::Software) => Clock::KernelRealtime,
        Some(TimestampKind::Simulated) => Clock::Local,
        Some(TimestampKind::Hardware) | None => Clock::Hardware,
    }
}

fn report(order: &Order, map: &Map, network: &Network, number: usize, tap: &Tap) -> TapReport {
    let (node, port) = map.place(number);
    TapReport {
        name: tap.name.clone(),
        file: order.files[tap.file].display().to_string(),
        node: network.nodes.get(usize::from(node)).map_or_else(String::new, |node| node.name.clone()),
        port,
        timestamps: tap.timestamps,
        octet: octet(order, tap, crate::Direction::Unknown),
        reference: if order.test.is_some() { "preamble out, last octet in" } else { "first octet" },
        rate_bps: tap.rate_bps.or_else(|| map.rate(number)).or(order.rate_bps),
        step_ns: tap.step_picos as f64 / 1e3,
        frames: tap.frames,
        messages: tap.messages,
        damaged: tap.damaged,
        unchecked: tap.unchecked,
        foreign: tap.frames - tap.messages,
        dropped: tap.dropped,
        back_ps: tap.back_picos,
        turns: tap.turns,
    }
}

impl TroubleReport {
    pub(crate) fn of((file, trouble, count): &(String, crate::Trouble, u64)) -> Self {
        Self {
            file: file.clone(),
            what: trouble.to_string(),
            count: *count,
            ends_the_file: trouble.ends_the_file(),
        }
    }
}
