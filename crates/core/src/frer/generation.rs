//! The sequence generation function (7.4.1).

/// Numbers the frames of a stream where its copies are made: 0, 1, … 65 535, 0, …
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceGenerator {
    next: u16,
}

impl SequenceGenerator {
    /// After a reset: the first number is zero (SequenceGenerationReset, 7.4.1.3).
    pub const fn new() -> Self {
        Self { next: 0 }
    }
    /// The number of the next frame, the same for all its copies: ask once (SequenceGenerationAlgorithm, 7.4.1.4).
    pub const fn next_number(&mut self) -> u16 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        number
    }
    /// The system restarts.
    pub const fn handle_reset(&mut self) {
        self.next = 0;
    }
}
