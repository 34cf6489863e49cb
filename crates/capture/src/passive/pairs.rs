//! Frames of a content that each capture has exactly once: seen on both sides, whatever their times say.

/// The two frames of such a content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// Index of the frame on each side, in the order of the file.
    pub(super) at: [u32; 2],
    /// Time on each side by its own clock, ps after that side's first frame.
    pub(super) times: [i64; 2],
    /// Index of its flow.
    pub(super) flow: u32,
    /// Index into the classes: frames of a flow of similar size.
    pub(super) class: u32,
}

/// Frames of a flow of similar size.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Class {
    /// Whether it goes from the first to the second of its two stations, in an order that both directions share.
    pub(super) is_forth: Option<bool>,
}

impl Pair {
    /// Time behind less time before.
    pub(super) fn apart(&self) -> i64 {
        self.times[1].saturating_sub(self.times[0])
    }
}

/// The middle of some values, the upper one of two; 0 of none.
pub(super) fn median(values: &mut [i64]) -> i64 {
    if values.is_empty() {
        return 0;
    }
    let middle = values.len() / 2;
    *values.select_nth_unstable(middle).1
}
