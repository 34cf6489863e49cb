//! Where the records of a simulation go.

use std::path::Path;

use wg_frame::time::RunTime;
use wg_plan::{Network, Run};
use wg_record::Record;
use wg_record::segment::{SegmentInfo, SegmentWriter};

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

/// Records gathered before they are handed to a segment: enough to hand them over in one go, few enough for many nodes
/// to stay in cache.
const CHUNK: usize = 128;

/// Segments in one directory per node, `spool/<node name>/NNNNNN.arrows`, as the agents write them.
///
/// Memory: one batch of records per node, whatever the length of the run.
pub struct Spool {
    nodes: Vec<(Vec<Record>, SegmentWriter)>,
    failed: Option<SimError>,
}

impl Spool {
    /// Begins a segment for every node of the network, switches included. The epoch is 1970: simulated time has no other.
    ///
    /// # Errors
    /// [`SimError::Record`] when a directory or file cannot be made.
    pub fn create(spool: &Path, network: &Network, run: &Run) -> Result<Self, SimError> {
        let mut nodes = Vec::with_capacity(network.nodes.len());
        for (index, node) in (0..).zip(&network.nodes) {
            let info = SegmentInfo {
                end_system: node.name.clone(),
                node: index,
                run_index: run.index,
                epoch_realtime_ns: 0,
            };
            let writer = SegmentWriter::create(&spool.join(&node.name), info)?;
            nodes.push((Vec::with_capacity(CHUNK), writer));
        }
        Ok(Self { nodes, failed: None })
    }

    /// Ends every segment. Returns the number of records of each node.
    ///
    /// # Errors
    /// [`SimError::Record`] when the disk refuses.
    pub fn finish(mut self) -> Result<Vec<u64>, SimError> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        let mut written = Vec::with_capacity(self.nodes.len());
        for (chunk, mut writer) in self.nodes {
            writer.write(&chunk)?;
            written.push(writer.finish()?);
        }
        Ok(written)
    }
}

impl Sink for Spool {
    #[inline]
    fn record(&mut self, record: &Record) {
        let Some((chunk, writer)) = self.nodes.get_mut(usize::from(record.node)) else { return };
        chunk.push(*record);
        if chunk.len() == CHUNK {
            if let Err(error) = writer.write(chunk) {
                self.failed.get_or_insert(error.into());
            }
            chunk.clear();
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
