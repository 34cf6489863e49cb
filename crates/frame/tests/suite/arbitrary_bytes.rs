//! The fuzzer's bodies on the stable tool chain: bytes from nowhere, and bytes that nearly are frames, which
//! get past the first checks.

use crate::bodies;
use crate::protocols::protocol_frames;
use crate::strategies::{frames, messages, payloads};
use proptest::prelude::*;

/// A frame or message with some bytes overwritten and its end cut or prolonged.
fn nearly(whole: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    (whole, changes, -30_isize..30).prop_map(|(mut bytes, changes, growth)| {
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.resize(bytes.len().saturating_add_signed(growth), 0);
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn views_of_anything(data in payloads(0..200)) {
        bodies::views::body(&data);
    }

    #[test]
    fn views_of_nearly_frames(data in nearly(frames().prop_map(|(frame, ..)| frame)), skip in 0_usize..40) {
        // Each layer's view is tried at each offset, so that also at the right one.
        bodies::views::body(data.get(skip..).unwrap_or(&[]));
        bodies::views::body(data.get(14..).unwrap_or(&[]));
        bodies::views::body(data.get(34..).unwrap_or(&[]));
    }

    #[test]
    fn views_of_nearly_protocol_frames(data in nearly(protocol_frames()), skip in 0_usize..40) {
        bodies::views::body(&data);
        for skip in [skip, 14, 18, 20, 24, 42] {
            bodies::views::body(data.get(skip..).unwrap_or(&[]));
        }
    }

    #[test]
    fn frames_of_anything(data in payloads(0..200)) {
        bodies::frame::body(&data);
    }

    #[test]
    fn nearly_frames(data in nearly(frames().prop_map(|(frame, ..)| frame))) {
        bodies::frame::body(&data);
    }

    #[test]
    fn whole_frames((data, ..) in frames()) {
        bodies::frame::body(&data);
    }

    #[test]
    fn messages_of_anything(data in payloads(0..100)) {
        bodies::message::body(&data);
    }

    #[test]
    fn nearly_messages(data in nearly(messages().prop_map(|(payload, _)| payload))) {
        bodies::message::body(&data);
    }

    #[test]
    fn test_packets_of_anything(data in payloads(0..130)) {
        bodies::stamp::body(&data);
    }
}
