//! What there is for each identifier.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::VirtualLinkLayerError;

/// What there is for each identifier, ascending. To find it, one line of cache is looked at.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Table<T> {
    /// The identifiers where they are few, as at nearly every end system; then free places, of the greatest number.
    few: [u16; FEW],
    many: Box<[u16]>,
    pub(super) all: Box<[T]>,
}

const _: () = assert!(core::mem::size_of::<Table<u8>>() == 64, "one line of cache");

/// So many identifiers are compared at once, without a branch to be guessed.
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
