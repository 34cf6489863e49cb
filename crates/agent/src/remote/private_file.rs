//! Files that only this user may read, written whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Makes `folder` with mode 700, unless it is there already.
///
/// # Errors
/// It cannot be made, or it is a link, no folder, somebody else's, or open to others.
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

/// What a file holds; `None` where there is none.
///
/// # Errors
/// It cannot be read, or others may read it.
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

/// Replaces a file; on the disk when this returns.
///
/// # Errors
/// The disk refuses. What was there before is still there then.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    // A rename is on the disk when its folder is.
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
