//! Segment files: what was written comes back, and damage costs only what it touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Scratch, samples};
use proptest::prelude::*;
use wg_record::segment::{
    BATCH_RECORDS, Damage, GroupWriter, SegmentInfo, SegmentReader, SegmentWriter, segment_files,
};
use wg_record::{Record, RecordError};

fn info() -> SegmentInfo {
    SegmentInfo { end_system: "mac".into(), node: 3, run_index: 7, epoch_realtime_ns: 1_700_000_000_123 }
}

fn read_all(path: &Path) -> (Vec<Record>, Option<Damage>) {
    let mut reader = SegmentReader::open(path).expect("the file exists");
    let mut records = Vec::new();
    while let Some(batch) = reader.next_batch() {
        records.extend_from_slice(batch);
    }
    assert_eq!(reader.records_read(), records.len() as u64);
    (records, reader.damage().cloned())
}

/// A finished segment of batches of these sizes; returns its bytes and where each batch ends.
fn segment(dir: &Path, sizes: &[u32]) -> (PathBuf, Vec<u8>, Vec<usize>) {
    let mut writer = SegmentWriter::create(dir, info()).unwrap();
    let path = dir.join("000000.arrows");
    let mut ends = Vec::new();
    let mut next = 0;
    for &size in sizes {
        writer.write(&samples(next..next + size)).unwrap();
        writer.flush().unwrap();
        next += size;
        ends.push(fs::metadata(&path).unwrap().len() as usize);
    }
    writer.finish().unwrap();
    let bytes = fs::read(&path).unwrap();
    (path, bytes, ends)
}

#[test]
fn everything_comes_back_over_batches_and_files() {
    let scratch = Scratch::new();
    let total = 5 * BATCH_RECORDS as u32 + 17;
    let mut writer = SegmentWriter::create_rotating(scratch.path(), info(), 1 << 20).unwrap();
    for start in (0..total).step_by(1_000) {
        writer.write(&samples(start..total.min(start + 1_000))).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), u64::from(total));
    let files = segment_files(scratch.path()).unwrap();
    assert!(files.len() > 1, "rotation was asked for");
    let mut records = Vec::new();
    for file in &files {
        let (part, damage) = read_all(file);
        assert_eq!(damage, None);
        records.extend(part);
    }
    assert_eq!(records, samples(0..total));
    assert_eq!(SegmentReader::open(&files[0]).unwrap().info(), Some(&info()));
}

/// The file is the one that a writer makes to which the records come in order, also where a batch ends within a group.
#[test]
fn groups_are_sorted_where_they_are_told_to_be() {
    let total = 3 * BATCH_RECORDS as u32;
    let sizes = [1, 2, 9_000, 1, 7, 300, 5, 30_000, 3, 1_000].into_iter().cycle();
    let mut records = samples(0..total);
    let (mut groups, mut rest) = (Vec::new(), &mut records[..]);
    for size in sizes {
        let (group, others) = rest.split_at_mut(rest.len().min(size));
        group.reverse();
        groups.push(&*group);
        rest = others;
        if rest.is_empty() {
            break;
        }
    }
    let write = |sorted: &dyn Fn(usize) -> bool| {
        let scratch = Scratch::new();
        let mut writer = GroupWriter::new(SegmentWriter::create(scratch.path(), info()).unwrap());
        for (number, group) in groups.iter().enumerate() {
            group.iter().for_each(|record| writer.push(record));
            if sorted(number) {
                writer.sort(|record| record.time).unwrap();
            }
            writer.begin().unwrap();
        }
        assert_eq!(writer.finish().unwrap(), u64::from(total));
        fs::read(scratch.path().join("000000.arrows")).unwrap()
    };
    let (_, expected, _) = segment(Scratch::new().path(), &[total]);
    assert!(write(&|_| true) == expected);
    let some = write(&|number| number % 2 == 0);
    let scratch = Scratch::new();
    let path = scratch.path().join("some.arrows");
    fs::write(&path, some).unwrap();
    let read: Vec<u32> = read_all(&path).0.iter().map(|record| record.sequence).collect();
    let sequences = |(number, group): (usize, &&[Record])| {
        let mut own: Vec<u32> = group.iter().map(|record| record.sequence).collect();
        if number % 2 == 0 {
            own.reverse();
        }
        own
    };
    assert!(read == groups.iter().enumerate().flat_map(sequences).collect::<Vec<_>>());
}

#[test]
fn a_flush_shows_the_records_to_a_reader_while_the_writer_goes_on() {
    let scratch = Scratch::new();
    let mut writer = SegmentWriter::create(scratch.path(), info()).unwrap();
    writer.write(&samples(0..10)).unwrap();
    writer.flush().unwrap();
    let (records, damage) = read_all(&scratch.path().join("000000.arrows"));
    assert_eq!(records, samples(0..10));
    assert!(damage.expect("not finished yet").problem.contains("without an end mark"));
    writer.write(&samples(10..12)).unwrap();
    writer.finish().unwrap();
    let (records, damage) = read_all(&scratch.path().join("000000.arrows"));
    assert_eq!((records, damage), (samples(0..12), None));
}

#[test]
fn a_new_writer_keeps_the_files_of_the_one_before() {
    let scratch = Scratch::new();
    for _ in 0..2 {
        let mut writer = SegmentWriter::create(scratch.path(), info()).unwrap();
        writer.write(&samples(0..3)).unwrap();
        writer.finish().unwrap();
    }
    assert_eq!(segment_files(scratch.path()).unwrap().len(), 2);
}

#[test]
fn a_cut_at_any_byte_costs_only_the_batch_it_falls_into() {
    let scratch = Scratch::new();
    let sizes = [3, 1, 9];
    let (path, bytes, ends) = segment(scratch.path(), &sizes);
    for cut in 0..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let (records, damage) = read_all(&path);
        let whole: u32 = sizes.iter().zip(&ends).filter(|(_, end)| **end <= cut).map(|(n, _)| n).sum();
        assert_eq!(records, samples(0..whole), "cut at byte {cut}");
        assert_eq!(damage.is_some(), cut < bytes.len(), "cut at byte {cut}: {damage:?}");
    }
}

#[test]
fn bytes_after_the_end_mark_are_reported() {
    let scratch = Scratch::new();
    let (path, mut bytes, _) = segment(scratch.path(), &[4]);
    bytes.extend_from_slice(b"more");
    fs::write(&path, bytes).unwrap();
    let (records, damage) = read_all(&path);
    assert_eq!(records, samples(0..4));
    assert!(damage.unwrap().problem.contains("4 bytes follow"));
}

#[test]
fn a_file_that_is_missing_is_an_error_that_names_it() {
    let error = SegmentReader::open(Path::new("/nowhere/000000.arrows")).err().unwrap();
    assert!(error.to_string().contains("/nowhere/000000.arrows"), "{error}");
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error_that_names_it() {
    let scratch = Scratch::new();
    let blocker = scratch.path().join("file");
    fs::write(&blocker, b"").unwrap();
    let error = SegmentWriter::create(&blocker.join("mac"), info()).err().unwrap();
    assert!(matches!(error, RecordError::Write { .. }) && error.to_string().contains("file/mac"), "{error}");
}

/// A full disk is played by a limit on the file size, which a child process sets for itself: the kernel then
/// refuses writes half-way, just as a full file system does.
#[test]
fn a_full_disk_is_a_typed_error_and_what_was_written_stays_readable() {
    const INSIDE: &str = "WIREGAUGE_TEST_LIMITED_FILES";
    if let Some(dir) = std::env::var_os(INSIDE) {
        return fill_the_disk(Path::new(&dir));
    }
    let scratch = Scratch::new();
    let name = "segment::a_full_disk_is_a_typed_error_and_what_was_written_stays_readable";
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 2000; exec \"$0\" --exact \"$1\" --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env(INSIDE, scratch.path())
        .output()
        .expect("sh runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

fn fill_the_disk(dir: &Path) {
    let all = samples(0..10 * BATCH_RECORDS as u32);
    let mut writer = SegmentWriter::create(dir, info()).unwrap();
    let (mut kept, mut lost) = (Vec::new(), 0);
    for chunk in all.chunks(BATCH_RECORDS / 2) {
        match writer.write(chunk).and_then(|()| writer.flush()) {
            Ok(()) => kept.extend_from_slice(chunk),
            Err(RecordError::Write { records_lost, .. }) => lost += records_lost,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(lost > 0, "the limit was never reached");
    assert_eq!(writer.finish().unwrap() + lost, all.len() as u64);
    let files = segment_files(dir).unwrap();
    let (mut read, mut whole) = (Vec::new(), 0);
    for file in &files {
        let (part, damage) = read_all(file);
        whole += usize::from(damage.is_none());
        read.extend(part);
    }
    assert_eq!(read, kept);
    assert_eq!(whole, files.len(), "each file was closed at its last whole batch");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Batches before the flipped bit come back unchanged; nothing after it can make the reader panic or
    /// hand out more records than there are cells: 15 of records, and one before each batch that says its time in full.
    #[test]
    fn flipped_bits_never_reach_back(flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8u8), 1..4)) {
        let scratch = Scratch::new();
        let sizes = [5, 2, 8];
        let (path, mut bytes, ends) = segment(scratch.path(), &sizes);
        let mut first = bytes.len();
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            first = first.min(at);
        }
        fs::write(&path, &bytes).unwrap();
        let (records, _) = read_all(&path);
        let whole: u32 = sizes.iter().zip(&ends).filter(|(_, end)| **end <= first).map(|(n, _)| n).sum();
        prop_assert!((whole as usize..=15 + sizes.len()).contains(&records.len()));
        prop_assert_eq!(&records[..whole as usize], &samples(0..whole)[..]);
    }

    #[test]
    fn arbitrary_bytes_are_damage(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let scratch = Scratch::new();
        let path = scratch.path().join("000000.arrows");
        fs::write(&path, &bytes).unwrap();
        let (records, damage) = read_all(&path);
        prop_assert!(records.is_empty());
        prop_assert!(damage.is_some());
    }

    #[test]
    fn any_division_into_writes_gives_the_same_records(parts in prop::collection::vec(0u32..40_000, 1..5)) {
        let scratch = Scratch::new();
        let mut writer = SegmentWriter::create(scratch.path(), info()).unwrap();
        let mut next = 0;
        for part in parts {
            writer.write(&samples(next..next + part)).unwrap();
            next += part;
        }
        writer.finish().unwrap();
        let (records, damage) = read_all(&scratch.path().join("000000.arrows"));
        prop_assert_eq!(damage, None);
        prop_assert_eq!(records, samples(0..next));
    }
}
