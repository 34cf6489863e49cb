//! Reading segments that a crash may have torn.
//!
//! The Arrow decoder trusts the offsets inside a message and panics on one that points outside, so every message is
//! extracted and checked here before it is decoded.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use arrow_array::{Array, FixedSizeBinaryArray, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::{MessageHeader, root_as_message};

use super::message::COLUMN;
use super::row::{CELL, decode};
use super::{Damage, END_MARK, SegmentInfo};
use crate::error::RecordError;
use crate::guard::guarded;
use crate::regular::open_regular;
use crate::schema::Record;

/// Reads a segment batch by batch, up to its end or its damage.
pub struct SegmentReader {
    path: PathBuf,
    stream: Option<StreamReader<Messages>>,
    info: Option<SegmentInfo>,
    batch: Vec<Record>,
    records_read: u64,
    damage: Option<Damage>,
}

impl SegmentReader {
    /// Opens `path`. A damaged head is no error here: the reader then has no records and [`damage`](Self::damage) says
    /// why.
    ///
    /// # Errors
    /// [`RecordError::Read`] when the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let file = open_regular(path).map_err(|e| RecordError::read(path, e))?;
        let bytes = file.metadata().map_err(|e| RecordError::read(path, e))?.len();
        let mut reader = Self {
            path: path.to_owned(),
            stream: None,
            info: None,
            batch: Vec::new(),
            records_read: 0,
            damage: None,
        };
        let opened = Messages::begin(file, bytes).and_then(|messages| {
            let stream = guarded(|| StreamReader::try_new(messages, None)).map_err(damaged)?;
            let info = SegmentInfo::from_metadata(stream.schema().metadata())?;
            Ok((stream, info))
        });
        match opened {
            Ok((stream, info)) => {
                reader.stream = Some(stream);
                reader.info = Some(info);
            }
            Err(problem) => reader.note(problem),
        }
        Ok(reader)
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Origin of the records; `None` if the head is damaged.
    pub fn info(&self) -> Option<&SegmentInfo> {
        self.info.as_ref()
    }

    /// The next batch of records; `None` at the end or at the damage.
    pub fn next_batch(&mut self) -> Option<&[Record]> {
        let mut stream = self.stream.take()?;
        self.batch.clear();
        let next = guarded(|| stream.next().transpose())
            .and_then(|batch| batch.map(|batch| decode_batch(&batch, &mut self.batch)).transpose());
        match next {
            Ok(Some(())) => {
                self.records_read += self.batch.len() as u64;
                self.stream = Some(stream);
                Some(&self.batch)
            }
            Ok(None) => {
                if let Some(problem) = stream.get_mut().take_problem() {
                    self.note(problem);
                }
                None
            }
            Err(problem) => {
                self.note(damaged(problem));
                None
            }
        }
    }

    /// Number of records returned so far.
    pub fn records_read(&self) -> u64 {
        self.records_read
    }

    /// Damage of the file, as far as it was read.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    fn note(&mut self, problem: String) {
        let file = self.path.display().to_string();
        self.damage = Some(Damage { file, problem, records_read: self.records_read, ..Damage::default() });
    }
}

/// The sound messages of a segment as one byte stream, which ends at the end mark or at the first problem.
pub(crate) struct Messages {
    file: BufReader<File>,
    /// Bytes of the file not read yet; lengths stated in the file are limited to it.
    left: u64,
    message: Vec<u8>,
    served: usize,
    over: bool,
    problem: Option<String>,
}

impl Messages {
    /// Starts with the first message.
    pub(crate) fn begin(file: File, bytes: u64) -> Result<Self, String> {
        if bytes == 0 {
            return Err("it is empty: its writer was stopped early".to_owned());
        }
        let file = BufReader::with_capacity(1 << 16, file);
        let mut messages =
            Self { file, left: bytes, message: Vec::new(), served: 0, over: false, problem: None };
        messages.fetch()?;
        Ok(messages)
    }

    /// The problem that ended the stream before its end mark, if any.
    pub(crate) fn take_problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    /// Extracts the next message; sets none at the end mark.
    fn fetch(&mut self) -> Result<(), String> {
        self.message.clear();
        self.served = 0;
        if self.left == 0 {
            return Err("it ends without an end mark: its writer was stopped".to_owned());
        }
        self.take(8)?;
        if self.message == END_MARK {
            self.message.clear();
            self.over = true;
            return match self.left {
                0 => Ok(()),
                left => Err(format!("{left} bytes follow the end mark")),
            };
        }
        let (mark, length) = self.message.split_at(4);
        if mark != &END_MARK[..4] {
            return Err(damaged("no message where one should begin"));
        }
        let length = length.iter().rev().fold(0, |length, &byte| length << 8 | u64::from(byte));
        self.take(length)?;
        let body = body_length(&self.message[8..]).map_err(damaged)?;
        self.take(body)
    }

    /// Appends `bytes` bytes of the file to the message.
    fn take(&mut self, bytes: u64) -> Result<(), String> {
        if bytes > self.left {
            return Err("it ends in the middle of a batch: its writer was stopped".to_owned());
        }
        let read = (&mut self.file)
            .take(bytes)
            .read_to_end(&mut self.message)
            .map_err(|e| format!("it cannot be read on: {e}"))?;
        self.left -= read as u64;
        if (read as u64) < bytes {
            return Err("it became shorter while it was read".to_owned());
        }
        Ok(())
    }
}

impl Read for Messages {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.served == self.message.len() {
            if self.over {
                return Ok(0);
            }
            if let Err(problem) = self.fetch() {
                self.over = true;
                self.message.clear();
                self.problem = Some(problem);
                return Ok(0);
            }
        }
        let n = (&self.message[self.served..]).read(buffer)?;
        self.served += n;
        Ok(n)
    }
}

/// Length of the body that follows this message, after checking every offset into the body.
pub(super) fn body_length(metadata: &[u8]) -> Result<u64, String> {
    let message = root_as_message(metadata).map_err(|e| e.to_string())?;
    let body = u64::try_from(message.bodyLength()).map_err(|_| "a length is negative")?;
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => message.header_as_dictionary_batch().and_then(|batch| batch.data()),
        _ => None,
    };
    for buffer in batch.and_then(|batch| batch.buffers()).into_iter().flatten() {
        let inside = u64::try_from(buffer.offset())
            .ok()
            .zip(u64::try_from(buffer.length()).ok())
            .and_then(|(offset, length)| offset.checked_add(length))
            .is_some_and(|end| end <= body);
        // Arrow columnar format, IPC messages: buffers begin at multiples of 8 bytes.
        if !inside || buffer.offset() % 8 != 0 {
            return Err("a column does not lie within its batch".to_owned());
        }
    }
    Ok(body)
}

/// Appends the records of `batch` to `into`; none if one of them is invalid.
fn decode_batch(batch: &RecordBatch, into: &mut Vec<Record>) -> Result<(), String> {
    let column = batch.column_by_name(COLUMN).and_then(|array| array.as_any().downcast_ref());
    let column: &FixedSizeBinaryArray =
        column.ok_or_else(|| format!("the column `{COLUMN}` is missing or of another type"))?;
    if column.null_count() != 0 {
        return Err(format!("the column `{COLUMN}` has empty cells"));
    }
    let (cells, []) = column.value_data().as_chunks::<CELL>() else {
        return Err(format!("cells do not have {CELL} bytes"));
    };
    decode(cells, into).inspect_err(|_| into.clear())
}

fn damaged(problem: impl std::fmt::Display) -> String {
    format!("it is damaged: {problem}")
}
