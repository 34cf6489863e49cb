//! What must hold for any bytes; the fuzzer runs the same bodies.

pub(crate) mod observing;
pub(crate) mod reading;
