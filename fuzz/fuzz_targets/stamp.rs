#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/frame/tests/suite/bodies/stamp.rs"]
mod body;

fuzz_target!(|data: &[u8]| body::body(data));
