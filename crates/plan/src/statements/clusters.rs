//! Clusters of devices that synchronise by SAE AS6802.

use wg_core::as6802::Integrity;
use wg_frame::time::Span;

use crate::diagnostic::{Findings, Place};
use crate::language::synchronise::{as6802 as own, faulty_master as faulty};
use crate::language::values::Failing;
use crate::reader::{Maybe, Reader, Sourced};
use crate::tree::Element;

#[derive(Clone, Debug)]
pub(crate) struct ClusterStatement {
    pub(crate) place: Place,
    pub(crate) masters: Vec<Sourced<String>>,
    pub(crate) compression_masters: Vec<Sourced<String>>,
    /// Outer `None`: every other device.
    pub(crate) clients: Option<Vec<Sourced<String>>>,
    pub(crate) integrity: Maybe<Integrity>,
    pub(crate) cycle: Maybe<Span>,
    pub(crate) cycles: Maybe<u32>,
    /// Outer `None`: what the bound comes to.
    pub(crate) precision: Option<Maybe<Span>>,
    /// Outer `None`: that of the clocks.
    pub(crate) max_drift: Option<Maybe<i64>>,
    /// Outer `None`: what the ways come to.
    pub(crate) max_delay: Option<Maybe<Span>>,
    pub(crate) faulty_masters: Maybe<u8>,
    pub(crate) domain: Maybe<u8>,
    pub(crate) priority: Maybe<u8>,
    /// Outer `None`: a majority.
    pub(crate) sync_threshold: Option<Maybe<u8>>,
    pub(crate) stable_cycles: Maybe<u32>,
    pub(crate) unstable_cycles: Maybe<u32>,
    pub(crate) powered_within: Maybe<Span>,
    pub(crate) faulty: Vec<FaultyMaster>,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultyMaster {
    pub(crate) place: Place,
    pub(crate) master: Maybe<String>,
    pub(crate) behaviour: Maybe<Failing>,
    pub(crate) by: Option<Maybe<Span>>,
}

pub(super) fn cluster(element: &Element, found: &mut Findings) -> ClusterStatement {
    let faulty: Vec<_> = element.all("faulty-master").map(|one| faulty_master(one, found)).collect();
    let mut reader = Reader::new(element, found);
    ClusterStatement {
        masters: reader.names(&own::MASTERS).unwrap_or_default(),
        compression_masters: reader.names(&own::COMPRESSION_MASTERS).unwrap_or_default(),
        clients: reader.has(&own::CLIENTS).then(|| reader.names(&own::CLIENTS).unwrap_or_default()),
        integrity: reader.read(&own::INTEGRITY),
        cycle: reader.read(&own::CYCLE),
        cycles: reader.read(&own::CYCLES),
        precision: reader.optional(&own::PRECISION),
        max_drift: reader.optional(&own::MAX_DRIFT),
        max_delay: reader.optional(&own::MAX_DELAY),
        faulty_masters: reader.read(&own::FAULTY_MASTERS),
        domain: reader.read(&own::DOMAIN),
        priority: reader.read(&own::PRIORITY),
        sync_threshold: reader.optional(&own::SYNC_THRESHOLD),
        stable_cycles: reader.read(&own::STABLE_CYCLES),
        unstable_cycles: reader.read(&own::UNSTABLE_CYCLES),
        powered_within: reader.read(&own::POWERED_WITHIN),
        place: reader.place,
        faulty,
    }
}

fn faulty_master(element: &Element, found: &mut Findings) -> FaultyMaster {
    let mut reader = Reader::new(element, found);
    let master = reader.read(&faulty::NAME);
    let behaviour = reader.read(&faulty::BEHAVIOUR);
    let by = reader.optional(&faulty::BY);
    match (&behaviour, &by) {
        (Some(behaviour), Some(_)) if behaviour.value == Failing::Silent => {
            let cure = "remove by";
            reader.found.error(&reader.place, "by has no effect on a silent master", "", cure);
        }
        (Some(behaviour), None) if behaviour.value != Failing::Silent => {
            let message = format!("{} says nothing without a time", behaviour.named());
            reader.found.error(&reader.place, message, "", "add by=\"10us\"");
        }
        _ => {}
    }
    FaultyMaster { place: reader.place, master, behaviour, by }
}
