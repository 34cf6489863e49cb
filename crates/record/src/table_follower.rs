//! Reading a table of a run that goes on, as far as its whole batches go.

use std::io;
use std::path::{Path, PathBuf};

use arrow_ipc::reader::StreamReader;

use crate::error::RecordError;
use crate::guard::guarded;
use crate::segment::{Fetched, Growing};
use crate::table::Row;

/// Most bytes before the first batch: schema and dictionary.
const MOST_BEFORE: usize = 1 << 20;

/// Follows the table in one spool. What is not whole yet is read later; [`read_table`](crate::read_table) reports damage in
/// the end.
#[derive(Debug)]
pub struct TableFollower<R> {
    path: PathBuf,
    file: Option<Growing>,
    /// Messages before the first batch, which every batch needs.
    before: Vec<u8>,
    message: Vec<u8>,
    batch: Vec<R>,
}

impl<R: Row> TableFollower<R> {
    /// Begins with the first batch of the table in `spool`, which need not be there yet.
    pub fn new(spool: &Path) -> Self {
        let path = spool.join(R::FILE);
        Self { path, file: None, before: Vec::new(), message: Vec::new(), batch: Vec::new() }
    }

    /// The next whole batch; `None` while there is none.
    ///
    /// # Errors
    /// [`RecordError::Read`] when the file cannot be read or is damaged.
    pub fn next_batch(&mut self) -> Result<Option<&[R]>, RecordError> {
        if self.file.is_none() {
            match Growing::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(RecordError::read(&self.path, error)),
            }
        }
        while let Some(file) = &mut self.file {
            let read = file.fetch(&mut self.message).map_err(|error| RecordError::read(&self.path, error))?;
            if !matches!(read, Fetched::Message) {
                return Ok(None);
            }
            let known = self.before.len();
            self.before.extend_from_slice(&self.message);
            if self.decode()? {
                self.before.truncate(known);
                return Ok(Some(&self.batch));
            }
            if self.before.len() > MOST_BEFORE {
                let problem = "no rows where they should begin";
                return Err(RecordError::read(&self.path, io::Error::other(problem)));
            }
        }
        Ok(None)
    }

    /// Decodes the batch that ends what was read; false if it does not end with one.
    fn decode(&mut self) -> Result<bool, RecordError> {
        self.batch.clear();
        let (bytes, batch) = (self.before.as_slice(), &mut self.batch);
        guarded(|| StreamReader::try_new(bytes, None))
            .and_then(|mut stream| guarded(|| stream.next().transpose()))
            .and_then(|found| found.map(|found| R::decode(&found, batch)).transpose())
            .map(|found| found.is_some())
            .map_err(|problem| RecordError::read(&self.path, io::Error::other(problem)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FLOW_FOREIGN, RecordFlags, TableWriter, Truth, TruthKind};
    use wg_frame::time::RunTime;

    fn offset(at_us: i64) -> Truth {
        Truth {
            time: RunTime::from_picos(at_us * 1_000_000),
            value: 7 * at_us,
            sequence: 0,
            flow: FLOW_FOREIGN,
            node: 2,
            port: 0,
            kind: TruthKind::ClockOffset,
            flags: RecordFlags::empty(),
        }
    }

    fn drain(follower: &mut TableFollower<Truth>) -> Vec<Truth> {
        let mut found = Vec::new();
        while let Some(batch) = follower.next_batch().expect("a sound table") {
            found.extend_from_slice(batch);
        }
        found
    }

    #[test]
    fn every_row_is_read_once_as_soon_as_its_batch_is_whole() {
        let spool = std::env::temp_dir().join(format!("wg-table-follow-{}", std::process::id()));
        let mut follower = TableFollower::new(&spool);
        assert_eq!(drain(&mut follower), [], "there is no folder yet");
        let mut writer = TableWriter::create(&spool, 0).expect("a folder");
        let rows: Vec<_> = (0..20_000).map(offset).collect();
        let mut seen = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            writer.push(*row).expect("room");
            if number % 1_999 == 0 {
                seen.extend(drain(&mut follower));
                assert!(seen.len() <= number + 1);
            }
        }
        assert!(!seen.is_empty() && seen.len() < rows.len());
        writer.finish().expect("room");
        seen.extend(drain(&mut follower));
        assert_eq!(seen, rows);
        std::fs::remove_dir_all(&spool).expect("its own");
    }

    #[test]
    fn half_a_message_waits_and_damage_is_told() {
        let spool = std::env::temp_dir().join(format!("wg-table-half-{}", std::process::id()));
        let mut writer = TableWriter::create(&spool, 0).expect("a folder");
        writer.push(offset(1)).expect("room");
        writer.finish().expect("room");
        let path = spool.join(Truth::FILE);
        let whole = std::fs::read(&path).expect("a file");
        let mut follower = TableFollower::new(&spool);
        for length in [0, 5, 100, whole.len() - 30] {
            std::fs::write(&path, &whole[..length]).expect("room");
            assert_eq!(drain(&mut follower), [], "{length} bytes");
        }
        std::fs::write(&path, &whole).expect("room");
        assert_eq!(drain(&mut follower), [offset(1)]);
        std::fs::write(&path, b"something quite different").expect("room");
        assert!(TableFollower::<Truth>::new(&spool).next_batch().is_err());
        std::fs::remove_dir_all(&spool).expect("its own");
    }
}
