//! State machines of the network, without a clock, a socket, a thread or a random source.
//!
//! The time is an argument of every call and effects are values, so the simulator (virtual time) and the live
//! programs (real time) drive the very same code.
//!
//! # One vocabulary
//!
//! - `handle_*(now, input)` puts something in.
//! - `poll_output()` takes effects out; call it until it returns `None` before the next input. Cores whose calls have
//!   one effect at most return it instead.
//! - `next_deadline()` says when to come back without an input, and `handle_deadline(now)` comes back. A
//!   [`Deadline`] orders "never" last.
//! - Everything else only looks.
//!
//! # What instants mean
//!
//! - *Equal instants*: inputs at one instant act in the order of the calls. A deadline equal to `now` is due. A
//!   driver hands in all inputs of an instant before it calls `handle_deadline` for it, so that a port chooses among
//!   all frames of the instant. A frame that finds a line free begins at once only where the driver says that no
//!   other input of the instant follows (`more` is false); a driver of real time, whose instants never equal, says so.
//! - *Late calls* act as of `now` and are never back-dated: what could have begun earlier begins now.
//! - *Early calls* of `handle_deadline` do nothing.
//! - `now` never decreases from call to call of one core; a driver that breaks this gets effects in a wrong order.
//!
//! # Obligations
//!
//! An effect that must be answered carries a token that cannot be copied; the answer consumes it. See
//! [`port::Transmission`].
//!
//! # Handles
//!
//! A frame carries the [handle](frame::Handle) of its driver, and no core looks at it. A driver that must know when the
//! buffer behind a handle is free has the device follow copies: every copy that is made, waits or is through is then an
//! effect ([`port::Life`]), and each has one end. A simulator, whose frames are values, does without.
//!
//! # Bounds
//!
//! Every queue and table has a limit from its configuration, and reaching it is an effect with a reason. Work for
//! each call is bounded by what the core holds and by its number of ports.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod address_table;
pub mod arinc664;
pub mod as6802;
mod cause;
pub mod clock;
mod contention;
mod deadline;
pub mod end_system;
pub mod fifo;
#[expect(clippy::cast_possible_truncation, reason = "a switch has at most 1024 ports")]
pub mod forwarding;
pub mod frame;
pub mod frer;
pub mod generator;
pub mod hub;
pub mod ingress;
pub mod line;
pub mod oscillator;
pub mod pacing;
pub mod port;
pub mod psfp;
pub mod queue;
pub mod relay;
pub mod selection;
#[expect(clippy::cast_possible_truncation, reason = "a switch has at most 1024 ports")]
pub mod switch;
pub mod tte;
pub mod virtual_link_layer;

pub use cause::Cause;
pub use deadline::Deadline;
