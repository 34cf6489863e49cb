//! Parallel tracking.
//!
//! Decoders share the row groups and divide their records by flow; each part of the flows has its own tracker, which
//! takes the groups in order. The result is the same for any number of cores: a message depends on the records of its
//! flow alone, and rows are sorted block by block.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use wg_plan::{Network, Run};

use crate::parquet::{Buffers, Division, ROW_GROUP, ROWS_AT_ONCE, RecordFiles, RecordWriter};
use crate::sorting::{Batch, Portion, Share, Sortable, Sorter};
use crate::tracking::{
    Distributions, FlowSummary, Measure, Message, Passage, RunSummary, Tracked, Tracker, UnplannedCounts,
};
use wg_record::Gap;
use wg_record::RecordError;

/// Blocks of records that may wait for a tracker when they come one after the other.
const WAITING: usize = 8;
/// Blocks by which a decoder may be ahead of a tracker: a row group, so that decoders work in parallel although their
/// groups are taken in order.
const AHEAD: usize = ROW_GROUP / ROWS_AT_ONCE + WAITING;

/// A message of a decoder to a tracker.
enum Decoded {
    Records(Share),
    EndOfGroup,
    Failed(RecordError),
}

/// Takes the rows that trackers finish, in parts.
pub(crate) trait RowSink: Send {
    /// Takes the rows closed since the last call, flow by flow.
    fn take(&mut self, messages: &[Message], passages: &[Passage]) -> Result<(), RecordError>;
}

/// Number of threads to use.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Result of tracking besides its rows.
pub(crate) struct Outcome {
    pub(crate) summary: RunSummary,
    pub(crate) distributions: Distributions,
}

/// Tracks stored records of `run`, with `threads` decoders and as many trackers; distributions are those of `measures`.
pub(crate) fn track_files(
    network: &Network,
    run: &Run,
    files: &RecordFiles,
    gaps: &[Gap],
    threads: usize,
    measures: &[Measure],
    sink: Option<&mut dyn RowSink>,
) -> Result<Outcome, RecordError> {
    let parts = threads.clamp(1, run.flows.len().clamp(1, 64));
    let division = Division::of(run, parts);
    let buffers = Buffers::default();
    thread::scope(|scope| {
        let mut inboxes: Vec<Vec<Receiver<Decoded>>> = (0..parts).map(|_| Vec::new()).collect();
        for decoder in 0..threads {
            let (senders, receivers): (Vec<_>, Vec<_>) = (0..parts).map(|_| sync_channel(AHEAD)).unzip();
            inboxes.iter_mut().zip(receivers).for_each(|(inbox, receiver)| inbox.push(receiver));
            let (division, buffers) = (&division, &buffers);
            spawn(scope, "decode", move || {
                decode_every(files, decoder, threads, division, buffers, &senders)
            });
        }
        let keeps_rows = sink.is_some();
        // No tracker is more groups ahead of another than these (see `follow`). With less room a tracker would wait for
        // the writer, the writer for another tracker, that one for a decoder, and the decoder for the first.
        let ahead = 2 + 2 * let_out_every(files);
        let (rows_out, rows_in): (Vec<_>, Vec<_>) = (0..parts).map(|_| sync_channel(ahead)).unzip();
        let trackers: Vec<_> = inboxes
            .into_iter()
            .zip(rows_out)
            .enumerate()
            .map(|(part, (inbox, rows))| {
                let buffers = &buffers;
                let tracker = Tracker::of_part(network, run, part, parts, keeps_rows);
                let tracker = tracker.measuring(measures).with_gaps(run, gaps);
                spawn(scope, "track", move || follow(tracker, &inbox, files, buffers, rows))
            })
            .collect();
        let written = sink.map_or(Ok(()), |sink| gather(&rows_in, sink));
        drop(rows_in);
        let mut ended = Vec::new();
        for tracker in trackers {
            ended.push(joined(tracker)?);
        }
        written?;
        Ok(merged(run, ended))
    })
}

/// Tracks the flows of part `part` of `parts` with one decoder and one tracker.
pub(crate) fn track_one_part(
    network: &Network,
    run: &Run,
    files: &RecordFiles,
    gaps: &[Gap],
    [part, parts]: [usize; 2],
    sink: &mut dyn RowSink,
) -> Result<Outcome, RecordError> {
    let division = Division::of_part(run, part, parts);
    let buffers = &Buffers::default();
    thread::scope(|scope| {
        let (sender, inbox) = sync_channel(WAITING);
        let (rows_out, rows_in) = sync_channel(2);
        let tracker = Tracker::of_part(network, run, part, parts, true).with_gaps(run, gaps);
        spawn(scope, "decode", move || {
            for group in 0..files.groups() {
                let decoded = files.decode(group, &division, buffers, |divided| {
                    // The other part has flows that are not tracked here.
                    divided.into_iter().next().is_none_or(|ours| sender.send(Decoded::Records(ours)).is_ok())
                });
                let last = decoded.err().map_or(Decoded::EndOfGroup, Decoded::Failed);
                if sender.send(last).is_err() {
                    return;
                }
            }
        });
        let tracking = spawn(scope, "track", move || follow(tracker, &[inbox], files, buffers, rows_out));
        let written = gather(&[rows_in], sink);
        let ended = joined(tracking)?;
        written?;
        Ok(merged(run, vec![ended]))
    })
}

fn decode_every(
    files: &RecordFiles,
    decoder: usize,
    decoders: usize,
    division: &Division,
    buffers: &Buffers,
    trackers: &[SyncSender<Decoded>],
) {
    for group in (decoder..files.groups()).step_by(decoders) {
        // A tracker that hung up has failed or was stopped: its records need no decoding.
        let decoded = files.decode(group, division, buffers, |divided| {
            let mut sent = trackers.iter().zip(divided);
            sent.all(|(tracker, share)| tracker.send(Decoded::Records(share)).is_ok())
        });
        let failure = decoded.err();
        for (tracker, failure) in
            trackers.iter().zip(std::iter::once(failure).chain(std::iter::repeat_with(|| None)))
        {
            let last = failure.map_or(Decoded::EndOfGroup, Decoded::Failed);
            if tracker.send(last).is_err() {
                return;
            }
        }
    }
}

type Rows = (Vec<Message>, Vec<Passage>);

/// Result of a tracker, and the number of records out of order beyond its sorting.
type Ended = (Tracked, u64);

/// Number of row groups after which a tracker releases all complete messages: as many as overlap, because sorting is
/// expensive.
fn let_out_every(files: &RecordFiles) -> usize {
    usize::try_from(files.disorder())
        .unwrap_or(usize::MAX)
        .div_ceil(ROW_GROUP)
        .clamp(1, files.groups().max(1))
}

/// Tracks the records of the decoders, row group by row group.
///
/// At the end of a group every tracker releases complete messages and hands its rows over, however few records its
/// flows have: the writer waits for the rows of all.
fn follow(
    tracker: Tracker,
    decoders: &[Receiver<Decoded>],
    files: &RecordFiles,
    buffers: &Buffers,
    rows: SyncSender<Rows>,
) -> Result<Ended, RecordError> {
    let mut sorter = Sorter::new(files.disorder());
    let mut follower = Follower { tracker, rows, boundaries: files.beginnings().into() };
    let every = let_out_every(files);
    for group in 0..files.groups() {
        let decoder = &decoders[group % decoders.len()];
        loop {
            match decoder.recv() {
                Ok(Decoded::Records(share)) => {
                    sorter.push(Portion::Flows(share), |portion| follower.observe_portion(portion, buffers));
                }
                Ok(Decoded::Failed(error)) => return Err(error),
                Ok(Decoded::EndOfGroup) | Err(_) => break,
            }
        }
        if (group + 1) % every == 0
            && let Some(next) = files.begins(group + 1)
        {
            sorter.let_out_before(next, |portion| follower.observe_portion(portion, buffers));
            follower.pass(next);
        }
    }
    sorter.finish(|portion| follower.observe_portion(portion, buffers));
    Ok((follower.finish(), sorter.out_of_order()))
}

/// A tracker that hands its rows over whenever a row group of the records begins, so that rows of all parts meet those
/// of the same time, whatever the parts are.
struct Follower {
    tracker: Tracker,
    rows: SyncSender<Rows>,
    /// Beginnings of row groups, ps, ascending.
    boundaries: VecDeque<i64>,
}

impl Follower {
    fn observe_portion(&mut self, portion: Portion, buffers: &Buffers) {
        match portion {
            Portion::Flows(share) => {
                self.observe_share(&share);
                buffers.give_back(share.block);
            }
            Portion::Records(batch) => self.observe(&batch),
        }
    }

    fn observe(&mut self, batch: &Batch) {
        let mut records = batch.records.as_slice();
        let [_, ends] = batch.times();
        while let Some(&boundary) = self.boundaries.front()
            && ends >= boundary
        {
            let before = records.partition_point(|record| record.time.as_picos() < boundary);
            self.tracker.observe_all(&records[..before]);
            records = &records[before..];
            self.boundaries.pop_front();
            self.hand_over();
        }
        self.tracker.observe_all(records);
    }

    /// As [`observe`](Self::observe) for a share; it belongs to one row group, and so lies on one side of every
    /// boundary.
    fn observe_share(&mut self, share: &Share) {
        self.pass(share.times[0]);
        self.tracker.observe_block(&share.block, share.ranks.clone());
    }

    /// No record earlier than `ps` follows.
    fn pass(&mut self, ps: i64) {
        while self.boundaries.front().is_some_and(|boundary| *boundary <= ps) {
            self.boundaries.pop_front();
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        // A writer that hung up has failed, and reports that itself.
        drop(self.rows.send(self.tracker.take_rows()));
    }

    fn finish(mut self) -> Tracked {
        while self.boundaries.pop_front().is_some() {
            self.hand_over();
        }
        let Self { tracker, rows, .. } = self;
        tracker.finish_in_parts(|messages, passages| drop(rows.send((messages, passages))))
    }
}

/// Stores and tracks records of `run` that come in the order of time from `next`, a block at a time.
pub(crate) fn track_stream(
    network: &Network,
    run: &Run,
    mut next: impl FnMut() -> Result<Option<Batch>, RecordError>,
    mut store: RecordWriter,
    sink: &mut dyn RowSink,
) -> Result<(Outcome, RecordWriter), RecordError> {
    thread::scope(|scope| {
        let (to_store, stored) = sync_channel::<Arc<Batch>>(WAITING);
        let (to_tracker, tracked) = sync_channel::<(Arc<Batch>, Option<i64>)>(WAITING);
        let (rows_out, rows_in) = sync_channel(2);
        let storing = spawn(scope, "store", move || {
            stored.iter().try_for_each(|batch| store.write(&batch.records))?;
            Ok(store)
        });
        let tracking = spawn(scope, "track", move || {
            let tracker = Tracker::new(network, run);
            let mut follower = Follower { tracker, rows: rows_out, boundaries: VecDeque::new() };
            for (block, boundary) in tracked {
                follower.boundaries.extend(boundary);
                follower.observe(&block);
            }
            follower.finish()
        });
        let writing = spawn(scope, "rows", move || gather(&[rows_in], sink));
        let mut count = 0;
        let read = loop {
            let block = match next() {
                Ok(Some(block)) => Arc::new(block),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            // A row group of the stored file begins inside this block, or with it.
            let begins = count + (ROW_GROUP - count % ROW_GROUP) % ROW_GROUP;
            let boundary = (begins > 0).then(|| block.records.get(begins - count)).flatten();
            count += block.records.len();
            let boundary = boundary.map(|record| record.time.as_picos());
            let is_stored = to_store.send(block.clone()).is_ok();
            if !is_stored || to_tracker.send((block, boundary)).is_err() {
                break Ok(());
            }
        };
        drop((to_store, to_tracker));
        let store = joined(storing);
        let tracked = joined(tracking);
        let written = joined(writing);
        read?;
        let store = store?;
        written?;
        Ok((merged(run, vec![(tracked, 0)]), store))
    })
}

/// Spawns a named thread, for profiles.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let builder = thread::Builder::new().name(name.to_owned());
    // As for `thread::spawn`: a system without threads left cannot go on.
    builder.spawn_scoped(scope, work).expect("the system gives a thread")
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Combines the rows of all parts in the order of flows, and hands them on.
fn gather(parts: &[Receiver<Rows>], sink: &mut dyn RowSink) -> Result<(), RecordError> {
    loop {
        let mut messages = Vec::new();
        let mut passages = Vec::new();
        let mut open = 0;
        for part in parts {
            if let Ok((some, others)) = part.recv() {
                messages.extend(some);
                passages.extend(others);
                open += 1;
            }
        }
        if open == 0 {
            return Ok(());
        }
        messages.sort_by_key(|message| message.flow);
        passages.sort_by_key(|passage| passage.flow);
        sink.take(&messages, &passages)?;
    }
}

fn merged(run: &Run, ended: Vec<Ended>) -> Outcome {
    let mut summary = RunSummary {
        index: run.index,
        records: 0,
        window: 0,
        flows: Vec::new(),
        unplanned: UnplannedCounts::default(),
        out_of_order: 0,
        gaps: Vec::new(),
        clock_jumps: Vec::new(),
        damaged_segments: Vec::new(),
    };
    let mut distributions = Distributions::default();
    for (tracked, out_of_order) in ended {
        let part = tracked.summary;
        summary.records += part.records;
        summary.window = part.window;
        summary.out_of_order += out_of_order;
        summary.flows.extend(part.flows);
        summary.unplanned.add(part.unplanned);
        distributions.flows.extend(tracked.distributions.flows);
        distributions.hops.extend(tracked.distributions.hops);
    }
    summary.flows.sort_by_key(|flow: &FlowSummary| flow.flow);
    distributions.flows.sort_by_key(|(flow, _, _)| *flow);
    distributions.hops.sort_by_key(|(flow, node, port, _)| (*flow, *node, *port));
    Outcome { summary, distributions }
}
