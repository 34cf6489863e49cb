//! Parameters, constants, outputs and errors of a hub.

use wg_frame::time::{RunTime, Span};

/// slotTime, in bit times (4.4.2).
pub const SLOT_BITS: i64 = 512;

/// interPacketGap, in bit times (4.4.2).
pub const GAP_BITS: i64 = 96;

/// First part of the gap, two thirds, in which carrier restarts it (4.2.3.2.1), in bit times.
pub const GAP_PART1_BITS: i64 = 64;

/// jamSize, in bit times (4.4.2).
pub const JAM_BITS: i64 = 32;

/// Preamble and start delimiter, in bit times (3.2.1 and 3.2.2).
pub const PREAMBLE_BITS: i64 = 64;

/// attemptLimit (4.4.2).
pub const ATTEMPT_LIMIT: u8 = 16;

/// backoffLimit (4.4.2).
pub const BACKOFF_LIMIT: u8 = 10;

/// Most stations of one collision domain (IEEE 802.3, clause 13).
pub const MAX_STATIONS: usize = 1_024;

/// Line rate of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// 10 Mbit/s.
    TenMegabit,
    /// 100 Mbit/s.
    HundredMegabit,
}

impl Rate {
    /// The rate of `bits_per_second`; `None`: not a rate of half-duplex Ethernet here.
    pub const fn new(bits_per_second: u64) -> Option<Self> {
        match bits_per_second {
            10_000_000 => Some(Self::TenMegabit),
            100_000_000 => Some(Self::HundredMegabit),
            _ => None,
        }
    }
    /// Duration of one bit.
    pub const fn bit(self) -> Span {
        match self {
            Self::TenMegabit => Span::from_nanos(100),
            Self::HundredMegabit => Span::from_nanos(10),
        }
    }
    /// Duration of `n` bits.
    pub const fn bits(self, n: i64) -> Span {
        Span::from_picos(self.bit().as_picos() * n)
    }
}

/// A station in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationPlan {
    /// One-way delay of its cable.
    pub delay: Span,
    /// Capacity of its queue in frames, the one being sent included.
    pub queue: usize,
}

/// Stations that make no hub: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// None, or more than a collision domain may have.
    #[error("a hub has 1 to 1024 stations, not {0}")]
    Stations(usize),
    /// A delay below zero, or so long that signals queue up on the cable.
    #[error("the delay {0} is not between 0ps and {1} (1024 bit times); shorten the cable")]
    Delay(Span, Span),
}

/// Reason why a frame was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HubDrop {
    /// Collision at each of its 16 attempts.
    ExcessiveCollisions,
    /// Collision more than 512 bit times after its beginning.
    LateCollision,
}

/// An effect of a hub, with its instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<F> {
    /// The first bit of the preamble left the station.
    Started {
        /// Index of the station.
        station: usize,
        /// Instant of the first bit.
        at: RunTime,
        /// The attempt, from 1.
        attempt: u8,
    },
    /// The station heard another while it was sending.
    Collided {
        /// Index of the station.
        station: usize,
        /// Instant of the collision.
        at: RunTime,
        /// The attempt, from 1.
        attempt: u8,
        /// Whether it was more than 512 bit times after the transmission began.
        late: bool,
    },
    /// The station needs a random integer 0 ≤ r < `limit`. Owed back: [`Hub::handle_backoff`].
    DrawBackoff {
        /// Index of the station.
        station: usize,
        /// End of its jam, from which the backoff counts.
        at: RunTime,
        /// Exclusive upper bound of r.
        limit: u16,
    },
    /// The last bit left the station without a collision.
    Sent {
        /// Index of the station.
        station: usize,
        /// Instant of the last bit.
        at: RunTime,
        /// The frame.
        frame: F,
    },
    /// The station gives the frame up.
    Dropped {
        /// Index of the station.
        station: usize,
        /// Instant of the drop.
        at: RunTime,
        /// The frame.
        frame: F,
        /// The reason.
        reason: HubDrop,
    },
    /// The last bit of an undamaged frame reached a station.
    Received {
        /// Index of the receiving station.
        station: usize,
        /// Index of the sending station.
        from: usize,
        /// Instant of the last bit.
        at: RunTime,
        /// The frame.
        frame: F,
    },
    /// A frame sent whole reached this station in a collision: its FCS is wrong here. Happens only on a hub too
    /// wide for its collision window.
    Garbled {
        /// Index of the receiving station.
        station: usize,
        /// Index of the sending station.
        from: usize,
        /// Time of its last bit.
        at: RunTime,
        /// The frame.
        frame: F,
    },
}

/// Reason why a frame was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HubRefusal<F> {
    /// The station's queue is full.
    QueueFull(F),
    /// There is no such station.
    NoSuchStation(F),
}

/// A backoff that answers no request: the driver's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackoffError {
    /// The station awaits no backoff.
    #[error("station {0} asked for no backoff")]
    NotAsked(usize),
    /// Not below the requested limit.
    #[error("the backoff of {slots} slots is not below {limit}")]
    OutOfRange {
        /// The number of slots given.
        slots: u16,
        /// Exclusive upper bound.
        limit: u16,
    },
}
