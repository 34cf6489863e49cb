//! Opening files that another program may have replaced.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file for reading without blocking: opening a FIFO would wait for a writer, and a device has no end.
///
/// # Errors
/// An error if it cannot be opened or is no regular file: [`io::ErrorKind::IsADirectory`] for a directory,
/// [`io::ErrorKind::InvalidInput`] for a FIFO, a socket or a device.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
    {
        // The error for a socket.
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Err(no_file()),
        opened => opened?,
    };
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !found.is_file() {
        return Err(no_file());
    }
    Ok(file)
}

fn no_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "this is a FIFO, a socket or a device; name a file on disk")
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_nothing_is_waited_for() {
        let folder = std::env::temp_dir().join(format!("wiregauge-regular-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is room");
        let at = |name: &str| folder.join(name);
        std::fs::write(at("file"), "text").expect("there is room");
        std::os::unix::fs::symlink(at("loop"), at("loop")).expect("there is room");
        let made = std::process::Command::new("mkfifo").arg(at("fifo")).status().expect("coreutils");
        assert!(made.success());
        let _socket = UnixListener::bind(at("socket")).expect("there is room");
        assert!(open_regular(&at("file")).is_ok());
        let kind = |path: &Path| open_regular(path).map_err(|error| error.kind()).err();
        for odd in [at("fifo"), at("socket"), "/dev/zero".into(), "/dev/null".into()] {
            assert_eq!(kind(&odd), Some(io::ErrorKind::InvalidInput), "{}", odd.display());
        }
        assert_eq!(kind(&folder), Some(io::ErrorKind::IsADirectory));
        assert_eq!(kind(&at("none")), Some(io::ErrorKind::NotFound));
        assert!(kind(&at("loop")).is_some());
        std::fs::remove_dir_all(folder).expect("it is there");
    }
}
