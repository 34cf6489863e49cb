//! The columns of a row group, page by page.
//!
//! Cells stay as stored in their page, as numbers or as dictionary indices: the other fields of a record are looked up
//! once for a page's dictionary, not for each record.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use ::parquet::basic::{Encoding, Type};
use ::parquet::column::page::{Page, PageReader};
use ::parquet::file::metadata::RowGroupMetaData;
use ::parquet::file::reader::SerializedPageReader;
use bytes::Bytes;

use super::coding::{Index, Number, deltas, dictionary_indices, hybrid, plain, plain_texts, unpack};
use super::excerpt::Excerpt;

/// A stored cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cell<'a> {
    Number(i64),
    Text(&'a [u8]),
}

/// The values of a page, without levels.
struct Values {
    bytes: Bytes,
    encoding: Encoding,
    count: usize,
}

/// The pages of a column.
struct Pages {
    name: String,
    kind: Type,
    /// Whether cells can be empty, so that the page has levels.
    has_levels: bool,
    /// Greatest number of values of a page.
    most: usize,
    reader: SerializedPageReader<Excerpt>,
}

/// Greatest number of values of a page that is decoded, whatever the page states: it is decoded completely.
const MOST_VALUES: usize = 1 << 26;

impl Pages {
    /// Opens column `place` of `group`, which must have this type.
    fn open(
        excerpt: &Arc<Excerpt>,
        group: &RowGroupMetaData,
        place: usize,
        expected: Type,
    ) -> Result<Self, String> {
        let column = group.column(place);
        let name = column.column_descr().name().to_owned();
        let kind = column.column_type();
        if kind != expected || column.column_descr().max_rep_level() > 0 {
            return Err(format!("the column `{name}` has the unexpected type {kind}"));
        }
        let rows = usize::try_from(group.num_rows()).map_err(|_| "it has less than no rows".to_owned())?;
        let reader = SerializedPageReader::new(excerpt.clone(), column, rows, None)
            .map_err(|e| format!("cannot be decoded: {e}"))?;
        let has_levels = column.column_descr().max_def_level() > 0;
        Ok(Self { has_levels, name, kind, most: rows.min(MOST_VALUES), reader })
    }

    /// The values of the next non-empty page; a dictionary page before it is handed to `dictionary`.
    fn next(
        &mut self,
        mut dictionary: impl FnMut(Type, &Values) -> Result<(), String>,
    ) -> Result<Values, String> {
        loop {
            let page = self.reader.get_next_page().map_err(|e| format!("damaged: {e}"))?;
            let values = match page {
                None => return Err(format!("damaged: the column `{}` ends before its rows", self.name)),
                Some(Page::DictionaryPage { buf, num_values, .. }) => {
                    let values = Values { bytes: buf, encoding: Encoding::PLAIN, count: num_values as usize };
                    dictionary(self.kind, &values).map_err(|problem| self.damaged(&problem))?;
                    continue;
                }
                Some(Page::DataPage { buf, num_values, encoding, .. }) => {
                    let count = num_values as usize;
                    let has_levels = self.has_levels && count <= self.most;
                    let bytes = if has_levels { self.without_levels(&buf, count)? } else { buf };
                    Values { bytes, encoding, count }
                }
                Some(Page::DataPageV2 {
                    buf,
                    num_values,
                    encoding,
                    num_nulls,
                    def_levels_byte_len,
                    rep_levels_byte_len,
                    ..
                }) => {
                    let levels = def_levels_byte_len as usize + rep_levels_byte_len as usize;
                    if num_nulls > 0 {
                        return Err(self.has_empty_cells());
                    }
                    if levels > buf.len() {
                        return Err(self.damaged("a page ends before its values"));
                    }
                    Values { bytes: buf.slice(levels..), encoding, count: num_values as usize }
                }
            };
            if values.count > self.most {
                return Err(self.damaged(&format!(
                    "a page of {} values, at most {} are possible here",
                    values.count, self.most
                )));
            }
            if values.count > 0 {
                return Ok(values);
            }
        }
    }

    /// The bytes after the levels of a page; an error if a cell is empty.
    fn without_levels(&self, bytes: &Bytes, count: usize) -> Result<Bytes, String> {
        let (levels, values) = levels_and_values(bytes).map_err(|problem| self.damaged(problem))?;
        let mut present: Vec<u16> = Vec::new();
        hybrid(&levels, 1, count, &mut present).map_err(|problem| self.damaged(&problem))?;
        if present.contains(&0) { Err(self.has_empty_cells()) } else { Ok(values) }
    }

    fn has_empty_cells(&self) -> String {
        format!("the column `{}` has empty cells", self.name)
    }
    fn damaged(&self, problem: &str) -> String {
        format!("damaged: column `{}`: {problem}", self.name)
    }
    fn unknown(&self, encoding: Encoding) -> String {
        format!(
            "the column `{}` is encoded as {encoding}, which is not read here; \
             write it anew with a dictionary, plain or as packed differences",
            self.name
        )
    }
}

/// Splits levels from values: the levels come first, preceded by their length in 4 bytes.
fn levels_and_values(bytes: &Bytes) -> Result<(Bytes, Bytes), &'static str> {
    let length = bytes.first_chunk::<4>().map(|length| u32::from_le_bytes(*length) as usize);
    let end = length.and_then(|length| length.checked_add(4)).filter(|end| *end <= bytes.len());
    end.map(|end| (bytes.slice(4..end), bytes.slice(end..))).ok_or("a page ends before its values")
}

/// Calls back for the cells of a page without dictionary. False if the encoding is not supported.
fn each_cell(
    kind: Type,
    values: &Values,
    mut each: impl FnMut(Cell<'_>) -> Result<(), String>,
) -> Result<bool, String> {
    let (bytes, count) = (&values.bytes, values.count);
    let mut failed = Ok(());
    let mut number = |number: i64| {
        if failed.is_ok() {
            failed = each(Cell::Number(number));
        }
    };
    match (values.encoding, kind) {
        (Encoding::PLAIN, Type::INT64) => {
            plain(bytes, count, |cell| number(i64::from_le_bytes(cell)))?;
        }
        (Encoding::PLAIN, Type::INT32) => {
            plain(bytes, count, |cell| number(i64::from(i32::from_le_bytes(cell))))?;
        }
        (Encoding::DELTA_BINARY_PACKED, Type::INT64) => {
            let mut cells: Vec<i64> = Vec::new();
            deltas(bytes, count, &mut cells)?;
            cells.into_iter().for_each(number);
        }
        (Encoding::DELTA_BINARY_PACKED, Type::INT32) => {
            let mut cells: Vec<i32> = Vec::new();
            deltas(bytes, count, &mut cells)?;
            cells.into_iter().for_each(|cell| number(i64::from(cell)));
        }
        (Encoding::PLAIN, Type::BOOLEAN) => {
            let mut bits: Vec<u16> = Vec::new();
            unpack(bytes, 1, count, &mut bits)?;
            bits.iter().for_each(|bit| number(i64::from(*bit)));
        }
        (Encoding::RLE, Type::BOOLEAN) => {
            let mut bits: Vec<u16> = Vec::new();
            let (runs, _) = levels_and_values(bytes)?;
            hybrid(&runs, 1, count, &mut bits)?;
            bits.iter().for_each(|bit| number(i64::from(*bit)));
        }
        (Encoding::PLAIN, Type::BYTE_ARRAY) => {
            plain_texts(bytes, count, |text| each(Cell::Text(text)))?;
            return Ok(true);
        }
        _ => return Ok(false),
    }
    failed.map(|()| true)
}

/// Whether values are indices into a dictionary.
fn is_indexed(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY)
}

/// Refuses indices beyond their dictionary.
fn check_indices<I: Index>(indices: &[I], entries: usize) -> Result<(), String> {
    match indices.iter().copied().max().map(Into::<u64>::into) {
        Some(highest) if highest >= entries as u64 => {
            Err(format!("an index of {highest} into a dictionary of {entries}"))
        }
        _ => Ok(()),
    }
}

/// A column of numbers that hardly repeat.
pub(super) struct Numbers<T> {
    pages: Pages,
    dictionary: Vec<T>,
    /// Cells of the current page.
    cells: Vec<T>,
    taken: usize,
}

impl<T: Number> Numbers<T> {
    /// Opens column `place` of `group`.
    pub(super) fn open(
        excerpt: &Arc<Excerpt>,
        group: &RowGroupMetaData,
        place: usize,
        kind: Type,
    ) -> Result<Self, String> {
        let pages = Pages::open(excerpt, group, place, kind)?;
        Ok(Self { pages, dictionary: Vec::new(), cells: Vec::new(), taken: 0 })
    }

    /// Number of unread cells of the page, at least one.
    pub(super) fn left(&mut self) -> Result<usize, String> {
        if self.taken == self.cells.len() {
            self.turn()?;
        }
        Ok(self.cells.len() - self.taken)
    }

    /// The next `count` cells of the page, at most those [left](Self::left).
    pub(super) fn take(&mut self, count: usize) -> &[T] {
        self.taken += count;
        &self.cells[self.taken - count..self.taken]
    }

    fn turn(&mut self) -> Result<(), String> {
        let Self { pages, dictionary, cells, taken } = self;
        let values = pages.next(|kind, values| {
            dictionary.clear();
            each_cell(kind, values, |cell| {
                if let Cell::Number(number) = cell {
                    dictionary.push(T::of(number));
                }
                Ok(())
            })
            .map(drop)
        })?;
        cells.clear();
        *taken = 0;
        let count = values.count;
        let decoded = match (values.encoding, pages.kind) {
            (encoding, _) if is_indexed(encoding) => {
                let mut indices: Vec<u32> = Vec::new();
                dictionary_indices(&values.bytes, count, &mut indices)
                    .and_then(|()| check_indices(&indices, dictionary.len()))
                    .map(|()| cells.extend(indices.iter().map(|index| dictionary[*index as usize])))
            }
            (Encoding::DELTA_BINARY_PACKED, Type::INT32 | Type::INT64) => deltas(&values.bytes, count, cells),
            (Encoding::PLAIN, Type::INT64) => {
                plain(&values.bytes, count, |cell| cells.push(T::of(i64::from_le_bytes(cell))))
            }
            (Encoding::PLAIN, Type::INT32) => {
                let number = |cell| i64::from(i32::from_le_bytes(cell));
                plain(&values.bytes, count, |cell| cells.push(T::of(number(cell))))
            }
            (encoding, _) => return Err(pages.unknown(encoding)),
        };
        decoded.map_err(|problem| pages.damaged(&problem))
    }
}

/// A column of repeating cells, as dictionary indices.
pub(super) struct Codes<T> {
    pages: Pages,
    /// Value of each index; entries of the dictionary come first.
    meaning: Vec<T>,
    /// Indices of the current page.
    indices: Vec<u16>,
    taken: usize,
}

impl<T: Copy + Eq + Hash> Codes<T> {
    /// Opens column `place` of `group`.
    pub(super) fn open(
        excerpt: &Arc<Excerpt>,
        group: &RowGroupMetaData,
        place: usize,
        kind: Type,
    ) -> Result<Self, String> {
        let pages = Pages::open(excerpt, group, place, kind)?;
        Ok(Self { pages, meaning: Vec::new(), indices: Vec::new(), taken: 0 })
    }

    /// Number of unread cells of the page, at least one. `meaning` converts a cell to its value.
    pub(super) fn left(&mut self, meaning: impl Fn(Cell<'_>) -> Option<T>) -> Result<usize, String> {
        if self.taken == self.indices.len() {
            self.turn(meaning)?;
        }
        Ok(self.indices.len() - self.taken)
    }

    /// The next `count` cells of the page, at most those [left](Self::left), as indices into the returned values.
    pub(super) fn take(&mut self, count: usize) -> (&[u16], &[T]) {
        self.taken += count;
        (&self.indices[self.taken - count..self.taken], &self.meaning)
    }

    fn turn(&mut self, meaning_of: impl Fn(Cell<'_>) -> Option<T>) -> Result<(), String> {
        let Self { pages, meaning, indices, taken } = self;
        let name = pages.name.clone();
        let meaning_of = |cell: Cell<'_>| {
            meaning_of(cell).ok_or_else(|| match cell {
                Cell::Text(_) => format!("the column `{name}` has a word outside its vocabulary"),
                Cell::Number(number) => format!("the column `{name}` has the impossible value {number}"),
            })
        };
        let values = pages.next(|kind, values| {
            meaning.clear();
            each_cell(kind, values, |cell| meaning_of(cell).map(|value| meaning.push(value))).map(drop)
        })?;
        indices.clear();
        *taken = 0;
        if is_indexed(values.encoding) {
            return dictionary_indices(&values.bytes, values.count, indices)
                .and_then(|()| check_indices(indices, meaning.len()))
                .map_err(|problem| pages.damaged(&problem));
        }
        // Values missing from the dictionary are appended to it.
        let mut known: HashMap<T, usize> = HashMap::new();
        for (place, value) in meaning.iter().enumerate() {
            known.entry(*value).or_insert(place);
        }
        let is_known = each_cell(pages.kind, &values, |cell| {
            let value = meaning_of(cell)?;
            let place = *known.entry(value).or_insert_with(|| {
                meaning.push(value);
                meaning.len() - 1
            });
            indices.push(u16::try_from(place).map_err(|_| "more values than it can have".to_owned())?);
            Ok(())
        });
        match is_known.map_err(|problem| pages.damaged(&problem))? {
            true => Ok(()),
            false => Err(pages.unknown(values.encoding)),
        }
    }
}
