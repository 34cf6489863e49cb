//! Faults of links and their effects on frames.
//!
//! Decisions are integers from start to end, so that they are the same on every machine. Each fault draws from a
//! separate stream for each direction: another fault, or traffic in the other direction, changes none of its decisions.

use wg_core::frame::{Frame, Marks};
use wg_core::generator::Exponential;
use wg_frame::time::{RunTime, Span};
use wg_plan::random::{Purpose, Stream};
use wg_plan::{LinkFault, LinkFaultKind, Victims};

use crate::error::SimError;
use crate::message::{Carries, Flags};

/// A fault in one direction of a link.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Effect of the fault.
    pub(crate) kind: LinkFaultKind,
    target: FaultTarget,
    begin: RunTime,
    end: RunTime,
}

#[derive(Debug)]
enum FaultTarget {
    Share { ppm: u32, chance: Stream },
    Bits(BitErrors),
    Messages { flow: u16, sequences: Vec<(u32, u32)> },
}

impl Rule {
    /// Fault `number` of the plan, in the direction from end `side` of its link.
    pub(crate) fn new(number: u32, side: u32, fault: &LinkFault, seed: u64) -> Result<Self, SimError> {
        let chance = Stream::new(seed, Purpose::LinkFault, 2 * number + side);
        let target = match &fault.whom {
            Victims::Share { ppm } => FaultTarget::Share { ppm: *ppm, chance },
            Victims::Bits { mean_bits } => FaultTarget::Bits(BitErrors::new(*mean_bits, chance)?),
            Victims::Messages { flow, sequences } => {
                FaultTarget::Messages { flow: *flow, sequences: sequences.clone() }
            }
        };
        let end = fault.until.map_or(RunTime::from_picos(i64::MAX), |end| RunTime::ZERO + end);
        Ok(Self { kind: fault.kind, target, begin: RunTime::ZERO + fault.from, end })
    }

    /// Whether the fault strikes `frame`, whose message has the number `sequence` and whose first bit enters the link
    /// at `now`.
    pub(crate) fn strikes(&mut self, now: RunTime, frame: &Frame, sequence: u32) -> bool {
        if now < self.begin || now >= self.end {
            return false;
        }
        match &mut self.target {
            FaultTarget::Share { ppm, chance } => {
                (u128::from(chance.next_u64()) * 1_000_000) >> 64 < u128::from(*ppm)
            }
            FaultTarget::Bits(errors) => errors.pass(8 * u64::from(frame.length)),
            FaultTarget::Messages { flow, sequences } => {
                let message = frame.message();
                let after = sequences.partition_point(|range| range.0 <= sequence);
                let named = after.checked_sub(1).is_some_and(|at| sequence <= sequences[at].1);
                named && *flow == message.flow && !message.flags.has(Flags::WARM_UP)
            }
        }
    }
}

/// Independent bit errors, one in `mean_bits` on average.
///
/// The number of good bits before a bad one is geometric: the whole part of an exponential time whose mean is
/// −1 / ln(1 − 1 / m) = m − 1/2 − 1/(12 m) − O(1/m²) for m = `mean_bits`. Where m is small, bits are drawn one by one.
#[derive(Debug)]
struct BitErrors {
    mean_bits: u64,
    /// Mean distance of errors, in units of 1 / `unit` bit.
    mean: Span,
    unit: u64,
    chance: Stream,
    good: u64,
}

/// Least `mean_bits` at which errors are drawn by their distance.
const FEW: u64 = 64;

impl BitErrors {
    fn new(mean_bits: u64, mut chance: Stream) -> Result<Self, SimError> {
        let problem = || SimError::plan("a bit error rate is not between 1 and 1 in 10^18");
        if mean_bits == 0 {
            return Err(problem());
        }
        // The generator's greatest mean is 10^18, and so is the language's.
        let unit = match mean_bits {
            0..0x80_0000_0000 => 1 << 20,
            0x80_0000_0000..=250_000_000_000_000_000 => 4,
            _ => 1,
        };
        let mean =
            mean_bits.checked_mul(unit).ok_or_else(problem)? - unit / 2 - unit / (12 * mean_bits.min(unit));
        let mean = Span::from_picos(i64::try_from(mean).map_err(|_| problem())?);
        Exponential::new(RunTime::ZERO, mean, std::iter::empty()).map_err(|_| problem())?;
        let good = draw(mean, unit, &mut chance);
        Ok(Self { mean_bits, mean, unit, chance, good })
    }

    /// Whether any of the next `bits` is wrong.
    fn pass(&mut self, bits: u64) -> bool {
        if self.mean_bits < FEW {
            let mean = u128::from(self.mean_bits);
            return (0..bits).any(|_| (u128::from(self.chance.next_u64()) * mean) >> 64 == 0);
        }
        let mut left = bits;
        let mut bad = false;
        while self.good < left {
            bad = true;
            left -= self.good + 1;
            self.good = draw(self.mean, self.unit, &mut self.chance);
        }
        self.good -= left;
        bad
    }
}

fn draw(mean: Span, unit: u64, chance: &mut Stream) -> u64 {
    let uniform = std::iter::once(chance.next_u64());
    let time = Exponential::new(RunTime::ZERO, mean, uniform).ok().and_then(|mut times| times.next());
    time.map_or(u64::MAX, |time| time.as_picos().unsigned_abs() / unit)
}

/// Effect of a faulty link on a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkEffect {
    /// The frame, altered where the fault says so.
    pub(crate) frame: Frame,
    /// Whether it is lost.
    pub(crate) lost: bool,
    /// Additional delay.
    pub(crate) by: Span,
    /// Whether it arrives twice.
    pub(crate) twice: bool,
}

impl LinkEffect {
    /// No effect on `frame`.
    pub(crate) const fn of(frame: Frame) -> Self {
        Self { frame, lost: false, by: Span::ZERO, twice: false }
    }

    /// Adds the effect of one more fault.
    pub(crate) fn suffer(&mut self, kind: LinkFaultKind) {
        match kind {
            LinkFaultKind::Loss => self.lost = true,
            LinkFaultKind::BitError => self.frame.marks = self.frame.marks.with(Marks::FCS_ERROR),
            LinkFaultKind::Corrupt => self.frame = self.frame.flagged(Flags::DAMAGED),
            LinkFaultKind::Duplicate => self.twice = true,
            LinkFaultKind::Delay { by } => self.by += by,
            LinkFaultKind::WrongLength { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of frames with a bad bit against 1 − (1 − 1/m)ⁿ, four standard deviations of 40 000 frames.
    #[test]
    fn frames_are_hit_as_often_as_independent_bits_say() {
        for (mean, bits) in [(2_u64, 1_u64), (3, 2), (63, 7), (64, 7), (1_000, 512), (100_000, 12_144)] {
            let stream = Stream::new(5, Purpose::LinkFault, 1);
            let mut errors = BitErrors::new(mean, stream).expect("a rate");
            let hit = (0..40_000).filter(|_| errors.pass(bits)).count() as f64 / 4e4;
            let expected = 1.0 - (1.0 - 1.0 / mean as f64).powi(bits as i32);
            let deviation = (expected * (1.0 - expected) / 4e4).sqrt();
            assert!(
                (hit - expected).abs() < 4.0 * deviation,
                "1 in {mean}, {bits} bits: {hit} not {expected}"
            );
        }
        let mut always = BitErrors::new(1, Stream::new(5, Purpose::LinkFault, 1)).expect("a rate");
        assert!((0..100).all(|_| always.pass(1)));
        assert!(BitErrors::new(0, Stream::new(5, Purpose::LinkFault, 1)).is_err());
        assert!(BitErrors::new(u64::MAX, Stream::new(5, Purpose::LinkFault, 1)).is_err());
    }
}
