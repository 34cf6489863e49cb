//! Closed list of changeable host settings, each readable and writable as text.

use std::fmt;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use wg_net::ethtool::{self, Coalescing, Pause};

use crate::tools::place::Place;

/// Features that merge or split frames.
const FEATURES: [&str; 8] = [
    "rx-gro",
    "rx-gro-hw",
    "rx-lro",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-generic-segmentation",
];
/// Buffer size that an agent's sockets request, bytes.
const LARGE_BUFFER: u64 = 8 << 20;
/// Time within which a link goes down for renegotiation, and maximum time of the renegotiation.
const GOES_DOWN_WITHIN: Duration = Duration::from_millis(200);
const COMES_UP_WITHIN: Duration = Duration::from_secs(10);
const CPUS: &str = "/sys/devices/system/cpu";

/// Fix that a caller may request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fix {
    /// Disables merging and splitting of frames.
    Offloads,
    /// One interrupt per frame.
    Coalescing,
    /// Disables Energy-Efficient Ethernet.
    Eee,
    /// Disables pause frames.
    Pause,
    /// Accepts frames from addresses with a route through another interface.
    ReversePathFilter,
    /// Permits large socket buffers.
    SocketBuffers,
    /// Fixed processor frequency.
    Governor,
}

impl Fix {
    /// All fixes.
    pub const ALL: [Self; 7] = [
        Self::Offloads,
        Self::Coalescing,
        Self::Eee,
        Self::Pause,
        Self::ReversePathFilter,
        Self::SocketBuffers,
        Self::Governor,
    ];

    /// Name for callers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Offloads => "offloads",
            Self::Coalescing => "coalescing",
            Self::Eee => "eee",
            Self::Pause => "pause",
            Self::ReversePathFilter => "reverse-path-filter",
            Self::SocketBuffers => "socket-buffers",
            Self::Governor => "governor",
        }
    }

    /// Fix by name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fix| fix.name() == name)
    }

    /// True if it changes one interface and not the whole host.
    pub fn is_of_interface(self) -> bool {
        !matches!(self, Self::SocketBuffers | Self::Governor)
    }

    /// True if the change may renegotiate the link, which takes seconds.
    pub(super) fn renegotiates(self) -> bool {
        matches!(self, Self::Eee | Self::Pause | Self::Coalescing)
    }

    /// Settings of the fix.
    pub(super) fn settings(self) -> Vec<Setting> {
        match self {
            Self::Offloads => FEATURES.map(Setting::Feature).to_vec(),
            Self::Coalescing => vec![Setting::Coalescing],
            Self::Eee => vec![Setting::Eee],
            Self::Pause => vec![Setting::Pause],
            Self::ReversePathFilter => vec![Setting::ReversePathFilter],
            Self::SocketBuffers => vec![Setting::ReceiveBuffer, Setting::SendBuffer],
            Self::Governor => processors().into_iter().map(Setting::Governor).collect(),
        }
    }
}

/// Numbers of processors with frequency control.
fn processors() -> Vec<u32> {
    let entries = fs::read_dir(CPUS).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries
        .filter(|entry| entry.path().join("cpufreq/scaling_governor").exists())
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Changeable setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// One of [`FEATURES`].
    Feature(&'static str),
    Coalescing,
    Eee,
    Pause,
    ReversePathFilter,
    ReceiveBuffer,
    SendBuffer,
    Governor(u32),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feature(name) => write!(f, "feature {name}"),
            Self::Coalescing => f.write_str("coalescing"),
            Self::Eee => f.write_str("eee"),
            Self::Pause => f.write_str("pause"),
            Self::ReversePathFilter => f.write_str("rp_filter"),
            Self::ReceiveBuffer => f.write_str("rmem_max"),
            Self::SendBuffer => f.write_str("wmem_max"),
            Self::Governor(cpu) => write!(f, "governor cpu{cpu}"),
        }
    }
}

impl Setting {
    /// Setting by its displayed name; stored names have no other form.
    pub(super) fn shown_as(text: &str) -> Option<Self> {
        if let Some(name) = text.strip_prefix("feature ") {
            return FEATURES.into_iter().find(|known| *known == name).map(Self::Feature);
        }
        if let Some(cpu) = text.strip_prefix("governor cpu") {
            return cpu.parse().ok().map(Self::Governor);
        }
        let simple = [
            Self::Coalescing,
            Self::Eee,
            Self::Pause,
            Self::ReversePathFilter,
            Self::ReceiveBuffer,
            Self::SendBuffer,
        ];
        simple.into_iter().find(|setting| setting.to_string() == text)
    }

    /// Value required for measurements, if it differs from `now`; `of_all` is the reverse-path filter of all
    /// interfaces.
    pub(super) fn wanted(self, now: &str, of_all: &str) -> Option<String> {
        let wanted = match self {
            Self::Feature(_) | Self::Eee => "off".to_owned(),
            Self::Coalescing => {
                let now = coalescing_of(now)?;
                // Some drivers have no frame count; a value of 0 is kept.
                let wanted = Coalescing {
                    rx_usecs: 0,
                    rx_frames: now.rx_frames.min(1),
                    tx_usecs: 0,
                    tx_frames: now.tx_frames.min(1),
                    adaptive_rx: false,
                    adaptive_tx: false,
                };
                shown_coalescing(wanted)
            }
            Self::Pause => shown_pause(Pause { autonegotiated: false, rx: false, tx: false }),
            // The greater of both settings applies, and the one for all interfaces is not changed for one interface.
            Self::ReversePathFilter => {
                let strict = if now == "0" { of_all == "1" } else { now == "1" };
                (if strict { "2" } else { now }).to_owned()
            }
            Self::ReceiveBuffer | Self::SendBuffer => now.parse::<u64>().ok()?.max(LARGE_BUFFER).to_string(),
            Self::Governor(_) => "performance".to_owned(),
        };
        let is_paused = self != Self::Pause || pause_of(now).is_some_and(|now| now.rx || now.tx);
        (wanted != now && is_paused).then_some(wanted)
    }
}

/// Access to settings of the host, or of its replacement in tests.
pub(super) trait Settings: Send + Sync {
    /// Current value.
    fn read(&self, setting: Setting, interface: &str) -> Result<String, String>;
    /// Sets a value.
    fn write(&self, setting: Setting, interface: &str, value: &str) -> Result<(), String>;
    /// Reverse-path filter of all interfaces.
    fn filter_of_all(&self) -> String;
    /// Waits for a limited time until the link of an interface is up again after a change.
    fn await_link(&self, interface: &str);
    /// Identifies an interface beyond its name, across time and network namespaces; for the host, its boot.
    fn place(&self, interface: &str) -> Result<Place, String>;
}

/// Settings of this host.
pub(super) struct Host;

impl Settings for Host {
    fn read(&self, setting: Setting, interface: &str) -> Result<String, String> {
        match setting {
            Setting::Feature(name) => {
                let all = ethtool::features(interface).map_err(|error| why(&error))?;
                match all.get(name) {
                    Some(one) if one.changeable => Ok(switch(one.active)),
                    Some(_) => Err("its driver has it fixed".into()),
                    None => Err(format!("this kernel has no feature {name}")),
                }
            }
            Setting::Coalescing => {
                ethtool::coalescing(interface).map(shown_coalescing).map_err(|error| why(&error))
            }
            Setting::Eee => ethtool::eee(interface).map(switch).map_err(|error| why(&error)),
            Setting::Pause => ethtool::pause(interface).map(shown_pause).map_err(|error| why(&error)),
            _ => file(setting, interface).and_then(|path| {
                fs::read_to_string(&path)
                    .map(|text| text.trim().into())
                    .map_err(|error| format!("{path}: {error}"))
            }),
        }
    }

    fn write(&self, setting: Setting, interface: &str, value: &str) -> Result<(), String> {
        let done = match setting {
            Setting::Feature(name) => ethtool::set_feature(interface, name, value == "on"),
            Setting::Coalescing => {
                let wanted = coalescing_of(value).ok_or_else(|| format!("\"{value}\" is no coalescing"))?;
                ethtool::set_coalescing(interface, wanted)
            }
            Setting::Eee => ethtool::set_eee(interface, value == "on"),
            Setting::Pause => {
                let wanted = pause_of(value).ok_or_else(|| format!("\"{value}\" is no flow control"))?;
                ethtool::set_pause(interface, wanted)
            }
            _ => {
                let path = file(setting, interface)?;
                return fs::write(&path, value).map_err(|error| format!("{path}: {error}"));
            }
        };
        done.map_err(|error| why(&error))
    }

    fn filter_of_all(&self) -> String {
        fs::read_to_string("/proc/sys/net/ipv4/conf/all/rp_filter").unwrap_or_default().trim().into()
    }

    fn await_link(&self, interface: &str) {
        let up = || {
            let told = fs::read_to_string(format!("/sys/class/net/{interface}/carrier"));
            // An interface whose state is unreadable is not waited for.
            told.map_or(true, |told| told.trim() == "1")
        };
        std::thread::sleep(GOES_DOWN_WITHIN);
        let end = Instant::now() + COMES_UP_WITHIN;
        while !up() && Instant::now() < end {
            std::thread::sleep(GOES_DOWN_WITHIN);
        }
    }

    fn place(&self, interface: &str) -> Result<Place, String> {
        Place::of(interface)
    }
}

fn why(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::Unsupported {
        return "its driver has no such setting".into();
    }
    error.to_string()
}

/// File of a setting, if it has one. Interface names contain no slash.
fn file(setting: Setting, interface: &str) -> Result<String, String> {
    match setting {
        Setting::ReversePathFilter if !interface.is_empty() && !interface.contains('/') => {
            Ok(format!("/proc/sys/net/ipv4/conf/{interface}/rp_filter"))
        }
        Setting::ReceiveBuffer => Ok("/proc/sys/net/core/rmem_max".into()),
        Setting::SendBuffer => Ok("/proc/sys/net/core/wmem_max".into()),
        Setting::Governor(cpu) => Ok(format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor")),
        _ => Err(format!("there is no file for {setting} of \"{interface}\"")),
    }
}

fn switch(on: bool) -> String {
    (if on { "on" } else { "off" }).into()
}

fn shown_coalescing(one: Coalescing) -> String {
    format!(
        "rx-usecs {} rx-frames {} tx-usecs {} tx-frames {} adaptive-rx {} adaptive-tx {}",
        one.rx_usecs,
        one.rx_frames,
        one.tx_usecs,
        one.tx_frames,
        switch(one.adaptive_rx),
        switch(one.adaptive_tx)
    )
}

fn coalescing_of(text: &str) -> Option<Coalescing> {
    let words: Vec<&str> = text.split(' ').collect();
    let [
        "rx-usecs",
        rx_us,
        "rx-frames",
        rx,
        "tx-usecs",
        tx_us,
        "tx-frames",
        tx,
        "adaptive-rx",
        arx,
        "adaptive-tx",
        atx,
    ] = words[..]
    else {
        return None;
    };
    Some(Coalescing {
        rx_usecs: rx_us.parse().ok()?,
        rx_frames: rx.parse().ok()?,
        tx_usecs: tx_us.parse().ok()?,
        tx_frames: tx.parse().ok()?,
        adaptive_rx: arx == "on",
        adaptive_tx: atx == "on",
    })
}

fn shown_pause(one: Pause) -> String {
    format!("autoneg {} rx {} tx {}", switch(one.autonegotiated), switch(one.rx), switch(one.tx))
}

fn pause_of(text: &str) -> Option<Pause> {
    let words: Vec<&str> = text.split(' ').collect();
    let ["autoneg", autonegotiated, "rx", rx, "tx", tx] = words[..] else { return None };
    Some(Pause { autonegotiated: autonegotiated == "on", rx: rx == "on", tx: tx == "on" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_wanted_differs_from_what_is_set_or_is_nothing() {
        let cases = [
            (Setting::Feature("rx-gro"), "on", "0", Some("off")),
            (Setting::Feature("rx-gro"), "off", "0", None),
            (Setting::ReversePathFilter, "1", "0", Some("2")),
            (Setting::ReversePathFilter, "0", "1", Some("2")),
            (Setting::ReversePathFilter, "0", "0", None),
            (Setting::ReversePathFilter, "0", "2", None),
            (Setting::ReversePathFilter, "2", "1", None),
            (Setting::ReceiveBuffer, "212992", "0", Some("8388608")),
            (Setting::ReceiveBuffer, "33554432", "0", None),
            (Setting::Governor(0), "powersave", "0", Some("performance")),
            (Setting::Governor(0), "performance", "0", None),
            (Setting::Pause, "autoneg on rx on tx off", "0", Some("autoneg off rx off tx off")),
            (Setting::Pause, "autoneg on rx off tx off", "0", None),
            (
                Setting::Coalescing,
                "rx-usecs 3 rx-frames 64 tx-usecs 50 tx-frames 0 adaptive-rx on adaptive-tx off",
                "0",
                Some("rx-usecs 0 rx-frames 1 tx-usecs 0 tx-frames 0 adaptive-rx off adaptive-tx off"),
            ),
        ];
        for (setting, now, of_all, wanted) in cases {
            assert_eq!(setting.wanted(now, of_all).as_deref(), wanted, "{setting} {now}");
        }
    }

    #[test]
    fn names_lead_back_to_what_they_name_and_to_nothing_else() {
        for fix in Fix::ALL {
            assert_eq!(Fix::named(fix.name()), Some(fix));
            for setting in fix.settings() {
                assert_eq!(Setting::shown_as(&setting.to_string()), Some(setting));
            }
        }
        assert_eq!(Setting::shown_as("governor cpu3"), Some(Setting::Governor(3)));
        for other in ["", "feature ntuple", "governor cpu../x", "/etc/passwd", "sysctl kernel.panic"] {
            assert_eq!(Setting::shown_as(other), None, "{other}");
            assert_eq!(Fix::named(other), None);
        }
        assert!(file(Setting::ReversePathFilter, "../all").is_err());
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(us: u32, frames: u32, a: bool, b: bool) {
            let one = Coalescing { rx_usecs: us, rx_frames: frames, tx_usecs: frames, tx_frames: us, adaptive_rx: a, adaptive_tx: b };
            prop_assert_eq!(coalescing_of(&shown_coalescing(one)), Some(one));
            let one = Pause { autonegotiated: a, rx: b, tx: a };
            prop_assert_eq!(pause_of(&shown_pause(one)), Some(one));
        }

        #[test]
        fn any_text_is_read(text in ".{0,80}") {
            prop_assert!(coalescing_of(&text).is_none() && pause_of(&text).is_none());
        }
    }
}
