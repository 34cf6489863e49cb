//! What the bytes of a host's frame say to the network.

use wg_frame::classify::{Content, classify};
use wg_frame::ethernet::{FCS_LEN, MacAddress};
use wg_frame::ipv4;
use wg_frame::layout::Tag;
use wg_frame::probe::{self, Probe};
use wg_frame::udp;
use wg_plan::wire::DISCARD_PORT;

/// Bytes of the frame check sequence, which the kernel leaves out.
#[expect(clippy::cast_possible_truncation, reason = "4")]
const FCS: u16 = FCS_LEN as u16;

/// What the bytes of a host's frame say to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Where it goes.
    pub destination: MacAddress,
    /// Where it comes from.
    pub source: MacAddress,
    /// Bytes, FCS included; less than the least a frame has, where it is padded on the line.
    pub length: u16,
    /// Its VLAN tag.
    pub tag: Option<Tag>,
    /// The message in it; `None`: background load, or a frame of somebody else.
    pub probe: Option<Probe>,
    /// By what its fate is counted, where no message is in it: a background load by its number in the plan, from 1;
    /// what is more than the plan has loads whoever hands it on has chosen; 0: nothing counts it.
    pub label: u32,
    /// Its last byte, in which the frame of a virtual link has its number, and before it has one, its sub-virtual-link.
    pub last: u8,
}

impl Headers {
    /// What is kept of a frame beside its bytes: the number of its message, or its label.
    pub fn sequence(&self) -> u32 {
        self.probe.map_or(self.label, |probe| probe.sequence)
    }

    /// Reads a frame without FCS. `None`: it has no Ethernet header.
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
        // Background load numbers its frames by injectors, which are no flows.
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
