//! Clusters of devices that synchronise by SAE AS6802.

use wg_core::as6802::Integrity;
use wg_frame::time::Span;

use crate::diagnostic::{Findings, Place};
use crate::quantity::{self, Kind};
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

/// What a faulty master does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failing {
    Early,
    Late,
    Silent,
    Inconsistent,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultyMaster {
    pub(crate) place: Place,
    pub(crate) master: Maybe<String>,
    pub(crate) behaviour: Maybe<Failing>,
    pub(crate) by: Option<Maybe<Span>>,
}

const CYCLE: (Span, Span, &str) = (Span::from_micros(10), Span::from_millis(1_000), "10us to 1s");
const PRECISION: (Span, Span, &str) =
    (Span::from_picos(1), Span::from_millis(10), "more than 0s, at most 10ms");
const DELAY: (Span, Span, &str) =
    (Span::from_picos(1), Span::from_millis(100), "more than 0s, at most 100ms");
const POWERED: (Span, Span, &str) = (Span::ZERO, Span::from_millis(60_000), "0s to 1min");

pub(super) fn cluster(element: &Element, found: &mut Findings) -> ClusterStatement {
    let faulty: Vec<_> = element.all("faulty-master").map(|one| faulty_master(one, found)).collect();
    let mut reader = Reader::new(element, found);
    let integrities = [("standard", Integrity::Standard), ("high", Integrity::High)];
    let written =
        |attribute: &str, default: &'static str| element.get(attribute).unwrap_or(default).to_owned();
    let within = |attribute: &'static str, bounds, reader: &mut Reader<'_>| {
        element.get(attribute).map(|written| reader.time_within(attribute, written, bounds))
    };
    ClusterStatement {
        masters: reader.names("masters").unwrap_or_default(),
        compression_masters: reader.names("compression-masters").unwrap_or_default(),
        clients: element.get("clients").map(|_| reader.names("clients").unwrap_or_default()),
        integrity: reader.choice("integrity", &written("integrity", "standard"), &integrities),
        cycle: reader.time_within("cycle", &written("cycle", "1ms"), CYCLE),
        cycles: reader.whole("cycles", &written("cycles", "16"), 1, 1 << 20),
        precision: within("precision", PRECISION, &mut reader),
        max_drift: reader.optional("max-drift", Kind::Drift, quantity::drift),
        max_delay: within("max-delay", DELAY, &mut reader),
        faulty_masters: reader.whole("faulty-masters", &written("faulty-masters", "0"), 0, 2),
        domain: reader.whole("domain", &written("domain", "0"), 0, 255),
        priority: reader.whole("priority", &written("priority", "0"), 0, 255),
        sync_threshold: reader.optional_whole("sync-threshold", 1, 32),
        stable_cycles: reader.whole("stable-cycles", &written("stable-cycles", "3"), 1, 1_000),
        unstable_cycles: reader.whole("unstable-cycles", &written("unstable-cycles", "1"), 0, 1_000),
        powered_within: reader.time_within("powered-within", &written("powered-within", "0s"), POWERED),
        place: reader.place,
        faulty,
    }
}

fn faulty_master(element: &Element, found: &mut Findings) -> FaultyMaster {
    let mut reader = Reader::new(element, found);
    let choices = [
        ("early", Failing::Early),
        ("late", Failing::Late),
        ("silent", Failing::Silent),
        ("inconsistent", Failing::Inconsistent),
    ];
    let master = reader.name("name");
    let behaviour =
        reader.required("behaviour").and_then(|written| reader.choice("behaviour", written, &choices));
    let by = element.get("by").map(|written| reader.time_within("by", written, PRECISION));
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
