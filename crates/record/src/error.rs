//! Errors between a record and the disk: the fault of a disk, file or plan, never a panic.

use std::io;
use std::path::{Path, PathBuf};

/// Why records could not be stored or read back. Every message names the file and the cure.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A directory or file could not be created, written or renamed.
    #[error("cannot write {}: {source}{}{}", path.display(), lost_text(*records_lost), write_cure(source))]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
        /// Number of records that were handed over and are in no file; earlier ones stay readable.
        records_lost: u64,
    },
    /// A file could not be opened or read.
    #[error("cannot read {}: {source}; check that the file exists and may be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {problem}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The problem and its cure.
        problem: String,
    },
    /// The encoder refused the columns: a defect of this program.
    #[error("cannot encode {}: {problem}; this is a defect of wiregauge, please report it", path.display())]
    Encode {
        /// The file that was to be written.
        path: PathBuf,
        /// Error of the encoder.
        problem: String,
    },
}

impl RecordError {
    /// [`RecordError::Write`]: writing `path` failed.
    pub fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source, records_lost: 0 }
    }
    /// [`RecordError::Read`]: reading `path` failed.
    pub fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }
    /// [`RecordError::Encode`]: encoding for `path` failed.
    pub fn encode(path: &Path, problem: impl ToString) -> Self {
        Self::Encode { path: path.to_owned(), problem: problem.to_string() }
    }
}

fn lost_text(records: u64) -> String {
    match records {
        0 => String::new(),
        1 => ", 1 record is lost".to_owned(),
        n => format!(", {n} records are lost"),
    }
}

fn write_cure(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free space there or write to another place"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a directory this user may write to"
        }
        io::ErrorKind::FileTooLarge => "; raise the limit on file sizes (ulimit -f)",
        _ => "; check the directory and its disk",
    }
}
