//! Reading stored records, row group by row group and in parallel.
//!
//! A column chunk whose statistics show a single value is not decoded. Files may divide a run in any way; their row
//! groups are read in the order of their beginnings.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::parquet::arrow::arrow_reader::ArrowReaderMetadata;
use ::parquet::basic::Type;
use ::parquet::file::metadata::{ColumnChunkMetaData, KeyValue, RowGroupMetaData};
use ::parquet::file::statistics::Statistics;
use wg_frame::time::RunTime;
use wg_plan::{FlowId, Run};

use super::column::{Cell, Codes, Numbers};
use super::excerpt::Excerpt;
use crate::sighting::{Block, Grouper, Manner};
use crate::sorting::Share;
use crate::tracking::part_of;
use wg_record::RecordError;
use wg_record::guarded;
use wg_record::open_regular;
use wg_record::segment::Damage;
use wg_record::{Clock, Coded, Crc, DropReason, Point, RECORD_SCHEMA, Record, RecordFlags};

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
    /// Earliest and latest time, ps, if the file states them.
    times: Option<[i64; 2]>,
}

impl RecordFiles {
    /// Opens the records of a run. Of several files, unusable ones are [left out](Self::left_out) and named.
    ///
    /// # Errors
    /// [`RecordError::Read`] when a file cannot be opened, [`RecordError::Foreign`] when the only one, or every one of
    /// them, is damaged, not a records file of this schema, or of another run than `run_index`.
    pub fn open(paths: &[PathBuf], run_index: Option<u32>) -> Result<Self, RecordError> {
        let mut found = Self { run_index: 0, files: Vec::new(), groups: Vec::new(), left_out: Vec::new() };
        let mut expected = run_index;
        for path in paths {
            let file = open_regular(path).map_err(|e| RecordError::read(path, e))?;
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
                        ..Damage::default()
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
        // A group without a stated beginning comes first, where it can only delay, not lose anything.
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

    /// Index of the run of the records.
    pub fn run_index(&self) -> u32 {
        self.run_index
    }
    /// Number of records in all files.
    pub fn records(&self) -> u64 {
        self.groups.iter().map(|group| group.rows).sum()
    }
    /// Unusable files, with the reason.
    pub fn left_out(&self) -> &[Damage] {
        &self.left_out
    }
    /// Number of row groups.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Beginning of each group but the first, ps, if the files state them.
    pub(crate) fn beginnings(&self) -> Vec<i64> {
        self.groups.iter().skip(1).filter_map(|group| group.times.map(|[first, _]| first)).collect()
    }

    /// The earliest time, ps, in row group `group` and all later ones, if the files state it.
    pub(crate) fn begins(&self, group: usize) -> Option<i64> {
        self.groups.get(group)?.times.map(|[first, _]| first)
    }

    /// Greatest number of records that come before an earlier one when the groups are read in order.
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

    /// Decodes row group `group` and calls back with its records, some at a time, one batch for each part of
    /// `division`.
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
        // Every thread needs a handle with its own file position.
        let file = open_regular(path).map_err(|e| RecordError::read(path, e))?;
        guarded(|| -> Result<(), String> {
            let mut reading = Reading::begin(file, metadata.metadata().row_group(group.index))?;
            while let Some(shares) = reading.next(division, buffers)? {
                if !take(shares) {
                    break;
                }
            }
            Ok(())
        })
        .map_err(|problem| RecordError::Foreign { path: path.clone(), problem })
    }
}

/// Reads every record of `path`, and the index of their run.
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

/// Record buffers for reuse: new memory from the system costs more than decoding into it.
#[derive(Default)]
pub(crate) struct Buffers(Mutex<VecDeque<Block>>);

impl Buffers {
    /// Greatest number of buffers kept.
    const KEPT: usize = 192;
    /// Number of buffers returned before one is reused: until then another core's cache holds it, and fetching it from
    /// there costs more than decoding into it.
    const RESTING: usize = 16;

    /// A block of arbitrary content.
    fn take(&self) -> Block {
        let mut kept = self.lock();
        let rested = if kept.len() > Self::RESTING { kept.pop_front() } else { None };
        rested.unwrap_or_else(Block::empty)
    }

    /// Takes a block back, if this was its last share.
    pub(crate) fn give_back(&self, block: Arc<Block>) {
        let Some(block) = Arc::into_inner(block) else { return };
        let mut kept = self.lock();
        if kept.len() < Self::KEPT {
            kept.push_back(block);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Block>> {
        // A panic while holding the lock leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Division of records by flow: into parts, and within each part into ranks of flows.
pub(crate) struct Division {
    /// Rank of each flow.
    rank: Vec<u16>,
    /// Ranks of each part.
    parts: Vec<Range<usize>>,
}

impl Division {
    /// The division of `run` into `parts` as trackers divide it; records of unknown flows go to part 0.
    pub(crate) fn of(run: &Run, parts: usize) -> Self {
        Self::by((0..parts).map(|part| part_of(run, part, parts)).collect(), 0)
    }

    /// Part `part` of `parts` of the flows of `run`, and all others; strays go with part 0.
    pub(crate) fn of_part(run: &Run, part: usize, parts: usize) -> Self {
        let mine = part_of(run, part, parts);
        let known: BTreeSet<_> = mine.iter().collect();
        let others = run.flows.iter().map(|flow| flow.id).filter(|flow| !known.contains(flow)).collect();
        Self::by(vec![mine, others], usize::from(part > 0))
    }

    /// A single part, in the order of the file.
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

/// A row group being decoded into blocks of records, divided by flow.
struct Reading {
    rows_left: usize,
    time: Numbers<i64>,
    sequence: Numbers<u32>,
    /// Frame lengths by record, or the one length of all.
    length: Result<Codes<u16>, u16>,
    /// Fields of the record key that are equal in every record.
    manner: u64,
    /// The other fields of the record key, column by column.
    fields: Vec<(Says, Codes<u64>)>,
    /// Number of the record key of each code; a code combines the indices of all fields.
    numbers: Vec<u16>,
    /// Dictionary sizes of the fields when record keys were numbered.
    sizes: Vec<usize>,
    /// Codes of the block's records; a reused buffer.
    codes: Vec<u16>,
    grouper: Grouper,
}

/// Number of record keys combined at once, so that they stay in cache.
const MANNERS: usize = 512;

impl Reading {
    #[expect(clippy::cast_possible_truncation, reason = "a length has 16 bits")]
    fn begin(file: File, group: &RowGroupMetaData) -> Result<Self, String> {
        let constants: Vec<Option<u64>> = group.columns().iter().map(constant_of).collect();
        let is_wanted = |place: usize| constants.get(place).is_none_or(Option::is_none);
        let excerpt = Excerpt::read(file, group, is_wanted).map_err(|e| format!("cannot be read: {e}"))?;
        let excerpt = Arc::new(excerpt);
        let place_of = |name: &str| {
            let place = group.columns().iter().position(|column| column.column_descr().name() == name);
            place.ok_or_else(|| format!("the column `{name}` is missing"))
        };
        let mut manner = 0;
        let mut fields = Vec::new();
        for (name, says) in FIELDS {
            let place = place_of(name)?;
            match constants[place] {
                Some(bits) => manner |= bits,
                None => fields.push((says, Codes::open(&excerpt, group, place, says.kind())?)),
            }
        }
        let length = place_of(LENGTH)?;
        Ok(Self {
            rows_left: usize::try_from(group.num_rows()).unwrap_or_default(),
            time: Numbers::open(&excerpt, group, place_of("time")?, Type::INT64)?,
            sequence: Numbers::open(&excerpt, group, place_of("sequence")?, Type::INT32)?,
            length: match constants[length] {
                Some(bits) => Err(bits as u16),
                None => Ok(Codes::open(&excerpt, group, length, Type::INT32)?),
            },
            manner,
            fields,
            numbers: Vec::new(),
            sizes: Vec::new(),
            codes: Vec::new(),
            grouper: Grouper::new(),
        })
    }

    /// The next records, a share for each part; `None` after the last.
    #[expect(clippy::cast_possible_truncation, reason = "a length has 16 bits")]
    fn next(&mut self, division: &Division, buffers: &Buffers) -> Result<Option<Vec<Share>>, String> {
        // At most up to the next page end of any column.
        let mut count = self.rows_left.min(Grouper::MOST);
        if count == 0 {
            return Ok(None);
        }
        count = count.min(self.time.left()?).min(self.sequence.left()?);
        if let Ok(length) = &mut self.length {
            count = count.min(length.left(|cell| Says::Number(0).bits(cell).map(|bits| bits as u16))?);
        }
        for (says, codes) in &mut self.fields {
            count = count.min(codes.left(|cell| says.bits(cell))?);
        }
        self.rows_left -= count;
        self.number(count, division);
        let (time, sequence) = (self.time.take(count), self.sequence.take(count));
        let rest = time.iter().map(|ps| RunTime::from_picos(*ps)).zip(sequence.iter().copied());
        let mut block = buffers.take();
        match &mut self.length {
            Err(length) => {
                let rest = rest.map(|(time, sequence)| (time, sequence, *length));
                self.grouper.group(rest, division.ranks(), &mut block);
            }
            Ok(lengths) => {
                let (indices, meaning) = lengths.take(count);
                let rest = rest
                    .zip(indices)
                    .map(|((time, sequence), index)| (time, sequence, meaning[usize::from(*index)]));
                self.grouper.group(rest, division.ranks(), &mut block);
            }
        }
        let is_sorted = time.is_sorted();
        let (begins, ends) =
            if is_sorted { (time.first(), time.last()) } else { (time.iter().min(), time.iter().max()) };
        let times = [begins.copied().unwrap_or(i64::MAX), ends.copied().unwrap_or(i64::MIN)];
        let block = Arc::new(block);
        let share =
            |ranks: &Range<usize>| Share { block: block.clone(), ranks: ranks.clone(), times, is_sorted };
        Ok(Some(division.parts.iter().map(share).collect()))
    }

    /// Numbers the record keys of the next `count` records.
    #[expect(clippy::cast_possible_truncation, reason = "sizes multiply to at most `Grouper::CODES`")]
    fn number(&mut self, count: usize, division: &Division) {
        let columns: Vec<(&[u16], &[u64])> =
            self.fields.iter_mut().map(|(_, codes)| codes.take(count)).collect();
        let rank = |flow: u16| division.rank[usize::from(flow)];
        let sizes: Vec<usize> = columns.iter().map(|(_, meaning)| meaning.len()).collect();
        let combinations = sizes.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
        if let Some(combinations) = combinations.filter(|number| *number <= Grouper::CODES) {
            // Columns have so few values that all combinations have a code.
            if self.numbers.len() != combinations || self.sizes != sizes {
                self.numbers = vec![Grouper::UNNUMBERED; combinations];
                self.sizes = sizes;
            }
            self.codes.clear();
            match columns.first() {
                Some((indices, _)) => self.codes.extend_from_slice(indices),
                None => self.codes.resize(count, 0),
            }
            for ((indices, _), size) in columns.iter().zip(&self.sizes).skip(1) {
                let cells = self.codes.iter_mut().zip(*indices);
                cells.for_each(|(code, index)| *code = code.wrapping_mul(*size as u16).wrapping_add(*index));
            }
            let manner = |code: u16| {
                let mut rest = usize::from(code);
                let bits = columns.iter().rev().map(|(_, meaning)| {
                    let bits = meaning[rest % meaning.len()];
                    rest /= meaning.len();
                    bits
                });
                Manner::from_fields(bits.fold(self.manner, |manner, bits| manner | bits))
            };
            self.grouper.note_codes(&self.codes, &mut self.numbers, manner, rank);
            return;
        }
        for from in (0..count).step_by(MANNERS) {
            let to = count.min(from + MANNERS);
            let manners = &mut [self.manner; MANNERS][..to - from];
            for (indices, meaning) in &columns {
                let cells = indices[from..to].iter().map(|index| meaning[usize::from(*index)]);
                manners.iter_mut().zip(cells).for_each(|(manner, bits)| *manner |= bits);
            }
            self.grouper.note(manners.iter().map(|fields| Manner::from_fields(*fields)), rank);
        }
    }
}

/// How the cells of a column contribute to the record key.
#[derive(Clone, Copy, Debug)]
enum Says {
    /// A number of 16 bits, from this bit of the key on.
    Number(u32),
    Point,
    Clock,
    Crc,
    Reason,
    Flag(RecordFlags),
}

/// Name of the frame length column, the only one whose cells are no part of the record key.
const LENGTH: &str = "length";

/// Names of the columns of the record key.
const FIELDS: [(&str, Says); 9] = [
    ("flow", Says::Number(0)),
    ("node", Says::Number(Manner::NODE)),
    ("port", Says::Number(Manner::PORT)),
    ("point", Says::Point),
    ("clock", Says::Clock),
    ("crc", Says::Crc),
    ("reason", Says::Reason),
    ("returning", Says::Flag(RecordFlags::RETURN)),
    ("warm_up", Says::Flag(RecordFlags::WARM_UP)),
];

impl Says {
    /// Parquet type of such a column.
    fn kind(self) -> Type {
        match self {
            Self::Number(_) => Type::INT32,
            Self::Point | Self::Clock | Self::Crc | Self::Reason => Type::BYTE_ARRAY,
            Self::Flag(_) => Type::BOOLEAN,
        }
    }

    /// The bits of the key that a cell sets; `None` for an impossible value.
    fn bits(self, cell: Cell<'_>) -> Option<u64> {
        match (self, cell) {
            (Self::Number(bit), Cell::Number(number)) => {
                u16::try_from(number).ok().map(|number| u64::from(number) << bit)
            }
            (Self::Point, Cell::Text(word)) => coded::<Point>(word, Manner::POINT),
            (Self::Clock, Cell::Text(word)) => coded::<Clock>(word, Manner::CLOCK),
            (Self::Crc, Cell::Text(word)) => coded::<Crc>(word, Manner::CRC),
            (Self::Reason, Cell::Text(word)) => coded::<DropReason>(word, Manner::REASON),
            (Self::Flag(flag), Cell::Number(set)) => {
                Some(u64::from(set != 0) * (u64::from(flag.bits()) << Manner::FLAGS))
            }
            _ => None,
        }
    }
}

fn coded<T: Coded>(word: &[u8], bit: u32) -> Option<u64> {
    let value = T::all().iter().find(|value| value.text().as_bytes() == word)?;
    Some(u64::from(value.number()) << bit)
}

/// The value of every cell of a column, if statistics show that all are equal: such a column is not decoded.
fn constant_of(column: &ColumnChunkMetaData) -> Option<u64> {
    let name = column.column_descr().name();
    let says = FIELDS.iter().find(|(known, _)| *known == name).map(|(_, says)| *says);
    let says = says.or((name == LENGTH).then_some(Says::Number(0)))?;
    match column.statistics().filter(|statistics| statistics.null_count_opt() == Some(0))? {
        Statistics::Int32(s) if s.min_opt() == s.max_opt() => {
            says.bits(Cell::Number(i64::from(*s.min_opt()?)))
        }
        Statistics::Boolean(s) if s.min_opt() == s.max_opt() => {
            says.bits(Cell::Number(i64::from(*s.min_opt()?)))
        }
        Statistics::ByteArray(s) if s.min_opt() == s.max_opt() && s.min_is_exact() && s.max_is_exact() => {
            says.bits(Cell::Text(s.min_opt()?.data()))
        }
        _ => None,
    }
}
