//! Ring of received frames shared with the kernel (packet socket, `TPACKET_V3`; packet_mmap in the kernel's networking
//! documentation).
//!
//! The kernel fills blocks of frames, each frame with its timestamp, and delivers a block when it is full or after a
//! short time; nothing is copied and no call is made per frame. The kernel counts frames for which the ring has no
//! room. A ring has two uses: a capture sees every frame in both directions, outgoing ones as the driver takes them; a
//! receiver of streams sees the selected incoming frames.
//!
//! Layouts are those of linux/if_packet.h. Everything the kernel writes is checked against its block before it is used,
//! so that no defect there can lead a read out of the ring.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use wg_frame::vlan::TAG_LEN;

use crate::bpf::classic;
use crate::error::NetError;
use crate::interface::Interface;
use crate::memory::Mapping;
use crate::receive::FrameFilter;
use crate::socket::{PACKET_IGNORE_OUTGOING, attach_filter, see_all};
use crate::sys::{Plain, bind, get_option, link_address, set_option, short, socket, wait_readable};

/// Length of a block in bytes: room for some thousand short frames.
const BLOCK: usize = 1 << 20;
const BLOCK_BYTES: u32 = 1 << 20;
/// Frame size in bytes that the kernel assumes for accounting.
const FRAME_BYTES: u32 = 2_048;
/// Number of blocks of a capture: a quarter of a second at 1 Gbit/s.
const BLOCKS_OF_CAPTURE: u32 = 32;
/// Number of blocks of a receiver of streams: half a million short frames, a third of a second of line rate at 1
/// Gbit/s.
const BLOCKS_OF_ARRIVALS: u32 = 64;
/// Time after which an incomplete block is delivered, ms: all blocks together then bridge more than half a second
/// without a core for the reader, however few frames come. Frames are timestamped as they arrive, so waiting costs
/// nothing.
pub const RETIRE_MS: u32 = 20;

/// EtherType that matches all frames.
const ETH_P_ALL: u16 = short(libc::ETH_P_ALL as i64);
const ETH_P_8021Q: u16 = short(libc::ETH_P_8021Q as i64);
const PACKET_OUTGOING: u8 = 4;
const STATUS_VLAN_VALID: u32 = 1 << 4;
const STATUS_VLAN_TPID_VALID: u32 = 1 << 6;
const STATUS_RAW_HARDWARE: u32 = 1 << 31;
/// `TPACKET_ALIGN(sizeof(struct tpacket3_hdr))`: offset of the address of a frame.
const ADDRESS_AT: usize = 48;
/// Offset of `sll_pkttype` of `struct sockaddr_ll`.
const KIND_AT: usize = ADDRESS_AT + 10;
/// Length of both addresses in bytes, after which a tag follows.
const ADDRESSES: usize = 12;
/// Offset of the status of a block: after version and offset of private data.
const BLOCK_STATUS_AT: usize = 8;

// SAFETY: integers without padding.
unsafe impl Plain for libc::tpacket_req3 {}
// SAFETY: integers.
unsafe impl Plain for libc::tpacket_stats_v3 {}

/// A frame in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// Timestamp in ns of the clock that took it.
    pub timestamp_ns: i64,
    /// Whether the interface took the timestamp; otherwise the kernel, by `CLOCK_REALTIME`.
    pub by_hardware: bool,
    /// Whether the interface sent the frame, or received it.
    pub is_outgoing: bool,
    /// 802.1Q tag that the kernel removed from the bytes: type and control information.
    pub tag: Option<(u16, u16)>,
    /// Captured bytes, without tag and FCS.
    pub bytes: &'a [u8],
    /// Original length in bytes.
    pub length: usize,
}

impl Captured<'_> {
    /// The captured bytes with the tag that the kernel removed, which `room` then holds; and the original length.
    pub fn with_tag<'a>(&'a self, room: &'a mut Vec<u8>) -> (&'a [u8], usize) {
        let (Some((kind, control)), Some((addresses, rest))) =
            (self.tag, self.bytes.split_at_checked(ADDRESSES))
        else {
            return (self.bytes, self.length);
        };
        room.clear();
        for part in [addresses, &kind.to_be_bytes(), &control.to_be_bytes(), rest] {
            room.extend_from_slice(part);
        }
        (room, self.length + TAG_LEN)
    }
}

/// A ring on one interface. Its memory is freed when it is dropped.
#[derive(Debug)]
pub struct PacketRing {
    fd: OwnedFd,
    memory: Mapping,
    blocks: usize,
    next: usize,
    received: u64,
    dropped: u64,
}

impl PacketRing {
    /// A capture ring for every frame of `interface` in both directions, with a snap length of `snap` bytes. Frames are
    /// timestamped by the kernel, or, with `by_hardware` and [enabled timestamping](crate::HardwareTimestamping), by
    /// the interface; each frame states which.
    ///
    /// # Errors
    /// The right to open packet sockets (CAP_NET_RAW) is missing, the interface is gone, or there is no memory for the
    /// ring.
    pub fn capture(interface: &Interface, snap: u32, by_hardware: bool) -> Result<Self, NetError> {
        // Only the captured bytes are copied.
        let keep = [classic::keep(snap)];
        Self::open("capture", interface, BLOCKS_OF_CAPTURE, &keep, |fd| {
            if by_hardware {
                let timestamps = libc::SOF_TIMESTAMPING_RAW_HARDWARE.cast_signed();
                set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_TIMESTAMP, timestamps)?;
            }
            Ok(())
        })
    }

    /// A ring for the frames of `filter` that `interface` receives, timestamped by the kernel.
    ///
    /// # Errors
    /// As [`capture`](Self::capture).
    pub fn arrivals(interface: &Interface, filter: &FrameFilter) -> Result<Self, NetError> {
        Self::open("receive streams", interface, BLOCKS_OF_ARRIVALS, &classic::streams(filter), |fd| {
            set_option(fd.as_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        })
    }

    fn open(
        purpose: &str,
        interface: &Interface,
        blocks: u32,
        filter: &[libc::sock_filter],
        more: impl FnOnce(&OwnedFd) -> io::Result<()>,
    ) -> Result<Self, NetError> {
        let what = || format!("cannot {purpose} on interface '{}'", interface.name);
        let plain = |e| NetError::of(what(), "", e);
        // Protocol 0: nothing arrives before filter, ring and binding are in place.
        let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, 0)
            .map_err(|e| NetError::of(what(), "packet sockets need root or CAP_NET_RAW", e))?;
        let version = libc::tpacket_versions::TPACKET_V3 as libc::c_int;
        set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, version).map_err(plain)?;
        attach_filter(fd.as_fd(), filter).map_err(plain)?;
        more(&fd).map_err(plain)?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES,
            tp_block_nr: blocks,
            tp_frame_size: FRAME_BYTES,
            tp_frame_nr: BLOCK_BYTES / FRAME_BYTES * blocks,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        let cure = "its ring takes 32 or 64 MiB of memory that cannot be swapped";
        set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, request)
            .map_err(|e| NetError::of(what(), cure, e))?;
        let memory =
            Mapping::of(fd.as_fd(), BLOCK * blocks as usize, 0).map_err(|e| NetError::of(what(), cure, e))?;
        bind(fd.as_fd(), &link_address(interface.index, ETH_P_ALL)).map_err(plain)?;
        Ok(Self { fd, memory, blocks: blocks as usize, next: 0, received: 0, dropped: 0 })
    }

    /// Sets promiscuous mode as long as the ring is open: receives all frames on the wire, not only those addressed to
    /// this host.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn see_all(&self, interface: &Interface) -> io::Result<()> {
        see_all(self.fd.as_fd(), interface)
    }

    /// Calls `take` with the frames of the next block, then returns the block to the kernel. Returns the number of
    /// frames; `None`: no block is ready.
    pub fn read(&mut self, mut take: impl FnMut(Captured<'_>)) -> Option<usize> {
        // SAFETY: the status is an aligned word (`at` checks) that kernel and process take turns to write.
        let status = unsafe { AtomicU32::from_ptr(self.memory.at(self.next * BLOCK + BLOCK_STATUS_AT)) };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let start = self.memory.at::<[u8; BLOCK]>(self.next * BLOCK);
        // SAFETY: the block lies within the mapping (`at` checks), and until its status is given back the kernel leaves
        // it alone.
        let block = unsafe { &*start };
        let mut count = 0;
        for frame in Frames::of(block) {
            take(frame);
            count += 1;
        }
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.blocks;
        Some(count)
    }

    /// Calls `take` with every frame of the blocks that are ready; waits up to `timeout_ms` for the first. Returns the
    /// number of frames.
    ///
    /// # Errors
    /// The socket is unusable.
    pub fn take(&mut self, timeout_ms: i32, mut take: impl FnMut(Captured<'_>)) -> io::Result<usize> {
        let mut taken = 0;
        let mut may_wait = timeout_ms != 0;
        // At most one round of the ring, so that the caller can attend to other tasks.
        for _ in 0..self.blocks {
            match self.read(&mut take) {
                Some(count) => {
                    taken += count;
                    may_wait = false;
                }
                None if may_wait => {
                    self.wait(timeout_ms)?;
                    may_wait = false;
                }
                None => break,
            }
        }
        Ok(taken)
    }

    fn wait(&self, timeout_ms: i32) -> io::Result<()> {
        wait_readable(self.fd.as_fd(), timeout_ms)
    }

    /// Checks for an error of the socket since the last call, for example that its interface went down.
    ///
    /// # Errors
    /// The error of the socket.
    pub fn check(&self) -> io::Result<()> {
        match get_option(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR, 0)? {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Number of frames that came to the ring since it was opened, and of those for which it had no room.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn statistics(&mut self) -> io::Result<(u64, u64)> {
        // Reading resets the kernel's counters.
        let none = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let new = get_option(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, none)?;
        self.received += u64::from(new.tp_packets);
        self.dropped += u64::from(new.tp_drops);
        Ok((self.received, self.dropped))
    }
}

/// The frames of a block.
struct Frames<'a> {
    block: &'a [u8],
    at: usize,
    left: u32,
}

impl<'a> Frames<'a> {
    fn of(block: &'a [u8]) -> Self {
        let word = |at| number(block, at).unwrap_or(0);
        // `struct tpacket_hdr_v1` after version and offset: status, frames, offset of the first.
        Self { block, at: word(BLOCK_STATUS_AT + 8) as usize, left: word(BLOCK_STATUS_AT + 4) }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Captured<'a>;

    fn next(&mut self) -> Option<Captured<'a>> {
        if self.left == 0 {
            return None;
        }
        // `struct tpacket3_hdr`: next, sec, nsec, snaplen, len, status, mac and net, hash, tag, type of tag.
        let header = self.block.get(self.at..)?;
        let [next, seconds, nanos, kept, length, status] = [0, 4, 8, 12, 16, 20].map(|at| number(header, at));
        let (next, status) = (next? as usize, status?);
        let bytes_at = usize::from(u16::from_ne_bytes(*header.get(24..)?.first_chunk()?));
        // A 32-bit field, of which the tag fills the lower half.
        let control = u16::try_from(number(header, 32)? & 0xFFFF).ok()?;
        let tag_type = u16::from_ne_bytes(*header.get(36..)?.first_chunk()?);
        let bytes = header.get(bytes_at..bytes_at.checked_add(kept? as usize)?)?;
        let tag = (status & STATUS_VLAN_VALID != 0)
            .then_some((if status & STATUS_VLAN_TPID_VALID == 0 { ETH_P_8021Q } else { tag_type }, control));
        let is_outgoing = *header.get(KIND_AT)? == PACKET_OUTGOING;
        self.left -= 1;
        self.at = self.at.checked_add(next)?;
        if next == 0 {
            self.left = 0;
        }
        Some(Captured {
            timestamp_ns: i64::from(seconds?) * 1_000_000_000 + i64::from(nanos?),
            by_hardware: status & STATUS_RAW_HARDWARE != 0,
            is_outgoing,
            tag,
            bytes,
            length: length? as usize,
        })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block as the kernel lays it out.
    fn block(frames: &[(&[u8], u32, u8)]) -> Vec<u8> {
        let mut block = vec![0; 4_096];
        let mut put = |at: usize, value: u32| block[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        put(BLOCK_STATUS_AT + 4, frames.len() as u32);
        put(BLOCK_STATUS_AT + 8, 48);
        let mut bodies = Vec::new();
        for (n, (bytes, status, kind)) in frames.iter().enumerate() {
            let at = 48 + n * 256;
            let next = if n + 1 == frames.len() { 0 } else { 256 };
            let words = [next, 5, 7 + n as u32, bytes.len() as u32, bytes.len() as u32 + 10, *status];
            for (place, word) in words.into_iter().enumerate() {
                put(at + 4 * place, word);
            }
            put(at + 32, 0x2005);
            bodies.push((at, bytes.to_vec(), *kind));
        }
        for (at, bytes, kind) in bodies {
            block[at + 24..at + 26].copy_from_slice(&100_u16.to_ne_bytes());
            block[at + 36..at + 38].copy_from_slice(&0x88a8_u16.to_ne_bytes());
            block[at + KIND_AT] = kind;
            block[at + 100..at + 100 + bytes.len()].copy_from_slice(&bytes);
        }
        block
    }

    #[test]
    fn a_block_gives_its_frames_with_timestamp_direction_and_tag() {
        let tagged = STATUS_VLAN_VALID | STATUS_VLAN_TPID_VALID;
        let block = block(&[
            (&[1, 2], 1, 0),
            (&[3; 40], 1 | STATUS_VLAN_VALID, 4),
            (&[], tagged | STATUS_RAW_HARDWARE, 0),
        ]);
        let found: Vec<_> = Frames::of(&block).collect();
        assert_eq!(found.iter().map(|f| f.bytes.len()).collect::<Vec<_>>(), [2, 40, 0]);
        assert_eq!(found.iter().map(|f| f.length).collect::<Vec<_>>(), [12, 50, 10]);
        assert_eq!(
            found.iter().map(|f| f.timestamp_ns).collect::<Vec<_>>(),
            [5_000_000_007, 5_000_000_008, 5_000_000_009]
        );
        assert_eq!(found.iter().map(|f| f.is_outgoing).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(found.iter().map(|f| f.by_hardware).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!(
            found.iter().map(|f| f.tag).collect::<Vec<_>>(),
            [None, Some((0x8100, 0x2005)), Some((0x88a8, 0x2005))]
        );
        let mut room = Vec::new();
        let (tagged, length) = found[1].with_tag(&mut room);
        assert_eq!((&tagged[10..18], tagged.len(), length), (&[3, 3, 0x81, 0, 0x20, 5, 3, 3][..], 44, 54));
        assert_eq!(found[0].with_tag(&mut room), (&[1, 2][..], 12));
    }

    #[test]
    fn no_number_in_a_block_leads_out_of_it() {
        let good = block(&[(&[1; 60], 1, 0), (&[2; 60], 1, 0)]);
        for at in (0..600).step_by(2) {
            for value in [0_u32, 1, 255, 0x7fff_ffff, u32::MAX] {
                let mut bad = good.clone();
                bad[at..at + 4].copy_from_slice(&value.to_ne_bytes());
                assert!(Frames::of(&bad).take(10_000).count() <= good.len());
            }
        }
    }
}
