//! Truth files: what goes in comes out, and a torn file gives what is before the tear.

use std::fs;

use proptest::prelude::*;
use wg_frame::time::RunTime;
use wg_record::{RecordError, RecordFlags, Row, TableWriter, Truth, TruthKind, read_table};

use crate::support::Scratch;

fn truth() -> impl Strategy<Value = Truth> {
    (
        any::<i64>(),
        any::<i64>(),
        any::<u32>(),
        any::<[u16; 3]>(),
        0u8..4,
        prop::sample::select(TruthKind::ALL),
    )
        .prop_map(|(time, value, sequence, [flow, node, port], flags, kind)| Truth {
            time: RunTime::from_picos(time),
            value,
            sequence,
            flow,
            node,
            port,
            kind,
            flags: RecordFlags::from_bits(flags),
        })
}

fn write(scratch: &Scratch, rows: &[Truth], run: u32) {
    let mut writer = TableWriter::create(scratch.path(), run).expect("a writer");
    for row in rows {
        writer.push(*row).expect("room");
    }
    assert_eq!(writer.finish().expect("room"), rows.len() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_goes_in_comes_out(rows in prop::collection::vec(truth(), 0..200), run in any::<u32>()) {
        let scratch = Scratch::new();
        write(&scratch, &rows, run);
        let path = scratch.path().join(Truth::FILE);
        prop_assert_eq!(read_table(&path, run).unwrap(), (rows, None));
        let of_another = matches!(read_table::<Truth>(&path, run ^ 1), Err(RecordError::Foreign { .. }));
        prop_assert!(of_another);
    }

    #[test]
    fn a_torn_file_gives_whole_batches_and_says_so(share in 0.0f64..1.0) {
        let rows: Vec<Truth> = (0..10_000u32)
            .map(|i| Truth {
                time: RunTime::from_picos(i64::from(i)),
                value: -i64::from(i),
                sequence: i,
                flow: 1,
                node: 2,
                port: 3,
                kind: TruthKind::Delayed,
                flags: RecordFlags::empty(),
            })
            .collect();
        let scratch = Scratch::new();
        write(&scratch, &rows, 0);
        let path = scratch.path().join(Truth::FILE);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..(whole.len() as f64 * share) as usize]).unwrap();
        match read_table::<Truth>(&path, 0) {
            Ok((read, damage)) => {
                prop_assert!(damage.is_some());
                prop_assert_eq!(read.len() % 4096, 0);
                prop_assert_eq!(&read[..], &rows[..read.len()]);
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}
