//! Sets a host for measurements and restores its previous settings.
//!
//! The settings are a closed list of [`Fix`]es that do not survive a reboot and do not affect firewalls, clocks or
//! addresses. The previous value is stored on the disk before a change, so that the next process can restore it if this
//! one is killed. Only settings that still have the value set here are restored; later changes by others are kept.

mod settings;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use tonic::Status;

pub use settings::Fix;
use settings::{Host, Setting, Settings};

use crate::console;
use crate::proto;
use crate::remote::allowance::Allowance;
use crate::remote::audit::{Audit, Entry};
use crate::remote::private_file;
use crate::tools::place::Place;

/// File of previous values.
const FILE: &str = "changed.json";
/// Lock file, held while the file is read and written.
const LOCK: &str = "changed.lock";

/// Caller name in the audit log for changes by the agent itself.
const OWN: &str = "this agent";

/// Changed setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Name of the fix.
    pub fix: String,
    /// Name of the interface; empty for the whole host.
    pub interface: String,
    /// Name of the setting.
    pub setting: String,
    /// Previous value.
    pub before: String,
    /// New value.
    pub after: String,
    /// Reason why it was not changed; empty if it was.
    pub refused: String,
}

impl From<Change> for proto::Change {
    fn from(one: Change) -> Self {
        let Change { fix, interface, setting, before, after, refused } = one;
        Self { fix, interface, setting, before, after, refused }
    }
}

/// Stored previous value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    fix: String,
    interface: String,
    setting: String,
    before: String,
    after: String,
    place: Place,
    /// Session for which it was changed; `None`: kept until requested.
    session: Option<String>,
}

/// Changes to be undone.
#[derive(Clone, Copy, Debug)]
pub enum Undo<'a> {
    /// All changes.
    All,
    /// Changes of ended sessions; settings of the whole host remain while any session is active.
    Ended {
        /// Active sessions.
        live: &'a [Vec<u8>],
    },
}

/// Changes and restores settings, and stores their previous values.
pub struct Mending {
    folder: PathBuf,
    settings: Box<dyn Settings>,
    audit: Option<Arc<Audit>>,
    /// Serializes the callers of one agent; other processes are excluded by the lock file.
    turn: Mutex<()>,
}

impl Mending {
    /// Stores previous values in `folder`, which must be private to this user, and logs each change to `audit`.
    pub fn in_folder(folder: &Path, audit: Option<Arc<Audit>>) -> Self {
        Self { folder: folder.to_owned(), settings: Box::new(Host), audit, turn: Mutex::default() }
    }

    /// Applies fixes to an interface, and host-wide fixes to the host. Suitable settings are not changed.
    ///
    /// # Errors
    /// The interface does not exist, or previous values cannot be stored; in this case nothing was changed.
    pub fn mend(
        &self,
        interface: &str,
        fixes: &[Fix],
        session: Option<&[u8]>,
        who: &str,
    ) -> io::Result<Vec<Change>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let _lock = self.locked()?;
        let mut kept = self.kept()?;
        let mut changes: Vec<Change> = Vec::new();
        for fix in fixes {
            let made = changes.len();
            let of = if fix.is_of_interface() { interface } else { "" };
            let place = self.settings.place(of).map_err(io::Error::other)?;
            for setting in fix.settings() {
                let Some(mut change) = self.due(*fix, setting, of) else { continue };
                kept.retain(|one| {
                    !(one.setting == change.setting && one.interface == of && one.place == place)
                });
                kept.push(Kept {
                    fix: change.fix.clone(),
                    interface: of.into(),
                    setting: change.setting.clone(),
                    before: change.before.clone(),
                    after: change.after.clone(),
                    place: place.clone(),
                    session: session.map(hex),
                });
                self.keep(&kept)?;
                match self.write(setting, of, &change) {
                    Ok(now) if now == change.after => {}
                    // The value the driver selected is the one to compare on restoration.
                    Ok(now) => {
                        if let Some(last) = kept.last_mut() {
                            last.after.clone_from(&now);
                        }
                        self.keep(&kept)?;
                        change.after = now;
                    }
                    Err(refused) => {
                        kept.pop();
                        self.keep(&kept)?;
                        change.refused = refused;
                    }
                }
                self.log(who, "Mend", &change);
                changes.push(change);
            }
            if fix.renegotiates() && changes[made..].iter().any(|change| change.refused.is_empty()) {
                self.settings.await_link(of);
            }
        }
        Ok(changes)
    }

    /// Sets the value and reads it back, since drivers round values and some ignore them.
    fn write(&self, setting: Setting, interface: &str, change: &Change) -> Result<String, String> {
        self.settings.write(setting, interface, &change.after)?;
        let now = self.settings.read(setting, interface)?;
        if now == change.before {
            return Err(format!("the driver took {} and left it at {now}", change.after));
        }
        Ok(now)
    }

    /// Required change of a setting; `None` if it is suitable or the driver does not have it.
    fn due(&self, fix: Fix, setting: Setting, interface: &str) -> Option<Change> {
        let before = self.settings.read(setting, interface).ok()?;
        let after = setting.wanted(&before, &self.settings.filter_of_all())?;
        Some(Change {
            fix: fix.name().into(),
            interface: interface.into(),
            setting: setting.to_string(),
            before,
            after,
            refused: String::new(),
        })
    }

    /// Restores changed settings in reverse order. Failures are reported, and kept if a later attempt may succeed.
    ///
    /// # Errors
    /// Previous values are unreadable.
    pub fn restore(&self, which: Undo<'_>, who: &str) -> io::Result<Vec<Change>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.folder.join(FILE).exists() {
            return Ok(Vec::new());
        }
        let _lock = self.locked()?;
        let (mut changes, mut left) = (Vec::new(), Vec::new());
        let concerned = |one: &Kept| match which {
            Undo::All => true,
            Undo::Ended { live } => one.session.as_ref().is_some_and(|session| {
                let over = !live.iter().any(|one| hex(one) == *session);
                over && (live.is_empty() || !one.interface.is_empty())
            }),
        };
        for one in self.kept()?.into_iter().rev() {
            if !concerned(&one) {
                left.push(one);
                continue;
            }
            let (change, stays) = self.undo(&one);
            if let Some(change) = change {
                self.log(who, "Restore", &change);
                changes.push(change);
            }
            if stays {
                left.push(one);
            }
        }
        left.reverse();
        self.keep(&left)?;
        Ok(changes)
    }

    /// Result of restoring one setting, and true if its previous value is still needed.
    fn undo(&self, one: &Kept) -> (Option<Change>, bool) {
        let mut change = Change {
            fix: one.fix.clone(),
            interface: one.interface.clone(),
            setting: one.setting.clone(),
            before: one.after.clone(),
            after: one.before.clone(),
            refused: String::new(),
        };
        let mut refused = |why: String, stays| {
            (change.after, change.refused) = (change.before.clone(), why);
            (Some(change.clone()), stays)
        };
        let here = match self.settings.place("") {
            Ok(here) => here,
            Err(why) => return refused(why, true),
        };
        if here.boot != one.place.boot {
            return (None, false); // a boot has restored it
        }
        if here.space != one.place.space {
            return refused(
                "it was changed in another network namespace; restore it from there".into(),
                true,
            );
        }
        if self.settings.place(&one.interface).map(|now| now.index) != Ok(one.place.index) {
            return refused("the interface is gone".into(), false);
        }
        let Some(setting) = Setting::shown_as(&one.setting) else {
            return refused("it is no setting of this version".into(), true);
        };
        match self.settings.read(setting, &one.interface) {
            Ok(now) if now == one.before => (None, false),
            Ok(now) if now != one.after => {
                refused(format!("somebody has set it to {now} since; it stays so"), false)
            }
            Err(why) => refused(why, true),
            Ok(_) => match self.settings.write(setting, &one.interface, &one.before) {
                Ok(()) => (Some(change), false),
                Err(why) => refused(why, true),
            },
        }
    }

    /// Reply to the call.
    ///
    /// # Errors
    /// The interface or fix does not exist, the host permits no test on it, or previous values cannot be stored.
    pub fn answer(
        &self,
        request: &proto::MendRequest,
        session: Option<&[u8]>,
        who: &str,
        allowance: Option<&Allowance>,
    ) -> Result<proto::MendReply, Status> {
        let mut fixes =
            fixes_named(request.fixes.iter().map(String::as_str)).map_err(Status::invalid_argument)?;
        if fixes.is_empty() {
            fixes = Fix::ALL.to_vec();
        }
        let interface = request.interface.as_str();
        wg_net::interface_named(interface).map_err(|error| Status::not_found(error.to_string()))?;
        if let Some(allowance) = allowance.filter(|allowance| !allowance.has_interface(interface)) {
            return Err(Status::permission_denied(allowance.refusal(interface)));
        }
        let changes = self.mend(interface, &fixes, session, who).map_err(unkept)?;
        Ok(proto::MendReply { changes: changes.into_iter().map(Into::into).collect() })
    }

    /// Reply to the restore call.
    ///
    /// # Errors
    /// Previous values are unreadable.
    pub fn answer_restore(&self, who: &str) -> Result<proto::RestoreReply, Status> {
        let changes = self.restore(Undo::All, who).map_err(unkept)?;
        Ok(proto::RestoreReply { changes: changes.into_iter().map(Into::into).collect() })
    }

    /// Restores changes of ended sessions; `live` are the active ones.
    pub fn end_sessions(&self, live: &[Vec<u8>]) {
        self.restore_and_tell(Undo::Ended { live });
    }

    /// Restores all changes: those left by a previous agent, or this agent's at its end.
    pub fn restore_all(&self) {
        self.restore_and_tell(Undo::All);
    }

    fn restore_and_tell(&self, which: Undo<'_>) {
        match self.restore(which, OWN) {
            Ok(changes) => {
                for change in changes.iter().filter(|change| !change.refused.is_empty()) {
                    console::complain(&format!(
                        "{} {} is not restored: {}",
                        change.interface, change.setting, change.refused
                    ));
                }
            }
            Err(error) => console::complain(&format!("settings are not restored: {error}")),
        }
    }

    fn log(&self, who: &str, call: &str, change: &Change) {
        let Some(audit) = &self.audit else { return };
        let of = if change.interface.is_empty() { "host" } else { &change.interface };
        let done = format!("{of}: {}: {} to {}", change.setting, change.before, change.after);
        let refused = Some(change.refused.as_str()).filter(|why| !why.is_empty());
        audit.write(&Entry { who, from: None, call, refused, done: Some(&done) });
    }

    /// Lock that excludes changes by other processes until dropped.
    fn locked(&self) -> io::Result<File> {
        private_file::enter(&self.folder)?;
        let file = File::options().create(true).truncate(false).write(true).open(self.folder.join(LOCK))?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    fn kept(&self) -> io::Result<Vec<Kept>> {
        let Some(text) = private_file::read(&self.folder.join(FILE))? else { return Ok(Vec::new()) };
        serde_json::from_str(&text).map_err(|error| {
            io::Error::other(format!("{} is damaged: {error}", self.folder.join(FILE).display()))
        })
    }

    fn keep(&self, kept: &[Kept]) -> io::Result<()> {
        let text = serde_json::to_string(kept).map_err(io::Error::other)?;
        private_file::write(&self.folder.join(FILE), &text)
    }
}

fn unkept(error: io::Error) -> Status {
    Status::failed_precondition(format!("former values cannot be kept: {error}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Fixes of a request.
///
/// # Errors
/// An unknown name, with the list of known ones.
pub fn fixes_named<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Fix>, String> {
    names
        .into_iter()
        .map(|name| {
            let known: Vec<&str> = Fix::ALL.iter().map(|fix| fix.name()).collect();
            Fix::named(name)
                .ok_or_else(|| format!("there is no fix \"{name}\"; there are {}", known.join(", ")))
        })
        .collect()
}

#[cfg(test)]
mod tests;
