//! An interface of a capture, and what is known of its times.

use pcap_parser::Linktype;

use crate::Timestamps;
use crate::tick::Unit;

/// An interface of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name in the file, made printable; empty for classic pcap, which has none.
    pub name: String,
    /// Length of the FCS at the end of frames, if the file states one; otherwise 0.
    pub fcs: u8,
    /// Line rate in bit/s.
    pub rate_bps: Option<u64>,
    /// Kind and octet of the timestamps, if the file states them as Wiregauge does.
    pub timestamps: Option<Timestamps>,
    /// Smallest step of its times in picoseconds, at least 1.
    pub step_picos: u64,
    /// Number of frames that it reports as dropped by itself or the host.
    pub dropped: u64,
    /// Whether the file states how many were dropped; a program that was killed, or classic pcap, states nothing.
    pub states_drops: bool,
    /// Greatest amount by which a time precedes an earlier frame's in the file, ps.
    pub back_picos: u64,
    /// Number of times that precede the previous frame's.
    pub turns: u64,
    /// Part of `dropped` that packet blocks report.
    pub(crate) dropped_between: u64,
    pub(crate) latest: Option<i128>,
    pub(crate) before: Option<i128>,
    pub(crate) link_type: i32,
    pub(crate) resolution: Option<Unit>,
    pub(crate) offset_seconds: i64,
}

impl Interface {
    /// An interface whose frames come now, with the kernel's times in ns; nothing is dropped yet.
    pub fn live(name: &str, rate_bps: Option<u64>) -> Self {
        let resolution = Unit::of(9);
        Self {
            name: name.to_owned(),
            fcs: 0,
            rate_bps,
            timestamps: Some(Timestamps::SOFTWARE),
            step_picos: resolution.map_or(1, Unit::step),
            dropped: 0,
            states_drops: true,
            dropped_between: 0,
            back_picos: 0,
            turns: 0,
            before: None,
            latest: None,
            link_type: Linktype::ETHERNET.0,
            resolution,
            offset_seconds: 0,
        }
    }

    pub(crate) fn meet(&mut self, picos: i128) {
        let latest = self.latest.map_or(picos, |latest| latest.max(picos));
        self.back_picos = self.back_picos.max(u64::try_from(latest - picos).unwrap_or(u64::MAX));
        self.latest = Some(latest);
        self.turns += u64::from(self.before.is_some_and(|before| picos < before));
        self.before = Some(picos);
    }
}
