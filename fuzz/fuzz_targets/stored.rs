#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/track/tests/it/bodies/stored.rs"]
mod body;

// Decoders of Arrow and Parquet that give up are caught where they are called; what escapes from there still ends the fuzzer.
fuzz_target!(init: std::panic::set_hook(Box::new(|_| {})), |data: &[u8]| {
    body::body(data);
});
