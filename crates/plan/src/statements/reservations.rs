//! `<stream-reservation>`: what a talker asks the network for (IEEE Std 802.1Q-2022, clause 35).

use super::parts::only;
use crate::diagnostic::{Findings, Place};
use crate::language::flows::{flow, flows as section, stream_reservation as own};
use crate::reader::{Maybe, Reader};
use crate::stream_class::{StreamClass, USUAL_PPM};
use crate::tree::Element;

/// The reservation of a flow.
#[derive(Clone, Debug)]
pub(crate) struct ReservationStatement {
    pub(crate) place: Place,
    pub(crate) class: StreamClass,
    /// `MaxFrameSize`; `None`: that of its sender.
    pub(crate) max_frame_size: Option<u32>,
    /// `MaxIntervalFrames`.
    pub(crate) interval_frames: u32,
}

/// The reservation of a flow, where it has one.
pub(super) fn reservation(element: &Element, found: &mut Findings) -> Option<ReservationStatement> {
    let mut reader = Reader::new(only(element, "stream-reservation", found)?, found);
    let class = reader.read(&own::CLASS);
    let size = match reader.optional(&own::MAX_FRAME_SIZE) {
        None => None,
        Some(size) => Some(size?.value),
    };
    let interval_frames = reader.value(&own::INTERVAL_FRAMES);
    Some(ReservationStatement {
        class: class?.value,
        max_frame_size: size.and_then(|size| u32::try_from(size).ok()),
        interval_frames: interval_frames?,
        place: reader.place,
    })
}

/// VLAN and priority of a flow: those of its class, where it has a reservation.
pub(super) fn tag(
    reader: &mut Reader<'_>,
    reservation: Option<&ReservationStatement>,
    (vlan, priority): (Maybe<u16>, Maybe<u8>),
) -> (Maybe<u16>, Maybe<u8>) {
    let Some(reservation) = reservation else { return (vlan, priority) };
    let own = reservation.class.priority();
    if let Some(priority) = priority.filter(|priority| priority.value != own) {
        let message = format!("{} is not that of its reservation", priority.named());
        let limit = format!("priority {own}, of class {}", reservation.class.name());
        reader.found.error(&priority.place, message, limit, "remove priority: the class says it");
    }
    let default = StreamClass::VLAN.to_string();
    let vlan = vlan.unwrap_or_else(|| reader.sourced(flow::VLAN.name, &default, StreamClass::VLAN));
    (Some(vlan), Some(reader.sourced(flow::PRIORITY.name, &own.to_string(), own)))
}

/// Share of a port that reserved streams may have together, ppm.
pub(super) fn reservable(flows: &Element, found: &mut Findings) -> u32 {
    Reader::new(flows, found).value(&section::RESERVABLE).unwrap_or(USUAL_PPM)
}
