//! Rate-constrained traffic: ARINC Specification 664 part 7 (AFDX).
//!
//! The standard's text is not free. Where a rule below rests on public secondary sources, the item names them;
//! the terms (virtual link, BAG, Lmax, SkewMax, PSN) are the standard's own.
//!
//! On the way of a frame: [`regulator`] spaces it at the sending end system and [`integrity`] numbers it; every
//! switch [`filter`]s it and [`policing`] judges it against its contract; the receiving end system checks its
//! integrity per network and removes the second copy ([`redundancy`]).

pub mod filter;
pub mod integrity;
pub mod policing;
pub mod redundancy;
pub mod regulator;

pub use wg_frame::arinc664::VirtualLinkId;
use wg_frame::ethernet::MIN_FRAME_LEN;
use wg_frame::time::Span;

/// Longest frame of a virtual link, DA to FCS, in bytes (AIM "AFDX / ARINC 664 Tutorial", figure 7).
pub const MAX_FRAME_LEN: usize = 1518;
/// Shortest frame, DA to FCS, in bytes (the same figure).
pub const SHORTEST_FRAME_LEN: usize = MIN_FRAME_LEN;

/// Bandwidth allocation gap: 2^k ms with k from 0 to 7 (AIM reference manual; the step and range of the
/// standard).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Span", into = "Span")
)]
pub struct Bag(u8);

impl TryFrom<Span> for Bag {
    type Error = ContractError;
    fn try_from(span: Span) -> Result<Self, ContractError> {
        Self::new(span)
    }
}

impl From<Bag> for Span {
    fn from(bag: Bag) -> Self {
        bag.span()
    }
}

impl Bag {
    /// All gaps, shortest first.
    pub const ALL: [Self; 8] = [Self(0), Self(1), Self(2), Self(3), Self(4), Self(5), Self(6), Self(7)];

    /// The gap of `span`.
    ///
    /// # Errors
    /// The plan's fault: `span` is not one of 1, 2, 4, … 128 ms.
    pub fn new(span: Span) -> Result<Self, ContractError> {
        Self::ALL.into_iter().find(|bag| bag.span() == span).ok_or(ContractError::Bag(span))
    }
    /// The gap in time.
    pub const fn span(self) -> Span {
        Span::from_millis(1 << self.0)
    }
}

/// Contract of a virtual link: one frame of at most `lmax` bytes in every BAG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Terms", into = "Terms")
)]
pub struct Contract {
    bag: Bag,
    lmax: u16,
}

/// A contract as it is written in a file, before its values are checked.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct Terms {
    bag: Bag,
    lmax: u16,
}

#[cfg(feature = "serde")]
impl TryFrom<Terms> for Contract {
    type Error = ContractError;
    fn try_from(Terms { bag, lmax }: Terms) -> Result<Self, ContractError> {
        Self::new(bag, lmax)
    }
}

#[cfg(feature = "serde")]
impl From<Contract> for Terms {
    fn from(Contract { bag, lmax }: Contract) -> Self {
        Self { bag, lmax }
    }
}

impl Contract {
    /// A contract of frames of at most `lmax` bytes, DA to FCS.
    ///
    /// # Errors
    /// The plan's fault: `lmax` is outside 64 to 1518 bytes.
    pub const fn new(bag: Bag, lmax: u16) -> Result<Self, ContractError> {
        if (lmax as usize) < SHORTEST_FRAME_LEN || (lmax as usize) > MAX_FRAME_LEN {
            return Err(ContractError::Lmax(lmax));
        }
        Ok(Self { bag, lmax })
    }
    /// The bandwidth allocation gap.
    pub const fn bag(self) -> Bag {
        self.bag
    }
    /// The longest frame, DA to FCS, in bytes.
    pub const fn lmax(self) -> u16 {
        self.lmax
    }
}

/// A virtual link's parameters make no contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContractError {
    /// A gap that is not a power of two of milliseconds.
    #[error(
        "BAG {0} is not one of 1ms, 2ms, 4ms, 8ms, 16ms, 32ms, 64ms and 128ms; choose the next shorter of them"
    )]
    Bag(Span),
    /// A longest frame outside what Ethernet and the standard allow.
    #[error("Lmax {0}B is outside 64B to 1518B (DA to FCS); choose it within")]
    Lmax(u16),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_a_power_of_two_of_milliseconds() {
        for ms in 0..=300 {
            let is_one = ms > 0 && ms <= 128 && (ms & (ms - 1)) == 0;
            assert_eq!(Bag::new(Span::from_millis(ms)).is_ok(), is_one, "{ms} ms");
        }
        assert_eq!(Bag::new(Span::from_micros(500)), Err(ContractError::Bag(Span::from_micros(500))));
    }

    #[test]
    fn lmax_is_a_frame_length() {
        for (lmax, fine) in [(0, false), (63, false), (64, true), (1518, true), (1519, false)] {
            assert_eq!(Contract::new(Bag::ALL[0], lmax).is_ok(), fine);
        }
    }
}
