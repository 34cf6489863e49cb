//! Driver settings by `SIOCETHTOOL` (linux/ethtool.h): offloads, interrupt coalescing, queues, energy-efficient
//! Ethernet, pause frames.
//!
//! Every structure of that interface is a sequence of 32-bit words, and is handled as one.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd;

use crate::sys::{check, socket};

/// `SIOCETHTOOL` of linux/sockios.h.
const SIOCETHTOOL: libc::c_ulong = 0x8946;
const GET_COALESCE: u32 = 0x0e;
const SET_COALESCE: u32 = 0x0f;
const GET_PAUSE: u32 = 0x12;
const SET_PAUSE: u32 = 0x13;
const GET_STRINGS: u32 = 0x1b;
const GET_SET_INFO: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
const GET_CHANNELS: u32 = 0x3c;
const GET_EEE: u32 = 0x44;
const SET_EEE: u32 = 0x45;
/// `ETH_SS_FEATURES`, the set of names of features.
const FEATURE_NAMES: u32 = 4;
/// Length of a name in bytes (`ETH_GSTRING_LEN`), and in words.
const NAME_LEN: usize = 32;
const NAME_WORDS: usize = NAME_LEN / 4;
/// Greatest number of features.
const MOST_FEATURES: u32 = 1_024;

/// A feature of a driver, such as generic receive offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Whether it is on.
    pub active: bool,
    /// Whether it can be changed.
    pub changeable: bool,
}

/// The features of an interface by their kernel names: `rx-gro`, `tx-tcp-segmentation`, `rx-vlan-filter`, …
///
/// # Errors
/// There is no such interface, or the kernel refuses.
pub fn features(interface: &str) -> io::Result<BTreeMap<String, Feature>> {
    let names = feature_names(interface)?;
    let blocks = get_features(interface, names.len())?;
    Ok(named(&names, &blocks))
}

/// Features by name: a block of four words (available, requested, active, never changed) has 32 features.
fn named(names: &[String], blocks: &[u32]) -> BTreeMap<String, Feature> {
    let mut found = BTreeMap::new();
    for (number, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        let Some([available, _, active, never]) = blocks.get(number / 32 * 4..number / 32 * 4 + 4) else {
            break;
        };
        let has = |word: &u32| word >> (number % 32) & 1 == 1;
        found
            .insert(name.clone(), Feature { active: has(active), changeable: has(available) && !has(never) });
    }
    found
}

/// Turns a feature on or off.
///
/// # Errors
/// There is no such interface or feature, CAP_NET_ADMIN is missing, or the driver does not change it.
pub fn set_feature(interface: &str, feature: &str, on: bool) -> io::Result<()> {
    let names = feature_names(interface)?;
    let Some(number) = names.iter().position(|name| name == feature) else {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    };
    let blocks = names.len().div_ceil(32);
    let mut words = vec![0; 2 + 2 * blocks];
    words[0] = SET_FEATURES;
    words[1] = u32::try_from(blocks).unwrap_or(u32::MAX);
    let at = 2 + number / 32 * 2;
    (words[at], words[at + 1]) = (1 << (number % 32), u32::from(on) << (number % 32));
    call(interface, &mut words)?;
    // The kernel accepts a request that the driver cannot fulfil.
    let now = named(&names, &get_features(interface, names.len())?).get(feature).map(|one| one.active);
    if now == Some(on) { Ok(()) } else { Err(io::Error::other("the driver keeps it as it is")) }
}

fn get_features(interface: &str, count: usize) -> io::Result<Vec<u32>> {
    let blocks = count.div_ceil(32);
    let mut words = vec![0; 2 + 4 * blocks];
    words[0] = GET_FEATURES;
    words[1] = u32::try_from(blocks).unwrap_or(u32::MAX);
    call(interface, &mut words)?;
    Ok(words.split_off(2))
}

/// The names of features, in the order of their numbers.
fn feature_names(interface: &str) -> io::Result<Vec<String>> {
    // `struct ethtool_sset_info`: command, reserved, a mask of 64 bits, and the length of each set it names.
    let mut words = [GET_SET_INFO, 0, 0, 0, 0];
    let mask = (1_u64 << FEATURE_NAMES).to_ne_bytes();
    for (word, bytes) in words[2..4].iter_mut().zip(mask.chunks_exact(4)) {
        *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    call(interface, &mut words)?;
    let count = words[4];
    if words[2] == 0 && words[3] == 0 || count > MOST_FEATURES {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    // `struct ethtool_gstrings`: the kernel writes all its names, whose number was just read and never changes.
    let mut words = vec![0; 3 + count as usize * NAME_WORDS];
    (words[0], words[1], words[2]) = (GET_STRINGS, FEATURE_NAMES, count);
    call(interface, &mut words)?;
    let bytes: Vec<u8> = words[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = |bytes: &[u8]| {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    Ok(bytes.chunks_exact(NAME_LEN).map(name).collect())
}

/// Interrupt coalescing: how long an interface gathers frames before it interrupts the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coalescing {
    /// Greatest delay for received frames, µs.
    pub rx_usecs: u32,
    /// Greatest number of received frames.
    pub rx_frames: u32,
    /// Greatest delay for sent frames, µs.
    pub tx_usecs: u32,
    /// Greatest number of sent frames.
    pub tx_frames: u32,
    /// Whether the driver adapts the values for received frames.
    pub adaptive_rx: bool,
    /// Whether the driver adapts the values for sent frames.
    pub adaptive_tx: bool,
}

/// Length of `struct ethtool_coalesce`, in words.
const COALESCE_WORDS: usize = 23;

/// Reads the coalescing of an interface.
///
/// # Errors
/// There is no such interface, or its driver has no such setting.
pub fn coalescing(interface: &str) -> io::Result<Coalescing> {
    let words = get::<COALESCE_WORDS>(interface, GET_COALESCE)?;
    Ok(Coalescing {
        rx_usecs: words[1],
        rx_frames: words[2],
        tx_usecs: words[5],
        tx_frames: words[6],
        adaptive_rx: words[10] != 0,
        adaptive_tx: words[11] != 0,
    })
}

/// Sets the coalescing of an interface; other parameters of it stay.
///
/// # Errors
/// As [`coalescing`], or CAP_NET_ADMIN is missing, or the driver refuses.
pub fn set_coalescing(interface: &str, wanted: Coalescing) -> io::Result<()> {
    let mut words = get::<COALESCE_WORDS>(interface, GET_COALESCE)?;
    words[0] = SET_COALESCE;
    (words[1], words[2]) = (wanted.rx_usecs, wanted.rx_frames);
    (words[5], words[6]) = (wanted.tx_usecs, wanted.tx_frames);
    (words[10], words[11]) = (u32::from(wanted.adaptive_rx), u32::from(wanted.adaptive_tx));
    call(interface, &mut words).map(drop)
}

/// Length of `struct ethtool_channels`, in words.
const CHANNEL_WORDS: usize = 9;

/// Number of receive queues of an interface, each with its own interrupt.
///
/// # Errors
/// There is no such interface, or its driver does not support the request.
pub fn receive_queues(interface: &str) -> io::Result<u32> {
    // Receive-only and combined queues.
    get::<CHANNEL_WORDS>(interface, GET_CHANNELS).map(|words| words[5] + words[8])
}

/// Length of `struct ethtool_eee`, in words.
const EEE_WORDS: usize = 10;

/// Whether energy-efficient Ethernet is enabled: links sleep between frames.
///
/// # Errors
/// There is no such interface, or its driver has no such setting.
pub fn eee(interface: &str) -> io::Result<bool> {
    get::<EEE_WORDS>(interface, GET_EEE).map(|words| words[5] != 0)
}

/// Turns energy-efficient Ethernet on or off.
///
/// # Errors
/// As [`eee`], or CAP_NET_ADMIN is missing, or the driver refuses.
pub fn set_eee(interface: &str, on: bool) -> io::Result<()> {
    let mut words = get::<EEE_WORDS>(interface, GET_EEE)?;
    (words[0], words[5]) = (SET_EEE, u32::from(on));
    call(interface, &mut words).map(drop)
}

/// Flow control by pause frames (IEEE 802.3, annex 31B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Whether it is negotiated with the other end.
    pub autonegotiated: bool,
    /// Whether a received pause frame stops sending.
    pub rx: bool,
    /// Whether pause frames are sent when buffers fill.
    pub tx: bool,
}

/// Length of `struct ethtool_pauseparam`, in words.
const PAUSE_WORDS: usize = 4;

/// Reads the flow control of an interface.
///
/// # Errors
/// There is no such interface, or its driver has no such setting.
pub fn pause(interface: &str) -> io::Result<Pause> {
    let words = get::<PAUSE_WORDS>(interface, GET_PAUSE)?;
    Ok(Pause { autonegotiated: words[1] != 0, rx: words[2] != 0, tx: words[3] != 0 })
}

/// Sets the flow control of an interface.
///
/// # Errors
/// As [`pause`], or CAP_NET_ADMIN is missing, or the driver refuses.
pub fn set_pause(interface: &str, wanted: Pause) -> io::Result<()> {
    let mut words: [u32; PAUSE_WORDS] =
        [SET_PAUSE, wanted.autonegotiated.into(), wanted.rx.into(), wanted.tx.into()];
    call(interface, &mut words).map(drop)
}

fn get<const WORDS: usize>(interface: &str, command: u32) -> io::Result<[u32; WORDS]> {
    let mut words = [0; WORDS];
    words[0] = command;
    call(interface, &mut words)?;
    Ok(words)
}

/// Passes `words`, a structure that begins with its command, to the driver of `interface`; the answer replaces it.
fn call(interface: &str, words: &mut [u32]) -> io::Result<libc::c_int> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // SAFETY: an ifreq of zeroes is valid.
    let mut order: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.is_empty() || interface.len() >= order.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in order.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed();
    }
    order.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: `order` is a live ifreq with a terminated name. Its data is the exclusively borrowed `words`: the
    // callers, all in this file, make it as long as the structure of its command, or as long as the count it names
    // (features, which the kernel fills up to that count) or as the kernel has just said (names, whose number is fixed
    // in a kernel).
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut order) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_features_and_no_cable() {
        let features = features("lo").expect("every interface has");
        assert!(
            features.contains_key("rx-gro") && features.contains_key("tx-generic-segmentation"),
            "{features:?}"
        );
        assert!(!features["loopback"].changeable && features["loopback"].active, "{features:?}");
        for error in [coalescing("lo").map(drop), eee("lo").map(drop), pause("lo").map(drop)] {
            assert_eq!(error.expect_err("it has none").raw_os_error(), Some(libc::EOPNOTSUPP));
        }
        assert!(set_feature("lo", "no-such-feature", true).is_err());
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        for name in ["no-such-one", "a-name-longer-than-any-interface", ""] {
            assert!(super::features(name).is_err());
            assert!(pause(name).is_err());
        }
    }

    #[test]
    fn a_feature_is_the_bit_of_its_number() {
        let mut names = vec![String::new(); 40];
        (names[1], names[33]) = ("one".into(), "other".into());
        let blocks = [0b10, 0, 0b10, 0, 0b10, 0, 0, 0b10];
        let found = named(&names, &blocks);
        assert_eq!(found.len(), 2);
        assert_eq!(found["one"], Feature { active: true, changeable: true });
        assert_eq!(found["other"], Feature { active: false, changeable: false });
        assert_eq!(named(&names, &blocks[..4]).len(), 1);
    }
}
