#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/record/tests/it/bodies/stored.rs"]
mod body;

fuzz_target!(|data: &[u8]| {
    body::body(data);
});
