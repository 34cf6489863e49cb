//! Where a frame is laid, and what became of those that were handed over.

/// What became of the frames of one flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushed {
    /// The kernel took.
    pub taken: usize,
    /// It refused: a full queue, or a link that is down. They are gone.
    pub refused: usize,
}

/// Bytes of a slot.
pub const SLOT_LEN: usize = 2048;

/// A place for the next frame.
#[derive(Debug)]
pub struct Slot<'a> {
    /// Its bytes; what an earlier frame left in them is still there.
    pub bytes: &'a mut [u8],
    /// A number its user may leave in it, 0 at first: which template it holds.
    pub template: &'a mut u32,
}
