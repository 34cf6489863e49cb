//! Holding the MAC of a port with preemption (IEEE Std 802.1Q-2022, 8.6.8.4): what entries of gate control lists ask of it.
//!
//! What concerns lists alone is checked where they are read; whether what is told in advance fits between entries, where the rate of
//! the line is known, by which the usual advance goes.

use wg_core::line::{LineRate, SMALLEST_FRAME};
use wg_core::selection::{HoldAdvances, MacOperation, Preemption};
use wg_frame::time::Span;

use crate::diagnostic::{Findings, Place};
use crate::host_tsn::GateEntry;
use crate::quantity;
use crate::switch_tsn::{PortSchedule, PortTsn};

impl PortSchedule {
    /// For how long the MAC is held, or released, at a stretch, at least; `None`: never, or always.
    fn shortest(&self, held: bool) -> Option<Span> {
        let mut state =
            self.entries.iter().map(|entry| entry.mac).rfind(|mac| *mac != MacOperation::Unchanged)?;
        let (mut shortest, mut stretch) = (None::<Span>, None::<Span>);
        // Twice, so that the stretch over the end of the cycle is seen whole.
        for entry in self.entries.iter().chain(&self.entries) {
            if entry.mac != MacOperation::Unchanged && entry.mac != state {
                state = entry.mac;
                shortest = stretch.map(|new| shortest.map_or(new, |old| old.min(new))).or(shortest);
                stretch = ((state == MacOperation::Hold) == held).then_some(Span::ZERO);
            }
            stretch = stretch.map(|stretch| stretch + entry.length);
        }
        shortest
    }
}

impl PortTsn {
    /// Some entry holds the MAC.
    pub fn holds(&self) -> bool {
        self.schedules
            .iter()
            .flat_map(|schedule| &schedule.entries)
            .any(|entry| entry.mac == MacOperation::Hold)
    }

    /// How long before an entry the MAC is told, on a line of this rate: unless it is stated, as long as a fragment may still take.
    pub fn advances(&self, line: LineRate) -> HoldAdvances {
        let rest = Preemption::longest_rest(self.shortest_fragment.unwrap_or(SMALLEST_FRAME), line);
        HoldAdvances {
            hold: self.hold_advance.unwrap_or(rest),
            release: self.release_advance.unwrap_or(Span::ZERO),
        }
    }
}

/// The parts of settings that holding goes by.
pub(crate) struct Held<'a> {
    /// Some class is preemptable.
    pub(crate) preempts: bool,
    /// Lists in the order they take over, with their places.
    pub(crate) lists: Vec<(&'a [GateEntry], &'a Place)>,
    /// Whether an advance is stated, by its name.
    pub(crate) stated: [(&'static str, bool); 2],
    pub(crate) place: &'a Place,
}

impl Held<'_> {
    /// Checks the lists.
    pub(crate) fn check(&self, found: &mut Findings) {
        let asks = |entries: &[GateEntry], mac| entries.iter().any(|entry| entry.mac == mac);
        let some = |mac| self.lists.iter().find(|(entries, _)| asks(entries, mac)).map(|(_, place)| *place);
        let (holds, releases) = (some(MacOperation::Hold), some(MacOperation::Release));
        if let Some(place) = holds.or(releases)
            && !self.preempts
        {
            let cure = "write preemptable=\"on\" at a class, or remove mac from its entries";
            found.error(place, "nothing can be held without a preemptable class", "", cure);
            return;
        }
        if holds.is_none() {
            if let Some(place) = releases {
                let cure = "write mac=\"hold\" in an entry, or remove mac";
                found.error(place, "mac=\"release\" has no effect where no entry holds", "", cure);
            }
            for (name, _) in self.stated.iter().filter(|(_, is_stated)| *is_stated) {
                let message = format!("{name} has no effect without an entry that holds");
                let cure = format!("write mac=\"hold\" in a <gate-entry>, or remove {name}");
                found.error(self.place, message, "", cure);
            }
            return;
        }
        for (number, (entries, place)) in self.lists.iter().enumerate() {
            if asks(entries, MacOperation::Hold) && !asks(entries, MacOperation::Release) {
                let message = "the MAC is held and never released: no preemptable frame would leave";
                found.error(place, message, "", "write mac=\"release\" in the entry that ends the hold");
            } else if number > 0 && entries.first().is_some_and(|entry| entry.mac == MacOperation::Unchanged)
            {
                let message = "its first entry leaves open whether the MAC is held from where it takes over";
                found.error(place, message, "hold or release", "write mac in its first entry");
            }
        }
    }
}

/// Checks what is told in advance against the lists and the line. `whose`: the port, for messages.
pub(crate) fn check_advances(
    tsn: &PortTsn,
    line: LineRate,
    whose: &str,
    place: &Place,
    found: &mut Findings,
) {
    if !tsn.holds() {
        return;
    }
    let HoldAdvances { hold, release } = tsn.advances(line);
    for schedule in &tsn.schedules {
        for (name, advance, held, state) in
            [("hold-advance", hold, false, "released"), ("release-advance", release, true, "held")]
        {
            if let Some(stretch) = schedule.shortest(held).filter(|stretch| *stretch <= advance) {
                let message = format!(
                    "the {name} of {advance} at {whose} reaches beyond the window: the MAC is {state} for {stretch} before it"
                );
                let cure = format!("lower {name} or lengthen the entries");
                found.error(place, message, format!("less than {stretch}"), cure);
                return;
            }
        }
    }
    let rest = Preemption::longest_rest(tsn.shortest_fragment.unwrap_or(SMALLEST_FRAME), line);
    if hold < rest {
        found.warn(format!(
            "the hold-advance of {hold} at {whose} is less than the {rest} that a fragment may still take at {}: \
             what is sent in a held window may wait for it",
            quantity::show_rate(line.bits_per_second())
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(entries: &[(MacOperation, i64)]) -> PortSchedule {
        let entry = |&(mac, nanos): &(MacOperation, i64)| GateEntry {
            open: Vec::new(),
            length: Span::from_nanos(nanos),
            mac,
        };
        PortSchedule {
            base_time: Span::ZERO,
            cycle_extension: Span::ZERO,
            entries: entries.iter().map(entry).collect(),
        }
    }

    #[test]
    fn stretches_reach_over_the_end_of_a_cycle() {
        use MacOperation::{Hold, Release, Unchanged};
        let one = schedule(&[
            (Unchanged, 5),
            (Hold, 10),
            (Unchanged, 20),
            (Release, 100),
            (Hold, 7),
            (Release, 30),
        ]);
        assert_eq!(one.shortest(true), Some(Span::from_nanos(7)));
        assert_eq!(one.shortest(false), Some(Span::from_nanos(35)));
        assert_eq!(schedule(&[(Unchanged, 5)]).shortest(true), None);
        assert_eq!(schedule(&[(Hold, 5)]).shortest(true), None);
    }
}
