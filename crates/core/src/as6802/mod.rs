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
//! Instants here are counts of the device's own oscillator ([`LocalClock::elapsed`](crate::clock::LocalClock::elapsed)):
//! a counter that nobody sets. What the device's clock is to show is an effect, [`Output::Clock`]. Road not taken: to
//! judge frames by the clock that is corrected, because then every correction moves the instants that the correction
//! was computed from.
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

/// Redundant channels of a cluster at most.
pub const CHANNELS: usize = 3;
/// Synchronisation masters of a cluster at most: each has a bit of the membership.
pub const MASTERS: u8 = 32;
/// Frames that a device holds until they are permanent at most.
const HELD: usize = 256;

/// Later than everything.
pub(crate) const NEVER: LocalTime = LocalTime::from_picos(i64::MAX);

/// Where a device is on its way to being synchronised. Compression masters and end systems share the names they share
/// in the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It listens whether others are synchronised.
    Integrate,
    /// It has heard too few for being synchronised, and waits for the next cycle.
    WaitForCycleStart,
    /// It has heard nobody: masters send coldstart frames.
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
    /// Synchronised for long.
    Stable,
}

impl State {
    /// All, in the order of their codes.
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

    /// Whether it keeps to integration cycles.
    pub const fn is_cyclic(self) -> bool {
        matches!(self, Self::TentativeSync | Self::Sync | Self::Stable)
    }

    /// Its number in records.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Its name in reports: that of the standard, without the prefix of the device.
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

/// How a device finds that it is of another opinion than others.
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
    /// Its number in records.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// What a device wants done or noticed.
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
        /// Since the beginning of integration cycle 0.
        position: Span,
    },
    /// It is in another state.
    State(State),
    /// It found itself in the wrong clique.
    Clique(Clique),
    /// The masters in schedule changed.
    Membership(u32),
}

/// How a synchronisation master behaves: the single faults of the hypothesis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Behaviour {
    /// As the standard has it.
    #[default]
    Correct,
    /// Its integration frames and acknowledgements come so much too early.
    Early(Span),
    /// Every frame comes so much too late.
    Late(Span),
    /// It sends nothing.
    Silent,
    /// Early in the first channel, and late by as much in the others.
    Inconsistent(Span),
}

impl Behaviour {
    /// By how much it acts before it should.
    const fn lead(self) -> Span {
        match self {
            Self::Early(by) | Self::Inconsistent(by) => by,
            _ => Span::ZERO,
        }
    }

    /// How long after it acts the frame goes out into `channel`; `None`: never.
    fn delay(self, channel: usize) -> Option<Span> {
        match self {
            Self::Silent => None,
            Self::Late(by) => Some(by),
            Self::Inconsistent(by) if channel > 0 => Some(by + by),
            _ => Some(Span::ZERO),
        }
    }
}
