//! Configuration of a port: its line, its queues and the traffic that each of them takes.

use crate::line::LineRate;
use crate::queue::{Capacity, PRIORITIES, QUEUES};

/// Configuration of a port.
#[derive(Clone, Copy, Debug)]
pub struct PortConfig {
    /// Line that the port feeds.
    pub line: LineRate,
    /// Capacity of each queue.
    pub queue_limits: [Capacity; QUEUES],
    /// Capacity of all queues together, or where rate-constrained frames have a separate buffer, of each buffer.
    pub limit: Capacity,
    /// Whether rate-constrained frames have a separate buffer.
    pub own_buffer: bool,
    /// Queue of each priority (IEEE Std 802.1Q-2022, table 8-5); if all are equal, there is one FIFO queue.
    pub queue_of_priority: [u8; PRIORITIES],
    /// Queue of each priority of rate-constrained frames.
    pub queue_of_rate_constrained: [u8; PRIORITIES],
}

impl PortConfig {
    /// One queue for every priority, each as large as the port; rate-constrained frames are not distinguished.
    pub const fn strict_priority(line: LineRate, limit: Capacity) -> Self {
        let own = [0, 1, 2, 3, 4, 5, 6, 7];
        Self::new(line, limit, own, own)
    }
    /// One queue for everything.
    pub const fn first_in_first_out(line: LineRate, limit: Capacity) -> Self {
        Self::new(line, limit, [0; PRIORITIES], [0; PRIORITIES])
    }
    /// A queue for each traffic class, each as large as the port; `classes` gives the class of each priority.
    pub const fn traffic_classes(line: LineRate, limit: Capacity, classes: [u8; PRIORITIES]) -> Self {
        Self::new(line, limit, classes, classes)
    }
    /// As [`strict_priority`](Self::strict_priority), with two queues above all others for rate-constrained frames: the
    /// more urgent for priorities 4 to 7 (ARINC 664 part 7 gives a virtual link one of two priorities). They have a
    /// separate buffer, as large as that of the others.
    pub const fn critical(line: LineRate, limit: Capacity) -> Self {
        let config = Self::new(line, limit, [0, 1, 2, 3, 4, 5, 6, 7], [8, 8, 8, 8, 9, 9, 9, 9]);
        Self { own_buffer: true, ..config }
    }

    /// A queue for each traffic class, and two above them for rate-constrained frames whose priority has no class in
    /// `critical`. Only these two have a separate buffer.
    pub fn converged(
        line: LineRate,
        limit: Capacity,
        classes: [u8; PRIORITIES],
        critical: [Option<u8>; PRIORITIES],
    ) -> Self {
        let Self { queue_of_rate_constrained: above, .. } = Self::critical(line, limit);
        let rc: [u8; PRIORITIES] =
            core::array::from_fn(|priority| critical[priority].unwrap_or(above[priority]));
        let own_buffer = rc.iter().any(|queue| usize::from(*queue) >= PRIORITIES);
        Self { own_buffer, ..Self::new(line, limit, classes, rc) }
    }

    const fn new(line: LineRate, limit: Capacity, others: [u8; PRIORITIES], rc: [u8; PRIORITIES]) -> Self {
        Self {
            line,
            queue_limits: [limit; QUEUES],
            limit,
            own_buffer: false,
            queue_of_priority: others,
            queue_of_rate_constrained: rc,
        }
    }
}
