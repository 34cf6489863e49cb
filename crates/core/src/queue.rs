//! Egress queues of a port: FIFO queues with limits.
//!
//! A frame must find room in its own queue, in its port and in the buffer shared by all ports of a device. The first
//! one that is full refuses it, and the refusal names it. The frame on the wire takes no room.
//!
//! A port has one buffer for all its queues, or one for the queues of rate-constrained frames and one as large for the
//! others, so that best effort cannot take the room of virtual links.
//!
//! A [transmission selection](crate::selection) may have queues of its own beside these, numbered from [`QUEUES`] on.
//! Each is bounded in frames and separate from all buffers, as memory that a device sets aside for a schedule. When one
//! is full, the new frame replaces its oldest one: a message sent by schedule is a state, and the newest is worth most.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::frame::Frame;

/// Number of priorities (IEEE Std 802.1Q-2022, 6.9.3).
pub const PRIORITIES: usize = 8;
/// Number of queues of every port: one for each priority, and above them two for rate-constrained frames.
pub const QUEUES: usize = PRIORITIES + 2;

/// Capacity of a queue, a port or a shared buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Capacity {
    /// Greatest occupancy in bytes of frames, destination address to FCS.
    pub bytes: u64,
    /// Greatest number of frames; `u32::MAX`: unlimited.
    #[cfg_attr(feature = "serde", serde(default = "unlimited", skip_serializing_if = "is_unlimited"))]
    pub frames: u32,
}

#[cfg(feature = "serde")]
const fn unlimited() -> u32 {
    u32::MAX
}

#[cfg(feature = "serde")]
const fn is_unlimited(frames: &u32) -> bool {
    *frames == u32::MAX
}

impl Capacity {
    /// A capacity in bytes, with any number of frames.
    pub const fn bytes(bytes: u64) -> Self {
        Self { bytes, frames: u32::MAX }
    }
    /// A capacity in frames of any length.
    pub const fn frames(frames: u32) -> Self {
        Self { bytes: u64::MAX, frames }
    }
}

/// Occupancy of a queue or buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Bytes waiting.
    pub bytes: u64,
    /// Frames waiting.
    pub frames: u32,
}

impl Fill {
    fn has_room(self, length: u16, limit: Capacity) -> bool {
        self.frames < limit.frames
            && self.bytes.checked_add(u64::from(length)).is_some_and(|sum| sum <= limit.bytes)
    }
    fn add(&mut self, length: u16) {
        self.bytes += u64::from(length);
        self.frames += 1;
    }
    fn take(&mut self, length: u16) {
        self.bytes -= u64::from(length);
        self.frames -= 1;
    }
}

/// Queue or buffer that was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The queue of its class.
    Queue,
    /// The buffer of the port, or the one for the frame's class.
    Port,
    /// The buffer shared by all ports.
    Shared,
}

/// The buffer shared by all ports of a device.
#[derive(Clone, Copy, Debug)]
pub struct SharedBuffer {
    limit: Capacity,
    fill: Fill,
    apart: u32,
    /// Number of ports that watch their lines.
    watching: u32,
}

impl SharedBuffer {
    /// An empty buffer.
    pub const fn new(limit: Capacity) -> Self {
        Self { limit, fill: Fill { bytes: 0, frames: 0 }, apart: 0, watching: 0 }
    }
    /// Occupancy by the frames of all ports.
    pub const fn fill(&self) -> Fill {
        self.fill
    }
    /// Number of frames in queues separate from the buffer, in all ports together.
    pub const fn apart(&self) -> u32 {
        self.apart
    }
    /// Whether no frame waits at any port, and no port watches its line.
    pub const fn is_idle(&self) -> bool {
        self.fill.frames == 0 && self.apart == 0 && self.watching == 0
    }
    /// A port of the device begins or ceases to watch its line.
    pub(crate) const fn watch(&mut self, watches: bool) {
        self.watching = if watches { self.watching + 1 } else { self.watching - 1 };
    }
}

/// Position at which a frame joins a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePosition {
    /// Number of the queue.
    pub queue: usize,
    /// Number of waiting frames that it overtakes; 0 in FIFO order.
    pub overtakes: usize,
}

impl QueuePosition {
    /// The position at the end of `queue`.
    #[inline]
    pub const fn last(queue: usize) -> Self {
        Self { queue, overtakes: 0 }
    }
}

/// The queues of one port. Memory grows with the frames waiting, up to the limits.
#[derive(Clone, Debug)]
pub struct Queues {
    /// Bit `i` is set while queue `i` (below [`QUEUES`]) holds a frame.
    occupied: u16,
    /// Number of frames in the separate queues.
    apart: u32,
    /// Boxed, because most frames find the line free and never touch it.
    room: Box<Room>,
}

/// The frames and their occupancies.
#[derive(Clone, Debug)]
struct Room {
    waiting: [VecDeque<Frame>; QUEUES],
    fills: [Fill; QUEUES],
    limits: [Capacity; QUEUES],
    port: Fill,
    /// Occupancy of the rate-constrained queues, where they have a separate buffer.
    critical: Option<Fill>,
    port_limit: Capacity,
    peak_bytes: u64,
    apart: Vec<Apart>,
}

/// A queue separate from all buffers.
#[derive(Clone, Debug)]
struct Apart {
    frames: VecDeque<Frame>,
    capacity: usize,
}

impl Room {
    fn queue(&self, queue: usize) -> &VecDeque<Frame> {
        if queue < QUEUES { &self.waiting[queue] } else { &self.apart[queue - QUEUES].frames }
    }

    /// Occupancy of the buffer that queue `queue` uses.
    fn beside(&self, queue: usize) -> Fill {
        match self.critical {
            None => self.port,
            Some(critical) if queue >= PRIORITIES => critical,
            Some(critical) => {
                Fill { bytes: self.port.bytes - critical.bytes, frames: self.port.frames - critical.frames }
            }
        }
    }

    fn add(&mut self, queue: usize, length: u16) {
        self.fills[queue].add(length);
        self.port.add(length);
        self.critical.iter_mut().filter(|_| queue >= PRIORITIES).for_each(|fill| fill.add(length));
    }

    fn take(&mut self, queue: usize, length: u16) {
        self.fills[queue].take(length);
        self.port.take(length);
        self.critical.iter_mut().filter(|_| queue >= PRIORITIES).for_each(|fill| fill.take(length));
    }
}

impl Queues {
    /// Empty queues with a limit for each and one for all together, or with `two_buffers` one for the rate-constrained
    /// queues and one for the others; and for each number in `apart` a separate queue of that many frames.
    pub fn new(
        limits: [Capacity; QUEUES],
        port_limit: Capacity,
        two_buffers: bool,
        apart: impl IntoIterator<Item = usize>,
    ) -> Self {
        let apart = apart.into_iter().map(|capacity| Apart { frames: VecDeque::new(), capacity });
        let room = Room {
            waiting: Default::default(),
            fills: Default::default(),
            limits,
            port: Fill::default(),
            critical: two_buffers.then(Fill::default),
            port_limit,
            peak_bytes: 0,
            apart: apart.collect(),
        };
        Self { occupied: 0, apart: 0, room: Box::new(room) }
    }

    /// Appends `frame` to one of the queues that every port has.
    ///
    /// # Errors
    /// Which limit was reached; the frame is then not taken and nothing has changed.
    pub fn push(
        &mut self,
        place: QueuePosition,
        frame: Frame,
        shared: &mut SharedBuffer,
    ) -> Result<(), Full> {
        let QueuePosition { queue, overtakes } = place;
        if !self.room.fills[queue].has_room(frame.length, self.room.limits[queue]) {
            return Err(Full::Queue);
        }
        if !self.room.beside(queue).has_room(frame.length, self.room.port_limit) {
            return Err(Full::Port);
        }
        if !shared.fill.has_room(frame.length, shared.limit) {
            return Err(Full::Shared);
        }
        self.room.add(queue, frame.length);
        shared.fill.add(frame.length);
        self.room.peak_bytes = self.room.peak_bytes.max(self.room.port.bytes);
        self.occupied |= 1 << queue;
        insert(&mut self.room.waiting[queue], overtakes, frame);
        Ok(())
    }

    /// Appends `frame` to a separate queue; returns the oldest frame there if the queue was full.
    pub fn push_apart(
        &mut self,
        place: QueuePosition,
        frame: Frame,
        shared: &mut SharedBuffer,
    ) -> Option<Frame> {
        let Apart { frames, capacity } = &mut self.room.apart[place.queue - QUEUES];
        insert(frames, place.overtakes, frame);
        self.apart += 1;
        shared.apart += 1;
        if frames.len() > *capacity { self.pop(place.queue, shared) } else { None }
    }

    /// Removes and returns the first frame of queue `queue`.
    pub fn pop(&mut self, queue: usize, shared: &mut SharedBuffer) -> Option<Frame> {
        if queue >= QUEUES {
            let frame = self.room.apart[queue - QUEUES].frames.pop_front()?;
            self.apart -= 1;
            shared.apart -= 1;
            return Some(frame);
        }
        let frame = self.room.waiting[queue].pop_front()?;
        self.room.take(queue, frame.length);
        shared.fill.take(frame.length);
        if self.room.waiting[queue].is_empty() {
            self.occupied &= !(1 << queue);
        }
        Some(frame)
    }

    /// Returns a removed frame to the head of its queue. It never left its memory, so no limit refuses it: limits may
    /// be exceeded by this one frame.
    pub fn put_back(&mut self, queue: usize, frame: Frame, shared: &mut SharedBuffer) {
        if queue >= QUEUES {
            self.apart += 1;
            shared.apart += 1;
            self.room.apart[queue - QUEUES].frames.push_front(frame);
            return;
        }
        self.room.add(queue, frame.length);
        shared.fill.add(frame.length);
        self.occupied |= 1 << queue;
        self.room.waiting[queue].push_front(frame);
    }

    /// The first frame of queue `queue`.
    pub fn head(&self, queue: usize) -> Option<&Frame> {
        self.room.queue(queue).front()
    }

    /// Number of frames in queue `queue`.
    pub fn len(&self, queue: usize) -> usize {
        self.room.queue(queue).len()
    }

    /// The numbers of all queues, the most urgent first, then the separate ones.
    pub fn all(&self) -> impl Iterator<Item = usize> + use<> {
        (0..QUEUES).rev().chain(QUEUES..QUEUES + self.room.apart.len())
    }

    /// The numbers of the non-empty queues below [`QUEUES`], the most urgent (highest) first.
    pub fn occupied(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.occupied;
        core::iter::from_fn(move || {
            let queue = left.checked_ilog2()? as usize;
            left &= !(1 << queue);
            Some(queue)
        })
    }

    /// Whether the queues below [`QUEUES`] are empty.
    pub const fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// Number of frames in the separate queues.
    pub const fn apart(&self) -> u32 {
        self.apart
    }

    /// Occupancy of the queues below [`QUEUES`].
    pub fn fill(&self) -> Fill {
        self.room.port
    }

    /// Greatest occupancy of these queues so far, in bytes.
    pub fn peak_bytes(&self) -> u64 {
        self.room.peak_bytes
    }
}

fn insert(queue: &mut VecDeque<Frame>, overtakes: usize, frame: Frame) {
    if overtakes == 0 {
        queue.push_back(frame);
    } else {
        queue.insert(queue.len().saturating_sub(overtakes), frame);
    }
}
