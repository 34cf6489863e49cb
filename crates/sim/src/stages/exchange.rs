//! What a stage gets from earlier stages and gives to later ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use wg_core::fifo::Fifo;
use wg_frame::time::{RunTime, Span};

use super::graph::Stages;
use crate::error::SimError;
use crate::world::InFlight;

/// Frames in a batch.
const BATCH: usize = 1_024;
/// The bound of a stage that waits for nothing.
const FOREVER: i64 = i64::MAX;

/// A frame that crosses from a stage to another, on its channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    pub(crate) in_flight: InFlight,
    pub(crate) channel: u32,
    /// The port by which it leaves a switch whose ingress the earlier stage drove; `None`: it comes out of the channel.
    pub(crate) egress: Option<u32>,
}

/// Frames from one stage to another. All that reach the other at `until` or before are in this batch or were before.
pub(crate) struct Batch {
    from: usize,
    frames: Vec<Crossing>,
    until: i64,
}

/// What all stages know of each other, besides the frames.
#[derive(Default)]
pub(crate) struct Shared {
    /// Set when a stage has ended early: the others end, too.
    pub(crate) stop: AtomicBool,
    /// Set when a frame went where no route leads.
    pub(crate) astray: AtomicBool,
    /// A message is sent at this instant or later, by stage; once `sent` is set, the last one at this instant.
    last_send: Vec<AtomicI64>,
    sent: Vec<AtomicBool>,
}

/// Ends the other stages when the thread of one fails: they would wait for it.
pub(crate) struct StopsOthers(pub(crate) Arc<Shared>);

impl Drop for StopsOthers {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl Shared {
    pub(crate) fn new(stages: usize) -> Self {
        let mut shared = Self::default();
        shared.last_send.resize_with(stages, || AtomicI64::new(i64::MIN));
        shared.sent.resize_with(stages, || AtomicBool::new(false));
        shared
    }

    /// A stage sends its last message at `at` or later.
    fn note_sending(&self, stage: u8, at: i64) {
        self.last_send[usize::from(stage)].fetch_max(at, Ordering::AcqRel);
    }

    /// The last message of the run is sent at this instant or later; and whether it was sent at that instant.
    fn last_send(&self) -> (i64, bool) {
        let all_sent = self.sent.iter().all(|sent| sent.load(Ordering::Acquire));
        let last = self.last_send.iter().map(|last| last.load(Ordering::Acquire)).max();
        (last.unwrap_or(i64::MIN), all_sent)
    }
}

/// A stage's view of the others.
pub(crate) struct Exchange {
    pub(crate) stages: Arc<Stages>,
    pub(crate) own: u8,
    pub(crate) shared: Arc<Shared>,
    /// Frames that come from earlier stages, by channel.
    coming: Box<[Fifo<Crossing>]>,
    inbox: Receiver<Batch>,
    /// Up to when all frames have come, by stage.
    until: Vec<i64>,
    /// Up to when all frames have come.
    pub(crate) bound: i64,
    outboxes: Vec<Option<Outbox>>,
    /// Instant up to which events certainly belong to the run.
    belongs_until: i64,
    /// Whether the stage has messages left to send.
    is_sending: bool,
}

/// Frames for a later stage.
struct Outbox {
    frames: Vec<Crossing>,
    to: SyncSender<Batch>,
}

impl Exchange {
    /// The view of stage `own`: it gets batches from `inbox` and gives them to `to`, by stage.
    pub(crate) fn new(
        (stages, shared): (Arc<Stages>, Arc<Shared>),
        own: u8,
        inbox: Receiver<Batch>,
        to: Vec<Option<SyncSender<Batch>>>,
    ) -> Self {
        let channels = stages.near.len();
        let feeds = |from: usize| stages.feeds[from][usize::from(own)];
        let until: Vec<i64> =
            (0..stages.count).map(|from| if feeds(from) { i64::MIN } else { FOREVER }).collect();
        let outbox = |to: SyncSender<Batch>| Outbox { frames: Vec::with_capacity(BATCH), to };
        Self {
            stages,
            own,
            shared,
            coming: (0..channels).map(|_| Fifo::new()).collect(),
            inbox,
            bound: until.iter().copied().min().unwrap_or(FOREVER),
            until,
            outboxes: to.into_iter().map(|to| to.map(outbox)).collect(),
            belongs_until: i64::MIN,
            is_sending: true,
        }
    }

    /// Whether the stage drives the sending end of a channel.
    pub(crate) fn drives(&self, channel: usize) -> bool {
        self.stages.near[channel] == self.own
    }

    /// Whether all frames of earlier stages have come.
    pub(crate) const fn has_all(&self) -> bool {
        self.bound == FOREVER
    }

    /// The next frame that comes by a channel.
    pub(crate) fn front(&self, channel: usize) -> Option<&Crossing> {
        self.coming[channel].front()
    }

    /// Takes the next frame that comes by a channel.
    pub(crate) fn take(&mut self, channel: usize) -> Option<Crossing> {
        self.coming[channel].pop_front()
    }

    /// Gives a frame to a later stage; `before`: all others that reach it by then were given.
    ///
    /// A full batch is sent at once. What goes to a stage that does not wait for this one ends the simulation: it must be
    /// repeated as one stage.
    pub(crate) fn give(&mut self, to: u8, frame: Crossing, before: RunTime) {
        let Some(outbox) = &mut self.outboxes[usize::from(to)] else {
            self.shared.astray.store(true, Ordering::Relaxed);
            self.shared.stop.store(true, Ordering::Relaxed);
            return;
        };
        outbox.frames.push(frame);
        if outbox.frames.len() >= BATCH {
            let until = before.as_picos() - 1;
            // Known before the batch is: a stage that waits to learn how long the run is goes on with it.
            if self.is_sending {
                self.shared.note_sending(self.own, until);
            }
            outbox.send(self.own, until);
        }
    }

    /// Sends all batches: all frames that reach later stages at `until` or before were given.
    pub(crate) fn send_all(&mut self, until: i64) {
        self.note_sending(until);
        for outbox in self.outboxes.iter_mut().flatten() {
            outbox.send(self.own, until);
        }
    }

    /// Waits for a batch; `came` is called for each channel by which a frame comes first.
    pub(crate) fn receive(&mut self, mut came: impl FnMut(usize, RunTime)) {
        match self.inbox.recv() {
            Ok(batch) => {
                self.until[batch.from] = self.until[batch.from].max(batch.until);
                for frame in batch.frames {
                    let coming = &mut self.coming[frame.channel as usize];
                    if coming.is_empty() {
                        came(frame.channel as usize, frame.in_flight.at);
                    }
                    coming.push_back(frame);
                }
            }
            Err(_) => self.until.fill(FOREVER),
        }
        self.bound = self.until.iter().copied().min().unwrap_or(FOREVER);
    }

    /// The stage sends its last message at `at` or later, if it has any left.
    pub(crate) fn note_sending(&self, at: i64) {
        if self.is_sending {
            self.shared.note_sending(self.own, at);
        }
    }

    /// The stage has sent its last message, at `at`; `None`: it sends none.
    pub(crate) fn note_sent(&mut self, at: Option<RunTime>) {
        self.is_sending = false;
        self.shared.note_sending(self.own, at.map_or(i64::MIN, RunTime::as_picos));
        self.shared.sent[usize::from(self.own)].store(true, Ordering::Release);
    }

    /// Whether the stage has messages left to send.
    pub(crate) const fn is_sending(&self) -> bool {
        self.is_sending
    }

    /// Whether an event at `at` belongs to the run, which ends `drain` after its last message; `None`: not known yet.
    pub(crate) fn belongs(&mut self, at: i64, drain: Span) -> Option<bool> {
        if at <= self.belongs_until {
            return Some(true);
        }
        let (last, is_certain) = self.shared.last_send();
        self.belongs_until = last.saturating_add(drain.as_picos());
        if at <= self.belongs_until {
            return Some(true);
        }
        is_certain.then_some(false)
    }

    /// The instant of the last message of the run; waits until it is known.
    pub(crate) fn last_send(&self) -> Result<RunTime, SimError> {
        loop {
            let (last, is_certain) = self.shared.last_send();
            if is_certain {
                return Ok(RunTime::from_picos(last));
            }
            self.pause()?;
        }
    }

    /// Lets other stages go on.
    pub(crate) fn pause(&self) -> Result<(), SimError> {
        if self.shared.stop.load(Ordering::Relaxed) {
            return Err(SimError::Stopped);
        }
        std::thread::yield_now();
        Ok(())
    }
}

impl Outbox {
    fn send(&mut self, from: u8, until: i64) {
        let frames = std::mem::replace(&mut self.frames, Vec::with_capacity(BATCH));
        // A stage that is gone has ended early, and the others learn that.
        drop(self.to.send(Batch { from: usize::from(from), frames, until }));
    }
}
