//! Frame buffers, allocated once before a run and handed from thread to thread by pointer.

use std::ops::Range;

use wg_frame::probe::Probe;
use wg_frame::time::RunTime;
use wg_frame::{ethernet, ipv4, udp, vlan};

use crate::recording::record_ring::ArrivalTimes;

/// Size of a buffer in bytes.
pub const BUFFER_LEN: usize = 2048;
/// Where a payload begins in every buffer: behind room for the headers of a tagged frame with a datagram, so that a
/// relay can return a frame, tagged or not, without moving its payload.
pub const PAYLOAD_AT: usize = ethernet::HEADER_LEN + vlan::TAG_LEN + ipv4::HEADER_LEN + udp::HEADER_LEN;
/// The longest payload a buffer holds, in bytes.
pub const MAX_PAYLOAD: usize = BUFFER_LEN - PAYLOAD_AT;

/// Room for one frame; moving it moves a pointer.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Its bytes; see [`PAYLOAD_AT`].
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
        // Zeroed memory may be a promise of the kernel's only; a write makes it real.
        std::hint::black_box(&mut bytes)[BUFFER_LEN - 1] = 1;
        Self { bytes }
    }
    /// The first `len` bytes of payload; fewer when the buffer is shorter.
    pub fn payload(&self, len: usize) -> &[u8] {
        &self.bytes[PAYLOAD_AT..PAYLOAD_AT + len.min(MAX_PAYLOAD)]
    }
    /// As [`payload`](Self::payload), to write.
    pub fn payload_mut(&mut self, len: usize) -> &mut [u8] {
        &mut self.bytes[PAYLOAD_AT..PAYLOAD_AT + len.min(MAX_PAYLOAD)]
    }
}

/// A message on its way to the access point.
#[derive(Debug)]
pub struct Outgoing {
    /// When it is to leave.
    pub due: RunTime,
    /// The frame.
    pub buffer: Buffer,
    /// Its bytes within the buffer.
    pub frame: Range<u16>,
    /// The end system it goes to (index in the plan).
    pub to: u16,
    /// Position of its flow in the flow table.
    pub flow: u16,
    /// Its header.
    pub probe: Probe,
    /// Whether `due` is a point of a schedule, not just "at once".
    pub scheduled: bool,
    /// The sequence number is to be dropped from the count of sends when refused; frame length DA to FCS.
    pub length: u16,
}

/// A frame the access point received.
#[derive(Debug)]
pub struct Incoming {
    /// The frame.
    pub buffer: Buffer,
    /// Bytes of payload, padding included.
    pub payload: u16,
    /// Frame length in bytes, DA to FCS.
    pub length: u16,
    /// When it came.
    pub at: ArrivalTimes,
}
