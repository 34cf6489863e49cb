//! From segments to stored records and messages, and back again.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use wg_plan::{Flow, Send};
use wg_record::segment::{SegmentInfo, SegmentWriter, segment_files};
use wg_record::{Point, Record, RecordError};
use wg_track::parquet::read_records;
use wg_track::tracking::Tracker;
use wg_track::{process_run, retrack};

use crate::scenario::{ONE_WAY, network, record, records, run};
use crate::support::{Scratch, samples, tables, write_messages, write_records};

fn write_segments(dir: &Path, run_index: u32, epoch_realtime_ns: i64, records: &[Record]) -> Vec<PathBuf> {
    let info = SegmentInfo { end_system: "n0".into(), node: 0, run_index, epoch_realtime_ns };
    let mut writer = SegmentWriter::create(dir, info).unwrap();
    writer.write(records).unwrap();
    writer.finish().unwrap();
    segment_files(dir).unwrap()
}

fn columns_of(path: &Path) -> (Vec<String>, i64) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let rows = builder.metadata().file_metadata().num_rows();
    (builder.schema().fields().iter().map(|f| format!("{} {}", f.name(), f.data_type())).collect(), rows)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_whole_way_gives_what_the_tracker_gives(all in records(run(6, 3)), cut in any::<prop::sample::Index>()) {
        let scratch = Scratch::new();
        let (network, run) = (network(), run(6, 3));
        let (one, two) = all.split_at(cut.index(all.len() + 1));
        let mut files = write_segments(&scratch.path().join("spool/a"), run.index, 9, one);
        files.extend(write_segments(&scratch.path().join("spool/b"), run.index, 9, two));
        let stored = scratch.path().join("records/run-0004.parquet");
        let first = tables(scratch.path(), "run-0004");
        let summary = process_run(&network, &run, &files, &stored, &first).unwrap();

        let mut sorted = all.clone();
        sorted.sort_by_key(|r| r.time);
        prop_assert_eq!(read_records(&stored).unwrap(), (run.index, sorted.clone()));
        let mut tracker = Tracker::new(&network, &run);
        tracker.observe_all(&sorted);
        let tracked = tracker.finish();
        prop_assert_eq!(&summary, &tracked.summary);
        prop_assert_eq!(columns_of(&first.messages).1, tracked.messages.len() as i64);
        prop_assert_eq!(columns_of(&first.passages).1, tracked.passages.len() as i64);

        let again = tables(scratch.path(), "again");
        prop_assert_eq!(retrack(&network, &run, &[stored], &[], &again).unwrap(), summary);
        for (one, other) in [(&again.messages, &first.messages), (&again.passages, &first.passages), (&again.sketches, &first.sketches)] {
            prop_assert_eq!(fs::read(one).unwrap(), fs::read(other).unwrap());
        }
    }

    #[test]
    fn a_damaged_records_file_is_an_error_or_still_reads(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8u8), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let scratch = Scratch::new();
        let path = scratch.path().join("records.parquet");
        write_records(&path, 4, &mut samples(0..300)).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        fs::write(&path, &bytes).unwrap();
        match read_records(&path) {
            Ok(_) => prop_assert!(cut.is_none()),
            Err(error) => prop_assert!(error.to_string().contains("records.parquet"), "{}", error),
        }
    }
}

/// Messages that are open when the records end come out flow by flow, whatever the division.
#[test]
fn many_flows_whose_messages_are_open_at_the_end_are_in_order() {
    let scratch = Scratch::new();
    let (network, mut run) = (network(), run(3, 0));
    let ids = (1..65_000).step_by(307);
    let flow = run.flows.iter().find(|flow| flow.id == ONE_WAY).unwrap().clone();
    let send = run.sends[0].clone();
    run.flows = ids.clone().map(|id| Flow { id, ..flow.clone() }).collect();
    run.sends = ids.clone().map(|flow| Send { flow, ..send.clone() }).collect();
    run.relays.clear();
    let numbered = (0..3_u32).flat_map(|number| ids.clone().map(move |id| (id, number)));
    let all: Vec<Record> = (0..)
        .zip(numbered)
        .flat_map(|(k, (id, number))| {
            let arrival = record(id, number, 1, Point::ApplicationReceive, k * 1_000 + 500);
            [record(id, number, 0, Point::ApplicationSend, k * 1_000), arrival]
        })
        .collect();
    let files = write_segments(&scratch.path().join("spool"), run.index, 9, &all);
    let stored = scratch.path().join("records/run-0004.parquet");
    let [first, again] = ["first", "again"].map(|name| tables(scratch.path(), name));
    let summary = process_run(&network, &run, &files, &stored, &first).unwrap();
    assert_eq!(retrack(&network, &run, &[stored], &[], &again).unwrap(), summary);
    assert_eq!(fs::read(&again.messages).unwrap(), fs::read(&first.messages).unwrap());

    let mut tracker = Tracker::new(&network, &run);
    tracker.observe_all(&all);
    let of_rows: Vec<(u16, u32)> = tracker.finish().messages.iter().map(|m| (m.flow, m.sequence)).collect();
    let expected: Vec<(u16, u32)> = ids.flat_map(|id| (0..3).map(move |number| (id, number))).collect();
    assert_eq!(of_rows, expected);
    assert_eq!(columns_of(&first.messages).1, expected.len() as i64);
}

#[test]
fn many_records_come_back_over_row_groups() {
    let scratch = Scratch::new();
    let path = scratch.path().join("records.parquet");
    let mut all = samples(0..1_100_000);
    all.reverse();
    write_records(&path, 4, &mut all).unwrap();
    assert!(read_records(&path).unwrap() == (4, samples(0..1_100_000)));
}

#[test]
fn a_damaged_or_foreign_segment_is_named_and_the_rest_counts() {
    let scratch = Scratch::new();
    let (network, run) = (network(), run(6, 3));
    let good = write_segments(&scratch.path().join("good"), run.index, 9, &samples(0..10)).remove(0);
    let torn = write_segments(&scratch.path().join("torn"), run.index, 9, &samples(10..30)).remove(0);
    let bytes = fs::read(&torn).unwrap();
    fs::write(&torn, &bytes[..bytes.len() - 8]).unwrap();
    let other_run = write_segments(&scratch.path().join("run"), run.index + 1, 9, &samples(0..10)).remove(0);
    let other_epoch = write_segments(&scratch.path().join("epoch"), run.index, 10, &samples(0..10)).remove(0);
    let not_arrow = scratch.path().join("000000.arrows");
    fs::write(&not_arrow, b"nothing of the kind").unwrap();
    let unused = write_segments(&scratch.path().join("unused"), run.index, 0, &[]).remove(0);
    let files = [good, torn, other_run, other_epoch, not_arrow, unused];
    let out = |name: &str| scratch.path().join(name);
    let summary =
        process_run(&network, &run, &files, &out("r.parquet"), &tables(scratch.path(), "t")).unwrap();
    assert_eq!(summary.records, 30);
    let named: Vec<(&str, u64)> =
        summary.damaged_segments.iter().map(|d| (d.file.as_str(), d.records_read)).collect();
    let name = |i: usize| files[i].to_str().unwrap();
    assert_eq!(named, [(name(1), 20), (name(2), 0), (name(3), 0), (name(4), 0)]);
    assert!(summary.damaged_segments[1].problem.contains("run 5"));
    assert!(summary.damaged_segments[2].problem.contains("10 ns"));
}

#[test]
fn the_wrong_file_is_refused_with_its_name() {
    let scratch = Scratch::new();
    let (network, run) = (network(), run(6, 3));
    let out = tables(scratch.path(), "t");
    let records = scratch.path().join("r.parquet");
    let refusal =
        |path: &Path| retrack(&network, &run, &[path.to_owned()], &[], &out).unwrap_err().to_string();

    write_records(&records, run.index + 1, &mut samples(0..3)).unwrap();
    assert!(refusal(&records).contains("records of run 5, not of run 4"), "{}", refusal(&records));
    write_messages(&records, run.index, &[]).unwrap();
    assert!(refusal(&records).contains("not a records file"), "{}", refusal(&records));
    fs::write(&records, b"PAR1").unwrap();
    assert!(refusal(&records).contains("not a Parquet file"), "{}", refusal(&records));
    let missing = scratch.path().join("missing.parquet");
    assert!(matches!(retrack(&network, &run, &[missing], &[], &out), Err(RecordError::Read { .. })));
    assert!(!out.messages.exists() && !out.passages.exists() && !out.sketches.exists());
}

#[test]
fn the_reference_names_every_column() {
    let scratch = Scratch::new();
    let records = scratch.path().join("r.parquet");
    let made = tables(scratch.path(), "t");
    write_records(&records, 4, &mut samples(0..3)).unwrap();
    retrack(&network(), &run(1, 0), std::slice::from_ref(&records), &[], &made).unwrap();
    let reference = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/run-directory.md"),
    )
    .unwrap();
    let about = |table: &str| {
        let (_, from) = reference.split_once(&format!("## {table}/")).unwrap();
        from.split_once("\n## ").map_or(from, |(section, _)| section)
    };
    for (file, table) in [
        (&records, "records"),
        (&made.messages, "messages"),
        (&made.passages, "passages"),
        (&made.sketches, "sketches"),
    ] {
        let section = about(table);
        for column in columns_of(file).0 {
            let name = column.split(' ').next().unwrap();
            let row = section.lines().find(|line| {
                line.starts_with('|')
                    && line.split('|').nth(1).is_some_and(|c| c.contains(&format!("`{name}`")))
            });
            let row = row.unwrap_or_else(|| panic!("the reference does not say what `{name}` is"));
            let data_type = column[name.len() + 1..].to_lowercase();
            let data_type = data_type.replace(", ", ",").replace("boolean", "bool");
            assert!(row.replace(", ", ",").contains(&data_type), "`{name}` is {data_type}, but: {row}");
        }
    }
}

/// The disk is filled as in the segment tests.
#[test]
fn on_a_full_disk_nothing_is_half_written() {
    const INSIDE: &str = "WIREGAUGE_TEST_LIMITED_PARQUET";
    if let Some(dir) = std::env::var_os(INSIDE) {
        return write_too_much(Path::new(&dir));
    }
    let scratch = Scratch::new();
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 100; exec \"$0\" --exact \"$1\" --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .arg("process::on_a_full_disk_nothing_is_half_written")
        .env(INSIDE, scratch.path())
        .output()
        .expect("sh runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

fn write_too_much(dir: &Path) {
    let path = dir.join("records.parquet");
    write_records(&path, 4, &mut samples(0..3)).unwrap();
    let before = fs::read(&path).unwrap();
    let error = write_records(&path, 4, &mut samples(0..400_000)).unwrap_err();
    assert!(matches!(error, RecordError::Write { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before, "the file that was there stays");
    assert_eq!(fs::read_dir(dir).unwrap().count(), 1, "nothing is left beside it");
}
