//! Slots for frames, and the result of a flush.

/// Result of a flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushed {
    /// Number of frames that the kernel took.
    pub taken: usize,
    /// Number of frames that it refused, because a queue is full or a link is down. They are lost.
    pub refused: usize,
}

/// Length of a slot in bytes.
pub const SLOT_LEN: usize = 2048;

/// A slot for the next frame.
#[derive(Debug)]
pub struct Slot<'a> {
    /// Its bytes, with the content of the earlier frame.
    pub bytes: &'a mut [u8],
    /// A number that the user may store in it, 0 at first: which template it holds.
    pub template: &'a mut u32,
}
