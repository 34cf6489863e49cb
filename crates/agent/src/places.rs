//! Default folders of an agent.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// State directory of root's programs.
const OF_ROOT: &str = "/var/lib/wiregauge";
/// State directory of other users, relative to the home directory.
const OF_OTHERS: &str = ".local/state/wiregauge";

/// Default folder for `kind`: below the state directory of the systemd service, of root, or of the user. `None` if HOME
/// is not set.
pub fn usual(kind: &str) -> Option<PathBuf> {
    let told = |name| env::var_os(name).filter(|value| !value.is_empty());
    chosen(told("STATE_DIRECTORY"), wg_net::host::is_root(), told("HOME")).map(|folder| folder.join(kind))
}

/// Folder from `service`, a colon-separated list as in systemd.exec(5), of which the first entry is used.
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
