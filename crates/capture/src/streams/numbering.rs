//! Sequence numbers of a stream, as the frames come: what is missing, doubled, late, and when the sender began anew.

use std::collections::BTreeMap;

use serde::Serialize;

/// How the numbers of a kind of stream follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Modulo 2^bits.
    Bits(u32),
    /// ARINC 664 part 7: 1 to 255 and again 1; 0 after a reset of the sender only.
    Arinc,
    /// SOME/IP: 1 to 65 535 and again 1; 0 where sessions are not counted (PRS_SOMEIP_00521).
    Session,
    /// Counts up in steps of its own, modulo 2^bits (cycle counter of PROFINET).
    Stride(u32),
    /// Counts up in steps of its own to an end that the frames do not state, and begins with 0 again.
    ToZero,
}

impl Rule {
    /// Numbers of a round, after which they come again; without an end that is known, the most there can be.
    pub(super) fn numbers(self) -> u64 {
        match self {
            Self::Arinc => 255,
            Self::Session => 65_535,
            Self::Bits(bits) | Self::Stride(bits) => mask(bits).saturating_add(1),
            Self::ToZero => u64::MAX,
        }
    }
}

/// Numbers that are kept to tell a late frame from a doubled one.
const HISTORY: u64 = 64;
/// Greatest jump that counts as loss whatever the time between (RFC 3550, A.1, MAX_DROPOUT); beyond it the jump must
/// fit the time.
const MOST_DROPPED: u64 = 3000;
/// Frames by which a stride is learnt.
const LEARNING: usize = 8;
/// Number of gaps that are listed.
const LISTED: usize = 32;

/// A jump of the sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Jump {
    /// Time of the frame behind it, ps after the first frame of the capture.
    pub at_ps: i64,
    /// Last number before it.
    pub last: u64,
    /// Number behind it.
    pub next: u64,
    /// Numbers that were skipped.
    pub missing: u64,
}

/// What the numbers tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbering {
    /// Frames with a number.
    pub(super) numbered: u64,
    pub(super) missing: u64,
    pub(super) duplicates: u64,
    pub(super) reordered: u64,
    pub(super) resets: u64,
    /// Sum of the frames that were rejected by the rule of an end system (ARINC 664: neither the next nor the one
    /// after it).
    pub(super) rejected: u64,
    pub(super) jumps: Vec<Jump>,
    pub(super) stride: Option<u64>,
    last: Option<(u64, i64)>,
    /// Bit n: the number n before the last was seen.
    history: u64,
    learning: Vec<(u64, i64)>,
    /// Greatest number before a return to 0.
    top: u64,
    epoch: Option<u64>,
}

impl Numbering {
    /// Takes the number of the next frame. `epoch` is the count of what makes the numbers begin with 0 (stNum of
    /// GOOSE). `typical` is the mean time between frames.
    pub(super) fn take(
        &mut self,
        rule: Rule,
        number: u64,
        epoch: Option<u64>,
        at: i64,
        typical: Option<i64>,
    ) {
        if rule == Rule::Session && number == 0 {
            return;
        }
        self.numbered += 1;
        if matches!(rule, Rule::Stride(_) | Rule::ToZero) && self.stride.is_none() {
            self.learning.push((number, at));
            if self.learning.len() == LEARNING {
                self.learn(rule, typical);
            }
            return;
        }
        self.follow(rule, number, epoch, at, typical);
    }

    /// Ends the series.
    pub(super) fn finish(&mut self, rule: Rule, typical: Option<i64>) {
        if self.stride.is_none() && !self.learning.is_empty() {
            self.learn(rule, typical);
        }
    }

    /// The most frequent step of the first frames is the stride.
    fn learn(&mut self, rule: Rule, typical: Option<i64>) {
        let mut steps: BTreeMap<u64, usize> = BTreeMap::new();
        for pair in self.learning.windows(2) {
            let step = match rule {
                Rule::Stride(bits) => pair[1].0.wrapping_sub(pair[0].0) & mask(bits),
                _ => pair[1].0.saturating_sub(pair[0].0),
            };
            if step > 0 {
                *steps.entry(step).or_default() += 1;
            }
        }
        let most = steps.iter().max_by_key(|(step, n)| (**n, std::cmp::Reverse(**step)));
        self.stride = Some(most.map_or(1, |(step, _)| *step));
        for (number, at) in std::mem::take(&mut self.learning) {
            self.follow(rule, number, None, at, typical);
        }
    }

    fn follow(&mut self, rule: Rule, number: u64, epoch: Option<u64>, at: i64, typical: Option<i64>) {
        let is_new_epoch = epoch.is_some() && self.epoch.is_some_and(|before| Some(before) != epoch);
        self.epoch = epoch;
        let Some((last, before)) = self.last else { return self.begin(number, at) };
        if is_new_epoch {
            // Its first number is 0.
            if number > 0 {
                self.skip(last, number, number, at);
            }
            return self.begin(number, at);
        }
        if rule == Rule::Arinc && number == 0 {
            self.resets += 1;
            return self.begin(number, at);
        }
        let Some((forward, back)) = self.distances(rule, last, number) else {
            self.resets += 1;
            return self.begin(number, at);
        };
        if back < self.window(rule) {
            return self.late(back);
        }
        let elapsed = at.saturating_sub(before).max(0).unsigned_abs();
        let fits = typical.is_some_and(|typical| forward / 2 <= elapsed / typical.max(1).unsigned_abs());
        if forward > MOST_DROPPED && !fits {
            self.resets += 1;
            return self.begin(number, at);
        }
        if forward > 1 {
            self.skip(last, number, forward - 1, at);
        }
        self.rejected += u64::from(rule == Rule::Arinc && forward > 2);
        self.history = if forward >= HISTORY { 0 } else { self.history << forward };
        self.history |= 1;
        self.last = Some((number, at));
    }

    /// Steps forward from `last` to `number`, and steps back; `None` where the number follows none of the rules.
    fn distances(&mut self, rule: Rule, last: u64, number: u64) -> Option<(u64, u64)> {
        let stride = self.stride.unwrap_or(1);
        let modulo = |from: u64, to: u64, modulus: u64| (to + modulus - from % modulus) % modulus;
        match rule {
            Rule::Bits(bits) if bits >= 64 => Some((number.wrapping_sub(last), last.wrapping_sub(number))),
            Rule::Bits(bits) => {
                Some((number.wrapping_sub(last) & mask(bits), last.wrapping_sub(number) & mask(bits)))
            }
            Rule::Arinc if last == 0 => Some((number, 255 - number)),
            Rule::Arinc => Some((modulo(last, number, 255), modulo(number, last, 255))),
            Rule::Session => Some((modulo(last, number, 65_535), modulo(number, last, 65_535))),
            Rule::Stride(bits) => {
                let (forward, back) =
                    (number.wrapping_sub(last) & mask(bits), last.wrapping_sub(number) & mask(bits));
                match (forward.is_multiple_of(stride), back.is_multiple_of(stride)) {
                    (true, true) => Some((forward / stride, back / stride)),
                    (true, false) => Some((forward / stride, u64::MAX)),
                    (false, true) => Some((u64::MAX, back / stride)),
                    (false, false) => None,
                }
            }
            Rule::ToZero => {
                if number >= last {
                    let forward = number - last;
                    return Some((forward.div_ceil(stride), if forward == 0 { 0 } else { u64::MAX }));
                }
                let back = (last - number) / stride;
                if back < HISTORY && number != 0 {
                    return Some((u64::MAX, back));
                }
                // Around its end, as far as that is known.
                self.top = self.top.max(last);
                let forward = (self.top - last) / stride + number / stride + 1;
                Some((forward, u64::MAX))
            }
        }
    }

    /// Number of steps back that count as late or doubled.
    fn window(&self, rule: Rule) -> u64 {
        let numbers = match rule {
            Rule::Bits(_) | Rule::Stride(_) => rule.numbers() / self.stride.unwrap_or(1),
            _ => rule.numbers(),
        };
        HISTORY.min(numbers / 4).max(1)
    }

    fn begin(&mut self, number: u64, at: i64) {
        self.last = Some((number, at));
        self.history = 1;
    }

    fn late(&mut self, back: u64) {
        if self.history >> back & 1 == 1 {
            self.duplicates += 1;
        } else {
            self.history |= 1 << back;
            self.reordered += 1;
            // It was missing until now, unless it is from before the first frame.
            self.missing = self.missing.saturating_sub(1);
        }
    }

    fn skip(&mut self, last: u64, next: u64, missing: u64, at: i64) {
        self.missing += missing;
        if self.jumps.len() < LISTED {
            self.jumps.push(Jump { at_ps: at, last, next, missing });
        }
    }
}

fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: i64 = 1_000_000_000;

    fn told(rule: Rule, numbers: &[u64]) -> [u64; 4] {
        let mut numbering = Numbering::default();
        for (at, number) in (0..).zip(numbers) {
            numbering.take(rule, *number, None, at * MS, Some(MS));
        }
        numbering.finish(rule, Some(MS));
        [numbering.missing, numbering.duplicates, numbering.reordered, numbering.resets]
    }

    #[test]
    fn the_numbers_of_a_virtual_link_wrap_to_one_and_zero_is_a_reset() {
        assert_eq!(told(Rule::Arinc, &[253, 254, 255, 1, 2]), [0; 4]);
        assert_eq!(told(Rule::Arinc, &[254, 1]), [1, 0, 0, 0]);
        assert_eq!(told(Rule::Arinc, &[100, 0, 1, 2]), [0, 0, 0, 1]);
        assert_eq!(told(Rule::Arinc, &[0, 2, 3]), [1, 0, 0, 0]);
        assert_eq!(told(Rule::Arinc, &[0, 0, 0]), [0, 0, 0, 2]);
        assert_eq!(told(Rule::Arinc, &[5, 6, 6, 7]), [0, 1, 0, 0]);
        assert_eq!(told(Rule::Arinc, &[5, 7, 6, 8]), [0, 0, 1, 0]);
        assert_eq!(told(Rule::Arinc, &[255, 2, 1, 3]), [0, 0, 1, 0]);
    }

    #[test]
    fn numbers_of_sixteen_bits_wrap_and_a_restart_is_no_loss() {
        assert_eq!(told(Rule::Bits(16), &[65_534, 65_535, 0, 2]), [1, 0, 0, 0]);
        assert_eq!(told(Rule::Bits(16), &[10, 11, 40_000, 40_001]), [0, 0, 0, 1]);
        assert_eq!(told(Rule::Session, &[65_534, 65_535, 1, 2]), [0; 4]);
    }

    #[test]
    fn an_outage_of_that_length_is_a_loss() {
        let mut numbering = Numbering::default();
        for (number, at) in [(1, 0), (2, MS), (10_002, 10_001 * MS)] {
            numbering.take(Rule::Bits(16), number, None, at, Some(MS));
        }
        assert_eq!((numbering.missing, numbering.resets), (9999, 0));
    }

    #[test]
    fn a_stride_is_learnt() {
        let frames: Vec<u64> =
            (0..20).filter(|n| *n != 9).map(|n| 65_000 + n * 64).map(|n| n & 0xffff).collect();
        assert_eq!(told(Rule::Stride(16), &frames), [1, 0, 0, 0]);
        assert_eq!(told(Rule::ToZero, &[3996, 3997, 3998, 3999, 0, 1, 3]), [1, 0, 0, 0]);
        let samples: Vec<u64> = (0..200).map(|n| n * 8 % 800).collect();
        assert_eq!(told(Rule::ToZero, &samples), [0; 4]);
    }

    #[test]
    fn a_new_state_begins_with_zero() {
        let mut numbering = Numbering::default();
        for (at, (state, number)) in (0..).zip([(1, 7), (1, 8), (2, 0), (2, 1), (3, 1)]) {
            numbering.take(Rule::Bits(32), number, Some(state), at, None);
        }
        assert_eq!((numbering.missing, numbering.resets), (1, 0));
    }

    proptest! {
        /// Frames dropped, doubled and swapped with a neighbour are counted as that, whatever the rule.
        #[test]
        fn faults_are_counted(
            faults in prop::collection::vec(0_u8..24, 40..400), start in 1_u64..255, rule in 0_usize..3,
        ) {
            let rule = [Rule::Arinc, Rule::Bits(8), Rule::Bits(16)][rule];
            let number = |n: u64| match rule {
                Rule::Arinc => (start + n - 1) % 255 + 1,
                Rule::Bits(8) => (start + n) & 0xff,
                _ => (start + n) & 0xffff,
            };
            let (mut numbers, mut expected) = (vec![number(0)], [0_u64; 4]);
            let mut n = 1;
            for fault in faults {
                match fault {
                    0 => expected[0] += 1,
                    1 => { numbers.extend([number(n); 2]); expected[1] += 1; }
                    2 => { numbers.extend([number(n + 1), number(n)]); expected[2] += 1; n += 1; }
                    _ => numbers.push(number(n)),
                }
                n += 1;
            }
            numbers.push(number(n));
            prop_assert_eq!(told(rule, &numbers), expected);
        }
    }
}
