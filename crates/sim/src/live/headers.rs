//! Headers of a host's frame, decoded for the network.

use wg_frame::classify::{Content, classify};
use wg_frame::ethernet::{FCS_LEN, MacAddress};
use wg_frame::ipv4;
use wg_frame::layout::Tag;
use wg_frame::probe::{self, Probe};
use wg_frame::udp;
use wg_plan::wire::DISCARD_PORT;

/// Bytes of the frame check sequence, which frames from the kernel lack.
#[expect(clippy::cast_possible_truncation, reason = "4")]
const FCS: u16 = FCS_LEN as u16;

/// Headers of a host's frame, decoded for the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Destination address.
    pub destination: MacAddress,
    /// Source address.
    pub source: MacAddress,
    /// Length with FCS, bytes; below the least frame length if the frame is padded on the line.
    pub length: u16,
    /// VLAN tag.
    pub tag: Option<Tag>,
    /// The message in it; `None` for background load and foreign frames.
    pub probe: Option<Probe>,
    /// Label by which the outcome of a frame without a message is counted: the number of a background load in the plan, from 1;
    /// above those, a label chosen by the caller; 0: not counted.
    pub label: u32,
    /// Last byte: the sequence number of a virtual link's frame, or its sub-virtual-link before it has a number.
    pub last: u8,
}

impl Headers {
    /// The number stored beside the bytes of a frame: the sequence number of its message, or its label.
    pub fn sequence(&self) -> u32 {
        self.probe.map_or(self.label, |probe| probe.sequence)
    }

    /// Decodes a frame without FCS; `None` if it is shorter than an Ethernet header.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let classified = classify(bytes).ok();
        let (destination, source, tag) = match &classified {
            Some(frame) => (frame.destination, frame.source, frame.vlan),
            None => {
                let address = |at: usize| bytes.get(at..at + 6)?.first_chunk().copied().map(MacAddress);
                (address(0)?, address(6)?, None)
            }
        };
        let found = classified.and_then(|frame| match frame.content {
            Content::VirtualLink(frame) => in_datagram(&ipv4::Packet::new_checked(frame.packet()).ok()?),
            Content::Ipv4(packet) => in_datagram(&packet),
            Content::CriticalTraffic { payload, .. } | Content::Other { payload, .. } => {
                Some((probe::peek(payload)?, false))
            }
            Content::ProtocolControl(_) | Content::Ptp(_) => None,
        });
        // Frames of background load carry the number of an injector in the place of a flow.
        let load = found.filter(|(_, is_load)| *is_load).map(|(probe, _)| probe.flow);
        Some(Self {
            destination,
            source,
            length: u16::try_from(bytes.len()).unwrap_or(u16::MAX).saturating_add(FCS),
            tag,
            probe: found.filter(|(_, is_load)| !is_load).map(|(probe, _)| probe),
            label: load.map_or(0, u32::from),
            last: bytes.last().copied().unwrap_or(0),
        })
    }
}

/// The message in the UDP datagram of a packet, and whether it is background load.
fn in_datagram(packet: &ipv4::Packet<&[u8]>) -> Option<(Probe, bool)> {
    if packet.protocol() != ipv4::PROTOCOL_UDP {
        return None;
    }
    let datagram = udp::Datagram::new_checked(packet.payload()).ok()?;
    Some((probe::peek(datagram.payload())?, datagram.destination_port() == DISCARD_PORT))
}
