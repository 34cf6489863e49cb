//! Captures written and read, whole and broken.

mod bodies;
mod foreign;
mod round_trip;
mod sections;
mod streams;
mod traces;
mod two_clocks;
