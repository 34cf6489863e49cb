//! What of a schedule is still open.

/// Which windows of time-triggered flows have to go together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// All: the test is to be run.
    #[default]
    Done,
    /// Those of flows that say when they are sent: the others are still to be scheduled, and say so by naming neither an
    /// offset nor a window.
    Open,
    /// None: whoever asks judges them.
    Unjudged,
}
