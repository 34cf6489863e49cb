//! Complete frames: the frame length of a message, its headers, and finding a message in a frame.
//!
//! Frames come without FCS, as sockets and captures give them. A message travels tagged or not, in a raw
//! frame of type 0x88B5 or in UDP over IPv4.

use core::net::SocketAddrV4;

use crate::arinc664::{self, Sender, VirtualLinkId};
use crate::ethernet::{self, EtherType, EthernetError, MacAddress};
use crate::ipv4::{self, Ipv4Error};
use crate::probe::{self, Probe, ProbeError};
use crate::udp::{self, UdpError};
use crate::vlan::{self, VlanError};

/// Length of the headers of a datagram, in bytes: IPv4 without options, and UDP.
pub const DATAGRAM_HEADER_LEN: usize = ipv4::HEADER_LEN + udp::HEADER_LEN;

/// Length of the frame (DA to FCS, padding included) that carries a UDP payload, in bytes.
pub const fn udp_frame_len(payload: usize, tagged: bool) -> usize {
    frame_len(payload.saturating_add(DATAGRAM_HEADER_LEN), tagged)
}

/// Length of the frame (DA to FCS, padding included) that carries a raw payload, in bytes.
pub const fn raw_frame_len(payload: usize, tagged: bool) -> usize {
    frame_len(payload, tagged)
}

/// Shortest raw payload that needs no padding, in bytes. A raw frame has no length field: the receiver of a shorter
/// message gets the padding too and must cut it off, knowing the length from the test, before it checks the CRC.
pub const fn raw_payload_without_padding(tagged: bool) -> usize {
    ethernet::MIN_FRAME_LEN_WITHOUT_FCS - header_len(tagged)
}

const fn header_len(tagged: bool) -> usize {
    ethernet::HEADER_LEN + if tagged { vlan::TAG_LEN } else { 0 }
}

// The minimum includes the tag: 802.1Q bridges may pad a tagged frame to 68 B, but need not (802.1Q-2022, 6.7.1).
const fn frame_len(ethernet_payload: usize, tagged: bool) -> usize {
    let len = ethernet_payload.saturating_add(header_len(tagged) + ethernet::FCS_LEN);
    if len < ethernet::MIN_FRAME_LEN { ethernet::MIN_FRAME_LEN } else { len }
}

/// The tag of a frame, without the type of the content, which follows from the [`Carrier`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// Priority code point.
    pub priority: vlan::Priority,
    /// Drop eligible indicator.
    pub drop_eligible: bool,
    /// VLAN identifier.
    pub id: vlan::VlanId,
}

/// Carrier of the message in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The frame itself, EtherType 0x88B5.
    Raw,
    /// UDP over IPv4; the protocol number is not free and so not here.
    Udp {
        /// Source address and port.
        source: SocketAddrV4,
        /// Destination address and port.
        destination: SocketAddrV4,
        /// DSCP and ECN.
        traffic_class: u8,
        /// Identification.
        identification: u16,
        /// Whether routers may not fragment it.
        dont_fragment: bool,
        /// Time to live in hops.
        ttl: u8,
        /// Whether the datagram has a checksum.
        checksummed: bool,
    },
}

impl Carrier {
    /// UDP as a Linux socket sends it by default: no class, 64 hops, not fragmented, with checksum.
    pub const fn udp(source: SocketAddrV4, destination: SocketAddrV4) -> Self {
        Self::Udp {
            source,
            destination,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            ttl: 64,
            checksummed: true,
        }
    }
}

/// Headers around a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Destination address.
    pub destination: MacAddress,
    /// Source address.
    pub source: MacAddress,
    /// VLAN tag; `None`: untagged.
    pub tag: Option<Tag>,
    /// Carrier of the message.
    pub carrier: Carrier,
}

/// Reason why a frame holds no message of Wiregauge, by layer; or cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// An error in the Ethernet header.
    #[error(transparent)]
    Ethernet(#[from] EthernetError),
    /// An error in the VLAN tag.
    #[error(transparent)]
    Vlan(#[from] VlanError),
    /// Neither IPv4 nor a raw message.
    #[error("EtherType {found:#06x} is neither 0x0800 (IPv4) nor 0x88b5 (raw message)")]
    EtherType {
        /// The type behind the tag, if there is one.
        found: u16,
    },
    /// An error in the IPv4 header.
    #[error(transparent)]
    Ipv4(#[from] Ipv4Error),
    /// IPv4 with another protocol than UDP.
    #[error("IPv4 protocol {found} is not 17 (UDP)")]
    Protocol {
        /// The protocol number.
        found: u8,
    },
    /// An error in the UDP header.
    #[error(transparent)]
    Udp(#[from] UdpError),
    /// Valid headers, but the payload is no message.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The given buffer is too small for the frame.
    #[error("a frame of {needed} B without FCS does not fit into a buffer of {len} B")]
    Buffer {
        /// Number of bytes needed.
        needed: usize,
        /// Number of bytes available.
        len: usize,
    },
}

/// A message found in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// Headers around the message.
    pub envelope: Envelope,
    /// The message's payload, beginning with the probe header. In a raw frame it includes padding, see
    /// [`raw_payload_without_padding`].
    pub payload: &'a [u8],
    /// The probe header. Its CRC is not checked here: [`probe::read`] does that, once padding is cut off.
    pub probe: Probe,
    /// State of the UDP checksum; [`udp::Checksum::Absent`] in a raw frame.
    pub udp_checksum: udp::Checksum,
}

/// Finds the message in a frame without FCS.
///
/// A wrong UDP checksum is reported but no reason to refuse the frame: on virtual interfaces, frames are seen before
/// their checksum is computed, and the message has its own CRC.
///
/// # Errors
/// A [`LayoutError`] with the layer and the reason. A second VLAN tag is an error.
pub fn find(frame: &[u8]) -> Result<Found<'_>, LayoutError> {
    let view = ethernet::Frame::new_checked(frame)?;
    let header = ethernet::Repr::parse(&view)?;
    let (tag, ethertype, inner) = if header.ethertype == EtherType::VLAN {
        let view = vlan::Tag::new_checked(&frame[ethernet::HEADER_LEN..])?;
        let tag = vlan::Repr::parse(&view)?;
        let kept = Tag { priority: tag.priority, drop_eligible: tag.drop_eligible, id: tag.id };
        (Some(kept), tag.ethertype, &frame[ethernet::HEADER_LEN + vlan::TAG_LEN..])
    } else {
        (None, header.ethertype, &frame[ethernet::HEADER_LEN..])
    };
    let (carrier, payload, udp_checksum) = match ethertype {
        EtherType::PROBE => (Carrier::Raw, inner, udp::Checksum::Absent),
        EtherType::IPV4 => find_in_ipv4(inner)?,
        other => return Err(LayoutError::EtherType { found: other.get() }),
    };
    let probe = probe::read_header(payload)?;
    let envelope = Envelope { destination: header.destination, source: header.source, tag, carrier };
    Ok(Found { envelope, payload, probe, udp_checksum })
}

fn find_in_ipv4(bytes: &[u8]) -> Result<(Carrier, &[u8], udp::Checksum), LayoutError> {
    let packet = ipv4::Packet::new_checked(bytes)?;
    let ip = ipv4::Repr::parse(&packet)?;
    if ip.protocol != ipv4::PROTOCOL_UDP {
        return Err(LayoutError::Protocol { found: ip.protocol });
    }
    let bytes = &bytes[packet.header_len()..packet.total_len()];
    let datagram = udp::Datagram::new_checked(bytes)?;
    let header = udp::Repr::parse(&datagram);
    let pseudo = udp::PseudoHeader { source: ip.source, destination: ip.destination };
    let carrier = Carrier::Udp {
        source: SocketAddrV4::new(ip.source, header.source_port),
        destination: SocketAddrV4::new(ip.destination, header.destination_port),
        traffic_class: ip.traffic_class,
        identification: ip.identification,
        dont_fragment: ip.dont_fragment,
        ttl: ip.ttl,
        checksummed: header.checksummed,
    };
    let payload = &bytes[udp::HEADER_LEN..datagram.total_len()];
    Ok((carrier, payload, datagram.checksum(&pseudo)))
}

impl Envelope {
    /// Length of the headers before the message's payload, in bytes.
    pub const fn header_len(&self) -> usize {
        header_len(self.tag.is_some())
            + match self.carrier {
                Carrier::Raw => 0,
                Carrier::Udp { .. } => DATAGRAM_HEADER_LEN,
            }
    }

    /// Length of the frame (DA to FCS, padding included) for a payload of `payload` bytes.
    pub const fn frame_len(&self, payload: usize) -> usize {
        match self.carrier {
            Carrier::Raw => raw_frame_len(payload, self.tag.is_some()),
            Carrier::Udp { .. } => udp_frame_len(payload, self.tag.is_some()),
        }
    }

    /// Length of the frame (DA to FCS, padding included) for a payload of `payload` bytes that ends with the sequence
    /// number of a virtual link.
    pub const fn numbered_frame_len(&self, payload: usize) -> usize {
        let length = self.header_len() + payload + arinc664::SEQUENCE_LEN + ethernet::FCS_LEN;
        if length < ethernet::MIN_FRAME_LEN { ethernet::MIN_FRAME_LEN } else { length }
    }

    /// Headers of messages on a virtual link (ARINC 664 part 7): the destination address names the link, the source
    /// address the sender and its interface; from and to UDP port `port` of the sender's first partition, without UDP
    /// checksum.
    pub const fn of_virtual_link(link: VirtualLinkId, sender: Sender, port: u16) -> Self {
        let source = SocketAddrV4::new(sender.partition(1), port);
        let carrier = Carrier::Udp {
            source,
            destination: SocketAddrV4::new(link.group(), port),
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            ttl: 64,
            checksummed: false,
        };
        Self { destination: link.destination(), source: sender.address(), tag: None, carrier }
    }

    /// As [`close`](Self::close), for the frame of a virtual link: its last byte, behind the padding, is the sequence
    /// number.
    ///
    /// # Errors
    /// As [`close`](Self::close).
    pub fn close_numbered<'a>(
        &self,
        buffer: &'a mut [u8],
        payload: usize,
        number: u8,
    ) -> Result<&'a mut [u8], LayoutError> {
        let needed = self.numbered_frame_len(payload) - ethernet::FCS_LEN;
        let len = buffer.len();
        let frame = buffer.get_mut(..needed).ok_or(LayoutError::Buffer { needed, len })?;
        self.close(frame, payload)?;
        frame[self.header_len() + payload..].fill(0);
        frame[needed - arinc664::SEQUENCE_LEN] = number;
        Ok(frame)
    }

    /// Writes the headers around a payload of `payload` bytes that is already at [`header_len`](Self::header_len) in
    /// `buffer`, pads with zeros, and returns the frame without FCS. Bytes after the frame stay.
    ///
    /// # Errors
    /// [`LayoutError::Buffer`], and [`LayoutError::Ipv4`] for more than 65 535 bytes; the content of the buffer is then
    /// undefined.
    pub fn close<'a>(&self, buffer: &'a mut [u8], payload: usize) -> Result<&'a mut [u8], LayoutError> {
        let needed = self.frame_len(payload) - ethernet::FCS_LEN;
        let len = buffer.len();
        let frame = buffer.get_mut(..needed).ok_or(LayoutError::Buffer { needed, len })?;
        frame[self.header_len() + payload..].fill(0);
        let carried = match self.carrier {
            Carrier::Raw => EtherType::PROBE,
            Carrier::Udp { .. } => EtherType::IPV4,
        };
        let ethertype = if self.tag.is_some() { EtherType::VLAN } else { carried };
        let header = ethernet::Repr { destination: self.destination, source: self.source, ethertype };
        header.emit(&mut ethernet::Frame::new_checked(&mut *frame)?);
        if let Some(Tag { priority, drop_eligible, id }) = self.tag {
            let tag = vlan::Repr { priority, drop_eligible, id, ethertype: carried };
            tag.emit(&mut vlan::Tag::new_checked(&mut frame[ethernet::HEADER_LEN..])?);
        }
        let packet = header_len(self.tag.is_some())..self.header_len() + payload;
        self.close_packet(&mut frame[packet])?;
        Ok(frame)
    }

    fn close_packet(&self, packet: &mut [u8]) -> Result<(), LayoutError> {
        let Carrier::Udp {
            source,
            destination,
            traffic_class,
            identification,
            dont_fragment,
            ttl,
            checksummed,
        } = self.carrier
        else {
            return Ok(());
        };
        let ip = ipv4::Repr {
            source: *source.ip(),
            destination: *destination.ip(),
            protocol: ipv4::PROTOCOL_UDP,
            traffic_class,
            identification,
            dont_fragment,
            ttl,
        };
        ip.emit(packet)?;
        let pseudo = udp::PseudoHeader { source: ip.source, destination: ip.destination };
        let header =
            udp::Repr { source_port: source.port(), destination_port: destination.port(), checksummed };
        Ok(header.emit(&mut packet[ipv4::HEADER_LEN..], &pseudo)?)
    }
}
