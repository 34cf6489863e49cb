//! Files readable by this user only, written atomically.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Creates `folder` with mode 700 if it does not exist.
///
/// # Errors
/// It cannot be created, is a link or not a folder, has another owner, or is accessible to others.
pub fn enter(folder: &Path) -> io::Result<()> {
    if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(folder)?;
    let (user, mode) = (rustix::process::geteuid().as_raw(), found.mode() & 0o777);
    if !found.is_dir() || found.uid() != user || mode & 0o077 != 0 {
        return Err(io::Error::other(format!(
            "it must be a folder of user {user} with mode 700, and has user {} and mode {mode:03o}",
            found.uid()
        )));
    }
    Ok(())
}

/// Content of a file; `None` if there is none.
///
/// # Errors
/// The file is unreadable, or readable by others.
pub fn read(path: &Path) -> io::Result<Option<String>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mode = found.mode() & 0o777;
    if !found.is_file() || mode & 0o077 != 0 {
        return Err(io::Error::other(format!("it must be a file with mode 600, and has mode {mode:03o}")));
    }
    fs::read_to_string(path).map(Some)
}

/// Replaces a file and syncs it to the disk.
///
/// # Errors
/// Refused by the disk; the previous content is then unchanged.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    // A rename is durable once the folder is synced.
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
