//! Drained state of a host, which takes no new sessions because of maintenance or removal from the lab.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::private_file;

const FILE: &str = "drained.json";

/// Originator and reason of the drained state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drained {
    by: String,
    reason: String,
}

/// Drained state, stored in the folder of the host's key so that it persists.
#[derive(Debug)]
pub struct Drain {
    file: PathBuf,
    now: Mutex<Option<Drained>>,
}

impl Drain {
    /// Stored state.
    ///
    /// # Errors
    /// The stored state is unreadable.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let file = folder.join(FILE);
        let kept = private_file::read(&file)?;
        let now = kept.map(|text| serde_json::from_str(&text)).transpose()?;
        Ok(Self { file, now: Mutex::new(now) })
    }

    /// Stops new sessions, with `reason`.
    ///
    /// # Errors
    /// Refused by the disk.
    pub fn begin(&self, by: &str, reason: &str) -> io::Result<()> {
        let drained = Drained { by: by.into(), reason: reason.into() };
        private_file::write(&self.file, &serde_json::to_string(&drained)?)?;
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = Some(drained);
        Ok(())
    }

    /// Permits sessions again.
    ///
    /// # Errors
    /// Refused by the disk.
    pub fn end(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    /// Description of the drained state; `None` if sessions are permitted.
    pub fn described(&self) -> Option<String> {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.as_ref().map(|Drained { by, reason }| {
            let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            format!("drained by {by}{because}")
        })
    }
}
