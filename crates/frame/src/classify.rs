//! What a frame carries, told from its bytes: one pass over addresses, tags and types, nothing copied.

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
    /// Where it goes.
    pub destination: MacAddress,
    /// Where it comes from.
    pub source: MacAddress,
    /// Its VLAN tag.
    pub vlan: Option<Tag>,
    /// Sequence number of its redundancy tag.
    pub redundancy: Option<u16>,
    /// What it carries.
    pub content: Content<'a>,
}

/// What a frame carries. Views lie over its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A frame of a virtual link.
    VirtualLink(arinc664::Frame<&'a [u8]>),
    /// A protocol control frame of TTEthernet.
    ProtocolControl(tte::ControlFrame<&'a [u8]>),
    /// Critical traffic of TTEthernet: what follows the last type, padding included.
    CriticalTraffic {
        /// The flow.
        id: CriticalTrafficId,
        /// The type of what it carries.
        ethertype: EtherType,
        /// What that is, padding included.
        payload: &'a [u8],
    },
    /// A message of the Precision Time Protocol, by Ethernet or by UDP.
    Ptp(ptp::Message<&'a [u8]>),
    /// Another IPv4 packet.
    Ipv4(ipv4::Packet<&'a [u8]>),
    /// Anything else: what follows the last type, padding included.
    Other {
        /// The type.
        ethertype: EtherType,
        /// What that is, padding included.
        payload: &'a [u8],
    },
}

/// Why a frame goes no further, by layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassifyError {
    /// In the Ethernet header.
    #[error(transparent)]
    Ethernet(#[from] EthernetError),
    /// In the VLAN tag.
    #[error(transparent)]
    Vlan(#[from] VlanError),
    /// In the redundancy tag.
    #[error(transparent)]
    Redundancy(#[from] RTagError),
    /// In a frame of a virtual link.
    #[error(transparent)]
    VirtualLink(#[from] VirtualLinkError),
    /// In a protocol control frame.
    #[error(transparent)]
    ProtocolControl(#[from] ControlError),
    /// In a PTP message.
    #[error(transparent)]
    Ptp(#[from] PtpError),
    /// In the IPv4 header.
    #[error(transparent)]
    Ipv4(#[from] Ipv4Error),
}

/// Says what a frame without FCS carries.
///
/// A virtual link or critical traffic is known by the destination alone, as switches know it; a protocol control frame by its
/// type. VLAN and redundancy tags may come in this order, each once (IEEE Std 802.1CB-2017, 7.8, note); a second one of a
/// kind ends the way as [`Content::Other`]. UDP that is damaged is just IPv4.
///
/// # Errors
/// [`ClassifyError`] where a header is cut short or contradicts itself.
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
    // More fragments, or not the first (RFC 791, 3.1).
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
