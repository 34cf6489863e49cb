//! Records from captures of a bus tap, or of any file with messages of Wiregauge, judged like a run.
//!
//! A capture is read twice, in bounded memory. The first pass finds taps (interfaces), flows, and the first and last
//! tap of each flow. The second writes a record of each message at each tap. Without a test the taps themselves become
//! the network: latency is the time between the first and the last tap of a flow, the receive period that between
//! arrivals at the last. With a test the taps are ports of its nodes.
//!
//! Timestamps are converted to one octet before they become times, so that no figure mixes two: without a test to the
//! first octet at every tap (first octet to first octet; a store-and-forward device takes 8 L / R less from its last
//! bit in to its first bit out); with one as in the simulator's records, from the preamble out to the last octet in.

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

/// Result of importing captures.
#[derive(Debug, Serialize)]
pub struct Taken {
    /// Campaign that the taps themselves imply; absent with a test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub campaign: Option<Campaign>,
    /// Time of the first frame, ns since 1970; times in the records count from it.
    pub epoch_realtime_ns: i64,
    /// Records written.
    pub records: u64,
    /// Reports of the taps.
    pub taps: Vec<TapReport>,
    /// Unusable parts of the files.
    pub troubles: Vec<TroubleReport>,
    /// Number of messages left out, by flow that the test does not have.
    pub unknown_flows: BTreeMap<u16, u64>,
    /// Intervals in which the fate of messages is unknown.
    pub gaps: Vec<Gap>,
}

/// Report of a tap.
#[derive(Debug, Serialize)]
pub struct TapReport {
    /// Name of the tap.
    pub name: String,
    /// Name of the file.
    pub file: String,
    /// Name of its node in the plan.
    pub node: String,
    /// Port of that node, from 1.
    pub port: u16,
    /// Kind and octet of its timestamps; `null` if the file does not state them.
    pub timestamps: Option<Timestamps>,
    /// Octet assumed for its timestamps, if the file does not state it.
    pub octet: Octet,
    /// Octet to which its times were converted, if it is the same for all.
    pub reference: &'static str,
    /// Line rate, bit/s.
    pub rate_bps: Option<u64>,
    /// Smallest step of its timestamps, ns.
    pub step_ns: f64,
    /// Number of frames in the file.
    pub frames: u64,
    /// Number of messages of Wiregauge.
    pub messages: u64,
    /// Number of messages with a wrong CRC or frame check sequence.
    pub damaged: u64,
    /// Number of messages captured in part, whose CRC cannot be checked.
    pub unchecked: u64,
    /// Number of other frames.
    pub foreign: u64,
    /// Number of frames that the capture reports as dropped.
    pub dropped: u64,
    /// Greatest amount by which a time precedes an earlier frame's in the file, ps.
    pub back_ps: u64,
    /// Number of times that precede the previous frame's: one for each step back of a clock.
    pub turns: u64,
}

/// Unusable frames, or an unusable rest of a file.
#[derive(Debug, Serialize)]
pub struct TroubleReport {
    /// Name of the file.
    pub file: String,
    /// The problem.
    pub what: String,
    /// Number of occurrences.
    pub count: u64,
    /// Whether frames after it are missing.
    pub ends_the_file: bool,
}

/// Reads the captures of `order` and writes the records of their messages as segments below `spool`.
///
/// # Errors
/// See [`TapError`]; problems within a file are in the result instead.
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

/// State of the second pass.
struct Writing<'a> {
    order: &'a Order,
    contents: &'a Contents,
    map: &'a Map,
    run: &'a Run,
    epoch_picos: i128,
    unknown_flows: &'a mut BTreeMap<u16, u64>,
    firsts: Firsts,
}

/// Messages whose first copy has arrived, as far back as copies can be late.
#[derive(Default)]
struct Firsts {
    seen: BTreeMap<(u16, bool, bool), BTreeSet<u32>>,
}

impl Firsts {
    /// Number of sequence numbers remembered for a flow, phase and direction.
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

/// Whether a message seen at `node` has reached its destination.
fn point_is_arrival(flow: &Flow, node: NodeIndex, message: &Message) -> bool {
    if message.is_returning() { node == flow.from } else { flow.receivers().any(|to| to == node) }
}

impl Writing<'_> {
    /// Writes the records of all files, merged in the order of time.
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
        // The receiver removes the second copy of a flow on both networks; both copies have wire timestamps.
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

/// A frame copied out of its reader's buffer.
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

    /// Takes the next frame, and reads the one after it.
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

/// Octet of the timestamps of `tap`.
fn octet(order: &Order, tap: &Tap, direction: crate::Direction) -> Octet {
    match (tap.timestamps, direction) {
        (Some(timestamps), crate::Direction::Outbound) => timestamps.sent,
        (Some(timestamps), crate::Direction::Inbound) => timestamps.received,
        _ => order.octet.unwrap_or(Octet::First),
    }
}

/// Clock of a tap's records; one with unknown timestamps has its own clock.
fn clock(tap: &Tap) -> Clock {
    clock_of(tap.timestamps.map(|timestamps| timestamps.kind))
}

/// Clock of records with such timestamps.
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
