//! The spool of an agent: one folder for all records, chosen by the user who started the program.
//!
//! A caller names no path. The folder is opened without following a link, must belong to this user alone, and becomes
//! the working directory, so that records go to the folder that was checked, wherever its path leads later. Below it
//! every run has a folder of its own, made by this process.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::campaigns;
use crate::places;

const OURS_ALONE: Mode = Mode::RWXU;

/// Reason why there is no spool.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// No folder was named and there is no default.
    #[error("there is no folder for records, because HOME is not set; name one with --spool")]
    Never,
    /// The kernel refused.
    #[error("{path} cannot be used for records: {source}")]
    Refused {
        /// The folder.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The path is a symbolic link.
    #[error(
        "{path} is a symbolic link or not a folder; the agent writes records only to a folder of its own, not through links"
    )]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// Others could write to it.
    #[error(
        "{path} belongs to user {owner} with mode {mode:03o}; it must belong to user {user} with mode 700"
    )]
    NotOurs {
        /// The folder.
        path: PathBuf,
        /// Owner of the folder.
        owner: u32,
        /// Permissions of the folder.
        mode: u32,
        /// The user of this program.
        user: u32,
    },
    /// The folder is used by another agent.
    #[error("another agent has its records in {path}; end it, or name another folder with --spool")]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// The folder contains records that this process did not create.
    #[error("{path} exists and was not made by this agent; move its contents away first")]
    Taken {
        /// The folder.
        path: PathBuf,
    },
}

/// The spool folder, which is the working directory of this process.
#[derive(Debug, Default)]
pub struct Spool {
    /// Folders that this process has made in it.
    made: Mutex<BTreeSet<PathBuf>>,
    /// A folder of this process alone, and its parent, to leave when the program ends.
    own: Option<PathBuf>,
    /// Lock that keeps other agents out.
    lock: Mutex<Option<std::fs::File>>,
}

impl Spool {
    /// Makes `folder` the place of everything that this process writes; `None`: a new folder below the usual place.
    ///
    /// # Errors
    /// The folder is not private to this user, or cannot be created.
    pub fn enter(folder: Option<&Path>) -> Result<Self, SpoolError> {
        let Some(folder) = folder else {
            let usual = places::usual("agent").ok_or(SpoolError::Never)?;
            std::fs::DirBuilder::new()
                .recursive(true)
                .create(usual.parent().unwrap_or(&usual))
                .map_err(refused(&usual))?;
            make(&usual)?;
            enter(&usual)?;
            let own = PathBuf::from(format!("agent-{}", std::process::id()));
            make(&own)?;
            enter(&own)?;
            return Ok(Self { made: Mutex::default(), own: Some(usual.join(own)), lock: Mutex::default() });
        };
        enter(folder)?;
        Ok(Self::default())
    }

    /// Locks the spool against other agents.
    ///
    /// # Errors
    /// Another agent holds the lock.
    pub fn lock(&self) -> Result<(), SpoolError> {
        let refused = refused(Path::new("the spool"));
        let file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open("lock");
        let file = file.map_err(refused)?;
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
                Ok(())
            }
            Err(_) => Err(SpoolError::Locked { path: std::env::current_dir().unwrap_or_default() }),
        }
    }

    /// A new, empty folder for the records of node `node` in a run, below `folder`, relative to the working directory.
    /// Earlier records of this agent of the same run are removed.
    ///
    /// # Errors
    /// Something is there that this process has not made.
    pub fn place(&self, folder: &Path, run: u32, node: u16) -> Result<PathBuf, SpoolError> {
        let place = campaigns::place(folder, run, node);
        let of_run = place.parent().unwrap_or(folder).to_owned();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        // Agents of one host may share the folder of a run.
        match make(&of_run) {
            Ok(()) | Err(SpoolError::Taken { .. }) => drop(open(&of_run)?),
            Err(error) => return Err(error),
        }
        if made.remove(&place) {
            match std::fs::remove_dir_all(&place) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(refused(&place)(error)),
                _ => {}
            }
        }
        make(&place)?;
        made.insert(place.clone());
        Ok(place)
    }

    /// Removes a folder without records of value.
    pub fn discard(&self, place: &Path) {
        if self.made.lock().unwrap_or_else(PoisonError::into_inner).remove(place) {
            drop(std::fs::remove_dir_all(place));
            // Fails if other nodes have records of the run there.
            let _ = place.parent().map(std::fs::remove_dir);
        }
    }
}

impl Drop for Spool {
    /// Removes an own folder if it is empty.
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            drop(std::fs::remove_dir(own));
        }
    }
}

fn refused(path: &Path) -> impl FnOnce(io::Error) -> SpoolError {
    let path = path.to_owned();
    move |source| SpoolError::Refused { path, source }
}

/// Makes a folder of this user alone; one of [`places::usual`] may exist.
fn make(path: &Path) -> Result<(), SpoolError> {
    match rustix::fs::mkdir(path, OURS_ALONE) {
        Err(Errno::EXIST) if path.is_absolute() => Ok(()),
        Err(Errno::EXIST) => Err(SpoolError::Taken { path: path.to_owned() }),
        made => made.map_err(|error| refused(path)(error.into())),
    }
}

/// Opens a folder that belongs to this user alone and is no link.
fn open(path: &Path) -> Result<rustix::fd::OwnedFd, SpoolError> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => SpoolError::NoFolder { path: path.to_owned() },
        error => refused(path)(error.into()),
    })?;
    let found = rustix::fs::fstat(&folder).map_err(|error| refused(path)(error.into()))?;
    let (user, mode) = (rustix::process::geteuid().as_raw(), found.st_mode & 0o777);
    if found.st_uid != user || mode & 0o077 != 0 {
        return Err(SpoolError::NotOurs { path: path.to_owned(), owner: found.st_uid, mode, user });
    }
    Ok(folder)
}

fn enter(path: &Path) -> Result<(), SpoolError> {
    rustix::process::fchdir(open(path)?).map_err(|error| refused(path)(error.into()))
}
