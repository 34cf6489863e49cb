//! Domains of clocks that synchronise by PTP (IEEE Std 1588-2019).

use serde::{Deserialize, Serialize};
use wg_frame::time::Span;

use super::PtpDelay;
use crate::network::{Attachment, NodeIndex};

/// A domain: its clocks, and the ports its messages pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtpDomain {
    /// domainNumber (7.1).
    pub number: u8,
    /// Addresses and identifiers of its messages.
    pub profile: PtpProfile,
    /// How delays are measured.
    pub delay: PtpDelay,
    /// logAnnounceInterval: two to this many seconds.
    pub log_announce_interval: i8,
    /// logSyncInterval: two to this many seconds.
    pub log_sync_interval: i8,
    /// logMinDelayReqInterval or logMinPdelayReqInterval: two to this many seconds.
    pub log_delay_interval: i8,
    /// announceReceiptTimeout, in announce intervals.
    pub announce_timeout: u8,
    /// What steers a clock.
    pub servo: PtpServo,
    /// How, with [`PtpServo::Pi`].
    pub pi: PtpPi,
    /// Priority of its frames in queues.
    pub priority: u8,
    /// The greatest offset from the grandmaster of a clock that counts as synchronised.
    pub max_offset: Span,
    /// Ordinary and boundary clocks.
    pub clocks: Vec<PtpClock>,
    /// Transparent clocks, switches.
    pub transparent: Vec<NodeIndex>,
    /// Ports that its messages are sent by: those of its clocks, and of switches those of a spanning tree.
    pub ports: Vec<Attachment>,
}

/// An ordinary or boundary clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtpClock {
    /// An end system, or a switch that is a boundary clock.
    pub node: NodeIndex,
    /// priority1 (7.6.2.3).
    pub priority1: u8,
    /// priority2 (7.6.2.4).
    pub priority2: u8,
    /// What it may become.
    pub role: PtpRole,
}

/// Addresses and identifiers of the messages of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PtpProfile {
    /// IEEE Std 1588-2019, annexes E and I.
    Default,
    /// IEEE Std 802.1AS-2020.
    Gptp,
}

/// What steers a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PtpServo {
    /// The Kalman filter of `statime`: steers the frequency, steps beyond a millisecond.
    Kalman,
    /// The proportional filter of `statime`: steps at every measurement.
    Basic,
    /// The PI servo of linuxptp: steers the frequency, steps once.
    Pi,
}

/// Settings of the PI servo, by their names in `ptp4l(8)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtpPi {
    /// pi_proportional_const, in thousandths; `None`: from the sync interval, as for hardware timestamps.
    pub kp_thousandths: Option<u32>,
    /// pi_integral_const, likewise.
    pub ki_thousandths: Option<u32>,
    /// first_step_threshold; zero: never.
    pub first_step_threshold: Span,
    /// step_threshold; `None`: never.
    pub step_threshold: Option<Span>,
    /// delay_filter.
    pub delay_filter: DelayFilter,
    /// delay_filter_length.
    pub delay_filter_length: u8,
}

/// What is made of several measured delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DelayFilter {
    /// The one in the middle.
    Median,
    /// Their mean.
    Average,
}

/// What a clock may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PtpRole {
    /// As the best master clock algorithm has it.
    Any,
    /// clientOnly: never grandmaster.
    SlaveOnly,
    /// Its ports are never slaves.
    GrandmasterOnly,
}
