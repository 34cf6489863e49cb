//! The probe header against its promises, each promise as a predicate over an implementation, so that
//! `the_judge_has_been_seen_to_fail` can hand it wrong ones.

use crate::judge::{Outcome, holds};
use crate::strategies::{payloads, probes};
use proptest::prelude::*;
use wg_frame::probe::{self, Probe, ProbeError, ProbeFlags};
use wg_frame::time::RunTime;

/// What a sealed message holds comes back, and nothing but the header was written.
fn returns_what_was_sealed(seal: impl Fn(&mut [u8], Probe), content: &[u8], header: Probe) -> Outcome {
    let mut payload = content.to_vec();
    seal(&mut payload, header);
    prop_assert_eq!(probe::read(&payload), Ok((header, true)));
    prop_assert_eq!(probe::peek(&payload), Some(header));
    prop_assert_eq!(&payload[probe::LEN..], &content[probe::LEN..]);
    Ok(())
}

/// No single bit can flip anywhere in the payload unnoticed.
fn notices_every_bit_flip(
    read: impl Fn(&[u8]) -> Result<(Probe, bool), ProbeError>,
    content: &[u8],
    header: Probe,
) -> Outcome {
    let mut payload = content.to_vec();
    probe::seal(&mut payload, header)?;
    for bit in 0..payload.len() * 8 {
        payload[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!matches!(read(&payload), Ok((_, true))), "bit {} flipped unnoticed", bit);
        payload[bit / 8] ^= 1 << (bit % 8);
    }
    Ok(())
}

/// Setting flags gives what sealing with these flags gives.
fn set_flags_equals_seal(
    set_flags: impl Fn(&mut [u8], ProbeFlags),
    content: &[u8],
    header: Probe,
    flags: ProbeFlags,
) -> Outcome {
    let (mut set, mut sealed) = (content.to_vec(), content.to_vec());
    probe::seal(&mut set, header)?;
    set_flags(&mut set, flags);
    probe::seal(&mut sealed, Probe { flags, ..header })?;
    prop_assert_eq!(set, sealed);
    Ok(())
}

/// A damaged message stays damaged when its flags are set.
fn damage_survives_set_flags(
    set_flags: impl Fn(&mut [u8], ProbeFlags),
    content: &[u8],
    header: Probe,
    flags: ProbeFlags,
) -> Outcome {
    let mut payload = content.to_vec();
    probe::seal(&mut payload, header)?;
    let last = payload.len() - 1;
    payload[last] ^= 1;
    set_flags(&mut payload, flags);
    prop_assert_eq!(probe::read(&payload), Ok((Probe { flags, ..header }, false)));
    Ok(())
}

fn all_flags() -> impl Strategy<Value = ProbeFlags> {
    (0_u8..8).prop_map(ProbeFlags::from_bits)
}

fn seal(payload: &mut [u8], header: Probe) {
    probe::seal(payload, header).expect("long enough");
}

fn set_flags(payload: &mut [u8], flags: ProbeFlags) {
    probe::set_flags(payload, flags).expect("a message");
}

proptest! {
    #[test]
    fn sealed_messages_read_back(content in payloads(12..2000), header in probes()) {
        returns_what_was_sealed(seal, &content, header)?;
    }

    #[test]
    fn every_bit_flip_is_noticed(content in payloads(12..90), header in probes()) {
        notices_every_bit_flip(probe::read, &content, header)?;
    }

    #[test]
    fn flags_equal_a_new_seal(
        content in prop_oneof![payloads(12..64), payloads(64..3000)],
        header in probes(),
        flags in all_flags(),
    ) {
        set_flags_equals_seal(set_flags, &content, header, flags)?;
        damage_survives_set_flags(set_flags, &content, header, flags)?;
    }

    #[test]
    fn tx_time_reads_back(content in payloads(20..200), at: prop::sample::Index, ps: i64) {
        let offset = probe::LEN + at.index(content.len() - probe::LEN - probe::TX_TIME_LEN + 1);
        let mut payload = content.clone();
        let time = RunTime::from_picos(ps);
        probe::write_tx_time(&mut payload, offset, time)?;
        prop_assert_eq!(probe::read_tx_time(&payload, offset), Ok(time));
        prop_assert_eq!(&payload[..offset], &content[..offset]);
        prop_assert_eq!(&payload[offset + 8..], &content[offset + 8..]);
    }
}

#[test]
fn the_judge_has_been_seen_to_fail() {
    let cases = || (payloads(13..80), probes(), all_flags());

    let truncating = |payload: &mut [u8], header: Probe| {
        seal(payload, Probe { sequence: header.sequence & 0xFFFF, ..header });
    };
    assert!(!holds(cases(), |(c, h, _)| returns_what_was_sealed(truncating, &c, h)));
    let little_endian = |payload: &mut [u8], header: Probe| {
        seal(payload, Probe { flow: header.flow.swap_bytes(), ..header });
    };
    assert!(!holds(cases(), |(c, h, _)| returns_what_was_sealed(little_endian, &c, h)));

    let trusting = |payload: &[u8]| probe::read(payload).map(|(header, _)| (header, true));
    assert!(!holds(cases(), |(c, h, _)| notices_every_bit_flip(trusting, &c, h)));
    // A sum over the content alone would let a damaged sequence number through.
    let blind_to_header = |payload: &[u8]| {
        let (header, _) = probe::read(payload)?;
        let mut other = payload.to_vec();
        seal(&mut other, header);
        Ok((header, other[probe::LEN..] == payload[probe::LEN..]))
    };
    assert!(!holds(cases(), |(c, h, _)| notices_every_bit_flip(blind_to_header, &c, h)));

    let forgets_the_sum = |payload: &mut [u8], flags: ProbeFlags| payload[1] = 0x10 | flags.bits();
    assert!(!holds(cases(), |(c, h, f)| set_flags_equals_seal(forgets_the_sum, &c, h, f)));
    let short_by_a_byte = |payload: &mut [u8], flags: ProbeFlags| {
        let last = payload.len() - 1;
        set_flags(&mut payload[..last], flags);
    };
    assert!(!holds(cases(), |(c, h, f)| set_flags_equals_seal(short_by_a_byte, &c, h, f)));
    let launders = |payload: &mut [u8], flags: ProbeFlags| {
        let header = probe::peek(payload).expect("a message");
        seal(payload, Probe { flags, ..header });
    };
    assert!(holds(cases(), |(c, h, f)| set_flags_equals_seal(launders, &c, h, f)));
    assert!(!holds(cases(), |(c, h, f)| damage_survives_set_flags(launders, &c, h, f)));
}

#[test]
fn header_lies_as_documented() {
    // Sum computed by zlib, not by this crate.
    let mut payload: Vec<u8> = [0; 12].into_iter().chain(0..6).collect();
    seal(&mut payload, Probe { flow: 10, sequence: 0x1234_5678, flags: ProbeFlags::NONE });
    assert_eq!(
        payload,
        [0x57, 0x10, 0, 10, 0x12, 0x34, 0x56, 0x78, 0x34, 0xD7, 0x50, 0xF1, 0, 1, 2, 3, 4, 5]
    );
    let flags = ProbeFlags::RETURN.with(ProbeFlags::WARM_UP);
    assert_eq!((flags.bits(), flags.without(ProbeFlags::RETURN)), (5, ProbeFlags::WARM_UP));
    assert!(flags.has(ProbeFlags::WARM_UP) && !flags.has(ProbeFlags::TX_TIME));
}

#[test]
fn each_refusal_has_its_reason() {
    let mut message = [0; 20];
    seal(&mut message, Probe::default());
    let changed = |at: usize, value: u8| {
        let mut copy = message;
        copy[at] = value;
        probe::read(&copy)
    };
    assert_eq!(probe::read(&message[..11]), Err(ProbeError::TooShort { len: 11 }));
    assert_eq!(probe::seal(&mut [0; 11], Probe::default()), Err(ProbeError::TooShort { len: 11 }));
    assert_eq!(changed(0, 0x56), Err(ProbeError::NotAProbe { found: 0x56 }));
    assert_eq!(changed(1, 0x20), Err(ProbeError::Version { found: 2 }));
    let mut long = vec![0; probe::MAX_LEN + 1];
    assert_eq!(probe::seal(&mut long, Probe::default()), Err(ProbeError::TooLong { len: 65536 }));
    seal(&mut long[..probe::MAX_LEN], Probe::default());
    assert_eq!(probe::read(&long), Err(ProbeError::TooLong { len: 65536 }));
    assert_eq!(probe::set_flags(&mut long, ProbeFlags::RETURN), Err(ProbeError::TooLong { len: 65536 }));
    set_flags(&mut long[..probe::MAX_LEN], ProbeFlags::RETURN);
    assert!(matches!(probe::read(&long[..probe::MAX_LEN]), Ok((_, true))), "the longest message works");
    for offset in [0, 11, 13, 20, usize::MAX] {
        let outside = ProbeError::TxTimeOutside { offset, len: 20 };
        assert_eq!(probe::read_tx_time(&message, offset), Err(outside));
    }
    assert!(probe::read_tx_time(&message, 12).is_ok());
}

#[test]
fn the_reserved_flag_is_never_sent_and_ignored_when_it_comes() {
    for bits in 0..=u8::MAX {
        assert_eq!(ProbeFlags::from_bits(bits).bits(), bits % 8);
    }
    // A sender of a later version sets it and computes its CRC over it.
    let mut payload = *b"\x57\x19\0\x01\0\0\0\x02\0\0\0\0later";
    let sum = crc32fast::hash(&payload);
    payload[8..12].copy_from_slice(&sum.to_be_bytes());
    let header = Probe { flow: 1, sequence: 2, flags: ProbeFlags::RETURN };
    assert_eq!(probe::read(&payload), Ok((header, true)));
    set_flags(&mut payload, ProbeFlags::RETURN);
    assert_eq!(payload[1], 0x11);
    assert_eq!(probe::read(&payload), Ok((header, true)));
}
