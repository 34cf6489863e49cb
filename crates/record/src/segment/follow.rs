//! Reading the segments of a writer that goes on writing, as far as its whole batches go.

use std::io;
use std::path::{Path, PathBuf};

use super::growing::{Fetched, Growing};
use super::message::place;
use super::row::decode;
use super::segment_files;
use crate::error::RecordError;
use crate::guard::guarded;
use crate::schema::Record;

/// Follows the segments of one directory. What is not whole yet is read later; a damaged file is not followed any more,
/// because [`SegmentReader`](super::SegmentReader) reports it in the end.
#[derive(Debug)]
pub struct SegmentFollower {
    directory: PathBuf,
    current: Option<Growing>,
    /// The last file that was begun.
    last: Option<PathBuf>,
    message: Vec<u8>,
    batch: Vec<Record>,
}

impl SegmentFollower {
    /// Begins with the first file of a directory, which need not be there yet.
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            current: None,
            last: None,
            message: Vec::new(),
            batch: Vec::new(),
        }
    }

    /// The next whole batch; `None` while there is none.
    ///
    /// # Errors
    /// [`RecordError::Read`] when a file cannot be read or is damaged.
    pub fn next_batch(&mut self) -> Result<Option<&[Record]>, RecordError> {
        loop {
            let Some(current) = &mut self.current else {
                if !self.begin_file()? {
                    return Ok(None);
                }
                continue;
            };
            let path = self.last.as_deref().unwrap_or(&self.directory);
            let read = current.fetch(&mut self.message).map_err(|error| RecordError::read(path, error))?;
            match read {
                Fetched::Nothing => return Ok(None),
                Fetched::End => self.current = None,
                Fetched::Message => {
                    // The first message of a file is its schema.
                    let Some(cells) = place(&self.message).and_then(|place| self.message.get(place)) else {
                        continue;
                    };
                    self.batch.clear();
                    let batch = &mut self.batch;
                    guarded(|| decode(cells.as_chunks().0, batch))
                        .map_err(|problem| RecordError::read(path, io::Error::other(problem)))?;
                    return Ok(Some(&self.batch));
                }
            }
        }
    }

    /// Opens the file after the last; false while there is none.
    fn begin_file(&mut self) -> Result<bool, RecordError> {
        let next = segment_files(&self.directory)?
            .into_iter()
            .find(|path| self.last.as_ref().is_none_or(|last| path > last));
        let Some(path) = next else { return Ok(false) };
        self.current = Some(Growing::open(&path).map_err(|error| RecordError::read(&path, error))?);
        self.last = Some(path);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BATCH_RECORDS, SegmentInfo, SegmentWriter};
    use super::*;
    use crate::{Clock, Crc, DropReason, Point, RecordFlags};
    use wg_frame::time::RunTime;

    fn record(sequence: u32) -> Record {
        Record {
            time: RunTime::from_picos(i64::from(sequence) * 1_000),
            sequence,
            flow: 3,
            node: 1,
            port: 1,
            length: 64,
            point: Point::ApplicationSend,
            clock: Clock::Realtime,
            crc: Crc::Ok,
            reason: DropReason::None,
            flags: RecordFlags::empty(),
        }
    }

    fn drain(follower: &mut SegmentFollower) -> Vec<u32> {
        let mut found = Vec::new();
        while let Some(batch) = follower.next_batch().expect("sound segments") {
            found.extend(batch.iter().map(|record| record.sequence));
        }
        found
    }

    #[test]
    fn every_record_is_read_once_as_soon_as_its_batch_is_whole_over_several_files() {
        let place = std::env::temp_dir().join(format!("wg-follow-{}", std::process::id()));
        let mut follower = SegmentFollower::new(&place);
        assert_eq!(drain(&mut follower), Vec::<u32>::new(), "there is no folder yet");
        let info = SegmentInfo { end_system: "a".into(), node: 1, run_index: 0, epoch_realtime_ns: 0 };
        // Two batches a file.
        let mut writer = SegmentWriter::create_rotating(&place, info, 300_000).expect("a folder");
        let many = u32::try_from(5 * BATCH_RECORDS).expect("small");
        let mut seen = Vec::new();
        for sequence in 0..many {
            writer.push(&record(sequence)).expect("room");
            if sequence % 7_001 == 0 {
                let new = drain(&mut follower);
                assert!(seen.len() + new.len() <= sequence as usize + 1);
                seen.extend(new);
            }
        }
        assert!(!seen.is_empty() && seen.len() < many as usize);
        writer.finish().expect("room");
        seen.extend(drain(&mut follower));
        assert_eq!(seen, (0..many).collect::<Vec<_>>());
        assert!(segment_files(&place).expect("a folder").len() > 1);
        std::fs::remove_dir_all(&place).expect("its own");
    }

    #[test]
    fn half_a_batch_waits_and_a_damaged_file_is_told() {
        let place = std::env::temp_dir().join(format!("wg-follow-half-{}", std::process::id()));
        let info = SegmentInfo { end_system: "a".into(), node: 1, run_index: 0, epoch_realtime_ns: 0 };
        let mut writer = SegmentWriter::create(&place, info).expect("a folder");
        writer.write(&[record(0), record(1)]).expect("room");
        writer.finish().expect("room");
        let path = segment_files(&place).expect("a folder").remove(0);
        let whole = std::fs::read(&path).expect("a file");
        let mut follower = SegmentFollower::new(&place);
        for length in [0, 5, 60, whole.len() - 30] {
            std::fs::write(&path, &whole[..length]).expect("room");
            assert_eq!(drain(&mut follower), Vec::<u32>::new(), "{length} bytes");
        }
        std::fs::write(&path, &whole).expect("room");
        assert_eq!(drain(&mut follower), [0, 1]);
        let mut late = SegmentFollower::new(&place);
        assert!(late.next_batch().is_ok());
        std::fs::remove_file(&path).expect("its own");
        assert!(late.next_batch().is_err());
        std::fs::write(&path, b"something quite different").expect("room");
        assert!(SegmentFollower::new(&place).next_batch().is_err());
        std::fs::remove_dir_all(&place).expect("its own");
    }
}
