//! Where a setting was made: settings of a host do not outlast a boot, nor those of an interface the interface.

use std::fs;

use serde::{Deserialize, Serialize};

/// A boot, a network namespace and an interface in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The kernel's number of this boot.
    pub boot: String,
    /// The network namespace.
    pub space: String,
    /// Index of the interface; 0: of the whole host.
    pub index: u32,
}

impl Place {
    /// This boot, this thread's namespace, and an interface in it; without a name, the whole host.
    ///
    /// # Errors
    /// There is no such interface; one sentence.
    pub fn of(interface: &str) -> Result<Self, String> {
        let boot =
            fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(|error| error.to_string())?;
        let space = fs::read_link("/proc/thread-self/ns/net").map_err(|error| error.to_string())?;
        let index = if interface.is_empty() {
            0
        } else {
            wg_net::interface_named(interface).map_err(|error| error.to_string())?.index
        };
        Ok(Self { boot: boot.trim().into(), space: space.to_string_lossy().into_owned(), index })
    }
}
