//! Capture files, read and written.
//!
//! - [`pcapng`] makes the blocks of a file. The simulator and the agents write with it, so their captures are alike.
//! - [`CaptureFile`] puts blocks on a disk that may fill up: what is there stays readable.
//! - [`Reader`] reads pcapng and classic pcap of any byte order and resolution, and names what it cannot use.
//! - [`taps`] makes records of the messages in captures.
//! - [`passive`] compares two captures of anyone's traffic, taken before and after a device.
//! - [`streams`] finds the streams of anyone's traffic in captures of one place, and keeps an account of each.
//! - [`trace`] takes lengths and times of frames for a replay.
//! - [`printable`] is how names of others are shown.
//! - [`Timestamps`] says by what a frame was timestamped and which octet of it the timestamp belongs to.
//!
//! Reading parses with `pcap-parser`, which is maintained and fuzzed for this purpose. Writing is our own code: the few
//! blocks needed are simple, and nothing may be allocated per frame.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

mod any_interface;
mod edges;
mod erf;
mod file;
mod interface;
mod link_types;
pub mod passive;
pub mod pcapng;
mod printable;
mod read;
mod redundancy;
pub mod streams;
pub mod taps;
mod tick;
mod timestamps;
mod trace;
mod trouble;
mod unpacked;

pub use file::CaptureFile;
pub use interface::Interface;
pub use link_types::LinkType;
pub use printable::printable;
pub use read::{Packet, Reader};
pub use timestamps::{Octet, TimestampKind, Timestamps};
pub use trace::{Files, trace};
pub use trouble::{ReadError, Trouble};

/// Direction of a frame at the interface, as in pcapng's `epb_flags`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Unknown: the file does not state it, as for a passive tap.
    #[default]
    Unknown,
    /// The interface received it.
    Inbound,
    /// The interface sent it.
    Outbound,
}
