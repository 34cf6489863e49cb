//! TSN settings of the interface under test: made before a run, taken off after it, whatever happens between.
//!
//! What is run is made by [`wg_plan::host_tsn::commands`] from the validated plan; no caller's text reaches a program.
//! Settings are made only where the host's own configuration allows it, on an interface that has the kernel's own queue
//! discipline: what somebody else set is left alone and named. A file says what was changed before anything is, so that
//! an agent that starts after one that was killed takes it off.

mod kept;
mod programs;
mod support;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use wg_net::clock;
use wg_plan::Run;
use wg_plan::host_tsn::commands::{self, Before, Changes, ROOT_HANDLE};
use wg_plan::host_tsn::{HostTsn, TsnOffload};

use self::kept::Kept;
use self::programs::{Programs, Tools};
pub use self::support::findings;
use crate::control::role::{Fault, OpenError, Setup};
use crate::proto;
use crate::tools::place::Place;

/// Looks at a MAC merge layer until the other end counts as one that takes no fragments, and the time between them: a
/// try of the verification takes 128 ms at most, and there are three after the link is up.
const VERIFY_LOOKS: u32 = 30;
const VERIFY_EVERY: Duration = Duration::from_millis(100);

/// Settings that are in force until [`InForce::take_off`], or until this is dropped.
#[derive(Debug)]
pub struct InForce {
    file: PathBuf,
    /// Held as long as they are in force: another agent of this folder leaves them alone.
    _lock: OwnedFd,
    /// Taken off already.
    done: bool,
}

impl InForce {
    /// Takes the settings off.
    ///
    /// # Errors
    /// What could not be taken off, as a sentence. The next start of an agent tries again.
    pub fn take_off(mut self) -> Result<(), String> {
        self.done = true;
        take_off(&self.file, &Tools)
    }
}

impl Drop for InForce {
    /// Of a run that could not be prepared, or that nobody finished.
    fn drop(&mut self) {
        if !self.done
            && let Err(problem) = take_off(&self.file, &Tools)
        {
            crate::console::complain(&problem);
        }
    }
}

/// The file in an agent's folder that says what it changed of an interface.
pub fn state_file(folder: &Path, interface: &str) -> PathBuf {
    folder.join(format!("tsn-{interface}.json"))
}

/// Takes off what an agent that was killed left behind.
///
/// # Errors
/// Something cannot be taken off; one sentence.
pub fn recover(folder: &Path) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let left = names.filter_map(|name| {
        let interface = name.strip_prefix("tsn-")?.strip_suffix(".json")?;
        // Without the lock an agent that lives sees to it.
        let _lock = lock(folder, interface).ok()?;
        take_off(&state_file(folder, interface), &Tools).err()
    });
    let left: Vec<String> = left.collect();
    if left.is_empty() { Ok(()) } else { Err(left.join("; ")) }
}

/// Says that settings of an interface, made by this folder's agent, are in force, until it is closed.
fn lock(folder: &Path, interface: &str) -> Result<OwnedFd, String> {
    let path = folder.join(format!("tsn-{interface}.lock"));
    let file = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        format!(
            "another agent of this host has TSN settings of {interface} in force; wait for its run to end"
        )
    })?;
    Ok(file.into())
}

/// Makes the settings that the plan has for this host; `None` without any, and where its card has them, which the
/// network plays.
///
/// # Errors
/// They are not allowed, or the kernel, the card or the present state of the interface does not take them; nothing is
/// changed then.
pub fn make(setup: &Setup, grants: &mut Vec<proto::Grant>) -> Result<Option<InForce>, OpenError> {
    if setup.card {
        return Ok(None);
    }
    let Some(tsn) = commands::settings(&setup.network, setup.node) else { return Ok(None) };
    let Some(folder) = &setup.tsn_folder else {
        let why = "the test sets TSN of this host's interface, which only an agent that serves a network does, and only \
                   where its configuration has tsn = true";
        return Err(OpenError::new(Fault::Permission, why));
    };
    let Some(port) = setup.ports.first() else { return Ok(None) };
    let interface = &port.interface;
    if !commands::is_interface_name(interface) {
        return Err(OpenError::new(Fault::Request, format!("\"{interface}\" is no name of an interface")));
    }
    check_rate(setup, tsn, interface)?;
    let refused = |why: String| OpenError::new(Fault::Precondition, why);
    let made = make_with(&setup.run, setup, (interface, folder), &Tools).map_err(refused)?;
    if let Some((_, changes)) = &made {
        grants.push(described(tsn, changes));
        grants.extend(tai(tsn));
    }
    Ok(made.map(|(in_force, _)| in_force))
}

fn make_with(
    run: &Run,
    setup: &Setup,
    (interface, folder): (&str, &Path),
    programs: &dyn Programs,
) -> Result<Option<(InForce, Changes)>, String> {
    let file = state_file(folder, interface);
    let lock = lock(folder, interface)?;
    // What an earlier run could not take off.
    take_off(&file, programs)?;
    let changes = commands::changes(&setup.network, run, setup.node);
    let before = look(&changes, interface, programs)?;
    let kept = Kept { interface: interface.to_owned(), changes, before, place: Some(Place::of(interface)?) };
    kept.write(&file)?;
    let in_force = InForce { file: file.clone(), _lock: lock, done: false };
    let mut applied = commands::apply(&setup.network, run, setup.node, interface).into_iter();
    let made = applied.try_for_each(|command| programs.run(&command).map(drop));
    let made = made.and_then(|()| if changes.mac_merge { verified(interface, programs) } else { Ok(()) });
    if let Err(why) = made {
        let mut in_force = in_force;
        in_force.done = true;
        let left = take_off(&file, programs).err().map_or(String::new(), |left| format!("; {left}"));
        return Err(format!("{interface} takes no such TSN settings: {why}{left}"));
    }
    Ok(Some((in_force, changes)))
}

/// Waits until fragments are sent: until the other end of the cable was seen to take them.
fn verified(interface: &str, programs: &dyn Programs) -> Result<(), String> {
    let mut status = String::new();
    for look in 0..VERIFY_LOOKS {
        if look > 0 {
            programs.pause(VERIFY_EVERY);
        }
        let shown = read_mac_merge(interface, &programs.run(&commands::show_mac_merge(interface))?)?;
        if shown.tx_active {
            return Ok(());
        }
        status = shown.verify_status;
    }
    Err(format!(
        "the other end of its cable was not seen to take fragments (verification: {}); let it take them \
         (`ethtool --set-mm INTERFACE pmac-enabled on` on a Linux host), or write preemptable=\"off\"",
        if status.is_empty() { "not told" } else { &status }
    ))
}

fn read_mac_merge(interface: &str, told: &str) -> Result<kept::MacMergeShown, String> {
    kept::mac_merge(told).ok_or_else(|| {
        format!("ethtool tells nothing of the MAC merge layer of {interface}; use 6.3 or later")
    })
}

/// What there is before anything is changed; refused where somebody set something.
fn look(changes: &Changes, interface: &str, programs: &dyn Programs) -> Result<Before, String> {
    let present = kept::present(interface, programs)?;
    if let Some(root) = present.root.filter(|root| changes.root && root.handle != 0) {
        return Err(format!(
            "{interface} has the queue discipline {}, which somebody set; `tc qdisc del dev {interface} root` removes it",
            root.kind
        ));
    }
    if present.filters && changes.filters {
        return Err(format!(
            "{interface} has filters that somebody set; `tc qdisc del dev {interface} clsact` (or ingress) removes them"
        ));
    }
    let mut before = Before::default();
    for command in commands::look(changes, interface).iter().skip(1) {
        let told = programs.run(command)?;
        match command.arguments.first().map(String::as_str) {
            Some("-l") => {
                before.channels = Some(kept::channels(&told).ok_or_else(|| {
                    format!("{interface} has no number of combined channels to set; leave channels out of <host-tsn>")
                })?);
            }
            Some("--json") => before.mac_merge = Some(read_mac_merge(interface, &told)?.settings()),
            _ => {
                before.hardware_filters = Some(kept::filters_in_hardware(&told).ok_or_else(|| {
                    format!("the card of {interface} filters nothing (hw-tc-offload); write offload=\"off\"")
                })?);
            }
        }
    }
    Ok(before)
}

/// Takes off what a file says was made, as far as it is still there and ours; then the file goes.
fn take_off(file: &Path, programs: &dyn Programs) -> Result<(), String> {
    let Some(kept) = Kept::read(file)? else { return Ok(()) };
    let Kept { interface, changes, before, place } = &kept;
    let left = |why: String| {
        format!(
            "TSN settings of {interface} could not be taken off: {why}; the next start of the agent tries again"
        )
    };
    // After a boot, or of an interface that was made anew, nothing of it is in force: what is there is somebody else's.
    let here = Place::of(interface).is_ok_and(|now| place.as_ref().is_none_or(|then| *then == now));
    if here {
        let present = kept::present(interface, programs).map_err(left)?;
        let ours = present.root.is_some_and(|root| root.handle == ROOT_HANDLE);
        let still =
            Changes { root: changes.root && ours, filters: changes.filters && present.filters, ..*changes };
        for command in commands::undo(&still, before, interface) {
            programs.run(&command).map_err(left)?;
        }
    }
    std::fs::remove_file(file).map_err(|error| format!("{}: {error}; remove it", file.display()))
}

/// Idle slopes and schedules are of the rate in the test.
fn check_rate(setup: &Setup, tsn: &HostTsn, interface: &str) -> Result<(), OpenError> {
    if tsn.classes.is_empty() {
        return Ok(());
    }
    let planned = commands::rate_of(&setup.network, &setup.run, setup.node);
    match wg_net::line_rate(interface) {
        Some(found) if found != planned => {
            let shown = wg_plan::quantity::show_rate;
            let why = format!(
                "{interface} runs at {}, and the test's TSN settings are for {}; write the rate of the link as it is",
                shown(found),
                shown(planned)
            );
            Err(OpenError::new(Fault::Precondition, why))
        }
        _ => Ok(()),
    }
}

/// What is in force, for the report.
fn described(tsn: &HostTsn, changes: &Changes) -> proto::Grant {
    let mut parts = Vec::new();
    if changes.root {
        let kind = if tsn.schedule.is_some() { "taprio" } else { "mqprio" };
        let by = match tsn.offload {
            TsnOffload::Off => "by the kernel",
            TsnOffload::Full => "by the card",
            TsnOffload::TxtimeAssist => "by launch times",
        };
        parts.push(format!("{kind} with {} classes {by}", tsn.classes.len()));
    }
    if !tsn.ingress.is_empty() {
        parts.push(format!("{} rules for what arrives", tsn.ingress.len()));
    }
    if let Some(channels) = changes.channels {
        parts.push(format!("{channels} channels"));
    }
    if changes.mac_merge {
        parts.push("preemption, which the other end takes part in".into());
    }
    proto::Grant { name: "host-tsn".into(), granted: true, detail: parts.join(", ") }
}

/// A schedule by TAI where nobody told the kernel how far TAI is ahead.
fn tai(tsn: &HostTsn) -> Option<proto::Grant> {
    let by_kernel = tsn.schedule.is_some() && tsn.offload != TsnOffload::Full
        || tsn.ingress.iter().any(|rule| rule.gate.is_some() && !rule.offload);
    let ahead = clock::tai_ahead();
    by_kernel.then(|| proto::Grant {
        name: "tai-offset".into(),
        granted: ahead != 0,
        detail: if ahead == 0 {
            "0 s: nobody told this kernel how far TAI is ahead of UTC, so its schedules are off by those seconds against \
             hosts and cards that know; let ptp4l and phc2sys, or chrony with leapsectz, set it"
                .into()
        } else {
            format!("{} s", ahead / 1_000_000_000)
        },
    })
}

/// What could not be taken off, for the report.
pub fn left_behind(problem: String) -> proto::Grant {
    crate::console::complain(&problem);
    proto::Grant { name: "host-tsn".into(), granted: false, detail: problem }
}

#[cfg(test)]
mod tests;
