//! Frame buffers, allocated once before a run and handed from thread to thread by pointer.

use std::ops::Range;

use wg_frame::probe::Probe;
use wg_frame::time::RunTime;
use wg_frame::{ethernet, ipv4, udp, vlan};

use crate::recording::record_ring::ArrivalTimes;

/// Size of a buffer in bytes.
pub const BUFFER_LEN: usize = 2048;
/// Offset of the payload in every buffer. The space before it holds the headers of a tagged frame with a datagram, so
/// that a relay can return a frame, tagged or not, without moving the payload.
pub const PAYLOAD_AT: usize = ethernet::HEADER_LEN + vlan::TAG_LEN + ipv4::HEADER_LEN + udp::HEADER_LEN;
/// The longest payload a buffer holds, in bytes.
pub const MAX_PAYLOAD: usize = BUFFER_LEN - PAYLOAD_AT;

/// Memory for one frame; a move copies only a pointer.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Content; see [`PAYLOAD_AT`].
    pub bytes: Box<[u8; BUFFER_LEN]>,
}

impl Default for Buffer {
    fn default() -> Self {
        Self::new()
    }
}

impl Buffer {
    /// A buffer whose pages are in memory.
    pub fn new() -> Self {
        let mut bytes = Box::new([0; BUFFER_LEN]);
        // Zeroed memory may not be mapped yet; a write maps it.
        std::hint::black_box(&mut bytes)[BUFFER_LEN - 1] = 1;
        Self { bytes }
    }
    /// The first `len` bytes of payload; fewer when the buffer is shorter.
    pub fn payload(&self, len: usize) -> &[u8] {
        &self.bytes[PAYLOAD_AT..PAYLOAD_AT + len.min(MAX_PAYLOAD)]
    }
    /// Mutable form of [`payload`](Self::payload).
    pub fn payload_mut(&mut self, len: usize) -> &mut [u8] {
        &mut self.bytes[PAYLOAD_AT..PAYLOAD_AT + len.min(MAX_PAYLOAD)]
    }
}

/// Message in the queue to the access point.
#[derive(Debug)]
pub struct Outgoing {
    /// Intended send time.
    pub due: RunTime,
    /// The frame.
    pub buffer: Buffer,
    /// Range of the frame within the buffer.
    pub frame: Range<u16>,
    /// Plan index of the destination end system.
    pub to: u16,
    /// Position of its flow in the flow table.
    pub flow: u16,
    /// Probe header.
    pub probe: Probe,
    /// True if `due` is a point of a schedule, false for "at once".
    pub scheduled: bool,
    /// The sequence number is to be dropped from the count of sends when refused; frame length DA to FCS.
    pub length: u16,
}

/// Frame received at the access point.
#[derive(Debug)]
pub struct Incoming {
    /// The frame.
    pub buffer: Buffer,
    /// Bytes of payload, padding included.
    pub payload: u16,
    /// Frame length in bytes, DA to FCS.
    pub length: u16,
    /// Arrival times.
    pub at: ArrivalTimes,
}
