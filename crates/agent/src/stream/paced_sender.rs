//! Paced sending of a stream.
//!
//! [`Pacer`] defines the effect of a late frame on later ones, for simulated senders too; this module waits, sends and
//! counts. Frames already due are sent at once, several per call if necessary.
//!
//! If the interface supports launch times, frames are passed to it ahead of time, and delays of this thread have no
//! effect on the wire.

use std::sync::atomic::{AtomicBool, Ordering};

use wg_core::pacing::{Pacer, Pacing};
use wg_frame::ethernet::MacAddress;
use wg_frame::probe::ProbeFlags;
use wg_frame::template::Template;
use wg_frame::time::{Epoch, RunTime, Span, WallNanos};
use wg_net::transmit::{Transmitter, Unlaunched};
use wg_net::{clock, realtime};
use wg_plan::Addresses;
use wg_record::Sketch;

use super::gaps::Gaps;
use crate::stream::lead::Lead;

/// Frame of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueFrame {
    /// Due time.
    pub at: RunTime,
    /// Frame number; warm-up frames have their own numbers.
    pub sequence: u32,
    /// True for a warm-up frame.
    pub warm_up: bool,
    /// Index of the template.
    pub template: u16,
}

/// Frame bytes with their template.
pub type FrameTemplate = (Vec<u8>, Template);

/// Statistics of a sender.
#[derive(Clone, Debug, Default)]
pub struct PacedStats {
    /// Frames passed to the kernel.
    pub offered: u64,
    /// Frames of these that the kernel refused.
    pub refused: u64,
    /// Frames skipped because they were too late.
    pub given_up: u64,
    /// Actual minus intended send time, ps; the intended time follows from the schedule in rate mode, and from the
    /// previous frame and the gap in gap mode.
    pub error: Sketch,
    /// Actual gaps compared with the planned ones.
    pub gaps: Gaps,
    /// Missed launch times, if launch times are used.
    pub unlaunched: Option<Unlaunched>,
    /// Intended and actual times of the first and last frame, ns of `CLOCK_REALTIME`.
    pub span: Option<(i64, i64)>,
}

/// Observer of every frame on the sending thread.
pub trait SendObserver {
    /// Reports that `due`, with the intended time `target`, was passed to the kernel at `at`.
    fn sent(&mut self, due: DueFrame, target: WallNanos, at: WallNanos);
}

/// Observer that does nothing.
#[derive(Clone, Copy, Debug)]
pub struct Unobserved;
impl SendObserver for Unobserved {
    #[inline]
    fn sent(&mut self, _: DueFrame, _: WallNanos, _: WallNanos) {}
}

/// Wait mode of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Sleep only; the accuracy is that of the host's timers.
    Asleep,
    /// Sleep, then spin shortly before the due time.
    Awake,
    /// As `Awake`, but yields the core to other spinning threads. Otherwise real-time threads of the same priority
    /// could not run until this one sleeps, and their frames would be late.
    AwakeInTurn,
}

/// Longest single sleep, ns, which bounds the delay of a stop.
const LONGEST_SLEEP: i64 = 20_000_000;
/// Added before truncation to nanoseconds in order to round up.
const UP_TO_NANOS: Span = Span::from_picos(999);
/// Clock readings between two checks of the stop flag.
const SPINS_PER_LOOK: u32 = 256;

/// Sender during a run.
pub struct PacedSender<'a> {
    /// Transmitter of the frames.
    pub transmitter: &'a mut Transmitter,
    /// Frame templates.
    pub templates: &'a [FrameTemplate],
    /// Start of the schedule.
    pub epoch: Epoch,
    /// Pacing: what is preserved when a frame is late.
    pub pacing: Pacing,
    /// Delay above which a frame is skipped, ns; `None`: never.
    pub give_up_ns: Option<i64>,
    /// Time before the launch time at which a frame is passed on, ns, if the send times are not controlled by this
    /// thread.
    pub ahead_ns: Option<i64>,
    /// Wait mode.
    pub waiting: Waiting,
    /// MAC addresses that frames use in rotation, starting with those of their template.
    pub in_turn: Option<Addresses>,
    /// Stop flag.
    pub stop: &'a AtomicBool,
}

impl PacedSender<'_> {
    /// Sends all frames of the schedule and reports each to `observer`.
    ///
    /// # Errors
    /// The transmitter is unusable; frames sent until then are in the figures.
    pub fn run(
        &mut self,
        mut dues: impl Iterator<Item = DueFrame>,
        stats: &mut PacedStats,
        observer: &mut impl SendObserver,
    ) -> std::io::Result<()> {
        let mut next = dues.next();
        let mut lead = Lead::new(60_000);
        let mut pacer = Pacer::new(self.pacing);
        while let Some(due) = next {
            let target = self.target(&pacer, due.at);
            if !self.wait(target - self.ahead_ns.unwrap_or(0), &mut lead) {
                break;
            }
            let now = clock::realtime().get();
            if self.give_up_ns.is_some_and(|most| now - target > most) {
                stats.given_up += 1;
                next = dues.next();
                continue;
            }
            let sent = self.lay(due, target, &mut pacer, stats, observer);
            next = dues.next();
            let due_by = run_time(self.epoch, sent + self.ahead_ns.unwrap_or(0));
            while let Some(more) = next {
                if !pacer.may_join(more.at, due_by) || !self.has_room() {
                    break;
                }
                self.lay(more, self.epoch.wall_nanos(more.at).get(), &mut pacer, stats, observer);
                next = dues.next();
            }
            let flushed = self.transmitter.flush()?;
            stats.refused += flushed.refused as u64;
        }
        if let Some(ahead) = self.ahead_ns {
            // The last frames are launched or skipped within this time.
            clock::sleep_until(WallNanos::new(clock::realtime().get() + ahead));
            stats.unlaunched = Some(self.transmitter.unlaunched()?);
        }
        Ok(())
    }

    /// Send time of a frame planned for `planned`, ns: a schedule time is rounded down, the end of a gap up.
    fn target(&self, pacer: &Pacer, planned: RunTime) -> i64 {
        let intended = match self.ahead_ns {
            None => pacer.intended(planned),
            Some(ahead) => {
                pacer.intended_launch(planned, run_time(self.epoch, clock::realtime().get() + ahead))
            }
        };
        let rounding = if self.pacing == Pacing::Gap { UP_TO_NANOS } else { Span::ZERO };
        self.epoch.wall_nanos(intended + rounding).get()
    }

    fn has_room(&mut self) -> bool {
        self.transmitter.slot().is_some()
    }

    /// Writes one frame into a slot and returns its transmit time.
    #[inline]
    fn lay(
        &mut self,
        due: DueFrame,
        target: i64,
        pacer: &mut Pacer,
        stats: &mut PacedStats,
        observer: &mut impl SendObserver,
    ) -> i64 {
        let (bytes, template) = &self.templates[usize::from(due.template)];
        // A batch has the size of one flush, and the loop above flushes before it is full.
        let Some(slot) = self.transmitter.slot() else { return target };
        if *slot.template != u32::from(due.template) + 1 {
            slot.bytes[..bytes.len()].copy_from_slice(bytes);
            *slot.template = u32::from(due.template) + 1;
        }
        let flags = if due.warm_up { ProbeFlags::WARM_UP } else { ProbeFlags::NONE };
        let at = clock::realtime();
        // A frame with a launch time leaves at this time, not when it is passed on.
        let leaves = if self.ahead_ns.is_some() { WallNanos::new(target) } else { at };
        let time = run_time(self.epoch, leaves.get());
        template.patch(slot.bytes, due.sequence, flags, time);
        if let Some(addresses) = &self.in_turn {
            let first = |at: usize| MacAddress(bytes[at..at + 6].try_into().unwrap_or_default());
            let [source, destination] = addresses.in_turn([first(6), first(0)], due.sequence);
            slot.bytes[..6].copy_from_slice(&destination.0);
            slot.bytes[6..12].copy_from_slice(&source.0);
        }
        self.transmitter.commit(bytes.len());
        if self.ahead_ns.is_some() {
            self.transmitter.launch_at(leaves);
        }
        observer.sent(due, WallNanos::new(target), at);
        stats.offered += 1;
        stats.error.add((at.get() - target) * 1_000);
        if let (Some(gap), None) = (pacer.handle_sent(due.at, time), self.ahead_ns) {
            stats.gaps.add(gap.sent.as_picos(), gap.planned.as_picos());
        }
        stats.span = Some((stats.span.map_or(leaves.get(), |span| span.0), leaves.get()));
        at.get()
    }

    /// Sleeps, then spins until `target`, ns; false if told to stop.
    #[inline]
    fn wait(&self, target: i64, lead: &mut Lead) -> bool {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
            let now = clock::realtime().get();
            if now >= target {
                if self.waiting == Waiting::AwakeInTurn {
                    // A late sender would otherwise keep the core until it has caught up.
                    realtime::yield_now();
                }
                return true;
            }
            let until = if self.waiting == Waiting::Asleep { target } else { target - lead.ns() };
            if until > now {
                let until = until.min(now + LONGEST_SLEEP);
                clock::sleep_until(WallNanos::new(until));
                lead.learn(clock::realtime().get() - until);
                continue;
            }
            for _ in 0..SPINS_PER_LOOK {
                if clock::realtime().get() >= target {
                    return true;
                }
                if self.waiting == Waiting::AwakeInTurn {
                    realtime::yield_now();
                } else {
                    std::hint::spin_loop();
                }
            }
        }
    }
}

/// Run time at `wall`, ns.
#[inline]
fn run_time(epoch: Epoch, wall: i64) -> RunTime {
    epoch.run_time(WallNanos::new(wall)).unwrap_or(RunTime::ZERO)
}

#[cfg(test)]
#[path = "../../../core/tests/contracts/pacing.rs"]
mod contract;

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

    use wg_frame::layout::{Carrier, Envelope};

    use super::contract::{self, Sent};
    use super::*;
    use crate::stream::{Extent, FrameSpec};

    /// Stores the sent frames and delays the thread after every tenth frame until `stall_ns` have passed.
    struct Hindered {
        epoch: Epoch,
        stall_ns: i64,
        sent: Vec<Sent>,
    }

    impl SendObserver for Hindered {
        fn sent(&mut self, due: DueFrame, target: WallNanos, at: WallNanos) {
            let time = |wall| self.epoch.run_time(wall).expect("near the epoch");
            self.sent.push(Sent { planned: due.at, intended: time(target), at: time(at) });
            if self.sent.len().is_multiple_of(10) {
                while clock::realtime().get() < at.get() + self.stall_ns {
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// Sends 200 frames to this host, `gap_ps` apart, with a sender that is stalled for ten gaps at a time.
    fn sent(pacing: Pacing, gap_ps: i64) -> (Vec<Sent>, PacedStats) {
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = receiver.local_addr().expect("an address").port();
        let here = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let carrier = Carrier::udp(here(0), here(port));
        let (destination, source) = (MacAddress([0; 6]), MacAddress([0; 6]));
        let envelope = Envelope { destination, source, tag: None, carrier };
        let spec = FrameSpec { flow: 1, envelope, payload: 64, transmit_time: None, number: None };
        let mut transmitter = Transmitter::udp(here(0), here(port)).expect("a socket");
        let epoch = Epoch::new(clock::realtime());
        let mut observer = Hindered { epoch, stall_ns: gap_ps / 100, sent: Vec::new() };
        let mut stats = PacedStats::default();
        let dues = (0..200).map(|sequence| DueFrame {
            at: RunTime::from_picos(gap_ps * i64::from(sequence)),
            sequence,
            warm_up: false,
            template: 0,
        });
        PacedSender {
            transmitter: &mut transmitter,
            templates: &[spec.template(Extent::Payload).expect("a frame")],
            epoch,
            pacing,
            give_up_ns: None,
            ahead_ns: None,
            waiting: Waiting::Awake,
            in_turn: None,
            stop: &AtomicBool::new(false),
        }
        .run(dues, &mut stats, &mut observer)
        .expect("a way out");
        (observer.sent, stats)
    }

    #[test]
    fn schedule_or_gaps_are_kept_by_a_thread_that_is_held_up() {
        // Not a multiple of a nanosecond.
        let gap = Span::from_picos(20_000_300);
        for pacing in [Pacing::Rate, Pacing::Gap] {
            let (sent, stats) = sent(pacing, gap.as_picos());
            assert_eq!((sent.len(), stats.offered), (200, 200));
            contract::holds(pacing, Span::from_nanos(1), &sent);
            // Ten gaps are lost twenty times, and made up for or not. The last stall is after the last frame.
            let span = sent[199].at - sent[0].at;
            let nineteen = Span::from_picos(19 * 9 * gap.as_picos());
            let planned = sent[199].planned - sent[0].planned;
            assert!(pacing == Pacing::Rate || span >= planned + nineteen, "{span} of {planned}");
            let shortest = stats.gaps.deviation.min().expect("there are gaps");
            assert_eq!(shortest < 0, pacing == Pacing::Rate, "late frames catch up only on a schedule");
        }
    }
}
