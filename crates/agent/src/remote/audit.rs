//! What was asked of an agent over a network, by whom, and what came of it: a line of JSON each, on the disk at once.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use wg_net::clock;

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Name and role of the caller.
    pub who: &'a str,
    /// Where from.
    pub from: Option<SocketAddr>,
    /// What was called.
    pub call: &'a str,
    /// Why it was refused; `None`: it was not.
    pub refused: Option<&'a str>,
    /// What it changed of the host.
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

/// The log, which is only ever added to.
#[derive(Debug)]
pub struct Audit {
    file: Mutex<File>,
}

impl Audit {
    /// Opens `audit.log` in a folder.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(folder.join("audit.log"))?;
        Ok(Self { file: Mutex::new(file) })
    }

    /// Adds a call. A disk that refuses is told on standard error, with the line.
    pub fn write(&self, entry: &Entry<'_>) {
        let line = Line {
            realtime_ns: clock::realtime().get(),
            who: entry.who,
            from: entry.from.map(|from| from.to_string()),
            call: entry.call,
            refused: entry.refused,
            done: entry.done,
        };
        let Ok(mut text) = serde_json::to_string(&line) else { return };
        text.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_data()) {
            eprintln!("wiregauge-agent: the audit log cannot be written ({error}): {}", text.trim_end());
        }
    }
}
