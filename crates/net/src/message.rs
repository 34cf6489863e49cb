//! Control messages of received frames and of the error queue.

use wg_frame::time::WallNanos;

/// Room for the control messages of one frame: timestamps (64 B), auxiliary data, drop counter, error.
pub(crate) const CONTROL_LEN: usize = 256;

/// A control buffer aligned as the kernel lays it out.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(crate) struct Control(pub(crate) [u8; CONTROL_LEN]);

impl Control {
    pub(crate) const EMPTY: Self = Self([0; CONTROL_LEN]);
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

/// `SCM_TSTAMP_SND` of linux/errqueue.h: the stamp was taken as the driver took the frame.
const STAMP_OF_SEND: u32 = 0;
/// `PACKET_TX_TIMESTAMP` of linux/if_packet.h.
const PACKET_TX_TIMESTAMP: libc::c_int = 16;
/// `TP_STATUS_VLAN_VALID` of linux/if_packet.h.
const VLAN_VALID: u32 = 1 << 4;

/// What the control messages of one frame said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Notes {
    pub(crate) software_stamp: Option<WallNanos>,
    pub(crate) vlan_tci: Option<u16>,
    /// Number of the send a transmit stamp belongs to.
    pub(crate) send_number: Option<u32>,
}

/// Reads the control messages the kernel left in a message header.
pub(crate) fn notes(header: &libc::msghdr, control: &Control) -> Notes {
    let mut notes = Notes::default();
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
                if let Some(time) = value::<libc::timespec>(data)
                    && (time.tv_sec, time.tv_nsec) != (0, 0)
                {
                    notes.software_stamp = Some(WallNanos::new(crate::clock::nanos(time)));
                }
            }
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                if let Some(auxiliary) = value::<Auxiliary>(data)
                    && auxiliary.status & VLAN_VALID != 0
                {
                    notes.vlan_tci = Some(auxiliary.vlan_tci);
                }
            }
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_PACKET, PACKET_TX_TIMESTAMP) => {
                if let Some(error) = value::<libc::sock_extended_err>(data)
                    && error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING
                    && error.ee_info == STAMP_OF_SEND
                {
                    notes.send_number = Some(error.ee_data);
                }
            }
            _ => {}
        }
        at += length.next_multiple_of(size_of::<usize>());
    }
    notes
}

/// C structures of integers, readable from any bytes.
///
/// # Safety
/// Every bit pattern of an implementor is valid.
unsafe trait FromBytes: Copy {}
// SAFETY: two integers.
unsafe impl FromBytes for libc::timespec {}
// SAFETY: integers only.
unsafe impl FromBytes for Auxiliary {}
// SAFETY: integers only.
unsafe impl FromBytes for libc::sock_extended_err {}

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

    #[test]
    fn truncated_or_absurd_control_lengths_end_the_reading() {
        for length in [0_usize, 1, 15, 16, 17, 255, 256, usize::MAX] {
            for byte in [0_u8, 1, 17, 64, 255] {
                // SAFETY: a msghdr of zeroes is a valid "nothing".
                let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
                header.msg_controllen = length as _;
                let found = notes(&header, &Control([byte; CONTROL_LEN]));
                assert!(found.send_number.is_none());
            }
        }
    }
}
