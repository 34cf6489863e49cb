//! Synchronisation by SAE AS6802: devices that agree on the time, and on whether they agree.
//!
//! *Synchronisation masters* (end systems) send integration frames at the beginning of every integration cycle.
//! *Compression masters* (a switch in each redundant channel) collect those that belong together, and send one in their
//! place at a fault-tolerant mean of their instants. Every device, *synchronisation clients* among them, corrects its
//! clock to where the compressed frames came. Before there is a clock to correct, masters make one: a coldstart frame
//! asks, acknowledgements agree, and all begin a fixed time after them.
//!
//! - [`Parameters`]: what all devices of a cluster know, and the timeouts, windows and bounds that follow from it.
//! - [`compression`]: integration frames of one cycle to one instant.
//! - [`EndSystem`]: the states of a synchronisation master or client.
//! - [`CompressionMaster`]: those of a compression master, of standard or high integrity.
//! - [`Behaviour`]: masters that fail as the fault hypothesis has it.
//!
//! Frames are judged when they are *permanent*: see [`PermanenceQueue`](crate::tte::dispatch::PermanenceQueue).
//!
//! # Time
//! Instants here are counts of the device's own oscillator
//! ([`LocalClock::elapsed`](crate::clock::LocalClock::elapsed)): a counter that nobody sets. What the device's clock is
//! to show is an effect, [`Output::Clock`]. Road not taken: to judge frames by the clock that is corrected, because
//! then every correction moves the instants that the correction was computed from.
//!
//! Inputs come in the order of time; a device does what is due before an instant before it takes an input of that
//! instant, and what is due at it afterwards, in [`handle_deadline`](EndSystem::handle_deadline). A late call does what
//! was due in its order; what it then sends, it sends late.
//!
//! # Sources
//! SAE AS6802 cannot be had freely. States and timing relations follow what is published of it: ECSS-E-ST-50-16C;
//! W. Steiner and B. Dutertre, "The TTEthernet Synchronisation Protocols and their Formal Verification" (2013);
//! docs/decisions/0040-as6802.md says where these are silent and what is done here.

pub mod compression;
mod compression_master;
mod cycle;
mod end_system;
mod parameters;
mod standing;

use wg_frame::time::Span;
pub use wg_frame::tte::{ControlRepr, ControlType, TransparentClock};

use crate::clock::LocalTime;

pub use compression_master::CompressionMaster;
pub use end_system::{EndSystem, Role};
pub use parameters::{Integrity, ParameterError, Parameters, Thresholds};

/// Greatest number of redundant channels in a cluster.
pub const CHANNELS: usize = 3;
/// Greatest number of synchronisation masters in a cluster: each has a bit of the membership.
pub const MASTERS: u8 = 32;
/// Greatest number of frames that a device holds until they are permanent.
const HELD: usize = 256;

/// An instant later than all others.
pub(crate) const NEVER: LocalTime = LocalTime::from_picos(i64::MAX);

/// Synchronisation state of a device. Compression masters and end systems share the names that they share in the
/// standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// The device listens whether others are synchronised.
    Integrate,
    /// The device has heard too few masters to be synchronised, and waits for the next cycle.
    WaitForCycleStart,
    /// The device has heard no other: masters send coldstart frames.
    Unsync,
    /// A master has taken up a coldstart frame.
    Flood,
    /// A master has taken up an acknowledgement, and waits for the first cycle.
    WaitForCycleStartColdstart,
    /// A compression master has passed on a coldstart frame: acknowledgements may pass.
    AcknowledgeEnabled,
    /// A compression master has passed on an acknowledgement.
    WaitForIntegration,
    /// The first cycles after a coldstart.
    TentativeSync,
    /// Synchronised.
    Sync,
    /// Synchronised for at least the configured number of stable cycles.
    Stable,
}

impl State {
    /// All states, in the order of their codes.
    pub const ALL: [Self; 10] = [
        Self::Integrate,
        Self::WaitForCycleStart,
        Self::Unsync,
        Self::Flood,
        Self::WaitForCycleStartColdstart,
        Self::AcknowledgeEnabled,
        Self::WaitForIntegration,
        Self::TentativeSync,
        Self::Sync,
        Self::Stable,
    ];

    /// Whether time-triggered traffic may flow.
    pub const fn is_synchronised(self) -> bool {
        matches!(self, Self::Sync | Self::Stable)
    }

    /// Whether the device runs integration cycles in this state.
    pub const fn is_cyclic(self) -> bool {
        matches!(self, Self::TentativeSync | Self::Sync | Self::Stable)
    }

    /// Code of the state in records.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Name of the state in reports: that of the standard, without the prefix of the device.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integrate => "INTEGRATE",
            Self::WaitForCycleStart => "WAIT_4_CYCLE_START",
            Self::Unsync => "UNSYNC",
            Self::Flood => "FLOOD",
            Self::WaitForCycleStartColdstart => "WAIT_4_CYCLE_START_CS",
            Self::AcknowledgeEnabled => "CA_ENABLED",
            Self::WaitForIntegration => "WAIT_4_IN",
            Self::TentativeSync => "TENTATIVE_SYNC",
            Self::Sync => "SYNC",
            Self::Stable => "STABLE",
        }
    }
}

/// Clique detection that found the device outside the majority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Clique {
    /// Too few masters are in schedule.
    Synchronous,
    /// Too many are out of schedule.
    Asynchronous,
    /// As many are out of schedule as in it.
    Relative,
}

impl Clique {
    /// Code of the clique in records.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// An effect of a synchronisation core, for the driver to carry out or record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this frame now into `channel`; a compression master has but one.
    Send {
        /// Index of the channel.
        channel: usize,
        /// The frame; its transparent clock begins at 0.
        frame: ControlRepr,
    },
    /// The clock is now at `position` in the cluster cycle.
    Clock {
        /// Time since the beginning of integration cycle 0.
        position: Span,
    },
    /// The device entered another state.
    State(State),
    /// Clique detection found the device in the wrong clique.
    Clique(Clique),
    /// The masters in schedule changed.
    Membership(u32),
}

/// Behaviour of a synchronisation master: correct, or with one of the single faults of the fault hypothesis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Behaviour {
    /// Behaves as the standard demands.
    #[default]
    Correct,
    /// Sends integration frames and acknowledgements this much too early.
    Early(Span),
    /// Sends every frame this much too late.
    Late(Span),
    /// Sends nothing.
    Silent,
    /// Sends early in the first channel, and as much too late in the others.
    Inconsistent(Span),
}

impl Behaviour {
    /// Time by which the master acts earlier than scheduled.
    const fn lead(self) -> Span {
        match self {
            Self::Early(by) | Self::Inconsistent(by) => by,
            _ => Span::ZERO,
        }
    }

    /// Delay from acting to sending the frame into `channel`; `None`: the frame is never sent.
    fn delay(self, channel: usize) -> Option<Span> {
        match self {
            Self::Silent => None,
            Self::Late(by) => Some(by),
            Self::Inconsistent(by) if channel > 0 => Some(by + by),
            _ => Some(Span::ZERO),
        }
    }
}
