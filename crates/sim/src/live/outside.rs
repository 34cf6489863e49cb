//! The hosts behind the interface cards.

use wg_core::Deadline;
use wg_frame::time::RunTime;

use super::frames::Incoming;
use crate::sink::Sink;

/// The hosts behind the interface cards, and the bytes of their frames.
pub trait Outside: Sink {
    /// Waits until `due` or until frames arrive, whichever is first. Returns the instant until which all arrivals are known, to
    /// which the model may advance; `None` ends the run.
    fn wait(&mut self, due: Deadline) -> Option<RunTime>;

    /// The next frame that has arrived, in the order of their instants.
    fn next_incoming(&mut self) -> Option<Incoming>;

    /// Notes that an arrived frame was handed to its card at `at`: later than it arrived if the model had already advanced
    /// further.
    fn entered(&mut self, incoming: &Incoming, at: RunTime);
}
