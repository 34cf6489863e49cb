//! The timestamping capabilities of an interface, and switching hardware timestamping on.
//!
//! The kernel reports what a driver can do (`ETHTOOL_GET_TS_INFO`) and configures it (`SIOCSHWTSTAMP`). The driver may
//! grant less than it reports: some timestamp PTP frames only, which is useless for messages of Wiregauge. So the
//! choice is made from the answers, in a function that needs no interface.

use std::io;
use std::os::fd::AsRawFd;

use crate::error::NetError;
use crate::sys::{check, socket};

/// `ETHTOOL_GET_TS_INFO` of linux/ethtool.h.
const GET_TS_INFO: u32 = 0x41;
/// `SIOCETHTOOL` of linux/sockios.h.
const SIOCETHTOOL: libc::c_ulong = 0x8946;
/// `HWTSTAMP_TX_ON` and `HWTSTAMP_FILTER_ALL` of linux/net_tstamp.h, as numbers and as bits of a capability.
const TX_ON: libc::c_int = 1;
const FILTER_ALL: libc::c_int = 1;
/// Timestamping off.
const OFF: libc::c_int = 0;

/// `enum hwtstamp_rx_filters` of linux/net_tstamp.h, in its order.
const FILTERS: [&str; 16] = [
    "none",
    "all",
    "some",
    "ptpv1-l4-event",
    "ptpv1-l4-sync",
    "ptpv1-l4-delay-req",
    "ptpv2-l4-event",
    "ptpv2-l4-sync",
    "ptpv2-l4-delay-req",
    "ptpv2-l2-event",
    "ptpv2-l2-sync",
    "ptpv2-l2-delay-req",
    "ptpv2-event",
    "ptpv2-sync",
    "ptpv2-delay-req",
    "ntp-all",
];

/// `struct ethtool_ts_info`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct TsInfo {
    command: u32,
    so_timestamping: u32,
    phc_index: i32,
    tx_types: u32,
    tx_reserved: [u32; 3],
    rx_filters: u32,
    rx_reserved: [u32; 3],
}

/// Timestamping capabilities that the driver of an interface reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimestampCapability {
    so_timestamping: u32,
    phc_index: i32,
    tx_types: u32,
    rx_filters: u32,
}

/// Source of timestamps in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampSource {
    /// The interface's own clock.
    Hardware,
    /// The kernel, as the driver takes or hands over the frame.
    Software,
    /// No timestamps.
    None,
}

impl TimestampCapability {
    /// Capabilities from the fields of `struct ethtool_ts_info`.
    pub const fn new(so_timestamping: u32, phc_index: i32, tx_types: u32, rx_filters: u32) -> Self {
        Self { so_timestamping, phc_index, tx_types, rx_filters }
    }

    const fn has(self, flags: u32) -> bool {
        self.so_timestamping & flags == flags
    }

    /// Number N of `/dev/ptpN`, the clock of the interface's timestamps.
    pub fn phc(self) -> Option<u32> {
        u32::try_from(self.phc_index).ok()
    }

    /// The best source for sent frames.
    pub fn transmit(self) -> TimestampSource {
        let hardware = self.has(libc::SOF_TIMESTAMPING_TX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE);
        if hardware && self.tx_types & 1 << TX_ON != 0 && self.phc().is_some() {
            TimestampSource::Hardware
        } else if self.has(libc::SOF_TIMESTAMPING_TX_SOFTWARE) {
            TimestampSource::Software
        } else {
            TimestampSource::None
        }
    }

    /// The best source for received frames. An interface that timestamps PTP frames only is useless for messages of
    /// Wiregauge.
    pub fn receive(self) -> TimestampSource {
        let hardware = self.has(libc::SOF_TIMESTAMPING_RX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE);
        if hardware && self.rx_filters & 1 << FILTER_ALL != 0 && self.phc().is_some() {
            TimestampSource::Hardware
        } else if self.has(libc::SOF_TIMESTAMPING_RX_SOFTWARE) {
            TimestampSource::Software
        } else {
            TimestampSource::None
        }
    }

    /// Received frames that it can timestamp in hardware, by the kernel's names; empty if none.
    pub fn receive_filters(self) -> Vec<&'static str> {
        let set = self.rx_filters;
        FILTERS
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(bit, _)| set >> bit & 1 == 1)
            .map(|(_, name)| *name)
            .collect()
    }

    /// One-line description: source in each direction, clock, and why existing hardware timestamps are not used.
    pub fn described(self) -> String {
        let name = |source| match source {
            TimestampSource::Hardware => "hardware",
            TimestampSource::Software => "software",
            TimestampSource::None => "none",
        };
        let (transmit, receive) = (self.transmit(), self.receive());
        let clock = self.phc().map_or_else(|| "no clock of its own".into(), |n| format!("clock /dev/ptp{n}"));
        let ptp_only = receive != TimestampSource::Hardware
            && self.has(libc::SOF_TIMESTAMPING_RX_HARDWARE)
            && self.rx_filters & !1 != 0;
        let note = if ptp_only { "; its hardware timestamps only PTP frames on receive" } else { "" };
        format!("transmit {}, receive {}, {clock}{note}", name(transmit), name(receive))
    }
}

/// Timestamping capabilities of `interface`.
///
/// # Errors
/// There is no such interface, or the kernel refuses.
pub fn timestamp_capability(interface: &str) -> Result<TimestampCapability, NetError> {
    let what = || format!("cannot read the timestamping capabilities of interface '{interface}'");
    let mut info = TsInfo { command: GET_TS_INFO, ..TsInfo::default() };
    request(interface, SIOCETHTOOL, (&raw mut info).cast()).map_err(|e| NetError::of(what(), "", e))?;
    Ok(TimestampCapability::new(info.so_timestamping, info.phc_index, info.tx_types, info.rx_filters))
}

/// Hardware timestamping of an interface. The previous setting is restored when this is dropped.
#[derive(Debug)]
pub struct HardwareTimestamping {
    interface: String,
    before: libc::hwtstamp_config,
}

impl HardwareTimestamping {
    /// Enables timestamps of every frame that `interface` sends, receives, or both.
    ///
    /// # Errors
    /// CAP_NET_ADMIN is missing, the driver cannot, or it grants less than every frame.
    pub fn start(interface: &str, sent: bool, received: bool) -> Result<Self, NetError> {
        let what = || format!("cannot switch on timestamping of every frame on interface '{interface}'");
        let mut before = libc::hwtstamp_config { flags: 0, tx_type: 0, rx_filter: 0 };
        // A driver without this request starts as "off".
        let _ = request(interface, libc::SIOCGHWTSTAMP, (&raw mut before).cast());
        let (tx_type, rx_filter) = (if sent { TX_ON } else { OFF }, if received { FILTER_ALL } else { OFF });
        let mut wanted = libc::hwtstamp_config { flags: 0, tx_type, rx_filter };
        request(interface, libc::SIOCSHWTSTAMP, (&raw mut wanted).cast())
            .map_err(|e| NetError::of(what(), "it needs CAP_NET_ADMIN and a driver that can", e))?;
        let timestamping = Self { interface: interface.into(), before };
        if (wanted.tx_type, wanted.rx_filter) != (tx_type, rx_filter) {
            let refused = io::Error::other("the driver timestamps only some frames");
            return Err(NetError::of(what(), "software timestamps are used instead", refused));
        }
        Ok(timestamping)
    }
}

impl Drop for HardwareTimestamping {
    fn drop(&mut self) {
        let mut before = self.before;
        // An interface that is gone needs no restoring.
        let _ = request(&self.interface, libc::SIOCSHWTSTAMP, (&raw mut before).cast());
    }
}

/// An interface request with a structure at `data`, which must be the one that `code` expects.
fn request(interface: &str, code: libc::c_ulong, data: *mut libc::c_char) -> io::Result<()> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // SAFETY: an ifreq of zeroes is valid.
    let mut order: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= order.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in order.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed();
    }
    order.ifr_ifru.ifru_data = data;
    // SAFETY: `order` is a live ifreq with a terminated name; the three callers in this file pass, with each code, a
    // live structure of the layout the kernel reads and writes for it.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), code as _, &raw mut order) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOFTWARE: u32 = libc::SOF_TIMESTAMPING_TX_SOFTWARE
        | libc::SOF_TIMESTAMPING_RX_SOFTWARE
        | libc::SOF_TIMESTAMPING_SOFTWARE;
    const HARDWARE: u32 = libc::SOF_TIMESTAMPING_TX_HARDWARE
        | libc::SOF_TIMESTAMPING_RX_HARDWARE
        | libc::SOF_TIMESTAMPING_RAW_HARDWARE;

    #[test]
    fn hardware_is_chosen_where_every_frame_can_be_timestamped_and_there_is_a_clock() {
        use TimestampSource::{Hardware, None, Software};
        // Typical drivers: all frames, PTP frames only, no clock, transmit off only, software, nothing.
        for (flags, phc, tx, rx, transmit, receive) in [
            (SOFTWARE | HARDWARE, 0, 0b11, 0b11, Hardware, Hardware),
            (SOFTWARE | HARDWARE, 1, 0b11, 0x1001, Hardware, Software),
            (SOFTWARE | HARDWARE, -1, 0b11, 0b11, Software, Software),
            (SOFTWARE | HARDWARE, 0, 0b01, 0b11, Software, Hardware),
            (SOFTWARE, -1, 0, 0, Software, Software),
            (HARDWARE & !libc::SOF_TIMESTAMPING_RAW_HARDWARE, 0, 0b11, 0b11, None, None),
            (0, -1, 0, 0, None, None),
        ] {
            let can = TimestampCapability::new(flags, phc, tx, rx);
            assert_eq!((can.transmit(), can.receive()), (transmit, receive), "{can:?}");
        }
        let ptp_only = TimestampCapability::new(SOFTWARE | HARDWARE, 1, 0b11, 0x1001);
        assert!(ptp_only.described().contains("only PTP frames"), "{}", ptp_only.described());
        assert_eq!(ptp_only.receive_filters(), ["ptpv2-event"]);
    }

    #[test]
    fn loopback_timestamps_in_software_and_what_is_not_there_is_an_error() {
        let can = timestamp_capability("lo").expect("loopback is there");
        assert_eq!(
            (can.transmit(), can.phc()),
            (TimestampSource::Software, Option::None),
            "{}",
            can.described()
        );
        for name in ["no-such-one", "a-name-longer-than-any-interface", ""] {
            let error = timestamp_capability(name).expect_err("it is not there");
            assert!(error.to_string().contains(name), "{error}");
        }
        let error = HardwareTimestamping::start("lo", true, true).expect_err("it has no clock");
        assert!(error.to_string().contains("'lo'"), "{error}");
    }
}
