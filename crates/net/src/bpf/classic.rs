//! Classic BPF programs that select the frames of an access point.
//!
//! The kernel compares addresses in place of a network card's own filter; matching `PACKET_HOST` is not possible,
//! because neither a tagged frame nor one with another address of its own has that type.

use libc::{
    BPF_ABS, BPF_B, BPF_H, BPF_IND, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_LDX,
    BPF_MSH, BPF_RET, BPF_W, sock_filter,
};

use crate::receive::{FrameFilter, MAX_PORTS};
use crate::sys::short;
use crate::target::{MacRange, Target};

const WORD: u32 = BPF_LD | BPF_W | BPF_ABS;
const HALF: u32 = BPF_LD | BPF_H | BPF_ABS;
const EQUAL: u32 = BPF_JMP | BPF_JEQ | BPF_K;
const AT_LEAST: u32 = BPF_JMP | BPF_JGE | BPF_K;
const GREATER: u32 = BPF_JMP | BPF_JGT | BPF_K;
/// Offset of the IPv4 header in an untagged frame.
const IPV4: u32 = 14;

const fn op(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: short(code as i64), jt, jf, k }
}

/// A field of the frame: load instruction and offset.
type Field = (u32, u32);

/// A condition on a field: its least and greatest value.
#[derive(Clone, Copy)]
struct Test(Field, u32, u32);

/// Accepts a frame that passes all tests; any other continues after this block.
fn block(tests: impl IntoIterator<Item = Test>) -> Vec<sock_filter> {
    let mut program = Vec::new();
    for Test((code, at), first, last) in tests {
        program.push(op(code, 0, 0, at));
        if first == last {
            program.push(op(EQUAL, 0, 1, first));
        } else {
            program.extend([op(AT_LEAST, 0, 1, first), op(GREATER, 1, 0, last)]);
        }
    }
    program.push(TAKE);
    // Every jump leaves the block.
    let length = program.len();
    for (at, op) in program.iter_mut().enumerate() {
        // A block has some fifteen instructions.
        let out = u8::try_from(length - at - 1).unwrap_or(u8::MAX);
        (op.jt, op.jf) = (op.jt * out, op.jf * out);
    }
    program
}

const TAKE: sock_filter = keep(u32::MAX);
const LEAVE: sock_filter = keep(0);

/// Accepts the first `length` bytes of a frame; 0: rejects the frame.
pub(crate) const fn keep(length: u32) -> sock_filter {
    op(BPF_RET | BPF_K, 0, 0, length)
}

/// Tests for a destination address: two alternatives for a range that crosses a boundary of its last four bytes.
fn destinations(macs: MacRange) -> impl Iterator<Item = [Test; 2]> {
    const FIRST_TWO: Field = (HALF, 0);
    const LAST_FOUR: Field = (WORD, 2);
    let [a, b, rest @ ..] = macs.first;
    let (high, low) = (u16::from_be_bytes([a, b]), u32::from_be_bytes(rest));
    let last = u64::from(low) + u64::from(macs.count.max(1) - 1);
    let part = |high: u16, first, last| {
        [Test(FIRST_TWO, u32::from(high), u32::from(high)), Test(LAST_FOUR, first, last)]
    };
    let end = u32::try_from(last).unwrap_or(u32::MAX);
    let beyond = last.checked_sub(1 << 32).and_then(|over| u32::try_from(over).ok());
    [Some(part(high, low, end)), beyond.map(|rest| part(high.wrapping_add(1), 0, rest))].into_iter().flatten()
}

/// Accepts frames of `ether_type` addressed to one of `macs`, tagged or not.
pub(crate) fn addressed(macs: &[MacRange], ether_type: u16) -> Vec<sock_filter> {
    let of_protocol = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL).cast_unsigned();
    let mut programme = vec![op(WORD, 0, 0, of_protocol), op(EQUAL, 1, 0, u32::from(ether_type)), LEAVE];
    programme.extend(macs.iter().flat_map(|range| destinations(*range)).flat_map(block));
    programme.push(LEAVE);
    programme
}

/// Accepts UDP over IPv4 to one of `targets`, unfragmented datagrams only, whether or not the kernel removed a tag.
pub(crate) fn udp(targets: &[Target]) -> Vec<sock_filter> {
    let mut programme = vec![
        op(HALF, 0, 0, 12),
        op(EQUAL, 1, 0, 0x0800),
        LEAVE,
        op(BPF_LD | BPF_B | BPF_ABS, 0, 0, IPV4 + 9),
        op(EQUAL, 1, 0, 17),
        LEAVE,
        // A fragment has no port, or a part of the message only (RFC 791, 3.1).
        op(HALF, 0, 0, IPV4 + 6),
        op(BPF_JMP | BPF_JSET | BPF_K, 0, 1, 0x3FFF),
        LEAVE,
        // The index register holds the length of the IPv4 header from here on.
        op(BPF_LDX | BPF_MSH | BPF_B, 0, 0, IPV4),
    ];
    for Target { macs, at } in targets {
        let (ip, port) = (u32::from(*at.ip()), u32::from(at.port()));
        let datagram =
            [Test((WORD, IPV4 + 16), ip, ip), Test((BPF_LD | BPF_H | BPF_IND, IPV4 + 2), port, port)];
        let tests = destinations(*macs).map(|mac| mac.into_iter().chain(datagram));
        programme.extend(tests.flat_map(block));
    }
    programme.push(LEAVE);
    programme
}

/// Accepts the frames that a receiver of streams selects.
pub(crate) fn streams(filter: &FrameFilter) -> Vec<sock_filter> {
    const BYTE: u32 = BPF_LD | BPF_B | BPF_ABS;
    let mut program = vec![op(HALF, 0, 0, 12)];
    if let Some(ether_type) = filter.ether_type {
        program.extend([op(EQUAL, 0, 1, u32::from(ether_type)), TAKE]);
    }
    program.extend([op(EQUAL, 1, 0, 0x0800), LEAVE]);
    // Without options, so that the port has a fixed offset.
    for (at, value) in [(IPV4, 0x45), (IPV4 + 9, 17)] {
        program.extend([op(BYTE, 0, 0, at), op(EQUAL, 1, 0, value), LEAVE]);
    }
    program.push(op(HALF, 0, 0, IPV4 + 22));
    for port in filter.udp_ports.iter().take(MAX_PORTS) {
        program.extend([op(EQUAL, 0, 1, u32::from(*port)), TAKE]);
    }
    program.push(LEAVE);
    program
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::*;

    /// Result of the program for a frame, as the kernel computes it, for the instructions used here
    /// (Documentation/networking/ filter.rst). Reading beyond the frame ends it with 0.
    fn run(programme: &[sock_filter], frame: &[u8]) -> u32 {
        let byte = |at: usize| frame.get(at).copied().map(u32::from);
        let read = |size: usize, at: usize| (0..size).try_fold(0, |sum, i| Some(sum << 8 | byte(at + i)?));
        let of_protocol = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL).cast_unsigned();
        let (mut a, mut x, mut at) = (0, 0, 0);
        loop {
            let op = &programme[at];
            at += 1;
            let k = op.k;
            let loaded = match u32::from(op.code) {
                WORD if k == of_protocol => read(2, 12),
                WORD => read(4, k as usize),
                HALF => read(2, k as usize),
                code if code == BPF_LD | BPF_B | BPF_ABS => read(1, k as usize),
                code if code == BPF_LD | BPF_H | BPF_IND => read(2, (k + x) as usize),
                code if code == BPF_LDX | BPF_MSH | BPF_B => {
                    let Some(first) = byte(k as usize) else { return 0 };
                    x = (first & 0xF) * 4;
                    continue;
                }
                code if code == BPF_RET | BPF_K => return k,
                code => {
                    let holds = match code {
                        EQUAL => a == k,
                        AT_LEAST => a >= k,
                        GREATER => a > k,
                        _ => a & k != 0,
                    };
                    at += usize::from(if holds { op.jt } else { op.jf });
                    continue;
                }
            };
            let Some(value) = loaded else { return 0 };
            a = value;
        }
    }

    fn target(last: u8, port: u16) -> Target {
        Target {
            macs: [2, 0, 0, 0, 7, last].into(),
            at: SocketAddrV4::new(Ipv4Addr::new(10, 0, 7, last), port),
        }
    }

    fn datagram(target: &Target, options: usize) -> Vec<u8> {
        let mut frame = vec![0; 14 + 20 + 4 * options + 8 + 30];
        frame[..6].copy_from_slice(&target.macs.first);
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14] = 0x45 + options as u8;
        // Don't fragment.
        frame[20] = 0x40;
        frame[23] = 17;
        frame[30..34].copy_from_slice(&target.at.ip().octets());
        let udp = 34 + 4 * options;
        frame[udp + 2..udp + 4].copy_from_slice(&target.at.port().to_be_bytes());
        frame
    }

    #[test]
    fn datagrams_of_the_targets_pass_and_no_others() {
        let targets = [target(1, 5_000), target(2, 5_000), target(3, 7)];
        let programme = udp(&targets);
        for one in &targets {
            for options in [0, 1, 10] {
                let frame = datagram(one, options);
                assert_eq!(run(&programme, &frame), u32::MAX);
                // Every byte of the address or type, changed.
                for at in (0..6).chain([12, 13, 20, 21, 23]).chain(30..34).chain([36 + 4 * options]) {
                    let mut other = frame.clone();
                    other[at] ^= if at == 20 { 0x20 } else { 0x80 };
                    assert_eq!(run(&programme, &other), 0, "byte {at} of {one:?}");
                }
                assert_eq!(run(&programme, &frame[..30]), 0);
            }
        }
        assert_eq!(run(&udp(&[]), &datagram(&targets[0], 0)), 0);
    }

    #[test]
    fn raw_frames_to_the_addresses_pass_and_no_others() {
        let macs = [[2, 0, 0, 0, 7, 1], [2, 0, 0, 0, 7, 2]];
        let programme = addressed(&macs.map(MacRange::from), 0x88B5);
        for mac in macs {
            let mut frame = vec![0; 60];
            frame[..6].copy_from_slice(&mac);
            frame[12..14].copy_from_slice(&[0x88, 0xB5]);
            assert_eq!(run(&programme, &frame), u32::MAX);
            for at in (0..6).chain([12, 13]) {
                let mut other = frame.clone();
                other[at] ^= 0x40;
                assert_eq!(run(&programme, &other), 0, "byte {at}");
            }
        }
    }

    #[test]
    fn a_range_of_addresses_passes_and_its_neighbours_do_not() {
        for first in [[2, 0, 0, 0, 7, 1], [2, 0, 0xFF, 0xFF, 0xFF, 0xFD], [2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]] {
            for count in [1_u32, 2, 5, 300] {
                let range = MacRange { first, count };
                let programme = addressed(&[range], 0x88B5);
                let at = |offset: i64| {
                    let bits = u64::from_be_bytes([&[0, 0], &first[..]].concat().try_into().expect("8 B"));
                    let mut frame = vec![0; 60];
                    frame[..6].copy_from_slice(&bits.wrapping_add_signed(offset).to_be_bytes()[2..]);
                    frame[12..14].copy_from_slice(&[0x88, 0xB5]);
                    accepts(&programme, &frame)
                };
                let last = i64::from(count) - 1;
                assert!(at(0) && at(last) && at(last / 2), "{range:?}");
                assert!(!at(-1) && !at(last + 1), "{range:?}");
            }
        }
    }

    fn accepts(program: &[sock_filter], frame: &[u8]) -> bool {
        run(program, frame) != 0
    }

    #[test]
    fn the_filter_takes_what_is_selected_and_nothing_else() {
        let udp = |port: u16| {
            let mut frame = vec![0_u8; 60];
            frame[12..14].copy_from_slice(&[8, 0]);
            (frame[14], frame[23]) = (0x45, 17);
            frame[36..38].copy_from_slice(&port.to_be_bytes());
            frame
        };
        let mut raw = vec![0_u8; 60];
        raw[12..14].copy_from_slice(&[0x88, 0xB5]);
        let mut tcp = udp(9);
        tcp[23] = 6;
        for ports in [vec![], vec![9], vec![9, 61_188, 7]] {
            for ether_type in [None, Some(0x88B5)] {
                let filter = FrameFilter { udp_ports: ports.clone(), ether_type };
                let program = streams(&filter);
                for port in [7, 8, 9, 61_188] {
                    assert_eq!(accepts(&program, &udp(port)), ports.contains(&port), "{filter:?} {port}");
                }
                assert_eq!(accepts(&program, &raw), ether_type.is_some());
                assert!(!accepts(&program, &tcp));
            }
        }
    }
}
