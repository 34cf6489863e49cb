//! Asynchronous shaping (IEEE Std 802.1Q-2022, 8.6.11; once 802.1Qcr): each frame of a stream gets an eligibility time
//! by the token bucket of its stream, and waits for it; nothing needs a common time.
//!
//! The token bucket of a scheduler fills at its committed information rate up to its committed burst size. A frame is
//! eligible when the bucket holds its length, but not before its predecessor in its group: streams of one group share a
//! FIFO queue. A frame that would wait for more than the maximum residence time is discarded. The procedure is that of
//! 8.6.11.3; a frame is charged its length with preamble and gap.
//!
//! Times are true time and exact: a duration is rounded up to a picosecond.

use alloc::vec::Vec;

use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

use crate::frame::Frame;
use crate::line::{GAP, PREAMBLE, SMALLEST_FRAME};

/// Schedulers of a traffic class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsynchronousConfig {
    /// One scheduler for each stream, with its token bucket.
    pub schedulers: Vec<SchedulerConfig>,
    /// Longest time that a frame may wait for its eligibility time (`MaximumResidenceTime`).
    pub longest_residence: Span,
}

/// Configuration of an ATS scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// Destination address of its stream (null stream identification, IEEE Std 802.1CB-2017, 6.4).
    pub destination: MacAddress,
    /// VLAN of its stream; 0 without a tag.
    pub vlan: u16,
    /// Committed information rate, bit/s.
    pub rate: u64,
    /// Committed burst size, bits.
    pub burst: u64,
    /// Scheduler group: schedulers of frames that enter by one port in one class.
    pub group: u16,
}

#[derive(Clone, Debug)]
struct Scheduler {
    config: SchedulerConfig,
    bucket_empty: RunTime,
    /// Time to fill the empty bucket.
    fills_in: Span,
}

/// The schedulers of a queue.
#[derive(Clone, Debug)]
pub(super) struct Asynchronous {
    schedulers: Vec<Scheduler>,
    /// Eligibility time of the last frame of each group.
    groups: Vec<RunTime>,
    longest_residence: Span,
}

/// Eligibility time of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eligibility {
    At(RunTime),
    /// Beyond the maximum residence time: the frame is discarded.
    Never,
}

/// Greatest duration: longer ones count as never.
const LONGEST: Span = Span::from_millis(86_400_000);

fn duration(bits: u64, rate: u64) -> Span {
    Span::of_bits(bits, rate).unwrap_or(LONGEST)
}

impl Asynchronous {
    pub(super) fn new(config: &AsynchronousConfig) -> Self {
        let schedulers = config.schedulers.iter().map(|&config| {
            let fills_in = duration(config.burst, config.rate);
            Scheduler { config, bucket_empty: RunTime::ZERO - fills_in, fills_in }
        });
        let groups = config.schedulers.iter().map(|one| usize::from(one.group) + 1).max().unwrap_or(0);
        Self {
            schedulers: schedulers.collect(),
            groups: alloc::vec![RunTime::from_picos(i64::MIN); groups],
            longest_residence: config.longest_residence,
        }
    }

    /// The eligibility time of a frame that comes now (8.6.11.3.2).
    pub(super) fn assign(&mut self, now: RunTime, frame: &Frame) -> Eligibility {
        let is_its = |one: &&mut Scheduler| {
            (one.config.destination, one.config.vlan) == (frame.destination, frame.vlan)
        };
        let Some(scheduler) = self.schedulers.iter_mut().find(is_its) else { return Eligibility::At(now) };
        let bits = 8 * u64::from(PREAMBLE + u32::from(frame.length.max(SMALLEST_FRAME)) + GAP);
        let by_bucket = scheduler.bucket_empty + duration(bits, scheduler.config.rate);
        let full = scheduler.bucket_empty + scheduler.fills_in;
        let group = &mut self.groups[usize::from(scheduler.config.group)];
        let eligible = now.max(*group).max(by_bucket);
        if eligible - now > self.longest_residence {
            return Eligibility::Never;
        }
        *group = eligible;
        scheduler.bucket_empty = if eligible < full { by_bucket } else { by_bucket + (eligible - full) };
        Eligibility::At(eligible)
    }
}
