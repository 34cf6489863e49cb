//! The first pass: taps, and the flows that pass them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::read::Reader;
use crate::taps::frames::{self, Message};
use crate::taps::order::{MOST_TAPS, Order, TapError};
use crate::timestamps::Timestamps;
use crate::{ReadError, Trouble, printable};

/// Number of messages of a flow whose times at each tap are stored, to find the order of taps.
const COMPARED: usize = 512;

/// A tap.
#[derive(Debug)]
pub(super) struct Tap {
    /// Index of its file.
    pub(super) file: usize,
    /// Index of the interface in it.
    pub(super) interface: usize,
    pub(super) name: String,
    pub(super) fcs: u8,
    pub(super) rate_bps: Option<u64>,
    pub(super) timestamps: Option<Timestamps>,
    pub(super) step_picos: u64,
    pub(super) frames: u64,
    pub(super) messages: u64,
    pub(super) damaged: u64,
    pub(super) unchecked: u64,
    pub(super) dropped: u64,
    /// Greatest amount by which a time precedes an earlier frame's in the file, ps.
    pub(super) back_picos: u64,
    /// Number of times that precede the previous frame's.
    pub(super) turns: u64,
}

/// A flow in one direction, as one tap sees it.
#[derive(Debug, Default)]
pub(super) struct Passing {
    /// Greatest sequence number of the measured part, and of the warm-up.
    pub(super) greatest: [Option<u32>; 2],
    /// Times of messages whose number is a multiple of a power of two, by number, so that captures that begin and end
    /// at different times have some in common.
    pub(super) times: BTreeMap<u32, i128>,
    /// Exponent of that power of two.
    zeros: u32,
    pub(super) first: i128,
    pub(super) last: i128,
    pub(super) frames: u64,
    pub(super) payload: Option<u16>,
    pub(super) in_udp: bool,
    pub(super) length: u16,
}

/// Contents of all files.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) taps: Vec<Tap>,
    /// Flows seen, by flow, direction (true: back) and tap.
    pub(super) passing: BTreeMap<(u16, bool, usize), Passing>,
    /// Payload lengths of flows in raw frames.
    pub(super) payloads: BTreeMap<u16, u16>,
    pub(super) first_picos: i128,
    pub(super) last_picos: i128,
    /// Times of the first and the last frame of each file, on any interface.
    pub(super) spans: Vec<[i128; 2]>,
    /// File, trouble, and number of occurrences.
    pub(super) troubles: Vec<(String, Trouble, u64)>,
}

pub(super) fn open(file: &Path) -> Result<Reader, TapError> {
    Reader::open(file).map_err(|source| unreadable(file, source))
}

fn unreadable(file: &Path, source: ReadError) -> TapError {
    TapError::Read { file: file.display().to_string(), source }
}

/// Reads all files once.
pub(super) fn scan(order: &Order) -> Result<Contents, TapError> {
    let mut contents = Contents { first_picos: i128::MAX, last_picos: i128::MIN, ..Contents::default() };
    if let Some(test) = &order.test {
        let own =
            test.run.sends.iter().filter_map(|send| Some((send.flow, u16::try_from(send.payload).ok()?)));
        contents.payloads.extend(own);
    }
    for (number, path) in order.files.iter().enumerate() {
        let mut reader = open(path)?;
        let (begin, mut none) = (contents.taps.len(), true);
        contents.spans.push([i128::MAX, i128::MIN]);
        while let Some(packet) = reader.next_packet() {
            none = false;
            let (interface, picos) = (packet.interface, packet.picos);
            let (bytes, length) = (packet.bytes.to_vec(), packet.length);
            while contents.taps.len() - begin < reader.interfaces().len() {
                let tap = tap(number, contents.taps.len() - begin, &reader, path);
                contents.taps.push(tap);
            }
            contents.note(begin + interface, picos, &bytes, length);
        }
        if none && let Some(source) = reader.nothing_usable() {
            // Without a test, such frames may still be streams or traffic of others.
            if order.test.is_some() || !source.is_any_interface() {
                return Err(unreadable(path, source));
            }
        }
        for (tap, interface) in contents.taps[begin..].iter_mut().zip(reader.interfaces()) {
            tap.dropped = interface.dropped;
            tap.back_picos = interface.back_picos;
            tap.turns = interface.turns;
        }
        let file = path.display().to_string();
        contents.troubles.extend(reader.troubles().iter().map(|(what, n)| (file.clone(), what.clone(), *n)));
    }
    if contents.taps.len() > MOST_TAPS {
        return Err(TapError::TooMany { taps: contents.taps.len() });
    }
    // Interfaces without messages of Wiregauge are no taps.
    if contents.passing.is_empty() {
        let files: Vec<String> = order.files.iter().map(|file| file.display().to_string()).collect();
        let frames = contents.taps.iter().map(|tap| tap.frames).sum();
        return Err(TapError::NoMessage { files: files.join(", "), frames });
    }
    contents.name_apart(order);
    Ok(contents)
}

fn tap(file: usize, interface: usize, reader: &Reader, path: &Path) -> Tap {
    let facts = &reader.interfaces()[interface];
    let stem = || {
        path.file_stem().map_or_else(|| "tap".into(), |stem| printable(&stem.to_string_lossy()).into_owned())
    };
    Tap {
        file,
        interface,
        name: if facts.name.is_empty() { stem() } else { facts.name.clone() },
        fcs: facts.fcs,
        rate_bps: facts.rate_bps,
        timestamps: facts.timestamps,
        step_picos: facts.step_picos,
        frames: 0,
        messages: 0,
        damaged: 0,
        unchecked: 0,
        dropped: 0,
        back_picos: 0,
        turns: 0,
    }
}

impl Contents {
    fn note(&mut self, number: usize, picos: i128, bytes: &[u8], length: usize) {
        let Some(tap) = self.taps.get_mut(number) else { return };
        tap.frames += 1;
        self.first_picos = self.first_picos.min(picos);
        self.last_picos = self.last_picos.max(picos);
        if let Some([first, last]) = self.spans.get_mut(tap.file) {
            (*first, *last) = ((*first).min(picos), (*last).max(picos));
        }
        let Some(message) = frames::message(bytes, length, tap.fcs, &self.payloads) else { return };
        tap.messages += 1;
        match message.crc {
            wg_record::Crc::Bad => tap.damaged += 1,
            wg_record::Crc::Unchecked => tap.unchecked += 1,
            wg_record::Crc::Ok => {}
        }
        // The header of a damaged message cannot be trusted.
        if !message.is_damaged() {
            self.note_message(number, picos, &message);
        }
    }

    fn note_message(&mut self, number: usize, picos: i128, message: &Message) {
        let flow = message.probe.flow;
        if let Some(payload) = message.payload.filter(|_| !message.in_udp) {
            self.payloads.entry(flow).or_insert(payload);
        }
        let passing = self.passing.entry((flow, message.is_returning(), number)).or_default();
        if passing.frames == 0 {
            passing.first = picos;
        }
        passing.last = picos;
        passing.frames += 1;
        passing.payload = passing.payload.or(message.payload);
        passing.in_udp = message.in_udp;
        passing.length = passing.length.max(message.length);
        let greatest = &mut passing.greatest[usize::from(message.is_warm_up())];
        *greatest = Some(greatest.map_or(message.probe.sequence, |seen| seen.max(message.probe.sequence)));
        let number = message.probe.sequence;
        if !message.is_warm_up() && number.trailing_zeros() >= passing.zeros {
            passing.times.entry(number).or_insert(picos);
            while passing.times.len() > COMPARED && passing.zeros < u32::BITS {
                passing.zeros += 1;
                let zeros = passing.zeros;
                passing.times.retain(|number, _| number.trailing_zeros() >= zeros);
            }
        }
    }

    /// Gives distinct names to taps with one name in several files or sections.
    fn name_apart(&mut self, order: &Order) {
        if order.test.is_some() {
            return;
        }
        let mut taken: BTreeMap<String, u32> = BTreeMap::new();
        for tap in &mut self.taps {
            let times = taken.entry(tap.name.clone()).or_default();
            *times += 1;
            if *times > 1 {
                tap.name = format!("{}#{times}", tap.name);
            }
        }
    }

    /// The taps that a flow passes in this direction, in order.
    ///
    /// Ordered by the mean time of the messages that all of them saw; without any, by the first time.
    pub(super) fn ways(&self, flow: u16, back: bool) -> Vec<usize> {
        let seen: Vec<(usize, &Passing)> = self
            .passing
            .range((flow, back, 0)..=(flow, back, usize::MAX))
            .map(|((_, _, tap), passing)| (*tap, passing))
            .collect();
        let Some((_, first)) = seen.first() else { return Vec::new() };
        let common: Vec<u32> = first
            .times
            .keys()
            .copied()
            .filter(|number| seen.iter().all(|(_, passing)| passing.times.contains_key(number)))
            .collect();
        let mut ways: Vec<(i128, usize)> = seen
            .iter()
            .map(|(tap, passing)| {
                let sum: i128 = common.iter().filter_map(|number| passing.times.get(number)).sum();
                (if common.is_empty() { passing.first } else { sum }, *tap)
            })
            .collect();
        ways.sort_unstable();
        ways.into_iter().map(|(_, tap)| tap).collect()
    }
}
