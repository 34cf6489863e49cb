//! Entry points of log processing: from an agent's segments, or stored records, to judged messages.
//!
//! Memory does not grow with the run: records stream through in the order of time.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use wg_plan::{Network, Run};

use crate::parquet::{MessageWriter, PassageWriter, RecordFiles, RecordWriter, write_sketches};
use crate::pipeline::{Outcome, RowSink, cores, track_files, track_one_part, track_stream};
use crate::sorting::{Batch, MOST, Sortable, Sorter};
use crate::tracking::{ClockJump, Distributions, Measure, Message, Passage, RunSummary};
use wg_record::Gap;
use wg_record::RecordError;
use wg_record::segment::{Damage, SegmentInfo, SegmentReader};
use wg_record::{Clock, Point, Record, RecordFlags};

/// Output paths of a run's tables.
#[derive(Clone, Debug)]
pub struct Tables {
    /// Path of the messages table, one row per message.
    pub messages: PathBuf,
    /// Path of the passages table, one row per passage through a switch.
    pub passages: PathBuf,
    /// Path of the sketches table, the distributions of measures.
    pub sketches: PathBuf,
}

/// Reads the records of `run` from its segment files, stores them sorted in `records_out`, judges them and stores the
/// results in `tables`.
///
/// Segments in one directory belong to one agent, in the order in which it wrote them. A damaged segment does not fail
/// the run: its records up to the damage count, and the summary names it.
///
/// # Errors
/// [`RecordError::Read`] when a segment cannot be opened, [`RecordError::Write`] when an output cannot be written; an
/// output that exists after an error is complete.
pub fn process_run(
    network: &Network,
    run: &Run,
    segment_files: &[PathBuf],
    records_out: &Path,
    tables: &Tables,
) -> Result<RunSummary, RecordError> {
    let mut segments = Segments::open(run, segment_files)?;
    let store = RecordWriter::create(records_out, run.index)?;
    let mut writer = TableSet::create(tables, run.index)?;
    let (outcome, store) = track_stream(network, run, || segments.next_block(), store, &mut writer)?;
    store.finish()?;
    writer.finish(&outcome)?;
    let out_of_order = segments.sorter.out_of_order();
    let clock_jumps = segments.clocks.jumps();
    let place =
        |damage: &Damage| segment_files.iter().position(|file| file.display().to_string() == damage.file);
    segments.damaged.sort_by_key(place);
    Ok(RunSummary { damaged_segments: segments.damaged, out_of_order, clock_jumps, ..outcome.summary })
}

/// Judges `run` again from its stored records; the result is that of [`process_run`], but for damaged segments, which
/// stored records do not know, and messages left open by `gaps`. `records` may divide the run in any way.
///
/// # Errors
/// [`RecordError::Read`] or [`RecordError::Foreign`] when the records cannot be read or are of another run,
/// [`RecordError::Write`] when an output cannot be written.
pub fn retrack(
    network: &Network,
    run: &Run,
    records: &[PathBuf],
    gaps: &[Gap],
    tables: &Tables,
) -> Result<RunSummary, RecordError> {
    let files = RecordFiles::open(records, Some(run.index))?;
    let mut writer = TableSet::create(tables, run.index)?;
    let all = gaps_of(&files, gaps);
    let outcome = track_files(network, run, &files, &all, cores(), Measure::ALL, Some(&mut writer))?;
    writer.finish(&outcome)?;
    Ok(RunSummary { damaged_segments: files.left_out().to_vec(), gaps: gaps.to_vec(), ..outcome.summary })
}

/// Judges part `part` of `parts` of the flows of `run`, on one core; the results of all parts add up to that of
/// [`retrack`].
///
/// # Errors
/// As [`retrack`].
pub fn track_part(
    network: &Network,
    run: &Run,
    records: &[PathBuf],
    gaps: &[Gap],
    [part, parts]: [usize; 2],
    tables: &Tables,
) -> Result<RunSummary, RecordError> {
    let files = RecordFiles::open(records, Some(run.index))?;
    let mut writer = TableSet::create(tables, run.index)?;
    let all = gaps_of(&files, gaps);
    let outcome = track_one_part(network, run, &files, &all, [part, parts], &mut writer)?;
    writer.finish(&outcome)?;
    let left_out = if part == 0 { files.left_out().to_vec() } else { Vec::new() };
    Ok(RunSummary { damaged_segments: left_out, gaps: gaps.to_vec(), ..outcome.summary })
}

/// The known gaps, and one of unknown extent if a file of records is missing.
fn gaps_of(files: &RecordFiles, gaps: &[Gap]) -> Vec<Gap> {
    let missing = (!files.left_out().is_empty()).then(Gap::default);
    gaps.iter().cloned().chain(missing).collect()
}

/// Counts of `run` and distributions of `measures` from its stored records, without a row per message, on `threads`
/// cores.
///
/// # Errors
/// As [`retrack`].
pub fn summarise(
    network: &Network,
    run: &Run,
    records: &[PathBuf],
    measures: &[Measure],
    threads: usize,
) -> Result<(RunSummary, Distributions), RecordError> {
    let files = RecordFiles::open(records, Some(run.index))?;
    let outcome = track_files(network, run, &files, &gaps_of(&files, &[]), threads.max(1), measures, None)?;
    let summary = RunSummary { damaged_segments: files.left_out().to_vec(), ..outcome.summary };
    Ok((summary, outcome.distributions))
}

/// The tables of a run being written.
struct TableSet {
    messages: MessageWriter,
    passages: PassageWriter,
    sketches: PathBuf,
    run_index: u32,
}

impl TableSet {
    fn create(tables: &Tables, run_index: u32) -> Result<Self, RecordError> {
        Ok(Self {
            messages: MessageWriter::create(&tables.messages, run_index)?,
            passages: PassageWriter::create(&tables.passages, run_index)?,
            sketches: tables.sketches.clone(),
            run_index,
        })
    }

    fn finish(self, outcome: &Outcome) -> Result<(), RecordError> {
        self.passages.finish()?;
        write_sketches(&self.sketches, self.run_index, &outcome.distributions)?;
        // Last, because readers take the messages file as the sign that all files are complete.
        self.messages.finish()
    }
}

impl RowSink for TableSet {
    fn take(&mut self, messages: &[Message], passages: &[Passage]) -> Result<(), RecordError> {
        self.messages.write(messages)?;
        self.passages.write(passages)
    }
}

/// The segments of a run, agent by agent, merged in the order of time.
struct Segments<'a> {
    run: &'a Run,
    agents: Vec<Agent>,
    /// Epoch of the times, from the first segment with records.
    epoch: Option<i64>,
    sorter: Sorter<Batch>,
    ready: Vec<Batch>,
    clocks: Clocks,
    damaged: Vec<Damage>,
}

/// The segments of one agent.
struct Agent {
    directory: PathBuf,
    /// Files not yet opened.
    files: VecDeque<PathBuf>,
    open: Option<SegmentReader>,
    /// Latest time read, ps.
    read_to: i64,
    /// Index, in the list of all, of its last damage if nothing was read since.
    torn: Option<usize>,
}

impl<'a> Segments<'a> {
    fn open(run: &'a Run, files: &[PathBuf]) -> Result<Self, RecordError> {
        let mut agents: Vec<Agent> = Vec::new();
        for file in files {
            // A missing file is reported before anything is written.
            fs::metadata(file).map_err(|e| RecordError::read(file, e))?;
            let directory = file.parent().unwrap_or(Path::new("")).to_owned();
            let agent = match agents.iter_mut().find(|agent| agent.directory == directory) {
                Some(agent) => agent,
                None => {
                    agents.push(Agent {
                        directory,
                        files: VecDeque::new(),
                        open: None,
                        read_to: i64::MIN,
                        torn: None,
                    });
                    let last = agents.len() - 1;
                    &mut agents[last]
                }
            };
            agent.files.push_back(file.clone());
        }
        // Agents are read in step, so their records are out of order by some batches each.
        let disorder = (agents.len().max(1) << 16).min(MOST) as u64;
        Ok(Self {
            run,
            agents,
            epoch: None,
            sorter: Sorter::new(disorder),
            ready: Vec::new(),
            clocks: Clocks::default(),
            damaged: Vec::new(),
        })
    }

    /// The next records in the order of time.
    fn next_block(&mut self) -> Result<Option<Batch>, RecordError> {
        loop {
            if let Some(block) = self.ready.pop() {
                return Ok(Some(block));
            }
            let is_left = |agent: &&mut Agent| agent.open.is_some() || !agent.files.is_empty();
            let mut sorted = Vec::new();
            match self.agents.iter_mut().filter(is_left).min_by_key(|agent| agent.read_to) {
                Some(agent) => {
                    let batch = agent.next_batch(self.run, &mut self.epoch, &mut self.damaged)?;
                    self.clocks.watch(&batch);
                    self.sorter.push(Batch::of(batch), |block| sorted.push(block));
                }
                None => self.sorter.finish(|block| sorted.push(block)),
            }
            if sorted.is_empty()
                && !self.agents.iter_mut().any(|agent| is_left(&agent))
                && self.sorter.is_empty()
            {
                return Ok(None);
            }
            sorted.reverse();
            self.ready = sorted;
        }
    }
}

/// Watches the clock of every node. Records of one node, point and leg come nearly in the order of its clock: kernel
/// timestamps are some milliseconds apart. Records of its threads do not: each writes when it gets a core.
#[derive(Default)]
struct Clocks {
    /// Latest time and jumps noticed, by node, point and leg.
    seen: Vec<(i64, ClockJump)>,
}

/// Least step back that counts as a jump rather than disorder, ps: 100 ms.
const JUMP: i64 = 100_000_000_000;
/// Number of points, outward and on the way back.
const LEGS: usize = 2 * Point::ALL.len();

impl Clocks {
    fn watch(&mut self, records: &[Record]) {
        for record in records.iter().filter(|record| record.clock != Clock::Schedule) {
            let leg = usize::from(record.flags.has(RecordFlags::RETURN));
            let place = usize::from(record.node) * LEGS + 2 * usize::from(record.point.code()) + leg;
            if self.seen.len() <= place {
                let jump = ClockJump { node: 0, times: 0, farthest_ps: 0 };
                self.seen.resize((place / LEGS + 1) * LEGS, (i64::MIN, jump));
            }
            let (latest, jump) = &mut self.seen[place];
            let time = record.time.as_picos();
            let back = latest.saturating_sub(time);
            if back > JUMP && *latest > i64::MIN {
                *jump = ClockJump {
                    node: record.node,
                    times: jump.times + 1,
                    farthest_ps: jump.farthest_ps.max(back),
                };
                // This is the time from here on.
                *latest = time;
            }
            *latest = (*latest).max(time);
        }
    }

    /// Jumps by node, with the count and distance of the point that saw most.
    fn jumps(&self) -> Vec<ClockJump> {
        let of_node = |points: &[(i64, ClockJump)]| {
            let seen = points.iter().map(|(_, jump)| *jump).filter(|jump| jump.times > 0);
            seen.reduce(|one, other| ClockJump {
                node: one.node,
                times: one.times.max(other.times),
                farthest_ps: one.farthest_ps.max(other.farthest_ps),
            })
        };
        self.seen.chunks(LEGS).filter_map(of_node).collect()
    }
}

impl Agent {
    /// The next batch of records; empty at the end of a segment.
    fn next_batch(
        &mut self,
        run: &Run,
        epoch: &mut Option<i64>,
        damaged: &mut Vec<Damage>,
    ) -> Result<Vec<Record>, RecordError> {
        let mut reader = match self.open.take() {
            Some(reader) => reader,
            None => match self.files.pop_front() {
                Some(file) => SegmentReader::open(&file)?,
                None => return Ok(Vec::new()),
            },
        };
        let Some(batch) = reader.next_batch().map(<[Record]>::to_vec) else {
            if let Some(damage) = reader.damage() {
                self.note(damage.clone(), damaged);
            }
            return Ok(Vec::new());
        };
        // Only a segment with records states the epoch: an agent without records may never have learnt of one.
        if let Some(problem) = reader.info().and_then(|info| misplaced(info, run, epoch)) {
            let file = reader.path().display().to_string();
            self.note(Damage { file, problem, ..Damage::default() }, damaged);
            return Ok(Vec::new());
        }
        let times = || batch.iter().map(|record| record.time.as_picos());
        if let Some(earliest) = times().min()
            && let Some(damage) = self.torn.take().and_then(|torn| damaged.get_mut(torn))
        {
            damage.until_ps = Some(earliest);
        }
        let latest = times().max();
        self.read_to = self.read_to.max(latest.unwrap_or(i64::MIN));
        self.open = Some(reader);
        Ok(batch)
    }

    /// Records a damage: what follows is missing.
    fn note(&mut self, damage: Damage, damaged: &mut Vec<Damage>) {
        let after_ps = Some(self.read_to).filter(|latest| *latest > i64::MIN);
        self.torn.get_or_insert(damaged.len());
        damaged.push(Damage { after_ps, ..damage });
    }
}

/// Why a segment does not belong to this run; `None`: it does. Times can only be compared if they count from one epoch.
fn misplaced(info: &SegmentInfo, run: &Run, epoch: &mut Option<i64>) -> Option<String> {
    if info.run_index != run.index {
        return Some(format!(
            "left out: it holds records of run {}, not of run {}",
            info.run_index, run.index
        ));
    }
    let before = *epoch.get_or_insert(info.epoch_realtime_ns);
    if before != info.epoch_realtime_ns {
        return Some(format!(
            "left out: its times count from {} ns, those of the segments before it from {before} ns",
            info.epoch_realtime_ns
        ));
    }
    None
}
