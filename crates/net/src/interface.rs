//! The interfaces of a network namespace.

use std::io;
use std::os::fd::AsRawFd;

use crate::error::NetError;
use crate::sys::{check, socket};

/// An interface of this network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Index of the interface.
    pub index: u32,
    /// Name of the interface.
    pub name: String,
}

/// The interfaces of this network namespace.
///
/// # Errors
/// The kernel refused to list them.
pub fn interfaces() -> Result<Vec<Interface>, NetError> {
    // SAFETY: takes no arguments.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return Err(NetError::last("cannot list the interfaces", ""));
    }
    let mut found = Vec::new();
    let mut at = list;
    loop {
        // SAFETY: the list ends with an entry whose name is null; `at` has not passed it.
        let entry = unsafe { *at };
        if entry.if_name.is_null() {
            break;
        }
        // SAFETY: a non-null name of the list is a terminated string that lives until the list is freed.
        let name = unsafe { std::ffi::CStr::from_ptr(entry.if_name) };
        found.push(Interface { index: entry.if_index, name: name.to_string_lossy().into_owned() });
        // SAFETY: the entry was not the last, so the next one exists.
        at = unsafe { at.add(1) };
    }
    // SAFETY: `list` came from if_nameindex and is freed once.
    unsafe { libc::if_freenameindex(list) };
    Ok(found)
}

/// Reason why an interface was not found.
#[derive(Debug, thiserror::Error)]
pub enum NoInterface {
    /// The kernel refused to list the interfaces.
    #[error(transparent)]
    Unknown(#[from] NetError),
    /// There is no interface of this name.
    #[error("there is no interface '{name}' in this network namespace; the interfaces are {existing}")]
    Missing {
        /// The name.
        name: String,
        /// Names of the existing interfaces.
        existing: String,
    },
}

/// The interface `name` of this network namespace.
///
/// # Errors
/// See [`NoInterface`].
pub fn interface_named(name: &str) -> Result<Interface, NoInterface> {
    let all = interfaces()?;
    all.iter().find(|one| one.name == name).cloned().ok_or_else(|| {
        let existing = all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
        NoInterface::Missing { name: name.into(), existing }
    })
}

/// Line rate of interface `name` in bit/s from its driver; `None` for a virtual interface, or one that is down.
pub fn line_rate(name: &str) -> Option<u64> {
    // A name with a slash would leave the directory.
    let path = std::path::Path::new("/sys/class/net").join(name).join("speed");
    let told = std::fs::read_to_string(path).ok().filter(|_| !name.contains('/'))?;
    told.trim().parse::<u64>().ok().filter(|megabits| (1..1 << 31).contains(megabits)).map(|m| m * 1_000_000)
}

/// Name of the driver of interface `name`; `None` for virtual interfaces.
pub fn driver(name: &str) -> Option<String> {
    let link = std::path::Path::new("/sys/class/net").join(name).join("device/driver");
    let target = std::fs::read_link(link).ok().filter(|_| !name.contains('/'))?;
    Some(target.file_name()?.to_string_lossy().into_owned())
}

/// The MAC address of interface `name`; `None` when it is no Ethernet interface.
///
/// # Errors
/// There is no such interface.
pub fn hardware_address(name: &str) -> Result<Option<[u8; 6]>, NetError> {
    let request = asked(name, "the address", libc::SIOCGIFHWADDR)?;
    // SAFETY: SIOCGIFHWADDR filled this member of the union; as integers it is valid in any case.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    let mut mac = [0; 6];
    for (to, from) in mac.iter_mut().zip(address.sa_data) {
        *to = from.cast_unsigned();
    }
    Ok((address.sa_family == libc::ARPHRD_ETHER).then_some(mac))
}

/// MTU of interface `name`: greatest length of a frame after its header and tag, in bytes.
///
/// # Errors
/// There is no such interface.
pub fn mtu(name: &str) -> Result<usize, NetError> {
    let request = asked(name, "the MTU", libc::SIOCGIFMTU)?;
    // SAFETY: SIOCGIFMTU filled this member of the union; an integer is valid in any case.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(usize::try_from(mtu).unwrap_or(0))
}

/// Whether interface `name` is up and has a carrier.
///
/// # Errors
/// There is no such interface.
pub fn is_running(name: &str) -> Result<bool, NetError> {
    let request = asked(name, "the state", libc::SIOCGIFFLAGS)?;
    // SAFETY: SIOCGIFFLAGS filled this member of the union; an integer is valid in any case.
    let flags = i32::from(unsafe { request.ifr_ifru.ifru_flags });
    Ok(flags & libc::IFF_UP != 0 && flags & libc::IFF_RUNNING != 0)
}

/// Result of a request to the kernel about interface `name`.
fn asked(name: &str, thing: &str, request_code: libc::c_ulong) -> Result<libc::ifreq, NetError> {
    let what = || format!("cannot read {thing} of interface '{name}'");
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0).map_err(|e| NetError::of(what(), "", e))?;
    // SAFETY: an ifreq of zeroes is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(NetError::of(
            what(),
            "a name has 15 characters at most",
            io::Error::from_raw_os_error(libc::EINVAL),
        ));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    // SAFETY: `request` is a live ifreq with a terminated name (it is shorter than the field); the call fills it.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), request_code as _, &raw mut request) })
        .map_err(|e| NetError::of(what(), "", e))?;
    Ok(request)
}

/// Counters of an interface since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames received.
    pub received: u64,
    /// Received frames dropped.
    pub receive_dropped: u64,
    /// Frames sent.
    pub transmitted: u64,
    /// Frames dropped instead of being sent.
    pub transmit_dropped: u64,
}

/// The counters of interface `name` of this thread's network namespace.
///
/// # Errors
/// There is no such interface.
pub fn link_counters(name: &str) -> Result<LinkCounters, NetError> {
    let what = || format!("cannot read the counters of interface '{name}'");
    let table =
        std::fs::read_to_string("/proc/thread-self/net/dev").map_err(|e| NetError::of(what(), "", e))?;
    let missing = || NetError::of(what(), "is its name right?", io::Error::from_raw_os_error(libc::ENODEV));
    counters_of(&table, name).ok_or_else(missing)
}

/// Columns of /proc/net/dev: receive bytes, packets, errors, drop, …; transmit from the ninth on.
fn counters_of(table: &str, name: &str) -> Option<LinkCounters> {
    let (_, stats) = table.lines().filter_map(|line| line.split_once(':')).find(|(n, _)| n.trim() == name)?;
    let stats: Vec<u64> = stats.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    Some(LinkCounters {
        received: *stats.get(1)?,
        receive_dropped: *stats.get(3)?,
        transmitted: *stats.get(9)?,
        transmit_dropped: *stats.get(11)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_column() {
        let table = "Inter-|   Receive  |  Transmit\n face |bytes packets\n\
            \x20 eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  eth10: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        let counted = LinkCounters { received: 2, receive_dropped: 4, transmitted: 10, transmit_dropped: 12 };
        assert_eq!(counters_of(table, "eth0"), Some(counted));
        assert_eq!(counters_of(table, "eth1"), None);
        assert!(link_counters("lo").is_ok());
    }

    #[test]
    fn the_loopback_has_a_state_and_what_is_not_there_has_none() {
        assert!(mtu("lo").expect("it is there") > 1_500);
        assert!(is_running("lo").is_ok());
        let error = mtu("nowhere0").expect_err("it is not there").to_string();
        assert!(error.contains("the MTU of interface 'nowhere0'"), "{error}");
        assert!(is_running("a name that is too long").is_err());
    }
}
