//! Time types in integer picoseconds.
//!
//! A byte lasts 80 000 ps at 100 Mbit/s, 8 000 ps at 1 Gbit/s and 320 ps at 25 Gbit/s: picoseconds make every
//! byte time of the supported rates exact, and an `i64` of them lasts 106 days, longer than any run. Absolute
//! (wall clock) time does not fit and is never stored per record: a run stores its [`Epoch`] once and every
//! [`RunTime`] counts from it.
//!
//! Overflow policy: arithmetic panics on overflow in every build profile, because a wrapped time would be a
//! wrong measurement. Conversions from the outside world are `checked_*` and return `None`.

use core::fmt;
use core::ops::{Add, AddAssign, Neg, Sub, SubAssign};

/// A signed length of time in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Span(i64);

/// An instant on the timescale of the run: picoseconds since the run's [`Epoch`].
///
/// Instants and spans are different types, so that adding two instants does not compile:
///
/// ```compile_fail
/// # use wg_frame::time::{RunTime, Span};
/// let later = RunTime::from_picos(1) + RunTime::from_picos(2);
/// ```
///
/// while the same with a span does:
///
/// ```
/// # use wg_frame::time::{RunTime, Span};
/// let later = RunTime::from_picos(1) + Span::from_picos(2);
/// assert_eq!(later - RunTime::from_picos(1), Span::from_picos(2));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct RunTime(i64);

/// Nanoseconds of a wall clock (`CLOCK_REALTIME`) since 1970; the only absolute time in the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct WallNanos(i64);

/// Start of run time on the wall clock. Stored once per run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Epoch(WallNanos);

impl Span {
    /// A span of length zero.
    pub const ZERO: Self = Self(0);

    /// Whether its length is zero. Takes a reference, as `skip_serializing_if` of serde does.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// A span of `ps` picoseconds.
    pub const fn from_picos(ps: i64) -> Self {
        Self(ps)
    }
    /// A span of `ns` nanoseconds; panics beyond ±106 days.
    pub const fn from_nanos(ns: i64) -> Self {
        Self(mul(ns, 1_000))
    }
    /// A span of `us` microseconds; panics beyond ±106 days.
    pub const fn from_micros(us: i64) -> Self {
        Self(mul(us, 1_000_000))
    }
    /// A span of `ms` milliseconds; panics beyond ±106 days.
    pub const fn from_millis(ms: i64) -> Self {
        Self(mul(ms, 1_000_000_000))
    }
    /// Transmission time of `bits` on a line of `rate` bit/s, rounded up to a picosecond; `None` for a zero rate or a
    /// result beyond 106 days.
    #[expect(clippy::cast_possible_truncation, reason = "looked at before")]
    pub const fn of_bits(bits: u64, rate: u64) -> Option<Self> {
        if rate == 0 {
            return None;
        }
        let ps = (bits as u128 * 1_000_000_000_000).div_ceil(rate as u128);
        if ps > i64::MAX as u128 { None } else { Some(Self(ps as i64)) }
    }
    /// The span in picoseconds.
    pub const fn as_picos(self) -> i64 {
        self.0
    }
    /// The span in whole nanoseconds, rounded towards negative infinity.
    pub const fn as_nanos_floor(self) -> i64 {
        self.0.div_euclid(1_000)
    }
    /// `self * n`, or `None` on overflow.
    pub const fn checked_mul(self, n: i64) -> Option<Self> {
        match self.0.checked_mul(n) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }
    /// `self + other`, or `None` on overflow.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }
}

impl RunTime {
    /// The run's epoch.
    pub const ZERO: Self = Self(0);
    /// The instant `ps` picoseconds after the epoch.
    pub const fn from_picos(ps: i64) -> Self {
        Self(ps)
    }
    /// Picoseconds since the epoch.
    pub const fn as_picos(self) -> i64 {
        self.0
    }
}

impl WallNanos {
    /// `ns` nanoseconds since 1970.
    pub const fn new(ns: i64) -> Self {
        Self(ns)
    }
    /// Nanoseconds since 1970.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl Epoch {
    /// An epoch at `wall`.
    pub const fn new(wall: WallNanos) -> Self {
        Self(wall)
    }
    /// The epoch on the wall clock.
    pub const fn wall(self) -> WallNanos {
        self.0
    }
    /// A wall clock reading on the run's timescale; `None` when it lies more than 106 days from the epoch.
    pub const fn run_time(self, wall: WallNanos) -> Option<RunTime> {
        match wall.0.checked_sub(self.0.0) {
            Some(ns) => match ns.checked_mul(1_000) {
                Some(ps) => Some(RunTime(ps)),
                None => None,
            },
            None => None,
        }
    }
    /// The wall clock reading at `time`, rounded down to a nanosecond.
    pub const fn wall_nanos(self, time: RunTime) -> WallNanos {
        WallNanos(self.0.0 + time.0.div_euclid(1_000))
    }
}

const fn mul(value: i64, by: i64) -> i64 {
    match value.checked_mul(by) {
        Some(v) => v,
        None => panic!("time overflow: a span is at most 106 days"),
    }
}

#[inline]
fn add(a: i64, b: i64) -> i64 {
    a.checked_add(b).expect("time overflow: a run is at most 106 days")
}

#[inline]
fn sub(a: i64, b: i64) -> i64 {
    a.checked_sub(b).expect("time overflow: a run is at most 106 days")
}

impl Add for Span {
    type Output = Self;
    #[inline]
    fn add(self, rhs: Self) -> Self {
        Self(add(self.0, rhs.0))
    }
}
impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}
impl Sub for Span {
    type Output = Self;
    #[inline]
    fn sub(self, rhs: Self) -> Self {
        Self(sub(self.0, rhs.0))
    }
}
impl SubAssign for Span {
    #[inline]
    fn sub_assign(&mut self, rhs: Self) {
        *self = *self - rhs;
    }
}
impl Neg for Span {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self(sub(0, self.0))
    }
}
impl Add<Span> for RunTime {
    type Output = Self;
    #[inline]
    fn add(self, rhs: Span) -> Self {
        Self(add(self.0, rhs.0))
    }
}
impl Sub<Span> for RunTime {
    type Output = Self;
    #[inline]
    fn sub(self, rhs: Span) -> Self {
        Self(sub(self.0, rhs.0))
    }
}
impl Sub for RunTime {
    type Output = Span;
    #[inline]
    fn sub(self, rhs: Self) -> Span {
        Span(sub(self.0, rhs.0))
    }
}

impl fmt::Display for Span {
    /// The largest unit that shows the span without a remainder, as the test language writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (size, unit) in
            [(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns")]
        {
            if self.0 != 0 && self.0 % size == 0 {
                return write!(f, "{}{unit}", self.0 / size);
            }
        }
        write!(f, "{}ps", self.0)
    }
}
