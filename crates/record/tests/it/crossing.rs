//! Crossings: what goes in comes out.

use proptest::prelude::*;
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};
use wg_record::{Crossing, CrossingKind, RecordFlags, Row, TableWriter, read_table};

use crate::support::Scratch;

fn crossing() -> impl Strategy<Value = Crossing> {
    let numbers = (any::<[i64; 2]>(), any::<u32>(), any::<[u16; 3]>(), any::<Option<u16>>(), any::<u8>());
    let addresses = (any::<[u8; 6]>(), any::<[u8; 6]>());
    (numbers, addresses, 0u8..4, prop::sample::select(CrossingKind::ALL)).prop_map(
        |(([time, late], sequence, [flow, node, length], tag, last), (destination, source), flags, kind)| {
            Crossing {
                time: RunTime::from_picos(time),
                late: Span::from_picos(late),
                destination: MacAddress(destination),
                source: MacAddress(source),
                sequence,
                flow,
                node,
                length,
                tag,
                last,
                flags: RecordFlags::from_bits(flags),
                kind,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_goes_in_comes_out(rows in prop::collection::vec(crossing(), 0..200), run in any::<u32>()) {
        let scratch = Scratch::new();
        let mut writer = TableWriter::create(scratch.path(), run).expect("a writer");
        for row in &rows {
            writer.push(*row).expect("room");
        }
        writer.finish().expect("room");
        let path = scratch.path().join(Crossing::FILE);
        prop_assert_eq!(read_table(&path, run).unwrap(), (rows, None));
    }
}
