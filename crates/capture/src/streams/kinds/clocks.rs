//! PTP and gPTP (IEEE Std 1588-2019, IEEE Std 802.1AS).

use wg_frame::ptp::{EVENT_PORT, GENERAL_PORT, Message, VERSION};

use crate::streams::kind::{As, Found, Kind, field, value};
use crate::streams::layers::Layers;
use crate::streams::numbering::Rule;

/// A stream is the messages of one type from one port; answers are numbered by the port that asked.
pub(super) const PTP: Kind = Kind {
    rule: Some(Rule::Bits(16)),
    fields: &[
        field("message", 0, As::Ptp),
        field("clock", 1, As::Hex),
        field("port", 2, As::Number),
        field("domain", 3, As::Number),
        field("sdo", 4, As::Number),
    ],
    values: &[
        value("correction_ns", As::ScaledNs),
        value("log_interval", As::Number),
        value("grandmaster", As::Hex),
    ],
    ..Kind::new("ptp", "PTP", find)
};

fn find(frame: &Layers<'_>, take: &mut dyn FnMut(Found<'_>)) {
    let is_ptp_port = |port: u16| matches!(port, EVENT_PORT | GENERAL_PORT);
    let bytes = match frame.ip {
        None if frame.kind == 0x88f7 => frame.payload,
        Some(ip) if ip.ports.is_some_and(|[_, to]| is_ptp_port(to)) => ip.udp.unwrap_or_default(),
        _ => return,
    };
    let Ok(message) = Message::new_checked(bytes) else { return };
    if message.version() != VERSION {
        return;
    }
    let source = message.source_port();
    let asked = message.requesting_port();
    take(Found {
        id: [
            message.type_field().into(),
            u64::from_be_bytes(source.clock),
            source.port.into(),
            message.domain().into(),
            message.major_sdo_id().into(),
            asked.map_or(0, |port| u64::from_be_bytes(port.clock) ^ u64::from(port.port)),
        ],
        number: Some(message.sequence_id().into()),
        values: [
            Some(message.correction()),
            Some(message.log_interval().into()),
            message.grandmaster().map(|master| i64::from_be_bytes(master.identity)),
        ],
        ..Found::default()
    });
}
