//! A host that takes no new sessions: because somebody works at it, or it is to be taken out of the lab.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::private_file;

const FILE: &str = "drained.json";

/// Who wants no new sessions, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drained {
    by: String,
    reason: String,
}

/// Whether the host is drained; kept in the folder of its key, so that it lasts.
#[derive(Debug)]
pub struct Drain {
    file: PathBuf,
    now: Mutex<Option<Drained>>,
}

impl Drain {
    /// As it was left.
    ///
    /// # Errors
    /// What was left cannot be read.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let file = folder.join(FILE);
        let kept = private_file::read(&file)?;
        let now = kept.map(|text| serde_json::from_str(&text)).transpose()?;
        Ok(Self { file, now: Mutex::new(now) })
    }

    /// Takes no new sessions, because of `reason`.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn begin(&self, by: &str, reason: &str) -> io::Result<()> {
        let drained = Drained { by: by.into(), reason: reason.into() };
        private_file::write(&self.file, &serde_json::to_string(&drained)?)?;
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = Some(drained);
        Ok(())
    }

    /// Takes sessions again.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn end(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    /// In words; `None` while sessions are taken.
    pub fn described(&self) -> Option<String> {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.as_ref().map(|Drained { by, reason }| {
            let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            format!("drained by {by}{because}")
        })
    }
}
