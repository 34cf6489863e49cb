//! Stored changes of an agent until they are removed, and the current state of an interface.

use std::path::Path;

use serde::{Deserialize, Serialize};
use wg_plan::host_tsn::commands::{Before, Changes, Command, MacMerge, Program};

use super::programs::Programs;
use crate::remote::private_file;
use crate::tools::place::Place;

/// Changes and the previous state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) interface: String,
    pub(super) changes: Changes,
    pub(super) before: Before,
    /// Scope of the changes.
    pub(super) place: Option<Place>,
}

impl Kept {
    pub(super) fn write(&self, file: &Path) -> Result<(), String> {
        let text = serde_json::to_string(self).map_err(|error| error.to_string())?;
        private_file::write(file, &text).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Stored changes; `None` if none are active.
    pub(super) fn read(file: &Path) -> Result<Option<Self>, String> {
        let text = private_file::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let Some(text) = text else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|error| {
            format!(
                "{} does not say which TSN settings are in force ({error}); look at `tc qdisc show` and remove the file",
                file.display()
            )
        })
    }
}

/// Root queue discipline of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) kind: String,
    /// Handle; 0: the kernel's default.
    pub(super) handle: u16,
}

/// Current state of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Present {
    pub(super) root: Option<Root>,
    /// True if a queue discipline for filters is present.
    pub(super) filters: bool,
}

/// Entry of `tc -j qdisc show`.
#[derive(Deserialize)]
struct Shown {
    kind: String,
    #[serde(default)]
    handle: String,
    #[serde(default)]
    root: bool,
}

/// Current state of an interface.
pub(super) fn present(interface: &str, programs: &dyn Programs) -> Result<Present, String> {
    let arguments = ["-j", "qdisc", "show", "dev", interface].map(str::to_owned).to_vec();
    let told = programs.run(&Command { program: Program::Tc, arguments })?;
    read_present(&told)
        .ok_or_else(|| "tc answers something else than its JSON; use iproute2 5 or later".to_owned())
}

pub(super) fn read_present(told: &str) -> Option<Present> {
    let shown: Vec<Shown> = serde_json::from_str(told.trim()).ok()?;
    let mut present = Present::default();
    for one in shown {
        present.filters |= matches!(one.kind.as_str(), "clsact" | "ingress");
        if one.root {
            let handle = u16::from_str_radix(one.handle.trim_end_matches(':'), 16).ok()?;
            present.root = Some(Root { kind: one.kind, handle });
        }
    }
    Some(present)
}

/// Current number of combined channels from `ethtool -l`: the second of its two lists.
pub(super) fn channels(told: &str) -> Option<u16> {
    let (_, current) = told.split_once("Current hardware settings:")?;
    value_of(current, "Combined")?.parse().ok()
}

/// True if the card filters in hardware, from `ethtool -k`; `None` if it cannot.
pub(super) fn filters_in_hardware(told: &str) -> Option<bool> {
    match value_of(told, "hw-tc-offload")? {
        "on" => Some(true),
        "off" => Some(false),
        // "off [fixed]"
        _ => None,
    }
}

/// MAC merge layer state from `ethtool --json --show-mm`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct MacMergeShown {
    pmac_enabled: bool,
    tx_enabled: bool,
    /// True if it sends fragments: the other end was verified, or verification is off.
    #[serde(default)]
    pub(super) tx_active: bool,
    tx_min_frag_size: u16,
    verify_enabled: bool,
    /// INITIAL, VERIFYING, SUCCEEDED, FAILED or DISABLED.
    #[serde(default)]
    pub(super) verify_status: String,
}

impl MacMergeShown {
    pub(super) const fn settings(&self) -> MacMerge {
        MacMerge {
            pmac_enabled: self.pmac_enabled,
            tx_enabled: self.tx_enabled,
            verify_enabled: self.verify_enabled,
            tx_min_frag_size: self.tx_min_frag_size,
        }
    }
}

/// MAC merge layer state in the output of `ethtool --json --show-mm`.
pub(super) fn mac_merge(told: &str) -> Option<MacMergeShown> {
    let shown: Vec<MacMergeShown> = serde_json::from_str(told.trim()).ok()?;
    shown.into_iter().next()
}

fn value_of<'a>(told: &'a str, name: &str) -> Option<&'a str> {
    told.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}
