//! A capture file on a disk that may fill up.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Number of bytes gathered before they are written.
const GATHERED: usize = 256 << 10;

/// A pcapng file being written, block by block. When the disk refuses, the file ends with its last complete block and
/// later frames are counted; the measurement goes on.
#[derive(Debug)]
pub struct CaptureFile {
    path: PathBuf,
    /// `None` once the disk has refused.
    file: Option<File>,
    gathered: Vec<u8>,
    /// Length of the complete blocks in the file, bytes.
    whole: u64,
    frames: u64,
    frames_gathered: u64,
    lost: u64,
    failure: Option<io::Error>,
}

/// Whether the path leads to something that is no regular file.
fn is_no_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file())
}

impl CaptureFile {
    /// Creates a new file, or opens a pipe or a device. An existing file is not overwritten.
    ///
    /// # Errors
    /// The file cannot be created, or exists already.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        let file = match options.write(true).create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_no_file(path) => {
                File::options().write(true).open(path)?
            }
            opened => opened?,
        };
        Ok(Self {
            path: path.to_owned(),
            file: Some(file),
            gathered: Vec::with_capacity(GATHERED + (64 << 10)),
            whole: 0,
            frames: 0,
            frames_gathered: 0,
            lost: 0,
            failure: None,
        })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one block of a frame, written by `put`.
    pub fn frame(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        if self.file.is_none() {
            self.lost += 1;
            return;
        }
        put(&mut self.gathered);
        self.frames_gathered += 1;
        if self.gathered.len() >= GATHERED {
            self.flush();
        }
    }

    /// Appends complete blocks of `frames` frames.
    pub fn frames_of(&mut self, blocks: &[u8], frames: u64) {
        if self.file.is_none() {
            self.lost += frames;
            return;
        }
        self.gathered.extend_from_slice(blocks);
        self.frames_gathered += frames;
        if self.gathered.len() >= GATHERED {
            self.flush();
        }
    }

    /// Appends complete blocks that are no frames.
    pub fn other(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        if self.file.is_some() {
            put(&mut self.gathered);
        }
    }

    /// Writes the gathered bytes.
    pub fn flush(&mut self) {
        let Some(file) = &mut self.file else { return };
        let mut written = 0;
        let refused = loop {
            match file.write(&self.gathered[written..]) {
                _ if written == self.gathered.len() => break None,
                Ok(0) => break Some(io::ErrorKind::WriteZero.into()),
                Ok(some) => written += some,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Some(error),
            }
        };
        match refused {
            None => {
                self.whole += written as u64;
                self.frames += self.frames_gathered;
            }
            Some(error) => {
                let (bytes, frames) = whole_blocks(&self.gathered[..written]);
                self.whole += bytes as u64;
                self.frames += frames;
                self.lost += self.frames_gathered - frames;
                // A partial block after the last complete one is not worth a second error.
                let _ = file.set_len(self.whole);
                self.failure = Some(error);
                self.file = None;
            }
        }
        self.frames_gathered = 0;
        self.gathered.clear();
    }

    /// Ends the file after the gathered bytes, for the reason `why`: further frames are counted as if the disk had
    /// refused.
    pub fn end_early(&mut self, why: String) {
        self.flush();
        if self.file.take().is_some() {
            self.failure = Some(io::Error::other(why));
        }
    }

    /// Number of frames in the file, gathered ones included.
    pub fn frames(&self) -> u64 {
        self.frames + self.frames_gathered
    }

    /// Number of frames that came after the disk had refused, or were lost with it.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether it still takes frames.
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Why the file ends early, as a clause without the file's name; `None`: it does not.
    pub fn failure(&self) -> Option<String> {
        let error = self.failure.as_ref()?;
        Some(format!(
            "cannot be written: {error}; its first {} frames are there and readable, {} are missing; free space or capture \
             fewer bytes (snap)",
            self.frames, self.lost
        ))
    }

    /// The error behind [`failure`](Self::failure).
    pub fn into_error(self) -> Option<io::Error> {
        self.failure
    }
}

/// Bytes and frames of the complete blocks at the beginning of `blocks`, which may be truncated.
fn whole_blocks(blocks: &[u8]) -> (usize, u64) {
    let word = |at: usize| blocks.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
    let (mut at, mut frames) = (0, 0);
    while let (Some(kind), Some(length)) = (word(at), word(at + 4)) {
        let end = at + length as usize;
        if length == 0 || end > blocks.len() {
            break;
        }
        frames += u64::from(kind == 6);
        at = end;
    }
    (at, frames)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;
    use crate::pcapng::{packet, section};

    #[test]
    fn a_cut_within_any_block_keeps_the_blocks_before() {
        let mut blocks = Vec::new();
        section(&mut blocks);
        let head = blocks.len();
        let mut ends = vec![(0, 0), (head, 0)];
        for n in 1..=3_u64 {
            packet(&mut blocks, 0, n, Direction::Unknown, &[&[7; 33]], 33, 96);
            ends.push((blocks.len(), n));
        }
        for cut in 0..=blocks.len() {
            let expected = *ends.iter().rfind(|(end, _)| *end <= cut).unwrap_or(&(0, 0));
            assert_eq!(whole_blocks(&blocks[..cut]), expected, "cut at {cut}");
        }
    }

    #[test]
    fn a_full_disk_ends_the_file_and_counts_the_rest() {
        let Ok(mut capture) = CaptureFile::create(Path::new("/dev/full")) else { return };
        capture.other(section);
        capture.frame(|out| packet(out, 0, 1, Direction::Unknown, &[&[7; 64]], 64, 96));
        capture.flush();
        capture.frame(|out| packet(out, 0, 2, Direction::Unknown, &[&[7; 64]], 64, 96));
        assert_eq!((capture.frames(), capture.lost()), (0, 2));
        let failure = capture.failure().expect("the disk is full");
        assert!(failure.contains("No space left") && failure.contains("2 are missing"), "{failure}");
    }

    #[test]
    fn a_file_that_is_there_stays_as_it_is() {
        let place = std::env::temp_dir().join(format!("wiregauge-taken-{}.pcapng", std::process::id()));
        std::fs::write(&place, "somebody's").expect("there is room");
        let refused = CaptureFile::create(&place).err().map(|error| error.kind());
        let kept = std::fs::read(&place).expect("it is there");
        drop(std::fs::remove_file(&place));
        assert_eq!(refused, Some(io::ErrorKind::AlreadyExists));
        assert_eq!(kept, b"somebody's");
    }

    #[test]
    fn a_file_ended_early_keeps_what_came_before_and_counts_what_comes_after() {
        let place = std::env::temp_dir().join(format!("wiregauge-ended-{}.pcapng", std::process::id()));
        let mut file = CaptureFile::create(&place).expect("there is room");
        file.other(section);
        for n in 0..5 {
            if n == 3 {
                file.end_early("enough".into());
                assert!(!file.is_open());
            }
            file.frame(|out| packet(out, 0, n, Direction::Unknown, &[&[7; 33]], 33, 96));
        }
        file.end_early("again".into());
        file.flush();
        let blocks = std::fs::read(&place).expect("it is there");
        drop(std::fs::remove_file(&place));
        assert_eq!(whole_blocks(&blocks), (blocks.len(), 3));
        assert_eq!((file.frames(), file.lost()), (3, 2));
        let said = file.failure().expect("it says why");
        assert!(said.contains("enough; its first 3 frames are there and readable, 2 are missing"), "{said}");
    }
}
