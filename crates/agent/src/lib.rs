//! The end-system program.
#![forbid(unsafe_code)]
