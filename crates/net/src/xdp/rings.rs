//! `AF_XDP`: memory and rings shared with the driver (linux/if_xdp.h, and "AF_XDP" in the kernel's networking
//! documentation).
//!
//! Rings are arrays of a power of two between one producer and one consumer, each of whom writes one counter. The
//! counters run over; differences are what counts.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::NetError;
use crate::memory::Mapping;
use crate::sys::{Plain, check, get_option, set_option};

/// A frame in a ring of frames.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Descriptor {
    pub(crate) address: u64,
    pub(crate) len: u32,
    pub(crate) options: u32,
}

// SAFETY: integers without padding.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: integers.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: integers.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}

/// Memory frames live in.
#[derive(Debug)]
pub(crate) struct Umem {
    memory: Mapping,
    frame_len: u32,
}

impl Umem {
    pub(crate) fn new(frames: u32, frame_len: u32) -> io::Result<Self> {
        Ok(Self { memory: Mapping::anonymous(frames as usize * frame_len as usize)?, frame_len })
    }

    /// Frame `at`, to fill. The caller's counting keeps the kernel from reading it meanwhile; were that wrong, a
    /// frame with mixed content would leave, which its CRC tells.
    pub(crate) fn frame_mut(&mut self, at: u32) -> &mut [u8] {
        let start = at as usize * self.frame_len as usize;
        let last = start + self.frame_len as usize - 1;
        let _inside: *mut u8 = self.memory.at(last);
        // SAFETY: the frame lies within the mapping, checked above; `&mut self` makes it the only reference of this
        // program, and the kernel only reads frames that were committed.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start().add(start), self.frame_len as usize) }
    }

    /// `len` bytes at `address` that the kernel filled and gave to this side; empty if they do not lie inside.
    pub(crate) fn bytes(&self, address: u64, len: usize) -> &[u8] {
        let start = usize::try_from(address).unwrap_or(usize::MAX);
        if start.checked_add(len).is_none_or(|end| end > self.memory.len()) {
            return &[];
        }
        // SAFETY: within the mapping, checked above; the kernel does not write to a frame before it is given back
        // through the fill ring, which the caller does after this borrow.
        unsafe { std::slice::from_raw_parts(self.memory.start().add(start), len) }
    }
}

/// Which ring.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Fill,
    Completion,
    Receive,
    Transmit,
}

/// A socket under construction or in use.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Socket {
    pub(crate) fn open(what: &str) -> Result<Self, NetError> {
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            let cure = "AF_XDP needs CONFIG_XDP_SOCKETS in the kernel, and root or CAP_NET_RAW";
            return Err(NetError::last(what, cure));
        }
        // SAFETY: `fd` was just created and nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(crate) fn register(&self, umem: &Umem) -> io::Result<()> {
        // SAFETY: a registration of zeroes is valid; the fields that matter are set below.
        let mut registration: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
        registration.addr = umem.memory.start() as u64;
        registration.len = umem.memory.len() as u64;
        registration.chunk_size = umem.frame_len;
        set_option(self.0.as_fd(), libc::SOL_XDP, libc::XDP_UMEM_REG, registration)
    }

    /// Makes and maps a ring of `size` entries, a power of two.
    pub(crate) fn ring(&self, kind: Kind, size: u32) -> io::Result<Ring> {
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
        let (of, page, entry) = match kind {
            Kind::Fill => (offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING as i64, size_of::<u64>()),
            Kind::Completion => (offsets.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, size_of::<u64>()),
            Kind::Receive => (offsets.rx, libc::XDP_PGOFF_RX_RING, size_of::<Descriptor>()),
            Kind::Transmit => (offsets.tx, libc::XDP_PGOFF_TX_RING, size_of::<Descriptor>()),
        };
        let map = Mapping::of(self.0.as_fd(), of.desc as usize + size as usize * entry, page)?;
        let ring = Ring {
            producer: of.producer as usize,
            consumer: of.consumer as usize,
            entries: of.desc as usize,
            size,
            map,
        };
        Ok(ring)
    }

    /// Binds to a queue of an interface; the driver may copy.
    pub(crate) fn bind(&self, interface: u32, queue: u32) -> io::Result<()> {
        // SAFETY: a sockaddr_xdp of zeroes is valid.
        let mut address: libc::sockaddr_xdp = unsafe { std::mem::zeroed() };
        address.sxdp_family = libc::AF_XDP as u16;
        address.sxdp_ifindex = interface;
        address.sxdp_queue_id = queue;
        // SAFETY: the pointer and length describe a live sockaddr_xdp.
        let bound = unsafe {
            libc::bind(
                self.0.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_xdp>() as u32,
            )
        };
        check(bound).map(drop)
    }

    pub(crate) fn borrow(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub(crate) fn statistics(&self) -> io::Result<libc::xdp_statistics> {
        // SAFETY: statistics of zeroes are valid.
        let none: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        get_option(self.0.as_fd(), libc::SOL_XDP, libc::XDP_STATISTICS, none)
    }
}

/// Tries again for a second while the kernel says "busy": it lets go of a closed socket's queue some time later.
pub(crate) fn patiently(attempt: impl Fn() -> io::Result<()>) -> io::Result<()> {
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

/// One end of a ring; which end decides which methods make sense.
#[derive(Debug)]
pub(crate) struct Ring {
    map: Mapping,
    producer: usize,
    consumer: usize,
    entries: usize,
    size: u32,
}

impl Ring {
    fn counter(&self, at: usize) -> &AtomicU32 {
        // SAFETY: `at` came from the kernel's offsets and `Mapping::at` checks bounds and alignment; the kernel, too,
        // accesses the counter as an atomic; it lives as long as the mapping.
        unsafe { &*self.map.at::<AtomicU32>(at) }
    }

    /// Consumer: entries that are there.
    #[inline]
    pub(crate) fn readable(&self) -> u32 {
        let produced = self.counter(self.producer).load(Ordering::Acquire);
        produced.wrapping_sub(self.counter(self.consumer).load(Ordering::Relaxed))
    }

    /// Consumer: gives `count` entries back.
    #[inline]
    pub(crate) fn release(&self, count: u32) {
        let counter = self.counter(self.consumer);
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(count), Ordering::Release);
    }

    /// Consumer: the frame `ahead` entries behind the first readable one.
    #[inline]
    pub(crate) fn read_descriptor(&self, ahead: u32) -> Descriptor {
        let at = self.counter(self.consumer).load(Ordering::Relaxed).wrapping_add(ahead) & (self.size - 1);
        let pointer: *mut Descriptor = self.map.at(self.entries + at as usize * size_of::<Descriptor>());
        // SAFETY: in bounds and aligned; the producer does not write an entry that was not released.
        unsafe { pointer.read() }
    }

    /// Producer: frame number `number`, counted from the beginning, before it is published.
    #[inline]
    pub(crate) fn write_descriptor(&mut self, number: u32, descriptor: Descriptor) {
        let at = number & (self.size - 1);
        let pointer: *mut Descriptor = self.map.at(self.entries + at as usize * size_of::<Descriptor>());
        // SAFETY: in bounds and aligned; the consumer does not read an entry that was not published.
        unsafe { pointer.write(descriptor) };
    }

    /// Producer: address number `number` of a ring of addresses.
    #[inline]
    pub(crate) fn write_address(&mut self, number: u32, address: u64) {
        let at = number & (self.size - 1);
        let pointer: *mut u64 = self.map.at(self.entries + at as usize * size_of::<u64>());
        // SAFETY: as above.
        unsafe { pointer.write(address) };
    }

    /// Producer: everything before number `head` is there.
    #[inline]
    pub(crate) fn publish(&self, head: u32) {
        self.counter(self.producer).store(head, Ordering::Release);
    }

    /// Producer: entries before `head` the consumer has not taken.
    #[inline]
    pub(crate) fn unconsumed(&self, head: u32) -> u32 {
        head.wrapping_sub(self.counter(self.consumer).load(Ordering::Acquire))
    }
}
