//! Frame filtering: what a switch's input port refuses before it looks at a contract.
//!
//! ARINC 664p7 has the switch's filtering function examine every incoming frame so that only valid ones are
//! forwarded (AIM "AFDX / ARINC 664 Tutorial", Frame Filtering). The checks run from the wire inwards, so that
//! the reason names the outermost damage: alignment, FCS, Ethernet length, constant field, virtual link at this
//! port, then the virtual link's own least and greatest length. The public sources name the checks but not
//! their order; the order decides only the reason, never the outcome.
//!
//! Road not taken: a filter that looks up the virtual link first would count a damaged address as a foreign
//! virtual link.

use alloc::vec::Vec;

use wg_frame::ethernet::MacAddress;

use super::{MAX_FRAME_LEN, SHORTEST_FRAME_LEN, VirtualLinkId};

/// Properties of a frame that the filter checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Destination address.
    pub destination: MacAddress,
    /// DA to FCS, in bytes.
    pub frame_len: usize,
    /// Whether the number of bits received was a multiple of eight.
    pub aligned: bool,
    /// Whether the frame check sequence was right.
    pub fcs_valid: bool,
}

/// A virtual link that may enter at this port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The virtual link.
    pub virtual_link: VirtualLinkId,
    /// Shortest frame, DA to FCS, in bytes.
    pub lmin: u16,
    /// Longest frame, DA to FCS, in bytes.
    pub lmax: u16,
}

/// Reason why a frame was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterDrop {
    /// The number of bits was no multiple of eight.
    Alignment,
    /// The frame check sequence was wrong.
    FrameCheck,
    /// Shorter than 64 B.
    Runt,
    /// Longer than 1518 B.
    Giant,
    /// The address does not begin with the constant field, so it names no virtual link.
    ConstantField,
    /// The virtual link may not enter here.
    UnknownVirtualLink(VirtualLinkId),
    /// Shorter than the virtual link's Lmin.
    BelowLmin {
        /// The virtual link.
        virtual_link: VirtualLinkId,
        /// The virtual link's Lmin, in bytes.
        lmin: u16,
    },
    /// Longer than the virtual link's Lmax.
    AboveLmax {
        /// The virtual link.
        virtual_link: VirtualLinkId,
        /// The virtual link's Lmax, in bytes.
        lmax: u16,
    },
}

/// A table that cannot be a filter: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// A virtual link with two entries.
    #[error("{0} is listed twice at one input port; list it once")]
    Twice(VirtualLinkId),
    /// Length bounds that no frame meets.
    #[error(
        "{virtual_link} allows {lmin}B to {lmax}B, which no frame of 64B to 1518B meets; widen the bounds"
    )]
    Bounds {
        /// The virtual link.
        virtual_link: VirtualLinkId,
        /// Lower bound, in bytes.
        lmin: u16,
        /// Upper bound, in bytes.
        lmax: u16,
    },
}

/// The filter of one input port. It has no state: the same frame meets the same answer at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFilter {
    /// Ascending by virtual link.
    entries: Vec<Entry>,
}

impl InputFilter {
    /// A filter that lets `entries` in.
    ///
    /// # Errors
    /// [`FilterError`] where a virtual link appears twice or its bounds leave no frame.
    pub fn new(mut entries: Vec<Entry>) -> Result<Self, FilterError> {
        entries.sort_by_key(|entry| entry.virtual_link);
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].virtual_link == pair[1].virtual_link) {
            return Err(FilterError::Twice(pair[0].virtual_link));
        }
        for &Entry { virtual_link, lmin, lmax } in &entries {
            if lmin > lmax || usize::from(lmax) < SHORTEST_FRAME_LEN || usize::from(lmin) > MAX_FRAME_LEN {
                return Err(FilterError::Bounds { virtual_link, lmin, lmax });
            }
        }
        Ok(Self { entries })
    }

    /// Whether the frame may pass, and as which virtual link's.
    ///
    /// # Errors
    /// The first reason against it, from the wire inwards.
    pub fn check(&self, frame: &Arrival) -> Result<VirtualLinkId, FilterDrop> {
        let virtual_link = frame.virtual_link()?;
        let at = self.entries.binary_search_by_key(&virtual_link, |entry| entry.virtual_link);
        let at = at.map_err(|_| FilterDrop::UnknownVirtualLink(virtual_link))?;
        self.entries[at].check(frame.frame_len)?;
        Ok(virtual_link)
    }
}

impl Arrival {
    /// The virtual link a sound frame names.
    ///
    /// [`FilterDrop`]: the reason that does not depend on the table.
    #[inline]
    pub fn virtual_link(&self) -> Result<VirtualLinkId, FilterDrop> {
        if !self.aligned {
            return Err(FilterDrop::Alignment);
        }
        if !self.fcs_valid {
            return Err(FilterDrop::FrameCheck);
        }
        if self.frame_len < SHORTEST_FRAME_LEN {
            return Err(FilterDrop::Runt);
        }
        if self.frame_len > MAX_FRAME_LEN {
            return Err(FilterDrop::Giant);
        }
        VirtualLinkId::from_destination(self.destination).ok_or(FilterDrop::ConstantField)
    }
}

impl Entry {
    /// Checks a frame's length in bytes, DA to FCS, against Lmin and Lmax.
    ///
    /// # Errors
    /// [`FilterDrop`]: the bound that the frame violates.
    #[inline]
    pub fn check(&self, frame_len: usize) -> Result<(), FilterDrop> {
        let Self { virtual_link, lmin, lmax } = *self;
        if frame_len < usize::from(lmin) {
            return Err(FilterDrop::BelowLmin { virtual_link, lmin });
        }
        if frame_len > usize::from(lmax) {
            return Err(FilterDrop::AboveLmax { virtual_link, lmax });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    fn good(virtual_link: u16, frame_len: usize) -> Arrival {
        let destination = VirtualLinkId(virtual_link).destination();
        Arrival { destination, frame_len, aligned: true, fcs_valid: true }
    }

    fn entry(virtual_link: u16, lmin: u16, lmax: u16) -> Entry {
        Entry { virtual_link: VirtualLinkId(virtual_link), lmin, lmax }
    }

    #[test]
    fn each_reason_is_given_for_its_own_damage() {
        let filter = InputFilter::new(vec![entry(9, 64, 1518), entry(7, 100, 200)]).unwrap();
        let id = VirtualLinkId(7);
        assert_eq!(filter.check(&good(7, 100)), Ok(id));
        assert_eq!(filter.check(&good(7, 200)), Ok(id));
        assert_eq!(filter.check(&good(7, 99)), Err(FilterDrop::BelowLmin { virtual_link: id, lmin: 100 }));
        assert_eq!(filter.check(&good(7, 201)), Err(FilterDrop::AboveLmax { virtual_link: id, lmax: 200 }));
        assert_eq!(filter.check(&good(8, 100)), Err(FilterDrop::UnknownVirtualLink(VirtualLinkId(8))));
        assert_eq!(filter.check(&good(9, 64)), Ok(VirtualLinkId(9)));
        assert_eq!(filter.check(&good(9, 1518)), Ok(VirtualLinkId(9)));
        assert_eq!(filter.check(&good(9, 63)), Err(FilterDrop::Runt));
        assert_eq!(filter.check(&good(9, 1519)), Err(FilterDrop::Giant));
        let mut foreign = good(7, 100);
        foreign.destination.0[0] = 1;
        assert_eq!(filter.check(&foreign), Err(FilterDrop::ConstantField));
        assert_eq!(filter.check(&Arrival { fcs_valid: false, ..foreign }), Err(FilterDrop::FrameCheck));
        let worst = Arrival { fcs_valid: false, aligned: false, ..foreign };
        assert_eq!(filter.check(&worst), Err(FilterDrop::Alignment));
    }

    #[test]
    fn a_table_that_cannot_work_is_refused() {
        let twice = vec![entry(3, 64, 100), entry(1, 64, 64), entry(3, 64, 200)];
        assert_eq!(InputFilter::new(twice), Err(FilterError::Twice(VirtualLinkId(3))));
        assert!(InputFilter::new(vec![entry(1, 0, 64), entry(2, 64, 64), entry(3, 1518, 9_000)]).is_ok());
        for (lmin, lmax) in [(200, 100), (0, 63), (1519, 2000)] {
            let bounds = FilterError::Bounds { virtual_link: VirtualLinkId(3), lmin, lmax };
            assert_eq!(InputFilter::new(vec![entry(3, lmin, lmax)]), Err(bounds));
        }
    }

    proptest! {
        /// The outcome, without the reason, is one sentence; the oracle is that sentence.
        #[test]
        fn a_frame_passes_exactly_if_every_check_holds(
            ids in prop::collection::btree_set(0_u16..8, 0..6),
            id in 0_u16..8,
            frame_len in prop_oneof![Just(0_usize), 60_usize..70, 90_usize..110, 1510_usize..1525],
            byte in 0_usize..6,
            mask in prop_oneof![4 => Just(0_u8), 1 => any::<u8>()],
            aligned in prop::bool::weighted(0.9),
            fcs_valid in prop::bool::weighted(0.9),
        ) {
            let entries = ids.iter().map(|&id| entry(id, 64 + id, 100 + 200 * id)).collect();
            let filter = InputFilter::new(entries).unwrap();
            let mut destination = VirtualLinkId(id).destination();
            destination.0[byte] ^= mask;
            let named = u16::from_be_bytes([destination.0[4], destination.0[5]]);
            let expected = aligned && fcs_valid && (64..=1518).contains(&frame_len)
                && destination.0[..4] == [3, 0, 0, 0] && ids.contains(&named)
                && frame_len >= 64 + usize::from(named) && frame_len <= 100 + 200 * usize::from(named);
            let outcome = filter.check(&Arrival { destination, frame_len, aligned, fcs_valid });
            prop_assert_eq!(outcome.is_ok(), expected);
            if let Ok(passed) = outcome {
                prop_assert_eq!(passed, VirtualLinkId(named));
            }
        }
    }
}
