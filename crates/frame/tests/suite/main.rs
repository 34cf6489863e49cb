//! The crate's tests, as one program.

mod arbitrary_bytes;
mod bodies;
mod fill;
mod judge;
mod layers;
mod probe;
mod protocols;
mod stamp;
mod strategies;
mod time;
mod vectors;
