//! `wiregauge-agent mend` and `restore`: changes settings of this host for measuring, and restores them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::console;
use crate::tools::mending::{Change, Mending, Undo, fixes_named};

/// Folder with the former values of settings that this host's own commands changed. Only root changes them.
const FOLDER: &str = "/var/lib/wiregauge/mended";
/// Environment variable with another folder, for tests of the instrument.
const OTHER_FOLDER: &str = "WIREGAUGE_MENDED";

/// What to set.
#[derive(clap::Args)]
pub(super) struct MendOptions {
    /// Interface to set.
    #[arg(long, value_name = "NAME")]
    interface: String,
    /// offloads, coalescing, eee, pause, reverse-path-filter, socket-buffers or governor.
    #[arg(required = true, value_name = "FIX")]
    fixes: Vec<String>,
}

/// Exit code 2: there is no such fix or interface; 3: the host refuses.
pub(super) fn mend(options: &MendOptions) -> ExitCode {
    let fixes = match fixes_named(options.fixes.iter().map(String::as_str)) {
        Ok(fixes) => fixes,
        Err(problem) => return failed(2, &problem),
    };
    if let Err(error) = wg_net::interface_named(&options.interface) {
        return failed(2, &error.to_string());
    }
    told(mending().mend(&options.interface, &fixes, None, "this user"))
}

/// Exit code 3: the host refuses.
pub(super) fn restore() -> ExitCode {
    told(mending().restore(Undo::All, "this user"))
}

fn folder() -> PathBuf {
    std::env::var_os(OTHER_FOLDER).map_or_else(|| Path::new(FOLDER).to_owned(), PathBuf::from)
}

fn mending() -> Mending {
    Mending::in_folder(&folder(), None)
}

fn told(changes: std::io::Result<Vec<Change>>) -> ExitCode {
    match changes {
        Ok(changes) => {
            console::say(&changes);
            ExitCode::SUCCESS
        }
        Err(error) => {
            let place = folder();
            let cure = "run as root; nothing was changed that is not kept";
            failed(3, &format!("former values cannot be kept in {}: {error}; {cure}", place.display()))
        }
    }
}

fn failed(code: u8, problem: &str) -> ExitCode {
    console::complain(&problem);
    ExitCode::from(code)
}
