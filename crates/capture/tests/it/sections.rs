//! Options of interfaces and frames, in sections of either byte order: written here byte by byte, read as they were
//! meant.

use std::io::Cursor;

use proptest::prelude::*;
use wg_capture::{Direction, Reader, Timestamps};

const PICOS: i128 = 1_000_000_000_000;

/// An interface as a file describes it; `None` is an option left out.
#[derive(Clone, Debug)]
struct Described {
    name: Option<String>,
    resolution: Option<u8>,
    offset: Option<i64>,
    speed: Option<u64>,
    fcs: Option<u8>,
    timestamps: Option<Timestamps>,
    dropped: Option<[u64; 2]>,
    /// An option that nobody here reads, and where among the others it stands.
    foreign: Option<(u16, Vec<u8>)>,
    reversed: bool,
}

/// A section: whether big-endian, its interfaces, and frames as interface, ticks, flags and bytes.
type Section = (bool, Vec<Described>, Vec<(prop::sample::Index, u64, Option<u32>, Vec<u8>)>);

fn described() -> impl Strategy<Value = Described> {
    let timestamps = prop_oneof![Just(Timestamps::SOFTWARE), Just(Timestamps::HARDWARE)];
    let resolution = prop_oneof![0_u8..=18, (0_u8..=60).prop_map(|power| 0x80 | power)];
    (
        (
            prop::option::of("[a-z]{1,9}"),
            prop::option::of(resolution),
            prop::option::of(prop_oneof![-40_000_i64..40_000, 0_i64..2_000_000_000]),
            prop::option::of(1_u64..400_000_000_000),
        ),
        prop::option::of(prop_oneof![Just(0_u8), Just(4)]),
        prop::option::of(timestamps),
        prop::option::of([0_u64..1 << 40, 0_u64..1 << 40]),
        prop::option::of((
            prop_oneof![Just(3_u16), Just(11), Just(12), Just(2_988)],
            prop::collection::vec(any::<u8>(), 0..9),
        )),
        any::<bool>(),
    )
        .prop_map(|((name, resolution, offset, speed), fcs, timestamps, dropped, foreign, reversed)| {
            Described { name, resolution, offset, speed, fcs, timestamps, dropped, foreign, reversed }
        })
}

fn sections() -> impl Strategy<Value = Vec<Section>> {
    let frame = (
        any::<prop::sample::Index>(),
        any::<u64>().prop_map(|ticks| ticks >> 1),
        prop::option::of(0_u32..4),
        prop::collection::vec(any::<u8>(), 14..90),
    );
    let section =
        (any::<bool>(), prop::collection::vec(described(), 1..7), prop::collection::vec(frame, 0..12));
    prop::collection::vec(section, 1..4)
}

/// Numbers of one byte order.
struct Writer {
    big: bool,
    out: Vec<u8>,
}

impl Writer {
    fn put(&mut self, little: &[u8]) {
        if self.big { self.out.extend(little.iter().rev()) } else { self.out.extend(little) }
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.put(&code.to_le_bytes());
        self.put(&u16::try_from(value.len()).expect("short").to_le_bytes());
        self.out.extend(value);
        self.out.extend(vec![0; value.len().wrapping_neg() % 4]);
    }

    fn number(&mut self, code: u16, little: &[u8]) {
        let mut value = little.to_vec();
        if self.big {
            value.reverse();
        }
        self.option(code, &value);
    }

    fn block(&mut self, kind: u32, fill: impl FnOnce(&mut Self)) {
        let mut body = Self { big: self.big, out: Vec::new() };
        fill(&mut body);
        let length = u32::try_from(body.out.len() + 12).expect("short").to_le_bytes();
        self.put(&kind.to_le_bytes());
        self.put(&length);
        self.out.extend(body.out);
        self.put(&length);
    }
}

/// Writes one option of an interface.
type PutOption<'a> = Box<dyn Fn(&mut Writer) + 'a>;

fn options(writer: &mut Writer, interface: &Described) {
    let mut each: Vec<PutOption<'_>> = Vec::new();
    if let Some(name) = &interface.name {
        each.push(Box::new(move |writer| writer.option(2, name.as_bytes())));
    }
    if let Some(speed) = interface.speed {
        each.push(Box::new(move |writer| writer.number(8, &speed.to_le_bytes())));
    }
    if let Some(resolution) = interface.resolution {
        each.push(Box::new(move |writer| writer.option(9, &[resolution])));
    }
    if let Some(fcs) = interface.fcs {
        each.push(Box::new(move |writer| writer.option(13, &[fcs])));
    }
    if let Some(offset) = interface.offset {
        each.push(Box::new(move |writer| writer.number(14, &offset.to_le_bytes())));
    }
    if let Some(timestamps) = interface.timestamps {
        each.push(Box::new(move |writer| writer.option(1, timestamps.to_string().as_bytes())));
    }
    if let Some((code, value)) = &interface.foreign {
        each.push(Box::new(move |writer| writer.option(*code, value)));
    }
    if interface.reversed {
        each.reverse();
    }
    each.iter().for_each(|put| put(writer));
    writer.put(&[0; 4]);
}

fn file(sections: &[Section]) -> Vec<u8> {
    let mut out = Vec::new();
    for (big, interfaces, frames) in sections {
        let mut writer = Writer { big: *big, out: Vec::new() };
        writer.block(0x0a0d_0d0a, |block| {
            block.put(&0x1a2b_3c4d_u32.to_le_bytes());
            block.put(&1_u16.to_le_bytes());
            block.put(&0_u16.to_le_bytes());
            block.put(&u64::MAX.to_le_bytes());
        });
        for interface in interfaces {
            writer.block(1, |block| {
                block.put(&1_u16.to_le_bytes());
                block.put(&0_u16.to_le_bytes());
                block.put(&65_535_u32.to_le_bytes());
                options(block, interface);
            });
        }
        for (at, ticks, flags, bytes) in frames {
            writer.block(6, |block| {
                let length = u32::try_from(bytes.len()).expect("short").to_le_bytes();
                block.put(&u32::try_from(at.index(interfaces.len())).expect("few").to_le_bytes());
                block.put(&((ticks >> 32) as u32).to_le_bytes());
                block.put(&(*ticks as u32).to_le_bytes());
                block.put(&length);
                block.put(&length);
                block.out.extend(bytes);
                block.out.extend(vec![0; bytes.len().wrapping_neg() % 4]);
                if let Some(flags) = flags {
                    block.number(2, &flags.to_le_bytes());
                    block.put(&[0; 4]);
                }
            });
        }
        for (at, interface) in interfaces.iter().enumerate() {
            let Some([card, system]) = interface.dropped else { continue };
            writer.block(5, |block| {
                block.put(&u32::try_from(at).expect("few").to_le_bytes());
                block.put(&[0; 8]);
                block.number(5, &card.to_le_bytes());
                block.number(7, &system.to_le_bytes());
                block.put(&[0; 4]);
            });
        }
        out.extend(writer.out);
    }
    out
}

/// Picoseconds since 1970; `None` where there is no such time to tell.
fn time(interface: &Described, ticks: u64) -> Option<i128> {
    let code = interface.resolution.unwrap_or(6);
    let per_second = if code & 0x80 == 0 { 10_i128.pow(code.into()) } else { 1 << (code & 0x7f) };
    let picos = i128::from(ticks) / per_second * PICOS
        + i128::from(ticks) % per_second * PICOS / per_second
        + i128::from(interface.offset.unwrap_or(0)) * PICOS;
    (0..253_402_300_800 * PICOS).contains(&picos).then_some(picos)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Whatever a section's byte order is, it says the same: of every interface and of every frame.
    #[test]
    fn every_option_is_read_in_either_byte_order(sections in sections()) {
        let mut reader = Reader::new(Cursor::new(file(&sections))).expect("it is a capture");
        let mut found = Vec::new();
        while let Some(packet) = reader.next_packet() {
            found.push((packet.interface, packet.picos, packet.direction, packet.bytes.to_vec()));
        }
        let mut expected = Vec::new();
        let mut impossible = 0;
        let mut first = 0;
        for (_, interfaces, frames) in &sections {
            for (at, ticks, flags, bytes) in frames {
                let at = at.index(interfaces.len());
                let direction = match flags.unwrap_or(0) & 3 {
                    1 => Direction::Inbound,
                    2 => Direction::Outbound,
                    _ => Direction::Unknown,
                };
                match time(&interfaces[at], *ticks) {
                    Some(picos) => expected.push((first + at, picos, direction, bytes.clone())),
                    None => impossible += 1,
                }
            }
            first += interfaces.len();
        }
        prop_assert_eq!(found, expected);
        prop_assert_eq!(reader.troubles().values().sum::<u64>(), impossible);
        let said: Vec<_> = reader
            .interfaces()
            .iter()
            .map(|one| (one.name.clone(), one.rate_bps, one.fcs, one.timestamps, one.dropped))
            .collect();
        let meant: Vec<_> = sections
            .iter()
            .flat_map(|(_, interfaces, _)| interfaces)
            .map(|one| {
                let dropped = one.dropped.map_or(0, |[card, system]| card + system);
                (one.name.clone().unwrap_or_default(), one.speed, one.fcs.unwrap_or(0), one.timestamps, dropped)
            })
            .collect();
        prop_assert_eq!(said, meant);
    }
}
