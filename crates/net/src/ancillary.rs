//! Ancillary data (cmsg(3)) of received frames and of the error queue.

use wg_frame::time::WallNanos;

/// Length of a buffer for the control messages of one frame, in bytes: timestamps (64 B), auxiliary data, drop counter,
/// error.
pub(crate) const CONTROL_LEN: usize = 256;

/// A buffer for control messages, aligned as the kernel demands.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(crate) struct ControlBuffer(pub(crate) [u8; CONTROL_LEN]);

impl ControlBuffer {
    pub(crate) const EMPTY: Self = Self([0; CONTROL_LEN]);

    /// A control message that requests the timestamps of `flags` for one frame, and its length in bytes.
    pub(crate) fn asking_for(flags: u32) -> (Self, usize) {
        let mut control = Self::EMPTY;
        let head = size_of::<libc::cmsghdr>();
        // `struct cmsghdr`: length, then level and type, each an int at its end; the data begins behind it.
        control.0[..size_of::<usize>()].copy_from_slice(&(head + size_of::<u32>()).to_ne_bytes());
        control.0[head - 8..head - 4].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
        control.0[head - 4..head].copy_from_slice(&libc::SO_TIMESTAMPING.to_ne_bytes());
        control.0[head..head + 4].copy_from_slice(&flags.to_ne_bytes());
        (control, (head + size_of::<u32>()).next_multiple_of(size_of::<usize>()))
    }
}

/// `struct tpacket_auxdata` of linux/if_packet.h.
#[derive(Clone, Copy)]
#[repr(C)]
struct Auxiliary {
    status: u32,
    len: u32,
    snaplen: u32,
    mac: u16,
    net: u16,
    vlan_tci: u16,
    vlan_tpid: u16,
}

/// `SCM_TSTAMP_SND` of linux/errqueue.h: a timestamp taken when the driver took the frame.
const TIMESTAMP_OF_SEND: u32 = 0;
/// `PACKET_TX_TIMESTAMP` of linux/if_packet.h.
const PACKET_TX_TIMESTAMP: libc::c_int = 16;
/// `TP_STATUS_VLAN_VALID` of linux/if_packet.h.
const VLAN_VALID: u32 = 1 << 4;

/// An ICMP message that answers an earlier datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IcmpAnswer {
    pub(crate) is_v6: bool,
    pub(crate) kind: u8,
    pub(crate) code: u8,
}

impl IcmpAnswer {
    /// "Destination unreachable": `ICMP_DEST_UNREACH` of linux/icmp.h, `ICMPV6_DEST_UNREACH` of linux/icmpv6.h.
    pub(crate) fn is_unreachable(self) -> bool {
        self.kind == if self.is_v6 { 1 } else { 3 }
    }

    /// `ICMP_PORT_UNREACH` and `ICMPV6_PORT_UNREACH` of the same.
    pub(crate) fn is_of_port(self) -> bool {
        self.code == if self.is_v6 { 4 } else { 3 }
    }
}

/// Content of the control messages of one frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ancillary {
    pub(crate) software_timestamp: Option<WallNanos>,
    /// Timestamp by the interface's own clock, ns.
    pub(crate) hardware_timestamp: Option<i64>,
    pub(crate) vlan_tci: Option<u16>,
    /// Number of the send to which a transmit timestamp belongs.
    pub(crate) send_number: Option<u32>,
    /// TTL of the IPv4 header, hop limit of the IPv6 header.
    pub(crate) ttl: Option<u8>,
    /// Traffic class of the IP header: DSCP and ECN.
    pub(crate) traffic_class: Option<u8>,
    /// An ICMP message that answers an earlier datagram.
    pub(crate) icmp: Option<IcmpAnswer>,
}

/// Reads the control messages the kernel left in a message header.
pub(crate) fn read_ancillary(header: &libc::msghdr, control: &ControlBuffer) -> Ancillary {
    let mut found = Ancillary::default();
    let mut at = 0_usize;
    // msg_controllen is what the kernel used of the buffer; it never exceeds what it was given.
    #[expect(clippy::unnecessary_cast, reason = "its type differs between C libraries")]
    let used = (header.msg_controllen as usize).min(CONTROL_LEN);
    let head = size_of::<libc::cmsghdr>();
    while let Some(slot) = used.checked_sub(at)
        && slot >= head
    {
        // SAFETY: `at + head <= used <= CONTROL_LEN`, so the read stays within the buffer; a cmsghdr is integers
        // and valid for every bit pattern; read_unaligned asks for no alignment.
        let one: libc::cmsghdr = unsafe { std::ptr::read_unaligned(control.0.as_ptr().add(at).cast()) };
        let length = one.cmsg_len as usize;
        if length < head || length > slot {
            break;
        }
        let data = &control.0[at + head..at + length];
        match (one.cmsg_level, one.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                // `struct scm_timestamping`: software, an obsolete one, raw hardware; zeros mean none.
                if let Some(times) = value::<[libc::timespec; 3]>(data) {
                    let [software, _, hardware] = times.map(|time| {
                        ((time.tv_sec, time.tv_nsec) != (0, 0)).then(|| crate::clock::nanos(time))
                    });
                    found.software_timestamp = software.map(WallNanos::new);
                    found.hardware_timestamp = hardware;
                }
            }
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                if let Some(auxiliary) = value::<Auxiliary>(data)
                    && auxiliary.status & VLAN_VALID != 0
                {
                    found.vlan_tci = Some(auxiliary.vlan_tci);
                }
            }
            (libc::SOL_IP, libc::IP_RECVERR)
            | (libc::SOL_IPV6, libc::IPV6_RECVERR)
            | (libc::SOL_PACKET, PACKET_TX_TIMESTAMP) => match value::<libc::sock_extended_err>(data) {
                Some(error) if icmp_in(&error).is_some() => found.icmp = icmp_in(&error),
                Some(error)
                    if error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING
                        && error.ee_info == TIMESTAMP_OF_SEND =>
                {
                    found.send_number = Some(error.ee_data);
                }
                _ => {}
            },
            (libc::SOL_IP, libc::IP_TTL) | (libc::SOL_IPV6, libc::IPV6_HOPLIMIT) => {
                found.ttl = value::<libc::c_int>(data).and_then(|ttl| u8::try_from(ttl).ok());
            }
            (libc::SOL_IP, libc::IP_TOS) => found.traffic_class = data.first().copied(),
            (libc::SOL_IPV6, libc::IPV6_TCLASS) => {
                found.traffic_class = value::<libc::c_int>(data).and_then(|class| u8::try_from(class).ok());
            }
            _ => {}
        }
        at += length.next_multiple_of(size_of::<usize>());
    }
    found
}

/// The ICMP message that an error is, if it is one.
fn icmp_in(error: &libc::sock_extended_err) -> Option<IcmpAnswer> {
    let is_v6 = error.ee_origin == libc::SO_EE_ORIGIN_ICMP6;
    (is_v6 || error.ee_origin == libc::SO_EE_ORIGIN_ICMP).then_some(IcmpAnswer {
        is_v6,
        kind: error.ee_type,
        code: error.ee_code,
    })
}

/// C structures of integers, readable from any bytes.
///
/// # Safety
/// Every bit pattern of an implementor is valid.
unsafe trait FromBytes: Copy {}
// SAFETY: integers only.
unsafe impl FromBytes for [libc::timespec; 3] {}
// SAFETY: integers only.
unsafe impl FromBytes for Auxiliary {}
// SAFETY: integers only.
unsafe impl FromBytes for libc::sock_extended_err {}
// SAFETY: an integer.
unsafe impl FromBytes for libc::c_int {}

fn value<T: FromBytes>(data: &[u8]) -> Option<T> {
    if data.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: the slice holds at least the bytes of `T`, every bit pattern of which is valid; no alignment is needed.
    Some(unsafe { std::ptr::read_unaligned(data.as_ptr().cast()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One control message as the kernel lays it out.
    fn message(control: &mut Vec<u8>, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
        let length = size_of::<libc::cmsghdr>() + data.len();
        control.extend(length.to_ne_bytes());
        control.extend(level.to_ne_bytes());
        control.extend(kind.to_ne_bytes());
        control.extend(data);
        control.resize(control.len().next_multiple_of(size_of::<usize>()), 0);
    }

    fn read(control: &[u8]) -> Ancillary {
        let mut room = ControlBuffer::EMPTY;
        room.0[..control.len()].copy_from_slice(control);
        // SAFETY: a msghdr of zeroes is a valid "nothing".
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_controllen = control.len() as _;
        read_ancillary(&header, &room)
    }

    fn timestamps(software: i64, hardware: i64) -> Vec<u8> {
        [software, 0, hardware]
            .into_iter()
            .flat_map(|ns| [ns / 1_000_000_000, ns % 1_000_000_000])
            .flat_map(i64::to_ne_bytes)
            .collect()
    }

    proptest! {
        #[test]
        fn timestamps_of_both_kinds_and_their_number_are_read_in_any_order(
            software in 0_i64..1 << 61, hardware in 0_i64..1 << 61, number: u32, turned: bool, of_packet: bool
        ) {
            // `struct sock_extended_err`: errno, origin, type, code, pad, info, data.
            let mut error = 42_u32.to_ne_bytes().to_vec();
            error.extend([libc::SO_EE_ORIGIN_TIMESTAMPING, 0, 0, 0]);
            error.extend(TIMESTAMP_OF_SEND.to_ne_bytes());
            error.extend(number.to_ne_bytes());
            let level = if of_packet { (libc::SOL_PACKET, PACKET_TX_TIMESTAMP) } else { (libc::SOL_IP, libc::IP_RECVERR) };
            let mut parts = [(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, timestamps(software, hardware)), (level.0, level.1, error)];
            if turned {
                parts.reverse();
            }
            let mut control = Vec::new();
            for (level, kind, data) in &parts {
                message(&mut control, *level, *kind, data);
            }
            let found = read(&control);
            prop_assert_eq!(found.software_timestamp, (software != 0).then(|| WallNanos::new(software)));
            prop_assert_eq!(found.hardware_timestamp, (hardware != 0).then_some(hardware));
            prop_assert_eq!(found.send_number, Some(number));
        }

        #[test]
        fn no_bytes_make_the_reading_leave_its_buffer(bytes in proptest::collection::vec(any::<u8>(), 0..CONTROL_LEN)) {
            read(&bytes);
        }
    }

    #[test]
    fn truncated_or_absurd_control_lengths_end_the_reading() {
        for length in [0_usize, 1, 15, 16, 17, 255, 256, usize::MAX] {
            for byte in [0_u8, 1, 17, 64, 255] {
                // SAFETY: a msghdr of zeroes is a valid "nothing".
                let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
                header.msg_controllen = length as _;
                let found = read_ancillary(&header, &ControlBuffer([byte; CONTROL_LEN]));
                assert!(found.send_number.is_none());
            }
        }
    }
}
