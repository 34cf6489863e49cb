//! Streams of one place, written here octet by octet after the standards.

use std::io::Write as _;

use proptest::prelude::*;
use wg_capture::streams::{Observed, StreamReport};

use crate::bodies::observing;
use crate::foreign::classic;

const MS: u64 = 1_000_000;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

fn observed(frames: &[(u64, Vec<u8>)]) -> Observed {
    let packets: Vec<(u32, u32, &[u8])> = frames
        .iter()
        .map(|(at, bytes)| ((at / 1_000_000_000) as u32 + 7, (at % 1_000_000_000) as u32, bytes.as_slice()))
        .collect();
    observing::body(&classic(false, NANOSECONDS, 1, &packets)).expect("it is a capture")
}

fn of<'a>(observed: &'a Observed, kind: &str) -> Vec<&'a StreamReport> {
    observed.streams.iter().filter(|stream| stream.kind == kind).collect()
}

fn ethernet(to: [u8; 6], from: [u8; 6], tags: &[u8], kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [to, from].concat();
    frame.extend(tags);
    frame.extend(kind.to_be_bytes());
    frame.extend(payload);
    frame
}

fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let total = 28 + payload.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 0, 0, 0, 1, 17, 0, 0, 10, 1, 2, 3, 224, 224, 0, 16]);
    packet.extend(from.to_be_bytes());
    packet.extend(to.to_be_bytes());
    packet.extend((8 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}

/// A frame of virtual link 16 on network A (1) or B (2).
fn virtual_link(network: u8, sequence: u8) -> Vec<u8> {
    let payload = [&[7_u8; 30][..], &[sequence]].concat();
    ethernet([3, 0, 0, 0, 0, 16], [2, 0, 0, 1, 2, network << 5], &[], 0x0800, &udp(2000, 1045, &payload))
}

#[test]
fn a_virtual_link_on_both_networks_has_its_bag_jitter_losses_and_skew() {
    let mut frames = Vec::new();
    for n in 0..600_u64 {
        let sequence = (n % 255 + 1) as u8;
        // Each tenth frame is held for 200 µs; B is 30 µs later, and lost twice.
        let at = n * 4 * MS + 200_000 * u64::from(n % 10 == 9);
        frames.push((at, virtual_link(1, sequence)));
        if n != 300 && n != 301 {
            frames.push((at + 30_000, virtual_link(2, sequence)));
        }
    }
    let observed = observed(&frames);
    let links = of(&observed, "arinc664");
    assert_eq!(links.len(), 2);
    let [a, b] = [links[0], links[1]].map(|link| link.sequence.as_ref().expect("it is numbered"));
    assert_eq!(links.iter().map(|link| link.network).collect::<Vec<_>>(), [Some("A"), Some("B")]);
    assert_eq!([a.missing, a.duplicates, a.reordered, a.resets], [0; 4]);
    assert_eq!((b.missing, b.rejected, b.jumps.len()), (2, Some(1), 1));
    assert_eq!(links[0].period.min, Some(3_800_000_000));
    let jitter = |bag_ms: i64| {
        links[0].bags.iter().find(|bag| bag.bag_ps == bag_ms * 1_000_000_000).map(|bag| bag.jitter_ps)
    };
    assert_eq!((jitter(2), jitter(4)), (Some(0), Some(200_000_000)));
    let copies = &observed.copies[0];
    assert_eq!((copies.networks.clone(), copies.pairs), (["A".to_owned(), "B".to_owned()], 598));
    assert_eq!((copies.alone, copies.at_edge, copies.skew_max_ps), ([2, 0], 0, Some(30_000_000)));
    assert_eq!((copies.skew.min, copies.skew.max), (Some(30_000_000), Some(30_000_000)));
}

#[test]
fn a_number_of_the_next_round_is_no_copy_of_one_whose_copy_was_lost() {
    let mut frames = Vec::new();
    for n in 0..1000_u64 {
        let sequence = (n % 255 + 1) as u8;
        // A is lost in one round, and again for longer than half of one.
        if n % 50 != 7 && !(600..800).contains(&n) {
            frames.push((n * 2 * MS, virtual_link(1, sequence)));
        }
        frames.push((n * 2 * MS + 30_000, virtual_link(2, sequence)));
    }
    let copies = &observed(&frames).copies[0];
    assert_eq!((copies.alone, copies.at_edge, copies.pairs), ([0, 16 + 200], 0, 784));
    assert_eq!((copies.skew.min, copies.skew.max), (Some(30_000_000), Some(30_000_000)));
}

#[test]
fn a_trailer_of_prp_is_around_its_content_and_pairs_by_sequence() {
    let mut frames = Vec::new();
    for n in 0..50_u16 {
        for lan in [0xa000_u16, 0xb000] {
            let mut payload = udp(5, 6, &[1; 40]);
            payload.extend((65_520_u16.wrapping_add(n)).to_be_bytes());
            payload.extend((lan | (payload.len() as u16 + 4)).to_be_bytes());
            payload.extend([0x88, 0xfb]);
            if n != 20 || lan == 0xa000 {
                let frame = ethernet([1; 6], [2; 6], &[], 0x0800, &payload);
                frames.push((u64::from(n) * MS + u64::from(lan == 0xb000) * 5_000, frame));
            }
        }
    }
    let observed = observed(&frames);
    assert_eq!((of(&observed, "prp").len(), of(&observed, "udp").len()), (2, 1));
    let copies = &observed.copies[0];
    assert_eq!((copies.pairs, copies.alone), (49, [1, 0]));
}

#[test]
fn a_returned_ethercat_frame_is_a_round_trip() {
    let mut frames = Vec::new();
    for n in 0..100_u64 {
        let datagram = |passed: bool| {
            let mut payload = vec![14, 0x10, 12, n as u8, 0, 0, 0, 1, 2, 0, 0, 0, 9, 9];
            payload.extend(if passed { [3, 0] } else { [0, 0] });
            payload.resize(46, 0);
            let source = [if passed { 2 } else { 0 }, 1, 5, 1, 1, 1];
            ethernet([255; 6], source, &[], 0x88a4, &payload)
        };
        frames.push((n * MS, datagram(false)));
        if n != 40 {
            frames.push((n * MS + 20_000 + n * 10, datagram(true)));
        }
    }
    let observed = observed(&frames);
    let found = of(&observed, "ethercat");
    let echo = found[0].echo.as_ref().expect("frames came back");
    assert_eq!((found.len(), found[0].frames, echo.round_trip.n, echo.unreturned), (1, 100, 99, 1));
    assert_eq!((echo.round_trip.min, echo.round_trip.max), (Some(20_000_000), Some(20_990_000)));
    assert_eq!(found[0].values["working_counter"]["min"], 3);
}

#[test]
fn goose_begins_with_zero_at_each_event_and_is_named_by_its_publisher() {
    let pdu = |state: u8, number: u8| {
        let mut body = vec![0x80, 3, b'a', b'/', b'g', 0x81, 2, 7, 0xd0, 0x85, 1, state, 0x86, 1, number];
        let mut payload = vec![0, 3, 0, (body.len() + 10) as u8, 0, 0, 0, 0, 0x61, body.len() as u8];
        payload.append(&mut body);
        ethernet([1, 12, 205, 1, 0, 1], [4; 6], &[0x81, 0, 0x80, 9], 0x88b8, &payload)
    };
    let series = [(1, 5), (1, 6), (1, 8), (2, 0), (2, 1)];
    let frames: Vec<_> = (0..).zip(series).map(|(n, (state, number))| (n * MS, pdu(state, number))).collect();
    let observed = observed(&frames);
    let found = of(&observed, "goose");
    assert_eq!(found[0].sequence.as_ref().map(|sequence| (sequence.missing, sequence.resets)), Some((1, 0)));
    assert_eq!(found[0].values["state"]["changes"], 1);
    assert_eq!(found[0].values["time_allowed_to_live_ms"]["max"], 2000);
    assert!(found[0].name.contains("a/g") && found[0].vlans == [9], "{}", found[0].name);
}

#[test]
fn udp_numbered_as_rtp_is_rtp_and_other_udp_is_not() {
    let rtp = |n: u16, source: u8| {
        let mut message = vec![0x80, 96];
        message.extend(n.to_be_bytes());
        message.extend([0, 0, 0, 0, 0, 0, 0, source]);
        ethernet([1; 6], [2; 6], &[], 0x0800, &udp(5004, 5004, &message))
    };
    let frames: Vec<_> = (0..30).filter(|n| *n != 9).map(|n| (u64::from(n) * MS, rtp(n, 5))).collect();
    let seen = observed(&frames);
    assert_eq!(of(&seen, "rtp")[0].sequence.as_ref().map(|sequence| sequence.missing), Some(1));
    let random: Vec<_> = (0..30).map(|n| (u64::from(n) * MS, rtp(n * 977, n as u8))).collect();
    assert!(of(&observed(&random), "udp")[0].sequence.is_none());
}

#[test]
fn a_check_sequence_at_the_end_is_recognised() {
    let mut frame = virtual_link(1, 9);
    let fcs = crc32fast::hash(&frame).to_le_bytes();
    frame.extend(fcs);
    let observed = observed(&[(0, frame.clone()), (MS, frame)]);
    assert!(observed.taps[0].has_fcs);
    assert_eq!(of(&observed, "arinc664")[0].sequence.as_ref().map(|sequence| sequence.duplicates), Some(1));
}

#[test]
fn a_capture_compressed_by_gzip_is_read_as_it_was() {
    let frame = virtual_link(2, 9);
    let plain = classic(false, NANOSECONDS, 1, &[(7, 0, &frame), (7, 5, &frame)]);
    let place = std::env::temp_dir().join(format!("wiregauge-gzip-{}.pcap.gz", std::process::id()));
    let mut writer = flate2::write::GzEncoder::new(
        std::fs::File::create(&place).expect("there is room"),
        flate2::Compression::fast(),
    );
    writer.write_all(&plain).expect("there is room");
    writer.finish().expect("there is room");
    let found = wg_capture::streams::observe(&wg_capture::streams::Order { files: vec![place.clone()] });
    drop(std::fs::remove_file(&place));
    let found = found.expect("it is a capture");
    assert_eq!((found.frames, found.streams[0].network), (2, Some("B")));
}

/// Three frames in classic pcap, by the program `zstd`: in two frames of it with one to be skipped between, each with a
/// checksum.
const BY_ZSTD: &str = "28b52ffd24646d0100d04d3cb2a102000400ffff000001f153653c0200000000020188b50700c00352d548b9b5cbab62\
                       e3c56a0270011e5dd83b522a4d1802000000090928b52ffd24983d0100c800f15365e80300003c000200000000020188\
                       b500f15365d0070400f304548f33244594078704056854e7";

#[test]
fn a_capture_compressed_by_zstd_is_read_as_it_was_and_as_far_as_it_goes() {
    let packed: Vec<u8> = (0..BY_ZSTD.len() / 2)
        .map(|at| u8::from_str_radix(&BY_ZSTD[2 * at..2 * at + 2], 16).expect("hexadecimal digits"))
        .collect();
    let frames = |name: &str, octets: &[u8]| {
        let place = std::env::temp_dir().join(format!("wiregauge-zstd-{name}-{}.zst", std::process::id()));
        std::fs::write(&place, octets).expect("there is room");
        let mut reader = wg_capture::Reader::open(&place);
        drop(std::fs::remove_file(&place));
        let mut found = Vec::new();
        if let Ok(reader) = &mut reader {
            while let Some(packet) = reader.next_packet() {
                found.push((packet.picos, packet.bytes.len()));
            }
        }
        (found, reader.map(|reader| reader.troubles().keys().any(wg_capture::Trouble::ends_the_file)).ok())
    };
    let at = |number: i128| (1_700_000_000_000_000_000_000 + number * 1_000_000, 60);
    assert_eq!(frames("whole", &packed), (vec![at(0), at(1), at(2)], Some(false)));
    let mut damaged = packed.clone();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    let (found, ends) = frames("damaged", &damaged);
    assert!(found.len() < 4 && ends == Some(true), "{found:?}");
    for cut in [packed.len() - 2, packed.len() - 30, 70] {
        let (found, ends) = frames("cut", &packed[..cut]);
        assert!(found.len() <= 3 && ends == Some(true), "{cut}: {found:?}");
    }
    assert_eq!(frames("begun", &packed[..20]).1, None, "nothing of it can be read");
}

/// The beginning of a frame of each protocol, so that arbitrary bytes reach its parser.
fn beginning() -> impl Strategy<Value = Vec<u8>> {
    const TYPES: [u16; 14] = [
        0x8100, 0x88a8, 0xf1c1, 0x892f, 0x0800, 0x86dd, 0x891d, 0x88f7, 0x88a4, 0x8892, 0x88b8, 0x88ba,
        0x22f0, 9,
    ];
    let to = prop_oneof![Just([3, 0, 0, 0, 0, 16]), Just([0xab, 0xad, 0xba, 0xbe, 0, 1]), Just([1; 6])];
    let messages = prop_oneof![
        Just(vec![]),
        Just(b"RTPS\x02\x03\x01\x02aaaabbbbcccc\x15\x05\x18\x00".to_vec()),
        Just(vec![0x12, 0x34, 0, 1, 0, 0, 0, 8, 0, 1, 0, 1, 1, 1, 0, 0]),
        Just(vec![0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5]),
    ];
    let ports = prop_oneof![Just(319_u16), Just(5004), Just(0x88a4)];
    let inner = (messages, ports).prop_map(|(message, port)| udp(port, port, &message));
    (to, prop::collection::vec(prop::sample::select(&TYPES[..]), 1..4), prop::option::of(inner)).prop_map(
        |(to, kinds, inner)| {
            let mut frame = [to, [2, 0, 0, 1, 2, 0x20]].concat();
            for kind in kinds {
                frame.extend(kind.to_be_bytes());
                frame.extend([0, 9]);
            }
            if let Some(inner) = inner {
                frame.truncate(frame.len() - 4);
                frame.extend([8, 0]);
                frame.extend(inner);
            }
            frame
        },
    )
}

proptest! {
    #[test]
    fn any_frames_give_accounts_that_fit(
        frames in prop::collection::vec((beginning(), prop::collection::vec(any::<u8>(), 0..80), 0_u64..1 << 40), 1..60),
    ) {
        let made: Vec<(u64, Vec<u8>)> = frames
            .into_iter()
            .map(|(mut frame, rest, at)| { frame.extend(rest); (at, frame) })
            .collect();
        observed(&made);
    }

    #[test]
    fn any_bytes_end(data in prop::collection::vec(any::<u8>(), 0..400)) {
        observing::body(&data);
    }
}
