//! The BPF program of an `AF_XDP` receiver: timestamps the frames of selected streams and redirects them, passes all
//! others. Instructions are those of the kernel's BPF instruction set (RFC 9669).
//!
//! Road not taken: a compiled object and a loader for it. Thirty instructions need neither a compiler on the host
//! nor a library that reads ELF.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use crate::bpf::{self, BYTE, EXIT, HALF, Insn, KTIME_TAI, WORD, add, copy, insn, invoke, load, set};
use crate::receive::{FrameFilter, MAX_PORTS};

/// `enum bpf_cmd`, `enum bpf_map_type`, `enum bpf_attach_type` of linux/bpf.h.
const LINK_CREATE: libc::c_long = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const ATTACH_XDP: u32 = 37;
/// `XDP_FLAGS_SKB_MODE` and `XDP_FLAGS_DRV_MODE` of linux/if_link.h.
const SKB_MODE: u32 = 1 << 1;
const DRV_MODE: u32 = 1 << 2;
/// Helpers of linux/bpf.h.
const REDIRECT_MAP: i32 = 51;
const ADJUST_META: i32 = 54;

/// Length of the timestamp before each frame, in bytes: `CLOCK_TAI` in ns.
pub(crate) const TIMESTAMP_LEN: usize = 8;

/// A program loaded on an interface; detached when dropped.
#[derive(Debug)]
pub(crate) struct Attached {
    _link: OwnedFd,
    _program: OwnedFd,
    map: OwnedFd,
}

impl Attached {
    /// Loads the program and attaches it: in the driver if it can, else before the host's stack.
    pub(crate) fn new(interface: u32, selection: &FrameFilter) -> io::Result<Self> {
        let map = bpf::map(MAP_TYPE_XSKMAP, 4, 64)?;
        let program = bpf::load_program(&program(selection, map.as_raw_fd()))?;
        let attach = |flags| {
            let program = program.as_raw_fd().cast_unsigned();
            bpf::descriptor(
                LINK_CREATE,
                &mut LinkCreate { program, interface, kind: ATTACH_XDP, flags, ..LinkCreate::default() },
            )
        };
        let link = attach(DRV_MODE).or_else(|_| attach(SKB_MODE))?;
        Ok(Self { _link: link, _program: program, map })
    }

    /// Directs the frames of receive queue `queue` to `socket`.
    pub(crate) fn direct(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        bpf::update(&self.map, queue, &socket.as_raw_fd().to_ne_bytes())
    }
}

/// `union bpf_attr` for `BPF_LINK_CREATE`, as far as used.
#[derive(Default)]
#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    kind: u32,
    flags: u32,
    target: u64,
    more: [u64; 2],
}

const PASS: i32 = 2;

#[expect(clippy::too_many_lines, reason = "a program in the order it runs")]
fn program(selection: &FrameFilter, map: i32) -> Vec<Insn> {
    let ports = &selection.udp_ports[..selection.udp_ports.len().min(MAX_PORTS)];
    let mut code = vec![
        copy(6, 1),
        load(WORD, 2, 6, 0), // data
        load(WORD, 3, 6, 4), // data_end
        copy(4, 2),
        add(4, 42),
    ];
    let mut to_pass = Vec::new();
    let mut to_take = Vec::new();
    let jump = |code: &mut Vec<Insn>, list: &mut Vec<usize>, op: Insn| {
        list.push(code.len());
        code.push(op);
    };
    // if data + 42 > data_end
    jump(&mut code, &mut to_pass, insn(0x2D, 4, 3, 0, 0));
    code.push(load(HALF, 5, 2, 12));
    if let Some(ether_type) = selection.ether_type {
        jump(&mut code, &mut to_take, insn(0x15, 5, 0, 0, i32::from(ether_type.to_be())));
    }
    jump(&mut code, &mut to_pass, insn(0x55, 5, 0, 0, i32::from(0x0800_u16.to_be())));
    code.push(load(BYTE, 5, 2, 14));
    jump(&mut code, &mut to_pass, insn(0x55, 5, 0, 0, 0x45));
    code.push(load(BYTE, 5, 2, 23));
    jump(&mut code, &mut to_pass, insn(0x55, 5, 0, 0, 17));
    code.push(load(HALF, 5, 2, 36));
    for port in ports {
        jump(&mut code, &mut to_take, insn(0x15, 5, 0, 0, i32::from(port.to_be())));
    }
    let pass = code.len();
    code.extend([set(0, PASS), EXIT]);
    let take = code.len();
    code.extend([
        invoke(KTIME_TAI),
        copy(7, 0),
        copy(1, 6),
        set(2, -i32::from(bpf::offset(TIMESTAMP_LEN))),
        invoke(ADJUST_META),
    ]);
    jump(&mut code, &mut to_pass, insn(0x55, 0, 0, 0, 0));
    code.extend([
        load(WORD, 2, 6, 8), // data_meta
        load(WORD, 3, 6, 0), // data
        copy(4, 2),
        add(4, i32::from(bpf::offset(TIMESTAMP_LEN))),
    ]);
    jump(&mut code, &mut to_pass, insn(0x2D, 4, 3, 0, 0));
    code.extend([
        insn(0x7B, 2, 7, 0, 0), // the timestamp
        load(WORD, 2, 6, 16),   // rx_queue_index
        insn(0x18, 1, 1, 0, map),
        insn(0, 0, 0, 0, 0),
        set(3, PASS),
        invoke(REDIRECT_MAP),
        EXIT,
    ]);
    for (list, target) in [(to_pass, pass), (to_take, take)] {
        for at in list {
            code[at].offset = bpf::offset(target) - bpf::offset(at) - 1;
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_ends_at_a_verdict() {
        let selection = FrameFilter { udp_ports: vec![9, 10], ether_type: Some(0x88B5) };
        let code = program(&selection, 3);
        let jumps = code.iter().enumerate().filter(|(_, op)| [0x15, 0x55, 0x2D].contains(&op.code));
        let targets: std::collections::BTreeSet<i64> =
            jumps.map(|(at, op)| at as i64 + 1 + i64::from(op.offset)).collect();
        assert_eq!(targets.len(), 2, "one place that passes, one that takes");
        for target in targets {
            let op = code[target as usize];
            assert!(op.code == 0xB7 || (op.code == 0x85 && op.immediate == KTIME_TAI), "{op:?}");
        }
    }
}
