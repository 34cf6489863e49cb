//! Revoked certificates of this host.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::private_file;

const FILE: &str = "revoked.json";
/// Maximum number of certificates.
const MOST: usize = 10_000;

/// Names by certificate fingerprint (SHA-256, hexadecimal), stored in the folder of the host's key.
#[derive(Debug)]
pub struct Revoked {
    file: PathBuf,
    all: Mutex<BTreeMap<String, String>>,
}

impl Revoked {
    /// Stored certificates.
    ///
    /// # Errors
    /// The stored file is unreadable.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let file = folder.join(FILE);
        let kept = private_file::read(&file)?;
        let all = kept.map(|text| serde_json::from_str(&text)).transpose()?.unwrap_or_default();
        Ok(Self { file, all: Mutex::new(all) })
    }

    /// Revokes a certificate permanently.
    ///
    /// # Errors
    /// Refused by the disk, or too many certificates.
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

    /// True if the certificate is revoked.
    pub fn has(&self, fingerprint: &[u8; 32]) -> bool {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&hex(fingerprint))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
