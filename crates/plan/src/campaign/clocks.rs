//! How the clocks of end systems are kept together and compared.

use serde::{Deserialize, Serialize};
use wg_frame::time::Span;

use crate::network::NodeIndex;

/// How clocks are kept together and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Synchronise {
    /// The end system whose clock the others are compared with.
    pub reference: NodeIndex,
    /// Largest difference between the fixed delays of the two directions between two end systems; absent: not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asymmetry: Option<Span>,
    /// Largest permitted offset of a clock; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_offset: Option<Span>,
    /// What happens if a clock exceeds the limit.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Time before a run in which clocks must come within the limit.
    pub wait: Span,
    /// Time between two exchanges with each end system; absent without exchanges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Span>,
    /// Settings of linuxptp on every end system; absent: it does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ptp: Option<Ptp>,
    /// Whether the state of chrony, which runs already, is watched.
    #[serde(default)]
    pub chrony: bool,
}

/// What happens if a clock exceeds its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The run takes place and is graded.
    #[default]
    Grade,
    /// The run does not take place.
    Refuse,
}

/// The Precision Time Protocol through linuxptp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ptp {
    /// Where timestamps are taken.
    pub timestamps: PtpTimestamps,
    /// Whether clocks are set and steered; otherwise they are only compared.
    pub steer: bool,
    /// Time between two Sync messages, a power of two of a second.
    pub interval: Span,
    /// Proportional constant of phc2sys, in thousandths.
    pub kp_thousandths: u32,
    /// Integral constant of phc2sys, in thousandths.
    pub ki_thousandths: u32,
    /// Number of the PTP domain.
    #[serde(default)]
    pub domain: u8,
    /// What carries PTP frames.
    #[serde(default)]
    pub transport: PtpTransport,
    /// How delays are measured.
    #[serde(default)]
    pub delay: PtpDelay,
}

/// What carries the frames of a synchronisation protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PtpTransport {
    /// Ethernet (IEEE 1588-2019, annex E).
    #[default]
    L2,
    /// UDP over IPv4 (annex C).
    Udp,
}

/// How delays are measured (IEEE 1588-2019, 11.3 and 11.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PtpDelay {
    /// From end to end, through whatever is between.
    #[default]
    E2e,
    /// From peer to peer: every switch between takes part.
    P2p,
}

/// Where the timestamps of a synchronisation protocol are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PtpTimestamps {
    /// By the interface's own clock.
    Hardware,
    /// By the kernel.
    Software,
}
