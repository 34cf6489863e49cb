//! Join code in a file beside the host's key while the code is valid, for users who may read the key but cannot see the
//! agent's output because a service manager started it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wg_frame::time::WallNanos;

use super::join_code::{JoinCode, LIFETIME};
use super::private_file;

const FILE: &str = "join-code";

/// Reason why there is no code to show.
#[derive(Debug, thiserror::Error)]
pub enum NoCode {
    /// Unreadable folder or file.
    #[error("{path}: {source}; only root and the agent's own user may see the join code")]
    Unreadable {
        /// Path.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Not written by an agent.
    #[error("{path} holds no join code; start the agent again for a new one")]
    Damaged {
        /// Path of the file.
        path: PathBuf,
    },
    /// Expired.
    #[error("the join code is older than an hour; start the agent again for a new one")]
    TooOld,
    /// The host is already a member.
    #[error("this host has joined a lab; `wiregauge-agent leave` takes it out, then start the agent again")]
    Joined,
    /// No agent waits for a code.
    #[error("{folder}: no agent waits to be joined; start one with `wiregauge-agent serve`")]
    None {
        /// Folder searched.
        folder: PathBuf,
    },
}

/// Code file; removed on drop.
#[derive(Debug)]
pub struct PostedCode {
    path: PathBuf,
}

impl PostedCode {
    /// Writes a code created at `now`, readable by this user only.
    ///
    /// # Errors
    /// Refused by the disk.
    pub fn post(folder: &Path, code: &JoinCode, now: WallNanos) -> io::Result<Self> {
        let path = folder.join(FILE);
        private_file::write(&path, &format!("{} {code}\n", now.get()))?;
        Ok(Self { path })
    }

    /// Removes the file before the drop, when the code is invalid.
    pub fn withdraw(&self) {
        drop(fs::remove_file(&self.path));
    }

    /// Code posted by an agent in `folder`, and its remaining validity at `now`.
    ///
    /// # Errors
    /// See [`NoCode`].
    pub fn read(folder: &Path, now: WallNanos) -> Result<(JoinCode, Duration), NoCode> {
        let unreadable = |path: PathBuf| move |source| NoCode::Unreadable { path, source };
        let path = folder.join(FILE);
        let Some(text) = private_file::read(&path).map_err(unreadable(path.clone()))? else {
            let member = folder.join("membership.pem");
            return Err(match member.try_exists().map_err(unreadable(member))? {
                true => NoCode::Joined,
                false => NoCode::None { folder: folder.to_owned() },
            });
        };
        let parsed = text.trim_end().split_once(' ').and_then(|(drawn, code)| {
            let drawn: i64 = drawn.parse().ok()?;
            Some((u64::try_from(now.get().checked_sub(drawn)?).ok()?, code.parse().ok()?))
        });
        let (age_ns, code) = parsed.ok_or(NoCode::Damaged { path })?;
        let left = LIFETIME.checked_sub(Duration::from_nanos(age_ns)).filter(|left| !left.is_zero());
        Ok((code, left.ok_or(NoCode::TooOld)?))
    }
}

impl Drop for PostedCode {
    fn drop(&mut self) {
        self.withdraw();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let made = std::env::temp_dir().join(format!("wiregauge-{name}-{}", std::process::id()));
        private_file::enter(&made).expect("a folder of one's own");
        made
    }

    #[test]
    fn a_code_is_shown_while_it_is_good() {
        let (place, code) = (folder("posted"), JoinCode::draw(b"certificate").unwrap());
        let at = |s: i64| WallNanos::new(1_700_000_000_000_000_000 + s * 1_000_000_000);
        assert!(matches!(PostedCode::read(&place, at(0)), Err(NoCode::None { .. })));
        let posted = PostedCode::post(&place, &code, at(0)).unwrap();
        assert_eq!(PostedCode::read(&place, at(60)).unwrap(), (code, LIFETIME - Duration::from_secs(60)));
        assert!(matches!(PostedCode::read(&place, at(3600)), Err(NoCode::TooOld)));
        assert!(
            matches!(PostedCode::read(&place, at(-1)), Err(NoCode::Damaged { .. })),
            "the clock was set back"
        );
        let file = place.join(FILE);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&file, "now ABC\n").unwrap();
        assert!(matches!(PostedCode::read(&place, at(0)), Err(NoCode::Damaged { .. })));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(PostedCode::read(&place, at(0)), Err(NoCode::Unreadable { .. })));
        drop(posted);
        fs::write(place.join("membership.pem"), "x").unwrap();
        assert!(matches!(PostedCode::read(&place, at(0)), Err(NoCode::Joined)));
        fs::remove_dir_all(place).unwrap();
    }
}
