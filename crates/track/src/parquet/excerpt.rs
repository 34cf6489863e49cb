//! A row group in memory: read at once instead of page by page with several system calls each.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::{Buf, Bytes, buf};

/// Bytes of a file from an offset on.
pub(super) struct Excerpt {
    from: u64,
    bytes: Bytes,
}

impl Excerpt {
    /// Reads the columns of `group` for which `wanted` is true, with all bytes between them; short if the file ends
    /// before.
    pub(super) fn read(
        mut file: File,
        group: &RowGroupMetaData,
        wanted: impl Fn(usize) -> bool,
    ) -> std::io::Result<Self> {
        let columns = group.columns().iter().enumerate().filter(|(place, _)| wanted(*place));
        let ranges = columns.map(|(_, column)| range(column)).collect::<Option<Vec<_>>>();
        let ranges = ranges
            .ok_or_else(|| std::io::Error::other("a column begins before the file or has no length"))?;
        let from = ranges.iter().map(|(start, _)| *start).min().unwrap_or_default();
        let to = ranges.iter().map(|(start, length)| start.saturating_add(*length)).max().unwrap_or_default();
        let length = to.min(file.metadata()?.len()).saturating_sub(from);
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        file.seek(SeekFrom::Start(from))?;
        file.take(length).read_to_end(&mut bytes)?;
        Ok(Self { from, bytes: bytes.into() })
    }

    fn beyond(&self, start: u64) -> ParquetError {
        ParquetError::EOF(format!("the row group ends at byte {}, its pages go on from {start}", self.len()))
    }
}

/// Offset and length of a column in bytes; `None` if a damaged file states a negative one, for which
/// [`ColumnChunkMetaData::byte_range`] would panic.
fn range(column: &ColumnChunkMetaData) -> Option<(u64, u64)> {
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    u64::try_from(start).ok().zip(u64::try_from(column.compressed_size()).ok())
}

impl Length for Excerpt {
    fn len(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }
}

impl ChunkReader for Excerpt {
    type T = buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let at = start.checked_sub(self.from).and_then(|at| usize::try_from(at).ok());
        let at = at.filter(|at| *at <= self.bytes.len()).ok_or_else(|| self.beyond(start))?;
        Ok(self.bytes.slice(at..).reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let at = start.checked_sub(self.from).and_then(|at| usize::try_from(at).ok());
        let end = at.and_then(|at| at.checked_add(length)).filter(|end| *end <= self.bytes.len());
        let (Some(at), Some(end)) = (at, end) else { return Err(self.beyond(start)) };
        Ok(self.bytes.slice(at..end))
    }
}
