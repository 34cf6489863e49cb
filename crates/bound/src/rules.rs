//! What a port promises a traffic class: the slope of a credit-based shaper, gates, frames in fragments.

use std::collections::BTreeSet;

use crate::curve::Bucket;
use crate::number::Number;
use crate::rational::Rational;

/// The rule of a class at a port.
#[derive(Clone, Debug)]
pub enum Rule<N> {
    /// A credit-based shaper.
    Shaped(Slope<N>),
    /// Gates that are not always open, or classes beside it whose gates are not.
    Gated(Gates<N>),
}

/// The idle slope of a credit-based shaper, by the port's own clock: in true time it lies between these.
#[derive(Clone, Debug)]
pub struct Slope<N> {
    /// At least; while its gate is open, where it has one.
    pub least: N,
    /// At most.
    pub most: N,
    /// The gate in front of it, where the port has gates.
    pub behind: Option<Behind<N>>,
}

/// The gate in front of a shaper.
#[derive(Clone, Debug)]
pub struct Behind<N> {
    /// When it is closed.
    pub gates: Gates<N>,
    /// How long it is open in any time, at most: a bucket of time.
    pub open: Bucket<N>,
}

/// Frames that are sent in fragments.
#[derive(Clone, Debug)]
pub struct Fragments<N> {
    /// Classes whose frames are.
    pub classes: BTreeSet<u8>,
    /// The most of one that cannot be cut, with preamble and gap.
    pub uncut: N,
}

/// Bits that a further fragment takes: preamble, check sequence and gap.
pub const CUT: i128 = 8 * (8 + 4 + 12);

/// The shortest frame, with preamble and gap.
pub(crate) const SHORTEST: i128 = 8 * (64 + 20);

/// How much more what is sent of express frames takes of the line, where each of them cuts another frame.
pub(crate) fn a_cut_for_each() -> Rational {
    Rational::new(SHORTEST + CUT, SHORTEST)
}

impl Gates<Rational> {
    fn converted<N: Number>(&self) -> Gates<N> {
        Gates {
            cycle: N::of(&self.cycle),
            closed: self
                .closed
                .iter()
                .map(|one| Closed { length: N::of(&one.length), straddled: one.straddled })
                .collect(),
            guard: self.guard.as_ref().map(N::of),
            beside: self.beside.clone(),
        }
    }
}

/// The gates of a class.
#[derive(Clone, Debug)]
pub struct Gates<N> {
    /// The cycle, at least.
    pub cycle: N,
    /// Stretches of it in which the gate is closed.
    pub closed: Vec<Closed<N>>,
    /// No frame begins for so long before a gate closes; `None`: one begins that is through by then.
    pub guard: Option<N>,
    /// Classes at the port whose gates are open at some instant at which that of this class is.
    pub beside: BTreeSet<u8>,
}

/// A stretch in which a gate is closed.
#[derive(Clone, Debug)]
pub struct Closed<N> {
    /// At most so long.
    pub length: N,
    /// Whether a frame of another class may be on the wire when it ends.
    pub straddled: bool,
}

impl Rule<Rational> {
    pub(crate) fn converted<N: Number>(&self) -> Rule<N> {
        match self {
            Self::Shaped(slope) => Rule::Shaped(Slope {
                least: N::of(&slope.least),
                most: N::of(&slope.most),
                behind: slope.behind.as_ref().map(|behind| Behind {
                    gates: behind.gates.converted(),
                    open: Bucket { burst: N::of(&behind.open.burst), rate: N::of(&behind.open.rate) },
                }),
            }),
            Self::Gated(gates) => Rule::Gated(gates.converted()),
        }
    }
}

/// A share of a cycle that is closed, as a bucket of time; `None`: all of it.
pub(crate) fn in_any_time<N: Number>(whole: &N, cycle: &N) -> Option<Bucket<N>> {
    let rate = whole.over(cycle);
    let left = N::of(&Rational::ONE).minus(&rate);
    left.is_positive().then(|| Bucket { burst: whole.times(&left), rate })
}

impl<N: Number> Slope<N> {
    /// What the class has in the long run, at least.
    pub fn over_all_time(&self) -> N {
        let open = self.behind.as_ref().map(|behind| behind.gates.closed_alone().map(|(_, open)| open));
        match open {
            None => self.least.clone(),
            Some(open) => open.map_or_else(N::zero, |open| self.least.times(&open)),
        }
    }
}

impl<N: Number> Gates<N> {
    /// How long the gate is closed in any time, at most, and the share of the time that it is open.
    pub(crate) fn closed_alone(&self) -> Option<(Bucket<N>, N)> {
        let all = self.closed.iter().fold(N::zero(), |sum, one| sum.plus(&one.length));
        let closed = in_any_time(&all, &self.cycle)?;
        let open = N::of(&Rational::ONE).minus(&closed.rate);
        Some((closed, open))
    }
}
