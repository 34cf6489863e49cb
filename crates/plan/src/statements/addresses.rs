//! Addresses of a flow's frames: MAC, IPv4 and UDP port at either end.

use wg_frame::ethernet::MacAddress;

use crate::language::attribute::Attribute;
use crate::language::flows::flow as own;
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
        source_mac: reader.read(&own::SOURCE_MAC),
        destination_mac: reader.read(&own::DESTINATION_MAC),
        source_macs: macs(reader, &own::SOURCE_MACS, &own::SOURCE_MAC),
        destination_macs: macs(reader, &own::DESTINATION_MACS, &own::DESTINATION_MAC),
        source_ip: reader.read(&own::SOURCE_IP),
        destination_ip: reader.read(&own::DESTINATION_IP),
        source_port: reader.read(&own::SOURCE_PORT),
        destination_port: reader.read(&own::DESTINATION_PORT),
    }
}

/// How many addresses messages have in turn, from the first one.
fn macs(reader: &mut Reader<'_>, counted: &Attribute<u32>, from: &Attribute<MacAddress>) -> Maybe<u32> {
    let count = reader.read(counted)?;
    let Some(written) = reader.text(from) else {
        let cure = format!("add {}=\"02:00:00:10:00:00\"", from.name);
        let message = format!("{} counts on from {}, which is not written", counted.name, from.name);
        reader.found.error(&reader.place, message, "", cure);
        return None;
    };
    let first: MacAddress = written.parse().ok()?;
    let last = first.offset_by(u64::from(count.value) - 1);
    if last.0[..2] != first.0[..2] || last.bits() < first.bits() {
        let limit = "one prefix of two bytes";
        let cure = "begin at a lower address";
        reader.refuse(counted.name, &count.written, "runs beyond its prefix", limit, cure);
        return None;
    }
    Some(count)
}
