//! Addresses of a flow's frames: MAC, IPv4 and UDP port at either end.

use std::net::{Ipv4Addr, Ipv6Addr};

use wg_frame::ethernet::MacAddress;

use crate::reader::{Maybe, Reader};

/// What was written; outer `None` of a value: nothing, or something that was refused.
#[derive(Clone, Debug, Default)]
pub(crate) struct WrittenAddresses {
    pub(crate) source_mac: Maybe<MacAddress>,
    pub(crate) destination_mac: Maybe<MacAddress>,
    /// Addresses that messages have in turn.
    pub(crate) source_macs: Maybe<u32>,
    pub(crate) destination_macs: Maybe<u32>,
    pub(crate) source_ip: Maybe<[u8; 4]>,
    pub(crate) destination_ip: Maybe<[u8; 4]>,
    pub(crate) source_port: Maybe<u16>,
    pub(crate) destination_port: Maybe<u16>,
}

pub(super) fn addresses(reader: &mut Reader<'_>) -> WrittenAddresses {
    WrittenAddresses {
        source_mac: mac(reader, "source-mac"),
        destination_mac: mac(reader, "destination-mac"),
        source_macs: macs(reader, "source-macs", "source-mac"),
        destination_macs: macs(reader, "destination-macs", "destination-mac"),
        source_ip: ip(reader, "source-ip"),
        destination_ip: ip(reader, "destination-ip"),
        source_port: reader.optional_whole("source-port", 1, 65_535).flatten(),
        destination_port: reader.optional_whole("destination-port", 1, 65_535).flatten(),
    }
}

/// Addresses of a range, at most: as many as a table of addresses has entries.
const MOST_IN_TURN: u64 = 1 << 20;

fn macs(reader: &mut Reader<'_>, attribute: &'static str, first: &'static str) -> Maybe<u32> {
    let count = reader.optional_whole(attribute, 1, MOST_IN_TURN).flatten()?;
    let Some(written) = reader.element.get(first) else {
        let cure = format!("add {first}=\"02:00:00:10:00:00\"");
        let message = format!("{attribute} counts on from {first}, which is not written");
        reader.found.error(&reader.place, message, "", cure);
        return None;
    };
    let first: MacAddress = written.parse().ok()?;
    let last = first.offset_by(u64::from(count.value) - 1);
    if last.0[..2] != first.0[..2] || last.bits() < first.bits() {
        let limit = "one prefix of two bytes";
        reader.refuse(attribute, &count.written, "runs beyond its prefix", limit, "begin at a lower address");
        return None;
    }
    Some(count)
}

fn mac(reader: &mut Reader<'_>, attribute: &'static str) -> Maybe<MacAddress> {
    let written = reader.element.get(attribute)?;
    let limit = "an address of one station";
    let Ok(mac) = written.parse::<MacAddress>() else {
        let cure = "write six bytes in hex, for example 02:00:00:00:00:07";
        reader.refuse(attribute, written, "is no MAC address", limit, cure);
        return None;
    };
    if mac.is_group() && !(attribute == "destination-mac" && mac == MacAddress::BROADCAST) {
        let cure = match attribute {
            "source-mac" => "clear the lowest bit of its first byte; nobody can send as a group",
            _ => "clear the lowest bit of its first byte, or name several receivers in to=\"…\"",
        };
        reader.refuse(attribute, written, "is the address of a group", limit, cure);
        return None;
    }
    if mac == MacAddress::default() {
        reader.refuse(attribute, written, "is nobody's address", limit, "write another one");
        return None;
    }
    Some(reader.sourced(attribute, written, mac))
}

fn ip(reader: &mut Reader<'_>, attribute: &'static str) -> Maybe<[u8; 4]> {
    let written = reader.element.get(attribute)?;
    let limit = "an IPv4 address of one host";
    let Ok(address) = written.parse::<Ipv4Addr>() else {
        let (what, cure) = match written.parse::<Ipv6Addr>() {
            Ok(_) => ("is an IPv6 address", "write an IPv4 address; messages travel over IPv4"),
            Err(_) => ("is no IPv4 address", "write four numbers, for example 10.1.2.3"),
        };
        reader.refuse(attribute, written, what, limit, cure);
        return None;
    };
    let what = match address {
        _ if address.is_multicast() => "is the address of a group",
        _ if address.is_broadcast() => "is the address of everybody",
        _ if address.is_loopback() => "never leaves a host",
        _ if address.octets()[0] == 0 => "is nobody's address",
        _ => return Some(reader.sourced(attribute, written, address.octets())),
    };
    reader.refuse(attribute, written, what, limit, "write another one");
    None
}
