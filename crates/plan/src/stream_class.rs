//! The classes of stream reservation (IEEE Std 802.1Q-2022, 34).

use wg_frame::time::Span;

/// A stream reservation class (IEEE Std 802.1Q-2022, 34.5 and Table 35-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StreamClass {
    /// Measured over 250 us, priority 2.
    B,
    /// Measured over 125 us, priority 3.
    A,
}

impl StreamClass {
    /// The VLAN of streams where nobody says another (`SR_PVID`).
    pub(crate) const VLAN: u16 = 2;

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }

    pub(crate) const fn priority(self) -> u8 {
        match self {
            Self::A => 3,
            Self::B => 2,
        }
    }

    pub(crate) const fn interval(self) -> Span {
        Span::from_micros(match self {
            Self::A => 125,
            Self::B => 250,
        })
    }

    pub(crate) const fn intervals_a_second(self) -> u64 {
        match self {
            Self::A => 8_000,
            Self::B => 4_000,
        }
    }
}

/// Share of a port that reserved streams have together where nobody says otherwise, ppm: `deltaBandwidth` of the highest class,
/// that of the other being 0 (34.3.1).
pub(crate) const USUAL_PPM: u32 = 750_000;
