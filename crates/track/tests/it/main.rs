//! The crate that judges, used from outside as the log processor uses it.

mod bodies {
    pub(crate) mod stored;
}
mod encodings;
mod oracle;
mod process;
#[path = "../../../record/tests/it/support.rs"]
mod records;
mod scenario;
mod support;
mod tracking;
mod truth;
mod unknown;
mod volume;

use proptest::prelude::*;

/// A footer in which a column has less than no length: found by the fuzzer.
#[test]
fn a_column_of_negative_length_is_a_damage() {
    let panicked = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = std::sync::Arc::clone(&panicked);
    let before = std::panic::take_hook();
    let here = std::thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        // Tests run side by side; only this thread's panics are of interest.
        if std::thread::current().id() == here {
            seen.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        before(info);
    }));
    bodies::stored::body(&[0x01, 0x87, 0x01, 0x83, 0x01, 0x00]);
    assert!(!panicked.load(std::sync::atomic::Ordering::Relaxed), "refused before a decoder gives up on it");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn stored_records_with_any_damage_are_read_or_named(data in prop::collection::vec(any::<u8>(), 0..60)) {
        bodies::stored::body(&data);
    }
}
