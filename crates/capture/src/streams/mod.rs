//! A capture of one place: streams of any traffic, found by themselves, each with an account.
//!
//! Frames are read once, and what is kept does not grow with their number: an account per stream, of which there are
//! at most [`MOST_STREAMS`]. So the same code serves a file and a live interface. What is known of a protocol is an
//! entry of [`kinds`].

mod account;
mod copies;
mod distribution;
mod kind;
mod kinds;
mod layers;
mod numbering;
mod regulators;
mod report;

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::path::PathBuf;

use serde::Deserialize;
use wg_frame::ethernet::{FCS_LEN, MIN_FRAME_LEN};

use crate::taps::TroubleReport;
use crate::{Interface, ReadError, Reader};
use account::{Account, Seen};
use copies::{Copies, CopiesReport, Named};
use kind::{Found, Identity, WORDS};
use kinds::{KINDS, RTP};
use layers::{Layers, Vlans};
use numbering::Rule;
pub use report::{Observed, Recent, Second, StreamReport, TapReport};

/// Greatest number of streams that are followed: frames of others are counted only.
const MOST_STREAMS: usize = 1 << 14;
/// Greatest number of redundant series whose copies are compared.
const MOST_SERIES: usize = 1 << 12;

/// Parameters of an observation.
#[derive(Clone, Debug, Deserialize)]
pub struct Order {
    /// Captures of one place: one file, or the files of a ring buffer, in any order.
    pub files: Vec<PathBuf>,
}

/// Reason why captures cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// A file cannot be read.
    #[error("{file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The error.
        source: ReadError,
    },
    /// No frame in any file.
    #[error(
        "{files}: has no Ethernet frame with a time; capture on the Ethernet interface itself, tcpdump -i eth0 -w NEW.pcap"
    )]
    Empty {
        /// The files.
        files: String,
    },
}

/// What distinguishes a redundant series of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Series {
    kind: u8,
    vlans: Vlans,
    words: [u64; 2],
}

/// Multiplies and rotates; keys come from frames, and the number of entries is bounded.
#[derive(Clone, Copy, Debug, Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }
    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

type Table<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// An interface with frames.
#[derive(Debug)]
struct Tap {
    interface: Interface,
    file: String,
    name: String,
    frames: u64,
    /// Length of the FCS at the end of frames.
    fcs: usize,
}

/// Streams of a place, as its frames come.
#[derive(Debug, Default)]
pub struct Streams {
    streams: Table<Identity, Account>,
    series: Table<Series, Copies>,
    taps: Vec<Tap>,
    base: Option<i128>,
    first: i64,
    last: i64,
    frames: u64,
    runts: u64,
    beyond: u64,
    uncompared: u64,
}

/// The kinds of streams, each with the parts of an identity that tell its streams apart.
pub fn identities() -> BTreeMap<&'static str, Vec<&'static str>> {
    let kinds = KINDS.iter().chain([&RTP]);
    kinds.map(|kind| (kind.name, kind.fields.iter().map(|field| field.name).collect())).collect()
}

/// Reads the captures of `order`.
///
/// # Errors
/// See [`StreamError`]; problems within a file are in the result instead.
pub fn observe(order: &Order) -> Result<Observed, StreamError> {
    let mut files = Vec::new();
    for path in &order.files {
        let file = path.display().to_string();
        let open = || {
            Reader::open(path)
                .map(Reader::with_any_interface)
                .map_err(|source| StreamError::Read { file: file.clone(), source })
        };
        // Files of a ring buffer are read in the order of their first frames.
        let (opened, mut first) = (open()?, open()?);
        files.push((first.next_packet().map(|packet| packet.picos), file, opened));
    }
    files.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    let mut streams = Streams::default();
    let mut troubles = Vec::new();
    for (_, file, mut reader) in files {
        streams.read(&mut reader, &file);
        let unusable = reader.nothing_usable().filter(|_| order.files.len() == 1 && streams.frames == 0);
        if let Some(source) = unusable {
            return Err(StreamError::Read { file, source });
        }
        troubles.extend(
            reader.troubles().iter().map(|(what, n)| TroubleReport::of(&(file.clone(), what.clone(), *n))),
        );
    }
    if streams.frames == 0 {
        let files: Vec<String> = order.files.iter().map(|path| path.display().to_string()).collect();
        return Err(StreamError::Empty { files: files.join(", ") });
    }
    Ok(streams.finish(troubles))
}

impl Streams {
    /// Takes all frames of a capture.
    pub fn read(&mut self, reader: &mut Reader, file: &str) {
        // Index of the tap by number of the interface in this file.
        let mut places: Vec<Option<u16>> = Vec::new();
        while let Some((packet, interfaces)) = reader.next_with_interfaces() {
            let at = packet.interface;
            if places.len() <= at {
                places.resize(at + 1, None);
            }
            let tap = match places[at] {
                Some(tap) => tap,
                None => *places[at].insert(self.tap(&interfaces[at], at, file)),
            };
            self.frame(tap, packet.picos, packet.bytes, packet.length);
        }
        for (at, tap) in places.into_iter().enumerate() {
            let Some(tap) = tap.and_then(|tap| self.taps.get_mut(usize::from(tap))) else { continue };
            let interface = &reader.interfaces()[at];
            tap.interface.dropped = tap.interface.dropped.saturating_add(interface.dropped);
            tap.interface.states_drops &= interface.states_drops;
            tap.interface.back_picos = tap.interface.back_picos.max(interface.back_picos);
            tap.interface.turns = tap.interface.turns.saturating_add(interface.turns);
        }
    }

    /// Begins to take frames of a live interface; returns its tap.
    pub fn watch(&mut self, interface: &Interface) -> u16 {
        self.tap(interface, self.taps.len(), "")
    }

    /// Time, ns since 1970, up to which nothing else came; the first call begins the time of what is watched.
    pub fn until(&mut self, nanos: i64) {
        let picos = i128::from(nanos) * 1000;
        let base = *self.base.get_or_insert(picos);
        self.last = self.last.max(i64::try_from(picos - base).unwrap_or(i64::MAX));
    }

    /// Takes a frame of a watched interface: its time, ns since 1970, its octets as far as they are there, its length.
    pub fn take(&mut self, tap: u16, nanos: i64, bytes: &[u8], length: usize) {
        let picos = i128::from(nanos) * 1000;
        self.taps[usize::from(tap)].interface.meet(picos);
        self.frame(tap, picos, bytes, length);
    }

    /// The number of frames that a watched interface dropped so far.
    pub fn dropped(&mut self, tap: u16, dropped: u64) {
        self.taps[usize::from(tap)].interface.dropped = dropped;
    }

    /// The tap of an interface; those of several files are the same if number and name are.
    fn tap(&mut self, interface: &Interface, number: usize, file: &str) -> u16 {
        let name =
            if interface.name.is_empty() { format!("interface-{number}") } else { interface.name.clone() };
        let known = self.taps.iter().position(|tap| tap.name == name);
        let place = known.unwrap_or_else(|| {
            let mut interface = interface.clone();
            (interface.dropped, interface.back_picos, interface.turns) = (0, 0, 0);
            interface.states_drops = true;
            let fcs = usize::from(interface.fcs);
            self.taps.push(Tap { interface, file: file.to_owned(), name, frames: 0, fcs });
            self.taps.len() - 1
        });
        u16::try_from(place).unwrap_or(u16::MAX)
    }

    /// Takes a frame of a tap.
    fn frame(&mut self, tap: u16, picos: i128, bytes: &[u8], length: usize) {
        let base = *self.base.get_or_insert(picos);
        let at = i64::try_from(picos - base).unwrap_or(i64::MAX);
        self.first = self.first.min(at);
        self.last = self.last.max(at);
        self.frames += 1;
        let place = &mut self.taps[usize::from(tap)];
        if place.frames == 0 && place.fcs == 0 && ends_with_fcs(bytes, length) {
            place.fcs = FCS_LEN;
        }
        place.frames += 1;
        let without = length.saturating_sub(place.fcs);
        let on_wire = (without + FCS_LEN).max(MIN_FRAME_LEN);
        let seen = Seen { at, length: u32::try_from(on_wire).unwrap_or(u32::MAX) };
        let Some(layers) = Layers::of(&bytes[..bytes.len().min(without)], without) else {
            self.runts += 1;
            return;
        };
        self.classify(tap, seen, &layers);
    }

    fn classify(&mut self, tap: u16, seen: Seen, layers: &Layers<'_>) {
        let mut is_content_found = false;
        for (number, kind) in (0_u8..).zip(&KINDS) {
            if is_content_found {
                break;
            }
            (kind.find)(layers, &mut |found| {
                is_content_found |= !kind.is_around;
                self.message(number, tap, seen, layers.vlans, &found);
            });
        }
    }

    fn message(&mut self, kind: u8, tap: u16, seen: Seen, vlans: Vlans, found: &Found<'_>) {
        let described = &KINDS[usize::from(kind)];
        let identity = Identity { kind, network: found.network, tap, vlans, words: found.id };
        if let Some(account) = self.streams.get_mut(&identity) {
            account.take(described, seen, found);
        } else if self.streams.len() < MOST_STREAMS {
            self.streams.entry(identity).or_default().take(described, seen, found);
        } else {
            self.beyond += 1;
        }
        let (Some(words), Some(number)) = (found.group, found.number) else { return };
        let series = Series { kind, vlans, words };
        if self.series.len() < MOST_SERIES || self.series.contains_key(&series) {
            let copies = self.series.entry(series).or_default();
            let numbers = described.rule.map_or(u64::MAX, Rule::numbers);
            copies.take((tap, found.network), number, numbers, seen.at, self.first);
        } else {
            self.uncompared += 1;
        }
    }

    /// The accounts of all streams.
    pub fn finish(mut self, troubles: Vec<TroubleReport>) -> Observed {
        self.second(troubles, false).observed
    }

    /// The accounts of all streams so far, and what came since the last call. `is_open`: more frames come.
    pub fn second(&mut self, troubles: Vec<TroubleReport>, is_open: bool) -> Second {
        let (streams, recent) = self.all_streams();
        let (copies, skew) = self.all_copies(is_open);
        let epoch = self.base.unwrap_or_default() + i128::from(self.first);
        let observed = Observed {
            epoch_realtime_ns: i64::try_from(epoch / 1000).unwrap_or(i64::MAX),
            duration_ps: self.last.saturating_sub(self.first),
            frames: self.frames,
            runts: self.runts,
            beyond: self.beyond,
            uncompared: self.uncompared,
            taps: self.taps.iter().map(Tap::report).collect(),
            troubles,
            streams,
            copies,
        };
        Second { observed, recent, skew }
    }

    fn all_streams(&mut self) -> (Vec<StreamReport>, Vec<Recent>) {
        let mut streams: Vec<_> = self
            .streams
            .iter_mut()
            .map(|(id, account)| {
                let stream = account.report(&KINDS[usize::from(id.kind)], id);
                let numbers: Vec<Option<u64>> =
                    stream.fields.values().map(serde_json::Value::as_u64).collect();
                let key = (id.kind, stream.vlans.clone(), numbers, stream.name.clone(), stream.tap);
                (key, stream, account.take_recent())
            })
            .collect();
        streams.sort_by(|a, b| a.0.cmp(&b.0));
        streams.into_iter().map(|(_, stream, recent)| (stream, recent)).unzip()
    }

    fn all_copies(&mut self, is_open: bool) -> (Vec<CopiesReport>, Vec<(u64, u64)>) {
        let taps: Vec<String> = self.taps.iter().map(|tap| tap.name.clone()).collect();
        let mut copies: Vec<_> = self
            .series
            .iter_mut()
            .filter_map(|(series, copies)| {
                let recent = copies.take_recent();
                Some((copies.report(series.named(), self.last, is_open, &taps)?, recent))
            })
            .collect();
        copies
            .sort_by(|(a, _), (b, _)| (a.kind, a.name.len(), &a.name).cmp(&(b.kind, b.name.len(), &b.name)));
        copies.into_iter().unzip()
    }
}

impl Series {
    fn named(&self) -> Named {
        let kind = &KINDS[usize::from(self.kind)];
        let mut words = [0; WORDS];
        words[..2].copy_from_slice(&self.words);
        let mut fields = report::identity(kind, &words);
        if kind.rule == Some(Rule::Arinc) {
            fields.remove("source");
        }
        let vlans: Vec<u16> = self.vlans.ids().collect();
        let more: Vec<String> = vlans.iter().map(|id| format!("VLAN {id}")).collect();
        Named { kind: kind.name, name: report::name(kind, &fields, "", &more), fields, vlans }
    }
}

impl Tap {
    fn report(&self) -> TapReport {
        TapReport {
            name: self.name.clone(),
            file: self.file.clone(),
            frames: self.frames,
            dropped: (self.interface.states_drops || self.interface.dropped > 0)
                .then_some(self.interface.dropped),
            step_ps: self.interface.step_picos,
            timestamps: self.interface.timestamps,
            rate_bps: self.interface.rate_bps,
            has_fcs: self.fcs > 0,
            back_ps: self.interface.back_picos,
            turns: self.interface.turns,
        }
    }
}

/// Whether a complete frame ends with the check sequence of what is before it, as some cards leave it there.
fn ends_with_fcs(bytes: &[u8], length: usize) -> bool {
    length >= MIN_FRAME_LEN
        && bytes.len() == length
        && bytes
            .split_last_chunk::<FCS_LEN>()
            .is_some_and(|(frame, fcs)| crc32fast::hash(frame) == u32::from_le_bytes(*fcs))
}
