//! Messages of a file that its writer goes on writing.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::END_MARK;
use super::read::body_length;
use crate::regular::open_regular;

/// What is there of the next message.
pub(crate) enum Fetched {
    Nothing,
    Message,
    End,
}

/// A file of messages that its writer goes on writing.
#[derive(Debug)]
pub(crate) struct Growing {
    file: File,
    /// Beginning of the next message.
    at: u64,
}

impl Growing {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: open_regular(path)?, at: 0 })
    }

    /// Reads the next message if all of it is there.
    pub(crate) fn fetch(&mut self, message: &mut Vec<u8>) -> io::Result<Fetched> {
        let file = self.file.metadata()?;
        if file.nlink() == 0 {
            return Err(io::Error::other("it was removed"));
        }
        let there = file.len().saturating_sub(self.at);
        let mut head = [0; 8];
        if there < 8 {
            return Ok(Fetched::Nothing);
        }
        self.file.read_exact_at(&mut head, self.at)?;
        if head == END_MARK {
            return Ok(Fetched::End);
        }
        let [mark, length] = [&head[..4], &head[4..]];
        if mark != &END_MARK[..4] {
            return Err(io::Error::other("no message where one should begin"));
        }
        let length = length.iter().rev().fold(0, |length, &byte| length << 8 | u64::from(byte));
        if there < 8 + length {
            return Ok(Fetched::Nothing);
        }
        self.read(message, 8 + length)?;
        let body = body_length(&message[8..]).map_err(io::Error::other)?;
        if there - 8 - length < body {
            return Ok(Fetched::Nothing);
        }
        self.read(message, 8 + length + body)?;
        self.at += 8 + length + body;
        Ok(Fetched::Message)
    }

    fn read(&self, message: &mut Vec<u8>, bytes: u64) -> io::Result<()> {
        message.resize(usize::try_from(bytes).map_err(io::Error::other)?, 0);
        self.file.read_exact_at(message, self.at)
    }
}
