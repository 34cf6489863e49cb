//! Files of other makers: classic pcap, the other byte order, coarse times, other links.

use std::io::Cursor;

use wg_capture::{ReadError, Reader, Trouble};

/// Writes numbers of either byte order.
struct Writer {
    big: bool,
    out: Vec<u8>,
}

impl Writer {
    fn half(&mut self, value: u16) -> &mut Self {
        self.out.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }
    fn word(&mut self, value: u32) -> &mut Self {
        self.out.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }
}

pub(crate) fn classic(big: bool, magic: u32, link_type: u32, packets: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let mut file = Writer { big, out: Vec::new() };
    file.word(magic).half(2).half(4).word(0).word(0).word(262_144).word(link_type);
    for (seconds, fraction, bytes) in packets {
        let length = bytes.len() as u32;
        file.word(*seconds).word(*fraction).word(length).word(length);
        file.out.extend_from_slice(bytes);
    }
    file.out
}

fn times(file: Vec<u8>) -> (Vec<i128>, Vec<(Trouble, u64)>) {
    let mut reader = Reader::new(Cursor::new(file)).expect("it is a capture");
    let mut times = Vec::new();
    while let Some(packet) = reader.next_packet() {
        times.push(packet.picos);
    }
    (times, reader.troubles().clone().into_iter().collect())
}

#[test]
fn classic_pcap_of_either_order_and_resolution() {
    let bytes = [7_u8; 60];
    for big in [false, true] {
        for (magic, unit) in [(0xa1b2_c3d4, 1_000_000), (0xa1b2_3c4d, 1_000)] {
            let file =
                classic(big, magic, 1, &[(1_700_000_000, 999_999, &bytes), (1_700_000_001, 0, &bytes)]);
            let second = 1_700_000_001_000_000_000_000;
            let first = 1_700_000_000_000_000_000_000 + 999_999 * unit;
            assert_eq!(times(file.clone()), (vec![first, second], vec![]), "big {big}, magic {magic:x}");
            let reader = Reader::new(Cursor::new(file)).expect("it is a capture");
            assert!(reader.interfaces().is_empty(), "described with the first frame");
        }
    }
}

#[test]
fn an_impossible_fraction_of_a_second_is_counted() {
    let file = classic(false, 0xa1b2_c3d4, 1, &[(5, 1_000_000, &[7; 60]), (6, 1, &[7; 60])]);
    assert_eq!(times(file), (vec![6_000_001_000_000], vec![(Trouble::NoSuchTime, 1)]));
}

#[test]
fn the_fcs_a_classic_header_declares_is_known() {
    let file = classic(false, 0xa1b2_c3d4, 0x2400_0001, &[(5, 0, &[7; 64])]);
    let mut reader = Reader::new(Cursor::new(file)).expect("it is a capture");
    assert!(reader.next_packet().is_some());
    assert_eq!(reader.interfaces()[0].fcs, 4);
}

#[test]
fn other_links_are_named_and_counted() {
    // LINKTYPE_IEEE802_11.
    let file = classic(true, 0xa1b2_3c4d, 105, &[(5, 0, &[7; 64]), (6, 0, &[7; 64])]);
    let (found, troubles) = times(file);
    assert_eq!((found.len(), troubles.len()), (0, 1));
    assert_eq!(troubles[0], (Trouble::LinkType { link_type: 105 }, 2));
    assert_eq!(
        troubles[0].0.to_string(),
        "frames of link type IEEE802_11 (wireless LAN) (105), which is not Ethernet (1)"
    );
}

#[test]
fn a_file_without_ethernet_is_refused_by_the_name_of_its_link_with_the_cure() {
    for (number, name) in
        [(113, "LINUX_SLL (113, `tcpdump -i any`)"), (276, "LINUX_SLL2 (276, `tcpdump -i any`)")]
    {
        let mut reader = Reader::new(Cursor::new(classic(false, 0xa1b2_c3d4, number, &[(5, 0, &[7; 64])])))
            .expect("it is a capture");
        assert!(reader.next_packet().is_none());
        let said = reader.nothing_usable().expect("nothing is").to_string();
        assert!(said.contains(name) && said.contains("tcpdump -i eth0"), "{said}");
    }
    let mut empty = Reader::new(Cursor::new(classic(false, 0xa1b2_c3d4, 1, &[]))).expect("it is a capture");
    assert!(empty.next_packet().is_none() && empty.nothing_usable().is_none());
}

/// A pcapng file of two sections of different byte order, each with one interface of this resolution and one frame.
fn sections(orders: [bool; 2], resolution: u8, ticks: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for big in orders {
        let mut file = Writer { big, out: Vec::new() };
        file.word(0x0a0d_0d0a).word(28).word(0x1a2b_3c4d).half(1).half(0);
        file.word(u32::MAX).word(u32::MAX).word(28);
        file.word(1).word(28 + 4).half(1).half(0).word(0).half(9).half(1);
        file.out.extend([resolution, 0, 0, 0]);
        file.half(0).half(0).word(32);
        file.word(6).word(32 + 4).word(0).word((ticks >> 32) as u32).word(ticks as u32).word(4).word(4);
        file.out.extend([1, 2, 3, 4]);
        file.word(36);
        // A frame of an interface nobody described, and one without a time.
        file.word(6).word(32).word(9).word(0).word(0).word(0).word(0).word(32);
        file.word(3).word(20).word(4);
        file.out.extend([1, 2, 3, 4]);
        file.word(20);
        out.extend(file.out);
    }
    out
}

#[test]
fn sections_of_either_order_and_powers_of_two() {
    // 2^-20 s: a tick and a half of a second.
    let ticks = (3_u64 << 20) + (1 << 19);
    for orders in [[false, true], [true, false], [true, true]] {
        let (found, troubles) = times(sections(orders, 0x80 | 20, ticks));
        assert_eq!(found, [3_500_000_000_000, 3_500_000_000_000]);
        assert_eq!(troubles, [(Trouble::NoInterface, 2), (Trouble::NoTime, 2)]);
    }
}

#[test]
fn a_resolution_nothing_can_have_is_counted() {
    for resolution in [0x7f, 0xff, 19, 0x80 | 61] {
        let (found, troubles) = times(sections([false, false], resolution, 7));
        assert!(found.is_empty());
        assert!(troubles.contains(&(Trouble::NoSuchTime, 2)), "{troubles:?}");
    }
}

#[test]
fn what_is_no_capture_is_refused_with_the_cure() {
    let error = Reader::new(Cursor::new(b"<test/>".repeat(20))).expect_err("it is XML");
    assert!(matches!(error, ReadError::Unknown) && error.to_string().contains("tshark"), "{error}");
    assert!(matches!(Reader::new(Cursor::new(Vec::new())), Err(ReadError::Empty)));
}

#[test]
fn a_directory_is_told_as_one_with_what_is_wanted() {
    let Err(error) = Reader::open(&std::env::temp_dir()) else { panic!("a directory is no capture") };
    assert_eq!(error.to_string(), "is a directory; name a pcapng or pcap file in it");
}

/// Frames and troubles of a file with this content.
fn of_file(name: &str, content: &[u8]) -> Result<(Vec<i128>, Vec<Trouble>), ReadError> {
    let path = std::env::temp_dir().join(format!("wg-{name}-{}.pcap.gz", std::process::id()));
    std::fs::write(&path, content).unwrap_or_else(|error| panic!("{error}"));
    let opened = Reader::open(&path);
    let _ = std::fs::remove_file(&path);
    let mut reader = opened?;
    let times = std::iter::from_fn(|| reader.next_packet().map(|packet| packet.picos)).collect();
    Ok((times, reader.troubles().keys().cloned().collect()))
}

#[test]
fn a_compressed_file_that_is_cut_or_damaged_anywhere_gives_what_it_has_and_says_so() {
    let frame: Vec<u8> = (0..60).collect();
    let packets: Vec<(u32, u32, &[u8])> = (0..200).map(|n| (n, 7 * n % 1000, &frame[..])).collect();
    let plain = classic(false, 0xa1b2_c3d4, 1, &packets);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let packed = std::io::Write::write_all(&mut packer, &plain).and_then(|()| packer.finish());
    let packed = packed.unwrap_or_else(|error| panic!("{error}"));
    let (all, troubles) = of_file("whole", &packed).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((all.len(), troubles.len()), (200, 0));
    let told = |found: Result<(Vec<i128>, Vec<Trouble>), ReadError>, place: usize| {
        let (times, troubles) = match found {
            Ok(found) => found,
            Err(error) => return assert!(matches!(error, ReadError::Packed), "{place}: {error}"),
        };
        assert!(all.starts_with(&times) || times.len() == all.len(), "{place}");
        assert!(troubles.iter().any(Trouble::ends_the_file), "{place}: {} frames, in silence", times.len());
    };
    for end in (2..packed.len()).step_by(7).chain(packed.len() - 8..packed.len()) {
        told(of_file("cut", &packed[..end]), end);
    }
    assert!(of_file("half", &packed[..packed.len() / 2]).is_ok_and(|(times, _)| times.len() > 50));
    // A damaged check sum at the end is damage of what was read before it.
    for place in packed.len() - 8..packed.len() {
        let mut damaged = packed.clone();
        damaged[place] ^= 0x55;
        told(of_file("damaged", &damaged), place);
    }
}
