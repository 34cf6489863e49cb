//! Sets a host for measuring, and sets it again as it was.
//!
//! What can be set is a closed list of [`Fix`]es, none of which outlasts a boot, and none of which touches firewalls,
//! clocks or addresses. Before anything is set, its former value is on the disk: whoever is killed in between leaves
//! enough behind for the next to restore. Only what still has the value that was set here is restored; what somebody
//! else has changed since stays theirs.

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

/// Name of the file of former values.
const FILE: &str = "changed.json";
/// Beside it: held while it is read and written.
const LOCK: &str = "changed.lock";

/// In the audit log: what no caller asked for.
const OWN: &str = "this agent";

/// A setting that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// By which fix.
    pub fix: String,
    /// Of which interface; empty: of the whole host.
    pub interface: String,
    /// What.
    pub setting: String,
    /// Its value before.
    pub before: String,
    /// Its value now.
    pub after: String,
    /// Why it was not changed; empty where it was.
    pub refused: String,
}

impl From<Change> for proto::Change {
    fn from(one: Change) -> Self {
        let Change { fix, interface, setting, before, after, refused } = one;
        Self { fix, interface, setting, before, after, refused }
    }
}

/// A former value, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    fix: String,
    interface: String,
    setting: String,
    before: String,
    after: String,
    place: Place,
    /// Of the session it was changed for; none: until somebody asks.
    session: Option<String>,
}

/// Which changes are to be undone.
#[derive(Clone, Copy, Debug)]
pub enum Undo<'a> {
    /// All of them.
    All,
    /// Those made for sessions that are over, where these go on; what is of the whole host stays while any does.
    Ended {
        /// Sessions that go on.
        live: &'a [Vec<u8>],
    },
}

/// Who sets and restores, and where former values are kept.
pub struct Mending {
    folder: PathBuf,
    settings: Box<dyn Settings>,
    audit: Option<Arc<Audit>>,
    /// Callers of one agent wait for one another here; those of other processes at the file.
    turn: Mutex<()>,
}

impl Mending {
    /// Former values are kept in `folder`, which is this user's alone; each change goes into `audit` as well.
    pub fn in_folder(folder: &Path, audit: Option<Arc<Audit>>) -> Self {
        Self { folder: folder.to_owned(), settings: Box::new(Host), audit, turn: Mutex::default() }
    }

    /// Applies fixes to an interface, and those of the whole host to the host. What is well already is not changed.
    ///
    /// # Errors
    /// There is no such interface, or former values cannot be kept: nothing was changed then.
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
                    // The driver's nearest value is what is compared when it is restored.
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

    /// Sets it and reads what has come of it: drivers round values, and some take one and do nothing.
    fn write(&self, setting: Setting, interface: &str, change: &Change) -> Result<String, String> {
        self.settings.write(setting, interface, &change.after)?;
        let now = self.settings.read(setting, interface)?;
        if now == change.before {
            return Err(format!("the driver took {} and left it at {now}", change.after));
        }
        Ok(now)
    }

    /// What is to be changed of a setting; `None` where it is well, or the driver has none such.
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

    /// Sets again what was changed, last things first. What cannot be restored from here is told, and kept where that
    /// may change.
    ///
    /// # Errors
    /// Former values cannot be read.
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

    /// What came of restoring one setting, and whether its former value is still needed.
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

    /// The answer to the call.
    ///
    /// # Errors
    /// There is no such interface or fix, the host allows no test on it, or former values cannot be kept.
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

    /// The answer to the call.
    ///
    /// # Errors
    /// Former values cannot be read.
    pub fn answer_restore(&self, who: &str) -> Result<proto::RestoreReply, Status> {
        let changes = self.restore(Undo::All, who).map_err(unkept)?;
        Ok(proto::RestoreReply { changes: changes.into_iter().map(Into::into).collect() })
    }

    /// Restores what was changed for sessions that are over; `live` are those that go on.
    pub fn end_sessions(&self, live: &[Vec<u8>]) {
        self.restore_and_tell(Undo::Ended { live });
    }

    /// Restores all there is: what an agent before this one left, or this one when it ends.
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

    /// Until what is returned is dropped, no other process changes anything.
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

/// The fixes of a request.
///
/// # Errors
/// One is none; there are which.
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
