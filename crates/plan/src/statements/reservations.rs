//! `<stream-reservation>`: what a talker asks the network for (IEEE Std 802.1Q-2022, clause 35).

use super::parts::only;
use crate::diagnostic::{Findings, Place};
use crate::quantity::{self, Kind};
use crate::reader::{Maybe, Reader};
use crate::stream_class::{StreamClass, USUAL_PPM};
use crate::tree::Element;
use crate::wire::MTU;

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

const CLASSES: [(&str, StreamClass); 2] = [("A", StreamClass::A), ("B", StreamClass::B)];
const SIZES: (u64, u64, &str) = (1, MTU as u64, "1B to 1500B");

/// The reservation of a flow, where it has one.
pub(super) fn reservation(element: &Element, found: &mut Findings) -> Option<ReservationStatement> {
    let mut reader = Reader::new(only(element, "stream-reservation", found)?, found);
    let class = reader.required("class").and_then(|written| reader.choice("class", written, &CLASSES));
    let size = match reader.element.get("max-frame-size") {
        None => None,
        Some(written) => Some(reader.size_within("max-frame-size", written, SIZES)?.value),
    };
    let frames = reader.optional_whole::<u32>("interval-frames", 1, 65_535);
    Some(ReservationStatement {
        class: class?.value,
        max_frame_size: size.and_then(|size| u32::try_from(size).ok()),
        interval_frames: frames.map_or(Some(1), |frames| Some(frames?.value))?,
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
    let vlan = vlan.unwrap_or_else(|| reader.sourced("vlan", &default, StreamClass::VLAN));
    (Some(vlan), Some(reader.sourced("priority", &own.to_string(), own)))
}

/// Share of a port that reserved streams may have together, ppm.
pub(super) fn reservable(flows: &Element, found: &mut Findings) -> u32 {
    let mut reader = Reader::new(flows, found);
    let Some(written) = flows.get("reservable") else { return USUAL_PPM };
    let Some(share) = reader.quantity("reservable", written, Kind::Ratio, quantity::ppm) else {
        return USUAL_PPM;
    };
    if !(1..=1_000_000).contains(&share.value) {
        let cure = "write a share of each port, for example 75%";
        reader.refuse(
            "reservable",
            &share.written,
            "is no share of a port",
            "more than 0%, at most 100%",
            cure,
        );
    }
    share.value
}
