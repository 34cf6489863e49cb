#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/capture/tests/it/bodies/observing.rs"]
mod body;

fuzz_target!(|data: &[u8]| {
    body::body(data);
});
