//! What TSN settings of hosts and of ports of switches share: traffic classes, gate control lists, preemption.

use wg_core::line::SMALLEST_FRAME;
use wg_core::selection::MacOperation;
use wg_frame::time::Span;

use crate::diagnostic::{Findings, Place};
use crate::hold::Held;
use crate::host_tsn::{GateEntry, LONGEST_CYCLE};
use crate::language::attribute::{Attribute, Declared, Need, Text};
use crate::language::tsn::{
    gate_entry, gate_schedule as gates, host_tsn as settings, traffic_class as class,
};
use crate::reader::Reader;
use crate::tree::Element;

const PRIORITIES: u8 = 8;
const MOST_RULES: usize = 1_024;

/// Reads every child with this tag, with its place; what could not be read is left out.
pub(super) fn several<T>(
    element: &Element,
    tag: &str,
    read: impl Fn(&Element, &mut Findings) -> Option<T>,
    found: &mut Findings,
) -> (Vec<T>, Vec<Place>) {
    if let Some(beyond) = element.all(tag).nth(MOST_RULES) {
        let message = format!("there are more than {MOST_RULES} <{tag}> elements");
        found.error(&beyond.place(), message, MOST_RULES.to_string(), "name fewer flows");
    }
    let all = element.all(tag).take(MOST_RULES);
    all.filter_map(|child| Some((read(child, found)?, child.place()))).unzip()
}

/// A time that is a whole number of nanoseconds, as the kernel counts.
pub(super) fn whole_time(reader: &mut Reader<'_>, attribute: &Attribute<Span>) -> Option<Span> {
    let time = reader.read(attribute)?;
    if time.value.as_picos() % 1_000 == 0 {
        return Some(time.value);
    }
    let cure = "write a whole number of nanoseconds";
    reader.refuse(attribute.name, &time.written, "is finer than the kernel counts", "1ns", cure);
    None
}

/// Numbers from 0 with spaces between, ascending in the result.
pub(super) fn numbers(
    reader: &mut Reader<'_>,
    attribute: &Attribute<Text>,
    written: &str,
    below: u64,
) -> Option<Vec<u8>> {
    let mut numbers = Vec::new();
    for word in written.split_whitespace() {
        let number: u8 = reader.whole(attribute.name, word, (0, below.saturating_sub(1)))?;
        if numbers.contains(&number) {
            let problem = format!("names {word} twice");
            reader.refuse(attribute.name, written, &problem, "", "name each number once");
            return None;
        }
        numbers.push(number);
    }
    numbers.sort_unstable();
    Some(numbers)
}

/// Reads traffic classes, which are numbered in the order of the file.
pub(super) fn classes<T>(
    element: &Element,
    most: usize,
    read: impl Fn(&Element, &mut Findings) -> Option<(u8, T)>,
    found: &mut Findings,
) -> (Vec<T>, Vec<Place>) {
    let (classes, places): (Vec<_>, Vec<_>) = several(element, "traffic-class", read, found);
    if let Some(beyond) = places.get(most) {
        let message = format!("there are more than {most} traffic classes");
        found.error(beyond, message, most.to_string(), "put priorities together into one class");
    }
    // A class that could not be read leaves a gap, which is no mistake of the others.
    let whole = classes.len() == element.all("traffic-class").count();
    for ((expected, (number, _)), place) in classes.iter().enumerate().zip(&places).filter(|_| whole) {
        if usize::from(*number) != expected {
            let message = format!("number {number} stands where {expected} should");
            let cure = "number the classes from 0, in the order of the file";
            found.error(place, message, "0, 1, 2, …", cure);
            break;
        }
    }
    (classes.into_iter().map(|(_, class)| class).collect(), places)
}

/// Number and priorities of a class.
pub(super) fn class_of(reader: &mut Reader<'_>, number: &Attribute<u8>) -> Option<(u8, Vec<u8>)> {
    let number = reader.value(number);
    let priorities = reader
        .written(&class::PRIORITIES)
        .and_then(|written| numbers(reader, &class::PRIORITIES, written, u64::from(PRIORITIES)))?;
    if priorities.is_empty() {
        let cure = "list priorities, or remove the class";
        reader.refuse(class::PRIORITIES.name, "", "names no priority", "at least 1", cure);
        return None;
    }
    Some((number?, priorities))
}

/// What is stated of preemption beside the classes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PreemptionOf {
    /// Where it is not the usual one.
    pub(super) shortest_fragment: Option<u16>,
    pub(super) hold_advance: Option<Span>,
    pub(super) release_advance: Option<Span>,
}

impl PreemptionOf {
    pub(super) const fn is_stated(self) -> bool {
        self.shortest_fragment.is_some() || self.hold_advance.is_some() || self.release_advance.is_some()
    }
}

/// Reads it from the settings of a host or of ports of a switch.
pub(super) fn preemption_of(reader: &mut Reader<'_>) -> PreemptionOf {
    let fragment = reader.value(&settings::SHORTEST_FRAGMENT);
    PreemptionOf {
        hold_advance: whole_time(reader, &settings::HOLD_ADVANCE),
        release_advance: whole_time(reader, &settings::RELEASE_ADVANCE),
        shortest_fragment: fragment.filter(|bytes| *bytes > SMALLEST_FRAME),
    }
}

/// Some class gives way, not all do, and what lists ask of the MAC can be done. `preemptable`: whether each class is.
pub(super) fn check_preemption(
    preemptable: impl Iterator<Item = bool> + Clone,
    stated: PreemptionOf,
    lists: Vec<(&[GateEntry], &Place)>,
    place: &Place,
    found: &mut Findings,
) {
    let preempts = preemptable.clone().any(|one| one);
    if preempts && preemptable.clone().all(|one| one) {
        let cure = "write preemptable=\"off\" at the classes that are not to wait";
        found.error(place, "every class is preemptable: none makes the others give way", "", cure);
    }
    if !preempts && stated.shortest_fragment.is_some() {
        let cure = "write preemptable=\"on\" at a class, or remove shortest-fragment";
        found.error(place, "shortest-fragment has no effect without a preemptable class", "", cure);
    }
    let stated = [
        ("hold-advance", stated.hold_advance.is_some()),
        ("release-advance", stated.release_advance.is_some()),
    ];
    Held { preempts, lists, stated, place }.check(found);
}

/// Attributes that say something else than what counts where they are left out, which may be said.
pub(super) fn beyond_usual(reader: &Reader<'_>, attributes: &[&dyn Declared]) -> Vec<&'static str> {
    let beyond = attributes.iter().filter(|attribute| {
        let written = reader.element.get(attribute.name());
        written.is_some_and(|written| !matches!(attribute.need(), Need::Usual(usual) if usual == written))
    });
    beyond.map(|attribute| attribute.name()).collect()
}

/// Checks that what a list of entries adds up to is what was meant, and that the kernel takes it.
pub(super) fn check_cycle(reader: &mut Reader<'_>, lengths: &[Span], (fewest, most): (usize, usize)) -> bool {
    if !(fewest..=most).contains(&lengths.len()) {
        let message = format!("the schedule has {} entries", lengths.len());
        let cure = "write fewer, longer entries; no more are carried";
        let cure = if lengths.is_empty() { "add entries, or remove the schedule" } else { cure };
        reader.found.error(&reader.place, message, format!("{fewest} to {most}"), cure);
        return false;
    }
    let sum = Span::from_picos(lengths.iter().fold(0, |sum, length| sum + length.as_picos()));
    if sum > LONGEST_CYCLE {
        let message = format!("the entries add up to {sum}");
        reader.found.error(&reader.place, message, "2147483647ns", "shorten them");
        return false;
    }
    // That of a stream gate is as that of a list of gates.
    match reader.optional(&gates::CYCLE_TIME) {
        None => true,
        Some(Some(cycle)) if cycle.value != sum => {
            let problem = format!("is not the {sum} that its entries add up to");
            let cure = "correct an entry or the cycle-time";
            reader.refuse(cycle.attribute, &cycle.written, &problem, "the sum of the entries", cure);
            false
        }
        Some(cycle) => cycle.is_some(),
    }
}

/// The entries of a gate control list, with the place of each; `None` where they make no list.
pub(super) fn gate_entries(
    element: &Element,
    classes: usize,
    most: usize,
    found: &mut Findings,
) -> (Option<Vec<GateEntry>>, Vec<Place>) {
    let entry = |child: &Element, found: &mut Findings| {
        let mut reader = Reader::new(child, found);
        let length = whole_time(&mut reader, &gate_entry::FOR);
        let open = reader.text(&gate_entry::OPEN).unwrap_or("");
        let open = numbers(&mut reader, &gate_entry::OPEN, open, classes.max(1) as u64);
        let mac = reader.value(&gate_entry::MAC).unwrap_or(MacOperation::Unchanged);
        Some(GateEntry { open: open?, length: length?, mac })
    };
    let (entries, places) = several(element, "gate-entry", entry, found);
    let mut reader = Reader::new(element, found);
    let lengths: Vec<Span> = entries.iter().map(|entry| entry.length).collect();
    let whole = element.all("gate-entry").count() == entries.len();
    let whole = whole && check_cycle(&mut reader, &lengths, (1, most));
    (whole.then_some(entries), places)
}

/// Every priority is in one class.
pub(super) fn check_priorities<T>(
    classes: &[T],
    priorities: impl Fn(&T) -> &[u8],
    places: &[Place],
    place: &Place,
    found: &mut Findings,
) {
    for (number, (class, place)) in classes.iter().zip(places).enumerate() {
        let before = &classes[..number];
        for priority in priorities(class) {
            if let Some(other) = before.iter().position(|other| priorities(other).contains(priority)) {
                let message = format!("priority {priority} is in class {other} already");
                found.error(place, message, "1 class per priority", "remove it from one of them");
            }
        }
    }
    let is_missing = |priority: &u8| !classes.iter().any(|class| priorities(class).contains(priority));
    let missing: Vec<String> = (0..PRIORITIES).filter(is_missing).map(|p| p.to_string()).collect();
    if !missing.is_empty() {
        let message = format!("no class has priority {}", missing.join(", "));
        found.error(place, message, "priorities 0 to 7", "add what is missing to a class");
    }
}
