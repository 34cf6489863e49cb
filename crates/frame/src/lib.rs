//! Time types and frames: everything measured in bytes or picoseconds.
//!
//! Two layers per frame, as in the best protocol stacks: a *view* of bytes that checks nothing but length, and a
//! *representation* that can hold only valid values. No accessor of a view panics once the view was made by its checked
//! constructor, because that checked the length every accessor needs.
//!
//! The crate is `no_std` and owns no clock, socket or random source, so whatever is built on it can be
//! driven in virtual time as well as in real time.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

#[cfg(test)]
extern crate std;

pub mod arinc664;
pub mod arp;
mod bytes;
mod checksum;
pub mod classify;
mod crc;
pub mod ethernet;
pub mod fill;
pub mod image;
pub mod ipv4;
pub mod layout;
pub mod lldp;
pub mod probe;
pub mod ptp;
pub mod rtag;
pub mod stamp;
pub mod template;
pub mod time;
pub mod tte;
pub mod udp;
pub mod vlan;
