//! Reading stored records, row group by row group and in parallel.
//!
//! A column chunk whose statistics say that all its values are one is not decoded. Files may be parts of a run in
//! any division; their row groups are taken in the order in which they begin.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use ::parquet::file::metadata::{KeyValue, RowGroupMetaData};
use ::parquet::file::statistics::Statistics;
use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt16Type, UInt32Type};
use wg_frame::time::RunTime;
use wg_plan::{FlowId, Run};

use super::ROWS_AT_ONCE;
use super::excerpt::Excerpt;
use crate::columns::{CodeColumn, bit_column, number_column};
use crate::error::RecordError;
use crate::guard::guarded;
use crate::schema::{Clock, Coded, Crc, DropReason, Point, RECORD_SCHEMA, Record, RecordFlags};
use crate::segment::Damage;
use crate::sighting::{Block, Grouper, Manner};
use crate::sorting::Share;
use crate::tracking::part_of;

/// The records of one run, in one file or several.
pub struct RecordFiles {
    run_index: u32,
    files: Vec<(PathBuf, ArrowReaderMetadata)>,
    groups: Vec<Group>,
    left_out: Vec<Damage>,
}

/// A row group.
struct Group {
    file: usize,
    index: usize,
    rows: u64,
    /// Earliest and latest time, ps, where the file says.
    times: Option<[i64; 2]>,
}

impl RecordFiles {
    /// Opens the records of a run. Of several files, one that cannot be used is [left out](Self::left_out) by name.
    ///
    /// # Errors
    /// [`RecordError::Read`] when a file cannot be opened, [`RecordError::Foreign`] when the only one, or every one of them, is
    /// damaged, not a records file of this schema, or of another run than `run_index`.
    pub fn open(paths: &[PathBuf], run_index: Option<u32>) -> Result<Self, RecordError> {
        let mut found = Self { run_index: 0, files: Vec::new(), groups: Vec::new(), left_out: Vec::new() };
        let mut expected = run_index;
        for path in paths {
            let file = File::open(path).map_err(|e| RecordError::read(path, e))?;
            let head = guarded(|| -> Result<_, String> {
                let metadata = ArrowReaderMetadata::load(&file, Default::default())
                    .map_err(|e| format!("not a Parquet file: {e}"))?;
                let index = check_metadata(metadata.metadata().file_metadata().key_value_metadata())?;
                match expected {
                    Some(run) if run != index => {
                        Err(format!("holds records of run {index}, not of run {run}; name that run's file"))
                    }
                    _ => Ok((metadata, index)),
                }
            });
            match head {
                Ok((metadata, index)) => {
                    expected = Some(index);
                    found.add(path, metadata);
                }
                Err(problem) if paths.len() == 1 => {
                    return Err(RecordError::Foreign { path: path.clone(), problem });
                }
                Err(problem) => {
                    let problem = format!("left out: {problem}");
                    found.left_out.push(Damage {
                        file: path.display().to_string(),
                        problem,
                        records_read: 0,
                    });
                }
            }
        }
        if let (true, Some(first)) = (found.files.is_empty(), found.left_out.first()) {
            return Err(RecordError::Foreign {
                path: first.file.clone().into(),
                problem: first.problem.clone(),
            });
        }
        found.run_index = expected.unwrap_or_default();
        // A group that does not say when it begins comes first, where it can delay only and lose nothing.
        found.groups.sort_by_key(|group| group.times.map_or(i64::MIN, |[first, _]| first));
        Ok(found)
    }

    fn add(&mut self, path: &Path, metadata: ArrowReaderMetadata) {
        let file = self.files.len();
        let groups = metadata.metadata().row_groups().iter().enumerate().map(|(index, group)| Group {
            file,
            index,
            rows: u64::try_from(group.num_rows()).unwrap_or_default(),
            times: times_of(group),
        });
        self.groups.extend(groups);
        self.files.push((path.to_owned(), metadata));
    }

    /// The run they are of.
    pub fn run_index(&self) -> u32 {
        self.run_index
    }
    /// Records in all of them.
    pub fn records(&self) -> u64 {
        self.groups.iter().map(|group| group.rows).sum()
    }
    /// Files that cannot be used, and why.
    pub fn left_out(&self) -> &[Damage] {
        &self.left_out
    }
    /// Row groups, in the order in which they are to be taken.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// When each group but the first begins, ps, where the files say.
    pub(crate) fn beginnings(&self) -> Vec<i64> {
        self.groups.iter().skip(1).filter_map(|group| group.times.map(|[first, _]| first)).collect()
    }

    /// The earliest time, ps, in row group `group` and in all that are taken after it, where the files say.
    pub(crate) fn begins(&self, group: usize) -> Option<i64> {
        self.groups.get(group)?.times.map(|[first, _]| first)
    }

    /// How many records, at most, come before an earlier one when the groups are taken one after the other.
    pub(crate) fn disorder(&self) -> u64 {
        let mut most = 0;
        let mut open: Vec<(i64, u64)> = Vec::new();
        for group in &self.groups {
            let [first, last] = group.times.unwrap_or([i64::MIN, i64::MAX]);
            open.retain(|&(end, _)| end > first);
            let before: u64 = open.iter().map(|&(_, rows)| rows).sum();
            most = most.max(if before > 0 { before + group.rows } else { 0 });
            open.push((last, group.rows));
        }
        most
    }

    /// Decodes row group `group` and hands its records over, some at a time, one batch for each part of `division`.
    ///
    /// # Errors
    /// [`RecordError::Read`] or [`RecordError::Foreign`], after the records up to the damage.
    pub(crate) fn decode(
        &self,
        group: usize,
        division: &Division,
        buffers: &Buffers,
        mut take: impl FnMut(Vec<Share>) -> bool,
    ) -> Result<(), RecordError> {
        let group = &self.groups[group];
        let (path, metadata) = &self.files[group.file];
        // Every thread needs a handle with a place of its own.
        let file = File::open(path).map_err(|e| RecordError::read(path, e))?;
        guarded(|| -> Result<(), String> {
            let schema = metadata.parquet_schema();
            let row_group = metadata.metadata().row_group(group.index);
            let constants = Constants::of(row_group);
            let is_wanted = |place: usize| !constants.has(schema.column(place).name());
            let wanted = (0..schema.num_columns()).filter(|place| is_wanted(*place));
            let mask = ProjectionMask::leaves(schema, wanted);
            let excerpt =
                Excerpt::read(file, row_group, is_wanted).map_err(|e| format!("cannot be read: {e}"))?;
            let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(excerpt, metadata.clone())
                .with_row_groups(vec![group.index])
                .with_projection(mask)
                .with_batch_size(ROWS_AT_ONCE)
                .build()
                .map_err(|e| format!("cannot be decoded: {e}"))?;
            let mut divider = Divider { constants, division, grouper: Grouper::new(), manners: Vec::new() };
            for batch in reader {
                let batch = batch.map_err(|e| format!("damaged: {e}"))?;
                if !take(divider.divide(&batch, buffers)?) {
                    break;
                }
            }
            Ok(())
        })
        .map_err(|problem| RecordError::Foreign { path: path.clone(), problem })
    }
}

/// Reads every record of `path` and the index of the run they are of.
///
/// # Errors
/// [`RecordError::Read`] when the file cannot be opened, [`RecordError::Foreign`] when it is damaged or not a
/// records file of this schema.
pub fn read_records(path: &Path) -> Result<(u32, Vec<Record>), RecordError> {
    let files = RecordFiles::open(&[path.to_owned()], None)?;
    let mut records = Vec::new();
    let division = Division::none();
    let buffers = Buffers::default();
    for group in 0..files.groups() {
        files.decode(group, &division, &buffers, |divided| {
            for share in divided {
                records.extend(share.block.records(&share.ranks));
                buffers.give_back(share.block);
            }
            true
        })?;
    }
    Ok((files.run_index, records))
}

fn check_metadata(metadata: Option<&Vec<KeyValue>>) -> Result<u32, String> {
    let get = |key: &str| {
        let found = metadata.into_iter().flatten().find(|pair| pair.key == format!("wiregauge.{key}"));
        found.and_then(|pair| pair.value.as_deref()).unwrap_or_default()
    };
    if get("kind") != "records" {
        return Err("not a records file of wiregauge".to_owned());
    }
    if get("schema") != RECORD_SCHEMA.to_string() {
        return Err(format!(
            "written with record schema `{}`, this program reads {RECORD_SCHEMA}; \
             use the version of wiregauge that wrote it",
            get("schema")
        ));
    }
    get("run").parse().map_err(|_| "its metadata does not say of which run it is".to_owned())
}

fn times_of(group: &RowGroupMetaData) -> Option<[i64; 2]> {
    let column = group.columns().iter().find(|column| column.column_descr().name() == "time")?;
    match column.statistics()? {
        Statistics::Int64(times) => Some([*times.min_opt()?, *times.max_opt()?]),
        _ => None,
    }
}

/// The one value of a column, where statistics say that it has one.
#[derive(Default)]
struct Constants {
    numbers: [Option<u16>; 4],
    bits: [Option<bool>; 2],
    point: Option<Point>,
    clock: Option<Clock>,
    crc: Option<Crc>,
    reason: Option<DropReason>,
}

const NUMBERS: [&str; 4] = ["flow", "node", "port", "length"];
/// Place of the length among the numbers.
const LENGTH: usize = 3;
const BITS: [&str; 2] = ["returning", "warm_up"];
const FLAGS: [RecordFlags; 2] = [RecordFlags::RETURN, RecordFlags::WARM_UP];

impl Constants {
    fn of(group: &RowGroupMetaData) -> Self {
        let mut found = Self::default();
        for column in group.columns() {
            let Some(statistics) = column.statistics().filter(|s| s.null_count_opt() == Some(0)) else {
                continue;
            };
            let name = column.column_descr().name();
            let place = |names: &[&str]| names.iter().position(|known| *known == name);
            match statistics {
                Statistics::Int32(s) if s.min_opt() == s.max_opt() => {
                    if let Some(place) = place(&NUMBERS) {
                        found.numbers[place] = s.min_opt().and_then(|value| u16::try_from(*value).ok());
                    }
                }
                Statistics::Boolean(s) if s.min_opt() == s.max_opt() => {
                    if let Some(place) = place(&BITS) {
                        found.bits[place] = s.min_opt().copied();
                    }
                }
                Statistics::ByteArray(s)
                    if s.min_opt() == s.max_opt() && s.min_is_exact() && s.max_is_exact() =>
                {
                    let word = s.min_opt().and_then(|word| word.as_utf8().ok());
                    match name {
                        "point" => found.point = word.and_then(named),
                        "clock" => found.clock = word.and_then(named),
                        "crc" => found.crc = word.and_then(named),
                        "reason" => found.reason = word.and_then(named),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// What is known of the manner of every record.
    fn manner(&self) -> u64 {
        let [flow, node, port, _] = self.numbers.map(|number| u64::from(number.unwrap_or_default()));
        let flags = self.bits.iter().zip(FLAGS).filter(|(bit, _)| **bit == Some(true)).map(|(_, flag)| flag);
        let flags = flags.fold(RecordFlags::empty(), RecordFlags::with);
        flow | node << Manner::NODE
            | port << Manner::PORT
            | u64::from(self.point.map_or(0, Point::code)) << Manner::POINT
            | u64::from(self.clock.map_or(0, Clock::code)) << Manner::CLOCK
            | u64::from(self.crc.map_or(0, Crc::code)) << Manner::CRC
            | u64::from(self.reason.map_or(0, DropReason::code)) << Manner::REASON
            | u64::from(flags.bits()) << Manner::FLAGS
    }

    fn has(&self, name: &str) -> bool {
        let numbers =
            NUMBERS.iter().zip(&self.numbers).any(|(known, value)| *known == name && value.is_some());
        let bits = BITS.iter().zip(&self.bits).any(|(known, value)| *known == name && value.is_some());
        let word = match name {
            "point" => self.point.is_some(),
            "clock" => self.clock.is_some(),
            "crc" => self.crc.is_some(),
            "reason" => self.reason.is_some(),
            _ => false,
        };
        numbers || bits || word
    }
}

fn named<T: Coded>(word: &str) -> Option<T> {
    T::all().iter().copied().find(|value| value.text() == word)
}

/// Room for records that is used again: asking the system for it anew costs more than decoding into it.
#[derive(Default)]
pub(crate) struct Buffers(Mutex<VecDeque<Block>>);

impl Buffers {
    /// Most that are kept.
    const KEPT: usize = 192;
    /// Used again only when so many others were given back since: until then the caches of another core hold it, and
    /// to take it from there costs more than decoding into it.
    const RESTING: usize = 16;

    /// A block of any content.
    fn take(&self) -> Block {
        let mut kept = self.lock();
        let rested = if kept.len() > Self::RESTING { kept.pop_front() } else { None };
        rested.unwrap_or_else(Block::empty)
    }

    /// Takes back what the last who had a share of it does not need any more.
    pub(crate) fn give_back(&self, block: Arc<Block>) {
        let Some(block) = Arc::into_inner(block) else { return };
        let mut kept = self.lock();
        if kept.len() < Self::KEPT {
            kept.push_back(block);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Block>> {
        // Whoever panicked while holding it left nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How records are divided by their flow: into parts, and in each part flow by flow.
pub(crate) struct Division {
    /// By flow: its rank.
    rank: Vec<u16>,
    /// By part: the ranks of its flows.
    parts: Vec<Range<usize>>,
}

impl Division {
    /// As trackers divide the flows of `run`; what is in no plan is for part 0.
    pub(crate) fn of(run: &Run, parts: usize) -> Self {
        Self::by((0..parts).map(|part| part_of(run, part, parts)).collect(), 0)
    }

    /// Part `part` of `parts` of the flows of `run`, and all others; strays go with part 0.
    pub(crate) fn of_part(run: &Run, part: usize, parts: usize) -> Self {
        let mine = part_of(run, part, parts);
        let others = run.flows.iter().map(|flow| flow.id).filter(|flow| !mine.contains(flow)).collect();
        Self::by(vec![mine, others], usize::from(part > 0))
    }

    /// One part, in the order of the file.
    fn none() -> Self {
        Self::by(vec![Vec::new()], 0)
    }

    fn by(flows: Vec<Vec<FlowId>>, strays: usize) -> Self {
        let mut ranks = 0u16;
        let mut rank_of_strays = 0;
        let mut ranked = Vec::new();
        let mut parts = Vec::new();
        for (number, mut flows) in flows.into_iter().enumerate() {
            let first = usize::from(ranks);
            if number == strays {
                rank_of_strays = ranks;
                ranks += 1;
            }
            flows.sort_unstable();
            for flow in flows {
                ranked.push((flow, ranks));
                ranks += 1;
            }
            parts.push(first..usize::from(ranks));
        }
        let mut rank = vec![rank_of_strays; usize::from(u16::MAX) + 1];
        for (flow, of_flow) in ranked {
            rank[usize::from(flow)] = of_flow;
        }
        Self { rank, parts }
    }

    fn ranks(&self) -> usize {
        self.parts.last().map_or(0, |last| last.end)
    }
}

/// Turns batches of one row group into blocks of records, divided by their flow.
struct Divider<'a> {
    constants: Constants,
    division: &'a Division,
    grouper: Grouper,
    /// By row, used again.
    manners: Vec<u64>,
}

impl Divider<'_> {
    /// The records of `batch`, a share for each part.
    fn divide(&mut self, batch: &RecordBatch, buffers: &Buffers) -> Result<Vec<Share>, String> {
        let constants = &self.constants;
        let time = number_column::<Int64Type>(batch, "time")?;
        let sequence = number_column::<UInt32Type>(batch, "sequence")?;
        let length: Cow<'_, [u16]> = match constants.numbers[LENGTH] {
            Some(value) => vec![value; batch.num_rows()].into(),
            None => number_column::<UInt16Type>(batch, NUMBERS[LENGTH])?.into(),
        };
        let manners = &mut self.manners;
        manners.clear();
        manners.resize(batch.num_rows(), constants.manner());
        for (place, bit) in [(0, 0), (1, Manner::NODE), (2, Manner::PORT)] {
            if constants.numbers[place].is_none() {
                let cells = number_column::<UInt16Type>(batch, NUMBERS[place])?;
                manners.iter_mut().zip(cells).for_each(|(manner, cell)| *manner |= u64::from(*cell) << bit);
            }
        }
        words::<Point>(manners, batch, "point", constants.point.is_some(), Manner::POINT)?;
        words::<Clock>(manners, batch, "clock", constants.clock.is_some(), Manner::CLOCK)?;
        words::<Crc>(manners, batch, "crc", constants.crc.is_some(), Manner::CRC)?;
        words::<DropReason>(manners, batch, "reason", constants.reason.is_some(), Manner::REASON)?;
        for (place, flag) in FLAGS.into_iter().enumerate() {
            if constants.bits[place].is_none() {
                let set = u64::from(flag.bits()) << Manner::FLAGS;
                let cells = bit_column(batch, BITS[place])?.values().iter();
                manners.iter_mut().zip(cells).for_each(|(manner, cell)| *manner |= u64::from(cell) * set);
            }
        }
        let rest = time.iter().zip(sequence).zip(length.iter());
        let mut block = buffers.take();
        self.grouper.group(
            manners.iter().map(|fields| Manner::from_fields(*fields)),
            rest.map(|((time, sequence), length)| (RunTime::from_picos(*time), *sequence, *length)),
            self.division.ranks(),
            |flow| self.division.rank[usize::from(flow)],
            &mut block,
        );
        let is_sorted = time.is_sorted();
        let (begins, ends) =
            if is_sorted { (time.first(), time.last()) } else { (time.iter().min(), time.iter().max()) };
        let times = [begins.copied().unwrap_or(i64::MAX), ends.copied().unwrap_or(i64::MIN)];
        let block = Arc::new(block);
        let share =
            |ranks: &Range<usize>| Share { block: block.clone(), ranks: ranks.clone(), times, is_sorted };
        Ok(self.division.parts.iter().map(share).collect())
    }
}

/// Puts the codes of a vocabulary column at their place in the manners, unless they are there already.
fn words<T: Coded>(
    manners: &mut [u64],
    batch: &RecordBatch,
    name: &str,
    is_constant: bool,
    bit: u32,
) -> Result<(), String> {
    if !is_constant {
        CodeColumn::<T>::of(batch, name)?.put(manners, |word| u64::from(word.number()) << bit);
    }
    Ok(())
}
