//! Sinks: destinations of a simulation's records.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use wg_capture::CaptureFile;
use wg_core::frame::Frame;
use wg_frame::time::RunTime;
use wg_plan::{Network, NodeIndex, Run};
use wg_record::segment::{ALL_NODES, GroupWriter, SegmentInfo, SegmentWriter};
use wg_record::{Record, RecordError, TableWriter, Truth};

use crate::error::SimError;
use crate::live::Outgoing;
use crate::order::order;

/// Takes the records as they are made: in order of time at each observation point, and nearly so over all of them.
pub trait Sink {
    /// Whether frames have bytes, stored at places that handles name: see [`live`](crate::live). Only such a sink needs
    /// the methods about places.
    const KEEPS_BYTES: bool = false;

    /// Takes one record. An error is returned by the next [`advance`](Self::advance).
    fn record(&mut self, record: &Record);

    /// The next records are of events at `instant`; no others of those before will come.
    #[inline(always)]
    fn begin_instant(&mut self, _instant: RunTime) {}

    /// The records since [`begin_instant`](Self::begin_instant) may not be in their order: by time, node, port, point and
    /// reason. A sink to which it matters sorts them.
    fn sort_instant(&mut self) {}

    /// Whether records have the time of their nodes' clocks, as those of agents do; otherwise true time.
    fn is_shown_time(&self) -> bool {
        true
    }

    /// Takes an entry of the truth. Ignored by default.
    fn truth(&mut self, _truth: &Truth) {}

    /// The next blocks of a node's capture, in pcapng format: a frame with the instant at which it was seen, or others.
    fn captured(&mut self, _node: NodeIndex, _blocks: &[u8], _frame_at: Option<RunTime>) {}

    /// Whether captures contain every frame.
    fn keeps_captures_whole(&self) -> bool {
        true
    }

    /// Reading of the host's clock at the start of the run, ns since 1970, for capture timestamps. In virtual time
    /// there is no such clock.
    fn origin_ns(&self) -> i64 {
        0
    }

    /// Number of the message whose bytes are at a place.
    #[inline(always)]
    fn sequence(&self, place: u32) -> u32 {
        place
    }

    /// Stores the bytes of a frame that the network itself makes, with the number of its message; returns the place, or
    /// `None` without room.
    fn keep(&mut self, _bytes: &[u8], _sequence: u32) -> Option<u32> {
        None
    }

    /// Adds `more` copies of the frame at a place.
    #[inline(always)]
    fn retain(&mut self, _place: u32, _more: u32) {}

    /// Ends a copy of the frame at a place.
    #[inline(always)]
    fn release(&mut self, _place: u32) {}

    /// A card hands a frame to its host.
    fn deliver(&mut self, _outgoing: &Outgoing<'_>) {}

    /// The bytes of a frame on the line, FCS excluded.
    fn on_line(&self, _place: u32, _frame: &Frame) -> Vec<u8> {
        Vec::new()
    }

    /// The simulation has reached `now` and will end at `end`. Called every few thousand events and once at the end.
    ///
    /// # Errors
    /// Any error that must end the simulation.
    fn advance(&mut self, now: RunTime, end: RunTime) -> Result<(), SimError>;
}

/// Whose records the segments of a simulation are, and their folder.
const SIMULATOR: &str = "simulator";

/// Writes one series of segments for all nodes, `spool/simulator/NNNNNN.arrows`; the truth in `spool/truth.arrows`; the
/// captures of the run in `spool/captures/<node name>.pcapng`.
///
/// One series for all nodes, unlike the agents' one per node: the batch being filled then stays in cache, however many
/// nodes there are. Memory: one batch, whatever the length of the run.
pub struct Spool {
    writer: GroupWriter,
    truth: TableWriter<Truth>,
    captures: BTreeMap<NodeIndex, CaptureFile>,
    failed: Option<SimError>,
}

impl Spool {
    /// Begins the segments. The epoch is 1970: simulated time has no other.
    ///
    /// # Errors
    /// [`SimError::Record`] when a directory or file cannot be made.
    pub fn create(spool: &Path, network: &Network, run: &Run) -> Result<Self, SimError> {
        let info = SegmentInfo {
            end_system: SIMULATOR.to_owned(),
            node: ALL_NODES,
            run_index: run.index,
            epoch_realtime_ns: 0,
        };
        let writer = GroupWriter::new(SegmentWriter::create(&spool.join(SIMULATOR), info)?);
        let truth = TableWriter::create(spool, run.index)?;
        let mut captures = BTreeMap::new();
        for capture in &run.captures {
            let Some(node) = network.nodes.get(usize::from(capture.on)) else { continue };
            let folder = spool.join("captures");
            fs::create_dir_all(&folder).map_err(|error| unwritten(&folder, error))?;
            let path = folder.join(format!("{}.pcapng", node.name));
            let file = CaptureFile::create(&path).map_err(|error| unwritten(&path, error))?;
            captures.insert(capture.on, file);
        }
        Ok(Self { writer, truth, captures, failed: None })
    }

    /// Begins again in the same place, without what was written so far.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn begin_again(&mut self, spool: &Path, network: &Network, run: &Run) -> Result<(), SimError> {
        let folder = spool.join(SIMULATOR);
        fs::remove_dir_all(&folder).map_err(|error| unwritten(&folder, error))?;
        *self = Self::create(spool, network, run)?;
        Ok(())
    }

    /// Ends the segments. Returns the number of records in them.
    ///
    /// # Errors
    /// [`SimError::Record`] when writing fails.
    pub fn finish(mut self) -> Result<u64, SimError> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        for mut file in self.captures.into_values() {
            file.flush();
            let path = file.path().to_owned();
            if let Some(error) = file.into_error() {
                return Err(unwritten(&path, error).into());
            }
        }
        self.truth.finish()?;
        Ok(self.writer.finish()?)
    }
}

impl Spool {
    #[cold]
    fn fail(&mut self, error: RecordError) {
        self.failed.get_or_insert(error.into());
    }
}

impl Sink for Spool {
    #[inline(always)]
    fn record(&mut self, record: &Record) {
        self.writer.push(record);
    }

    #[inline(always)]
    fn begin_instant(&mut self, _instant: RunTime) {
        if let Err(error) = self.writer.begin() {
            self.fail(error);
        }
    }

    fn sort_instant(&mut self) {
        if let Err(error) = self.writer.sort(order) {
            self.fail(error);
        }
    }

    fn truth(&mut self, truth: &Truth) {
        if let Err(error) = self.truth.push(*truth) {
            self.fail(error);
        }
    }

    fn captured(&mut self, node: NodeIndex, blocks: &[u8], frame_at: Option<RunTime>) {
        let Some(file) = self.captures.get_mut(&node) else { return };
        let put = |out: &mut Vec<u8>| out.extend_from_slice(blocks);
        if frame_at.is_some() { file.frame(put) } else { file.other(put) }
    }

    fn advance(&mut self, _now: RunTime, _end: RunTime) -> Result<(), SimError> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

fn unwritten(path: &Path, source: io::Error) -> RecordError {
    RecordError::Write { path: path.to_owned(), source, records_lost: 0 }
}

/// Keeps records in memory, for tests and small runs.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// The records in the order they were made.
    pub records: Vec<Record>,
    /// Entries of the truth.
    pub truth: Vec<Truth>,
    /// Captures by node.
    pub captures: BTreeMap<NodeIndex, Vec<u8>>,
    /// Number of records before this instant.
    before: usize,
}

impl Sink for Kept {
    fn record(&mut self, record: &Record) {
        self.records.push(*record);
    }

    fn begin_instant(&mut self, _instant: RunTime) {
        self.before = self.records.len();
    }

    fn sort_instant(&mut self) {
        self.records[self.before..].sort_by_key(order);
    }

    fn truth(&mut self, truth: &Truth) {
        self.truth.push(*truth);
    }

    fn captured(&mut self, node: NodeIndex, blocks: &[u8], _frame_at: Option<RunTime>) {
        self.captures.entry(node).or_default().extend(blocks);
    }

    fn advance(&mut self, _now: RunTime, _end: RunTime) -> Result<(), SimError> {
        Ok(())
    }
}

/// Wraps a sink to report progress: the closure may end the simulation.
pub struct Watched<S, F> {
    /// The wrapped sink.
    pub sink: S,
    /// Called with the share of simulated time that is done, 0 to 1; false ends the simulation.
    pub watch: F,
}

impl<S: Sink, F: FnMut(f64) -> bool> Sink for Watched<S, F> {
    #[inline(always)]
    fn record(&mut self, record: &Record) {
        self.sink.record(record);
    }

    #[inline(always)]
    fn begin_instant(&mut self, instant: RunTime) {
        self.sink.begin_instant(instant);
    }

    fn sort_instant(&mut self) {
        self.sink.sort_instant();
    }

    fn truth(&mut self, truth: &Truth) {
        self.sink.truth(truth);
    }

    fn captured(&mut self, node: NodeIndex, blocks: &[u8], frame_at: Option<RunTime>) {
        self.sink.captured(node, blocks, frame_at);
    }

    fn advance(&mut self, now: RunTime, end: RunTime) -> Result<(), SimError> {
        self.sink.advance(now, end)?;
        let share = now.as_picos() as f64 / end.as_picos().max(1) as f64;
        if (self.watch)(share.clamp(0.0, 1.0)) { Ok(()) } else { Err(SimError::Stopped) }
    }
}
