//! TSN settings of the interface under test, made before a run and always removed after it.
//!
//! [`wg_plan::host_tsn::commands`] generates the commands from the validated plan; no text from a caller reaches a
//! program. Settings are made only if the host's own configuration permits them, and only on an interface with the
//! kernel's default queue discipline; settings made by others are left unchanged and reported. A file lists the changes
//! before they are made, so that the next agent can remove them if this one is killed.

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

/// Number and interval of the checks of a MAC merge layer before the other end counts as not supporting fragments. A
/// verification attempt takes up to 128 ms, and there are three after the link is up.
const VERIFY_LOOKS: u32 = 30;
const VERIFY_EVERY: Duration = Duration::from_millis(100);

/// Active settings, removed by [`InForce::take_off`] or on drop.
#[derive(Debug)]
pub struct InForce {
    file: PathBuf,
    /// Lock held while the settings are active, so that another agent of this folder leaves them unchanged.
    _lock: OwnedFd,
    /// True once the settings are removed.
    done: bool,
}

impl InForce {
    /// Removes the settings.
    ///
    /// # Errors
    /// The settings that could not be removed, as a sentence. The next start of an agent tries again.
    pub fn take_off(mut self) -> Result<(), String> {
        self.done = true;
        take_off(&self.file, &Tools)
    }
}

impl Drop for InForce {
    /// Removal after a run that was not prepared or not finished.
    fn drop(&mut self) {
        if !self.done
            && let Err(problem) = take_off(&self.file, &Tools)
        {
            crate::console::complain(&problem);
        }
    }
}

/// File in an agent's folder with its changes to an interface.
pub fn state_file(folder: &Path, interface: &str) -> PathBuf {
    folder.join(format!("tsn-{interface}.json"))
}

/// Removes the settings left by a killed agent.
///
/// # Errors
/// Some settings cannot be removed; one sentence.
pub fn recover(folder: &Path) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let left = names.filter_map(|name| {
        let interface = name.strip_prefix("tsn-")?.strip_suffix(".json")?;
        // If the lock is held, the agent that holds it removes the settings.
        let _lock = lock(folder, interface).ok()?;
        take_off(&state_file(folder, interface), &Tools).err()
    });
    let left: Vec<String> = left.collect();
    if left.is_empty() { Ok(()) } else { Err(left.join("; ")) }
}

/// Lock that marks settings of an interface by this folder's agent as active, until closed.
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

/// Makes the settings of the plan for this host; `None` without settings, or if a card simulated by the network has
/// them.
///
/// # Errors
/// The settings are not permitted, or not supported by the kernel, the card or the present state of the interface; in
/// this case nothing is changed.
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
    // Settings that an earlier run could not remove.
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

/// Waits until fragments are sent, that is, until the other end of the cable is verified.
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

/// State before any change; an error if it contains settings of others.
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

/// Removes the settings listed in a file, as far as they are present and unchanged, then the file.
fn take_off(file: &Path, programs: &dyn Programs) -> Result<(), String> {
    let Some(kept) = Kept::read(file)? else { return Ok(()) };
    let Kept { interface, changes, before, place } = &kept;
    let left = |why: String| {
        format!(
            "TSN settings of {interface} could not be taken off: {why}; the next start of the agent tries again"
        )
    };
    // After a reboot, or on a recreated interface, none of them is active and anything present belongs to others.
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

/// Checks the link rate, on which idle slopes and schedules depend.
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

/// Active settings, for the report.
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

/// Warning for a schedule in TAI if the kernel's TAI offset is not set.
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

/// Settings that could not be removed, for the report.
pub fn left_behind(problem: String) -> proto::Grant {
    crate::console::complain(&problem);
    proto::Grant { name: "host-tsn".into(), granted: false, detail: problem }
}

#[cfg(test)]
mod tests;
