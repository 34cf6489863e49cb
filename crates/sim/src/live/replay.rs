//! Replay of a played network in virtual time: the same frames arrive at the same instants.
//!
//! The network decides at the instants of its model, never at those of the process, and draws by the seed of the run. So the same
//! frames at the same instants must have the same outcomes. If they do not, real time has leaked into the model, or the records
//! are wrong.

use std::collections::VecDeque;

use wg_core::Deadline;
use wg_core::frame::Frame;
use wg_frame::time::{RunTime, Span};
use wg_plan::{Network, Run};
use wg_record::{Crossing, CrossingKind, Record, Truth};

use super::buffers::Places;
use super::{Incoming, Outgoing, Outside, carry};
use crate::error::SimError;
use crate::report::SimReport;
use crate::sink::Sink;

/// Frames between two checks for a request to stop.
const LOOK: usize = 4_096;

/// Result of a replay.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// Rows of the frames that it handed out; none is late.
    pub left: Vec<Crossing>,
    /// Outcome of the simulation.
    pub report: SimReport,
    /// Instant at which it ended.
    pub until: RunTime,
    /// Whether the crossings are complete.
    pub is_whole: bool,
}

/// Plays `network` without its hosts again, with the arrivals of `crossings`; its records go to `sink`. Captures of such a
/// run have frames of zeros, because the bytes were not stored.
///
/// # Errors
/// Those of [`carry`].
pub fn replay<S: Sink>(
    network: &Network,
    run: &Run,
    crossings: &[Crossing],
    sink: &mut S,
) -> Result<Replayed, SimError> {
    let end = crossings.iter().rev().find(|row| row.kind == CrossingKind::Ended).map(|row| row.time);
    let until = end.or_else(|| crossings.last().map(|row| row.time)).unwrap_or(RunTime::ZERO);
    let entered = crossings.iter().filter(|row| row.kind == CrossingKind::Entered).copied();
    let mut stored = Stored {
        sink,
        places: Places::default(),
        to_come: entered.collect(),
        until,
        has_ended: false,
        left: Vec::new(),
        failed: None,
    };
    let report = carry(network, run, &mut stored);
    let Stored { left, failed, .. } = stored;
    failed.map_or(Ok(()), Err)?;
    Ok(Replayed { left, report: report?, until, is_whole: end.is_some() })
}

/// Hosts whose frames are read from crossings.
struct Stored<'a, S> {
    sink: &'a mut S,
    places: Places,
    to_come: VecDeque<Crossing>,
    until: RunTime,
    has_ended: bool,
    left: Vec<Crossing>,
    failed: Option<SimError>,
}

impl<S: Sink> Sink for Stored<'_, S> {
    const KEEPS_BYTES: bool = true;

    fn record(&mut self, record: &Record) {
        self.sink.record(record);
    }

    fn begin_instant(&mut self, instant: RunTime) {
        self.sink.begin_instant(instant);
    }

    fn is_shown_time(&self) -> bool {
        self.sink.is_shown_time()
    }

    fn truth(&mut self, truth: &Truth) {
        self.sink.truth(truth);
    }

    fn keep(&mut self, _bytes: &[u8], sequence: u32) -> Option<u32> {
        self.places.take_or_add(sequence)
    }

    fn sequence(&self, place: u32) -> u32 {
        self.places.sequence(place)
    }

    fn retain(&mut self, place: u32, more: u32) {
        self.places.retain(place, more);
    }

    fn release(&mut self, place: u32) {
        self.places.release(place);
    }

    fn deliver(&mut self, outgoing: &Outgoing<'_>) {
        let sequence = self.places.sequence(outgoing.place);
        self.left.push(outgoing.crossing(sequence, Span::ZERO, true));
    }

    fn on_line(&self, _place: u32, _frame: &Frame) -> Vec<u8> {
        Vec::new()
    }

    fn advance(&mut self, now: RunTime, end: RunTime) -> Result<(), SimError> {
        self.sink.advance(now, end)
    }
}

impl<S: Sink> Outside for Stored<'_, S> {
    fn wait(&mut self, due: Deadline) -> Option<RunTime> {
        if self.failed.is_some() {
            return None;
        }
        let next = self.to_come.front().map(|row| row.time);
        let due = due.instant().filter(|due| *due <= self.until);
        match (due, next) {
            (Some(due), Some(next)) => Some(due.min(next)),
            (Some(at), None) | (None, Some(at)) => Some(at),
            (None, None) if self.has_ended => None,
            (None, None) => {
                self.has_ended = true;
                Some(self.until)
            }
        }
    }

    fn next_incoming(&mut self) -> Option<Incoming> {
        if self.to_come.len().is_multiple_of(LOOK)
            && let Some(next) = self.to_come.front().map(|row| row.time)
        {
            self.failed = self.sink.advance(next, self.until).err();
        }
        if self.failed.is_some() {
            return None;
        }
        let row = self.to_come.pop_front()?;
        let place = self.places.take_or_add(row.sequence)?;
        Some(Incoming::again(&row, place))
    }

    fn entered(&mut self, incoming: &Incoming, at: RunTime) {
        debug_assert_eq!(incoming.at, at, "the network went on too far");
    }
}
