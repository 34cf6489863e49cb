//! Capture task: all frames that the interfaces send and receive, written as pcapng.
//!
//! The task is passive. It has the lowest priority, reads rings that the kernel fills by itself, and delays no other
//! thread: frames that do not fit in a ring or on the disk are counted and reported, and the measurement continues.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wg_capture::pcapng::{self, Resolution, Statistics};
use wg_capture::{CaptureFile, Direction, Timestamps};
use wg_net::{Captured, HardwareTimestamping, Interface, NetError, PacketRing, RETIRE_MS, clock, realtime};

use super::held_back::{Asked, HeldBack};
use crate::proto;

/// File name in the agent's spool.
pub const FILE: &str = "capture.pcapng";
/// Pause when all rings are empty.
const PAUSE: Duration = Duration::from_millis(4);
/// Longest time before a frame is written to the file.
const FLUSH_EVERY: Duration = Duration::from_millis(250);
/// Interval of disk space checks; at 10 Gbit/s a fifth of the reserve is used within it.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Disk space in bytes that a capture leaves free for the records of the run; on a small disk a quarter.
const LEFT_FREE: u64 = 64 << 20;
/// Maximum number of bytes of held frames.
pub(crate) const MOST_HELD: usize = 64 << 20;
/// Wait after the end for the kernel to pass on partly filled blocks.
const LAST_LOOK: Duration = Duration::from_millis(3 * RETIRE_MS as u64);

/// Interface to capture on.
#[derive(Clone, Debug)]
pub struct CaptureInterface {
    /// The interface.
    pub interface: Interface,
    /// Interface name in the file.
    pub name: String,
    /// Line rate, if known.
    pub rate_bps: Option<u64>,
}

/// Statistics of a capture.
#[derive(Clone, Debug, Default)]
pub struct CaptureStats {
    /// Frames that reached the rings.
    pub seen: u64,
    /// Frames in the file.
    pub written: u64,
    /// Frames dropped because a ring was full.
    pub dropped: u64,
    /// Frames not written because the disk was full.
    pub unwritten: u64,
    /// Frames with an interface timestamp; the others have a kernel timestamp.
    pub by_hardware: u64,
    /// Received frames without the interface timestamp they should have; they are not in the file.
    pub untimestamped: u64,
    /// Held frames that were never requested, including those dropped early for lack of memory.
    pub passed_over: u64,
    /// See [`HeldBack::crowded_out`].
    pub crowded_out: u64,
    /// Reason why the capture is incomplete, as a clause about its file.
    pub failure: Option<String>,
}

impl CaptureStats {
    /// The report of a capture.
    pub fn report(&self) -> proto::TaskReport {
        proto::TaskReport {
            kind: "capture".into(),
            planned: self.seen,
            done: self.written,
            ring_drops: self.dropped,
            unwritten: self.unwritten,
            hardware_timestamps: self.by_hardware,
            passed_over: self.passed_over,
            crowded_out: self.crowded_out,
            failure: self.failure.clone().unwrap_or_default(),
            ..proto::TaskReport::default()
        }
    }
}

/// Settings of a capture.
#[derive(Clone, Copy, Debug)]
pub struct CaptureConfig {
    /// Bytes kept of each frame.
    pub snap: u32,
    /// True if frames addressed to other stations are captured too.
    pub see_all: bool,
    /// True if the interfaces timestamp received frames; sent frames have no such timestamp in a ring.
    pub by_hardware: bool,
}

/// Open rings and file of a capture.
#[derive(Debug)]
pub struct Capture {
    rings: Vec<(PacketRing, CaptureInterface)>,
    /// Interface timestamping, which ends with the capture.
    _timestamping: Vec<HardwareTimestamping>,
    by_hardware: bool,
    file: CaptureFile,
    snap: u32,
    /// Held frames and requests of a capture on demand.
    held: Option<(HeldBack, Arc<Asked>)>,
    began: i64,
    stats: CaptureStats,
}

/// Reason why a capture cannot start.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// Refused by the host.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Refused by the disk.
    #[error("{path}: cannot be written: {source}")]
    File {
        /// Path of the file.
        path: String,
        /// Cause.
        source: io::Error,
    },
}

impl Capture {
    /// Opens a ring on each of `taps`, and the file. Frames are captured from here on.
    ///
    /// # Errors
    /// See [`CaptureError`].
    pub fn open(taps: Vec<CaptureInterface>, path: &Path, how: CaptureConfig) -> Result<Self, CaptureError> {
        let CaptureConfig { snap, see_all, by_hardware } = how;
        let file_error = |source| CaptureError::File { path: path.display().to_string(), source };
        let mut file = CaptureFile::create(path).map_err(file_error)?;
        file.other(pcapng::section);
        let (mut rings, mut timestamping) = (Vec::new(), Vec::new());
        for tap in taps {
            if by_hardware {
                timestamping.push(HardwareTimestamping::start(&tap.interface.name, false, true)?);
            }
            let ring = PacketRing::capture(&tap.interface, snap, by_hardware)?;
            if see_all {
                let what = format!("cannot see all frames of interface '{}'", tap.interface.name);
                ring.see_all(&tap.interface).map_err(|e| NetError::refused(what, e))?;
            }
            file.other(|out| {
                let facts = pcapng::Interface {
                    name: &tap.name,
                    snap,
                    resolution: Resolution::Nanoseconds,
                    offset_seconds: 0,
                    fcs: 0,
                    rate_bps: tap.rate_bps,
                    timestamps: if by_hardware { Timestamps::HARDWARE } else { Timestamps::SOFTWARE },
                };
                pcapng::interface(out, &facts);
            });
            rings.push((ring, tap));
        }
        Ok(Self {
            rings,
            _timestamping: timestamping,
            by_hardware,
            file,
            snap,
            held: None,
            began: clock::realtime().get(),
            stats: CaptureStats::default(),
        })
    }

    /// Turns this into a capture on demand: it holds frames for `patience` and writes only those requested in time.
    #[must_use]
    pub fn on_demand(mut self, patience: Duration, asked: Arc<Asked>) -> Self {
        let patience = i64::try_from(patience.as_nanos()).unwrap_or(i64::MAX);
        self.held = Some((HeldBack::new(patience, MOST_HELD), asked));
        self
    }

    /// Captures until `stop` is set and all frames up to then are written.
    pub fn run(mut self, stop: &AtomicBool) -> CaptureStats {
        // The kernel always permits a lower priority.
        let _ = realtime::background();
        let (mut flushed, mut looked) = (Instant::now(), Instant::now());
        let mut stopped: Option<Instant> = None;
        loop {
            let mut moved = false;
            for number in 0..self.rings.len() {
                moved |= self.take(number);
            }
            if looked.elapsed() >= LOOK_EVERY {
                self.let_out(false);
                leave_room(&mut self.file);
                looked = Instant::now();
            }
            if flushed.elapsed() >= FLUSH_EVERY {
                self.file.flush();
                flushed = Instant::now();
            }
            if stopped.is_some_and(|at| at.elapsed() >= LAST_LOOK) && !moved {
                break;
            }
            if stopped.is_none() && stop.load(Ordering::Relaxed) {
                stopped = Some(Instant::now());
            }
            if !moved {
                self.look_for_trouble();
                std::thread::sleep(PAUSE);
            }
        }
        self.end()
    }

    /// Writes the frames of one block of a ring; false if there was none.
    fn take(&mut self, number: usize) -> bool {
        let Some((ring, _)) = self.rings.get_mut(number) else { return false };
        let interface = u32::try_from(number).unwrap_or(u32::MAX);
        let (file, snap) = (&mut self.file, self.snap);
        let (only_hardware, stats) = (self.by_hardware, &mut self.stats);
        let (mut blocks, mut frames, holds) = (Vec::new(), 0, self.held.is_some());
        // An interface clock has its own time scale, so its frames get the current time.
        let now = clock::realtime().get();
        let mut span = [i64::MAX, i64::MIN];
        let moved = ring.read(|frame| {
            stats.by_hardware += u64::from(frame.by_hardware);
            if only_hardware && !frame.by_hardware {
                // Its timestamp is from another clock and cannot be used in the same file.
                stats.untimestamped += u64::from(!frame.is_outgoing);
                return;
            }
            if !holds {
                file.frame(|out| put(out, interface, &frame, snap));
                return;
            }
            let at = if frame.by_hardware { now } else { frame.timestamp_ns };
            span = [span[0].min(at), span[1].max(at)];
            put(&mut blocks, interface, &frame, snap);
            frames += 1;
        });
        if let Some((held, _)) = &mut self.held {
            held.hold(span, blocks, frames);
        }
        moved.is_some()
    }

    /// Writes held frames that were requested meanwhile.
    fn let_out(&mut self, last: bool) {
        let (Some((held, asked)), file) = (&mut self.held, &mut self.file) else { return };
        held.let_out(clock::realtime().get(), asked, last, |blocks, frames| file.frames_of(blocks, frames));
    }

    fn look_for_trouble(&mut self) {
        for (ring, tap) in &self.rings {
            if let Err(error) = ring.check() {
                let name = &tap.interface.name;
                self.stats.failure.get_or_insert_with(|| {
                    format!("was interrupted on interface '{name}': {error}; earlier frames are in the file")
                });
            }
        }
    }

    fn end(mut self) -> CaptureStats {
        self.let_out(true);
        if let Some((held, _)) = &self.held {
            (self.stats.passed_over, self.stats.crowded_out) = (held.passed_over(), held.crowded_out());
        }
        let between = [self.began, clock::realtime().get()].map(|at| at.max(0).unsigned_abs());
        let mut written = self.file.frames();
        for (number, (ring, _)) in (0..).zip(&mut self.rings) {
            let (received, dropped) = ring.statistics().unwrap_or_default();
            self.stats.seen += received;
            self.stats.dropped += dropped;
            // With several interfaces, each count is its received less its dropped frames.
            let mine = (received - dropped.min(received)).min(written);
            written -= mine;
            let counted = Statistics { received, dropped, written: Some(mine) };
            self.file.other(|out| pcapng::statistics(out, number, between, counted));
        }
        self.file.flush();
        self.stats.written = self.file.frames();
        self.stats.unwritten = self.file.lost();
        if let Some(failure) = self.file.failure() {
            self.stats.failure = Some(failure);
        }
        self.stats
    }
}

/// Closes a capture's file before the disk is full.
pub(crate) fn leave_room(file: &mut CaptureFile) {
    let Ok(disk) = wg_net::host::disk_space(file.path()) else { return };
    let left = LEFT_FREE.min(disk.total / 4);
    if file.is_open() && disk.free < left {
        let why = format!(
            "less than {:.1} MiB of disk space is left, reserved for records",
            left as f64 / f64::from(1 << 20)
        );
        file.end_early(why);
    }
}

/// Writes one frame as a block, with the tag that the kernel removed.
fn put(out: &mut Vec<u8>, interface: u32, frame: &Captured<'_>, snap: u32) {
    const ADDRESSES: usize = 12;
    let ticks = frame.timestamp_ns.max(0).unsigned_abs();
    let direction = if frame.is_outgoing { Direction::Outbound } else { Direction::Inbound };
    let mut tag = [0; 4];
    let (first, rest) = frame.bytes.split_at(frame.bytes.len().min(ADDRESSES));
    let (inserted, added): (&[u8], usize) = match frame.tag {
        Some((kind, control)) if first.len() == ADDRESSES => {
            tag[..2].copy_from_slice(&kind.to_be_bytes());
            tag[2..].copy_from_slice(&control.to_be_bytes());
            (&tag, tag.len())
        }
        _ => (&[], 0),
    };
    pcapng::packet(out, interface, ticks, direction, &[first, inserted, rest], frame.length + added, snap);
}

#[cfg(test)]
mod tests {
    use super::*;
    use wg_capture::Reader;

    #[test]
    fn a_tag_the_kernel_took_out_is_put_back() {
        let mut file = Vec::new();
        pcapng::section(&mut file);
        let facts = pcapng::Interface {
            name: "es:1",
            snap: 40,
            resolution: Resolution::Nanoseconds,
            offset_seconds: 0,
            fcs: 0,
            rate_bps: None,
            timestamps: Timestamps::SOFTWARE,
        };
        pcapng::interface(&mut file, &facts);
        let bytes: Vec<u8> = (0..60).collect();
        for (tag, length) in [(None, 60), (Some((0x8100, 0x6005)), 60), (Some((0x8100, 1)), 5)] {
            let frame = Captured {
                timestamp_ns: 1_700_000_000_123_456_789,
                by_hardware: false,
                is_outgoing: tag.is_some(),
                tag,
                bytes: &bytes[..length],
                length,
            };
            put(&mut file, 0, &frame, 40);
        }
        let mut reader = Reader::new(io::Cursor::new(file)).expect("it begins well");
        let mut found = Vec::new();
        while let Some(packet) = reader.next_packet() {
            assert_eq!(packet.picos, 1_700_000_000_123_456_789_000);
            found.push((packet.direction, packet.length, packet.bytes.to_vec()));
        }
        let tagged = [&bytes[..12], &[0x81, 0, 0x60, 5], &bytes[12..36]].concat();
        assert_eq!(
            found,
            [
                (Direction::Inbound, 60, bytes[..40].to_vec()),
                (Direction::Outbound, 64, tagged),
                (Direction::Outbound, 5, bytes[..5].to_vec()),
            ]
        );
    }
}
