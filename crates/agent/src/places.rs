//! Where an agent keeps what it keeps, unless somebody names a place.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Of the programs of root.
const OF_ROOT: &str = "/var/lib/wiregauge";
/// Below the home of anybody else.
const OF_OTHERS: &str = ".local/state/wiregauge";

/// The usual folder for `kind`: below the state directory of the service that this program is, root's, or the user's.
/// `None` where there is none, because HOME is not set.
pub fn usual(kind: &str) -> Option<PathBuf> {
    let told = |name| env::var_os(name).filter(|value| !value.is_empty());
    chosen(told("STATE_DIRECTORY"), wg_net::host::is_root(), told("HOME")).map(|folder| folder.join(kind))
}

/// `service` as systemd.exec(5) has it: several folders are separated by colons, and the first is ours.
fn chosen(service: Option<OsString>, root: bool, home: Option<OsString>) -> Option<PathBuf> {
    let first = service.as_ref().and_then(|all| all.as_bytes().split(|byte| *byte == b':').next());
    match first {
        Some(folder) if !folder.is_empty() => Some(PathBuf::from(OsStr::from_bytes(folder))),
        _ if root => Some(OF_ROOT.into()),
        _ => home.map(|home| Path::new(&home).join(OF_OTHERS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_keeps_its_state_where_its_manager_says() {
        let (service, home) = (Some("/var/lib/wiregauge:/b".into()), Some("/home/me".into()));
        assert_eq!(chosen(service.clone(), false, home.clone()), Some("/var/lib/wiregauge".into()));
        assert_eq!(chosen(Some("/s".into()), true, None), Some("/s".into()));
        assert_eq!(chosen(None, true, home.clone()), Some("/var/lib/wiregauge".into()));
        assert_eq!(chosen(None, false, home), Some("/home/me/.local/state/wiregauge".into()));
        assert_eq!(chosen(None, false, None), None);
    }
}
