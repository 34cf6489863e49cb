//! Kernel information files below a root: `/`, or a folder in tests.

use std::fs;
use std::io;
#[cfg(test)]
use std::path::Path;
use std::path::PathBuf;

/// Root of the files.
pub(crate) struct Tree(PathBuf);

impl Tree {
    /// Files of this host.
    pub(crate) fn here() -> Self {
        Self("/".into())
    }

    #[cfg(test)]
    pub(crate) fn below(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// Text of a file without surrounding white space, or the reason why it is unreadable.
    pub(crate) fn read(&self, path: &str) -> Result<String, String> {
        let told = fs::read_to_string(self.at(path)).map_err(|error| reason(path, &error))?;
        Ok(told.trim().to_owned())
    }

    /// Bytes of a file.
    pub(crate) fn bytes(&self, path: &str) -> Result<Vec<u8>, String> {
        fs::read(self.at(path)).map_err(|error| reason(path, &error))
    }

    /// Number in a file.
    pub(crate) fn number(&self, path: &str) -> Result<i64, String> {
        let text = self.read(path)?;
        text.parse().map_err(|_| format!("{path} holds no number but \"{text}\""))
    }

    /// Sorted names in a folder.
    pub(crate) fn names(&self, path: &str) -> Result<Vec<String>, String> {
        let entries = fs::read_dir(self.at(path)).map_err(|error| reason(path, &error))?;
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }

    /// True if the file or folder exists.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }
}

/// Reason why a file is unreadable.
fn reason(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no {path} here"),
        io::ErrorKind::PermissionDenied => format!("this user may not read {path}"),
        _ => format!("{path}: {error}"),
    }
}
