//! Captures at devices that the model plays: the frames that their ports sent and received. Timestamps are the instants of
//! the model on the host's clock, as in captures at interfaces.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use wg_capture::CaptureFile;
use wg_net::clock;
use wg_plan::{Network, NodeIndex, Run};
use wg_record::RecordError;

use crate::proto;
use crate::recording::held_back::{Asked, HeldBack};
use crate::recording::packet_capture::{CaptureStats, MOST_HELD, leave_room};

/// Bytes of frames that are held back, or released, together.
const TOGETHER: usize = 32 << 10;

/// How long frames are held back, and which alarms request them.
pub(super) type Holding = Option<(Duration, Arc<Asked>)>;

/// A capture at one device.
struct DeviceCapture {
    name: String,
    file: CaptureFile,
    /// Present if only requested frames are written.
    held: Option<HeldBack>,
    /// Frames that are collected for it, with the times of the first and the last, ns.
    blocks: Vec<u8>,
    frames: u64,
    span: [i64; 2],
    seen: u64,
}

/// All captures at devices of a run.
pub(super) struct DeviceCaptures {
    captures: BTreeMap<NodeIndex, DeviceCapture>,
    asked: Option<Arc<Asked>>,
}

impl DeviceCaptures {
    /// Begins the files in `spool`.
    ///
    /// # Errors
    /// A file cannot be created.
    pub(super) fn begin(
        spool: &Path,
        network: &Network,
        run: &Run,
        holding: Holding,
    ) -> Result<Self, RecordError> {
        let mut captures = BTreeMap::new();
        for capture in &run.captures {
            let node = network.nodes.get(usize::from(capture.on)).filter(|node| !node.is_end_system());
            let Some(node) = node.filter(|_| !captures.contains_key(&capture.on)) else { continue };
            let folder = spool.join("captures");
            fs::create_dir_all(&folder).map_err(|error| unwritten(folder.clone(), error))?;
            let path = folder.join(format!("{}.pcapng", node.name));
            let file = CaptureFile::create(&path).map_err(|error| unwritten(path, error))?;
            let patience = |wait: &Duration| i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
            let own = DeviceCapture {
                name: node.name.clone(),
                file,
                held: holding.as_ref().map(|(wait, _)| HeldBack::new(patience(wait), MOST_HELD)),
                blocks: Vec::new(),
                frames: 0,
                span: [i64::MAX, i64::MIN],
                seen: 0,
            };
            captures.insert(capture.on, own);
        }
        Ok(Self { captures, asked: holding.map(|(_, asked)| asked) })
    }

    /// Accepts blocks of a node's capture: one frame with its time, ns, or other blocks without one.
    pub(super) fn take(&mut self, node: NodeIndex, blocks: &[u8], frame_at: Option<i64>) {
        let Some(own) = self.captures.get_mut(&node) else { return };
        let Some(at) = frame_at else {
            own.file.other(|out| out.extend_from_slice(blocks));
            return;
        };
        own.seen += 1;
        if own.held.is_none() {
            own.file.frame(|out| out.extend_from_slice(blocks));
            return;
        }
        own.blocks.extend_from_slice(blocks);
        own.frames += 1;
        own.span = [own.span[0].min(at), own.span[1].max(at)];
        if own.blocks.len() >= TOGETHER {
            own.hold();
        }
    }

    /// Periodic work: writes requested frames and checks the space on the disk.
    pub(super) fn look(&mut self, last: bool) {
        for own in self.captures.values_mut() {
            own.hold();
            let DeviceCapture { held, file, .. } = own;
            if let (Some(held), Some(asked)) = (held, &self.asked) {
                let now = clock::realtime().get();
                held.let_out(now, asked, last, |blocks, frames| file.frames_of(blocks, frames));
            }
            leave_room(file);
        }
    }

    /// Ends the files and reports. A disk that refuses them does not end the run.
    pub(super) fn end(mut self) -> Vec<proto::DeviceCapture> {
        self.look(true);
        let ended = self.captures.into_values().map(|mut own| {
            own.file.flush();
            let held = own.held.as_ref();
            let stats = CaptureStats {
                seen: own.seen,
                written: own.file.frames(),
                unwritten: own.file.lost(),
                passed_over: held.map_or(0, HeldBack::passed_over),
                crowded_out: held.map_or(0, HeldBack::crowded_out),
                failure: own.file.failure(),
                ..CaptureStats::default()
            };
            proto::DeviceCapture { node: own.name, task: Some(stats.report()) }
        });
        ended.collect()
    }
}

impl DeviceCapture {
    /// Frames that arrived together are held back together.
    fn hold(&mut self) {
        let frames = std::mem::take(&mut self.frames);
        let span = std::mem::replace(&mut self.span, [i64::MAX, i64::MIN]);
        if let Some(held) = &mut self.held {
            held.hold(span, std::mem::take(&mut self.blocks), frames);
        }
    }
}

fn unwritten(path: PathBuf, source: io::Error) -> RecordError {
    RecordError::Write { path, source, records_lost: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(path: &Path, held: Option<HeldBack>, asked: &Arc<Asked>) -> DeviceCaptures {
        let own = DeviceCapture {
            name: "sw1".into(),
            file: CaptureFile::create(path).expect("there is room"),
            held,
            blocks: Vec::new(),
            frames: 0,
            span: [i64::MAX, i64::MIN],
            seen: 0,
        };
        DeviceCaptures { captures: BTreeMap::from([(3, own)]), asked: Some(Arc::clone(asked)) }
    }

    #[test]
    fn what_surrounds_an_alarm_is_written_and_the_rest_is_counted() {
        let path = std::env::temp_dir().join(format!("wiregauge-device-{}.pcapng", std::process::id()));
        let asked = Arc::new(Asked::default());
        let mut captures = capture(&path, Some(HeldBack::new(i64::MAX, MOST_HELD)), &asked);
        captures.take(3, b"head", None);
        for at in 0..30_u8 {
            captures.take(3, &[at], Some(i64::from(at)));
            captures.take(4, &[at], Some(i64::from(at)));
            if at % 10 == 9 {
                captures.look(false);
            }
        }
        // All frames that arrived together are kept.
        asked.ask(12, 13);
        let told = captures.end();
        let written = fs::read(&path).expect("it is there");
        drop(fs::remove_file(&path));
        assert_eq!(written, [b"head".as_slice(), &(10..20).collect::<Vec<u8>>()].concat());
        let [proto::DeviceCapture { node, task: Some(task) }] = told.as_slice() else {
            panic!("one capture: {told:?}");
        };
        assert_eq!(node, "sw1");
        assert_eq!((task.planned, task.done, task.passed_over, task.crowded_out), (30, 10, 20, 0));
    }

    #[test]
    fn a_disk_that_refuses_a_capture_is_told_and_the_other_frames_are_counted() {
        let asked = Arc::new(Asked::default());
        let mut captures = capture(Path::new("/dev/full"), None, &asked);
        (0..5).for_each(|at| captures.take(3, &[7; 64], Some(at)));
        let told = captures.end();
        let task = told[0].task.as_ref().expect("a report");
        assert_eq!((task.planned, task.done, task.unwritten), (5, 0, 5));
        assert!(task.failure.contains("No space left"), "{}", task.failure);
    }
}
