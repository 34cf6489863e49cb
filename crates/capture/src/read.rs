//! Reader of captures of any origin, as frames with times.
//!
//! Pcapng and classic pcap, either byte order, any resolution, several sections and interfaces, plain or compressed by
//! gzip. Whatever a file holds, reading ends: with its end, or where it is cut or damaged. What cannot be used is named
//! and counted, never skipped in silence. Memory: one buffer of the longest block, 16 MiB at most.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use pcap_parser::pcapng::{Block, InterfaceDescriptionBlock, OptionCode, PcapNGOption};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Linktype, PcapBlockOwned, PcapError, PcapHeader};

use wg_record::open_regular;

use crate::any_interface::{self, SLL, SLL2};
use crate::erf;
use crate::interface::Interface;
use crate::link_types::LinkType;
use crate::tick::Unit;
use crate::trouble::{ReadError, Trouble};
use crate::unpacked::{Compression, Ending, MAGIC, Unpacked};
use crate::{Direction, printable};

/// Initial and greatest length of the buffer, bytes.
const BUFFER: [usize; 2] = [256 << 10, 16 << 20];
/// Bytes by which any capture is known.
const LONGEST_HEADER: u64 = 32;
/// Greatest number of interfaces of a file; with more it counts as damaged.
const MOST_INTERFACES: usize = 1 << 16;

/// Default of `if_tsresol`.
const MICROSECONDS: u8 = 6;
const IF_SPEED: OptionCode = OptionCode(8);
const IF_FCSLEN: OptionCode = OptionCode(13);
const EPB_FLAGS: OptionCode = OptionCode(2);
const EPB_DROPCOUNT: OptionCode = OptionCode(4);
const ISB_OSDROP: OptionCode = OptionCode(7);
const ISB_IFDROP: OptionCode = OptionCode(5);

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Index of its interface in [`Reader::interfaces`].
    pub interface: usize,
    /// Time in picoseconds since 1970.
    pub picos: i128,
    /// Direction at the interface.
    pub direction: Direction,
    /// Captured bytes, FCS included if the interface has one.
    pub bytes: &'a [u8],
    /// Original length in bytes.
    pub length: usize,
}

/// Reads a capture from its beginning to its end.
pub struct Reader {
    inner: Box<dyn PcapReaderIterator + Send>,
    interfaces: Vec<Interface>,
    /// Index of each interface that the current section describes; others are of `-i any`.
    described: Vec<usize>,
    /// Whether frames of `-i any` are read, which lack their destination.
    takes_any: bool,
    /// Interfaces of frames of `-i any`, by the described one and the index on its host.
    on_hosts: BTreeMap<(usize, u32), usize>,
    big_endian: bool,
    bytes: Vec<u8>,
    at: u64,
    ended: bool,
    /// How the compressed data ended, of a compressed file.
    unpacking: Ending,
    troubles: BTreeMap<Trouble, u64>,
}

impl Reader {
    /// Opens a file.
    ///
    /// # Errors
    /// The file cannot be opened, is no regular file, is empty or no capture.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        match open_regular(path) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => Err(ReadError::Directory),
            opened => Self::plain_or_compressed(opened?),
        }
    }

    /// Reads a file that may be compressed by gzip or zstd, as Wireshark and others write them.
    fn plain_or_compressed(mut file: File) -> Result<Self, ReadError> {
        let mut magic = [0; MAGIC];
        let taken = file.read(&mut magic)?;
        file.rewind()?;
        let Some(compression) = Compression::of(&magic[..taken]) else {
            return Self::pcap_or_erf(file);
        };
        let (unpacked, ending) = Unpacked::new(file, compression);
        match Self::pcap_or_erf(unpacked) {
            Err(_) if ending.is_cut() || ending.is_damaged() => Err(ReadError::Packed),
            opened => Ok(Self { unpacking: ending, ..opened? }),
        }
    }

    /// Reads content by its first bytes; nothing but their sense marks a file of ERF.
    fn pcap_or_erf(mut from: impl Read + Send + 'static) -> Result<Self, ReadError> {
        // A cut within the header of compressed content is known only after all of it was asked for.
        let mut header = Vec::new();
        from.by_ref().take(LONGEST_HEADER).read_to_end(&mut header)?;
        let is_erf = erf::begins(&header);
        let whole = io::Cursor::new(header).chain(from);
        // The parser wants all of a header at its first reading.
        if is_erf { Self::new(Filled(erf::AsPcapng::new(whole))) } else { Self::new(Filled(whole)) }
    }

    /// Reads a capture from any source.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn new(from: impl Read + Send + 'static) -> Result<Self, ReadError> {
        let inner = pcap_parser::create_reader(BUFFER[0], from).map_err(|error| match error {
            PcapError::Eof => ReadError::Empty,
            PcapError::ReadError => ReadError::Io(io::Error::other("the disk or the pipe refused")),
            _ => ReadError::Unknown,
        })?;
        Ok(Self {
            inner,
            interfaces: Vec::new(),
            described: Vec::new(),
            takes_any: false,
            on_hosts: BTreeMap::new(),
            big_endian: false,
            bytes: Vec::new(),
            at: 0,
            ended: false,
            unpacking: Ending::default(),
            troubles: BTreeMap::new(),
        })
    }

    /// Also reads frames of `-i any`, whose destination is zero unless they were broadcast.
    #[must_use]
    pub fn with_any_interface(self) -> Self {
        Self { takes_any: true, ..self }
    }

    /// The interfaces found so far, those of all sections.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Unusable parts found so far, with their numbers.
    pub fn troubles(&self) -> &BTreeMap<Trouble, u64> {
        &self.troubles
    }

    /// Why a file without a single usable frame is refused; `None` if it had no frame at all.
    pub fn nothing_usable(&self) -> Option<ReadError> {
        let (trouble, &count) =
            self.troubles.iter().filter(|(what, _)| !what.ends_the_file()).max_by_key(|(_, n)| **n)?;
        Some(match trouble {
            Trouble::LinkType { link_type } => {
                ReadError::NoEthernet { link_type: LinkType(*link_type), count }
            }
            other => ReadError::NothingUsable { what: other.to_string(), count },
        })
    }

    /// The next Ethernet frame with a time; `None` at the end.
    pub fn next_packet(&mut self) -> Option<Packet<'_>> {
        let found = self.advance()?;
        Some(self.packet(&found))
    }

    /// The next frame as [`next_packet`](Self::next_packet) gives it, with the interfaces found so far.
    pub(crate) fn next_with_interfaces(&mut self) -> Option<(Packet<'_>, &[Interface])> {
        let found = self.advance()?;
        Some((self.packet(&found), &self.interfaces))
    }

    fn packet(&self, found: &Found) -> Packet<'_> {
        Packet {
            interface: found.interface,
            picos: found.picos,
            direction: found.direction,
            bytes: &self.bytes,
            length: found.length,
        }
    }

    fn advance(&mut self) -> Option<Found> {
        while !self.ended {
            let before = self.inner.data().len();
            // Borrows of the buffer must end before the buffer moves.
            let step = match self.inner.next() {
                Ok((taken, block)) => {
                    let mut state = State {
                        interfaces: &mut self.interfaces,
                        described: &mut self.described,
                        takes_any: self.takes_any,
                        on_hosts: &mut self.on_hosts,
                        big_endian: &mut self.big_endian,
                        bytes: &mut self.bytes,
                        troubles: &mut self.troubles,
                    };
                    Step::Block(taken, state.take(&block))
                }
                Err(PcapError::Eof | PcapError::UnexpectedEof) if self.unpacking.is_damaged() => {
                    Step::Trouble(Trouble::Damaged { at: self.at })
                }
                Err(PcapError::Eof | PcapError::UnexpectedEof) if self.unpacking.is_cut() => {
                    Step::Trouble(Trouble::Truncated { at: self.at })
                }
                Err(PcapError::Eof) => Step::End,
                Err(PcapError::Incomplete(_)) => Step::Refill,
                Err(PcapError::BufferTooSmall) => Step::Grow,
                Err(PcapError::UnexpectedEof) if before == 0 => Step::End,
                Err(PcapError::UnexpectedEof) => Step::Trouble(Trouble::Truncated { at: self.at }),
                Err(PcapError::ReadError) => Step::Trouble(Trouble::Unread { at: self.at }),
                Err(_) => Step::Trouble(Trouble::Damaged { at: self.at }),
            };
            match step {
                Step::Block(taken, found) => {
                    self.at += taken as u64;
                    self.inner.consume(taken);
                    if let Ok(Some(found)) = found {
                        return Some(found);
                    }
                    if found.is_err() {
                        self.end_with(Trouble::Damaged { at: self.at });
                    }
                }
                Step::End => self.ended = true,
                Step::Trouble(trouble) => self.end_with(trouble),
                Step::Refill => {
                    if self.inner.refill().is_err() {
                        self.end_with(Trouble::Unread { at: self.at });
                    } else if self.inner.data().len() == before && !self.inner.reader_exhausted() {
                        // The buffer is full without a complete block.
                        self.grow();
                    }
                }
                Step::Grow => self.grow(),
            }
        }
        None
    }

    fn grow(&mut self) {
        let now = self.inner.data().len().max(BUFFER[0]);
        if now >= BUFFER[1] || !self.inner.grow(now * 2) {
            self.end_with(Trouble::Damaged { at: self.at });
        } else if self.inner.refill().is_err() {
            self.end_with(Trouble::Unread { at: self.at });
        }
    }

    fn end_with(&mut self, trouble: Trouble) {
        self.troubles.insert(trouble, 1);
        self.ended = true;
    }
}

/// Content that fills what it is read into, as far as there is some.
struct Filled<R>(R);

impl<R: Read> Read for Filled<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        erf::fill(&mut self.0, into)
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("interfaces", &self.interfaces).field("at", &self.at).finish()
    }
}

enum Step {
    Block(usize, Result<Option<Found>, Contradiction>),
    End,
    Refill,
    Grow,
    Trouble(Trouble),
}

/// An impossible block: the file is damaged.
struct Contradiction;

/// A frame whose bytes are in the reader's buffer.
struct Found {
    interface: usize,
    picos: i128,
    direction: Direction,
    length: usize,
}

/// The reader without its source, which the block borrows.
struct State<'a> {
    interfaces: &'a mut Vec<Interface>,
    described: &'a mut Vec<usize>,
    takes_any: bool,
    on_hosts: &'a mut BTreeMap<(usize, u32), usize>,
    big_endian: &'a mut bool,
    bytes: &'a mut Vec<u8>,
    troubles: &'a mut BTreeMap<Trouble, u64>,
}

impl State<'_> {
    fn take(&mut self, block: &PcapBlockOwned<'_>) -> Result<Option<Found>, Contradiction> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => self.describe(of_header(header)),
            PcapBlockOwned::Legacy(packet) => {
                let unit = self.interfaces.first().and_then(|interface| interface.resolution);
                let fraction = u64::from(packet.ts_usec);
                let time = unit.and_then(|unit| {
                    let per_second = u64::try_from(unit.per_second()).ok()?;
                    let ticks = u64::from(packet.ts_sec).checked_mul(per_second)?.checked_add(fraction)?;
                    Some((unit, ticks)).filter(|_| fraction < per_second)
                });
                let data = packet.data.get(..packet.caplen as usize).ok_or(Contradiction)?;
                return Ok(self.frame(
                    0,
                    time.map(|(_, ticks)| ticks),
                    Direction::Unknown,
                    data,
                    packet.origlen,
                ));
            }
            PcapBlockOwned::NG(Block::SectionHeader(header)) => {
                self.described.clear();
                *self.big_endian = header.big_endian();
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                if self.interfaces.len() == MOST_INTERFACES {
                    return Err(Contradiction);
                }
                let described = self.of_description(interface);
                self.describe(described);
            }
            PcapBlockOwned::NG(Block::InterfaceStatistics(counted)) => {
                let dropped = [ISB_OSDROP, ISB_IFDROP].map(|code| self.number(&counted.options, code));
                if let Some(interface) = self.interface(counted.if_id) {
                    interface.states_drops |= dropped.iter().any(Option::is_some);
                    // Statistics are totals so far: the last block counts.
                    let so_far = dropped.into_iter().flatten().fold(0, u64::saturating_add);
                    interface.dropped = so_far.max(interface.dropped_between);
                }
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let direction = match self.number(&packet.options, EPB_FLAGS).unwrap_or(0) & 3 {
                    1 => Direction::Inbound,
                    2 => Direction::Outbound,
                    _ => Direction::Unknown,
                };
                // Drops since the previous frame of the interface; writers of these may write no statistics, and either
                // may count more.
                let between = self.number(&packet.options, EPB_DROPCOUNT);
                if let (Some(between), Some(interface)) = (between, self.interface(packet.if_id)) {
                    interface.states_drops = true;
                    interface.dropped_between = interface.dropped_between.saturating_add(between);
                    interface.dropped = interface.dropped.max(interface.dropped_between);
                }
                let data = packet.data.get(..packet.caplen as usize).ok_or(Contradiction)?;
                return Ok(self.frame(packet.if_id as usize, Some(ticks), direction, data, packet.origlen));
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => self.count(Trouble::NoTime),
            PcapBlockOwned::NG(_) => {}
        }
        Ok(None)
    }

    fn describe(&mut self, interface: Interface) {
        self.described.push(self.interfaces.len());
        self.interfaces.push(interface);
    }

    /// The interface of this number in its section.
    fn interface(&mut self, number: u32) -> Option<&mut Interface> {
        let at = *self.described.get(number as usize)?;
        self.interfaces.get_mut(at)
    }

    fn frame(
        &mut self,
        interface: usize,
        ticks: Option<u64>,
        direction: Direction,
        data: &[u8],
        seen: u32,
    ) -> Option<Found> {
        let Some((number, interface)) =
            self.described.get(interface).and_then(|number| Some((*number, self.interfaces.get(*number)?)))
        else {
            self.count(Trouble::NoInterface);
            return None;
        };
        let link_type = interface.link_type;
        let is_any = self.takes_any && [SLL, SLL2].contains(&link_type);
        let any = if is_any { any_interface::read(link_type, data) } else { None };
        if link_type != Linktype::ETHERNET.0 && any.is_none() {
            self.count(if is_any { Trouble::NotEthernet } else { Trouble::LinkType { link_type } });
            return None;
        }
        let picos = interface
            .resolution
            .zip(ticks)
            .and_then(|(unit, ticks)| unit.picos(ticks, interface.offset_seconds));
        let Some(picos) = picos else {
            self.count(Trouble::NoSuchTime);
            return None;
        };
        let (mut length, mut found) =
            ((seen as usize).max(data.len()), Found { interface: number, picos, direction, length: 0 });
        self.bytes.clear();
        if let Some(any) = any {
            self.count(Trouble::AnyInterface { link_type });
            length = length - any.replaced + any.header.len();
            found.direction = any.direction;
            found.interface = self.on_host(number, any.interface)?;
            self.bytes.extend_from_slice(&any.header);
            self.bytes.extend_from_slice(any.payload);
        } else {
            self.bytes.extend_from_slice(data);
        }
        if length > usize::from(u16::MAX) {
            self.count(Trouble::TooLong);
            return None;
        }
        if let Some(interface) = self.interfaces.get_mut(found.interface) {
            interface.meet(picos);
        }
        if length > self.bytes.len() {
            self.count(Trouble::Snapped);
        }
        Some(Found { length, ..found })
    }

    /// Number of the interface of a frame of `-i any`. The first that is stated takes the place of the described one.
    fn on_host(&mut self, described: usize, stated: Option<u32>) -> Option<usize> {
        let Some(stated) = stated else { return Some(described) };
        if let Some(known) = self.on_hosts.get(&(described, stated)) {
            return Some(*known);
        }
        let is_first = self.on_hosts.range((described, 0)..=(described, u32::MAX)).next().is_none();
        let at = if is_first { described } else { self.interfaces.len() };
        if at == MOST_INTERFACES {
            self.count(Trouble::NoInterface);
            return None;
        }
        if !is_first {
            // How many of the drops are its own, nobody says.
            let (dropped, states_drops) = (0, false);
            let (latest, before, back_picos, turns) = (None, None, 0, 0);
            let of = self.interfaces[described].clone();
            self.interfaces.push(Interface {
                dropped,
                states_drops,
                latest,
                before,
                back_picos,
                turns,
                ..of
            });
        }
        self.interfaces[at].name = format!("interface {stated} of any");
        self.on_hosts.insert((described, stated), at);
        Some(at)
    }

    fn of_description(&self, block: &InterfaceDescriptionBlock<'_>) -> Interface {
        let text = |code| {
            let found = block.options.iter().find(|option| option.code == code);
            found.and_then(|option| option.as_str().ok()).unwrap_or_default()
        };
        let resolution = Unit::of(
            value(&block.options, OptionCode::IfTsresol)
                .and_then(|bytes| bytes.first().copied())
                .unwrap_or(MICROSECONDS),
        );
        Interface {
            name: printable(text(OptionCode::IfName).trim_end_matches('\0')).into_owned(),
            fcs: value(&block.options, IF_FCSLEN).map_or(0, |bytes| bytes.first().copied().unwrap_or(0)),
            rate_bps: self.number(&block.options, IF_SPEED).filter(|rate| *rate > 0),
            timestamps: block
                .options
                .iter()
                .filter(|option| option.code == OptionCode::Comment)
                .find_map(|option| option.as_str().ok()?.parse().ok()),
            step_picos: resolution.map_or(1, Unit::step),
            dropped: 0,
            states_drops: false,
            dropped_between: 0,
            back_picos: 0,
            turns: 0,
            before: None,
            latest: None,
            link_type: block.linktype.0,
            resolution,
            // The parser's own field assumes a little-endian section.
            offset_seconds: self.number(&block.options, OptionCode::IfTsoffset).map_or(0, u64::cast_signed),
        }
    }

    /// Value of an option that is an unsigned number of four or eight bytes.
    fn number(&self, options: &[PcapNGOption<'_>], code: OptionCode) -> Option<u64> {
        let bytes = value(options, code)?;
        let big = *self.big_endian;
        if let Ok(four) = <[u8; 4]>::try_from(bytes) {
            return Some(u64::from(if big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }));
        }
        let eight = <[u8; 8]>::try_from(bytes).ok()?;
        Some(if big { u64::from_be_bytes(eight) } else { u64::from_le_bytes(eight) })
    }

    fn count(&mut self, trouble: Trouble) {
        let count = self.troubles.entry(trouble).or_default();
        *count = count.saturating_add(1);
    }
}

fn value<'a>(options: &'a [PcapNGOption<'_>], code: OptionCode) -> Option<&'a [u8]> {
    options.iter().find(|option| option.code == code)?.as_bytes().ok()
}

/// The interface of classic pcap; the highest bits of the link type may state the length of the FCS
/// (draft-ietf-opsawg-pcap, LinkType and additional information).
fn of_header(header: &PcapHeader) -> Interface {
    let field = header.network.0.cast_unsigned();
    let fcs = if field & 0x0400_0000 == 0 { 0 } else { (field >> 28) as u8 * 2 };
    let code = if header.is_nanosecond_precision() { 9 } else { 6 };
    let resolution = Unit::of(code);
    Interface {
        name: String::new(),
        fcs,
        rate_bps: None,
        timestamps: None,
        step_picos: resolution.map_or(1, Unit::step),
        dropped: 0,
        states_drops: false,
        dropped_between: 0,
        back_picos: 0,
        turns: 0,
        before: None,
        latest: None,
        link_type: (field & 0xffff).cast_signed(),
        resolution,
        // The header's time zone is always 0 and must be ignored (the draft calls it reserved).
        offset_seconds: 0,
    }
}
