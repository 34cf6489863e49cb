//! What is behind the cards.

use wg_core::Deadline;
use wg_frame::time::RunTime;

use super::frames::Incoming;
use crate::sink::Sink;

/// What is behind the cards: hosts, and the bytes of their frames.
pub trait Outside: Sink {
    /// Waits until `due` or until frames have come, whichever is first. Returns the instant up to which every frame is known that
    /// comes: the model goes on to there. `None`: it is over.
    fn wait(&mut self, due: Deadline) -> Option<RunTime>;

    /// The next of the frames that have come, in the order of their instants.
    fn next_incoming(&mut self) -> Option<Incoming>;

    /// A frame that came was handed to its card at `at`, which is later than it came where the model had gone on before
    /// it was known.
    fn entered(&mut self, incoming: &Incoming, at: RunTime);
}
