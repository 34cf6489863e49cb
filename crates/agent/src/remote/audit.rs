//! Audit log of calls to an agent over a network, with caller and result: one line of JSON per call, synced to the
//! disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use wg_net::clock;

use crate::console;

/// Audit entry of a call.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Name and role of the caller.
    pub who: &'a str,
    /// Address of the caller.
    pub from: Option<SocketAddr>,
    /// Name of the call.
    pub call: &'a str,
    /// Reason for a refusal; `None`: admitted.
    pub refused: Option<&'a str>,
    /// Changes to the host.
    pub done: Option<&'a str>,
}

#[derive(Serialize)]
struct Line<'a> {
    realtime_ns: i64,
    who: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    call: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<&'a str>,
}

/// Maximum size of the log, bytes, after which it is rotated.
const LARGEST: u64 = 16 << 20;
/// Number of rotated logs; `audit.log.1` is the newest.
const ASIDE: u32 = 4;
/// Maximum length of a text in an entry, bytes.
const LONGEST: usize = 500;
const NAME: &str = "audit.log";

/// Append-only log. With rotation at least the last 64 MiB are kept.
#[derive(Debug)]
pub struct Audit {
    folder: PathBuf,
    file: Mutex<File>,
}

impl Audit {
    /// Opens `audit.log` in a folder.
    ///
    /// # Errors
    /// Refused by the disk.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self { folder: folder.to_owned(), file: Mutex::new(opened(folder)?) })
    }

    /// Adds a call. A disk error is printed to standard error, with the line.
    pub fn write(&self, entry: &Entry<'_>) {
        let line = Line {
            realtime_ns: clock::realtime().get(),
            who: entry.who,
            from: entry.from.map(|from| from.to_string()),
            call: cut(entry.call),
            refused: entry.refused.map(cut),
            done: entry.done,
        };
        let Ok(mut text) = serde_json::to_string(&line) else { return };
        text.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.metadata().is_ok_and(|found| found.len() > LARGEST) {
            match put_aside(&self.folder).and_then(|()| opened(&self.folder)) {
                Ok(fresh) => *file = fresh,
                Err(error) => console::complain(&format!("the audit log cannot be put aside: {error}")),
            }
        }
        if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_data()) {
            console::complain(&format!("the audit log cannot be written ({error}): {}", text.trim_end()));
        }
    }
}

/// Truncates a caller's text, so that callers cannot fill the log.
fn cut(text: &str) -> &str {
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= LONGEST).unwrap_or(text.len());
    &text[..end]
}

fn opened(folder: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(folder.join(NAME))
}

fn put_aside(folder: &Path) -> io::Result<()> {
    let aside = |number: u32| folder.join(format!("{NAME}.{number}"));
    for number in (1..ASIDE).rev().filter(|number| aside(*number).exists()) {
        fs::rename(aside(number), aside(number + 1))?;
    }
    fs::rename(folder.join(NAME), aside(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_is_put_aside_and_the_oldest_goes() {
        let folder = std::env::temp_dir().join(format!("wiregauge-audit-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for round in 0_u64..6 {
            let log = Audit::open(&folder).unwrap();
            let entry = Entry { who: "a", from: None, call: "Hello", refused: None, done: None };
            log.write(&entry);
            log.file.lock().unwrap().set_len(LARGEST + 1 + round).unwrap();
            log.write(&entry);
            assert!(fs::metadata(folder.join(NAME)).unwrap().len() < 1_000);
        }
        let length = |number| fs::metadata(folder.join(format!("{NAME}.{number}"))).map(|found| found.len());
        assert_eq!([1, 2, 3, 4].map(|n| length(n).unwrap() - LARGEST), [6, 5, 4, 3]);
        assert!(length(5).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
