//! Rules of traffic classes at a port: the slope of a credit-based shaper, gates, fragments.

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
    /// Cyclic queuing, with another class or alone.
    Cyclic(Cycles<N>),
}

/// Cycles of cyclic queues.
#[derive(Clone, Debug)]
pub struct Cycles<N> {
    /// Greatest length of a cycle.
    pub most: N,
    /// Least length.
    pub least: N,
    /// Time at the end of a cycle in which no frame begins.
    pub guard: N,
    /// Nominal length, ps.
    pub picos: i128,
    /// Beginning of a cycle in true time, but for deviations of the clock, ps.
    pub base: i128,
    /// Greatest deviation of the beginning of any cycle of a run, ps.
    pub deviation: i128,
}

/// Idle slope of a credit-based shaper by the port's own clock; in true time it lies between these.
#[derive(Clone, Debug)]
pub struct Slope<N> {
    /// Least slope; while its gate is open, if it has one.
    pub least: N,
    /// Greatest slope.
    pub most: N,
    /// Gate in front of it, if the port has gates.
    pub behind: Option<Behind<N>>,
}

/// The gate in front of a shaper.
#[derive(Clone, Debug)]
pub struct Behind<N> {
    /// Closed times of the gate.
    pub gates: Gates<N>,
    /// Greatest open time in any time: a bucket of time.
    pub open: Bucket<N>,
}

/// Frames that are sent in fragments.
#[derive(Clone, Debug)]
pub struct Fragments<N> {
    /// Preemptable classes.
    pub classes: BTreeSet<u8>,
    /// Greatest uncuttable part of a frame, with preamble and gap.
    pub uncut: N,
}

/// Bits of a further fragment: preamble, check sequence and gap.
pub const CUT: i128 = 8 * (8 + 4 + 12);

/// Bits of the gap behind a frame.
pub(crate) const GAP: i128 = 8 * 12;

/// Bits of the shortest frame, with preamble and gap.
pub(crate) const SHORTEST: i128 = 8 * (64 + 20);

/// Factor by which express traffic costs more line time if each of its frames cuts another.
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
    /// Least cycle time.
    pub cycle: N,
    /// Intervals of the cycle in which the gate is closed.
    pub closed: Vec<Closed<N>>,
    /// Guard band before a closing in which no frame begins; `None`: a frame begins if it ends in time.
    pub guard: Option<N>,
    /// Classes at the port whose gates are open at some instant together with that of this class.
    pub beside: BTreeSet<u8>,
}

/// An interval in which a gate is closed.
#[derive(Clone, Debug)]
pub struct Closed<N> {
    /// Greatest length.
    pub length: N,
    /// Whether a frame of another class may be on the wire at its end.
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
            Self::Cyclic(cycles) => Rule::Cyclic(Cycles {
                most: N::of(&cycles.most),
                least: N::of(&cycles.least),
                guard: N::of(&cycles.guard),
                picos: cycles.picos,
                base: cycles.base,
                deviation: cycles.deviation,
            }),
        }
    }

    /// Whether it may hold frames back while the line is free, other than by closed times that all may share.
    pub(crate) const fn holds_back(&self) -> bool {
        matches!(self, Self::Shaped(_) | Self::Cyclic(_))
    }
}

impl<N: Number> Cycles<N> {
    /// Greatest time from an arrival to the end of the next cycle.
    pub(crate) fn two(&self) -> N {
        self.most.plus(&self.most)
    }
}

/// A closed part of a cycle as a bucket of time; `None`: all of it.
pub(crate) fn in_any_time<N: Number>(whole: &N, cycle: &N) -> Option<Bucket<N>> {
    let rate = whole.over(cycle);
    let left = N::of(&Rational::ONE).minus(&rate);
    left.is_positive().then(|| Bucket { burst: whole.times(&left), rate })
}

impl<N: Number> Slope<N> {
    /// Least long-term rate of the class.
    pub fn over_all_time(&self) -> N {
        let open = self.behind.as_ref().map(|behind| behind.gates.closed_alone().map(|(_, open)| open));
        match open {
            None => self.least.clone(),
            Some(open) => open.map_or_else(N::zero, |open| self.least.times(&open)),
        }
    }
}

impl<N: Number> Gates<N> {
    /// Greatest closed time of the gate in any time, and its open share.
    pub(crate) fn closed_alone(&self) -> Option<(Bucket<N>, N)> {
        let all = self.closed.iter().fold(N::zero(), |sum, one| sum.plus(&one.length));
        let closed = in_any_time(&all, &self.cycle)?;
        let open = N::of(&Rational::ONE).minus(&closed.rate);
        Some((closed, open))
    }
}
