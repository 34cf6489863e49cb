//! The memory of frames and the list of free ones.

use std::io;

use super::rings::Socket;
use crate::memory::Mapping;

/// Length of a frame buffer in bytes, a power of two.
pub const FRAME_LEN: usize = 2048;
const LEN: u32 = 2048;
const LEN_U64: u64 = 2048;

/// The right to one frame of a pool; it goes back to the pool, or to a port of the pool.
///
/// Dropping it leaks the frame, which the pool's count shows.
#[derive(Debug)]
#[must_use = "a frame that is not given back is lost to its pool"]
pub struct XdpFrame {
    /// Address of its first byte within the memory.
    address: u64,
    len: u32,
}

impl XdpFrame {
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Address of its buffer.
    pub(super) fn start(&self) -> u64 {
        self.address & !(LEN_U64 - 1)
    }

    /// Length of the frame in bytes.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Index of the frame in the pool.
    pub fn index(&self) -> usize {
        usize::try_from(self.address / LEN_U64).unwrap_or(usize::MAX)
    }
}

/// Frame memory that ports share, and its free frames. It keeps the queue of the first port open as long as it exists.
#[derive(Debug)]
pub struct FramePool {
    /// The socket with which the memory was registered; closed before the memory is freed.
    owner: Option<Socket>,
    memory: Mapping,
    /// Addresses of free frame buffers.
    free: Vec<u64>,
    frames: u32,
}

impl FramePool {
    /// Memory for `frames` frames, all free.
    ///
    /// # Errors
    /// There is no such memory.
    pub fn new(frames: u32) -> io::Result<Self> {
        let memory = Mapping::anonymous(frames as usize * FRAME_LEN)?;
        let free = (0..frames).rev().map(|frame| u64::from(frame) * LEN_U64).collect();
        Ok(Self { owner: None, memory, free, frames })
    }

    /// Number of frames.
    pub fn frames(&self) -> usize {
        self.frames as usize
    }

    /// Number of free frames.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Takes a free frame, of length 0.
    #[inline]
    pub fn take(&mut self) -> Option<XdpFrame> {
        self.free.pop().map(|address| XdpFrame { address, len: 0 })
    }

    /// Returns a frame to the free ones.
    #[inline]
    pub fn give_back(&mut self, frame: XdpFrame) {
        // Its capacity suffices for all frames.
        self.free.push(frame.start());
    }

    /// The bytes of a frame.
    pub fn bytes(&self, frame: &XdpFrame) -> &[u8] {
        self.slice(frame.address, frame.len)
    }

    /// The buffer of a frame from its first byte on, writable; [`set_len`](Self::set_len) sets the length of the frame.
    pub fn memory_mut(&mut self, frame: &mut XdpFrame) -> &mut [u8] {
        let at = usize::try_from(frame.address).unwrap_or(usize::MAX);
        let room = FRAME_LEN - at % FRAME_LEN;
        let _inside: *mut u8 = self.memory.at(at.saturating_add(room - 1));
        // SAFETY: within the mapping, checked above. The frame is in nobody else's hand: there is one `XdpFrame` for
        // each frame that is not with the kernel, and this call borrows it and the pool exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start().add(at), room) }
    }

    /// Sets the length of the frame, limited to its buffer.
    pub fn set_len(&self, frame: &mut XdpFrame, len: usize) {
        let room = FRAME_LEN - usize::try_from(frame.address % LEN_U64).unwrap_or(0);
        frame.len = u32::try_from(len.min(room)).unwrap_or(LEN);
    }

    /// The `N` bytes before a frame; `None` if its buffer begins later.
    pub(super) fn before<const N: usize>(&self, frame: &XdpFrame) -> Option<[u8; N]> {
        let start = frame.address.checked_sub(N as u64).filter(|start| *start >= frame.start())?;
        self.slice(start, u32::try_from(N).ok()?).first_chunk().copied()
    }

    /// The right to a frame that the kernel has returned: `len` bytes at `address`.
    ///
    /// # Panics
    /// If the kernel names no frame of this pool.
    #[inline]
    pub(super) fn filled(&self, address: u64, len: u32) -> XdpFrame {
        let end = address % LEN_U64 + u64::from(len);
        assert!(address / LEN_U64 < u64::from(self.frames) && end <= LEN_U64, "beyond the memory of frames");
        XdpFrame { address, len }
    }

    fn slice(&self, address: u64, len: u32) -> &[u8] {
        let (start, len) = (usize::try_from(address).unwrap_or(usize::MAX), len as usize);
        if start.checked_add(len).is_none_or(|end| end > self.memory.len()) {
            return &[];
        }
        // SAFETY: within the mapping, checked above; the kernel writes only to frames given to a fill ring, for which
        // there is no `XdpFrame`.
        unsafe { std::slice::from_raw_parts(self.memory.start().add(start), len) }
    }

    /// The socket that registered the memory; `None` before the first.
    pub(super) fn owner(&self) -> io::Result<Option<Socket>> {
        self.owner.as_ref().map(Socket::duplicate).transpose()
    }

    pub(super) fn register(&mut self, socket: &Socket) -> io::Result<()> {
        socket.register(&self.memory, LEN)?;
        self.owner = Some(socket.duplicate()?);
        Ok(())
    }
}
