//! What the network writes beside its records: what crossed, what was true, and captures. A thread of its own writes them, behind all others.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use wg_capture::CaptureFile;
use wg_plan::{Network, NodeIndex, Run};
use wg_record::{Crossing, RecordError, TableWriter, Truth};

use crate::control::role::{OpenError, spawn};

/// Something to be written.
pub(super) enum Piece {
    /// What was done to a frame, or befell the network.
    Truth(Truth),
    /// What crossed between hosts and network.
    Crossings(Vec<Crossing>),
    /// Blocks of a node's capture; one that is a frame, or others.
    Blocks(NodeIndex, Vec<u8>, bool),
}

/// The writing end; the thread ends when it is dropped.
pub(super) struct Files {
    pub(super) pieces: Sender<Piece>,
    /// Lists of crossings that have not been taken.
    pub(super) waiting: Arc<AtomicUsize>,
    pub(super) thread: JoinHandle<Result<(), String>>,
}

impl Files {
    /// Begins the files in `spool`.
    pub(super) fn begin(spool: &Path, network: &Network, run: &Run) -> Result<Self, OpenError> {
        let (pieces, received) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let taken = Arc::clone(&waiting);
        let (spool, index) = (spool.to_owned(), run.index);
        let captured = run.captures.iter().filter_map(|capture| {
            let node = network.nodes.get(usize::from(capture.on)).filter(|node| !node.is_end_system())?;
            Some((capture.on, node.name.clone()))
        });
        let captured: BTreeMap<NodeIndex, String> = captured.collect();
        let thread = spawn("files", move || {
            // The kernel always lets a thread step back.
            let _ = wg_net::realtime::background();
            write(&spool, index, &captured, (&received, &taken)).map_err(|error| error.to_string())
        })?;
        Ok(Self { pieces, waiting, thread })
    }
}

fn write(
    spool: &Path,
    index: u32,
    captured: &BTreeMap<NodeIndex, String>,
    (pieces, waiting): (&Receiver<Piece>, &AtomicUsize),
) -> Result<(), RecordError> {
    let mut truth = TableWriter::create(spool, index)?;
    let mut crossings = TableWriter::create(spool, index)?;
    let mut captures = BTreeMap::new();
    for (node, name) in captured {
        let folder = spool.join("captures");
        fs::create_dir_all(&folder).map_err(|error| unwritten(folder.clone(), error))?;
        let path = folder.join(format!("{name}.pcapng"));
        captures.insert(*node, CaptureFile::create(&path).map_err(|error| unwritten(path, error))?);
    }
    while let Ok(piece) = pieces.recv() {
        match piece {
            Piece::Truth(one) => truth.push(one)?,
            Piece::Crossings(rows) => {
                waiting.fetch_sub(1, Ordering::Relaxed);
                for row in rows {
                    crossings.push(row)?;
                }
            }
            Piece::Blocks(node, blocks, is_frame) => {
                let Some(file) = captures.get_mut(&node) else { continue };
                let put = |out: &mut Vec<u8>| out.extend_from_slice(&blocks);
                if is_frame { file.frame(put) } else { file.other(put) }
            }
        }
    }
    for mut file in captures.into_values() {
        file.flush();
        let path = file.path().to_owned();
        if let Some(error) = file.into_error() {
            return Err(unwritten(path, error));
        }
    }
    crossings.finish()?;
    truth.finish().map(drop)
}

fn unwritten(path: PathBuf, source: io::Error) -> RecordError {
    RecordError::Write { path, source, records_lost: 0 }
}
