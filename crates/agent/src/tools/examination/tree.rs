//! The files in which the kernel tells of itself, below a root: `/`, or a folder of a test.

use std::fs;
use std::io;
#[cfg(test)]
use std::path::Path;
use std::path::PathBuf;

/// Where they are.
pub(crate) struct Tree(PathBuf);

impl Tree {
    /// Those of this host.
    pub(crate) fn here() -> Self {
        Self("/".into())
    }

    #[cfg(test)]
    pub(crate) fn below(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// A file's text without the white space around it; else why there is none.
    pub(crate) fn read(&self, path: &str) -> Result<String, String> {
        let told = fs::read_to_string(self.at(path)).map_err(|error| reason(path, &error))?;
        Ok(told.trim().to_owned())
    }

    /// A file's bytes.
    pub(crate) fn bytes(&self, path: &str) -> Result<Vec<u8>, String> {
        fs::read(self.at(path)).map_err(|error| reason(path, &error))
    }

    /// A file that holds a number.
    pub(crate) fn number(&self, path: &str) -> Result<i64, String> {
        let text = self.read(path)?;
        text.parse().map_err(|_| format!("{path} holds no number but \"{text}\""))
    }

    /// The names in a folder, in order.
    pub(crate) fn names(&self, path: &str) -> Result<Vec<String>, String> {
        let entries = fs::read_dir(self.at(path)).map_err(|error| reason(path, &error))?;
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }

    /// Whether there is such a file or folder.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }
}

/// Why a file cannot be read, in words.
fn reason(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no {path} here"),
        io::ErrorKind::PermissionDenied => format!("this user may not read {path}"),
        _ => format!("{path}: {error}"),
    }
}
