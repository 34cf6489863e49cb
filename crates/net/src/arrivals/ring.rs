//! `TPACKET_V3`: blocks of frames handed over whole (packet_mmap in the kernel's networking documentation).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use wg_frame::time::WallNanos;

use super::{Arrival, MOST_PORTS, Missed, Selection};
use crate::error::NetError;
use crate::interface::Interface;
use crate::memory::Mapping;
use crate::socket::{PACKET_IGNORE_OUTGOING, attach_filter};
use crate::sys::{Plain, check, get_option, set_option};

/// Bytes of a block: some thousand short frames.
const BLOCK: usize = 1 << 20;
/// Blocks: 64 MiB in all, half a million short frames, a third of a second of line rate at 1 Gbit/s.
const BLOCKS: usize = 64;
/// A block that is not full is handed over after this many ms: all blocks together then bridge more than a second in
/// which the receiver has no core, however few frames come. Frames are stamped as they arrive, so waiting costs nothing.
const RETIRE_MS: u32 = 20;

// SAFETY: integers without padding.
unsafe impl Plain for libc::tpacket_req3 {}
// SAFETY: integers.
unsafe impl Plain for libc::tpacket_stats_v3 {}

/// A packet socket whose frames lie in a ring.
#[derive(Debug)]
pub struct PacketRing {
    fd: OwnedFd,
    ring: Mapping,
    block: usize,
    missed: u64,
}

impl PacketRing {
    /// Opens the ring on `interface`.
    ///
    /// # Errors
    /// CAP_NET_RAW is missing, or the host has no 64 MiB for it.
    pub fn open(interface: &Interface, selection: &Selection) -> Result<Self, NetError> {
        let what = format!("cannot open a packet ring on {}", interface.name);
        // SAFETY: takes no pointers; protocol 0 receives nothing until it is bound.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(NetError::last(what, "packet sockets need root or CAP_NET_RAW"));
        }
        // SAFETY: `fd` was just created and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let plain = |e| NetError::of(what.clone(), "", e);
        let at = fd.as_fd();
        attach_filter(at, &filter(selection)).map_err(plain)?;
        set_option(
            at,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V3 as libc::c_int,
        )
        .map_err(plain)?;
        set_option(at, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1).map_err(plain)?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: 2048,
            tp_frame_nr: (BLOCK / 2048 * BLOCKS) as u32,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_option(at, libc::SOL_PACKET, libc::PACKET_RX_RING, request)
            .map_err(|e| NetError::of(what.clone(), "the ring takes 64 MiB of memory", e))?;
        let ring = Mapping::of(at, BLOCK * BLOCKS, 0).map_err(plain)?;
        // SAFETY: a sockaddr_ll of zeroes is valid; the fields that matter are set below.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface.index.cast_signed();
        // SAFETY: the pointer and length describe a live sockaddr_ll.
        let bound = unsafe {
            libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32)
        };
        check(bound).map_err(plain)?;
        Ok(Self { fd, ring, block: 0, missed: 0 })
    }

    /// Hands every frame of the blocks that are ready to `take`; waits up to `timeout_ms` for the first. Returns
    /// how many there were.
    ///
    /// # Errors
    /// The socket is unusable.
    pub fn take(&mut self, timeout_ms: i32, mut take: impl FnMut(Arrival<'_>)) -> io::Result<usize> {
        let mut taken = 0;
        let mut waited = false;
        // At most one round of the ring, so that the caller comes to its other duties.
        for _ in 0..BLOCKS {
            if !self.is_ready() {
                if taken > 0 || waited || timeout_ms == 0 {
                    break;
                }
                self.wait(timeout_ms)?;
                waited = true;
                if !self.is_ready() {
                    break;
                }
            }
            taken += self.take_block(&mut take);
            self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.block = (self.block + 1) % BLOCKS;
        }
        Ok(taken)
    }

    fn wait(&self, timeout_ms: i32) -> io::Result<()> {
        let mut polled = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `polled` is one live entry.
        if unsafe { libc::poll(&raw mut polled, 1, timeout_ms) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(())
    }

    fn status(&self) -> &AtomicU32 {
        let at = self.block * BLOCK + std::mem::offset_of!(libc::tpacket_block_desc, hdr);
        // SAFETY: the block's status is the first field of its header, a word both sides access as a whole; `at`
        // checks bounds and alignment.
        unsafe { &*self.ring.at::<AtomicU32>(at) }
    }

    fn is_ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    fn take_block(&self, take: &mut impl FnMut(Arrival<'_>)) -> usize {
        let start = self.block * BLOCK;
        let header =
            self.ring.at::<libc::tpacket_hdr_v1>(start + std::mem::offset_of!(libc::tpacket_block_desc, hdr));
        // SAFETY: in bounds and aligned, checked by `at`; integers; the block is ours until its status is given back.
        let (count, first) = unsafe { ((*header).num_pkts, (*header).offset_to_first_pkt) };
        let mut at = start + first as usize;
        for _ in 0..count {
            // SAFETY: as above; the kernel laid a header of this type here. Offsets it wrote are checked before use.
            let frame = unsafe { self.ring.at::<libc::tpacket3_hdr>(at).read() };
            let begin = at + usize::from(frame.tp_mac);
            let len = frame.tp_snaplen as usize;
            if begin + len > start + BLOCK {
                break;
            }
            // SAFETY: within the block, checked above; the kernel does not write to it before it is given back.
            let bytes = unsafe { std::slice::from_raw_parts(self.ring.start().add(begin), len) };
            let stamp = i64::from(frame.tp_sec) * 1_000_000_000 + i64::from(frame.tp_nsec);
            take(Arrival { frame: bytes, stamp: WallNanos::new(stamp) });
            if frame.tp_next_offset == 0 {
                break;
            }
            at += frame.tp_next_offset as usize;
        }
        count as usize
    }

    /// Frames that found no room, since the ring was opened.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn missed(&mut self) -> io::Result<Missed> {
        // Reading resets the kernel's count.
        let none = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let statistics = get_option(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, none)?;
        self.missed += u64::from(statistics.tp_drops);
        Ok(Missed { ring: self.missed, other: 0 })
    }
}

/// A classic BPF programme that takes what is selected.
fn filter(selection: &Selection) -> Vec<libc::sock_filter> {
    let op = |code: u32, jt: usize, jf: usize, k| libc::sock_filter {
        code: code as u16,
        jt: jt as u8,
        jf: jf as u8,
        k,
    };
    let load = |size, at| op(libc::BPF_LD | size | libc::BPF_ABS, 0, 0, at);
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let give = libc::BPF_RET | libc::BPF_K;
    let ports = &selection.udp_ports[..selection.udp_ports.len().min(MOST_PORTS)];
    let mut code = vec![load(libc::BPF_H, 12)];
    if let Some(ether_type) = selection.ether_type {
        // Jumps over the next instruction, which takes the frame, unless it is one.
        code.push(op(equal, 0, 1, u32::from(ether_type)));
        code.push(op(give, 0, 0, u32::MAX));
    }
    // From each test to the refusal, which is the last instruction but one.
    let n = ports.len();
    code.push(op(equal, 0, n + 5, 0x0800));
    code.push(load(libc::BPF_B, 14));
    code.push(op(equal, 0, n + 3, 0x45));
    code.push(load(libc::BPF_B, 23));
    code.push(op(equal, 0, n + 1, 17));
    code.push(load(libc::BPF_H, 36));
    for (i, port) in ports.iter().enumerate() {
        code.push(op(equal, n - i, 0, u32::from(*port)));
    }
    code.push(op(give, 0, 0, 0));
    code.push(op(give, 0, 0, u32::MAX));
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Classic BPF as its definition has it, for the instructions used here.
    fn accepts(code: &[libc::sock_filter], frame: &[u8]) -> bool {
        let (mut at, mut value) = (0_usize, 0_u32);
        loop {
            let op = &code[at];
            let k = op.k as usize;
            at += 1;
            match u32::from(op.code) {
                c if c == libc::BPF_LD | libc::BPF_H | libc::BPF_ABS => {
                    let Some(half) = frame.get(k..k + 2) else { return false };
                    value = u32::from(u16::from_be_bytes([half[0], half[1]]));
                }
                c if c == libc::BPF_LD | libc::BPF_B | libc::BPF_ABS => {
                    let Some(byte) = frame.get(k) else { return false };
                    value = u32::from(*byte);
                }
                c if c == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K => {
                    at += usize::from(if value == op.k { op.jt } else { op.jf });
                }
                _ => return op.k != 0,
            }
        }
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
                let selection = Selection { udp_ports: ports.clone(), ether_type };
                let code = filter(&selection);
                for port in [7, 8, 9, 61_188] {
                    assert_eq!(accepts(&code, &udp(port)), ports.contains(&port), "{selection:?} {port}");
                }
                assert_eq!(accepts(&code, &raw), ether_type.is_some());
                assert!(!accepts(&code, &tcp));
            }
        }
    }
}
