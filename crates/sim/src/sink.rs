//! Where the records of a simulation go.

use std::path::Path;

use wg_frame::time::RunTime;
use wg_plan::Run;
use wg_record::Record;
use wg_record::segment::{ALL_NODES, SegmentInfo, SegmentWriter};

use crate::error::SimError;

/// Takes the records as they are made: by time at each observation point, and nearly so altogether.
pub trait Sink {
    /// One record. What goes wrong with it is told by [`advance`](Self::advance).
    fn record(&mut self, record: &Record);

    /// The simulation has come to `now` and will end at `end`. Called every few thousand events and once at the end.
    ///
    /// # Errors
    /// Whatever must end the simulation.
    fn advance(&mut self, now: RunTime, end: RunTime) -> Result<(), SimError>;
}

/// One series of segments for all nodes, `spool/simulator/NNNNNN.arrows`.
///
/// One for all, not one per node as agents write them: the batch being filled then stays in cache, however many
/// nodes there are. Memory: one batch, whatever the length of the run.
pub struct Spool {
    writer: SegmentWriter,
    failed: Option<SimError>,
}

impl Spool {
    /// Begins the segments. The epoch is 1970: simulated time has no other.
    ///
    /// # Errors
    /// [`SimError::Record`] when a directory or file cannot be made.
    pub fn create(spool: &Path, run: &Run) -> Result<Self, SimError> {
        let info = SegmentInfo {
            end_system: "simulator".to_owned(),
            node: ALL_NODES,
            run_index: run.index,
            epoch_realtime_ns: 0,
        };
        let writer = SegmentWriter::create(&spool.join("simulator"), info)?;
        Ok(Self { writer, failed: None })
    }

    /// Ends the segments. Returns the number of records in them.
    ///
    /// # Errors
    /// [`SimError::Record`] when the disk refuses.
    pub fn finish(mut self) -> Result<u64, SimError> {
        match self.failed.take() {
            Some(failed) => Err(failed),
            None => Ok(self.writer.finish()?),
        }
    }
}

impl Sink for Spool {
    #[inline]
    fn record(&mut self, record: &Record) {
        if let Err(error) = self.writer.push(*record) {
            self.failed.get_or_insert(error.into());
        }
    }

    fn advance(&mut self, _now: RunTime, _end: RunTime) -> Result<(), SimError> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

/// Keeps records in memory, for tests and small runs.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// The records in the order they were made.
    pub records: Vec<Record>,
}

impl Sink for Kept {
    fn record(&mut self, record: &Record) {
        self.records.push(*record);
    }

    fn advance(&mut self, _now: RunTime, _end: RunTime) -> Result<(), SimError> {
        Ok(())
    }
}

/// Another sink that is also watched: the closure learns how far the simulation is and may end it.
pub struct Watched<S, F> {
    /// Where the records go.
    pub sink: S,
    /// Gets the share of simulated time that is done, 0 to 1; false ends the simulation.
    pub watch: F,
}

impl<S: Sink, F: FnMut(f64) -> bool> Sink for Watched<S, F> {
    #[inline]
    fn record(&mut self, record: &Record) {
        self.sink.record(record);
    }

    fn advance(&mut self, now: RunTime, end: RunTime) -> Result<(), SimError> {
        self.sink.advance(now, end)?;
        let share = now.as_picos() as f64 / end.as_picos().max(1) as f64;
        if (self.watch)(share.clamp(0.0, 1.0)) { Ok(()) } else { Err(SimError::Stopped) }
    }
}
