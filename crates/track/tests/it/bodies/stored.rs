//! Stored records with bytes changed, cut off or made up: reading ends, and what comes of it is records or a named
//! damage.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use wg_frame::time::RunTime;
use wg_record::segment::{SegmentInfo, SegmentReader, SegmentWriter, segment_files};
use wg_record::{Clock, Crc, Crossing, DropReason, Point, Record, RecordFlags, Row, TableWriter};
use wg_track::parquet::{RecordWriter, read_records};
use wg_track::{read_stored, store_table};

const RECORDED: &str = "records.parquet";
const CROSSED: &str = "crossings.parquet";
/// Records of the whole files; small, so that damage hits something.
const RECORDS: u32 = 120;

/// The first byte chooses the kind of file, the second whether it is made up or a whole one to be damaged.
pub(crate) fn body(data: &[u8]) {
    let [kind, made_up, rest @ ..] = data else { return };
    let (name, mut bytes) = whole()[usize::from(*kind) % 3].clone();
    if made_up % 8 == 0 {
        bytes = rest.to_vec();
    } else {
        // Three bytes an edit: where, in 65 536ths of the file, and what is written there.
        for edit in rest.chunks_exact(3) {
            let place = usize::from(u16::from_le_bytes([edit[0], edit[1]])) * bytes.len() / 65_536;
            bytes[place] = edit[2];
        }
        if made_up % 8 == 1 {
            let keep = rest.first().map_or(0, |part| usize::from(*part) * bytes.len() / 256);
            bytes.truncate(keep);
        }
    }
    let place = scratch();
    let path = place.join(name);
    fs::write(&path, &bytes).expect("a temporary file");
    let read = match name {
        RECORDED => read_records(&path).map(drop),
        CROSSED => read_stored::<Crossing>(&path).map(drop),
        _ => {
            read_segment(&path);
            Ok(())
        }
    };
    if let Err(error) = read {
        assert!(error.to_string().contains(name), "it names the file: {error}");
    }
    drop(fs::remove_dir_all(place));
}

fn read_segment(path: &Path) {
    let Ok(mut reader) = SegmentReader::open(path) else { return };
    let mut read = 0;
    while let Some(batch) = reader.next_batch() {
        read += batch.len() as u64;
        assert!(read < 1 << 20, "a file of some kilobytes has no million records");
    }
    assert_eq!(read, reader.records_read());
}

/// A whole segment and whole Parquet files, made once, with their names.
fn whole() -> &'static [(&'static str, Vec<u8>); 3] {
    static WHOLE: OnceLock<[(&'static str, Vec<u8>); 3]> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let place = scratch();
        let records: Vec<Record> = (0..RECORDS).map(record).collect();
        let info =
            SegmentInfo { end_system: "mac".into(), node: 0, run_index: 3, epoch_realtime_ns: 1_000_000 };
        let mut writer = SegmentWriter::create(&place, info).expect("a segment");
        for part in records.chunks(RECORDS as usize / 3) {
            writer.write(part).and_then(|()| writer.flush()).expect("records");
        }
        writer.finish().expect("a whole segment");
        let segment = segment_files(&place).expect("one file").remove(0);
        let stored = place.join(RECORDED);
        let mut writer = RecordWriter::create(&stored, 3).expect("a file");
        writer.write(&records).and_then(|()| writer.finish()).expect("a whole file");
        let mut writer = TableWriter::create(&place, 3).expect("a table");
        for at in 0..RECORDS {
            let time = RunTime::from_picos(i64::from(at));
            writer.push(Crossing { sequence: at, ..Crossing::ended(time) }).expect("a row");
        }
        writer.finish().expect("a whole table");
        let crossed = place.join(CROSSED);
        store_table::<Crossing>(&place.join(Crossing::FILE), &crossed, 3).expect("a file");
        let files = [("000000.arrows", segment), (RECORDED, stored), (CROSSED, crossed)];
        let files = files.map(|(name, path)| (name, fs::read(path).expect("it was written")));
        drop(fs::remove_dir_all(place));
        files
    })
}

/// A directory of its own.
fn scratch() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let place = std::env::temp_dir().join(format!("wiregauge-stored-{}-{number}", std::process::id()));
    fs::create_dir_all(&place).expect("a temporary directory");
    place
}

fn record(i: u32) -> Record {
    Record {
        time: RunTime::from_picos(i64::from(i) * 1_000),
        sequence: i,
        flow: (i % 3) as u16,
        node: (i % 5) as u16,
        port: 1,
        length: 64 + i as u16,
        point: Point::ALL[i as usize % Point::ALL.len()],
        clock: Clock::ALL[i as usize % Clock::ALL.len()],
        crc: Crc::ALL[i as usize % Crc::ALL.len()],
        reason: DropReason::ALL[i as usize % DropReason::ALL.len()],
        flags: RecordFlags::from_bits((i % 4) as u8),
    }
}
