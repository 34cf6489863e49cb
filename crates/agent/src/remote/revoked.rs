//! Members whose certificates no longer count on this host.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::private_file;

const FILE: &str = "revoked.json";
/// Certificates, at most.
const MOST: usize = 10_000;

/// By the fingerprint of a certificate (SHA-256, hexadecimal), whose it was; kept in the folder of the host's key.
#[derive(Debug)]
pub struct Revoked {
    file: PathBuf,
    all: Mutex<BTreeMap<String, String>>,
}

impl Revoked {
    /// As it was left.
    ///
    /// # Errors
    /// What was left cannot be read.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let file = folder.join(FILE);
        let kept = private_file::read(&file)?;
        let all = kept.map(|text| serde_json::from_str(&text)).transpose()?.unwrap_or_default();
        Ok(Self { file, all: Mutex::new(all) })
    }

    /// A certificate counts no longer, for good.
    ///
    /// # Errors
    /// The disk refuses, or there are too many.
    pub fn add(&self, fingerprint: &[u8; 32], name: &str) -> io::Result<()> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            return Err(io::Error::other(format!("{MOST} certificates are revoked already; make a new lab")));
        }
        let mut more = all.clone();
        more.insert(hex(fingerprint), name.to_owned());
        private_file::write(&self.file, &serde_json::to_string(&more)?)?;
        *all = more;
        Ok(())
    }

    /// Whether it counts no longer.
    pub fn has(&self, fingerprint: &[u8; 32]) -> bool {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&hex(fingerprint))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
