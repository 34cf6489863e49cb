//! What the tests of this crate, and of the crate that judges, share.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use wg_frame::time::RunTime;
use wg_record::{Clock, Crc, DropReason, Point, Record, RecordFlags};

/// A directory of its own for one test, gone when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("wiregauge-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Record number `i` of a made-up series in which every column takes many values.
fn sample(i: u32) -> Record {
    let pick = |all: usize, salt: u32| ((i.wrapping_mul(2_654_435_761).rotate_left(salt)) as usize) % all;
    Record {
        time: RunTime::from_picos(i64::from(i) * 1_000 - 5_000),
        sequence: i,
        flow: (i % 7) as u16,
        node: (i % 5) as u16,
        port: 1 + (i % 3) as u16,
        length: 64 + (i % 1400) as u16,
        point: Point::ALL[pick(Point::ALL.len(), 3)],
        clock: Clock::ALL[pick(Clock::ALL.len(), 9)],
        crc: Crc::ALL[pick(Crc::ALL.len(), 14)],
        reason: DropReason::ALL[pick(DropReason::ALL.len(), 20)],
        flags: RecordFlags::from_bits((i % 4) as u8),
    }
}

pub(crate) fn samples(range: std::ops::Range<u32>) -> Vec<Record> {
    range.map(sample).collect()
}
