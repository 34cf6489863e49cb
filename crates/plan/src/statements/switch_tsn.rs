//! `<switch-tsn>`: traffic classes, shapers and gates of the output ports of a switch, and filters of streams that enter.
//!
//! What concerns the settings alone is checked here; what concerns links and flows, where those are known (`port_tsn::check`).

use wg_frame::time::Span;

use super::host_tsn::{
    check_preemption, check_priorities, class_of, classes, gate_entries, numbers, preemptable, preemption_of,
    several, whole_time,
};
use super::parts::{BASE, SMALLEST_TO_LARGEST};
use crate::diagnostic::{Findings, Place};
use crate::places::MOST_PORTS;
use crate::quantity::{self, Kind};
use crate::reader::Reader;
use crate::switch_tsn::{
    AsynchronousShaper, CyclicQueuing, FlowScheduler, LinkPriority, MOST_PORT_ENTRIES, PortClass,
    PortSchedule, PortTsn,
};
use crate::tree::Element;

/// The settings, and where each part of them is written.
#[derive(Clone, Debug)]
pub(crate) struct SwitchTsnStatement {
    pub(crate) place: Place,
    pub(crate) tsn: PortTsn,
    pub(crate) classes: Vec<Place>,
    pub(crate) filters: Vec<Place>,
    pub(crate) schedules: Vec<Place>,
    /// Nothing of it was refused, so what is wrong with the flows is no consequence of it.
    pub(crate) whole: bool,
}

/// A port has eight queues (IEEE Std 802.1Q-2022, 8.6.6).
const MOST_CLASSES: usize = 8;
/// Lists that take over one another.
const MOST_SCHEDULES: usize = 64;
const BAND: (Span, Span, &str) = (Span::from_nanos(1), Span::from_millis(1_000), "1ns to 1s");
const RESIDENCE: (Span, Span, &str) = (Span::ZERO, Span::from_millis(10_000), "0s to 10s");
const CYCLE: (Span, Span, &str) = (Span::from_nanos(1_000), Span::from_millis(1_000), "1us to 1s");
const BURST: (u64, u64, &str) = (84, 1 << 24, "84B to 16MiB");
const EXTENSION: (Span, Span, &str) = (Span::ZERO, Span::from_millis(1_000), "0s to 1s");

/// Reads the settings of a switch's ports.
pub(super) fn switch_tsn(element: &Element, found: &mut Findings) -> SwitchTsnStatement {
    let clean = found.count();
    let mut reader = Reader::new(element, found);
    let ports = ports(&mut reader);
    let written = element.get("guard-band");
    let guard_band = written.and_then(|written| whole_time(&mut reader, "guard-band", written, BAND));
    let preemption = preemption_of(&mut reader);
    let place = reader.place;
    let (classes, places) = classes(element, MOST_CLASSES, class, found);
    let (filters, filter_places) = super::stream_filters::stream_filters(element, found);
    // A class that could not be read is one all the same.
    let written_classes = element.all("traffic-class").count();
    let has_classes = written_classes > 0;
    let is_of_ports = guard_band.is_some()
        || preemption.is_stated()
        || ["gate-schedule", "cyclic-queuing"].iter().any(|tag| element.all(tag).next().is_some());
    if !has_classes && (is_of_ports || element.all("ingress").next().is_none()) {
        let cure = "add <traffic-class> elements, or remove it";
        found.error(&place, "it has no traffic class", "at least 1", cure);
    }
    let (schedules, schedule_places) =
        several(element, "gate-schedule", |child, found| schedule(child, written_classes, found), found);
    let cyclic = super::parts::only(element, "cyclic-queuing", found);
    let cyclic = cyclic.and_then(|cyclic| cyclic_queuing(cyclic, written_classes, found));
    let tsn = PortTsn {
        ports,
        classes,
        guard_band,
        shortest_fragment: preemption.shortest_fragment,
        hold_advance: preemption.hold_advance,
        release_advance: preemption.release_advance,
        cyclic,
        schedules,
        filters,
    };
    if found.count() == clean && has_classes {
        check_priorities(&tsn.classes, |class| &class.priorities, &places, &place, found);
        let lists = tsn.schedules.iter().zip(&schedule_places);
        let lists = lists.map(|(schedule, place)| (&schedule.entries[..], place)).collect();
        check_preemption(tsn.classes.iter().map(|class| class.preemptable), preemption, lists, &place, found);
        check_schedules(&tsn, &schedule_places, &place, found);
        check_virtual_links(&tsn, &places, found);
    }
    let whole = found.count() == clean;
    SwitchTsnStatement {
        place,
        tsn,
        classes: places,
        filters: filter_places,
        schedules: schedule_places,
        whole,
    }
}

fn ports(reader: &mut Reader<'_>) -> Vec<u16> {
    let mut ports = Vec::new();
    for word in reader.element.get("ports").unwrap_or("").split_whitespace().take(usize::from(MOST_PORTS) + 1)
    {
        let port = reader.whole::<u16>("ports", word, 1, u64::from(MOST_PORTS));
        ports.extend(port.map(|port| port.value));
    }
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// What only hosts have; what it is by itself may be said.
fn refuse_of_host(reader: &mut Reader<'_>, attributes: &[&'static str]) {
    for attribute in attributes {
        if reader.element.get(attribute).is_some_and(|value| !matches!(value, "1" | "off" | "1542B")) {
            let message = format!("{attribute} has no effect at a switch");
            reader.found.error(&reader.place, message, "<host-tsn>", format!("remove {attribute}"));
        }
    }
}

fn class(element: &Element, found: &mut Findings) -> Option<(u8, PortClass)> {
    if let Some(etf) = element.all("etf").next() {
        let cure = "remove it; a switch has gates and <cbs>";
        found.error(&etf.place(), "launch times are of hosts", "<host-tsn>", cure);
    }
    let shaper = super::parts::only(element, "cbs", found);
    let idle_slope_bps = match shaper {
        None => None,
        Some(shaper) => {
            let mut reader = Reader::new(shaper, found);
            refuse_of_host(&mut reader, &["offload", "max-frame", "max-interference"]);
            let slope = reader
                .required("idle-slope")
                .and_then(|written| reader.quantity("idle-slope", written, Kind::Rate, quantity::rate))?;
            if slope.value == 0 {
                let cure = "write what the class is to have, for example 20Mbit/s";
                reader.refuse("idle-slope", &slope.written, "lets nothing through", "more than 0", cure);
                return None;
            }
            Some(slope.value)
        }
    };
    let mut reader = Reader::new(element, found);
    refuse_of_host(&mut reader, &["queues"]);
    let longest_frame = match element.get("longest-frame") {
        None => None,
        Some(written) => Some(reader.size_within("longest-frame", written, SMALLEST_TO_LARGEST)?.value),
    };
    let longest_frame = longest_frame.and_then(|bytes| u16::try_from(bytes).ok());
    let preemptable = preemptable(&mut reader);
    let virtual_links = virtual_links(&mut reader)?;
    let ats = super::parts::only(element, "ats", reader.found);
    if let (Some(ats), Some(_)) = (ats, idle_slope_bps) {
        let message = "the class has two shapers";
        reader.found.error(&ats.place(), message, "1 of <cbs> and <ats>", "keep one of them");
    }
    let asynchronous = match ats {
        None => None,
        Some(ats) => Some(asynchronous(ats, reader.found)?),
    };
    let (number, priorities) = class_of(&mut reader, MOST_CLASSES)?;
    let class =
        PortClass { priorities, virtual_links, idle_slope_bps, longest_frame, preemptable, asynchronous };
    Some((number, class))
}

/// Priorities of virtual links whose frames wait in a class.
const LINK_PRIORITIES: [(&str, LinkPriority); 2] = [("low", LinkPriority::Low), ("high", LinkPriority::High)];

fn virtual_links(reader: &mut Reader<'_>) -> Option<Vec<LinkPriority>> {
    let mut all = Vec::new();
    for word in reader.element.get("virtual-links").unwrap_or("").split_whitespace().take(8) {
        all.push(reader.choice("virtual-links", word, &LINK_PRIORITIES)?.value);
    }
    all.sort_unstable();
    all.dedup();
    Some(all)
}

/// Virtual links of either priority wait in one place, and those of the higher one behind none of the lower.
fn check_virtual_links(tsn: &PortTsn, places: &[Place], found: &mut Findings) {
    for priority in [LinkPriority::Low, LinkPriority::High] {
        let mut of =
            tsn.classes.iter().zip(places).filter(|(class, _)| class.virtual_links.contains(&priority));
        if let (Some(_), Some((_, second))) = (of.next(), of.next()) {
            let message = "two classes take the same virtual links";
            found.error(second, message, "1 class for each priority", "keep one of them");
            return;
        }
    }
    let [low, high] = [LinkPriority::Low, LinkPriority::High].map(|priority| tsn.class_of_link(priority));
    if let Some(class) = high
        && low.is_none_or(|low| low > class)
        && let Some(place) = places.get(class)
    {
        let message = format!(
            "virtual links of low priority would go before those of high priority, which wait in class {class}"
        );
        let cure = "write virtual-links=\"low high\", or low at a class with a smaller number";
        found.error(place, message, "low in no class above that of high", cure);
    }
}

fn asynchronous(element: &Element, found: &mut Findings) -> Option<AsynchronousShaper> {
    let (schedulers, places) = several(element, "scheduler", scheduler, found);
    let mut reader = Reader::new(element, found);
    let written = element.get("longest-residence").unwrap_or("1s");
    let residence = reader.time_within("longest-residence", written, RESIDENCE);
    if element.all("scheduler").next().is_none() {
        let cure = "add <scheduler> elements, or remove the shaper";
        reader.found.error(&reader.place, "it has no scheduler", "at least 1", cure);
    }
    for (number, (one, place)) in schedulers.iter().zip(&places).enumerate() {
        let one: &FlowScheduler = one;
        if schedulers[..number].iter().any(|other| other.flow == one.flow) {
            let message = format!("flow {} has a scheduler already", one.flow);
            found.error(place, message, "1 for each flow", "keep one of them");
        }
    }
    Some(AsynchronousShaper { longest_residence: residence?.value, schedulers })
}

fn scheduler(element: &Element, found: &mut Findings) -> Option<FlowScheduler> {
    let mut reader = Reader::new(element, found);
    let flow = reader.flow_id("flow");
    let rate = reader
        .required("rate")
        .and_then(|written| reader.quantity("rate", written, Kind::Rate, quantity::rate));
    let burst = reader.required("burst").and_then(|written| reader.size_within("burst", written, BURST));
    let rate = rate?;
    if !(1_000..=400_000_000_000).contains(&rate.value) {
        let cure = "write what the flow may send, for example 10Mbit/s";
        reader.refuse("rate", &rate.written, "is out of range", "1kbit/s to 400Gbit/s", cure);
        return None;
    }
    let burst = u32::try_from(burst?.value).ok()?;
    Some(FlowScheduler { flow: flow?.value, rate_bps: rate.value, burst })
}

fn cyclic_queuing(element: &Element, classes: usize, found: &mut Findings) -> Option<CyclicQueuing> {
    let mut reader = Reader::new(element, found);
    let written = reader.required("classes");
    let named = written.and_then(|written| {
        let named = numbers(&mut reader, "classes", written, classes.max(1) as u64)?;
        let [first, second] = named[..] else {
            let limit = "2 classes";
            reader.refuse("classes", written, "are not two", limit, "name two classes, for example \"1 2\"");
            return None;
        };
        Some([first, second])
    });
    let cycle = reader.required("cycle").and_then(|written| whole_time(&mut reader, "cycle", written, CYCLE));
    let base = whole_time(&mut reader, "base-time", element.get("base-time").unwrap_or("0s"), BASE);
    Some(CyclicQueuing { classes: named?, cycle: cycle?, base_time: base? })
}

fn schedule(element: &Element, classes: usize, found: &mut Findings) -> Option<PortSchedule> {
    let (entries, _) = gate_entries(element, classes, MOST_PORT_ENTRIES, found);
    let mut reader = Reader::new(element, found);
    let base = whole_time(&mut reader, "base-time", element.get("base-time").unwrap_or("0s"), BASE);
    let written = element.get("cycle-extension").unwrap_or("0s");
    let extension = whole_time(&mut reader, "cycle-extension", written, EXTENSION);
    Some(PortSchedule { base_time: base?, cycle_extension: extension?, entries: entries? })
}

fn check_schedules(tsn: &PortTsn, places: &[Place], place: &Place, found: &mut Findings) {
    if tsn.cyclic.is_some()
        && let Some(first) = places.first()
    {
        let cure = "remove one of the two";
        found.error(first, "cyclic queuing has a gate control list of its own", "", cure);
    }
    if tsn.schedules.is_empty() && tsn.cyclic.is_none() && tsn.guard_band.is_some() {
        let cure = "add <gate-schedule> or remove guard-band";
        found.error(place, "guard-band has no effect without gates", "", cure);
    }
    if let Some(beyond) = places.get(MOST_SCHEDULES) {
        let message = format!("there are more than {MOST_SCHEDULES} schedules");
        found.error(beyond, message, MOST_SCHEDULES.to_string(), "write fewer");
    }
    for (pair, place) in tsn.schedules.windows(2).zip(places.iter().skip(1)) {
        if pair[1].base_time <= pair[0].base_time {
            let message = format!("it does not take over after the one before, at {}", pair[0].base_time);
            found.error(
                place,
                message,
                "a later base-time",
                "give it a later base-time, or put it before the other",
            );
        }
    }
    let last = tsn.schedules.len().saturating_sub(1);
    if let (Some(schedule), Some(place)) = (tsn.schedules.last(), places.get(last))
        && schedule.cycle_extension > Span::ZERO
    {
        let cure = "remove it, or add the <gate-schedule> that takes over";
        found.error(place, "cycle-extension has no effect on the last schedule", "", cure);
    }
}
