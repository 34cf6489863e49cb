//! IP stream identification (IEEE Std 802.1CB-2017, 6.7): what frames above Ethernet are known by.

use wg_frame::ethernet::MacAddress;

use crate::campaign::{Flow, Protocol};
use crate::network::{Network, NodeIndex};
use crate::stream_filter::HeaderField;
use crate::wire::PROBE_PORT;

/// What is compared of a frame with a UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IpHeaders {
    /// Destination MAC address.
    pub destination_mac: MacAddress,
    /// VLAN; 0 without a tag, and of frames that are priority-tagged.
    pub vlan: u16,
    /// Source IPv4 address.
    pub source_ip: [u8; 4],
    /// Destination IPv4 address.
    pub destination_ip: [u8; 4],
    /// Differentiated services code point.
    pub dscp: u8,
    /// Source UDP port.
    pub source_port: u16,
    /// Destination UDP port.
    pub destination_port: u16,
}

impl IpHeaders {
    /// Of a datagram from one end system to another that no flow has, to a port.
    pub fn between(network: &Network, from: NodeIndex, to: NodeIndex, port: u16) -> Option<Self> {
        let (from, to) = (network.nodes.get(usize::from(from))?, network.nodes.get(usize::from(to))?);
        Some(Self {
            destination_mac: to.mac,
            vlan: 0,
            source_ip: from.ipv4,
            destination_ip: to.ipv4,
            dscp: 0,
            source_port: PROBE_PORT,
            destination_port: port,
        })
    }

    /// Of the frames of a flow; `None` where they carry no datagram, or are critical traffic.
    pub fn of(network: &Network, flow: &Flow) -> Option<Self> {
        if !matches!(flow.protocol, Protocol::Udp | Protocol::Be) {
            return None;
        }
        let plain = Self::between(network, flow.from, flow.to, PROBE_PORT)?;
        let (mac, ip) = match (&flow.also_to[..], flow.addresses.mac.destination) {
            ([], own) => (own.unwrap_or(plain.destination_mac), plain.destination_ip),
            _ => flow.group(),
        };
        let own = flow.addresses;
        Some(Self {
            destination_mac: mac,
            vlan: flow.vlan.map_or(0, |tag| tag.id),
            source_ip: own.ipv4.source.unwrap_or(plain.source_ip),
            destination_ip: own.ipv4.destination.unwrap_or(ip),
            dscp: flow.dscp,
            source_port: own.port.source.unwrap_or(PROBE_PORT),
            destination_port: own.port.destination.unwrap_or(PROBE_PORT),
        })
    }

    /// Of what relay `on` sends to another end system when it received a frame with these.
    #[must_use]
    pub fn relayed(self, network: &Network, on: NodeIndex, to: NodeIndex) -> Option<Self> {
        let plain = Self::between(network, on, to, PROBE_PORT)?;
        Some(Self { vlan: self.vlan, dscp: self.dscp, ..plain })
    }

    /// Whether both have the same in all of these fields; no field at all compares all of them.
    pub fn is_alike(&self, other: &Self, fields: &[HeaderField]) -> bool {
        let compared = |field: HeaderField| fields.is_empty() || fields.contains(&field);
        HeaderField::ALL.iter().all(|(_, field)| !compared(*field) || self.same(other, *field))
    }

    fn same(&self, other: &Self, field: HeaderField) -> bool {
        match field {
            HeaderField::DestinationMac => self.destination_mac == other.destination_mac,
            HeaderField::Vlan => self.vlan == other.vlan,
            HeaderField::SourceIp => self.source_ip == other.source_ip,
            HeaderField::DestinationIp => self.destination_ip == other.destination_ip,
            HeaderField::Dscp => self.dscp == other.dscp,
            HeaderField::SourcePort => self.source_port == other.source_port,
            HeaderField::DestinationPort => self.destination_port == other.destination_port,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers() -> IpHeaders {
        IpHeaders {
            destination_mac: MacAddress([2, 0, 0, 0, 0, 1]),
            vlan: 2,
            source_ip: [198, 18, 0, 1],
            destination_ip: [198, 18, 0, 2],
            dscp: 46,
            source_port: 61_188,
            destination_port: 7_000,
        }
    }

    /// Headers that differ from [`headers`] in one field each, in the order of [`HeaderField::ALL`].
    fn others() -> [IpHeaders; 7] {
        let own = headers();
        [
            IpHeaders { destination_mac: MacAddress([2, 0, 0, 0, 0, 9]), ..own },
            IpHeaders { vlan: 9, ..own },
            IpHeaders { source_ip: [198, 18, 0, 9], ..own },
            IpHeaders { destination_ip: [198, 18, 0, 9], ..own },
            IpHeaders { dscp: 9, ..own },
            IpHeaders { source_port: 9, ..own },
            IpHeaders { destination_port: 9, ..own },
        ]
    }

    #[test]
    fn a_field_is_compared_if_it_is_named_and_all_if_none_is() {
        for named in 0..1_u32 << 7 {
            let fields = HeaderField::ALL.iter().enumerate().filter(|(at, _)| named >> at & 1 == 1);
            let fields: Vec<HeaderField> = fields.map(|(_, (_, field))| *field).collect();
            assert!(headers().is_alike(&headers(), &fields));
            for (at, other) in others().iter().enumerate() {
                let differs = named == 0 || named >> at & 1 == 1;
                assert_eq!(headers().is_alike(other, &fields), !differs, "{fields:?} {at}");
            }
        }
    }
}
