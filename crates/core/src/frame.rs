//! A frame as a descriptor: what the cores decide by, without the bytes.
//!
//! 32 bytes and `Copy`, so that queues and links hold frames by value. Payload is left out: no core looks at
//! it. The driver knows a frame and its payload by the [`Handle`] it gave it: a simulator by the message, a live program by
//! the buffer.

use wg_frame::ethernet::MacAddress;
use wg_frame::{rtag, vlan};

use crate::line::{LONGEST_FRAME, SMALLEST_FRAME, bytes};

/// The kind of traffic a frame belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrafficClass {
    /// Forwarded by MAC address, without a promise.
    #[default]
    BestEffort,
    /// Forwarded by virtual link within a contract (ARINC 664 part 7).
    RateConstrained,
    /// Sent and forwarded at planned instants (SAE AS6802).
    TimeTriggered,
}

/// One of the redundant networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum NetworkId {
    /// Network A, or the only one.
    #[default]
    A,
    /// Network B.
    B,
}

impl NetworkId {
    /// Whether it is network A, or the only one.
    pub const fn is_a(&self) -> bool {
        matches!(self, Self::A)
    }
}

/// What a driver knows a frame by. Cores carry it from the frame that came in to every copy of it, and never look at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u64);

/// Protocol stacks a host can tell apart.
pub const STACKS: usize = 8;

/// What a frame has besides its addresses. A set of bits, and the protocol stack it passes in hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// A bit was inverted on the way: the frame check sequence is wrong.
    pub const FCS_ERROR: Self = Self(1);
    /// Sent on both redundant networks. Virtual links and time-triggered flows have this in their configuration instead.
    pub const BOTH_NETWORKS: Self = Self(2);
    /// Carries an 802.1Q tag, whatever its VLAN and priority.
    pub const TAGGED: Self = Self(4);
    /// Carries a redundancy tag (IEEE Std 802.1CB-2017, 7.8), whose number is the frame's.
    pub const R_TAG: Self = Self(64);
    /// The drop eligible indicator of its 802.1Q tag is set (IEEE Std 802.1Q-2022, 9.6).
    pub const DROP_ELIGIBLE: Self = Self(128);
    const STACK_SHIFT: u32 = 3;

    /// Without any.
    pub const fn none() -> Self {
        Self(0)
    }
    /// Those of a frame that passes protocol stack `number` of its hosts: see [`Self::stack`]. 0 where none is said.
    ///
    /// Panics unless there is such a stack.
    pub const fn of_stack(number: u8) -> Self {
        assert!((number as usize) < STACKS, "wg-core misuse: a host has fewer protocol stacks");
        Self(number << Self::STACK_SHIFT)
    }
    /// The protocol stack it passes in hosts, less than [`STACKS`].
    pub const fn stack(self) -> usize {
        (self.0 >> Self::STACK_SHIFT) as usize % STACKS
    }
    /// Both sets.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// This set less `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    /// Whether all of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Bytes that its tags take.
    pub const fn tag_bytes(self) -> u32 {
        let vlan = if self.has(Self::TAGGED) { bytes(vlan::TAG_LEN) } else { 0 };
        vlan + if self.has(Self::R_TAG) { bytes(rtag::TAG_LEN) } else { 0 }
    }
}

/// One frame.
///
/// Aligned as it is copied, 16 bytes at a time: what holds a frame then has its halves where a copy of the whole loads
/// them. A load that straddles two stores that were just made waits until both are through to the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(16))]
pub struct Frame {
    /// Where it goes.
    pub destination: MacAddress,
    /// Where it comes from.
    pub source: MacAddress,
    /// Length in bytes, destination address to FCS inclusive (RFC 1242, 3.5), as sent: padding included.
    pub length: u16,
    /// VLAN identifier; 0 without tag or [priority-tagged](Marks::TAGGED) (IEEE Std 802.1Q-2022, 9.6).
    pub vlan: u16,
    /// Virtual link, or identifier of critical traffic; of best-effort frames the number that their driver gave to the headers
    /// of their datagram, where switches know streams by them, 0 for none.
    pub virtual_link: u16,
    /// Sequence number of its stream: of a redundancy tag all 16 bits, of a virtual link 8 of them; until its sender numbers
    /// the frame, the sub-virtual-link it is for.
    pub sequence: u16,
    /// What its driver knows it by.
    pub handle: Handle,
    /// Priority code point, 0 to 7; 7 is the most urgent. Within a device its low three bits may be an
    /// [internal priority](Self::with_internal_priority).
    pub priority: u8,
    /// Kind of traffic.
    pub class: TrafficClass,
    /// Redundant network it travels on.
    pub network: NetworkId,
    /// Tag, copies, damage.
    pub marks: Marks,
}

/// Lengths of frames that a receiver takes: others are runts and giants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FrameLengths {
    /// Of the shortest, in bytes.
    pub shortest: u16,
    /// Of the longest without tags, which come on top (IEEE Std 802.3-2022, 4.2.7.1: maxBasicFrameSize, qTagPrefixSize).
    pub longest: u16,
}

impl Default for FrameLengths {
    fn default() -> Self {
        Self::STANDARD
    }
}

impl FrameLengths {
    /// Those of IEEE Std 802.3.
    pub const STANDARD: Self = Self { shortest: SMALLEST_FRAME, longest: LONGEST_FRAME };

    /// Whether a frame has one of them.
    #[inline]
    pub const fn have(self, frame: &Frame) -> bool {
        frame.length >= self.shortest
            && (frame.length <= self.longest
                || frame.length as u32 <= self.longest as u32 + frame.marks.tag_bytes())
    }
}

impl Frame {
    const INTERNAL: u8 = 0x80;

    /// Queued by this priority (0 to 7) until it leaves the device, whatever its code point (IEEE Std 802.1Q-2022, 8.6.5.4).
    #[must_use]
    pub const fn with_internal_priority(mut self, priority: u8) -> Self {
        self.priority = Self::INTERNAL | (self.leaving().priority & 7) << 3 | priority & 7;
        self
    }

    /// Whether it has one.
    #[inline]
    pub const fn has_internal_priority(&self) -> bool {
        self.priority & Self::INTERNAL != 0
    }

    /// As it leaves the device: with the priority of its code point.
    #[must_use]
    pub const fn leaving(mut self) -> Self {
        if self.has_internal_priority() {
            self.priority = self.priority >> 3 & 7;
        }
        self
    }
}

const _: () = assert!(core::mem::size_of::<Frame>() <= 32, "descriptors are copied at every hop");
