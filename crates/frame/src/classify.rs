//! Classification of frames from their bytes: one pass over addresses, tags and types, without copies.

use crate::arinc664::{self, VirtualLinkError};
use crate::ethernet::{self, EtherType, EthernetError, MacAddress};
use crate::ipv4::{self, Ipv4Error};
use crate::layout::Tag;
use crate::ptp::{self, PtpError};
use crate::rtag::{self, RTagError};
use crate::tte::{self, ControlError, CriticalTrafficId};
use crate::udp;
use crate::vlan::{self, VlanError};

/// A frame by layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classified<'a> {
    /// Destination address.
    pub destination: MacAddress,
    /// Source address.
    pub source: MacAddress,
    /// VLAN tag; `None`: untagged.
    pub vlan: Option<Tag>,
    /// Sequence number of the redundancy tag; `None`: no such tag.
    pub redundancy: Option<u16>,
    /// Content of the frame.
    pub content: Content<'a>,
}

/// Content of a frame, as views of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A frame of a virtual link.
    VirtualLink(arinc664::Frame<&'a [u8]>),
    /// A protocol control frame of TTEthernet.
    ProtocolControl(tte::ControlFrame<&'a [u8]>),
    /// Critical traffic of TTEthernet: the bytes after the last type, padding included.
    CriticalTraffic {
        /// Identifier of the flow.
        id: CriticalTrafficId,
        /// EtherType of the payload.
        ethertype: EtherType,
        /// The payload, padding included.
        payload: &'a [u8],
    },
    /// A message of the Precision Time Protocol, by Ethernet or by UDP.
    Ptp(ptp::Message<&'a [u8]>),
    /// Any other IPv4 packet.
    Ipv4(ipv4::Packet<&'a [u8]>),
    /// Any other content: the bytes after the last type, padding included.
    Other {
        /// EtherType of the payload.
        ethertype: EtherType,
        /// The payload, padding included.
        payload: &'a [u8],
    },
}

/// Reason why a frame cannot be classified, by layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassifyError {
    /// An error in the Ethernet header.
    #[error(transparent)]
    Ethernet(#[from] EthernetError),
    /// An error in the VLAN tag.
    #[error(transparent)]
    Vlan(#[from] VlanError),
    /// An error in the redundancy tag.
    #[error(transparent)]
    Redundancy(#[from] RTagError),
    /// An error in a frame of a virtual link.
    #[error(transparent)]
    VirtualLink(#[from] VirtualLinkError),
    /// An error in a protocol control frame.
    #[error(transparent)]
    ProtocolControl(#[from] ControlError),
    /// An error in a PTP message.
    #[error(transparent)]
    Ptp(#[from] PtpError),
    /// An error in the IPv4 header.
    #[error(transparent)]
    Ipv4(#[from] Ipv4Error),
}

/// Classifies a frame without FCS.
///
/// A virtual link or critical traffic is recognised by the destination alone, as switches do; a protocol control frame
/// by its type. VLAN and redundancy tags may come in this order, each once (IEEE Std 802.1CB-2017, 7.8, note); a second
/// tag of a kind is [`Content::Other`]. Damaged UDP is classified as IPv4.
///
/// # Errors
/// [`ClassifyError`] if a header is truncated or contradicts itself.
pub fn classify(frame: &[u8]) -> Result<Classified<'_>, ClassifyError> {
    let header = ethernet::Repr::parse(&ethernet::Frame::new_checked(frame)?)?;
    let (mut ethertype, mut rest) = (header.ethertype, &frame[ethernet::HEADER_LEN..]);
    let (mut vlan, mut redundancy) = (None, None);
    if ethertype == EtherType::VLAN {
        let tag = vlan::Repr::parse(&vlan::Tag::new_checked(rest)?)?;
        vlan = Some(Tag { priority: tag.priority, drop_eligible: tag.drop_eligible, id: tag.id });
        (ethertype, rest) = (tag.ethertype, &rest[vlan::TAG_LEN..]);
    }
    if ethertype == EtherType::REDUNDANCY {
        let tag = rtag::Repr::parse(&rtag::RTag::new_checked(rest)?)?;
        redundancy = Some(tag.sequence);
        (ethertype, rest) = (tag.ethertype, &rest[rtag::TAG_LEN..]);
    }
    let content = content(frame, header.destination, ethertype, rest)?;
    Ok(Classified { destination: header.destination, source: header.source, vlan, redundancy, content })
}

fn content<'a>(
    frame: &'a [u8],
    destination: MacAddress,
    ethertype: EtherType,
    payload: &'a [u8],
) -> Result<Content<'a>, ClassifyError> {
    if arinc664::VirtualLinkId::from_destination(destination).is_some() {
        return Ok(Content::VirtualLink(arinc664::Frame::new_checked(frame)?));
    }
    if ethertype == EtherType::PROTOCOL_CONTROL {
        return Ok(Content::ProtocolControl(tte::ControlFrame::new_checked(payload)?));
    }
    if let Some(id) = CriticalTrafficId::from_destination(destination) {
        return Ok(Content::CriticalTraffic { id, ethertype, payload });
    }
    match ethertype {
        EtherType::PTP => Ok(Content::Ptp(ptp::Message::new_checked(payload)?)),
        EtherType::IPV4 => in_ipv4(payload),
        _ => Ok(Content::Other { ethertype, payload }),
    }
}

fn in_ipv4(bytes: &[u8]) -> Result<Content<'_>, ClassifyError> {
    let packet = ipv4::Packet::new_checked(bytes)?;
    // A fragment: more fragments follow, or it is not the first (RFC 791, 3.1).
    let fragment = packet.fragment_field() & 0x3FFF != 0;
    if packet.protocol() == ipv4::PROTOCOL_UDP
        && !fragment
        && let Ok(datagram) = udp::Datagram::new_checked(&bytes[packet.header_len()..packet.total_len()])
        && matches!(datagram.destination_port(), ptp::EVENT_PORT | ptp::GENERAL_PORT)
    {
        let within = packet.header_len() + udp::HEADER_LEN..packet.header_len() + datagram.total_len();
        return Ok(Content::Ptp(ptp::Message::new_checked(&bytes[within])?));
    }
    Ok(Content::Ipv4(packet))
}
