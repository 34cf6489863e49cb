//! Many interfaces as the ports of one program: receives the frames of all of them from one ring, in the order of
//! arrival and with their arrival times (packet socket, `TPACKET_V2`; packet_mmap in the kernel's networking
//! documentation). Sending is in `port_sender`.
//!
//! One ring for all, because its reader then waits at one place, and frames of different interfaces are in the order of
//! their times. `TPACKET_V2` is the layout that delivers each frame at once.
//!
//! Road not taken: `AF_XDP`. Frames of a host's stack are socket buffers, which a virtual link first copies into memory
//! that a program may access; that costs the sending host three times as much as the ring, while the shared memory
//! would save this side a copy of some 10 ns.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use wg_frame::time::WallNanos;

use crate::error::NetError;
use crate::interface::Interface;
use crate::memory::Mapping;
use crate::socket::{PACKET_IGNORE_OUTGOING, see_all};
use crate::sys::{Plain, bind, get_option, link_address, set_option, short, socket, wait_readable_for};

/// Length of a frame's slot in the ring, header included, in bytes.
const PLACE: usize = 2_048;
const PLACE_BYTES: u32 = 2_048;
/// Number of slots: they bridge 16 ms without a core for the reader at a million frames a second, 160 ms at 100 000.
const PLACES: u32 = 1 << 14;
/// Length of a block of slots, in bytes.
const BLOCK_BYTES: u32 = 1 << 20;
/// `TPACKET_ALIGN(sizeof(struct tpacket2_hdr))`: offset of the address of a frame.
const ADDRESS_AT: usize = 32;
/// Offsets of `sll_ifindex` and `sll_pkttype` of `struct sockaddr_ll`.
const INTERFACE_AT: usize = ADDRESS_AT + 4;
const ETH_P_ALL: u16 = short(libc::ETH_P_ALL as i64);
const TPID: [u8; 2] = [0x81, 0x00];
/// `TP_STATUS_CSUMNOTREADY`
const STATUS_CHECKSUM_OPEN: u32 = 1 << 3;
const STATUS_VLAN_VALID: u32 = 1 << 4;
const STATUS_VLAN_TPID_VALID: u32 = 1 << 6;
/// Length of both addresses in bytes, after which a tag follows.
const ADDRESSES: usize = 12;
/// Longest frame without FCS that is delivered, in bytes.
const LONGEST: usize = PLACE - 128;

// SAFETY: integers without padding.
unsafe impl Plain for libc::tpacket_req {}

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub struct PortFrame<'a> {
    /// Port: index in the list of interfaces.
    pub port: usize,
    /// Time at which the kernel received it from the driver, by `CLOCK_REALTIME`.
    pub at: WallNanos,
    /// Bytes without FCS, tag included.
    pub bytes: &'a [u8],
    /// Whether its sender left the datagram checksum to an interface, and none of this machine has computed it.
    pub is_checksum_open: bool,
}

/// Interfaces of one network namespace.
#[derive(Debug)]
pub struct PacketPorts {
    fd: OwnedFd,
    memory: Mapping,
    next: usize,
    /// Port by kernel interface index, from 1; 0: none.
    ports: Vec<u16>,
    /// Buffer in which the tag is inserted into a frame.
    tagged: Box<[u8; PLACE]>,
    dropped: u64,
    /// Number of frames too long to be delivered, and the length of the longest, by port.
    too_long: Vec<(u64, u32)>,
}

impl PacketPorts {
    /// Receives the frames of these interfaces from now on; other interfaces of the namespace are ignored.
    ///
    /// # Errors
    /// CAP_NET_RAW is missing, or there is no memory for the ring.
    pub fn open(interfaces: &[Interface]) -> Result<Self, NetError> {
        let what = "cannot open the ports of the network";
        let plain = |e| NetError::of(what, "", e);
        let right = "packet sockets need root or CAP_NET_RAW";
        // Protocol 0: nothing arrives before ring and binding are in place.
        let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, 0).map_err(|e| NetError::of(what, right, e))?;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, version).map_err(plain)?;
        set_option(fd.as_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1).map_err(plain)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES,
            tp_block_nr: PLACES / (BLOCK_BYTES / PLACE_BYTES),
            tp_frame_size: PLACE_BYTES,
            tp_frame_nr: PLACES,
        };
        let cure = "its ring takes 32 MiB of memory that cannot be swapped";
        set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, request)
            .map_err(|e| NetError::of(what, cure, e))?;
        let memory =
            Mapping::of(fd.as_fd(), PLACE * PLACES as usize, 0).map_err(|e| NetError::of(what, cure, e))?;
        let most = interfaces.iter().map(|one| one.index).max().unwrap_or(0) as usize;
        let mut ports = vec![0; most + 1];
        for (port, interface) in (1..).zip(interfaces) {
            ports[interface.index as usize] = port;
        }
        for interface in interfaces {
            see_all(fd.as_fd(), interface).map_err(plain)?;
        }
        bind(fd.as_fd(), &link_address(0, ETH_P_ALL)).map_err(plain)?;
        Ok(Self {
            fd,
            memory,
            next: 0,
            ports,
            tagged: Box::new([0; PLACE]),
            dropped: 0,
            too_long: vec![(0, 0); interfaces.len()],
        })
    }

    /// Calls `take` with the next frame and returns its result; `None`: there is no frame.
    #[inline]
    pub fn receive<T>(&mut self, mut take: impl FnMut(PortFrame<'_>) -> T) -> Option<T> {
        loop {
            let header = self.memory.at::<[u8; PLACE]>(self.next * PLACE);
            // SAFETY: the status is an aligned word (`at` checks) that kernel and process take turns to write.
            let status = unsafe { AtomicU32::from_ptr(header.cast()) };
            let found = status.load(Ordering::Acquire);
            if found & libc::TP_STATUS_USER == 0 {
                return None;
            }
            // SAFETY: the place lies within the mapping (`at` checks), and until its status is given back the kernel
            // leaves it alone.
            let place = unsafe { &*header };
            let taken = read(place, found, &self.ports, &mut self.tagged).map(&mut take);
            if taken.is_none()
                && let Some((port, length)) = too_long(place, &self.ports)
            {
                let (frames, longest) = &mut self.too_long[port];
                (*frames, *longest) = (*frames + 1, length.max(*longest));
            }
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % PLACES as usize;
            if taken.is_some() {
                return taken;
            }
        }
    }

    /// Whether an undelivered frame is in the ring.
    #[inline]
    pub fn has_come(&self) -> bool {
        let header = self.memory.at::<u32>(self.next * PLACE);
        // SAFETY: as in `receive`.
        let status = unsafe { AtomicU32::from_ptr(header) };
        status.load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Waits until a frame arrives, at most `ns` ns; a signal ends the wait early.
    ///
    /// # Errors
    /// The socket is unusable.
    pub fn wait(&self, ns: i64) -> io::Result<()> {
        if ns <= 0 || self.has_come() { Ok(()) } else { wait_readable_for(self.fd.as_fd(), ns) }
    }

    /// Number of frames longer than Ethernet allows, merged by an offload, and the length of the longest, by port. None
    /// of them was delivered.
    pub fn too_long(&self) -> &[(u64, u32)] {
        &self.too_long
    }

    /// Number of frames dropped because the ring was full, since it was opened.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn dropped(&mut self) -> io::Result<u64> {
        // Reading resets the kernel's counters.
        let none = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let new = get_option(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, none)?;
        self.dropped += u64::from(new.tp_drops);
        Ok(self.dropped)
    }
}

/// Port and length of the frame in a slot, if [`read`] refuses it for its length.
#[cold]
fn too_long(place: &[u8; PLACE], ports: &[u16]) -> Option<(usize, u32)> {
    let word = |at: usize| place.get(at..at + 4)?.first_chunk().copied().map(u32::from_ne_bytes);
    let interface = usize::try_from(word(INTERFACE_AT)?).ok()?;
    let port = usize::from(*ports.get(interface)?).checked_sub(1)?;
    let length = word(4)?;
    (length as usize > LONGEST || length != word(8)?).then_some((port, length))
}

/// The frame in a slot, which begins with `struct tpacket2_hdr`: status, length, captured length, offset, seconds,
/// nanoseconds, tag. `None`: of another interface, or incomplete.
#[inline]
fn read<'a>(
    place: &'a [u8; PLACE],
    status: u32,
    ports: &[u16],
    tagged: &'a mut [u8; PLACE],
) -> Option<PortFrame<'a>> {
    let word = |at: usize| place.get(at..at + 4)?.first_chunk().copied().map(u32::from_ne_bytes);
    let half = |at: usize| place.get(at..at + 2)?.first_chunk().copied().map(u16::from_ne_bytes);
    let interface = usize::try_from(word(INTERFACE_AT)?).ok()?;
    let port = usize::from(*ports.get(interface)?).checked_sub(1)?;
    let (length, kept, begin) = (word(4)?, word(8)?, usize::from(half(12)?));
    if length != kept || kept as usize > LONGEST {
        return None;
    }
    let bytes = place.get(begin..begin + kept as usize)?;
    let at = i64::from(word(16)?) * 1_000_000_000 + i64::from(word(20)?);
    let bytes = if status & STATUS_VLAN_VALID == 0 {
        bytes
    } else {
        let (addresses, rest) = bytes.split_at_checked(ADDRESSES)?;
        let (control, own) = (half(24)?.to_be_bytes(), half(26)?.to_be_bytes());
        let tpid = if status & STATUS_VLAN_TPID_VALID == 0 { TPID } else { own };
        tagged[..ADDRESSES].copy_from_slice(addresses);
        tagged[ADDRESSES..ADDRESSES + 2].copy_from_slice(&tpid);
        tagged[ADDRESSES + 2..ADDRESSES + 4].copy_from_slice(&control);
        let end = ADDRESSES + 4 + rest.len();
        tagged[ADDRESSES + 4..end].copy_from_slice(rest);
        &tagged[..end]
    };
    let is_checksum_open = status & STATUS_CHECKSUM_OPEN != 0;
    Some(PortFrame { port, at: WallNanos::new(at), bytes, is_checksum_open })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(interface: u32, status: u32, bytes: &[u8]) -> [u8; PLACE] {
        let mut place = [0; PLACE];
        let length = bytes.len() as u32;
        for (at, value) in
            [(0, status), (4, length), (8, length), (16, 5), (20, 7), (INTERFACE_AT, interface)]
        {
            place[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        for (at, value) in [(12, 80_u16), (24, 0x2005), (26, 0x88A8)] {
            place[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        }
        place[80..80 + bytes.len()].copy_from_slice(bytes);
        place
    }

    #[test]
    fn a_frame_has_its_port_its_time_and_its_tag() {
        let bytes: Vec<u8> = (0..60).collect();
        let mut room = [0; PLACE];
        let ports = [0, 0, 2, 1];
        let plain = place(3, 1, &bytes);
        let frame = read(&plain, 1, &ports, &mut room).expect("a frame");
        assert_eq!((frame.port, frame.at.get(), frame.bytes), (0, 5_000_000_007, &bytes[..]));
        let status = 1 | STATUS_VLAN_VALID;
        let tagged = place(2, status, &bytes);
        let frame = read(&tagged, status, &ports, &mut room).expect("a frame");
        assert_eq!((frame.port, frame.bytes.len(), frame.is_checksum_open), (1, 64, false));
        assert_eq!(&frame.bytes[10..18], &[10, 11, 0x81, 0x00, 0x20, 0x05, 12, 13]);
        let open = place(2, 1 | STATUS_CHECKSUM_OPEN, &bytes);
        assert!(read(&open, 1 | STATUS_CHECKSUM_OPEN, &ports, &mut room).expect("a frame").is_checksum_open);
        assert!(read(&place(1, 1, &bytes), 1, &ports, &mut room).is_none(), "another interface's");
        assert_eq!(too_long(&open, &ports), None);
        let mut long = open;
        long[4..8].copy_from_slice(&5_000_u32.to_ne_bytes());
        assert!(read(&long, 1, &ports, &mut room).is_none());
        assert_eq!(too_long(&long, &ports), Some((1, 5_000)));
        assert!(read(&place(9, 1, &bytes), 1, &ports, &mut room).is_none());
    }

    #[test]
    fn no_number_in_a_place_leads_out_of_it() {
        let good = place(2, 1 | STATUS_VLAN_VALID, &[1; 60]);
        let mut room = [0; PLACE];
        for at in (0..80).step_by(2) {
            for value in [0_u32, 1, 13, 255, 0x7fff_ffff, u32::MAX] {
                let mut bad = good;
                bad[at..at + 4].copy_from_slice(&value.to_ne_bytes());
                for status in [1, 1 | STATUS_VLAN_VALID] {
                    let _ = read(&bad, status, &[0, 0, 1], &mut room);
                }
            }
        }
    }
}
