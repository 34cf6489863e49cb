//! Open times of a stream gate, and whether all frames come within them.

use num_integer::Integer;

use crate::instants::{picos_down, picos_up};
use crate::rational::Rational;

/// Greatest number of relative phases of senders and gates that are tried.
const MOST_PHASES: i64 = 65_536;

/// Arrival times of a flow's frames at a gate: periodic instants, with a delay after each.
#[derive(Clone, Debug)]
pub struct Comes {
    /// Flow, and its step after the gate.
    pub at: (usize, usize),
    /// First of these instants, ps.
    pub first: i64,
    /// Period of the instants, ps.
    pub period: i64,
    /// Least delay from an instant to the last bit of its frame at the gate, s.
    pub least: Rational,
    /// Greatest delay but for what delays one frame more than another, s.
    pub fixed: Rational,
}

/// Open times of a gate.
#[derive(Clone, Debug)]
pub struct Openings {
    base: i64,
    cycle: i64,
    /// Open intervals relative to the beginning of a cycle; the last may end in the next one.
    open: Vec<(i64, i64)>,
}

impl Openings {
    /// Open times from a base instant and entries: whether each is open, and its length, ps.
    pub fn new(base: i64, entries: impl IntoIterator<Item = (bool, i64)>) -> Self {
        let (mut open, mut cycle) = (Vec::<(i64, i64)>::new(), 0);
        for (is_open, length) in entries {
            let begin = cycle;
            cycle += length;
            match open.last_mut() {
                _ if !is_open => {}
                Some((_, end)) if *end == begin => *end = cycle,
                _ => open.push((begin, cycle)),
            }
        }
        if open.len() > 1 && open[0].0 == 0 && open.last().is_some_and(|last| last.1 == cycle) {
            let first = open.remove(0);
            open.last_mut().into_iter().for_each(|last| last.1 += first.1);
        }
        Self { base, cycle, open }
    }

    /// Whether all frames come while the gate is open, if `shift` is the greatest additional delay of a frame.
    pub fn hold(&self, comes: &Comes, shift: &Rational) -> bool {
        if self.cycle <= 0 || comes.period <= 0 {
            return false;
        }
        let step = self.cycle.gcd(&comes.period);
        let (least, most) = (picos_down(&comes.least), picos_up(&(&comes.fixed + shift)));
        let (cycle, step, first) = (i128::from(self.cycle), i128::from(step), i128::from(comes.first));
        let within = |begin: i128, end: i128| {
            self.open.iter().any(|(opens, closes)| i128::from(*opens) <= begin && end < i128::from(*closes))
        };
        let phases = cycle / step;
        phases <= i128::from(MOST_PHASES)
            && (0..phases).all(|turn| {
                let begin = (first + turn * step + least - i128::from(self.base)).rem_euclid(cycle);
                let end = begin + most - least;
                within(begin, end) || within(begin + cycle, end + cycle)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::{Comes, Openings};
    use crate::rational::Rational;

    fn hold(entries: &[(bool, i64)], first: i64, period: i64, took: (i128, i128)) -> bool {
        let picos = |time| Rational::new(time, crate::instants::PICOS_PER_SECOND);
        let comes = Comes { at: (0, 0), first, period, least: picos(took.0), fixed: Rational::ZERO };
        Openings::new(7, entries.iter().copied()).hold(&comes, &picos(took.1))
    }

    /// Reference: instant by instant, over a common period and more.
    fn listed(entries: &[(bool, i64)], first: i64, period: i64, took: (i128, i128)) -> bool {
        let cycle: i64 = entries.iter().map(|entry| entry.1).sum();
        let is_open = |at: i64| {
            let mut within = (at - 7).rem_euclid(cycle);
            entries
                .iter()
                .find_map(|(open, length)| {
                    within -= length;
                    (within < 0).then_some(*open)
                })
                .unwrap_or(false)
        };
        let (least, most) = (i64::try_from(took.0).unwrap(), i64::try_from(took.1).unwrap());
        (0..cycle).all(|turn| (least..=most).all(|took| is_open(first + turn * period + took)))
    }

    #[test]
    fn what_comes_within_openings_is_what_a_list_of_all_instants_says() {
        let lists: [&[(bool, i64)]; 5] = [
            &[(true, 5), (false, 7)],
            &[(false, 3), (true, 9)],
            &[(true, 2), (false, 4), (true, 6)],
            &[(true, 1), (false, 1), (true, 8), (false, 2)],
            &[(false, 12)],
        ];
        let mut held = 0;
        for entries in lists {
            for period in [1, 4, 6, 12, 24, 36, 5] {
                for first in 0..24 {
                    for took in [(0, 0), (3, 3), (1, 4), (30, 33), (0, 11)] {
                        let found = hold(entries, first, period, took);
                        assert_eq!(
                            found,
                            listed(entries, first, period, took),
                            "{entries:?} {first} {period}"
                        );
                        held += u32::from(found);
                    }
                }
            }
        }
        assert!(held > 100);
    }
}
