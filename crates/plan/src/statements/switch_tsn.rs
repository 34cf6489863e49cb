//! `<switch-tsn>`: traffic classes, shapers and gates of the output ports of a switch, and filters of streams that enter.
//!
//! What concerns the settings alone is checked here; what concerns links and flows, where those are known (`port_tsn_checks::check`).

use wg_frame::time::Span;

use super::parts::only;
use super::tsn::{
    beyond_usual, check_preemption, check_priorities, class_of, classes, gate_entries, numbers,
    preemption_of, several, whole_time,
};
use crate::diagnostic::{Findings, Place};
use crate::language::attribute::{Attribute, Declared};
use crate::language::switches::{ats, cyclic_queuing as cyclic, scheduler as scheduled, switch_tsn as own};
use crate::language::tsn::{cbs, gate_schedule as gates, traffic_class};
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
/// The number of a class, of which a port has no more than it has queues.
const NUMBER: Attribute<u8> = traffic_class::NUMBER.within("0 to 7");
/// The instant at which a cycle begins, as of every schedule of a switch.
const BASE_TIME: Attribute<Span> = cyclic::BASE_TIME;

/// Reads the settings of a switch's ports.
pub(crate) fn switch_tsn(element: &Element, found: &mut Findings) -> SwitchTsnStatement {
    let clean = found.count();
    let mut reader = Reader::new(element, found);
    let ports = reader.value(&own::PORTS).unwrap_or_default();
    let guard_band = whole_time(&mut reader, &own::GUARD_BAND);
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
    let cyclic = only(element, "cyclic-queuing", found);
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

/// What only hosts have.
fn refuse_of_host(reader: &mut Reader<'_>, attributes: &[&dyn Declared]) {
    for attribute in beyond_usual(reader, attributes) {
        let message = format!("{attribute} has no effect at a switch");
        reader.found.error(&reader.place, message, "<host-tsn>", format!("remove {attribute}"));
    }
}

fn class(element: &Element, found: &mut Findings) -> Option<(u8, PortClass)> {
    if let Some(etf) = element.all("etf").next() {
        let cure = "remove it; a switch has gates and <cbs>";
        found.error(&etf.place(), "launch times are of hosts", "<host-tsn>", cure);
    }
    let shaper = only(element, "cbs", found);
    let idle_slope_bps = match shaper {
        None => None,
        Some(shaper) => {
            let mut reader = Reader::new(shaper, found);
            refuse_of_host(&mut reader, &[&cbs::OFFLOAD, &cbs::MAX_FRAME, &cbs::MAX_INTERFERENCE]);
            let slope = reader.read(&cbs::IDLE_SLOPE)?;
            if slope.value == 0 {
                let cure = "write what the class is to have, for example 20Mbit/s";
                reader.refuse(slope.attribute, &slope.written, "lets nothing through", "more than 0", cure);
                return None;
            }
            Some(slope.value)
        }
    };
    let mut reader = Reader::new(element, found);
    refuse_of_host(&mut reader, &[&traffic_class::QUEUES]);
    let longest_frame = match reader.optional(&traffic_class::LONGEST_FRAME) {
        None => None,
        Some(size) => u16::try_from(size?.value).ok(),
    };
    let preemptable = reader.value(&traffic_class::PREEMPTABLE).unwrap_or_default();
    let virtual_links = match reader.optional(&traffic_class::VIRTUAL_LINKS) {
        None => Vec::new(),
        Some(links) => links?.value,
    };
    let ats = only(element, "ats", reader.found);
    if let (Some(ats), Some(_)) = (ats, idle_slope_bps) {
        let message = "the class has two shapers";
        reader.found.error(&ats.place(), message, "1 of <cbs> and <ats>", "keep one of them");
    }
    let asynchronous = match ats {
        None => None,
        Some(ats) => Some(asynchronous(ats, reader.found)?),
    };
    let (number, priorities) = class_of(&mut reader, &NUMBER)?;
    let class =
        PortClass { priorities, virtual_links, idle_slope_bps, longest_frame, preemptable, asynchronous };
    Some((number, class))
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
    let residence = reader.value(&ats::LONGEST_RESIDENCE);
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
    Some(AsynchronousShaper { longest_residence: residence?, schedulers })
}

fn scheduler(element: &Element, found: &mut Findings) -> Option<FlowScheduler> {
    let mut reader = Reader::new(element, found);
    let flow = reader.value(&scheduled::FLOW);
    let (rate, burst) = (reader.value(&scheduled::RATE), reader.value(&scheduled::BURST));
    Some(FlowScheduler { flow: flow?, rate_bps: rate?, burst: u32::try_from(burst?).ok()? })
}

fn cyclic_queuing(element: &Element, classes: usize, found: &mut Findings) -> Option<CyclicQueuing> {
    let mut reader = Reader::new(element, found);
    let named = reader.written(&cyclic::CLASSES).and_then(|written| {
        let named = numbers(&mut reader, &cyclic::CLASSES, written, classes.max(1) as u64)?;
        let [first, second] = named[..] else {
            let cure = "name two classes, for example \"1 2\"";
            reader.refuse(cyclic::CLASSES.name, written, "are not two", "2 classes", cure);
            return None;
        };
        Some([first, second])
    });
    let cycle = whole_time(&mut reader, &cyclic::CYCLE);
    let base = whole_time(&mut reader, &BASE_TIME);
    Some(CyclicQueuing { classes: named?, cycle: cycle?, base_time: base? })
}

fn schedule(element: &Element, classes: usize, found: &mut Findings) -> Option<PortSchedule> {
    let (entries, _) = gate_entries(element, classes, MOST_PORT_ENTRIES, found);
    let mut reader = Reader::new(element, found);
    let base = whole_time(&mut reader, &BASE_TIME);
    let extension = whole_time(&mut reader, &gates::CYCLE_EXTENSION);
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
