//! What the network did once more, in virtual time: the same frames come at the same instants.
//!
//! The network decides at instants of its model, never at those at which it got round to deciding, and what it draws it draws by the
//! seed of the run. So with the same frames at the same instants it has to do the same; where it does not, time
//! has leaked into it, or its records are not what it did.

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

/// Frames between two looks at whether to go on.
const LOOK: usize = 4_096;

/// What the network did once more.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// What it handed out, as the rows that tell of it. Nothing is late.
    pub left: Vec<Crossing>,
    /// How it ended.
    pub report: SimReport,
    /// Up to when.
    pub until: RunTime,
    /// The crossings have their end: nothing is missing from them.
    pub is_whole: bool,
}

/// Plays everything in `network` but the hosts once more, whose frames came as `crossings` say; its records go to `sink`. A run
/// that captures has captures of frames whose bytes are zeros: nothing is known of them any more.
///
/// # Errors
/// As [`carry`].
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

/// Hosts whose frames are known.
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
