//! One set of features for what several crates depend on: see `Cargo.toml`. It has no code.
#![no_std]
#![forbid(unsafe_code)]
