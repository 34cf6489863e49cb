//! ARINC 664 part 7 and TTEthernet (SAE AS6802).

use wg_frame::arinc664::VirtualLinkId;
use wg_frame::ethernet::MacAddress;
use wg_frame::tte::{ControlFrame, CriticalTrafficId};

use crate::streams::kind::{As, Found, Kind, field, value};
use crate::streams::layers::Layers;
use crate::streams::numbering::Rule;

const IPV4: u16 = 0x0800;

pub(super) const VIRTUAL_LINK: Kind = Kind {
    rule: Some(Rule::Arinc),
    fields: &[field("vl", 0, As::Number), field("source", 1, As::Mac)],
    ..Kind::new("arinc664", "VL", virtual_link)
};

fn virtual_link(frame: &Layers<'_>, take: &mut dyn FnMut(Found<'_>)) {
    let Some(VirtualLinkId(id)) = VirtualLinkId::from_destination(address(frame.to)) else { return };
    if frame.kind != IPV4 || frame.ip.is_none() {
        return;
    }
    // The interface id in the last octet of the source: 001 network A, 010 network B.
    let network = frame.from.to_be_bytes()[7] >> 5;
    take(Found {
        id: [id.into(), frame.from, 0, 0, 0, 0],
        network: if network <= 2 { network } else { 0 },
        number: frame.last.map(u64::from),
        group: Some([id.into(), 0]),
        ..Found::default()
    });
}

pub(super) const CONTROL_FRAME: Kind = Kind {
    fields: &[
        field("frame", 0, As::Control),
        field("source", 1, As::Mac),
        field("domain", 2, As::Number),
        field("priority", 3, As::Number),
    ],
    values: &[
        value("integration_cycle", As::Number),
        value("membership", As::Hex),
        value("transparent_clock_ns", As::ScaledNs),
    ],
    ..Kind::new("pcf", "PCF", |frame, take| {
        if frame.kind != 0x891d {
            return;
        }
        let Ok(control) = ControlFrame::new_checked(frame.payload) else { return };
        take(Found {
            id: [
                control.type_field().into(),
                frame.from,
                control.sync_domain().into(),
                control.sync_priority().into(),
                0,
                0,
            ],
            values: [
                Some(control.integration_cycle().into()),
                Some(control.membership().into()),
                i64::try_from(control.transparent_clock().0).ok(),
            ],
            ..Found::default()
        });
    })
};

pub(super) const CRITICAL: Kind = Kind {
    fields: &[field("ct", 0, As::Number), field("source", 1, As::Mac)],
    ..Kind::new("tt", "TTEthernet critical traffic", |frame, take| {
        if let Some(CriticalTrafficId(id)) = CriticalTrafficId::from_destination(address(frame.to)) {
            take(Found { id: [id.into(), frame.from, 0, 0, 0, 0], ..Found::default() });
        }
    })
};

fn address(bits: u64) -> MacAddress {
    let [_, _, octets @ ..] = bits.to_be_bytes();
    MacAddress(octets)
}
