//! The record crate, used from outside as the agent and the log processor use it.

mod bodies {
    pub(crate) mod stored;
}
mod encodings;
mod oracle;
mod process;
mod scenario;
mod segment;
mod support;
mod tracking;
mod truth;
mod volume;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn stored_records_with_any_damage_are_read_or_named(data in prop::collection::vec(any::<u8>(), 0..60)) {
        bodies::stored::body(&data);
    }
}
