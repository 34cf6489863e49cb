//! Configuration of the traffic classes of a port: guard bands, frame preemption and cyclic queuing.

use wg_frame::time::Span;

use crate::clock::LocalTime;
use crate::line::{GAP, LineRate, PREAMBLE, SMALLEST_FRAME, bytes};
use crate::queue::PRIORITIES;
use crate::selection::asynchronous::AsynchronousConfig;
use crate::selection::gates::{GateEntry, GateList, Gates, HoldAdvances, MacOperation};

/// Protection against frames that reach beyond the closing of their gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Guard {
    /// A frame begins only if it ends before the closing.
    #[default]
    Length,
    /// No frame begins during this time before the closing.
    Band(Span),
}

/// Frame preemption of a port: preemptable queues and the least fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preemption {
    /// Preemptable queues, the lowest bit that of queue 0.
    pub queues: u8,
    /// Shortest fragment that is not the last, check sequence included, bytes: 64, 128, 192 or 256 (`addFragSize`).
    pub shortest_fragment: u16,
    /// Time before an entry of the gates at which the MAC is held or released.
    pub advances: HoldAdvances,
}

impl Preemption {
    /// Longest time that the line may be occupied by a fragment to be cut, gap included: the advance of a hold that
    /// guarantees a free line when the entry begins.
    pub const fn longest_rest(shortest_fragment: u16, line: LineRate) -> Span {
        // With a byte more, it would be cut after the shortest fragment.
        let uncut = shortest_fragment as u32 - FRAGMENT_CHECK + SHORTEST_REST - 1 + FRAGMENT_CHECK;
        line.time_of(PREAMBLE + uncut + GAP)
    }
}

/// Cyclic queuing and forwarding: two queues that take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cyclic {
    /// Beginning of a cycle in which the first queue takes frames and the second sends.
    pub base: LocalTime,
    /// Cycle time.
    pub cycle: Span,
    /// Numbers of the two queues.
    pub queues: [usize; 2],
}

impl Cyclic {
    /// The gate control list of cyclic queuing; all other gates are open.
    pub fn gates(&self) -> GateList {
        let but = |queue: usize| GateEntry {
            open: !(1 << queue),
            length: self.cycle,
            mac: MacOperation::Unchanged,
        };
        let [first, second] = self.queues;
        GateList { base: self.base, extension: Span::ZERO, entries: alloc::vec![but(first), but(second)] }
    }

    /// The queue that a frame for `queue` joins at `now`.
    pub(super) fn queue(&self, queue: usize, now: LocalTime) -> usize {
        if !self.queues.contains(&queue) {
            return queue;
        }
        let cycles = (now.as_picos() - self.base.as_picos()).div_euclid(self.cycle.as_picos().max(1));
        self.queues[usize::from(cycles.rem_euclid(2) == 1)]
    }
}

/// The check sequence of a fragment that is not the last, bytes; as long as the FCS.
pub(super) const FRAGMENT_CHECK: u32 = bytes(wg_frame::ethernet::FCS_LEN);

/// Configuration of the traffic classes of a port.
#[derive(Clone, Debug)]
pub struct TrafficClassConfig {
    /// Idle slope of each queue in bit/s of frames with preamble and gap; `None`: strict priority.
    pub idle_slopes: [Option<u64>; PRIORITIES],
    /// Longest frame of each queue, bytes without preamble (`queueMaxSDU` and the octets around it).
    pub longest_frames: [u16; PRIORITIES],
    /// Gates; `None`: always open.
    pub gates: Option<Gates>,
    /// Protection against frames that reach beyond a closing.
    pub guard: Guard,
    /// Frame preemption; `None`: every frame is sent in one piece.
    pub preemption: Option<Preemption>,
    /// ATS schedulers of each queue; `None`: frames are eligible at once.
    pub asynchronous: [Option<AsynchronousConfig>; PRIORITIES],
    /// Cyclic queuing; `gates` must then be [its gates](Cyclic::gates).
    pub cyclic: Option<Cyclic>,
}

/// Least bytes of the last fragment of a frame, FCS excluded.
pub(super) const SHORTEST_REST: u32 = SMALLEST_FRAME as u32 - FRAGMENT_CHECK;
