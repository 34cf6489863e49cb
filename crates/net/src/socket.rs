//! The socket of an access point: UDP or raw Ethernet, with the kernel's own timestamps on every frame.
//!
//! Both kinds have the same interface: `send` numbers a frame, [`Socket::transmit_timestamps`] later returns the time
//! at which the driver took the frame of that number, `receive` returns a frame with the kernel's timestamp of its
//! arrival. The kernel numbers sends by itself (`SOF_TIMESTAMPING_OPT_ID`); this side counts in step, by the rule that
//! a frame refused by the queueing discipline (`ENOBUFS`) had its number already and one refused earlier had not.
//!
//! Frames are sent through the queueing discipline: a network under test is shaped there.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use wg_frame::ethernet::MacAddress;
use wg_frame::time::WallNanos;

use crate::ancillary::{ControlBuffer, read_ancillary};
use crate::bpf::classic;
use crate::error::NetError;
use crate::interface::Interface;
use crate::sys::{bind, check, get_option, length_of, link_address, set_option, short, socket};
use crate::target::{MacRange, Target};
use crate::wake::Wake;
use address::{AddressRoom, KernelAddress};

pub use ip::Unreachable;

pub(crate) mod address;
mod ip;

/// Requested buffer length in bytes. The kernel doubles it for its bookkeeping.
const BUFFER_BYTES: libc::c_int = 8 << 20;
/// Greatest number of transmit timestamps read in one call.
pub const TX_BATCH: usize = 16;
const TX_BATCH_UINT: libc::c_uint = 16;
/// `PACKET_IGNORE_OUTGOING` of linux/if_packet.h (Linux 4.20).
pub(crate) const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// The kernel's own timestamps, those of sent frames with their numbers.
const SOFTWARE: u32 = libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_RX_SOFTWARE
    | libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY;

/// An open access point.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    packet: bool,
    ipv6: bool,
    control: ControlBuffer,
    timestamp_controls: Box<[ControlBuffer; TX_BATCH]>,
    sends: u32,
    unreachable: Unreachable,
}

/// Greatest number of addresses that are added to a card's filter one by one; beyond, the card is set to promiscuous
/// mode.
const MOST_MEMBERSHIPS: u64 = 64;

/// Sets promiscuous mode for a packet socket as long as it is open: it receives all frames on the wire, not only those
/// addressed to this host.
pub(crate) fn see_all(fd: BorrowedFd<'_>, interface: &Interface) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: interface.index.cast_signed(),
        mr_type: short(libc::PACKET_MR_PROMISC as i64),
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, membership)
}

/// Memberships for a card that filters addresses; the host's own address passes anyway.
fn memberships(interface: u32, macs: &[MacRange]) -> Vec<libc::packet_mreq> {
    let membership = |kind: libc::c_int, address: [u8; 6]| {
        let mut wish = libc::packet_mreq {
            mr_ifindex: interface.cast_signed(),
            mr_type: short(i64::from(kind)),
            mr_alen: 6,
            mr_address: [0; 8],
        };
        wish.mr_address[..6].copy_from_slice(&address);
        wish
    };
    if macs.iter().map(|range| u64::from(range.count.max(1))).sum::<u64>() > MOST_MEMBERSHIPS {
        return vec![membership(libc::PACKET_MR_PROMISC, [0; 6])];
    }
    let each = macs.iter().flat_map(|range| {
        let first = MacAddress(range.first);
        (0..u64::from(range.count.max(1))).map(move |further| first.offset_by(further))
    });
    let kind =
        |mac: MacAddress| if mac.is_group() { libc::PACKET_MR_MULTICAST } else { libc::PACKET_MR_UNICAST };
    each.map(|mac| membership(kind(mac), mac.0)).collect()
}

/// Frames that a raw access point receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocols {
    /// Frames of this EtherType. The kernel hides a VLAN tag from such a socket.
    Only(u16),
    /// Frames of this EtherType with the VLAN tag they arrived with; every frame of the interface is then filtered.
    WithTags(u16),
}

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Length in bytes of the UDP payload, or of the complete Ethernet frame without tag and FCS. If greater than the
    /// buffer, the frame was truncated.
    pub len: usize,
    /// Time at which the kernel received it from the driver.
    pub timestamp: Option<WallNanos>,
    /// Time at which the interface received it, in ns of its own clock; only after
    /// [`Socket::report_hardware_timestamps`].
    pub hardware_ns: Option<i64>,
    /// Source address; UDP only.
    pub source: Option<SocketAddr>,
    /// 802.1Q tag control information with which it arrived.
    pub vlan_tci: Option<u16>,
    /// TTL, or hop limit, with which it arrived; only after [`Socket::report_ip_headers`].
    pub ttl: Option<u8>,
    /// Traffic class with which it arrived, DSCP and ECN; only after [`Socket::report_ip_headers`].
    pub traffic_class: Option<u8>,
}

/// A transmit timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransmitTimestamp {
    /// Time at which the driver took the frame.
    Driver(WallNanos),
    /// Time at which the interface sent the frame, in ns of its own clock.
    Interface(i64),
}

/// Events that ended a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Whether frames can be received.
    pub frames: bool,
    /// Whether transmit timestamps can be read.
    pub timestamps: bool,
    /// Whether the wake-up was signalled.
    pub woken: bool,
}

/// Reason why a frame was not sent.
#[derive(Debug)]
pub enum SendFailure {
    /// No room: the socket's buffer or the queueing discipline is full. The frame is lost.
    NoRoom,
    /// Any other error; the frame is lost.
    Refused(io::Error),
}

impl Socket {
    /// A UDP access point bound to `at`, and to `interface` alone if the host permits that.
    ///
    /// # Errors
    /// The address is in use or not configured, or the kernel lacks transmit and receive timestamps.
    pub fn udp(at: impl Into<SocketAddr>) -> Result<Self, NetError> {
        let at = at.into();
        let what = format!("cannot open the UDP access point {at}");
        let family = if at.is_ipv6() { libc::AF_INET6 } else { libc::AF_INET };
        let mut open = Self::open(family, libc::SOCK_DGRAM, false, &what)?;
        open.ipv6 = at.is_ipv6();
        let fd = open.fd.as_fd();
        // A message larger than the MTU must be refused, not fragmented without notice. Without errors the kernel hides
        // drops of the queueing discipline.
        let options = if at.is_ipv6() {
            [
                (libc::IPV6_V6ONLY, 1),
                (libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
                (libc::IPV6_RECVERR, 1),
            ]
            .map(|(option, value)| (libc::IPPROTO_IPV6, option, value))
            .to_vec()
        } else {
            [(libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO), (libc::IP_RECVERR, 1)]
                .map(|(option, value)| (libc::IPPROTO_IP, option, value))
                .to_vec()
        };
        for (level, option, value) in options {
            set_option(fd, level, option, value).map_err(|e| NetError::of(what.clone(), "", e))?;
        }
        let bound = match KernelAddress::from(at) {
            KernelAddress::V4(address) => bind(fd, &address),
            KernelAddress::V6(address) => bind(fd, &address),
        };
        bound.map_err(|e| {
            NetError::of(what.clone(), "is the address configured on this host, and no other agent on it?", e)
        })?;
        open.enable_timestamps(&what)?;
        Ok(open)
    }

    /// An access point for complete Ethernet frames on the interface of this index, addressed to one of `macs`.
    ///
    /// # Errors
    /// CAP_NET_RAW is missing, or the interface is gone.
    pub fn packet(interface: u32, macs: &[MacRange], protocols: Protocols) -> Result<Self, NetError> {
        let (Protocols::Only(ether_type) | Protocols::WithTags(ether_type)) = protocols;
        Self::filtered(interface, protocols, &classic::addressed(macs, ether_type), macs)
    }

    /// An access point for UDP over IPv4 in complete frames to one of `targets`, whatever addresses the host has;
    /// `tagged`: with the VLAN tags they arrived with.
    ///
    /// # Errors
    /// As [`packet`](Self::packet); the filter allows some 450 targets.
    pub fn frames(interface: u32, targets: &[Target], tagged: bool) -> Result<Self, NetError> {
        let macs: Vec<MacRange> = targets.iter().map(|target| target.macs).collect();
        let ipv4 = short(libc::ETH_P_IP as i64);
        let protocols = if tagged { Protocols::WithTags(ipv4) } else { Protocols::Only(ipv4) };
        Self::filtered(interface, protocols, &classic::udp(targets), &macs)
    }

    fn filtered(
        interface: u32,
        protocols: Protocols,
        program: &[libc::sock_filter],
        macs: &[MacRange],
    ) -> Result<Self, NetError> {
        let bound_to = match protocols {
            Protocols::Only(ether_type) => ether_type,
            Protocols::WithTags(_) => short(libc::ETH_P_ALL as i64),
        };
        let what = format!("cannot open the raw access point on interface {interface}");
        // Protocol 0: nothing arrives before filter and binding are in place.
        let open = Self::open(libc::AF_PACKET, libc::SOCK_RAW, true, &what)?;
        let fd = open.fd.as_fd();
        let plain = |e| NetError::of(what.clone(), "", e);
        attach_filter(fd, program).map_err(plain)?;
        set_option(fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            .map_err(|e| NetError::of(what.clone(), "Linux 4.20 or later is needed", e))?;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1).map_err(plain)?;
        for membership in memberships(interface, macs) {
            set_option(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, membership)
                .map_err(|e| NetError::of(what.clone(), "the interface takes no further address", e))?;
        }
        bind(fd, &link_address(interface, bound_to)).map_err(plain)?;
        open.enable_timestamps(&what)?;
        Ok(open)
    }

    fn open(family: libc::c_int, kind: libc::c_int, packet: bool, what: &str) -> Result<Self, NetError> {
        let cure = if packet { "packet sockets need root or CAP_NET_RAW" } else { "" };
        let fd = socket(family, kind, 0).map_err(|e| NetError::of(what, cure, e))?;
        for (forced, asked) in
            [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
        {
            // Only root may exceed the system's limit; the ordinary call is capped by it.
            if set_option(fd.as_fd(), libc::SOL_SOCKET, forced, BUFFER_BYTES).is_err() {
                set_option(fd.as_fd(), libc::SOL_SOCKET, asked, BUFFER_BYTES)
                    .map_err(|e| NetError::of(what, "", e))?;
            }
        }
        let timestamp_controls = Box::new([ControlBuffer::EMPTY; TX_BATCH]);
        Ok(Self {
            fd,
            packet,
            ipv6: false,
            control: ControlBuffer::EMPTY,
            timestamp_controls,
            sends: 0,
            unreachable: Unreachable::default(),
        })
    }

    fn enable_timestamps(&self, what: &str) -> Result<(), NetError> {
        set_option(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPING, SOFTWARE.cast_signed()).map_err(
            |e| {
                NetError::of(
                    what,
                    "the kernel must support software timestamps of sent and received frames",
                    e,
                )
            },
        )
    }

    /// Enables reports of the interface's timestamps beside the kernel's: for every received frame, and for those sent
    /// with [`send_with_hardware_timestamp`](Self::send_with_hardware_timestamp). The interface's
    /// [timestamping](crate::HardwareTimestamping) must be on.
    ///
    /// # Errors
    /// The kernel cannot report both kinds of timestamps for one frame (Linux 4.13 can).
    pub fn report_hardware_timestamps(&self) -> Result<(), NetError> {
        let flags = SOFTWARE
            | libc::SOF_TIMESTAMPING_RX_HARDWARE
            | libc::SOF_TIMESTAMPING_RAW_HARDWARE
            | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;
        set_option(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags.cast_signed()).map_err(
            |e| NetError::of("cannot receive hardware timestamps", "Linux 4.13 or later is needed", e),
        )
    }

    /// Limits how long a blocking [`receive`](Self::receive) waits. The kernel rounds up to its tick.
    ///
    /// # Errors
    /// None on a supported kernel.
    pub fn limit_blocking(&self, millis: u32) -> Result<(), NetError> {
        let time =
            libc::timeval { tv_sec: i64::from(millis / 1000), tv_usec: i64::from(millis % 1000) * 1000 };
        set_option(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, time)
            .map_err(|e| NetError::of("cannot limit blocking receives", "", e))
    }

    /// Sends one frame without waiting. `to` is the destination of a UDP datagram; a raw frame has its own.
    ///
    /// # Errors
    /// The frame was not sent; see [`SendFailure`]. `Ok` is the number that its transmit timestamp will have.
    pub fn send(&mut self, frame: &[u8], to: Option<SocketAddr>) -> Result<u32, SendFailure> {
        self.send_asking(frame, to, false)
    }

    /// As [`send`](Self::send), and requests the interface's timestamp of this frame beside the driver's. Few
    /// interfaces can hold many such timestamps at a time, so they are requested frame by frame.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_with_hardware_timestamp(
        &mut self,
        frame: &[u8],
        to: Option<SocketAddr>,
    ) -> Result<u32, SendFailure> {
        self.send_asking(frame, to, true)
    }

    fn send_asking(
        &mut self,
        frame: &[u8],
        to: Option<SocketAddr>,
        hardware: bool,
    ) -> Result<u32, SendFailure> {
        let address = to.map(KernelAddress::from);
        let (pointer, length) = address.as_ref().map_or((std::ptr::null(), 0), KernelAddress::raw);
        for last_try in [false, true] {
            let sent = if hardware {
                self.send_with_request(frame, pointer, length)
            } else {
                // SAFETY: `frame` and `address` live across the call and are described by their lengths.
                unsafe {
                    libc::sendto(
                        self.fd.as_raw_fd(),
                        frame.as_ptr().cast(),
                        frame.len(),
                        libc::MSG_DONTWAIT,
                        pointer,
                        length,
                    )
                }
            };
            if sent >= 0 {
                let number = self.sends;
                self.sends = number.wrapping_add(1);
                return Ok(number);
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ENOBUFS) => {
                    self.sends = self.sends.wrapping_add(1);
                    return Err(SendFailure::NoRoom);
                }
                Some(libc::EAGAIN) => return Err(SendFailure::NoRoom),
                // An ICMP error of an earlier datagram is reported, once, by the next send.
                Some(libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EINTR)
                    if !last_try => {}
                _ => return Err(SendFailure::Refused(error)),
            }
        }
        Err(SendFailure::NoRoom)
    }

    /// `sendmsg` with a control message that overrides the requested timestamps for this frame.
    fn send_with_request(
        &self,
        frame: &[u8],
        address: *const libc::sockaddr,
        address_len: u32,
    ) -> libc::ssize_t {
        let flags = libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_TX_HARDWARE;
        let (mut control, used) = ControlBuffer::asking_for(flags);
        let mut part = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
        // SAFETY: a msghdr of zeroes is a valid "nothing"; its padding differs between C libraries.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_name = address.cast_mut().cast();
        header.msg_namelen = address_len;
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = used as _;
        // SAFETY: every pointer of `header` refers to live memory of the length beside it; sending only reads it.
        unsafe { libc::sendmsg(self.fd.as_raw_fd(), &raw const header, libc::MSG_DONTWAIT) }
    }

    /// Receives one frame into `buffer`; `block` waits as long as [`limit_blocking`](Self::limit_blocking) allows.
    /// `Ok(None)`: no frame (in time).
    ///
    /// # Errors
    /// The access point is unusable, for example because its interface went away.
    pub fn receive(&mut self, buffer: &mut [u8], block: bool) -> io::Result<Option<Received>> {
        let mut source = AddressRoom::empty();
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: a msghdr of zeroes is a valid "nothing"; its padding differs between C libraries.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        if !self.packet {
            header.msg_name = (&raw mut source).cast();
            header.msg_namelen = length_of::<AddressRoom>();
        }
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = self.control.0.as_mut_ptr().cast();
        header.msg_controllen = self.control.0.len() as _;
        let flags = libc::MSG_TRUNC | if block { 0 } else { libc::MSG_DONTWAIT };
        // SAFETY: every pointer of `header` refers to a live, exclusively borrowed buffer of the length beside it.
        let got = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut header, flags) };
        if got < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                // The last three: an ICMP error of an earlier datagram, of no interest here.
                Some(
                    libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH,
                ) => Ok(None),
                _ => Err(error),
            };
        }
        let ancillary = read_ancillary(&header, &self.control);
        Ok(Some(Received {
            len: got.unsigned_abs(),
            timestamp: ancillary.software_timestamp,
            hardware_ns: ancillary.hardware_timestamp,
            source: if self.packet { None } else { source.read() },
            vlan_tci: ancillary.vlan_tci,
            ttl: ancillary.ttl,
            traffic_class: ancillary.traffic_class,
        }))
    }

    /// Calls `take` with up to [`TX_BATCH`] transmit timestamps: number of the send, and when the driver took it or the
    /// interface sent it. Returns the number of entries; fewer than [`TX_BATCH`]: the queue is now empty.
    ///
    /// # Errors
    /// The access point is unusable.
    pub fn transmit_timestamps(&mut self, mut take: impl FnMut(u32, TransmitTimestamp)) -> io::Result<usize> {
        // SAFETY: an mmsghdr of zeroes is a valid "nothing".
        let mut headers: [libc::mmsghdr; TX_BATCH] = unsafe { std::mem::zeroed() };
        for (header, control) in headers.iter_mut().zip(self.timestamp_controls.iter_mut()) {
            header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = control.0.len() as _;
        }
        // SAFETY: the array and the control buffers live across the call and have the lengths given; null is
        // "no timeout", which MSG_DONTWAIT makes moot.
        let got = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                headers.as_mut_ptr(),
                TX_BATCH_UINT,
                (libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) as _,
                std::ptr::null_mut(),
            )
        };
        if got < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(0),
                _ => Err(error),
            };
        }
        let got = got.unsigned_abs() as usize;
        for (header, control) in headers.iter().zip(self.timestamp_controls.iter()).take(got) {
            let ancillary = read_ancillary(&header.msg_hdr, control);
            self.unreachable.count(ancillary.icmp);
            let Some(number) = ancillary.send_number else { continue };
            if let Some(at) = ancillary.software_timestamp {
                take(number, TransmitTimestamp::Driver(at));
            }
            if let Some(ns) = ancillary.hardware_timestamp {
                take(number, TransmitTimestamp::Interface(ns));
            }
        }
        Ok(got)
    }

    /// Waits for frames, transmit timestamps or `wake`, at most `timeout_ns`.
    ///
    /// # Errors
    /// None in practice; a signal ends the wait early with nothing ready.
    pub fn wait(&self, wake: Option<&Wake>, timeout_ns: i64) -> io::Result<Ready> {
        let fd = self.fd.as_raw_fd();
        let wake_fd = wake.map_or(-1, |wake| wake.as_fd().as_raw_fd());
        let mut polled = [
            libc::pollfd { fd, events: libc::POLLIN, revents: 0 },
            libc::pollfd { fd: wake_fd, events: libc::POLLIN, revents: 0 },
        ];
        let timeout = timeout_ns.max(0);
        let time = libc::timespec { tv_sec: timeout / 1_000_000_000, tv_nsec: timeout % 1_000_000_000 };
        // SAFETY: `polled` has two entries and `time` is valid; both live across the call; null leaves the signal mask
        // as it is. A negative descriptor is skipped by the kernel.
        let got = unsafe { libc::ppoll(polled.as_mut_ptr(), 2, &raw const time, std::ptr::null()) };
        if got < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted {
                Ok(Ready::default())
            } else {
                Err(error)
            };
        }
        Ok(Ready {
            frames: polled[0].revents & libc::POLLIN != 0,
            timestamps: polled[0].revents & libc::POLLERR != 0,
            woken: polled[1].revents & libc::POLLIN != 0,
        })
    }

    /// Number of frames that the kernel dropped because this socket's buffer was full, since it was opened.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn drops(&self) -> io::Result<u64> {
        // linux/sock_diag.h: the last of the nine figures is SK_MEMINFO_DROPS. For packet sockets it equals the sum of
        // PACKET_STATISTICS, without resetting it.
        let stats = get_option(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, [0_u32; 9])?;
        Ok(u64::from(stats[8]))
    }

    /// Local address of a UDP access point.
    ///
    /// # Errors
    /// The socket is a raw access point.
    pub fn local(&self) -> io::Result<SocketAddr> {
        let mut address = AddressRoom::empty();
        let mut length = length_of::<AddressRoom>();
        // SAFETY: the pointers describe live room for an address and its length; the kernel writes no more than that.
        let done =
            unsafe { libc::getsockname(self.fd.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
        check(done)?;
        address.read().ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))
    }

    /// Receive buffer granted by the kernel in bytes, its bookkeeping included.
    ///
    /// # Errors
    /// None in practice.
    pub fn receive_buffer(&self) -> io::Result<u32> {
        get_option(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 0).map(libc::c_int::unsigned_abs)
    }
}

pub(crate) fn attach_filter(fd: BorrowedFd<'_>, program: &[libc::sock_filter]) -> io::Result<()> {
    // The kernel accepts no longer program.
    let len = u16::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?;
    let described = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: the description points at `program` with its length; the kernel copies it and does not write.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const described).cast(),
            length_of::<libc::sock_fprog>(),
        )
    };
    check(result).map(drop)
}

#[cfg(test)]
mod tests;
