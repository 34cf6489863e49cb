//! Files of the network besides its records: crossings, truth and captures. A thread of low priority writes them.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wg_plan::{Network, NodeIndex, Run};
use wg_record::{Crossing, RecordError, TableWriter, Truth};

use super::captures::{DeviceCaptures, Holding};
use crate::control::role::{OpenError, spawn};
use crate::proto;
use crate::recording::live::SharedClocks;

/// Interval of the checks of held-back captures and of the disk.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Something to be written.
pub(super) enum Piece {
    /// A fault of a frame, or an incident of the network.
    Truth(Truth),
    /// Frames that crossed between hosts and network.
    Crossings(Vec<Crossing>),
    /// Blocks of a node's capture: one frame with its time on the host's clock, ns, or other blocks without one.
    Blocks(NodeIndex, Vec<u8>, Option<i64>),
}

/// Result of the thread.
pub(super) type Written = Result<Vec<proto::DeviceCapture>, String>;

/// The writing end; the thread ends when it is dropped.
pub(super) struct Files {
    pub(super) pieces: Sender<Piece>,
    /// Number of lists of crossings that have not been taken.
    pub(super) waiting: Arc<AtomicUsize>,
    pub(super) thread: JoinHandle<Written>,
}

impl Files {
    /// Begins the files in `spool`; `clocks` follows what the truth tells of clocks.
    pub(super) fn begin(
        spool: &Path,
        network: &Network,
        run: &Run,
        holding: Holding,
        clocks: SharedClocks,
    ) -> Result<Self, OpenError> {
        let (pieces, received) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let taken = Arc::clone(&waiting);
        let index = run.index;
        let captures = DeviceCaptures::begin(spool, network, run, holding);
        let spool = spool.to_owned();
        let thread = spawn("files", move || {
            // The kernel never refuses a lower priority.
            let _ = wg_net::realtime::background();
            let mut captures = captures.map_err(|error| error.to_string())?;
            write(&spool, index, &mut captures, (&received, &taken), &clocks)
                .map_err(|error| error.to_string())?;
            Ok(captures.end())
        })?;
        Ok(Self { pieces, waiting, thread })
    }
}

fn write(
    spool: &Path,
    index: u32,
    captures: &mut DeviceCaptures,
    (pieces, waiting): (&Receiver<Piece>, &AtomicUsize),
    clocks: &SharedClocks,
) -> Result<(), RecordError> {
    let mut truth = TableWriter::create(spool, index)?;
    let mut crossings = TableWriter::create(spool, index)?;
    let mut looked = Instant::now();
    loop {
        match pieces.recv_timeout(LOOK_EVERY) {
            Ok(Piece::Truth(one)) => {
                clocks.lock().unwrap_or_else(PoisonError::into_inner).take(&one);
                truth.push(one)?;
            }
            Ok(Piece::Crossings(rows)) => {
                waiting.fetch_sub(1, Ordering::Relaxed);
                rows.into_iter().try_for_each(|row| crossings.push(row))?;
            }
            Ok(Piece::Blocks(node, blocks, frame_at)) => captures.take(node, &blocks, frame_at),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if looked.elapsed() >= LOOK_EVERY {
            captures.look(false);
            looked = Instant::now();
        }
    }
    crossings.finish()?;
    truth.finish().map(drop)
}
