//! The socket of a port, and the rings it shares with the kernel (linux/if_xdp.h, and "AF_XDP" in the kernel's
//! networking documentation).
//!
//! Rings are arrays of a power of two between one producer and one consumer, each of which writes one counter. The
//! counters wrap; only differences matter.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::NetError;
use crate::memory::Mapping;
use crate::sys::{Plain, bind, get_option, set_option, short, socket};

/// A frame descriptor in a ring.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Descriptor {
    pub(super) address: u64,
    pub(super) len: u32,
    pub(super) options: u32,
}

// SAFETY: integers without padding.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: integers.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: integers.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: integers without padding.
unsafe impl Plain for Descriptor {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}

/// Kind of ring.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Fill,
    Completion,
    Receive,
    Transmit,
}

/// A socket under construction or in use.
#[derive(Debug)]
pub(super) struct Socket(OwnedFd);

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Socket {
    pub(super) fn open(what: &str) -> Result<Self, NetError> {
        let cure = "AF_XDP needs CONFIG_XDP_SOCKETS in the kernel, and root or CAP_NET_RAW";
        socket(libc::AF_XDP, libc::SOCK_RAW, 0).map(Self).map_err(|e| NetError::of(what, cure, e))
    }

    /// Registers `memory` for frames.
    pub(super) fn register(&self, memory: &Mapping, frame_len: u32) -> io::Result<()> {
        // SAFETY: a registration of zeroes is valid; the fields that matter are set below.
        let mut registration: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
        registration.addr = memory.start() as u64;
        registration.len = memory.len() as u64;
        registration.chunk_size = frame_len;
        set_option(self.0.as_fd(), libc::SOL_XDP, libc::XDP_UMEM_REG, registration)
    }

    pub(super) fn producer<T>(&self, kind: Kind, size: u32) -> io::Result<Producer<T>> {
        let shared = self.ring(kind, size, size_of::<T>())?;
        Ok(Producer { shared, head: 0, taken: 0, entry: PhantomData })
    }

    pub(super) fn consumer<T>(&self, kind: Kind, size: u32) -> io::Result<Consumer<T>> {
        let shared = self.ring(kind, size, size_of::<T>())?;
        Ok(Consumer { shared, tail: 0, written: 0, entry: PhantomData })
    }

    /// Creates and maps a ring of `size` entries, a power of two.
    fn ring(&self, kind: Kind, size: u32, entry: usize) -> io::Result<Shared> {
        let offset = |value: u64| usize::try_from(value).map_err(io::Error::other);
        let option = match kind {
            Kind::Fill => libc::XDP_UMEM_FILL_RING,
            Kind::Completion => libc::XDP_UMEM_COMPLETION_RING,
            Kind::Receive => libc::XDP_RX_RING,
            Kind::Transmit => libc::XDP_TX_RING,
        };
        set_option(self.0.as_fd(), libc::SOL_XDP, option, size)?;
        // SAFETY: offsets of zeroes are valid and replaced by the kernel's.
        let none: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
        let offsets = get_option(self.0.as_fd(), libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, none)?;
        let (of, page) = match kind {
            Kind::Fill => (offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING.cast_signed()),
            Kind::Completion => (offsets.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING.cast_signed()),
            Kind::Receive => (offsets.rx, libc::XDP_PGOFF_RX_RING),
            Kind::Transmit => (offsets.tx, libc::XDP_PGOFF_TX_RING),
        };
        let map = Mapping::of(self.0.as_fd(), offset(of.desc)? + size as usize * entry, page)?;
        Ok(Shared {
            producer: offset(of.producer)?,
            consumer: offset(of.consumer)?,
            entries: offset(of.desc)?,
            size,
            map,
        })
    }

    /// Binds to a queue of an interface; the driver may copy. `shared`: uses the memory of another socket.
    pub(super) fn bind(&self, interface: u32, queue: u32, shared: Option<BorrowedFd<'_>>) -> io::Result<()> {
        // SAFETY: a sockaddr_xdp of zeroes is valid.
        let mut address: libc::sockaddr_xdp = unsafe { std::mem::zeroed() };
        address.sxdp_family = short(libc::AF_XDP as i64);
        address.sxdp_ifindex = interface;
        address.sxdp_queue_id = queue;
        if let Some(owner) = shared {
            address.sxdp_flags = libc::XDP_SHARED_UMEM;
            address.sxdp_shared_umem_fd = owner.as_raw_fd().cast_unsigned();
        }
        bind(self.0.as_fd(), &address)
    }

    /// Notifies the kernel of frames to send.
    pub(super) fn kick(&self) -> io::Result<()> {
        let (none, flags) = (std::ptr::null(), libc::MSG_DONTWAIT);
        // SAFETY: takes no pointers but null ones.
        let sent = unsafe { libc::sendto(self.0.as_raw_fd(), none, 0, flags, std::ptr::null(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Second owner of the same socket.
    pub(super) fn duplicate(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    pub(super) fn borrow(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub(super) fn statistics(&self) -> io::Result<libc::xdp_statistics> {
        // SAFETY: statistics of zeroes are valid.
        let none: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        get_option(self.0.as_fd(), libc::SOL_XDP, libc::XDP_STATISTICS, none)
    }
}

/// Retries for a second while the kernel returns EBUSY: it releases the queue of a closed socket with a delay.
pub(super) fn patiently(attempt: impl Fn() -> io::Result<()>) -> io::Result<()> {
    for _ in 0..100 {
        match attempt() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            done => return done,
        }
    }
    attempt()
}

/// A ring as mapped for both ends.
#[derive(Debug)]
struct Shared {
    map: Mapping,
    producer: usize,
    consumer: usize,
    entries: usize,
    size: u32,
}

impl Shared {
    fn counter(&self, at: usize) -> &AtomicU32 {
        // SAFETY: `at` came from the kernel's offsets and `Mapping::at` checks bounds and alignment; the kernel, too,
        // accesses the counter as an atomic; it lives as long as the mapping.
        unsafe { &*self.map.at::<AtomicU32>(at) }
    }

    fn entry<T>(&self, number: u32) -> *mut T {
        let at = (number & (self.size - 1)) as usize;
        self.map.at(self.entries + at * size_of::<T>())
    }
}

/// The producer's end of a ring that the kernel reads.
#[derive(Debug)]
pub(super) struct Producer<T> {
    shared: Shared,
    /// Number of entries written so far.
    head: u32,
    /// Number of these that the kernel had taken at the last check.
    taken: u32,
    entry: PhantomData<T>,
}

impl<T: Plain> Producer<T> {
    /// Writes an entry that the kernel sees after [`publish`](Self::publish); false: the ring is full.
    #[inline]
    pub(super) fn push(&mut self, entry: T) -> bool {
        if self.head.wrapping_sub(self.taken) >= self.shared.size {
            self.taken = self.shared.counter(self.shared.consumer).load(Ordering::Acquire);
            if self.head.wrapping_sub(self.taken) >= self.shared.size {
                return false;
            }
        }
        // SAFETY: in bounds and aligned; the kernel does not read an entry that was not published.
        unsafe { self.shared.entry::<T>(self.head).write(entry) };
        self.head = self.head.wrapping_add(1);
        true
    }

    #[inline]
    pub(super) fn publish(&self) {
        self.shared.counter(self.shared.producer).store(self.head, Ordering::Release);
    }

    /// Number of entries that the kernel has not taken yet.
    #[inline]
    pub(super) fn untaken(&self) -> u32 {
        self.head.wrapping_sub(self.shared.counter(self.shared.consumer).load(Ordering::Acquire))
    }
}

/// The consumer's end of a ring that the kernel writes.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    shared: Shared,
    /// Number of entries read so far.
    tail: u32,
    /// Number of entries that the kernel had written at the last check.
    written: u32,
    entry: PhantomData<T>,
}

impl<T: Plain> Consumer<T> {
    /// The next entry. Entries are returned to the kernel when all available ones have been read.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: in bounds and aligned; the kernel does not write an entry that was not given back.
        let entry = unsafe { self.shared.entry::<T>(self.tail).read() };
        self.tail = self.tail.wrapping_add(1);
        Some(entry)
    }

    /// Whether no entry is available.
    #[inline]
    pub(super) fn is_empty(&mut self) -> bool {
        if self.tail == self.written {
            self.shared.counter(self.shared.consumer).store(self.tail, Ordering::Release);
            self.written = self.shared.counter(self.shared.producer).load(Ordering::Acquire);
        }
        self.tail == self.written
    }
}
