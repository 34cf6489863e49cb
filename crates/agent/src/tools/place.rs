//! Scope of a setting: host settings end with the boot, interface settings with the interface.

use std::fs;

use serde::{Deserialize, Serialize};

/// Boot, network namespace and interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Boot ID of the kernel.
    pub boot: String,
    /// Network namespace.
    pub space: String,
    /// Interface index; 0: the whole host.
    pub index: u32,
}

impl Place {
    /// Current boot, this thread's namespace and an interface in it; with an empty name, the whole host.
    ///
    /// # Errors
    /// The interface does not exist; one sentence.
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
