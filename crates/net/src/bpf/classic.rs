//! Classic BPF programs that choose the frames of an access point.
//!
//! The kernel compares addresses where a network card's own filter would; `PACKET_HOST` cannot be asked for, because neither a
//! tagged frame nor one with an address of its own is of that type.

use libc::{
    BPF_ABS, BPF_B, BPF_H, BPF_IND, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_LDX, BPF_MSH, BPF_RET,
    BPF_W, sock_filter,
};

use crate::receive::{FrameFilter, MAX_PORTS};
use crate::socket::Target;
use crate::sys::short;

const WORD: u32 = BPF_LD | BPF_W | BPF_ABS;
const HALF: u32 = BPF_LD | BPF_H | BPF_ABS;
const EQUAL: u32 = BPF_JMP | BPF_JEQ | BPF_K;
/// Begin of the IPv4 header in an untagged frame.
const IPV4: u32 = 14;

const fn op(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: short(code as i64), jt, jf, k }
}

/// Loads what lies at `code` and `k` and goes on where it is `value`; else skips `instructions` more.
fn only(code: u32, k: u32, value: u32, skip: u8) -> [sock_filter; 2] {
    [op(code, 0, 0, k), op(EQUAL, 0, skip, value)]
}

const TAKE: sock_filter = keep(u32::MAX);
const LEAVE: sock_filter = keep(0);

/// Takes the first `length` bytes of a frame; 0: the frame is left to others.
pub(crate) const fn keep(length: u32) -> sock_filter {
    op(BPF_RET | BPF_K, 0, 0, length)
}

fn mac_words(mac: [u8; 6]) -> (u32, u32) {
    let high = u32::from_be_bytes([mac[0], mac[1], mac[2], mac[3]]);
    (high, u32::from(u16::from_be_bytes([mac[4], mac[5]])))
}

/// Takes frames of `ether_type` addressed to one of `macs`, tagged or not.
pub(crate) fn raw(macs: &[[u8; 6]], ether_type: u16) -> Vec<sock_filter> {
    let of_protocol = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL).cast_unsigned();
    let mut programme = vec![op(WORD, 0, 0, of_protocol), op(EQUAL, 1, 0, u32::from(ether_type)), LEAVE];
    for mac in macs {
        let (high, low) = mac_words(*mac);
        programme.extend(only(WORD, 0, high, 3));
        programme.extend(only(HALF, 4, low, 1));
        programme.push(TAKE);
    }
    programme.push(LEAVE);
    programme
}

/// Takes UDP over IPv4 in untagged frames that lead to one of `targets`, whole datagrams only.
pub(crate) fn udp(targets: &[Target]) -> Vec<sock_filter> {
    let mut programme = vec![
        op(HALF, 0, 0, 12),
        op(EQUAL, 1, 0, 0x0800),
        LEAVE,
        op(BPF_LD | BPF_B | BPF_ABS, 0, 0, IPV4 + 9),
        op(EQUAL, 1, 0, 17),
        LEAVE,
        // More fragments, or not the first: it has no port, or a part of the message (RFC 791, 3.1).
        op(HALF, 0, 0, IPV4 + 6),
        op(BPF_JMP | BPF_JSET | BPF_K, 0, 1, 0x3FFF),
        LEAVE,
        // The index register has the length of the IPv4 header from here on.
        op(BPF_LDX | BPF_MSH | BPF_B, 0, 0, IPV4),
    ];
    for Target { mac, at } in targets {
        let (high, low) = mac_words(*mac);
        programme.extend(only(WORD, 0, high, 7));
        programme.extend(only(HALF, 4, low, 5));
        programme.extend(only(WORD, IPV4 + 16, u32::from(*at.ip()), 3));
        programme.extend(only(BPF_LD | BPF_H | BPF_IND, IPV4 + 2, u32::from(at.port()), 1));
        programme.push(TAKE);
    }
    programme.push(LEAVE);
    programme
}

/// Takes the frames that a receiver of streams selects.
pub(crate) fn streams(filter: &FrameFilter) -> Vec<sock_filter> {
    const BYTE: u32 = BPF_LD | BPF_B | BPF_ABS;
    let mut program = vec![op(HALF, 0, 0, 12)];
    if let Some(ether_type) = filter.ether_type {
        program.extend([op(EQUAL, 0, 1, u32::from(ether_type)), TAKE]);
    }
    program.extend([op(EQUAL, 1, 0, 0x0800), LEAVE]);
    // Without options, so that the port lies at a fixed place.
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

    /// What the program says to a frame: as the kernel runs it, for the instructions used here (Documentation/networking/
    /// filter.rst). Reading beyond the frame ends it with 0.
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
                    let holds = if code == EQUAL { a == k } else { a & k != 0 };
                    at += usize::from(if holds { op.jt } else { op.jf });
                    continue;
                }
            };
            let Some(value) = loaded else { return 0 };
            a = value;
        }
    }

    fn target(last: u8, port: u16) -> Target {
        Target { mac: [2, 0, 0, 0, 7, last], at: SocketAddrV4::new(Ipv4Addr::new(10, 0, 7, last), port) }
    }

    fn datagram(target: &Target, options: usize) -> Vec<u8> {
        let mut frame = vec![0; 14 + 20 + 4 * options + 8 + 30];
        frame[..6].copy_from_slice(&target.mac);
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
                // Any byte that says where it leads or what it is, changed.
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
        let programme = raw(&macs, 0x88B5);
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
