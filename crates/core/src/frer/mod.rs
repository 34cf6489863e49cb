//! Frame replication and elimination for reliability: IEEE Std 802.1CB-2017 (FRER).
//!
//! On the way of a frame: a [`SequenceGenerator`] numbers the frames of a stream, a copy of each goes into every
//! *member stream* ([`StreamTable`]), each with the number in a redundancy tag; where the ways meet again, [`Recovery`]
//! passes the first copy of each number and discards the others, by the rules of [`vector`] or [`matching`] recovery.
//! *Individual recovery* is the same function on one member stream alone, before they meet: it stops a member that
//! repeats itself. [`latent`] error detection notices that copies are missing although no message is.
//!
//! A stream is identified by destination address and VLAN (null stream identification, 6.4). Member streams have
//! destination addresses of their own, given where the copies are made and taken off where they are removed (active
//! destination MAC and VLAN stream identification, 6.6).
//!
//! Names are those of the standard: `passed`, `discarded`, `rogue`, `lost`, `out_of_order`, `tagless`, `resets` are its
//! counters (10.8). Where we depart from it:
//!
//! - Time is exact: the reset timer has no ticks, and runs out at its instant.
//! - The standard counts each place that leaves the history unseen as a lost packet, also those before the first number
//!   after a reset, which nobody awaited. Here they are not lost packets, so `lost` is 0 where nothing was lost.
//! - The reset with which a function begins is not counted.
//!
//! # Time
//! There is no deadline. What a timer did is made up for at the next call, as of its own instant: nothing else changes
//! in between. A call earlier than one before counts as made at the later instant. Work for each call is bounded by the
//! history length and the number of member streams.

pub mod generation;
pub mod latent;
pub mod matching;
pub mod recovery;
pub mod streams;
pub mod vector;

pub use generation::SequenceGenerator;
pub use latent::{LatentErrorConfig, LatentErrors};
pub use recovery::{Algorithm, Counters, Decision, Recovery, RecoveryConfig, RecoveryError};
pub use streams::{Elimination, Handled, Relay, Replication, StreamId, StreamTable, StreamTableError};

/// Sequence numbers of a redundancy tag: RecovSeqSpace and GenSeqSpace.
pub const SEQUENCE_SPACE: u32 = 1 << 16;

/// Distance of `number` after `reference`, between −32 768 and 32 767: the delta of 7.4.3.4 and 7.4.3.5.
#[expect(clippy::cast_possible_wrap, reason = "the wrap is the rule")]
pub const fn delta(number: u16, reference: u16) -> i16 {
    number.wrapping_sub(reference) as i16
}
