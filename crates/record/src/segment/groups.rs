//! Records in groups, each of which is put in order before the next one begins.
//!
//! Nearly every group comes in order. So its records are encoded as they come, and where one did not, its cells are decoded
//! and encoded again: a list of the records of a group would be written and read for all of them.

use super::SegmentWriter;
use super::message::Mark;
use crate::error::RecordError;
use crate::schema::Record;

/// Writes segments as [`SegmentWriter`] does, of records in groups.
pub struct GroupWriter {
    writer: SegmentWriter,
    /// Beginning of the group in the unfinished batch.
    begin: Mark,
    /// The records of the group for which the batch has no room. It is written when the group is over.
    beyond: Vec<Record>,
}

impl GroupWriter {
    /// Writes with `writer`; the first group begins.
    pub fn new(writer: SegmentWriter) -> Self {
        Self { begin: writer.batch.mark(), writer, beyond: Vec::new() }
    }

    /// Takes a record of the group.
    #[inline(always)]
    pub fn push(&mut self, record: &Record) {
        if self.writer.batch.is_full() {
            self.push_beyond(*record);
        } else {
            self.writer.batch.push(record);
        }
    }

    /// By value, so that a record need not be in memory where there is room for its cell.
    #[cold]
    fn push_beyond(&mut self, record: Record) {
        self.beyond.push(record);
    }

    /// Sorts the records of the group, those of equal keys in the order they came.
    ///
    /// # Errors
    /// [`RecordError::Write`] where they cannot be read again, which loses them.
    #[cold]
    pub fn sort<K: Ord>(&mut self, key: impl Fn(&Record) -> K) -> Result<(), RecordError> {
        let mut group = Vec::new();
        let taken = self.writer.batch.take_back(&self.begin, &mut group);
        group.append(&mut self.beyond);
        group.sort_by_key(key);
        group.iter().for_each(|record| self.push(record));
        taken.map_err(|problem| RecordError::write(&self.writer.directory, std::io::Error::other(problem)))
    }

    /// The next records are of another group.
    ///
    /// # Errors
    /// As [`SegmentWriter::write`].
    #[inline(always)]
    pub fn begin(&mut self) -> Result<(), RecordError> {
        let begun = if self.writer.batch.is_full() { self.go_on() } else { Ok(()) };
        self.begin = self.writer.batch.mark();
        begun
    }

    #[cold]
    fn go_on(&mut self) -> Result<(), RecordError> {
        let flushed = self.writer.flush();
        let written = self.writer.write(&std::mem::take(&mut self.beyond));
        flushed.and(written)
    }

    /// Ends the last group and the segments, as [`SegmentWriter::finish`] does.
    ///
    /// # Errors
    /// As [`SegmentWriter::write`].
    pub fn finish(mut self) -> Result<u64, RecordError> {
        self.begin()?;
        self.writer.finish()
    }
}
