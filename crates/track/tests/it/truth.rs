//! What was true of a run, stored for good: in the order of time, up to where its spooled file is whole.

use wg_frame::time::RunTime;
use wg_record::{RecordFlags, Row, TableWriter, Truth, TruthKind};
use wg_track::{read_stored, store_table};

use crate::support::Scratch;

#[test]
fn truth_is_stored_and_a_torn_file_is_named() {
    let scratch = Scratch::new();
    let mut writer = TableWriter::create(scratch.path(), 3).expect("a writer");
    for i in 0..10_000_u32 {
        let truth = Truth {
            time: RunTime::from_picos(-i64::from(i)),
            value: 1,
            sequence: i,
            flow: 1,
            node: 2,
            port: 3,
            kind: TruthKind::Delayed,
            flags: RecordFlags::empty(),
        };
        writer.push(truth).expect("room");
    }
    writer.finish().expect("room");
    let (spooled, out) = (scratch.path().join(Truth::FILE), scratch.path().join("truth/run.parquet"));
    assert_eq!(store_table::<Truth>(&spooled, &out, 3).unwrap(), None);
    let times: Vec<_> = read_stored::<Truth>(&out).unwrap().iter().map(|one| one.time.as_picos()).collect();
    assert_eq!(times, (-9_999..=0).collect::<Vec<_>>());
    let whole = std::fs::read(&spooled).unwrap();
    std::fs::write(&spooled, &whole[..whole.len() / 2]).unwrap();
    let damage = store_table::<Truth>(&spooled, &out, 3).unwrap().expect("it is torn");
    assert!(damage.records_read > 0 && damage.records_read < 10_000, "{damage:?}");
    assert!(store_table::<Truth>(&spooled, &out, 4).is_err(), "of another run");
}
