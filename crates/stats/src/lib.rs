//! Loops over every value of a long series, each of which NumPy would take in many passes.
//!
//! What adds does so in the order of NumPy, so a sum has the same last bit as one of NumPy's.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

mod folding;
mod pairing;
mod spectrum;
mod strings;

pub use folding::{folded, superposed};
pub use pairing::first_places;
pub use spectrum::{Peak, medians, peaks};
pub use strings::{Knot, taut};
