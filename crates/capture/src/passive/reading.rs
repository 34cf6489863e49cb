//! The frames of both captures: time, length, content and flow.

use std::collections::HashMap;
use std::path::Path;

use wg_frame::ethernet::{FCS_LEN, MIN_FRAME_LEN};

use super::content::{Content, FlowKey};
use super::ignored::Ignored;
use super::order::{Order, PassiveError};
use crate::interface::Interface;
use crate::read::Reader;
use crate::taps::TapReport;
use crate::timestamps::{Octet, Timestamps};
use crate::{Direction, Trouble, printable};

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Hash of its content.
    pub(super) key: u128,
    /// Time of its first octet, ps after the first frame of the first capture, by that capture's clock.
    pub(super) time: i64,
    /// Index into the flows.
    pub(super) flow: u32,
    /// Length with FCS.
    pub(super) length: u16,
}

/// One of the two captures.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) file: String,
    pub(super) name: String,
    /// Frames in the order of the file, and in that of time once the clocks are related.
    pub(super) frames: Vec<Frame>,
    /// Time of the first frame, ps since 1970.
    pub(super) base_picos: i128,
    /// Number of frames that were captured in part.
    pub(super) cut: u64,
    /// Number of frames that the capture reports as dropped.
    pub(super) dropped: u64,
    pub(super) step_picos: u64,
    pub(super) rate_bps: Option<u64>,
    pub(super) timestamps: Option<Timestamps>,
    /// Greatest amount by which a time precedes an earlier frame's in the file, ps.
    pub(super) back_picos: u64,
    /// Number of times that precede the previous frame's.
    pub(super) turns: u64,
}

/// Both captures.
#[derive(Debug)]
pub(super) struct Captures {
    pub(super) sides: [Side; 2],
    /// Flows in the order of first appearance.
    pub(super) flows: Vec<FlowKey>,
    /// Number of bytes by which longer frames are compared.
    pub(super) limit: Option<usize>,
    pub(super) troubles: Vec<(String, Trouble, u64)>,
    pub(super) one_file: bool,
}

/// Interfaces with frames, and the least captured length of a truncated frame.
#[derive(Default)]
struct Looked {
    interfaces: Vec<bool>,
    limit: Option<usize>,
}

pub(super) fn read(order: &Order) -> Result<Captures, PassiveError> {
    let looked: Vec<Looked> = order.files.iter().map(|path| look(path)).collect::<Result<_, _>>()?;
    let sources = sources(order, &looked)?;
    let limit = looked.iter().filter_map(|one| one.limit).min();
    let mut known = Known::default();
    let mut troubles = Vec::new();
    let mut sides = Vec::new();
    for source in &sources {
        sides.push(side(order, *source, limit, &mut known, &mut troubles)?);
    }
    // A file that was read twice has each trouble once.
    troubles.sort();
    troubles.dedup();
    let [mut before, mut after] = <[Side; 2]>::try_from(sides).map_err(|_| not_two(order, sources.len()))?;
    if before.name == after.name {
        before.name += "-before";
        after.name += "-after";
    }
    Ok(Captures {
        sides: [before, after],
        flows: known.flows,
        limit,
        troubles,
        one_file: order.files.len() == 1,
    })
}

fn open(path: &Path) -> Result<Reader, PassiveError> {
    Reader::open(path)
        .map(Reader::with_any_interface)
        .map_err(|source| PassiveError::Read { file: path.display().to_string(), source })
}

fn look(path: &Path) -> Result<Looked, PassiveError> {
    let mut reader = open(path)?;
    let mut looked = Looked::default();
    while let Some(packet) = reader.next_packet() {
        let (at, kept) = (packet.interface, packet.bytes.len());
        if kept < packet.length {
            looked.limit = Some(looked.limit.map_or(kept, |limit| limit.min(kept)));
        }
        if looked.interfaces.len() <= at {
            looked.interfaces.resize(at + 1, false);
        }
        looked.interfaces[at] = true;
    }
    if looked.interfaces.is_empty()
        && let Some(source) = reader.nothing_usable()
    {
        return Err(PassiveError::Read { file: path.display().to_string(), source });
    }
    Ok(looked)
}

/// File and, if there is only one, interface of each side.
fn sources(order: &Order, looked: &[Looked]) -> Result<Vec<(usize, Option<usize>)>, PassiveError> {
    if let [only] = looked {
        let with: Vec<usize> =
            (0..).zip(&only.interfaces).filter(|(_, has)| **has).map(|(at, _)| at).collect();
        return match with[..] {
            [before, after] => Ok(vec![(0, Some(before)), (0, Some(after))]),
            _ => Err(not_two(order, with.len())),
        };
    }
    if looked.len() != 2 {
        return Err(not_two(
            order,
            looked.iter().map(|one| one.interfaces.iter().filter(|has| **has).count()).sum(),
        ));
    }
    Ok(vec![(0, None), (1, None)])
}

fn not_two(order: &Order, interfaces: usize) -> PassiveError {
    PassiveError::Sides {
        files: files(order),
        interfaces: if interfaces == 1 { "1 interface".into() } else { format!("{interfaces} interfaces") },
    }
}

/// Names of the files, for a message.
pub(super) fn files(order: &Order) -> String {
    order.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[derive(Default)]
struct Known {
    flows: Vec<FlowKey>,
    numbers: HashMap<FlowKey, u32>,
    content: Content,
}

impl Known {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are no more flows than frames, which are counted in 32 bits"
    )]
    fn flow(&mut self, key: FlowKey) -> u32 {
        let next = self.flows.len() as u32;
        *self.numbers.entry(key).or_insert_with_key(|key| {
            self.flows.push(key.clone());
            next
        })
    }
}

#[expect(
    clippy::too_many_lines,
    reason = "one pass over the frames that fills in all that is known of a side"
)]
fn side(
    order: &Order,
    (file, wanted): (usize, Option<usize>),
    limit: Option<usize>,
    known: &mut Known,
    troubles: &mut Vec<(String, Trouble, u64)>,
) -> Result<Side, PassiveError> {
    let path = &order.files[file];
    let name = path.display().to_string();
    let mut reader = open(path)?;
    let ignored = Ignored::of(&order.ignored);
    let stem = path
        .file_stem()
        .map_or_else(|| "capture".into(), |stem| printable(&stem.to_string_lossy()).into_owned());
    let mut side = Side {
        file: name.clone(),
        name: stem,
        frames: Vec::new(),
        base_picos: 0,
        cut: 0,
        dropped: 0,
        step_picos: 1,
        rate_bps: order.rate_bps,
        timestamps: None,
        back_picos: 0,
        turns: 0,
    };
    let mut used: Option<(usize, Interface)> = None;
    let mut bytes = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let at = packet.interface;
        if wanted.is_some_and(|wanted| wanted != at) {
            continue;
        }
        let (picos, direction, length) = (packet.picos, packet.direction, packet.length);
        let kept = packet.bytes.len();
        // A look-up by interface borrows the reader, as the packet does.
        bytes.clear();
        bytes.extend_from_slice(packet.bytes);
        let interface = match &used {
            Some((number, interface)) if *number == at => interface,
            _ => &used.insert((at, reader.interfaces()[at].clone())).1,
        };
        if side.frames.is_empty() {
            side.base_picos = picos;
            side.describe(interface, wanted);
        }
        side.step_picos = side.step_picos.max(interface.step_picos);
        side.cut += u64::from(kept < length);
        let fcs = usize::from(interface.fcs);
        let length = length.saturating_sub(fcs);
        let on_wire = (length + FCS_LEN).max(MIN_FRAME_LEN);
        let Ok(frame_length) = u16::try_from(on_wire) else { continue };
        let first = octet(order, interface, direction);
        let rate = interface.rate_bps.or(order.rate_bps);
        let Ok(time) = i64::try_from(picos - side.base_picos) else { continue };
        let Some(time) = first.moved_to(Octet::First, time, on_wire as u64, rate) else {
            return Err(PassiveError::NoRate { file: name });
        };
        known.content.take(&bytes[..kept.min(length)], length, &ignored);
        let key = known.content.hash(limit, &ignored);
        let flow = known.content.flow(&ignored);
        let flow = known.flow(flow);
        if side.frames.len() >= u32::MAX as usize {
            return Err(PassiveError::TooMany { file: name, limit: u32::MAX });
        }
        side.frames.push(Frame { key, time, flow, length: frame_length });
    }
    if side.frames.is_empty() {
        return Err(PassiveError::Empty { file: name });
    }
    let all = reader.interfaces().iter().enumerate();
    for (_, interface) in all.filter(|(at, _)| wanted.is_none_or(|wanted| wanted == *at)) {
        side.dropped = side.dropped.saturating_add(interface.dropped);
        side.back_picos = side.back_picos.max(interface.back_picos);
        side.turns = side.turns.saturating_add(interface.turns);
    }
    troubles.extend(reader.troubles().iter().map(|(what, n)| (name.clone(), what.clone(), *n)));
    Ok(side)
}

/// The octet to which the timestamp of a frame belongs.
fn octet(order: &Order, interface: &Interface, direction: Direction) -> Octet {
    match (interface.timestamps, direction) {
        (Some(timestamps), Direction::Outbound) => timestamps.sent,
        (Some(timestamps), Direction::Inbound) => timestamps.received,
        _ => order.octet.unwrap_or(Octet::First),
    }
}

impl Side {
    fn describe(&mut self, interface: &Interface, wanted: Option<usize>) {
        self.timestamps = interface.timestamps;
        self.rate_bps = interface.rate_bps.or(self.rate_bps);
        if let Some(number) = wanted {
            self.name = if interface.name.is_empty() {
                format!("interface-{number}")
            } else {
                interface.name.clone()
            };
        }
    }

    /// First and last time.
    pub(super) fn span(&self) -> [i64; 2] {
        [&self.frames[0], &self.frames[self.frames.len() - 1]].map(|frame| frame.time)
    }

    pub(super) fn clock(&self) -> wg_record::Clock {
        crate::taps::clock_of(self.timestamps.map(|timestamps| timestamps.kind))
    }

    pub(super) fn report(&self, order: &Order) -> TapReport {
        TapReport {
            name: self.name.clone(),
            file: self.file.clone(),
            node: self.name.clone(),
            port: 1,
            timestamps: self.timestamps,
            octet: order.octet.unwrap_or(Octet::First),
            reference: "first octet",
            rate_bps: self.rate_bps,
            step_ns: self.step_picos as f64 / 1e3,
            frames: self.frames.len() as u64,
            messages: self.frames.len() as u64,
            damaged: 0,
            unchecked: self.cut,
            foreign: 0,
            dropped: self.dropped,
            back_ps: self.back_picos,
            turns: self.turns,
        }
    }
}
