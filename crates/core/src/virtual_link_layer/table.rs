//! A table of entries by identifier.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::VirtualLinkLayerError;

/// Entries in ascending order of identifier. A look-up reads one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Table<T> {
    /// The identifiers where there are at most [`FEW`], as at nearly every end system; unused elements are `u16::MAX`.
    few: [u16; FEW],
    many: Box<[u16]>,
    pub(super) all: Box<[T]>,
}

const _: () = assert!(core::mem::size_of::<Table<u8>>() == 64, "one line of cache");

/// Number of identifiers compared at once, without branches.
const FEW: usize = 16;

impl<T> Table<T> {
    pub(super) fn new(
        entries: impl Iterator<Item = Result<(u16, T), VirtualLinkLayerError>>,
    ) -> Result<Self, VirtualLinkLayerError> {
        let (many, all): (Vec<u16>, Vec<T>) = entries.collect::<Result<_, _>>()?;
        let few = core::array::from_fn(|at| many.get(at).copied().unwrap_or(u16::MAX));
        Ok(Self { few, many: many.into(), all: all.into() })
    }

    #[inline]
    pub(super) fn place(&self, id: u16) -> Option<usize> {
        if self.all.len() > FEW {
            return self.many.binary_search(&id).ok();
        }
        let below: u16 = self.few.iter().map(|other| u16::from(*other < id)).sum();
        let at = usize::from(below);
        (at < self.all.len() && self.few[at % FEW] == id).then_some(at)
    }
}
